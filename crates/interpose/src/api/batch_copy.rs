//! Copies in batches, copies with attributes, and copies between devices.

use super::array;
use super::copy::{Parameters3, Side, linear, perform};
use super::driver_copy::Cube;
use super::memory::{Extent3, Pitched};
use crate::boundary::{driver, runtime};
use crate::context::{current, current_for_runtime};
use crate::options;
use crate::streams::{Target, target};
use crate::types::{Address, In, Out};
use lockstep_protocol::options::Group;
use lockstep_protocol::{CuResult, Extent};

/// `cudaMemcpy3DPeerParms`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PeerParameters {
    source_array: Address,
    source_position: [usize; 3],
    source: Pitched,
    source_device: i32,
    destination_array: Address,
    destination_position: [usize; 3],
    destination: Pitched,
    destination_device: i32,
    extent: Extent3,
}

fn peer(target: Target, said: PeerParameters, wait: bool) -> Result<(), CuResult> {
    crate::process::device(said.source_device)?;
    crate::process::device(said.destination_device)?;
    const DEFAULT: u32 = 4;
    let parameters = Parameters3 {
        source_array: said.source_array,
        source_position: said.source_position,
        source: said.source,
        destination_array: said.destination_array,
        destination_position: said.destination_position,
        destination: said.destination,
        extent: said.extent,
        kind: DEFAULT,
    };
    let (to, from, extent) = parameters.resolve()?;
    perform(target, to, from, extent, wait)
}

/// One side of `cudaMemcpy3DBatchOp`: 1 is a pointer with a row length, rows of a layer and a
/// hint where it is; 2 is an array with a position.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Operand {
    kind: u32,
    words: [usize; 4],
}

/// `cudaMemcpy3DBatchOp`, `CUDA_MEMCPY3D_BATCH_OP`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Operation {
    source: Operand,
    destination: Operand,
    extent: Extent3,
    order: u32,
    flags: u32,
}

impl Operation {
    fn perform(&self, target: Target) -> Result<(), CuResult> {
        let Extent3 {
            width,
            height,
            depth,
        } = self.extent;
        if !(1..=3).contains(&self.order) {
            return Err(CuResult::INVALID_VALUE);
        }
        options::accept_flags(Group::CopyFlag, self.flags)?;
        let mut unit = 1;
        for operand in [self.source, self.destination] {
            if operand.kind == 2 {
                let position = [operand.words[1], operand.words[2], operand.words[3]];
                array::check(operand.words[0], position, self.extent)?;
                unit = array::place(operand.words[0], position)?.1;
            }
        }
        let side = |operand: Operand| match operand.kind {
            1 => {
                let [address, row, rows, _] = operand.words;
                let row_pitch = if row == 0 { width } else { row } * unit;
                let rows = if rows == 0 { height } else { rows };
                Ok(Side {
                    address,
                    row_pitch,
                    slice_pitch: row_pitch * rows,
                })
            }
            2 => {
                let [array, x, y, z] = operand.words;
                Ok(array::place(array, [x, y, z])?.0)
            }
            _ => Err(CuResult::INVALID_VALUE),
        };
        let extent = Extent {
            width: (width * unit) as u64,
            height: height as u64,
            depth: depth as u64,
        };
        let (to, from) = (side(self.destination)?, side(self.source)?);
        perform(target, to, from, extent, false)
    }
}

fn cubes(
    target: Target,
    count: usize,
    list: In<Operation>,
    flags: u64,
) -> Result<(), (CuResult, usize)> {
    if flags != 0 || count == 0 {
        return Err((CuResult::INVALID_VALUE, usize::MAX));
    }
    for index in 0..count {
        let at = |error| (error, index);
        let operation = list.at(index).map_err(at)?;
        operation.perform(target).map_err(at)?;
    }
    Ok(())
}

/// Bytes of `cudaMemcpyAttributes`, which begins with the order in which sources are read.
type Attributes = [u32; 6];

fn lines(
    target: Target,
    to: In<Address>,
    from: In<Address>,
    sizes: In<usize>,
    count: usize,
    attributes: (In<Attributes>, usize),
) -> Result<(), (CuResult, usize)> {
    let whole = |error| (error, usize::MAX);
    let none = attributes.1 == 0 || attributes.0.is_null();
    if count == 0 || none {
        return Err((CuResult::INVALID_VALUE, usize::MAX));
    }
    for index in 0..attributes.1 {
        let [order, .., flags] = attributes.0.at(index).map_err(whole)?;
        if !(1..=3).contains(&order) {
            return Err((CuResult::INVALID_VALUE, usize::MAX));
        }
        options::accept_flags(Group::CopyFlag, flags).map_err(whole)?;
    }
    for index in 0..count {
        let at = |error| (error, index);
        let to = to.at(index).map_err(at)?;
        let from = from.at(index).map_err(at)?;
        let bytes = sizes.at(index).map_err(at)?;
        linear(target, to, from, bytes, false).map_err(at)?;
    }
    Ok(())
}

/// The calls of 12 say which copy failed.
fn told(outcome: Result<(), (CuResult, usize)>, failed: Out<usize>) -> Result<(), CuResult> {
    outcome.map_err(|(error, index)| {
        failed.set_if_wanted(index);
        error
    })
}

fn plain(outcome: Result<(), (CuResult, usize)>) -> Result<(), CuResult> {
    outcome.map_err(|(error, _)| error)
}

