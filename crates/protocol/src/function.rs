//! What a CUDA program must know of a kernel to launch it and to answer queries.

use crate::FunctionHandle;
use serde::{Deserialize, Serialize};

/// A kernel, as `ModuleFunction` answers it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionInfo {
    /// Its handle in later requests.
    pub handle: FunctionHandle,
    /// Its mangled name.
    pub name: String,
    /// Its parameters in order. `kernelParams` carries no sizes: they come from here.
    pub parameters: Vec<ParameterSlot>,
    /// Its attributes.
    pub attributes: FunctionAttributes,
}

impl FunctionInfo {
    /// Bytes of the packed parameter block.
    pub fn parameter_bytes(&self) -> usize {
        let end = |slot: &ParameterSlot| slot.offset as usize + slot.size as usize;
        self.parameters.iter().map(end).max().unwrap_or(0)
    }
}

/// Where one parameter lies in the packed parameter block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParameterSlot {
    /// Bytes from the start of the block.
    pub offset: u32,
    /// Bytes of the parameter.
    pub size: u32,
}

macro_rules! function_attributes {
    ($($(#[$doc:meta])* $field:ident = $number:literal,)*) => {
        /// Attributes of a kernel; the numbers of `CUfunction_attribute` select them.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        pub struct FunctionAttributes {
            $($(#[$doc])* pub $field: i32,)*
        }

        impl FunctionAttributes {
            /// The value of an attribute by CUDA's number.
            pub fn get(&self, number: u32) -> Option<i32> {
                match number {
                    $($number => Some(self.$field),)*
                    _ => None,
                }
            }

            /// The place of an attribute by CUDA's number.
            pub fn get_mut(&mut self, number: u32) -> Option<&mut i32> {
                match number {
                    $($number => Some(&mut self.$field),)*
                    _ => None,
                }
            }
        }
    };
}

function_attributes! {
    /// Largest block that can be launched.
    maximum_threads = 0,
    /// Static shared memory in bytes.
    static_shared = 1,
    /// User constant memory in bytes.
    constant = 2,
    /// Local memory of a thread in bytes.
    local = 3,
    /// Registers of a thread.
    registers = 4,
    /// PTX version as 10 * major + minor.
    ptx_version = 5,
    /// Binary version as 10 * major + minor.
    binary_version = 6,
    /// Compiled with caching in L1.
    cache_mode_ca = 7,
    /// Largest dynamic shared memory that a launch may ask for.
    maximum_dynamic_shared = 8,
    /// Preferred share of L1 as shared memory in percent; -1 is the default.
    preferred_carveout = 9,
    /// The kernel must be launched with a cluster size.
    cluster_size_must_be_set = 10,
    /// Cluster width that the kernel was compiled for, or 0.
    required_cluster_width = 11,
    /// Cluster height that the kernel was compiled for, or 0.
    required_cluster_height = 12,
    /// Cluster depth that the kernel was compiled for, or 0.
    required_cluster_depth = 13,
    /// More than 8 blocks a cluster are allowed.
    non_portable_cluster_allowed = 14,
    /// How blocks of a cluster are spread.
    cluster_scheduling_policy = 15,
    /// Whether a device-side graph can update a node of this kernel.
    device_node_update_supported = 16,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parameter_block_ends_with_its_furthest_parameter() {
        let slot = |offset, size| ParameterSlot { offset, size };
        let mut function = FunctionInfo {
            handle: FunctionHandle(1),
            name: "structArg".into(),
            parameters: vec![slot(0, 40), slot(40, 2), slot(48, 8)],
            attributes: FunctionAttributes::default(),
        };
        assert_eq!(function.parameter_bytes(), 56);
        function.parameters.clear();
        assert_eq!(function.parameter_bytes(), 0);
    }

    #[test]
    fn attributes_are_found_by_the_numbers_of_cuda() {
        let mut attributes = FunctionAttributes {
            registers: 32,
            ..Default::default()
        };
        assert_eq!(attributes.get(4), Some(32));
        *attributes.get_mut(8).unwrap() = 65536;
        assert_eq!(attributes.maximum_dynamic_shared, 65536);
        assert_eq!(attributes.get(17), None);
    }
}
