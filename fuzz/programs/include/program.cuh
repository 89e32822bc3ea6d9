// The vocabulary of generated programs: types, conversions that are always defined, the hash.
//
// Conversions are `to_TYPE(value)`, patterns of bits `as_TYPE(bits)` and `bits(value)`; NaNs count as one value.
#pragma once

// Programs have variables that nothing reads.
#ifdef __CUDACC__
#pragma nv_diag_suppress 39, 128, 177, 186, 550
#endif

#ifdef LOCKSTEP_HOST
#include "host/host.h"
#else
#ifdef NEEDS_HALF
#include <cuda_fp16.h>
#endif
#ifdef NEEDS_BF16
#include <cuda_bf16.h>
#endif
#ifdef NEEDS_GROUPS
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#endif
#endif

typedef unsigned char u8;
typedef signed char i8;
typedef unsigned short u16;
typedef short i16;
typedef unsigned int u32;
typedef int i32;
typedef unsigned long long u64;
typedef long long i64;
typedef float f32;
typedef double f64;
typedef unsigned __int128 u128;
typedef __int128 i128;

#define INLINE __device__ __forceinline__

INLINE u64 mix(u64 h, u64 value)
{
    h = (h ^ value) * 0x9e3779b97f4a7c15ull;
    return h ^ (h >> 29);
}

template <typename T> INLINE const T *as_const(const unsigned char *bytes)
{
    return (const T *)bytes;
}

INLINE f32 as_f32(u32 x) { return __uint_as_float(x); }
INLINE f64 as_f64(u64 x) { return __longlong_as_double((i64)x); }

// A value that no compiler can compute.
static __device__ volatile u32 always_zero;
INLINE u32 unknown(u32 x) { return x ^ always_zero; }
INLINE i32 unknown(i32 x) { return (i32)unknown((u32)x); }
INLINE u64 unknown(u64 x) { return x ^ always_zero; }
INLINE f32 unknown(f32 x) { return as_f32(unknown(__float_as_uint(x))); }
INLINE f64 unknown(f64 x) { return as_f64((u64)__double_as_longlong(x) ^ always_zero); }

INLINE u64 bits(u8 x) { return x; }
INLINE u64 bits(i8 x) { return (u64)(i64)x; }
INLINE u64 bits(u16 x) { return x; }
INLINE u64 bits(i16 x) { return (u64)(i64)x; }
INLINE u64 bits(u32 x) { return x; }
INLINE u64 bits(i32 x) { return (u64)(i64)x; }
INLINE u64 bits(u64 x) { return x; }
INLINE u64 bits(i64 x) { return (u64)x; }
INLINE u64 bits(f32 x) { return x != x ? 0x7fffffffull : (u64)__float_as_uint(x); }
INLINE u64 bits(f64 x) { return x != x ? 0x7fffffffffffffffull : (u64)__double_as_longlong(x); }

INLINE bool is_nan(f32 x) { return x != x; }
INLINE bool is_nan(f64 x) { return x != x; }
// The number, or one NaN: where the sign or the bits of a NaN would show.
INLINE f32 canonical(f32 x) { return x != x ? as_f32(0x7fffffffu) : x; }
INLINE f64 canonical(f64 x) { return x != x ? as_f64(0x7fffffffffffffffull) : x; }

// Between integers, as C++ converts.
#define TO_INTEGERS(FROM)                        \
    INLINE u8 to_u8(FROM x) { return (u8)x; }    \
    INLINE i8 to_i8(FROM x) { return (i8)x; }    \
    INLINE u16 to_u16(FROM x) { return (u16)x; } \
    INLINE i16 to_i16(FROM x) { return (i16)x; } \
    INLINE u32 to_u32(FROM x) { return (u32)x; } \
    INLINE i32 to_i32(FROM x) { return (i32)x; } \
    INLINE u64 to_u64(FROM x) { return (u64)x; } \
    INLINE i64 to_i64(FROM x) { return (i64)x; } \
    INLINE f32 to_f32(FROM x) { return (f32)x; } \
    INLINE f64 to_f64(FROM x) { return (f64)x; }
