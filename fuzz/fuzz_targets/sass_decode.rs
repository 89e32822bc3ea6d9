//! Instruction words: decoded for an architecture, printed, bound.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lockstep_isa::sass::{Word, architecture::ARCHITECTURES, decode};

fuzz_target!(|input: (u8, u64, [u8; 16])| {
    let (index, address, bytes) = input;
    let architecture = ARCHITECTURES[usize::from(index) % ARCHITECTURES.len()];
    let word = Word(u128::from_le_bytes(bytes));
    if let Ok(decoded) = decode(architecture, address, word) {
        assert!(!decoded.to_string().is_empty());
    }
});
