//! Shared memory of the blocks of a cluster: whose an address is, and accesses that leave for another SM.
//!
//! Bits 24-31 of a shared address say whose memory it is. In machine code they are the rank of the block, as on
//! an H200. In PTX the addresses of a block's own variables are known before it has a rank: 0 is the own
//! block, and `mapa` puts the rank plus one there.
//!
//! Start reading at [`shared_access`].

use lockstep_isa::addresses::Addresses;
use lockstep_isa::memory::{Action, AtomicOperation, AtomicType, MemoryOperation, Space};
use lockstep_isa::warp_register::{LANES, lanes_of};
use lockstep_isa::{Mask, WarpRegister};

use super::describe::{access_bytes, describe};
use super::registers::{deliver, emit, give_old, operand_of};
use super::shared::shared;
use crate::fault::FaultKind;
use crate::message::{ClusterAction, ClusterLane, ClusterRequest};
use crate::sm::cluster::CLUSTER_SECTOR;
use crate::sm::lsu::outcome::Traffic;
use crate::sm::lsu::transactions::NOBODY;
use crate::sm::problem::Problem;
use crate::sm::site::Site;

/// Where the rank begins in a shared address.
const RANK: u32 = 24;

/// Whose memory lanes mean.
pub(super) struct Owners {
    /// Lanes that mean the memory of their own block.
    pub own: Mask,
    /// Places in the memory of the block that is meant.
    pub offsets: [u64; LANES],
    /// Rank of that block.
    pub ranks: [u32; LANES],
}

/// Whether addresses of shared memory may name another block, or the own one by its rank.
#[inline(always)]
pub(super) fn may_name_blocks(site: &Site<'_, '_>, addresses: &Addresses) -> bool {
    let named = addresses.joined >> RANK != 0;
    match &site.block.cluster {
        // The first block has no bits there.
        Some(member) if site.context.launch.module.native => named || member.rank != 0,
        Some(_) => named,
        None => named && !site.context.launch.module.native,
    }
}

/// Finds out whose memory lanes mean.
#[inline(never)]
pub(super) fn owners(site: &Site<'_, '_>, execute: Mask, addresses: &[u64; LANES]) -> Owners {
    let native = site.context.launch.module.native;
    let own = site.block.cluster.as_ref().map_or(0, |member| member.rank);
    let mut found = Owners {
        own: 0,
        offsets: *addresses,
        ranks: [own; LANES],
    };
    for lane in lanes_of(execute) {
        let address = addresses[lane];
        let named = (address >> RANK & 0xff) as u32;
        found.ranks[lane] = match named {
            _ if native => named,
            0 => own,
            named => named - 1,
        };
        if found.ranks[lane] == own {
            found.own |= 1 << lane;
        }
        found.offsets[lane] = address & !(0xff << RANK);
    }
    found
}

/// An access to shared memory, of whichever block.
pub(super) fn shared_access(
    site: &mut Site<'_, '_>,
    operation: &MemoryOperation,
    execute: Mask,
    addresses: &Addresses,
) -> Result<(), Problem> {
    if !may_name_blocks(site, addresses) {
        return shared(site, operation, execute, addresses);
    }
    let owners = owners(site, execute, &addresses.lanes);
    let own = owners.own & execute;
    if own != 0 {
        let offsets = Addresses::of(owners.offsets, access_bytes(operation));
        shared(site, operation, own, &offsets)?;
    }
    let others = execute & !own;
    if others == 0 {
        return Ok(());
    }
    if site.context.launch.module.native && operation.space == Space::Shared {
        let lane = others.trailing_zeros() as usize;
        let kind = FaultKind::IllegalInstruction(format!(
            "a {} of block {} of the cluster; only generic addresses lead to other blocks",
            describe(operation),
            owners.ranks[lane]
        ));
        return Err(Problem { lane, kind });
    }
    let action = match operation.action {
        Action::Load => ClusterAction::Load,
        Action::Store => ClusterAction::Store,
        Action::Atomic(function, kind) if kind != AtomicType::B128 => {
            ClusterAction::Atomic(function, kind)
        }
        Action::Reduce(function, kind) => ClusterAction::Reduce(function, kind),
        _ => {
            let lane = others.trailing_zeros() as usize;
            let what = format!("a {} of another block", describe(operation));
            let kind = FaultKind::Cluster(what);
            return Err(Problem { lane, kind });
        }
    };
    leave(site, operation, action, others, &owners, |_, _| {})
}

/// `st.async`, `red.async`: the upper word of an address is the barrier that is told.
#[inline(never)]
pub(super) fn store_async(
    site: &mut Site<'_, '_>,
    operation: &MemoryOperation,
    execute: Mask,
    addresses: &Addresses,
) -> Result<(), Problem> {
    let action = match operation.action {
        Action::ReduceAsync(function, kind) => ClusterAction::ReduceAsync(function, kind),
        _ => ClusterAction::StoreAsync,
    };
    let owners = owners(
        site,
        execute,
        &addresses.lanes.map(|address| address & 0xffff_ffff),
    );
    let barriers = addresses.lanes.map(|address| (address >> 32) as u32);
    let bytes = u64::from(access_bytes(operation));
    for lane in lanes_of(execute) {
        if !owners.offsets[lane].is_multiple_of(bytes) || !barriers[lane].is_multiple_of(8) {
            let kind = FaultKind::Misaligned {
                what: describe(operation),
                address: addresses.lanes[lane],
                bytes: bytes as u32,
            };
            return Err(Problem { lane, kind });
        }
    }
    leave(site, operation, action, execute, &owners, |lane, access| {
        access.mbarrier = barriers[lane] & !(0xff << RANK);
    })
}

