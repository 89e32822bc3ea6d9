//! Schedules of kernels, streams, events, priorities and copies against a plain reference.
//!
//! | file | idea |
//! |---|---|
//! | `plan.rs` | what a host asks for, and what it must come to |
//! | `drive.rs` | the same on a simulated GPU |

mod drive;
mod plan;

use crate::random::Random;
use lockstep_simulation::Mode;
use plan::Plan;

/// Runs the schedule of a seed in both modes and with 1, 2 and 5 threads.
///
/// # Panics
/// If a value is not the reference's, or digests differ.
pub fn check(seed: u64) {
    let plan = Plan::new(&mut Random::new(seed));
    let (cells, places) = plan.reference();
    let mode = match seed % 4 {
        0 => Mode::Functional,
        _ => Mode::Timing,
    };
    let mut digests = Vec::new();
    for threads in [1, 2, 5] {
        let outcome = drive::run(&plan, mode, threads);
        assert_eq!(outcome.cells, cells, "{threads} threads: {plan:?}");
        assert_eq!(outcome.places, places, "{threads} threads: {plan:?}");
        digests.push(outcome.digest);
    }
    let same = digests.iter().all(|digest| *digest == digests[0]);
    assert!(same, "{digests:?}: {plan:?}");
}

#[cfg(test)]
mod tests {
    #[test]
    fn schedules_end_in_order_and_alike() {
        for seed in 0..200 {
            super::check(seed);
        }
    }
}
