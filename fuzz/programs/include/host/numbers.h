// Intrinsics on numbers: integers, floats with roundings, conversions that saturate.
#pragma once

#include <climits>
#include <xmmintrin.h>

namespace host {

enum Rounding { RN = _MM_ROUND_NEAREST, RD = _MM_ROUND_DOWN, RU = _MM_ROUND_UP, RZ = _MM_ROUND_TOWARD_ZERO };

// A value that the compiler cannot follow, so that no operation moves across a change of the rounding.
template <class T> inline T opaque(T value) {
    asm volatile("" : "+x"(value) : : "memory");
    return value;
}
inline uint64_t opaque(uint64_t value) {
    asm volatile("" : "+r"(value) : : "memory");
    return value;
}
inline int64_t opaque(int64_t value) {
    asm volatile("" : "+r"(value) : : "memory");
    return value;
}

template <class F, class... A> inline auto rounded(Rounding rounding, F operation, A... values) {
    unsigned before = _mm_getcsr();
    _mm_setcsr((before & ~(unsigned)_MM_ROUND_MASK) | rounding);
    auto result = opaque(operation(opaque(values)...));
    _mm_setcsr(before);
    return result;
}

template <class T> inline T add(Rounding r, T a, T b) { return rounded(r, [](T a, T b) { return a + b; }, a, b); }
template <class T> inline T sub(Rounding r, T a, T b) { return rounded(r, [](T a, T b) { return a - b; }, a, b); }
template <class T> inline T mul(Rounding r, T a, T b) { return rounded(r, [](T a, T b) { return a * b; }, a, b); }
template <class T> inline T div(Rounding r, T a, T b) { return rounded(r, [](T a, T b) { return a / b; }, a, b); }
inline float fused(Rounding r, float a, float b, float c) { return rounded(r, [](float a, float b, float c) { return fmaf(a, b, c); }, a, b, c); }
inline double fused(Rounding r, double a, double b, double c) { return rounded(r, [](double a, double b, double c) { return fma(a, b, c); }, a, b, c); }
inline float root(Rounding r, float a) { return rounded(r, [](float a) { return sqrtf(a); }, a); }
inline double root(Rounding r, double a) { return rounded(r, [](double a) { return sqrt(a); }, a); }
inline float narrow(Rounding r, double a) { return rounded(r, [](double a) { return (float)a; }, a); }
inline float to_float(Rounding r, int64_t a) { return rounded(r, [](int64_t a) { return (float)a; }, a); }
inline float to_float(Rounding r, uint64_t a) { return rounded(r, [](uint64_t a) { return (float)a; }, a); }
inline double to_double(Rounding r, int64_t a) { return rounded(r, [](int64_t a) { return (double)a; }, a); }
inline double to_double(Rounding r, uint64_t a) { return rounded(r, [](uint64_t a) { return (double)a; }, a); }

// To a whole number.
template <class T> inline T whole(Rounding r, T a) { return r == RN ? rint(a) : r == RD ? floor(a) : r == RU ? ceil(a) : trunc(a); }

// A float as an integer of so many bits, saturating. NaN is 0, or the highest bit alone where 64 bits take part.
template <class T> inline uint64_t integer(Rounding r, T a, unsigned bits, bool is_signed) {
    if (a != a)
        return bits == 64 || sizeof(T) == 8 ? 1ull << (bits - 1) : 0;
    double value = whole(r, (double)a), limit = ldexp(1.0, (int)bits - is_signed);
    uint64_t most = is_signed ? (1ull << (bits - 1)) - 1 : ~0ull >> (64 - bits);
    if (value >= limit)
        return most;
    if (is_signed)
        return value < -limit ? (uint64_t)-(int64_t)most - 1 : (uint64_t)(int64_t)value;
    return value <= 0 ? 0 : (uint64_t)value;
}

inline float flush(float a) { return a != 0 && fabsf(a) < 0x1p-126f ? copysignf(0, a) : a; }
inline double flush(double a) { return a; }
template <class T> inline T saturated(T a) { return a != a || a <= 0 ? 0 : a > 1 ? 1 : a; }

// The lesser and the greater: -0 below 0, a number before a NaN.
template <class T> inline T lesser(T a, T b) { return a != a ? b : b != b ? a : a == b ? (signbit(a) ? a : b) : a < b ? a : b; }
template <class T> inline T greater(T a, T b) { return a != a ? b : b != b ? a : a == b ? (signbit(a) ? b : a) : a > b ? a : b; }

} // namespace host

inline unsigned __float_as_uint(float x) { return (unsigned)host::word(x); }
inline int __float_as_int(float x) { return (int)host::word(x); }
inline float __uint_as_float(unsigned x) { float y; memcpy(&y, &x, 4); return y; }
inline float __int_as_float(int x) { return __uint_as_float((unsigned)x); }
inline long long __double_as_longlong(double x) { return (long long)host::word(x); }
inline double __longlong_as_double(long long x) { double y; memcpy(&y, &x, 8); return y; }
inline double __hiloint2double(int high, int low) { return __longlong_as_double((long long)((unsigned long long)(unsigned)high << 32 | (unsigned)low)); }
inline int __double2hiint(double x) { return (int)(host::word(x) >> 32); }
inline int __double2loint(double x) { return (int)host::word(x); }

