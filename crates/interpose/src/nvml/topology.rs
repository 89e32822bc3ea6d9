//! How devices stand to each other.
//!
//! On the bus they stand as their links to the host are modelled: behind one PCIe switch where the node
//! file says so, and each at a port of the host otherwise.

use super::boundary::{NvmlError, nvml, set_list};
use super::library::{Device, Handle};
use crate::types::Out;

/// The device itself, or another one on its board.
const INTERNAL: u32 = 0;
/// Devices behind one switch.
const SINGLE_SWITCH: u32 = 10;
/// Devices at ports of one processor.
const HOST_BRIDGE: u32 = 30;
/// Any two devices of a system.
const SYSTEM: u32 = 50;
/// Levels of the bus are multiples of this.
const STEP: u32 = 10;

nvml! {
    fn nvmlDeviceGetTopologyCommonAncestor [library] (first: Handle, second: Handle, level: Out<u32>) {
        let (first, second) = (library.device(first)?, library.device(second)?);
        Ok(level.set(between(first, second))?)
    }

    fn nvmlDeviceGetTopologyNearestGpus [library] (device: Handle, level: u32, count: Out<u32>, handles: Out<Handle>) {
        let device = library.device(device)?;
        if level > SYSTEM || !level.is_multiple_of(STEP) {
            return Err(NvmlError::INVALID_ARGUMENT);
        }
        let others: Vec<Handle> = library
            .devices()
            .filter(|other| other.number != device.number && between(device, *other) <= level)
            .map(Device::handle)
            .collect();
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
        const ATOMICS: u32 = 3;
        const ABILITIES: u32 = 5;
        const POSSIBLE: u32 = 0;
        const IMPOSSIBLE: u32 = 5;
        let (first, second) = (library.device(first)?, library.device(second)?);
        if ability >= ABILITIES {
            return Err(NvmlError::INVALID_ARGUMENT);
        }
        let itself = first.number == second.number;
        let linked = first.description.has_nvlink_to(second.ordinal);
        let possible = match ability {
            NVLINK => linked,
            // As hardware has it: over PCIe there are none.
            ATOMICS => itself || linked,
            _ => itself || first.description.peers.contains(&second.ordinal),
        };
        Ok(status.set(if possible { POSSIBLE } else { IMPOSSIBLE })?)
    }
}

/// Where the ways of two devices to the host meet.
fn between(first: Device<'_>, second: Device<'_>) -> u32 {
    match (
        first.number == second.number,
        first.description.behind_pci_switch,
    ) {
        (true, _) => INTERNAL,
        (false, true) => SINGLE_SWITCH,
        (false, false) => HOST_BRIDGE,
    }
}
