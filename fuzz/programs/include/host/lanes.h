// What lanes and threads do together, and memory that they share.
#pragma once

namespace host {

// The lane that a shuffle reads, or this one if that lies outside of its segment.
inline unsigned source(char mode, unsigned by, unsigned bounds, bool &inside) {
    unsigned lane = now->lane, segment = bounds >> 8 & 31, last = bounds & 31;
    unsigned limit = (lane & segment) | (last & ~segment), start = lane & segment;
    int from = 0;
    by &= 31;
    if (mode == 'u')
        from = (int)lane - (int)by, inside = from >= (int)limit;
    else if (mode == 'd')
        from = (int)(lane + by), inside = from <= (int)limit;
    else if (mode == 'b')
        from = (int)(lane ^ by), inside = from <= (int)limit;
    else
        from = (int)(start | (by & ~segment)), inside = from <= (int)limit;
    return inside ? (unsigned)from : lane;
}

template <class T> inline T shuffle(char mode, unsigned mask, T value, unsigned by, unsigned bounds, bool &inside) {
    const uint64_t *values;
    unsigned there = together(mask, word(value), values), from = source(mode, by, bounds, inside);
    // What a lane gets that is not there has no meaning: a pattern of its own shows who uses it.
    uint64_t got = there >> from & 1 ? values[from] : 0xdeaddeaddeaddead;
    T result;
    unword(result, got);
    return result;
}

template <class T> inline T shuffle(char mode, unsigned mask, T value, unsigned by, int width) {
    bool inside;
    return shuffle(mode, mask, value, by, (32 - (unsigned)width) << 8 | (mode == 'u' ? 0 : 31), inside);
}

template <class T, class F> inline T reduce(unsigned mask, T value, F step) {
    const uint64_t *values;
    unsigned there = together(mask, word(value), values);
    T all{};
    bool begun = false;
    for (unsigned lane = 0; lane < 32; lane++)
        if (there >> lane & 1) {
            T one;
            unword(one, values[lane]);
            all = begun ? step(all, one) : one;
            begun = true;
        }
    return all;
}

inline unsigned ballot(unsigned mask, bool predicate, unsigned &there) {
    const uint64_t *values;
    there = together(mask, predicate, values);
    unsigned votes = 0;
    for (unsigned lane = 0; lane < 32; lane++)
        votes |= (there >> lane & 1 && values[lane]) ? 1u << lane : 0;
    return votes;
}

} // namespace host

template <class T> inline T __shfl_sync(unsigned mask, T value, int from, int width = 32) { return host::shuffle('i', mask, value, (unsigned)from, width); }
template <class T> inline T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32) { return host::shuffle('u', mask, value, by, width); }
template <class T> inline T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32) { return host::shuffle('d', mask, value, by, width); }
template <class T> inline T __shfl_xor_sync(unsigned mask, T value, int by, int width = 32) { return host::shuffle('b', mask, value, (unsigned)by, width); }
inline unsigned __ballot_sync(unsigned mask, int predicate) { unsigned there; return host::ballot(mask, predicate, there); }
inline int __any_sync(unsigned mask, int predicate) { unsigned there; return host::ballot(mask, predicate, there) != 0; }
inline int __all_sync(unsigned mask, int predicate) { unsigned there, votes = host::ballot(mask, predicate, there); return votes == there; }
inline void __syncwarp(unsigned mask = 0xffffffff) { unsigned there; host::ballot(mask, false, there); }
template <class T> inline unsigned __match_any_sync(unsigned mask, T value) {
    const uint64_t *values;
    unsigned there = host::together(mask, host::word(value), values), same = 0;
    for (unsigned lane = 0; lane < 32; lane++)
        same |= (there >> lane & 1 && values[lane] == host::word(value)) ? 1u << lane : 0;
    return same;
}
template <class T> inline unsigned __match_all_sync(unsigned mask, T value, int *all) {
    const uint64_t *values;
    unsigned there = host::together(mask, host::word(value), values);
    *all = 1;
    for (unsigned lane = 0; lane < 32; lane++)
        if (there >> lane & 1 && values[lane] != host::word(value))
            *all = 0;
    return *all ? there : 0;
}
inline unsigned __reduce_add_sync(unsigned mask, unsigned value) { return host::reduce(mask, value, [](unsigned a, unsigned b) { return a + b; }); }
inline int __reduce_add_sync(unsigned mask, int value) { return (int)__reduce_add_sync(mask, (unsigned)value); }
inline unsigned __reduce_and_sync(unsigned mask, unsigned value) { return host::reduce(mask, value, [](unsigned a, unsigned b) { return a & b; }); }
inline unsigned __reduce_or_sync(unsigned mask, unsigned value) { return host::reduce(mask, value, [](unsigned a, unsigned b) { return a | b; }); }
inline unsigned __reduce_xor_sync(unsigned mask, unsigned value) { return host::reduce(mask, value, [](unsigned a, unsigned b) { return a ^ b; }); }
template <class T> inline T __reduce_min_sync(unsigned mask, T value) { return host::reduce(mask, value, [](T a, T b) { return a < b ? a : b; }); }
template <class T> inline T __reduce_max_sync(unsigned mask, T value) { return host::reduce(mask, value, [](T a, T b) { return a > b ? a : b; }); }