#define ROUNDINGS(EACH) EACH(rn, RN) EACH(rz, RZ) EACH(ru, RU) EACH(rd, RD)
#define FLOATS(NAME, MODE)                                                                                      \
    inline float __fadd_##NAME(float a, float b) { return host::add(host::MODE, a, b); }                        \
    inline float __fsub_##NAME(float a, float b) { return host::sub(host::MODE, a, b); }                        \
    inline float __fmul_##NAME(float a, float b) { return host::mul(host::MODE, a, b); }                        \
    inline float __fdiv_##NAME(float a, float b) { return host::div(host::MODE, a, b); }                        \
    inline float __frcp_##NAME(float a) { return host::div(host::MODE, 1.0f, a); }                              \
    inline float __fsqrt_##NAME(float a) { return host::root(host::MODE, a); }                                  \
    inline float __fmaf_##NAME(float a, float b, float c) { return host::fused(host::MODE, a, b, c); }          \
    inline double __dadd_##NAME(double a, double b) { return host::add(host::MODE, a, b); }                     \
    inline double __dsub_##NAME(double a, double b) { return host::sub(host::MODE, a, b); }                     \
    inline double __dmul_##NAME(double a, double b) { return host::mul(host::MODE, a, b); }                     \
    inline double __ddiv_##NAME(double a, double b) { return host::div(host::MODE, a, b); }                     \
    inline double __drcp_##NAME(double a) { return host::div(host::MODE, 1.0, a); }                             \
    inline double __dsqrt_##NAME(double a) { return host::root(host::MODE, a); }                                \
    inline double __fma_##NAME(double a, double b, double c) { return host::fused(host::MODE, a, b, c); }       \
    inline int __float2int_##NAME(float a) { return (int)host::integer(host::MODE, a, 32, true); }              \
    inline unsigned __float2uint_##NAME(float a) { return (unsigned)host::integer(host::MODE, a, 32, false); }  \
    inline long long __float2ll_##NAME(float a) { return (long long)host::integer(host::MODE, a, 64, true); }   \
    inline unsigned long long __float2ull_##NAME(float a) { return host::integer(host::MODE, a, 64, false); }   \
    inline int __double2int_##NAME(double a) { return (int)host::integer(host::MODE, a, 32, true); }            \
    inline unsigned __double2uint_##NAME(double a) { return (unsigned)host::integer(host::MODE, a, 32, false); } \
    inline long long __double2ll_##NAME(double a) { return (long long)host::integer(host::MODE, a, 64, true); } \
    inline unsigned long long __double2ull_##NAME(double a) { return host::integer(host::MODE, a, 64, false); } \
    inline float __double2float_##NAME(double a) { return host::narrow(host::MODE, a); }                        \
    inline float __int2float_##NAME(int a) { return host::to_float(host::MODE, (int64_t)a); }                   \
    inline float __uint2float_##NAME(unsigned a) { return host::to_float(host::MODE, (uint64_t)a); }            \
    inline float __ll2float_##NAME(long long a) { return host::to_float(host::MODE, (int64_t)a); }              \
    inline float __ull2float_##NAME(unsigned long long a) { return host::to_float(host::MODE, (uint64_t)a); }   \
    inline double __ll2double_##NAME(long long a) { return host::to_double(host::MODE, (int64_t)a); }           \
    inline double __ull2double_##NAME(unsigned long long a) { return host::to_double(host::MODE, (uint64_t)a); }
ROUNDINGS(FLOATS)
#undef FLOATS
inline double __int2double_rn(int a) { return a; }
inline double __uint2double_rn(unsigned a) { return a; }
inline float __saturatef(float a) { return host::saturated(a); }

inline float host_fminf(float a, float b) { return host::lesser(a, b); }
inline float host_fmaxf(float a, float b) { return host::greater(a, b); }
inline double host_fmin(double a, double b) { return host::lesser(a, b); }
inline double host_fmax(double a, double b) { return host::greater(a, b); }
#define fminf host_fminf
#define fmaxf host_fmaxf
#define fmin host_fmin
#define fmax host_fmax

#define LEAST(T)                                      \
    inline T min(T a, T b) { return a < b ? a : b; }  \
    inline T max(T a, T b) { return a > b ? a : b; }
