//! One simulation split over several processes, its ranks.
//!
//! Rank 0 serves the program and writes the run folder. Whatever it does to the simulated node it tells the others
//! first, as entries of a record, and they do the same to theirs; hardware then advances on all of them together,
//! each with its own SMs and slices (`lockstep_engine::Ranks`).
//!
//! ```text
//!  program ── calls ──▶ rank 0 ── entries ──▶ rank 1, rank 2, …
//!                         ◀── messages and logs of every epoch ──▶
//! ```
//!
//! Start reading at [`follow()`], then `sockets.rs`.

mod follow;
#[cfg(feature = "mpi")]
mod mpi;
mod processes;
mod sockets;
mod told;

pub use follow::follow;
pub use processes::{MOST_RANKS, RankProcesses, is_rank, started_as_rank};
pub use told::Told;

use crate::description::Description;
use crate::program::RunError;
use lockstep_gpu::Ranks;

/// The ranks that a launcher of MPI started, as this process sees them.
///
/// # Errors
/// Nobody did, or this build has no MPI.
#[cfg(feature = "mpi")]
pub fn of_mpi() -> Result<Ranks, RunError> {
    let mpi =
        mpi::Mpi::begin().map_err(|lost| RunError::Request(format!("--ranks mpi: {lost}")))?;
    Ok(Ranks::new(Box::new(mpi)))
}

/// The other ranks wait for nothing of this process any more: who leaves them before ends them.
pub fn ended_well() {
    #[cfg(feature = "mpi")]
    mpi::ended_well();
}

/// The ranks that a launcher of MPI started, as this process sees them.
///
/// # Errors
/// Nobody did, or this build has no MPI.
#[cfg(not(feature = "mpi"))]
pub fn of_mpi() -> Result<Ranks, RunError> {
    Err(RunError::Request(
        "--ranks mpi: this build has no MPI; build it with `cargo build --release -p lockstep-cli --features mpi`, \
         which needs an MPI and libclang, or start ranks with --ranks N"
            .into(),
    ))
}

/// Refuses what several ranks cannot do together.
///
/// # Errors
/// The run is to do such a thing.
pub fn check(description: &Description) -> Result<(), RunError> {
    let checks = description.checks.gpu;
    let checked = checks.memory
        || checks.initialised
        || checks.race
        || checks.barriers
        || checks.control_bits;
    let refused = [
        ("--series", description.series.is_some()),
        ("--publish", description.publish.is_some()),
        ("--lines", description.lines),
        ("--debug", !description.watches.is_empty()),
        ("--check", checked),
        ("--checkpoint-every", description.checkpoints.is_some()),
        ("--detail sampled", description.sampling.is_some()),
        ("--kernels and --launches", description.has_both_modes()),
        (
            "traces of kernels",
            description.tracing.is_some() || description.replays,
        ),
        ("time given from outside", description.outside.is_some()),
        (
            "saving and loading at random",
            description.execution.reload_seed.is_some(),
        ),
    ];
    match refused.iter().find(|(_, asked)| *asked) {
        None => Ok(()),
        Some((what, _)) => Err(RunError::Request(format!(
            "--ranks: {what} needs the whole GPU in one process; leave it out, or run with --ranks 1"
        ))),
    }
}
