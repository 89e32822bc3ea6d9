//! No modifier of an instruction is read over: without it another instruction is bound, or it is
//! one that changes no value and is listed here with its reason.

use std::collections::{BTreeMap, BTreeSet};

use lockstep_isa::{
    instruction::Operation,
    sass::{
        Architecture, Decoded, Word, decode,
        execute::{Frame, bind},
    },
};

fn frame(sm: u32) -> Frame {
    Frame {
        uniform_registers: 80,
        section: 0,
        length: 1 << 24,
        architecture: sm,
    }
}

/// What an instruction does, in words; `None` if it cannot be executed.
fn bound(decoded: &Decoded, sm: u32) -> Option<String> {
    let instruction = bind(decoded, &frame(sm)).ok()?;
    match instruction.operation {
        Operation::Unsupported(_) => None,
        _ => Some(format!("{instruction:?}")),
    }
}

/// An opcode and one of its words.
type Pair = (String, String);

/// Pairs whose word changes nothing for at least one instruction of the sample, with its text.
fn without_effect() -> BTreeMap<Pair, String> {
    let mut found = BTreeMap::new();
    for line in include_str!("sass/nvdisasm.tsv").lines() {
        let mut fields = line.split('\t');
        let mut next = || fields.next().unwrap_or_default();
        let Ok(sm) = next().parse::<u32>() else {
            continue;
        };
        let address = u64::from_str_radix(next(), 16).expect("an address");
        let word = Word(u128::from_str_radix(next(), 16).expect("a word"));
        let architecture = Architecture::from_sm(sm).expect("a known architecture");
        let Ok(decoded) = decode(architecture, address, word) else {
            continue;
        };
        let Some(whole) = bound(&decoded, sm) else {
            continue;
        };
        for (index, entry) in decoded.modifiers.iter().enumerate() {
            let mut without = decoded.clone();
            without.modifiers.remove(index);
            if bound(&without, sm).is_some_and(|without| without == whole) {
                let pair = (decoded.opcode.name().into(), entry.modifier.name().into());
                found.entry(pair).or_insert_with(|| decoded.to_string());
            }
        }
    }
    found
}

#[test]
fn no_modifier_is_read_over() {
    let listed: BTreeSet<Pair> = include_str!("sass/words_without_effect.txt")
        .lines()
        .filter_map(|line| line.split_once(": "))
        .flat_map(|(opcode, words)| {
            words
                .split(' ')
                .map(|word| (opcode.to_owned(), word.to_owned()))
        })
        .collect();
    let found = without_effect();
    for (pair, text) in &found {
        assert!(
            listed.contains(pair),
            "`{text}` does the same without `.{}`: bind it, refuse it or list it with a reason",
            pair.1
        );
    }
    for (opcode, word) in &listed {
        assert!(
            found.contains_key(&(opcode.clone(), word.clone())),
            "`{opcode}.{word}` is listed without need"
        );
    }
}
