//! What stops a kernel: where it happened, what was found.
//!
//! Start reading at [`FaultKind`].

use std::fmt;
use std::ops::Range;

use lockstep_units::Cycle;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A kernel that cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// What happened.
    pub kind: FaultKind,
    /// Launch number.
    pub launch: u32,
    /// Mangled name of the kernel.
    pub kernel: String,
    /// Block and thread, where one thread is to blame.
    pub place: Option<Place>,
    /// SM that met it.
    pub sm: u32,
    /// When, in SM cycles.
    pub cycle: Cycle,
}

/// A thread at an instruction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Index of the block.
    pub block: [u32; 3],
    /// Index of the thread in its block.
    pub thread: [u32; 3],
    /// Index of the instruction.
    pub pc: u32,
    /// The function it is in, if known.
    pub function: String,
    /// Its text, if the front end kept it.
    pub instruction: String,
    /// `file:line` of the source, if known.
    pub line: String,
}

/// Kinds of faults.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Error)]
pub enum FaultKind {
    /// A trace that cannot be replayed.
    #[error("the trace of the kernel cannot be replayed: {0}")]
    Trace(String),
    /// An address that no allocation holds.
    #[error("illegal {what} of {bytes} bytes at {address:#x}{}", near(.what, *.address, .nearest))]
    IllegalAddress {
        /// "global load", "shared store", …
        what: String,
        /// The address.
        address: u64,
        /// Bytes that were accessed.
        bytes: u32,
        /// The allocation closest to it.
        nearest: Option<Range<u64>>,
    },
    /// A write to memory that is mapped for reading.
    #[error(
        "illegal {what} of {bytes} bytes at {address:#x}: {:#x} to {:#x} is mapped for reading only",
        .range.start, .range.end
    )]
    ReadOnly {
        /// "global store", "global atomic", …
        what: String,
        /// The address.
        address: u64,
        /// Bytes that were accessed.
        bytes: u32,
        /// The allocation that holds it.
        range: Range<u64>,
    },
    /// An access to a multicast object that it does not take, or one that needs such an object and has none.
    #[error("illegal {what} at {address:#x}: {why}")]
    Multicast {
        /// "global load", "global store", …
        what: String,
        /// The address.
        address: u64,
        /// What is wrong.
        why: String,
    },
    /// An address that is not a multiple of the access.
    #[error("misaligned {what}: {address:#x} is not a multiple of {bytes}")]
    Misaligned {
        /// "global load", "shared store", …
        what: String,
        /// The address.
        address: u64,
        /// Bytes that were accessed.
        bytes: u32,
    },
    /// Code that cannot be executed here.
    #[error("unsupported instruction: {0}")]
    Unsupported(String),
    /// A word that is no instruction, or one that the kernel may not execute.
    #[error("illegal instruction: {0}")]
    IllegalInstruction(String),
    /// An arrival at a barrier in shared memory that the barrier does not expect.
    #[error("{0}")]
    Mbarrier(String),
    /// An access to another block of the cluster that it does not allow.
    #[error("{0}")]
    Cluster(String),
    /// A jump to where no code of the kernel is.
    #[error("jump to {target:#x}, where no code of the kernel is")]
    IllegalJump {
        /// Index of the instruction, or a code address.
        target: u64,
    },
    /// Another rank of the simulation is gone.
    #[error("{0}")]
    Rank(String),
    /// A read that comes before the value, in the checking mode.
    #[error("early read of {0}: the control bits, or what is known of them, are wrong")]
    EarlyRead(String),
    /// `assert` failed.
    #[error("{0}")]
    Assert(String),
    /// `trap`.
    #[error("the kernel executed a trap")]
    Trap,
    /// Nothing can happen any more, or nothing has happened for too long.
    #[error("the kernel hangs: {0}")]
    Hang(String),
    /// `free` of what was not allocated.
    #[error("free of {pointer:#x}, which is no allocation of the device heap")]
    InvalidFree {
        /// What was freed.
        pointer: u64,
    },
    /// A block that no SM can hold.
    #[error("{0}")]
    TooLarge(String),
}

/// Where an address lies beside an allocation, for messages.
pub(crate) fn offset_from(range: &Range<u64>, address: u64) -> String {
    let Range { start, end } = *range;
    let bytes = end - start;
    let place = if address < start {
        format!("{} bytes before", start - address)
    } else if address < end {
        format!("{} bytes into, and past the end of,", address - start)
    } else {
        format!("{} bytes past the end of", address - end)
    };
    format!(", {place} the nearest allocation, {start:#x} to {end:#x} ({bytes} bytes)")
}

fn near(what: &str, address: u64, nearest: &Option<Range<u64>>) -> String {
    match nearest {
        Some(range) if what.starts_with("local") => format!(
            ", outside the {} bytes of local memory that a thread has for its stack; deep recursion \
             needs more, see cudaDeviceSetLimit(cudaLimitStackSize, ...)",
            range.end
        ),
        Some(range) if what.starts_with("shared") => {
            format!(
                ", outside the {} bytes of shared memory of the block",
                range.end
            )
        }
        Some(range) => offset_from(range, address),
        None => "; nothing is allocated".into(),
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel `{}` (launch {})", self.kernel, self.launch)?;
        if let Some(place) = &self.place {
            let [x, y, z] = place.block;
            write!(f, ", block ({x},{y},{z})")?;
            let [x, y, z] = place.thread;
            write!(f, ", thread ({x},{y},{z})")?;
            write!(f, ", instruction {}", place.pc)?;
            if !place.function.is_empty() && place.function != self.kernel {
                write!(f, " of `{}`", place.function)?;
            }
            if !place.instruction.is_empty() {
                write!(f, " `{}`", place.instruction)?;
            }
            if !place.line.is_empty() {
                write!(f, " ({})", place.line)?;
            }
        }
        write!(f, ", SM {}, {}: {}", self.sm, self.cycle, self.kind)
    }
}

impl std::error::Error for Fault {}
