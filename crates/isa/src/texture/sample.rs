//! What one lane's sample is.

use lockstep_units::{AddressMode, ChannelKind, FilterMode, Sampler, TextureLevel, TextureObject};

use super::coordinate::{self, ONE, Span};
use super::filter::{self, Precision, Slice};
use super::{Geometry, LevelMode, TextureAction, format, level};
use crate::semantics::float16::float_to_half;

/// A level that nobody gave: lower than any bias lifts it.
pub const NO_LEVEL: f32 = -32.0;

/// The coordinates of a lane, floats and integers alike as bits.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request {
    /// Along each dimension.
    pub coordinates: [u32; 3],
    /// Layer.
    pub layer: u32,
    /// Level.
    pub level: u32,
    /// Derivatives.
    pub gradients: [u32; 6],
    /// Offsets in texels.
    pub offsets: [i32; 3],
}

/// Gives the bytes of a texel at an address.
pub type Read<'a> = dyn FnMut(u64, usize) -> [u8; 16] + 'a;

/// How a surface or a texture without a sampler would be read.
pub const PLAIN: Sampler = Sampler {
    address: [AddressMode::Clamp; 3],
    filter: FilterMode::Point,
    mip_filter: FilterMode::Point,
    normalized_coordinates: false,
    normalized_read: false,
    srgb: false,
    anisotropy: 0,
    bias: 0.0,
    lowest: 0.0,
    highest: 0.0,
    border: [0; 4],
};

/// A texture with the lane that samples it.
struct Sampling<'a, 'r> {
    object: &'a TextureObject,
    sampler: &'a Sampler,
    geometry: Geometry,
    request: &'a Request,
    read: &'a mut Read<'r>,
}

/// The four words that a lane receives.
pub fn sample(
    object: &TextureObject,
    geometry: Geometry,
    action: TextureAction,
    request: &Request,
    read: &mut Read<'_>,
) -> [u32; 4] {
    let sampler = object.sampler.as_ref().unwrap_or(&PLAIN);
    let mut sampling = Sampling {
        object,
        sampler,
        geometry,
        request,
        read,
    };
    match action {
        TextureAction::Gather { component } => sampling.gather(usize::from(component)),
        TextureAction::Sample {
            integer: true,
            level,
            ..
        } => sampling.fetch(level),
        TextureAction::Sample { level, half, .. } => {
            let words = sampling.filtered(level);
            match half {
                None => words,
                Some(halves) => in_halves(words, halves),
            }
        }
        _ => [0; 4],
    }
}

/// Words as halves.
fn in_halves(words: [u32; 4], halves: super::Halves) -> [u32; 4] {
    let [a, b, c, d] = words.map(|word| u32::from(float_to_half(word)));
    match halves {
        super::Halves::Single => [a, b, c, d],
        super::Halves::Packed => [a | b << 16, c | d << 16, 0, 0],
    }
}

impl Sampling<'_, '_> {
    /// The slice of a layer; layers beyond the last are the last.
    fn layer(&self, largest: &TextureLevel) -> u32 {
        if !self.geometry.layered {
            return 0;
        }
        let faces = if self.geometry.cube { 6 } else { 1 };
        let layer = self.request.layer & 0xffff;
        layer.min((largest.depth / faces).max(1) - 1) * faces
    }

    /// The bytes of a texel, or of the border where a place is missing.
    fn bytes(&mut self, at: &TextureLevel, places: [Option<u32>; 3]) -> [u8; 16] {
        let [Some(x), Some(y), Some(z)] = places else {
            let (format, normalized) = (self.object.format, self.sampler.normalized_read);
            return format::border(format, normalized, self.sampler.border);
        };
        let bytes = self.object.format.bytes() as usize;
        let address = at.address
            + u64::from(z) * at.slice_pitch
            + u64::from(y) * at.row_pitch
            + u64::from(x) * bytes as u64;
        (self.read)(address, bytes)
    }

    /// The words of a texel.
    fn texel(&mut self, at: &TextureLevel, places: [Option<u32>; 3]) -> [u32; 4] {
        let found = self.bytes(at, places);
        std::array::from_fn(|channel| self.component(&found, channel))
    }

    /// A component of a texel.
    fn component(&self, bytes: &[u8], channel: usize) -> u32 {
        let (format, normalized) = (self.object.format, self.sampler.normalized_read);
        match self.is_srgb() {
            true => format::colour(format, bytes, channel),
            false => format::component(format, normalized, bytes, channel),
        }
    }

    /// Whether colours are sRGB: only bytes that are read as floats are.
    fn is_srgb(&self) -> bool {
        let format = self.object.format;
        let bytes = format.bits == 8 && format.kind == ChannelKind::Unsigned;
        self.sampler.srgb && self.sampler.normalized_read && bytes
    }

