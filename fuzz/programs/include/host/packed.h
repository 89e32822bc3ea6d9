// Operations on the bytes or halves of a word, and on the least and greatest of three.
#pragma once

namespace host {

// A function of each part of words, of so many bits.
template <unsigned BITS, class F> inline unsigned parts(F operation, unsigned a, unsigned b = 0, unsigned c = 0) {
    const unsigned mask = BITS == 32 ? ~0u : (1u << BITS % 32) - 1;
    unsigned result = 0;
    for (unsigned at = 0; at < 32; at += BITS)
        result |= ((unsigned)operation(a >> at & mask, b >> at & mask, c >> at & mask) & mask) << at;
    return result;
}

template <unsigned BITS> inline int sign(unsigned part) { return (int)(part << (32 - BITS)) >> (32 - BITS); }
template <unsigned BITS> inline int clamp(int value) {
    const int most = (1 << (BITS - 1)) - 1;
    return value > most ? most : value < -most - 1 ? -most - 1 : value;
}

} // namespace host

#define PACKED1(NAME, EXPRESSION)                                                                                           \
    inline unsigned __v##NAME##2(unsigned a) { const unsigned BITS = 16; return host::parts<16>([](unsigned a, unsigned, unsigned) { int s = host::sign<BITS>(a); (void)s; return EXPRESSION; }, a); } \
    inline unsigned __v##NAME##4(unsigned a) { const unsigned BITS = 8; return host::parts<8>([](unsigned a, unsigned, unsigned) { int s = host::sign<BITS>(a); (void)s; return EXPRESSION; }, a); }
PACKED1(abs, s < 0 ? -s : s)
PACKED1(absss, host::clamp<BITS>(s < 0 ? -s : s))
PACKED1(neg, -s)
PACKED1(negss, host::clamp<BITS>(-s))
#undef PACKED1

// In the expressions a and b are the parts without signs, s and t with.
#define PACKED_OF(NAME, WIDTH, PARTS, EXPRESSION)                                                     \
    inline unsigned __v##NAME##PARTS(unsigned a, unsigned b) {                                        \
        const unsigned BITS = WIDTH, MOST = (1u << BITS) - 1;                                         \
        (void)MOST;                                                                                   \
        return host::parts<WIDTH>([](unsigned a, unsigned b, unsigned) {                              \
            int s = host::sign<BITS>(a), t = host::sign<BITS>(b);                                     \
            (void)s, (void)t;                                                                         \
            return EXPRESSION;                                                                        \
        }, a, b);                                                                                     \
    }
