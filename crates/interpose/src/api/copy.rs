//! Copies of one, two and three dimensions.
//!
//! A copy between two places in the window is the simulator's work. One that touches the
//! program's own memory is done here, after the simulator has answered that the stream has
//! come to it (see `lockstep_protocol::Copy`).

use super::memory::{Extent3, Pitched};
use crate::boundary::{RuntimeError, driver, runtime};
use crate::call::done;
use crate::context::{current, current_for_runtime};
use crate::streams::{Target, target};
use crate::types::{Address, In};
use lockstep_protocol::layout::{Region, region_of};
use lockstep_protocol::{Copy, CuResult, Extent, Place, Request, Rows};

/// One side of a copy.
#[derive(Clone, Copy)]
pub struct Side {
    /// First byte.
    pub address: Address,
    /// From row to row.
    pub row_pitch: usize,
    /// From slice to slice.
    pub slice_pitch: usize,
}

impl Side {
    /// Memory without pitch.
    pub fn linear(address: Address, bytes: usize) -> Self {
        Self {
            address,
            row_pitch: bytes,
            slice_pitch: bytes,
        }
    }

    fn plane(address: Address, pitch: usize) -> Self {
        Self {
            address,
            row_pitch: pitch,
            slice_pitch: 0,
        }
    }

    fn place(self) -> Place {
        match region_of(self.address as u64) {
            None => Place::Host,
            Some(_) => Place::Window(Rows {
                address: self.address as u64,
                row_pitch: self.row_pitch as u64,
                slice_pitch: self.slice_pitch as u64,
            }),
        }
    }

    fn row(self, slice: usize, row: usize) -> Address {
        self.address + slice * self.slice_pitch + row * self.row_pitch
    }
}

/// Performs a copy. Without `wait`, the program goes on while the simulator copies; its own
/// memory it can only move while it waits.
pub fn perform(
    target: Target,
    destination: Side,
    source: Side,
    extent: Extent,
    wait: bool,
) -> Result<(), CuResult> {
    match extent.bytes() {
        None => return Err(CuResult::INVALID_VALUE),
        Some(0) => return Ok(()),
        Some(_) => {}
    }
    if destination.address == 0 || source.address == 0 {
        return Err(CuResult::INVALID_VALUE);
    }
    let device = |side: Side| matches!(region_of(side.address as u64), Some(Region::Device(_)));
    let copy = Copy {
        context: target.context,
        stream: target.stream,
        destination: destination.place(),
        source: source.place(),
        extent,
        // CUDA's host does not wait for copies within devices.
        blocking: wait && !(device(destination) && device(source)),
    };
    let by_program = copy.destination == Place::Host || copy.source == Place::Host;
    done(&Request::Copy(copy))?;
    if by_program {
        move_bytes(destination, source, extent);
    }
    Ok(())
}

fn move_bytes(destination: Side, source: Side, extent: Extent) {
    for slice in 0..extent.depth as usize {
        for row in 0..extent.height as usize {
            let to = destination.row(slice, row) as *mut u8;
            let from = source.row(slice, row) as *const u8;
            // SAFETY: by CUDA's contract the program's side holds what it asked to copy, and
            // the simulator has accepted the range on the window's side.
            unsafe { std::ptr::copy(from, to, extent.width as usize) };
        }
    }
}

/// Checks `cudaMemcpyKind` against what the pointers are.
fn check_kind(destination: Address, source: Address, kind: u32) -> Result<(), RuntimeError> {
    let visible = |address: Address| region_of(address as u64).is_some();
    let device = |address: Address| matches!(region_of(address as u64), Some(Region::Device(_)));
    let fits = match kind {
        0 => !device(destination) && !device(source),
        1 => visible(destination) && !device(source),
        2 => !device(destination) && visible(source),
        3 => visible(destination) && visible(source),
        4 => true,
        _ => return Err(RuntimeError::INVALID_COPY_DIRECTION),
    };
    if fits {
        Ok(())
    } else {
        Err(RuntimeError::INVALID_VALUE)
    }
}

fn linear(
    target: Target,
    destination: Address,
    source: Address,
    bytes: usize,
    wait: bool,
) -> Result<(), CuResult> {
    let to = Side::linear(destination, bytes);
    let from = Side::linear(source, bytes);
    perform(target, to, from, Extent::linear(bytes as u64), wait)
}

