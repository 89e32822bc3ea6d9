//! Floating point of SASS on the registers of a warp: FP32, FP64 and pairs of FP16 or BF16.

use super::integer::store_comparison;
use crate::{
    instruction::Instruction,
    lanes::Lanes,
    operand::{Halves, Operand, Source},
    operands, operands64,
    semantics::{
        Modifiers, float16,
        float16::Kind,
        float32, float64,
        lane_loops::{
            compare_lanes, double_binary, double_ternary, float_binary, float_ternary, map_lanes,
            map_lanes64, mask_of,
        },
        soft::Rounding,
    },
    warp_register::{FULL, WarpRegister},
};

/// Pairs are BF16 rather than FP16.
pub const BRAIN: u64 = 1 << Modifiers::FREE;
/// Results of pairs are one FP32 value (`.F32` accumulator forms).
pub const SINGLE_RESULT: u64 = 1 << (Modifiers::FREE + 1);
/// `HSETP2.H_AND` gives one predicate for both halves.
pub const BOTH_HALVES: u64 = 1 << (Modifiers::FREE + 2);
/// `DSETP.MIN`: the first operand is the smaller one.
pub const SMALLER: u64 = 1 << (Modifiers::FREE + 8);
/// `DSETP.MAX`: the first operand is the larger one.
pub const LARGER: u64 = 1 << (Modifiers::FREE + 9);
/// `HFMA2.OOB`: zero where a factor is the NaN that tensor copies put outside a tensor.
pub const OUT_OF_BOUNDS: u64 = 1 << (Modifiers::FREE + 10);
/// `FMNMX.IS_A`: predicates say whether the result is the first operand as it was given.
pub const IS_A: u64 = 1 << (Modifiers::FREE + 11);
/// `FMUL.M8` and kin: the product is scaled by a power of two.
pub const SCALE: u32 = Modifiers::FREE + 4;
/// Powers of two by which `FMUL` scales its product, in the order of [`SCALE`]; the first is none.
pub const SCALES: [&str; 7] = ["", "D8", "D4", "D2", "M2", "M4", "M8"];
/// A product with zero is zero, whatever the other factor (`.FMZ`).
pub const ZERO_WINS: u64 = 1 << (Modifiers::FREE + 3);

/// `FADD`, rounding by the modifiers.
#[inline(always)]
pub fn add(lanes: &mut Lanes<'_>, i: &Instruction) {
    match Modifiers(i.modifiers).rounding() {
        Rounding::Nearest => float_binary(lanes, i, float32::add),
        rounding => float_binary(lanes, i, |a, b| float32::add_rounded(a, b, rounding)),
    }
}

/// `FMUL`.
#[inline(always)]
pub fn multiply(lanes: &mut Lanes<'_>, i: &Instruction) {
    if i.modifiers & (ZERO_WINS | 7 << SCALE) != 0 {
        return multiply_scaled(lanes, i);
    }
    match Modifiers(i.modifiers).rounding() {
        Rounding::Nearest => float_binary(lanes, i, float32::mul),
        rounding => float_binary(lanes, i, |a, b| float32::mul_rounded(a, b, rounding)),
    }
}

/// `FFMA` for any host.
#[inline(always)]
pub fn fused(lanes: &mut Lanes<'_>, i: &Instruction) {
    if i.modifiers & ZERO_WINS != 0 {
        return fused_with_zero(lanes, i);
    }
    match Modifiers(i.modifiers).rounding() {
        Rounding::Nearest => float_ternary(lanes, i, float32::fma),
        rounding => float_ternary(lanes, i, |a, b, c| float32::fma_rounded(a, b, c, rounding)),
    }
}

/// `FFMA` for hosts with a fused multiply-add of their own.
#[inline(always)]
pub fn fused_host(lanes: &mut Lanes<'_>, i: &Instruction) {
    if i.modifiers & ZERO_WINS != 0 {
        return fused_with_zero(lanes, i);
    }
    match Modifiers(i.modifiers).rounding() {
        Rounding::Nearest => float_ternary(lanes, i, float32::fma_host),
        rounding => float_ternary(lanes, i, |a, b, c| float32::fma_rounded(a, b, c, rounding)),
    }
}

