//! Boxes of tensors against an H200: which bytes a command of the TMA engine moves, and where to.
//!
//! `validation/hardware/h200/tma` has a line a case: the tensor map, the coordinates, where the tile lies in
//! shared memory, and a digest of what was written. Memory is filled by the same generators here and there.

use lockstep_isa::memory::AtomicOperation;
use lockstep_isa::semantics::atomic;
use lockstep_isa::tensor::{self, Direction, Row, Start, fill, reduction, swizzle};
use lockstep_units::{Interleave, Swizzle, TensorElement, TensorMap, TensorPart};

/// Bytes of global memory that cases work on.
const BUFFER: usize = 1 << 19;
/// Words at its end that are special floats.
const SPECIAL: usize = 4096;

/// Words that are special as one float or as two.
const SPECIALS: [u32; 32] = [
    0,
    0x8000_0000,
    1,
    0x8000_0001,
    0x007f_ffff,
    0x807f_ffff,
    0x0080_0000,
    0x0080_0001,
    0x3f80_0000,
    0xbf80_0000,
    0x3f80_1fff,
    0x3f80_1000,
    0x3f80_3000,
    0x7f7f_ffff,
    0xff7f_ffff,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_0000,
    0xffc1_2345,
    0x7f81_2345,
    0x3c00_3c01,
    0x0001_0001,
    0x8001_8001,
    0x03ff_83ff,
    0x7bff_7bff,
    0x7c00_fc00,
    0x7e00_7e01,
    0xfe01_7d01,
    0x0400_0401,
    0x3333_3333,
    0x1234_5678,
    0x9abc_def0,
];

fn mix(mut x: u32) -> u32 {
    x ^= x >> 16;
    x = x.wrapping_mul(0x7feb_352d);
    x ^= x >> 15;
    x = x.wrapping_mul(0x846c_a68b);
    x ^ x >> 16
}

fn bytes_of(words: impl Iterator<Item = u32>) -> Vec<u8> {
    words.flat_map(u32::to_le_bytes).collect()
}

fn global_memory() -> Vec<u8> {
    let words = BUFFER / 4;
    bytes_of((0..words).map(|index| match index {
        _ if index >= words - SPECIAL => SPECIALS[index % 32],
        _ => mix(index as u32),
    }))
}

fn shared_memory(bytes: usize, special: bool) -> Vec<u8> {
    bytes_of((0..bytes / 4).map(|index| match special {
        true => SPECIALS[(index * 7 + index / 32 * 5) % 32],
        false => mix(index as u32 + 0x10000),
    }))
}

/// FNV-1a.
fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// One recorded case.
struct Case {
    operation: u32,
    map: TensorMap,
    start: Start,
    place: u32,
    special: bool,
    outcome: Outcome,
}

enum Outcome {
    Digest(u64),
    IllegalInstruction,
}

fn list<T: std::str::FromStr>(text: &str) -> Vec<T> {
    let parts = text.split(',').filter(|part| *part != "-");
    parts.map(|part| part.parse().ok().unwrap()).collect()
}

fn spread<T: Copy, const N: usize>(values: &[T], rest: T) -> [T; N] {
    std::array::from_fn(|index| values.get(index).copied().unwrap_or(rest))
}

/// Loads 0, 1; stores 2, 3; reductions 4-11, of columns 12-19.
fn parse(line: &str) -> Case {
    let (case, outcome) = line.split_once(" = ").unwrap();
    let mut words = case.split(' ');
    let mut next = || words.next().unwrap_or("");
    let operation: u32 = next().parse().unwrap();
    let element = TensorElement::from_number(next().parse().unwrap()).unwrap();
    let rank: u32 = next().parse().unwrap();
    let address = u64::from_str_radix(next(), 16).unwrap();
    let dimensions = spread(&list(next()), 1);
    let strides = spread(&list(next()), 0);
    let im2col = matches!(operation, 1 | 3 | 12..20);
    let part = if im2col {
        TensorPart::Im2col {
            lower: spread(&list(next()), 0),
            upper: spread(&list(next()), 0),
            channels: next().parse().unwrap(),
            pixels: next().parse().unwrap(),
        }
    } else {
        TensorPart::Tile {
            size: spread(&list(next()), 1),
        }
    };
    let steps = spread(&list(next()), 1);
    let interleave = [Interleave::None, Interleave::Bytes16, Interleave::Bytes32];
    let interleave = interleave[next().parse::<usize>().unwrap()];
    let swizzles = [
        Swizzle::None,
        Swizzle::Span32,
        Swizzle::Span64,
        Swizzle::Span128,
    ];
    let swizzle = swizzles[next().parse::<usize>().unwrap()];
    let nan_fill = next() == "1";
    let coordinates = spread(&list(next()), 0);
    let offsets = if operation == 1 {
        spread(&list(next()), 0)
    } else {
        [0; 3]
    };
    let map = TensorMap {
        address,
        rank,
        element,
        interleave,
        swizzle,
        promotion: 0,
        nan_fill,
        dimensions,
        strides,
        steps,
        part,
    };
    Case {
        operation,
        map,
        start: Start {
            coordinates,
            offsets,
        },
        place: next().parse().unwrap(),
        special: next() == "s",
        outcome: match outcome.strip_prefix("fault 715") {
            Some(_) => Outcome::IllegalInstruction,
            None => Outcome::Digest(u64::from_str_radix(&outcome[2..18], 16).unwrap()),
        },
    }
}