fn checked_plane(
    target: Target,
    to: (Address, usize),
    from: (Address, usize),
    size: (usize, usize),
    kind: u32,
    wait: bool,
) -> Result<(), RuntimeError> {
    if size.0 == 0 || size.1 == 0 {
        return Ok(());
    }
    check_kind(to.0, from.0, kind)?;
    if size.0 > to.1 || size.0 > from.1 {
        return Err(RuntimeError::INVALID_PITCH);
    }
    let extent = Extent {
        width: size.0 as u64,
        height: size.1 as u64,
        depth: 1,
    };
    let (to, from) = (Side::plane(to.0, to.1), Side::plane(from.0, from.1));
    Ok(perform(target, to, from, extent, wait)?)
}

runtime! {
    fn cudaMemcpy | cudaMemcpy_ptds [defaults] (destination: Address, source: Address, bytes: usize, kind: u32) {
        let target = target(0, defaults, current_for_runtime)?;
        if bytes == 0 {
            return Ok(());
        }
        check_kind(destination, source, kind)?;
        Ok(linear(target, destination, source, bytes, true)?)
    }

    fn cudaMemcpyAsync | cudaMemcpyAsync_ptsz [defaults] (destination: Address, source: Address, bytes: usize, kind: u32, stream: Address) {
        let target = target(stream, defaults, current_for_runtime)?;
        if bytes == 0 {
            return Ok(());
        }
        check_kind(destination, source, kind)?;
        Ok(linear(target, destination, source, bytes, false)?)
    }

    fn cudaMemcpyPeer(destination: Address, to: i32, source: Address, from: i32, bytes: usize) {
        let _ = (to, from); // Addresses are unique among devices.
        let target = target(0, crate::streams::Defaults::Legacy, current_for_runtime)?;
        Ok(linear(target, destination, source, bytes, true)?)
    }

    fn cudaMemcpyPeerAsync(destination: Address, to: i32, source: Address, from: i32, bytes: usize, stream: Address) {
        let _ = (to, from);
        let target = target(stream, crate::streams::Defaults::Legacy, current_for_runtime)?;
        Ok(linear(target, destination, source, bytes, false)?)
    }

    fn cudaMemcpy2D | cudaMemcpy2D_ptds [defaults] (destination: Address, to_pitch: usize, source: Address, from_pitch: usize, width: usize, height: usize, kind: u32) {
        let target = target(0, defaults, current_for_runtime)?;
        checked_plane(target, (destination, to_pitch), (source, from_pitch), (width, height), kind, true)
    }

    fn cudaMemcpy2DAsync | cudaMemcpy2DAsync_ptsz [defaults] (destination: Address, to_pitch: usize, source: Address, from_pitch: usize, width: usize, height: usize, kind: u32, stream: Address) {
        let target = target(stream, defaults, current_for_runtime)?;
        checked_plane(target, (destination, to_pitch), (source, from_pitch), (width, height), kind, false)
    }

    fn cudaMemcpy3D | cudaMemcpy3D_ptds [defaults] (parameters: In<Parameters3>) {
        let target = target(0, defaults, current_for_runtime)?;
        Ok(cube(target, parameters.get()?, true)?)
    }

    fn cudaMemcpy3DAsync | cudaMemcpy3DAsync_ptsz [defaults] (parameters: In<Parameters3>, stream: Address) {
        let target = target(stream, defaults, current_for_runtime)?;
        Ok(cube(target, parameters.get()?, false)?)
    }
}

/// `cudaMemcpy3DParms`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Parameters3 {
    source_array: Address,
    source_position: [usize; 3],
    source: Pitched,
    destination_array: Address,
    destination_position: [usize; 3],
    destination: Pitched,
    extent: Extent3,
    kind: u32,
}

