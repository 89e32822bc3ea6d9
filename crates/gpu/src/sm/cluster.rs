//! Blocks of one cluster on several SMs: who they are, what they ask of each other's shared memory, and the
//! barrier that they meet at.
//!
//! Every access to another block's shared memory is a message over the link between SMs, performed where the
//! memory is, and answered. The barrier of a cluster has no place: each block tells all others when its
//! threads have arrived, and counts what it is told.
//!
//! Start reading at [`SmState::cluster_request`] and [`ClusterBarrier`].

use lockstep_engine::{Outbox, PartitionId};
use lockstep_isa::Mask;
use lockstep_isa::semantics::atomic;
use lockstep_isa::semantics::mbarrier::Change;
use lockstep_units::Bytes;
use serde::{Deserialize, Serialize};

use super::barrier::BARRIERS;
use super::cta::GONE;
use super::issue_model::IssueModel;
use super::lsu::access;
use super::lsu::transactions::NOBODY;
use super::now::Now;
use super::report;
use super::state::SmState;
use crate::fault::FaultKind;
use crate::message::{ClusterAction, ClusterLane, ClusterRequest, Message};

/// What lanes that wait for their cluster wait for.
const CLUSTER_BARRIER: u32 = BARRIERS as u32;
const _: () = assert!(CLUSTER_BARRIER == lockstep_isa::convergence::LAST_WARP_BARRIER);

/// The phase of a block that has ended: it has arrived at all of them.
const ENDED: u32 = u32::MAX;

/// A block of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterMember {
    /// Its number in the cluster.
    pub rank: u32,
    /// SM and number in the grid of each block, by rank.
    pub blocks: Vec<(u32, u64)>,
    /// Where they meet.
    pub barrier: ClusterBarrier,
}

/// The barrier of a cluster as one block sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterBarrier {
    /// Phases that have ended.
    phase: u32,
    /// Phases that each block has arrived at, by rank.
    arrived: Vec<u32>,
    /// Lanes that have arrived at this phase, by the warp's number in the block.
    lanes: Vec<Mask>,
}

impl ClusterBarrier {
    /// Of a cluster of so many blocks.
    #[must_use]
    pub fn new(blocks: usize, warps: usize) -> Self {
        Self {
            phase: 0,
            arrived: vec![0; blocks],
            lanes: vec![0; warps],
        }
    }

    /// Whether a warp has arrived at the phase that has not ended.
    fn waits(&self, warp: usize) -> bool {
        self.lanes[warp] != 0
    }

    /// Whether all lanes that are left have arrived, and the others do not know yet. `live` gives the lanes of
    /// each warp that have not ended.
    fn is_complete_here(&self, rank: usize, live: impl Fn(usize) -> Mask) -> bool {
        let mut some = false;
        let all = (0..self.lanes.len()).all(|warp| {
            some |= self.lanes[warp] != 0;
            live(warp) & !self.lanes[warp] == 0
        });
        all && some && self.arrived[rank] == self.phase
    }

    /// If all blocks have arrived, ends the phase.
    fn advance(&mut self) -> bool {
        let complete = self.arrived.iter().all(|phases| *phases > self.phase);
        if complete {
            self.phase += 1;
            self.lanes.fill(0);
        }
        complete
    }
}

impl SmState {
    /// Lanes of a warp arrive at the barrier of their cluster.
    pub(super) fn arrive_at_cluster<M: IssueModel>(
        &mut self,
        model: &mut M,
        slot: u8,
        lanes: Mask,
        now: Now,
        outbox: &mut Outbox<'_, Message>,
    ) {
        let warp = &self.warps[usize::from(slot)];
        let (block, member) = (warp.block, warp.identity.warp_in_block as usize);
        let number = self.number;
        if let Some(owner) = self.blocks.blocks[usize::from(block)].as_mut() {
            let (index, warps) = (owner.index, owner.warps.len());
            if let Some(race) = &mut owner.race {
                race.arrive_at_cluster(member);
            }
            // A block without a cluster is a cluster of one.
            let cluster = owner.cluster.get_or_insert_with(|| {
                Box::new(ClusterMember {
                    rank: 0,
                    blocks: vec![(number, index)],
                    barrier: ClusterBarrier::new(1, warps),
                })
            });
            cluster.barrier.lanes[member] |= lanes;
        }
        self.check_cluster_barrier(model, block, now, outbox);
    }

    /// Lanes of a warp wait for the phase that they have arrived at. False if it has ended.
    pub(super) fn wait_for_cluster(&mut self, slot: u8) -> bool {
        let warp = &mut self.warps[usize::from(slot)];
        let member = warp.identity.warp_in_block as usize;
        let owner = self.blocks.blocks[usize::from(warp.block)].as_ref();
        let cluster = owner.and_then(|owner| owner.cluster.as_ref());
        let waits = cluster.is_some_and(|cluster| cluster.barrier.waits(member));
        if waits {
            warp.convergence.suspend(CLUSTER_BARRIER);
        }
        waits
    }

