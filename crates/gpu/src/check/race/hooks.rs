//! What instructions tell the checker of their block.

use lockstep_isa::instruction::{DependencyBarrier, Flow};
use lockstep_isa::memory::{Action, AtomicOperation, MemoryOperation};
use lockstep_isa::warp_register::{FULL, LANES, lanes_of};
use lockstep_isa::{Instruction, Mask, Operation};

use super::{Access, AccessKind, LaneAccess, RaceChecker};
use crate::check::{Check, Culprits, Subject, note};
use crate::sm::lsu::access::each_store;
use crate::sm::place_at;
use crate::sm::site::Site;

/// Hazards of one instruction.
#[derive(Default)]
struct Hazards {
    lanes: Mask,
    first: Option<(LaneAccess, Access)>,
}

impl Hazards {
    fn add(&mut self, access: LaneAccess, found: Option<Access>) {
        if let Some(found) = found {
            self.lanes |= 1 << access.lane;
            self.first.get_or_insert((access, found));
        }
    }

    fn report(self, site: &Site<'_, '_>) {
        let Some((access, other)) = self.first else {
            return;
        };
        let culprits = Culprits::of(site, self.lanes);
        note(
            &site.port.findings,
            Check::Race,
            &culprits,
            Subject::default(),
            || sentence(site, access, other),
        );
    }
}

/// What two accesses do to each other.
fn sentence(site: &Site<'_, '_>, access: LaneAccess, other: Access) -> String {
    let is_read = |kind| kind == AccessKind::Read;
    let hazard = match (is_read(access.kind), is_read(other.kind)) {
        (true, _) => "read-after-write",
        (false, true) => "write-after-read",
        (false, false) => "write-after-write",
    };
    let did = match other.kind {
        AccessKind::Read => "read",
        AccessKind::Copy => "copied to",
        AccessKind::Atomic | AccessKind::Exchange => "changed",
        AccessKind::Write | AccessKind::Bulk | AccessKind::Empty => "wrote",
    };
    let LaneAccess { place, bytes, .. } = access;
    let missing = match other.kind {
        AccessKind::Copy => "; its copy was not waited for, or no barrier follows",
        AccessKind::Bulk => "; its mbarrier was not waited for",
        _ => "; nothing orders the two",
    };
    let mut identity = site.warp.identity;
    let mut who = "the bulk engine".to_string();
    let lane = other.lanes.trailing_zeros() as usize;
    if other.kind != AccessKind::Bulk {
        identity.warp_in_block = other.agent.into();
        let [x, y, z] = identity.thread(lane);
        who = format!("thread ({x},{y},{z})");
    }
    let place_of_other = place_at(&identity, site.context, lane, other.pc);
    let mut at = format!("instruction {}", other.pc);
    for (text, open, close) in [
        (&place_of_other.instruction, " `", "`"),
        (&place_of_other.line, " (", ")"),
    ] {
        if !text.is_empty() {
            at.push_str(&format!("{open}{text}{close}"));
        }
    }
    format!(
        "{hazard} hazard on {bytes} bytes at shared {place:#x}, which {who} {did} at {at}{missing}"
    )
}

/// Lets a function look at the checker and the rest of the site at once.
fn with(site: &mut Site<'_, '_>, act: impl FnOnce(&Site<'_, '_>, &mut RaceChecker) -> Hazards) {
    if let Some(mut race) = site.block.race.take() {
        act(site, &mut race).report(site);
        site.block.race = Some(race);
    }
}

/// Warp, lane and instruction of an access.
fn lane_access(site: &Site<'_, '_>, lane: usize, kind: AccessKind) -> LaneAccess {
    LaneAccess {
        warp: site.warp.identity.warp_in_block as usize,
        lane,
        pc: site.warp.convergence.pc(),
        kind,
        place: 0,
        bytes: 0,
        value: 0,
    }
}

