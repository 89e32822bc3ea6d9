//! The memory side of one SM: its log, its strong accesses, what it waits for.

use std::sync::Arc;

use lockstep_engine::{LinkId, LoadError, Outbox, PartitionId, Reader, Writer};
use lockstep_isa::addresses::Addresses;
use lockstep_isa::warp_register::{LANES, lanes_of};
use lockstep_isa::{Mask, WarpRegister};
use lockstep_units::{Bytes, Cycle, Hertz, Time};

use super::access::Gathered;
use super::coalescing::Coalesced;
use super::in_flight::InFlight;
use super::outcome::Done;
use super::shared_banks::DataArrays;
use super::transactions::Transactions;
use crate::check::{Checks, Findings};
use crate::crossbar::Egress;
use crate::crossbar::credits::{CreditGate, HeldRequest};
use crate::memory::{CODE_LINES, Contents, Home, LINE, Log, PAGE, SECTOR, SectorBytes};
use crate::message::{ClusterRequest, Message, StrongAction, StrongRequest};
use crate::probe::Probe;
use crate::profile::SmProfile;
use crate::sm::bulk::engine::BulkEngine;
use crate::sm::cluster::CLUSTER_SECTOR;
use crate::sm::front_end::constant_addresses::ConstantAddresses;
use crate::sm::mbarrier_waits::MbarrierPort;
use crate::sm::now::Now;
use crate::sm::recurrence::Recurrence;
use crate::sm::tracing::TraceSink;
use crate::sm::translation::deferred::Deferred;
use crate::sm::translation::device::DeviceTranslation;
use crate::sm::translation::{Moment, Translation, few};

/// Stands for the sectors of weak stores that are held back, where accesses under way are counted.
const HELD_SECTOR: u64 = CLUSTER_SECTOR - 1;

/// Where an SM's messages go.
#[derive(Clone, Copy, Debug)]
pub struct Wiring {
    /// SM to slice.
    pub request: Egress,
    /// SM to dispatcher.
    pub report: LinkId,
    /// SM to SM, where blocks have clusters.
    pub cluster: Option<LinkId>,
    /// First SM.
    pub sms: u32,
    /// First slice.
    pub slices: u32,
    /// The dispatcher.
    pub dispatcher: PartitionId,
    /// Bytes around the payload of a packet.
    pub header: u64,
    /// Bytes that stand for a sector of an atomic.
    pub atomic: u64,
    /// Bytes that stand for each of its lanes.
    pub atomic_lane: u64,
}

/// Allocations that were looked up lately.
#[derive(Clone, Debug, Default)]
struct RangeCache {
    version: u64,
    recent: [(u64, u64); 4],
    next: usize,
    /// Whether some allocation may only be read.
    read_only: bool,
}

/// The memory side of one SM.
#[derive(Debug)]
pub struct Port {
    /// Contents of memory.
    pub contents: Arc<Contents>,
    /// What this SM wrote in this epoch.
    pub log: Log,
    /// Strong accesses under way.
    pub in_flight: InFlight,
    /// Instructions that wait for answers.
    pub transactions: Transactions,
    /// Which slice an address belongs to.
    pub home: Home,
    /// Where messages go.
    pub wiring: Wiring,
    /// The room that slices have for requests, and what waits for it.
    pub gate: CreditGate,
    /// The translation of managed pages.
    pub translation: Option<Box<Translation>>,
    /// That of other memory.
    pub device_translation: DeviceTranslation,
    /// The arrays of shared memory and L1.
    pub arrays: DataArrays,
    /// How many of the GPU's SMs the last launch has blocks for, in parts of 256.
    pub share: u32,
    ranges: RangeCache,
    /// Sector bytes of the access being carried out.
    pub buffer: Box<[SectorBytes; LANES]>,
    /// Bytes written in each of them.
    pub masks: [u32; LANES],
    /// The sectors of the last access to global memory.
    pub found: Coalesced,
    /// Those of them of which a store wrote only some bytes.
    pub partial: Mask,
    /// How the last access went.
    pub done: Done,
    /// What the last access did to barriers in shared memory.
    pub mbarriers: MbarrierPort,
    /// Sectors that an atomic or a strong store changes.
    pub changed: Coalesced,
    /// The values that the access writes.
    pub values: Box<[WarpRegister; 8]>,
    /// The TMA engine.
    pub bulk: BulkEngine,
    /// What members of multicast objects have answered to instructions that reduce over them. State of several GPUs
    /// is not saved, so neither is this.
    pub gathered: Vec<Gathered>,
    /// The words that the last load from constants by index asked for.
    pub constants: ConstantAddresses,
    /// Sectors of the texels of the last access.
    pub texels: Vec<u64>,
    /// Requests to be used again; boxed, because that is how they travel.
    #[allow(clippy::vec_box, reason = "the boxes are what is kept")]
    spare: Vec<Box<StrongRequest>>,
    /// Somebody who watches.
    pub probe: Option<Box<Probe>>,
    /// Who takes what warps execute.
    pub tracer: Option<Arc<dyn TraceSink>>,
    /// Whether warps are here that are replayed from a trace.
    pub replays: bool,
    /// Counts of single instructions, for those who asked for them.
    pub profile: Option<SmProfile>,
    /// Whether warps go round in circles, while that is asked.
    pub recurrence: Option<Box<Recurrence>>,
    /// Checks that were asked for.
    pub checks: Checks,
    /// What they found.
    pub findings: Arc<Findings>,
}

