//! A GPU that changes between the two modes, so that chosen launches take their time and the
//! others only their values.
//!
//! Links, SMs and slices are made anew for the other mode. What outlives the change is what a
//! program or a later timed kernel can notice: memory, time, statistics, the device heap, the
//! turn of the work distributor, and the tags and DRAM rows that the last timed kernel left. The small
//! caches of SMs begin empty, as after kernels of other code.

use lockstep_engine::{PartitionId, Reader, Writer};

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
        let launches = LaunchTable::default();
        let (mut engine, places) = build(&self.config, &self.contents, &launches, &options)?;
        self.parameters = SmParameters::new(&self.config, mode == Mode::Timing)?;
        if mode == Mode::Functional {
            self.kept = self.caches();
        }
        for index in 0..self.topology().partitions() {
            let id = PartitionId(index as u32);
            match (engine.partition_mut(id), self.engine.partition(id)) {
                (GpuPartition::Sm(new), GpuPartition::Sm(old)) => {
                    new.count_on(old);
                }
                (GpuPartition::Slice(new), GpuPartition::Slice(old)) => {
                    new.count_on(old);
                    let number = (id.0 - places.first_slice) as usize;
                    if mode == Mode::Timing
                        && let Some(bytes) = self.kept.get(number)
                    {
                        new.load_cache(&mut Reader::new(bytes))?;
                    }
                }
                (GpuPartition::WorkDistributor(new), GpuPartition::WorkDistributor(old)) => {
                    new.succeed(old);
                }
                (GpuPartition::Network(new), GpuPartition::Network(old)) => {
                    new.set_stats(old.stats().clone());
                }
                _ => {}
            }
        }
        if mode == Mode::Timing {
            self.kept.clear();
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

    /// What the caches of slices hold, slice by slice.
    fn caches(&self) -> Vec<Vec<u8>> {
        self.places
            .slices()
            .map(|id| {
                let mut bytes = Vec::new();
                if let GpuPartition::Slice(slice) = self.engine.partition(id) {
                    slice.save_cache(&mut Writer::new(&mut bytes));
                }
                bytes
            })
            .collect()
    }
}