    /// Tells the others if all lanes of a block have arrived, and lets those go who wait if all blocks have.
    pub(super) fn check_cluster_barrier<M: IssueModel>(
        &mut self,
        model: &mut M,
        block: u8,
        now: Now,
        outbox: &mut Outbox<'_, Message>,
    ) {
        let Some(owner) = self.blocks.blocks[usize::from(block)].as_mut() else {
            return;
        };
        let Some(mut cluster) = owner.cluster.take() else {
            return;
        };
        let warps = &self.warps;
        let slots = &owner.warps;
        let live = |warp: usize| match slots[warp] {
            GONE => 0,
            slot => warps[usize::from(slot)].convergence.live(),
        };
        let rank = cluster.rank as usize;
        let over = owner.live == 0 && cluster.barrier.arrived[rank] != ENDED;
        let here = cluster.barrier.is_complete_here(rank, live);
        let launch = owner.launch;
        if over || here {
            let phases = if over {
                ENDED
            } else {
                cluster.barrier.phase + 1
            };
            cluster.barrier.arrived[rank] = phases;
            for (other, (sm, number)) in cluster.blocks.iter().enumerate() {
                if other != rank {
                    let action = ClusterAction::Arrived {
                        rank: cluster.rank,
                        phases,
                    };
                    let request = ClusterRequest::new(launch, *number, action);
                    self.port.send_cluster(*sm, request, 0, now, outbox);
                }
            }
        }
        let ended = cluster.barrier.advance();
        let members = owner.warps.clone();
        if let Some(race) = owner.race.as_mut().filter(|_| ended) {
            (0..members.len()).for_each(|warp| race.leave_cluster(warp));
        }
        owner.cluster = Some(cluster);
        if !ended {
            return;
        }
        for slot in members.into_iter().filter(|slot| *slot != GONE) {
            let convergence = &mut self.warps[usize::from(slot)].convergence;
            if convergence.suspended(CLUSTER_BARRIER) != 0 {
                convergence.resume(CLUSTER_BARRIER);
                self.refresh(model, slot, now.cycle + 1);
            }
        }
    }

    /// Another block of a cluster asks for something, or tells that it has arrived.
    pub(super) fn cluster_request<M: IssueModel>(
        &mut self,
        model: &mut M,
        sender: PartitionId,
        mut request: Box<ClusterRequest>,
        now: Now,
        outbox: &mut Outbox<'_, Message>,
    ) {
        let wanted = |block: &crate::sm::cta::Block| {
            block.launch == request.launch && block.index == request.block
        };
        let mut blocks = self.blocks.blocks.iter();
        let found = blocks.position(|block| block.as_deref().is_some_and(wanted));
        if let ClusterAction::Arrived { rank, phases } = request.action {
            // One that has ended waits for nobody.
            let Some(slot) = found else { return };
            let owner = self.blocks.blocks[slot].as_mut();
            let cluster = owner.and_then(|owner| owner.cluster.as_mut());
            if let Some(cluster) = cluster {
                cluster.barrier.arrived[rank as usize] = phases;
            }
            return self.check_cluster_barrier(model, slot as u8, now, outbox);
        }
        let result = match found {
            Some(slot) => self.perform_cluster(model, slot as u8, &mut request, now),
            None => Err(FaultKind::Cluster(format!(
                "{} shared memory of block {}, which has ended; blocks of a cluster must stay until \
                 nobody reaches for their memory",
                request.action.words(),
                request.block
            ))),
        };
        if let Err(kind) = result {
            let slot = found.unwrap_or(0) as u8;
            report::fail_block(self, slot, kind, now);
            if let Some((_, fault)) = &mut self.fault {
                fault.launch = request.launch;
                let context = self.launches.get(request.launch);
                fault.kernel = context.map_or_else(String::new, |c| c.launch.kernel().name.clone());
            }
            return;
        }
        let bytes = if request.transaction == NOBODY {
            0
        } else {
            request.lanes.iter().map(|lane| u64::from(lane.bytes)).sum()
        };
        let wiring = self.port.wiring;
        if let Some(link) = wiring.cluster {
            let size = Bytes(wiring.header + bytes);
            outbox.send(link, sender, now.time, size, Message::ClusterDone(request));
        }
    }

