//! Texture and surface objects: where texels lie, what they are made of, and how they are sampled.
//!
//! One type from the CUDA call that makes an object to the texture unit that looks it up by its handle. What a
//! driver accepts is decided where the call is answered.
//!
//! Start reading at [`TextureObject`].

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A texture or a surface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TextureObject {
    /// How texels are arranged.
    pub shape: TextureShape,
    /// What a texel is made of.
    pub format: TexelFormat,
    /// Levels of a mipmap, the largest first; at least one.
    pub levels: Vec<TextureLevel>,
    /// How it is sampled; nothing for a surface.
    pub sampler: Option<Sampler>,
}

/// How texels are arranged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextureShape {
    /// 1, 2 or 3.
    pub dimensions: u8,
    /// Slices are layers: `depth` of a level counts them, six for each cube.
    pub layered: bool,
    /// Six faces make a cube.
    pub cube: bool,
    /// Bytes side by side (`cudaResourceTypeLinear`): fetched by index only, and zero beyond the end.
    pub linear: bool,
}

/// One level of a mipmap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextureLevel {
    /// Where the first texel lies.
    pub address: u64,
    /// Texels along a row.
    pub width: u32,
    /// Rows, at least 1.
    pub height: u32,
    /// Slices or layers, at least 1.
    pub depth: u32,
    /// Bytes from row to row.
    pub row_pitch: u64,
    /// Bytes from slice to slice.
    pub slice_pitch: u64,
}

/// What a channel of a texel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChannelKind {
    /// Two's complement.
    Signed,
    /// Unsigned.
    Unsigned,
    /// Half or single precision.
    Float,
}

/// What a texel is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TexelFormat {
    /// Bits of a channel: 8, 16 or 32.
    pub bits: u8,
    /// Channels: 1, 2 or 4.
    pub channels: u8,
    /// What a channel is.
    pub kind: ChannelKind,
}

impl TexelFormat {
    /// Bytes of a texel.
    #[must_use]
    pub const fn bytes(self) -> u32 {
        self.bits as u32 / 8 * self.channels as u32
    }
}

/// What happens to coordinates outside of a texture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AddressMode {
    /// The texture repeats.
    Wrap,
    /// The nearest texel.
    Clamp,
    /// The texture repeats, every other time backwards.
    Mirror,
    /// The border colour.
    Border,
}

/// How values between texels or levels are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FilterMode {
    /// The nearest one.
    Point,
    /// A weighted sum of the neighbours.
    Linear,
}

/// How a texture is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sampler {
    /// By dimension.
    pub address: [AddressMode; 3],
    /// Within a level.
    pub filter: FilterMode,
    /// Between levels.
    pub mip_filter: FilterMode,
    /// Coordinates run from 0 to 1.
    pub normalized_coordinates: bool,
    /// Integers are read as floats from 0 or -1 to 1.
    pub normalized_read: bool,
    /// Bytes are sRGB.
    pub srgb: bool,
    /// Most samples along a stretched footprint.
    pub anisotropy: u8,
    /// Added to a level.
    pub bias: f32,
    /// Lowest level.
    pub lowest: f32,
    /// Highest level.
    pub highest: f32,
    /// Words of the border colour: floats, or integers where texels are read as such.
    pub border: [u32; 4],
}

/// Objects of a context, dense: the handle of an object is its index. Index 0 is never used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TextureTable {
    objects: Vec<Option<TextureObject>>,
    /// Indices that belong to texture references of modules, bound or not.
    references: BTreeSet<u32>,
}

impl TextureTable {
    /// Bits of a handle that name an object; machine code has a sampler above them.
    pub const INDEX_BITS: u32 = 20;

    /// The object of a handle, of which machine code hands on 32 bits.
    #[must_use]
    pub fn get(&self, handle: u32) -> Option<&TextureObject> {
        let index = handle & ((1 << Self::INDEX_BITS) - 1);
        self.objects.get(index as usize)?.as_ref()
    }

