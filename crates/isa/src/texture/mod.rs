//! Texture and surface instructions, and what the texture unit answers them. PTX `tex`, `tld4`, `txq`, `suld`,
//! `sust`, `sured`, `suq`; SASS `TEX`, `TLD`, `TLD4`, `TXD`, `TXQ`, `SULD`, `SUST`, `SURED`.
//!
//! | file | what |
//! |---|---|
//! | `format.rs`, `srgb.rs` | texels from and to bytes |
//! | `coordinate.rs` | coordinates to texels: address modes, fractions, faces of cubes |
//! | `filter.rs` | weighted sums of texels |
//! | `level.rs` | levels of mipmaps |
//! | `sample.rs` | one lane's sample: all of the above together |
//! | `surface.rs` | where an access to a surface goes |
//! | `query.rs` | what objects say of themselves |
//!
//! The arithmetic is that of an H200, recorded in `validation/hardware/h200/textures`.
//!
//! Start reading at [`TextureOperation`] for instructions, at [`sample::sample`] for values.

pub mod coordinate;
pub mod filter;
pub mod format;
pub mod level;
pub mod query;
pub mod sample;
mod srgb;
pub mod surface;

use crate::{
    memory::{AtomicOperation, AtomicType},
    operand::Operand,
};

/// One instruction for the texture unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextureOperation {
    /// What is asked of it.
    pub action: TextureAction,
    /// How the instruction addresses texels.
    pub geometry: Geometry,
    /// The lower word of the handle.
    pub handle: Operand,
    /// Coordinates, x first: floats or integers.
    pub coordinates: [Operand; 3],
    /// Layer, an unsigned integer.
    pub layer: Operand,
    /// Level, or the one that a query asks about.
    pub level: Operand,
    /// Derivatives along x and along y, three each.
    pub gradients: [Operand; 6],
    /// Offsets in texels along each dimension.
    pub offsets: [Operand; 3],
    /// The same in one word (SASS), with the place of each.
    pub packed_offsets: Option<PackedOffsets>,
    /// Registers that receive: by component, or the first of each element of a surface.
    pub data: [Option<u16>; 4],
    /// What a surface receives, the first word of each element.
    pub values: [Operand; 4],
}

/// Offsets in texels that machine code has side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackedOffsets {
    /// The word.
    pub word: Operand,
    /// Lowest bit of the first.
    pub shift: u8,
    /// Bits from one to the next.
    pub step: u8,
    /// Bits of each.
    pub bits: u8,
}

/// How an instruction addresses texels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Coordinates: 1, 2 or 3; 3 for cubes.
    pub dimensions: u8,
    /// There is a layer.
    pub layered: bool,
    /// Coordinates are a direction.
    pub cube: bool,
}

/// What is asked of the texture unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextureAction {
    /// A sample of a texture.
    Sample {
        /// Coordinates are integers, in texels.
        integer: bool,
        /// Which level of a mipmap.
        level: LevelMode,
        /// Components come as halves.
        half: Option<Halves>,
    },
    /// One component of the four texels that a linear filter would weigh.
    Gather {
        /// The component.
        component: u8,
    },
    /// Asks about the object.
    Query(Query),
    /// Words of a surface.
    Load {
        /// Bytes that a lane loads.
        bytes: u8,
        /// Bytes of an element, each of which gets a register of its own where it has less than four.
        element: u8,
        /// What happens outside.
        bounds: Bounds,
    },
    /// Words to a surface.
    Store {
        /// Bytes that a lane stores.
        bytes: u8,
        /// Bytes of an element.
        element: u8,
        /// What happens outside.
        bounds: Bounds,
    },
    /// Values to a surface in its own format; coordinates in texels.
    StoreFormatted {
        /// Values given.
        components: u8,
        /// What happens outside.
        bounds: Bounds,
    },
    /// Combines a word of a surface with a value.
    Reduce {
        /// How.
        operation: AtomicOperation,
        /// As what.
        kind: AtomicType,
        /// What happens outside.
        bounds: Bounds,
        /// The coordinate along x counts texels, not bytes.
        texels: bool,
    },
}

/// How components come as halves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halves {
    /// One a register.
    Single,
    /// Two a register.
    Packed,
}

/// Which level of a mipmap is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LevelMode {
    /// The largest.
    Zero,
    /// The one that is given.
    Given,
    /// As derivatives say.
    Gradient,
}

/// What an access outside of a surface does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bounds {
    /// Faults.
    Trap,
    /// Goes to the nearest element.
    Clamp,
    /// Reads zero and writes nothing.
    Zero,
}

/// What objects are asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Query {
    /// Texels along x.
    Width,
    /// Along y.
    Height,
    /// Along z.
    Depth,
    /// Number of a channel's type.
    ChannelType,
    /// Number of the order of channels.
    ChannelOrder,
    /// Whether coordinates are normalized.
    NormalizedCoordinates,
    /// Layers.
    Layers,
    /// Levels.
    Levels,
    /// Samples of a texel.
    Samples,
    /// How a surface lies in memory.
    MemoryLayout,
    /// Width, height, depth and levels of a level, by component (SASS).
    Dimensions,
    /// Kind of texture (SASS).
    Kind,
}

impl TextureOperation {
    /// An action, operands to be filled in.
    #[must_use]
    pub const fn new(action: TextureAction, geometry: Geometry) -> Self {
        Self {
            action,
            geometry,
            handle: Operand::None,
            coordinates: [Operand::None; 3],
            layer: Operand::None,
            level: Operand::None,
            gradients: [Operand::None; 6],
            offsets: [Operand::None; 3],
            packed_offsets: None,
            data: [None; 4],
            values: [Operand::None; 4],
        }
    }

    /// Words of each receiving register, and of each value.
    #[must_use]
    pub const fn words(&self) -> u16 {
        match self.action {
            TextureAction::Load { element, .. } | TextureAction::Store { element, .. } => {
                (element as u16).div_ceil(4)
            }
            TextureAction::Reduce { kind, .. } => kind.bytes().div_ceil(4) as u16,
            _ => 1,
        }
    }

    /// Every operand, to look at or to change.
    pub fn operands_mut(&mut self) -> impl Iterator<Item = &mut Operand> {
        let single = [&mut self.handle, &mut self.layer, &mut self.level];
        let packed = self.packed_offsets.as_mut();
        single
            .into_iter()
            .chain(packed.map(|packed| &mut packed.word))
            .chain(&mut self.offsets)
            .chain(&mut self.coordinates)
            .chain(&mut self.gradients)
            .chain(&mut self.values)
    }

    /// Every operand with its words.
    pub fn operands(&self) -> impl Iterator<Item = (Operand, u16)> {
        let words = self.words();
        [self.handle, self.layer, self.level]
            .into_iter()
            .chain(self.packed_offsets.map(|packed| packed.word))
            .chain(self.offsets)
            .chain(self.coordinates)
            .chain(self.gradients)
            .map(|operand| (operand, 1))
            .chain(self.values.map(|value| (value, words)))
    }

    /// Whether memory is written.
    #[must_use]
    pub const fn writes(&self) -> bool {
        matches!(
            self.action,
            TextureAction::Store { .. }
                | TextureAction::StoreFormatted { .. }
                | TextureAction::Reduce { .. }
        )
    }
}