fn cube(target: Target, parameters: Parameters3, wait: bool) -> Result<(), CuResult> {
    if parameters.source_array != 0 || parameters.destination_array != 0 {
        crate::call::note(
            "cudaMemcpy3D with an array",
            lockstep_protocol::UnsupportedManner::Option,
        );
        return Err(CuResult::NOT_SUPPORTED);
    }
    let extent = Extent {
        width: parameters.extent.width as u64,
        height: parameters.extent.height as u64,
        depth: parameters.extent.depth as u64,
    };
    let side = |memory: Pitched, position: [usize; 3]| {
        let slice_pitch = memory.pitch * memory.height;
        Side {
            address: memory.address
                + position[2] * slice_pitch
                + position[1] * memory.pitch
                + position[0],
            row_pitch: memory.pitch,
            slice_pitch,
        }
    };
    let to = side(parameters.destination, parameters.destination_position);
    let from = side(parameters.source, parameters.source_position);
    perform(target, to, from, extent, wait)
}

/// One side of `CUDA_MEMCPY2D`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PlaneSide {
    x: usize,
    y: usize,
    kind: u32,
    host: Address,
    device: Address,
    array: Address,
    pitch: usize,
}

/// `CUDA_MEMCPY2D`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Plane {
    source: PlaneSide,
    destination: PlaneSide,
    width: usize,
    height: usize,
}

/// One side of `CUDA_MEMCPY3D`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CubeSide {
    x: usize,
    y: usize,
    z: usize,
    level: usize,
    kind: u32,
    host: Address,
    device: Address,
    array: Address,
    reserved: Address,
    pitch: usize,
    height: usize,
}

/// `CUDA_MEMCPY3D`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Cube {
    source: CubeSide,
    destination: CubeSide,
    width: usize,
    height: usize,
    depth: usize,
}

/// `CUmemorytype`: 1 host, 2 device, 3 array, 4 either, by its address.
fn address_of(kind: u32, host: Address, device: Address) -> Result<Address, CuResult> {
    match kind {
        1 => Ok(host),
        2 | 4 => Ok(device),
        3 => {
            crate::call::note(
                "cuMemcpy with an array",
                lockstep_protocol::UnsupportedManner::Option,
            );
            Err(CuResult::NOT_SUPPORTED)
        }
        _ => Err(CuResult::INVALID_VALUE),
    }
}

fn driver_plane(target: Target, plane: Plane, wait: bool) -> Result<(), CuResult> {
    let side = |side: PlaneSide| -> Result<Side, CuResult> {
        let base = address_of(side.kind, side.host, side.device)?;
        // A pitch of nothing means that rows follow each other.
        let pitch = if side.pitch == 0 {
            plane.width
        } else {
            side.pitch
        };
        if pitch < plane.width && plane.height > 1 {
            return Err(CuResult::INVALID_VALUE);
        }
        Ok(Side::plane(base + side.y * pitch + side.x, pitch))
    };
    let extent = Extent {
        width: plane.width as u64,
        height: plane.height as u64,
        depth: 1,
    };
    perform(
        target,
        side(plane.destination)?,
        side(plane.source)?,
        extent,
        wait,
    )
}

fn driver_cube(target: Target, cube: Cube, wait: bool) -> Result<(), CuResult> {
    let side = |side: CubeSide| -> Result<Side, CuResult> {
        let base = address_of(side.kind, side.host, side.device)?;
        let row_pitch = if side.pitch == 0 {
            cube.width
        } else {
            side.pitch
        };
        let rows = if side.height == 0 {
            cube.height
        } else {
            side.height
        };
        let slice_pitch = row_pitch * rows;
        Ok(Side {
            address: base + side.z * slice_pitch + side.y * row_pitch + side.x,
            row_pitch,
            slice_pitch,
        })
    };
    let extent = Extent {
        width: cube.width as u64,
        height: cube.height as u64,
        depth: cube.depth as u64,
    };
    perform(
        target,
        side(cube.destination)?,
        side(cube.source)?,
        extent,
        wait,
    )
}

