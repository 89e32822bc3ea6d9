//! Integer arithmetic of SASS on the registers of a warp.

use crate::{
    instruction::Instruction,
    lanes::{Lanes, ScratchRegister},
    operand::{Operand, PredicateRegister},
    operands, operands64,
    semantics::{
        Modifiers,
        compare::Comparison,
        integer,
        lane_loops::{
            binary, compare_lanes, map_lanes, map_lanes64, mask_of, ternary, ternary_wide,
        },
        logic,
    },
    warp_register::{LANES, WarpRegister},
};

/// `VABSDIFF4`: differences are summed (`.ACC`).
pub const ACCUMULATE: u64 = 1 << (Modifiers::FREE + 6);
/// The high half of a product or shift is wanted (`.HI`).
pub const HIGH: u64 = 1 << Modifiers::FREE;
/// Sign extension of the first operand stands for its high word (`LEA.HI.SX32`).
pub const SIGN_EXTENDED: u64 = 1 << (Modifiers::FREE + 1);
/// Operand B is signed too (`IDP.4A.S8.U8` differ).
pub const SECOND_SIGNED: u64 = 1 << (Modifiers::FREE + 2);
/// Shifts go right.
pub const RIGHT: u64 = 1 << (Modifiers::FREE + 3);
/// Shift counts go up to 64 rather than 32.
pub const WIDE: u64 = 1 << (Modifiers::FREE + 4);
/// The result is the distance to the top (`FLO.SH`).
pub const SHIFT_AMOUNT: u64 = 1 << (Modifiers::FREE + 5);
/// `ISETP.EX`: the low words were compared before, `predicates[1]` holds their outcome.
pub const EXTENDED: u64 = 1 << (Modifiers::FREE + 6);

/// One operand of a sum with carries: the complement where it is negated, and the one that
/// completes the negation unless a carry chain brings it (`.X`).
#[inline(always)]
fn addend(lanes: &Lanes<'_>, i: &Instruction, index: usize, extended: bool) -> (WarpRegister, u64) {
    let source = &i.sources[index];
    let mut room = ScratchRegister::uninit();
    let row = lanes.raw_at(source.operand, 0, &mut room);
    let flip = u32::from(source.negate || source.invert).wrapping_neg();
    (
        map_lanes(|n| row.0[n] ^ flip),
        u64::from(source.negate && !extended),
    )
}

#[inline(always)]
fn bit(mask: u32, lane: usize) -> u64 {
    u64::from(mask >> lane & 1)
}

/// No carry comes in and nobody asks for one that goes out.
#[inline(always)]
fn without_carries(i: &Instruction) -> bool {
    i.modifiers & Modifiers::CARRY_IN == 0
        && i.predicate_destinations == [PredicateRegister::True; 2]
}

/// Writes where sums have this many carries, if anybody wants to know.
#[inline(always)]
fn set_carry(
    lanes: &mut Lanes<'_>,
    register: PredicateRegister,
    sums: &[u64; LANES],
    carries: u64,
) {
    if register != PredicateRegister::True {
        lanes.set_predicate(register, mask_of(|n| sums[n] >> 32 >= carries));
    }
}

/// `IADD3`: three words and two carries in, a word and two carries out.
#[inline(always)]
pub fn add3(lanes: &mut Lanes<'_>, i: &Instruction) {
    let [x, y, z, _] = &i.sources;
    if without_carries(i) && !(x.invert | y.invert | z.invert) {
        return ternary(lanes, i, |a, b, c| integer::add(integer::add(a, b), c));
    }
    let extended = Modifiers(i.modifiers).has(Modifiers::CARRY_IN);
    let (a, a_one) = addend(lanes, i, 0, extended);
    let (b, b_one) = addend(lanes, i, 1, extended);
    let (c, c_one) = addend(lanes, i, 2, extended);
    let ones = a_one + b_one + c_one;
    let (first, second) = if extended {
        (
            lanes.predicate(i.predicates[0]),
            lanes.predicate(i.predicates[1]),
        )
    } else {
        (0, 0)
    };
    let sums = map_lanes64(|n| {
        u64::from(a.0[n])
            + u64::from(b.0[n])
            + u64::from(c.0[n])
            + ones
            + bit(first, n)
            + bit(second, n)
    });
    lanes.write(i.destination, 0, &map_lanes(|n| sums[n] as u32));
    set_carry(lanes, i.predicate_destinations[0], &sums, 1);
    set_carry(lanes, i.predicate_destinations[1], &sums, 2);
}

