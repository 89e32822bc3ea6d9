//! Calls of CUDA's device runtime (dynamic parallelism): how device code asks for grids, streams and
//! events of its own.
//!
//! Programs are linked with a library (`libcudadevrt`) whose functions end in calls of the system; those
//! are in [`SYSTEM_CALLS`]. PTX that is not linked with it names the functions of the library themselves;
//! those that are no more than one such call are in [`LIBRARY_CALLS`].
//!
//! Start reading at [`DeviceRuntimeCall`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What device code asks of the device runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum DeviceRuntimeCall {
    /// `(alignment, size)`: a buffer for the arguments of a launch.
    GetParameterBuffer,
    /// `(kernel, grid, block, dynamic shared)`: a buffer for the arguments of this launch.
    GetParameterBufferV2,
    /// `(kernel, buffer, pointer to grid, pointer to block, dynamic shared, stream)`.
    LaunchDevice,
    /// `(buffer, stream)`: launches what the buffer was asked for.
    LaunchDeviceV2,
    /// The last error of the thread.
    GetLastError,
    /// `(error)`: sets it, and answers it.
    SetLastError,
    /// The same, and the last error is none from now on.
    TakeLastError,
    /// `(pointer to stream, flags)`.
    StreamCreate,
    /// `(stream)`.
    StreamDestroy,
    /// `(stream, event, flags)`.
    StreamWaitEvent,
    /// `(pointer to event, flags)`.
    EventCreate,
    /// `(event, stream)`.
    EventRecord,
    /// `(event)`.
    EventDestroy,
    /// `(pointer to number)`.
    GetDevice,
    /// `(pointer to number)`.
    GetDeviceCount,
    /// `(pointer to value, attribute, device)`.
    DeviceGetAttribute,
    /// `(pointer to value, limit)`.
    GetLimit,
    /// `(pointer to value)`.
    GetCacheConfig,
    /// `(pointer to value)`.
    GetSharedMemConfig,
    /// `(pointer to value, attribute, kernel)`.
    FuncGetAttribute,
    /// `(pointer to number, kernel, threads, dynamic shared)`.
    MaxActiveBlocks,
    /// `(pointer to number, kernel, threads, dynamic shared, flags)`.
    MaxActiveBlocksWithFlags,
}

use DeviceRuntimeCall as Call;

