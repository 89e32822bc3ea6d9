//! The tensor map: 128 bytes that describe a tensor in global memory to the TMA engine.
//!
//! The layout is NVIDIA's own, for compiled code reads and writes it: `tensormap.replace` becomes plain
//! loads and stores at fixed bits. It is one type from the CUDA call that fills it in to the engine that
//! reads it. What a driver accepts is decided where the call is answered; here is the layout alone.
//!
//! | word | bits | what |
//! |---|---|---|
//! | 0-1 | | address |
//! | 2 | 0 | a column of pixels (im2col) rather than a box |
//! | | 4-6 | rank - 1 |
//! | | 7-10 | element type |
//! | | 11-12 | interleave |
//! | | 13-14 | swizzle |
//! | | 15 | out-of-bounds elements are NaN |
//! | | 16 | elements are TF32 |
//! | | 17-18 | L2 promotion |
//! | 3-6 | | strides / 16 |
//! | 7 | 4 each | strides / 16, bits 32-35 |
//! | 8-12 | | dimensions - 1 |
//! | 13 | 3 each | element strides - 1 |
//! | | 24-31 | box of dimension 0, or channels of a pixel, - 1 |
//! | 14 | 8 each | box of dimensions 1-4, each - 1 |
//! | | 0-15, 16-31 | im2col: lower and upper corner, 16, 2 x 8 or 3 x 5 bits by rank |
//! | 15 | 0-9 | im2col: pixels - 1 |
//! | 16 | | bytes of the tile; for the driver's own use |
//! | 18 | | alignment of the tile; for the driver's own use |
//!
//! Found by encoding 12,000 maps on an H200 (driver 580.159.04), see `validation/hardware/h200/tma`.
//!
//! Start reading at [`TensorMap::decode`].

/// Bytes of a tensor map.
pub const TENSOR_MAP_BYTES: usize = 128;

/// The most dimensions of a tensor.
pub const TENSOR_DIMENSIONS: usize = 5;

/// A tensor in global memory, and the part of it that one command moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorMap {
    /// Where element 0 lies.
    pub address: u64,
    /// Dimensions, 1 to 5.
    pub rank: u32,
    /// Type of an element, as CUDA numbers it.
    pub element: TensorElement,
    /// Slices that channels are kept in.
    pub interleave: Interleave,
    /// How the tile is laid out in shared memory.
    pub swizzle: Swizzle,
    /// What L2 fetches at once: 0 to 3 for nothing special, 64, 128 and 256 bytes.
    pub promotion: u8,
    /// Elements outside of the tensor read as NaN rather than zero.
    pub nan_fill: bool,
    /// Elements along each dimension.
    pub dimensions: [u64; TENSOR_DIMENSIONS],
    /// Bytes from one element to the next along each dimension after the first.
    pub strides: [u64; TENSOR_DIMENSIONS - 1],
    /// Elements from one that is moved to the next, along each dimension.
    pub steps: [u32; TENSOR_DIMENSIONS],
    /// The part that a command moves.
    pub part: TensorPart,
}

/// The part of a tensor that one command moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorPart {
    /// A box.
    Tile {
        /// Elements that it spans along each dimension.
        size: [u32; TENSOR_DIMENSIONS],
    },
    /// Pixels one after the other within a bounding box, for convolutions.
    Im2col {
        /// Where the bounding box begins, against the tensor's beginning; width first.
        lower: [i32; 3],
        /// Where it ends, against the tensor's end.
        upper: [i32; 3],
        /// Channels of each pixel.
        channels: u32,
        /// Pixels.
        pixels: u32,
    },
}

/// Types of elements, in CUDA's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TensorElement {
    /// 8 bits.
    U8,
    /// 16 bits.
    U16,
    /// 32 bits.
    U32,
    /// Signed 32 bits.
    S32,
    /// 64 bits.
    U64,
    /// Signed 64 bits.
    S64,
    /// FP16.
    F16,
    /// FP32.
    F32,
    /// FP64.
    F64,
    /// BF16.
    Bf16,
    /// FP32, subnormals become zero.
    F32Ftz,
    /// TF32 in 32 bits.
    Tf32,
    /// TF32 in 32 bits, subnormals become zero.
    Tf32Ftz,
}

