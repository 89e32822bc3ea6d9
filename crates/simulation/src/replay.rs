//! Replays a full record of calls without the program that made them.

use crate::description::Description;
use crate::machine;
use crate::program::{RunError, system};
use crate::results::Results;
use crate::server::Figures;
use lockstep_protocol::window;
use lockstep_runtime::{Client, Device, Entry, RecordReader};
use lockstep_telemetry::run_folder::Ending;
use std::path::Path;
use std::time::Instant;

/// Answers every call of a record again, as described, and says what came of it.
///
/// # Errors
/// The record cannot be read, or nothing could be simulated.
#[allow(
    clippy::disallowed_methods,
    reason = "figures about the host are outside the digest"
)]
pub fn replay(description: &Description, record: &Path) -> Result<Results, RunError> {
    let name = record.display().to_string();
    let file = std::fs::File::open(record).map_err(system(&name))?;
    let malformed = |error| RunError::Request(format!("{name}: {error}"));
    let memory = window::create()?;
    let mut runtime = machine::runtime(description, &memory)?;
    let began = Instant::now();
    for entry in RecordReader::new(file).map_err(malformed)? {
        match entry.map_err(malformed)? {
            Entry::Call {
                connection,
                process,
                request,
                ..
            } => {
                // A call that failed in the program fails here as well.
                runtime.handle(
                    Client {
                        connection,
                        process,
                    },
                    &request,
                );
            }
            Entry::Wrote { address, bytes } => runtime.device_mut().write(address, &bytes),
            Entry::Gone { process } => runtime.detach(process),
        }
    }
    let wall = began.elapsed();
    let figures = Figures {
        simulating: wall,
        ..Figures::default()
    };
    Ok(Results::collect(
        description,
        &[name],
        &mut runtime,
        figures,
        wall,
        Ending::default(),
    ))
}
