//! Descriptions of textures and surfaces as programs hand them over, in the runtime's layout and in the driver's.

use super::array_format::Format;
use crate::call::note;
use crate::types::Address;
use lockstep_protocol::{AddressMode, CuResult, FilterMode, Sampler, UnsupportedManner};

/// `cudaResourceDesc` of CUDA 11 and 12, with which that of CUDA 13 begins.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RuntimeResource {
    kind: u32,
    words: [u64; 7],
}

/// `CUDA_RESOURCE_DESC`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DriverResource {
    kind: u32,
    words: [u64; 16],
    flags: u32,
}

/// What an object is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// An array.
    Array(Address),
    /// A mipmapped array.
    Mipmapped(Address),
    /// Bytes side by side.
    Linear {
        /// Where they begin.
        address: Address,
        /// What a texel is made of.
        format: Format,
        /// Their number.
        bytes: usize,
    },
    /// Rows of one pitch.
    Pitch {
        /// Where they begin.
        address: Address,
        /// What a texel is made of.
        format: Format,
        /// Texels of a row.
        width: usize,
        /// Rows.
        height: usize,
        /// Bytes from row to row.
        pitch: usize,
    },
}

/// Two 32-bit numbers of a word.
const fn halves(word: u64) -> [i32; 2] {
    [word as u32 as i32, (word >> 32) as u32 as i32]
}

/// A word of two 32-bit numbers.
const fn word(low: i32, high: i32) -> u64 {
    low as u32 as u64 | (high as u32 as u64) << 32
}

impl RuntimeResource {
    /// What it says.
    pub fn parse(&self) -> Result<Resource, CuResult> {
        let [first, ..] = self.words;
        let format = || {
            let ([x, y], [z, w]) = (halves(self.words[1]), halves(self.words[2]));
            Format {
                bits: [x, y, z, w],
                kind: halves(self.words[3])[0],
            }
        };
        Ok(match self.kind {
            0 => Resource::Array(first as Address),
            1 => Resource::Mipmapped(first as Address),
            2 => Resource::Linear {
                address: first as Address,
                format: format(),
                bytes: self.words[4] as usize,
            },
            3 => Resource::Pitch {
                address: first as Address,
                format: format(),
                width: self.words[4] as usize,
                height: self.words[5] as usize,
                pitch: self.words[6] as usize,
            },
            _ => return Err(CuResult::INVALID_VALUE),
        })
    }

    /// The description of a resource.
    pub fn of(resource: Resource) -> Self {
        let mut words = [0; 7];
        let mut put_format = |format: Format| {
            let [x, y, z, w] = format.bits;
            (words[1], words[2], words[3]) = (word(x, y), word(z, w), word(format.kind, 0));
        };
        let kind = match resource {
            Resource::Array(array) => {
                words[0] = array as u64;
                0
            }
            Resource::Mipmapped(array) => {
                words[0] = array as u64;
                1
            }
            Resource::Linear {
                address,
                format,
                bytes,
            } => {
                put_format(format);
                (words[0], words[4]) = (address as u64, bytes as u64);
                2
            }
            Resource::Pitch {
                address,
                format,
                width,
                height,
                pitch,
            } => {
                put_format(format);
                (words[0], words[4]) = (address as u64, width as u64);
                (words[5], words[6]) = (height as u64, pitch as u64);
                3
            }
        };
        Self { kind, words }
    }
}

impl DriverResource {
    /// What it says.
    pub fn parse(&self) -> Result<Resource, CuResult> {
        if self.flags != 0 {
            return Err(CuResult::INVALID_VALUE);
        }
        let [first, ..] = self.words;
        let format = || {
            let [format, channels] = halves(self.words[1]);
            Format::of_driver(format as u32, channels as u32)
        };
        Ok(match self.kind {
            0 => Resource::Array(first as Address),
            1 => Resource::Mipmapped(first as Address),
            2 => Resource::Linear {
                address: first as Address,
                format: format()?,
                bytes: self.words[2] as usize,
            },
            3 => Resource::Pitch {
                address: first as Address,
                format: format()?,
                width: self.words[2] as usize,
                height: self.words[3] as usize,
                pitch: self.words[4] as usize,
            },
            _ => return Err(CuResult::INVALID_VALUE),
        })
    }

    /// The description of a resource.
    pub fn of(resource: Resource) -> Self {
        let mut words = [0; 16];
        let put = |format: Format| {
            let (format, channels) = format.driver();
            word(format as i32, channels as i32)
        };
        let kind = match resource {
            Resource::Array(array) => {
                words[0] = array as u64;
                0
            }
            Resource::Mipmapped(array) => {
                words[0] = array as u64;
                1
            }
            Resource::Linear {
                address,
                format,
                bytes,
            } => {
                (words[0], words[1], words[2]) = (address as u64, put(format), bytes as u64);
                2
            }
            Resource::Pitch {
                address,
                format,
                width,
                height,
                pitch,
            } => {
                (words[0], words[1], words[2]) = (address as u64, put(format), width as u64);
                (words[3], words[4]) = (height as u64, pitch as u64);
                3
            }
        };
        Self {
            kind,
            words,
            flags: 0,
        }
    }
}

