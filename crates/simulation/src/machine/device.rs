//! The machine as the runtime sees it.

use super::outside::Awaits;
use super::{Machine, RETURNED};
use crate::host::{Inside, who_may_act};
use lockstep_gpu::memory::PAGE;
use lockstep_gpu::{DmaSource, Launch, Topic};
use lockstep_protocol::{Extent, MemoryAccess, Rows, layout};
use lockstep_runtime::device::{Advance, Advice, Fault, Listener, Part, Transfer};
use lockstep_runtime::{Device, LaunchSummary};
use lockstep_units::Time;

impl Device for Machine {
    fn note(&mut self, part: Part, at: Time, words: &dyn Fn() -> String) {
        let Some(recorder) = &self.options.recorder else {
            return;
        };
        let (topic, number) = match part {
            Part::Copy(engine) => (Topic::Copy, engine),
            Part::Host => (Topic::Host, 0),
        };
        if let Some(probe) = recorder.probe(&[topic], number) {
            probe.note(topic, at, words);
        }
    }

    fn announce(&mut self, launch: &LaunchSummary) {
        self.note_choice(launch);
        self.note_announced(launch);
        self.publish_announced(launch);
    }

    fn transfer(&mut self, transfer: &Transfer) {
        self.note_transfer(transfer);
    }

    fn now(&self) -> Time {
        self.gpu.now()
    }

    fn launch(&mut self, _: u32, number: u64, launch: Launch) -> Result<(), Fault> {
        self.check()?;
        if self.held.is_empty() && self.can_begin(number) {
            return self.begin(number, launch);
        }
        self.held.push_back((number, launch));
        Ok(())
    }

    fn host_is_inside(&mut self, threads: &Inside) {
        self.host.clone_from(threads);
    }

    fn listen(&mut self, listener: Option<Listener>) {
        self.listener = listener;
    }

    fn advance(&mut self, limit: Time) -> Advance {
        self.gpu.outside_acts();
        let mut awaits = Awaits::Nothing;
        loop {
            if self.gpu.on_any_rank(self.progress.is_stopped()) {
                return Advance::Stopped;
            }
            if self.listener.as_ref().is_some_and(|has_come| has_come()) {
                return Advance::Called;
            }
            self.reload_if_due();
            self.checkpoint_if_due();
            self.save_between_kernels();
            if let Err(fault) = self.check().and_then(|()| self.begin_held()) {
                return Advance::Faulted(fault);
            }
            let idle = self.gpu.is_idle() && self.is_projection_over();
            if idle && limit == Time::NEVER {
                return Advance::Reached(Vec::new());
            }
            let Some(given) = self.time_given(limit, awaits) else {
                return Advance::Stopped;
            };
            let next = match idle {
                true => limit,
                false => limit.min(self.next_look(awaits)),
            };
            let next = next.min(given);
            let before = self.awaited();
            let began = self.pace.begin();
            self.progress.begins();
            let advanced = self.gpu.advance(next);
            if self.pace.end(began) {
                self.progress.observed(&self.gpu.observe());
                self.publish_progress();
            }
            self.progress.reached(self.gpu.now().nanoseconds());
            awaits = self.tell_outside(before);
            match advanced {
                lockstep_gpu::Advance::Faulted(fault) => {
                    self.note_lost();
                    if let Err(fault) = self.check() {
                        return Advance::Faulted(fault);
                    }
                    return Advance::Faulted(self.fault_of(&fault));
                }
                lockstep_gpu::Advance::Stuck(_) if self.can_begin_beside() => {
                    if let Err(fault) = self.begin_beside() {
                        return Advance::Faulted(fault);
                    }
                }
                // Until the limit a copy may be under way; the host may write if it is not all here.
                lockstep_gpu::Advance::Stuck(fault) if limit == Time::NEVER => {
                    let who = who_may_act(&self.host);
                    if self.options.ranks.is_some() && self.gpu.on_any_rank(who.is_some()) {
                        return Advance::Faulted(self.refuse_host_writes(&fault));
                    }
                    if let Some(who) = who {
                        self.warn_of_spin(&fault, &who);
                    } else {
                        self.gpu.fail(fault.clone());
                        return Advance::Faulted(self.fault_of(&fault));
                    }
                }
                lockstep_gpu::Advance::Stuck(_) => {}
                lockstep_gpu::Advance::Reached(records) => {
                    self.sample(&records);
                    let moved = self.gpu.has_managed_done();
                    let mut results = match records.is_empty() && !moved {
                        true => Vec::new(),
                        false => self.results(records),
                    };
                    results.extend(self.take_projected());
                    if !results.is_empty() || moved || self.gpu.now() >= limit {
                        return Advance::Reached(results);
                    }
                }
            }
        }
    }