/// `FMNMX`: the smaller where the predicate holds, else the larger.
#[inline(always)]
pub fn minimum_maximum(lanes: &mut Lanes<'_>, i: &Instruction) {
    let modifiers = Modifiers(i.modifiers);
    let smaller = lanes.predicate(i.predicates[0]);
    operands!(lanes, i; a = float_at 0, b = float_at 1);
    let nan = modifiers.has(Modifiers::NAN);
    if !modifiers.flush()
        && !modifiers.has(Modifiers::XOR_SIGN)
        && !modifiers.has(IS_A)
        && (smaller == 0 || smaller == FULL)
    {
        // One question for all lanes, as compilers write it.
        let result = if smaller == FULL {
            map_lanes(|n| float32::min(a.0[n], b.0[n], nan))
        } else {
            map_lanes(|n| float32::max(a.0[n], b.0[n], nan))
        };
        return lanes.write(i.destination, 0, &result);
    }
    let [first, second] = [0, 1].map(|n| lanes.raw(i.sources[n].operand, 0));
    let flush = |x| {
        if modifiers.flush() {
            float32::flush(x)
        } else {
            x
        }
    };
    let choose = |n: usize| {
        let (x, y) = (flush(a.0[n]), flush(b.0[n]));
        if smaller >> n & 1 == 1 {
            float32::min(x, y, nan)
        } else {
            float32::max(x, y, nan)
        }
    };
    let result = map_lanes(|n| {
        let value = choose(n);
        if modifiers.has(Modifiers::XOR_SIGN) {
            // The signs are those of the registers, before negation and magnitude.
            float32::with_xor_sign(float32::abs(value), first.0[n], second.0[n])
        } else {
            value
        }
    });
    if modifiers.has(IS_A) {
        let not_a_number = |bits: u32| f32::from_bits(bits).is_nan();
        let taken = mask_of(|n| {
            let chosen = choose(n);
            let first = chosen == flush(a.0[n]) && result.0[n] == a.0[n];
            first || not_a_number(chosen) && not_a_number(a.0[n])
        });
        lanes.set_predicate(i.predicate_destinations[0], taken);
    }
    lanes.write(i.destination, 0, &result);
}

/// `FSETP`.
#[inline(always)]
pub fn compare(lanes: &mut Lanes<'_>, i: &Instruction) {
    let holds = comparison(lanes, i);
    store_comparison(lanes, i, holds);
}

#[inline(always)]
fn comparison(lanes: &Lanes<'_>, i: &Instruction) -> u32 {
    let modifiers = Modifiers(i.modifiers);
    operands!(lanes, i; a = float_at 0, b = float_at 1);
    if modifiers.flush() {
        return compare_lanes(
            modifiers.comparison(),
            |n| f32::from_bits(float32::flush(a.0[n])),
            |n| f32::from_bits(float32::flush(b.0[n])),
        );
    }
    compare_lanes(
        modifiers.comparison(),
        |n| f32::from_bits(a.0[n]),
        |n| f32::from_bits(b.0[n]),
    )
}

/// `FSET`: a comparison as a word, all ones or 1.0 (`.BF`).
#[inline(always)]
pub fn set(lanes: &mut Lanes<'_>, i: &Instruction) {
    let holds = comparison(lanes, i);
    let modifiers = Modifiers(i.modifiers);
    let joined = modifiers
        .boolean()
        .join(holds, lanes.predicate(i.predicates[0]));
    let yes = if modifiers.has(SINGLE_RESULT) {
        1f32.to_bits()
    } else {
        u32::MAX
    };
    let row = map_lanes(|n| (joined >> n & 1).wrapping_neg() & yes);
    lanes.write(i.destination, 0, &row);
}

/// `FCHK.DIVIDE`: true where the fast division `a / b` may be wrong: an operand or the quotient
/// is near the ends of the exponent range, or not a number.
#[inline(always)]
pub fn check_divide(lanes: &mut Lanes<'_>, i: &Instruction) {
    operands!(lanes, i; a = float_at 0, b = float_at 1);
    let exponent = |word: u32| (word >> 23 & 0xff) as i32;
    let slow = mask_of(|n| {
        let (x, y) = (exponent(a.0[n]), exponent(b.0[n]));
        let difference = x - y;
        // As an H200 answers at every bound.
        x == 0xff || x <= 24 || y <= 1 || y >= 252 || !(-124..127).contains(&difference)
    });
    lanes.set_predicate(i.predicate_destinations[0], slow);
}