/// Sends the accesses of lanes to the SMs of the blocks that they mean, one message a block.
pub(super) fn leave(
    site: &mut Site<'_, '_>,
    operation: &MemoryOperation,
    action: ClusterAction,
    lanes: Mask,
    owners: &Owners,
    more: impl Fn(usize, &mut ClusterLane),
) -> Result<(), Problem> {
    let accesses = lane_accesses(site, operation, action, lanes, &owners.offsets);
    let answers = matches!(action, ClusterAction::Load | ClusterAction::Atomic(..));
    let transaction = if answers {
        site.open_transaction()
    } else {
        NOBODY
    };
    let (mut left, mut sent) = (lanes, 0);
    while left != 0 {
        let first = left.trailing_zeros() as usize;
        let rank = owners.ranks[first];
        let together = lanes_of(left)
            .filter(|lane| owners.ranks[*lane] == rank)
            .fold(0, |mask: Mask, lane| mask | 1 << lane);
        left &= !together;
        let (sm, block) = find(site, first, rank)?;
        let mut request = ClusterRequest::new(site.context.id.0, block, action);
        request.transaction = transaction;
        request.generation = site.port.in_flight.start(CLUSTER_SECTOR);
        let mut bytes = 0;
        for lane in lanes_of(together) {
            let mut access = accesses[lane];
            more(lane, &mut access);
            bytes += u64::from(access.bytes);
            request.lanes.push(access);
        }
        let bytes = if action == ClusterAction::Load {
            0
        } else {
            bytes
        };
        site.port
            .send_cluster(sm, request, bytes, *site.now, site.outbox);
        sent += 1;
    }
    if answers {
        site.port.transactions.expect(transaction, sent);
    }
    site.block.counters.shared_accesses += 1;
    site.port.done.traffic = Traffic::Remote;
    site.port.done.transaction = transaction;
    Ok(())
}

/// SM and number in the grid of a block of the cluster.
fn find(site: &Site<'_, '_>, lane: usize, rank: u32) -> Result<(u32, u64), Problem> {
    let member = site.block.cluster.as_ref();
    if member.is_none() && rank == 0 {
        // A block without a cluster is a cluster of one.
        return Ok((site.warp.identity.sm, site.block.index));
    }
    let known = member.and_then(|member| member.blocks.get(rank as usize));
    known.copied().ok_or_else(|| {
        let blocks = member.map_or(1, |member| member.blocks.len());
        let kind = FaultKind::Cluster(format!(
            "shared memory of block {rank} of a cluster that has {blocks}"
        ));
        Problem { lane, kind }
    })
}

/// What each lane accesses, with what it writes.
fn lane_accesses(
    site: &Site<'_, '_>,
    operation: &MemoryOperation,
    action: ClusterAction,
    lanes: Mask,
    offsets: &[u64; LANES],
) -> [ClusterLane; LANES] {
    let mut accesses = [ClusterLane::default(); LANES];
    let bytes = access_bytes(operation) as u8;
    for lane in lanes_of(lanes) {
        accesses[lane] = ClusterLane {
            lane: lane as u8,
            bytes,
            place: offsets[lane] as u32,
            ..ClusterLane::default()
        };
    }
    let values = &site.port.values;
    match action {
        ClusterAction::Store | ClusterAction::StoreAsync => {
            emit(
                values,
                operation,
                lanes,
                offsets,
                |lane, address, value, size| {
                    let at = (address - offsets[lane]) as usize;
                    let mut all = accesses[lane].as_bytes();
                    all[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
                    accesses[lane].set_bytes(all);
                },
            );
        }
        ClusterAction::Atomic(function, kind)
        | ClusterAction::Reduce(function, kind)
        | ClusterAction::ReduceAsync(function, kind) => {
            for lane in lanes_of(lanes) {
                accesses[lane].words = operands(values, function, kind, lane);
            }
        }
        _ => {}
    }
    accesses
}

fn operands(
    values: &[WarpRegister; 8],
    function: AtomicOperation,
    kind: AtomicType,
    lane: usize,
) -> [u32; 4] {
    let operand = operand_of(values, kind, lane, 0);
    let second = match function {
        AtomicOperation::CompareAndSwap => operand_of(values, kind, lane, 1),
        _ => 0,
    };
    [
        operand as u32,
        (operand >> 32) as u32,
        second as u32,
        (second >> 32) as u32,
    ]
}

/// Writes what came from another block into registers.
pub fn deliver_from_cluster(
    registers: &mut [WarpRegister],
    operation: &MemoryOperation,
    request: &ClusterRequest,
) {
    match request.action {
        ClusterAction::Load => {
            let mut words = [[0; 4]; LANES];
            let mut mask = 0;
            for access in &request.lanes {
                words[usize::from(access.lane)] = access.words;
                mask |= 1 << access.lane;
            }
            deliver(registers, operation, mask, &[0; LANES], |lane, address| {
                words[lane][(address / 4) as usize & 3]
            });
        }
        ClusterAction::Atomic(_, kind) => {
            for access in &request.lanes {
                let old = access.long(0).into();
                give_old(registers, operation, usize::from(access.lane), 0, kind, old);
            }
        }
        _ => {}
    }
}