LEAST(int)
LEAST(unsigned)
LEAST(long)
LEAST(unsigned long)
LEAST(long long)
LEAST(unsigned long long)
#undef LEAST
inline unsigned min(int a, unsigned b) { return min((unsigned)a, b); }
inline unsigned min(unsigned a, int b) { return min(a, (unsigned)b); }
inline unsigned max(int a, unsigned b) { return max((unsigned)a, b); }
inline unsigned max(unsigned a, int b) { return max(a, (unsigned)b); }
inline float min(float a, float b) { return host::lesser(a, b); }
inline float max(float a, float b) { return host::greater(a, b); }
inline double min(double a, double b) { return host::lesser(a, b); }
inline double max(double a, double b) { return host::greater(a, b); }

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline int __fns(unsigned mask, unsigned base, int offset) {
    int step = offset < 0 ? -1 : 1, left = offset < 0 ? -offset : offset;
    if (offset == 0)
        return mask >> base & 1 ? (int)base : -1;
    for (int bit = (int)base; bit >= 0 && bit < 32; bit += step)
        if (mask >> bit & 1 && --left == 0)
            return bit;
    return -1;
}
inline unsigned __brev(unsigned x) {
    unsigned y = 0;
    for (int bit = 0; bit < 32; bit++)
        y |= (x >> bit & 1) << (31 - bit);
    return y;
}
inline unsigned long long __brevll(unsigned long long x) { return (unsigned long long)__brev((unsigned)x) << 32 | __brev((unsigned)(x >> 32)); }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
inline int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) { return (unsigned long long)((unsigned __int128)a * b >> 64); }
inline long long __mul64hi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }
inline unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffff) * (b & 0xffffff); }
inline int __mul24(int a, int b) { return (int)((unsigned)((int)((unsigned)a << 8) >> 8) * (unsigned)((int)((unsigned)b << 8) >> 8)); }
inline unsigned __usad(unsigned a, unsigned b, unsigned c) { return (a > b ? a - b : b - a) + c; }
inline unsigned __sad(int a, int b, unsigned c) { return (a > b ? (unsigned)a - (unsigned)b : (unsigned)b - (unsigned)a) + c; }
inline int __hadd(int a, int b) { return (int)(((long long)a + b) >> 1); }
inline int __rhadd(int a, int b) { return (int)(((long long)a + b + 1) >> 1); }
inline unsigned __uhadd(unsigned a, unsigned b) { return (unsigned)(((unsigned long long)a + b) >> 1); }
inline unsigned __urhadd(unsigned a, unsigned b) { return (unsigned)(((unsigned long long)a + b + 1) >> 1); }
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned by) { return (unsigned)(((unsigned long long)high << 32 | low) << (by & 31) >> 32); }
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) { return (unsigned)(((unsigned long long)high << 32 | low) >> (by & 31)); }
inline unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned by) { return by >= 32 ? low : __funnelshift_l(low, high, by); }
inline unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned by) { return by >= 32 ? high : __funnelshift_r(low, high, by); }
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
    unsigned long long both = (unsigned long long)b << 32 | a;
    unsigned result = 0;
    for (int byte = 0; byte < 4; byte++)
        result |= (unsigned)(both >> 8 * (selector >> 4 * byte & 7) & 0xff) << 8 * byte;
    return result;
}
inline int __dp4a(int a, int b, int c) {
    for (int byte = 0; byte < 4; byte++)
        c = (int)((unsigned)c + (unsigned)((int8_t)(a >> 8 * byte) * (int8_t)(b >> 8 * byte)));
    return c;
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
    for (int byte = 0; byte < 4; byte++)
        c += (uint8_t)(a >> 8 * byte) * (uint8_t)(b >> 8 * byte);
    return c;
}

// The hardware's own approximations have no twin here.
#define APPROXIMATION1(NAME, T) inline T NAME(T) { host::unsupported(#NAME); }
#define APPROXIMATION2(NAME, T) inline T NAME(T, T) { host::unsupported(#NAME); }
APPROXIMATION1(host_sinf, float)
APPROXIMATION1(host_cosf, float)
APPROXIMATION1(host_expf, float)
APPROXIMATION1(host_exp2f, float)
APPROXIMATION1(host_logf, float)
APPROXIMATION1(host_log2f, float)
APPROXIMATION1(host_tanhf, float)
APPROXIMATION1(host_erff, float)
APPROXIMATION1(host_cbrtf, float)
APPROXIMATION1(rsqrtf, float)
APPROXIMATION1(rsqrt, double)
APPROXIMATION1(host_exp, double)
APPROXIMATION1(host_log, double)
APPROXIMATION1(host_cbrt, double)
APPROXIMATION2(host_powf, float)
APPROXIMATION2(host_atan2f, float)
APPROXIMATION1(__sinf, float)
APPROXIMATION1(__cosf, float)
APPROXIMATION1(__tanf, float)
APPROXIMATION1(__expf, float)
APPROXIMATION1(__exp10f, float)
APPROXIMATION1(host__logf, float)
APPROXIMATION1(__log2f, float)
APPROXIMATION1(__log10f, float)
APPROXIMATION1(__frsqrt_rn, float)
APPROXIMATION2(__fdividef, float)
APPROXIMATION2(__powf, float)
#define __logf host__logf
#define sinf host_sinf
#define cosf host_cosf
#define expf host_expf
#define exp2f host_exp2f
#define logf host_logf
#define log2f host_log2f
#define tanhf host_tanhf
#define erff host_erff
#define cbrtf host_cbrtf
#define exp host_exp
#define log host_log
#define cbrt host_cbrt
#define powf host_powf
#define atan2f host_atan2f
