//! Tensor maps: descriptions of tensors for the TMA engine, made in the program's own memory.
//!
//! What is accepted, and the 128 bytes, are those of an H200's driver over 30,000 sets of parameters
//! (`validation/hardware/h200/tma`). It accepts more than CUDA's documentation allows: an interleave of 32
//! bytes with any swizzle, and a map at any address.

use crate::boundary::driver;
use crate::context::check_initialized;
use crate::types::{Address, In, Out};
use lockstep_protocol::{CuResult, Interleave, Swizzle, TensorElement, TensorMap, TensorPart};

/// The most bytes of a tile: what a block can have of shared memory.
const MOST_TILE_BYTES: u64 = 227 << 10;
/// Addresses are below this.
const ADDRESS_END: u64 = 1 << 57;
/// Strides are below this.
const STRIDE_END: u64 = 1 << 40;
/// The most elements along a dimension.
const MOST_ELEMENTS: u64 = 1 << 32;

/// What all maps have.
struct Common {
    element: u32,
    rank: u32,
    address: u64,
    dimensions: In<u64>,
    strides: In<u64>,
    steps: In<u32>,
    interleave: i32,
    swizzle: i32,
    promotion: i32,
    fill: i32,
}

fn ensure(holds: bool) -> Result<(), CuResult> {
    if holds {
        Ok(())
    } else {
        Err(CuResult::INVALID_VALUE)
    }
}

impl Common {
    /// The map, with a part that is still to be set.
    fn map(&self, least_rank: u32) -> Result<TensorMap, CuResult> {
        let invalid = CuResult::INVALID_VALUE;
        let element = TensorElement::from_number(self.element).ok_or(invalid)?;
        let interleave = match self.interleave {
            0 => Interleave::None,
            1 => Interleave::Bytes16,
            2 => Interleave::Bytes32,
            _ => return Err(invalid),
        };
        let swizzle = match self.swizzle {
            0 => Swizzle::None,
            1 => Swizzle::Span32,
            2 => Swizzle::Span64,
            3 => Swizzle::Span128,
            _ => return Err(invalid),
        };
        let least_rank = if interleave == Interleave::None {
            least_rank
        } else {
            3
        };
        ensure((least_rank..=5).contains(&self.rank))?;
        ensure((0..=3).contains(&self.promotion))?;
        ensure((0..=1).contains(&self.fill))?;
        ensure(self.fill == 0 || element.is_float())?;
        let alignment = alignment(interleave);
        ensure(self.address.is_multiple_of(alignment) && self.address < ADDRESS_END)?;
        let mut map = TensorMap {
            address: self.address,
            rank: self.rank,
            element,
            interleave,
            swizzle,
            promotion: self.promotion as u8,
            nan_fill: self.fill != 0,
            dimensions: [1; 5],
            strides: [0; 4],
            steps: [1; 5],
            part: TensorPart::Tile { size: [1; 5] },
        };
        ensure(!self.strides.is_null())?;
        for index in 0..self.rank as usize {
            let elements = self.dimensions.at(index)?;
            let step = self.steps.at(index)?;
            ensure((1..=MOST_ELEMENTS).contains(&elements))?;
            ensure((1..=8).contains(&step))?;
            (map.dimensions[index], map.steps[index]) = (elements, step);
        }
        for index in 0..self.rank as usize - 1 {
            let stride = self.strides.at(index)?;
            ensure(stride.is_multiple_of(alignment) && stride < STRIDE_END)?;
            map.strides[index] = stride;
        }
        Ok(map)
    }
}

/// What addresses and strides are multiples of.
fn alignment(interleave: Interleave) -> u64 {
    match interleave {
        Interleave::Bytes32 => 32,
        _ => 16,
    }
}

/// Rows of the tile: whole pieces of 16 bytes, and no longer than what is swizzled.
fn check_row(map: &TensorMap, elements: u32) -> Result<(), CuResult> {
    ensure((1..=256).contains(&elements))?;
    let bytes = elements * map.element.bytes();
    ensure(bytes.is_multiple_of(16))?;
    let span = match map.swizzle {
        Swizzle::None => u32::MAX,
        Swizzle::Span32 => 32,
        Swizzle::Span64 => 64,
        Swizzle::Span128 => 128,
    };
    ensure(map.interleave != Interleave::None || bytes <= span)
}