/// Bytes of shared memory that a case records.
fn area(case: &Case) -> usize {
    let map = &case.map;
    if map.interleave != Interleave::None {
        return 24576;
    }
    let room = if map.swizzle == Swizzle::None { 1 } else { 8 };
    let bytes = case.place + tensor::bytes(map) * room + 1024;
    bytes.next_multiple_of(256).min(99840) as usize
}

/// Calls `visit` with each piece that keeps together: place in shared memory, address, bytes, inside or not.
fn pieces(case: &Case, stores: bool, visit: &mut dyn FnMut(usize, u64, usize, bool)) {
    let map = &case.map;
    tensor::rows(map, &case.start, &mut |row: Row| {
        let inside = if stores {
            row.stored()
        } else {
            row.inside.clone()
        };
        let size = map.element.bytes();
        for at in (0..row.bytes).step_by(size as usize) {
            let place = swizzle::place(map.swizzle, case.place + row.offset + at);
            let address = row.address.wrapping_add(u64::from(at));
            visit(place as usize, address, size as usize, inside.contains(&at));
        }
    });
}

fn load(case: &Case, global: &[u8]) -> Vec<u8> {
    let mut shared = shared_memory(area(case), case.special);
    let map = &case.map;
    pieces(case, false, &mut |place, address, size, inside| {
        let target = &mut shared[place..place + size];
        if inside {
            // Beyond the buffer, memory is zero.
            let from = address as usize;
            let zero = [0; 8];
            target.copy_from_slice(global.get(from..from + size).unwrap_or(&zero[..size]));
            fill::convert(map.element, target);
        } else {
            fill::outside(map.element, map.nan_fill, target);
        }
    });
    shared
}

const REDUCTIONS: [AtomicOperation; 8] = [
    AtomicOperation::Add,
    AtomicOperation::Min,
    AtomicOperation::Max,
    AtomicOperation::Increment,
    AtomicOperation::Decrement,
    AtomicOperation::And,
    AtomicOperation::Or,
    AtomicOperation::Xor,
];

/// The reduction that a case asks for.
fn operation(case: &Case) -> Option<AtomicOperation> {
    let number = case.operation.checked_sub(4)?;
    Some(REDUCTIONS[number as usize % 8])
}

/// Whether the engine takes a case.
fn is_refused(case: &Case, direction: Direction) -> bool {
    let exists = operation(case).is_none_or(|operation| {
        let kind = reduction::kind(case.map.element);
        kind.is_some_and(|kind| reduction::exists(operation, kind))
    });
    !exists || tensor::check(&case.map, &case.start, direction).is_err()
}

fn store(case: &Case, mut global: Vec<u8>) -> Vec<u8> {
    let shared = shared_memory(area(case), case.special);
    let operation = operation(case);
    pieces(case, true, &mut |place, address, size, inside| {
        let from = address as usize;
        let Some(target) = global.get_mut(from..from + size).filter(|_| inside) else {
            return;
        };
        let source = &shared[place..place + size];
        let Some(operation) = operation else {
            return target.copy_from_slice(source);
        };
        let value = |bytes: &[u8]| {
            let mut wide = [0; 16];
            wide[..size].copy_from_slice(bytes);
            u128::from_le_bytes(wide)
        };
        let kind = reduction::kind(case.map.element).unwrap();
        let new = atomic::apply(operation, kind, value(target), value(source), 0).unwrap();
        target.copy_from_slice(&new.to_le_bytes()[..size]);
    });
    global
}

fn check(name: &str, least: usize) {
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../validation/hardware/h200/tma/"
    );
    let text = std::fs::read_to_string(format!("{folder}{name}.txt")).unwrap();
    let global = global_memory();
    let (mut checked, mut wrong) = (0, Vec::new());
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let case = parse(line);
        let direction = if case.operation < 2 {
            Direction::Load
        } else {
            Direction::Store
        };
        let refused = is_refused(&case, direction);
        checked += 1;
        let Outcome::Digest(expected) = case.outcome else {
            if !refused {
                wrong.push(line);
            }
            continue;
        };
        let found = match direction {
            Direction::Load => digest(&load(&case, &global)),
            Direction::Store => digest(&store(&case, global.clone())),
        };
        if refused || found != expected {
            wrong.push(line);
        }
    }
    assert!(checked >= least, "only {checked} cases of {name}");
    let first: Vec<_> = wrong.iter().take(20).collect();
    assert!(
        wrong.is_empty(),
        "{} of {checked} cases differ: {first:#?}",
        wrong.len()
    );
}

#[test]
fn boxes_are_loaded_as_an_h200_does() {
    check("load", 1481);
}

#[test]
fn columns_of_pixels_are_loaded_as_an_h200_does() {
    check("im2col", 120);
}

#[test]
fn interleaved_tensors_are_loaded_as_an_h200_does() {
    check("interleaved", 303);
}

#[test]
fn boxes_are_stored_as_an_h200_does() {
    check("store", 746);
    check("im2col_store", 120);
    check("interleaved_store", 255);
}

#[test]
fn boxes_are_reduced_as_an_h200_does() {
    check("add", 803);
    check("im2col_add", 120);
    check("reduce", 99);
}
