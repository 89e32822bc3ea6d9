//! Loads, stores, atomics and copies of one warp.
//!
//! Values move here, at issue; what the access costs in time is the business of the issue model,
//! which learns from [`Done`] what was touched. Weak accesses to global memory read contents and
//! the SM's own log and write to that log; strong ones leave for their slice, and so do weak ones
//! whose sector has a strong one under way.
//!
//! Start reading at [`memory`].

mod copy;
mod global;
mod local;
mod matrix;
mod registers;
mod shared;
mod strong;
mod vectors;

use lockstep_isa::addresses::Addresses;
use lockstep_isa::memory::{
    Action, LOCAL_WINDOW, MemoryOperation, SHARED_WINDOW, Scope, Space, Strength, WINDOW_SIZE,
    classify_generic,
};
use lockstep_isa::warp_register::lanes_of;
use lockstep_isa::{Instruction, Mask};

pub use strong::deliver_answer;

use crate::fault::FaultKind;
use crate::sm::lsu::port::NOBODY;
use crate::sm::site::{Problem, Site};
use registers::{deliver, gather_values};
use vectors::{deliver_together, span};

/// What the time of an atomic on shared memory depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedAtomic {
    /// Wavefronts after those of the first lane.
    pub waiting: u32,
    /// Compares before it writes.
    pub swaps: bool,
    /// On 64 bits.
    pub wide: bool,
}

/// What an access touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// Nothing, or nothing that takes time.
    None,
    /// Shared memory, in so many wavefronts over its banks.
    Shared {
        /// Wavefronts; 1 without conflicts.
        wavefronts: u32,
        /// Read, modify, write.
        atomic: Option<SharedAtomic>,
    },
    /// A bank of constants.
    Constant,
    /// Local memory: sectors in `Port::found`.
    Local {
        /// Stores.
        write: bool,
    },
    /// Sectors of global memory in `Port::found`; strong accesses are under way by themselves.
    Global {
        /// Stores.
        write: bool,
    },
}

/// How an access went. It lies in [`Port::done`](super::port::Port::done) and is read there: handed from
/// function to function, each copy would wait until the words just written have reached the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// What it touched weakly.
    pub traffic: Traffic,
    /// The transaction whose answers bring values, or `NOBODY`.
    pub transaction: u32,
    /// Lines of the sectors that left for their slices.
    pub strong_lines: u8,
    /// Whether these are loaded.
    pub strong_load: bool,
    /// Wavefronts over L1, where they are known: of local memory, and of loads whose words lie in
    /// several lines.
    pub wavefronts: u16,
    /// Sectors of [`Port::changed`](super::port::Port::changed) are no longer what L1 has.
    pub changed: bool,
    /// Nothing happened yet: strong accesses under way must be answered first.
    pub order_first: bool,
}

impl Done {
    /// An access of no lane.
    pub const NOTHING: Self = Self {
        traffic: Traffic::None,
        transaction: NOBODY,
        strong_lines: 0,
        strong_load: false,
        wavefronts: 0,
        changed: false,
        order_first: false,
    };
}

impl Done {
    /// Whether others than the block could notice the access.
    #[must_use]
    #[inline(always)]
    pub fn is_seen_by_others(&self) -> bool {
        matches!(self.traffic, Traffic::Global { .. })
    }
}

/// Whether an access is performed at its slice.
#[must_use]
pub fn is_strong(operation: &MemoryOperation) -> bool {
    match operation.action {
        Action::Atomic(..) | Action::Reduce(..) => true,
        Action::Load | Action::Store => {
            matches!(operation.strength, Strength::Strong { scope, .. } if scope > Scope::Block)
        }
        _ => false,
    }
}

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
    let addresses = operation.address.evaluate(&lanes, bytes);
    let copied = lanes.predicate(instruction.predicates[0]);
    gather_values(&lanes, operation, &mut site.port.values);
    let places = &addresses.lanes;
    match operation.action {
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
    match operation.space {
        Space::Global => global::global(site, operation, execute, &addresses),
        Space::Shared => shared::shared(site, operation, execute, &addresses),
        Space::Local => local::local(site, operation, execute, places),
        Space::Constant { bank } => {
            constant(site, operation, execute, &addresses, bank);
            Ok(())
        }
        Space::Generic => generic(site, operation, execute, &addresses),
    }
}

/// Bytes that one lane accesses.
fn access_bytes(operation: &MemoryOperation) -> u32 {
    let element = match operation.action {
        Action::Atomic(_, kind) | Action::Reduce(_, kind) => kind.bytes(),
        _ => operation.element.bytes(),
    };
    element * u32::from(operation.elements.max(1))
}

fn describe(operation: &MemoryOperation) -> String {
    let space = match operation.space {
        Space::Global => "global",
        Space::Shared => "shared",
        Space::Local => "local",
        Space::Constant { .. } => "constant",
        Space::Generic => "generic",
    };
    let action = match operation.action {
        Action::Load => "load",
        Action::Store => "store",
        Action::Atomic(..) => "atomic",
        Action::Reduce(..) => "reduction",
        Action::LoadMatrix { .. } => "matrix load",
        Action::StoreMatrix { .. } => "matrix store",
        Action::CopyToShared => "copy to shared memory",
        Action::Prefetch => "prefetch",
        Action::CacheControl => "cache control",
    };
    format!("{space} {action}")
}

fn illegal(
    site: &Site<'_, '_>,
    operation: &MemoryOperation,
    lane: usize,
    address: u64,
    space: Space,
) -> Problem {
    let nearest = match space {
        Space::Shared => Some(0..site.block.shared.len() as u64),
        Space::Local => Some(0..u64::from(site.warp.local.bytes())),
        _ => site.port.contents.nearest(address),
    };
    Problem {
        lane,
        kind: FaultKind::IllegalAddress {
            what: describe(operation),
            address,
            bytes: access_bytes(operation),
            nearest,
        },
    }
}

fn generic(
    site: &mut Site<'_, '_>,
    operation: &MemoryOperation,
    execute: Mask,
    addresses: &Addresses,
) -> Result<(), Problem> {
    if addresses.bounds(execute).0 >= SHARED_WINDOW.max(LOCAL_WINDOW) + WINDOW_SIZE {
        return global::global(site, operation, execute, addresses);
    }
    let mut offsets = addresses.lanes;
    let (mut in_shared, mut in_local) = (0, 0);
    for lane in lanes_of(execute) {
        let (space, offset) = classify_generic(addresses.lanes[lane]);
        offsets[lane] = offset;
        match space {
            Space::Shared => in_shared |= 1 << lane,
            Space::Local => in_local |= 1 << lane,
            _ => {}
        }
    }
    let in_global = execute & !in_shared & !in_local;
    let bytes = access_bytes(operation);
    // The last one says what it cost.
    if in_shared != 0 {
        let offsets = Addresses::of(offsets, bytes);
        shared::shared(site, operation, in_shared, &offsets)?;
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
