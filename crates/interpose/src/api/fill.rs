//! Filling memory with a pattern.

use super::memory::{Extent3, Pitched};
use crate::boundary::{driver, runtime};
use crate::call::done;
use crate::context::{current, current_for_runtime};
use crate::graph::capture;
use crate::graph::model::{FillNode, NodeWork};
use crate::streams::{Target, target};
use crate::types::Address;
use lockstep_protocol::layout::{Region, region_of};
use lockstep_protocol::{CuResult, Extent, Fill, Request, Rows};

/// What is filled, in elements of the pattern.
struct Area {
    address: Address,
    row_pitch: usize,
    slice_pitch: usize,
    width: usize,
    height: usize,
    depth: usize,
}

impl Area {
    fn linear(address: Address, count: usize) -> Self {
        Self::plane(address, 0, count, 1)
    }

    fn plane(address: Address, row_pitch: usize, width: usize, height: usize) -> Self {
        Self {
            address,
            row_pitch,
            slice_pitch: 0,
            width,
            height,
            depth: 1,
        }
    }
}

fn fill(
    target: Target,
    area: Area,
    pattern: u32,
    pattern_bytes: u8,
    wait: bool,
) -> Result<(), CuResult> {
    let width = (area.width as u64).checked_mul(u64::from(pattern_bytes));
    let extent = Extent {
        width: width.ok_or(CuResult::INVALID_VALUE)?,
        height: area.height as u64,
        depth: area.depth as u64,
    };
    match extent.bytes() {
        None => return Err(CuResult::INVALID_VALUE),
        Some(0) => return Ok(()),
        Some(_) => {}
    }
    let pitch_too_small = area.height > 1 && (area.row_pitch as u64) < extent.width;
    let misaligned = !area.address.is_multiple_of(usize::from(pattern_bytes));
    if region_of(area.address as u64).is_none() || pitch_too_small || misaligned {
        return Err(CuResult::INVALID_VALUE);
    }
    let captured = capture::takes(target, || {
        if wait || area.depth > 1 {
            return Err(CuResult::STREAM_CAPTURE_UNSUPPORTED);
        }
        Ok(NodeWork::Fill(FillNode {
            address: area.address,
            pitch: area.row_pitch,
            value: pattern,
            element: u32::from(pattern_bytes),
            width: area.width,
            height: area.height,
        }))
    })?;
    if captured {
        return Ok(());
    }
    let device = region_of(area.address as u64).is_some_and(Region::is_device);
    done(&Request::Fill(Fill {
        context: target.context,
        stream: target.stream,
        destination: Rows {
            address: area.address as u64,
            row_pitch: area.row_pitch as u64,
            slice_pitch: area.slice_pitch as u64,
        },
        extent,
        pattern,
        pattern_bytes,
        // CUDA's host waits only where it could see the bytes change.
        blocking: wait && !device,
    }))
}

fn cube(memory: Pitched, extent: Extent3) -> Area {
    Area {
        address: memory.address,
        row_pitch: memory.pitch,
        slice_pitch: memory.pitch * memory.height,
        width: extent.width,
        height: extent.height,
        depth: extent.depth,
    }
}

/// `cudaMemset` takes an `int` of which only the low byte counts.
fn byte(value: i32) -> u32 {
    value as u32 & 0xff
}

