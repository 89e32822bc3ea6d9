//! Arrays: memory of two and three dimensions behind a handle.
//!
//! Their layout is ours alone, since programs reach them only through copies, textures and
//! surfaces: rows of one pitch, in one allocation. Layers and faces are slices.

use super::array_format::Format;
use super::copy::Side;
use super::memory::{Extent3, allocate, free};
use crate::boundary::{RuntimeError, driver, runtime};
use crate::context::{current, current_for_runtime};
use crate::fair_mutex::FairMutex;
use crate::opaque::{self, Kind};
use crate::options;
use crate::process::lock;
use crate::types::{Address, In, Out};
use lockstep_protocol::options::Group;
use lockstep_protocol::{ContextHandle, CuResult, TextureLevel, TextureShape};
use std::collections::BTreeMap;

/// Rows begin at multiples of this.
const PITCH: usize = 512;
/// `cudaArrayLayered`.
const LAYERED: u32 = 1;
/// `cudaArrayCubemap`.
const CUBEMAP: u32 = 4;
/// Elements along an edge, and rows or layers: more than any GPU takes.
const MAXIMUM_EDGE: usize = 1 << 17;

/// An array.
#[derive(Clone, Copy)]
struct Array {
    address: Address,
    pitch: usize,
    format: Format,
    /// As the program said it: a height or depth of 0 means that there is none.
    extent: Extent3,
    flags: u32,
    context: ContextHandle,
    /// Whether it is a level of a mipmapped array, which owns it.
    level: bool,
}

struct Arrays {
    next: u64,
    arrays: BTreeMap<u64, Array>,
    mipmapped: BTreeMap<u64, Vec<u64>>,
}

static ARRAYS: FairMutex<Arrays> = FairMutex::new(Arrays {
    next: 1,
    arrays: BTreeMap::new(),
    mipmapped: BTreeMap::new(),
});

impl Array {
    fn rows(&self) -> usize {
        self.extent.height.max(1)
    }

    fn slices(&self) -> usize {
        self.extent.depth.max(1)
    }

    fn bytes(&self) -> usize {
        self.pitch * self.rows() * self.slices()
    }
}

fn create(
    context: ContextHandle,
    format: Format,
    extent: Extent3,
    flags: u32,
) -> Result<u64, CuResult> {
    let element = format.bytes()?;
    let edges = [extent.width, extent.height, extent.depth];
    let flat_depth = extent.depth > 0 && extent.height == 0 && flags & LAYERED == 0;
    let no_layers = flags & LAYERED != 0 && extent.depth == 0;
    let no_cube = flags & CUBEMAP != 0
        && (extent.width != extent.height || extent.depth == 0 || !extent.depth.is_multiple_of(6));
    if extent.width == 0
        || edges.iter().any(|edge| *edge > MAXIMUM_EDGE)
        || flat_depth
        || no_layers
        || no_cube
    {
        return Err(CuResult::INVALID_VALUE);
    }
    options::accept_flags(Group::ArrayFlag, flags)?;
    let pitch = (extent.width * element).next_multiple_of(PITCH);
    let mut array = Array {
        address: 0,
        pitch,
        format,
        extent,
        flags,
        context,
        level: false,
    };
    array.address = allocate(context, array.bytes())?;
    let mut arrays = lock(&ARRAYS);
    arrays.next += 1;
    let number = arrays.next;
    arrays.arrays.insert(number, array);
    Ok(number)
}

fn find(handle: Address) -> Result<Array, CuResult> {
    let number = opaque::decode(Kind::Array, handle).ok_or(CuResult::INVALID_HANDLE)?;
    let found = lock(&ARRAYS).arrays.get(&number).copied();
    found.ok_or(CuResult::INVALID_HANDLE)
}

fn destroy(handle: Address) -> Result<(), CuResult> {
    let array = find(handle)?;
    if array.level {
        return Err(CuResult::INVALID_HANDLE);
    }
    let number = opaque::decode(Kind::Array, handle).ok_or(CuResult::INVALID_HANDLE)?;
    lock(&ARRAYS).arrays.remove(&number);
    free(array.context, array.address)
}

/// Where elements of an array lie, and the bytes of one.
pub fn place(handle: Address, position: [usize; 3]) -> Result<(Side, usize), CuResult> {
    let array = find(handle)?;
    let element = array.format.bytes()?;
    let slice_pitch = array.pitch * array.rows();
    let side = Side {
        address: array.address
            + position[2] * slice_pitch
            + position[1] * array.pitch
            + position[0] * element,
        row_pitch: array.pitch,
        slice_pitch,
    };
    Ok((side, element))
}

