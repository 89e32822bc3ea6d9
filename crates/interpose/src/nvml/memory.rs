//! Memory of devices.

use super::boundary::{NvmlError, check_version, nvml, version_of};
use super::library::Handle;
use crate::types::Out;
use lockstep_protocol::attribute;

/// `nvmlMemory_t`: what is reserved counts as used.
#[repr(C)]
#[derive(Clone, Copy)]
struct Memory {
    total: u64,
    free: u64,
    used: u64,
}

/// `nvmlMemory_v2_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct MemoryWithReserve {
    version: u32,
    total: u64,
    reserved: u64,
    free: u64,
    used: u64,
}

const _: () = assert!(size_of::<Memory>() == 24 && size_of::<MemoryWithReserve>() == 40);

nvml! {
    fn nvmlDeviceGetMemoryInfo [library] (device: Handle, memory: Out<Memory>) {
        let device = library.device(device)?;
        memory.check()?;
        let state = library.look(device)?;
        Ok(memory.set(Memory {
            total: state.total,
            free: state.free,
            used: state.total.saturating_sub(state.free),
        })?)
    }

    fn nvmlDeviceGetMemoryInfo_v2 [library] (device: Handle, memory: Out<MemoryWithReserve>) {
        let device = library.device(device)?;
        check_version(memory, 2)?;
        let state = library.look(device)?;
        Ok(memory.set(MemoryWithReserve {
            version: version_of::<MemoryWithReserve>(2),
            total: state.total,
            reserved: state.reserved,
            free: state.free,
            used: state.total.saturating_sub(state.free).saturating_sub(state.reserved),
        })?)
    }

    fn nvmlDeviceGetMemoryBusWidth [library] (device: Handle, bits: Out<u32>) {
        let width = library.device(device)?.known(attribute::GLOBAL_MEMORY_BUS_WIDTH);
        Ok(bits.set(width.ok_or(NvmlError::NOT_SUPPORTED)?)?)
    }
}