/// `DADD`.
#[inline(always)]
pub fn double_add(lanes: &mut Lanes<'_>, i: &Instruction) {
    match Modifiers(i.modifiers).rounding() {
        Rounding::Nearest => double_binary(lanes, i, float64::add),
        rounding => double_binary(lanes, i, |a, b| float64::add_rounded(a, b, rounding)),
    }
}

/// `DMUL`.
#[inline(always)]
pub fn double_multiply(lanes: &mut Lanes<'_>, i: &Instruction) {
    match Modifiers(i.modifiers).rounding() {
        Rounding::Nearest => double_binary(lanes, i, float64::mul),
        rounding => double_binary(lanes, i, |a, b| float64::mul_rounded(a, b, rounding)),
    }
}

/// `DFMA` for any host.
#[inline(always)]
pub fn double_fused(lanes: &mut Lanes<'_>, i: &Instruction) {
    double_three(lanes, i, float64::fma);
}

/// `DFMA` for hosts with a fused multiply-add of their own.
#[inline(always)]
pub fn double_fused_host(lanes: &mut Lanes<'_>, i: &Instruction) {
    double_three(lanes, i, float64::fma_host);
}

#[inline(always)]
fn double_three(lanes: &mut Lanes<'_>, i: &Instruction, nearest: impl Fn(u64, u64, u64) -> u64) {
    match Modifiers(i.modifiers).rounding() {
        Rounding::Nearest => double_ternary(lanes, i, nearest),
        rounding => double_ternary(lanes, i, |a, b, c| float64::fma_rounded(a, b, c, rounding)),
    }
}

/// `DSETP`. `MIN` and `MAX` say whether the first operand is the one to take (of equals the smaller, not the larger), and
/// in the second destination, whatever the other predicate, whether neither is a number.
#[inline(always)]
pub fn double_compare(lanes: &mut Lanes<'_>, i: &Instruction) {
    operands64!(lanes, i; a = float64_at 0, b = float64_at 1);
    let modifiers = Modifiers(i.modifiers);
    if modifiers.has(SMALLER) || modifiers.has(LARGER) {
        let not_a_number = |bits: u64| f64::from_bits(bits).is_nan();
        let first = mask_of(|n| {
            let (x, y) = (a.at(n), b.at(n));
            let takes = if modifiers.has(SMALLER) {
                float64::min(x, y) == x
            } else {
                float64::max(x, y) == x && x != y
            };
            !not_a_number(x) && (takes || not_a_number(y))
        });
        let neither = mask_of(|n| not_a_number(a.at(n)) && not_a_number(b.at(n)));
        let other = lanes.predicate(i.predicates[0]);
        let joined = modifiers.boolean().join(first, other);
        lanes.set_predicate(i.predicate_destinations[0], joined);
        lanes.set_predicate(i.predicate_destinations[1], neither);
        return;
    }
    let comparison = modifiers.comparison();
    let holds = compare_lanes(
        comparison,
        |n| f64::from_bits(a.at(n)),
        |n| f64::from_bits(b.at(n)),
    );
    store_comparison(lanes, i, holds);
}

/// `DMNMX`.
#[inline(always)]
pub fn double_minimum_maximum(lanes: &mut Lanes<'_>, i: &Instruction) {
    let smaller = lanes.predicate(i.predicates[0]);
    operands64!(lanes, i; a = float64_at 0, b = float64_at 1);
    let values = map_lanes64(|n| {
        if smaller >> n & 1 == 1 {
            float64::min(a.at(n), b.at(n))
        } else {
            float64::max(a.at(n), b.at(n))
        }
    });
    lanes.write64(i.destination, &values);
}

fn kind(i: &Instruction) -> Kind {
    if i.modifiers & BRAIN != 0 {
        Kind::Brain
    } else {
        Kind::Half
    }
}

