//! Allocation of device, pinned and managed memory.

use super::graph_memory;
use super::pool;
use super::register;
use crate::boundary::{RuntimeError, driver, runtime};
use crate::call::{ask, call, done, unexpected};
use crate::context::{current, current_for_runtime};
use crate::graph::capture;
use crate::graph::model::NodeWork;
use crate::options;
use crate::streams::{Target, target};
use crate::types::{Address, Out};
use lockstep_protocol::layout::{Region, region_of};
use lockstep_protocol::options::Group;
use lockstep_protocol::{ContextHandle, CuResult, PointerInfo, Reply, Request};

/// `cudaHostAllocPortable`, which is always so and never said.
const PORTABLE: u32 = 1;
/// Rows of pitched memory begin at multiples of this.
const PITCH: usize = 512;

/// `cudaPitchedPtr`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Pitched {
    /// First byte.
    pub address: Address,
    /// From row to row.
    pub pitch: usize,
    /// Width that was asked for.
    pub width: usize,
    /// Rows of a slice.
    pub height: usize,
}

/// `cudaExtent`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Extent3 {
    /// Bytes of a row, or elements of an array's row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Slices.
    pub depth: usize,
}

/// Allocates device memory.
pub fn allocate(context: ContextHandle, bytes: usize) -> Result<Address, CuResult> {
    capture::refuses_unsafe()?;
    allocate_anyhow(context, bytes)
}

/// As [`allocate`], also while streams capture.
pub fn allocate_anyhow(context: ContextHandle, bytes: usize) -> Result<Address, CuResult> {
    let bytes = bytes as u64;
    Ok(ask!(Address, &Request::Allocate { context, bytes }) as Address)
}

fn allocate_host(context: ContextHandle, bytes: usize, flags: u32) -> Result<Address, CuResult> {
    options::accept_flags(Group::HostAllocation, flags)?;
    let request = Request::AllocateHost {
        context,
        bytes: bytes as u64,
        flags,
    };
    Ok(ask!(Address, &request) as Address)
}

fn allocate_managed(context: ContextHandle, bytes: usize, flags: u32) -> Result<Address, CuResult> {
    options::accept_flags(Group::ManagedAllocation, flags)?;
    let request = Request::AllocateManaged {
        context,
        bytes: bytes as u64,
        flags,
    };
    Ok(ask!(Address, &request) as Address)
}

/// Allocates in stream order, from a pool.
pub fn allocate_async(place: Target, bytes: usize, pool: u64) -> Result<Address, CuResult> {
    let mut made = 0;
    let captured = capture::takes(place, || {
        made = graph_memory::create(place.context, bytes)?;
        Ok(NodeWork::Allocate(made, bytes))
    })?;
    if captured {
        return Ok(made);
    }
    pool::check_room(pool, bytes)?;
    let request = Request::AllocateAsync {
        context: place.context,
        stream: place.stream,
        bytes: bytes as u64,
    };
    let address = ask!(Address, &request) as Address;
    pool::note_allocation(pool, address, bytes);
    Ok(address)
}

fn free_async(place: Target, address: Address) -> Result<(), CuResult> {
    if capture::takes(place, || Ok(NodeWork::Free(address)))? || graph_memory::holds(address) {
        return Ok(());
    }
    pool::note_free(address);
    done(&Request::FreeAsync {
        context: place.context,
        stream: place.stream,
        address: address as u64,
    })
}

/// Frees memory of any kind.
pub fn free(context: ContextHandle, address: Address) -> Result<(), CuResult> {
    if graph_memory::holds(address) {
        return crate::context::synchronize(context);
    }
    super::managed_range::forget(address);
    pool::note_free(address);
    let address = address as u64;
    done(&Request::Free { context, address })
}

/// Frees pinned memory; an address of another kind is refused.
fn free_host(context: ContextHandle, address: Address) -> Result<(), CuResult> {
    match region_of(address as u64) {
        Some(Region::Pinned) => free(context, address),
        _ => Err(CuResult::INVALID_VALUE),
    }
}

/// The pitch and size of `height` rows.
fn pitched(width: usize, height: usize) -> Result<(usize, usize), CuResult> {
    let pitch = width
        .checked_next_multiple_of(PITCH)
        .ok_or(CuResult::INVALID_VALUE)?;
    let bytes = pitch.checked_mul(height).ok_or(CuResult::OUT_OF_MEMORY)?;
    Ok((pitch, bytes))
}

