//! Changes of good inputs: bytes, text, machine code in its container.

use crate::random::Random;
use object::{
    Endianness,
    elf::FileHeader64,
    read::elf::{FileHeader, SectionHeader as _},
};
use std::ops::Range;

/// Numbers at which arithmetic goes wrong.
const EDGES: &[u64] = &[
    0,
    1,
    2,
    3,
    7,
    8,
    15,
    16,
    31,
    32,
    63,
    64,
    127,
    128,
    254,
    255,
    256,
    1023,
    1024,
    4095,
    4096,
    0x7fff,
    0x8000,
    0xffff,
    0x1_0000,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    u64::MAX - 15,
    u64::MAX,
];

/// Largest input that is made.
const LARGEST: usize = 8 << 20;

/// How many changes: mostly few, for many leave nothing to run.
fn amount(random: &mut Random) -> usize {
    match random.below(8) {
        0..=3 => 1,
        4..=5 => 2,
        6 => 1 + random.below(5),
        _ => 1 + random.below(20),
    }
}

/// Changes bytes anywhere in a range; `other` lends pieces.
pub fn bytes(random: &mut Random, input: &mut Vec<u8>, range: Range<usize>, other: &[u8]) {
    for _ in 0..amount(random) {
        let range = range.start.min(input.len())..range.end.min(input.len());
        one_change(random, input, range, other);
    }
    input.truncate(LARGEST);
}

