//! One L2 slice with its part of memory.
//!
//! A slice performs strong accesses in the order in which they arrive: due, sender, sequence. It
//! sees contents and its own results of this epoch, and every sector has one home, so all SMs
//! agree on the order. Weak reads and writes pass only for their time.
//!
//! Modelled: tags by line and sector, write-back, the bandwidth of the slice, the rate of atomics,
//! the DRAM channel behind it. Where the cache has two halves, each half keeps copies of lines
//! whose home is in the other one, for its own SMs. A copy lies in the slice of the other half at
//! the same place; as both halves do this alike, the copy is booked in the home slice itself, under
//! a key of its own, and no message passes between halves. SMs of a group that want the same sectors
//! at about the same time reach a slice with one request, and the answer goes to all of them
//! (`merge`).
//!
//! Start reading at [`L2Slice::run`], then [`L2Slice::read`].

use std::ops::Range;
use std::sync::Arc;

use lockstep_engine::{
    Inbox, LinkId, LoadError, Outbox, PartitionId, Reader, Wake, Window, Writer,
};
use lockstep_isa::memory::{AtomicOperation, AtomicType};
use lockstep_isa::semantics::atomic;
use lockstep_units::{Bytes, Duration, Time};

use super::end_of_kernel_flush::EndOfKernelFlush;
use super::partial_sector_tracker::PartialSectorTracker;
use super::replies::{Replies, Reply};
use super::requests::Requests;
use crate::cache::{Evicted, SectorCache, mix};
use crate::crossbar::Egress;
use crate::dram::{Dram, DramParameters, place};
use crate::gpc::{AtomicArbiter, GpcReadArbiter, GpcRequestCoalescer, GroupPlaces, atomic_arbiter};
use crate::gpu::DmaWrittenLine;
use crate::memory::{Contents, Home, LINE, Log, PAGE, SECTOR, SectorBytes};
use crate::message::{CarriedLines, LaneAccess, Message, StrongAction, StrongRequest};
use crate::probe::{Probe, Topic};
use crate::sm::front_end::fetch::CODE_LINES;
use crate::statistics::SliceStats;

/// Keys of copies for the other half.
const COPY: u64 = 1 << 62;

/// Lines of neighbouring addresses that are in neighbouring sets. Measured on an H200 (`streams.cu`, 48
/// MiB): a seventh of the lines miss, but only a third of the loads of four lines.
const NEIGHBOURS: u32 = 8;

/// So much of what leaves the cache waits at the channel before the cache waits for it. An estimate:
/// whatever it is, streams of writes run at the rate of DRAM (`write_bandwidth`).
const WRITE_QUEUE: Duration = Duration(200_000_000);

/// What a slice is made with.
#[derive(Clone, Debug)]
pub struct SliceParameters {
    /// Whether anything takes time.
    pub timed: bool,
    /// Slice to SM.
    pub reply: Egress,
    /// Slice to dispatcher.
    pub drained: LinkId,
    /// Bytes around the payload of a packet.
    pub header: u64,
    /// From accepting a read that hits to its answer.
    pub hit: Duration,
    /// From accepting an atomic or a reduction to its answer.
    pub atomic: Duration,
    /// The way to the other half and back.
    pub far: Duration,
    /// How long the slice is busy with one sector.
    pub sector: Duration,
    /// How long it is busy with one request at least.
    pub request: Duration,
    /// How long after a read its answer serves others of the same group.
    pub merge: Duration,
    /// Groups of SMs.
    pub places: GroupPlaces,
    /// The half of the cache that each group is at.
    pub half_of_group: Vec<u32>,
    /// How much longer the way of each pair of SMs is than that of most; none where it is not named.
    pub pair_ways: Vec<Duration>,
    /// How much longer the longest way between a group and a slice is than the shortest.
    pub spread: Duration,
    /// How long a sector takes that is written into it, by an SM or from DRAM.
    pub write_sector: Duration,
    /// How long it is busy with a request that writes sectors in part, besides the sectors.
    pub write_part: Duration,
    /// How long it is busy with a sector of an atomic.
    pub atomic_sector: Duration,
    /// How long with the sector beside it, if that comes along.
    pub atomic_neighbour: Duration,
    /// How long it is busy with each lane that wants the same word.
    pub atomic_lane: Duration,
    /// The same if the atomic before was on another line.
    pub atomic_other_line: Duration,
    /// As `atomic_lane` if numbers with a fraction are added.
    pub atomic_float_lane: Duration,
    /// Sets of the slice.
    pub sets: u32,
    /// Lines of a set.
    pub ways: u32,
    /// Sectors that DRAM delivers together.
    pub burst: u32,
    /// Lines of a set that may be known in part and unread; any number with none.
    pub partial_lines: u32,
    /// Halves of the cache.
    pub halves: u32,
    /// Slices of the cache.
    pub slices: u32,
    /// Which slice an address belongs to.
    pub home: Home,
    /// Number of the first SM's partition.
    pub first_sm: u32,
    /// The channel behind it.
    pub dram: DramParameters,
}

