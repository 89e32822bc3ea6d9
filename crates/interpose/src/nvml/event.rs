//! Events. Sets can be made and waited for, but a simulated GPU sends none: it says that it supports
//! no type, so that nobody takes silence for health.

use super::boundary::{NvmlError, nvml};
use super::library::Handle;
use crate::fair_mutex::FairMutex;
use crate::process::lock;
use crate::types::Out;
use std::collections::BTreeSet;
use std::time::Duration;

/// A set of events (`nvmlEventSet_t`).
type Set = usize;

/// `nvmlEventData_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Event {
    device: Handle,
    kind: u64,
    data: u64,
    gpu_instance: u32,
    compute_instance: u32,
}

const _: () = assert!(size_of::<Event>() == 32);

struct Sets {
    last: Set,
    alive: BTreeSet<Set>,
}

static SETS: FairMutex<Sets> = FairMutex::new(Sets {
    last: 0x4556_0000_0000,
    alive: BTreeSet::new(),
});

fn check_set(set: Set) -> Result<(), NvmlError> {
    if lock(&SETS).alive.contains(&set) {
        Ok(())
    } else {
        Err(NvmlError::INVALID_ARGUMENT)
    }
}

nvml! {
    fn nvmlEventSetCreate [_library] (set: Out<Set>) {
        set.check()?;
        let mut sets = lock(&SETS);
        sets.last += 1;
        let made = sets.last;
        sets.alive.insert(made);
        Ok(set.set(made)?)
    }

    fn nvmlEventSetFree [_library] (set: Set) {
        if lock(&SETS).alive.remove(&set) {
            Ok(())
        } else {
            Err(NvmlError::INVALID_ARGUMENT)
        }
    }

    fn nvmlDeviceGetSupportedEventTypes [library] (device: Handle, kinds: Out<u64>) {
        library.device(device)?;
        Ok(kinds.set(0)?)
    }

    fn nvmlDeviceRegisterEvents [library] (device: Handle, kinds: u64, set: Set) {
        library.device(device)?;
        check_set(set)?;
        if kinds == 0 { Ok(()) } else { Err(NvmlError::NOT_SUPPORTED) }
    }

    fn nvmlEventSetWait_v2 | nvmlEventSetWait [_library] (set: Set, event: Out<Event>, milliseconds: u32) {
        check_set(set)?;
        event.check()?;
        std::thread::sleep(Duration::from_millis(u64::from(milliseconds)));
        Err(NvmlError::TIMEOUT)
    }
}