/// Pinned memory has one address for host and device.
fn device_pointer(address: Address, flags: u32) -> Result<Address, CuResult> {
    match region_of(address as u64) {
        _ if flags != 0 => Err(CuResult::INVALID_VALUE),
        Some(_) => Ok(address),
        None => register::device_pointer(address),
    }
}

/// What the simulator knows of an address of the window.
pub fn pointer_info(address: Address) -> Result<Option<PointerInfo>, CuResult> {
    if region_of(address as u64).is_none() {
        return Ok(None);
    }
    Ok(ask!(
        Pointer,
        &Request::PointerInfo {
            address: address as u64
        }
    ))
}

fn memory_info(context: ContextHandle) -> Result<(usize, usize), CuResult> {
    match call(&Request::MemoryInfo { context })? {
        Reply::Memory { free, total } => Ok((free as usize, total as usize)),
        other => Err(unexpected("Memory", &other)),
    }
}

runtime! {
    /// Nothing is a valid amount and gives a null pointer.
    fn cudaMalloc(pointer: Out<Address>, bytes: usize) {
        pointer.check()?;
        let context = current_for_runtime()?;
        pointer.set_if_wanted(0);
        if bytes > 0 {
            pointer.set(allocate(context, bytes)?)?;
        }
        Ok(())
    }

    fn cudaFree(address: Address) {
        let context = current_for_runtime()?;
        if address == 0 { Ok(()) } else { Ok(free(context, address)?) }
    }

    fn cudaMallocPitch(pointer: Out<Address>, pitch: Out<usize>, width: usize, height: usize) {
        pointer.check()?;
        pitch.check()?;
        let context = current_for_runtime()?;
        let (row, bytes) = pitched(width, height)?;
        pointer.set(if bytes == 0 { 0 } else { allocate(context, bytes)? })?;
        Ok(pitch.set(row)?)
    }

    fn cudaMalloc3D(pointer: Out<Pitched>, extent: Extent3) {
        pointer.check()?;
        let context = current_for_runtime()?;
        let rows = extent.height.checked_mul(extent.depth).ok_or(CuResult::OUT_OF_MEMORY)?;
        let (pitch, bytes) = pitched(extent.width, rows)?;
        let address = if bytes == 0 { 0 } else { allocate(context, bytes)? };
        Ok(pointer.set(Pitched { address, pitch, width: extent.width, height: extent.height })?)
    }

    fn cudaMallocHost(pointer: Out<Address>, bytes: usize) {
        host_allocation(pointer, bytes, 0)
    }

    fn cudaHostAlloc(pointer: Out<Address>, bytes: usize, flags: u32) {
        host_allocation(pointer, bytes, flags)
    }

    fn cudaFreeHost(address: Address) {
        let context = current_for_runtime()?;
        if address == 0 { Ok(()) } else { Ok(free_host(context, address)?) }
    }

    fn cudaHostGetDevicePointer(pointer: Out<Address>, address: Address, flags: u32) {
        Ok(pointer.set(device_pointer(address, flags)?)?)
    }

    fn cudaHostGetFlags(flags: Out<u32>, address: Address) {
        let info = pointer_info(address)?.ok_or(CuResult::INVALID_VALUE)?;
        Ok(flags.set(info.flags & !PORTABLE)?)
    }

    fn cudaMallocManaged(pointer: Out<Address>, bytes: usize, flags: u32) {
        pointer.check()?;
        let context = current_for_runtime()?;
        if !matches!(flags, 1 | 2) {
            return Err(RuntimeError::INVALID_VALUE);
        }
        if bytes == 0 {
            return Ok(pointer.set(0)?);
        }
        Ok(pointer.set(allocate_managed(context, bytes, flags)?)?)
    }

    fn cudaMallocAsync | cudaMallocAsync_ptsz [defaults] (pointer: Out<Address>, bytes: usize, stream: Address) {
        pointer.check()?;
        let place = target(stream, defaults, current_for_runtime)?;
        pointer.set_if_wanted(0);
        if bytes > 0 {
            pointer.set(allocate_async(place, bytes, pool::pool_of(place)?)?)?;
        }
        Ok(())
    }

    fn cudaFreeAsync | cudaFreeAsync_ptsz [defaults] (address: Address, stream: Address) {
        let place = target(stream, defaults, current_for_runtime)?;
        if address == 0 { Ok(()) } else { Ok(free_async(place, address)?) }
    }

    fn cudaMemGetInfo(free: Out<usize>, total: Out<usize>) {
        let info = memory_info(current_for_runtime()?)?;
        free.set(info.0)?;
        Ok(total.set(info.1)?)
    }
}