/// One L2 slice.
#[derive(Debug)]
pub struct L2Slice {
    parameters: Arc<SliceParameters>,
    contents: Arc<Contents>,
    log: Log,
    number: u32,
    /// Which half it is in.
    half: u32,
    /// How much longer the way to each group is than the shortest.
    distances: Vec<Duration>,
    tags: SectorCache,
    /// The last lines of each set that were written in part.
    parts: PartialSectorTracker,
    dram: Dram,
    /// When the slice has passed on what came before.
    free: Time,
    /// When everything that came before is written into it.
    written: Time,
    /// Whose read is next.
    turns: GpcReadArbiter,
    /// Whose atomic is next.
    atomics: AtomicArbiter,
    recent: GpcRequestCoalescer,
    contacts: EndOfKernelFlush,
    requests: Requests,
    replies: Replies,
    sequence: u64,
    stats: SliceStats,
    /// Somebody who watches.
    probe: Option<Box<Probe>>,
}

impl L2Slice {
    /// An idle slice.
    #[must_use]
    pub fn new(
        number: u32,
        parameters: Arc<SliceParameters>,
        contents: Arc<Contents>,
        probe: Option<Box<Probe>>,
    ) -> Self {
        let (sets, ways) = if parameters.timed {
            (parameters.sets, parameters.ways)
        } else {
            (0, 0)
        };
        let distances = (0..parameters.places.groups())
            .map(|group| way(&parameters, number, group))
            .collect();
        Self {
            number,
            half: number * parameters.halves / parameters.slices.max(1),
            distances,
            tags: SectorCache::new(sets, ways).with_neighbours(NEIGHBOURS),
            parts: PartialSectorTracker::new(sets, parameters.partial_lines),
            dram: Dram::new(&parameters.dram, number, parameters.slices),
            parameters,
            contents,
            log: Log::default(),
            free: Time::ZERO,
            written: Time::ZERO,
            turns: GpcReadArbiter::default(),
            atomics: AtomicArbiter::default(),
            recent: GpcRequestCoalescer::default(),
            contacts: EndOfKernelFlush::default(),
            requests: Requests::default(),
            replies: Replies::default(),
            sequence: 0,
            stats: SliceStats::default(),
            probe,
        }
    }

    /// What it counted.
    #[must_use]
    pub fn stats(&self) -> &SliceStats {
        &self.stats
    }

    /// Goes on counting from there.
    pub fn set_stats(&mut self, stats: SliceStats) {
        self.stats = stats;
    }

    /// Results of this epoch.
    #[must_use]
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Forgets the results, after they were committed.
    pub fn clear_log(&mut self) {
        self.log.clear();
    }