/// `UIADD3`: as [`add3`], or of pairs of registers with `.64`. A constant counts with its sign.
#[inline(always)]
pub fn add3_uniform(lanes: &mut Lanes<'_>, i: &Instruction) {
    if i.modifiers & WIDE == 0 {
        return add3(lanes, i);
    }
    let extended = Modifiers(i.modifiers).has(Modifiers::CARRY_IN);
    let mut sum = 0u128;
    for source in &i.sources[..3] {
        let value = match source.operand {
            Operand::Immediate(bits) => bits as i32 as u64,
            operand => {
                let [low, high] = [0, 1].map(|word| lanes.raw(operand, word).0[0]);
                u64::from(low) | u64::from(high) << 32
            }
        };
        let flip = u64::from(source.negate || source.invert).wrapping_neg();
        sum += u128::from(value ^ flip) + u128::from(source.negate && !extended);
    }
    if extended {
        for predicate in &i.predicates[..2] {
            sum += u128::from(lanes.predicate(*predicate) & 1);
        }
    }
    lanes.write64(i.destination, &[sum as u64; LANES]);
    for (register, carries) in i.predicate_destinations.into_iter().zip([1, 2]) {
        if register != PredicateRegister::True {
            lanes.set_predicate(register, mask_of(|_| sum >> 64 >= carries));
        }
    }
}

/// `LEA`: `(a << s) + b`, or the high word of `c:a << s` plus `b` with `.HI`.
#[inline(always)]
pub fn lea(lanes: &mut Lanes<'_>, i: &Instruction) {
    let modifiers = Modifiers(i.modifiers);
    let mut room = ScratchRegister::uninit();
    let shift = lanes.raw_at(i.sources[3].operand, 0, &mut room).0[0] & 31;
    let [x, y, ..] = &i.sources;
    let high_word = modifiers.has(HIGH);
    if without_carries(i) && !(high_word | y.invert | x.negate | x.invert) {
        return binary(lanes, i, |a, b| integer::add(a << shift, b));
    }
    let extended = modifiers.has(Modifiers::CARRY_IN);
    // With a carry the complement stands for the negation.
    let flip = u32::from(x.negate || x.invert).wrapping_neg();
    let one = u64::from(x.negate && !extended);
    let (b, b_one) = addend(lanes, i, 1, extended);
    let mut rooms = [ScratchRegister::uninit(); 2];
    let [low_room, high_room] = &mut rooms;
    let low = lanes.raw_at(i.sources[0].operand, 0, low_room);
    let carry = if extended {
        lanes.predicate(i.predicates[0])
    } else {
        0
    };
    let words = if modifiers.has(SIGN_EXTENDED) {
        let extend = |n: usize| i64::from(low.0[n] as i32) << shift;
        if high_word {
            map_lanes(|n| (extend(n) >> 32) as u32)
        } else {
            map_lanes(|n| extend(n) as u32)
        }
    } else if high_word {
        let high = lanes.raw_at(i.sources[2].operand, 0, high_room);
        map_lanes(|n| ((u64::from(high.0[n]) << 32 | u64::from(low.0[n])) << shift >> 32) as u32)
    } else {
        map_lanes(|n| low.0[n] << shift)
    };
    let sums = map_lanes64(|n| {
        u64::from(words.0[n] ^ flip) + one + u64::from(b.0[n]) + b_one + bit(carry, n)
    });
    lanes.write(i.destination, 0, &map_lanes(|n| sums[n] as u32));
    set_carry(lanes, i.predicate_destinations[0], &sums, 1);
}

