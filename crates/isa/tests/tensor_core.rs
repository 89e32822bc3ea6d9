//! Products of matrices against those that an H200 computed, bit by bit.
//!
//! Operands come from a generator with a seed; what the H200 made of them is recorded as digests, a
//! line for each form and class of operands. `TENSOR_CORE_VALUES` names a file with the words
//! themselves, as the probe writes them: then differences are counted and shown, and the lines of the
//! record are printed.

#[path = "tensor_core/form.rs"]
mod form;
#[path = "tensor_core/generator.rs"]
mod generator;

use form::Form;
use generator::{Source, mix};
use lockstep_isa::semantics::matrix::Descriptor;

const RECORDED: &str = include_str!("tensor_core/h200.txt");
const DESCRIPTORS: &str = include_str!("tensor_core/h200_descriptors.txt");

/// What the probe sums up over the words of one product.
fn digest(words: &[u32]) -> u32 {
    words.iter().enumerate().fold(0, |sum: u32, (index, word)| {
        sum.wrapping_add(mix((index as u64) << 32 | u64::from(*word)) as u32)
    })
}

fn source(form: &str, seed: u32, class: u32, test: u32) -> Source<'_> {
    let mut types = form
        .split('.')
        .filter(|word| generator::TYPES.iter().any(|(name, _)| name == word));
    let a = types.nth(1).unwrap();
    Source {
        seed,
        test,
        class,
        a,
    }
}

#[test]
fn every_form_gives_the_bits_of_an_h200() {
    let mut wrong = Vec::new();
    for line in RECORDED.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split(' ');
        let mut next = || words.next().unwrap();
        let name = next();
        let [seed, class, tests] = [0; 3].map(|_| next().parse::<u32>().unwrap());
        let wanted = u64::from_str_radix(next(), 16).unwrap();
        let form = Form::read(name);
        let found = (0..tests).fold(0u64, |sum, test| {
            let words = form.compute(&source(name, seed, class, test));
            sum.wrapping_add(mix(u64::from(test) << 32 | u64::from(digest(&words))))
        });
        if found != wanted {
            wrong.push(format!("{name}, class {class}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "differ from an H200:\n{}",
        wrong.join("\n")
    );
}

/// The index of each element of a matrix in shared memory, row by row as the probe read them.
fn places(descriptor: Descriptor, of_b: bool, bytes: u32, n: u32, transposed: bool) -> Vec<u32> {
    let k = 32 / bytes;
    let (rows, columns) = if of_b { (k, n) } else { (64, k) };
    let mut places = Vec::new();
    for row in 0..rows {
        for column in 0..columns {
            let (k, other) = if of_b { (row, column) } else { (column, row) };
            let (along, across) = if transposed { (other, k) } else { (k, other) };
            let address = descriptor.address(along * bytes, across, !transposed);
            // The probe's elements had 14 and 8 bits for their index.
            places.push((address / bytes) & if bytes == 2 { 0x3fff } else { 0xff });
        }
    }
    places
}

#[test]
fn descriptors_lead_to_where_an_h200_reads() {
    let mut count = 0;
    for line in DESCRIPTORS.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words[at].parse::<u64>().unwrap();
        let bits = number(4) >> 4 | number(5) >> 4 << 16 | number(6) >> 4 << 32;
        let descriptor = Descriptor(bits | number(7) << 49 | number(8) << 62);
        let bytes = if words[1] == "f16" { 2 } else { 1 };
        let found = places(
            descriptor,
            words[0] == "B",
            bytes,
            number(2) as u32,
            number(3) == 1,
        );
        let wanted = u32::from_str_radix(words[9], 16).unwrap();
        assert_eq!(digest(&found), wanted, "{line}");
        count += 1;
    }
    assert!(count > 200, "{count} descriptors");
}

/// Compares with the words themselves, where somebody has them.
#[test]
fn recorded_words_are_explained() {
    let Ok(file) = std::env::var("TENSOR_CORE_VALUES") else {
        return;
    };
    let values = std::fs::read(&file).unwrap();
    let index = std::fs::read_to_string(format!("{file}.txt")).unwrap();
    let seed = std::env::var("TENSOR_CORE_SEED").map_or(1, |seed| seed.parse().unwrap());
    let only = std::env::var("TENSOR_CORE_FORM").unwrap_or_default();
    for line in index.lines() {
        let mut words = line.split(' ');
        let name = words.next().unwrap();
        if !name.contains(&only) {
            continue;
        }
        let numbers: Vec<usize> = words.map(|word| word.parse().unwrap()).collect();
        let [class, count, full, tests, offset] = numbers[..] else {
            panic!("{line}");
        };
        let word = |at: usize| {
            let at = offset + 4 * at;
            u32::from_le_bytes(values[at..at + 4].try_into().unwrap())
        };
        let form = Form::read(name);
        let (mut wrong_tests, mut wrong_words, mut shown) = (0, 0, 0);
        let mut combined = 0u64;
        for test in 0..tests {
            let source = source(name, seed, class as u32, test as u32);
            let found = form.compute(&source);
            let recorded = word(full * count + test);
            combined = combined.wrapping_add(mix((test as u64) << 32 | u64::from(recorded)));
            wrong_tests += usize::from(digest(&found) != recorded);
            if test < full {
                for (at, found) in found.iter().enumerate() {
                    let wanted = word(test * count + at);
                    if wanted != *found {
                        wrong_words += 1;
                        shown += 1;
                        if shown <= 3 && !only.is_empty() {
                            println!(
                                "  test {test} word {at}: {found:08x} here, {wanted:08x} there"
                            );
                        }
                    }
                }
            }
        }
        println!(
            "{name} {seed} {class} {tests} {combined:016x} wrong tests {wrong_tests} wrong words {wrong_words} of {}",
            full * count
        );
    }
}
