//! Memory behind the L1 caches whose time somebody outside the GPU models.
//!
//! Values stay here: a slice performs strong accesses when they arrive, as ever. When a request is answered, whoever
//! has taken it says: the slice is a port then, without tags, arbitration and DRAM of its own, and holds the answer
//! until it is told. Code is fetched from the slice itself. A kernel ends when its writes are done outside.
//!
//! Start reading at [`L2Slice::pass_outside`].

use std::collections::BTreeMap;

use lockstep_engine::{Outbox, PartitionId};
use lockstep_units::Time;
use serde::{Deserialize, Serialize};

use super::atomic_unit::perform;
use super::replies::Reply;
use super::slice::L2Slice;
use crate::memory::{CODE_LINES, LINE, SECTOR};
use crate::message::{Message, StrongAction};

/// Bits of a request's number that count the requests of one slice; the slice stands above them.
const COUNT_BITS: u32 = 48;

/// What a request wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OutsideAccess {
    /// Sectors are read.
    Read,
    /// Sectors are written; some bytes of each, or all.
    Write,
    /// A sector is read, changed and written, and nobody comes between.
    Atomic,
}

/// A request that has left the GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutsideRequest {
    /// What it is completed by.
    pub number: u64,
    /// What it wants.
    pub access: OutsideAccess,
    /// Address of the line.
    pub address: u64,
    /// Which sectors of the line.
    pub sectors: u8,
    /// The SM that asks.
    pub sm: u32,
    /// The slice at which it left.
    pub slice: u32,
    /// When it left.
    pub at: Time,
}

/// The slice that a request left at.
#[must_use]
pub fn slice_of(request: u64) -> u64 {
    request >> COUNT_BITS
}

/// The requests of one slice.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct OutsidePort {
    /// Those that nobody has taken yet, in their order.
    asked: Vec<OutsideRequest>,
    /// Those that are not complete, with their answers. Nobody waits for the answer of a weak write.
    held: BTreeMap<u64, Option<Box<Reply>>>,
    /// Weak writes that are not done.
    writes: u64,
    /// Who waits for writes: the work distributor, with launch and tag.
    drains: Vec<(PartitionId, u32, u8)>,
    count: u64,
}

impl L2Slice {
    /// Makes it a port to memory outside, or a slice again.
    pub(crate) fn set_outside(&mut self, outside: bool) {
        self.outside = outside.then(Box::default);
    }

    /// Whether it is such a port.
    pub(crate) fn is_outside(&self) -> bool {
        self.outside.is_some()
    }

    /// Whether there are requests that nobody has taken.
    pub(crate) fn asks_outside(&self) -> bool {
        let port = self.outside.as_ref();
        port.is_some_and(|port| !port.asked.is_empty())
    }

    /// Requests that are not complete.
    pub(crate) fn waits_for_outside(&self) -> usize {
        self.outside.as_ref().map_or(0, |port| port.held.len())
    }

    /// Takes the requests that have left since the last time.
    pub(crate) fn take_outside(&mut self) -> Vec<OutsideRequest> {
        let port = self.outside.as_mut();
        port.map_or_else(Vec::new, |port| std::mem::take(&mut port.asked))
    }

    /// Takes the answer of a request, to be brought back to it in a message; nothing if it is complete or never was.
    pub(crate) fn complete_outside(&mut self, request: u64) -> Option<Message> {
        let reply = self.outside.as_mut()?.held.remove(&request)?;
        Some(Message::OutsideDone(reply))
    }

    /// Sends a message of an SM outside, if it belongs there; else it comes back.
    pub(super) fn pass_outside(
        &mut self,
        message: Message,
        sender: PartitionId,
        due: Time,
        outbox: &mut Outbox<'_, Message>,
    ) -> Option<Message> {
        match message {
            Message::Read {
                line,
                sectors,
                miss,
                tag,
            } if line < CODE_LINES => {
                self.begin_outside(tag, sender);
                let count = u64::from(sectors.count_ones());
                self.sectors.stats.read_sectors.add(count);
                let payload = SECTOR * count;
                let answer = Some((payload, Message::ReadDone { miss }));
                self.ask(OutsideAccess::Read, line, sectors, sender, due, answer);
            }
            Message::Write {
                line, sectors, tag, ..
            } => {
                self.begin_outside(tag, sender);
                let count = u64::from(sectors.count_ones());
                self.sectors.stats.written_sectors.add(count);
                self.ask(OutsideAccess::Write, line, sectors, sender, due, None);
            }
            Message::Strong(mut request) => {
                self.begin_outside(request.tag, sender);
                let stats = &mut self.sectors.stats;
                perform(&mut request, &self.contents, &mut self.log, stats);
                self.sectors.stats.strong_sectors.increment();
                let access = match request.action {
                    StrongAction::Load => OutsideAccess::Read,
                    StrongAction::Store => OutsideAccess::Write,
                    StrongAction::Atomic(..) | StrongAction::Reduce(..) => OutsideAccess::Atomic,
                };
                let (line, sector) = (request.sector / 4, 1u8 << (request.sector % 4));
                let payload = u64::from(request.answer_bytes());
                let answer = Some((payload, Message::Performed(request)));
                self.ask(access, line, sector, sender, due, answer);
            }
            Message::Drain { launch, tag } => {
                let port = self.outside.as_mut()?;
                if port.writes == 0 {
                    return Some(message);
                }
                port.drains.push((sender, launch, tag));
                return None;
            }
            Message::OutsideDone(reply) => {
                self.outside_done(reply, due);
                return None;
            }
            other => return Some(other),
        }
        self.return_credit(sender, due, outbox);
        None
    }

    fn begin_outside(&mut self, tag: u8, sender: PartitionId) {
        self.serve(tag);
        self.attribution.flush.note(self.sm_of(sender));
    }

    fn ask(
        &mut self,
        access: OutsideAccess,
        line: u64,
        sectors: u8,
        sender: PartitionId,
        at: Time,
        answer: Option<(u64, Message)>,
    ) {
        let (sm, slice, header) = (self.sm_of(sender), self.number, self.parameters.header);
        let Some(port) = self.outside.as_mut() else {
            return;
        };
        let number = u64::from(slice) << COUNT_BITS | port.count;
        port.count += 1;
        port.asked.push(OutsideRequest {
            number,
            access,
            address: line * LINE,
            sectors,
            sm,
            slice,
            at,
        });
        port.writes += u64::from(answer.is_none());
        let reply = answer.map(|(payload, message)| {
            Box::new(Reply {
                at,
                sequence: 0,
                to: sender,
                bytes: (header + payload) as u32,
                message,
            })
        });
        port.held.insert(number, reply);
    }

    /// A request is complete outside; the last write lets kernels end.
    fn outside_done(&mut self, reply: Option<Box<Reply>>, due: Time) {
        if let Some(reply) = reply {
            self.packet(reply.to, due, reply.bytes, reply.message);
            return;
        }
        let Some(port) = self.outside.as_mut() else {
            return;
        };
        port.writes = port.writes.saturating_sub(1);
        if port.writes == 0 {
            for (distributor, launch, tag) in std::mem::take(&mut port.drains) {
                self.drained(distributor, launch, tag, due);
            }
        }
    }
}