    fn abort(&mut self, _: u32) {
        self.launches.clear();
        self.held.clear();
        self.abort_sampling();
        if let Err(error) = self.gpu.abort() {
            self.fail(format!(
                "the GPU could not be made anew after a fault: {error}"
            ));
        }
        self.reset_samples();
        self.publish_abort();
    }

    fn take_output(&mut self) -> Vec<u8> {
        for printed in self.gpu.take_output() {
            self.output.extend_from_slice(printed.text.as_bytes());
        }
        std::mem::take(&mut self.output)
    }

    fn map(&mut self, _: u32, address: u64, bytes: u64) {
        self.gpu.contents().note_fresh(address..address + bytes);
        self.make_valid(address, bytes);
    }

    fn alias(&mut self, _: u32, address: u64, bytes: u64, place: u64) -> bool {
        self.gpu.contents().alias(address..address + bytes, place)
    }

    fn unmap(&mut self, address: u64, bytes: u64) {
        if layout::region_of(address) == Some(layout::Region::Managed) {
            self.gpu.managed_unmap(address);
        }
        self.gpu.contents().unmap(address);
        if bytes >= RETURNED {
            self.gpu.released(address..address + bytes);
        }
        self.forget(address, bytes);
    }

    fn set_access(&mut self, _: u32, address: u64, bytes: u64, access: MemoryAccess) {
        self.gpu.contents().unmap(address);
        if access != MemoryAccess::None {
            self.make_valid(address, bytes);
            let read_only = access == MemoryAccess::Read;
            self.gpu.contents().set_read_only(address, read_only);
        }
    }

    fn relocate(&mut self, destination: u64, source: u64, bytes: u64) {
        let end = source + bytes;
        let mut page = vec![0; PAGE as usize];
        let mut at = source;
        while let Some(data) = self.next_data(at, end) {
            let start = (data - data % PAGE).max(source);
            let part = &mut page[..PAGE.min(end - start) as usize];
            self.gpu.contents().read(start, part);
            self.gpu
                .contents()
                .write(destination + (start - source), part);
            at = start + PAGE;
        }
        self.clear(source, bytes);
    }

    fn read(&self, address: u64, bytes: &mut [u8]) {
        self.gpu.contents().read(address, bytes);
    }

    fn write(&mut self, address: u64, bytes: &[u8]) {
        self.gpu.contents().write(address, bytes);
    }

    fn copy(&mut self, destination: u64, source: u64, bytes: u64) {
        self.gpu.contents().copy(destination, source, bytes);
    }

    fn dma_written(&mut self, rows: Rows, extent: Extent, from_host: bool) {
        if !layout::region_of(rows.address).is_some_and(layout::Region::is_device) {
            return;
        }
        let source = if from_host {
            DmaSource::Host
        } else {
            DmaSource::Device
        };
        if let Some(tracing) = &self.tracing {
            tracing.written(rows, extent);
        }
        let slices = (0..extent.depth).rev();
        let rows = slices.flat_map(|slice| {
            (0..extent.height).rev().map(move |row| {
                let start = rows.address + slice * rows.slice_pitch + row * rows.row_pitch;
                start..start + extent.width
            })
        });
        self.gpu.dma_written(source, rows);
    }