fn one_change(random: &mut Random, input: &mut Vec<u8>, range: Range<usize>, other: &[u8]) {
    let at = range.start + random.below(range.len());
    let left = input.len().saturating_sub(at);
    let most = 1 << random.below(8);
    let length = (1 + random.below(most)).min(left);
    match random.below(12) {
        0..=3 => {
            if let Some(byte) = input.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
        4 => {
            if let Some(byte) = input.get_mut(at) {
                *byte = random.next() as u8;
            }
        }
        5..=7 => {
            let value = random.pick(EDGES).copied().unwrap_or(0).to_le_bytes();
            let width = [1, 2, 4, 8][random.below(4)].min(left);
            let aligned = at - at % width.max(1);
            if let Some(place) = input.get_mut(aligned..aligned + width) {
                place.copy_from_slice(&value[..width]);
            }
        }
        8 => {
            input.drain(at..at + length);
        }
        9 => {
            let piece = input[at..at + length].to_vec();
            let to = range.start + random.below(range.len());
            input.splice(to..to, piece);
        }
        10 => {
            let from = random.below(other.len());
            let piece = &other[from..(from + length).min(other.len())];
            let end = (at + piece.len()).min(input.len());
            input[at..end].copy_from_slice(&piece[..end - at]);
        }
        _ => {
            let piece: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
            input.splice(at..at, piece);
        }
    }
}

/// Changes words, numbers and lines of a text; `other` lends them.
pub fn text(random: &mut Random, input: &mut Vec<u8>, other: &[u8]) {
    if random.once_in(10) {
        let range = 0..input.len();
        return bytes(random, input, range, other);
    }
    for _ in 0..amount(random) {
        if random.below(3) > 0 {
            change_word(random, input, other);
        } else {
            change_line(random, input, other);
        }
    }
    input.truncate(LARGEST);
}

fn change_word(random: &mut Random, input: &mut Vec<u8>, other: &[u8]) {
    let Some(here) = word(random, input) else {
        return;
    };
    let from = match random.below(4) {
        0 => other.to_vec(),
        _ => input.clone(),
    };
    let new = match random.below(8) {
        0..=2 => {
            let edge = random.pick(EDGES).copied().unwrap_or(0);
            match random.below(4) {
                0 => format!("-{edge}").into_bytes(),
                1 => format!("{edge:#x}").into_bytes(),
                _ => edge.to_string().into_bytes(),
            }
        }
        3..=5 => word(random, &from).map_or_else(Vec::new, |range| from[range].to_vec()),
        6 => Vec::new(),
        _ => {
            let mut twice = input[here.clone()].to_vec();
            twice.push(b' ');
            twice.extend_from_slice(&input[here.clone()]);
            twice
        }
    };
    input.splice(here, new);
}

fn change_line(random: &mut Random, input: &mut Vec<u8>, other: &[u8]) {
    let here = line(random, input);
    let piece = match random.below(4) {
        0 => Vec::new(),
        1 => {
            let range = line(random, other);
            other[range].to_vec()
        }
        _ => {
            let range = line(random, input);
            input[range].to_vec()
        }
    };
    let place = if random.once_in(2) {
        here
    } else {
        here.start..here.start
    };
    input.splice(place, piece);
}

/// A word or number somewhere in a text.
fn word(random: &mut Random, text: &[u8]) -> Option<Range<usize>> {
    let inside = |byte: &u8| byte.is_ascii_alphanumeric() || b"_$%.".contains(byte);
    let from = random.below(text.len());
    let start = from + text[from..].iter().position(inside)?;
    // Directives and modifiers begin with a dot: parts of them are words, too.
    let whole = random.once_in(2);
    let ends = |byte: &u8| !inside(byte) || (!whole && *byte == b'.');
    let length = text[start + 1..].iter().position(ends);
    Some(start..length.map_or(text.len(), |length| start + 1 + length))
}

/// A line, with its end.
fn line(random: &mut Random, text: &[u8]) -> Range<usize> {
    let from = random.below(text.len());
    let start = text[..from].iter().rposition(|byte| *byte == b'\n');
    let start = start.map_or(0, |at| at + 1);
    let end = text[from..].iter().position(|byte| *byte == b'\n');
    start..end.map_or(text.len(), |at| from + at + 1)
}

/// Changes machine code where it hurts: instructions, what the compiler says about kernels,
/// symbols and headers.
pub fn cubin(random: &mut Random, input: &mut Vec<u8>, other: &[u8]) {
    let places = sections(input);
    let wanted: &[&str] = match random.below(10) {
        0..=4 => &[".text."],
        5..=6 => &[".nv.info"],
        7 => &[
            ".symtab",
            ".nv.constant",
            ".rel",
            ".nv.shared",
            ".nv.global",
        ],
        8 => &["header"],
        _ => &[],
    };
    let fitting: Vec<&(String, Range<usize>)> = places
        .iter()
        .filter(|(name, range)| {
            !range.is_empty() && wanted.iter().any(|prefix| name.starts_with(prefix))
        })
        .collect();
    let Some((name, range)) = random.pick(&fitting).copied().cloned() else {
        let range = 0..input.len();
        return bytes(random, input, range, other);
    };
    if name.starts_with(".text.") {
        for _ in 0..amount(random) {
            instruction(random, input, range.clone(), other);
        }
    } else {
        let length = input.len();
        bytes(random, input, range, other);
        // Whatever was put in or taken out, the rest stays where its headers say it is.
        if !random.once_in(4) {
            input.resize(length, 0);
        }
    }
}

/// Changes one 128-bit word.
fn instruction(random: &mut Random, input: &mut [u8], range: Range<usize>, other: &[u8]) {
    let words = range.len() / 16;
    let at = range.start + 16 * random.below(words);
    let Some(place) = input.get_mut(at..at + 16) else {
        return;
    };
    match random.below(8) {
        0..=2 => {
            for _ in 0..1 + random.below(3) {
                place[random.below(16)] ^= 1 << random.below(8);
            }
        }
        // Registers stand in these bytes.
        3..=4 => {
            let field = [2, 3, 4, 8][random.below(4)];
            place[field] = match random.below(3) {
                0 => 254,
                1 => 128 + random.below(127) as u8,
                _ => random.next() as u8,
            };
        }
        5 => place[random.below(16)] = random.next() as u8,
        6 => {
            let from = random.below(other.len() / 16) * 16;
            if let Some(piece) = other.get(from..from + 16) {
                place.copy_from_slice(piece);
            }
        }
        _ => {
            let from = range.start + 16 * random.below(words);
            input.copy_within(from..from + 16, at);
        }
    }
}

/// Sections of an ELF file by name, and its headers; nothing if it is none.
fn sections(bytes: &[u8]) -> Vec<(String, Range<usize>)> {
    let Ok(header) = FileHeader64::<Endianness>::parse(bytes) else {
        return Vec::new();
    };
    let Ok(endian) = header.endian() else {
        return Vec::new();
    };
    let Ok(table) = header.sections(endian, bytes) else {
        return Vec::new();
    };
    let mut found = vec![("header".to_owned(), 0..64)];
    let headers = header.e_shoff(endian) as usize;
    found.push(("header".to_owned(), headers.min(bytes.len())..bytes.len()));
    for section in table.iter() {
        let Some((offset, size)) = section.file_range(endian) else {
            continue;
        };
        let name = table.section_name(endian, section).unwrap_or_default();
        let end = (offset + size).min(bytes.len() as u64) as usize;
        let range = (offset as usize).min(end)..end;
        found.push((String::from_utf8_lossy(name).into_owned(), range));
    }
    found
}

/// Changes numbers inside messages: frames of a 32-bit length and as many bytes, from `start` on. The
/// numbers have as many bytes as they need, so lengths are made to fit again.
pub fn frames(random: &mut Random, input: &mut Vec<u8>, start: usize) {
    for _ in 0..amount(random) {
        let all = frames_of(input, start);
        let Some(frame) = random.pick(&all).cloned() else {
            return;
        };
        if random.once_in(6) {
            // A message twice, or elsewhere.
            let message = input[frame.start - 4..frame.end].to_vec();
            let to = random.pick(&all).map_or(start, |other| other.start - 4);
            input.splice(to..to, message);
            continue;
        }
        let at = frame.start + random.below(frame.len());
        let bytes = &input[at..frame.end];
        let last = bytes.iter().position(|byte| *byte < 0x80).unwrap_or(0);
        let mut value = random.pick(EDGES).copied().unwrap_or(0);
        let mut number = Vec::new();
        while value >= 0x80 {
            number.push(value as u8 | 0x80);
            value >>= 7;
        }
        number.push(value as u8);
        let length = (frame.len() + number.len()).saturating_sub(last + 1) as u32;
        input.splice(at..(at + last + 1).min(frame.end), number);
        input[frame.start - 4..frame.start].copy_from_slice(&length.to_le_bytes());
    }
    input.truncate(LARGEST);
}

/// Where the contents of frames lie.
fn frames_of(bytes: &[u8], start: usize) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = start;
    while let Some(header) = bytes.get(at..at + 4) {
        let length = header
            .iter()
            .rev()
            .fold(0, |sum, byte| sum << 8 | usize::from(*byte));
        let content = at + 4..at + 4 + length;
        if content.end > bytes.len() {
            break;
        }
        at = content.end;
        if !content.is_empty() {
            found.push(content);
        }
    }
    found
}

