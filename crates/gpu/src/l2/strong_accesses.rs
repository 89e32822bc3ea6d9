//! Strong accesses at a slice: they are performed when they arrive, and take their time.
//!
//! Start reading at [`L2Slice::strong`].

use lockstep_engine::{Outbox, PartitionId};
use lockstep_units::{Bytes, Duration, Time};

use super::atomic_unit::{lane_time, most_alike, perform};
use super::fabric::Direction;
use super::peer_port::Packet;
use super::sector_store::AccessKind;
use super::slice::L2Slice;
use crate::gpc::tpc_of_sm;
use crate::memory::{LINE, SECTOR};
use crate::message::{Message, StrongAction, StrongRequest};

/// When a strong access does what.
struct StrongTiming {
    /// Its answer leaves.
    at: Time,
    /// It is taken up.
    taken: Time,
    /// It follows others of its request.
    follows: bool,
}

impl L2Slice {
    /// Performs a strong access and answers it.
    pub(super) fn strong(
        &mut self,
        mut request: Box<StrongRequest>,
        sender: PartitionId,
        due: Time,
        outbox: &mut Outbox<'_, Message>,
    ) {
        let stats = &mut self.sectors.stats;
        perform(&mut request, &self.contents, &mut self.log, stats);
        if !self.parameters.timed {
            let message = Message::Performed(request);
            let (port, probe) = (self.parameters.wiring.reply, self.probe.as_deref());
            port.send(sender, due, Bytes(0), message, outbox, probe);
            return;
        }
        if request.members > 0 {
            return self.multicast(request, sender, due, outbox);
        }
        let StrongTiming { at, taken, follows } = self.strong_time(&request, sender, due);
        self.return_credit(sender, taken, outbox);
        let payload = request.answer_bytes();
        let message = Message::Performed(request);
        match follows {
            // The sectors of a line that are one request come in one packet.
            true => self.packet(sender, at, payload, message),
            false => self.reply(sender, at, payload, message),
        }
    }

    /// Answers an access to one member of a multicast object. It crosses the links to the switch; the other L2 is not
    /// looked into, and neither is this one for the sender's own memory. The parts of one access share what the SM sent
    /// as one packet, and what it receives as one.
    fn multicast(
        &mut self,
        request: Box<StrongRequest>,
        sender: PartitionId,
        due: Time,
        outbox: &mut Outbox<'_, Message>,
    ) {
        self.attribution.flush.note(self.sm_of(sender));
        let members = request.members;
        let begin = due.max(self.sectors.stalled());
        let packet = Packet {
            members,
            sectors: request.of_line.count_ones().max(1),
        };
        let line = request.sector * SECTOR / LINE;
        let at = match &mut self.sectors.peers {
            Some(peers) if request.action == StrongAction::Load => {
                peers.multicast_read(line, packet, begin + self.parameters.hit_latency)
            }
            Some(peers) => peers.multicast_write(line, packet, begin),
            None => begin + self.parameters.hit_latency,
        };
        self.return_credit(sender, begin, outbox);
        let payload = self.parameters.header as u32 + request.answer_bytes();
        let bytes = payload.div_ceil(u32::from(members));
        let at = at + self.hop_latency_to(sender);
        self.packet(sender, at, bytes, Message::Performed(request));
    }

    /// When a strong access is taken up, and when its answer leaves.
    fn strong_time(
        &mut self,
        request: &StrongRequest,
        sender: PartitionId,
        due: Time,
    ) -> StrongTiming {
        let (line, sector) = (request.sector / 4, 1u8 << (request.sector % 4));
        self.attribution.flush.note(self.sm_of(sender));
        self.sectors.stats.strong_sectors.increment();
        match request.action {
            StrongAction::Load => {
                let (begin, follows) = self.occupy_strong_load(due, request, sender);
                let far = self.is_far(sender);
                let (at, hits) =
                    self.sectors
                        .look_up(AccessKind::StrongLoad, line, sector, far, begin);
                self.sectors.stats.strong_hits.add(u64::from(hits));
                StrongTiming {
                    at: at + self.hop_latency_to(sender),
                    taken: begin,
                    follows,
                }
            }
            StrongAction::Store => {
                let due = self.cross_fabric(sender, 1, due);
                let begin = self.occupy(due, 1);
                self.sectors.stats.strong_hits.increment();
                let partial = if request.mask == u32::MAX { 0 } else { sector };
                let kind = Some(AccessKind::StrongStore);
                let answered = self.sectors.write(kind, line, sector, partial, begin);
                let here = begin + self.parameters.hit_latency;
                StrongTiming {
                    at: answered.unwrap_or(here),
                    taken: begin,
                    follows: false,
                }
            }
            StrongAction::Atomic(..) | StrongAction::Reduce(..) => {
                let (taken, at) = self.atomic_time(request, sender, due);
                StrongTiming {
                    at,
                    taken,
                    follows: false,
                }
            }
        }
    }

    /// When the atomic unit takes an atomic or a reduction up, and when the answer leaves.
    fn atomic_time(
        &mut self,
        request: &StrongRequest,
        sender: PartitionId,
        due: Time,
    ) -> (Time, Time) {
        let (line, sector) = (request.sector / 4, 1u8 << (request.sector % 4));
        // Lanes that want the same word come one after the other, each as a sector of its own, and
        // cross to the other partition one after the other, too.
        let rounds = u64::from(most_alike(&request.lanes));
        let due = self.cross_fabric(sender, rounds, due);
        let due = due.max(self.sectors.stalled());
        let sm = self.sm_of(sender);
        let p = &self.parameters;
        let window = p.atomic_pair_window;
        let mut busy = if self.atomic_arbiter.follows(sm, request.sector, due, window) {
            p.atomic_neighbour * rounds
        } else {
            p.atomic_sector * rounds
        };
        let stays = self.atomic_arbiter.stays(line);
        if rounds > 1 {
            let mut lane = lane_time(request.action, p);
            if !stays {
                lane = lane.max(p.atomic_other_line);
            }
            busy = busy.max(lane * rounds);
        }
        let mut latency = p.atomic_latency;
        if self.is_far(sender) {
            latency += p.far_latency;
        }
        let tpc = tpc_of_sm(sm);
        let begin = self.atomic_arbiter.begin(tpc, &p.gpcs, due, busy);
        let kind = match request.action {
            StrongAction::Atomic(..) => AccessKind::Atomic,
            _ => AccessKind::Reduction,
        };
        // Values that were there cross back.
        let lane = match request.action {
            StrongAction::Atomic(..) if self.is_far(sender) => {
                self.sectors.cross(Direction::Out, 1, begin)
            }
            _ => begin,
        };
        let store = &mut self.sectors;
        let (at, hits) = store.look_up_home(Some(kind), line, sector, begin, false);
        let stats = &mut self.sectors.stats;
        stats.strong_sectors.add(rounds - 1);
        stats.strong_hits.add(rounds - 1 + u64::from(hits));
        let _ = self.sectors.write(None, line, sector, 0, begin);
        let answered = Duration(latency.0.saturating_sub(self.parameters.hit_latency.0));
        (begin, at.max(lane) + busy + answered)
    }

    /// Has sectors cross the fabric to their home, if the sender is at the other partition. Says when they
    /// have their lane.
    pub(super) fn cross_fabric(&mut self, sender: PartitionId, sectors: u64, due: Time) -> Time {
        if !self.is_far(sender) {
            return due;
        }
        self.sectors.stats.fabric_sectors.add(sectors);
        self.sectors.stats.fabric_hits.add(sectors);
        self.sectors.cross(Direction::In, sectors, due)
    }
}
