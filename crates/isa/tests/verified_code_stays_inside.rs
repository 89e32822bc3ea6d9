//! Whatever bits an instruction of machine code has: what `Needs` says it touches is all that its
//! semantics touch. An SM relies on this when it runs code that was verified.

use lockstep_isa::lanes::{ConstantBanks, Identity};
use lockstep_isa::sass::architecture::ARCHITECTURES;
use lockstep_isa::sass::execute::{Frame, bind, bind::PREDICATES};
use lockstep_isa::sass::{Word, decode};
use lockstep_isa::verify::Needs;
use lockstep_isa::{Convergence, Lanes, Operation, WarpRegister};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Random words for each value of the twelve bits that name an operation.
const WORDS: u64 = 40;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ value >> 31
    }
}

#[test]
fn nothing_is_touched_beyond_what_an_instruction_needs() {
    let constants = ConstantBanks {
        banks: vec![vec![1; 0x400]; 4],
    };
    let identity = Identity {
        block_size: [64, 1, 1],
        ..Identity::default()
    };
    let mut random = Random(1);
    let (mut executed, mut beyond) = (0, Vec::new());
    for architecture in ARCHITECTURES {
        for operation in 0..4096u64 {
            for number in 0..WORDS {
                let (low, high) = (random.next(), random.next());
                // Every other word has few bits set, so that modifiers are usual ones.
                let high = if number % 2 == 0 {
                    high & random.next() & random.next()
                } else {
                    high
                };
                let word = u128::from(low & !0xfff | operation) | u128::from(high) << 64;
                let Ok(decoded) = decode(*architecture, 0x100, Word(word)) else {
                    continue;
                };
                let frame = Frame {
                    uniform_registers: 65,
                    section: 0,
                    length: 64,
                    architecture: 90,
                };
                let Ok(instruction) = bind(&decoded, &frame) else {
                    continue;
                };
                let Operation::Compute(compute) = &instruction.operation else {
                    continue;
                };
                let needs = Needs::of(&instruction);
                assert!(needs.predicates <= u32::from(PREDICATES), "{decoded}");
                let mut registers = vec![WarpRegister::splat(3); needs.registers as usize];
                let mut predicates = vec![0x5555_5555; usize::from(PREDICATES)];
                let mut convergence = Convergence::new(!0, 0, 16, false);
                let mut lanes = Lanes {
                    registers: &mut registers,
                    predicates: &mut predicates,
                    convergence: &mut convergence,
                    constants: &constants,
                    identity: &identity,
                    active: !0,
                    execute: 0xffff_00ff,
                };
                let ran = catch_unwind(AssertUnwindSafe(|| compute(&mut lanes, &instruction)));
                executed += 1;
                if ran.is_err() {
                    beyond.push(format!("{architecture} {word:#034x} {decoded}"));
                }
            }
        }
    }
    assert!(executed > 10_000, "{executed} were executed");
    assert!(
        beyond.is_empty(),
        "{} of {executed}: {beyond:#?}",
        beyond.len()
    );
}
