//! Copies of one, two and three dimensions; the driver's spelling is in `driver_copy`.
//!
//! A copy between two places in the window is the simulator's work. One that touches the
//! program's own memory is done here, after the simulator has answered that the stream has
//! come to it (see `lockstep_protocol::Copy`).

use super::array;
use super::memory::{Extent3, Pitched};
use crate::boundary::{RuntimeError, runtime};
use crate::call::done;
use crate::context::current_for_runtime;
use crate::fresh;
use crate::graph::capture;
use crate::graph::model::{CopyNode, NodeWork};
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

    /// Rows of a pitch.
    pub fn plane(address: Address, pitch: usize) -> Self {
        Self {
            address,
            row_pitch: pitch,
            slice_pitch: 0,
        }
    }

    /// Whether it is the program's own memory.
    pub fn is_program(self) -> bool {
        region_of(self.address as u64).is_none()
    }

    /// Where it is, as the simulator knows it.
    pub fn place(self) -> Place {
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
    perform_said(target, destination, source, extent, wait, None)
}

/// As [`perform`], with the parameters as the program said them, for whoever asks a node that
/// is made of the copy.
fn perform_said(
    target: Target,
    destination: Side,
    source: Side,
    extent: Extent,
    wait: bool,
    said: Option<Parameters3>,
) -> Result<(), CuResult> {
    match extent.bytes() {
        None => return Err(CuResult::INVALID_VALUE),
        Some(0) => return Ok(()),
        Some(_) => {}
    }
    if destination.address == 0 || source.address == 0 {
        return Err(CuResult::INVALID_VALUE);
    }
    let captured = capture::takes(target, || {
        if wait {
            return Err(CuResult::STREAM_CAPTURE_UNSUPPORTED);
        }
        let parameters = said.unwrap_or_else(|| describe(destination, source, extent));
        Ok(NodeWork::Copy(CopyNode {
            to: destination,
            from: source,
            extent,
            parameters,
        }))
    })?;
    if captured {
        return Ok(());
    }
    let device = |side: Side| region_of(side.address as u64).is_some_and(Region::is_device);
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

/// The parameters that a copy could have been said with.
pub fn describe(destination: Side, source: Side, extent: Extent) -> Parameters3 {
    let side = |side: Side| Pitched {
        address: side.address,
        pitch: side.row_pitch,
        width: side.row_pitch,
        height: side
            .slice_pitch
            .checked_div(side.row_pitch)
            .filter(|rows| *rows > 0)
            .unwrap_or(extent.height as usize),
    };
    const DEFAULT: u32 = 4;
    Parameters3 {
        source_array: 0,
        source_position: [0; 3],
        source: side(source),
        destination_array: 0,
        destination_position: [0; 3],
        destination: side(destination),
        extent: Extent3 {
            width: extent.width as usize,
            height: extent.height as usize,
            depth: extent.depth as usize,
        },
        kind: DEFAULT,
    }
}

/// Moves bytes between the program's own memory and the window.
pub fn move_bytes(destination: Side, source: Side, extent: Extent) {
    for slice in 0..extent.depth as usize {
        for row in 0..extent.height as usize {
            let (to, from) = (destination.row(slice, row), source.row(slice, row));
            let bytes = extent.width as usize;
            // SAFETY: by CUDA's contract the program's side holds what it asked to copy, and
            // the simulator has accepted the range on the window's side.
            unsafe {
                if !fresh::write(to, from as *const u8, bytes)
                    && !fresh::read(to as *mut u8, from, bytes)
                {
                    std::ptr::copy(from as *const u8, to as *mut u8, bytes);
                }
            }
        }
    }
}

/// Checks `cudaMemcpyKind` against what the pointers are.
fn check_kind(destination: Address, source: Address, kind: u32) -> Result<(), RuntimeError> {
    let visible = |address: Address| region_of(address as u64).is_some();
    let device = |address: Address| region_of(address as u64).is_some_and(Region::is_device);
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

/// Copies memory without pitch.
pub fn linear(
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
    /// Where from, if it is an array.
    pub source_array: Address,
    /// Where in it: elements of an array, else bytes, rows and slices.
    pub source_position: [usize; 3],
    /// Source, if it is no array.
    pub source: Pitched,
    /// Where to, if it is an array.
    pub destination_array: Address,
    /// Offset in the destination.
    pub destination_position: [usize; 3],
    /// Destination, if it is no array.
    pub destination: Pitched,
    /// How much: elements of a row if an array takes part, else bytes.
    pub extent: Extent3,
    /// `cudaMemcpyKind`.
    pub kind: u32,
}

impl Parameters3 {
    /// A copy of one row.
    pub fn linear(destination: Address, source: Address, bytes: usize, kind: u32) -> Self {
        let side = |address| Pitched {
            address,
            pitch: bytes,
            width: bytes,
            height: 1,
        };
        Self {
            source_array: 0,
            source_position: [0; 3],
            source: side(source),
            destination_array: 0,
            destination_position: [0; 3],
            destination: side(destination),
            extent: Extent3 {
                width: bytes,
                height: 1,
                depth: 1,
            },
            kind,
        }
    }

    /// Both sides and how much.
    pub fn resolve(&self) -> Result<(Side, Side, Extent), CuResult> {
        let mut unit = None;
        let mut side = |array: Address, memory: Pitched, position: [usize; 3]| {
            if array != 0 && memory.address != 0 {
                return Err(CuResult::INVALID_VALUE);
            }
            if array != 0 {
                let (side, element) = array::place(array, position)?;
                if unit.is_some_and(|other| other != element) {
                    return Err(CuResult::INVALID_VALUE);
                }
                unit = Some(element);
                return Ok(side);
            }
            let slice_pitch = memory.pitch * memory.height;
            Ok(Side {
                address: memory.address
                    + position[2] * slice_pitch
                    + position[1] * memory.pitch
                    + position[0],
                row_pitch: memory.pitch,
                slice_pitch,
            })
        };
        let from = side(self.source_array, self.source, self.source_position)?;
        let to = side(
            self.destination_array,
            self.destination,
            self.destination_position,
        )?;
        let extent = Extent {
            width: (self.extent.width * unit.unwrap_or(1)) as u64,
            height: self.extent.height as u64,
            depth: self.extent.depth as u64,
        };
        for (array, position) in [
            (self.source_array, self.source_position),
            (self.destination_array, self.destination_position),
        ] {
            if array != 0 {
                array::check(array, position, self.extent)?;
            }
        }
        Ok((to, from, extent))
    }
}

fn cube(target: Target, parameters: Parameters3, wait: bool) -> Result<(), CuResult> {
    let (to, from, extent) = parameters.resolve()?;
    perform_said(target, to, from, extent, wait, Some(parameters))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structure_has_the_size_of_the_header() {
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
