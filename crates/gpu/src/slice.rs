//! One L2 slice with its part of memory.
//!
//! A slice performs strong accesses in the order in which they arrive: due, sender, sequence. It
//! sees contents and its own results of this epoch, and every sector has one home, so all SMs
//! agree on the order. Weak reads and writes pass only for their time.
//!
//! Modelled: the bandwidth of the slice and a fixed latency of the memory behind it.
//! Left out, for the detailed model: tags, DRAM banks, limits on misses.
//!
//! Start reading at [`L2Slice::run`].

use std::sync::Arc;

use lockstep_engine::{Inbox, LinkId, LoadError, Outbox, PartitionId, Reader, Wake, Writer};
use lockstep_isa::semantics::atomic;
use lockstep_units::{Bytes, Duration, Time};

use crate::memory::{Contents, Log, SECTOR, SectorBytes};
use crate::message::{Message, StrongAction, StrongRequest};
use crate::statistics::SliceStats;

/// What a slice is made with.
#[derive(Clone, Debug)]
pub struct SliceParameters {
    /// Slice to SM.
    pub reply: LinkId,
    /// Bytes around the payload of a packet.
    pub header: u64,
    /// From accepting a read to its answer.
    pub read: Duration,
    /// From accepting a strong load or store to its answer.
    pub strong: Duration,
    /// From accepting an atomic or a reduction to its answer.
    pub atomic: Duration,
    /// How long the slice is busy with one sector.
    pub sector: Duration,
}

/// One L2 slice.
#[derive(Debug)]
pub struct L2Slice {
    parameters: Arc<SliceParameters>,
    contents: Arc<Contents>,
    log: Log,
    /// When the slice has passed on what came before.
    free: Time,
    stats: SliceStats,
}

impl L2Slice {
    /// An idle slice.
    #[must_use]
    pub fn new(parameters: Arc<SliceParameters>, contents: Arc<Contents>) -> Self {
        Self {
            parameters,
            contents,
            log: Log::default(),
            free: Time::ZERO,
            stats: SliceStats::default(),
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

    /// Performs what arrives.
    pub fn run(&mut self, inbox: &mut Inbox<Message>, outbox: &mut Outbox<'_, Message>) -> Wake {
        while let Some(delivery) = inbox.take_in_window() {
            let (due, sender) = (delivery.due, delivery.sender);
            match delivery.message {
                Message::Strong(mut request) => {
                    self.perform(&mut request);
                    let latency = match request.action {
                        StrongAction::Load | StrongAction::Store => self.parameters.strong,
                        StrongAction::Atomic(..) | StrongAction::Reduce(..) => {
                            self.parameters.atomic
                        }
                    };
                    let at = self.occupy(due, 1) + latency;
                    let payload = match request.action {
                        StrongAction::Load => SECTOR,
                        StrongAction::Atomic(_, kind) => {
                            u64::from(kind.bytes()) * request.lanes.len() as u64
                        }
                        StrongAction::Store | StrongAction::Reduce(..) => 0,
                    };
                    self.reply(sender, at, payload, Message::Performed(request), outbox);
                }
                Message::Read {
                    sectors,
                    transaction,
                    ..
                } => {
                    let count = u64::from(sectors.count_ones());
                    self.stats.read_sectors.add(count);
                    let at = self.occupy(due, count) + self.parameters.read;
                    let message = Message::ReadDone { transaction };
                    self.reply(sender, at, SECTOR * count, message, outbox);
                }
                Message::Write { sectors, .. } => {
                    let count = u64::from(sectors.count_ones());
                    self.stats.written_sectors.add(count);
                    self.occupy(due, count);
                }
                other => panic!("a slice was sent {other:?}"),
            }
        }
        Wake::OnMessage
    }

    /// Keeps the slice busy for some sectors, and says when it begins with them.
    fn occupy(&mut self, due: Time, sectors: u64) -> Time {
        let begin = due.max(self.free);
        self.free = begin + self.parameters.sector * sectors;
        begin
    }

    fn reply(
        &self,
        to: PartitionId,
        at: Time,
        payload: u64,
        message: Message,
        outbox: &mut Outbox<'_, Message>,
    ) {
        let size = Bytes(self.parameters.header + payload);
        outbox.send(self.parameters.reply, to, at, size, message);
    }

    fn perform(&mut self, request: &mut StrongRequest) {
        self.stats.strong_accesses.increment();
        let sector = request.sector;
        match request.action {
            StrongAction::Load => request.bytes = self.read(sector),
            StrongAction::Store => self.log.write(sector, &request.bytes, request.mask, 0),
            StrongAction::Atomic(function, kind) | StrongAction::Reduce(function, kind) => {
                let mut bytes = self.read(sector);
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

    fn read(&self, sector: u64) -> SectorBytes {
        let mut bytes = self.contents.sector(sector);
        self.log.overlay(sector, &mut bytes);
        bytes
    }

    /// Writes what is not in contents. The log is empty between epochs.
    pub fn save(&self, writer: &mut Writer<'_>) {
        writer.write(&(self.free, &self.stats));
    }

    /// Takes on what was saved.
    ///
    /// # Errors
    /// If the bytes are not what `save` wrote.
    pub fn load(&mut self, reader: &mut Reader<'_>) -> Result<(), LoadError> {
        (self.free, self.stats) = reader.read()?;
        self.log.clear();
        Ok(())
    }
}