/// `IMAD`: low word of `a × b + c`, plus a carry with `.X`.
#[inline(always)]
pub fn multiply_add(lanes: &mut Lanes<'_>, i: &Instruction) {
    if i.sources[0].operand == Operand::None && !i.sources[0].invert && without_carries(i) {
        // `IMAD.MOV`, which compilers use to spread moves over two pipes.
        operands!(lanes, i; c = integer_at 2);
        let row = *c;
        return lanes.write(i.destination, 0, &row);
    }
    if !Modifiers(i.modifiers).has(Modifiers::CARRY_IN) {
        return ternary(lanes, i, integer::mad_low);
    }
    operands!(lanes, i; a = integer_at 0, b = integer_at 1, c = integer_at 2);
    let carry = lanes.predicate(i.predicates[0]);
    let result = map_lanes(|n| {
        integer::add(
            integer::mad_low(a.0[n], b.0[n], c.0[n]),
            bit(carry, n) as u32,
        )
    });
    lanes.write(i.destination, 0, &result);
}

/// `IMAD.WIDE`: 64-bit `a × b + c`, carry out and in.
#[inline(always)]
pub fn multiply_add_wide(lanes: &mut Lanes<'_>, i: &Instruction) {
    let modifiers = Modifiers(i.modifiers);
    let signed = modifiers.has(Modifiers::SIGNED);
    if without_carries(i) {
        return if signed {
            ternary_wide(lanes, i, integer::mad_wide_signed)
        } else {
            ternary_wide(lanes, i, integer::mad_wide)
        };
    }
    let (sums, overflow) = product_sums(lanes, i);
    lanes.write64(i.destination, &sums);
    lanes.set_predicate(i.predicate_destinations[0], overflow);
}

/// `a × b + c` in 64 bits with what is carried in, and what is carried out. A negated `c` is its complement and a one,
/// which may be carried too.
fn product_sums(lanes: &Lanes<'_>, i: &Instruction) -> ([u64; LANES], u32) {
    let modifiers = Modifiers(i.modifiers);
    let signed = modifiers.has(Modifiers::SIGNED);
    operands!(lanes, i; a = integer_at 0, b = integer_at 1);
    let third = i.sources[2];
    let c = lanes.pair(third.operand);
    let flip = if third.negate || third.invert {
        u64::MAX
    } else {
        0
    };
    let carry = match (modifiers.has(Modifiers::CARRY_IN), third.negate) {
        (true, _) => lanes.predicate(i.predicates[0]),
        (false, true) => u32::MAX,
        (false, false) => 0,
    };
    let mut overflow = 0;
    let mut sums = [0; LANES];
    for (n, sum) in sums.iter_mut().enumerate() {
        let product = if signed {
            integer::mul_wide_signed(a.0[n], b.0[n])
        } else {
            integer::mul_wide(a.0[n], b.0[n])
        };
        let out;
        (*sum, out) = integer::add64_with_carry(product, c[n] ^ flip, carry >> n & 1 == 1);
        overflow |= u32::from(out) << n;
    }
    (sums, overflow)
}

/// `IMAD.HI`: high word of `a × b + c`, where `c` is 64 bits wide.
#[inline(always)]
pub fn multiply_add_high(lanes: &mut Lanes<'_>, i: &Instruction) {
    if !without_carries(i) {
        let (sums, overflow) = product_sums(lanes, i);
        lanes.write(i.destination, 0, &map_lanes(|n| (sums[n] >> 32) as u32));
        return lanes.set_predicate(i.predicate_destinations[0], overflow);
    }
    operands!(lanes, i; a = integer_at 0, b = integer_at 1);
    operands64!(lanes, i; c = integer64_at 2);
    let signed = Modifiers(i.modifiers).has(Modifiers::SIGNED);
    let products = if signed {
        map_lanes64(|n| integer::mul_wide_signed(a.0[n], b.0[n]))
    } else {
        map_lanes64(|n| integer::mul_wide(a.0[n], b.0[n]))
    };
    let sums = map_lanes64(|n| products[n].wrapping_add(c.at(n)));
    lanes.write(i.destination, 0, &map_lanes(|n| (sums[n] >> 32) as u32));
}

