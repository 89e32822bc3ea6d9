//! What a program left running, when its run is interrupted.
//!
//! Processes whose parent has ended become children of the simulator, which asked for them. They
//! are ended with the run only if somebody ended it: a program that ends by itself may leave what
//! it likes.

use crate::guardian;

/// How often the children of children are looked for: each round finds those whose parents the last
/// one ended.
const ROUNDS: u32 = 16;

/// Ends every child but the guardian, and theirs.
pub fn end() {
    for _ in 0..ROUNDS {
        let children = children();
        if children.is_empty() {
            return;
        }
        for child in children {
            let Some(process) = rustix::process::Pid::from_raw(child) else {
                continue;
            };
            // One that has just ended, or that belongs to another user, is not ours to end.
            let _ = rustix::process::kill_process(process, rustix::process::Signal::KILL);
            let _ = rustix::process::waitpid(Some(process), rustix::process::WaitOptions::NOHANG);
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// The children of all threads of this process, but for guardians.
fn children() -> Vec<i32> {
    let threads = std::fs::read_dir("/proc/self/task");
    let lists = threads.into_iter().flatten().flatten();
    let mut found = Vec::new();
    for thread in lists {
        let text = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        found.extend(
            text.split_whitespace()
                .filter_map(|number| number.parse::<i32>().ok()),
        );
    }
    found.retain(|child| !guardian::is_one(*child));
    found
}