    /// Performs an access of another block in the memory of one that is here.
    fn perform_cluster<M: IssueModel>(
        &mut self,
        model: &mut M,
        slot: u8,
        request: &mut ClusterRequest,
        now: Now,
    ) -> Result<(), FaultKind> {
        let action = request.action;
        for index in 0..request.lanes.len() {
            let lane = &mut request.lanes[index];
            if let ClusterAction::Mbarrier = action {
                let (place, change) = (lane.place, lane.change);
                self.change_mbarrier(model, slot, place, change, now)?;
                continue;
            }
            let owner = self.blocks.blocks[usize::from(slot)].as_mut();
            let memory = owner.map_or(&mut [][..], |owner| {
                if let Some(race) = &mut owner.race {
                    race.forget(lane.place, lane.bytes.into());
                }
                &mut owner.shared[..]
            });
            perform(memory, action, lane).map_err(FaultKind::Cluster)?;
            if let ClusterAction::StoreAsync | ClusterAction::ReduceAsync(..) = action {
                let (place, bytes) = (lane.mbarrier, u32::from(lane.bytes));
                self.complete_tx(model, slot, place, bytes, now)?;
            }
        }
        Ok(())
    }

    /// What another block was asked for has come.
    pub(super) fn cluster_done<M: IssueModel>(
        &mut self,
        model: &mut M,
        request: Box<ClusterRequest>,
        now: Now,
        outbox: &mut Outbox<'_, Message>,
    ) {
        if request.transaction != NOBODY {
            self.deliver(request.transaction, |registers, operation| {
                access::deliver_from_cluster(registers, operation, &request);
            });
            self.answered(model, request.transaction, now.cycle, now);
        }
        self.port
            .in_flight
            .finish(CLUSTER_SECTOR, request.generation);
        self.check_fences(model, now, outbox);
    }
}

/// The sector that stands for all accesses to other blocks' shared memory: no sector of global memory.
pub const CLUSTER_SECTOR: u64 = 1 << 58;

/// One lane's access to shared memory.
fn perform(memory: &mut [u8], action: ClusterAction, lane: &mut ClusterLane) -> Result<(), String> {
    let (at, bytes) = (lane.place as usize, usize::from(lane.bytes));
    let limit = memory.len();
    let Some(place) = memory.get_mut(at..at + bytes) else {
        return Err(format!(
            "{} shared memory of another block at {at:#x}, outside the {limit} bytes that it has",
            action.words()
        ));
    };
    match action {
        ClusterAction::Load => {
            let mut words = [0; 16];
            words[..bytes].copy_from_slice(place);
            lane.set_bytes(words);
        }
        ClusterAction::Store | ClusterAction::StoreAsync => {
            place.copy_from_slice(&lane.as_bytes()[..bytes]);
        }
        ClusterAction::Atomic(function, kind)
        | ClusterAction::Reduce(function, kind)
        | ClusterAction::ReduceAsync(function, kind) => {
            let mut cell = [0; 16];
            cell[..bytes].copy_from_slice(place);
            let old = u128::from_le_bytes(cell);
            let (operand, second) = (lane.long(0).into(), lane.long(2).into());
            let new = atomic::apply(function, kind, old, operand, second)
                .ok_or_else(|| format!("atomic {function:?} on {kind:?}"))?;
            place.copy_from_slice(&new.to_le_bytes()[..bytes]);
            let answer = atomic::answer(function, kind, old, operand);
            lane.words[0] = answer as u32;
            lane.words[1] = (answer >> 32) as u32;
        }
        ClusterAction::Mbarrier | ClusterAction::Arrived { .. } => {}
    }
    Ok(())
}

/// Nothing arrives with it.
impl Default for ClusterLane {
    fn default() -> Self {
        Self {
            lane: 0,
            bytes: 0,
            place: 0,
            mbarrier: 0,
            words: [0; 4],
            change: Change::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_ends_when_all_blocks_have_arrived() {
        let mut barrier = ClusterBarrier::new(2, 2);
        assert!(!barrier.is_complete_here(0, |_| !0), "nobody has come");
        barrier.lanes[0] = !0;
        assert!(!barrier.is_complete_here(0, |_| !0));
        assert!(barrier.is_complete_here(0, |warp| if warp == 0 { !0 } else { 0 }));
        barrier.lanes[1] = !0;
        assert!(barrier.is_complete_here(0, |_| !0));
        barrier.arrived[0] = 1;
        assert!(!barrier.is_complete_here(0, |_| !0), "said once");
        assert!(!barrier.advance());
        barrier.arrived[1] = ENDED;
        assert!(barrier.advance());
        assert!(!barrier.waits(0));
        barrier.arrived[0] = 2;
        assert!(barrier.advance(), "the other has ended");
    }

    #[test]
    fn accesses_are_performed_where_the_memory_is() {
        let mut memory = vec![0u8; 16];
        let mut lane = ClusterLane {
            bytes: 4,
            place: 8,
            words: [7, 0, 0, 0],
            ..ClusterLane::default()
        };
        perform(&mut memory, ClusterAction::Store, &mut lane).unwrap();
        lane.words = [0; 4];
        perform(&mut memory, ClusterAction::Load, &mut lane).unwrap();
        assert_eq!(lane.words, [7, 0, 0, 0]);
        lane.place = 14;
        assert!(perform(&mut memory, ClusterAction::Load, &mut lane).is_err());
    }
}
