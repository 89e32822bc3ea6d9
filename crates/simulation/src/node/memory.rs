//! Which GPUs reach which memory.
//!
//! Memory of a device has one home. Others reach it once they are peers; host memory, and addresses
//! that programs map by themselves, are within the reach of all. Contents are one file, so a byte has
//! one place whoever writes it.

use super::Node;
use crate::machine::Machine;
use lockstep_protocol::layout::{Region, region_of};
use lockstep_protocol::{Extent, MemoryAccess, Rows};
use lockstep_runtime::Device;

impl Node {
    /// The GPU that keeps account of an address: its home, or the first.
    pub(super) fn home(&self, address: u64) -> usize {
        match region_of(address) {
            Some(Region::Device(gpu)) if (gpu as usize) < self.machines.len() => gpu as usize,
            _ => 0,
        }
    }

    pub(super) fn home_of(&self, address: u64) -> &Machine {
        &self.machines[self.home(address)]
    }

    pub(super) fn home_of_mut(&mut self, address: u64) -> &mut Machine {
        let home = self.home(address);
        &mut self.machines[home]
    }

    /// The GPUs beside its home that reach an address.
    fn guests(&self, address: u64) -> Vec<usize> {
        let home = self.home(address);
        let peer = |gpu: usize| self.peers.contains(&(gpu as u32, home as u32));
        let everybody = !matches!(region_of(address), Some(Region::Device(_)));
        (0..self.machines.len())
            .filter(|gpu| *gpu != home && (everybody || peer(*gpu)))
            .collect()
    }

    pub(super) fn map_everywhere(&mut self, address: u64, bytes: u64) {
        self.home_of_mut(address).map(address, bytes);
        for gpu in self.guests(address) {
            self.machines[gpu].share(address, bytes);
            self.home_of_mut(address).open_to_peers(address, bytes);
            self.begin_sharing();
        }
    }

    pub(super) fn unmap_everywhere(&mut self, address: u64, bytes: u64) {
        for gpu in self.guests(address) {
            self.machines[gpu].unshare(address);
        }
        self.home_of_mut(address).unmap(address, bytes);
    }

    pub(super) fn alias_everywhere(&mut self, address: u64, bytes: u64, place: u64) -> bool {
        let mut machines = self.machines.iter_mut();
        machines.all(|machine| machine.alias(address, bytes, place))
    }

    pub(super) fn set_access_everywhere(&mut self, address: u64, bytes: u64, access: MemoryAccess) {
        self.begin_sharing();
        for machine in &mut self.machines {
            machine.set_access(address, bytes, access);
        }
    }

    /// Lets kernels of a GPU use the memory of a peer, or no longer.
    pub(super) fn set_peers(&mut self, gpu: u32, peer: u32, allowed: bool) {
        let changed = match allowed {
            true => self.peers.insert((gpu, peer)),
            false => self.peers.remove(&(gpu, peer)),
        };
        if !changed {
            return;
        }
        self.begin_sharing();
        for (address, bytes) in self.machines[peer as usize].own_allocations() {
            match allowed {
                true => {
                    self.machines[gpu as usize].share(address, bytes);
                    self.machines[peer as usize].open_to_peers(address, bytes);
                }
                false => self.machines[gpu as usize].unshare(address),
            }
        }
    }

    pub(super) fn written_by_dma(&mut self, rows: Rows, extent: Extent, from_host: bool) {
        let home = self.home_of_mut(rows.address);
        home.dma_written(rows, extent, from_host);
    }
}