runtime! {
    fn cudaMemcpy3DPeer | cudaMemcpy3DPeer_ptds [defaults] (parameters: In<PeerParameters>) {
        let target = target(0, defaults, current_for_runtime)?;
        Ok(peer(target, parameters.get()?, true)?)
    }

    fn cudaMemcpy3DPeerAsync | cudaMemcpy3DPeerAsync_ptsz [defaults] (parameters: In<PeerParameters>, stream: Address) {
        let target = target(stream, defaults, current_for_runtime)?;
        Ok(peer(target, parameters.get()?, false)?)
    }

    fn cudaMemcpyBatchAsync | cudaMemcpyBatchAsync_ptsz [defaults] (to: In<Address>, from: In<Address>, sizes: In<usize>, count: usize, attributes: In<Attributes>, indices: In<usize>, attribute_count: usize, failed: Out<usize>, stream: Address) {
        let _ = indices;
        let target = target(stream, defaults, current_for_runtime)?;
        Ok(told(lines(target, to, from, sizes, count, (attributes, attribute_count)), failed)?)
    }

    fn cudaMemcpyBatchAsync_v2 | cudaMemcpyBatchAsync_v2_ptsz [defaults] (to: In<Address>, from: In<Address>, sizes: In<usize>, count: usize, attributes: In<Attributes>, indices: In<usize>, attribute_count: usize, stream: Address) {
        let _ = indices;
        let target = target(stream, defaults, current_for_runtime)?;
        Ok(plain(lines(target, to, from, sizes, count, (attributes, attribute_count)))?)
    }

    fn cudaMemcpy3DBatchAsync | cudaMemcpy3DBatchAsync_ptsz [defaults] (count: usize, list: In<Operation>, failed: Out<usize>, flags: u64, stream: Address) {
        let target = target(stream, defaults, current_for_runtime)?;
        Ok(told(cubes(target, count, list, flags), failed)?)
    }

    fn cudaMemcpy3DBatchAsync_v2 | cudaMemcpy3DBatchAsync_v2_ptsz [defaults] (count: usize, list: In<Operation>, flags: u64, stream: Address) {
        let target = target(stream, defaults, current_for_runtime)?;
        Ok(plain(cubes(target, count, list, flags))?)
    }

    fn cudaMemcpyWithAttributesAsync | cudaMemcpyWithAttributesAsync_ptsz [defaults] (to: Address, from: Address, bytes: usize, attributes: In<Attributes>, stream: Address) {
        let target = target(stream, defaults, current_for_runtime)?;
        let (to, from) = (&raw const to, &raw const from);
        Ok(plain(lines(target, In(to), In(from), In(&raw const bytes), 1, (attributes, 1)))?)
    }

    fn cudaMemcpy3DWithAttributesAsync | cudaMemcpy3DWithAttributesAsync_ptsz [defaults] (operation: In<Operation>, flags: u64, stream: Address) {
        let target = target(stream, defaults, current_for_runtime)?;
        Ok(plain(cubes(target, 1, operation, flags))?)
    }
}

driver! {
    /// Contexts stand where the other copies have nothing.
    fn cuMemcpy3DPeer | cuMemcpy3DPeer_ptds [defaults] (cube: In<Cube>) {
        let (to, from, extent) = cube.get()?.resolve()?;
        perform(target(0, defaults, current)?, to, from, extent, true)
    }

    fn cuMemcpy3DPeerAsync | cuMemcpy3DPeerAsync_ptsz [defaults] (cube: In<Cube>, stream: Address) {
        let (to, from, extent) = cube.get()?.resolve()?;
        perform(target(stream, defaults, current)?, to, from, extent, false)
    }

    fn cuMemcpyBatchAsync | cuMemcpyBatchAsync_ptsz [defaults] (to: In<Address>, from: In<Address>, sizes: In<usize>, count: usize, attributes: In<Attributes>, indices: In<usize>, attribute_count: usize, failed: Out<usize>, stream: Address) {
        let _ = indices;
        let target = target(stream, defaults, current)?;
        told(lines(target, to, from, sizes, count, (attributes, attribute_count)), failed)
    }

    fn cuMemcpyBatchAsync_v2 | cuMemcpyBatchAsync_v2_ptsz [defaults] (to: In<Address>, from: In<Address>, sizes: In<usize>, count: usize, attributes: In<Attributes>, indices: In<usize>, attribute_count: usize, stream: Address) {
        let _ = indices;
        let target = target(stream, defaults, current)?;
        plain(lines(target, to, from, sizes, count, (attributes, attribute_count)))
    }

    fn cuMemcpy3DBatchAsync | cuMemcpy3DBatchAsync_ptsz [defaults] (count: usize, list: In<Operation>, failed: Out<usize>, flags: u64, stream: Address) {
        let target = target(stream, defaults, current)?;
        told(cubes(target, count, list, flags), failed)
    }

    fn cuMemcpy3DBatchAsync_v2 | cuMemcpy3DBatchAsync_v2_ptsz [defaults] (count: usize, list: In<Operation>, flags: u64, stream: Address) {
        let target = target(stream, defaults, current)?;
        plain(cubes(target, count, list, flags))
    }

    fn cuMemcpyWithAttributesAsync | cuMemcpyWithAttributesAsync_ptsz [defaults] (to: Address, from: Address, bytes: usize, attributes: In<Attributes>, stream: Address) {
        let target = target(stream, defaults, current)?;
        let (to, from) = (&raw const to, &raw const from);
        plain(lines(target, In(to), In(from), In(&raw const bytes), 1, (attributes, 1)))
    }

    fn cuMemcpy3DWithAttributesAsync | cuMemcpy3DWithAttributesAsync_ptsz [defaults] (operation: In<Operation>, flags: u64, stream: Address) {
        let target = target(stream, defaults, current)?;
        plain(cubes(target, 1, operation, flags))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_have_the_sizes_of_the_headers() {
        assert_eq!(size_of::<PeerParameters>(), 168);
        assert_eq!(size_of::<Operation>(), 112);
    }
}
