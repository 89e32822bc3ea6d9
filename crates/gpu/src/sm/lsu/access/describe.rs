//! What an access is: its size, its kind, its words in an error.

use lockstep_isa::memory::{Action, AtomicOperation, MemoryOperation, Scope, Space, Strength};

use crate::fault::FaultKind;
use crate::sm::problem::Problem;
use crate::sm::site::Site;

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

/// Whether an access reads what was there: a load does, and an atomic other than an exchange.
#[must_use]
pub fn reads(operation: &MemoryOperation) -> bool {
    match operation.action {
        Action::Load => true,
        Action::Atomic(function, _) | Action::Reduce(function, _) => {
            function != AtomicOperation::Exchange
        }
        _ => false,
    }
}

/// Bytes that one lane accesses.
pub fn access_bytes(operation: &MemoryOperation) -> u32 {
    let element = match operation.action {
        Action::Atomic(_, kind)
        | Action::Reduce(_, kind)
        | Action::LoadReduce(_, kind, _)
        | Action::ReduceAsync(_, kind) => kind.bytes(),
        _ => operation.element.bytes(),
    };
    element * u32::from(operation.elements.max(1))
}

/// Its space and what it does.
pub fn describe(operation: &MemoryOperation) -> String {
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
        Action::LoadReduce(..) => "load and reduction over a multicast object",
        Action::Mbarrier(_) => "mbarrier operation",
        Action::StoreAsync => "asynchronous store",
        Action::ReduceAsync(..) => "asynchronous reduction",
        Action::Prefetch => "prefetch",
        Action::CacheControl => "cache control",
    };
    format!("{space} {action}")
}

/// An address that no allocation of the space holds.
pub fn illegal(
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

/// A write where memory may only be read.
pub fn read_only(
    site: &Site<'_, '_>,
    operation: &MemoryOperation,
    lane: usize,
    address: u64,
) -> Problem {
    Problem {
        lane,
        kind: FaultKind::ReadOnly {
            what: describe(operation),
            address,
            bytes: access_bytes(operation),
            range: site.port.contents.find_read_only(address).unwrap_or(0..0),
        },
    }
}
