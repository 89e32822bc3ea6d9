//! Options of CUDA calls: attributes, flags and limits, and what becomes of each.
//!
//! Every option that a call takes is one row of [`OPTIONS`]: it is obeyed, and a test shows it; or it
//! is refused, with the error that a GPU gives where it refuses as well; or it is listed, which means
//! that the call succeeds and the report of the run says that the option was accepted and is not
//! modelled. The interposer asks this table before it takes an option, `cargo xtask docs` makes
//! `docs/reference/options.md` from it, and a test walks it.
//!
//! Start reading at [`OPTIONS`].

mod table;

pub use table::OPTIONS;

use crate::CuResult;

/// One option of a call.
#[derive(Clone, Copy, Debug)]
pub struct CudaOption {
    /// The calls that take it.
    pub group: Group,
    /// Its number there: of an attribute or a limit, or the bits of a flag.
    pub number: u32,
    /// CUDA's name for it.
    pub name: &'static str,
    /// What becomes of it.
    pub treatment: Treatment,
    /// What that means, in a sentence.
    pub sentence: &'static str,
}

/// What becomes of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// It has the effect that CUDA promises; the test of this name shows it.
    Obeyed(&'static str),
    /// The call fails with this code.
    Refused(CuResult),
    /// The call succeeds, nothing else happens, and the report says so.
    Listed,
}

impl Treatment {
    /// In a word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Obeyed(_) => "obeyed",
            Self::Refused(_) => "refused",
            Self::Listed => "listed",
        }
    }
}

macro_rules! groups {
    ($($(#[$meta:meta])* $group:ident $title:literal of $calls:literal,)*) => {
        /// Calls that share their options.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Group {
            $($(#[$meta])* $group,)*
        }

        impl Group {
            /// All groups, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$group,)*];

            /// What its options are.
            #[must_use]
            pub fn title(self) -> &'static str {
                match self {
                    $(Self::$group => $title,)*
                }
            }

            /// The calls.
            #[must_use]
            pub fn calls(self) -> &'static str {
                match self {
                    $(Self::$group => $calls,)*
                }
            }
        }
    };
}

groups! {
    /// `cudaLaunchAttributeID` at launches and graph nodes.
    LaunchAttribute "Attributes of launches and kernel nodes" of "cudaLaunchKernelExC, cuLaunchKernelEx, cudaGraphKernelNodeSetAttribute",
    /// `cudaLaunchAttributeID` at streams.
    StreamAttribute "Attributes of streams" of "cudaStreamSetAttribute, cuStreamSetAttribute",
    /// `cudaFuncAttribute`.
    FunctionAttribute "Attributes of functions" of "cudaFuncSetAttribute, cuFuncSetAttribute, cuKernelSetAttribute",
    /// `cudaFuncCache` for a function.
    FunctionCache "Cache preference of a function" of "cudaFuncSetCacheConfig, cuFuncSetCacheConfig",
    /// `cudaFuncCache` for a device.
    DeviceCache "Cache preference of a device" of "cudaDeviceSetCacheConfig, cuCtxSetCacheConfig",
    /// `cudaSharedMemConfig`.
    SharedBanks "Banks of shared memory" of "cudaDeviceSetSharedMemConfig, cudaFuncSetSharedMemConfig",
    /// `cudaLimit`.
    Limit "Limits" of "cudaDeviceSetLimit, cuCtxSetLimit",
    /// `cudaHostAlloc…`.
    HostAllocation "Flags of pinned memory" of "cudaHostAlloc, cuMemHostAlloc",
    /// `cudaHostRegister…`.
    HostRegistration "Flags of registered memory" of "cudaHostRegister, cuMemHostRegister",
    /// `cudaMemAttach…`.
    ManagedAllocation "Flags of managed memory" of "cudaMallocManaged, cudaStreamAttachMemAsync",
    /// `cudaMemoryAdvise`.
    Advice "Advice on managed memory" of "cudaMemAdvise, cuMemAdvise",
    /// `cudaMemAccessFlags`.
    Access "Access to mapped memory" of "cuMemSetAccess",
    /// `CUmemAllocationProp`.
    PhysicalMemory "Properties of physical memory" of "cuMemCreate",
    /// `cudaMemPoolAttr`.
    PoolAttribute "Attributes of memory pools" of "cudaMemPoolSetAttribute, cuMemPoolSetAttribute",
    /// `cudaMemPoolProps`.
    PoolProperty "Properties of memory pools" of "cudaMemPoolCreate, cuMemPoolCreate",
    /// `cudaMemAccessFlags` of a pool.
    PoolAccess "Access to memory pools" of "cudaMemPoolSetAccess, cuMemPoolSetAccess",
    /// `cudaStream…`.
    StreamFlag "Flags of streams" of "cudaStreamCreateWithFlags, cuStreamCreate",
    /// `cudaEvent…`.
    EventFlag "Flags of events" of "cudaEventCreateWithFlags, cuEventCreate",
    /// `cudaDevice…`, `CU_CTX_…`.
    DeviceFlag "Flags of devices and contexts" of "cudaSetDeviceFlags, cuCtxCreate, cuDevicePrimaryCtxSetFlags",
    /// `CUctxCreateParams`.
    ContextParameter "Parameters of contexts" of "cuCtxCreate_v3, cuCtxCreate_v4",
    /// `cudaOccupancy…`.
    OccupancyFlag "Flags of occupancy" of "cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
    /// `cudaGraphInstantiateFlag…`.
    GraphFlag "Flags of instantiated graphs" of "cudaGraphInstantiate, cuGraphInstantiate",
    /// `cudaGraphDependencyType` and ports.
    GraphEdge "Kinds of graph edges" of "cudaGraphAddDependencies, cuGraphAddDependencies",
    /// `cudaMemcpyFlags`.
    CopyFlag "Flags of copies with attributes" of "cudaMemcpyBatchAsync, cudaMemcpyWithAttributesAsync",
    /// `CU_POINTER_ATTRIBUTE_…`.
    PointerAttribute "Attributes of pointers" of "cuPointerSetAttribute",
    /// `cudaArray…`.
    ArrayFlag "Flags of arrays" of "cudaMallocArray, cudaMalloc3DArray, cuArray3DCreate",
    /// `CUjit_option`.
    JitOption "Options of compiling and linking" of "cuModuleLoadDataEx, cuLinkCreate, cudaLibraryLoadData",
}

/// The row of an option.
#[must_use]
pub fn find(group: Group, number: u32) -> Option<&'static CudaOption> {
    OPTIONS
        .iter()
        .find(|option| option.group == group && option.number == number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_by_group_and_number_and_none_twice() {
        for pair in OPTIONS.windows(2) {
            let keys = [&pair[0], &pair[1]].map(|option| (option.group, option.number));
            assert!(keys[0] < keys[1], "{keys:?}");
        }
        for group in Group::ALL {
            assert!(
                OPTIONS.iter().any(|option| option.group == *group),
                "{group:?} has no option"
            );
        }
    }

    #[test]
    fn every_row_says_what_it_means() {
        for option in OPTIONS {
            assert!(!option.name.is_empty() && !option.sentence.is_empty());
            assert!(!option.sentence.ends_with('.') && !option.sentence.contains('|'));
            if let Treatment::Refused(code) = option.treatment {
                assert_ne!(code, CuResult::SUCCESS, "{}", option.name);
            }
        }
    }
}