    /// Adds an object at the first free index. `None` if there is no more room.
    pub fn insert(&mut self, object: TextureObject) -> Option<u32> {
        let index = self.free()?;
        self.objects[index as usize] = Some(object);
        Some(index)
    }

    /// Removes an object. Says whether it was there; what a reference is bound to stays.
    pub fn remove(&mut self, handle: u32) -> bool {
        if self.references.contains(&handle) {
            return false;
        }
        let place = self.objects.get_mut(handle as usize);
        place.is_some_and(|object| object.take().is_some())
    }

    /// Gives a texture reference an index of its own, with nothing bound to it. `None` if there is no more room.
    pub fn reserve(&mut self) -> Option<u32> {
        let index = self.free()?;
        self.references.insert(index);
        Some(index)
    }

    /// Binds a texture reference to an object, or to nothing. Says whether there is such a reference.
    pub fn bind(&mut self, reference: u32, object: Option<TextureObject>) -> bool {
        if !self.references.contains(&reference) {
            return false;
        }
        self.objects[reference as usize] = object;
        true
    }

    /// Takes the index of a texture reference back.
    pub fn release(&mut self, reference: u32) {
        if self.bind(reference, None) {
            self.references.remove(&reference);
        }
    }

    /// The first index that nobody has, with a place for its object.
    fn free(&mut self) -> Option<u32> {
        let taken = |index: &u32| {
            let object = self.objects.get(*index as usize);
            object.is_some_and(Option::is_some) || self.references.contains(index)
        };
        let index = (1..1 << Self::INDEX_BITS).find(|index| !taken(index))?;
        if self.objects.len() <= index as usize {
            self.objects.resize(index as usize + 1, None);
        }
        Some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(address: u64) -> TextureObject {
        TextureObject {
            shape: TextureShape {
                dimensions: 1,
                layered: false,
                cube: false,
                linear: true,
            },
            format: TexelFormat {
                bits: 16,
                channels: 4,
                kind: ChannelKind::Float,
            },
            levels: vec![TextureLevel {
                address,
                width: 4,
                height: 1,
                depth: 1,
                row_pitch: 32,
                slice_pitch: 32,
            }],
            sampler: None,
        }
    }

    #[test]
    fn a_freed_index_is_used_again() {
        let mut table = TextureTable::default();
        assert_eq!(table.insert(object(0)), Some(1));
        assert_eq!(table.insert(object(64)), Some(2));
        assert!(table.remove(1));
        assert!(!table.remove(1));
        assert!(table.get(1).is_none());
        assert_eq!(table.insert(object(128)), Some(1));
        assert_eq!(table.get(2).unwrap().levels[0].address, 64);
        // A sampler's number above the index.
        assert_eq!(table.get(2 | 7 << 20).unwrap().levels[0].address, 64);
        assert!(table.get(0).is_none());
        assert!(table.get(3).is_none());
    }

    #[test]
    fn a_reference_keeps_its_index_whatever_is_bound_to_it() {
        let mut table = TextureTable::default();
        let reference = table.reserve().expect("room");
        assert_eq!(table.get(reference), None);
        let object_handle = table.insert(object(512)).expect("room");
        assert_ne!(object_handle, reference);
        assert!(table.bind(reference, Some(object(1024))));
        assert_eq!(table.get(reference), Some(&object(1024)));
        assert!(!table.remove(reference), "a reference is no object");
        assert!(table.bind(reference, None));
        assert_eq!(table.get(reference), None);
        assert!(
            !table.bind(object_handle, None),
            "an object is no reference"
        );
        table.release(reference);
        assert_eq!(table.insert(object(2048)), Some(reference));
    }

    #[test]
    fn a_texel_has_the_bytes_of_its_channels() {
        assert_eq!(object(0).format.bytes(), 8);
    }
}