inline void __syncthreads() { host::barrier(0, 0, true, 0); }
inline int __syncthreads_count(int predicate) { return (int)host::barrier(0, 0, true, predicate != 0).count; }
inline int __syncthreads_and(int predicate) { return (int)host::barrier(0, 0, true, predicate != 0).all; }
inline int __syncthreads_or(int predicate) { return (int)host::barrier(0, 0, true, predicate != 0).any; }
inline void __threadfence() { host::yield(); }
inline void __threadfence_block() { host::yield(); }
inline void __threadfence_system() { host::yield(); }
inline void __nanosleep(unsigned) { host::yield(); }
inline void __trap() { host::trap(); }
inline size_t __cvta_generic_to_shared(const void *pointer) { return (size_t)pointer; }

template <class T> inline T __ldg(const T *p) { return *p; }
template <class T> inline T __ldca(const T *p) { return *p; }
template <class T> inline T __ldcg(const T *p) { return *p; }
template <class T> inline T __ldcs(const T *p) { return *p; }
template <class T> inline T __ldlu(const T *p) { return *p; }
template <class T> inline T __ldcv(const T *p) { return *p; }
template <class T> inline void __stwb(T *p, T value) { *p = value; }
template <class T> inline void __stcg(T *p, T value) { *p = value; }
template <class T> inline void __stcs(T *p, T value) { *p = value; }
template <class T> inline void __stwt(T *p, T value) { *p = value; }

// Between two threads' turns nothing happens: an atomic operation is a plain one, and a chance for others to run.
#define ATOMIC(NAME, EXPRESSION)                                        \
    template <class T> inline T NAME(T *place, T value) {               \
        host::yield();                                                  \
        T old = *place;                                                 \
        *place = EXPRESSION;                                            \
        return old;                                                     \
    }
#define ATOMICS(NAME, EXPRESSION)          \
    ATOMIC(NAME, EXPRESSION)               \
    ATOMIC(NAME##_block, EXPRESSION)       \
    ATOMIC(NAME##_system, EXPRESSION)      \
    template <class T, class V> inline T NAME(T *place, V value) { return NAME(place, (T)value); } \
    template <class T, class V> inline T NAME##_block(T *place, V value) { return NAME(place, (T)value); } \
    template <class T, class V> inline T NAME##_system(T *place, V value) { return NAME(place, (T)value); }
ATOMICS(atomicAdd, (T)(old + value))
ATOMICS(atomicSub, (T)(old - value))
ATOMICS(atomicMin, (value < old ? value : old))
ATOMICS(atomicMax, (value > old ? value : old))
ATOMICS(atomicAnd, (T)(old & value))
ATOMICS(atomicOr, (T)(old | value))
ATOMICS(atomicXor, (T)(old ^ value))
ATOMICS(atomicExch, value)
ATOMICS(atomicInc, (old >= value ? T(0) : (T)(old + 1)))
ATOMICS(atomicDec, (old == 0 || old > value ? value : (T)(old - 1)))
#undef ATOMICS
#undef ATOMIC
template <class T, class C, class V> inline T atomicCAS(T *place, C expected, V value) {
    host::yield();
    T old = *place;
    if (old == (T)expected)
        *place = (T)value;
    return old;
}
template <class T, class C, class V> inline T atomicCAS_block(T *place, C expected, V value) { return atomicCAS(place, expected, value); }
template <class T, class C, class V> inline T atomicCAS_system(T *place, C expected, V value) { return atomicCAS(place, expected, value); }
