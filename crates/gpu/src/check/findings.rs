//! What checks have found: each instruction of a kernel once, with a count.
//!
//! SMs add to one table at once. What is added does not depend on their order: counts are summed, and of several
//! first times the earliest is kept, by (time, SM). One SM never adds two at a time.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use lockstep_isa::Mask;
use lockstep_isa::warp_register::LANES;
use lockstep_units::Time;

use super::Check;
use crate::fault::{Fault, FaultKind, Place};
use crate::launch::LaunchContext;
use crate::sm::site::Site;
use crate::sm::{Warp, place_of};

/// One thing that was found, at one instruction of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is of.
    pub check: Check,
    /// Mangled name of the kernel.
    pub kernel: String,
    /// The first launch in which it happened.
    pub launch: u32,
    /// The first thread.
    pub place: Place,
    /// What that thread did.
    pub what: String,
    /// The address that it is about, if it is about one of global memory.
    pub address: Option<u64>,
    /// The start of the allocation beside that address, if none holds it.
    pub nearest: Option<u64>,
    /// Threads that did so, each time.
    pub count: u64,
}

/// What a finding is about, in global memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct Subject {
    /// The address.
    pub address: Option<u64>,
    /// The start of the allocation beside it, if none holds it.
    pub nearest: Option<u64>,
}

/// Check, kernel, instruction.
type Key = (Check, String, u32);

/// When and on which SM something was found.
type When = (Time, u32);

/// All that was found.
#[derive(Debug, Default)]
pub struct Findings {
    table: Mutex<BTreeMap<Key, (When, Finding)>>,
}

impl Findings {
    /// Adds threads that did something at a time on an SM; `finding` says what, if they are the first.
    fn add(&self, key: Key, at: (Time, u32), threads: u64, finding: impl FnOnce() -> Finding) {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        match table.get_mut(&key) {
            Some((first, known)) => {
                let count = known.count + threads;
                if at < *first {
                    *first = at;
                    *known = finding();
                }
                known.count = count;
            }
            None => {
                let mut finding = finding();
                finding.count = threads;
                table.insert(key, (at, finding));
            }
        }
    }

    /// Everything, by check, kernel and instruction.
    #[must_use]
    pub fn all(&self) -> Vec<Finding> {
        let table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.values().map(|(_, finding)| finding.clone()).collect()
    }
}

/// Lanes of a warp that did something at an instruction.
pub struct Culprits<'a> {
    /// The warp.
    pub warp: &'a Warp,
    /// Its launch.
    pub context: &'a LaunchContext,
    /// When.
    pub time: Time,
    /// The instruction.
    pub pc: u32,
    /// The lanes.
    pub lanes: Mask,
}

impl<'a> Culprits<'a> {
    /// Lanes of the warp that executes.
    pub fn of(site: &'a Site<'_, '_>, lanes: Mask) -> Self {
        Self {
            warp: site.warp,
            context: site.context,
            time: site.now.time,
            pc: site.warp.convergence.pc(),
            lanes,
        }
    }
}

/// Notes that lanes of a warp did something; `what` says what the first of them did, and `subject` where in global
/// memory.
#[cold]
pub fn note(
    findings: &Findings,
    check: Check,
    culprits: &Culprits<'_>,
    subject: Subject,
    what: impl FnOnce() -> String,
) {
    let Culprits {
        context, pc, lanes, ..
    } = *culprits;
    let kernel = &context.launch.kernel().name;
    let key = (check, kernel.clone(), pc);
    let at = (culprits.time, culprits.warp.identity.sm);
    let lane = lanes.trailing_zeros() as usize % LANES;
    findings.add(key, at, u64::from(lanes.count_ones()), || Finding {
        check,
        kernel: kernel.clone(),
        launch: context.id.0,
        place: place_of(culprits.warp, context, lane, pc),
        what: what(),
        address: subject.address,
        nearest: subject.nearest,
        count: 0,
    });
}

/// Notes a fault that the memory check looks for too.
#[cold]
pub fn note_fault(findings: &Findings, fault: &Fault, time: Time) {
    let address = match &fault.kind {
        FaultKind::IllegalAddress { address, .. }
        | FaultKind::ReadOnly { address, .. }
        | FaultKind::Multicast { address, .. }
        | FaultKind::Misaligned { address, .. } => *address,
        FaultKind::InvalidFree { pointer } => *pointer,
        _ => return,
    };
    let Some(place) = &fault.place else {
        return;
    };
    let key = (Check::Memory, fault.kernel.clone(), place.pc);
    findings.add(key, (time, fault.sm), 1, || Finding {
        check: Check::Memory,
        kernel: fault.kernel.clone(),
        launch: fault.launch,
        place: place.clone(),
        what: fault.kind.to_string(),
        address: Some(address),
        nearest: None,
        count: 0,
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(what: &str) -> Finding {
        Finding {
            check: Check::Race,
            kernel: "k".into(),
            launch: 0,
            place: Place {
                block: [0; 3],
                thread: [0; 3],
                pc: 7,
                function: String::new(),
                instruction: String::new(),
                line: String::new(),
            },
            what: what.into(),
            address: None,
            nearest: None,
            count: 0,
        }
    }

    #[test]
    fn the_order_in_which_sms_add_does_not_show() {
        let adds = [
            (5, 1, 3, "late"),
            (2, 9, 1, "first"),
            (2, 11, 4, "higher SM"),
        ];
        let mut results = Vec::new();
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
            let findings = Findings::default();
            for index in order {
                let (time, sm, threads, what) = adds[index];
                let key = (Check::Race, "k".to_string(), 7);
                findings.add(key, (Time(time), sm), threads, || finding(what));
            }
            results.push(findings.all());
        }
        assert_eq!(results[0].len(), 1);
        assert_eq!(
            (results[0][0].count, results[0][0].what.as_str()),
            (8, "first")
        );
        assert!(results.iter().all(|result| *result == results[0]));
    }
}