/// A packed source, or one FP32 value narrowed into both halves.
#[inline(always)]
fn packed(lanes: &Lanes<'_>, source: Source, kind: Kind) -> WarpRegister {
    let row = lanes.halves(Source {
        negate: false,
        absolute: false,
        ..source
    });
    let mut row = if source.halves == Halves::Float32 {
        WarpRegister(row.0.map(|word| {
            let half = kind.narrow(word);
            float16::pack([half, half])
        }))
    } else {
        row
    };
    if source.absolute {
        row.0.iter_mut().for_each(|word| *word &= 0x7fff_7fff);
    }
    if source.negate {
        row.0.iter_mut().for_each(|word| *word ^= 0x8000_8000);
    }
    row
}

#[inline(always)]
fn pairwise(
    lanes: &mut Lanes<'_>,
    i: &Instruction,
    count: usize,
    f: impl Fn(Kind, [u16; 3]) -> u16,
) {
    let modifiers = Modifiers(i.modifiers);
    let kind = kind(i);
    let mut rows = [WarpRegister::ZERO; 3];
    for (row, source) in rows.iter_mut().zip(&i.sources).take(count) {
        *row = packed(lanes, *source, kind);
    }
    let plain = !modifiers.flush() && !modifiers.saturate() && !modifiers.has(Modifiers::RELU);
    let result = if !plain {
        let enter = |half: u16| {
            if modifiers.flush() && kind == Kind::Half && half & 0x7c00 == 0 {
                half & 0x8000
            } else {
                half
            }
        };
        let finish = |half: u16| {
            let value = enter(half);
            let value = if modifiers.saturate() {
                kind.saturate(value)
            } else {
                value
            };
            if modifiers.has(Modifiers::RELU) {
                kind.relu(value)
            } else {
                value
            }
        };
        map_lanes(|n| both_halves(&rows, n, |values| finish(f(kind, values.map(enter)))))
    } else if !i
        .sources
        .iter()
        .any(|source| matches!(source.operand, Operand::Register(_)))
    {
        // One lane speaks for all.
        WarpRegister::splat(both_halves(&rows, 0, |values| f(kind, values)))
    } else if kind == Kind::Half {
        // The format is known to the loop, and nothing is left to ask in it.
        map_lanes(|n| both_halves(&rows, n, |values| f(Kind::Half, values)))
    } else {
        map_lanes(|n| both_halves(&rows, n, |values| f(Kind::Brain, values)))
    };
    lanes.write(i.destination, 0, &result);
}

/// A function of the low halves of a lane, and of its high halves.
#[inline(always)]
fn both_halves(rows: &[WarpRegister; 3], n: usize, f: impl Fn([u16; 3]) -> u16) -> u32 {
    let [a, b, c] = [rows[0].0[n], rows[1].0[n], rows[2].0[n]];
    let low = f([a as u16, b as u16, c as u16]);
    let high = f([(a >> 16) as u16, (b >> 16) as u16, (c >> 16) as u16]);
    float16::pack([low, high])
}

/// `HADD2`.
#[inline(always)]
pub fn half_add(lanes: &mut Lanes<'_>, i: &Instruction) {
    if i.modifiers & SINGLE_RESULT != 0 {
        return half_to_single(lanes, i);
    }
    pairwise(lanes, i, 2, |kind, [a, b, _]| kind.add(a, b));
}

/// `HADD2.F32`: the chosen half of `a`, plus `b`, as FP32; used to widen.
#[inline(always)]
fn half_to_single(lanes: &mut Lanes<'_>, i: &Instruction) {
    let kind = kind(i);
    let (a, b) = (
        packed(lanes, i.sources[0], kind),
        packed(lanes, i.sources[1], kind),
    );
    let row = map_lanes(|n| {
        let wide = |word: u32| kind.widen(float16::unpack(word)[0]);
        float32::add(wide(a.0[n]), wide(b.0[n]))
    });
    lanes.write(i.destination, 0, &row);
}

/// `HMUL2`.
#[inline(always)]
pub fn half_multiply(lanes: &mut Lanes<'_>, i: &Instruction) {
    pairwise(lanes, i, 2, |kind, [a, b, _]| kind.mul(a, b));
}

/// `HFMA2`.
#[inline(always)]
pub fn half_fused(lanes: &mut Lanes<'_>, i: &Instruction) {
    if i.modifiers & OUT_OF_BOUNDS != 0 {
        return pairwise(lanes, i, 3, |kind, [a, b, c]| kind.fma_in_bounds(a, b, c));
    }
    pairwise(lanes, i, 3, |kind, [a, b, c]| kind.fma(a, b, c));
}

