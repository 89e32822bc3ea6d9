//! Managed memory: what is told to the model of paging, and what the program is told of it.
//!
//! Without such a model all pages count as being everywhere: a prefetch then takes the time of a
//! copy and nothing else depends on where pages are. With it, the model decides where a page is;
//! the host's view of pages that have left is closed (see [`Runtime::left_host`]), and its next
//! access comes here.

use crate::device::{Advice, Device};
use crate::timeline::{Effect, Goal, Moves, Takes, Work};
use crate::{CallResult, Client, Runtime, fail};
use lockstep_protocol::pages::{PAGE, PageRanges};
use lockstep_protocol::{
    ContextHandle, CuResult, HostAccessMeans, MemoryLocation, PointerKind, Reply, StreamName,
};
use lockstep_units::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// What is known of the hosts' views of managed memory.
#[derive(Debug, Default)]
pub struct HostViews {
    /// Pages that are closed, by process.
    closed: BTreeMap<u32, PageRanges>,
    /// Processes that were not told of the last changes.
    untold: BTreeSet<u32>,
    /// What stops accesses, by process, once it has said so.
    means: BTreeMap<u32, HostAccessMeans>,
}

impl HostViews {
    /// A process is gone.
    pub fn forget(&mut self, process: u32) {
        self.closed.remove(&process);
        self.untold.remove(&process);
        self.means.remove(&process);
    }

    /// Memory is gone.
    pub fn freed(&mut self, address: u64, bytes: u64) {
        for closed in self.closed.values_mut() {
            closed.remove(address, bytes);
        }
    }
}

impl<D: Device> Runtime<D> {
    pub(super) fn prefetch(
        &mut self,
        client: Client,
        context: ContextHandle,
        stream: StreamName,
        address: u64,
        bytes: u64,
        location: MemoryLocation,
    ) -> CallResult<Reply> {
        self.check_managed(address, bytes)?;
        let to = match location {
            MemoryLocation::Device(device) => {
                self.check_device(device)?;
                Some(device)
            }
            MemoryLocation::Host | MemoryLocation::HostNuma(_) => None,
            MemoryLocation::None => {
                return fail(CuResult::INVALID_VALUE, "a prefetch to nowhere");
            }
        };
        let key = self.stream_key(client, context, stream)?;
        let work = if self.device.managed_is_paged() {
            Work::Prefetch {
                ticket: self.fresh(),
                address,
                bytes,
                to,
            }
        } else {
            let copy = &self.config.copy;
            Work::Transfer {
                takes: Takes::Fixed(
                    copy.latency + copy.pinned.time_for(Bytes(bytes)),
                    Moves {
                        way: match to {
                            Some(_) => "host to device",
                            None => "device to host",
                        },
                        bytes,
                    },
                ),
                effect: Effect::None,
            }
        };
        self.enqueue(context, key, work);
        Ok(Reply::Done)
    }

    pub(super) fn advise(
        &mut self,
        address: u64,
        bytes: u64,
        advice: u32,
        location: MemoryLocation,
    ) -> CallResult<Reply> {
        self.check_managed(address, bytes)?;
        let gpu = match location {
            MemoryLocation::Device(device) => {
                self.check_device(device)?;
                Some(device)
            }
            _ => None,
        };
        let advice = match (advice, gpu) {
            (1, _) => Advice::ReadMostly(true),
            (2, _) => Advice::ReadMostly(false),
            (3, Some(gpu)) => Advice::PreferredDevice(gpu),
            (3, None) => Advice::PreferredHost,
            (4, _) => Advice::PreferredNone,
            (5, Some(gpu)) => Advice::AccessedBy(gpu, true),
            (6, Some(gpu)) => Advice::AccessedBy(gpu, false),
            // The host can always reach its own memory.
            (5 | 6, None) => return Ok(Reply::Done),
            _ => return fail(CuResult::INVALID_VALUE, format!("advice {advice}")),
        };
        self.device.managed_advise(address, bytes, advice);
        Ok(Reply::Done)
    }