/// Changes what is inside a zstd frame that the file holds, or the file itself.
pub fn packed(random: &mut Random, input: &mut Vec<u8>, other: &[u8]) {
    const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
    let start = input.windows(4).position(|four| four == MAGIC);
    if let Some(start) = start
        && !random.once_in(4)
        && let Ok(mut inside) = zstd::stream::decode_all(&input[start..])
    {
        if random.once_in(2) {
            frames(random, &mut inside, 0);
        } else {
            let range = 0..inside.len();
            bytes(random, &mut inside, range, other);
        }
        if let Ok(again) = zstd::bulk::compress(&inside, 1) {
            input.truncate(start);
            input.extend(again);
            return;
        }
    }
    let range = 0..input.len();
    bytes(random, input, range, other);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_makes_one_input_and_others_others() {
        let good = b".version 8.0\nadd.u32 %r1, %r2, 3;\n".to_vec();
        let made = |seed| {
            let mut input = good.clone();
            text(&mut Random::new(seed), &mut input, b"mul.lo.u32 %r9;\n");
            input
        };
        assert_eq!(made(7), made(7));
        let different = (0..100).filter(|seed| made(*seed) != good).count();
        assert!(different > 80, "{different} of 100 differ");
    }

    #[test]
    fn frames_stay_frames_when_their_numbers_change() {
        let good = [&[3, 0, 0, 0, 1, 2, 3][..], &[2, 0, 0, 0, 0x80, 1]].concat();
        for seed in 0..1000 {
            let mut input = [&b"preamble"[..], &good].concat();
            frames(&mut Random::new(seed), &mut input, 8);
            let last = frames_of(&input, 8).last().map(|frame| frame.end);
            assert_eq!(last, Some(input.len()), "seed {seed}: {input:?}");
        }
    }

    #[test]
    fn nothing_is_too_small_to_be_changed() {
        for seed in 0..2000 {
            let mut random = Random::new(seed);
            for length in 0..3 {
                let mut input = vec![b'a'; length];
                text(&mut random, &mut input, b"");
                let mut input = vec![0; length];
                cubin(&mut random, &mut input, b"");
                packed(&mut random, &mut vec![1; length], b"");
                frames(&mut random, &mut vec![0; length], 0);
            }
        }
    }
}