/// `IABS`.
#[inline(always)]
pub fn absolute(lanes: &mut Lanes<'_>, i: &Instruction) {
    operands!(lanes, i; a = integer_at 0);
    lanes.write(i.destination, 0, &map_lanes(|n| integer::abs(a.0[n])));
}

/// `IMNMX`, `VIMNMX`: the smaller where `predicates[0]` holds, else the larger.
#[inline(always)]
pub fn minimum_maximum(lanes: &mut Lanes<'_>, i: &Instruction) {
    operands!(lanes, i; a = integer_at 0, b = integer_at 1);
    let mut result = choose_by_order(lanes, i, a, b);
    if Modifiers(i.modifiers).has(Modifiers::RELU) {
        result
            .0
            .iter_mut()
            .for_each(|word| *word = (*word as i32).max(0) as u32);
    }
    lanes.write(i.destination, 0, &result);
}

#[inline(always)]
fn choose_by_order(
    lanes: &Lanes<'_>,
    i: &Instruction,
    a: &WarpRegister,
    b: &WarpRegister,
) -> WarpRegister {
    let smaller = lanes.predicate(i.predicates[0]);
    // Flipping the sign bits makes unsigned order of signed.
    let flip = u32::from(Modifiers(i.modifiers).has(Modifiers::SIGNED)) << 31;
    map_lanes(|n| {
        let (x, y) = (a.0[n] ^ flip, b.0[n] ^ flip);
        let wanted = if smaller >> n & 1 == 1 {
            x.min(y)
        } else {
            x.max(y)
        };
        wanted ^ flip
    })
}

/// `VIADDMNMX`: `a + b`, then the smaller or larger of it and `c`.
#[inline(always)]
pub fn add_minimum_maximum(lanes: &mut Lanes<'_>, i: &Instruction) {
    operands!(lanes, i; a = integer_at 0, b = integer_at 1, c = integer_at 2);
    let sum = map_lanes(|n| integer::add(a.0[n], b.0[n]));
    let mut result = choose_by_order(lanes, i, &sum, c);
    if Modifiers(i.modifiers).has(Modifiers::RELU) {
        result
            .0
            .iter_mut()
            .for_each(|word| *word = (*word as i32).max(0) as u32);
    }
    lanes.write(i.destination, 0, &result);
}

/// `VIADD`: `a + b`.
#[inline(always)]
pub fn add2(lanes: &mut Lanes<'_>, i: &Instruction) {
    operands!(lanes, i; a = integer_at 0, b = integer_at 1);
    lanes.write(
        i.destination,
        0,
        &map_lanes(|n| integer::add(a.0[n], b.0[n])),
    );
}

/// `VABSDIFF`: `|a - b| + c`; the predicate says whether the sum carries.
#[inline(always)]
pub fn absolute_difference(lanes: &mut Lanes<'_>, i: &Instruction) {
    operands!(lanes, i; a = integer_at 0, b = integer_at 1, c = integer_at 2);
    let signed = Modifiers(i.modifiers).has(Modifiers::SIGNED);
    let result = map_lanes(|n| {
        if signed {
            integer::sad_signed(a.0[n], b.0[n], c.0[n])
        } else {
            integer::sad(a.0[n], b.0[n], c.0[n])
        }
    });
    let carried = mask_of(|n| result.0[n] < c.0[n]);
    lanes.write(i.destination, 0, &result);
    lanes.set_predicate(i.predicate_destinations[0], carried);
}

