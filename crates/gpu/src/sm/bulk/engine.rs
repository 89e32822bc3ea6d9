//! When requests of the TMA engine leave, and when its commands are complete (timing mode).
//!
//! The engine takes one command after the other. It asks L2 for one line after the other, past L1, and the
//! requests of a command follow those of the command before. A load is complete a while after its last line has
//! come, a store a while after its last line has left.
//!
//! Start reading at `BulkEngine::read`.

use std::collections::{BTreeMap, VecDeque};

use lockstep_engine::Outbox;
use lockstep_units::Hertz;
use serde::{Deserialize, Serialize};

use super::Arrival;
use super::footprint::TouchedLine;
use super::groups::Groups;
use crate::memory::{LINE, SECTOR};
use crate::message::{ClusterRequest, Message, StrongRequest};
use crate::sm::cta::Block;
use crate::sm::issue_model::IssueModel;
use crate::sm::lsu::port::Port;
use crate::sm::now::{Now, PENDING};
use crate::sm::report;
use crate::sm::state::SmState;

/// From the issue of a load to its first request, and from its last line to the mbarrier. Estimates: an H200
/// takes about 170 cycles longer than for a load through L1, and as long with a tensor map that it knows as
/// without (`validation/hardware/h200/tma/latency.csv`); how the time is divided is not known.
const LOAD_START: u64 = 90;
const LOAD_LANDS: u64 = 80;
/// Between two lines of a load: rows of 16 bytes come one a cycle on an H200.
const LOAD_INTERVAL: u64 = 1;
/// From the issue of a store or a reduction to its first request; an estimate.
const STORE_START: u64 = 10;
/// A store takes a cycle a sector, and two for one that it writes in part: 32 KiB take 1,024 cycles on an H200,
/// 256 rows of 16 bytes 512. Its group ends with the last of them.
const STORE_SECTOR: u64 = 1;
/// From the request of a store to its arrival; an estimate.
const STORE_ARRIVES: u64 = 420;
/// A reduction takes a cycle a sector and one a line: 32 KiB take 1,280 cycles on an H200.
const REDUCE_SECTOR: u64 = 1;

/// Marks the number of a request as the engine's.
pub const BULK_REQUEST: u32 = 1 << 31;
/// Where the number of sectors stands in it.
const SECTORS_SHIFT: u32 = 28;
/// A request that nobody waits for.
const NO_LOAD: u32 = (1 << SECTORS_SHIFT) - 1;

/// A load that begins.
pub(super) struct Load {
    /// What the mbarrier of the own block is told.
    pub own: Option<Arrival>,
    /// What other blocks of the cluster receive, and on which SM.
    pub others: Vec<(u32, Box<ClusterRequest>)>,
}

/// Where bytes go to when they have come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Landing {
    own: Option<Arrival>,
    others: Vec<(u32, Box<ClusterRequest>)>,
    /// The block that asked: another one may be in its slot by now.
    launch: u32,
    index: u64,
}

/// A load whose lines have not all come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Loading {
    /// Taken when it has landed.
    landing: Option<Landing>,
    remaining: u32,
    ready: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Request {
    Read {
        line: u64,
        sectors: u8,
        load: u32,
    },
    Write {
        line: u64,
        sectors: u8,
        partial: u8,
    },
    Strong {
        request: Box<StrongRequest>,
        warp: u8,
    },
}

/// A request that leaves at a cycle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Departure {
    at: u64,
    tag: u8,
    request: Request,
}

/// The engine of one SM.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct BulkEngine {
    /// Bytes that came with the instruction itself (functional mode); looked at when it has been executed.
    #[serde(skip)]
    pub arrived: Vec<Arrival>,
    departures: VecDeque<Departure>,
    loads: Vec<Loading>,
    free_loads: Vec<u32>,
    /// By cycle, then in the order in which they were known.
    landings: BTreeMap<(u64, u32), Landing>,
    sequence: u32,
    /// When the next request may leave.
    next: u64,
    /// Groups by warp slot.
    pub groups: Groups,
}

