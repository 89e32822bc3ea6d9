//! Samples of textures against an H200: all address modes, filters, formats, levels, layers, cubes and gathers.
//!
//! `validation/hardware/h200/textures/records.bin` has a record a case: 64 words of description, the bytes of the
//! texels of all levels, coordinates and answers (`probes/record.cu` beside it says how).

use std::path::Path;

use lockstep_isa::texture::sample::{Request, sample};
use lockstep_isa::texture::{Geometry, Halves, LevelMode, TextureAction};
use lockstep_units::{
    AddressMode, ChannelKind, FilterMode, Sampler, TexelFormat, TextureLevel, TextureObject,
    TextureShape,
};

/// `cudaArrayLayered`.
const LAYERED: u32 = 1;
/// `cudaArrayCubemap`.
const CUBEMAP: u32 = 4;

/// One record.
struct Record {
    number: u32,
    words: [u32; 64],
    texels: Vec<u8>,
    lanes: Vec<Lane>,
}

/// A sample: coordinates and answer.
struct Lane {
    request: Request,
    answer: [u32; 4],
}

struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn take(&mut self, count: usize) -> Vec<u8> {
        let (taken, rest) = self.0.split_at(count);
        self.0 = rest;
        taken.to_vec()
    }

    fn words(&mut self, count: usize) -> Vec<u32> {
        let bytes = self.take(count * 4);
        let (words, _) = bytes.as_chunks::<4>();
        words.iter().map(|word| u32::from_le_bytes(*word)).collect()
    }
}

fn records() -> Vec<Record> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = root.join("validation/hardware/h200/textures/records.bin");
    let all = std::fs::read(path).expect("the measurements are there");
    let mut bytes = Bytes(&all);
    let mut records = Vec::new();
    while bytes.0.len() >= 256 {
        let words: [u32; 64] = bytes.words(64).try_into().unwrap();
        assert_eq!(words[0], 0x4358_4554, "a record begins here");
        let texels = bytes.take((words[1] as usize).next_multiple_of(4));
        let count = words[29] as usize;
        let first = bytes.words(count * 4);
        let more = words[60] != 0;
        let empty = vec![0; count * 4];
        let second = if more {
            bytes.words(count * 4)
        } else {
            empty.clone()
        };
        let third = if more { bytes.words(count * 4) } else { empty };
        let answers = bytes.words(count * 4);
        let lanes = (0..count).map(|lane| {
            let (a, b, c) = (&first[4 * lane..], &second[4 * lane..], &third[4 * lane..]);
            Lane {
                request: Request {
                    coordinates: [a[0], a[1], a[2]],
                    layer: a[3].min(0xffff),
                    level: b[0],
                    gradients: [b[0], b[1], b[2], c[0], c[1], c[2]],
                    offsets: [0; 3],
                },
                answer: answers[4 * lane..4 * lane + 4].try_into().unwrap(),
            }
        });
        records.push(Record {
            number: words[61],
            words,
            texels,
            lanes: lanes.collect(),
        });
    }
    records
}

fn mode(number: u32) -> AddressMode {
    [
        AddressMode::Wrap,
        AddressMode::Clamp,
        AddressMode::Mirror,
        AddressMode::Border,
    ][number as usize]
}

fn filter(number: u32) -> FilterMode {
    [FilterMode::Point, FilterMode::Linear][number as usize]
}

/// The texture of a record.
fn object(record: &Record) -> TextureObject {
    let word = |index: usize| record.words[index];
    let format = TexelFormat {
        bits: word(4) as u8,
        channels: word(5) as u8,
        kind: [
            ChannelKind::Signed,
            ChannelKind::Unsigned,
            ChannelKind::Float,
        ][word(6) as usize],
    };
    let (width, height, depth, flags) = (word(7), word(8), word(9), word(10));
    let sliced = flags & (LAYERED | CUBEMAP) != 0;
    let mut address = 0;
    let mut levels = Vec::new();
    for level in 0..word(11) {
        let shrunk = |edge: u32| (edge >> level).max(1);
        let depth = if sliced { depth.max(1) } else { shrunk(depth) };
        let row = u64::from(shrunk(width) * format.bytes());
        levels.push(TextureLevel {
            address,
            width: shrunk(width),
            height: shrunk(height),
            depth,
            row_pitch: row,
            slice_pitch: row * u64::from(shrunk(height)),
        });
        address += row * u64::from(shrunk(height)) * u64::from(depth);
    }
    TextureObject {
        shape: TextureShape {
            dimensions: if height == 0 {
                1
            } else if depth == 0 || sliced {
                2
            } else {
                3
            },
            layered: flags & LAYERED != 0,
            cube: flags & CUBEMAP != 0,
            linear: word(3) == 2,
        },
        format,
        levels,
        sampler: Some(Sampler {
            address: [mode(word(12)), mode(word(13)), mode(word(14))],
            filter: filter(word(15)),
            mip_filter: filter(word(16)),
            normalized_coordinates: word(17) != 0,
            normalized_read: word(18) != 0,
            srgb: word(19) != 0,
            anisotropy: word(20) as u8,
            bias: f32::from_bits(word(21)),
            lowest: f32::from_bits(word(22)),
            highest: f32::from_bits(word(23)),
            border: [word(24), word(25), word(26), word(27)],
        }),
    }
}

