// Bfloat16 numbers, alone and in pairs, and their conversions.
#pragma once

typedef __nv_bfloat16 bf16;
typedef __nv_bfloat162 bf16x2;

INLINE bf16 as_bf16(u32 x) { return __ushort_as_bfloat16((u16)x); }
INLINE bf16x2 as_bf16x2(u32 x) { return __halves2bfloat162(__ushort_as_bfloat16((u16)x), __ushort_as_bfloat16((u16)(x >> 16))); }
INLINE bf16 unknown(bf16 x) { return as_bf16(unknown((u32)__bfloat16_as_ushort(x))); }
INLINE bf16x2 unknown(bf16x2 x) { return __halves2bfloat162(unknown(__low2bfloat16(x)), unknown(__high2bfloat16(x))); }
INLINE u64 bits(bf16 x) { return __hisnan(x) ? 0x7fffull : (u64)__bfloat16_as_ushort(x); }
INLINE u64 bits(bf16x2 x) { return bits(__low2bfloat16(x)) | bits(__high2bfloat16(x)) << 16; }

#define TO_BFLOATS(FROM)                                                          \
    INLINE bf16 to_bf16(FROM x) { return __float2bfloat16_rn(to_f32(x)); }             \
    INLINE bf16x2 to_bf16x2(FROM x) { return __bfloat162bfloat162(to_bf16(x)); }
TO_BFLOATS(u8)
TO_BFLOATS(i8)
TO_BFLOATS(u16)
TO_BFLOATS(i16)
TO_BFLOATS(u32)
TO_BFLOATS(i32)
TO_BFLOATS(u64)
TO_BFLOATS(i64)
TO_BFLOATS(f32)
TO_BFLOATS(f64)

// A pair converts by its upper half; to a pair, into both.
INLINE f32 to_f32(bf16 x) { return __bfloat162float(x); }
INLINE f32 to_f32(bf16x2 x) { return __high2float(x); }
INLINE bf16 to_bf16(bf16 x) { return x; }
INLINE bf16 to_bf16(bf16x2 x) { return __high2bfloat16(x); }
INLINE bf16x2 to_bf16x2(bf16 x) { return __bfloat162bfloat162(x); }
INLINE bf16x2 to_bf16x2(bf16x2 x) { return x; }
#define FROM_BFLOATS(FROM)                                                      \
    INLINE u8 to_u8(FROM x) { return (u8)__bfloat162uint_rz(to_bf16(x)); }          \
    INLINE i8 to_i8(FROM x) { return (i8)__bfloat162int_rz(to_bf16(x)); }           \
    INLINE u16 to_u16(FROM x) { return __bfloat162ushort_rz(to_bf16(x)); }          \
    INLINE i16 to_i16(FROM x) { return __bfloat162short_rz(to_bf16(x)); }           \
    INLINE u32 to_u32(FROM x) { return __bfloat162uint_rz(to_bf16(x)); }            \
    INLINE i32 to_i32(FROM x) { return __bfloat162int_rz(to_bf16(x)); }             \
    INLINE u64 to_u64(FROM x) { return __bfloat162ull_rz(to_bf16(x)); }             \
    INLINE i64 to_i64(FROM x) { return __bfloat162ll_rz(to_bf16(x)); }              \
    INLINE f64 to_f64(FROM x) { return (f64)__bfloat162float(to_bf16(x)); }
FROM_BFLOATS(bf16)
FROM_BFLOATS(bf16x2)

#ifdef NEEDS_HALF
INLINE f16 to_f16(bf16 x) { return __float2half_rn(to_f32(x)); }
INLINE f16 to_f16(bf16x2 x) { return __float2half_rn(to_f32(x)); }
INLINE f16x2 to_f16x2(bf16 x) { return __half2half2(to_f16(x)); }
INLINE f16x2 to_f16x2(bf16x2 x) { return __half2half2(to_f16(x)); }
INLINE bf16 to_bf16(f16 x) { return __float2bfloat16_rn(to_f32(x)); }
INLINE bf16 to_bf16(f16x2 x) { return __float2bfloat16_rn(to_f32(x)); }
INLINE bf16x2 to_bf16x2(f16 x) { return __bfloat162bfloat162(to_bf16(x)); }
INLINE bf16x2 to_bf16x2(f16x2 x) { return __bfloat162bfloat162(to_bf16(x)); }
#endif

// CUDA has these from sm_80 on.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
INLINE bf16 __hfma(bf16 a, bf16 b, bf16 c) { return __float2bfloat16_rn(fmaf(to_f32(a), to_f32(b), to_f32(c))); }
INLINE bf16 __hfma_sat(bf16 a, bf16 b, bf16 c) { return __float2bfloat16_rn(__saturatef(to_f32(__hfma(a, b, c)))); }
INLINE bf16 __hfma_relu(bf16 a, bf16 b, bf16 c) { return __hmax(__hfma(a, b, c), as_bf16(0)); }
#define PAIR(NAME, OF_ONE)                                                                                                \
    INLINE bf16x2 NAME(bf16x2 a, bf16x2 b, bf16x2 c) {                                                                  \
        return __halves2bfloat162(OF_ONE(__low2bfloat16(a), __low2bfloat16(b), __low2bfloat16(c)),                      \
                                  OF_ONE(__high2bfloat16(a), __high2bfloat16(b), __high2bfloat16(c)));                  \
    }
PAIR(__hfma2, __hfma)
PAIR(__hfma2_sat, __hfma_sat)
PAIR(__hfma2_relu, __hfma_relu)
#undef PAIR
#endif