/// What an `HFMA2` gives that reads no register: compilers write literals this way.
pub fn half_literal(i: &Instruction) -> Option<u32> {
    let modifiers = Modifiers(i.modifiers);
    let special = Modifiers::RELU | OUT_OF_BOUNDS;
    let plain = !modifiers.flush() && !modifiers.saturate() && !modifiers.has(special);
    let mut values = [0; 3];
    for (value, source) in values.iter_mut().zip(&i.sources) {
        *value = match source.operand {
            Operand::None => 0,
            Operand::Immediate(word) => word as u32,
            _ => return None,
        };
        if source.halves != Halves::Both || source.absolute {
            return None;
        }
        if source.negate {
            *value ^= 0x8000_8000;
        }
    }
    let rows = values.map(WarpRegister::splat);
    plain.then(|| both_halves(&rows, 0, |[a, b, c]| kind(i).fma(a, b, c)))
}

/// `HMNMX2`: the smaller where the predicate holds, else the larger.
#[inline(always)]
pub fn half_minimum_maximum(lanes: &mut Lanes<'_>, i: &Instruction) {
    let smaller = lanes.predicate(i.predicates[0]);
    let nan = Modifiers(i.modifiers).has(Modifiers::NAN);
    let flush = Modifiers(i.modifiers).flush();
    // The predicate is a constant in all code seen; lanes still decide for themselves.
    let kind = kind(i);
    let (a, b) = (
        packed(lanes, i.sources[0], kind),
        packed(lanes, i.sources[1], kind),
    );
    let plain = |source: Source| Source {
        negate: false,
        absolute: false,
        ..source
    };
    let [first, second] = [0, 1].map(|n| packed(lanes, plain(i.sources[n]), kind));
    let xor_sign = Modifiers(i.modifiers).has(Modifiers::XOR_SIGN);
    let enter =
        |word: u32| float16::unpack(word).map(|half| if flush { kind.flush(half) } else { half });
    let choose = |n: usize, h: usize| {
        let (x, y) = (enter(a.0[n])[h], enter(b.0[n])[h]);
        if smaller >> n & 1 == 1 {
            kind.min(x, y, nan)
        } else {
            kind.max(x, y, nan)
        }
    };
    let row = map_lanes(|n| {
        let signs = float16::unpack(first.0[n] ^ second.0[n]);
        float16::pack([0, 1].map(|h| {
            let value = choose(n, h);
            if xor_sign && value != float16::NAN {
                value & 0x7fff | signs[h] & 0x8000
            } else {
                value
            }
        }))
    });
    if i.modifiers & IS_A != 0 {
        let not_a_number = |bits: u16| f32::from_bits(kind.widen(bits)).is_nan();
        // Of one predicate for both, the lower half's answer stays.
        for h in [1, 0] {
            let taken = mask_of(|n| {
                let chosen = choose(n, h);
                let [given, result] = [a.0[n], row.0[n]].map(|word| float16::unpack(word)[h]);
                let first = chosen == enter(a.0[n])[h] && result == given;
                first || not_a_number(chosen) && not_a_number(given)
            });
            lanes.set_predicate(i.predicate_destinations[h], taken);
        }
    }
    lanes.write(i.destination, 0, &row);
}

/// `VHMNMX`: the smallest of three where the predicate holds, else the largest.
#[inline(always)]
pub fn half_minimum_maximum3(lanes: &mut Lanes<'_>, i: &Instruction) {
    let smaller = lanes.predicate(i.predicates[0]);
    let nan = Modifiers(i.modifiers).has(Modifiers::NAN);
    let flush = Modifiers(i.modifiers).flush();
    let kind = kind(i);
    let enter =
        |word: u32| float16::unpack(word).map(|half| if flush { kind.flush(half) } else { half });
    let sources = [0, 1, 2].map(|n| packed(lanes, i.sources[n], kind));
    let row = map_lanes(|n| {
        let choose = |x: u16, y: u16| {
            if smaller >> n & 1 == 1 {
                kind.min(x, y, nan)
            } else {
                kind.max(x, y, nan)
            }
        };
        let [a, b, c] = [0, 1, 2].map(|source: usize| enter(sources[source].0[n]));
        float16::pack([0, 1].map(|h| choose(choose(a[h], b[h]), c[h])))
    });
    lanes.write(i.destination, 0, &row);
}

