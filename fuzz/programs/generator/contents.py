"""The bytes that fill inputs, parameters and symbols before a launch.

`byte(seed, owner, kind, index)` is the only definition; `runner.cpp` computes the same.

Word j (64 bits, little endian) of a stream is

    base  = mix(mix(mix(seed) + owner) + kind)
    plain = mix(base + (j + 1) * 0x9E3779B97F4A7C15)

with `mix` the finaliser of splitmix64 and all sums modulo 2^64. `owner` is the number of the
kernel for inputs and parameters, and the place of the symbol in the manifest (from 0) for symbols.
Parameters are one stream a kernel: the bytes of all parameters one after the other, without padding.

Parameters and symbols take the plain words. Inputs hold values at the edges too: with
`pick = mix(plain)`,

    pick >> 61 = 0..3   the plain word
                 4      two values of EDGES32, chosen by bits 0..3 and 4..7 of `pick`
                 5      one value of EDGES64, chosen by bits 0..3 of `pick`
                 6      plain & 0x0000003f0000003f
                 7      four values of EDGES16, chosen by bits 0..3, 4..7, 8..11, 12..15 of `pick`

where the first value chosen is the least significant one.
"""

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
INPUT, PARAMETERS, SYMBOL = 0, 1, 2

# Zeros, denormals, ones, infinities, NaNs, and ends of integers.
EDGES32 = (0x00000000, 0x80000000, 0x00000001, 0x807FFFFF, 0x00800000, 0x3F800000, 0xBF800000, 0x7F7FFFFF,
           0x7F800000, 0xFF800000, 0x7FC00000, 0xFFFFFFFF, 0x7FFFFFFF, 0x4F000000, 0x477FF000, 0x3F000001)
EDGES64 = (0x0000000000000000, 0x8000000000000000, 0x0000000000000001, 0x800FFFFFFFFFFFFF,
           0x0010000000000000, 0x3FF0000000000000, 0xBFF0000000000000, 0x7FEFFFFFFFFFFFFF,
           0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000, 0xFFFFFFFFFFFFFFFF,
           0x7FFFFFFFFFFFFFFF, 0x43E0000000000000, 0x36A0000000000000, 0x47EFFFFFF0000000)
EDGES16 = (0x0000, 0x8000, 0x0001, 0x83FF, 0x0400, 0x3C00, 0xBC00, 0x7BFF,
           0x7C00, 0xFC00, 0x7E00, 0xFFFF, 0x3F80, 0x7F80, 0x0080, 0x7FFF)


def mix(value):
    value &= MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
    return value ^ (value >> 31)


def word(seed, owner, kind, j):
    base = mix(mix(mix(seed) + owner) + kind)
    plain = mix(base + (j + 1) * GOLDEN)
    if kind != INPUT:
        return plain
    pick = mix(plain)
    shape = pick >> 61
    if shape < 4:
        return plain
    if shape == 4:
        return EDGES32[pick & 15] | EDGES32[(pick >> 4) & 15] << 32
    if shape == 5:
        return EDGES64[pick & 15]
    if shape == 6:
        return plain & 0x0000003F0000003F
    return sum(EDGES16[(pick >> (4 * i)) & 15] << (16 * i) for i in range(4))


def byte(seed, owner, kind, index):
    return (word(seed, owner, kind, index // 8) >> (8 * (index % 8))) & 0xFF
