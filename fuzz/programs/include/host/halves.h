// Halves and bfloat16 numbers, alone and in pairs: arithmetic in doubles, rounded once.
#pragma once

namespace host {

// a + b as a double whose last bit says whether it is exact, so that a second rounding does no harm.
inline double sum_to_odd(double a, double b) {
    double sum = a + b;
    if (!(fabs(sum) < INFINITY))
        return sum;
    double other = sum - a, error = (a - (sum - other)) + (b - other);
    uint64_t bits = word(sum);
    if (error != 0 && !(bits & 1))
        bits += (error > 0) == (sum > 0) ? 1 : -1;
    double result;
    unword(result, bits);
    return result;
}

// The nearest number with so many bits of exponent and mantissa, as its bits.
template <int EXPONENT, int MANTISSA> inline uint16_t small(double a, Rounding rounding = RN) {
    const int bias = (1 << (EXPONENT - 1)) - 1, least = 1 - bias;
    uint16_t sign = signbit(a) ? 0x8000 : 0, infinite = (uint16_t)(((1 << EXPONENT) - 1) << MANTISSA);
    if (a != a)
        return 0x7fff;
    if (fabs(a) == INFINITY)
        return sign | infinite;
    if (a == 0)
        return sign;
    int exponent;
    frexp(a, &exponent); // 0.5 <= mantissa < 1
    exponent = exponent - 1 < least ? least : exponent - 1;
    // In units of the last place.
    double scaled = ldexp(fabs(a), MANTISSA - exponent), below = floor(scaled), rest = scaled - below;
    bool up = rounding == RN ? rest > 0.5 || (rest == 0.5 && fmod(below, 2) == 1) : rest > 0 && (rounding == RU ? !sign : rounding == RD ? (bool)sign : false);
    uint32_t units = (uint32_t)below + up;
    // A carry goes into the exponent by itself; so does the first bit of a normal number.
    uint32_t bits = units + ((uint32_t)(exponent - least) << MANTISSA);
    if (bits >= infinite)
        return sign | (rounding == RN || rounding == (sign ? RD : RU) ? infinite : (uint16_t)(infinite - 1));
    return (uint16_t)(sign | bits);
}

template <int EXPONENT, int MANTISSA> inline float large(uint16_t bits) {
    const int bias = (1 << (EXPONENT - 1)) - 1, most = (1 << EXPONENT) - 1;
    int exponent = bits >> MANTISSA & most, mantissa = bits & ((1 << MANTISSA) - 1);
    float value = exponent == most ? (mantissa ? NAN : INFINITY)
                                   : exponent ? ldexpf((float)(mantissa | 1 << MANTISSA), exponent - bias - MANTISSA) : ldexpf((float)mantissa, 1 - bias - MANTISSA);
    return bits & 0x8000 ? -value : value;
}

// A 64-bit integer as a double that remembers in its last bit what it lost.
inline double odd(long long a) {
    long long high = a >> 11 << 11;
    return a == high || (a < (1ll << 53) && a > -(1ll << 53)) ? (double)a : (double)(high | 1ll << 11);
}
inline double odd(unsigned long long a) {
    unsigned long long high = a >> 11 << 11;
    return a == high || a < (1ull << 53) ? (double)a : (double)(high | 1ull << 11);
}

template <int E, int M> struct Small {
    uint16_t bits;
    Small() = default;
    Small(float a) : bits(small<E, M>(a)) {}
    static Small of(double a, Rounding rounding = RN) {
        Small result;
        result.bits = small<E, M>(a, rounding);
        return result;
    }
    static Small raw(unsigned bits) {
        Small result;
        result.bits = (uint16_t)bits;
        return result;
    }
    operator float() const { return large<E, M>(bits); }
};
template <int E, int M> struct alignas(4) SmallPair {
    Small<E, M> x, y;
};

template <class S> inline S clean(S a) { return (float)a != (float)a ? S::raw(0x7fff) : a; }
template <class S> inline S plus(S a, S b) { return S::of(sum_to_odd((float)a, (float)b)); }
template <class S> inline S minus(S a, S b) { return S::of(sum_to_odd((float)a, -(double)(float)b)); }
template <class S> inline S times(S a, S b) { return S::of((double)(float)a * (float)b); }
template <class S> inline S over(S a, S b) { return S::of((double)(float)a / (float)b); }
template <class S> inline S fuse(S a, S b, S c) { return S::of(sum_to_odd((double)(float)a * (float)b, (float)c)); }
template <class S> inline S one_at_most(S a) { return S::of(saturated((float)a)); }
// Not below zero; NaN stays.
template <class S> inline S relu(S a) { return (float)a != (float)a ? S::raw(0x7fff) : (float)a > 0 ? a : S::raw(0); }
template <class S> inline S flip(S a) { return (float)a != (float)a ? S::raw(0x7fff) : S::raw(a.bits ^ 0x8000u); }
template <class S> inline S bare(S a) { return (float)a != (float)a ? S::raw(0x7fff) : S::raw(a.bits & 0x7fffu); }
template <class S> inline S lesser_of(S a, S b) { return S::of(lesser((float)a, (float)b)); }
template <class S> inline S greater_of(S a, S b) { return S::of(greater((float)a, (float)b)); }
template <class S> inline S lesser_nan(S a, S b) { return (float)a != (float)a || (float)b != (float)b ? S::raw(0x7fff) : lesser_of(a, b); }
template <class S> inline S greater_nan(S a, S b) { return (float)a != (float)a || (float)b != (float)b ? S::raw(0x7fff) : greater_of(a, b); }

} // namespace host

