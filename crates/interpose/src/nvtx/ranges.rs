//! Ranges that begin and end, and who is told of them.
//!
//! A thread that has made no CUDA call has no connection, and a range is no reason to open one: the process may
//! still fork and use CUDA in its children. What it has open is kept until its first call; what it closes before is
//! forgotten, since no launch was within.

use crate::call::call;
use crate::fair_mutex::FairMutex;
use crate::process::lock;
use crate::thread;
use lockstep_protocol::{RangeName, RangeStep, Reply, Request};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Ranges of the process that nobody was told of.
static KEPT: FairMutex<Vec<RangeStep>> = FairMutex::new(Vec::new());
/// Whether there are some.
static KEEPS: AtomicBool = AtomicBool::new(false);
/// The number of the last range of the process.
static LAST: AtomicU64 = AtomicU64::new(0);

/// Opens a range of the process: its number.
pub fn start(name: RangeName) -> u64 {
    let id = LAST.fetch_add(1, Ordering::Relaxed) + 1;
    of_process(RangeStep::Start { id, name });
    id
}

/// Closes a range of the process.
pub fn end(id: u64) {
    of_process(RangeStep::End { id });
}

fn of_process(step: RangeStep) {
    if is_connected() {
        tell(step);
    } else {
        keep(&mut lock(&KEPT), step);
        KEEPS.store(true, Ordering::Release);
    }
}

/// Opens a range of the thread: how many are around it, or a negative number.
pub fn push(name: RangeName) -> i32 {
    of_thread(RangeStep::Push(name))
}

/// Closes the innermost range of the thread: how many are around it, or a negative number if there is none.
pub fn pop(domain: String) -> i32 {
    of_thread(RangeStep::Pop { domain })
}

fn of_thread(step: RangeStep) -> i32 {
    if is_connected() {
        return tell(step);
    }
    let mut kept = thread::current().ranges.borrow_mut();
    let before = open(&kept, domain_of(&step));
    let opens = matches!(step, RangeStep::Push(_));
    keep(&mut kept, step);
    if opens { before } else { before - 1 }
}

/// Keeps a step, or forgets the range that it closes. What closes none is kept once, so that it is said.
fn keep(kept: &mut Vec<RangeStep>, step: RangeStep) {
    if matches!(step, RangeStep::Push(_) | RangeStep::Start { .. }) {
        return kept.push(step);
    }
    match kept.iter().rposition(|opened| closes(&step, opened)) {
        Some(place) => drop(kept.remove(place)),
        None if !kept.contains(&step) => kept.push(step),
        None => {}
    }
}

fn closes(step: &RangeStep, opened: &RangeStep) -> bool {
    match (step, opened) {
        (RangeStep::Pop { domain }, RangeStep::Push(name)) => name.domain == *domain,
        (RangeStep::End { id }, RangeStep::Start { id: other, .. }) => id == other,
        _ => false,
    }
}

fn domain_of(step: &RangeStep) -> &str {
    match step {
        RangeStep::Push(name) | RangeStep::Start { name, .. } => &name.domain,
        RangeStep::Pop { domain } => domain,
        RangeStep::End { .. } => "",
    }
}

/// How many ranges of a domain are open after these steps.
fn open(steps: &[RangeStep], domain: &str) -> i32 {
    let of_domain = steps.iter().filter(|step| domain_of(step) == domain);
    of_domain.fold(0, |open: i32, step| match step {
        RangeStep::Push(_) => open + 1,
        RangeStep::Pop { .. } => (open - 1).max(0),
        _ => open,
    })
}

fn is_connected() -> bool {
    thread::current().connection.borrow().is_some()
}

/// Tells the simulator: what it answers, or -1.
fn tell(step: RangeStep) -> i32 {
    match call(&Request::Range(step)) {
        Ok(Reply::Value(level)) => i32::try_from(level).unwrap_or(i32::MAX),
        _ => -1,
    }
}

/// Tells the simulator what was kept, before the call that a thread is about to make.
pub fn flush() {
    if KEEPS.load(Ordering::Acquire) {
        KEEPS.store(false, Ordering::Release);
        let kept = std::mem::take(&mut *lock(&KEPT));
        kept.into_iter().for_each(|step| {
            tell(step);
        });
    }
    // A call from a signal handler may come while the thread itself is here.
    let Ok(mut ranges) = thread::current().ranges.try_borrow_mut() else {
        return;
    };
    if !ranges.is_empty() {
        let kept = std::mem::take(&mut *ranges);
        drop(ranges);
        kept.into_iter().for_each(|step| {
            tell(step);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_counted_by_domain() {
        let name = |domain: &str| RangeName {
            name: "a".into(),
            domain: domain.into(),
        };
        assert_eq!(push(name("")), 0);
        assert_eq!(push(name("")), 1);
        assert_eq!(push(name("other")), 0);
        assert_eq!(pop("".into()), 1);
        assert_eq!(pop("".into()), 0);
        assert_eq!(pop("".into()), -1);
        assert_eq!(push(name("")), 0);
    }

    #[test]
    fn ranges_that_were_closed_before_a_call_are_forgotten() {
        let mut kept = Vec::new();
        let name = RangeName::default();
        let domain = String::new();
        for id in 0..1000 {
            let name = name.clone();
            keep(&mut kept, RangeStep::Push(name.clone()));
            keep(&mut kept, RangeStep::Start { id, name });
            keep(&mut kept, RangeStep::End { id });
            let domain = domain.clone();
            keep(&mut kept, RangeStep::Pop { domain });
        }
        assert_eq!(kept, []);
        for _ in 0..1000 {
            let domain = domain.clone();
            keep(&mut kept, RangeStep::Pop { domain });
        }
        assert_eq!(kept, [RangeStep::Pop { domain }]);
    }
}
