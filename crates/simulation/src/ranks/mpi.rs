//! Ranks that `mpirun` started, perhaps on several machines.
//!
//! An exchange sends to every other rank without waiting, then takes one message of each; MPI keeps messages of one
//! sender in their order. If a rank dies, the launcher of MPI ends the others and says so; a rank whose run fails has
//! MPI do the same.

use lockstep_gpu::{Lost, Transport};
use mpi::environment::Universe;
use mpi::request::{WaitGuard, scope};
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, Destination, Source};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the run of this process has ended as the others expect.
static ENDED_WELL: AtomicBool = AtomicBool::new(false);

/// The other ranks wait for nothing of this one any more.
pub fn ended_well() {
    ENDED_WELL.store(true, Ordering::Relaxed);
}

/// One rank of a program of MPI.
pub struct Mpi {
    world: SimpleCommunicator,
    /// Ends MPI when it goes.
    _universe: Universe,
}

// SAFETY: MPI was asked for calls of several threads one at a time, and whoever has this is the only one who calls.
unsafe impl Send for Mpi {}

impl Mpi {
    /// This process as a rank of the launcher that started it.
    ///
    /// # Errors
    /// MPI does not allow what is needed, or was begun before.
    pub fn begin() -> Result<Self, Lost> {
        let (universe, threading) = mpi::initialize_with_threading(mpi::Threading::Serialized)
            .ok_or_else(|| Lost("MPI was begun before".into()))?;
        if threading < mpi::Threading::Serialized {
            return Err(Lost(format!(
                "this MPI allows calls of one thread alone ({threading:?}), and a simulation has several"
            )));
        }
        Ok(Self {
            world: universe.world(),
            _universe: universe,
        })
    }
}

impl Drop for Mpi {
    fn drop(&mut self) {
        if !ENDED_WELL.load(Ordering::Relaxed) {
            // The end of MPI would wait for others, who wait for this rank.
            self.world.abort(1);
        }
    }
}

impl Transport for Mpi {
    fn rank(&self) -> usize {
        self.world.rank() as usize
    }

    fn ranks(&self) -> usize {
        self.world.size() as usize
    }

    fn exchange(&mut self, outgoing: &[Vec<u8>], incoming: &mut [Vec<u8>]) -> Result<(), Lost> {
        let own = self.rank();
        scope(|scope| {
            let others = || (0..outgoing.len()).filter(|rank| *rank != own);
            let sent: Vec<_> = others()
                .map(|rank| {
                    let other = self.world.process_at_rank(rank as i32);
                    WaitGuard::from(other.immediate_send(scope, &outgoing[rank][..]))
                })
                .collect();
            for rank in others() {
                let other = self.world.process_at_rank(rank as i32);
                incoming[rank] = other.receive_vec::<u8>().0;
            }
            drop(sent);
        });
        Ok(())
    }

    fn broadcast(&mut self, bytes: &[u8]) -> Result<(), Lost> {
        for rank in 1..self.world.size() {
            self.world.process_at_rank(rank).send(bytes);
        }
        Ok(())
    }

    fn receive(&mut self) -> Result<Vec<u8>, Lost> {
        Ok(self.world.process_at_rank(0).receive_vec::<u8>().0)
    }
}