/// All of [`TensorElement`], by number.
const ELEMENTS: [TensorElement; 13] = [
    TensorElement::U8,
    TensorElement::U16,
    TensorElement::U32,
    TensorElement::S32,
    TensorElement::U64,
    TensorElement::S64,
    TensorElement::F16,
    TensorElement::F32,
    TensorElement::F64,
    TensorElement::Bf16,
    TensorElement::F32Ftz,
    TensorElement::Tf32,
    TensorElement::Tf32Ftz,
];

impl TensorElement {
    /// The type with a number of CUDA's.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        ELEMENTS.get(number as usize).copied()
    }

    /// Bytes of an element.
    #[must_use]
    pub const fn bytes(self) -> u32 {
        match self {
            Self::U8 => 1,
            Self::U16 | Self::F16 | Self::Bf16 => 2,
            Self::U32 | Self::S32 | Self::F32 | Self::F32Ftz | Self::Tf32 | Self::Tf32Ftz => 4,
            Self::U64 | Self::S64 | Self::F64 => 8,
        }
    }

    /// Whether it has a NaN.
    #[must_use]
    pub const fn is_float(self) -> bool {
        matches!(
            self,
            Self::F16
                | Self::F32
                | Self::F64
                | Self::Bf16
                | Self::F32Ftz
                | Self::Tf32
                | Self::Tf32Ftz
        )
    }
}

/// Slices that the channels of a tensor are kept in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Interleave {
    /// All channels of a pixel side by side.
    None,
    /// 16 bytes of channels.
    Bytes16,
    /// 32 bytes of channels.
    Bytes32,
}

/// How 16-byte pieces of a tile are exchanged in shared memory, against bank conflicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Swizzle {
    /// Not at all.
    None,
    /// Within 32 bytes.
    Span32,
    /// Within 64 bytes.
    Span64,
    /// Within 128 bytes.
    Span128,
}

/// Why 128 bytes are no tensor map of Hopper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TensorMapError {
    /// More than five dimensions.
    #[error("it has {0} dimensions, and a tensor has five at the most")]
    Rank(u32),
    /// A type that Hopper does not know.
    #[error("its elements have type {0}, which Hopper does not know")]
    Element(u32),
    /// An interleave that does not exist.
    #[error("its interleave has number {0}, which does not exist")]
    Interleave(u32),
    /// A column of pixels of a tensor without images.
    #[error("it describes a column of pixels, and has {0} dimensions instead of 3 to 5")]
    Column(u32),
}

/// Types as the layout numbers them.
const LAYOUT_ELEMENTS: [TensorElement; 11] = [
    TensorElement::U8,
    TensorElement::U16,
    TensorElement::U32,
    TensorElement::S32,
    TensorElement::U64,
    TensorElement::S64,
    TensorElement::F16,
    TensorElement::F32,
    TensorElement::F32Ftz,
    TensorElement::F64,
    TensorElement::Bf16,
];

/// Bits of a corner of an im2col box, by rank.
const fn corner_bits(rank: u32) -> u32 {
    match rank {
        3 => 16,
        4 => 8,
        _ => 5,
    }
}

impl TensorElement {
    /// Its number in the layout, and whether the bit of TF32 is set.
    fn layout(self) -> (u32, bool) {
        let (plain, tf32) = match self {
            Self::Tf32 => (Self::F32, true),
            Self::Tf32Ftz => (Self::F32Ftz, true),
            other => (other, false),
        };
        let place = LAYOUT_ELEMENTS.iter().position(|element| *element == plain);
        (place.unwrap_or(0) as u32, tf32)
    }

    fn from_layout(number: u32, tf32: bool) -> Option<Self> {
        let plain = *LAYOUT_ELEMENTS.get(number as usize)?;
        match (plain, tf32) {
            (plain, false) => Some(plain),
            (Self::F32, true) => Some(Self::Tf32),
            (Self::F32Ftz, true) => Some(Self::Tf32Ftz),
            _ => None,
        }
    }
}