    /// Performs what arrives, and answers what is due.
    pub fn run(
        &mut self,
        window: Window,
        inbox: &mut Inbox<Message>,
        outbox: &mut Outbox<'_, Message>,
    ) -> Wake {
        while let Some(delivery) = inbox.take_in_window() {
            let due = delivery.due;
            let (sender, message) = match delivery.message {
                Message::Packet(packet) => (packet.from, packet.message),
                message => (delivery.sender, message),
            };
            if let Some(probe) = &self.probe {
                probe.note(Topic::Slice, due, || {
                    format!(
                        "{} from {}",
                        message.words(),
                        outbox.topology().name(sender)
                    )
                });
            }
            match message {
                Message::Strong(request) => self.strong(request, sender, due, outbox),
                Message::Read {
                    line,
                    sectors,
                    miss,
                } => {
                    if line < CODE_LINES {
                        self.note(sender);
                    }
                    let group = self.group(sender);
                    let done = Message::ReadDone { miss };
                    let way = self.way_to(sender);
                    if let Some(at) = self.recent.find(line, sectors, group, due) {
                        // The answer is copied where the group branches off.
                        self.stats
                            .merged_sectors
                            .add(u64::from(sectors.count_ones()));
                        self.reply(sender, at, 0, done);
                        continue;
                    }
                    let begin = self.occupy_in_turn(due, sectors.count_ones(), group);
                    let at = self.read(line, sectors, self.is_far(sender), begin) + way;
                    let payload = SECTOR as u32 * sectors.count_ones();
                    self.reply(sender, at, payload, done);
                    let merge = self.parameters.merge;
                    if merge.0 > 0 {
                        self.recent.add(line, sectors, group, at, due + merge);
                    }
                }
                Message::Write {
                    line,
                    sectors,
                    partial,
                } => {
                    self.note(sender);
                    if self.is_far(sender) {
                        let count = u64::from(sectors.count_ones());
                        self.stats.fabric_sectors.add(count);
                        self.stats.fabric_hits.add(count);
                    }
                    self.write(line, sectors, partial, due);
                }
                Message::Forget { first, count } => self.forget(first, count),
                Message::Carried(dma_written) => self.carry(&dma_written, due),
                Message::Drain { launch } => {
                    let at = due.max(self.written);
                    self.stats.contacts.add(u64::from(self.contacts.take()));
                    self.reply(sender, at, 0, Message::Drained { launch });
                }
                Message::Empty => {
                    self.tags.clear();
                    self.parts.clear();
                    self.recent = GpcRequestCoalescer::default();
                }
                other => panic!("a slice was sent {other:?}"),
            }
        }
        let due = self.replies.due(window.end);
        for key in &due {
            let Some(reply) = self.replies.take(*key) else {
                continue;
            };
            let size = Bytes(u64::from(reply.bytes));
            let at = reply.at.max(window.start);
            if let Message::Drained { .. } = reply.message {
                outbox.send(self.parameters.drained, reply.to, at, size, reply.message);
                continue;
            }
            let (port, probe) = (self.parameters.reply, self.probe.as_deref());
            port.send(reply.to, at, size, reply.message, outbox, probe);
        }
        self.replies.put_back(due);
        match self.replies.first() {
            Some(first) => Wake::At(first),
            None => Wake::OnMessage,
        }
    }

    /// Lines come from the host, or go there and are no longer here. A copy engine writes through
    /// the cache, so what came is found in it; what it reads and does not find, DRAM has.
    fn carry(&mut self, dma_written: &CarriedLines, due: Time) {
        const ALL: u8 = 0xf;
        for (page, mask) in &dma_written.lines {
            let mut left = *mask;
            while left != 0 {
                let line = page * (PAGE / LINE) + u64::from(left.trailing_zeros());
                left &= left - 1;
                if dma_written.to_device {
                    self.write(line, ALL, 0, due);
                    continue;
                }
                let begin = self.occupy(due, ALL.count_ones());
                let known = self.tags.find(line).map(|place| *self.tags.line(place));
                let here = known.map_or(0, |line| line.present & !line.partial);
                let missing = ALL & !here;
                self.stats.read_sectors.add(u64::from(ALL.count_ones()));
                self.stats.read_hits.add(u64::from(here.count_ones()));
                if missing != 0 {
                    self.dram(begin, line, missing, false);
                }
                self.tags.remove(line);
                self.tags.remove(line | COPY);
            }
        }
    }

