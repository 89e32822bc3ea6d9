//! Barriers that threads use in ways that are not allowed.
//!
//! A barrier of the block (`__syncthreads`) wants all threads of a warp together; a number of threads is one of whole
//! warps of the block, and the same for all who come. `__syncwarp` wants its caller in the mask. An `mbarrier` wants to
//! be initialised before anything else.

use lockstep_isa::Mask;
use lockstep_isa::memory::MbarrierAction;
use lockstep_isa::warp_register::{LANES, lanes_of};

use super::{Check, Culprits, Findings, Subject, note};
use crate::sm::Block;
use crate::sm::site::Site;

/// Notes lanes of a warp that arrive at a barrier of their block in a way that is not allowed.
#[cold]
pub fn arrival(
    findings: &Findings,
    lanes: &Culprits<'_>,
    block: Option<&Block>,
    number: usize,
    expected: Option<u32>,
    aligned: bool,
) {
    let live = lanes.warp.convergence.live();
    // Those of PTX need not come together: where lanes meet again is for a compiler to say.
    let together = aligned && lanes.context.launch.module.native;
    let what = block.and_then(|block| {
        wrong_count(block, number, expected).or_else(|| {
            let apart = together && live & !lanes.lanes != 0;
            apart.then(|| {
                format!(
                    "barrier {number} is reached by {} of the {} threads of a warp; the others are elsewhere",
                    lanes.lanes.count_ones(),
                    live.count_ones()
                )
            })
        })
    });
    if let Some(what) = what {
        note(findings, Check::Barriers, lanes, Subject::default(), || {
            what
        });
    }
}

/// What is wrong with the number of threads that a barrier is for.
fn wrong_count(block: &Block, number: usize, expected: Option<u32>) -> Option<String> {
    let count = expected?;
    if !count.is_multiple_of(32) || count == 0 || count > block.warps.len() as u32 * 32 {
        return Some(format!(
            "barrier {number} for {count} threads, which is no number of whole warps of the block"
        ));
    }
    let barrier = &block.barriers[number];
    match barrier.progress() {
        (_, Some(others)) if barrier.is_used() && others != count => Some(format!(
            "barrier {number} for {count} threads, at which others wait for {others}"
        )),
        _ => None,
    }
}

/// Notes lanes that call `__syncwarp`, or what implies it, with a mask that leaves them out.
#[cold]
pub fn note_strangers(site: &Site<'_, '_>, strangers: Mask) {
    let culprits = Culprits::of(site, strangers);
    note(
        &site.port.findings,
        Check::Barriers,
        &culprits,
        Subject::default(),
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
        Subject::default(),
        || format!("an operation on an mbarrier at shared {place:#x} that nobody has initialised"),
    );
}