/// `VABSDIFF4`: the differences of four bytes, or with `.ACC` their sum plus `c`; the predicate says whether it carries.
#[inline(always)]
pub fn absolute_difference_bytes(lanes: &mut Lanes<'_>, i: &Instruction) {
    operands!(lanes, i; a = integer_at 0, b = integer_at 1, c = integer_at 2);
    let signed = Modifiers(i.modifiers).has(Modifiers::SIGNED);
    let sums = Modifiers(i.modifiers).has(ACCUMULATE);
    let result = map_lanes(|n| {
        let (x, y) = (a.0[n].to_le_bytes(), b.0[n].to_le_bytes());
        let differences: [u8; 4] = std::array::from_fn(|k| {
            if signed {
                (x[k] as i8).abs_diff(y[k] as i8)
            } else {
                x[k].abs_diff(y[k])
            }
        });
        if sums {
            differences
                .iter()
                .fold(c.0[n], |sum, byte| sum.wrapping_add(u32::from(*byte)))
        } else {
            u32::from_le_bytes(differences)
        }
    });
    let carried = mask_of(|n| sums && result.0[n] < c.0[n]);
    lanes.write(i.destination, 0, &result);
    lanes.set_predicate(i.predicate_destinations[0], carried);
}

/// `IDP.4A`: dot product of bytes, plus `c`.
#[inline(always)]
pub fn dot_product4(lanes: &mut Lanes<'_>, i: &Instruction) {
    dot_product(lanes, i, |a, b, c, x, y, _| integer::dp4a(a, b, c, x, y));
}

/// `IDP.2A.LO`, `.HI`: dot product of two 16-bit and two 8-bit values, plus `c`.
#[inline(always)]
pub fn dot_product2(lanes: &mut Lanes<'_>, i: &Instruction) {
    dot_product(lanes, i, integer::dp2a);
}

#[inline(always)]
fn dot_product(
    lanes: &mut Lanes<'_>,
    i: &Instruction,
    product: impl Fn(u32, u32, u32, bool, bool, bool) -> u32,
) {
    operands!(lanes, i; a = integer_at 0, b = integer_at 1, c = integer_at 2);
    let modifiers = Modifiers(i.modifiers);
    let (first, second) = (
        modifiers.has(Modifiers::SIGNED),
        modifiers.has(SECOND_SIGNED),
    );
    let high = modifiers.has(HIGH);
    let result = map_lanes(|n| product(a.0[n], b.0[n], c.0[n], first, second, high));
    lanes.write(i.destination, 0, &result);
}

/// `ISETP`: compares, joins with `predicates[0]`; the second destination takes the complement
/// of the comparison, joined likewise.
#[inline(always)]
pub fn compare(lanes: &mut Lanes<'_>, i: &Instruction) {
    let modifiers = Modifiers(i.modifiers);
    operands!(lanes, i; a = integer_at 0, b = integer_at 1);
    let comparison = modifiers.comparison();
    let flip = u32::from(modifiers.has(Modifiers::SIGNED)) << 31;
    let mut holds = compare_lanes(comparison, |n| a.0[n] ^ flip, |n| b.0[n] ^ flip);
    if modifiers.has(EXTENDED) {
        // Equal high words leave the answer to the low words.
        let equal = mask_of(|n| a.0[n] == b.0[n]);
        let low = lanes.predicate(i.predicates[1]);
        if !matches!(comparison, Comparison::False | Comparison::True) {
            holds = (holds & !equal) | (low & equal);
        }
    }
    store_comparison(lanes, i, holds);
}

/// Joins a comparison with `predicates[0]` and writes both destinations.
#[inline(always)]
pub fn store_comparison(lanes: &mut Lanes<'_>, i: &Instruction, holds: u32) {
    let boolean = Modifiers(i.modifiers).boolean();
    let other = lanes.predicate(i.predicates[0]);
    lanes.set_predicate(i.predicate_destinations[0], boolean.join(holds, other));
    lanes.set_predicate(i.predicate_destinations[1], boolean.join(!holds, other));
}

