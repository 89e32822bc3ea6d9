"""The types of values in generated programs, and random immediates of each.

Names are those of `include/program.cuh`: `u8` to `u64`, `i8` to `i64`, `f32`, `f64`, and with a feature
`f16`, `bf16`, `f16x2`, `bf16x2`.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Type:
    name: str
    bits: int
    kind: str  # "unsigned", "signed", "float", "half", "pair"
    need: str = ""

    @property
    def bytes(self):
        return self.bits // 8


TYPES = {
    t.name: t
    for t in (
        Type("u8", 8, "unsigned"), Type("u16", 16, "unsigned"), Type("u32", 32, "unsigned"), Type("u64", 64, "unsigned"),
        Type("i8", 8, "signed"), Type("i16", 16, "signed"), Type("i32", 32, "signed"), Type("i64", 64, "signed"),
        Type("f32", 32, "float"), Type("f64", 64, "float"),
        Type("f16", 16, "half", "half"), Type("bf16", 16, "half", "bf16"),
        Type("f16x2", 32, "pair", "half"), Type("bf16x2", 32, "pair", "bf16"),
    )
}
INTEGERS = tuple(n for n, t in TYPES.items() if t.kind in ("unsigned", "signed"))
FLOATS = ("f32", "f64")
HALVES = ("f16", "bf16", "f16x2", "bf16x2")
# How often a value of each type is wanted.
WEIGHTS = {"u32": 9, "i32": 6, "u64": 5, "i64": 3, "u16": 2, "i16": 2, "u8": 2, "i8": 2, "f32": 6, "f64": 3,
           "f16": 2, "bf16": 2, "f16x2": 2, "bf16x2": 2}


def pattern(rng, bits):
    """A bit pattern that is often at an edge of something."""
    mask = (1 << bits) - 1
    choice = rng.randrange(9)
    if choice < 2:
        return rng.randrange(20) & mask
    if choice == 2:
        return -rng.randrange(1, 20) & mask
    if choice == 3:
        return (1 << rng.randrange(bits)) & mask
    if choice == 4:
        return ((1 << rng.randrange(1, bits + 1)) - 1) & mask
    if choice == 5:
        return rng.choice((1 << (bits - 1), (1 << (bits - 1)) - 1, mask, 0xFF, 0xFFFF, 0x5555555555555555, 0x0F0F0F0F0F0F0F0F)) & mask
    if choice == 6:
        return (rng.getrandbits(8) << rng.randrange(bits)) & mask
    return rng.getrandbits(bits)


def integer(rng, name):
    type_ = TYPES[name]
    value = pattern(rng, type_.bits)
    text = f"0x{value:x}" if value > 99 else str(value)
    suffix = "ull" if type_.bits == 64 else "u"
    if type_.kind == "unsigned":
        return text + suffix if type_.bits >= 32 else f"({name}){text}u"
    return f"({name}){text}{suffix}"


FLOAT_TEXTS = ("0.0", "1.0", "-1.0", "0.5", "2.0", "-0.0", "3.0", "1.5", "-2.5", "0.1", "100.0", "1e-3", "65504.0",
               "16777216.0", "-0.75", "1e30", "-1e-30", "3.14159265", "256.0", "-7.0", "0.333333333", "2147483648.0")
SPECIAL32 = (0x00000001, 0x807FFFFF, 0x00800000, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FFFFFFF, 0x3F7FFFFF, 0x33800000)
SPECIAL64 = (1, 0x800FFFFFFFFFFFFF, 0x0010000000000000, 0x7FEFFFFFFFFFFFFF, 0x7FF0000000000000, 0xFFF0000000000000,
             0x7FF8000000000000, 0x3FEFFFFFFFFFFFFF, 0x36A0000000000000, 0x47EFFFFFE0000000)


def parenthesised(text):
    return f"({text})" if text[0] == "-" else text


def immediate(rng, name):
    """A constant of the type, as C++ text."""
    type_ = TYPES[name]
    if name in INTEGERS:
        return integer(rng, name)
    if name == "f32":
        if rng.random() < 0.15:
            return f"as_f32(0x{rng.choice(SPECIAL32):x}u)"
        if rng.random() < 0.2:
            return f"as_f32(0x{rng.getrandbits(32) & 0xBFFFFFFF:x}u)"
        return parenthesised(rng.choice(FLOAT_TEXTS) + "f")
    if name == "f64":
        if rng.random() < 0.15:
            return f"as_f64(0x{rng.choice(SPECIAL64):x}ull)"
        if rng.random() < 0.2:
            return f"as_f64(0x{rng.getrandbits(64) & 0xBFFFFFFFFFFFFFFF:x}ull)"
        return parenthesised(rng.choice(FLOAT_TEXTS))
    return f"as_{name}(0x{pattern(rng, type_.bits):x}u)"