// Both kinds have functions of the same names, but for conversions.
#define SMALL_ARITHMETIC(S, P)                                                                   \
    inline S operator+(S a, S b) { return host::plus(a, b); }                                    \
    inline S operator-(S a, S b) { return host::minus(a, b); }                                   \
    inline S operator*(S a, S b) { return host::times(a, b); }                                   \
    inline S operator/(S a, S b) { return host::over(a, b); }                                    \
    inline S operator-(S a) { return host::flip(a); }                                            \
    inline S operator+(S a) { return a; }                                                        \
    inline S &operator+=(S &a, S b) { return a = a + b; }                                        \
    inline S &operator-=(S &a, S b) { return a = a - b; }                                        \
    inline S &operator*=(S &a, S b) { return a = a * b; }                                        \
    inline P operator+(P a, P b) { return {a.x + b.x, a.y + b.y}; }                              \
    inline P operator-(P a, P b) { return {a.x - b.x, a.y - b.y}; }                              \
    inline P operator*(P a, P b) { return {a.x * b.x, a.y * b.y}; }                              \
    inline P operator-(P a) { return {-a.x, -a.y}; }                                             \
    SMALL2(S, P, __hadd, host::plus(a, b))                                                       \
    SMALL2(S, P, __hsub, host::minus(a, b))                                                      \
    SMALL2(S, P, __hmul, host::times(a, b))                                                      \
    SMALL2(S, P, __hmin, host::lesser_of(a, b))                                                  \
    SMALL2(S, P, __hmax, host::greater_of(a, b))                                                 \
    inline S __hadd_rn(S a, S b) { return a + b; }                                               \
    inline S __hsub_rn(S a, S b) { return a - b; }                                               \
    inline S __hmul_rn(S a, S b) { return a * b; }                                               \
    inline P __hadd2_rn(P a, P b) { return a + b; }                                              \
    inline P __hsub2_rn(P a, P b) { return a - b; }                                              \
    inline P __hmul2_rn(P a, P b) { return a * b; }                                              \
    inline S __hdiv(S a, S b) { return a / b; }                                                  \
    inline P __h2div(P a, P b) { return {a.x / b.x, a.y / b.y}; }                                \
    SMALL2_NAMED(S, P, __hadd_sat, __hadd2_sat, host::one_at_most(a + b))                        \
    SMALL2_NAMED(S, P, __hsub_sat, __hsub2_sat, host::one_at_most(a - b))                        \
    SMALL2_NAMED(S, P, __hmul_sat, __hmul2_sat, host::one_at_most(a * b))                        \
    SMALL2_NAMED(S, P, __hmin_nan, __hmin2_nan, host::lesser_nan(a, b))                          \
    SMALL2_NAMED(S, P, __hmax_nan, __hmax2_nan, host::greater_nan(a, b))                         \
    SMALL3(S, P, __hfma, __hfma2, host::fuse(a, b, c))                                           \
    SMALL3(S, P, __hfma_sat, __hfma2_sat, host::one_at_most(host::fuse(a, b, c)))                \
    SMALL3(S, P, __hfma_relu, __hfma2_relu, host::relu(host::fuse(a, b, c)))                     \
    inline S __hneg(S a) { return host::flip(a); }                                               \
    inline P __hneg2(P a) { return {host::flip(a.x), host::flip(a.y)}; }                         \
    inline S __habs(S a) { return host::bare(a); }                                               \
    inline P __habs2(P a) { return {host::bare(a.x), host::bare(a.y)}; }                         \
    inline bool __hisnan(S a) { return (float)a != (float)a; }                                   \
    inline P __hisnan2(P a) { return {S(__hisnan(a.x) ? 1.0f : 0.0f), S(__hisnan(a.y) ? 1.0f : 0.0f)}; } \
    inline int __hisinf(S a) { return (a.bits & 0x7fff) == S(INFINITY).bits ? (a.bits & 0x8000 ? -1 : 1) : 0; } \
    inline S hfloor(S a) { return S::of(floorf(a)); }                                            \
    inline S hceil(S a) { return S::of(ceilf(a)); }                                              \
    inline S htrunc(S a) { return S::of(truncf(a)); }                                            \
    inline S hrint(S a) { return S::of(rintf(a)); }                                              \
    inline P h2floor(P a) { return {hfloor(a.x), hfloor(a.y)}; }                                 \
    inline P h2ceil(P a) { return {hceil(a.x), hceil(a.y)}; }                                    \
    inline P h2trunc(P a) { return {htrunc(a.x), htrunc(a.y)}; }                                 \
    inline P h2rint(P a) { return {hrint(a.x), hrint(a.y)}; }                                    \
    inline S hsqrt(S a) { return S::of(sqrt((double)(float)a)); }                                \
    SMALL_COMPARE(S, P, eq, a == b)                                                              \
    SMALL_COMPARE(S, P, ne, a < b || a > b)                                                      \
    SMALL_COMPARE(S, P, lt, a < b)                                                               \
    SMALL_COMPARE(S, P, le, a <= b)                                                              \
    SMALL_COMPARE(S, P, gt, a > b)                                                               \
    SMALL_COMPARE(S, P, ge, a >= b)                                                              \
    SMALL_COMPARE(S, P, equ, !(a < b || a > b))                                                  \
    SMALL_COMPARE(S, P, neu, !(a == b))                                                          \
    SMALL_COMPARE(S, P, ltu, !(a >= b))                                                          \
    SMALL_COMPARE(S, P, leu, !(a > b))                                                           \
    SMALL_COMPARE(S, P, gtu, !(a <= b))                                                          \
    SMALL_COMPARE(S, P, geu, !(a < b))                                                           \
    inline float __low2float(P a) { return a.x; }                                                \
    inline float __high2float(P a) { return a.y; }
