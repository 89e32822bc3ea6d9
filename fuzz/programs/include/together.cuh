// What lanes, warps and blocks do together, as functions whose results are the same wherever they run.
//
// The first part needs the machine; a host interprets its PTX. The second part is plain code over
// the first. A result that the machine leaves open (what a lane that is not there would
// have given) is replaced here by a constant, so that no undefined value reaches a checksum.
#pragma once

#define TOGETHER static __device__ __forceinline__

// ---- lanes -------------------------------------------------------------------------------------

TOGETHER unsigned lane_index() {
  unsigned lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}

TOGETHER unsigned lanes_below() {
  unsigned lanes;
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(lanes));
  return lanes;
}

TOGETHER unsigned lanes_from_here() {
  unsigned lanes;
  asm("mov.u32 %0, %%lanemask_ge;" : "=r"(lanes));
  return lanes;
}

#define SHUFFLE_BY_BOUNDS(NAME, MODE)                                                            \
  TOGETHER unsigned NAME(unsigned mask, unsigned value, unsigned by, unsigned bounds,            \
                         unsigned &inside) {                                                     \
    unsigned got;                                                                                \
    asm volatile("{ .reg .pred p; shfl.sync." MODE ".b32 %0|p, %2, %3, %4, %5;"                  \
                 " selp.u32 %1, 1, 0, p; }"                                                      \
                 : "=r"(got), "=r"(inside)                                                       \
                 : "r"(value), "r"(by), "r"(bounds), "r"(mask));                                 \
    return got;                                                                                  \
  }
SHUFFLE_BY_BOUNDS(shuffle_up_raw, "up")
SHUFFLE_BY_BOUNDS(shuffle_down_raw, "down")
SHUFFLE_BY_BOUNDS(shuffle_xor_raw, "bfly")
SHUFFLE_BY_BOUNDS(shuffle_index_raw, "idx")
#undef SHUFFLE_BY_BOUNDS

// Whether all lanes of `mask` give the same predicate.
TOGETHER unsigned vote_uniform(unsigned mask, unsigned predicate) {
  unsigned same;
  asm volatile("{ .reg .pred p, q; setp.ne.u32 p, %1, 0; vote.sync.uni.pred q, p, %2;"
               " selp.u32 %0, 1, 0, q; }"
               : "=r"(same)
               : "r"(predicate), "r"(mask));
  return same;
}

// One lane of `mask`, the same for all of them: 1 there and 0 elsewhere.
TOGETHER unsigned one_elected(unsigned mask) {
#if __CUDA_ARCH__ >= 900
  unsigned chosen;
  asm volatile("{ .reg .pred p; .reg .b32 leader; elect.sync leader|p, %1; selp.u32 %0, 1, 0, p; }"
               : "=r"(chosen)
               : "r"(mask));
  return chosen;
#else
  __syncwarp(mask);
  return (lanes_below() & mask) == 0;
#endif
}

#define REDUCE_LANES(NAME, TYPE, INTRINSIC, STEP)                                                \
  TOGETHER TYPE NAME(unsigned mask, TYPE value) {                                                \
    return INTRINSIC(mask, value);                                                               \
  }
#define REDUCE_LANES_IN_STEPS(NAME, TYPE, INTRINSIC, STEP)                                       \
  TOGETHER TYPE NAME(unsigned mask, TYPE value) {                                                \
    unsigned there = __ballot_sync(mask, 1) & mask;                                              \
    TYPE a = __shfl_sync(mask, value, __ffs(there) - 1);                                         \
    for (there &= there - 1; there; there &= there - 1) {                                        \
      TYPE b = __shfl_sync(mask, value, __ffs(there) - 1);                                       \
      a = STEP;                                                                                  \
    }                                                                                            \
    return a;                                                                                    \
  }
