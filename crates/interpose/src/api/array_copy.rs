//! Copies to, from and between arrays.

use super::array::{place_bytes, rows};
use super::copy::{Side, perform};
use crate::boundary::{driver, runtime};
use crate::context::{current, current_for_runtime};
use crate::streams::{Defaults, Target, target};
use crate::types::Address;
use lockstep_protocol::{CuResult, Extent};

/// A corner of an array: bytes along the row, rows.
type Corner = (Address, usize, usize);

fn plane_extent(width: usize, height: usize) -> Extent {
    Extent {
        width: width as u64,
        height: height as u64,
        depth: 1,
    }
}

fn side(corner: Corner, width: usize, height: usize) -> Result<Side, CuResult> {
    let (array, x, y) = corner;
    place_bytes(array, [x, y, 0], [width, height, 1])
}

fn to_array(
    target: Target,
    to: Corner,
    from: (Address, usize),
    size: (usize, usize),
    wait: bool,
) -> Result<(), CuResult> {
    if size.1 > 1 && from.1 < size.0 {
        return Err(CuResult::INVALID_VALUE);
    }
    let to = side(to, size.0, size.1)?;
    let from = Side::plane(from.0, from.1);
    perform(target, to, from, plane_extent(size.0, size.1), wait)
}

fn from_array(
    target: Target,
    to: (Address, usize),
    from: Corner,
    size: (usize, usize),
    wait: bool,
) -> Result<(), CuResult> {
    if size.1 > 1 && to.1 < size.0 {
        return Err(CuResult::INVALID_VALUE);
    }
    let from = side(from, size.0, size.1)?;
    let to = Side::plane(to.0, to.1);
    perform(target, to, from, plane_extent(size.0, size.1), wait)
}

fn between(target: Target, to: Corner, from: Corner, size: (usize, usize)) -> Result<(), CuResult> {
    let (to, from) = (side(to, size.0, size.1)?, side(from, size.0, size.1)?);
    perform(target, to, from, plane_extent(size.0, size.1), true)
}

/// Pieces of a run of bytes that goes on from row to row of an array: corner, offset in the
/// run, bytes.
fn pieces(start: Corner, bytes: usize) -> Result<Vec<(Corner, usize, usize)>, CuResult> {
    let (array, mut x, mut y) = start;
    let (row, height) = rows(array)?;
    let mut pieces = Vec::new();
    let mut done = 0;
    while done < bytes {
        if x >= row || y >= height {
            return Err(CuResult::INVALID_VALUE);
        }
        let length = (row - x).min(bytes - done);
        pieces.push(((array, x, y), done, length));
        done += length;
        (x, y) = (0, y + 1);
    }
    Ok(pieces)
}

fn run_to_array(
    target: Target,
    to: Corner,
    from: Address,
    bytes: usize,
    wait: bool,
) -> Result<(), CuResult> {
    for (corner, offset, length) in pieces(to, bytes)? {
        to_array(target, corner, (from + offset, length), (length, 1), wait)?;
    }
    Ok(())
}

fn run_from_array(
    target: Target,
    to: Address,
    from: Corner,
    bytes: usize,
    wait: bool,
) -> Result<(), CuResult> {
    for (corner, offset, length) in pieces(from, bytes)? {
        from_array(target, (to + offset, length), corner, (length, 1), wait)?;
    }
    Ok(())
}

fn run_between(target: Target, to: Corner, from: Corner, bytes: usize) -> Result<(), CuResult> {
    let mut pending = pieces(to, bytes)?.into_iter();
    let mut current = pending.next();
    for (source, mut start, mut length) in pieces(from, bytes)? {
        let mut source = source;
        while length > 0 {
            let Some((destination, offset, available)) = current else {
                return Err(CuResult::INVALID_VALUE);
            };
            let skipped = start - offset;
            let part = length.min(available - skipped);
            let corner = (destination.0, destination.1 + skipped, destination.2);
            between(target, corner, source, (part, 1))?;
            source.1 += part;
            start += part;
            length -= part;
            if skipped + part == available {
                current = pending.next();
            }
        }
    }
    Ok(())
}

