//! Barriers in shared memory (`mbarrier`, `SYNCS`).
//!
//! States are kept by the block, not in its memory (`sm/mbarrier_table.rs`). A lane that arrives changes one at
//! once; lanes that wait are told by the SM when a phase ends (`sm/mbarrier_waits.rs`).
//!
//! Start reading at [`mbarrier()`].

use lockstep_isa::addresses::Addresses;
use lockstep_isa::memory::{
    AfterCopies, Amount, MbarrierAction, MbarrierResult, MemoryOperation, Space, classify_generic,
};
use lockstep_isa::operand::PredicateRegister;
use lockstep_isa::semantics::mbarrier::{self, Change};
use lockstep_isa::warp_register::{FULL, LANES, lanes_of};
use lockstep_isa::{Instruction, Mask, WarpRegister};

use super::cluster::{self, Owners};
use super::describe::illegal;
use crate::check::barriers;
use crate::check::race::RaceChecker;
use crate::fault::FaultKind;
use crate::message::ClusterAction;
use crate::sm::lsu::outcome::Traffic;
use crate::sm::mbarrier_table::BYTES;
use crate::sm::mbarrier_waits::CopyArrival;
use crate::sm::problem::Problem;
use crate::sm::site::Site;

/// Carries out an operation on barriers for the lanes under its guard.
#[inline(never)]
pub(super) fn mbarrier(
    site: &mut Site<'_, '_>,
    instruction: &Instruction,
    operation: &MemoryOperation,
    action: MbarrierAction,
    execute: Mask,
    addresses: &Addresses,
) -> Result<(), Problem> {
    let mut execute = execute;
    let mut addresses = addresses.clone();
    if cluster::may_name_blocks(site, &addresses) {
        let owners = cluster::owners(site, execute, &addresses.lanes);
        let others = execute & !owners.own;
        if others != 0 {
            arrive_elsewhere(site, operation, action, others, &owners)?;
        }
        execute &= owners.own;
        if execute == 0 {
            return Ok(());
        }
        addresses = Addresses::of(owners.offsets, BYTES as u32);
    }
    let limit = site.block.shared.len() as u64;
    let outside = |lane: &usize| addresses.lanes[*lane] + BYTES as u64 > limit;
    if let Some(lane) = lanes_of(execute).find(outside) {
        let address = addresses.lanes[lane];
        return Err(illegal(site, operation, lane, address, Space::Shared));
    }
    let places = addresses.lanes.map(|address| address as u32);
    if site.port.checks.barriers {
        barriers::mbarrier(site, action, execute, &places);
    }
    match action {
        MbarrierAction::Initialize => {
            for lane in lanes_of(execute) {
                let state = mbarrier::initial(site.port.values[0].0[lane]);
                *self::state(site, places[lane]) = state;
            }
        }
        MbarrierAction::Exchange => exchange(site, operation, execute, &places),
        MbarrierAction::Change { returns, .. } => {
            change(site, operation, action, returns, execute, &places)?;
        }
        MbarrierAction::Test { by_parity, waits } => {
            let ended = test(site, instruction, execute, &places, by_parity, waits);
            tell_race(site, ended, |race, warp, lane| {
                race.leave_mbarrier(places[lane], warp, execute);
            });
        }
        MbarrierAction::Invalidate => {
            for lane in lanes_of(execute) {
                let block = &mut *site.block;
                block.mbarriers.write_back(places[lane], &mut block.shared);
            }
        }
        MbarrierAction::AfterCopies { then, announces } => {
            let announced = Change {
                transactions: 1,
                ..Change::default()
            };
            for lane in lanes_of(execute).filter(|_| announces) {
                apply(site, lane, places[lane], announced)?;
            }
            after_copies(site, execute, &places, then);
        }
    }
    if !site.port.done.suspends {
        site.block.counters.shared_accesses += 1;
        site.port.done.traffic = Traffic::Mbarrier;
    }
    Ok(())
}

