//! Conversions over the lanes of a warp, chosen by the rows of the table.

use super::{S32, U32};
use crate::{
    Instruction, Lanes, WarpRegister,
    semantics::{
        Modifiers, Rounding,
        convert::{self as op, Integer},
        float16::{Kind, pack, unpack},
        float32, float64,
        lane_loops::*,
        small_float::Small,
        soft::{self, F16 as HALF_FORMAT, F32 as SINGLE_FORMAT},
    },
    warp_register::LANES,
};

pub(super) fn rounding(i: &Instruction) -> Rounding {
    Modifiers(i.modifiers).rounding()
}

/// Reads an integer of a type as 64 bits.
#[inline(always)]
pub(super) fn read(l: &Lanes<'_>, i: &Instruction, from: Integer) -> [i128; LANES] {
    if from.bits == 64 {
        l.integer64(i.sources[0]).map(|a| from.read(a))
    } else {
        l.integer(i.sources[0]).0.map(|a| from.read(u64::from(a)))
    }
}

/// Writes 64-bit values to a register of the type's width.
#[inline(always)]
pub(super) fn write(l: &mut Lanes<'_>, i: &Instruction, to: Integer, values: &[u64; LANES]) {
    if to.bits == 64 {
        l.write64(i.destination, values);
    } else {
        l.write(
            i.destination,
            0,
            &WarpRegister(values.map(|value| value as u32)),
        );
    }
}

#[inline(always)]
pub(super) fn whole(l: &mut Lanes<'_>, i: &Instruction, (from, to): (Integer, Integer)) {
    let saturate = Modifiers(i.modifiers).saturate();
    if saturate {
        let values = read(l, i, from).map(|value| to.convert(value, true));
        return write(l, i, to, &values);
    }
    // Plain cutting and extending, in 64-bit arithmetic that the host has vectors for.
    let extend = |word: u64, kind: Integer| {
        let unused = 64 - kind.bits;
        if kind.signed {
            (((word << unused) as i64) >> unused) as u64
        } else {
            (word << unused) >> unused
        }
    };
    if from.bits == 64 {
        let values = l.integer64(i.sources[0]).map(|a| extend(a, to));
        write(l, i, to, &values);
    } else {
        let values = l
            .integer(i.sources[0])
            .0
            .map(|a| extend(extend(u64::from(a), from), to));
        write(l, i, to, &values);
    }
}

#[inline(always)]
pub(super) fn to_single(l: &mut Lanes<'_>, i: &Instruction, from: Integer) {
    let modifiers = Modifiers(i.modifiers);
    let row = if rounding(i) == Rounding::Nearest && from.bits <= 32 {
        let a = l.integer(i.sources[0]);
        WarpRegister(if from.signed {
            a.0.map(|a| (from.read(u64::from(a)) as i32 as f32).to_bits())
        } else {
            a.0.map(|a| (from.read(u64::from(a)) as u32 as f32).to_bits())
        })
    } else {
        WarpRegister(read(l, i, from).map(|value| op::integer_to_float32(value, rounding(i))))
    };
    let row = if modifiers.saturate() {
        WarpRegister(row.0.map(float32::saturate))
    } else {
        row
    };
    l.write(i.destination, 0, &row);
}

#[inline(always)]
pub(super) fn to_double(l: &mut Lanes<'_>, i: &Instruction, from: Integer) {
    let saturate = Modifiers(i.modifiers).saturate();
    let values = read(l, i, from).map(|value| {
        let value = op::integer_to_float64(value, rounding(i));
        if saturate {
            float64::saturate(value)
        } else {
            value
        }
    });
    l.write64(i.destination, &values);
}

#[inline(always)]
pub(super) fn to_half(l: &mut Lanes<'_>, i: &Instruction, (from, kind): (Integer, Kind)) {
    let format = match kind {
        Kind::Half => HALF_FORMAT,
        Kind::Brain => soft::BF16,
    };
    let saturate = Modifiers(i.modifiers).saturate();
    let row = WarpRegister(read(l, i, from).map(|value| {
        let magnitude = value.unsigned_abs() as u64;
        let bits = soft::from_integer(format, value < 0, magnitude, rounding(i)) as u16;
        u32::from(if saturate { kind.saturate(bits) } else { bits })
    }));
    l.write(i.destination, 0, &row);
}

