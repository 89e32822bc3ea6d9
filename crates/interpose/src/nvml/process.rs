//! Processes that use a device: those with a context on it, all of them for computing.

use super::boundary::{NvmlError, check_version, nvml, set_list};
use super::library::{Handle, Library};
use crate::types::Out;
use lockstep_protocol::ProcessOnDevice;

/// No part of a device: it is not divided.
const WHOLE: u32 = u32::MAX;

/// `nvmlProcessInfo_v1_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Short {
    process: u32,
    bytes: u64,
}

/// `nvmlProcessInfo_v2_t`, which the third revision of the functions uses too.
#[repr(C)]
#[derive(Clone, Copy)]
struct Full {
    process: u32,
    bytes: u64,
    gpu_instance: u32,
    compute_instance: u32,
}

/// `nvmlProcessDetail_v1_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Detail {
    full: Full,
    protected_bytes: u64,
}

/// `nvmlProcessDetailList_v1_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct DetailList {
    version: u32,
    mode: u32,
    count: u32,
    rows: Out<Detail>,
}

const _: () = assert!(size_of::<Short>() == 16 && size_of::<Full>() == 24);
const _: () = assert!(size_of::<Detail>() == 32 && size_of::<DetailList>() == 24);

fn short(row: &ProcessOnDevice) -> Short {
    Short {
        process: row.process,
        bytes: row.bytes,
    }
}

fn full(row: &ProcessOnDevice) -> Full {
    Full {
        process: row.process,
        bytes: row.bytes,
        gpu_instance: WHOLE,
        compute_instance: WHOLE,
    }
}

/// Writes the processes that compute on a device.
fn computing<T: Copy>(
    library: &Library,
    device: Handle,
    count: Out<u32>,
    rows: Out<T>,
    row: fn(&ProcessOnDevice) -> T,
) -> Result<(), NvmlError> {
    let device = library.device(device)?;
    count.check()?;
    let processes = library.look(device)?.processes;
    let found: Vec<T> = processes.iter().map(row).collect();
    set_list(count, rows, &found)
}

/// Writes that nobody draws, or that nobody shares a server.
fn none(library: &Library, device: Handle, count: Out<u32>) -> Result<(), NvmlError> {
    library.device(device)?;
    Ok(count.set(0)?)
}

nvml! {
    fn nvmlDeviceGetComputeRunningProcesses [library] (device: Handle, count: Out<u32>, rows: Out<Short>) {
        computing(&library, device, count, rows, short)
    }

    fn nvmlDeviceGetComputeRunningProcesses_v3 | nvmlDeviceGetComputeRunningProcesses_v2 [library] (device: Handle, count: Out<u32>, rows: Out<Full>) {
        computing(&library, device, count, rows, full)
    }

    fn nvmlDeviceGetGraphicsRunningProcesses [library] (device: Handle, count: Out<u32>, _rows: Out<Short>) {
        none(&library, device, count)
    }

    fn nvmlDeviceGetGraphicsRunningProcesses_v3 | nvmlDeviceGetGraphicsRunningProcesses_v2 [library] (device: Handle, count: Out<u32>, _rows: Out<Full>) {
        none(&library, device, count)
    }

    fn nvmlDeviceGetMPSComputeRunningProcesses [library] (device: Handle, count: Out<u32>, _rows: Out<Short>) {
        none(&library, device, count)
    }

    fn nvmlDeviceGetMPSComputeRunningProcesses_v3 | nvmlDeviceGetMPSComputeRunningProcesses_v2 [library] (device: Handle, count: Out<u32>, _rows: Out<Full>) {
        none(&library, device, count)
    }

    fn nvmlDeviceGetRunningProcessDetailList [library] (device: Handle, list: Out<DetailList>) {
        const COMPUTE: u32 = 0;
        const ALL: u32 = 3;
        let device = library.device(device)?;
        check_version(list, 1)?;
        let DetailList { version, mode, rows, .. } = list.current()?;
        let processes = match mode {
            COMPUTE | ALL => library.look(device)?.processes,
            1 | 2 => Vec::new(),
            _ => return Err(NvmlError::INVALID_ARGUMENT),
        };
        let found: Vec<Detail> = processes
            .iter()
            .map(|row| Detail { full: full(row), protected_bytes: 0 })
            .collect();
        let mut count = list.current()?.count;
        let outcome = set_list(Out::at(&raw mut count as usize), rows, &found);
        list.set(DetailList { version, mode, count, rows })?;
        outcome
    }
}