TO_INTEGERS(u8)
TO_INTEGERS(i8)
TO_INTEGERS(u16)
TO_INTEGERS(i16)
TO_INTEGERS(u32)
TO_INTEGERS(i32)
TO_INTEGERS(u64)
TO_INTEGERS(i64)

// From floats to integers towards zero, saturating.
INLINE u32 to_u32(f32 x) { return __float2uint_rz(x); }
INLINE i32 to_i32(f32 x) { return __float2int_rz(x); }
INLINE u64 to_u64(f32 x) { return __float2ull_rz(x); }
INLINE i64 to_i64(f32 x) { return __float2ll_rz(x); }
INLINE u16 to_u16(f32 x) { return (u16)__float2uint_rz(x); }
INLINE i16 to_i16(f32 x) { return (i16)__float2int_rz(x); }
INLINE u8 to_u8(f32 x) { return (u8)__float2uint_rz(x); }
INLINE i8 to_i8(f32 x) { return (i8)__float2int_rz(x); }
INLINE u32 to_u32(f64 x) { return __double2uint_rz(x); }
INLINE i32 to_i32(f64 x) { return __double2int_rz(x); }
INLINE u64 to_u64(f64 x) { return __double2ull_rz(x); }
INLINE i64 to_i64(f64 x) { return __double2ll_rz(x); }
INLINE u16 to_u16(f64 x) { return (u16)__double2uint_rz(x); }
INLINE i16 to_i16(f64 x) { return (i16)__double2int_rz(x); }
INLINE u8 to_u8(f64 x) { return (u8)__double2uint_rz(x); }
INLINE i8 to_i8(f64 x) { return (i8)__double2int_rz(x); }
INLINE f32 to_f32(f32 x) { return x; }
INLINE f64 to_f64(f32 x) { return (f64)x; }
INLINE f32 to_f32(f64 x) { return (f32)x; }
INLINE f64 to_f64(f64 x) { return x; }

// The types that hold values of the names of PTX.
#define HELD_u8 u16
#define HELD_s8 i16
#define HELD_u16 u16
#define HELD_s16 i16
#define HELD_u32 u32
#define HELD_s32 i32
#define HELD_u64 u64
#define HELD_s64 i64
#define HELD_f32 f32
#define HELD_f64 f64

#include "machine.cuh"
// The greater or lesser of two, with what the predicates say of the winner. With constants, ptxas of CUDA 13 swaps
// the predicates of the two halves.
INLINE i32 vibmax_s32(i32 a, i32 b) { bool first; i32 r = __vibmax_s32(a, b, &first); return (i32)((u32)r * 2u + first); }
INLINE u32 vibmax_u32(u32 a, u32 b) { bool first; u32 r = __vibmax_u32(a, b, &first); return r * 2u + first; }
INLINE u32 vibmax_s16x2(u32 a, u32 b) { bool high, low; u32 r = __vibmax_s16x2(unknown(a), unknown(b), &high, &low); return r * 4u + high * 2u + low; }
INLINE u32 vibmax_u16x2(u32 a, u32 b) { bool high, low; u32 r = __vibmax_u16x2(unknown(a), unknown(b), &high, &low); return r * 4u + high * 2u + low; }
INLINE i32 vibmin_s32(i32 a, i32 b) { bool first; i32 r = __vibmin_s32(a, b, &first); return (i32)((u32)r * 2u + first); }
INLINE u32 vibmin_u32(u32 a, u32 b) { bool first; u32 r = __vibmin_u32(a, b, &first); return r * 2u + first; }
INLINE u32 vibmin_s16x2(u32 a, u32 b) { bool high, low; u32 r = __vibmin_s16x2(unknown(a), unknown(b), &high, &low); return r * 4u + high * 2u + low; }
INLINE u32 vibmin_u16x2(u32 a, u32 b) { bool high, low; u32 r = __vibmin_u16x2(unknown(a), unknown(b), &high, &low); return r * 4u + high * 2u + low; }

#ifdef NEEDS_HALF
#include "halves.cuh"
#endif
#ifdef NEEDS_BF16
#include "bfloats.cuh"
#endif
#ifdef NEEDS_TOGETHER
#include "together.cuh"
#endif
