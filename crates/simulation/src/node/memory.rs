//! Which GPUs reach which memory.
//!
//! Memory of a device has one home. Others reach it once they are peers; host memory, and memory that
//! programs map to one address by themselves, are within the reach of all GPUs of a node, and of none of
//! another. Memory that has several addresses has its home on its device, and GPUs reach it by the
//! addresses that they were given. Contents are one file, so a byte has one place whoever writes it.

use super::Node;
use crate::machine::Machine;
use lockstep_protocol::layout::{Region, region_of};
use lockstep_protocol::{Extent, MemoryAccess, Rows};
use lockstep_runtime::Device;
use std::ops::Range;

impl Node {
    /// The GPU that keeps account of an address: its home, or the first.
    pub(super) fn home(&self, address: u64) -> usize {
        let home = match region_of(address) {
            Some(Region::Device(gpu)) => Some(gpu),
            _ => self.hosted.home(address),
        };
        let home = home.map(|gpu| gpu as usize);
        home.filter(|gpu| self.machines.get(*gpu).is_some())
            .unwrap_or(0)
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
        self.built_on(self.node_of(home as u32))
            .filter(|gpu| *gpu != home && (everybody || peer(*gpu)))
            .collect()
    }

    /// The GPUs of a node that were built.
    fn built_on(&self, node: u32) -> impl Iterator<Item = usize> + '_ {
        let first = (node * self.each) as usize;
        let all = first..first + self.each as usize;
        all.filter(|gpu| self.machines.get(*gpu).is_some())
    }

    /// Notes memory that belongs to the node of a GPU, where there are several nodes.
    fn note_hosted(&mut self, gpu: u32, address: u64, bytes: u64, access: Option<MemoryAccess>) {
        if self.is_cluster() && !matches!(region_of(address), Some(Region::Device(_))) {
            self.hosted.insert(address, bytes, gpu, access);
        }
    }

    pub(super) fn map_everywhere(&mut self, gpu: u32, address: u64, bytes: u64) {
        self.note_hosted(gpu, address, bytes, None);
        self.home_of_mut(address).map(gpu, address, bytes);
        for guest in self.guests(address) {
            self.let_in(guest, address, bytes);
        }
    }

    /// Lets a guest reach memory.
    fn let_in(&mut self, guest: usize, address: u64, bytes: u64) {
        self.machines[guest].share(address, bytes);
        self.home_of_mut(address).open_to_peers(address, bytes);
        self.begin_sharing(self.node_of(guest as u32));
    }

    /// Lets a GPU that was just built reach the memory of its node.
    pub(super) fn join_node(&mut self, gpu: u32) {
        let node = self.node_of(gpu);
        let near = |home: u32| home != gpu && self.node_of(home) == node;
        let hosted = self.hosted.iter().filter(|(_, one)| near(one.home));
        let hosted: Vec<_> = hosted.map(|(base, one)| (base, one.clone())).collect();
        for (base, one) in hosted {
            match one.access {
                Some(access) => {
                    self.machines[gpu as usize].set_access(gpu, base, one.bytes, access);
                    self.begin_sharing(node);
                }
                None => self.let_in(gpu as usize, base, one.bytes),
            }
            for (address, bytes, place) in one.aliases {
                self.machines[gpu as usize].alias(gpu, address, bytes, place);
            }
        }
    }

    pub(super) fn unmap_everywhere(&mut self, address: u64, bytes: u64) {
        for gpu in self.guests(address) {
            self.machines[gpu].unshare(address);
        }
        self.home_of_mut(address).unmap(address, bytes);
        self.hosted.remove(address);
    }

    pub(super) fn alias_everywhere(
        &mut self,
        gpu: u32,
        address: u64,
        bytes: u64,
        place: u64,
    ) -> bool {
        let near: Vec<usize> = self.built_on(self.node_of(gpu)).collect();
        let named = near
            .into_iter()
            .all(|near| self.machines[near].alias(gpu, address, bytes, place));
        if named {
            self.hosted.alias(address, bytes, place);
        }
        named
    }

    pub(super) fn set_access_everywhere(
        &mut self,
        gpu: u32,
        address: u64,
        bytes: u64,
        access: MemoryAccess,
    ) {
        let near: Vec<usize> = self.built_on(self.node_of(gpu)).collect();
        if near.len() > 1 {
            self.begin_sharing(self.node_of(gpu));
        }
        for near in near {
            self.machines[near].set_access(gpu, address, bytes, access);
        }
        match access {
            MemoryAccess::None => self.hosted.remove(address),
            _ => self.note_hosted(gpu, address, bytes, Some(access)),
        }
    }

    /// Where the byte of an address is.
    pub(super) fn place(&self, address: u64) -> u64 {
        self.named.resolve(address).unwrap_or(address)
    }

    /// Copies between places that are no names of others.
    pub(super) fn copy_places(&mut self, destination: u64, source: u64, bytes: u64) {
        self.home_of_mut(destination)
            .copy(destination, source, bytes);
        self.note_written(destination, bytes);
    }

    /// Says what kernels of a GPU may do at addresses that name memory at `place`.
    pub(super) fn grant_to(
        &mut self,
        gpu: u32,
        addresses: Range<u64>,
        place: u64,
        access: MemoryAccess,
    ) {
        if gpu as usize >= self.machines.count() {
            return;
        }
        self.open_gpu(gpu);
        let bytes = addresses.end - addresses.start;
        let home = self.home(place);
        self.machines[gpu as usize].grant_at(addresses, place, access);
        if access != MemoryAccess::None && gpu as usize != home {
            self.machines[home].open_to_peers(place, bytes);
            self.begin_sharing(self.node_of(gpu));
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
        self.begin_sharing(self.node_of(gpu));
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