/// Tells the checker of races, if there is one, of lanes of the warp.
fn tell_race(
    site: &mut Site<'_, '_>,
    lanes: Mask,
    mut tell: impl FnMut(&mut RaceChecker, usize, usize),
) {
    if let Some(race) = &mut site.block.race {
        let warp = site.warp.identity.warp_in_block as usize;
        lanes_of(lanes).for_each(|lane| tell(race, warp, lane));
    }
}

/// Lanes arrive when the copies of their warp are complete.
fn after_copies(site: &mut Site<'_, '_>, execute: Mask, places: &[u32; LANES], then: AfterCopies) {
    tell_race(site, execute, |race, warp, lane| {
        race.copies_arrive(places[lane], warp);
    });
    let arrivals = &mut site.port.mbarriers.after_copies;
    for lane in lanes_of(execute) {
        match arrivals
            .iter_mut()
            .find(|known| known.place == places[lane])
        {
            Some(known) => known.lanes += 1,
            None => arrivals.push(CopyArrival {
                block: site.warp.block,
                place: places[lane],
                lanes: 1,
                then,
            }),
        }
    }
    site.port.done.mbarrier = true;
}

/// Arrivals at barriers of other blocks return nothing.
fn arrive_elsewhere(
    site: &mut Site<'_, '_>,
    operation: &MemoryOperation,
    action: MbarrierAction,
    lanes: Mask,
    owners: &Owners,
) -> Result<(), Problem> {
    let silent = operation.data[0].is_none();
    if !matches!(action, MbarrierAction::Change { .. } if silent) {
        let what = "an operation on an mbarrier of another block that is none of the remote ones";
        let kind = FaultKind::Cluster(what.into());
        let lane = lanes.trailing_zeros() as usize;
        return Err(Problem { lane, kind });
    }
    let values = site.port.values[0];
    cluster::leave(
        site,
        operation,
        ClusterAction::Mbarrier,
        lanes,
        owners,
        |lane, access| {
            access.change = change_of(action, values.0[lane]);
        },
    )
}

/// Where lanes look in shared memory, whose addresses may be generic.
pub(super) fn offsets(
    operation: &MemoryOperation,
    execute: Mask,
    addresses: &Addresses,
) -> Addresses {
    if operation.space != Space::Generic {
        return addresses.clone();
    }
    let mut offsets = addresses.lanes;
    for lane in lanes_of(execute) {
        if let (Space::Shared, offset) = classify_generic(offsets[lane]) {
            offsets[lane] = offset;
        }
    }
    Addresses::of(offsets, BYTES as u32)
}

/// The state of a barrier.
fn state<'a>(site: &'a mut Site<'_, '_>, place: u32) -> &'a mut u64 {
    let block = &mut *site.block;
    block.mbarriers.state(place, &block.shared)
}

/// Changes a barrier and gives its state before.
fn apply(site: &mut Site<'_, '_>, lane: usize, place: u32, change: Change) -> Result<u64, Problem> {
    let block = &mut *site.block;
    let Some((old, ended)) = block.mbarriers.change(place, change, &block.shared) else {
        let kind = FaultKind::Mbarrier(too_many(place, change));
        return Err(Problem { lane, kind });
    };
    if ended {
        site.port.mbarriers.ended.push(place);
        site.port.done.mbarrier = true;
    }
    Ok(old)
}

/// What is wrong with an arrival that nobody expects.
pub fn too_many(place: u32, change: Change) -> String {
    let Change {
        arrivals,
        transactions,
        ..
    } = change;
    format!(
        "{arrivals} arrivals and {transactions} bytes of transactions at the mbarrier at shared \
         {place:#x}: more than are pending in this phase, or than it can count"
    )
}

/// `SYNCS.EXCH.64` is of the uniform datapath: one exchange for the warp.
fn exchange(
    site: &mut Site<'_, '_>,
    operation: &MemoryOperation,
    execute: Mask,
    places: &[u32; LANES],
) {
    let lane = execute.trailing_zeros() as usize;
    let [low, high] = [0, 1].map(|word| u64::from(site.port.values[word].0[lane]));
    let old = std::mem::replace(state(site, places[lane]), low | high << 32);
    if let Some(row) = operation.data[0] {
        for (word, value) in [old as u32, (old >> 32) as u32].into_iter().enumerate() {
            let register = &mut site.warp.registers[usize::from(row) + word];
            *register = WarpRegister::splat(value);
        }
    }
}

