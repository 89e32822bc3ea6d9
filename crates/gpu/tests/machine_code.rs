//! Compiled machine code whose lanes meet in divergent code, and atomics through generic addresses, against what an H200
//! leaves in memory.

use std::sync::Arc;

use crate::common::*;
use lockstep_frontend::sass::Image;
use lockstep_gpu::{Gpu, Launch, Mode};
use lockstep_isa::Module;

const CUBIN: &[u8] = include_bytes!("sass/meeting.sm_90.cubin");
const MODES: [Mode; 2] = [Mode::Functional, Mode::Timing];

fn module() -> Arc<Module> {
    let image = Image::read(CUBIN).expect("a cubin");
    Arc::new(image.link(&[]).expect("it has no variables"))
}

/// Runs one warp of a kernel with these words as arguments.
fn run(gpu: &mut Gpu, module: &Arc<Module>, kernel: &str, arguments: &[u8]) {
    let mut launch = Launch::new(module, kernel, [1, 1, 1], [32, 1, 1]).expect(kernel);
    launch.arguments.extend(arguments);
    let id = gpu.launch(launch).expect(kernel);
    gpu.run_until_complete(id)
        .unwrap_or_else(|error| panic!("{kernel}: {error}"));
}

#[test]
fn lanes_that_meet_in_divergent_code_compute_what_an_h200_computes() {
    let module = module();
    for mode in MODES {
        let mut gpu = gpu(&small(1), mode);
        let (mut launches, mut wrong) = (0, Vec::new());
        for line in include_str!("sass/meeting.tsv").lines() {
            if line.starts_with('#') {
                continue;
            }
            let fields: Vec<&str> = line.split('\t').collect();
            let [kernel, pattern, expected] = fields[..] else {
                panic!("`{line}` has not three fields");
            };
            let number: u64 = pattern.parse().expect("a pattern");
            let arguments = [number, BASE].map(u64::to_le_bytes).concat();
            run(&mut gpu, &module, kernel, &arguments);
            let words = words(&gpu, BASE, 32);
            let left: Vec<String> = words.iter().map(|word| format!("{word:x}")).collect();
            launches += 1;
            if left.join(" ") != expected {
                wrong.push(format!("{kernel} {pattern}: {left:?}"));
            }
        }
        assert_eq!(launches, 272);
        assert!(wrong.is_empty(), "{mode:?}: {}", wrong.join("\n"));
    }
}

/// Where a generic address points to makes no difference to a sum.
#[test]
fn generic_atomics_are_performed_once_in_shared_and_in_global_memory() {
    let module = module();
    let output = BASE + 4096;
    for mode in MODES {
        for which in [0u64, 1] {
            let mut gpu = gpu(&small(1), mode);
            let arguments = [which, BASE, output].map(u64::to_le_bytes).concat();
            run(&mut gpu, &module, "add_doubles", &arguments);
            let doubles = words(&gpu, output, 128);
            for group in 0..8 {
                let [low, high] = [0, 1].map(|half| u64::from(doubles[2 * group + half]));
                let sum = f64::from_bits(low | high << 32);
                let expected = (0..4).map(|lane| (1 + 4 * group + lane) as f64);
                assert_eq!(sum, expected.sum(), "{mode:?} {which} {group}");
            }
            run(&mut gpu, &module, "add_floats", &float_arguments(which));
            let floats = words(&gpu, output, 32);
            for (group, sum) in floats.iter().enumerate().take(8) {
                let expected = (0..4).map(|lane| (1 + 4 * group + lane) as f32);
                let sum = f32::from_bits(*sum);
                assert_eq!(sum, expected.sum(), "{mode:?} {which} {group}");
            }
            run(
                &mut gpu,
                &module,
                "wide_integers",
                &integer_arguments(which),
            );
            let integers = words(&gpu, output, 64);
            let word = |n: usize| u64::from(integers[2 * n]) | u64::from(integers[2 * n + 1]) << 32;
            let all = (1..=32u64).map(|lane| lane << 33);
            let expected = [
                all.clone().sum(),
                32 << 33,
                all.clone().fold(0, |or, x| or | x),
                all.fold(0, |xor, x| xor ^ x),
            ];
            assert_eq!([0, 1, 2, 3].map(word), expected, "{mode:?} {which}");
            assert_eq!(word(4), (1 << 33) + 1, "exchanged, then swapped");
        }
    }
}

/// Memory that nobody touched before.
fn float_arguments(which: u64) -> Vec<u8> {
    [which, BASE + 8192, BASE + 4096]
        .map(u64::to_le_bytes)
        .concat()
}

fn integer_arguments(which: u64) -> Vec<u8> {
    [which, BASE + 16384, BASE + 4096]
        .map(u64::to_le_bytes)
        .concat()
}