fn host_allocation(pointer: Out<Address>, bytes: usize, flags: u32) -> Result<(), RuntimeError> {
    pointer.check()?;
    let context = current_for_runtime()?;
    pointer.set_if_wanted(0);
    if bytes > 0 {
        pointer.set(allocate_host(context, bytes, flags)?)?;
    }
    Ok(())
}

driver! {
    fn cuMemAlloc_v2(pointer: Out<Address>, bytes: usize) {
        pointer.check()?;
        let context = current()?;
        if bytes == 0 {
            return Err(CuResult::INVALID_VALUE);
        }
        pointer.set(allocate(context, bytes)?)
    }

    fn cuMemFree_v2(address: Address) {
        let context = current()?;
        if address == 0 { Ok(()) } else { free(context, address) }
    }

    fn cuMemAllocPitch_v2(pointer: Out<Address>, pitch: Out<usize>, width: usize, height: usize, element: u32) {
        pointer.check()?;
        pitch.check()?;
        let context = current()?;
        let (row, bytes) = pitched(width, height)?;
        if bytes == 0 || !matches!(element, 4 | 8 | 16) {
            return Err(CuResult::INVALID_VALUE);
        }
        pointer.set(allocate(context, bytes)?)?;
        pitch.set(row)
    }

    fn cuMemAllocHost_v2(pointer: Out<Address>, bytes: usize) {
        pointer.check()?;
        let context = current()?;
        if bytes == 0 {
            return Err(CuResult::INVALID_VALUE);
        }
        pointer.set(allocate_host(context, bytes, 0)?)
    }

    fn cuMemHostAlloc(pointer: Out<Address>, bytes: usize, flags: u32) {
        pointer.check()?;
        let context = current()?;
        if bytes == 0 {
            return Err(CuResult::INVALID_VALUE);
        }
        pointer.set(allocate_host(context, bytes, flags)?)
    }

    fn cuMemFreeHost(address: Address) {
        free_host(current()?, address)
    }

    fn cuMemHostGetDevicePointer_v2(pointer: Out<Address>, address: Address, flags: u32) {
        current()?;
        pointer.set(device_pointer(address, flags)?)
    }

    fn cuMemHostGetFlags(flags: Out<u32>, address: Address) {
        current()?;
        let info = pointer_info(address)?.ok_or(CuResult::INVALID_VALUE)?;
        flags.set(info.flags & !PORTABLE)
    }

    fn cuMemAllocManaged(pointer: Out<Address>, bytes: usize, flags: u32) {
        pointer.check()?;
        let context = current()?;
        if bytes == 0 || !matches!(flags, 1 | 2) {
            return Err(CuResult::INVALID_VALUE);
        }
        pointer.set(allocate_managed(context, bytes, flags)?)
    }

    fn cuMemAllocAsync | cuMemAllocAsync_ptsz [defaults] (pointer: Out<Address>, bytes: usize, stream: Address) {
        pointer.check()?;
        let place = target(stream, defaults, current)?;
        pointer.set_if_wanted(0);
        if bytes > 0 {
            pointer.set(allocate_async(place, bytes, pool::pool_of(place)?)?)?;
        }
        Ok(())
    }

    fn cuMemFreeAsync | cuMemFreeAsync_ptsz [defaults] (address: Address, stream: Address) {
        let place = target(stream, defaults, current)?;
        if address == 0 { Ok(()) } else { free_async(place, address) }
    }

    fn cuMemGetInfo_v2(free: Out<usize>, total: Out<usize>) {
        let info = memory_info(current()?)?;
        free.set(info.0)?;
        total.set(info.1)
    }

    fn cuMemGetAddressRange_v2(base: Out<Address>, bytes: Out<usize>, address: Address) {
        current()?;
        let info = pointer_info(address)?.ok_or(CuResult::NOT_FOUND)?;
        base.set_if_wanted(info.base as Address);
        bytes.set_if_wanted(info.bytes as usize);
        Ok(())
    }
}