/// Refuses what passes the edges of an array, in elements.
pub fn check(handle: Address, position: [usize; 3], extent: Extent3) -> Result<(), CuResult> {
    let array = find(handle)?;
    let within = |start: usize, length: usize, edge: usize| {
        start.checked_add(length).is_some_and(|end| end <= edge)
    };
    let fits = within(position[0], extent.width, array.extent.width)
        && within(position[1], extent.height, array.rows())
        && within(position[2], extent.depth, array.slices());
    if fits {
        Ok(())
    } else {
        Err(CuResult::INVALID_VALUE)
    }
}

/// Where bytes of an array lie; refuses what passes its edges. The offset and width are in
/// bytes, as the older copies have them.
pub fn place_bytes(
    handle: Address,
    offset: [usize; 3],
    size: [usize; 3],
) -> Result<Side, CuResult> {
    let array = find(handle)?;
    let element = array.format.bytes()?;
    if !offset[0].is_multiple_of(element) || !size[0].is_multiple_of(element) {
        return Err(CuResult::INVALID_VALUE);
    }
    let position = [offset[0] / element, offset[1], offset[2]];
    let extent = Extent3 {
        width: size[0] / element,
        height: size[1],
        depth: size[2],
    };
    check(handle, position, extent)?;
    Ok(place(handle, position)?.0)
}

/// Bytes of a row and rows of an array, for copies that go on from row to row.
pub fn rows(handle: Address) -> Result<(usize, usize), CuResult> {
    let array = find(handle)?;
    Ok((array.extent.width * array.format.bytes()?, array.rows()))
}

/// How texels of an array are arranged, what they are made of, and where those of each level lie.
pub fn levels_of(
    handle: Address,
    mipmapped: bool,
) -> Result<(TextureShape, Format, Vec<TextureLevel>), CuResult> {
    let numbers = match mipmapped {
        true => levels(handle)?,
        false => vec![opaque::decode(Kind::Array, handle).ok_or(CuResult::INVALID_HANDLE)?],
    };
    let mut found = Vec::new();
    let arrays = lock(&ARRAYS);
    let mut first = None;
    for number in numbers {
        let array = arrays.arrays.get(&number).ok_or(CuResult::INVALID_HANDLE)?;
        first.get_or_insert(*array);
        found.push(TextureLevel {
            address: array.address as u64,
            width: array.extent.width as u32,
            height: array.rows() as u32,
            depth: array.slices() as u32,
            row_pitch: array.pitch as u64,
            slice_pitch: (array.pitch * array.rows()) as u64,
        });
    }
    let array = first.ok_or(CuResult::INVALID_HANDLE)?;
    let (layered, cube) = (array.flags & LAYERED != 0, array.flags & CUBEMAP != 0);
    let dimensions = match (array.extent.height, array.extent.depth) {
        (0, _) => 1,
        (_, 0) => 2,
        _ if layered || cube => 2,
        _ => 3,
    };
    let shape = TextureShape {
        dimensions,
        layered,
        cube,
        linear: false,
    };
    Ok((shape, array.format, found))
}

fn create_mipmapped(
    context: ContextHandle,
    format: Format,
    extent: Extent3,
    levels: u32,
    flags: u32,
) -> Result<Address, CuResult> {
    let most = usize::BITS
        - extent
            .width
            .max(extent.height)
            .max(extent.depth)
            .leading_zeros();
    let levels = levels.clamp(1, most.max(1));
    let shrunk = |edge: usize, level: u32| {
        if edge == 0 { 0 } else { (edge >> level).max(1) }
    };
    let mut numbers = Vec::new();
    for level in 0..levels {
        let layered = flags & (LAYERED | CUBEMAP) != 0;
        let size = Extent3 {
            width: shrunk(extent.width, level),
            height: shrunk(extent.height, level),
            depth: if layered {
                extent.depth
            } else {
                shrunk(extent.depth, level)
            },
        };
        match create(context, format, size, flags) {
            Ok(number) => numbers.push(number),
            Err(error) => {
                for number in numbers {
                    // What is told is why the array could not be made.
                    let _ = destroy(opaque::encode(Kind::Array, number));
                }
                return Err(error);
            }
        }
    }
    let mut arrays = lock(&ARRAYS);
    for number in &numbers {
        if let Some(array) = arrays.arrays.get_mut(number) {
            array.level = true;
        }
    }
    arrays.next += 1;
    let number = arrays.next;
    arrays.mipmapped.insert(number, numbers);
    Ok(opaque::encode(Kind::MipmappedArray, number))
}

