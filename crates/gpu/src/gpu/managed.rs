//! Managed memory, from outside.
//!
//! Contents are in one file and never move: everything here is about residence and time. For a
//! GPU that was made without managed addresses, requests are complete at once.

use lockstep_engine::EngineError;
use lockstep_units::Time;
use lockstep_uvm::{Advice, FaultRecord, GmmuStats, MigrationRecord, News, Order, Placed};

use super::Gpu;
use crate::error::GpuError;
use crate::message::{ManagedAction, ManagedRequest, Message};
use crate::mmu::Mmu;
use crate::partition::GpuPartition;

impl Gpu {
    pub(super) fn mmu(&self) -> Option<&Mmu> {
        match self.engine.partition(self.places.mmu?) {
            GpuPartition::Mmu(mmu) => Some(mmu),
            other => panic!("the GMMU is {other:?}"),
        }
    }

    fn mmu_mut(&mut self) -> Option<&mut Mmu> {
        match self.engine.partition_mut(self.places.mmu?) {
            GpuPartition::Mmu(mmu) => Some(mmu),
            other => panic!("the GMMU is {other:?}"),
        }
    }

    /// Makes mapped addresses managed: their pages are on the host.
    pub fn managed_map(&mut self, address: u64, bytes: u64) {
        if let Some(mmu) = self.mmu_mut() {
            mmu.map(address, bytes);
        }
    }

    /// Forgets a managed allocation; nothing is written back, and no kernel may use it any more.
    pub fn managed_unmap(&mut self, address: u64) {
        if let Some(mmu) = self.mmu_mut() {
            mmu.gmmu.unmap_memory(address);
        }
    }

    /// Moves pages from `at` on; [`Gpu::managed_done`] says when they are there.
    ///
    /// # Errors
    /// Never for a time that has not passed.
    pub fn managed_prefetch(
        &mut self,
        ticket: u64,
        address: u64,
        bytes: u64,
        to_device: bool,
        at: Time,
    ) -> Result<(), GpuError> {
        let action = ManagedAction::Prefetch {
            address,
            bytes,
            to_device,
        };
        self.post_managed(ticket, action, at)
    }

    /// The host touches memory at `at`: its pages move back, a single one with its neighbours.
    ///
    /// # Errors
    /// Never for a time that has not passed.
    pub fn managed_host_access(
        &mut self,
        ticket: u64,
        address: u64,
        bytes: u64,
        write: bool,
        at: Time,
    ) -> Result<(), GpuError> {
        let action = ManagedAction::HostAccess {
            address,
            bytes,
            write,
        };
        self.post_managed(ticket, action, at)
    }

    /// Brings back everything that the device wrote.
    ///
    /// # Errors
    /// Never for a time that has not passed.
    pub fn managed_flush(&mut self, ticket: u64, at: Time) -> Result<(), GpuError> {
        self.post_managed(ticket, ManagedAction::Flush, at)
    }

    /// What the directory of the node is to be told, in the order in which it happened.
    pub fn managed_news(&mut self) -> Vec<News> {
        // Looking first keeps an idle GMMU asleep.
        if self.mmu().is_none_or(|mmu| !mmu.gmmu.has_news()) {
            return Vec::new();
        }
        let mmu = self.mmu_mut();
        mmu.map_or_else(Vec::new, |mmu| mmu.gmmu.take_news())
    }

    /// The directory of the node says something, from `at` on.
    ///
    /// # Errors
    /// Never for a time that has not passed.
    pub fn managed_order(&mut self, order: Order, at: Time) -> Result<(), GpuError> {
        // Nobody asks for it by a ticket.
        self.post_managed(u64::MAX, ManagedAction::Order(order), at)
    }

    /// Another GPU of the node has pages, or has them no longer.
    pub fn managed_placed(&mut self, placed: &Placed) {
        if let Some(mmu) = self.mmu_mut() {
            mmu.gmmu.placed(placed);
        }
    }

