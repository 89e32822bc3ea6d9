//! The special function unit against checksums of an H200 over all inputs.
//!
//! `validation/hardware/h200/special_functions` has a sum for every 2^20 inputs of each function
//! (2^10 for those of 16 bits). Four blocks of each are checked here; all of them by
//! `cargo xtask validate --special-functions`, which runs the ignored test.

use lockstep_isa::semantics::{
    float16::Kind,
    float64,
    transcendental::{self as unit, ptx},
};
use std::{path::Path, thread};

/// Lanes that are computed at once.
const LANES: usize = 32;
type Lanes = [u32; LANES];

/// A recorded function, by its file, of inputs that are numbered.
struct Recorded {
    file: &'static str,
    function: fn(&Lanes) -> Lanes,
    /// Inputs of a block: 2 to this power.
    block: u32,
}

const fn recorded(file: &'static str, function: fn(&Lanes) -> Lanes) -> Recorded {
    Recorded {
        file,
        function,
        block: 20,
    }
}

const fn recorded16(file: &'static str, function: fn(&Lanes) -> Lanes) -> Recorded {
    Recorded {
        file,
        function,
        block: 10,
    }
}

const FUNCTIONS: &[Recorded] = &[
    recorded("mufu_rcp", unit::reciprocal),
    recorded("mufu_rsq", unit::reciprocal_square_root),
    recorded("mufu_sqrt", unit::square_root),
    recorded("mufu_ex2", unit::exponential),
    recorded("mufu_lg2", unit::logarithm),
    recorded("mufu_sin", unit::sine_of_turns),
    recorded("mufu_cos", unit::cosine_of_turns),
    recorded("mufu_tanh", unit::hyperbolic_tangent),
    recorded("mufu_rcp64h", unit::reciprocal_high),
    recorded("mufu_rsq64h", unit::reciprocal_square_root_high),
    recorded16("mufu_ex2_f16", |a| small(a, Kind::Half, unit::exponential)),
    recorded16("mufu_ex2_bf16", |a| {
        small(a, Kind::Brain, unit::exponential)
    }),
    recorded16("mufu_tanh_f16", |a| {
        small(a, Kind::Half, unit::hyperbolic_tangent)
    }),
    recorded16("mufu_tanh_bf16", |a| {
        small(a, Kind::Brain, unit::hyperbolic_tangent)
    }),
    recorded("rcp_approx", ptx::reciprocal_full),
    recorded("rsqrt_approx", ptx::reciprocal_square_root_full),
    recorded("sqrt_approx", ptx::square_root_full),
    recorded("ex2_approx", ptx::exponential_full),
    recorded("lg2_approx", ptx::logarithm_full),
    recorded("sin_approx", ptx::sine),
    recorded("cos_approx", ptx::cosine),
    recorded("div_approx", |a| quotient(a, ptx::divide)),
    recorded("div_approx_ftz", |a| quotient(a, ptx::divide_flushed)),
    recorded("div_full", |a| quotient(a, ptx::divide_full)),
    recorded("div_full_ftz", |a| quotient(a, ptx::divide_full_flushed)),
    recorded("rsqrt_approx_f64", |a| a.map(root_of_double)),
];

fn small(a: &Lanes, kind: Kind, function: fn(&Lanes) -> Lanes) -> Lanes {
    let wide = a.map(|half| kind.widen(half as u16));
    function(&wide).map(|result| u32::from(unit::narrow(kind, result)))
}

/// The operands of binary functions and doubles: the number of the input, mixed (splitmix64).
fn mixed(input: u32) -> u64 {
    let mut z = u64::from(input).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

fn quotient(a: &Lanes, function: fn(&Lanes, &Lanes) -> Lanes) -> Lanes {
    let operands = a.map(mixed);
    function(
        &operands.map(|pair| pair as u32),
        &operands.map(|pair| (pair >> 32) as u32),
    )
}

/// A positive double; both words of the result folded into one.
fn root_of_double(input: u32) -> u32 {
    let result = ptx::reciprocal_square_root64(mixed(input) & !(1 << 63), float64::fma);
    ((result >> 32) as u32).wrapping_mul(0x9e37_79b1) ^ result as u32
}

impl Recorded {
    fn sums(&self) -> Vec<u64> {
        let folder = "../../validation/hardware/h200/special_functions";
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join(folder)
            .join(self.file)
            .with_extension("sums");
        let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        let (words, rest) = bytes.as_chunks();
        assert!(rest.is_empty());
        words.iter().copied().map(u64::from_le_bytes).collect()
    }

    /// The sum over a block of (result + 1) × (an odd weight mixed from the input).
    fn sum(&self, block: u32) -> u64 {
        let mut sum = 0u64;
        for first in (0..1u32 << self.block).step_by(LANES) {
            let first = block << self.block | first;
            let inputs: Lanes = std::array::from_fn(|n| first + n as u32);
            let results = (self.function)(&inputs);
            for (input, result) in inputs.into_iter().zip(results) {
                let weight = u64::from(input).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let weight = (weight ^ weight >> 32) | 1;
                sum = sum.wrapping_add((u64::from(result) + 1).wrapping_mul(weight));
            }
        }
        sum
    }

    /// The blocks among those asked for whose sum is not the recorded one.
    fn differing(&self, blocks: impl Iterator<Item = u32>) -> Vec<u32> {
        let wanted = self.sums();
        blocks
            .filter(|&block| self.sum(block) != wanted[block as usize])
            .collect()
    }
}

/// Each block of `count` in turn to the next thread.
fn check(blocks: impl Fn(u32) -> Vec<u32>) {
    let threads = thread::available_parallelism().map_or(1, |n| n.get());
    let mut wrong = Vec::new();
    for function in FUNCTIONS {
        let asked = blocks(function.sums().len() as u32);
        let differing: Vec<u32> = thread::scope(|scope| {
            let parts: Vec<_> = (0..threads)
                .map(|n| asked.iter().copied().skip(n).step_by(threads))
                .map(|part| scope.spawn(move || function.differing(part)))
                .collect();
            let parts = parts.into_iter();
            parts.flat_map(|part| part.join().unwrap()).collect()
        });
        if !differing.is_empty() {
            let file = function.file;
            wrong.push(format!(
                "{file}: {} of {} blocks, {differing:x?}",
                differing.len(),
                asked.len()
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// 2^22 inputs: of both signs, around one, and where exponents are small or large.
#[test]
fn four_blocks_of_each_function_are_the_h200s() {
    check(|count| match count {
        64 => (0..64).collect(),
        _ => vec![0x2d5, 0x3fb, 0x40e, 0xbf3],
    });
}

#[test]
#[ignore = "all inputs take minutes: cargo xtask validate --special-functions"]
fn every_block_of_each_function_is_the_h200s() {
    check(|count| (0..count).collect());
}
