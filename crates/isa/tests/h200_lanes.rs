//! What single instructions of sm_90 machine code leave in the registers of 256 threads, against an H200.
//!
//! `h200/lanes.tsv` has a line for each case: its name, the set of inputs in `h200/inputs.bin`, the words of its
//! instructions, and the FNV-1a hash of what an H200 (driver 580.159.04, 2026-11-16) left in R8 to R11 of all
//! threads. The words ran in a kernel of one block that loads R4 to R7 from the inputs (16 bytes a thread) and
//! stores R8 to R11, which are zero before; R20 is 1. Digests that differ are reported with the name of the case.

use lockstep_isa::lanes::{ConstantBanks, Identity};
use lockstep_isa::operand::PredicateRegister;
use lockstep_isa::sass::architecture::Architecture;
use lockstep_isa::sass::execute::{Frame, bind, bind::PREDICATES};
use lockstep_isa::sass::{Word, decode};
use lockstep_isa::{Convergence, Instruction, Lanes, Mask, Operation, WarpRegister};

const WARPS: usize = 8;
const UNIFORM: u16 = 64;
const FRAME: Frame = Frame {
    uniform_registers: UNIFORM,
    section: 0,
    length: 64,
    architecture: 90,
};

fn execute(code: &[Instruction], inputs: &[u8], warp: usize) -> Vec<[u32; 4]> {
    let register = |index: u16| usize::from(UNIFORM + index);
    let mut registers = vec![WarpRegister::ZERO; register(72)];
    for lane in 0..32 {
        let at = 16 * (32 * warp + lane);
        for word in 0..4 {
            let bytes = inputs[at + 4 * word..at + 4 * word + 4].try_into();
            let value = u32::from_le_bytes(bytes.expect("four bytes"));
            registers[register(4 + word as u16)].0[lane] = value;
        }
    }
    registers[register(20)] = WarpRegister::splat(1);
    let mut predicates: Vec<Mask> = vec![0; usize::from(PREDICATES)];
    let mut convergence = Convergence::new(Mask::MAX, 0, 16, false);
    for instruction in code {
        let Operation::Compute(compute) = instruction.operation else {
            panic!("{instruction:?} does not compute");
        };
        let guard = match instruction.guard.register {
            PredicateRegister::True => Mask::MAX,
            PredicateRegister::Lanes(index) => predicates[usize::from(index)],
        };
        let execute = if instruction.guard.negate {
            !guard
        } else {
            guard
        };
        let mut lanes = Lanes {
            registers: &mut registers,
            predicates: &mut predicates,
            convergence: &mut convergence,
            constants: &ConstantBanks::default(),
            identity: &Identity::default(),
            active: Mask::MAX,
            execute,
        };
        compute(&mut lanes, instruction);
    }
    (0..32)
        .map(|lane| [8, 9, 10, 11].map(|index| registers[register(index)].0[lane]))
        .collect()
}

fn hash(rows: &[[u32; 4]]) -> u64 {
    let bytes = rows.iter().flatten().flat_map(|word| word.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// An instruction that computes, from the digits of its word.
fn read(word: &str) -> Result<Instruction, String> {
    let word = u128::from_str_radix(word, 16).map_err(|error| error.to_string())?;
    let decoded = decode(Architecture::Sm90, 0, Word(word)).map_err(|error| error.to_string())?;
    let instruction = bind(&decoded, &FRAME).map_err(|error| error.to_string())?;
    match instruction.operation {
        Operation::Compute(_) => Ok(instruction),
        other => Err(format!("{other:?}")),
    }
}

#[test]
fn instructions_leave_what_an_h200_leaves() {
    let inputs = include_bytes!("h200/inputs.bin");
    let set = 16 * 32 * WARPS;
    let (mut cases, mut wrong) = (0, Vec::new());
    for line in include_str!("h200/lanes.tsv").lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [name, input, words, expected] = fields[..] else {
            panic!("`{line}` has not four fields");
        };
        let input: usize = input.parse().expect("a number of an input set");
        cases += 1;
        let code: Result<Vec<Instruction>, String> = words.split(' ').map(read).collect();
        let code = match code {
            Ok(code) => code,
            Err(why) => {
                wrong.push(format!("{name}: {why}"));
                continue;
            }
        };
        let inputs = &inputs[input * set..(input + 1) * set];
        let rows: Vec<_> = (0..WARPS)
            .flat_map(|warp| execute(&code, inputs, warp))
            .collect();
        if format!("{:016x}", hash(&rows)) != expected {
            wrong.push(format!("{name}: lane 0 has {:x?}", rows[0]));
        }
    }
    assert!(cases > 500, "only {cases} cases");
    assert!(
        wrong.is_empty(),
        "{} of {cases} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