impl BulkEngine {
    /// When something happens next.
    #[must_use]
    #[inline]
    pub fn due(&self) -> u64 {
        if self.departures.is_empty() && self.landings.is_empty() {
            return PENDING;
        }
        let leaves = self.departures.front().map_or(PENDING, |first| first.at);
        let lands = self.landings.keys().next();
        leaves.min(lands.map_or(PENDING, |(at, _)| *at))
    }

    /// Whether a command is under way.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.due() != PENDING || self.loads.len() > self.free_loads.len()
    }

    /// A load of some lines begins.
    pub(super) fn read(
        &mut self,
        load: Load,
        lines: &[TouchedLine],
        block: &mut Block,
        cycle: u64,
    ) {
        let landing = Landing {
            own: load.own,
            others: load.others,
            launch: block.launch,
            index: block.index,
        };
        let start = cycle + LOAD_START;
        if lines.is_empty() {
            self.land(start + LOAD_LANDS, landing);
            return;
        }
        let loading = Loading {
            landing: Some(landing),
            remaining: lines.len() as u32,
            ready: 0,
        };
        let load = match self.free_loads.pop() {
            Some(number) => {
                self.loads[number as usize] = loading;
                number
            }
            None => {
                self.loads.push(loading);
                self.loads.len() as u32 - 1
            }
        };
        self.ask(lines, load, start, block);
    }

    /// A prefetch to L2 of some lines begins.
    pub(super) fn prefetch(&mut self, lines: &[TouchedLine], block: &mut Block, cycle: u64) {
        self.ask(lines, NO_LOAD, cycle + LOAD_START, block);
    }

    fn ask(&mut self, lines: &[TouchedLine], load: u32, start: u64, block: &mut Block) {
        for line in lines {
            let request = Request::Read {
                line: line.line,
                sectors: line.sectors(),
                load,
            };
            self.depart(start, LOAD_INTERVAL, request, block);
        }
    }

    /// A store of some lines begins.
    pub(super) fn write(&mut self, lines: &[TouchedLine], slot: u8, block: &mut Block, cycle: u64) {
        for line in lines {
            let (sectors, partial) = (line.sectors(), line.partial());
            let interval = u64::from(sectors.count_ones() + partial.count_ones()) * STORE_SECTOR;
            let request = Request::Write {
                line: line.line,
                sectors,
                partial,
            };
            self.depart(cycle + STORE_START, interval, request, block);
        }
        self.groups.add(slot, self.next.max(cycle + STORE_START));
    }

    /// A reduction begins, whose requests are counted as under way already.
    pub(super) fn reduce(
        &mut self,
        requests: impl IntoIterator<Item = Box<StrongRequest>>,
        slot: u8,
        block: &mut Block,
        cycle: u64,
    ) {
        let mut last = None;
        for request in requests {
            let line = request.sector * SECTOR / LINE;
            let new = u64::from(last.replace(line) != Some(line));
            let request = Request::Strong {
                request,
                warp: slot,
            };
            self.depart(cycle + STORE_START, REDUCE_SECTOR + new, request, block);
        }
        self.groups.add(slot, self.next.max(cycle + STORE_START));
    }

    fn depart(&mut self, start: u64, interval: u64, request: Request, block: &mut Block) {
        let at = start.max(self.next);
        self.next = at + interval;
        // A block does not end before what it asked for has left.
        let arrives = match request {
            Request::Write { .. } => at + STORE_ARRIVES,
            _ => at + 1,
        };
        block.stored = block.stored.max(arrives);
        let tag = block.tag;
        self.departures.push_back(Departure { at, tag, request });
    }

    fn land(&mut self, at: u64, landing: Landing) {
        self.landings.insert((at, self.sequence), landing);
        self.sequence = self.sequence.wrapping_add(1);
    }

    /// Sectors of a request came, and are written at a cycle.
    fn receive(&mut self, load: u32, at: u64) {
        let loading = &mut self.loads[load as usize];
        loading.remaining -= 1;
        loading.ready = loading.ready.max(at);
        if loading.remaining == 0 {
            let at = loading.ready + LOAD_LANDS;
            let landing = loading.landing.take();
            self.free_loads.push(load);
            if let Some(landing) = landing {
                self.land(at, landing);
            }
        }
    }

    /// Takes the next request that is due.
    fn next_departure(&mut self, cycle: u64) -> Option<Departure> {
        let first = self.departures.front()?;
        if first.at > cycle {
            return None;
        }
        self.departures.pop_front()
    }

    /// Takes the next load that is complete.
    fn next_landing(&mut self, cycle: u64) -> Option<Landing> {
        let first = self.landings.first_entry()?;
        (first.key().0 <= cycle).then(|| first.remove())
    }
}

