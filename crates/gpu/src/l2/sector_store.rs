//! The sectors that a slice holds, and the DRAM channel behind them.
//!
//! Every look-up says when its sectors can leave the slice. Nothing here knows who asks or what a
//! reply is; [`L2Slice`](super::L2Slice) does.
//!
//! Where the cache has two partitions, each keeps copies of lines whose home is in the other one, for
//! its own SMs. A copy lies in the slice of the other partition at the same place; as both partitions
//! do this alike, the copy is booked in the home slice itself, under a key of its own, and no message
//! passes between partitions.
//!
//! Start reading at [`SectorStore::look_up`], then [`SectorStore::write`].

use std::ops::Range;
use std::sync::Arc;

use lockstep_engine::{LoadError, Reader, Writer};
use lockstep_units::Time;

use super::fabric::{Direction, FLIT, FabricLanes};
use super::mshr::{self, MshrTable};
use super::parameters::SliceParameters;
use super::partial_sector_tracker::PartialSectorTracker;
use super::peer_port::PeerPort;
use crate::cache::{Evicted, SectorCache};
use crate::dram::{Acceptance, MemoryPort, MemoryRequest, attach};
use crate::memory::SECTOR;
use crate::probe::{Probe, Topic};
use crate::statistics::{AccessStats, BankStats, SliceStats};

/// MSHRs, lanes of the fabric and when the slice goes on, as they are saved.
pub type SavedQueues = (mshr::Saved, FabricLanes, Time);

/// Keys of copies for the other partition.
const FAR_COPY: u64 = 1 << 62;

/// Where a copy engine has what it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DmaSource {
    /// Memory of the host, behind a link.
    Host,
    /// Memory of a GPU, or a value that it repeats.
    Device,
    /// No copy engine, but kernels that took no time. Others have read it since, which nobody followed, so copies
    /// of it stay.
    Kernels,
}

/// A line that a copy engine has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrittenLine {
    /// Number of the line.
    pub line: u64,
    /// Its sectors that were written, a bit each.
    pub sectors: u8,
    /// Those of them of which only some bytes were.
    pub partial: u8,
}

/// Kinds of accesses that are counted apart.
#[derive(Clone, Copy, Debug)]
pub enum AccessKind {
    Load,
    Store,
    StrongLoad,
    StrongStore,
    Atomic,
    Reduction,
    Instruction,
}

impl AccessKind {
    /// As statistics name them, in order.
    pub const NAMES: [&str; 7] = [
        "load",
        "store",
        "strong_load",
        "strong_store",
        "atomic",
        "reduction",
        "instruction",
    ];
}

/// Tags of one slice and its channel.
#[derive(Debug)]
pub struct SectorStore {
    parameters: Arc<SliceParameters>,
    tags: SectorCache,
    /// The last lines of each set that were written in part.
    partial_sectors: PartialSectorTracker,
    dram: Box<dyn MemoryPort>,
    mshrs: MshrTable,
    fabric: FabricLanes,
    /// When the request arrived that is served.
    pub arrived: Time,
    /// When the slice takes up requests again.
    stalled: Time,
    /// The way to the memory of other GPUs, if there are any.
    pub peers: Option<PeerPort>,
    /// When everything that came before is written into the slice.
    pub write_port_free: Time,
    /// What the slice counts.
    pub stats: SliceStats,
    /// What each kind of access found.
    pub accesses: [AccessStats; AccessKind::NAMES.len()],
    /// Somebody who watches the channel.
    probe: Option<Box<Probe>>,
}

