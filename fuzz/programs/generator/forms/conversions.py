"""Conversions between numbers: the rows of `include/conversions.inc`, and casts."""

import pathlib
import re

from ..kernel import operations

INC = pathlib.Path(__file__).resolve().parents[2] / "include" / "conversions.inc"


def ours(name):
    return name.replace("s", "i")


for line in INC.read_text().splitlines():
    match = re.fullmatch(r"CONVERT(_WITH)?\((\w+), (\w+), (\w+)(?:, (\w+))?\)", line)
    if not match:
        continue
    _, to, source, rounding, modifier = match.groups()
    name = f"op_cvt_{rounding}_{modifier}_{to}_{source}" if modifier else f"op_cvt_{rounding}_{to}_{source}"
    float_result = to[0] == "f"
    weight = 0.12 if float_result or source[0] == "f" else 0.08
    operations(f"{ours(to)} | ({ours(to)}){name}({{{ours(source)}}}) | {weight}")
    if not float_result:
        wide = "u32" if to[0] == "u" else "i32"
        operations(f"{wide} | ({wide}){name}({{{ours(source)}}}) | {weight / 2}")

# From bytes and halves of words, from immediates.
operations("""
f32 | (f32)({u32} & 0xffu)
f32 | (f32)(({u32} >> {0-3}*8) & 0xffu)
f32 | (f32)({u32} >> 24)
f32 | (f32)(u16)({u32} >> 16)
f32 | (f32)(i8)({u32} >> {0-3}*8)
f32 | (f32)(i16)({u32} >> 16)
f32 | (f32)({u32})
f32 | (f32)({i32})
f32 | (f32)({u64}) | 0.5
f32 | (f32)({i64}) | 0.5
f32 | (f32)({f64}) | 2
f32 | __uint2float_rz({u32}) | 0.5
f32 | __int2float_ru({i32}) | 0.5
f32 | __ull2float_rd({u64}) | 0.3
f32 | __double2float_rd({f64}) | 0.5
f64 | (f64)({f32}) | 2
f64 | (f64)({i32})
f64 | (f64)({u32})
f64 | (f64)({i64})
f64 | (f64)({u64})
f64 | (f64)(u8)({u32} >> {0-3}*8) | 0.5
f64 | __hiloint2double({i32}, {i32}) | 0.7
i32 | __double2hiint(canonical({f64})) | 0.5
i32 | __double2loint(canonical({f64})) | 0.5
i32 | __float2int_rn({f32}) | 0.6
i32 | __float2int_rd({f32}) | 0.6
u32 | __float2uint_ru({f32}) | 0.6
i64 | __float2ll_rn({f32}) | 0.5
u64 | __float2ull_rd({f32}) | 0.5
i32 | __double2int_ru({f64}) | 0.5
u32 | __double2uint_rn({f64}) | 0.5
i64 | __double2ll_rd({f64}) | 0.5
u64 | __double2ull_ru({f64}) | 0.5
""")
