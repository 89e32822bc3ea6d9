//! Whether the host can still do something by itself while all who called wait for the device.

use super::sleep::{self, Sleep};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Processes, and their threads that are inside a call.
pub type Inside = BTreeMap<u32, BTreeSet<u32>>;

/// Threads of our library in the program's process; what they do follows from what the program does.
const OWN: [&str; 2] = ["lockstep-watch", "lockstep-faults"];

/// A thread that may go on before the device does, in words; none if every thread is inside a call or waits for
/// another thread, or for a process that is among these.
pub fn who_may_act(inside: &Inside) -> Option<String> {
    let run: Vec<u32> = inside.keys().copied().collect();
    inside.iter().find_map(|(process, threads)| {
        // A process that is gone writes nothing any more.
        let tasks = std::fs::read_dir(format!("/proc/{process}/task")).ok()?;
        let numbers = tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse::<u32>().ok());
        let mut others = numbers.filter(|thread| !threads.contains(thread));
        let thread = others.find(|thread| may_act(*process, *thread, &run))?;
        Some(format!("thread {thread} of process {process}"))
    })
}

fn may_act(process: u32, thread: u32, run: &[u32]) -> bool {
    let folder = format!("/proc/{process}/task/{thread}");
    let read = |name: &str| std::fs::read_to_string(Path::new(&folder).join(name));
    if read("comm").is_ok_and(|name| OWN.contains(&name.trim_end())) {
        return false;
    }
    match sleep::of(process, thread, run) {
        Ok(Sleep::ForThread | Sleep::ForPage | Sleep::ForProcess) => false,
        // Where there are others in the run, these will come.
        Ok(Sleep::ForComers) => run.len() == 1,
        Ok(Sleep::Nap | Sleep::Polls | Sleep::ForWorld | Sleep::Unknown) => true,
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_thread_outside_of_calls_may_act_unless_it_waits_for_another() {
        let own = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        let process = std::process::id();
        assert!(
            may_act(process, own, &[process]),
            "this thread is running, so it may do anything"
        );
        let (tell, told) = mpsc::channel();
        let (stop, stopped) = mpsc::channel::<()>();
        let sleeper = std::thread::spawn(move || {
            tell.send(rustix::thread::gettid().as_raw_nonzero().get() as u32)
                .unwrap();
            let _ = stopped.recv();
        });
        let thread = told.recv().unwrap();
        // Where the kernel does not show system calls, everybody may act.
        if std::fs::read_to_string(format!("/proc/self/task/{own}/syscall")).is_ok() {
            while may_act(process, thread, &[process]) {
                std::thread::yield_now();
            }
        }
        drop(stop);
        sleeper.join().unwrap();
        assert_eq!(who_may_act(&Inside::new()), None);
    }
}