impl Port {
    /// A port with nothing under way.
    pub fn new(
        contents: Arc<Contents>,
        home: Home,
        (wiring, gate): (Wiring, CreditGate),
        translation: Option<Box<Translation>>,
        device_translation: DeviceTranslation,
        arrays: DataArrays,
        wait: u64,
        (probe, tracer): (Option<Box<Probe>>, Option<Arc<dyn TraceSink>>),
        (checks, findings): (Checks, Arc<Findings>),
    ) -> Self {
        Self {
            contents,
            log: Log::default(),
            in_flight: InFlight::default(),
            transactions: Transactions::default(),
            home,
            wiring,
            gate,
            translation,
            device_translation,
            arrays,
            share: 256,
            ranges: RangeCache::default(),
            buffer: Box::new([[0; SECTOR as usize]; LANES]),
            masks: [0; LANES],
            found: Coalesced::NONE,
            partial: 0,
            done: Done::NOTHING,
            mbarriers: MbarrierPort::new(wait),
            changed: Coalesced::NONE,
            values: Box::new([WarpRegister::ZERO; 8]),
            bulk: BulkEngine::default(),
            gathered: Vec::new(),
            constants: ConstantAddresses::default(),
            texels: Vec::new(),
            spare: Vec::new(),
            probe,
            tracer,
            replays: false,
            profile: None,
            recurrence: None,
            checks,
            findings,
        }
    }

    /// Whether somebody wants to know of every instruction.
    #[inline(always)]
    pub fn is_watched(&self) -> bool {
        self.probe.is_some()
            || self.recurrence.is_some()
            || self.checks.race
            || self.replays
            || self.tracer.is_some()
    }

    /// The first lane whose bytes are not all in one allocation.
    #[inline]
    pub fn invalid_lane(&mut self, addresses: &Addresses, mask: Mask, bytes: u32) -> Option<usize> {
        let (low, high) = addresses.bounds(mask);
        if self.is_valid(low, high.saturating_add(u64::from(bytes))) {
            return None;
        }
        lanes_of(mask).find(|lane| {
            let start = addresses.lanes[*lane];
            !self.is_valid(start, start.saturating_add(u64::from(bytes)))
        })
    }

    /// Addresses that the program registered as those of the memory that they name; none if no lane
    /// has such an address.
    #[cold]
    #[inline(never)]
    pub fn resolve_aliases(
        &self,
        addresses: &Addresses,
        mask: Mask,
        bytes: u32,
    ) -> Option<Addresses> {
        let mut lanes = addresses.lanes;
        let mut found = false;
        for lane in lanes_of(mask) {
            if let Some(named) = self.contents.resolve_alias(lanes[lane]) {
                lanes[lane] = named;
                found = true;
            }
        }
        found.then(|| Addresses::of(lanes, bytes))
    }