    /// The program says what stops its accesses to pages that have left.
    pub(super) fn host_access_means(
        &mut self,
        client: Client,
        means: HostAccessMeans,
    ) -> CallResult<Reply> {
        self.host_views.means.insert(client.process, means);
        if means == HostAccessMeans::None {
            for allocation in self.memory.host_visible() {
                let info = &allocation.info;
                if info.kind == PointerKind::Managed {
                    self.device.managed_populated(info.base, info.bytes);
                }
            }
            self.warn(
                "the program's own accesses to managed memory cannot be noticed on this machine \
                 (see `lockstep doctor`): pages move back when it waits for the GPU"
                    .into(),
            );
        }
        Ok(Reply::Done)
    }

    /// The program touched a page of its own that had left: it comes back.
    pub(super) fn host_access(
        &mut self,
        client: Client,
        address: u64,
        write: bool,
    ) -> CallResult<Reply> {
        self.check_managed(address, 1)?;
        let allocation = self.memory.covering(address, 1)?;
        let (base, size) = (allocation.info.base, allocation.info.bytes);
        if self.device.managed_resident(address) {
            let ticket = self.fresh();
            let page = address - address % PAGE;
            self.device
                .managed_host_access(ticket, page, PAGE, write, self.now);
            self.wait_for_ticket(ticket)?;
        }
        let mut resident = PageRanges::new();
        for (address, bytes) in self.device.managed_resident_pages(base, size) {
            resident.insert(address, bytes);
        }
        // All that is here now: what came back by itself, or was freed and allocated again, need
        // not be asked for page by page.
        let open = resident.outside(base, size);
        let closed = self.host_views.closed.entry(client.process).or_default();
        for (address, bytes) in &open {
            closed.remove(*address, *bytes);
        }
        Ok(Reply::Pages(open))
    }

    /// Whether nothing stops the accesses of a process.
    pub(super) fn is_unseen(&self, process: u32) -> bool {
        self.host_views.means.get(&process) == Some(&HostAccessMeans::None)
    }

    /// Where nothing stops the program's accesses, or the model wants it so, pages move back when
    /// it has waited.
    pub(crate) fn flush_managed(&mut self, client: Client) -> CallResult<()> {
        let unseen = self.is_unseen(client.process);
        if !self.device.managed_is_paged() || !(unseen || self.device.managed_flushes()) {
            return Ok(());
        }
        let ticket = self.fresh();
        self.device.managed_flush(ticket, self.now);
        self.wait_for_ticket(ticket)
    }

    /// Pages of a process that have left since it was last told.
    pub(crate) fn left_host(&mut self, client: Client) -> Vec<(u64, u64)> {
        if self.device.managed_changed() {
            self.host_views.untold = self
                .contexts
                .values()
                .map(|context| context.process)
                .collect();
        }
        if !self.host_views.untold.remove(&client.process) || self.is_unseen(client.process) {
            return Vec::new();
        }
        let own = |context: &ContextHandle| {
            self.contexts
                .get(context)
                .is_some_and(|context| context.process == client.process)
        };
        let closed = self.host_views.closed.entry(client.process).or_default();
        let mut left = PageRanges::new();
        for allocation in self.memory.host_visible() {
            let info = &allocation.info;
            if info.kind != PointerKind::Managed || !own(&info.context) {
                continue;
            }
            for (address, bytes) in self.device.managed_resident_pages(info.base, info.bytes) {
                for (address, bytes) in closed.outside(address, bytes) {
                    left.insert(address, bytes);
                }
            }
        }
        for (address, bytes) in left.iter() {
            closed.insert(address, bytes);
        }
        left.iter().collect()
    }

    /// Lets the device advance until the model of paging has done something.
    fn wait_for_ticket(&mut self, ticket: u64) -> CallResult<()> {
        self.timeline.track(ticket);
        self.advance(Goal::Ticket(ticket))?;
        if let Some(at) = self.timeline.take_ticket(ticket) {
            self.now = self.now.max(at);
        }
        Ok(())
    }

    fn check_managed(&self, address: u64, bytes: u64) -> CallResult<()> {
        let allocation = self.memory.covering(address, bytes)?;
        if allocation.info.kind != PointerKind::Managed {
            return fail(
                CuResult::INVALID_VALUE,
                format!("{address:#x} is not managed memory"),
            );
        }
        Ok(())
    }
}