/// `cudaTextureDesc`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RuntimeTexture {
    address: [u32; 3],
    filter: u32,
    /// 1: integers are read as floats.
    read_mode: u32,
    srgb: i32,
    border: [f32; 4],
    normalized: i32,
    anisotropy: u32,
    mip_filter: u32,
    bias: f32,
    lowest: f32,
    highest: f32,
    disable_trilinear: i32,
    seamless: i32,
}

/// `textureReference` of CUDA 11, which a program's `texture<...>` variable is on the host.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TextureReference {
    normalized: i32,
    filter: u32,
    address: [u32; 3],
    /// What texels are made of.
    pub format: Format,
    srgb: i32,
    anisotropy: u32,
    mip_filter: u32,
    bias: f32,
    lowest: f32,
    highest: f32,
    disable_trilinear: i32,
    reserved: [i32; 14],
}

impl TextureReference {
    /// How it is sampled; whether integers are read as floats is part of its type, not of its value.
    pub fn texture(&self, as_floats: bool) -> RuntimeTexture {
        RuntimeTexture {
            address: self.address,
            filter: self.filter,
            read_mode: as_floats.into(),
            srgb: self.srgb,
            border: [0.0; 4],
            normalized: self.normalized,
            anisotropy: self.anisotropy,
            mip_filter: self.mip_filter,
            bias: self.bias,
            lowest: self.lowest,
            highest: self.highest,
            disable_trilinear: self.disable_trilinear,
            seamless: 0,
        }
    }
}

impl RuntimeTexture {
    /// Whether it asks for a linear filter.
    pub fn is_filtered(&self) -> bool {
        self.filter == 1
    }
}

/// `CUDA_TEXTURE_DESC`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DriverTexture {
    /// `CUaddress_mode` by dimension.
    pub address: [u32; 3],
    /// `CUfilter_mode`.
    pub filter: u32,
    /// `CU_TRSF_*`.
    pub flags: u32,
    /// Most samples along a stretched footprint.
    pub anisotropy: u32,
    /// `CUfilter_mode` between levels.
    pub mip_filter: u32,
    /// Added to a level.
    pub bias: f32,
    /// Lowest level.
    pub lowest: f32,
    /// Highest level.
    pub highest: f32,
    /// Border colour.
    pub border: [f32; 4],
    reserved: [i32; 12],
}

/// `CU_TRSF_READ_AS_INTEGER`.
const READ_AS_INTEGER: u32 = 1;
/// `CU_TRSF_NORMALIZED_COORDINATES`.
const NORMALIZED: u32 = 2;
/// `CU_TRSF_SRGB`.
const SRGB: u32 = 0x10;
/// `CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION`.
const DISABLE_TRILINEAR: u32 = 0x20;
/// `CU_TRSF_SEAMLESS_CUBEMAP`.
const SEAMLESS: u32 = 0x40;
/// All of them.
const FLAGS: u32 = READ_AS_INTEGER | NORMALIZED | SRGB | DISABLE_TRILINEAR | SEAMLESS;

/// How a texture is sampled, in the driver's words.
impl DriverTexture {
    /// That of a texture reference of a module before anything is set.
    pub const UNSET: Self = Self {
        address: [1; 3],
        filter: 0,
        flags: 0,
        anisotropy: 0,
        mip_filter: 0,
        bias: 0.0,
        lowest: 0.0,
        highest: 0.0,
        border: [0.0; 4],
        reserved: [0; 12],
    };

    /// The driver's description of the runtime's.
    pub fn of_runtime(texture: &RuntimeTexture) -> Self {
        let mut flags = 0;
        let mut put = |flag: u32, on: bool| flags |= if on { flag } else { 0 };
        put(READ_AS_INTEGER, texture.read_mode != 1);
        put(NORMALIZED, texture.normalized != 0);
        put(SRGB, texture.srgb != 0);
        put(DISABLE_TRILINEAR, texture.disable_trilinear != 0);
        put(SEAMLESS, texture.seamless != 0);
        Self {
            address: texture.address,
            filter: texture.filter,
            flags,
            anisotropy: texture.anisotropy,
            mip_filter: texture.mip_filter,
            bias: texture.bias,
            lowest: texture.lowest,
            highest: texture.highest,
            border: texture.border,
            reserved: [0; 12],
        }
    }

    /// The runtime's description.
    pub fn runtime(&self) -> RuntimeTexture {
        let has = |flag: u32| i32::from(self.flags & flag != 0);
        RuntimeTexture {
            address: self.address,
            filter: self.filter,
            read_mode: u32::from(self.flags & READ_AS_INTEGER == 0),
            srgb: has(SRGB),
            border: self.border,
            normalized: has(NORMALIZED),
            anisotropy: self.anisotropy,
            mip_filter: self.mip_filter,
            bias: self.bias,
            lowest: self.lowest,
            highest: self.highest,
            disable_trilinear: has(DISABLE_TRILINEAR),
            seamless: has(SEAMLESS),
        }
    }