impl TensorMap {
    /// The 128 bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; TENSOR_MAP_BYTES] {
        let mut words = [0u32; TENSOR_MAP_BYTES / 4];
        let rank = self.rank as usize;
        let (element, tf32) = self.element.layout();
        words[0] = self.address as u32;
        words[1] = (self.address >> 32) as u32;
        words[2] = u32::from(matches!(self.part, TensorPart::Im2col { .. }))
            | (self.rank - 1) << 4
            | element << 7
            | (self.interleave as u32) << 11
            | (self.swizzle as u32) << 13
            | u32::from(self.nan_fill) << 15
            | u32::from(tf32) << 16
            | u32::from(self.promotion) << 17;
        for (index, stride) in self.strides.iter().enumerate().take(rank - 1) {
            let sixteenths = stride >> 4;
            words[3 + index] = sixteenths as u32;
            words[7] |= ((sixteenths >> 32) as u32 & 15) << (4 * index);
        }
        for index in 0..rank {
            words[8 + index] = self.dimensions[index].wrapping_sub(1) as u32;
            words[13] |= (self.steps[index] - 1) << (3 * index);
        }
        match self.part {
            TensorPart::Tile { size } => {
                words[13] |= (size[0] - 1) << 24;
                for (index, size) in size[1..rank].iter().enumerate() {
                    words[14] |= (size - 1) << (8 * index);
                }
            }
            TensorPart::Im2col {
                lower,
                upper,
                channels,
                pixels,
            } => {
                words[13] |= (channels - 1) << 24;
                let bits = corner_bits(self.rank);
                let mask = (1 << bits) - 1;
                for (index, (lower, upper)) in lower.iter().zip(upper).enumerate().take(rank - 2) {
                    let shift = bits * index as u32;
                    words[14] |= (*lower as u32 & mask) << shift;
                    words[14] |= (upper as u32 & mask) << (16 + shift);
                }
                words[15] = pixels - 1;
            }
        }
        words[16] = self.tile_bytes() as u32;
        words[18] = [0x10, 0x100, 0x200, 0x400][self.swizzle as usize];
        let mut bytes = [0; TENSOR_MAP_BYTES];
        for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Bytes of the tile as the driver counts them: steps that do not fit whole are left out.
    #[must_use]
    pub fn tile_bytes(&self) -> u64 {
        let size = u64::from(self.element.bytes());
        match self.part {
            TensorPart::Tile { size: spans } => {
                let all = spans.iter().zip(self.steps).take(self.rank as usize);
                all.fold(size, |bytes, (span, step)| bytes * u64::from(span / step))
            }
            TensorPart::Im2col {
                channels, pixels, ..
            } => size * u64::from(channels) * u64::from(pixels),
        }
    }

    /// Reads the 128 bytes.
    ///
    /// # Errors
    /// If they are no map of Hopper.
    pub fn decode(bytes: &[u8; TENSOR_MAP_BYTES]) -> Result<Self, TensorMapError> {
        let mut words = [0u32; TENSOR_MAP_BYTES / 4];
        for (word, place) in words.iter_mut().zip(bytes.chunks_exact(4)) {
            *word = u32::from_le_bytes([place[0], place[1], place[2], place[3]]);
        }
        let head = words[2];
        let rank = (head >> 4 & 7) + 1;
        if rank as usize > TENSOR_DIMENSIONS {
            return Err(TensorMapError::Rank(rank));
        }
        let (number, tf32) = (head >> 7 & 15, head >> 16 & 1 != 0);
        let element = TensorElement::from_layout(number, tf32);
        let element = element.ok_or(TensorMapError::Element(number))?;
        let interleave = match head >> 11 & 3 {
            0 => Interleave::None,
            1 => Interleave::Bytes16,
            2 => Interleave::Bytes32,
            other => return Err(TensorMapError::Interleave(other)),
        };
        let swizzle = match head >> 13 & 3 {
            0 => Swizzle::None,
            1 => Swizzle::Span32,
            2 => Swizzle::Span64,
            _ => Swizzle::Span128,
        };
        let mut map = Self {
            address: u64::from(words[0]) | u64::from(words[1]) << 32,
            rank,
            element,
            interleave,
            swizzle,
            promotion: (head >> 17 & 3) as u8,
            nan_fill: head >> 15 & 1 != 0,
            dimensions: [1; TENSOR_DIMENSIONS],
            strides: [0; TENSOR_DIMENSIONS - 1],
            steps: [1; TENSOR_DIMENSIONS],
            part: TensorPart::Tile {
                size: [1; TENSOR_DIMENSIONS],
            },
        };
        for index in 0..rank as usize {
            map.dimensions[index] = u64::from(words[8 + index]) + 1;
            map.steps[index] = (words[13] >> (3 * index) & 7) + 1;
            if let Some(stride) = index.checked_sub(1) {
                let high = u64::from(words[7] >> (4 * stride) & 15);
                map.strides[stride] = (high << 32 | u64::from(words[3 + stride])) << 4;
            }
        }
        map.part = decode_part(&words, rank, head & 1 != 0)?;
        Ok(map)
    }
}

