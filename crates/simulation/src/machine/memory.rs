//! The memory of a machine beyond what the hardware does with it: what the host wrote by itself, and
//! memory that was given back, which reads zero again.

use super::Machine;
use crate::freed;
use lockstep_gpu::LinkLoad;
use lockstep_gpu::memory::{MulticastMapping, PAGE};
use lockstep_protocol::{MemoryAccess, layout};
use lockstep_units::Time;
use std::ops::Range;

impl Machine {
    /// Makes memory that another GPU or the host keeps account of legal for kernels.
    pub fn share(&mut self, address: u64, bytes: u64) {
        self.make_valid(address, bytes);
    }

    /// Makes it illegal again; what it holds stays.
    pub fn unshare(&mut self, address: u64) {
        self.gpu.contents().unmap(address);
    }

    /// Says what kernels may do at addresses that name memory at `place`. What they may do last is what
    /// they may do at all addresses of that memory.
    pub fn grant_at(&mut self, addresses: Range<u64>, place: u64, access: MemoryAccess) {
        let memory = place..place + (addresses.end - addresses.start);
        self.gpu.contents().forget_alias(addresses.start);
        if access == MemoryAccess::None {
            if !self.gpu.contents().aliases().lead_to(&memory) {
                self.gpu.contents().unmap(place);
            }
            return;
        }
        if self.gpu.contents().find(place).is_none() {
            self.make_valid(place, memory.end - place);
        }
        let contents = self.gpu.contents();
        contents.set_read_only(place, access == MemoryAccess::Read);
        let start = addresses.start;
        if !contents.alias(addresses, place) {
            self.fail(format!(
                "memory was mapped at {start:#x}, where other memory is already"
            ));
        }
    }

    /// Says what multicast object kernels have at an address.
    pub fn set_multicast(&mut self, address: u64, mapping: Option<MulticastMapping>) {
        self.gpu.contents().set_multicast(address, mapping);
    }

    /// How long the links of other GPUs are busy with what this one put on them; see [`lockstep_gpu::Gpu`].
    pub fn take_link_loads(&mut self) -> Option<Vec<LinkLoad>> {
        self.gpu.take_link_loads()
    }

    /// What others have put on links since a time.
    pub fn add_link_loads(&mut self, since: Time, own: LinkLoad, others: &[LinkLoad]) {
        self.gpu.add_link_loads(since, own, others);
    }

    /// Another GPU may write memory of this one from now on.
    pub fn open_to_peers(&mut self, address: u64, bytes: u64) {
        let contents = self.gpu.contents();
        contents.note_written_elsewhere(address..address + bytes);
    }

    /// What programs have allocated in its own memory: address and bytes.
    pub fn own_allocations(&self) -> Vec<(u64, u64)> {
        let own = layout::Region::Device(self.ordinal).range().start..self.heap_start();
        let ranges = self.gpu.contents().ranges();
        // What has several addresses is reached by those alone.
        let aliases = self.gpu.contents().aliases();
        let inside = ranges
            .iter()
            .filter(|range| own.contains(&range.start) && !aliases.lead_to(range));
        inside
            .map(|range| (range.start, range.end - range.start))
            .collect()
    }

    /// Lets the digest cover memory that the host writes by itself, pinned and managed.
    pub(super) fn note_host_memory(&self) {
        for range in self.gpu.contents().ranges().iter() {
            let region = layout::region_of(range.start);
            if !matches!(
                region,
                Some(layout::Region::Pinned | layout::Region::Managed)
            ) {
                continue;
            }
            let mut at = range.start;
            while let Some(data) = self.next_data(at, range.end) {
                at = self.next_hole(data).unwrap_or(range.end).min(range.end);
                self.gpu.contents().note_host_write(data..at);
            }
        }
    }

    /// Notes what a range holds, then makes it read zero again.
    pub(super) fn forget(&mut self, address: u64, bytes: u64) {
        let end = address + bytes;
        let mut parts = Vec::new();
        let mut at = address;
        while let Some(data) = self.next_data(at, end) {
            // Asked once for all pages in a row, not for each.
            let until = self.next_hole(data).unwrap_or(end).min(end);
            at = (data - data % PAGE).max(address);
            while at < until {
                let to = (at - at % PAGE + PAGE).min(end);
                parts.push(at..to);
                at = to;
            }
        }
        let threads = self.options.engine.threads;
        let found = freed::digests(self.gpu.contents(), &parts, threads);
        let mut held = Vec::new();
        for (part, digest) in parts.into_iter().zip(found) {
            let Some(digest) = digest else {
                continue;
            };
            held.push((part.start, digest));
            let bytes = part.end - part.start;
            if bytes < PAGE {
                let zeros = vec![0; bytes as usize];
                self.gpu.contents().write(part.start, &zeros);
            }
        }
        self.add_freed(&held);
        if self.checkpoints.is_some() {
            self.freed_last = held;
        }
        self.clear(address, bytes);
    }

    /// Makes whole pages of a range read zero again.
    pub(super) fn clear(&mut self, address: u64, bytes: u64) {
        let end = address + bytes;
        let (first, last) = (address.next_multiple_of(PAGE), end - end % PAGE);
        if first < last {
            let flags =
                rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
            let offset = first - layout::WINDOW_BASE;
            if rustix::fs::fallocate(&self.memory, flags, offset, last - first).is_err() {
                let zeros = vec![0; PAGE as usize];
                for address in (first..last).step_by(PAGE as usize) {
                    self.gpu.contents().write(address, &zeros);
                }
            }
        }
    }

    /// The first address from `from` that may hold something, before `end`.
    pub(super) fn next_data(&self, from: u64, end: u64) -> Option<u64> {
        if from >= end {
            return None;
        }
        let place = rustix::fs::SeekFrom::Data(from - layout::WINDOW_BASE);
        let offset = match rustix::fs::seek(&self.memory, place) {
            Ok(offset) => offset,
            Err(rustix::io::Errno::NXIO) => return None,
            // A system that cannot say where data is may have it everywhere.
            Err(_) => from - layout::WINDOW_BASE,
        };
        let address = layout::WINDOW_BASE + offset;
        (address < end).then_some(address)
    }

    /// The first address from `from` that the file has no page for.
    pub(super) fn next_hole(&self, from: u64) -> Option<u64> {
        let place = rustix::fs::SeekFrom::Hole(from - layout::WINDOW_BASE);
        let offset = rustix::fs::seek(&self.memory, place).ok()?;
        Some(layout::WINDOW_BASE + offset)
    }
}
