//! What the simulator answers.

use crate::{
    ContextHandle, CuResult, DeviceState, EventHandle, FunctionInfo, GraphHandle, ModuleHandle,
    PhysicalHandle, StreamHandle,
};
use serde::{Deserialize, Serialize};

/// The answer to one request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// What kernels printed since the last response to this process. The program writes it
    /// to its standard output before the call returns.
    #[serde(with = "serde_bytes")]
    pub output: Vec<u8>,
    /// The error that the context of the call has fallen into, if any: every later call
    /// fails with it, and reading the last error does not clear it.
    pub sticky: Option<CuResult>,
    /// Managed pages, as (address, bytes), that have left the host: the program's next access to
    /// them must come back as [`HostAccess`](crate::Request::HostAccess).
    pub left_host: Vec<(u64, u64)>,
    /// What came of the call itself.
    pub result: Result<Reply, Failure>,
}

impl Response {
    /// Success, with nothing beside it.
    pub fn reply(reply: Reply) -> Self {
        Self {
            output: Vec::new(),
            sticky: None,
            left_host: Vec::new(),
            result: Ok(reply),
        }
    }

    /// Failure, with nothing beside it.
    pub fn failure(code: CuResult, message: impl Into<String>) -> Self {
        Self {
            output: Vec::new(),
            sticky: None,
            left_host: Vec::new(),
            result: Err(Failure {
                code,
                message: message.into(),
            }),
        }
    }
}

/// What a successful request answers; each request names its kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    /// Nothing more to say.
    Done,
    /// A context.
    Context(ContextHandle),
    /// A module.
    Module(ModuleHandle),
    /// A kernel.
    Function(Box<FunctionInfo>),
    /// A variable.
    Global(GlobalInfo),
    /// An address in the window.
    Address(u64),
    /// Device memory.
    Memory {
        /// Bytes free.
        free: u64,
        /// Bytes in all.
        total: u64,
    },
    /// An allocation, or `None` for an address that none holds.
    Pointer(Option<PointerInfo>),
    /// A stream.
    Stream(StreamHandle),
    /// An event.
    Event(EventHandle),
    /// Simulated time.
    Elapsed {
        /// Picoseconds; negative when the second event came first.
        picoseconds: i64,
    },
    /// A graph.
    Graph(GraphHandle),
    /// A step of a graph that the program performs, or none: the launch needs no more of it.
    Step(Option<ProgramStep>),
    /// Physical memory.
    Physical(PhysicalHandle),
    /// Managed pages, as (address, bytes), that the host may touch again.
    Pages(Vec<(u64, u64)>),
    /// Whether kernels or copies are still under way.
    Polled {
        /// They are.
        pending: bool,
    },
    /// A number.
    Value(u64),
    /// Names.
    Names(Vec<String>),
    /// How a device is used.
    DeviceState(DeviceState),
}

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// CUDA's code.
    pub code: CuResult,
    /// A sentence or a log, possibly empty. It is shown to the user where CUDA has a place
    /// for it (the log of a JIT compilation) and in the report of the run.
    pub message: String,
}

/// A step of a graph that only the program can perform: a host function, or a copy that
/// touches its own memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramStep {
    /// The launch.
    pub launch: u64,
    /// The node, by its index in the graph.
    pub node: u32,
}

/// A variable of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GlobalInfo {
    /// Its address in the window.
    pub address: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// Whether it lives in managed memory.
    pub managed: bool,
}

/// An allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PointerInfo {
    /// Kind of memory.
    pub kind: PointerKind,
    /// Device that it belongs to.
    pub device: u32,
    /// Context that it was allocated in.
    pub context: ContextHandle,
    /// Its first address.
    pub base: u64,
    /// Its size in bytes, as asked for.
    pub bytes: u64,
    /// A number that no other allocation of the process has.
    pub identity: u64,
    /// The flags it was allocated with.
    pub flags: u32,
}

/// Kinds of memory in the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PointerKind {
    /// Device memory.
    Device,
    /// Pinned host memory.
    Host,
    /// Managed memory.
    Managed,
}
