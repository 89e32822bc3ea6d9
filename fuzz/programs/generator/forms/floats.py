"""Operations on 32-bit and 64-bit floats."""

from ..kernel import operations

operations("""
f32 | ({f32} + {f32}) | 3
f32 | ({f32} - {f32}) | 2
f32 | ({f32} * {f32}) | 3
f32 | __fmaf_rn({f32}, {f32}, {f32}) | 3
f32 | (-{f32})
f64 | ({f64} + {f64}) | 3
f64 | ({f64} * {f64}) | 3
f64 | __fma_rn({f64}, {f64}, {f64}) | 3
""")
