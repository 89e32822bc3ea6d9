//! Wire and shared-memory layouts between a CUDA program and the simulator.
//!
//! The simulator is the server. It makes a [`Listener`] in a private directory, creates
//! the shared memory with [`window::create`], and starts the program with [`library`]'s
//! environment; [`SOCKET_VARIABLE`] says where to connect. In the program, every host
//! thread that makes a CUDA call opens a [`ClientConnection`]; the handshake hands it the
//! shared memory and a description of all GPUs. From then on it sends one [`Request`] at a
//! time and waits for its [`Response`].
//!
//! All contents of device, pinned and managed memory are in the shared memory, at the same
//! addresses in every process ([`layout`]); messages carry addresses, never data.
//!
//! Start reading at [`Request`].

pub mod attribute;
mod connection;
mod device;
pub mod doorbell;
pub mod frame;
mod function;
mod handle;
pub mod layout;
pub mod library;
mod listener;
pub mod options;
pub mod pages;
pub mod passed_files;
pub mod peer;
pub mod placement;
pub mod program;
mod range;
mod request;
mod response;
mod result;
pub mod routing;
pub mod window;
mod work;

pub use connection::{
    ClientConnection, ConnectionError, Hello, PROTOCOL_VERSION, ServerConnection, Welcome, refuse,
};
pub use device::{DeviceDescription, DeviceState, NvLink, ProcessOnDevice, uuid_text};
pub use function::{FunctionAttributes, FunctionInfo, ParameterSlot};
pub use handle::{
    ContextHandle, EventHandle, FunctionHandle, GraphHandle, ModuleHandle, PhysicalHandle,
    StreamHandle, StreamName,
};
pub use listener::{ListenError, Listener, SOCKET_VARIABLE, links_beside};
pub use lockstep_units::{
    AddressMode, ChannelKind, FilterMode, Interleave, LaunchConfig, Sampler, Swizzle,
    TensorElement, TensorMap, TensorPart, TexelFormat, TextureLevel, TextureObject, TextureShape,
};
pub use range::{RangeName, RangeStep};
pub use request::{
    HostAccessMeans, ImageKind, ImageRole, MemoryAccess, MemoryLocation, ModuleImage,
    MulticastMemory, Request, UnsupportedManner,
};
pub use response::{Failure, GlobalInfo, PointerInfo, PointerKind, ProgramStep, Reply, Response};
pub use result::{CuResult, RESULT_NAMES};
pub use work::{
    Copy, Extent, Fill, GraphNode, GraphWork, Launch, PRIORITIES, Place, Rows, ValueAction,
    ValueWork, clamp_priority,
};
