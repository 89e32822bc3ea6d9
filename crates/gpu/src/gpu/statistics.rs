//! Every statistic of every part of a GPU.
//!
//! Components are paths: `gpu 0/sm/3/sub_core/1`, `gpu 0/slice/7/bank/12`, `gpu 0/link/request/sm 3`.
//! Which there are follows from the configuration and the mode alone, never from what a program did.

use lockstep_engine::PartitionId;
use lockstep_stats::Table;

use super::Gpu;
use crate::partition::GpuPartition;
use crate::statistics::LinkStats;

impl Gpu {
    /// What every part counted; components are named below `prefix`, such as "gpu 0".
    pub fn statistics(&self, prefix: &str, table: &mut Table) {
        table.add(&format!("{prefix}/dispatcher"), self.distributor().stats());
        for number in 0..self.places.sms {
            self.sm(number)
                .statistics(&format!("{prefix}/sm/{number}"), table);
        }
        for number in 0..self.places.slices {
            let id = PartitionId(self.places.first_slice + number);
            let GpuPartition::Slice(slice) = self.engine.partition(id) else {
                continue;
            };
            let path = format!("{prefix}/slice/{number}");
            table.add(&path, slice.stats());
            for (kind, stats) in slice.accesses() {
                table.add(&format!("{path}/l2/{kind}"), stats);
            }
            if let Some(stats) = slice.peer_stats() {
                table.add(&format!("{path}/peers"), stats);
            }
            for (bank, stats) in slice.banks().enumerate() {
                table.add(&format!("{path}/bank/{bank}"), stats);
            }
        }
        for (number, name) in (0..).zip(["requests", "replies"]) {
            let id = self
                .places
                .network
                .map(|first| PartitionId(first.0 + number));
            if let Some(GpuPartition::Network(network)) = id.map(|id| self.engine.partition(id)) {
                table.add(&format!("{prefix}/network/{name}"), network.stats());
            }
        }
        self.link_statistics(prefix, table);
        if let Some(mmu) = self.mmu().filter(|mmu| mmu.is_used()) {
            table.add(&format!("{prefix}/gmmu"), mmu.gmmu.stats());
            if let Some(stats) = mmu.gmmu.neighbour_stats() {
                table.add(&format!("{prefix}/gmmu/peers"), stats);
            }
            for number in 0..self.places.sms {
                if let Some(stats) = self.sm(number).tlb_stats() {
                    table.add(&format!("{prefix}/tlb/{number}"), stats);
                }
            }
        }
    }

    /// What every sender counted on each of its links.
    fn link_statistics(&self, prefix: &str, table: &mut Table) {
        let topology = self.topology();
        for link in topology.links() {
            let Some(id) = topology.link_named(&link.name) else {
                continue;
            };
            for sender in topology.kind(link.from).ids.clone().map(PartitionId) {
                let stats = LinkStats::from(self.engine.link_use(sender, id));
                let path = format!("{prefix}/link/{}/{}", link.name, topology.name(sender));
                table.add(&path, &stats);
            }
        }
    }
}