#if __CUDA_ARCH__ >= 800
#define REDUCE_BY REDUCE_LANES
#else
#define REDUCE_BY REDUCE_LANES_IN_STEPS
#endif
REDUCE_BY(reduce_add, unsigned, __reduce_add_sync, (a + b))
REDUCE_BY(reduce_add_signed, int, __reduce_add_sync, ((int)((unsigned)a + (unsigned)b)))
REDUCE_BY(reduce_min, unsigned, __reduce_min_sync, (a < b ? a : b))
REDUCE_BY(reduce_min_signed, int, __reduce_min_sync, (a < b ? a : b))
REDUCE_BY(reduce_max, unsigned, __reduce_max_sync, (a > b ? a : b))
REDUCE_BY(reduce_max_signed, int, __reduce_max_sync, (a > b ? a : b))
REDUCE_BY(reduce_and, unsigned, __reduce_and_sync, (a & b))
REDUCE_BY(reduce_or, unsigned, __reduce_or_sync, (a | b))
REDUCE_BY(reduce_xor, unsigned, __reduce_xor_sync, (a ^ b))
#undef REDUCE_BY
#undef REDUCE_LANES
#undef REDUCE_LANES_IN_STEPS

TOGETHER void sleep_for(unsigned nanoseconds) {
  __nanosleep(nanoseconds);
}

// ---- barriers of a block -----------------------------------------------------------------------
// `meet` and its like are for code that whole warps run; the `_apart` ones for lanes that do not
// run together, of which all lanes of a warp name the same barrier.

