//! What a program left running, when its run is interrupted.
//!
//! Processes whose parent has ended become children of the simulator, which asked for them. They
//! are ended with the run only if somebody ended it: a program that ends by itself may leave what
//! it likes.

use crate::{guardian, ranks};

/// How often the children of children are looked for: each round finds those whose parents the last
/// one ended.
const ROUNDS: u32 = 16;

/// Ends every child but the guardian and other ranks, and theirs.
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

/// The children of this process, but for guardians and ranks.
fn children() -> Vec<i32> {
    let children = crate::host::children(std::process::id()).into_iter();
    let numbers = children.filter_map(|child| i32::try_from(child).ok());
    numbers
        .filter(|child| !guardian::is_one(*child) && !ranks::is_rank(*child))
        .collect()
}