/// What a record's instruction is; nothing for one that a library function makes of others.
fn instruction(op: u32) -> Option<(&'static str, Geometry, TextureAction)> {
    use LevelMode::{Given, Gradient, Zero};
    let (name, dimensions, layered, cube) = match op {
        0 => ("1d", 1, false, false),
        1 => ("2d", 2, false, false),
        2 => ("3d", 3, false, false),
        3 => ("fetch 1d", 1, false, false),
        4 => ("fetch 2d", 2, false, false),
        5 => ("fetch 3d", 3, false, false),
        6 => ("a1d", 1, true, false),
        7 => ("a2d", 2, true, false),
        8 => ("cube", 3, false, true),
        9 => ("acube", 3, true, true),
        10 => ("level 1d", 1, false, false),
        11 => ("level 2d", 2, false, false),
        12 => ("level 3d", 3, false, false),
        13 => ("level a2d", 2, true, false),
        14 => ("level cube", 3, false, true),
        15 => ("grad 1d", 1, false, false),
        16 => ("grad 2d", 2, false, false),
        17 => ("grad 3d", 3, false, false),
        18..=21 => ("gather", 2, false, false),
        22 => ("half 2d", 2, false, false),
        23 => ("fetch a2d", 2, true, false),
        24 => ("fetch level 2d", 2, false, false),
        25 => ("level a1d", 1, true, false),
        26 => ("grad a2d", 2, true, false),
        _ => return None,
    };
    let level = match op {
        10..=14 | 24 | 25 => Given,
        15..=17 | 26 => Gradient,
        _ => Zero,
    };
    let action = match op {
        18..=21 => TextureAction::Gather {
            component: (op - 18) as u8,
        },
        _ => TextureAction::Sample {
            integer: matches!(op, 3..=5 | 23 | 24),
            level,
            half: (op == 22).then_some(Halves::Packed),
        },
    };
    let geometry = Geometry {
        dimensions,
        layered,
        cube,
    };
    Some((name, geometry, action))
}

/// Whether two words are the same, NaNs of all kinds alike.
fn same(float: bool, found: u32, wanted: u32) -> bool {
    let nan = |word: u32| f32::from_bits(word).is_nan();
    found == wanted || (float && nan(found) && nan(wanted))
}

/// How many of a thousand samples of a kind may differ: what is known not to be exact.
fn allowed(record: &Record, object: &TextureObject) -> u32 {
    let sampler = object.sampler.as_ref().unwrap();
    let linear = sampler.filter == FilterMode::Linear;
    let (op, data) = (record.words[2], record.words[28]);
    match object.format {
        // Levels from derivatives are logarithms of another precision; there is no anisotropic filter.
        _ if matches!(op, 15..=17 | 26) => 1000,
        _ if sampler.srgb && linear => 1000,
        // Coordinates that are no numbers.
        _ if sampler.srgb || matches!(op, 8 | 9 | 14) => 20,
        TexelFormat {
            bits: 8,
            kind: ChannelKind::Signed,
            ..
        } if linear => 420,
        // Sums of special floats, and sums of three slices and more.
        _ if linear && data >= 2 => 16,
        _ if op == 12 && linear => 60,
        _ => 0,
    }
}

/// A record's samples as the texture unit answers them: how many differ.
fn wrong_samples(record: &Record, geometry: Geometry, action: TextureAction) -> u32 {
    let object = object(record);
    let sampler = object.sampler.unwrap();
    let float = sampler.normalized_read || object.format.kind == ChannelKind::Float;
    let mut wrong = 0;
    for lane in &record.lanes {
        let read = &mut |address: u64, bytes: usize| {
            let mut texel = [0; 16];
            let from = address as usize;
            texel[..bytes].copy_from_slice(&record.texels[from..from + bytes]);
            texel
        };
        let mut found = sample(&object, geometry, action, &lane.request, read);
        if record.words[2] == 22 {
            // What the program had in the registers that receive nothing.
            (found[2], found[3]) = (0xdead, 0xdead);
        }
        let mut pairs = found.iter().zip(lane.answer);
        wrong += u32::from(!pairs.all(|(found, wanted)| same(float, *found, wanted)));
    }
    wrong
}

#[test]
fn samples_are_those_of_an_h200() {
    let mut said = Vec::new();
    let (mut exact, mut all) = (0, 0);
    for record in records() {
        let Some((name, geometry, action)) = instruction(record.words[2]) else {
            continue;
        };
        let object = object(&record);
        let wrong = wrong_samples(&record, geometry, action);
        let count = record.lanes.len() as u32;
        (exact, all) = (exact + count - wrong, all + count);
        if wrong * 1000 > allowed(&record, &object) * count {
            let sampler = object.sampler.unwrap();
            said.push(format!(
                "case {} {name} {:?} {:?} {:?}/{:?}: {wrong} of {count} differ",
                record.number, object.format, sampler.address, sampler.filter, sampler.mip_filter,
            ));
        }
    }
    assert!(said.is_empty(), "{}", said.join("\n"));
    assert!(exact * 100 >= all * 96, "{exact} of {all} are exact");
}
