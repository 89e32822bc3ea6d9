//! One L2 slice: requests come in, are arbitrated, look up sectors, and are answered.
//!
//! A slice performs strong accesses in the order in which they arrive: due, sender, sequence. It
//! sees contents and its own results of this epoch, and every sector has one home, so all SMs
//! agree on the order. Weak reads and writes pass only for their time.
//!
//! SMs of a GPC that want the same sectors at about the same time reach a slice with one request,
//! and the answer goes to all of them ([`GpcRequestCoalescer`]).
//!
//! Start reading at [`L2Slice::run`], then [`L2Slice::read`].

use std::ops::Range;
use std::sync::Arc;

use lockstep_engine::{Inbox, LoadError, Outbox, PartitionId, Reader, Wake, Window, Writer};
use lockstep_units::{Bytes, Duration, Time};

use super::attribution::{Attribution, NO_LAUNCH, Traffic};
use super::outside::OutsidePort;
use super::parameters::SliceParameters;
use super::peer_port::{PeerPort, PeerStats};
use super::replies::{Replies, Reply};
use super::sector_store::{AccessKind, DmaSource, SectorStore, WrittenLine};
use super::strong_loads::StrongLoads;
use crate::crossbar::credits::CreditReturn;
use crate::gpc::{AtomicArbiter, GpcReadArbiter, GpcRequestCoalescer, tpc_of_sm};
use crate::memory::{CODE_LINES, Contents, LINE, Log, PAGE, SECTOR};
use crate::message::{DmaLines, Message, StrongRequest};
use crate::probe::{Probe, Topic};
use crate::statistics::{AccessStats, BankStats, SliceStats};

/// All sectors of a line.
const WHOLE_LINE: u8 = 0xf;

/// One L2 slice.
#[derive(Debug)]
pub struct L2Slice {
    pub(super) parameters: Arc<SliceParameters>,
    pub(super) contents: Arc<Contents>,
    pub(super) log: Log,
    pub(super) number: u32,
    /// The L2 partition that it is in.
    partition: u32,
    /// Hop latency to each GPC on top of the shortest.
    hop_latencies: Vec<Duration>,
    pub(super) sectors: SectorStore,
    /// When the slice has passed on what came before.
    free: Time,
    read_arbiter: GpcReadArbiter,
    pub(super) atomic_arbiter: AtomicArbiter,
    coalescer: GpcRequestCoalescer,
    /// Whose traffic it is.
    pub(super) attribution: Attribution,
    strong_loads: StrongLoads,
    credits: CreditReturn,
    replies: Replies,
    sequence: u64,
    /// Whoever models memory behind the L1 caches, if that is somebody else.
    pub(super) outside: Option<Box<OutsidePort>>,
    /// Somebody who watches.
    pub(super) probe: Option<Box<Probe>>,
}

impl L2Slice {
    /// An idle slice. Those who watch it and those who watch its channel have a probe each.
    #[must_use]
    pub fn new(
        number: u32,
        parameters: Arc<SliceParameters>,
        contents: Arc<Contents>,
        [probe, channel_probe]: [Option<Box<Probe>>; 2],
    ) -> Self {
        let hop_latencies = (0..parameters.gpcs.gpcs())
            .map(|gpc| parameters.hop_latency(number, gpc))
            .collect();
        Self {
            number,
            partition: number * parameters.partitions / parameters.slices.max(1),
            hop_latencies,
            sectors: SectorStore::new(number, parameters.clone(), channel_probe),
            coalescer: GpcRequestCoalescer::new(parameters.coalescer_entries),
            parameters,
            contents,
            log: Log::default(),
            free: Time::ZERO,
            read_arbiter: GpcReadArbiter::default(),
            atomic_arbiter: AtomicArbiter::default(),
            attribution: Attribution::default(),
            strong_loads: StrongLoads::default(),
            credits: CreditReturn::default(),
            replies: Replies::default(),
            sequence: 0,
            outside: None,
            probe,
        }
    }

    /// What it counted.
    #[must_use]
    pub fn stats(&self) -> &SliceStats {
        &self.sectors.stats
    }

    /// All traffic that was ever that of launches with a tag.
    #[must_use]
    pub fn traffic(&self, tag: u8) -> Traffic {
        self.attribution.traffic(tag, &self.sectors.stats)
    }

    /// What each kind of access found, by name.
    pub fn accesses(&self) -> impl Iterator<Item = (&'static str, &AccessStats)> {
        AccessKind::NAMES.into_iter().zip(&self.sectors.accesses)
    }

    /// What it counted of the memory of other GPUs, if there are any.
    #[must_use]
    pub fn peer_stats(&self) -> Option<&PeerStats> {
        self.sectors.peers.as_ref().map(|peers| &peers.stats)
    }