runtime! {
    fn cudaMemcpy2DToArray | cudaMemcpy2DToArray_ptds [defaults] (array: Address, x: usize, y: usize, source: Address, pitch: usize, width: usize, height: usize, kind: u32) {
        let _ = kind; // The pointers say it.
        let target = target(0, defaults, current_for_runtime)?;
        Ok(to_array(target, (array, x, y), (source, pitch), (width, height), true)?)
    }

    fn cudaMemcpy2DToArrayAsync | cudaMemcpy2DToArrayAsync_ptsz [defaults] (array: Address, x: usize, y: usize, source: Address, pitch: usize, width: usize, height: usize, kind: u32, stream: Address) {
        let _ = kind;
        let target = target(stream, defaults, current_for_runtime)?;
        Ok(to_array(target, (array, x, y), (source, pitch), (width, height), false)?)
    }

    fn cudaMemcpy2DFromArray | cudaMemcpy2DFromArray_ptds [defaults] (destination: Address, pitch: usize, array: Address, x: usize, y: usize, width: usize, height: usize, kind: u32) {
        let _ = kind;
        let target = target(0, defaults, current_for_runtime)?;
        Ok(from_array(target, (destination, pitch), (array, x, y), (width, height), true)?)
    }

    fn cudaMemcpy2DFromArrayAsync | cudaMemcpy2DFromArrayAsync_ptsz [defaults] (destination: Address, pitch: usize, array: Address, x: usize, y: usize, width: usize, height: usize, kind: u32, stream: Address) {
        let _ = kind;
        let target = target(stream, defaults, current_for_runtime)?;
        Ok(from_array(target, (destination, pitch), (array, x, y), (width, height), false)?)
    }

    fn cudaMemcpy2DArrayToArray | cudaMemcpy2DArrayToArray_ptds [defaults] (to: Address, to_x: usize, to_y: usize, from: Address, from_x: usize, from_y: usize, width: usize, height: usize, kind: u32) {
        let _ = kind;
        let target = target(0, defaults, current_for_runtime)?;
        Ok(between(target, (to, to_x, to_y), (from, from_x, from_y), (width, height))?)
    }

    fn cudaMemcpyToArray | cudaMemcpyToArray_ptds [defaults] (array: Address, x: usize, y: usize, source: Address, bytes: usize, kind: u32) {
        let _ = kind;
        let target = target(0, defaults, current_for_runtime)?;
        Ok(run_to_array(target, (array, x, y), source, bytes, true)?)
    }

    fn cudaMemcpyToArrayAsync | cudaMemcpyToArrayAsync_ptsz [defaults] (array: Address, x: usize, y: usize, source: Address, bytes: usize, kind: u32, stream: Address) {
        let _ = kind;
        let target = target(stream, defaults, current_for_runtime)?;
        Ok(run_to_array(target, (array, x, y), source, bytes, false)?)
    }

    fn cudaMemcpyFromArray | cudaMemcpyFromArray_ptds [defaults] (destination: Address, array: Address, x: usize, y: usize, bytes: usize, kind: u32) {
        let _ = kind;
        let target = target(0, defaults, current_for_runtime)?;
        Ok(run_from_array(target, destination, (array, x, y), bytes, true)?)
    }

    fn cudaMemcpyFromArrayAsync | cudaMemcpyFromArrayAsync_ptsz [defaults] (destination: Address, array: Address, x: usize, y: usize, bytes: usize, kind: u32, stream: Address) {
        let _ = kind;
        let target = target(stream, defaults, current_for_runtime)?;
        Ok(run_from_array(target, destination, (array, x, y), bytes, false)?)
    }

    fn cudaMemcpyArrayToArray | cudaMemcpyArrayToArray_ptds [defaults] (to: Address, to_x: usize, to_y: usize, from: Address, from_x: usize, from_y: usize, bytes: usize, kind: u32) {
        let _ = kind;
        let target = target(0, defaults, current_for_runtime)?;
        Ok(run_between(target, (to, to_x, to_y), (from, from_x, from_y), bytes)?)
    }
}

/// The driver's copies of one dimension are for arrays of one row.
fn driver_to(
    array: Address,
    offset: usize,
    source: Address,
    bytes: usize,
    stream: Address,
    defaults: Defaults,
    wait: bool,
) -> Result<(), CuResult> {
    let target = target(stream, defaults, current)?;
    to_array(
        target,
        (array, offset, 0),
        (source, bytes),
        (bytes, 1),
        wait,
    )
}

fn driver_from(
    destination: Address,
    array: Address,
    offset: usize,
    bytes: usize,
    stream: Address,
    defaults: Defaults,
    wait: bool,
) -> Result<(), CuResult> {
    let target = target(stream, defaults, current)?;
    from_array(
        target,
        (destination, bytes),
        (array, offset, 0),
        (bytes, 1),
        wait,
    )
}

driver! {
    fn cuMemcpyHtoA_v2 | cuMemcpyHtoA_v2_ptds [defaults] (array: Address, offset: usize, source: Address, bytes: usize) {
        driver_to(array, offset, source, bytes, 0, defaults, true)
    }

    fn cuMemcpyHtoAAsync_v2 | cuMemcpyHtoAAsync_v2_ptsz [defaults] (array: Address, offset: usize, source: Address, bytes: usize, stream: Address) {
        driver_to(array, offset, source, bytes, stream, defaults, false)
    }

    fn cuMemcpyDtoA_v2 | cuMemcpyDtoA_v2_ptds [defaults] (array: Address, offset: usize, source: Address, bytes: usize) {
        driver_to(array, offset, source, bytes, 0, defaults, true)
    }

    fn cuMemcpyAtoH_v2 | cuMemcpyAtoH_v2_ptds [defaults] (destination: Address, array: Address, offset: usize, bytes: usize) {
        driver_from(destination, array, offset, bytes, 0, defaults, true)
    }

    fn cuMemcpyAtoHAsync_v2 | cuMemcpyAtoHAsync_v2_ptsz [defaults] (destination: Address, array: Address, offset: usize, bytes: usize, stream: Address) {
        driver_from(destination, array, offset, bytes, stream, defaults, false)
    }

    fn cuMemcpyAtoD_v2 | cuMemcpyAtoD_v2_ptds [defaults] (destination: Address, array: Address, offset: usize, bytes: usize) {
        driver_from(destination, array, offset, bytes, 0, defaults, true)
    }

    fn cuMemcpyAtoA_v2 | cuMemcpyAtoA_v2_ptds [defaults] (to: Address, to_offset: usize, from: Address, from_offset: usize, bytes: usize) {
        let target = target(0, defaults, current)?;
        between(target, (to, to_offset, 0), (from, from_offset, 0), (bytes, 1))
    }
}