    /// The first lane that would write where memory may only be read, among lanes whose addresses
    /// [`Self::invalid_lane`] has just found valid. Costs one look while nothing is read-only.
    #[inline]
    pub fn read_only_lane(&self, addresses: &Addresses, mask: Mask) -> Option<usize> {
        if !self.ranges.read_only {
            return None;
        }
        let read_only = |lane: &usize| self.contents.find_read_only(addresses.lanes[*lane]);
        lanes_of(mask).find(|lane| read_only(lane).is_some())
    }

    #[inline]
    fn is_valid(&mut self, start: u64, end: u64) -> bool {
        let version = self.contents.version();
        if self.ranges.version == version {
            for (low, high) in self.ranges.recent {
                if low <= start && end <= high {
                    return true;
                }
            }
        } else {
            self.ranges = RangeCache {
                version,
                read_only: self.contents.has_read_only(),
                ..RangeCache::default()
            };
        }
        let Some(range) = self.contents.find(start) else {
            return false;
        };
        self.ranges.recent[self.ranges.next] = (range.start, range.end);
        self.ranges.next = (self.ranges.next + 1) % self.ranges.recent.len();
        end <= range.end
    }

    /// Whether all bytes lie in one allocation.
    #[inline]
    pub fn holds(&mut self, address: u64, bytes: u64) -> bool {
        self.is_valid(address, address.saturating_add(bytes))
    }

    /// A sector as this SM sees it.
    #[inline]
    pub fn sector(&self, sector: u64) -> SectorBytes {
        let mut bytes = self.contents.sector(sector);
        self.log.overlay(sector, &mut bytes);
        bytes
    }

    /// Fills the buffer with the sectors of an access.
    #[inline]
    pub fn read_sectors(&mut self, found: &Coalesced) {
        for index in 0..found.count {
            self.buffer[index] = self.sector(found.sectors[index]);
        }
    }

    /// A request for a strong access, without lanes and values yet.
    pub fn request(
        &mut self,
        action: StrongAction,
        sector: u64,
        transaction: u32,
    ) -> Box<StrongRequest> {
        let mut lanes = Vec::new();
        let spare = self.spare.pop();
        let mut request = match spare {
            Some(mut spare) => {
                lanes = std::mem::take(&mut spare.lanes);
                lanes.clear();
                spare
            }
            None => Box::default(),
        };
        *request = StrongRequest {
            action,
            sector,
            mask: 0,
            bytes: [0; SECTOR as usize],
            lanes,
            transaction,
            generation: 0,
            of_line: 0,
            tag: 0,
            member: 0,
            members: 0,
        };
        request
    }

    /// Sends a strong access of a warp to its slice. `lines` says how many lines of the same page its
    /// instruction asks for.
    pub fn send_strong(
        &mut self,
        mut request: Box<StrongRequest>,
        warp: u8,
        lines: impl Fn() -> usize,
        now: Now,
        outbox: &mut Outbox<'_, Message>,
    ) {
        request.generation = self.in_flight.start(request.sector);
        if let Some(request) = self.defer_strong(request, warp, lines, now, outbox) {
            self.dispatch_strong(request, now, outbox);
        }
    }

    /// Counts a strong access as under way that is sent later.
    pub fn start_strong(&mut self, request: &mut StrongRequest) {
        request.generation = self.in_flight.start(request.sector);
    }

    /// Sends a strong access that is counted as under way already.
    pub fn send_started(
        &mut self,
        request: Box<StrongRequest>,
        warp: u8,
        now: Now,
        outbox: &mut Outbox<'_, Message>,
    ) {
        if let Some(request) = self.defer_strong(request, warp, || 1, now, outbox) {
            self.dispatch_strong(request, now, outbox);
        }
    }

    /// Sends what another block of the cluster receives of a bulk copy.
    pub fn send_bulk_to_cluster(
        &mut self,
        sm: u32,
        mut request: Box<ClusterRequest>,
        now: Now,
        outbox: &mut Outbox<'_, Message>,
    ) {
        let bytes = request.lanes.iter().map(|lane| u64::from(lane.bytes)).sum();
        request.generation = self.in_flight.start(CLUSTER_SECTOR);
        self.send_cluster(sm, request, bytes, now, outbox);
    }