driver! {
    fn cuMemcpy | cuMemcpy_ptds [defaults] (destination: Address, source: Address, bytes: usize) {
        linear(target(0, defaults, current)?, destination, source, bytes, true)
    }

    fn cuMemcpyAsync | cuMemcpyAsync_ptsz [defaults] (destination: Address, source: Address, bytes: usize, stream: Address) {
        linear(target(stream, defaults, current)?, destination, source, bytes, false)
    }

    fn cuMemcpyHtoD_v2 | cuMemcpyHtoD_v2_ptds [defaults] (destination: Address, source: Address, bytes: usize) {
        linear(target(0, defaults, current)?, destination, source, bytes, true)
    }

    fn cuMemcpyHtoDAsync_v2 | cuMemcpyHtoDAsync_v2_ptsz [defaults] (destination: Address, source: Address, bytes: usize, stream: Address) {
        linear(target(stream, defaults, current)?, destination, source, bytes, false)
    }

    fn cuMemcpyDtoH_v2 | cuMemcpyDtoH_v2_ptds [defaults] (destination: Address, source: Address, bytes: usize) {
        linear(target(0, defaults, current)?, destination, source, bytes, true)
    }

    fn cuMemcpyDtoHAsync_v2 | cuMemcpyDtoHAsync_v2_ptsz [defaults] (destination: Address, source: Address, bytes: usize, stream: Address) {
        linear(target(stream, defaults, current)?, destination, source, bytes, false)
    }

    fn cuMemcpyDtoD_v2 | cuMemcpyDtoD_v2_ptds [defaults] (destination: Address, source: Address, bytes: usize) {
        linear(target(0, defaults, current)?, destination, source, bytes, true)
    }

    fn cuMemcpyDtoDAsync_v2 | cuMemcpyDtoDAsync_v2_ptsz [defaults] (destination: Address, source: Address, bytes: usize, stream: Address) {
        linear(target(stream, defaults, current)?, destination, source, bytes, false)
    }

    fn cuMemcpyPeer | cuMemcpyPeer_ptds [defaults] (destination: Address, to: Address, source: Address, from: Address, bytes: usize) {
        let _ = (to, from);
        linear(target(0, defaults, current)?, destination, source, bytes, true)
    }

    fn cuMemcpyPeerAsync | cuMemcpyPeerAsync_ptsz [defaults] (destination: Address, to: Address, source: Address, from: Address, bytes: usize, stream: Address) {
        let _ = (to, from);
        linear(target(stream, defaults, current)?, destination, source, bytes, false)
    }

    fn cuMemcpy2D_v2 | cuMemcpy2D_v2_ptds [defaults] (plane: In<Plane>) {
        driver_plane(target(0, defaults, current)?, plane.get()?, true)
    }

    fn cuMemcpy2DUnaligned_v2 | cuMemcpy2DUnaligned_v2_ptds [defaults] (plane: In<Plane>) {
        driver_plane(target(0, defaults, current)?, plane.get()?, true)
    }

    fn cuMemcpy2DAsync_v2 | cuMemcpy2DAsync_v2_ptsz [defaults] (plane: In<Plane>, stream: Address) {
        driver_plane(target(stream, defaults, current)?, plane.get()?, false)
    }

    fn cuMemcpy3D_v2 | cuMemcpy3D_v2_ptds [defaults] (cube: In<Cube>) {
        driver_cube(target(0, defaults, current)?, cube.get()?, true)
    }

    fn cuMemcpy3DAsync_v2 | cuMemcpy3DAsync_v2_ptsz [defaults] (cube: In<Cube>, stream: Address) {
        driver_cube(target(stream, defaults, current)?, cube.get()?, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_have_the_sizes_of_the_headers() {
        assert_eq!(size_of::<Plane>(), 128);
        assert_eq!(size_of::<Cube>(), 200);
        assert_eq!(size_of::<Parameters3>(), 160);
    }

    #[test]
    fn directions_are_checked_against_the_pointers() {
        let device = lockstep_protocol::layout::WINDOW_BASE as Address;
        let pinned = lockstep_protocol::layout::PINNED_BASE as Address;
        let host = 0x7fff_0000_0000;
        assert_eq!(check_kind(device, host, 1), Ok(()));
        assert_eq!(check_kind(device, pinned, 1), Ok(()));
        assert_eq!(check_kind(host, device, 2), Ok(()));
        assert_eq!(check_kind(pinned, device, 3), Ok(()));
        assert_eq!(
            check_kind(host, device, 1),
            Err(RuntimeError::INVALID_VALUE)
        );
        assert_eq!(
            check_kind(device, host, 2),
            Err(RuntimeError::INVALID_VALUE)
        );
        assert_eq!(
            check_kind(host, host, 9),
            Err(RuntimeError::INVALID_COPY_DIRECTION)
        );
    }
}