/// `HSETP2`: a predicate for each half, or one for both (`.H_AND`).
#[inline(always)]
pub fn half_compare(lanes: &mut Lanes<'_>, i: &Instruction) {
    let modifiers = Modifiers(i.modifiers);
    let holds = half_comparison(lanes, i);
    let other = lanes.predicate(i.predicates[0]);
    let boolean = modifiers.boolean();
    if modifiers.has(BOTH_HALVES) {
        let both = holds[0] & holds[1];
        lanes.set_predicate(i.predicate_destinations[0], boolean.join(both, other));
        lanes.set_predicate(i.predicate_destinations[1], boolean.join(!both, other));
    } else {
        lanes.set_predicate(i.predicate_destinations[0], boolean.join(holds[0], other));
        lanes.set_predicate(i.predicate_destinations[1], boolean.join(holds[1], other));
    }
}

/// `HSET2`: comparisons of both halves as words, all ones or 1.0 (`.BF`).
#[inline(always)]
pub fn half_set(lanes: &mut Lanes<'_>, i: &Instruction) {
    let modifiers = Modifiers(i.modifiers);
    let holds = half_comparison(lanes, i);
    let other = lanes.predicate(i.predicates[0]);
    let yes = match (modifiers.has(SINGLE_RESULT), kind(i)) {
        (false, _) => 0xffff,
        (true, Kind::Half) => 0x3c00,
        (true, Kind::Brain) => 0x3f80,
    };
    let joined = holds.map(|mask| modifiers.boolean().join(mask, other));
    let row =
        map_lanes(|n| float16::pack([0, 1].map(|h| if joined[h] >> n & 1 == 1 { yes } else { 0 })));
    lanes.write(i.destination, 0, &row);
}

#[inline(always)]
fn half_comparison(lanes: &Lanes<'_>, i: &Instruction) -> [u32; 2] {
    let kind = kind(i);
    let comparison = Modifiers(i.modifiers).comparison();
    let (a, b) = (
        packed(lanes, i.sources[0], kind),
        packed(lanes, i.sources[1], kind),
    );
    let flush = Modifiers(i.modifiers).flush();
    [0, 1].map(|h| {
        let wide = |word: u32| {
            let half = float16::unpack(word)[h];
            f32::from_bits(kind.widen(if flush { kind.flush(half) } else { half }))
        };
        compare_lanes(comparison, |n| wide(a.0[n]), |n| wide(b.0[n]))
    })
}

/// `FMUL` with a scale or with zeros that win. The product of two floats is exact in double precision.
#[inline(never)]
fn multiply_scaled(lanes: &mut Lanes<'_>, i: &Instruction) {
    const FACTORS: [f64; 8] = [1.0, 0.125, 0.25, 0.5, 2.0, 4.0, 8.0, 1.0];
    let factor = FACTORS[(i.modifiers >> SCALE & 7) as usize];
    let zero_wins = i.modifiers & ZERO_WINS != 0;
    let rounding = Modifiers(i.modifiers).rounding();
    float_binary(lanes, i, |a, b| {
        let [x, y] = [a, b].map(f32::from_bits);
        if zero_wins && (x == 0.0 || y == 0.0) {
            return 0;
        }
        let product = f64::from(x) * f64::from(y) * factor;
        if product.is_nan() {
            return float32::NAN;
        }
        crate::semantics::convert::float64_to_float32(product.to_bits(), rounding)
    });
}

/// `FFMA.FMZ`.
#[inline(never)]
fn fused_with_zero(lanes: &mut Lanes<'_>, i: &Instruction) {
    let rounding = Modifiers(i.modifiers).rounding();
    float_ternary(lanes, i, |a, b, c| {
        let zero = [a, b].iter().any(|word| float32::abs(*word) == 0);
        let (a, b) = if zero { (0, 0) } else { (a, b) };
        float32::fma_rounded(a, b, c, rounding)
    });
}