    /// Sends a strong access whose page is there.
    pub fn dispatch_strong(
        &mut self,
        request: Box<StrongRequest>,
        now: Now,
        outbox: &mut Outbox<'_, Message>,
    ) {
        let payload = match request.action {
            StrongAction::Load => 0,
            StrongAction::Store => u64::from(request.mask.count_ones()),
            StrongAction::Atomic(..) | StrongAction::Reduce(..) => {
                // The way out is shared by the SMs of a GPC: one that is alone has it all.
                let whole = self.wiring.atomic_lane * request.lanes.len() as u64;
                ((self.wiring.atomic + whole) * u64::from(self.share) / 256).max(48)
            }
        };
        let slice = self.home.slice(request.sector * SECTOR);
        let cycle = self.translated_at(request.sector * SECTOR / LINE, now.cycle);
        let at = if cycle > now.cycle {
            self.device_translation.clock.edge(Cycle(cycle))
        } else {
            now.time
        };
        let mut size = self.wiring.header + payload;
        if request.members > 1 {
            // The accesses to all members are one packet up to where the links begin.
            size = size.div_ceil(u64::from(request.members));
        }
        self.send_request(slice, at, Bytes(size), Message::Strong(request), outbox);
    }

    /// Sends a request to a slice, or holds it back until the slice has room for it.
    #[inline]
    fn send_request(
        &mut self,
        slice: u32,
        at: Time,
        size: Bytes,
        message: Message,
        outbox: &mut Outbox<'_, Message>,
    ) {
        let to = PartitionId(self.wiring.slices + slice);
        if self.gate.admit(slice) {
            let probe = self.probe.as_deref();
            let port = self.wiring.request;
            port.send(to, at, size, message, outbox, probe);
            return;
        }
        // Fences and the end of a block wait until a weak store has left.
        let is_store = matches!(message, Message::Write { .. });
        let store = is_store.then(|| self.in_flight.start(HELD_SECTOR));
        self.gate.hold(HeldRequest {
            to,
            at,
            size,
            message,
            store,
        });
    }

    /// A slice has room for so many more requests. Says whether memory instructions can issue again.
    pub fn receive_credits(
        &mut self,
        from: PartitionId,
        count: u16,
        now: Now,
        outbox: &mut Outbox<'_, Message>,
    ) -> bool {
        let was_full = self.gate.is_full();
        let slice = from.0.wrapping_sub(self.wiring.slices);
        for request in self.gate.give_back(slice, from, count) {
            let at = request.at.max(now.time);
            let probe = self.probe.as_deref();
            let port = self.wiring.request;
            port.send(request.to, at, request.size, request.message, outbox, probe);
            if let Some(generation) = request.store {
                self.in_flight.finish(HELD_SECTOR, generation);
            }
        }
        was_full && !self.gate.is_full()
    }

    /// Sends what a block asks of another one of its cluster.
    pub fn send_cluster(
        &mut self,
        sm: u32,
        request: Box<ClusterRequest>,
        bytes: u64,
        now: Now,
        outbox: &mut Outbox<'_, Message>,
    ) {
        let Some(link) = self.wiring.cluster else {
            return;
        };
        let to = PartitionId(self.wiring.sms + sm);
        let size = Bytes(self.wiring.header + bytes);
        outbox.send(link, to, now.time, size, Message::Cluster(request));
    }

    /// The sectors of a line that a store writes in part; `partial` names them by their position in
    /// [`Self::found`].
    #[must_use]
    #[inline]
    pub fn partial_sectors(&self, line: u64, mut partial: Mask) -> u8 {
        let sectors = LINE / SECTOR;
        let mut mask = 0;
        while partial != 0 {
            let sector = self.found.sectors[partial.trailing_zeros() as usize];
            partial &= partial - 1;
            if sector / sectors == line {
                mask |= 1 << (sector % sectors);
            }
        }
        mask
    }