    /// An unfiltered texel by its index, or nothing where there is none, whatever the address mode.
    fn fetch(&mut self, mode: LevelMode) -> [u32; 4] {
        // With a level, indices outside of it mean its edge.
        let (wanted, address) = match mode {
            LevelMode::Given => (self.request.level, AddressMode::Clamp),
            _ => (0, AddressMode::Border),
        };
        let Some(at) = self.object.levels.get(wanted as usize).copied() else {
            return [0; 4];
        };
        let layer = match self.geometry.layered {
            true if self.request.layer >= at.depth => return [0; 4],
            true => self.request.layer,
            false => 0,
        };
        let sizes = [at.width, at.height, at.depth];
        let mut places = [Some(0), Some(0), Some(layer)];
        for dimension in 0..usize::from(self.geometry.dimensions) {
            let index = i64::from(self.request.coordinates[dimension] as i32)
                + i64::from(self.request.offsets[dimension]);
            places[dimension] = coordinate::resolve(index, sizes[dimension], address);
        }
        // Arrays of one dimension are planes of one row to the texture unit.
        let line = self.geometry.dimensions == 1 && !self.geometry.layered;
        if places.contains(&None) || (line && !self.object.shape.linear) {
            return [0; 4];
        }
        self.texel(&at, places)
    }

    /// A filtered sample of the levels that are asked for.
    fn filtered(&mut self, mode: LevelMode) -> [u32; 4] {
        let largest = self.object.levels[0];
        let wanted = match mode {
            LevelMode::Zero => NO_LEVEL,
            LevelMode::Given => f32::from_bits(self.request.level),
            LevelMode::Gradient => {
                let gradients = self.request.gradients.map(f32::from_bits);
                level::from_gradients(&gradients, &largest, self.sampler.normalized_coordinates)
            }
        };
        let chosen = level::levels(self.sampler, self.object.levels.len(), wanted);
        let [near, far] = [
            (chosen.first, ONE - chosen.weight),
            (chosen.second, chosen.weight),
        ];
        if self.sampler.filter == FilterMode::Point && chosen.weight == 0 {
            let at = self.object.levels[chosen.first];
            let spans = self.spans(&at, FilterMode::Point);
            return self.texel(&at, spans.map(|span| span.texels[0]));
        }
        let mut slices = [[Slice::default(); 4]; 4];
        self.in_level(near, &mut slices, 0);
        if chosen.weight > 0 {
            self.in_level(far, &mut slices, 2);
        }
        let precision = self.precision();
        slices.map(|slices| filter::sum(precision, &slices))
    }

    /// What sums of texels are made in.
    fn precision(&self) -> Precision {
        Precision::of(self.object.format, self.is_srgb())
    }

    /// The texels along each dimension.
    fn spans(&self, at: &TextureLevel, filter: FilterMode) -> [Span; 3] {
        let mut floats = self.request.coordinates.map(f32::from_bits);
        let mut slice = self.layer(at);
        let mut dimensions = usize::from(self.geometry.dimensions);
        if self.geometry.cube {
            let (face, place) = coordinate::face(floats);
            slice += face;
            floats = [place[0], place[1], 0.0];
            dimensions = 2;
        }
        if dimensions == 1 && !self.geometry.layered {
            // Arrays of one dimension are planes of one row to the texture unit, read at its edge.
            dimensions = 2;
            floats[1] = 0.0;
        }
        let sizes = [at.width, at.height, at.depth];
        let mut spans = [
            Span::single(Some(0)),
            Span::single(Some(0)),
            Span::single(Some(slice)),
        ];
        for dimension in 0..dimensions {
            let mode = coordinate::mode(self.sampler, dimension);
            spans[dimension] = coordinate::span(
                floats[dimension],
                self.request.offsets[dimension],
                sizes[dimension],
                mode,
                filter,
                self.sampler.normalized_coordinates,
            );
        }
        spans
    }

    /// Adds the texels of a level, which has a weight, to two slices of each channel.
    fn in_level(&mut self, level: (usize, u32), slices: &mut [[Slice; 4]; 4], first: usize) {
        let (index, weight) = level;
        let at = self.object.levels[index];
        let spans = self.spans(&at, self.sampler.filter);
        let precision = self.precision();
        let format = self.object.format;
        for (z, weight) in filter::halves(weight, spans[2].weight)
            .into_iter()
            .enumerate()
        {
            let weights = filter::corners(weight, spans[0].weight, spans[1].weight);
            for (corner, weight) in weights.into_iter().enumerate() {
                if weight == 0 {
                    continue;
                }
                let [x, y] = [corner & 1, corner >> 1];
                let places = [spans[0].texels[x], spans[1].texels[y], spans[2].texels[z]];
                let found = self.bytes(&at, places);
                for (channel, slices) in slices.iter_mut().enumerate() {
                    let slice = &mut slices[first + z];
                    slice.weights[corner] = weight;
                    slice.words[corner] = match precision {
                        Precision::Fixed { .. } => format::integer(format, &found, channel),
                        _ => self.component(&found, channel),
                    };
                }
            }
        }
    }

    /// One component of four texels: lower left, lower right, upper right, upper left.
    fn gather(&mut self, component: usize) -> [u32; 4] {
        let at = self.object.levels[0];
        let spans = self.spans(&at, FilterMode::Linear);
        let corners = [(0, 1), (1, 1), (1, 0), (0, 0)];
        corners.map(|(x, y)| {
            let places = [spans[0].texels[x], spans[1].texels[y], spans[2].texels[0]];
            self.texel(&at, places)[component]
        })
    }
}
