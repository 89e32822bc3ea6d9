//! Work that a stream carries: copies, fills and launches.

use crate::{ContextHandle, EventHandle, FunctionHandle, StreamName};
use lockstep_units::LaunchConfig;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// A copy of up to three dimensions.
///
/// If either side is [`Place::Host`], the reply comes when the stream has reached the copy
/// and its simulated time has passed, and the *program* then moves the bytes between its
/// own memory and the window before it does anything else. If both are in the window, the
/// *simulator* moves them in stream order, and replies when that is done if `blocking`,
/// else at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Copy {
    /// The context.
    pub context: ContextHandle,
    /// The stream.
    pub stream: StreamName,
    /// Destination.
    pub destination: Place,
    /// Source.
    pub source: Place,
    /// Width, height and depth that are copied.
    pub extent: Extent,
    /// Whether the program waits for the copy.
    pub blocking: bool,
}

/// One side of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Place {
    /// Ordinary memory of the program. Its address differs from run to run, so it does not
    /// travel.
    Host,
    /// Memory in the window.
    Window(Rows),
}

/// Rows in the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rows {
    /// First byte of the first row.
    pub address: u64,
    /// From one row to the next, in bytes.
    pub row_pitch: u64,
    /// From one slice to the next, in bytes.
    pub slice_pitch: u64,
}

impl Rows {
    /// One row: memory without pitch.
    pub fn linear(address: u64, bytes: u64) -> Self {
        Self {
            address,
            row_pitch: bytes,
            slice_pitch: bytes,
        }
    }
}

/// How much a copy or fill covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extent {
    /// Bytes of a row.
    pub width: u64,
    /// Rows of a slice.
    pub height: u64,
    /// Slices.
    pub depth: u64,
}

impl Extent {
    /// One row.
    pub fn linear(bytes: u64) -> Self {
        Self {
            width: bytes,
            height: 1,
            depth: 1,
        }
    }

    /// Bytes in all; `None` if that is more than a number can say.
    pub fn bytes(&self) -> Option<u64> {
        self.width.checked_mul(self.height)?.checked_mul(self.depth)
    }
}

/// A fill of up to three dimensions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fill {
    /// The context.
    pub context: ContextHandle,
    /// The stream.
    pub stream: StreamName,
    /// Destination.
    pub destination: Rows,
    /// How much; `width` is in bytes and a multiple of `pattern_bytes`.
    pub extent: Extent,
    /// The pattern, in the low bytes.
    pub pattern: u32,
    /// 1, 2 or 4.
    pub pattern_bytes: u8,
    /// Whether the program waits for the fill.
    pub blocking: bool,
}

/// Priorities of streams and launches, as GPUs since Volta have them; the lowest number is the most
/// urgent. CUDA brings others into the range.
pub const PRIORITIES: RangeInclusive<i32> = -5..=0;

/// The priority that CUDA gives to whoever asks for this one.
#[must_use]
pub fn clamp_priority(wanted: i32) -> i32 {
    wanted.clamp(*PRIORITIES.start(), *PRIORITIES.end())
}

/// A kernel launch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// The context.
    pub context: ContextHandle,
    /// The stream.
    pub stream: StreamName,
    /// The kernel.
    pub function: FunctionHandle,
    /// Grid, block and dynamic shared memory.
    pub config: LaunchConfig,
    /// The packed parameter block.
    #[serde(with = "serde_bytes")]
    pub parameters: Vec<u8>,
    /// All blocks must be resident at once, and may synchronise.
    pub cooperative: bool,
    /// Blocks of a cluster, if the launch sets them.
    pub cluster: Option<[u32; 3]>,
    /// Priority, if the launch sets it; else it is that of its stream.
    pub priority: Option<i32>,
    /// The share of shared memory that the launch prefers, in percent of the largest, or -1 for none in
    /// particular; else it is that of the kernel.
    pub carveout: Option<i32>,
    /// The kernel may begin before its predecessor in the stream ends.
    pub programmatic_stream_serialization: bool,
}

/// One node of a graph. Nodes come in an order in which each follows what it depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphNode {
    /// Its work.
    pub work: GraphWork,
    /// Indices of the nodes that must be complete before, all smaller than its own.
    pub after: Vec<u32>,
}

/// What a node of a graph does. Streams and blocking of the work inside do not matter: the
/// graph's launch says where it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GraphWork {
    /// Nothing; it only orders.
    Empty,
    /// A kernel.
    Kernel(Box<Launch>),
    /// A copy. One that touches the program's own memory is a step of the program's.
    Copy(Copy),
    /// A fill.
    Fill(Fill),
    /// A host function: a step of the program's.
    Program,
    /// Record an event.
    Record(EventHandle),
    /// Wait for an event, as it was recorded last when the graph is launched.
    Wait(EventHandle),
    /// Wait for a value in memory, or write one.
    Value(ValueWork),
}

/// A wait for a value in memory, or a write of one, by a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValueWork {
    /// Where; aligned to its size.
    pub address: u64,
    /// The value, in the low bytes.
    pub value: u64,
    /// 4 or 8.
    pub bytes: u8,
    /// Wait for a comparison, or write.
    pub action: ValueAction,
}

/// What a stream does with a value in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ValueAction {
    /// Write it.
    Write,
    /// Wait until what is there, less it, is not negative as a signed number.
    WaitGreaterOrEqual,
    /// Wait until both are equal.
    WaitEqual,
    /// Wait until they share a bit.
    WaitAnd,
    /// Wait until some bit is set in neither.
    WaitNor,
}