#define SMALL2_NAMED(S, P, NAME, PAIR, EXPRESSION)         \
    inline S NAME(S a, S b) { return EXPRESSION; }         \
    inline P PAIR(P a, P b) { return {NAME(a.x, b.x), NAME(a.y, b.y)}; }
#define SMALL2(S, P, NAME, EXPRESSION) SMALL2_NAMED(S, P, NAME, NAME##2, EXPRESSION)
#define SMALL3(S, P, NAME, PAIR, EXPRESSION)               \
    inline S NAME(S a, S b, S c) { return EXPRESSION; }    \
    inline P PAIR(P a, P b, P c) { return {NAME(a.x, b.x, c.x), NAME(a.y, b.y, c.y)}; }
#define SMALL_COMPARE(S, P, NAME, CONDITION)                                                                              \
    inline bool __h##NAME(S x, S y) { float a = x, b = y; return CONDITION; }                                             \
    inline P __h##NAME##2(P x, P y) { return {S(__h##NAME(x.x, y.x) ? 1.0f : 0.0f), S(__h##NAME(x.y, y.y) ? 1.0f : 0.0f)}; } \
    inline bool __hb##NAME##2(P x, P y) { return __h##NAME(x.x, y.x) && __h##NAME(x.y, y.y); }                            \
    inline unsigned __h##NAME##2_mask(P x, P y) { return (__h##NAME(x.x, y.x) ? 0xffffu : 0) | (__h##NAME(x.y, y.y) ? 0xffff0000u : 0); }