/// `SHF`: the 64 bits `c:a` shifted by `b`; low or high word.
#[inline(always)]
pub fn shift(lanes: &mut Lanes<'_>, i: &Instruction) {
    let modifiers = Modifiers(i.modifiers);
    let wrap = modifiers.has(Modifiers::WRAP);
    let signed = modifiers.has(Modifiers::SIGNED);
    let (right, high) = (modifiers.has(RIGHT), modifiers.has(HIGH));
    operands!(lanes, i; a = integer_at 0, b = integer_at 1, c = integer_at 2);
    let limit = if modifiers.has(WIDE) { 64 } else { 32 };
    let mask = if wrap { limit - 1 } else { u32::MAX };
    let count = |n: usize| (b.0[n] & mask).min(limit);
    let value = |n: usize| u64::from(c.0[n]) << 32 | u64::from(a.0[n]);
    let row = match (right, high, signed) {
        // One word alone decides, which is how compilers spell plain shifts.
        (false, false, _) => map_lanes(|n| logic::shl(a.0[n], count(n))),
        (true, true, false) => map_lanes(|n| logic::shr(c.0[n], count(n))),
        (true, true, true) => map_lanes(|n| logic::shr_signed(c.0[n], count(n))),
        (false, true, _) => map_lanes(|n| (logic::shl64(value(n), count(n)) >> 32) as u32),
        (true, false, false) => map_lanes(|n| logic::shr64(value(n), count(n)) as u32),
        (true, false, true) => map_lanes(|n| logic::shr64_signed(value(n), count(n)) as u32),
    };
    lanes.write(i.destination, 0, &row);
}

/// `FLO`: position of the highest bit that differs from the sign, all ones if there is none; the
/// predicate says whether there is one.
#[inline(always)]
pub fn find_leading(lanes: &mut Lanes<'_>, i: &Instruction) {
    let modifiers = Modifiers(i.modifiers);
    operands!(lanes, i; a = integer_at 0);
    let amount = modifiers.has(SHIFT_AMOUNT);
    let signed = modifiers.has(Modifiers::SIGNED);
    let result = map_lanes(|n| {
        if signed {
            logic::find_leading_signed(a.0[n], amount)
        } else {
            logic::find_leading(a.0[n], amount)
        }
    });
    lanes.write(i.destination, 0, &result);
    lanes.set_predicate(
        i.predicate_destinations[0],
        mask_of(|n| result.0[n] != u32::MAX),
    );
}

/// `POPC`.
#[inline(always)]
pub fn population(lanes: &mut Lanes<'_>, i: &Instruction) {
    operands!(lanes, i; a = integer_at 0);
    lanes.write(i.destination, 0, &map_lanes(|n| logic::popc(a.0[n])));
}

/// `BREV`.
#[inline(always)]
pub fn reverse_bits(lanes: &mut Lanes<'_>, i: &Instruction) {
    operands!(lanes, i; a = integer_at 0);
    lanes.write(i.destination, 0, &map_lanes(|n| logic::brev(a.0[n])));
}

/// `SGXT`: the low `b` bits extended.
#[inline(always)]
pub fn extend(lanes: &mut Lanes<'_>, i: &Instruction) {
    let modifiers = Modifiers(i.modifiers);
    operands!(lanes, i; a = integer_at 0, b = integer_at 1);
    let wrap = modifiers.has(Modifiers::WRAP);
    let signed = modifiers.has(Modifiers::SIGNED);
    let result = map_lanes(|n| {
        if signed {
            logic::extend_signed(a.0[n], b.0[n], wrap)
        } else {
            logic::extend(a.0[n], b.0[n], wrap)
        }
    });
    lanes.write(i.destination, 0, &result);
}

/// `BMSK`: ones from bit `a` for `b` bits.
#[inline(always)]
pub fn bit_mask(lanes: &mut Lanes<'_>, i: &Instruction) {
    operands!(lanes, i; a = integer_at 0, b = integer_at 1);
    let wrap = Modifiers(i.modifiers).has(Modifiers::WRAP);
    let result = map_lanes(|n| logic::bit_mask(a.0[n], b.0[n], wrap));
    lanes.write(i.destination, 0, &result);
}
