//! From a lane's semantics to a warp's: helpers that read operands, loop over 32 lanes and write
//! back. Binding tables name a helper and a lane function; the loop becomes vector code.
//!
//! A [`Semantics`] holds the same function compiled twice, for any host and for hosts with AVX2 and
//! FMA. Which one runs is chosen once, when a program is linked; results are equal.

use std::sync::OnceLock;

use super::{Modifiers, compare::Comparison, float32};
use crate::{
    instruction::{Compute, Instruction},
    lanes::Lanes,
    operands, operands64,
    warp_register::{LANES, Mask, WarpRegister},
};

/// What an instruction does to the registers of a warp.
#[derive(Clone, Copy, Debug)]
pub struct Semantics {
    /// For any host.
    pub portable: Compute,
    /// For hosts with AVX2 and FMA; called only where [`host_has_avx2`] holds.
    pub wide: Compute,
}

impl Semantics {
    /// The version for this host.
    #[must_use]
    pub fn choose(&self) -> Compute {
        if host_has_avx2() {
            self.wide
        } else {
            self.portable
        }
    }
}

/// Whether the host has AVX2 and FMA.
#[must_use]
pub fn host_has_avx2() -> bool {
    static WIDE: OnceLock<bool> = OnceLock::new();
    *WIDE.get_or_init(|| {
        #[cfg(target_arch = "x86_64")]
        {
            std::arch::is_x86_feature_detected!("avx2")
                && std::arch::is_x86_feature_detected!("fma")
                && std::arch::is_x86_feature_detected!("bmi2")
                && std::arch::is_x86_feature_detected!("lzcnt")
                && std::arch::is_x86_feature_detected!("popcnt")
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            false
        }
    })
}