    fn set_heap(&mut self, _: u32, bytes: u64) {
        let start = self.heap_start();
        let page = super::context_page(self.ordinal);
        if self.gpu.contents().find(page).is_none() {
            self.make_valid(page, PAGE);
            self.gpu.contents().set_system(page);
        }
        self.gpu.contents().unmap(start);
        self.map(self.ordinal, start, bytes);
        self.gpu.contents().set_system(start);
        self.gpu.set_heap(start..start + bytes);
    }

    fn touched(&mut self, address: u64, bytes: u64) {
        self.gpu
            .contents()
            .note_host_write(address..address + bytes);
    }

    fn managed_is_paged(&self) -> bool {
        self.options.managed.is_some() && self.options.mode == lockstep_gpu::Mode::Timing
    }

    fn managed_map(&mut self, address: u64, bytes: u64) {
        self.managed.push((address, bytes));
        self.gpu.managed_map(address, bytes);
    }

    fn managed_unmap(&mut self, address: u64) {
        self.gpu.managed_unmap(address);
    }

    fn managed_prefetch(
        &mut self,
        ticket: u64,
        address: u64,
        bytes: u64,
        to: Option<u32>,
        at: Time,
    ) {
        let asked = self
            .gpu
            .managed_prefetch(ticket, address, bytes, to.is_some(), at);
        self.check_managed(asked);
    }

    fn managed_host_access(
        &mut self,
        ticket: u64,
        address: u64,
        bytes: u64,
        write: bool,
        at: Time,
    ) {
        let asked = self
            .gpu
            .managed_host_access(ticket, address, bytes, write, at);
        self.check_managed(asked);
    }

    fn managed_flushes(&self) -> bool {
        self.config.uvm.host_access == "sync-flush"
    }

    fn managed_flush(&mut self, ticket: u64, at: Time) {
        let asked = self.gpu.managed_flush(ticket, at);
        self.check_managed(asked);
    }

    fn managed_done(&mut self, ticket: u64) -> Option<Time> {
        self.gpu.managed_done(ticket)
    }

    fn managed_populated(&mut self, address: u64, bytes: u64) {
        self.gpu.managed_populated(address, bytes);
    }

    fn managed_resident(&self, address: u64) -> bool {
        self.gpu.managed_resident(address)
    }

    fn managed_resident_pages(&self, address: u64, bytes: u64) -> Vec<(u64, u64)> {
        self.gpu.managed_resident_pages(address, bytes)
    }

    fn managed_changed(&mut self) -> bool {
        self.gpu.managed_changed()
    }

    fn managed_advise(&mut self, address: u64, bytes: u64, advice: Advice) {
        let advice = match advice {
            Advice::ReadMostly(yes) => lockstep_gpu::Advice::ReadMostly(yes),
            Advice::PreferredHost => lockstep_gpu::Advice::PreferredHost,
            Advice::PreferredDevice(gpu) if gpu == self.ordinal => {
                lockstep_gpu::Advice::PreferredDevice
            }
            Advice::PreferredDevice(gpu) => lockstep_gpu::Advice::PreferredNeighbour(gpu),
            Advice::PreferredNone => lockstep_gpu::Advice::PreferredNone,
            Advice::AccessedBy(gpu, yes) if gpu == self.ordinal => {
                lockstep_gpu::Advice::AccessedBy(yes)
            }
            Advice::AccessedBy(..) => return,
        };
        self.gpu.managed_advise(address, bytes, advice);
    }
}

impl Machine {
    /// Where the heap of device code lies: at the end of the device's region, past all allocations.
    pub(super) fn heap_start(&self) -> u64 {
        layout::Region::Device(self.ordinal).range().end - lockstep_runtime::SYSTEM_SPACE
    }

    /// Makes addresses legal for kernels.
    pub(super) fn make_valid(&mut self, address: u64, bytes: u64) {
        if let Err(error) = self.gpu.contents().map(address..address + bytes) {
            self.fail(format!(
                "{bytes} bytes at {address:#x} were allocated and cannot be used: {error}"
            ));
        }
    }
}