/// What one lane changes.
pub(super) fn change_of(action: MbarrierAction, value: u32) -> Change {
    let MbarrierAction::Change {
        arrivals,
        transactions,
        completes,
        drops,
        ..
    } = action
    else {
        return Change::default();
    };
    let number = |amount: Amount| match amount {
        Amount::Zero => 0,
        Amount::One => 1,
        Amount::Value => value,
    };
    let bytes = i64::from(number(transactions));
    Change {
        arrivals: number(arrivals).into(),
        transactions: if completes { -bytes } else { bytes },
        drops,
    }
}

/// Arrivals and transactions. Lanes of a warp that name one barrier change it together, as on an H200: all of
/// them are returned the state before, and more arrivals than are pending stop the kernel even if the phase
/// would end in between.
fn change(
    site: &mut Site<'_, '_>,
    operation: &MemoryOperation,
    action: MbarrierAction,
    returns: MbarrierResult,
    execute: Mask,
    places: &[u32; LANES],
) -> Result<(), Problem> {
    let mut left = execute;
    while left != 0 {
        let first = left.trailing_zeros() as usize;
        let together = lanes_of(left)
            .filter(|lane| places[*lane] == places[first])
            .fold(0, |mask: Mask, lane| mask | 1 << lane);
        left &= !together;
        let values = &site.port.values[0].0;
        let all = lanes_of(together).fold(Change::default(), |all, lane| {
            all.with(change_of(action, values[lane]))
        });
        if let Some(race) = &mut site.block.race {
            race.arrive_at_mbarrier(places[first], site.warp.identity.warp_in_block as usize);
        }
        let old = apply(site, first, places[first], all)?;
        let Some(row) = operation.data[0].map(usize::from) else {
            continue;
        };
        for lane in lanes_of(together) {
            match returns {
                MbarrierResult::Nothing => continue,
                MbarrierResult::State => {}
                MbarrierResult::Lanes => site.warp.registers[row].0[lane] = together,
            }
            site.warp.registers[row + 1].0[lane] = (old >> 32) as u32;
        }
    }
    Ok(())
}

/// Lanes whose phases have ended. If none has, a warp that would wait says so, and tests again when one has or
/// its time is over.
fn test(
    site: &mut Site<'_, '_>,
    instruction: &Instruction,
    execute: Mask,
    places: &[u32; LANES],
    by_parity: bool,
    waits: bool,
) -> Mask {
    let shift = if by_parity { 31 } else { 0 };
    let mut ended: Mask = 0;
    for lane in lanes_of(execute) {
        let token = site.port.values[0].0[lane] << shift;
        ended |= Mask::from(mbarrier::has_ended(*state(site, places[lane]), token)) << lane;
    }
    if ended == 0 && waits {
        let places = lanes_of(execute).map(|lane| places[lane]);
        site.port.mbarriers.set_places(places);
        let others = site.warp.convergence.others_can_run();
        site.port.done.yields = others;
        if !others && suspend(site) {
            site.port.done.suspends = true;
            return 0;
        }
        site.port.done.mbarrier = true;
    }
    site.warp.suspended_until = 0;
    if let PredicateRegister::Lanes(index) = instruction.predicate_destinations[0] {
        let old = &mut site.warp.predicates[usize::from(index)];
        *old = (ended & execute) | (*old & !execute & FULL);
    }
    ended
}

/// Whether the warp still waits at its barrier; notes until when, the first time. The program's hint changes
/// nothing: an H200 waits equally long whatever it is.
fn suspend(site: &mut Site<'_, '_>) -> bool {
    let now = site.now.cycle;
    if site.warp.suspended_until == 0 {
        site.warp.suspended_until = now + site.port.mbarriers.wait.max(1);
    }
    now < site.warp.suspended_until
}