fn tile(common: &Common, sizes: In<u32>) -> Result<TensorMap, CuResult> {
    let mut map = common.map(1)?;
    let mut size = [1; 5];
    for (index, span) in size.iter_mut().enumerate().take(map.rank as usize) {
        *span = sizes.at(index)?;
        ensure((1..=256).contains(span))?;
    }
    check_row(&map, size[0])?;
    map.part = TensorPart::Tile { size };
    ensure(map.tile_bytes() <= MOST_TILE_BYTES)?;
    Ok(map)
}

/// `corners` of them are given, the others are zero.
fn column(
    common: &Common,
    corners: usize,
    [lowers, uppers]: [In<i32>; 2],
    [channels, pixels]: [u32; 2],
) -> Result<TensorMap, CuResult> {
    let mut map = common.map(3)?;
    check_row(&map, channels)?;
    ensure((1..=1024).contains(&pixels))?;
    let limit = match map.rank {
        3 => 1 << 15,
        4 => 1 << 7,
        _ => 1 << 4,
    };
    // Interleaved tensors have no dimension of channels.
    let first = usize::from(map.interleave == Interleave::None);
    let (mut lower, mut upper) = ([0; 3], [0; 3]);
    for index in 0..map.rank as usize - 2 {
        if index < corners {
            (lower[index], upper[index]) = (lowers.at(index)?, uppers.at(index)?);
        }
        for corner in [lower[index], upper[index]] {
            ensure((-limit..limit).contains(&corner))?;
        }
        // The driver looks at the low word, with a sign.
        let extent = map.dimensions[first + index] as u32 as i32;
        let span = i64::from(extent) + i64::from(upper[index]) - i64::from(lower[index]);
        ensure(span > 0)?;
    }
    map.part = TensorPart::Im2col {
        lower,
        upper,
        channels,
        pixels,
    };
    ensure(map.tile_bytes() <= MOST_TILE_BYTES)?;
    Ok(map)
}