#[inline(always)]
pub(super) fn from_single(l: &mut Lanes<'_>, i: &Instruction, to: Integer) {
    let modifiers = Modifiers(i.modifiers);
    let a = l.float(i.sources[0]);
    let values = match (modifiers.rounding(), to) {
        (Rounding::Zero, S32) => a.0.map(|a| f32::from_bits(a) as i32 as u64),
        (Rounding::Zero, U32) => a.0.map(|a| u64::from(f32::from_bits(a) as u32)),
        (rounding, _) => a.0.map(|a| {
            let a = if modifiers.flush() {
                float32::flush(a)
            } else {
                a
            };
            op::float32_to_integer(a, to, rounding)
        }),
    };
    write(l, i, to, &values);
}

#[inline(always)]
pub(super) fn from_double(l: &mut Lanes<'_>, i: &Instruction, to: Integer) {
    let values = l
        .float64(i.sources[0])
        .map(|a| op::float64_to_integer(a, to, rounding(i)));
    write(l, i, to, &values);
}

#[inline(always)]
pub(super) fn from_half(l: &mut Lanes<'_>, i: &Instruction, (to, kind): (Integer, Kind)) {
    let flush = Modifiers(i.modifiers).flush();
    let values = l.halves(i.sources[0]).0.map(|a| {
        let a = if flush {
            kind.flush(a as u16)
        } else {
            a as u16
        };
        op::float32_to_integer(kind.widen(a), to, rounding(i))
    });
    write(l, i, to, &values);
}

#[inline(always)]
pub(super) fn canonical(a: u32) -> u32 {
    float32::canonical(f32::from_bits(a))
}

#[inline(always)]
pub(super) fn whole_single(l: &mut Lanes<'_>, i: &Instruction) {
    match rounding(i) {
        // Constants, so that the common ones become vector loops.
        Rounding::Down => float_unary(l, i, |a| op::float32_to_whole(a, Rounding::Down)),
        Rounding::Zero => float_unary(l, i, |a| op::float32_to_whole(a, Rounding::Zero)),
        Rounding::Up => float_unary(l, i, |a| op::float32_to_whole(a, Rounding::Up)),
        _ => float_unary(l, i, |a| op::float32_to_whole(a, Rounding::Nearest)),
    }
}

#[inline(always)]
pub(super) fn double(l: &mut Lanes<'_>, i: &Instruction, f: impl Fn(u64, Rounding) -> u64) {
    let saturate = Modifiers(i.modifiers).saturate();
    double_unary(l, i, |a| {
        let value = f(a, rounding(i));
        if saturate {
            float64::saturate(value)
        } else {
            value
        }
    });
}

#[inline(always)]
pub(super) fn single_to_double(l: &mut Lanes<'_>, i: &Instruction) {
    let modifiers = Modifiers(i.modifiers);
    let values = l.float(i.sources[0]).0.map(|a| {
        // Flushing is a sum in single precision, which makes NaNs canonical.
        let a = if modifiers.flush() {
            canonical(float32::flush(a))
        } else {
            a
        };
        let value = op::float32_to_float64(a);
        if modifiers.saturate() {
            float64::saturate(value)
        } else {
            value
        }
    });
    l.write64(i.destination, &values);
}

#[inline(always)]
pub(super) fn double_to_single(l: &mut Lanes<'_>, i: &Instruction) {
    let modifiers = Modifiers(i.modifiers);
    let row = WarpRegister(l.float64(i.sources[0]).map(|a| {
        let value = op::float64_to_float32(a, modifiers.rounding());
        let value = if modifiers.flush() {
            float32::flush(value)
        } else {
            value
        };
        if modifiers.saturate() {
            float32::saturate(value)
        } else {
            value
        }
    }));
    l.write(i.destination, 0, &row);
}