    /// A copy engine has written lines. What has to leave for them does so in the copy's own time.
    pub(crate) fn dma_written(&mut self, lines: &[DmaWrittenLine]) {
        for (line, sectors, partial) in lines {
            let _ = self.mark(*line, *sectors, *partial);
        }
    }

    /// Memory was given back, and what will be allocated there is other memory.
    pub(crate) fn released(&mut self, lines: &Range<u64>) {
        self.tags.retain(|key| !lines.contains(&(key & !COPY)));
    }

    /// Pages have left the device without being wanted: nothing of them is cached here any more.
    fn forget(&mut self, first: u64, count: u32) {
        let home = self.parameters.home;
        let lines = PAGE / LINE;
        for line in first * lines..(first + u64::from(count)) * lines {
            if home.slice(line * LINE) == self.number {
                self.tags.remove(line);
                self.tags.remove(line | COPY);
            }
        }
    }

    /// Whether a sender is in the other half: GPCs are.
    fn is_far(&self, sender: PartitionId) -> bool {
        let p = &self.parameters;
        p.half_of_group[self.group(sender) as usize] != self.half
    }

    /// The group of SMs that a sender is in.
    fn group(&self, sender: PartitionId) -> u32 {
        self.parameters.places.group_of_sm(self.sm_of(sender))
    }

    /// How much longer the way to a sender is than the shortest.
    #[inline]
    fn way_to(&self, sender: PartitionId) -> Duration {
        let pair = self.sm_of(sender) / atomic_arbiter::PAIR;
        let group = self.parameters.places.group(pair);
        let own = self.parameters.pair_ways.get(pair as usize);
        self.distances[group as usize] + own.copied().unwrap_or(Duration::ZERO)
    }

    /// Remembers that an SM has asked, until its launch ends.
    #[inline]
    fn note(&mut self, sender: PartitionId) {
        self.contacts.note(self.sm_of(sender));
    }

    /// The number of an SM that sent something; beyond all of them for who is none.
    #[inline]
    fn sm_of(&self, sender: PartitionId) -> u32 {
        sender.0.wrapping_sub(self.parameters.first_sm)
    }

    /// How long the slice is busy with sectors that are one request.
    fn busy(&self, sectors: u32) -> Duration {
        let p = &self.parameters;
        match sectors {
            0 => Duration::ZERO,
            some => p.request.max(p.sector * u64::from(some)),
        }
    }

    /// Keeps the slice busy for some sectors, and says when it begins with them.
    fn occupy(&mut self, due: Time, sectors: u32) -> Time {
        let begin = due.max(self.free);
        self.free = begin + self.busy(sectors);
        begin
    }

    /// The same for a group of SMs, which takes its turns with others.
    fn occupy_in_turn(&mut self, due: Time, sectors: u32, group: u32) -> Time {
        let busy = self.busy(sectors);
        self.turns.begin(group, due, busy, &mut self.free)
    }

    /// The same for one sector of a strong load. Says also whether it follows others of its request.
    fn occupy_beside(
        &mut self,
        due: Time,
        request: &StrongRequest,
        sender: PartitionId,
    ) -> (Time, bool) {
        let sm = self.sm_of(sender);
        if let Some((begin, before)) = self.requests.follow(sm, request) {
            return (due.max(begin + self.busy(before)), true);
        }
        let sectors = request.of_line.count_ones();
        let begin = self.occupy_in_turn(due, sectors, self.group(sender));
        self.requests.begin(sm, request, begin);
        (begin, false)
    }

    /// Has a packet leave that carries so many bytes.
    fn reply(&mut self, to: PartitionId, at: Time, payload: u32, message: Message) {
        let bytes = (self.parameters.header as u32).saturating_add(payload);
        self.packet(to, at, bytes, message);
    }