fn decode_part(
    words: &[u32; TENSOR_MAP_BYTES / 4],
    rank: u32,
    im2col: bool,
) -> Result<TensorPart, TensorMapError> {
    let first = (words[13] >> 24) + 1;
    if !im2col {
        let mut size = [1; TENSOR_DIMENSIONS];
        size[0] = first;
        for (index, span) in size.iter_mut().enumerate().take(rank as usize).skip(1) {
            *span = (words[14] >> (8 * (index - 1)) & 0xff) + 1;
        }
        return Ok(TensorPart::Tile { size });
    }
    if rank < 3 {
        return Err(TensorMapError::Column(rank));
    }
    let bits = corner_bits(rank);
    let corner = |base: u32, index: usize| {
        let field = words[14] >> (base + bits * index as u32);
        (field << (32 - bits)) as i32 >> (32 - bits)
    };
    let (mut lower, mut upper) = ([0; 3], [0; 3]);
    for index in 0..rank as usize - 2 {
        lower[index] = corner(0, index);
        upper[index] = corner(16, index);
    }
    Ok(TensorPart::Im2col {
        lower,
        upper,
        channels: first,
        pixels: (words[15] & 0x3ff) + 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> TensorMap {
        TensorMap {
            address: 0x7654_3210_fff0,
            rank: 4,
            element: TensorElement::Tf32Ftz,
            interleave: Interleave::None,
            swizzle: Swizzle::Span128,
            promotion: 2,
            nan_fill: true,
            dimensions: [100, 1 << 32, 7, 3, 1],
            strides: [400, (1 << 40) - 16, 1 << 36, 0],
            steps: [1, 8, 2, 1, 1],
            part: TensorPart::Tile {
                size: [32, 256, 4, 2, 1],
            },
        }
    }

    #[test]
    fn maps_read_back_as_they_were_written() {
        let tile = example();
        assert_eq!(TensorMap::decode(&tile.encode()), Ok(tile));
        for rank in 3..=5 {
            let mut lower = [-3, 2, -1];
            let mut upper = [0, -2, 3];
            for index in rank as usize - 2..3 {
                (lower[index], upper[index]) = (0, 0);
            }
            let mut column = TensorMap {
                rank,
                element: TensorElement::Bf16,
                part: TensorPart::Im2col {
                    lower,
                    upper,
                    channels: 64,
                    pixels: 1024,
                },
                ..tile
            };
            for index in rank as usize..5 {
                (column.dimensions[index], column.steps[index]) = (1, 1);
            }
            column.strides[3] = if rank == 5 { 64 } else { 0 };
            if rank == 3 {
                column.strides[2] = 0;
            }
            assert_eq!(TensorMap::decode(&column.encode()), Ok(column));
        }
    }

    #[test]
    fn what_is_no_map_is_refused() {
        let mut bytes = example().encode();
        bytes[8] |= 0x70;
        assert_eq!(TensorMap::decode(&bytes), Err(TensorMapError::Rank(8)));
        let mut bytes = example().encode();
        bytes[9] |= 0x07;
        assert_eq!(TensorMap::decode(&bytes), Err(TensorMapError::Element(14)));
    }

    #[test]
    fn a_driver_counts_whole_steps_only() {
        assert_eq!(example().tile_bytes(), 4 * 32 * 32 * 2 * 2);
    }
}
