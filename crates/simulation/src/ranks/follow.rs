//! The life of a rank other than the first: it plays the calls that rank 0 serves, and runs its own part of the
//! hardware.

use super::told::Told;
use crate::description::Description;
use crate::program::RunError;
use crate::replay::Replayed;
use lockstep_runtime::{Client, Entry};

/// Exit code of a rank that ended because another was gone: it is not the one to blame.
pub const LOST_ANOTHER: i32 = 76;

/// What a rank is called among processes.
pub(super) const NAME: &std::ffi::CStr = c"lockstep-rank";

/// Plays what rank 0 does until its run is over; the exit code of the process.
///
/// # Errors
/// The GPU cannot be built, or this rank came to another answer than rank 0.
pub fn follow(description: &Description) -> Result<i32, RunError> {
    // Rank 0 says it all.
    let nobody = tracing::subscriber::NoSubscriber::default();
    tracing::subscriber::with_default(nobody, || play(description))
}

fn play(description: &Description) -> Result<i32, RunError> {
    let Some(ranks) = &description.ranks else {
        return Err(RunError::Request("a rank has to be one of several".into()));
    };
    // So that nobody takes it for something that the program left. Without the name it would be ended early.
    let _ = rustix::thread::set_name(NAME);
    let name = format!("rank {}", ranks.rank());
    let mut run = Replayed::new(description, &name)?;
    loop {
        let told = match Told::hear(ranks) {
            Ok(told) => told,
            // Rank 0 knows why, or is gone.
            Err(_) => return Ok(LOST_ANOTHER),
        };
        match told {
            Told::Entry(entry) => {
                let is_answer = matches!(entry, Entry::Answered { .. });
                run.enter(entry)?;
                if ranks.lost().is_some() {
                    return Ok(LOST_ANOTHER);
                }
                if is_answer && let Some(difference) = run.problems().into_iter().next() {
                    return Err(RunError::Request(format!(
                        "{name} came to another answer than rank 0: {difference}; this is a fault of the \
                         simulator, or the host wrote memory while a kernel read it"
                    )));
                }
            }
            Told::Waits(calls) => {
                let waits = calls.iter().filter_map(|(connection, process, request)| {
                    let client = Client {
                        connection: *connection,
                        process: *process,
                    };
                    run.runtime.wait_of(Some(client), request)
                });
                let waits: Vec<_> = waits.collect();
                run.runtime.advance_to_first(&waits, None);
            }
            Told::End => {
                let node = run.runtime.device_mut();
                node.gather();
                let statistics = node.statistics();
                node.agree_on(&node.digest_of(&statistics));
                return match node.failure() {
                    None => {
                        super::ended_well();
                        Ok(0)
                    }
                    Some(_) => Ok(LOST_ANOTHER),
                };
            }
        }
    }
}