impl SectorStore {
    /// Empty, for the slice with a number.
    pub fn new(number: u32, parameters: Arc<SliceParameters>, probe: Option<Box<Probe>>) -> Self {
        let (sets, ways) = parameters.geometry();
        Self {
            tags: SectorCache::new(sets, ways).with_neighbours(parameters.set_neighbours),
            partial_sectors: PartialSectorTracker::new(sets, parameters.partial_lines),
            dram: attach(&parameters.dram, number, parameters.slices),
            mshrs: MshrTable::new(parameters.mshrs, parameters.mshr_targets),
            fabric: FabricLanes::default(),
            arrived: Time::ZERO,
            stalled: Time::ZERO,
            peers: peer_port(&parameters),
            write_port_free: Time::ZERO,
            stats: SliceStats::default(),
            accesses: Default::default(),
            probe,
            parameters,
        }
    }

    /// What each bank of the channel counted.
    pub fn banks(&self) -> impl Iterator<Item = &BankStats> {
        self.dram.banks().into_iter()
    }

    /// Goes on counting where another store stopped.
    pub fn count_on(&mut self, old: &Self) {
        self.stats = old.stats.clone();
        self.accesses = old.accesses.clone();
        self.dram.count_on(&old.dram.banks());
        if let (Some(peers), Some(old)) = (&mut self.peers, &old.peers) {
            peers.stats = old.stats.clone();
        }
    }

    /// Takes the place of another store that has nothing to do: it has what that one held.
    pub fn succeed(&mut self, old: &mut Self) {
        self.count_on(old);
        std::mem::swap(&mut self.tags, &mut old.tags);
        std::mem::swap(&mut self.partial_sectors, &mut old.partial_sectors);
        std::mem::swap(&mut self.dram, &mut old.dram);
    }

    /// Counts what an access found; `known` if its line was here.
    #[inline]
    pub fn found(&mut self, kind: AccessKind, sectors: u8, missing: u8, known: bool) {
        self.accesses[kind as usize].look_up(sectors, missing, known);
    }

    /// Invalidates everything, written or not.
    pub fn invalidate_all(&mut self) {
        self.tags.clear();
        self.partial_sectors.clear();
    }

    /// Invalidates a line and the copy of it, written or not.
    pub fn invalidate(&mut self, line: u64) {
        self.tags.invalidate(line);
        self.tags.invalidate(line | FAR_COPY);
    }

    /// Invalidates all lines of a range, and the copies of them.
    pub fn invalidate_range(&mut self, lines: &Range<u64>) {
        self.tags.retain(|key| !lines.contains(&(key & !FAR_COPY)));
    }

    /// Finds sectors here, in the copies of the other partition, or in DRAM. Says when they can
    /// leave and how many were found at the first place looked at.
    pub fn look_up(
        &mut self,
        kind: AccessKind,
        line: u64,
        sectors: u8,
        far: bool,
        begin: Time,
    ) -> (Time, u32) {
        if !far || self.is_foreign(line) {
            return self.look_up_home(Some(kind), line, sectors, begin, true);
        }
        let mut missing = sectors;
        let mut at = begin + self.parameters.hit_latency;
        let mut place = self.tags.find(line | FAR_COPY);
        if let Some(place) = place {
            let known = self.tags.line(place);
            missing &= !known.present;
            if missing != sectors && Time(known.filled) > at {
                at = Time(known.filled);
                if missing == 0 {
                    self.wait_for_fill(line, begin, true);
                }
            }
        }
        let hits = (sectors & !missing).count_ones();
        self.found(kind, sectors, missing, place.is_some());
        if missing != 0 {
            // Whole bursts cross to the other partition, as they come from DRAM.
            let present = place.map_or(0, |place| self.tags.line(place).present);
            missing = self.whole_bursts(missing) & !present;
            let crossing = u64::from(missing.count_ones());
            self.stats.fabric_sectors.add(crossing);
            let asked = self.cross(Direction::In, 1, begin);
            let lane = self.cross(Direction::Out, crossing, begin);
            let (home, found) = self.look_up_home(None, line, missing, begin, false);
            self.stats.fabric_hits.add(u64::from(found));
            let leaves = (home + asked.since(begin)).max(lane);
            at = at.max(leaves + self.parameters.far_latency);
            // Looking up the home may have moved lines.
            place = self.tags.find(line | FAR_COPY);
            if place.is_none()
                && let Some((new, old)) = self.tags.insert(line | FAR_COPY)
            {
                place = Some(new);
                self.write_back(old, begin);
            }
            if let Some(place) = place {
                let known = self.tags.line_mut(place);
                known.present |= missing;
                known.filled = at.0;
            }
        }
        (at, hits)
    }

