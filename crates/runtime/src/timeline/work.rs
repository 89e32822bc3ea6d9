//! What streams do.

use crate::device::Device;
use crate::host::Direction;
use lockstep_isa::Launch;
use lockstep_protocol::{Extent, ProgramStep, Rows, ValueAction, ValueWork};
use lockstep_units::Duration;

use super::{BusTime, Position, StreamKey};

/// Something that a stream does.
#[derive(Debug)]
pub enum Work {
    /// Run a kernel; prepared when its turn comes, because it may depend on memory.
    Kernel(Box<KernelWork>),
    /// Occupy a copy engine, then change memory.
    Transfer {
        /// From taking the engine to giving it back.
        takes: Takes,
        /// What changes when it is complete.
        effect: Effect,
    },
    /// Note the time.
    Record {
        /// Number of the recording.
        recording: u64,
    },
    /// Wait until a point of another stream is reached.
    Wait {
        /// The stream that is waited for.
        stream: StreamKey,
        /// The point.
        position: Position,
    },
    /// Change memory without taking time.
    Instant(Effect),
    /// Wait for a value in memory, or write one.
    Value(ValueWork),
    /// Wait until the program has performed a step.
    Program(ProgramStep),
    /// Move managed pages ahead of their use; the model of paging says when that is complete.
    Prefetch {
        /// Its number there.
        ticket: u64,
        /// First byte.
        address: u64,
        /// Number of bytes.
        bytes: u64,
        /// To which GPU, or back to the host.
        to: Option<u32>,
    },
    /// Remove streams whose work is complete: those of a graph, at its end.
    Join(Vec<StreamKey>),
}

/// How long a transfer takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Takes {
    /// A fixed time, and what moves meanwhile.
    Fixed(Duration, Moves),
    /// As long as the link to the host takes for so many bytes, behind the copies that began before.
    Bus(Direction, BusTime, u64),
    /// As long as the host as a machine takes for so many bytes.
    Host(u64, Direction),
    /// As long as the links between two GPUs take for so many bytes, among the others on them, and a
    /// fixed time on top.
    Links {
        /// The GPU that has them.
        from: u32,
        /// The GPU that gets them.
        to: u32,
        /// Bytes.
        bytes: u64,
        /// On top of what the links take.
        latency: Duration,
    },
}

/// What a transfer moves, for those who write it down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moves {
    /// From where to where, in words.
    pub way: &'static str,
    /// How many bytes.
    pub bytes: u64,
}

impl Takes {
    /// What moves.
    pub(super) fn moves(self) -> Moves {
        match self {
            Self::Fixed(_, moves) => moves,
            Self::Links { bytes, .. } => Moves {
                way: "device to device",
                bytes,
            },
            Self::Host(bytes, direction) | Self::Bus(direction, _, bytes) => Moves {
                way: match direction {
                    Direction::ToDevice => "host to device",
                    Direction::ToHost => "device to host",
                },
                bytes,
            },
        }
    }
}

/// A kernel, and the variables that its constant banks are refreshed from.
#[derive(Debug)]
pub struct KernelWork {
    /// Its number.
    pub id: u64,
    /// The launch; its time and constants are filled in when it starts.
    pub launch: Launch,
    /// Constant variables: bank, offset, address, bytes.
    pub constants: Vec<(u8, u32, u64, u64)>,
}

/// A change of memory by the simulator.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// None: the program moves the bytes itself.
    None,
    /// Rows to copy.
    Copy {
        /// Destination.
        destination: Rows,
        /// Source.
        source: Rows,
        /// Width, height and depth that are copied.
        extent: Extent,
    },
    /// Rows to fill with a pattern.
    Fill {
        /// Destination.
        destination: Rows,
        /// Width, height and depth that are filled.
        extent: Extent,
        /// The pattern, of 1, 2 or 4 bytes.
        pattern: Vec<u8>,
    },
    /// An allocation to release.
    Free {
        /// Its address.
        address: u64,
    },
}

impl Effect {
    /// In words, for people who watch.
    pub(super) fn words(&self) -> String {
        match self {
            Self::None => "bytes of the program".into(),
            Self::Copy {
                destination,
                source,
                extent,
            } => {
                let bytes = extent.bytes().unwrap_or(u64::MAX);
                let (to, from) = (destination.address, source.address);
                format!("{bytes} bytes from {from:#x} to {to:#x}")
            }
            Self::Fill {
                destination,
                extent,
                ..
            } => {
                let bytes = extent.bytes().unwrap_or(u64::MAX);
                format!("{bytes} bytes filled at {:#x}", destination.address)
            }
            Self::Free { address } => format!("{address:#x} is freed"),
        }
    }
}

impl Work {
    /// Whether it looks at memory to see if it may go on.
    pub(super) fn looks(&self) -> bool {
        matches!(self, Self::Value(value) if value.action != ValueAction::Write)
    }
}

/// Whether memory holds what a wait wants; a write may always go on.
pub(super) fn holds(wanted: &ValueWork, device: &dyn Device) -> bool {
    if wanted.action == ValueAction::Write {
        return true;
    }
    let mut bytes = [0; 8];
    device.read(wanted.address, &mut bytes[..usize::from(wanted.bytes)]);
    let (found, value) = (u64::from_le_bytes(bytes), wanted.value);
    let mask = if wanted.bytes == 4 {
        u64::from(u32::MAX)
    } else {
        u64::MAX
    };
    match wanted.action {
        ValueAction::Write => true,
        ValueAction::WaitEqual => found == value & mask,
        ValueAction::WaitAnd => found & value & mask != 0,
        ValueAction::WaitNor => !(found | value) & mask != 0,
        ValueAction::WaitGreaterOrEqual if wanted.bytes == 4 => {
            (found as u32).wrapping_sub(value as u32) as i32 >= 0
        }
        ValueAction::WaitGreaterOrEqual => found.wrapping_sub(value) as i64 >= 0,
    }
}

/// The first byte of every row. The caller has checked that all lie in one allocation.
pub(super) fn row_addresses(rows: Rows, extent: Extent) -> impl Iterator<Item = u64> {
    (0..extent.depth).flat_map(move |slice| {
        (0..extent.height)
            .map(move |row| rows.address + slice * rows.slice_pitch + row * rows.row_pitch)
    })
}
