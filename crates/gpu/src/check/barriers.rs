//! Barriers that threads use in ways that are not allowed.
//!
//! A barrier of the block (`__syncthreads`) wants all threads of a warp together; a number of threads is one of whole
//! warps of the block, and the same for all who come. `__syncwarp` wants its caller in the mask. An `mbarrier` wants to
//! be initialised before anything else.

use lockstep_isa::Mask;
use lockstep_isa::memory::MbarrierAction;
use lockstep_isa::warp_register::{LANES, lanes_of};

use super::{Check, Culprits, note};
use crate::sm::Block;
use crate::sm::site::Site;

/// What is wrong with the arrival of lanes at a barrier of their block, if anything is: the lanes, and what they did.
/// `live` are the lanes of their warp that have not ended, if they are known to come together: those of PTX need not.
#[must_use]
pub fn arrival(
    block: Option<&Block>,
    number: usize,
    expected: Option<u32>,
    execute: Mask,
    live: Option<Mask>,
) -> Option<(Mask, String)> {
    let block = block?;
    let threads = block.warps.len() as u32 * 32;
    if let Some(count) = expected {
        if !count.is_multiple_of(32) || count == 0 || count > threads {
            let what = format!(
                "barrier {number} for {count} threads, which is no number of whole warps of the block"
            );
            return Some((execute, what));
        }
        let barrier = &block.barriers[number];
        if let (true, (_, Some(others))) = (barrier.is_used(), barrier.progress())
            && others != count
        {
            let what =
                format!("barrier {number} for {count} threads, at which others wait for {others}");
            return Some((execute, what));
        }
    }
    let live = live.unwrap_or(execute);
    if live & !execute != 0 {
        let what = format!(
            "barrier {number} is reached by {} of the {} threads of a warp; the others are elsewhere",
            execute.count_ones(),
            live.count_ones()
        );
        return Some((execute, what));
    }
    None
}

/// Notes lanes that call `__syncwarp`, or what implies it, with a mask that leaves them out.
#[cold]
pub fn note_strangers(site: &Site<'_, '_>, strangers: Mask) {
    let culprits = Culprits::of(site, strangers);
    note(
        &site.port.findings,
        Check::Barriers,
        &culprits,
        None,
        || "a synchronisation of lanes by a thread that is not one of them".into(),
    );
}

/// Notes lanes that use an `mbarrier` which nobody has initialised.
#[cold]
pub fn mbarrier(site: &Site<'_, '_>, action: MbarrierAction, execute: Mask, places: &[u32; LANES]) {
    if matches!(
        action,
        MbarrierAction::Initialize | MbarrierAction::Exchange
    ) {
        return;
    }
    let unknown = |lane: &usize| !site.block.mbarriers.is_known(places[*lane]);
    let lanes = lanes_of(execute)
        .filter(unknown)
        .fold(0, |lanes: Mask, lane| lanes | 1 << lane);
    if lanes == 0 {
        return;
    }
    let place = places[lanes.trailing_zeros() as usize];
    let culprits = Culprits::of(site, lanes);
    note(
        &site.port.findings,
        Check::Barriers,
        &culprits,
        None,
        || format!("an operation on an mbarrier at shared {place:#x} that nobody has initialised"),
    );
}