    /// Finds sectors here or in DRAM. Who reads from this partition (`own`) is content with the
    /// bytes that are known of a sector that was written in part, if the slice keeps them for that.
    pub fn look_up_home(
        &mut self,
        kind: Option<AccessKind>,
        line: u64,
        sectors: u8,
        begin: Time,
        own: bool,
    ) -> (Time, u32) {
        let hit = begin + self.parameters.hit_latency;
        if let Some(peers) = &mut self.peers
            && let Some(port) = peers.port_of(line)
        {
            let at = peers.read(port, sectors, hit);
            if let Some(kind) = kind {
                self.found(kind, sectors, sectors, false);
            }
            return (at, 0);
        }
        let here = self.tags.find(line);
        let place = match here {
            Some(place) => Some(place),
            None => self.tags.insert(line).map(|(place, old)| {
                self.write_back(old, begin);
                if !own {
                    // The other partition has its copy; here nobody has asked for it.
                    self.tags.move_to_lru(place);
                }
                place
            }),
        };
        let Some(place) = place else {
            return (hit, sectors.count_ones());
        };
        let known = *self.tags.line(place);
        let readable = if own { known.readable } else { 0 };
        let missing = sectors & (!known.present | known.partial & !readable);
        let hits = (sectors & !missing).count_ones();
        if let Some(kind) = kind {
            self.found(kind, sectors, missing, here.is_some());
        }
        // Atomics wait in their unit, which holds up nobody else.
        let pipelined = !matches!(kind, Some(AccessKind::Atomic | AccessKind::Reduction));
        let mut at = hit;
        if missing != sectors {
            at = at.max(Time(known.filled));
            if missing == 0 && at > hit {
                self.wait_for_fill(line, begin, pipelined);
            }
        }
        if missing != 0 {
            let fetched = self.whole_bursts(missing) & (!known.present | known.partial);
            let count = fetched.count_ones();
            let hit = self.open_mshr(line, begin, pipelined) + self.parameters.hit_latency;
            let filled = self.dram(hit, line, fetched, false);
            let fill = self.parameters.write_sector * u64::from(count);
            self.write_port_free = hit.max(self.write_port_free) + fill;
            at = at.max(filled).max(self.write_port_free);
            self.mshrs.filled(line, at);
            let known = self.tags.line_mut(place);
            known.present |= fetched;
            known.partial &= !fetched;
            known.readable &= known.partial;
            known.filled = known.filled.max(at.0);
        }
        (at, hits)
    }

    /// When the slice takes up requests again.
    #[inline(always)]
    pub fn stalled(&self) -> Time {
        self.stalled
    }

    /// The slice takes up nothing until a time.
    fn stall(&mut self, until: Time) {
        self.stalled = self.stalled.max(until);
    }

    /// Flits cross the fabric between the partitions. Says when they have their lane.
    pub fn cross(&mut self, direction: Direction, flits: u64, at: Time) -> Time {
        let counted = match direction {
            Direction::In => &mut self.stats.fabric_bytes_in,
            Direction::Out => &mut self.stats.fabric_bytes_out,
        };
        counted.add(flits * FLIT);
        let parameters = self.parameters.fabric;
        let arrived = self.arrived;
        let crossing = self.fabric.cross(parameters, direction, flits, arrived, at);
        if let Some(until) = crossing.stalls {
            self.stats.fabric_stalls.increment();
            self.stall(until);
        }
        crossing.at
    }

