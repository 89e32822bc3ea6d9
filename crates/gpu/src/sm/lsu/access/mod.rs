//! Loads, stores, atomics and copies of one warp.
//!
//! Values move here, at issue; what the access costs in time is the business of the issue model,
//! which learns from [`Done`] what was touched. Weak accesses to global memory read contents and
//! the SM's own log and write to that log; strong ones leave for their slice, and so do weak ones
//! whose sector has a strong one under way.
//!
//! Start reading at [`memory`].

mod cluster;
mod copy;
mod describe;
mod global;
mod local;
mod matrix;
mod mbarrier;
mod multicast;
mod registers;
mod shared;
mod store_buffer;
mod strong;
mod vectors;

use lockstep_isa::addresses::Addresses;
use lockstep_isa::memory::{
    Action, LOCAL_WINDOW, MemoryOperation, SHARED_WINDOW, Space, WINDOW_SIZE, classify_generic,
};
use lockstep_isa::operand::PredicateRegister;
use lockstep_isa::warp_register::{LANES, lanes_of};
use lockstep_isa::{Instruction, Mask};

pub use cluster::deliver_from_cluster;
pub use mbarrier::too_many;
pub use multicast::{Gathered, deliver_member};
pub use strong::deliver_answer;

use describe::{access_bytes, describe};

use crate::fault::FaultKind;
use crate::sm::lsu::outcome::{Done, Traffic};
use crate::sm::problem::Problem;
use crate::sm::site::Site;
use registers::{deliver, gather_values};
use vectors::{deliver_together, span};

/// Carries out a memory instruction for the lanes under its guard.
///
/// # Errors
/// What is wrong with the address of which lane.
pub fn memory(
    site: &mut Site<'_, '_>,
    instruction: &Instruction,
    operation: &MemoryOperation,
) -> Result<(), Problem> {
    site.port.done = Done::NOTHING;
    let lanes = site.warp.lanes(site.context, instruction);
    let execute = lanes.execute;
    if execute == 0 || matches!(operation.action, Action::Prefetch | Action::CacheControl) {
        return Ok(());
    }
    let bytes = access_bytes(operation);
    let mut addresses = operation.address.evaluate(&lanes, bytes);
    let copied = lanes.predicate(instruction.predicates[0]);
    gather_values(&lanes, operation, &mut site.port.values);
    if let Action::LoadMatrix { .. } | Action::StoreMatrix { .. } = operation.action {
        own_block(site, operation, execute, &mut addresses)?;
    }
    let places = &addresses.lanes;
    match operation.action {
        Action::StoreAsync | Action::ReduceAsync(..) => {
            return cluster::store_async(site, operation, execute, &addresses);
        }
        Action::LoadMatrix {
            matrices,
            transpose,
        } => {
            return matrix::load_matrix(site, operation, execute, places, matrices, transpose);
        }
        Action::StoreMatrix {
            matrices,
            transpose,
        } => {
            return matrix::store_matrix(site, operation, execute, places, matrices, transpose);
        }
        Action::CopyToShared => {
            return copy::copy_to_shared(site, operation, execute, copied, &addresses);
        }
        _ => {}
    }
    let bad = addresses.misaligned(execute, bytes);
    if bad != 0 {
        let lane = bad.trailing_zeros() as usize;
        return Err(Problem {
            lane,
            kind: FaultKind::Misaligned {
                what: describe(operation),
                address: places[lane],
                bytes,
            },
        });
    }
    if let Action::Mbarrier(action) = operation.action {
        let offsets = mbarrier::offsets(operation, execute, &addresses);
        return mbarrier::mbarrier(site, instruction, operation, action, execute, &offsets);
    }
    if let Action::LoadReduce(..) = operation.action {
        return multicast::load_reduced(site, operation, execute, &addresses);
    }
    match operation.space {
        Space::Global => global::global(site, operation, execute, &addresses),
        Space::Shared => cluster::shared_access(site, operation, execute, &addresses),
        Space::Local => local::local(site, operation, execute, places),
        Space::Constant { bank } => {
            constant(site, operation, execute, &addresses, bank);
            Ok(())
        }
        Space::Generic => generic(site, instruction, operation, execute, &addresses),
    }
}

/// An access to global memory whose addresses are known, as those of surfaces. Values to be written lie in the port.
///
/// # Errors
/// What is wrong with the address of which lane.
pub fn at_addresses(
    site: &mut Site<'_, '_>,
    operation: &MemoryOperation,
    execute: Mask,
    addresses: &Addresses,
) -> Result<(), Problem> {
    global::global(site, operation, execute, addresses)
}

