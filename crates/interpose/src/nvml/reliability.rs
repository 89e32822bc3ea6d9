//! Errors of memory. A simulated one makes none, so counts are zero where a GPU corrects errors,
//! and not supported where it does not.

use super::boundary::{NvmlError, nvml};
use super::library::{Device, Handle, Library};
use crate::types::Out;

/// Kinds of errors: corrected and not.
const KINDS: u32 = 2;
/// Kinds of counters: since the driver came, and for ever.
const COUNTERS: u32 = 2;
/// Places where errors are counted.
const PLACES: u32 = 9;

/// `nvmlEccErrorCounts_t`: L1, L2, device memory, registers.
type Counts = [u64; 4];

/// Refuses a device that does not correct errors, and kinds that do not exist.
fn check(library: &Library, device: Handle, kind: u32, counter: u32) -> Result<(), NvmlError> {
    let device = library.device(device)?;
    if kind >= KINDS || counter >= COUNTERS {
        return Err(NvmlError::INVALID_ARGUMENT);
    }
    check_corrects(device)
}

fn check_corrects(device: Device<'_>) -> Result<(), NvmlError> {
    if device.corrects_errors() {
        Ok(())
    } else {
        Err(NvmlError::NOT_SUPPORTED)
    }
}

nvml! {
    fn nvmlDeviceGetEccMode [library] (device: Handle, now: Out<u32>, later: Out<u32>) {
        let enabled = u32::from(library.device(device)?.corrects_errors());
        later.check()?;
        now.set(enabled)?;
        Ok(later.set(enabled)?)
    }

    fn nvmlDeviceGetTotalEccErrors [library] (device: Handle, kind: u32, counter: u32, count: Out<u64>) {
        check(&library, device, kind, counter)?;
        Ok(count.set(0)?)
    }

    fn nvmlDeviceGetDetailedEccErrors [library] (device: Handle, kind: u32, counter: u32, counts: Out<Counts>) {
        check(&library, device, kind, counter)?;
        Ok(counts.set([0; 4])?)
    }

    fn nvmlDeviceGetMemoryErrorCounter [library] (device: Handle, kind: u32, counter: u32, place: u32, count: Out<u64>) {
        check(&library, device, kind, counter)?;
        if place >= PLACES {
            return Err(NvmlError::INVALID_ARGUMENT);
        }
        Ok(count.set(0)?)
    }

    fn nvmlDeviceGetRetiredPages [library] (device: Handle, cause: u32, count: Out<u32>, _addresses: Out<u64>) {
        check(&library, device, cause, 0)?;
        Ok(count.set(0)?)
    }

    fn nvmlDeviceGetRetiredPagesPendingStatus [library] (device: Handle, pending: Out<u32>) {
        check_corrects(library.device(device)?)?;
        Ok(pending.set(0)?)
    }

    fn nvmlDeviceGetRemappedRows [library] (device: Handle, corrected: Out<u32>, uncorrected: Out<u32>, pending: Out<u32>, failed: Out<u32>) {
        check_corrects(library.device(device)?)?;
        let all = [corrected, uncorrected, pending, failed];
        all.iter().try_for_each(|place| place.check())?;
        Ok(all.iter().try_for_each(|place| place.set(0))?)
    }
}
