//! Compiled machine code whose lanes meet in divergent code, and atomics through generic addresses, against what an H200
//! leaves in memory.

use std::sync::Arc;

use crate::common::*;
use lockstep_frontend::sass::Image;
use lockstep_gpu::{Gpu, Launch, Mode};
use lockstep_isa::Module;

const MEETING: &[u8] = include_bytes!("sass/meeting.sm_90.cubin");
const LEADERS: &[u8] = include_bytes!("sass/leaders.sm_90.cubin");
const MODES: [Mode; 2] = [Mode::Functional, Mode::Timing];

fn module(cubin: &[u8]) -> Arc<Module> {
    let image = Image::read(cubin).expect("a cubin");
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
    let module = module(MEETING);
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
    let module = module(MEETING);
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

/// Lanes that wait for a leader at a collective are recorded in the barrier at which it would wait for them, while
/// another spins for the lock that it holds.
#[test]
fn leaders_with_a_lock_come_to_the_collective_where_others_wait_for_them() {
    let module = module(LEADERS);
    let output = BASE + 4096;
    for mode in MODES {
        for leaders in [0x1u32, 0x1_0001, 0x1111_1111, 0x8000_0001] {
            let mut gpu = gpu(&small(1), mode);
            let rounds = 3;
            let mut arguments = [leaders, rounds].map(u32::to_le_bytes).concat();
            arguments.extend([BASE, output].map(u64::to_le_bytes).concat());
            run(&mut gpu, &module, "leaders", &arguments);
            assert_eq!(
                words(&gpu, output, 32),
                sums(rounds),
                "{mode:?} {leaders:#x}"
            );
            let added: u32 = (0..32)
                .filter(|lane| leaders >> lane & 1 == 1)
                .map(|lane| lane + 1)
                .sum();
            let behind_lock = words(&gpu, BASE, 2);
            assert_eq!(behind_lock, [0, rounds * added], "{mode:?} {leaders:#x}");
        }
    }
}

/// What `leaders` computes in each lane, whoever leads.
fn sums(rounds: u32) -> Vec<u32> {
    let mut sums = vec![0u32; 32];
    for round in 0..rounds {
        for (lane, sum) in (0u32..).zip(&mut sums).filter(|(lane, _)| lane % 5 != 0) {
            let mut n = lane % 5 + round;
            loop {
                n = if n & 1 == 1 { 3 * n + 1 } else { n >> 1 };
                *sum += n;
                if n == 1 {
                    break;
                }
            }
        }
        let before = sums.clone();
        for (lane, sum) in sums.iter_mut().enumerate() {
            let factor = if lane as u32 % 4 > round { 1 } else { 3 };
            *sum += factor * before[(lane + 1) % 32];
        }
    }
    sums
}

#[test]
fn lanes_at_one_warp_sync_wait_for_their_own_masks() {
    let module = module(LEADERS);
    let output = BASE + 4096;
    for mode in MODES {
        for size in [32u32, 16, 8, 2] {
            let mut gpu = gpu(&small(1), mode);
            let mut arguments = [size, 0].map(u32::to_le_bytes).concat();
            arguments.extend([BASE, output].map(u64::to_le_bytes).concat());
            run(&mut gpu, &module, "numbers", &arguments);
            let numbers = words(&gpu, output, 32);
            let groups = numbers.chunks(size as usize);
            assert!(
                groups
                    .clone()
                    .all(|group| group.iter().all(|number| *number == group[0])),
                "{mode:?} {size}: {numbers:?}"
            );
            let mut drawn: Vec<u32> = groups.map(|group| group[0]).collect();
            drawn.sort_unstable();
            assert_eq!(drawn, (1..=32 / size).collect::<Vec<_>>(), "{mode:?}");
        }
    }
}