/// Builds [`Semantics`]: `semantics!(binary(integer::add))` calls `binary(lanes, instruction,
/// integer::add)`. With two functions, `portable; wide`, the second serves hosts with FMA.
#[macro_export]
macro_rules! semantics {
    ($helper:path; $portable:expr; $wide:expr) => {{
        fn portable(lanes: &mut $crate::Lanes<'_>, instruction: &$crate::Instruction) {
            $helper(lanes, instruction, $portable);
        }
        #[cfg_attr(
            target_arch = "x86_64",
            target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")
        )]
        fn wide(lanes: &mut $crate::Lanes<'_>, instruction: &$crate::Instruction) {
            $helper(lanes, instruction, $wide);
        }
        $crate::semantics!(@pair portable, wide)
    }};
    ($helper:path; $function:expr) => {
        $crate::semantics!($helper; $function; $function)
    };
    ($whole:expr) => {{
        fn portable(lanes: &mut $crate::Lanes<'_>, instruction: &$crate::Instruction) {
            $whole(lanes, instruction);
        }
        #[cfg_attr(
            target_arch = "x86_64",
            target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")
        )]
        fn wide(lanes: &mut $crate::Lanes<'_>, instruction: &$crate::Instruction) {
            $whole(lanes, instruction);
        }
        $crate::semantics!(@pair portable, wide)
    }};
    (@pair $portable:ident, $wide:ident) => {{
        type Plain = fn(&mut $crate::Lanes<'_>, &$crate::Instruction);
        type Featured = unsafe fn(&mut $crate::Lanes<'_>, &$crate::Instruction);
        let featured: Featured = $wide;
        $crate::semantics::lane_loops::Semantics {
            portable: $portable,
            // SAFETY: both are plain function pointers of one signature, and `Semantics::choose`
            // hands the wide one out only after it has found the features on this host.
            wide: unsafe { ::core::mem::transmute::<Featured, Plain>(featured) },
        }
    }};
}

/// A warp register made lane by lane. A plain loop, because it must become part of its caller whole: a
/// closure left behind would be compiled without the host's vectors.
#[inline(always)]
#[must_use]
pub fn map_lanes(f: impl Fn(usize) -> u32) -> WarpRegister {
    let mut row = WarpRegister::ZERO;
    for (n, word) in row.0.iter_mut().enumerate() {
        *word = f(n);
    }
    row
}

/// 64-bit values made lane by lane.
#[inline(always)]
#[must_use]
pub fn map_lanes64(f: impl Fn(usize) -> u64) -> [u64; LANES] {
    let mut longs = [0; LANES];
    for (n, long) in longs.iter_mut().enumerate() {
        *long = f(n);
    }
    longs
}

/// One 32-bit integer in, one out.
#[inline(always)]
pub fn unary(lanes: &mut Lanes<'_>, i: &Instruction, f: impl Fn(u32) -> u32) {
    operands!(lanes, i; a = integer_at 0);
    let result = map_lanes(|n| f(a.0[n]));
    lanes.write(i.destination, 0, &result);
}

/// Two 32-bit integers in, one out.
#[inline(always)]
pub fn binary(lanes: &mut Lanes<'_>, i: &Instruction, f: impl Fn(u32, u32) -> u32) {
    operands!(lanes, i; a = integer_at 0, b = integer_at 1);
    let result = map_lanes(|n| f(a.0[n], b.0[n]));
    lanes.write(i.destination, 0, &result);
}

/// Three 32-bit integers in, one out.
#[inline(always)]
pub fn ternary(lanes: &mut Lanes<'_>, i: &Instruction, f: impl Fn(u32, u32, u32) -> u32) {
    operands!(lanes, i; a = integer_at 0, b = integer_at 1, c = integer_at 2);
    let result = map_lanes(|n| f(a.0[n], b.0[n], c.0[n]));
    lanes.write(i.destination, 0, &result);
}

/// Four 32-bit integers in, one out.
#[inline(always)]
pub fn quaternary(lanes: &mut Lanes<'_>, i: &Instruction, f: impl Fn([u32; 4]) -> u32) {
    let [a, b, c, d] = i.sources.map(|source| lanes.integer(source));
    let result = map_lanes(|n| f([a.0[n], b.0[n], c.0[n], d.0[n]]));
    lanes.write(i.destination, 0, &result);
}

/// One 64-bit integer in, one out.
#[inline(always)]
pub fn unary64(lanes: &mut Lanes<'_>, i: &Instruction, f: impl Fn(u64) -> u64) {
    operands64!(lanes, i; a = integer64_at 0);
    lanes.write64(i.destination, &map_lanes64(|n| f(a.at(n))));
}

/// Two 64-bit integers in, one out.
#[inline(always)]
pub fn binary64(lanes: &mut Lanes<'_>, i: &Instruction, f: impl Fn(u64, u64) -> u64) {
    operands64!(lanes, i; a = integer64_at 0, b = integer64_at 1);
    lanes.write64(i.destination, &map_lanes64(|n| f(a.at(n), b.at(n))));
}

/// Three 64-bit integers in, one out.
#[inline(always)]
pub fn ternary64(lanes: &mut Lanes<'_>, i: &Instruction, f: impl Fn(u64, u64, u64) -> u64) {
    operands64!(lanes, i; a = integer64_at 0, b = integer64_at 1, c = integer64_at 2);
    lanes.write64(
        i.destination,
        &map_lanes64(|n| f(a.at(n), b.at(n), c.at(n))),
    );
}

/// One 32-bit word in, a 64-bit one out.
#[inline(always)]
pub fn widen(lanes: &mut Lanes<'_>, i: &Instruction, f: impl Fn(u32) -> u64) {
    operands!(lanes, i; a = integer_at 0);
    lanes.write64(i.destination, &map_lanes64(|n| f(a.0[n])));
}

/// One 64-bit word in, a 32-bit one out.
#[inline(always)]
pub fn narrow(lanes: &mut Lanes<'_>, i: &Instruction, f: impl Fn(u64) -> u32) {
    operands64!(lanes, i; a = integer64_at 0);
    lanes.write(i.destination, 0, &map_lanes(|n| f(a.at(n))));
}

/// Two 32-bit words in, a 64-bit one out.
#[inline(always)]
pub fn binary_wide(lanes: &mut Lanes<'_>, i: &Instruction, f: impl Fn(u32, u32) -> u64) {
    operands!(lanes, i; a = integer_at 0, b = integer_at 1);
    lanes.write64(i.destination, &map_lanes64(|n| f(a.0[n], b.0[n])));
}

/// Two 32-bit words and a 64-bit one in, a 64-bit one out.
#[inline(always)]
pub fn ternary_wide(lanes: &mut Lanes<'_>, i: &Instruction, f: impl Fn(u32, u32, u64) -> u64) {
    operands!(lanes, i; a = integer_at 0, b = integer_at 1);
    operands64!(lanes, i; c = integer64_at 2);
    lanes.write64(i.destination, &map_lanes64(|n| f(a.0[n], b.0[n], c.at(n))));
}

/// A 64-bit word and a 32-bit one in, a 64-bit one out.
#[inline(always)]
pub fn shift64(lanes: &mut Lanes<'_>, i: &Instruction, f: impl Fn(u64, u32) -> u64) {
    operands64!(lanes, i; a = integer64_at 0);
    operands!(lanes, i; b = integer_at 1);
    lanes.write64(i.destination, &map_lanes64(|n| f(a.at(n), b.0[n])));
}

/// A 64-bit word and two 32-bit ones in, a 64-bit one out.
#[inline(always)]
pub fn field64(lanes: &mut Lanes<'_>, i: &Instruction, f: impl Fn(u64, u32, u32) -> u64) {
    operands64!(lanes, i; a = integer64_at 0);
    operands!(lanes, i; b = integer_at 1, c = integer_at 2);
    lanes.write64(i.destination, &map_lanes64(|n| f(a.at(n), b.0[n], c.0[n])));
}

/// Two 64-bit words and two 32-bit ones in, a 64-bit one out.
#[inline(always)]
pub fn insert64(lanes: &mut Lanes<'_>, i: &Instruction, f: impl Fn(u64, u64, u32, u32) -> u64) {
    operands64!(lanes, i; a = integer64_at 0, b = integer64_at 1);
    operands!(lanes, i; c = integer_at 2, d = integer_at 3);
    lanes.write64(
        i.destination,
        &map_lanes64(|n| f(a.at(n), b.at(n), c.0[n], d.0[n])),
    );
}

/// A lane mask from a test of each lane.
#[inline(always)]
pub fn mask_of(test: impl Fn(usize) -> bool) -> Mask {
    let mut mask = 0;
    for n in 0..LANES {
        mask |= Mask::from(test(n)) << n;
    }
    mask
}

/// Results of single precision, finished: flushed, clamped.
#[inline(always)]
fn finish<const FLUSH: bool, const SATURATE: bool>(value: u32) -> u32 {
    let value = if FLUSH { float32::flush(value) } else { value };
    if SATURATE {
        float32::saturate(value)
    } else {
        value
    }
}

#[inline(always)]
fn enter<const FLUSH: bool>(value: u32) -> u32 {
    if FLUSH { float32::flush(value) } else { value }
}

/// Calls `$run::<FLUSH, SATURATE>` for the modifiers of an instruction.
macro_rules! finished {
    ($modifiers:expr, $lanes:expr, $i:expr, $run:ident, $f:expr) => {{
        let modifiers = $modifiers;
        match (modifiers.flush(), modifiers.saturate()) {
            (false, false) => $run::<false, false>($lanes, $i, $f),
            (true, false) => $run::<true, false>($lanes, $i, $f),
            (false, true) => $run::<false, true>($lanes, $i, $f),
            (true, true) => $run::<true, true>($lanes, $i, $f),
        }
    }};
}

#[inline(always)]
fn float_unary_as<const FLUSH: bool, const SATURATE: bool>(
    lanes: &mut Lanes<'_>,
    i: &Instruction,
    f: impl Fn(u32) -> u32,
) {
    operands!(lanes, i; a = float_at 0);
    let result = map_lanes(|n| finish::<FLUSH, SATURATE>(f(enter::<FLUSH>(a.0[n]))));
    lanes.write(i.destination, 0, &result);
}

#[inline(always)]
fn float_binary_as<const FLUSH: bool, const SATURATE: bool>(
    lanes: &mut Lanes<'_>,
    i: &Instruction,
    f: impl Fn(u32, u32) -> u32,
) {
    operands!(lanes, i; a = float_at 0, b = float_at 1);
    let result =
        map_lanes(|n| finish::<FLUSH, SATURATE>(f(enter::<FLUSH>(a.0[n]), enter::<FLUSH>(b.0[n]))));
    lanes.write(i.destination, 0, &result);
}

#[inline(always)]
fn float_ternary_as<const FLUSH: bool, const SATURATE: bool>(
    lanes: &mut Lanes<'_>,
    i: &Instruction,
    f: impl Fn(u32, u32, u32) -> u32,
) {
    operands!(lanes, i; a = float_at 0, b = float_at 1, c = float_at 2);
    let result = map_lanes(|n| {
        let (x, y) = (enter::<FLUSH>(a.0[n]), enter::<FLUSH>(b.0[n]));
        finish::<FLUSH, SATURATE>(f(x, y, enter::<FLUSH>(c.0[n])))
    });
    lanes.write(i.destination, 0, &result);
}

/// One float in, one out, `.ftz` and `.sat` as the modifiers say.
#[inline(always)]
pub fn float_unary(lanes: &mut Lanes<'_>, i: &Instruction, f: impl Fn(u32) -> u32) {
    finished!(Modifiers(i.modifiers), lanes, i, float_unary_as, f);
}

/// Two floats in, one out, `.ftz` and `.sat` as the modifiers say.
#[inline(always)]
pub fn float_binary(lanes: &mut Lanes<'_>, i: &Instruction, f: impl Fn(u32, u32) -> u32) {
    finished!(Modifiers(i.modifiers), lanes, i, float_binary_as, f);
}

/// Three floats in, one out, `.ftz` and `.sat` as the modifiers say.
#[inline(always)]
pub fn float_ternary(lanes: &mut Lanes<'_>, i: &Instruction, f: impl Fn(u32, u32, u32) -> u32) {
    finished!(Modifiers(i.modifiers), lanes, i, float_ternary_as, f);
}

/// One double in, one out.
#[inline(always)]
pub fn double_unary(lanes: &mut Lanes<'_>, i: &Instruction, f: impl Fn(u64) -> u64) {
    operands64!(lanes, i; a = float64_at 0);
    lanes.write64(i.destination, &map_lanes64(|n| f(a.at(n))));
}

/// Two doubles in, one out.
#[inline(always)]
pub fn double_binary(lanes: &mut Lanes<'_>, i: &Instruction, f: impl Fn(u64, u64) -> u64) {
    operands64!(lanes, i; a = float64_at 0, b = float64_at 1);
    lanes.write64(i.destination, &map_lanes64(|n| f(a.at(n), b.at(n))));
}

/// Three doubles in, one out.
#[inline(always)]
pub fn double_ternary(lanes: &mut Lanes<'_>, i: &Instruction, f: impl Fn(u64, u64, u64) -> u64) {
    operands64!(lanes, i; a = float64_at 0, b = float64_at 1, c = float64_at 2);
    lanes.write64(
        i.destination,
        &map_lanes64(|n| f(a.at(n), b.at(n), c.at(n))),
    );
}

/// Lanes where `comparison` holds between two registers of ordered values.
#[inline(always)]
pub fn compare_lanes<T: PartialOrd + Copy>(
    comparison: Comparison,
    a: impl Fn(usize) -> T,
    b: impl Fn(usize) -> T,
) -> Mask {
    // The comparison is the same for all lanes: choosing it outside leaves a plain loop.
    match comparison {
        Comparison::False => 0,
        Comparison::True => Mask::MAX,
        Comparison::Less => mask_of(|n| a(n) < b(n)),
        Comparison::Equal => mask_of(|n| a(n) == b(n)),
        Comparison::LessEqual => mask_of(|n| a(n) <= b(n)),
        Comparison::Greater => mask_of(|n| a(n) > b(n)),
        Comparison::GreaterEqual => mask_of(|n| a(n) >= b(n)),
        Comparison::NotEqual => mask_of(|n| (a(n) < b(n)) | (a(n) > b(n))),
        Comparison::NotEqualUnordered => mask_of(|n| a(n) != b(n)),
        other => mask_of(|n| super::compare::compare(other, a(n), b(n))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Convergence, Operand,
        instruction::{Operation, SchedulingInfo},
        lanes::{ConstantBanks, Identity},
        semantics::integer,
    };
    use proptest::prelude::*;

    /// Runs semantics on `sources` in registers 0 and 1, 2 and 3, …; gives registers 8 and 9.
    fn run(
        compute: Compute,
        modifiers: u64,
        sources: &[[u64; LANES]],
        execute: Mask,
    ) -> [WarpRegister; 2] {
        let mut registers = vec![WarpRegister::splat(7); 10];
        let mut instruction =
            Instruction::new(Operation::Compute(compute), SchedulingInfo::default());
        for (index, values) in sources.iter().enumerate() {
            registers[2 * index] = WarpRegister(values.map(|value| value as u32));
            registers[2 * index + 1] = WarpRegister(values.map(|value| (value >> 32) as u32));
            instruction.sources[index] = Operand::Register(2 * index as u16).into();
        }
        instruction.destination = Some(8);
        instruction.modifiers = modifiers;
        let mut lanes = Lanes {
            registers: &mut registers,
            predicates: &mut [],
            convergence: &mut Convergence::new(Mask::MAX, 0, 0, true),
            constants: &ConstantBanks::default(),
            identity: &Identity::default(),
            active: Mask::MAX,
            execute,
        };
        compute(&mut lanes, &instruction);
        [registers[8], registers[9]]
    }

    #[test]
    fn lanes_that_do_not_execute_keep_their_values() {
        let add = semantics!(binary; integer::add);
        let values: [u64; LANES] = std::array::from_fn(|n| n as u64);
        let [row, _] = run(add.choose(), 0, &[values, values], 0xffff);
        assert_eq!((row.0[3], row.0[15], row.0[16]), (6, 30, 7));
    }

    proptest! {
        /// Results do not depend on the host's vector width.
        #[test]
        fn both_versions_agree(
            a in prop::array::uniform32(any::<u64>()),
            b in prop::array::uniform32(any::<u64>()),
            c in prop::array::uniform32(any::<u64>()),
            execute: Mask,
            flush: bool,
        ) {
            let all = [
                semantics!(ternary; integer::mad_low),
                semantics!(float_ternary; float32::fma; float32::fma_host),
                semantics!(float_binary; float32::add),
                semantics!(double_ternary; super::super::float64::fma; super::super::float64::fma_host),
                semantics!(ternary64; |a: u64, b, c| a.wrapping_mul(b) ^ c),
            ];
            let modifiers = if flush { Modifiers::FLUSH } else { 0 };
            for semantics in all {
                let sources = [a, b, c];
                let portable = run(semantics.portable, modifiers, &sources, execute);
                prop_assert_eq!(portable, run(semantics.choose(), modifiers, &sources, execute));
            }
        }
    }
}
