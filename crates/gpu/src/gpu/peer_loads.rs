//! What accesses to multicast objects put on the links of other GPUs, handed on when GPUs meet.

use lockstep_units::{Duration, Time};

use super::Gpu;
use crate::l2::LinkLoad;
use crate::partition::GpuPartition;

impl Gpu {
    /// Takes how long the links of the other GPUs are busy with what this one put on them since the last time, in the
    /// order of [`PeerLinks::memories`](crate::PeerLinks::memories); nothing if that is nothing.
    pub fn take_link_loads(&mut self) -> Option<Vec<LinkLoad>> {
        if self.others_with_links() == 0 {
            return None;
        }
        let mut sums = vec![LinkLoad::default(); self.others_with_links()];
        for id in self.places.slices() {
            // Looking first keeps idle slices asleep.
            let loaded = match self.engine.partition(id) {
                GpuPartition::Slice(slice) => slice.peers().is_some_and(|peers| peers.has_loads()),
                _ => false,
            };
            if loaded
                && let GpuPartition::Slice(slice) = self.engine.partition_mut(id)
                && let Some(peers) = slice.peers_mut()
            {
                peers.take_loads(&mut sums);
            }
        }
        // Each slice has an equal share of a link, and said how long that is busy.
        let slices = u64::from(self.places.slices.max(1));
        for load in &mut sums {
            load.up = Duration(load.up.0 / slices);
            load.down = Duration(load.down.0 / slices);
        }
        let any = sums.iter().any(|load| *load != LinkLoad::default());
        any.then_some(sums)
    }

    /// Adds what other GPUs have put on links since a time: on that of this GPU, and on those of the others.
    pub fn add_link_loads(&mut self, since: Time, own: LinkLoad, others: &[LinkLoad]) {
        if self.others_with_links() == 0 {
            return;
        }
        for id in self.places.slices() {
            if let GpuPartition::Slice(slice) = self.engine.partition_mut(id)
                && let Some(peers) = slice.peers_mut()
            {
                peers.add_loads(since, own, others);
            }
        }
    }

    /// How many GPUs there are to which links lead whose time is modelled.
    fn others_with_links(&self) -> usize {
        if self.options.mode != super::Mode::Timing {
            return 0;
        }
        let links = self.options.peers.as_ref();
        links.map_or(0, |links| links.memories.len())
    }
}