TOGETHER void meet(unsigned barrier, unsigned threads) {
  asm volatile("barrier.sync.aligned %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

TOGETHER void meet_all(unsigned barrier) {
  asm volatile("barrier.sync.aligned %0;" ::"r"(barrier) : "memory");
}

TOGETHER void announce(unsigned barrier, unsigned threads) {
  asm volatile("barrier.arrive.aligned %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

TOGETHER void meet_apart(unsigned barrier, unsigned threads) {
  asm volatile("barrier.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

TOGETHER void meet_all_apart(unsigned barrier) {
  asm volatile("barrier.sync %0;" ::"r"(barrier) : "memory");
}

TOGETHER void announce_apart(unsigned barrier, unsigned threads) {
  asm volatile("barrier.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

TOGETHER unsigned meet_count(unsigned barrier, unsigned threads, unsigned predicate) {
  unsigned count;
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %3, 0; barrier.red.popc.aligned.u32 %0, %1, %2, p; }"
               : "=r"(count)
               : "r"(barrier), "r"(threads), "r"(predicate)
               : "memory");
  return count;
}

#define MEET_TO_DECIDE(NAME, MODE)                                                               \
  TOGETHER unsigned NAME(unsigned barrier, unsigned threads, unsigned predicate) {               \
    unsigned decided;                                                                            \
    asm volatile("{ .reg .pred p, q; setp.ne.u32 p, %3, 0; barrier.red." MODE                    \
                 ".pred q, %1, %2, p; selp.u32 %0, 1, 0, q; }"                                   \
                 : "=r"(decided)                                                                 \
                 : "r"(barrier), "r"(threads), "r"(predicate)                                    \
                 : "memory");                                                                    \
    return decided;                                                                              \
  }
MEET_TO_DECIDE(meet_and, "and.aligned")
MEET_TO_DECIDE(meet_or, "or.aligned")
MEET_TO_DECIDE(meet_and_apart, "and")
MEET_TO_DECIDE(meet_or_apart, "or")
#undef MEET_TO_DECIDE

// ---- barriers in shared memory -----------------------------------------------------------------
// A counted barrier that lives in 64 bits of shared memory. Without one in hardware it is a word:
// bits 0-15 are those still awaited, 16-31 those expected in a phase, 32-63 the phase.

TOGETHER unsigned shared_address(const void *pointer) {
  return (unsigned)__cvta_generic_to_shared(pointer);
}

TOGETHER void gate_make(unsigned long long *gate, unsigned expected) {
#if __CUDA_ARCH__ >= 800
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(gate)), "r"(expected) : "memory");
#else
  *(volatile unsigned long long *)gate = expected | expected << 16;
#endif
}

// Ends the life of a gate, so that its bytes may hold something else.
TOGETHER void gate_end(unsigned long long *gate) {
#if __CUDA_ARCH__ >= 800
  asm volatile("mbarrier.inval.shared.b64 [%0];" ::"r"(shared_address(gate)) : "memory");
#else
  *(volatile unsigned long long *)gate = 0;
#endif
}

// Arrives `count` times. The state of the gate that it answers is for `gate_passed` alone.
TOGETHER unsigned long long gate_arrive(unsigned long long *gate, unsigned count) {
#if __CUDA_ARCH__ >= 900
  unsigned long long state;
  asm volatile("mbarrier.arrive.shared.b64 %0, [%1], %2;" : "=l"(state) : "r"(shared_address(gate)), "r"(count) : "memory");
  return state;
#elif __CUDA_ARCH__ >= 800
  unsigned long long state = 0;
  for (unsigned i = 0; i < count; ++i) {
    unsigned long long now;
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(now) : "r"(shared_address(gate)) : "memory");
    state = i == 0 ? now : state;
  }
  return state;
#else
  __threadfence_block();
  unsigned long long old = *(volatile unsigned long long *)gate;
  for (;;) {
    unsigned awaited = (unsigned)(old & 0xffff) - count;
    unsigned expected = (unsigned)(old >> 16 & 0xffff);
    unsigned long long phase = old >> 32;
    unsigned long long next = awaited ? (old & ~0xffffull) | awaited
                                      : (phase + 1 & 0xffffffffull) << 32 | expected << 16 | expected;
    unsigned long long seen = atomicCAS(gate, old, next);
    if (seen == old) {
      return phase;
    }
    old = seen;
  }
#endif
}

// Arrives once in this phase and is awaited no more in later ones.
TOGETHER void gate_arrive_and_leave(unsigned long long *gate) {
#if __CUDA_ARCH__ >= 800
  asm volatile("{ .reg .b64 state; mbarrier.arrive_drop.shared.b64 state, [%0]; }" ::"r"(shared_address(gate)) : "memory");
#else
  atomicAdd(gate, 0ull - (1ull << 16));
  gate_arrive(gate, 1);
#endif
}

// Whether the phase of `state` is over.
TOGETHER unsigned gate_passed(unsigned long long *gate, unsigned long long state) {
#if __CUDA_ARCH__ >= 800
  unsigned passed;
  asm volatile("{ .reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
               : "=r"(passed)
               : "r"(shared_address(gate)), "l"(state)
               : "memory");
  return passed;
#else
  unsigned passed = *(volatile unsigned long long *)gate >> 32 != state;
  __threadfence_block();
  return passed;
#endif
}

// Whether the phase of that parity, the current one or the one before, is over.
TOGETHER unsigned gate_passed_parity(unsigned long long *gate, unsigned parity) {
#if __CUDA_ARCH__ >= 900
  unsigned passed;
  asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
               : "=r"(passed)
               : "r"(shared_address(gate)), "r"(parity)
               : "memory");
  return passed;
#elif __CUDA_ARCH__ >= 800
  unsigned passed;
  asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
               : "=r"(passed)
               : "r"(shared_address(gate)), "r"(parity)
               : "memory");
  return passed;
#else
  unsigned passed = (*(volatile unsigned long long *)gate >> 32 & 1) != parity;
  __threadfence_block();
  return passed;
#endif
}

// ---- copies from global to shared memory -------------------------------------------------------

#define COPY_BYTES(NAME, BYTES, TYPE)                                                            \
  TOGETHER void NAME(void *to, const void *from) {                                               \
    COPY_ASM(BYTES, TYPE)                                                                        \
  }
#if __CUDA_ARCH__ >= 800
#define COPY_ASM(BYTES, TYPE)                                                                    \
  asm volatile("cp.async.ca.shared.global [%0], [%1], " #BYTES ";" ::"r"(shared_address(to)), "l"(from) : "memory");
#else
#define COPY_ASM(BYTES, TYPE) *(TYPE *)to = *(const TYPE *)from;
#endif
COPY_BYTES(copy_later_4, 4, unsigned)
COPY_BYTES(copy_later_8, 8, uint2)
COPY_BYTES(copy_later_16, 16, uint4)
#undef COPY_ASM
#undef COPY_BYTES

// 16 bytes past the first level of cache, of which the last 16 - `bytes` are zeros.
TOGETHER void copy_later_part(void *to, const void *from, unsigned bytes) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(bytes) : "memory");
#else
  for (unsigned i = 0; i < 16; ++i) {
    ((unsigned char *)to)[i] = i < bytes ? ((const unsigned char *)from)[i] : 0;
  }
#endif
}