// Conversions to and from integers, in all roundings. `WORD` is half or bfloat16.
#define SMALL_INTEGERS(S, WORD, NAME, MODE)                                                                            \
    inline int __##WORD##2int_##NAME(S a) { return (int)host::integer(host::MODE, (float)a, 32, true); }               \
    inline unsigned __##WORD##2uint_##NAME(S a) { return (unsigned)host::integer(host::MODE, (float)a, 32, false); }   \
    inline short __##WORD##2short_##NAME(S a) { return (short)host::integer(host::MODE, (float)a, 16, true); }         \
    inline unsigned short __##WORD##2ushort_##NAME(S a) { return (unsigned short)host::integer(host::MODE, (float)a, 16, false); } \
    inline long long __##WORD##2ll_##NAME(S a) { return (long long)host::integer(host::MODE, (float)a, 64, true); }    \
    inline unsigned long long __##WORD##2ull_##NAME(S a) { return host::integer(host::MODE, (float)a, 64, false); }    \
    inline S __int2##WORD##_##NAME(int a) { return S::of(a, host::MODE); }                                             \
    inline S __uint2##WORD##_##NAME(unsigned a) { return S::of(a, host::MODE); }                                       \
    inline S __short2##WORD##_##NAME(short a) { return S::of(a, host::MODE); }                                         \
    inline S __ushort2##WORD##_##NAME(unsigned short a) { return S::of(a, host::MODE); }                               \
    inline S __ll2##WORD##_##NAME(long long a) { return S::of(host::odd(a), host::MODE); }                             \
    inline S __ull2##WORD##_##NAME(unsigned long long a) { return S::of(host::odd(a), host::MODE); }                   \
    inline S __float2##WORD##_##NAME(float a) { return S::of(a, host::MODE); }
#define SMALL_WORDS(S, P, WORD, PAIR)                                                             \
    inline S __float2##WORD(float a) { return S::of(a); }                                         \
    inline S __double2##WORD(double a) { return S::of(a); }                                       \
    inline float __##WORD##2float(S a) { return a; }                                              \
    inline unsigned short __##WORD##_as_ushort(S a) { return a.bits; }                            \
    inline short __##WORD##_as_short(S a) { return (short)a.bits; }                               \
    inline S __ushort_as_##WORD(unsigned short a) { return S::raw(a); }                           \
    inline S __short_as_##WORD(short a) { return S::raw((unsigned short)a); }                     \
    inline P __##WORD##2##PAIR(S a) { return {a, a}; }                                            \
    inline P __halves2##PAIR(S a, S b) { return {a, b}; }                                         \
    inline P make_##PAIR(S a, S b) { return {a, b}; }                                             \
    inline S __low2##WORD(P a) { return a.x; }                                                    \
    inline S __high2##WORD(P a) { return a.y; }                                                   \
    inline P __low2##PAIR(P a) { return {a.x, a.x}; }                                             \
    inline P __high2##PAIR(P a) { return {a.y, a.y}; }                                            \
    inline P __lows2##PAIR(P a, P b) { return {a.x, b.x}; }                                       \
    inline P __highs2##PAIR(P a, P b) { return {a.y, b.y}; }                                      \
    inline P __lowhigh2highlow(P a) { return {a.y, a.x}; }                                        \
    inline P __float2##PAIR##_rn(float a) { return {S(a), S(a)}; }                                \
    inline P __floats2##PAIR##_rn(float a, float b) { return {S(a), S(b)}; }                      \
    inline P __float22##PAIR##_rn(float2 a) { return {S(a.x), S(a.y)}; }

#ifdef NEEDS_HALF
typedef host::Small<5, 10> __half;
typedef host::SmallPair<5, 10> __half2;
typedef __half half;
typedef __half2 half2;
SMALL_ARITHMETIC(__half, __half2)
SMALL_WORDS(__half, __half2, half, half2)
SMALL_INTEGERS(__half, half, rn, RN)
SMALL_INTEGERS(__half, half, rz, RZ)
SMALL_INTEGERS(__half, half, ru, RU)
SMALL_INTEGERS(__half, half, rd, RD)
inline float2 __half22float2(__half2 a) { return {a.x, a.y}; }
#endif
#ifdef NEEDS_BF16
typedef host::Small<8, 7> __nv_bfloat16;
typedef host::SmallPair<8, 7> __nv_bfloat162;
SMALL_ARITHMETIC(__nv_bfloat16, __nv_bfloat162)
SMALL_WORDS(__nv_bfloat16, __nv_bfloat162, bfloat16, bfloat162)
SMALL_INTEGERS(__nv_bfloat16, bfloat16, rn, RN)
SMALL_INTEGERS(__nv_bfloat16, bfloat16, rz, RZ)
SMALL_INTEGERS(__nv_bfloat16, bfloat16, ru, RU)
SMALL_INTEGERS(__nv_bfloat16, bfloat16, rd, RD)
inline float2 __bfloat1622float2(__nv_bfloat162 a) { return {a.x, a.y}; }
#endif
#undef SMALL_ARITHMETIC
#undef SMALL2_NAMED
#undef SMALL2
#undef SMALL3
#undef SMALL_COMPARE
#undef SMALL_INTEGERS
#undef SMALL_WORDS