#[inline(always)]
pub(super) fn half_to_single(l: &mut Lanes<'_>, i: &Instruction, kind: Kind) {
    let modifiers = Modifiers(i.modifiers);
    let row = WarpRegister(l.halves(i.sources[0]).0.map(|a| {
        // Subnormals of half precision are numbers of single precision.
        let a = if modifiers.flush() && kind == Kind::Brain {
            kind.flush(a as u16)
        } else {
            a as u16
        };
        let value = kind.widen(a);
        if modifiers.saturate() {
            float32::saturate(value)
        } else {
            value
        }
    }));
    l.write(i.destination, 0, &row);
}

/// A NaN becomes quiet and keeps its sign and payload.
#[inline(always)]
pub(super) fn half_to_double(l: &mut Lanes<'_>, i: &Instruction, kind: Kind) {
    let saturate = Modifiers(i.modifiers).saturate();
    let (infinity, shift) = match kind {
        Kind::Half => (0x7c00, 42),
        Kind::Brain => (0x7f80, 45),
    };
    let values = l.halves(i.sources[0]).0.map(|a| {
        let half = a as u16;
        let value = if half & 0x7fff > infinity {
            let payload = u64::from(half & 0x7fff & !infinity) << shift;
            u64::from(half & 0x8000) << 48 | 0x7ff8_0000_0000_0000 | payload
        } else {
            op::float32_to_float64(kind.widen(half))
        };
        if saturate {
            float64::saturate(value)
        } else {
            value
        }
    });
    l.write64(i.destination, &values);
}

/// Clamps, and replaces overflow by the largest number (`.satfinite`) for the 16-bit formats.
#[inline(always)]
pub(super) fn finish_half(modifiers: Modifiers, kind: Kind, bits: u16, satfinite: bool) -> u16 {
    let largest = match kind {
        Kind::Half => 0x7bff,
        Kind::Brain => 0x7f7f,
    };
    let infinite = bits & 0x7fff == largest + 1;
    let bits = match (modifiers.saturate(), satfinite) {
        (true, false) => kind.saturate(bits),
        (true, true) if infinite => bits & 0x8000 | largest,
        _ => bits,
    };
    if modifiers.has(Modifiers::RELU) {
        kind.relu(bits)
    } else {
        bits
    }
}

#[inline(always)]
pub(super) fn single_to_half(l: &mut Lanes<'_>, i: &Instruction, (kind, satfinite): (Kind, bool)) {
    // For half precision `.ftz` changes nothing: hardware rounds subnormals as they are.
    let modifiers = Modifiers(i.modifiers);
    let flush = modifiers.flush() && kind == Kind::Brain;
    let row = WarpRegister(l.float(i.sources[0]).0.map(|a| {
        let a = if flush { float32::flush(a) } else { a };
        let bits = kind.narrow_rounded(a, modifiers.rounding());
        u32::from(finish_half(modifiers, kind, bits, satfinite))
    }));
    l.write(i.destination, 0, &row);
}

#[inline(always)]
pub(super) fn double_to_half(l: &mut Lanes<'_>, i: &Instruction, kind: Kind) {
    let modifiers = Modifiers(i.modifiers);
    let row = WarpRegister(l.float64(i.sources[0]).map(|a| {
        let bits = kind.narrow_double(a, modifiers.rounding());
        u32::from(finish_half(modifiers, kind, bits, false))
    }));
    l.write(i.destination, 0, &row);
}

#[inline(always)]
pub(super) fn whole_half(l: &mut Lanes<'_>, i: &Instruction, kind: Kind) {
    let modifiers = Modifiers(i.modifiers);
    let row = WarpRegister(l.halves(i.sources[0]).0.map(|a| {
        // Subnormals of half precision are numbers of single precision.
        let a = if modifiers.flush() && kind == Kind::Brain {
            kind.flush(a as u16)
        } else {
            a as u16
        };
        let value = if modifiers.has(Modifiers::WHOLE) {
            op::float32_to_whole(kind.widen(a), modifiers.rounding())
        } else {
            kind.widen(a)
        };
        u32::from(finish_half(modifiers, kind, kind.narrow(value), false))
    }));
    l.write(i.destination, 0, &row);
}

