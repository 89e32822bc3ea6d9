//! A GPU that changes between the two modes, so that chosen launches take their time and the
//! others only their values.
//!
//! Links, SMs and slices are made anew for the other mode. What outlives the change is what a
//! program or a later timed kernel can notice: memory, time, statistics, the device heap, the
//! turn of the work distributor, when kernels ended, and what the last timed kernel left in L2, in DRAM rows, in
//! instruction caches and in TLBs of device memory. Copies go on to write into L2.
//!
//! Left out: what kernels that take no time read does not come into caches, nor does their code. What they
//! write does if whoever runs them says so ([`Gpu::kernels_wrote`]).

use lockstep_engine::PartitionId;
use lockstep_units::Time;

use super::build::build;
use super::{Gpu, Mode};
use crate::error::GpuError;
use crate::launch::LaunchTable;
use crate::parameters::SmParameters;
use crate::partition::GpuPartition;

impl Gpu {
    /// Whether launches take their time now.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.options.mode
    }

    /// Runs launches from now on in this mode.
    ///
    /// # Errors
    /// If a kernel waits or runs, or the GPU cannot be made.
    pub fn set_mode(&mut self, mode: Mode) -> Result<(), GpuError> {
        if mode == self.options.mode {
            return Ok(());
        }
        if !self.is_idle() {
            return Err(GpuError::Busy);
        }
        let now = self.now();
        let mut options = self.options.clone();
        options.mode = mode;
        debug_assert!(options.both_modes, "caches are kept for a change of mode");
        let launches = LaunchTable::default();
        let (mut engine, places) = build(&self.config, &self.contents, &launches, &options)?;
        self.parameters = SmParameters::new(&self.config, mode == Mode::Timing)?;
        for index in 0..self.topology().partitions() {
            let id = PartitionId(index as u32);
            match (engine.partition_mut(id), self.engine.partition_mut(id)) {
                (GpuPartition::Sm(new), GpuPartition::Sm(old)) => new.succeed(old),
                (GpuPartition::Slice(new), GpuPartition::Slice(old)) => new.succeed(old),
                (GpuPartition::WorkDistributor(new), GpuPartition::WorkDistributor(old)) => {
                    new.succeed(old);
                }
                (GpuPartition::Network(new), GpuPartition::Network(old)) => {
                    new.set_stats(old.stats().clone());
                }
                _ => {}
            }
        }
        if let Some(id) = self.places.mmu
            && let (GpuPartition::Mmu(new), GpuPartition::Mmu(old)) =
                (engine.partition_mut(id), self.engine.partition_mut(id))
        {
            new.inherit(old, now);
        }
        engine.run(now, |_| false);
        engine.count_links_on(&self.engine);
        self.launches = launches;
        self.engine = engine;
        self.places = places;
        self.options = options;
        self.issue_tables.clear();
        Ok(())
    }

    /// Says when a kernel that took no time would have ended: what follows it in its queue finds the hardware as
    /// prepared as behind a timed one.
    pub fn set_ended(&mut self, queue: u64, end: Time) {
        self.distributor_mut().set_ended(queue, end);
    }
}