/// How many registers the arguments of a call have, and its result.
type Shape = (&'static [u8], u8);

/// What a call of the system is called, what it is, and how many registers its arguments and its result
/// have. The order is that of the library's declarations.
pub const SYSTEM_CALLS: &[(&str, Call)] = &[
    (
        "__cuda_syscall_cnpv2GetParameterBuffer",
        Call::GetParameterBuffer,
    ),
    (
        "__cuda_syscall_cnpv2GetParameterBufferV2",
        Call::GetParameterBufferV2,
    ),
    ("__cuda_syscall_cnpv2LaunchDevice", Call::LaunchDevice),
    ("__cuda_syscall_cnpv2LaunchDeviceV2", Call::LaunchDeviceV2),
    ("__cuda_syscall_cnpv2GetLastError", Call::GetLastError),
    ("__cuda_syscall_cnpv2SetLastError", Call::SetLastError),
    ("__cuda_syscall_cnpv2StreamCreate", Call::StreamCreate),
    ("__cuda_syscall_cnpv2StreamDestroy", Call::StreamDestroy),
    ("__cuda_syscall_cnpv2StreamWaitEvent", Call::StreamWaitEvent),
    ("__cuda_syscall_cnpv2EventCreate", Call::EventCreate),
    ("__cuda_syscall_cnpv2EventRecord", Call::EventRecord),
    ("__cuda_syscall_cnpv2EventDestroy", Call::EventDestroy),
    ("__cuda_syscall_cnpv2GetDevice", Call::GetDevice),
    ("__cuda_syscall_cnpv2GetDeviceCount", Call::GetDeviceCount),
    (
        "__cuda_syscall_cnpv2DeviceGetAttribute",
        Call::DeviceGetAttribute,
    ),
    ("__cuda_syscall_cnpv2GetLimit", Call::GetLimit),
    ("__cuda_syscall_cnpv2GetCacheConfig", Call::GetCacheConfig),
    (
        "__cuda_syscall_cnpv2GetSharedMemConfig",
        Call::GetSharedMemConfig,
    ),
    (
        "__cuda_syscall_cnpv2FuncGetAttribute",
        Call::FuncGetAttribute,
    ),
    (
        "__cuda_syscall_cnpv2MaxActiveBlocksPerMultiprocessor",
        Call::MaxActiveBlocks,
    ),
    (
        "__cuda_syscall_cnpv2MaxActiveBlocksPerMultiprocessorWithFlags",
        Call::MaxActiveBlocksWithFlags,
    ),
];

/// Functions of the library that are one call of the system, its answer turned into CUDA's error and kept
/// as the thread's last one. PTX may name them with and without the prefix.
pub const LIBRARY_CALLS: &[(&str, Call)] = &[
    ("GetParameterBuffer", Call::GetParameterBuffer),
    ("GetParameterBufferV2", Call::GetParameterBufferV2),
    ("LaunchDeviceV2", Call::LaunchDeviceV2),
    ("GetLastError", Call::TakeLastError),
    ("PeekAtLastError", Call::GetLastError),
    ("StreamCreateWithFlags", Call::StreamCreate),
    ("StreamDestroy", Call::StreamDestroy),
    ("StreamWaitEvent", Call::StreamWaitEvent),
    ("EventCreateWithFlags", Call::EventCreate),
    ("EventRecord", Call::EventRecord),
    ("EventDestroy", Call::EventDestroy),
    ("GetDevice", Call::GetDevice),
    ("GetDeviceCount", Call::GetDeviceCount),
    ("DeviceGetAttribute", Call::DeviceGetAttribute),
    ("DeviceGetLimit", Call::GetLimit),
    ("DeviceGetCacheConfig", Call::GetCacheConfig),
    ("DeviceGetSharedMemConfig", Call::GetSharedMemConfig),
    (
        "OccupancyMaxActiveBlocksPerMultiprocessor",
        Call::MaxActiveBlocks,
    ),
    (
        "OccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
        Call::MaxActiveBlocksWithFlags,
    ),
];

/// The call of the system with a name.
#[must_use]
pub fn system_call(name: &str) -> Option<Call> {
    let found = SYSTEM_CALLS.iter().find(|(known, _)| *known == name);
    found.map(|(_, call)| *call)
}

/// The call that a function of the library makes.
#[must_use]
pub fn library_call(name: &str) -> Option<Call> {
    let bare = name
        .strip_prefix("__cudaCDP2")
        .or_else(|| name.strip_prefix("cuda"))?;
    let found = LIBRARY_CALLS.iter().find(|(known, _)| *known == bare);
    found.map(|(_, call)| *call)
}

/// Whether a function is one of the library, as programs of CUDA 12 and later name them.
#[must_use]
pub fn is_library_name(name: &str) -> bool {
    name.starts_with("__cudaCDP2")
}

impl DeviceRuntimeCall {
    fn shape(self) -> Shape {
        match self {
            Self::GetParameterBuffer => (&[2, 2], 2),
            Self::GetParameterBufferV2 => (&[2, 3, 3, 1], 2),
            Self::LaunchDevice => (&[2, 2, 2, 2, 1, 2], 1),
            Self::LaunchDeviceV2 => (&[2, 2], 1),
            Self::GetLastError | Self::TakeLastError => (&[], 1),
            Self::SetLastError => (&[1], 1),
            Self::StreamCreate | Self::EventCreate | Self::GetLimit => (&[2, 1], 1),
            Self::StreamDestroy | Self::EventDestroy => (&[2], 1),
            Self::StreamWaitEvent => (&[2, 2, 1], 1),
            Self::EventRecord => (&[2, 2], 1),
            Self::GetDevice
            | Self::GetDeviceCount
            | Self::GetCacheConfig
            | Self::GetSharedMemConfig => (&[2], 1),
            Self::DeviceGetAttribute => (&[2, 1, 1], 1),
            Self::FuncGetAttribute => (&[2, 1, 2], 1),
            Self::MaxActiveBlocks => (&[2, 2, 1, 2], 1),
            Self::MaxActiveBlocksWithFlags => (&[2, 2, 1, 2, 1], 1),
        }
    }

    /// Registers of each argument.
    #[must_use]
    pub fn argument_words(self) -> &'static [u8] {
        self.shape().0
    }

    /// Registers of the result.
    #[must_use]
    pub fn result_words(self) -> u8 {
        self.shape().1
    }

    /// Bytes that the call writes where its first argument points; 0 for calls that write nothing.
    #[must_use]
    pub fn stored_bytes(self, second: u64) -> u8 {
        match self {
            Self::StreamCreate | Self::EventCreate | Self::GetLimit => 8,
            // Sizes have 64 bits, counts 32.
            Self::FuncGetAttribute if (1..=3).contains(&second) => 8,
            Self::GetDevice
            | Self::GetDeviceCount
            | Self::DeviceGetAttribute
            | Self::GetCacheConfig
            | Self::GetSharedMemConfig
            | Self::FuncGetAttribute
            | Self::MaxActiveBlocks
            | Self::MaxActiveBlocksWithFlags => 4,
            _ => 0,
        }
    }

    /// Whether it launches a grid, which sees what its thread wrote before.
    #[must_use]
    pub fn launches(self) -> bool {
        matches!(self, Self::LaunchDevice | Self::LaunchDeviceV2)
    }

    /// Whether the thread's own SM answers.
    #[must_use]
    pub fn is_of_thread(self) -> bool {
        matches!(
            self,
            Self::GetLastError | Self::SetLastError | Self::TakeLastError
        )
    }
}

