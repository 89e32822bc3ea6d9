//! Modes of a device. Ours can be switched by nobody: what is asked for later is what is now.

use super::boundary::{NvmlError, nvml};
use super::library::{Device, Handle};
use crate::types::Out;
use lockstep_protocol::attribute;

const DISABLED: u32 = 0;

/// Compute capabilities of the GPUs that can be divided into instances.
const DIVISIBLE: &[(i32, i32)] = &[(8, 0), (9, 0), (10, 0), (10, 3)];

/// Refuses a device that cannot be divided.
fn check_divisible(device: Device<'_>) -> Result<(), NvmlError> {
    if DIVISIBLE.contains(&device.description.compute_capability()) {
        Ok(())
    } else {
        Err(NvmlError::NOT_SUPPORTED)
    }
}

nvml! {
    /// Instances are not modelled: the mode is off wherever hardware has it.
    fn nvmlDeviceGetMigMode [library] (device: Handle, now: Out<u32>, later: Out<u32>) {
        check_divisible(library.device(device)?)?;
        later.check()?;
        now.set(DISABLED)?;
        Ok(later.set(DISABLED)?)
    }

    fn nvmlDeviceGetMaxMigDeviceCount [library] (device: Handle, count: Out<u32>) {
        library.device(device)?;
        Ok(count.set(0)?)
    }

    fn nvmlDeviceIsMigDeviceHandle [library] (device: Handle, answer: Out<u32>) {
        library.device(device)?;
        Ok(answer.set(0)?)
    }

    fn nvmlDeviceGetMigDeviceHandleByIndex [library] (device: Handle, _index: u32, _instance: Out<Handle>) {
        check_divisible(library.device(device)?)?;
        Err(NvmlError::NOT_FOUND)
    }

    fn nvmlDeviceGetComputeMode [library] (device: Handle, mode: Out<u32>) {
        const SHARED_BY_ALL: u32 = 0;
        let found = library.device(device)?.known(attribute::COMPUTE_MODE);
        Ok(mode.set(found.unwrap_or(SHARED_BY_ALL))?)
    }

    /// There is no display to connect.
    fn nvmlDeviceGetDisplayMode [library] (device: Handle, mode: Out<u32>) {
        library.device(device)?;
        Ok(mode.set(DISABLED)?)
    }

    fn nvmlDeviceGetDisplayActive [library] (device: Handle, mode: Out<u32>) {
        library.device(device)?;
        Ok(mode.set(DISABLED)?)
    }

    /// The GPU belongs to its program alone, as one without virtual machines.
    fn nvmlDeviceGetVirtualizationMode [library] (device: Handle, mode: Out<u32>) {
        library.device(device)?;
        Ok(mode.set(DISABLED)?)
    }

    fn nvmlDeviceGetAccountingMode [library] (device: Handle, mode: Out<u32>) {
        library.device(device)?;
        Ok(mode.set(DISABLED)?)
    }
}