    /// Gives a miss its MSHR. Says when it has one; what passes the pipeline of the slice waits behind it.
    fn open_mshr(&mut self, line: u64, begin: Time, pipelined: bool) -> Time {
        let opened = self.mshrs.open(line, begin);
        match opened.merged {
            true => self.stats.mshr_merges.increment(),
            false => self.stats.mshr_allocations.increment(),
        }
        if opened.at > begin {
            self.stats.mshr_stalls.increment();
            if pipelined {
                self.stall(opened.at);
            }
        }
        opened.at
    }

    /// A request waits in the MSHR of its line for sectors that are on their way.
    fn wait_for_fill(&mut self, line: u64, begin: Time, pipelined: bool) {
        let waits = self.mshrs.merge(line, begin);
        if waits.merged {
            self.stats.mshr_merges.increment();
        } else if waits.at > begin {
            self.stats.mshr_stalls.increment();
            if pipelined {
                self.stall(waits.at);
            }
        }
    }

    /// What waits, as it is saved.
    pub fn saved_queues(&self) -> SavedQueues {
        (self.mshrs.saved(), self.fabric.clone(), self.stalled)
    }

    /// Takes on what waited when it was saved.
    ///
    /// # Errors
    /// If it cannot be.
    pub fn restore_queues(&mut self, saved: SavedQueues) -> Result<(), LoadError> {
        let (mshrs, fabric, stalled) = saved;
        (self.fabric, self.stalled) = (fabric, stalled);
        self.mshrs.restore(mshrs)
    }

    /// The link to the host reads all sectors of a line, and takes the line with it.
    pub fn read_out(&mut self, line: u64, sectors: u8, begin: Time) {
        let known = self.tags.find(line).map(|place| *self.tags.line(place));
        let here = known.map_or(0, |line| line.present & !line.partial);
        let missing = sectors & !here;
        self.stats.read_sectors.add(u64::from(sectors.count_ones()));
        self.stats.read_hits.add(u64::from(here.count_ones()));
        if missing != 0 {
            self.dram(begin, line, missing, false);
        }
        self.invalidate(line);
    }

    /// The sectors of all bursts that some sectors lie in.
    fn whole_bursts(&self, sectors: u8) -> u8 {
        match self.parameters.burst {
            0 | 1 => sectors,
            2 => sectors | (sectors & 0b0101) << 1 | (sectors & 0b1010) >> 1,
            _ => 0xf,
        }
    }

    /// Whether a line belongs to another GPU.
    fn is_foreign(&self, line: u64) -> bool {
        let port = self.peers.as_ref().and_then(|peers| peers.port_of(line));
        port.is_some()
    }

    /// Sectors are written; what is evicted for them is written back. Says when another GPU has
    /// acknowledged them, if they are in its memory.
    pub fn write(
        &mut self,
        kind: Option<AccessKind>,
        line: u64,
        sectors: u8,
        partial: u8,
        begin: Time,
    ) -> Option<Time> {
        if let Some(peers) = &mut self.peers
            && let Some(port) = peers.port_of(line)
        {
            if let Some(kind) = kind {
                self.accesses[kind as usize].look_up(sectors, sectors, false);
            }
            return Some(peers.write(port, sectors, begin));
        }
        let old = self.book_write(kind, line, sectors, partial);
        self.write_back(old, begin);
        None
    }

    /// A copy engine has written lines. What has to leave for them does so in the copy's own time.
    pub fn dma_written(&mut self, source: DmaSource, lines: &[WrittenLine]) {
        for written in lines {
            let leaves_first = source == DmaSource::Host && self.tags.find(written.line).is_none();
            let (line, sectors, partial) = (written.line, written.sectors, written.partial);
            let _ = match source {
                DmaSource::Kernels => self.mark_written(None, line, sectors, partial),
                DmaSource::Host | DmaSource::Device => {
                    self.book_write(None, line, sectors, partial)
                }
            };
            if leaves_first && let Some(place) = self.tags.find(written.line) {
                self.tags.leave_first(place);
            }
        }
    }

