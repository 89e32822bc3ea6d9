//! What can be seen of a GPU while kernels run, for those who watch. Looking changes nothing.
//!
//! Start reading at [`Gpu::sample`]: what every SM and slice counted since the last look.

use lockstep_counters::Counters;
use lockstep_engine::PartitionId;

use super::Gpu;
use crate::l2::Traffic;
use crate::launch::LaunchId;
use crate::partition::GpuPartition;

/// How far the kernels that run now have come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// Blocks of running kernels.
    pub blocks: u64,
    /// Those that have ended.
    pub blocks_done: u64,
    /// Warp instructions executed since the beginning, of all kernels.
    pub instructions: u64,
}

/// A part that is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SampledPart {
    /// The whole GPU.
    Gpu,
    /// A streaming multiprocessor.
    Sm(u32),
    /// A slice of L2 with its channel of DRAM.
    Slice(u32),
}

/// What parts had counted at the last look.
#[derive(Clone, Debug, Default)]
pub struct Sampler {
    sms: Vec<Counters>,
    slices: Vec<Traffic>,
}

impl Gpu {
    /// How far running kernels have come.
    #[must_use]
    pub fn observe(&self) -> Observed {
        let (blocks, blocks_done) = self.distributor().progress();
        let instructions = (0..self.places.sms).map(|number| self.sm(number).executed());
        Observed {
            blocks,
            blocks_done,
            instructions: instructions.sum(),
        }
    }

    /// Launches that have started and not ended.
    #[must_use]
    pub fn running(&self) -> Vec<LaunchId> {
        self.distributor().running().map(LaunchId).collect()
    }

    /// Takes what is counted now as the beginning of the next sample.
    pub fn begin_sample(&self, sampler: &mut Sampler) {
        *sampler = Sampler::default();
        self.sample(sampler, |_, _| ());
    }

    /// Hands out what was counted since the last look: parts that counted nothing are left out, the whole
    /// GPU comes last.
    pub fn sample(&self, sampler: &mut Sampler, mut found: impl FnMut(SampledPart, &Counters)) {
        let cycle = self.cycle().0;
        let mut all = Counters::default();
        sampler
            .sms
            .resize(self.places.sms as usize, Counters::default());
        for (number, before) in (0..).zip(&mut sampler.sms) {
            let now = self.sm(number).counted(cycle);
            if now != *before {
                let grown = now.minus(before);
                *before = now;
                all.add(&grown);
                found(SampledPart::Sm(number), &grown);
            }
        }
        sampler
            .slices
            .resize(self.places.slices as usize, Traffic::default());
        for (number, before) in (0..).zip(&mut sampler.slices) {
            let id = PartitionId(self.places.first_slice + number);
            let GpuPartition::Slice(slice) = self.engine.partition(id) else {
                continue;
            };
            let now = Traffic::of(slice.stats());
            if now != *before {
                let grown = traffic(&now.minus(before));
                *before = now;
                all.add(&grown);
                found(SampledPart::Slice(number), &grown);
            }
        }
        if all != Counters::default() {
            found(SampledPart::Gpu, &all);
        }
    }
}

/// Traffic under the names of counters.
fn traffic(traffic: &Traffic) -> Counters {
    Counters {
        l2_sectors_of_sms: traffic.of_sms,
        l2_sectors_of_kernel: traffic.of_sms + traffic.fabric,
        l2_sectors: traffic.of_sms + traffic.fabric,
        l2_sector_hits: traffic.hits,
        dram_bytes_read: traffic.dram_read,
        dram_bytes_written: traffic.dram_written,
        ..Counters::default()
    }
}