#[inline(always)]
pub(super) fn cross(l: &mut Lanes<'_>, i: &Instruction, (from, to): (Kind, Kind)) {
    let row = WarpRegister(
        l.halves(i.sources[0])
            .0
            .map(|a| u32::from(to.narrow_rounded(from.widen(a as u16), rounding(i)))),
    );
    l.write(i.destination, 0, &row);
}

#[inline(always)]
pub(super) fn tf32(l: &mut Lanes<'_>, i: &Instruction) {
    let modifiers = Modifiers(i.modifiers);
    let row = WarpRegister(l.float(i.sources[0]).0.map(|a| {
        let value = op::float32_to_tf32(a, modifiers.rounding());
        let number = !f32::from_bits(value).is_nan();
        let infinite = value & 0x7f80_0000 == 0x7f80_0000;
        if modifiers.has(Modifiers::RELU) && value >> 31 == 1 && number {
            0
        } else if modifiers.saturate() && infinite {
            // The compiler's integer arithmetic makes NaNs smaller, too.
            value - 0x2000
        } else {
            value
        }
    }));
    l.write(i.destination, 0, &row);
}

#[inline(always)]
pub(super) fn pack_halves(l: &mut Lanes<'_>, i: &Instruction, kind: Kind) {
    let modifiers = Modifiers(i.modifiers);
    let (high, low) = (l.float(i.sources[0]), l.float(i.sources[1]));
    let one = |a: u32| {
        let bits = kind.narrow_rounded(a, modifiers.rounding());
        finish_half(modifiers, kind, bits, true)
    };
    let row = WarpRegister(std::array::from_fn(|n| {
        pack([one(low.0[n]), one(high.0[n])])
    }));
    l.write(i.destination, 0, &row);
}

#[inline(always)]
pub(super) fn pack_small(l: &mut Lanes<'_>, i: &Instruction, small: Small) {
    let relu = Modifiers(i.modifiers).has(Modifiers::RELU);
    let (high, low) = (l.float(i.sources[0]), l.float(i.sources[1]));
    let one = |a: u32| {
        let number = soft::unpack(SINGLE_FORMAT, u64::from(a));
        u32::from(small.from_number(number, relu))
    };
    let row = WarpRegister(std::array::from_fn(|n| one(low.0[n]) | one(high.0[n]) << 8));
    l.write(i.destination, 0, &row);
}

#[inline(always)]
pub(super) fn shrink(l: &mut Lanes<'_>, i: &Instruction, small: Small) {
    let relu = Modifiers(i.modifiers).has(Modifiers::RELU);
    unary(l, i, |a| {
        let [low, high] = unpack(a).map(|half| {
            let number = soft::unpack(HALF_FORMAT, u64::from(half));
            u32::from(small.from_number(number, relu))
        });
        low | high << 8
    });
}

#[inline(always)]
pub(super) fn grow(l: &mut Lanes<'_>, i: &Instruction, small: Small) {
    let relu = Modifiers(i.modifiers).has(Modifiers::RELU);
    unary(l, i, |a| {
        pack([a as u8, (a >> 8) as u8].map(|byte| {
            let half = small.to_half(byte);
            if relu { Kind::Half.relu(half) } else { half }
        }))
    });
}

#[inline(always)]
pub(super) fn pack_integers(l: &mut Lanes<'_>, i: &Instruction, to: Integer) {
    let bits = to.bits;
    ternary(l, i, |a, b, c| {
        let one = |x: u32| to.convert(i128::from(x as i32), true) as u32 & ((1 << bits) - 1);
        let pair = one(a) << bits | one(b);
        // Two halves fill the word; of narrower ones the third operand keeps what it can.
        if bits < 16 {
            c << (2 * bits) | pair
        } else {
            pair
        }
    });
}