/// Sends a request of the engine.
fn send(
    port: &mut Port,
    departure: Departure,
    clock: Hertz,
    now: Now,
    outbox: &mut Outbox<'_, Message>,
) {
    let (at, tag) = (departure.at.max(now.cycle), departure.tag);
    match departure.request {
        Request::Read {
            line,
            sectors,
            load,
        } => {
            let count = sectors.count_ones().max(1) - 1;
            let number = BULK_REQUEST | count << SECTORS_SHIFT | load;
            port.send_read(line, sectors, number, tag, at, clock, outbox);
        }
        Request::Write {
            line,
            sectors,
            partial,
        } => port.send_write(line, sectors, partial, tag, at, clock, outbox),
        Request::Strong { request, warp } => port.send_started(request, warp, now, outbox),
    }
}

impl SmState {
    /// Sends the requests of the TMA engine that are due, and lets loads land.
    pub(in crate::sm) fn run_bulk<M: IssueModel>(
        &mut self,
        model: &mut M,
        now: Now,
        outbox: &mut Outbox<'_, Message>,
    ) {
        let clock = self.parameters.clock;
        while let Some(departure) = self.port.bulk.next_departure(now.cycle) {
            send(&mut self.port, departure, clock, now, outbox);
        }
        while let Some(landing) = self.port.bulk.next_landing(now.cycle) {
            self.progress = now.cycle;
            for (sm, request) in landing.others {
                self.port.send_bulk_to_cluster(sm, request, now, outbox);
            }
            let Some(arrival) = landing.own else {
                continue;
            };
            let owner = self.blocks.blocks[usize::from(arrival.block)].as_ref();
            let there =
                |owner: &Block| (owner.launch, owner.index) == (landing.launch, landing.index);
            if owner.is_some_and(|owner| there(owner)) {
                self.bulk_arrived(model, arrival, now);
            }
        }
    }

    /// Bytes have come for an mbarrier.
    #[inline(never)]
    pub(in crate::sm) fn bulk_arrived<M: IssueModel>(
        &mut self,
        model: &mut M,
        arrival: Arrival,
        now: Now,
    ) {
        let Arrival {
            block,
            barrier,
            bytes,
        } = arrival;
        if let Err(kind) = self.complete_tx(model, block, barrier, bytes, now) {
            report::fail_block(self, block, kind, now);
        }
    }

    /// Sectors that the TMA engine asked for came from L2.
    pub(in crate::sm) fn receive_bulk<M: IssueModel>(
        &mut self,
        model: &mut M,
        number: u32,
        now: Now,
    ) {
        let sectors = u64::from(number >> SECTORS_SHIFT & 3) + 1;
        let load = number & NO_LOAD;
        if load != NO_LOAD {
            let at = model.receive_strong(sectors * SECTOR, now.cycle);
            self.port.bulk.receive(load, at);
        }
    }
}
