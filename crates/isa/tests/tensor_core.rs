//! Products of matrices against those that an H200 computed, bit by bit.
//!
//! Operands come from a generator with a seed; what the H200 made of them is recorded as digests, a
//! line for each form and class of operands. `TENSOR_CORE_VALUES` names a folder with the words
//! themselves, as the probe writes them: then differences are counted and shown.

#[path = "tensor_core/form.rs"]
mod form;
#[path = "tensor_core/generator.rs"]
mod generator;

use form::Form;
use generator::{Source, mix};

const RECORDED: &str = include_str!("tensor_core/h200.txt");

/// What the probe sums up over the words of one product.
fn digest(words: &[u32]) -> u32 {
    words.iter().enumerate().fold(0, |sum: u32, (index, word)| {
        sum.wrapping_add(mix((index as u64) << 32 | u64::from(*word)) as u32)
    })
}

fn source(form: &str, seed: u32, class: u32, test: u32) -> Source<'_> {
    let mut types = form.split('.').filter(|word| {
        generator::TYPES.iter().any(|(name, _)| name == word)
    });
    let a = types.nth(1).unwrap();
    Source { seed, test, class, a }
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
    assert!(wrong.is_empty(), "differ from an H200:\n{}", wrong.join("\n"));
}

/// Compares with the words themselves, where somebody has them.
#[test]
fn recorded_words_are_explained() {
    let Ok(folder) = std::env::var("TENSOR_CORE_VALUES") else {
        return;
    };
    let values = std::fs::read(format!("{folder}/values")).unwrap();
    let index = std::fs::read_to_string(format!("{folder}/values.txt")).unwrap();
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
            let source = source(name, 1, class as u32, test as u32);
            let found = form.compute(&source);
            let recorded = word(full * count + test);
            combined = combined
                .wrapping_add(mix((test as u64) << 32 | u64::from(recorded)));
            wrong_tests += usize::from(digest(&found) != recorded);
            if test < full {
                for (at, found) in found.iter().enumerate() {
                    let wanted = word(test * count + at);
                    if wanted != *found {
                        wrong_words += 1;
                        shown += 1;
                        if shown <= 3 && !only.is_empty() {
                            println!("  test {test} word {at}: {found:08x} here, {wanted:08x} there");
                        }
                    }
                }
            }
        }
        println!(
            "{name} 1 {class} {tests} {combined:016x} wrong tests {wrong_tests} wrong words {wrong_words} of {}",
            full * count
        );
    }
}