#define PACKED2(NAME, EXPRESSION) PACKED_OF(NAME, 16, 2, EXPRESSION) PACKED_OF(NAME, 8, 4, EXPRESSION)
PACKED2(absdiffs, (s > t ? s - t : t - s))
PACKED2(absdiffu, (a > b ? a - b : b - a))
PACKED2(add, a + b)
PACKED2(sub, a - b)
PACKED2(addss, host::clamp<BITS>(s + t))
PACKED2(subss, host::clamp<BITS>(s - t))
PACKED2(addus, (a + b > MOST ? MOST : a + b))
PACKED2(subus, (a > b ? a - b : 0))
PACKED2(avgs, ((s + t + (s + t >= 0)) >> 1))
PACKED2(avgu, (a + b + 1) >> 1)
PACKED2(haddu, (a + b) >> 1)
PACKED2(maxs, (s > t ? s : t))
PACKED2(maxu, (a > b ? a : b))
PACKED2(mins, (s < t ? s : t))
PACKED2(minu, (a < b ? a : b))
#define PACKED_COMPARE(NAME, CONDITION) \
    PACKED2(cmp##NAME, (CONDITION ? MOST : 0)) \
    PACKED2(set##NAME, (CONDITION ? 1 : 0))
PACKED_COMPARE(eq, a == b)
PACKED_COMPARE(ne, a != b)
PACKED_COMPARE(ges, s >= t)
PACKED_COMPARE(geu, a >= b)
PACKED_COMPARE(gts, s > t)
PACKED_COMPARE(gtu, a > b)
PACKED_COMPARE(les, s <= t)
PACKED_COMPARE(leu, a <= b)
PACKED_COMPARE(lts, s < t)
PACKED_COMPARE(ltu, a < b)
#undef PACKED_COMPARE
#undef PACKED2
#undef PACKED_OF

#define PACKED_SUM(NAME, BITS, TERM)                                 \
    inline unsigned __vsad##NAME(unsigned a, unsigned b) {           \
        unsigned sum = 0;                                            \
        for (unsigned at = 0; at < 32; at += BITS) {                 \
            unsigned x = a >> at & ((1u << BITS) - 1), y = b >> at & ((1u << BITS) - 1); \
            int s = host::sign<BITS>(x), t = host::sign<BITS>(y);    \
            (void)s, (void)t;                                        \
            sum += (unsigned)(TERM);                                 \
        }                                                            \
        return sum;                                                  \
    }
PACKED_SUM(s2, 16, (s > t ? s - t : t - s))
PACKED_SUM(s4, 8, (s > t ? s - t : t - s))
PACKED_SUM(u2, 16, (x > y ? x - y : y - x))
PACKED_SUM(u4, 8, (x > y ? x - y : y - x))
#undef PACKED_SUM

#define OF_THREE(WHICH, BETTER)                                                                                                       \
    inline int __vi##WHICH##_s32_relu(int a, int b) { return max(WHICH(a, b), 0); }                                                   \
    inline int __vi##WHICH##3_s32(int a, int b, int c) { return WHICH(WHICH(a, b), c); }                                              \
    inline int __vi##WHICH##3_s32_relu(int a, int b, int c) { return max(WHICH(WHICH(a, b), c), 0); }                                 \
    inline unsigned __vi##WHICH##3_u32(unsigned a, unsigned b, unsigned c) { return WHICH(WHICH(a, b), c); }                          \
    inline int __viadd##WHICH##_s32(int a, int b, int c) { return WHICH((int)((unsigned)a + (unsigned)b), c); }                       \
    inline int __viadd##WHICH##_s32_relu(int a, int b, int c) { return max(WHICH((int)((unsigned)a + (unsigned)b), c), 0); }          \
    inline unsigned __viadd##WHICH##_u32(unsigned a, unsigned b, unsigned c) { return WHICH(a + b, c); }                              \
    inline unsigned __vi##WHICH##_s16x2_relu(unsigned a, unsigned b) { return host::parts<16>([](unsigned a, unsigned b, unsigned) { return max(WHICH(host::sign<16>(a), host::sign<16>(b)), 0); }, a, b); } \
    inline unsigned __vi##WHICH##3_s16x2(unsigned a, unsigned b, unsigned c) { return host::parts<16>([](unsigned a, unsigned b, unsigned c) { return WHICH(WHICH(host::sign<16>(a), host::sign<16>(b)), host::sign<16>(c)); }, a, b, c); } \
    inline unsigned __vi##WHICH##3_s16x2_relu(unsigned a, unsigned b, unsigned c) { return host::parts<16>([](unsigned a, unsigned b, unsigned c) { return max(WHICH(WHICH(host::sign<16>(a), host::sign<16>(b)), host::sign<16>(c)), 0); }, a, b, c); } \
    inline unsigned __vi##WHICH##3_u16x2(unsigned a, unsigned b, unsigned c) { return host::parts<16>([](unsigned a, unsigned b, unsigned c) { return WHICH(WHICH(a, b), c); }, a, b, c); } \
    inline unsigned __viadd##WHICH##_s16x2(unsigned a, unsigned b, unsigned c) { return host::parts<16>([](unsigned a, unsigned b, unsigned c) { return WHICH(host::sign<16>(a + b), host::sign<16>(c)); }, a, b, c); } \
    inline unsigned __viadd##WHICH##_s16x2_relu(unsigned a, unsigned b, unsigned c) { return host::parts<16>([](unsigned a, unsigned b, unsigned c) { return max(WHICH(host::sign<16>(a + b), host::sign<16>(c)), 0); }, a, b, c); } \
    inline unsigned __viadd##WHICH##_u16x2(unsigned a, unsigned b, unsigned c) { return host::parts<16>([](unsigned a, unsigned b, unsigned c) { return WHICH((a + b) & 0xffff, c); }, a, b, c); } \
    inline int __vib##WHICH##_s32(int a, int b, bool *first) { *first = a BETTER b; return WHICH(a, b); }                             \
    inline unsigned __vib##WHICH##_u32(unsigned a, unsigned b, bool *first) { *first = a BETTER b; return WHICH(a, b); }              \
    inline unsigned __vib##WHICH##_s16x2(unsigned a, unsigned b, bool *high, bool *low) {                                             \
        *high = host::sign<16>(a >> 16) BETTER host::sign<16>(b >> 16), *low = host::sign<16>(a) BETTER host::sign<16>(b);            \
        return host::parts<16>([](unsigned a, unsigned b, unsigned) { return WHICH(host::sign<16>(a), host::sign<16>(b)); }, a, b);   \
    }                                                                                                                                 \
    inline unsigned __vib##WHICH##_u16x2(unsigned a, unsigned b, bool *high, bool *low) {                                             \
        *high = a >> 16 BETTER b >> 16, *low = (a & 0xffff) BETTER (b & 0xffff);                                                      \
        return host::parts<16>([](unsigned a, unsigned b, unsigned) { return WHICH(a, b); }, a, b);                                   \
    }
OF_THREE(max, >=)
OF_THREE(min, <=)
#undef OF_THREE