driver! {
    fn cuTensorMapEncodeTiled(
        tensor_map: Out<u8>,
        element: u32,
        rank: u32,
        address: Address,
        dimensions: In<u64>,
        strides: In<u64>,
        sizes: In<u32>,
        steps: In<u32>,
        interleave: i32,
        swizzle: i32,
        promotion: i32,
        fill: i32,
    ) {
        check_initialized()?;
        let address = address as u64;
        let common = Common {
            element, rank, address, dimensions, strides, steps, interleave, swizzle, promotion, fill,
        };
        tensor_map.check()?;
        tensor_map.set_bytes(&tile(&common, sizes)?.encode())
    }

    fn cuTensorMapEncodeIm2col(
        tensor_map: Out<u8>,
        element: u32,
        rank: u32,
        address: Address,
        dimensions: In<u64>,
        strides: In<u64>,
        lower: In<i32>,
        upper: In<i32>,
        channels: u32,
        pixels: u32,
        steps: In<u32>,
        interleave: i32,
        swizzle: i32,
        promotion: i32,
        fill: i32,
    ) {
        check_initialized()?;
        let address = address as u64;
        let common = Common {
            element, rank, address, dimensions, strides, steps, interleave, swizzle, promotion, fill,
        };
        tensor_map.check()?;
        let map = column(&common, 3, [lower, upper], [channels, pixels])?;
        tensor_map.set_bytes(&map.encode())
    }

    // On Hopper it is a column with the corners of its width alone; the mode leaves no trace in the map.
    fn cuTensorMapEncodeIm2colWide(
        tensor_map: Out<u8>,
        element: u32,
        rank: u32,
        address: Address,
        dimensions: In<u64>,
        strides: In<u64>,
        lower: i32,
        upper: i32,
        channels: u32,
        pixels: u32,
        steps: In<u32>,
        interleave: i32,
        mode: i32,
        swizzle: i32,
        promotion: i32,
        fill: i32,
    ) {
        check_initialized()?;
        let address = address as u64;
        let common = Common {
            element, rank, address, dimensions, strides, steps, interleave, swizzle, promotion, fill,
        };
        tensor_map.check()?;
        ensure((0..=1).contains(&mode))?;
        let corners = [In(&raw const lower), In(&raw const upper)];
        let map = column(&common, 1, corners, [channels, pixels])?;
        tensor_map.set_bytes(&map.encode())
    }

    // Any 128 bytes will do: the address is put in, and the bits above it stay.
    fn cuTensorMapReplaceAddress(tensor_map: Out<u64>, address: Address) {
        check_initialized()?;
        let old = tensor_map.current()?;
        let address = address as u64;
        ensure(address != 0 && address < ADDRESS_END && address.is_multiple_of(16))?;
        tensor_map.set(old & !(ADDRESS_END - 1) | address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers<T>(text: &str, parse: impl Fn(&str) -> T) -> Vec<T> {
        text.split(',').map(parse).collect()
    }

    fn hexadecimal(text: &str) -> u64 {
        u64::from_str_radix(text, 16).unwrap()
    }

    fn decimal<T: std::str::FromStr>(text: &str) -> T {
        text.parse().ok().unwrap()
    }

    /// What the call of a recorded line answers.
    fn answer(words: &[&str]) -> Result<TensorMap, CuResult> {
        let kind: u32 = decimal(words[0]);
        let dimensions = numbers(words[4], hexadecimal);
        let strides = numbers(words[5], hexadecimal);
        let behind = if kind == 0 { 7 } else { 10 };
        let steps: Vec<u32> = numbers(words[behind], decimal);
        let options: Vec<i32> = words[behind + 1..]
            .iter()
            .map(|word| decimal(word))
            .collect();
        let common = Common {
            element: decimal::<i32>(words[1]) as u32,
            rank: decimal(words[2]),
            address: hexadecimal(words[3]),
            dimensions: In(dimensions.as_ptr()),
            strides: In(strides.as_ptr()),
            steps: In(steps.as_ptr()),
            interleave: options[0],
            swizzle: options[1],
            promotion: options[2],
            fill: options[3],
        };
        if kind == 0 {
            let sizes: Vec<u32> = numbers(words[6], decimal);
            return tile(&common, In(sizes.as_ptr()));
        }
        let lower: Vec<i32> = numbers(words[6], decimal);
        let upper: Vec<i32> = numbers(words[7], decimal);
        let corners = [In(lower.as_ptr()), In(upper.as_ptr())];
        if kind == 2 {
            ensure((0..=1).contains(&options[4]))?;
        }
        let given = if kind == 1 { 3 } else { 1 };
        column(
            &common,
            given,
            corners,
            [decimal(words[8]), decimal(words[9])],
        )
    }

    #[test]
    fn maps_are_those_of_an_h200() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../validation/hardware/h200/tma/encode.txt"
        );
        let text = std::fs::read_to_string(path).unwrap();
        let (mut accepted, mut refused) = (0, 0);
        for line in text.lines() {
            let (call, recorded) = line.split_once(" = ").unwrap();
            let words: Vec<&str> = call.split(' ').collect();
            let found = answer(&words);
            let mut recorded = recorded.split(' ');
            if recorded.next() != Some("0") {
                assert_eq!(found.err(), Some(CuResult::INVALID_VALUE), "{line}");
                refused += 1;
                continue;
            }
            let mut bytes: Vec<u8> = recorded
                .flat_map(|word| (hexadecimal(word) as u32).to_le_bytes())
                .collect();
            bytes.resize(128, 0);
            let map = found.unwrap_or_else(|error| panic!("{error:?} for {line}"));
            assert_eq!(map.encode()[..], bytes, "{line}");
            accepted += 1;
        }
        assert!(
            accepted > 1000 && refused > 1500,
            "{accepted} and {refused}"
        );
    }
}