    /// The way to the memory of other GPUs, if it takes time.
    pub(crate) fn peers(&self) -> Option<&PeerPort> {
        self.sectors.peers.as_ref()
    }

    /// The same, to charge it.
    pub(crate) fn peers_mut(&mut self) -> Option<&mut PeerPort> {
        self.sectors.peers.as_mut()
    }

    /// What each bank of its channel counted.
    pub fn banks(&self) -> impl Iterator<Item = &BankStats> {
        self.sectors.banks()
    }

    /// Goes on counting where another slice stopped.
    pub fn count_on(&mut self, old: &Self) {
        self.sectors.count_on(&old.sectors);
        self.attribution = old.attribution.clone();
    }

    /// Takes the place of another slice that has nothing to do, with what its cache held.
    pub fn succeed(&mut self, old: &mut Self) {
        self.sectors.succeed(&mut old.sectors);
        self.attribution = old.attribution.clone();
    }

    /// Results of this epoch.
    #[must_use]
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// The same, for a rank on which the slice is not run and that takes on its results.
    pub fn log_mut(&mut self) -> &mut Log {
        &mut self.log
    }

    /// Drops the results, after they were committed.
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
                    let sender = outbox.topology().name(sender);
                    format!("{} from {sender}", message.words())
                });
            }
            self.accept(message, sender, due, outbox);
        }
        self.send_replies(window, outbox);
        match self.replies.first() {
            Some(first) => Wake::At(first),
            None => Wake::OnMessage,
        }
    }

    /// Takes one message.
    #[inline]
    fn accept(
        &mut self,
        message: Message,
        sender: PartitionId,
        due: Time,
        outbox: &mut Outbox<'_, Message>,
    ) {
        self.sectors.arrived = due;
        let message = match self.outside {
            None => message,
            Some(_) => match self.pass_outside(message, sender, due, outbox) {
                Some(message) => message,
                None => return,
            },
        };
        match message {
            Message::Strong(request) => {
                self.serve(request.tag);
                self.strong(request, sender, due, outbox);
            }
            Message::Read {
                line,
                sectors,
                miss,
                tag,
            } => {
                if line < CODE_LINES {
                    self.serve(tag);
                    self.attribution.flush.note(self.sm_of(sender));
                }
                let taken = self.read(line, sectors, miss, sender, due);
                self.return_credit(sender, taken, outbox);
            }
            Message::Write {
                line,
                sectors,
                partial,
                tag,
            } => {
                self.serve(tag);
                self.attribution.flush.note(self.sm_of(sender));
                let due = self.cross_fabric(sender, u64::from(sectors.count_ones()), due);
                let taken = self.write(Some(AccessKind::Store), line, sectors, partial, due);
                self.return_credit(sender, taken, outbox);
            }
            Message::Invalidate { first, count } => self.invalidate_pages(first, count),
            Message::Dma(lines) => {
                self.serve(NO_LAUNCH);
                self.dma(&lines, due);
            }
            Message::Drain { launch, tag } => {
                let peers = self.sectors.peers.as_ref();
                let arrived = peers.map_or(due, PeerPort::arrived);
                let at = due.max(self.sectors.write_port_free).max(arrived);
                self.drained(sender, launch, tag, at);
            }
            Message::InvalidateAll => {
                self.sectors.invalidate_all();
                self.coalescer = GpcRequestCoalescer::new(self.parameters.coalescer_entries);
            }
            other => panic!("a slice was sent {other:?}"),
        }
    }

    /// All writes of a launch are in at a time.
    pub(super) fn drained(&mut self, distributor: PartitionId, launch: u32, tag: u8, at: Time) {
        self.serve(tag);
        let flushes = u64::from(self.attribution.flush.take());
        self.sectors.stats.end_of_kernel_flushes.add(flushes);
        self.reply(distributor, at, 0, Message::Drained { launch });
    }

    /// A request of an SM is taken up at a time: there is room for another one.
    #[inline]
    pub(super) fn return_credit(
        &mut self,
        sender: PartitionId,
        at: Time,
        outbox: &mut Outbox<'_, Message>,
    ) {
        let batch = self.parameters.credit_batch;
        if batch == 0 {
            return;
        }
        let at = at.max(self.sectors.stalled());
        if let Some((count, at)) = self.credits.take_up(self.sm_of(sender), at, batch) {
            let link = self.parameters.wiring.credit;
            outbox.send(link, sender, at, Bytes(0), Message::Credits(count));
        }
    }

    /// What comes next belongs to a launch.
    #[inline]
    pub(super) fn serve(&mut self, tag: u8) {
        self.attribution.serve(tag, &self.sectors.stats);
    }

    /// Sends the answers whose time has come.
    fn send_replies(&mut self, window: Window, outbox: &mut Outbox<'_, Message>) {
        let due = self.replies.due(window.end);
        for key in &due {
            let Some(reply) = self.replies.take(*key) else {
                continue;
            };
            let size = Bytes(u64::from(reply.bytes));
            let at = reply.at.max(window.start);
            if let Message::Drained { .. } = reply.message {
                outbox.send(
                    self.parameters.wiring.drained,
                    reply.to,
                    at,
                    size,
                    reply.message,
                );
                continue;
            }
            let (port, probe) = (self.parameters.wiring.reply, self.probe.as_deref());
            port.send(reply.to, at, size, reply.message, outbox, probe);
        }
        self.replies.put_back(due);
    }

    /// Reads sectors for an SM, or answers it along with another one of its GPC. Says when the request is
    /// taken up.
    fn read(&mut self, line: u64, sectors: u8, miss: u32, sender: PartitionId, due: Time) -> Time {
        let gpc = self.gpc_of(sender);
        let done = Message::ReadDone { miss };
        let count = sectors.count_ones();
        let targets = self.parameters.coalescing_targets;
        if let Some(at) = self.coalescer.find(line, sectors, gpc, due, targets) {
            // The answer is copied where the GPC branches off.
            let stats = &mut self.sectors.stats;
            stats.coalesced_sectors.add(u64::from(count));
            self.reply(sender, at, 0, done);
            return due;
        }
        let begin = self.occupy_arbitrated(due, count, gpc);
        let found = if line >= CODE_LINES {
            self.sectors
                .found(AccessKind::Instruction, sectors, 0, true);
            begin + self.parameters.hit_latency
        } else {
            self.sectors.stats.read_sectors.add(u64::from(count));
            let far = self.is_far(sender);
            let crossed = self.sectors.stats.fabric_sectors.get();
            let (at, hits) = self
                .sectors
                .look_up(AccessKind::Load, line, sectors, far, begin);
            self.sectors.stats.read_hits.add(u64::from(hits));
            // What the other partition asks for is looked up once more, at its home.
            let crossed = self.sectors.stats.fabric_sectors.get() - crossed;
            let busy = self.busy(crossed as u32);
            self.free += busy;
            at
        };
        let at = found + self.hop_latency_to(sender);
        self.reply(sender, at, SECTOR as u32 * count, done);
        let window = self.parameters.coalescing_window;
        if window.0 > 0 {
            self.coalescer.insert(line, sectors, gpc, at, due + window);
        }
        begin
    }

    /// Writes sectors, through the write port. Says when it takes them.
    fn write(
        &mut self,
        kind: Option<AccessKind>,
        line: u64,
        sectors: u8,
        partial: u8,
        due: Time,
    ) -> Time {
        let count = u64::from(sectors.count_ones());
        let begin = due.max(self.free).max(self.sectors.stalled());
        let p = &self.parameters;
        let mut busy = p.write_sector * count;
        if sectors & partial != 0 {
            busy += p.partial_write;
        }
        self.free = begin + p.request_time;
        if sectors & partial != 0 {
            // What is written in part is read, merged and written: nothing else is read meanwhile.
            self.free += p.partial_write;
        }
        let taken = begin.max(self.sectors.write_port_free);
        self.sectors.write_port_free = taken + busy;
        self.sectors.stats.written_sectors.add(count);
        let _ = self.sectors.write(kind, line, sectors, partial, begin);
        taken
    }

    /// Lines come from the host, or go there and are no longer here. A copy engine writes through
    /// the cache, so what came is found in it; what it reads and does not find, DRAM has.
    fn dma(&mut self, moved: &DmaLines, due: Time) {
        for (page, mask) in &moved.lines {
            let mut left = *mask;
            while left != 0 {
                let line = page * (PAGE / LINE) + u64::from(left.trailing_zeros());
                left &= left - 1;
                if moved.to_device {
                    self.write(None, line, WHOLE_LINE, 0, due);
                } else {
                    let begin = self.occupy(due, WHOLE_LINE.count_ones());
                    self.sectors.read_out(line, WHOLE_LINE, begin);
                }
            }
        }
    }

    /// A copy engine has written lines.
    pub(crate) fn dma_written(&mut self, source: DmaSource, lines: &[WrittenLine]) {
        self.sectors.dma_written(source, lines);
    }

    /// Memory was given back, and what will be allocated there is other memory.
    pub(crate) fn invalidate_range(&mut self, lines: &Range<u64>) {
        self.sectors.invalidate_range(lines);
    }

    /// Pages have left the device without being wanted: nothing of them is cached here any more.
    fn invalidate_pages(&mut self, first: u64, count: u32) {
        let home = self.parameters.home;
        let lines = PAGE / LINE;
        for line in first * lines..(first + u64::from(count)) * lines {
            if home.slice(line * LINE) == self.number {
                self.sectors.invalidate(line);
            }
        }
    }

    /// Whether the GPC of a sender is at the other L2 partition.
    pub(super) fn is_far(&self, sender: PartitionId) -> bool {
        let p = &self.parameters;
        p.partition_of_gpc[self.gpc_of(sender) as usize] != self.partition
    }

    /// The GPC that a sender is in.
    fn gpc_of(&self, sender: PartitionId) -> u32 {
        self.parameters.gpcs.gpc_of_sm(self.sm_of(sender))
    }

    /// Hop latency to a sender on top of the shortest.
    #[inline]
    pub(super) fn hop_latency_to(&self, sender: PartitionId) -> Duration {
        let tpc = tpc_of_sm(self.sm_of(sender));
        let gpc = self.parameters.gpcs.gpc_of_tpc(tpc);
        let own = self.parameters.tpc_hop_latency.get(tpc as usize);
        self.hop_latencies[gpc as usize] + own.copied().unwrap_or(Duration::ZERO)
    }

    /// The number of an SM that sent something; beyond all of them for who is none.
    #[inline]
    pub(super) fn sm_of(&self, sender: PartitionId) -> u32 {
        sender.0.wrapping_sub(self.parameters.wiring.first_sm)
    }

    /// How long the slice is busy with sectors that are one request.
    fn busy(&self, sectors: u32) -> Duration {
        let p = &self.parameters;
        match sectors {
            0 => Duration::ZERO,
            some => p.request_time.max(p.sector_time * u64::from(some)),
        }
    }

    /// Keeps the slice busy for some sectors, and says when it begins with them.
    pub(super) fn occupy(&mut self, due: Time, sectors: u32) -> Time {
        let begin = due.max(self.free).max(self.sectors.stalled());
        self.free = begin + self.busy(sectors);
        begin
    }

    /// The same for a GPC, which takes its turns with others.
    fn occupy_arbitrated(&mut self, due: Time, sectors: u32, gpc: u32) -> Time {
        let busy = self.busy(sectors);
        let due = due.max(self.sectors.stalled());
        self.read_arbiter.begin(gpc, due, busy, &mut self.free)
    }

    /// The same for one sector of a strong load. Says also whether it follows others of its request.
    pub(super) fn occupy_strong_load(
        &mut self,
        due: Time,
        request: &StrongRequest,
        sender: PartitionId,
    ) -> (Time, bool) {
        let sm = self.sm_of(sender);
        if let Some((begin, before)) = self.strong_loads.follow(sm, request) {
            return (due.max(begin + self.busy(before)), true);
        }
        let sectors = request.of_line.count_ones();
        let begin = self.occupy_arbitrated(due, sectors, self.gpc_of(sender));
        self.strong_loads.begin(sm, request, begin);
        (begin, false)
    }

    /// Has a packet leave that carries so many bytes.
    pub(super) fn reply(&mut self, to: PartitionId, at: Time, payload: u32, message: Message) {
        let bytes = (self.parameters.header as u32).saturating_add(payload);
        self.packet(to, at, bytes, message);
    }

    pub(super) fn packet(&mut self, to: PartitionId, at: Time, bytes: u32, message: Message) {
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

    /// Writes what is not in contents. The log is empty between epochs.
    pub fn save(&self, writer: &mut Writer<'_>) {
        let write_port_free = self.sectors.write_port_free;
        writer.write(&(self.free, write_port_free, self.sequence));
        writer.write(&self.read_arbiter);
        writer.write(&self.atomic_arbiter);
        writer.write(&(&self.coalescer, &self.attribution, &self.strong_loads));
        writer.write(&(&self.credits, self.sectors.saved_queues()));
        writer.write(&(&self.sectors.stats, &self.sectors.accesses));
        self.sectors.save(writer);
        writer.write(&self.replies.sorted());
        writer.write(&self.outside);
    }

    /// Takes on what was saved.
    ///
    /// # Errors
    /// If the bytes are not what `save` wrote.
    pub fn load(&mut self, reader: &mut Reader<'_>) -> Result<(), LoadError> {
        (self.free, self.sectors.write_port_free, self.sequence) = reader.read()?;
        self.read_arbiter = reader.read()?;
        self.atomic_arbiter = reader.read()?;
        (self.coalescer, self.attribution, self.strong_loads) = reader.read()?;
        let (credits, queues) = reader.read()?;
        self.credits = credits;
        self.sectors.restore_queues(queues)?;
        (self.sectors.stats, self.sectors.accesses) = reader.read()?;
        self.sectors.load(reader)?;
        let replies: Vec<Reply> = reader.read()?;
        self.replies = replies.into_iter().collect();
        self.outside = reader.read()?;
        self.log.clear();
        Ok(())
    }
}
