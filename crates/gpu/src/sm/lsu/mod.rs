//! The load/store unit of an SM.
//!
//! | file | what |
//! |---|---|
//! | `access/` | what loads, stores, atomics and copies do to registers and memory |
//! | `coalescing.rs`, `line_set.rs` | the sectors and lines that the lanes of a warp touch |
//! | `shared_banks.rs` | wavefronts over the banks of shared memory |
//! | `mio_queue.rs` | the way of memory instructions to the pipe that sub-cores share |
//! | `l1tex.rs`, `mshr.rs`, `write_combining.rs` | the first-level cache, its misses, its stores |
//! | `translate.rs` | pages of an access that are managed memory |
//! | `outcome.rs` | what the issue model learns of an access |
//! | `port.rs`, `transactions.rs`, `in_flight.rs` | the way to L2, and what is under way there |
//!
//! Start reading at [`access::memory`] for values, at [`l1tex::L1Tex::access`] for time.

pub mod access;
pub mod coalescing;
pub mod in_flight;
pub mod l1tex;
pub mod line_set;
pub mod mio_queue;
pub mod mshr;
pub mod outcome;
pub mod parameters;
pub mod port;
pub mod shared_banks;
pub mod transactions;
mod translate;
pub mod write_combining;

use lockstep_engine::{LoadError, Reader, Writer};

use crate::parameters::SmParameters;
use l1tex::L1Tex;
use mio_queue::MioQueues;

/// The timed parts of the load/store unit.
#[derive(Clone, Debug)]
pub struct LoadStoreUnit {
    /// Queues from the sub-cores.
    pub mio: MioQueues,
    /// The first-level data cache.
    pub l1tex: L1Tex,
    /// When the texture unit takes another warp, in quarters of a cycle.
    pub texture_free: u64,
}

impl LoadStoreUnit {
    /// With nothing under way.
    #[must_use]
    pub fn new(parameters: &SmParameters) -> Self {
        let sub_cores = parameters.sub_cores.max(1) as usize;
        Self {
            mio: MioQueues::new(sub_cores, parameters.lsu.queue),
            l1tex: L1Tex::new(parameters),
            texture_free: 0,
        }
    }

    /// Writes everything.
    pub fn save(&self, writer: &mut Writer<'_>) {
        writer.write(&self.mio);
        writer.write(&self.texture_free);
        self.l1tex.save(writer);
    }

    /// Takes on what was saved.
    ///
    /// # Errors
    /// If the bytes are not what `save` wrote, or of an SM of another shape.
    pub fn load(
        &mut self,
        reader: &mut Reader<'_>,
        parameters: &SmParameters,
    ) -> Result<(), LoadError> {
        let mio: MioQueues = reader.read()?;
        if !mio.fits(&self.mio) {
            return Err(LoadError::Malformed {
                what: "MIO queues of another shape",
            });
        }
        self.mio = mio;
        self.texture_free = reader.read()?;
        self.l1tex.load(reader, parameters)
    }
}
