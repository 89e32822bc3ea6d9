//! Assertions that failed on an SM.
//!
//! Every thread whose assertion fails says so, on a line of its own: a warp in which one fails stops, and the others go
//! on for a while before the kernel is given up. Lines come in the order of (cycle, SM, warp in its turn, lane).
//!
//! Modelled: the lines of the blocks that are on the GPU by then. Left out: how long a real GPU goes on, which was not
//! measured.
//!
//! Start reading at `SmState::assert_failed`.

use lockstep_units::Cycle;
use serde::{Deserialize, Serialize};

use super::Printed;
use super::now::Now;
use super::problem::Problem;
use super::report;
use super::state::SmState;
use crate::fault::{Fault, FaultKind};

/// Cycles from the first assertion that fails to the end of the kernel: enough for every warp of an SM to come there in
/// functional mode, where warps have one instruction a cycle together.
const GRACE: u64 = 1 << 16;

/// Lines that an SM keeps, and that are said of a kernel.
const MOST_LINES: usize = 1024;

/// What failed on one SM.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Assertions {
    /// The first that failed, which is the kernel's fault.
    first: Option<Box<Fault>>,
    lines: Vec<Printed>,
    /// How many failed, those without a line too.
    failed: u64,
}

impl Assertions {
    /// When the kernel is given up; at the end of time if nothing failed.
    #[must_use]
    #[inline]
    pub fn due(&self) -> u64 {
        match &self.first {
            None => u64::MAX,
            Some(fault) => fault.cycle.0 + GRACE,
        }
    }

    /// The first that failed.
    #[must_use]
    pub fn first(&self) -> Option<&Fault> {
        self.first.as_deref()
    }

    fn add(&mut self, text: String, sm: u32, cycle: u64) {
        if self.lines.len() < MOST_LINES {
            self.lines.push(Printed {
                cycle,
                sm,
                sequence: self.failed,
                text,
            });
        }
        self.failed += 1;
    }
}

/// The fault of a kernel some of whose assertions failed, with a line for each of them; none if none did.
#[must_use]
pub fn fault_of<'a>(all: impl Iterator<Item = &'a Assertions>) -> Option<Fault> {
    let (mut first, mut lines, mut failed) = (None::<&Fault>, Vec::new(), 0);
    for one in all {
        let Some(fault) = one.first() else {
            continue;
        };
        let place = |fault: &Fault| (fault.cycle, fault.sm);
        if first.is_none_or(|first| place(fault) < place(first)) {
            first = Some(fault);
        }
        lines.extend(&one.lines);
        failed += one.failed;
    }
    let mut fault = first?.clone();
    lines.sort();
    lines.truncate(MOST_LINES);
    let mut text: Vec<String> = lines.iter().map(|line| line.text.clone()).collect();
    if failed > lines.len() as u64 {
        text.push(format!("... and {} more", failed - lines.len() as u64));
    }
    fault.kind = FaultKind::Assert(text.join("\n"));
    Some(fault)
}

impl SmState {
    /// Assertions of some lanes of a warp failed; each has a line. The warp stops for good.
    pub(super) fn assert_failed(&mut self, slot: u8, lines: Vec<(usize, String)>, now: Now) {
        if self.assertions.first.is_none()
            && let Some((lane, text)) = lines.first()
        {
            let problem = Problem {
                lane: *lane,
                kind: FaultKind::Assert(text.clone()),
            };
            let pc = self.warps[usize::from(slot)].convergence.pc();
            let fault = report::fault_at(self, slot, problem, pc, now);
            self.assertions.first = Some(Box::new(fault));
        }
        for (_, text) in lines {
            self.assertions.add(text, self.number, now.cycle);
        }
        self.slots.hold(slot);
    }

    /// Makes assertions the fault of the SM, if they failed long enough before a cycle.
    pub(super) fn give_up_after_assertions(&mut self, end: Cycle) {
        if let Some(fault) = &self.assertions.first
            && self.assertions.due() < end.0
        {
            let at = self.clock().edge(Cycle(self.assertions.due()));
            self.fault = Some((at, fault.clone()));
            self.slots.ready = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assertions(sm: u32, cycles: &[u64]) -> Assertions {
        let mut all = Assertions::default();
        for cycle in cycles {
            let text = format!("SM {sm}, cycle {cycle}");
            all.first.get_or_insert_with(|| {
                Box::new(Fault {
                    kind: FaultKind::Assert(text.clone()),
                    launch: 0,
                    kernel: "asserts".into(),
                    place: None,
                    sm,
                    cycle: Cycle(*cycle),
                })
            });
            all.add(text, sm, *cycle);
        }
        all
    }

    #[test]
    fn lines_of_all_sms_come_in_the_order_of_cycles() {
        let all = [
            assertions(0, &[7, 9]),
            assertions(1, &[]),
            assertions(2, &[5, 7]),
        ];
        let fault = fault_of(all.iter()).unwrap();
        assert_eq!((fault.sm, fault.cycle), (2, Cycle(5)));
        let lines = "SM 2, cycle 5\nSM 0, cycle 7\nSM 2, cycle 7\nSM 0, cycle 9";
        assert_eq!(fault.kind, FaultKind::Assert(lines.into()));
        assert_eq!(fault_of([Assertions::default()].iter()), None);
    }

    #[test]
    fn lines_are_bounded_and_the_rest_is_counted() {
        let cycles: Vec<u64> = (0..5000).collect();
        let all = [assertions(0, &cycles), assertions(1, &cycles)];
        assert_eq!(all[0].lines.len(), MOST_LINES);
        let FaultKind::Assert(text) = fault_of(all.iter()).unwrap().kind else {
            panic!("another fault");
        };
        assert_eq!(text.lines().count(), MOST_LINES + 1);
        assert!(text.ends_with("\n... and 8976 more"), "{text}");
    }
}
