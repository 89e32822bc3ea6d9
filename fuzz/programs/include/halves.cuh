// Halves, alone and in pairs, and their conversions.
#pragma once

typedef __half f16;
typedef __half2 f16x2;

INLINE f16 as_f16(u32 x) { return __ushort_as_half((u16)x); }
INLINE f16x2 as_f16x2(u32 x) { return __halves2half2(__ushort_as_half((u16)x), __ushort_as_half((u16)(x >> 16))); }
INLINE f16 unknown(f16 x) { return as_f16(unknown((u32)__half_as_ushort(x))); }
INLINE f16x2 unknown(f16x2 x) { return __halves2half2(unknown(__low2half(x)), unknown(__high2half(x))); }
INLINE u64 bits(f16 x) { return __hisnan(x) ? 0x7fffull : (u64)__half_as_ushort(x); }
INLINE u64 bits(f16x2 x) { return bits(__low2half(x)) | bits(__high2half(x)) << 16; }

#define TO_HALVES(FROM)                                                          \
    INLINE f16 to_f16(FROM x) { return __float2half_rn(to_f32(x)); }             \
    INLINE f16x2 to_f16x2(FROM x) { return __half2half2(to_f16(x)); }
TO_HALVES(u8)
TO_HALVES(i8)
TO_HALVES(u16)
TO_HALVES(i16)
TO_HALVES(u32)
TO_HALVES(i32)
TO_HALVES(u64)
TO_HALVES(i64)
TO_HALVES(f32)
TO_HALVES(f64)

// A pair converts by its upper half; to a pair, into both.
INLINE f32 to_f32(f16 x) { return __half2float(x); }
INLINE f32 to_f32(f16x2 x) { return __high2float(x); }
INLINE f16 to_f16(f16 x) { return x; }
INLINE f16 to_f16(f16x2 x) { return __high2half(x); }
INLINE f16x2 to_f16x2(f16 x) { return __half2half2(x); }
INLINE f16x2 to_f16x2(f16x2 x) { return x; }
#define FROM_HALVES(FROM)                                                      \
    INLINE u8 to_u8(FROM x) { return (u8)__half2uint_rz(to_f16(x)); }          \
    INLINE i8 to_i8(FROM x) { return (i8)__half2int_rz(to_f16(x)); }           \
    INLINE u16 to_u16(FROM x) { return __half2ushort_rz(to_f16(x)); }          \
    INLINE i16 to_i16(FROM x) { return __half2short_rz(to_f16(x)); }           \
    INLINE u32 to_u32(FROM x) { return __half2uint_rz(to_f16(x)); }            \
    INLINE i32 to_i32(FROM x) { return __half2int_rz(to_f16(x)); }             \
    INLINE u64 to_u64(FROM x) { return __half2ull_rz(to_f16(x)); }             \
    INLINE i64 to_i64(FROM x) { return __half2ll_rz(to_f16(x)); }              \
    INLINE f64 to_f64(FROM x) { return (f64)__half2float(to_f16(x)); }
FROM_HALVES(f16)
FROM_HALVES(f16x2)