    /// Books that sectors were written; says which line had to leave for it.
    fn book_write(
        &mut self,
        kind: Option<AccessKind>,
        line: u64,
        sectors: u8,
        partial: u8,
    ) -> Option<Evicted> {
        if self.parameters.partitions > 1
            && let Some(copy) = self.tags.find(line | FAR_COPY)
        {
            self.tags.line_mut(copy).present &= !sectors;
        }
        self.mark_written(kind, line, sectors, partial)
    }

    /// The same without regard to the copy of the line in the other partition.
    fn mark_written(
        &mut self,
        kind: Option<AccessKind>,
        line: u64,
        sectors: u8,
        partial: u8,
    ) -> Option<Evicted> {
        let here = self.tags.find(line);
        let (place, old) = match here {
            Some(place) => (place, None),
            None => self.tags.insert(line)?,
        };
        let known = self.tags.line_mut(place);
        if let Some(kind) = kind {
            let missing = sectors & !known.present;
            self.accesses[kind as usize].look_up(sectors, missing, here.is_some());
        }
        let whole = sectors & !partial;
        let fresh = partial & !known.present;
        known.partial = known.partial & !whole | fresh;
        known.readable &= known.partial;
        known.present |= sectors;
        known.dirty |= sectors;
        if fresh != 0 {
            self.partial_sectors.note(&mut self.tags, place, line);
        }
        old
    }

    /// Writes back the dirty sectors of a line that had to leave.
    fn write_back(&mut self, old: Option<Evicted>, at: Time) {
        if let Some(old) = old
            && old.line.dirty != 0
        {
            self.dram(at, old.key, old.line.dirty, true);
            let queued = Time(
                self.dram
                    .busy_until()
                    .0
                    .saturating_sub(self.parameters.write_back_queue.0),
            );
            self.write_port_free = self.write_port_free.max(queued);
        }
    }

    fn dram(&mut self, at: Time, line: u64, sectors: u8, write: bool) -> Time {
        let bytes = u64::from(sectors.count_ones()) * SECTOR;
        if write {
            self.stats.dram_written.add(bytes);
        } else {
            self.stats.dram_read.add(bytes);
        }
        let [hits, misses] = self.dram.rows();
        let request = MemoryRequest {
            line,
            sectors,
            write,
        };
        let mut at = at;
        let done = loop {
            match self.dram.accept(at, request) {
                Acceptance::Accepted { done } => break done,
                // It waits in its MSHR, or among the lines that are written back.
                Acceptance::Refused { until } => {
                    self.stats.dram_refusals.increment();
                    at = until;
                }
            }
        };
        let [hits_now, misses_now] = self.dram.rows();
        if let Some(probe) = &self.probe {
            let open = hits_now > hits;
            let dram = &self.dram;
            probe.note(Topic::Dram, at, || {
                let what = if write { "write" } else { "read" };
                let (bank, row) = dram.place(line);
                let row_is = if open { "open" } else { "opened" };
                let done = probe.cycle(done);
                let sectors = sectors.count_ones();
                format!("{what} {sectors} sectors, bank {bank}, row {row} {row_is}, data at {done}")
            });
        }
        self.stats.row_hits.add(hits_now - hits);
        self.stats.row_misses.add(misses_now - misses);
        done
    }

    /// Writes tags and the state of the channel.
    pub fn save(&self, writer: &mut Writer<'_>) {
        writer.write(&self.tags.saved());
        writer.write(&self.partial_sectors);
        self.dram.save(writer);
        if let Some(peers) = &self.peers {
            peers.save(writer);
        }
    }