    /// Keeps a strong access back if its page has no translation. `lines` says how many of the
    /// page its instruction asks for.
    fn defer_strong(
        &mut self,
        request: Box<StrongRequest>,
        warp: u8,
        lines: impl Fn() -> usize,
        now: Now,
        outbox: &mut Outbox<'_, Message>,
    ) -> Option<Box<StrongRequest>> {
        let header = self.wiring.header;
        let Some(translation) = &mut self.translation else {
            return Some(request);
        };
        let write = !matches!(request.action, StrongAction::Load);
        let address = request.sector * SECTOR;
        let moment = Moment {
            warp,
            cycle: now.cycle,
            time: now.time,
            header,
        };
        if translation.admit(address, write, 1, &lines, moment, outbox) {
            return Some(request);
        }
        let waits = Deferred::Strong {
            request,
            lines: few(lines()),
            warp,
        };
        translation.defer(address / PAGE, waits, moment, outbox);
        None
    }

    /// Asks L2 for sectors of a line at a cycle; they come back under the number of their MSHR.
    #[inline]
    pub fn send_read(
        &mut self,
        line: u64,
        sectors: u8,
        mshr: u32,
        tag: u8,
        at: u64,
        clock: Hertz,
        outbox: &mut Outbox<'_, Message>,
    ) {
        let message = Message::Read {
            line,
            sectors,
            miss: mshr,
            tag,
        };
        let size = Bytes(self.wiring.header);
        self.send_line(line, at, clock, size, message, outbox);
    }

    /// Writes sectors of a line to L2 at a cycle, some of them in part.
    #[inline]
    pub fn send_write(
        &mut self,
        line: u64,
        sectors: u8,
        partial: u8,
        tag: u8,
        at: u64,
        clock: Hertz,
        outbox: &mut Outbox<'_, Message>,
    ) {
        let message = Message::Write {
            line,
            sectors,
            partial,
            tag,
        };
        let bytes = u64::from(sectors.count_ones()) * SECTOR;
        let size = Bytes(self.wiring.header + bytes);
        self.send_line(line, at, clock, size, message, outbox);
    }

    /// When a request for a line has its translation that could leave at a cycle. Code has none, and
    /// that of managed memory is there already.
    #[inline]
    fn translated_at(&mut self, line: u64, at: u64) -> u64 {
        let managed = |translation: &Translation| translation.is_managed(line.wrapping_mul(LINE));
        if line >= CODE_LINES || self.translation.as_deref().is_some_and(managed) {
            return at;
        }
        self.device_translation.leaves_at(line, at)
    }

    #[inline]
    fn send_line(
        &mut self,
        line: u64,
        at: u64,
        clock: Hertz,
        size: Bytes,
        message: Message,
        outbox: &mut Outbox<'_, Message>,
    ) {
        let slice = self.home.slice(line.wrapping_mul(LINE));
        let at = clock.edge(Cycle(self.translated_at(line, at)));
        self.send_request(slice, at, size, message, outbox);
    }

    /// Writes everything but the log, which is empty between epochs.
    pub fn save(&self, writer: &mut Writer<'_>) {
        writer.write(&self.in_flight.saved());
        writer.write(&self.transactions);
        writer.write(&self.share);
        writer.write(&self.gate.saved());
        writer.write(&self.bulk);
        let translation = self.translation.as_ref();
        writer.write(&translation.map(|translation| translation.saved()));
        writer.write(&self.device_translation);
    }

    /// Takes on what was saved.
    ///
    /// # Errors
    /// If the bytes are not what `save` wrote.
    pub fn load(&mut self, reader: &mut Reader<'_>) -> Result<(), LoadError> {
        self.in_flight = InFlight::from_saved(reader.read()?);
        self.transactions = reader.read()?;
        self.share = reader.read()?;
        if !self.gate.restore(reader.read()?) {
            let what = "credits for another number of slices";
            return Err(LoadError::Malformed { what });
        }
        self.bulk = reader.read()?;
        let translation: Option<crate::sm::translation::Saved> = reader.read()?;
        if let (Some(own), Some(saved)) = (&mut self.translation, translation) {
            own.restore(saved);
        }
        let device_translation: DeviceTranslation = reader.read()?;
        if !device_translation.fits(&self.device_translation) {
            return Err(LoadError::Malformed {
                what: "other TLBs of device memory",
            });
        }
        self.device_translation = device_translation;
        self.log.clear();
        Ok(())
    }

    /// A strong access was answered.
    pub fn finish_strong(&mut self, request: Box<StrongRequest>) {
        self.in_flight.finish(request.sector, request.generation);
        if self.spare.len() < 64 {
            self.spare.push(request);
        }
    }
}