/// Errors of the system's calls, as the library knows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u32)]
pub enum DeviceRuntimeError {
    /// None.
    Success = 0,
    /// An argument is not what it must be.
    InvalidValue = 1,
    /// There is no such device.
    InvalidDevice = 3,
    /// No memory is left.
    OutOfMemory = 4,
    /// Grids launch grids too deeply.
    MaxDepthExceeded = 5,
    /// An SM cannot hold a block.
    OutOfResources = 6,
    /// A grid or a block of this shape cannot be.
    InvalidConfiguration = 7,
    /// Too many launches wait.
    PendingCountExceeded = 12,
    /// There is no such limit.
    UnsupportedLimit = 13,
    /// A grid is not made of such clusters.
    InvalidClusterSize = 14,
}

impl DeviceRuntimeError {
    /// `cudaError_t` of it, by the table that the library has.
    #[must_use]
    pub fn cuda(self) -> u32 {
        match self {
            Self::Success => 0,
            Self::InvalidValue => 1,
            Self::OutOfMemory => 2,
            Self::InvalidConfiguration => 9,
            Self::MaxDepthExceeded => 65,
            Self::PendingCountExceeded => 69,
            Self::InvalidDevice => 101,
            Self::UnsupportedLimit => 215,
            Self::OutOfResources => 701,
            Self::InvalidClusterSize => 912,
        }
    }
}

/// What kernels that launch kernels are told and held to; the runtime makes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceRuntime {
    /// Launches by kernels that may wait (`cudaLimitDevRuntimePendingLaunchCount`).
    pub pending_launches: u64,
    /// Device attributes by number; one that is absent is 0.
    pub attributes: BTreeMap<u32, i32>,
    /// Limits by `cudaLimit`.
    pub limits: BTreeMap<u32, u64>,
    /// Shared memory that a block may have without more being allowed.
    pub shared_per_block: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_known_by_the_names_of_both_headers() {
        for name in ["cudaLaunchDeviceV2", "__cudaCDP2LaunchDeviceV2"] {
            assert_eq!(library_call(name), Some(Call::LaunchDeviceV2));
        }
        assert_eq!(library_call("cudaMemcpyAsync"), None);
        assert_eq!(
            system_call("__cuda_syscall_cnpv2LaunchDevice"),
            Some(Call::LaunchDevice)
        );
        assert_eq!(system_call("vprintf"), None);
    }
}