    fn packet(&mut self, to: PartitionId, at: Time, bytes: u32, message: Message) {
        if let Some(probe) = &self.probe {
            probe.note(Topic::Slice, at, || format!("answers {}", message.words()));
        }
        self.sequence += 1;
        self.replies.push(Reply {
            at,
            sequence: self.sequence,
            to,
            bytes,
            message,
        });
    }

    /// Reads sectors, as soon as the slice begins with them; says when they can leave.
    fn read(&mut self, line: u64, sectors: u8, far: bool, begin: Time) -> Time {
        let count = sectors.count_ones();
        if line >= CODE_LINES {
            return begin + self.parameters.hit;
        }
        self.stats.read_sectors.add(u64::from(count));
        let (at, hits) = self.look_up(line, sectors, far, begin);
        self.stats.read_hits.add(u64::from(hits));
        at
    }

    /// Finds sectors here, in the copies of the other half, or in DRAM. Says when they can leave
    /// and how many were found at the first place looked at.
    fn look_up(&mut self, line: u64, sectors: u8, far: bool, begin: Time) -> (Time, u32) {
        if !far {
            return self.look_up_home(line, sectors, begin, true);
        }
        let mut missing = sectors;
        let mut at = begin + self.parameters.hit;
        let mut place = self.tags.find(line | COPY);
        if let Some(place) = place {
            let known = self.tags.line(place);
            missing &= !known.present;
            if missing != sectors {
                at = at.max(Time(known.filled));
            }
        }
        let hits = (sectors & !missing).count_ones();
        if missing != 0 {
            // Whole bursts cross to the other half, as they come from DRAM.
            let present = place.map_or(0, |place| self.tags.line(place).present);
            missing = self.whole_bursts(missing) & !present;
            let crossing = u64::from(missing.count_ones());
            self.stats.fabric_sectors.add(crossing);
            let (home, found) = self.look_up_home(line, missing, begin, false);
            self.stats.fabric_hits.add(u64::from(found));
            at = at.max(home + self.parameters.far);
            // Looking up the home may have moved lines.
            place = self.tags.find(line | COPY);
            if place.is_none()
                && let Some((new, old)) = self.tags.insert(line | COPY)
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

    /// Finds sectors here or in DRAM. Who reads from this half (`own`) is content with the bytes
    /// that are known of a sector that was written in part, if the slice keeps them for that.
    fn look_up_home(&mut self, line: u64, sectors: u8, begin: Time, own: bool) -> (Time, u32) {
        let hit = begin + self.parameters.hit;
        let place = match self.tags.find(line) {
            Some(place) => Some(place),
            None => self.tags.insert(line).map(|(place, old)| {
                self.write_back(old, begin);
                if !own {
                    // The other half has its copy; here nobody has asked for it.
                    self.tags.leave_first(place);
                }
                place
            }),
        };
        let Some(place) = place else {
            return (hit, sectors.count_ones());
        };
        let known = *self.tags.line(place);
        let kept = if own { known.kept } else { 0 };
        let missing = sectors & (!known.present | known.partial & !kept);
        let mut at = hit;
        if missing != sectors {
            at = at.max(Time(known.filled));
        }
        if missing != 0 {
            let fetched = self.whole_bursts(missing) & (!known.present | known.partial);
            let count = fetched.count_ones();
            let filled = self.dram(hit, line, fetched, false);
            let p = &self.parameters;
            self.written = hit.max(self.written) + p.write_sector * u64::from(count);
            at = at.max(filled).max(self.written);
            let known = self.tags.line_mut(place);
            known.present |= fetched;
            known.partial &= !fetched;
            known.kept &= known.partial;
            known.filled = known.filled.max(at.0);
        }
        (at, (sectors & !missing).count_ones())
    }

    /// The sectors of all bursts that some sectors lie in.
    fn whole_bursts(&self, sectors: u8) -> u8 {
        match self.parameters.burst {
            0 | 1 => sectors,
            2 => sectors | (sectors & 0b0101) << 1 | (sectors & 0b1010) >> 1,
            _ => 0xf,
        }
    }

    fn write(&mut self, line: u64, sectors: u8, partial: u8, due: Time) {
        let count = sectors.count_ones();
        let in_part = u64::from((sectors & partial).count_ones());
        let begin = due.max(self.free);
        let p = &self.parameters;
        let mut busy = p.write_sector * u64::from(count);
        if in_part > 0 {
            busy += p.write_part;
        }
        self.free = begin + p.request;
        self.written = begin.max(self.written) + busy;
        self.stats.written_sectors.add(u64::from(count));
        self.mark_written(line, sectors, partial, begin);
    }

    fn mark_written(&mut self, line: u64, sectors: u8, partial: u8, begin: Time) {
        let old = self.mark(line, sectors, partial);
        self.write_back(old, begin);
    }

    /// Books that sectors were written; says which line had to leave for it.
    fn mark(&mut self, line: u64, sectors: u8, partial: u8) -> Option<Evicted> {
        if self.parameters.halves > 1
            && let Some(copy) = self.tags.find(line | COPY)
        {
            self.tags.line_mut(copy).present &= !sectors;
        }
        let (place, old) = match self.tags.find(line) {
            Some(place) => (place, None),
            None => self.tags.insert(line)?,
        };
        let known = self.tags.line_mut(place);
        let whole = sectors & !partial;
        let fresh = partial & !known.present;
        known.partial = known.partial & !whole | fresh;
        known.kept &= known.partial;
        known.present |= sectors;
        known.dirty |= sectors;
        if fresh != 0 {
            self.parts.note(&mut self.tags, place, line);
        }
        old
    }

    /// Writes the dirty sectors of a line that had to leave.
    fn write_back(&mut self, old: Option<Evicted>, at: Time) {
        if let Some(old) = old
            && old.line.dirty != 0
        {
            self.dram(at, old.key, old.line.dirty, true);
            let queued = Time(self.dram.busy_until().0.saturating_sub(WRITE_QUEUE.0));
            self.written = self.written.max(queued);
        }
    }

    fn dram(&mut self, at: Time, line: u64, sectors: u8, write: bool) -> Time {
        let bytes = u64::from(sectors.count_ones()) * SECTOR;
        if write {
            self.stats.dram_written.add(bytes);
        } else {
            self.stats.dram_read.add(bytes);
        }
        let (hits, misses) = (self.dram.row_hits, self.dram.row_misses);
        let dram = &self.parameters.dram;
        let done = self.dram.access(dram, at, line, sectors, write);
        if let Some(probe) = &self.probe {
            let open = self.dram.row_hits > hits;
            probe.note(Topic::Dram, at, || {
                let what = if write { "write" } else { "read" };
                let (bank, row) = place(dram, line);
                let row_is = if open { "open" } else { "opened" };
                let done = probe.cycle(done);
                let sectors = sectors.count_ones();
                format!("{what} {sectors} sectors, bank {bank}, row {row} {row_is}, data at {done}")
            });
        }
        self.stats.row_hits.add(self.dram.row_hits - hits);
        self.stats.row_misses.add(self.dram.row_misses - misses);
        done
    }

    /// Performs a strong access and answers it.
    fn strong(
        &mut self,
        mut request: Box<StrongRequest>,
        sender: PartitionId,
        due: Time,
        outbox: &mut Outbox<'_, Message>,
    ) {
        self.perform(&mut request);
        if !self.parameters.timed {
            let message = Message::Performed(request);
            let (port, probe) = (self.parameters.reply, self.probe.as_deref());
            port.send(sender, due, Bytes(0), message, outbox, probe);
            return;
        }
        let (at, follows) = self.strong_time(&request, sender, due);
        let payload = match request.action {
            // The sectors of a line that are one request come in one packet.
            StrongAction::Load if follows => {
                self.packet(sender, at, SECTOR as u32, Message::Performed(request));
                return;
            }
            StrongAction::Load => SECTOR as u32,
            StrongAction::Atomic(_, kind) => kind.bytes() * request.lanes.len() as u32,
            StrongAction::Store | StrongAction::Reduce(..) => 0,
        };
        self.reply(sender, at, payload, Message::Performed(request));
    }

    /// When the answer to a strong access leaves, and whether it follows others of its request.
    fn strong_time(
        &mut self,
        request: &StrongRequest,
        sender: PartitionId,
        due: Time,
    ) -> (Time, bool) {
        let (line, sector) = (request.sector / 4, 1u8 << (request.sector % 4));
        self.note(sender);
        self.stats.strong_sectors.increment();
        if request.action != StrongAction::Load && self.is_far(sender) {
            // Lanes that want the same word cross one after the other, too.
            let rounds = match request.action {
                StrongAction::Store => 1,
                _ => u64::from(most_alike(&request.lanes)),
            };
            self.stats.fabric_sectors.add(rounds);
            self.stats.fabric_hits.add(rounds);
        }
        match request.action {
            StrongAction::Load => {
                let (begin, follows) = self.occupy_beside(due, request, sender);
                let (at, hits) = self.look_up(line, sector, self.is_far(sender), begin);
                self.stats.strong_hits.add(u64::from(hits));
                (at + self.way_to(sender), follows)
            }
            StrongAction::Store => {
                let begin = self.occupy(due, 1);
                self.stats.strong_hits.increment();
                let partial = if request.mask == u32::MAX { 0 } else { sector };
                self.mark_written(line, sector, partial, begin);
                (begin + self.parameters.hit, false)
            }
            StrongAction::Atomic(..) | StrongAction::Reduce(..) => {
                // Lanes that want the same word come one after the other, each as a sector of its
                // own.
                let rounds = u64::from(most_alike(&request.lanes));
                let sm = self.sm_of(sender);
                let pair = sm / atomic_arbiter::PAIR;
                let mut busy = if self.atomics.follows(sm, request.sector, due) {
                    self.parameters.atomic_neighbour * rounds
                } else {
                    self.parameters.atomic_sector * rounds
                };
                let stays = self.atomics.stays(line);
                if rounds > 1 {
                    let mut lane = self.lane_time(request.action);
                    if !stays {
                        lane = lane.max(self.parameters.atomic_other_line);
                    }
                    busy = busy.max(lane * rounds);
                }
                self.stats.strong_sectors.add(rounds - 1);
                self.stats.strong_hits.add(rounds - 1);
                let p = &self.parameters;
                let mut latency = p.atomic;
                if self.is_far(sender) {
                    latency += p.far;
                }
                let begin = self.atomics.begin(pair, &p.places, due, busy);
                let (at, hits) = self.look_up_home(line, sector, begin, false);
                self.stats.strong_hits.add(u64::from(hits));
                self.mark_written(line, sector, 0, begin);
                let answered = Duration(latency.0.saturating_sub(self.parameters.hit.0));
                (at + busy + answered, false)
            }
        }
    }

    /// How long each of several lanes takes that want the same word.
    fn lane_time(&self, action: StrongAction) -> Duration {
        use AtomicType::{Bf16, Bf16x2, F16, F16x2, F32, F64};
        match action {
            StrongAction::Atomic(AtomicOperation::Add, kind)
            | StrongAction::Reduce(AtomicOperation::Add, kind) => match kind {
                F32 { .. } | F64 | F16x2 | Bf16x2 | F16 | Bf16 => self.parameters.atomic_float_lane,
                _ => self.parameters.atomic_lane,
            },
            _ => self.parameters.atomic_lane,
        }
    }

    fn perform(&mut self, request: &mut StrongRequest) {
        self.stats.strong_accesses.increment();
        let sector = request.sector;
        match request.action {
            StrongAction::Load => request.bytes = self.value(sector),
            StrongAction::Store => self.log.write(sector, &request.bytes, request.mask, 0),
            StrongAction::Atomic(function, kind) | StrongAction::Reduce(function, kind) => {
                let mut bytes = self.value(sector);
                let mut mask = 0;
                let size = kind.bytes() as usize;
                self.stats.atomic_lanes.add(request.lanes.len() as u64);
                for access in &mut request.lanes {
                    let at = usize::from(access.offset);
                    let mut cell = [0; 8];
                    cell[..size].copy_from_slice(&bytes[at..at + size]);
                    let old = u64::from_le_bytes(cell);
                    let new = atomic::apply(function, kind, old, access.operand, access.second)
                        .expect("the SM sends what can be performed");
                    bytes[at..at + size].copy_from_slice(&new.to_le_bytes()[..size]);
                    mask |= (((1u64 << size) - 1) as u32) << at;
                    access.operand = old;
                }
                self.log.write(sector, &bytes, mask, 0);
            }
        }
    }

    fn value(&self, sector: u64) -> SectorBytes {
        let mut bytes = self.contents.sector(sector);
        self.log.overlay(sector, &mut bytes);
        bytes
    }

    /// Writes what is not in contents. The log is empty between epochs.
    pub fn save(&self, writer: &mut Writer<'_>) {
        writer.write(&(self.free, self.written, self.sequence));
        writer.write(&self.turns);
        writer.write(&self.atomics);
        writer.write(&(&self.recent, &self.contacts, &self.requests));
        writer.write(&self.stats);
        self.save_cache(writer);
        writer.write(&self.replies.sorted());
    }

    /// Writes what the cache and the channel behind it hold.
    pub fn save_cache(&self, writer: &mut Writer<'_>) {
        writer.write(&self.tags.saved());
        writer.write(&self.parts);
        writer.write(&self.dram);
    }

    /// Takes on what was saved.
    ///
    /// # Errors
    /// If the bytes are not what `save` wrote.
    pub fn load(&mut self, reader: &mut Reader<'_>) -> Result<(), LoadError> {
        (self.free, self.written, self.sequence) = reader.read()?;
        self.turns = reader.read()?;
        self.atomics = reader.read()?;
        (self.recent, self.contacts, self.requests) = reader.read()?;
        self.stats = reader.read()?;
        self.load_cache(reader)?;
        let replies: Vec<Reply> = reader.read()?;
        self.replies = replies.into_iter().collect();
        self.log.clear();
        Ok(())
    }

    /// Takes on what `save_cache` wrote.
    ///
    /// # Errors
    /// If the bytes are not what it wrote for a slice like this one.
    pub fn load_cache(&mut self, reader: &mut Reader<'_>) -> Result<(), LoadError> {
        let malformed = |what| LoadError::Malformed { what };
        let (sets, ways) = if self.parameters.timed {
            (self.parameters.sets, self.parameters.ways)
        } else {
            (0, 0)
        };
        let lines = sets as usize * ways as usize;
        let empty = SectorCache::new(sets, 0).with_neighbours(NEIGHBOURS);
        self.tags = SectorCache::from_saved(&reader.read()?, empty, lines)
            .ok_or(malformed("tags of another cache"))?;
        let parts: PartialSectorTracker = reader.read()?;
        if !parts.fits(sets, self.parameters.partial_lines) {
            return Err(malformed("another number of lines known in part"));
        }
        self.parts = parts;
        let dram: Dram = reader.read()?;
        if !dram.fits(&self.parameters.dram) {
            return Err(malformed("another number of DRAM banks"));
        }
        self.dram = dram;
        Ok(())
    }
}

/// How much longer the way between a slice and a group of SMs is than the shortest. Where both lie
/// is not known: the ways are spread evenly and each pair has one of its own.
fn way(parameters: &SliceParameters, slice: u32, group: u32) -> Duration {
    let mixed = mix((u64::from(slice) << 32) | (u64::from(group) + 1));
    let share = (u128::from(mixed) * u128::from(parameters.spread.0 + 1)) >> 64;
    Duration(share as u64)
}

/// The most lanes that want one word.
fn most_alike(lanes: &[LaneAccess]) -> u32 {
    let mut words = [0u8; 32];
    let mut most = 1;
    for access in lanes {
        let count = &mut words[usize::from(access.offset / 2) % 32];
        *count += 1;
        most = most.max(*count);
    }
    u32::from(most)
}