/// Hands every value that a store is about to write to `write`: lane, address, word, bytes of it.
pub(crate) fn each_store(
    site: &Site<'_, '_>,
    operation: &MemoryOperation,
    execute: Mask,
    addresses: &[u64; LANES],
    write: impl FnMut(usize, u64, u32, usize),
) {
    registers::emit(&site.port.values, operation, execute, addresses, write);
}

/// Matrices are in the block's own memory, which an address may name by its rank.
fn own_block(
    site: &Site<'_, '_>,
    operation: &MemoryOperation,
    execute: Mask,
    addresses: &mut Addresses,
) -> Result<(), Problem> {
    if !cluster::may_name_blocks(site, addresses) {
        return Ok(());
    }
    let owners = cluster::owners(site, execute, &addresses.lanes);
    if owners.own & execute != execute {
        let lane = (execute & !owners.own).trailing_zeros() as usize;
        let what = format!("a {} of another block of the cluster", describe(operation));
        let kind = FaultKind::IllegalInstruction(what);
        return Err(Problem { lane, kind });
    }
    *addresses = Addresses::of(owners.offsets, access_bytes(operation));
    Ok(())
}

fn generic(
    site: &mut Site<'_, '_>,
    instruction: &Instruction,
    operation: &MemoryOperation,
    execute: Mask,
    addresses: &Addresses,
) -> Result<(), Problem> {
    let performed = instruction.predicate_destinations[0];
    if addresses.bounds(execute).0 >= SHARED_WINDOW.max(LOCAL_WINDOW) + WINDOW_SIZE {
        if performed != PredicateRegister::True {
            let mut lanes = site.warp.lanes(site.context, instruction);
            lanes.set_predicate(performed, execute);
        }
        return global::global(site, operation, execute, addresses);
    }
    let mut offsets = addresses.lanes;
    let (mut in_shared, mut in_local, mut in_parameters) = (0, 0, 0);
    let reads = matches!(operation.action, Action::Load);
    let kernel = site.context.launch.kernel();
    for lane in lanes_of(execute) {
        let address = addresses.lanes[lane];
        let (space, offset) = classify_generic(address);
        offsets[lane] = offset;
        match space {
            Space::Shared => in_shared |= 1 << lane,
            Space::Local => in_local |= 1 << lane,
            _ if reads && let Some(offset) = kernel.parameter_offset(address) => {
                offsets[lane] = offset;
                in_parameters |= 1 << lane;
            }
            _ => {}
        }
    }
    let in_global = execute & !in_shared & !in_local & !in_parameters;
    if let Action::Atomic(function, kind) = operation.action
        && performed != PredicateRegister::True
    {
        if !function.is_native_in(Space::Local, kind) {
            in_local = 0;
        }
        if !function.is_native_in(Space::Shared, kind) {
            in_shared = 0;
        }
        let mut lanes = site.warp.lanes(site.context, instruction);
        lanes.set_predicate(performed, in_shared | in_local | in_global);
    }
    let bytes = access_bytes(operation);
    // The last one says what it cost.
    if in_parameters != 0 {
        let offsets = Addresses::of(offsets, bytes);
        constant(site, operation, in_parameters, &offsets, 0);
    }
    if in_shared != 0 {
        let offsets = Addresses::of(offsets, bytes);
        cluster::shared_access(site, operation, in_shared, &offsets)?;
    }
    if in_local != 0 {
        local::local(site, operation, in_local, &offsets)?;
    }
    if in_global != 0 {
        let offsets = Addresses::of(offsets, bytes);
        global::global(site, operation, in_global, &offsets)?;
    }
    Ok(())
}

fn constant(
    site: &mut Site<'_, '_>,
    operation: &MemoryOperation,
    execute: Mask,
    addresses: &Addresses,
    bank: u8,
) {
    site.port.done.traffic = Traffic::Constant;
    if site.timed {
        let words = &mut site.port.constants;
        words.begin(bank);
        let lanes = addresses.lanes.iter().enumerate();
        for (_, address) in lanes.filter(|(lane, _)| execute >> lane & 1 != 0) {
            words.add(u32::try_from(*address).unwrap_or(!3));
        }
    }
    let banks = site.context.banks();
    let registers = &mut site.warp.registers;
    let layout = addresses.layout;
    if let Some(span) = span(layout, access_bytes(operation))
        && let Some(bytes) = banks.bytes(bank, addresses.lanes[0], span)
        && deliver_together(registers, operation, execute, layout, bytes)
    {
        return;
    }
    deliver(
        registers,
        operation,
        execute,
        &addresses.lanes,
        |_, address| banks.word(bank, u32::try_from(address).unwrap_or(!3)),
    );
}