TOGETHER void copies_commit() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until at most `PENDING` of this thread's groups of copies are under way.
template <unsigned PENDING>
TOGETHER void copies_wait() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
#endif
}

TOGETHER void copies_wait_all() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

// Arrives at a gate, which does not count it as expected, once this thread's copies are done.
TOGETHER void gate_arrive_after_copies(unsigned long long *gate) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(shared_address(gate)) : "memory");
#else
  gate_arrive(gate, 1);
#endif
}

// ---- clusters of blocks ------------------------------------------------------------------------
// Only kernels of clusters use these, and such kernels are for compute capability 9.0 and later.

#if __CUDA_ARCH__ >= 900

#define BLOCKS_OF_A_CLUSTER(COUNT) __cluster_dims__(COUNT, 1, 1)

TOGETHER unsigned cluster_rank() {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

TOGETHER unsigned cluster_size() {
  unsigned size;
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  return size;
}

TOGETHER void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

TOGETHER void cluster_wait() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Where block `rank` of the cluster has what this block has at `pointer`.
template <class T>
TOGETHER T *cluster_pointer(T *pointer, unsigned rank) {
  T *there;
  asm volatile("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(pointer), "r"(rank));
  return there;
}

TOGETHER unsigned cluster_load(const unsigned *pointer, unsigned rank) {
  unsigned value;
  asm volatile("{ .reg .u32 there; mapa.shared::cluster.u32 there, %1, %2; ld.shared::cluster.u32 %0, [there]; }"
               : "=r"(value)
               : "r"(shared_address(pointer)), "r"(rank)
               : "memory");
  return value;
}

TOGETHER void cluster_store(unsigned *pointer, unsigned rank, unsigned value) {
  asm volatile("{ .reg .u32 there; mapa.shared::cluster.u32 there, %0, %1; st.shared::cluster.u32 [there], %2; }" ::
                   "r"(shared_address(pointer)),
               "r"(rank), "r"(value)
               : "memory");
}

#else

// Not called where there are no clusters, but a program of several kernels is compiled as one.
#define BLOCKS_OF_A_CLUSTER(COUNT)
TOGETHER unsigned cluster_rank() { return 0; }
TOGETHER unsigned cluster_size() { return 1; }
TOGETHER void cluster_arrive() { __syncthreads(); }
TOGETHER void cluster_wait() {}
template <class T>
TOGETHER T *cluster_pointer(T *pointer, unsigned) { return pointer; }
TOGETHER unsigned cluster_load(const unsigned *pointer, unsigned) { return *pointer; }
TOGETHER void cluster_store(unsigned *pointer, unsigned, unsigned value) { *pointer = value; }

#endif

// ---- plain code over these ---------------------------------------------------------------------

TOGETHER unsigned thread_in_block() {
  return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}

TOGETHER unsigned threads_of_block() {
  return blockDim.x * blockDim.y * blockDim.z;
}

// The lanes that the block has in this thread's warp.
TOGETHER unsigned lanes_of_warp() {
  unsigned after = threads_of_block() - (thread_in_block() & ~31u);
  return after >= 32 ? 0xffffffffu : (1u << after) - 1;
}

// Lanes of the mask run together again behind a call. Before sm_80 ptxas takes it that they do, and drops a plain
// `__syncwarp`: here it cannot tell that all of them come.
TOGETHER void rejoin(unsigned mask) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  if (unknown(lane_index()) < 32) {
    __syncwarp(mask);
  }
#endif
}

// Lane number `n` of the set, counted from zero and around.
TOGETHER unsigned nth_lane(unsigned lanes, unsigned n) {
  for (n %= (unsigned)__popc(lanes); n; --n) {
    lanes &= lanes - 1;
  }
  return (unsigned)__ffs(lanes) - 1;
}

// The bounds operand that a shuffle within segments of `width` lanes has.
TOGETHER unsigned bounds_of(unsigned width, unsigned last) {
  return (32 - width) << 8 | last;
}

TOGETHER unsigned source_up(unsigned by, unsigned bounds) {
  unsigned lane = lane_index();
  unsigned segment = bounds >> 8 & 31;
  unsigned limit = (lane & segment) | (bounds & 31 & ~segment);
  int source = (int)lane - (int)(by & 31);
  return source >= (int)limit ? (unsigned)source : lane;
}

TOGETHER unsigned source_down(unsigned by, unsigned bounds) {
  unsigned lane = lane_index();
  unsigned segment = bounds >> 8 & 31;
  unsigned limit = (lane & segment) | (bounds & 31 & ~segment);
  unsigned source = lane + (by & 31);
  return source <= limit ? source : lane;
}

TOGETHER unsigned source_xor(unsigned by, unsigned bounds) {
  unsigned lane = lane_index();
  unsigned segment = bounds >> 8 & 31;
  unsigned limit = (lane & segment) | (bounds & 31 & ~segment);
  unsigned source = lane ^ (by & 31);
  return source <= limit ? source : lane;
}

TOGETHER unsigned source_index(unsigned by, unsigned bounds) {
  unsigned lane = lane_index();
  unsigned segment = bounds >> 8 & 31;
  unsigned limit = (lane & segment) | (bounds & 31 & ~segment);
  unsigned source = (lane & segment) | (by & 31 & ~segment);
  return source <= limit ? source : lane;
}

// What lane `source` gave, where it is one of `lanes`; this lane's own value elsewhere.
template <class T>
TOGETHER T given(unsigned lanes, unsigned source, T value, T own) {
  return lanes >> source & 1 ? value : own;
}

template <class T>
TOGETHER T shuffle_up(unsigned mask, unsigned lanes, T value, unsigned by, unsigned width) {
  T got = __shfl_up_sync(mask, value, by, (int)width);
  return given(lanes, source_up(by, bounds_of(width, 0)), got, value);
}

template <class T>
TOGETHER T shuffle_down(unsigned mask, unsigned lanes, T value, unsigned by, unsigned width) {
  T got = __shfl_down_sync(mask, value, by, (int)width);
  return given(lanes, source_down(by, bounds_of(width, 31)), got, value);
}

template <class T>
TOGETHER T shuffle_xor(unsigned mask, unsigned lanes, T value, unsigned by, unsigned width) {
  T got = __shfl_xor_sync(mask, value, (int)by, (int)width);
  return given(lanes, source_xor(by, bounds_of(width, 31)), got, value);
}

template <class T>
TOGETHER T shuffle_index(unsigned mask, unsigned lanes, T value, unsigned from, unsigned width) {
  T got = __shfl_sync(mask, value, (int)from, (int)width);
  return given(lanes, source_index(from, bounds_of(width, 31)), got, value);
}

#define SHUFFLE_BOUNDED(NAME)                                                                    \
  TOGETHER unsigned long long shuffle_##NAME##_bounded(unsigned mask, unsigned lanes,            \
                                                       unsigned value, unsigned by,              \
                                                       unsigned bounds) {                        \
    unsigned inside;                                                                             \
    unsigned got = shuffle_##NAME##_raw(mask, value, by, bounds, inside);                        \
    return (unsigned long long)inside << 32 | given(lanes, source_##NAME(by, bounds), got, value);      \
  }
SHUFFLE_BOUNDED(up)
SHUFFLE_BOUNDED(down)
SHUFFLE_BOUNDED(xor)
SHUFFLE_BOUNDED(index)
#undef SHUFFLE_BOUNDED

TOGETHER unsigned long long match_all(unsigned mask, unsigned value) {
  int same;
  unsigned lanes = __match_all_sync(mask, value, &same);
  return (unsigned long long)(same != 0) << 32 | lanes;
}

TOGETHER unsigned long long match_all_wide(unsigned mask, unsigned long long value) {
  int same;
  unsigned lanes = __match_all_sync(mask, value, &same);
  return (unsigned long long)(same != 0) << 32 | lanes;
}

// A step of work that the compiler cannot leave out, of a length that the value decides.
TOGETHER unsigned dawdle(unsigned value, unsigned steps) {
  for (unsigned i = 0; i < steps; ++i) {
    value = value * 0x9e3779b1u ^ value >> 15;
  }
  return value;
}

TOGETHER void gate_wait(unsigned long long *gate, unsigned long long state) {
  while (!gate_passed(gate, state)) {
  }
}

TOGETHER void gate_wait_parity(unsigned long long *gate, unsigned parity) {
  while (!gate_passed_parity(gate, parity)) {
  }
}
