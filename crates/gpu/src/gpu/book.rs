//! What slices counted, booked to the kernels that caused it, and what a profiler would see beside.

use super::{Gpu, Mode};
use crate::l2::{NO_LAUNCH, Traffic};
use crate::launch::{KernelRecord, LaunchId};
use crate::memory::SECTOR;
use crate::partition::GpuPartition;

impl Gpu {
    /// All traffic that was ever that of launches with each of these tags.
    fn traffic(&self, tags: &[u8]) -> Vec<Traffic> {
        let mut own = vec![Traffic::default(); tags.len()];
        for id in self.places.slices() {
            if self.engine.answers_for(id)
                && let GpuPartition::Slice(slice) = self.engine.partition(id)
            {
                for (tag, sum) in tags.iter().zip(&mut own) {
                    sum.add(&slice.traffic(*tag));
                }
            }
        }
        let mut ranks = self.share(own).into_iter();
        let mut all = ranks.next().unwrap_or_default();
        for other in ranks {
            all.iter_mut()
                .zip(&other)
                .for_each(|(sum, one)| sum.add(one));
        }
        all
    }

    /// Traffic of launches with each of these tags since this was asked last.
    fn traffic_since(&mut self, tags: &[u8]) -> Vec<Traffic> {
        let all = self.traffic(tags);
        let since = tags.iter().zip(all);
        since.map(|(tag, all)| self.count(*tag, all)).collect()
    }

    /// Takes all traffic of a tag as counted; what is new of it.
    fn count(&mut self, tag: u8, all: Traffic) -> Traffic {
        let tag = usize::from(tag);
        if self.counted.len() <= tag {
            self.counted.resize(tag + 1, Traffic::default());
        }
        let before = std::mem::replace(&mut self.counted[tag], all);
        all.minus(&before)
    }

    /// Books the traffic of kernels that were given up to nobody.
    pub(super) fn skip_traffic(&mut self) {
        let tags: Vec<u8> = (0..=u8::MAX).collect();
        self.traffic_since(&tags);
    }

    /// Books to the kernels that end now what slices counted for them. What is nobody's goes to the
    /// first of them. What is estimated of a profiler's view stands apart.
    pub(super) fn book(&mut self, records: &mut [KernelRecord]) {
        if self.options.mode == Mode::Functional || records.is_empty() {
            return;
        }
        let tags = records.iter().map(|record| record.tag);
        let tags: Vec<u8> = std::iter::once(NO_LAUNCH).chain(tags).collect();
        let mut counted = self.traffic_since(&tags).into_iter();
        let mut unowned = counted.next().unwrap_or_default();
        for (record, mut traffic) in records.iter_mut().zip(counted) {
            traffic.add(&std::mem::take(&mut unowned));
            let (code, dram_bytes) = self.surroundings(record.launch);
            let parameters = &self.config.launch;
            let around = code
                + u64::from(parameters.gpc_l2_sectors)
                + u64::from(parameters.flush_sectors) * traffic.flushes;
            let others = self.asked_by_others(record);
            record.counters.cycles = record.cycles();
            let counters = &mut record.counters;
            counters.l2_sectors_of_sms = traffic.of_sms;
            counters.l2_sectors_of_kernel = traffic.of_sms + traffic.fabric;
            counters.l2_sectors = counters.l2_sectors_of_kernel;
            counters.l2_sector_hits = traffic.hits;
            counters.dram_bytes_read = traffic.dram_read;
            counters.dram_bytes_written = traffic.dram_written;
            counters.l2_sectors_of_kernel_overhead = around;
            counters.l2_sectors_overhead = around + others;
            // Whatever surrounds a launch is found in L2 as good as always.
            counters.l2_sector_hits_overhead = around + others;
            counters.dram_bytes_read_overhead = dram_bytes;
        }
    }

    /// Sectors of L2 that others than the kernel look up while it runs.
    fn asked_by_others(&self, record: &KernelRecord) -> u64 {
        let launch = &self.config.launch;
        let meanwhile = record.cycles().checked_div(launch.non_gpc_l2_interval.0);
        u64::from(launch.non_gpc_l2_sectors) + meanwhile.unwrap_or(0)
    }

    /// Sectors of L2 and bytes of DRAM that are read for the code of a launch and for what else
    /// starts it. Code stays where every GPC keeps it: only the first launch of a kernel asks for
    /// it, and for what lies behind it. A module that has come just now is in L2.
    fn surroundings(&mut self, launch: LaunchId) -> (u64, u64) {
        let Some(context) = self.launches.get(launch.0) else {
            return (0, 0);
        };
        let launch = &context.launch;
        let parameters = &self.config.launch;
        let (kernel, module) = (launch.code(), launch.module_id);
        let is_new_module = self
            .brought
            .range((module, 0)..=(module, u32::MAX))
            .next()
            .is_none();
        let (mut sectors, mut read) = (0, parameters.cold_dram_bytes.0);
        if self.brought.insert((module, kernel.start)) {
            let ahead = parameters.code_prefetch.0;
            let own = kernel.len() as u64 * 16;
            let behind =
                (launch.module.code.len() as u64).saturating_sub(u64::from(kernel.end)) * 16;
            // Every GPC reads it, and one L2 partition has it of the other.
            let readers =
                u64::from(self.config.device.gpcs) + u64::from(self.config.l2.partitions > 1);
            sectors = (own + ahead).div_ceil(SECTOR) * readers;
            read += if is_new_module {
                ahead.saturating_sub(behind)
            } else {
                own + ahead
            };
        }
        let cold = self.options.cold_caches;
        (sectors, if cold { read } else { 0 })
    }
}
