//! The driver's spelling of copies.

use super::array;
use super::copy::{Parameters3, Side, linear, perform};
use super::memory::Pitched;
use crate::boundary::driver;
use crate::context::current;
use crate::streams::{Target, target};
use crate::types::{Address, In};
use lockstep_protocol::{CuResult, Extent};

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
        _ => Err(CuResult::INVALID_VALUE),
    }
}

/// `CU_MEMORYTYPE_ARRAY`.
const ARRAY: u32 = 3;

fn driver_plane(target: Target, plane: Plane, wait: bool) -> Result<(), CuResult> {
    let side = |side: PlaneSide| -> Result<Side, CuResult> {
        if side.kind == ARRAY {
            let size = [plane.width, plane.height, 1];
            return array::place_bytes(side.array, [side.x, side.y, 0], size);
        }
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

impl Cube {
    /// Both sides and how much.
    pub fn resolve(&self) -> Result<(Side, Side, Extent), CuResult> {
        let side = |side: CubeSide| -> Result<Side, CuResult> {
            if side.kind == ARRAY {
                let size = [self.width, self.height, self.depth];
                return array::place_bytes(side.array, [side.x, side.y, side.z], size);
            }
            let base = address_of(side.kind, side.host, side.device)?;
            let row_pitch = if side.pitch == 0 {
                self.width
            } else {
                side.pitch
            };
            let rows = if side.height == 0 {
                self.height
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
            width: self.width as u64,
            height: self.height as u64,
            depth: self.depth as u64,
        };
        Ok((side(self.destination)?, side(self.source)?, extent))
    }

    /// The driver's words for a copy that was said in the runtime's.
    pub fn of(parameters: &Parameters3) -> Self {
        let side = |array: Address, memory: Pitched, position: [usize; 3]| CubeSide {
            x: position[0],
            y: position[1],
            z: position[2],
            level: 0,
            kind: if array != 0 { ARRAY } else { 4 },
            host: 0,
            device: memory.address,
            array,
            reserved: 0,
            pitch: memory.pitch,
            height: memory.height,
        };
        Self {
            source: side(
                parameters.source_array,
                parameters.source,
                parameters.source_position,
            ),
            destination: side(
                parameters.destination_array,
                parameters.destination,
                parameters.destination_position,
            ),
            width: parameters.extent.width,
            height: parameters.extent.height,
            depth: parameters.extent.depth,
        }
    }
}

fn driver_cube(target: Target, cube: Cube, wait: bool) -> Result<(), CuResult> {
    let (to, from, extent) = cube.resolve()?;
    perform(target, to, from, extent, wait)
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
    }
}
