//! Warp instructions a second: one instruction over the registers of a warp, as an SM executes it.

use divan::{Bencher, black_box, counter::ItemsCount};
use lockstep_isa::{
    Convergence, Instruction, Lanes, Mask, Operand, Operation, WarpRegister,
    instruction::{Compute, SchedulingInfo},
    lanes::{ConstantBanks, Identity},
    operand::{PredicateOperand, PredicateRegister},
    ptx::{FAMILIES, Pattern},
};

/// Instructions in one measured round.
const ROUND: usize = 1024;

/// What is measured: modifiers after the opcode, and the mask of executing lanes.
const CASES: &[(&str, &[&str], Mask)] = &[
    ("add", &["u32"], Mask::MAX),
    ("add", &["u32"], 0x0fff_ffff),
    ("mad", &["lo", "s32"], Mask::MAX),
    ("mul", &["wide", "s32"], Mask::MAX),
    ("add", &["s64"], Mask::MAX),
    ("shl", &["b32"], Mask::MAX),
    ("xor", &["b32"], Mask::MAX),
    ("add", &["f32"], Mask::MAX),
    ("fma", &["rn", "f32"], Mask::MAX),
    ("fma", &["rn", "ftz", "f32"], Mask::MAX),
    ("fma", &["rn", "f64"], Mask::MAX),
    ("setp", &["lt", "s32"], Mask::MAX),
    ("setp", &["gt", "f32"], Mask::MAX),
    ("selp", &["b32"], Mask::MAX),
    ("cvt", &["rn", "f32", "s32"], Mask::MAX),
    ("cvt", &["rzi", "s32", "f32"], Mask::MAX),
    ("cvt", &["s64", "s32"], Mask::MAX),
    ("ex2", &["approx", "f32"], Mask::MAX),
    ("ex2", &["approx", "ftz", "f32"], Mask::MAX),
    ("lg2", &["approx", "ftz", "f32"], Mask::MAX),
    ("rcp", &["approx", "ftz", "f32"], Mask::MAX),
    ("rsqrt", &["approx", "ftz", "f32"], Mask::MAX),
    ("sqrt", &["approx", "ftz", "f32"], Mask::MAX),
    ("sin", &["approx", "ftz", "f32"], Mask::MAX),
    ("cos", &["approx", "ftz", "f32"], Mask::MAX),
    ("tanh", &["approx", "f32"], Mask::MAX),
    ("rcp", &["approx", "ftz", "f64"], Mask::MAX),
    ("div", &["approx", "f32"], Mask::MAX),
    ("div", &["full", "f32"], Mask::MAX),
    ("tanh", &["approx", "f16x2"], Mask::MAX),
    ("shfl", &["sync", "down", "b32"], Mask::MAX),
    ("div", &["rn", "f32"], Mask::MAX),
];

fn main() {
    divan::main();
}

fn find(opcode: &str, modifiers: &[&str]) -> Option<([Compute; 2], u64)> {
    let rows = FAMILIES.iter().flat_map(|(_, entries)| entries.iter());
    rows.filter_map(|entry| {
        let pattern = Pattern::new(entry.spelling);
        let bits = (pattern.opcode == opcode).then(|| pattern.matches(modifiers))??;
        Some(([entry.semantics.portable, entry.semantics.choose()], bits))
    })
    .next()
}

fn run(bencher: Bencher<'_, '_>, compute: Compute, modifiers: u64, execute: Mask) {
    let mut registers = vec![WarpRegister::splat(0x3f80_1234); 32];
    let mut predicates = vec![0x5555_5555; 4];
    let mut convergence = Convergence::new(Mask::MAX, 0, 0, true);
    let constants = ConstantBanks::default();
    let identity = Identity::default();
    let mut instruction = Instruction::new(Operation::Compute(compute), SchedulingInfo::default());
    for (index, source) in instruction.sources.iter_mut().enumerate() {
        *source = Operand::Register(4 * index as u16).into();
    }
    instruction.destination = Some(20);
    instruction.predicates[0] = PredicateOperand {
        register: PredicateRegister::Lanes(1),
        negate: false,
    };
    instruction.predicate_destinations[0] = PredicateRegister::Lanes(0);
    instruction.modifiers = modifiers;
    bencher.counter(ItemsCount::new(ROUND)).bench_local(|| {
        for _ in 0..ROUND {
            let mut lanes = Lanes {
                registers: &mut registers,
                predicates: &mut predicates,
                convergence: &mut convergence,
                constants: &constants,
                identity: &identity,
                active: Mask::MAX,
                execute,
            };
            compute(&mut lanes, black_box(&instruction));
        }
    });
}

/// The version for this host.
#[divan::bench(args = 0..CASES.len(), max_time = 0.05)]
fn this_host(bencher: Bencher<'_, '_>, case: usize) {
    let (opcode, modifiers, execute) = CASES[case];
    if let Some((versions, bits)) = find(opcode, modifiers) {
        run(bencher, versions[1], bits, execute);
    }
}

/// The version for any host.
#[divan::bench(args = 0..CASES.len(), max_time = 0.05)]
fn any_host(bencher: Bencher<'_, '_>, case: usize) {
    let (opcode, modifiers, execute) = CASES[case];
    if let Some((versions, bits)) = find(opcode, modifiers) {
        run(bencher, versions[0], bits, execute);
    }
}