/// An access to the block's shared memory that is about to be made.
#[cold]
pub fn shared(
    site: &mut Site<'_, '_>,
    operation: &MemoryOperation,
    execute: Mask,
    places: &[u64; LANES],
    bytes: u32,
) {
    with(site, |site, race| {
        let mut hazards = Hazards::default();
        match operation.action {
            Action::Load => {
                for lane in lanes_of(execute) {
                    let mut access = lane_access(site, lane, AccessKind::Read);
                    (access.place, access.bytes) = (places[lane] as u32, bytes);
                    hazards.add(access, race.access(access));
                }
            }
            Action::Store => {
                each_store(
                    site,
                    operation,
                    execute,
                    places,
                    |lane, address, value, size| {
                        let mut access = lane_access(site, lane, AccessKind::Write);
                        (access.place, access.bytes) = (address as u32, size as u32);
                        access.value = value;
                        hazards.add(access, race.access(access));
                    },
                );
            }
            Action::Atomic(function, _) | Action::Reduce(function, _) => {
                let kind = match function {
                    AtomicOperation::Exchange
                    | AtomicOperation::CompareAndSwap
                    | AtomicOperation::CompareAndTest
                    | AtomicOperation::Arrive => AccessKind::Exchange,
                    _ => AccessKind::Atomic,
                };
                for lane in lanes_of(execute) {
                    let mut access = lane_access(site, lane, kind);
                    (access.place, access.bytes) = (places[lane] as u32, bytes);
                    hazards.add(access, race.atomic(access));
                }
            }
            _ => {}
        }
        hazards
    });
}

/// Bytes of shared memory that lanes read or write in one piece each.
#[cold]
pub fn pieces(site: &mut Site<'_, '_>, kind: AccessKind, pieces: &[(usize, u32, u32)]) {
    // Copies of PTX count as done: nobody says which ones are waited for.
    let native = site.context.launch.module.native;
    let kind = match kind {
        AccessKind::Copy if !native => AccessKind::Write,
        kind => kind,
    };
    with(site, |site, race| {
        let mut hazards = Hazards::default();
        for (lane, place, bytes) in pieces {
            let mut access = lane_access(site, *lane, kind);
            (access.place, access.bytes) = (*place, *bytes);
            hazards.add(access, race.access(access));
        }
        hazards
    });
}

/// The bulk engine writes pieces (place, bytes) of shared memory and tells an `mbarrier`.
#[cold]
pub fn bulk_writes(
    site: &mut Site<'_, '_>,
    pieces: impl Iterator<Item = (u32, u32)>,
    mbarrier: u32,
) {
    with(site, |site, race| {
        let mut hazards = Hazards::default();
        let lane = site.warp.convergence.active().trailing_zeros() as usize % LANES;
        let command = race.begin_bulk();
        for (place, bytes) in pieces {
            let mut access = lane_access(site, lane, AccessKind::Bulk);
            (access.place, access.bytes) = (place, bytes);
            hazards.add(access, race.bulk_access(access, command));
        }
        race.bulk_arrives(mbarrier, command);
        hazards
    });
}

/// An instruction that orders accesses within a warp, or ends copies, is about to be executed.
#[cold]
pub fn instruction(site: &mut Site<'_, '_>, instruction: &Instruction, execute: Mask) {
    let warp = site.warp.identity.warp_in_block as usize;
    let active = site.warp.convergence.active();
    let pc = site.warp.convergence.pc();
    let module = &site.context.launch.module;
    let mask = match instruction.operation {
        Operation::Flow(Flow::WarpSync | Flow::WarpSyncExclusive | Flow::Collective { .. })
            if execute != 0 =>
        {
            // Whoever waits there for these lanes has met them once they come.
            FULL
        }
        // A `__syncwarp` of lanes that are together anyway is a NOP.
        Operation::Nothing if execute != 0 => {
            let is_nop = module.text(pc).is_none_or(|text| text.starts_with("NOP"));
            if is_nop { active } else { 0 }
        }
        _ => 0,
    };
    let scheduling = &instruction.scheduling;
    let Some(race) = &mut site.block.race else {
        return;
    };
    if mask != 0 {
        race.meet(warp, mask);
    }
    if let Some(control) = scheduling.control {
        race.wait_for_counters(warp, control.wait_mask);
        if scheduling.dependency_barrier == DependencyBarrier::Arrive {
            race.close_group(warp, control.write_counter);
        }
    }
    if let DependencyBarrier::Wait { at_most, .. } = scheduling.dependency_barrier {
        race.wait_for_groups(warp, at_most.into());
    }
}