    /// The sampler of a texture whose texels have this format.
    pub fn sampler(&self, format: Format) -> Result<Sampler, CuResult> {
        if self.flags & !FLAGS != 0 {
            return Err(CuResult::INVALID_VALUE);
        }
        let mode = |number: u32| {
            Ok(match number {
                0 => AddressMode::Wrap,
                1 => AddressMode::Clamp,
                2 => AddressMode::Mirror,
                3 => AddressMode::Border,
                _ => return Err(CuResult::INVALID_VALUE),
            })
        };
        let filter = |number: u32| {
            Ok(match number {
                0 => FilterMode::Point,
                1 => FilterMode::Linear,
                _ => return Err(CuResult::INVALID_VALUE),
            })
        };
        let [x, y, z] = self.address;
        // Only integers of 8 and 16 bits can be read as floats.
        let integer = format.kind != 2 && self.flags & READ_AS_INTEGER != 0;
        let normalized_read = format.kind != 2 && !integer && format.bits[0] < 32;
        let filter_mode = filter(self.filter)?;
        if filter_mode == FilterMode::Linear && format.kind != 2 && !normalized_read {
            return Err(CuResult::INVALID_VALUE);
        }
        if self.anisotropy > 1 {
            note("maxAnisotropy of textures", UnsupportedManner::Accepted);
        }
        Ok(Sampler {
            address: [mode(x)?, mode(y)?, mode(z)?],
            filter: filter_mode,
            mip_filter: filter(self.mip_filter)?,
            normalized_coordinates: self.flags & NORMALIZED != 0,
            normalized_read,
            srgb: self.flags & SRGB != 0,
            anisotropy: self.anisotropy.min(16) as u8,
            bias: self.bias,
            lowest: self.lowest,
            highest: self.highest,
            border: self.border.map(f32::to_bits),
        })
    }

    /// Whether the runtime asked for floats made of integers.
    pub fn normalized_read(&self) -> bool {
        self.flags & READ_AS_INTEGER == 0
    }
}

/// `cudaResourceViewDesc`, `CUDA_RESOURCE_VIEW_DESC`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct View {
    /// Format; 0 for none.
    pub format: u32,
    /// Texels of a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Slices.
    pub depth: usize,
    /// First level.
    pub first_level: u32,
    /// Last level.
    pub last_level: u32,
    /// First layer.
    pub first_layer: u32,
    /// Last layer.
    pub last_layer: u32,
    reserved: [u32; 16],
}

impl View {
    /// That of a texture which was made without one.
    pub const NONE: Self = Self {
        format: 0,
        width: 0,
        height: 0,
        depth: 0,
        first_level: 0,
        last_level: 0,
        first_layer: 0,
        last_layer: 0,
        reserved: [0; 16],
    };

    /// The format of texels that it asks for, or nothing where it has none. Compressed blocks are not known.
    pub fn texels(&self) -> Result<Option<Format>, CuResult> {
        /// Bits and kind of each three formats, in order.
        const KINDS: [(i32, i32); 8] = [
            (8, 1),
            (8, 0),
            (16, 1),
            (16, 0),
            (32, 1),
            (32, 0),
            (16, 2),
            (32, 2),
        ];
        if self.format == 0 {
            return Ok(None);
        }
        let index = self.format as usize - 1;
        let (bits, kind) = *KINDS.get(index / 3).ok_or(CuResult::NOT_SUPPORTED)?;
        let channels = [1, 2, 4][index % 3];
        let mut all = [0; 4];
        all[..channels].fill(bits);
        Ok(Some(Format { bits: all, kind }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_have_the_sizes_of_the_headers() {
        assert_eq!(size_of::<RuntimeResource>(), 64);
        assert_eq!(size_of::<DriverResource>(), 144);
        assert_eq!(size_of::<RuntimeTexture>(), 72);
        assert_eq!(size_of::<DriverTexture>(), 104);
        assert_eq!(size_of::<View>(), 112);
        assert_eq!(size_of::<TextureReference>(), 124);
    }

    #[test]
    fn a_resource_reads_back_as_it_was_written() {
        let format = Format {
            bits: [16, 16, 0, 0],
            kind: 2,
        };
        for resource in [
            Resource::Array(5),
            Resource::Mipmapped(6),
            Resource::Linear {
                address: 4096,
                format,
                bytes: 64,
            },
            Resource::Pitch {
                address: 4096,
                format,
                width: 8,
                height: 9,
                pitch: 512,
            },
        ] {
            assert_eq!(RuntimeResource::of(resource).parse(), Ok(resource));
            assert_eq!(DriverResource::of(resource).parse(), Ok(resource));
        }
    }

    #[test]
    fn views_name_formats_in_threes() {
        let view = |format| View {
            format,
            ..View::NONE
        };
        let float4 = view(0x18).texels().unwrap().unwrap();
        assert_eq!((float4.bits, float4.kind), ([32; 4], 2));
        assert_eq!(view(0).texels(), Ok(None));
        assert_eq!(view(0x19).texels(), Err(CuResult::NOT_SUPPORTED));
    }
}