fn levels(handle: Address) -> Result<Vec<u64>, CuResult> {
    let number = opaque::decode(Kind::MipmappedArray, handle).ok_or(CuResult::INVALID_HANDLE)?;
    let found = lock(&ARRAYS).mipmapped.get(&number).cloned();
    found.ok_or(CuResult::INVALID_HANDLE)
}

fn level(handle: Address, index: u32) -> Result<Address, CuResult> {
    let levels = levels(handle)?;
    let number = levels.get(index as usize).ok_or(CuResult::INVALID_VALUE)?;
    Ok(opaque::encode(Kind::Array, *number))
}

fn destroy_mipmapped(handle: Address) -> Result<(), CuResult> {
    for number in levels(handle)? {
        let removed = lock(&ARRAYS).arrays.remove(&number);
        if let Some(array) = removed {
            free(array.context, array.address)?;
        }
    }
    let number = opaque::decode(Kind::MipmappedArray, handle).ok_or(CuResult::INVALID_HANDLE)?;
    lock(&ARRAYS).mipmapped.remove(&number);
    Ok(())
}

/// `CUDA_ARRAY_MEMORY_REQUIREMENTS`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Requirements {
    size: usize,
    alignment: usize,
    reserved: [u32; 4],
}

fn requirements(bytes: usize) -> Requirements {
    const GRANULARITY: usize = 64 << 10;
    Requirements {
        size: bytes.next_multiple_of(GRANULARITY),
        alignment: GRANULARITY,
        reserved: [0; 4],
    }
}

fn mipmapped_bytes(handle: Address) -> Result<usize, CuResult> {
    let levels = levels(handle)?;
    let arrays = lock(&ARRAYS);
    let sizes = levels.iter().filter_map(|number| arrays.arrays.get(number));
    Ok(sizes.map(Array::bytes).sum())
}

/// `CUDA_ARRAY_DESCRIPTOR`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Descriptor {
    width: usize,
    height: usize,
    format: u32,
    channels: u32,
}

/// `CUDA_ARRAY3D_DESCRIPTOR`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Descriptor3 {
    width: usize,
    height: usize,
    depth: usize,
    format: u32,
    channels: u32,
    flags: u32,
}

impl Descriptor3 {
    fn format(&self) -> Result<Format, CuResult> {
        Format::of_driver(self.format, self.channels)
    }

    fn extent(&self) -> Extent3 {
        Extent3 {
            width: self.width,
            height: self.height,
            depth: self.depth,
        }
    }
}

/// The runtime has a code of its own for elements that no array has.
fn checked(format: In<Format>) -> Result<Format, RuntimeError> {
    let format = format.get()?;
    match format.bytes() {
        Ok(_) => Ok(format),
        Err(_) => Err(RuntimeError::INVALID_CHANNEL_DESCRIPTOR),
    }
}