    /// Takes on what `save` wrote.
    ///
    /// # Errors
    /// If the bytes are not what it wrote for a slice like this one.
    pub fn load(&mut self, reader: &mut Reader<'_>) -> Result<(), LoadError> {
        let malformed = |what| LoadError::Malformed { what };
        let (sets, ways) = self.parameters.geometry();
        let lines = sets as usize * ways as usize;
        let empty = SectorCache::new(sets, 0).with_neighbours(self.parameters.set_neighbours);
        self.tags = SectorCache::from_saved(&reader.read()?, empty, lines)
            .ok_or(malformed("tags of another cache"))?;
        let partial: PartialSectorTracker = reader.read()?;
        if !partial.fits(sets, self.parameters.partial_lines) {
            return Err(malformed("another number of lines known in part"));
        }
        self.partial_sectors = partial;
        self.dram.load(reader)?;
        match &mut self.peers {
            Some(peers) => peers.load(reader),
            None => Ok(()),
        }
    }
}

/// The way of a slice to the memory of other GPUs; there is none where nothing takes time.
fn peer_port(parameters: &SliceParameters) -> Option<PeerPort> {
    let links = parameters.peers.as_ref().filter(|_| parameters.timed)?;
    Some(PeerPort::new(
        links,
        parameters.slices,
        parameters.hit_latency,
    ))
}

#[cfg(test)]
mod tests {
    use super::super::parameters::parameters_for_tests;
    use super::*;

    /// The store of a slice with so many sets and ways, two partitions, and bursts of two sectors.
    fn store(sets: u32, ways: u32) -> SectorStore {
        let parameters = SliceParameters {
            sets,
            ways,
            ..parameters_for_tests()
        };
        assert_eq!((parameters.partitions, parameters.burst), (2, 2));
        SectorStore::new(0, Arc::new(parameters), None)
    }

    const LOAD: AccessKind = AccessKind::Load;
    const LATER: Time = Time(1 << 50);

    #[test]
    fn a_miss_fetches_a_burst_and_the_next_look_up_hits() {
        let mut store = store(64, 16);
        let (missed, hits) = store.look_up(LOAD, 7, 0b0001, false, Time::ZERO);
        assert_eq!((hits, store.stats.dram_read.get()), (0, 64));
        assert!(missed > Time::ZERO + store.parameters.hit_latency);
        let (hit, hits) = store.look_up(LOAD, 7, 0b0011, false, LATER);
        assert_eq!((hits, store.stats.dram_read.get()), (2, 64));
        assert_eq!(hit, LATER + store.parameters.hit_latency);
    }

    #[test]
    fn the_other_partition_keeps_a_copy_until_somebody_writes() {
        let mut store = store(64, 16);
        store.look_up(LOAD, 7, 0b0001, true, Time::ZERO);
        assert_eq!(store.stats.fabric_sectors.get(), 2, "a burst crosses");
        assert_eq!(store.look_up(LOAD, 7, 0b0001, true, LATER).1, 1);
        assert_eq!(store.stats.fabric_sectors.get(), 2, "the copy is enough");
        store.write(None, 7, 0b0001, 0, LATER);
        assert_eq!(store.look_up(LOAD, 7, 0b0001, true, LATER).1, 0);
        assert_eq!(store.stats.fabric_hits.get(), 1, "the home has it");
    }

    #[test]
    fn dirty_sectors_are_written_back_when_their_line_is_evicted() {
        let mut store = store(1, 1);
        store.write(None, 7, 0b0111, 0, Time::ZERO);
        store.look_up(LOAD, 8, 0b0001, false, Time::ZERO);
        assert_eq!(store.stats.dram_written.get(), 96);
        store.look_up(LOAD, 9, 0b0001, false, Time::ZERO);
        assert_eq!(store.stats.dram_written.get(), 96, "the second was clean");
    }

    #[test]
    fn what_is_invalidated_is_not_written_back() {
        let mut store = store(1, 2);
        store.write(None, 7, 0b0001, 0, Time::ZERO);
        store.write(None, 8, 0b0001, 0, Time::ZERO);
        store.invalidate(7);
        store.invalidate_range(&(8..9));
        assert_eq!(store.look_up(LOAD, 8, 0b0001, false, LATER).1, 0);
        store.look_up(LOAD, 9, 0b0001, false, LATER);
        assert_eq!(store.stats.dram_written.get(), 0);
    }
}
