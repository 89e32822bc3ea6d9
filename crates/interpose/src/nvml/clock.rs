//! Clocks. A simulated GPU runs at the clocks of its file, always, and at no others.

use super::boundary::{NvmlError, nvml, set_list};
use super::library::{Device, Handle};
use crate::types::Out;
use lockstep_protocol::attribute;

const GRAPHICS: u32 = 0;
const SM: u32 = 1;
const MEMORY: u32 = 2;
const VIDEO: u32 = 3;

/// A clock in megahertz.
fn clock(device: Device<'_>, domain: u32) -> Result<u32, NvmlError> {
    let attribute = match domain {
        GRAPHICS | SM => attribute::CLOCK_RATE,
        MEMORY => attribute::MEMORY_CLOCK_RATE,
        VIDEO => return Err(NvmlError::NOT_SUPPORTED),
        _ => return Err(NvmlError::INVALID_ARGUMENT),
    };
    let kilohertz = device.known(attribute);
    Ok(kilohertz.ok_or(NvmlError::NOT_SUPPORTED)? / 1000)
}

nvml! {
    fn nvmlDeviceGetClockInfo | nvmlDeviceGetMaxClockInfo [library] (device: Handle, domain: u32, megahertz: Out<u32>) {
        Ok(megahertz.set(clock(library.device(device)?, domain)?)?)
    }

    /// Clocks that a user or a vendor chose are not modelled.
    fn nvmlDeviceGetClock [library] (device: Handle, domain: u32, kind: u32, megahertz: Out<u32>) {
        const CURRENT: u32 = 0;
        const LAST: u32 = 3;
        let device = library.device(device)?;
        megahertz.check()?;
        match kind {
            CURRENT => Ok(megahertz.set(clock(device, domain)?)?),
            1..=LAST => Err(NvmlError::NOT_SUPPORTED),
            _ => Err(NvmlError::INVALID_ARGUMENT),
        }
    }

    fn nvmlDeviceGetSupportedMemoryClocks [library] (device: Handle, count: Out<u32>, megahertz: Out<u32>) {
        set_list(count, megahertz, &[clock(library.device(device)?, MEMORY)?])
    }

    fn nvmlDeviceGetSupportedGraphicsClocks [library] (device: Handle, memory: u32, count: Out<u32>, megahertz: Out<u32>) {
        let device = library.device(device)?;
        if memory != clock(device, MEMORY)? {
            return Err(NvmlError::NOT_FOUND);
        }
        set_list(count, megahertz, &[clock(device, GRAPHICS)?])
    }

    /// Nothing slows a simulated GPU down, so there is never a reason.
    fn nvmlDeviceGetCurrentClocksEventReasons | nvmlDeviceGetCurrentClocksThrottleReasons [library] (device: Handle, reasons: Out<u64>) {
        library.device(device)?;
        Ok(reasons.set(0)?)
    }

    fn nvmlDeviceGetSupportedClocksEventReasons | nvmlDeviceGetSupportedClocksThrottleReasons [library] (device: Handle, reasons: Out<u64>) {
        library.device(device)?;
        Ok(reasons.set(0)?)
    }
}