runtime! {
    fn cudaMemset | cudaMemset_ptds [defaults] (address: Address, value: i32, bytes: usize) {
        let target = target(0, defaults, current_for_runtime)?;
        Ok(fill(target, Area::linear(address, bytes), byte(value), 1, true)?)
    }

    fn cudaMemsetAsync | cudaMemsetAsync_ptsz [defaults] (address: Address, value: i32, bytes: usize, stream: Address) {
        let target = target(stream, defaults, current_for_runtime)?;
        Ok(fill(target, Area::linear(address, bytes), byte(value), 1, false)?)
    }

    fn cudaMemset2D | cudaMemset2D_ptds [defaults] (address: Address, pitch: usize, value: i32, width: usize, height: usize) {
        let target = target(0, defaults, current_for_runtime)?;
        Ok(fill(target, Area::plane(address, pitch, width, height), byte(value), 1, true)?)
    }

    fn cudaMemset2DAsync | cudaMemset2DAsync_ptsz [defaults] (address: Address, pitch: usize, value: i32, width: usize, height: usize, stream: Address) {
        let target = target(stream, defaults, current_for_runtime)?;
        Ok(fill(target, Area::plane(address, pitch, width, height), byte(value), 1, false)?)
    }

    fn cudaMemset3D | cudaMemset3D_ptds [defaults] (memory: Pitched, value: i32, extent: Extent3) {
        let target = target(0, defaults, current_for_runtime)?;
        Ok(fill(target, cube(memory, extent), byte(value), 1, true)?)
    }

    fn cudaMemset3DAsync | cudaMemset3DAsync_ptsz [defaults] (memory: Pitched, value: i32, extent: Extent3, stream: Address) {
        let target = target(stream, defaults, current_for_runtime)?;
        Ok(fill(target, cube(memory, extent), byte(value), 1, false)?)
    }
}

driver! {
    fn cuMemsetD8_v2 | cuMemsetD8_v2_ptds [defaults] (address: Address, value: u8, count: usize) {
        fill(target(0, defaults, current)?, Area::linear(address, count), value.into(), 1, true)
    }

    fn cuMemsetD16_v2 | cuMemsetD16_v2_ptds [defaults] (address: Address, value: u16, count: usize) {
        fill(target(0, defaults, current)?, Area::linear(address, count), value.into(), 2, true)
    }

    fn cuMemsetD32_v2 | cuMemsetD32_v2_ptds [defaults] (address: Address, value: u32, count: usize) {
        fill(target(0, defaults, current)?, Area::linear(address, count), value, 4, true)
    }

    fn cuMemsetD8Async | cuMemsetD8Async_ptsz [defaults] (address: Address, value: u8, count: usize, stream: Address) {
        fill(target(stream, defaults, current)?, Area::linear(address, count), value.into(), 1, false)
    }

    fn cuMemsetD16Async | cuMemsetD16Async_ptsz [defaults] (address: Address, value: u16, count: usize, stream: Address) {
        fill(target(stream, defaults, current)?, Area::linear(address, count), value.into(), 2, false)
    }

    fn cuMemsetD32Async | cuMemsetD32Async_ptsz [defaults] (address: Address, value: u32, count: usize, stream: Address) {
        fill(target(stream, defaults, current)?, Area::linear(address, count), value, 4, false)
    }

    fn cuMemsetD2D8_v2 | cuMemsetD2D8_v2_ptds [defaults] (address: Address, pitch: usize, value: u8, width: usize, height: usize) {
        fill(target(0, defaults, current)?, Area::plane(address, pitch, width, height), value.into(), 1, true)
    }

    fn cuMemsetD2D16_v2 | cuMemsetD2D16_v2_ptds [defaults] (address: Address, pitch: usize, value: u16, width: usize, height: usize) {
        fill(target(0, defaults, current)?, Area::plane(address, pitch, width, height), value.into(), 2, true)
    }

    fn cuMemsetD2D32_v2 | cuMemsetD2D32_v2_ptds [defaults] (address: Address, pitch: usize, value: u32, width: usize, height: usize) {
        fill(target(0, defaults, current)?, Area::plane(address, pitch, width, height), value, 4, true)
    }

    fn cuMemsetD2D8Async | cuMemsetD2D8Async_ptsz [defaults] (address: Address, pitch: usize, value: u8, width: usize, height: usize, stream: Address) {
        fill(target(stream, defaults, current)?, Area::plane(address, pitch, width, height), value.into(), 1, false)
    }

    fn cuMemsetD2D16Async | cuMemsetD2D16Async_ptsz [defaults] (address: Address, pitch: usize, value: u16, width: usize, height: usize, stream: Address) {
        fill(target(stream, defaults, current)?, Area::plane(address, pitch, width, height), value.into(), 2, false)
    }

    fn cuMemsetD2D32Async | cuMemsetD2D32Async_ptsz [defaults] (address: Address, pitch: usize, value: u32, width: usize, height: usize, stream: Address) {
        fill(target(stream, defaults, current)?, Area::plane(address, pitch, width, height), value, 4, false)
    }
}
