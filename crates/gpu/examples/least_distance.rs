//! How close the compiler puts dependent instructions: `least_distance CUBIN...` prints, for each
//! kind of writer, register and reader, the smallest number of cycles that stall counts leave between
//! the two, how often the kind occurs, and an example.

use std::collections::{BTreeMap, BTreeSet};

use lockstep_frontend::sass::Image;
use lockstep_gpu::sm::front_end::hazards::Hazards;
use lockstep_gpu::sm::sub_core::control_bit_checker::{ControlBitChecker, Readiness};
use lockstep_isa::instruction::Flow;
use lockstep_isa::{Module, Operation};

#[derive(Default)]
struct Seen {
    distances: BTreeMap<u64, u64>,
    example: String,
}

fn main() {
    let mut seen: BTreeMap<String, Seen> = BTreeMap::new();
    for path in std::env::args().skip(1) {
        let Ok(bytes) = std::fs::read(&path) else {
            continue;
        };
        let linked = Image::read(&bytes).and_then(|image| {
            let addresses = vec![0x2000_0000_0000_u64; image.globals().len()];
            image.link(&addresses)
        });
        match linked {
            Ok(module) => scan(&module, &path, &mut seen),
            Err(error) => eprintln!("{path}: {error}"),
        }
    }
    for (kind, seen) in &seen {
        let total: u64 = seen.distances.values().sum();
        let least: Vec<String> = seen
            .distances
            .iter()
            .take(4)
            .map(|(distance, count)| format!("{distance}x{count}"))
            .collect();
        println!("{kind}\t{total}\t{}\t{}", least.join(" "), seen.example);
    }
}

fn scan(module: &Module, path: &str, seen: &mut BTreeMap<String, Seen>) {
    let hazards = Hazards::new(module.code.iter());
    let mut starts = BTreeSet::new();
    for instruction in module.code.iter() {
        if let Operation::Flow(Flow::Branch { target } | Flow::BranchOnDivergence { target, .. }) =
            instruction.operation
        {
            starts.insert(target);
        }
    }
    for (entry, _) in &module.functions {
        starts.insert(*entry);
    }
    let rows = module
        .kernels
        .iter()
        .map(|kernel| usize::from(kernel.warp_registers))
        .max()
        .unwrap_or(320);
    let mut control_bit_checker = ControlBitChecker::default();
    control_bit_checker.reset(rows.max(320), 16);
    for (index, instruction) in module.code.iter().enumerate() {
        let pc = index as u32;
        if starts.contains(&pc) {
            control_bit_checker.reset(rows.max(320), 16);
        }
        control_bit_checker.issue(
            pc,
            instruction,
            &hazards.get(index),
            !0,
            !0,
            &mut |dependence| {
                let guard = instruction.guard.register
                    == lockstep_isa::operand::PredicateRegister::Lanes(dependence.register)
                    && dependence.file
                        == lockstep_gpu::sm::sub_core::control_bit_checker::File::Predicate;
                let writer = &*module.text(dependence.writer).expect("a text");
                let reader = &*module.text(pc).expect("a text");
                let distance = match dependence.readiness {
                    Readiness::After(distance) => distance,
                    Readiness::Outstanding(_) => 0,
                    Readiness::Waited => return,
                };
                let kind = format!(
                    "{:?}\t{}\t{}\t{}{}",
                    dependence.file,
                    mnemonic(writer),
                    mnemonic(reader),
                    if guard { "guard" } else { "source" },
                    if matches!(dependence.readiness, Readiness::Outstanding(_)) {
                        " before its counter"
                    } else {
                        ""
                    }
                );
                let entry = seen.entry(kind).or_default();
                if entry
                    .distances
                    .keys()
                    .next()
                    .is_none_or(|least| distance < *least)
                {
                    entry.example = format!("{path}:{pc}: {writer} -> {reader}");
                }
                *entry.distances.entry(distance).or_default() += 1;
            },
        );
        if matches!(
            instruction.operation,
            Operation::Flow(Flow::Exit | Flow::Return { .. } | Flow::BranchIndirect { .. })
        ) {
            control_bit_checker.reset(rows.max(320), 16);
        }
    }
}

/// The operation with its modifiers, without guard and operands.
fn mnemonic(text: &str) -> &str {
    let text = text.trim_start();
    let text = match text.strip_prefix('@') {
        Some(rest) => rest.split_once(' ').map_or("", |(_, rest)| rest),
        None => text,
    };
    text.split([' ', ';']).next().unwrap_or("")
}