    /// Whether kernels may wait for pages that other GPUs have to give.
    pub(super) fn waits_for_neighbours(&self) -> bool {
        self.mmu()
            .is_some_and(|mmu| mmu.gmmu.waits_for_neighbours())
    }

    fn post_managed(
        &mut self,
        ticket: u64,
        action: ManagedAction,
        at: Time,
    ) -> Result<(), GpuError> {
        let Some(id) = self.places.mmu else {
            return Ok(());
        };
        if let Some(mmu) = self.mmu_mut() {
            mmu.posted();
        }
        let due = at.max(self.now());
        let message = Message::Managed(Box::new(ManagedRequest { ticket, action }));
        self.engine
            .post(id, due, message)
            .map_err(|error: EngineError| error.into())
    }

    /// When a request was complete, told once; at once if there is nothing to wait for.
    pub fn managed_done(&mut self, ticket: u64) -> Option<Time> {
        let now = self.now();
        match self.places.mmu {
            Some(_) => {
                // Looking first keeps an idle GMMU asleep.
                self.mmu().filter(|mmu| mmu.has_done())?;
                self.mmu_mut()?.take_done(ticket)
            }
            None => Some(now),
        }
    }

    /// Whether requests are complete that nobody asked about.
    #[must_use]
    pub fn has_managed_done(&self) -> bool {
        self.mmu().is_some_and(Mmu::has_done)
    }

    /// Whether the host does not have a page: it is on the device, or nobody has touched it.
    #[must_use]
    pub fn managed_resident(&self, address: u64) -> bool {
        let page = address / lockstep_uvm::PAGE;
        self.mmu().is_some_and(|mmu| mmu.gmmu.space().is_away(page))
    }

    /// The host has memory of its own for a range.
    pub fn managed_populated(&mut self, address: u64, bytes: u64) {
        if let Some(mmu) = self.mmu_mut() {
            mmu.gmmu.populate(address, bytes);
        }
    }

    /// Runs of pages of a range that the host does not have: address and bytes.
    #[must_use]
    pub fn managed_resident_pages(&self, address: u64, bytes: u64) -> Vec<(u64, u64)> {
        let page_bytes = lockstep_uvm::PAGE;
        let end = address.saturating_add(bytes);
        let Some(mmu) = self.mmu() else {
            return Vec::new();
        };
        let space = mmu.gmmu.space();
        let runs = space.away(address / page_bytes, end.div_ceil(page_bytes));
        let bytes = |(first, count): (u64, u64)| {
            let start = (first * page_bytes).max(address);
            let stop = ((first + count) * page_bytes).min(end);
            (start, stop - start)
        };
        runs.into_iter().map(bytes).collect()
    }

    /// Whether residence changed since the last call.
    pub fn managed_changed(&mut self) -> bool {
        let changes = self.mmu().map_or(0, |mmu| mmu.gmmu.changes());
        std::mem::replace(&mut self.managed_changes, changes) != changes
    }

    /// Takes advice about managed memory.
    pub fn managed_advise(&mut self, address: u64, bytes: u64, advice: Advice) {
        if let Some(mmu) = self.mmu_mut() {
            mmu.gmmu.advise(address, bytes, advice);
        }
    }

    /// What GMMU, host runtime and link counted, if there ever was managed memory.
    #[must_use]
    pub fn managed_stats(&self) -> Option<&GmmuStats> {
        let mmu = self.mmu().filter(|mmu| mmu.is_used())?;
        Some(mmu.gmmu.stats())
    }

    /// Far faults and transfers so far, in cycles of the SM clock.
    #[must_use]
    pub fn managed_logs(&self) -> (&[FaultRecord], &[MigrationRecord]) {
        match self.mmu() {
            Some(mmu) => (mmu.gmmu.fault_log(), mmu.gmmu.migration_log()),
            None => (&[], &[]),
        }
    }
}
