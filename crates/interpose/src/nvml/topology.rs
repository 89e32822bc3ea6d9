//! How devices stand to each other.
//!
//! Left out: the bus between several devices, which no file describes yet. Of a pair, only whether
//! each can reach the memory of the other is known.

use super::boundary::{NvmlError, nvml, set_list};
use super::library::{Device, Handle};
use crate::types::Out;

/// The device itself, or another one on its board.
const INTERNAL: u32 = 0;
/// Any two devices of a system.
const SYSTEM: u32 = 50;
/// Levels of the bus are multiples of this.
const STEP: u32 = 10;

nvml! {
    fn nvmlDeviceGetTopologyCommonAncestor [library] (first: Handle, second: Handle, level: Out<u32>) {
        let (first, second) = (library.device(first)?, library.device(second)?);
        if first.number != second.number {
            return Err(NvmlError::NOT_SUPPORTED);
        }
        Ok(level.set(INTERNAL)?)
    }

    fn nvmlDeviceGetTopologyNearestGpus [library] (device: Handle, level: u32, count: Out<u32>, handles: Out<Handle>) {
        let device = library.device(device)?;
        if level > SYSTEM || !level.is_multiple_of(STEP) {
            return Err(NvmlError::INVALID_ARGUMENT);
        }
        let others: Vec<Handle> = library
            .devices()
            .filter(|other| other.number != device.number)
            .map(Device::handle)
            .collect();
        if !others.is_empty() && level != SYSTEM {
            return Err(NvmlError::NOT_SUPPORTED);
        }
        set_list(count, handles, &others)
    }

    /// Every processor of the host is as near as any other.
    fn nvmlSystemGetTopologyGpuSet [library] (_processor: u32, count: Out<u32>, handles: Out<Handle>) {
        let all: Vec<Handle> = library.devices().map(Device::handle).collect();
        set_list(count, handles, &all)
    }

    /// NCCL asks for every pair, a device with itself included, and gives up unless all are answered.
    fn nvmlDeviceGetP2PStatus [library] (first: Handle, second: Handle, ability: u32, status: Out<u32>) {
        const NVLINK: u32 = 2;
        const ABILITIES: u32 = 5;
        const POSSIBLE: u32 = 0;
        const IMPOSSIBLE: u32 = 5;
        let (first, second) = (library.device(first)?, library.device(second)?);
        if ability >= ABILITIES {
            return Err(NvmlError::INVALID_ARGUMENT);
        }
        let itself = first.number == second.number;
        let reaches = itself || first.description.peers.contains(&second.number);
        Ok(status.set(if reaches && ability != NVLINK { POSSIBLE } else { IMPOSSIBLE })?)
    }
}