runtime! {
    fn cudaMallocArray(array: Out<Address>, format: In<Format>, width: usize, height: usize, flags: u32) {
        array.check()?;
        let context = current_for_runtime()?;
        let format = checked(format)?;
        let number = create(context, format, Extent3 { width, height, depth: 0 }, flags)?;
        Ok(array.set(opaque::encode(Kind::Array, number))?)
    }

    fn cudaMalloc3DArray(array: Out<Address>, format: In<Format>, extent: Extent3, flags: u32) {
        array.check()?;
        let number = create(current_for_runtime()?, checked(format)?, extent, flags)?;
        Ok(array.set(opaque::encode(Kind::Array, number))?)
    }

    fn cudaFreeArray(array: Address) {
        current_for_runtime()?;
        if array == 0 { Ok(()) } else { Ok(destroy(array)?) }
    }

    fn cudaMallocMipmappedArray(array: Out<Address>, format: In<Format>, extent: Extent3, count: u32, flags: u32) {
        array.check()?;
        let made = create_mipmapped(current_for_runtime()?, checked(format)?, extent, count, flags)?;
        Ok(array.set(made)?)
    }

    fn cudaGetMipmappedArrayLevel(array: Out<Address>, mipmapped: Address, index: u32) {
        Ok(array.set(level(mipmapped, index)?)?)
    }

    fn cudaFreeMipmappedArray(mipmapped: Address) {
        current_for_runtime()?;
        if mipmapped == 0 { Ok(()) } else { Ok(destroy_mipmapped(mipmapped)?) }
    }

    fn cudaArrayGetInfo(format: Out<Format>, extent: Out<Extent3>, flags: Out<u32>, array: Address) {
        let array = find(array)?;
        format.set_if_wanted(array.format);
        extent.set_if_wanted(array.extent);
        flags.set_if_wanted(array.flags);
        Ok(())
    }

    fn cudaGetChannelDesc(format: Out<Format>, array: Address) {
        Ok(format.set(find(array)?.format)?)
    }

    fn cudaArrayGetMemoryRequirements(answer: Out<Requirements>, array: Address, number: i32) {
        crate::process::device(number)?;
        Ok(answer.set(requirements(find(array)?.bytes()))?)
    }

    fn cudaMipmappedArrayGetMemoryRequirements(answer: Out<Requirements>, mipmapped: Address, number: i32) {
        crate::process::device(number)?;
        Ok(answer.set(requirements(mipmapped_bytes(mipmapped)?))?)
    }
}

driver! {
    fn cuArrayCreate_v2(array: Out<Address>, descriptor: In<Descriptor>) {
        array.check()?;
        let Descriptor { width, height, format, channels } = descriptor.get()?;
        let format = Format::of_driver(format, channels)?;
        let number = create(current()?, format, Extent3 { width, height, depth: 0 }, 0)?;
        array.set(opaque::encode(Kind::Array, number))
    }

    fn cuArray3DCreate_v2(array: Out<Address>, descriptor: In<Descriptor3>) {
        array.check()?;
        let descriptor = descriptor.get()?;
        let number = create(current()?, descriptor.format()?, descriptor.extent(), descriptor.flags)?;
        array.set(opaque::encode(Kind::Array, number))
    }

    fn cuArrayGetDescriptor_v2(descriptor: Out<Descriptor>, array: Address) {
        let array = find(array)?;
        let (format, channels) = array.format.driver();
        descriptor.set(Descriptor { width: array.extent.width, height: array.extent.height, format, channels })
    }

    fn cuArray3DGetDescriptor_v2(descriptor: Out<Descriptor3>, array: Address) {
        let array = find(array)?;
        let (format, channels) = array.format.driver();
        let Extent3 { width, height, depth } = array.extent;
        descriptor.set(Descriptor3 { width, height, depth, format, channels, flags: array.flags })
    }

    fn cuArrayDestroy(array: Address) {
        current()?;
        destroy(array)
    }

    fn cuMipmappedArrayCreate(array: Out<Address>, descriptor: In<Descriptor3>, count: u32) {
        array.check()?;
        let descriptor = descriptor.get()?;
        let flags = descriptor.flags;
        array.set(create_mipmapped(current()?, descriptor.format()?, descriptor.extent(), count, flags)?)
    }

    fn cuMipmappedArrayGetLevel(array: Out<Address>, mipmapped: Address, index: u32) {
        array.set(level(mipmapped, index)?)
    }

    fn cuMipmappedArrayDestroy(mipmapped: Address) {
        current()?;
        destroy_mipmapped(mipmapped)
    }

    fn cuArrayGetMemoryRequirements(answer: Out<Requirements>, array: Address, number: i32) {
        crate::process::device(number)?;
        answer.set(requirements(find(array)?.bytes()))
    }

    fn cuMipmappedArrayGetMemoryRequirements(answer: Out<Requirements>, mipmapped: Address, number: i32) {
        crate::process::device(number)?;
        answer.set(requirements(mipmapped_bytes(mipmapped)?))
    }
}

/// `cudaCreateChannelDesc` answers the structure itself.
#[unsafe(export_name = "lockstep_cudaCreateChannelDesc")]
pub extern "C" fn create_channel_description(x: i32, y: i32, z: i32, w: i32, kind: i32) -> Format {
    Format {
        bits: [x, y, z, w],
        kind,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_have_the_sizes_of_the_headers() {
        assert_eq!(size_of::<Format>(), 20);
        assert_eq!(size_of::<Descriptor>(), 24);
        assert_eq!(size_of::<Descriptor3>(), 40);
        assert_eq!(size_of::<Requirements>(), 32);
    }
}
