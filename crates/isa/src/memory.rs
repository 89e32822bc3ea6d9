//! Memory accesses as instructions describe them; the SM carries them out.

use crate::{
    addresses::Addresses,
    lanes::{Lanes, ScratchRegister},
    operand::Operand,
    semantics::lane_loops::{host_has_avx2, map_lanes64},
};

/// One load, store, atomic or copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryOperation {
    /// State space of the address.
    pub space: Space,
    /// Load, store, atomic, copy or cache operation.
    pub action: Action,
    /// Type of one element.
    pub element: Element,
    /// Elements a lane accesses, at ascending addresses: 1, 2 or 4.
    pub elements: u8,
    /// How a lane's address is made.
    pub address: AddressOperand,
    /// Loads, atomics: registers that receive, element by element (64-bit elements name the
    /// first of two registers, 128-bit the first of four). Stores, atomics' operand: see `values`.
    pub data: [Option<u16>; 4],
    /// Stores: value of each element. Atomics: `values[0]` is the operand and, for compare and
    /// swap, `values[0]` the comparand and `values[1]` the new value.
    pub values: [Operand; 4],
    /// Who must see it, and when.
    pub strength: Strength,
    /// What the caches are asked to do.
    pub cache: CachePolicy,
}

/// State spaces. Generic addresses are told apart by their windows when they are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Global memory, one address space with the host.
    Global,
    /// The block's shared memory; offsets from its start.
    Shared,
    /// The thread's own memory; offsets from its start.
    Local,
    /// Bank of constants, at an offset.
    Constant {
        /// Bank number.
        bank: u8,
    },
    /// Global, or shared or local through their windows.
    Generic,
}

/// Generic addresses in `[SHARED_WINDOW, SHARED_WINDOW + WINDOW_SIZE)` are the block's shared
/// memory. Both windows lie where no allocation can be.
pub const SHARED_WINDOW: u64 = 0x0000_1000_0000_0000;
/// Generic addresses from here are the kernel's parameters, which machine code makes from a word of bank 0.
pub const PARAMETER_WINDOW: u64 = 0x0000_1010_0000_0000;
/// Generic addresses from here are the thread's local memory.
pub const LOCAL_WINDOW: u64 = 0x0000_1100_0000_0000;
/// Bytes of the shared window that each block of a cluster has, by its rank.
pub const CTA_WINDOW: u64 = 1 << 24;
/// Size of either window.
pub const WINDOW_SIZE: u64 = 1 << 32;

/// As `values[1]` of [`Action::CopyToShared`]: an address that lies some bytes behind the beginning of an element is that
/// element's, without as many bytes at its end (`LDGSTS.ZFILL`; an H200 does so).
pub const BYTES_BY_ADDRESS: Operand = Operand::Immediate(u32::MAX as u64);

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Memory to registers.
    Load,
    /// Registers to memory.
    Store,
    /// Read, modify, write, and return the old value.
    Atomic(AtomicOperation, AtomicType),
    /// Read, modify, write, and return nothing.
    Reduce(AtomicOperation, AtomicType),
    /// `ldmatrix`/`LDSM`: 8 × 8 matrices of 16-bit elements from shared memory; the addresses of
    /// lanes 0-7, 8-15, … name the rows of matrix 0, 1, ….
    LoadMatrix {
        /// 1, 2 or 4.
        matrices: u8,
        /// Rows become columns.
        transpose: bool,
    },
    /// `stmatrix`/`STSM`, the reverse.
    StoreMatrix {
        /// 1, 2 or 4.
        matrices: u8,
        /// Rows become columns.
        transpose: bool,
    },
    /// `cp.async`/`LDGSTS`: global memory to shared memory. `address` is the global address; the
    /// sum of `values[0]`, `[2]` and `[3]` the shared one; `values[1]`, if any, the bytes to copy.
    /// The rest is zeroed, and all of it in lanes where `predicates[0]` does not hold. See [`BYTES_BY_ADDRESS`].
    CopyToShared,
    /// `multimem.ld_reduce`/`LDGMC`: the values of all members of a multicast object, reduced.
    LoadReduce(AtomicOperation, AtomicType, Accumulation),
    /// `mbarrier`/`SYNCS`: works on the 64-bit state of a barrier in shared memory.
    Mbarrier(MbarrierAction),
    /// `st.async`/`STAS`: to the shared memory of a block of the cluster. The lower word of the address is
    /// where, the upper word the `mbarrier` there that is told of the bytes.
    StoreAsync,
    /// `red.async`/`REDAS`, in the same way.
    ReduceAsync(AtomicOperation, AtomicType),
    /// Brings a line in; no value moves.
    Prefetch,
    /// Cache control (`CCTL`, `discard`): no value moves.
    CacheControl,
}

/// How a reduction over the members of a multicast object keeps what it has so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Accumulation {
    /// In the type of the elements, rounded at each step.
    Element,
    /// Pairs of 16 bits in single precision, rounded once at the end (`.acc::f32`, `F32ADD`).
    Single,
}

/// What is done to an `mbarrier`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MbarrierAction {
    /// Sets it up for the number of arrivals in `values[0]`.
    Initialize,
    /// Writes `values[0]` and `values[1]`, the lower word first, and returns what was there in `data[0]`.
    Exchange,
    /// Threads arrive, transactions are announced or have come. `values[0]` is the number where one is
    /// asked for.
    Change {
        /// Threads that arrive for each lane.
        arrivals: Amount,
        /// Transactions for each lane.
        transactions: Amount,
        /// The transactions have come rather than being announced.
        completes: bool,
        /// Those that arrive take part in no later phase.
        drops: bool,
        /// What `data[0]` receives.
        returns: MbarrierResult,
    },
    /// `predicate_destinations[0]` says whether the phase has ended whose parity is in bit 31 of
    /// `values[0]`.
    Test {
        /// The parity is in bit 0.
        by_parity: bool,
        /// If it has not, the warp waits for it for a while: `values[1]` nanoseconds, or as long as
        /// hardware likes if there is no number.
        waits: bool,
    },
    /// The place is no barrier any more.
    Invalidate,
    /// Changes the barrier when the copies to shared memory before it are complete.
    AfterCopies {
        /// What then happens for each lane.
        then: AfterCopies,
        /// Announces a transaction for each lane now.
        announces: bool,
    },
}

/// How many arrivals or transactions a lane makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// None.
    Zero,
    /// One.
    One,
    /// As many as `values[0]` says.
    Value,
}

/// What an arrival returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MbarrierResult {
    /// Nothing.
    Nothing,
    /// The state before it.
    State,
    /// The upper word of the state before the warp, and in the lower word the lanes that arrived
    /// together (`TMASK`).
    Lanes,
}

/// What happens to an `mbarrier` when copies to shared memory are complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum AfterCopies {
    /// An arrival.
    Arrive,
    /// A transaction is complete.
    CompleteTransaction,
    /// An arrival at a barrier in Ampere's layout.
    ArriveAmpere,
}

/// Type and width of one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// Zero-extended byte.
    U8,
    /// Sign-extended byte.
    S8,
    /// Zero-extended 16-bit.
    U16,
    /// Sign-extended 16-bit.
    S16,
    /// One register.
    B32,
    /// Two registers.
    B64,
    /// Four registers.
    B128,
}

impl Element {
    /// Bytes in memory.
    #[must_use]
    pub const fn bytes(self) -> u32 {
        match self {
            Self::U8 | Self::S8 => 1,
            Self::U16 | Self::S16 => 2,
            Self::B32 => 4,
            Self::B64 => 8,
            Self::B128 => 16,
        }
    }

    /// Registers that it takes.
    #[must_use]
    pub const fn words(self) -> u16 {
        match self {
            Self::B64 => 2,
            Self::B128 => 4,
            _ => 1,
        }
    }
}

/// `base + uniform + offset`, base scaled for SASS's `.X4`, `.X8`, `.X16`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressOperand {
    /// Per-lane part.
    pub base: Operand,
    /// `base` is 64 bits wide; otherwise 32, zero-extended.
    pub wide: bool,
    /// `base` is shifted left by this.
    pub shift: u8,
    /// One value a warp, added (SASS `UR`).
    pub uniform: Operand,
    /// `uniform` is 64 bits wide.
    pub uniform_wide: bool,
    /// Added last.
    pub offset: i64,
}

impl AddressOperand {
    /// Every lane's address, where it accesses `bytes` bytes.
    #[inline]
    #[must_use]
    pub fn evaluate(&self, lanes: &Lanes<'_>, bytes: u32) -> Addresses {
        #[cfg(target_arch = "x86_64")]
        if host_has_avx2() {
            // SAFETY: the host has the features that it was compiled for.
            return unsafe { self.evaluate_wide(lanes, bytes) };
        }
        self.evaluate_lanes(lanes, bytes)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2")]
    fn evaluate_wide(&self, lanes: &Lanes<'_>, bytes: u32) -> Addresses {
        self.evaluate_lanes(lanes, bytes)
    }

    #[inline(always)]
    fn evaluate_lanes(&self, lanes: &Lanes<'_>, bytes: u32) -> Addresses {
        let uniform = match (self.uniform, self.uniform_wide) {
            (Operand::None, _) => 0,
            (operand, wide) => {
                let mut room = ScratchRegister::uninit();
                let low = lanes.raw_at(operand, 0, &mut room).0[0];
                let high = if wide {
                    lanes.raw_at(operand, 1, &mut room).0[0]
                } else {
                    0
                };
                u64::from(low) | u64::from(high) << 32
            }
        };
        let constant = uniform.wrapping_add(self.offset as u64);
        let limit = if self.wide || self.uniform_wide {
            u64::MAX
        } else {
            u64::from(u32::MAX)
        };
        let shift = self.shift;
        let place = |base: u64| (base << shift).wrapping_add(constant) & limit;
        let mut rooms = [ScratchRegister::uninit(); 2];
        let [first, second] = &mut rooms;
        let low = lanes.raw_at(self.base, 0, first);
        let places = if self.wide {
            let high = lanes.raw_at(self.base, 1, second);
            map_lanes64(|lane| place(u64::from(low.0[lane]) | u64::from(high.0[lane]) << 32))
        } else {
            map_lanes64(|lane| place(u64::from(low.0[lane])))
        };
        Addresses::of(places, bytes)
    }
}

/// How strongly an access is ordered, and for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strength {
    /// Ordinary: seen by others after synchronisation.
    Weak,
    /// Performed at one place that all threads of the scope agree on.
    Strong {
        /// Threads that must agree.
        scope: Scope,
        /// What is ordered around it.
        order: Order,
    },
}

/// Threads that an ordering speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// The block.
    Block,
    /// The cluster of blocks.
    Cluster,
    /// The GPU.
    Gpu,
    /// All GPUs and the host.
    System,
}

/// What an access orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Itself.
    Relaxed,
    /// Later accesses come after it.
    Acquire,
    /// Earlier accesses come before it.
    Release,
    /// Both.
    AcquireRelease,
    /// `volatile`: as relaxed at system scope.
    Volatile,
}

/// `membar`, `fence`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FenceOperation {
    /// Threads for which it orders accesses.
    pub scope: Scope,
    /// `fence.sc` rather than `acq_rel`.
    pub sequential: bool,
}

/// Hints to the caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum CachePolicy {
    /// As the GPU does by default.
    #[default]
    Default,
    /// Past L1 (`.cg`).
    L2Only,
    /// Read-only path (`ld.global.nc`, `LDG.CONSTANT`).
    ReadOnly,
    /// Evict first (`.cs`).
    Streaming,
    /// Last use (`.lu`).
    LastUse,
    /// Do not cache, fetch again (`.cv`).
    Volatile,
    /// Write through (`.wt`).
    WriteThrough,
    /// Do not allocate in L1.
    NoAllocate,
}

/// Atomic read-modify-write operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum AtomicOperation {
    /// Sum.
    Add,
    /// Smaller.
    Min,
    /// Larger.
    Max,
    /// `old >= operand ? 0 : old + 1`.
    Increment,
    /// `old == 0 || old > operand ? operand : old - 1`.
    Decrement,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// The operand.
    Exchange,
    /// The new value if the old one equals the comparand.
    CompareAndSwap,
    /// As [`AtomicOperation::CompareAndSwap`], but what is given back is whether it did (`CAST`).
    CompareAndTest,
    /// An arrival at an `mbarrier` in Ampere's layout (`ATOMS.ARRIVE.64`).
    Arrive,
}

impl AtomicOperation {
    /// Whether a generic atomic of machine code does this in a space. Otherwise it leaves memory as it is and says so:
    /// an H200 adds no floats in shared memory, and of 64 bits it adds and exchanges only.
    #[must_use]
    pub fn is_native_in(self, space: Space, kind: AtomicType) -> bool {
        match (space, kind) {
            (Space::Global, _) | (_, AtomicType::U32 | AtomicType::S32) => true,
            (Space::Shared, AtomicType::U64 | AtomicType::S64) => matches!(
                self,
                Self::Add | Self::Exchange | Self::CompareAndSwap | Self::CompareAndTest
            ),
            _ => false,
        }
    }
}

/// Types that atomics work on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum AtomicType {
    /// Unsigned or untyped 32-bit.
    U32,
    /// Signed 32-bit.
    S32,
    /// Unsigned or untyped 64-bit.
    U64,
    /// Signed 64-bit.
    S64,
    /// FP32, round to nearest; subnormals kept, except `FTZ`.
    F32 {
        /// Subnormals become zero.
        flush: bool,
    },
    /// FP64 as L2 adds it: NaNs stay as they are.
    F64,
    /// FP64 as code adds it that has no such atomic, in shared memory: NaNs become quiet.
    F64Quiet,
    /// A pair of FP16.
    F16x2,
    /// A pair of BF16.
    Bf16x2,
    /// One FP16.
    F16,
    /// One BF16.
    Bf16,
    /// One 16-bit word (compare and swap).
    B16,
    /// Four words at once (exchange, compare and swap).
    B128,
}

impl AtomicType {
    /// Bytes in memory.
    #[must_use]
    pub const fn bytes(self) -> u32 {
        match self {
            Self::B16 | Self::F16 | Self::Bf16 => 2,
            Self::U32 | Self::S32 | Self::F32 { .. } | Self::F16x2 | Self::Bf16x2 => 4,
            Self::U64 | Self::S64 | Self::F64 | Self::F64Quiet => 8,
            Self::B128 => 16,
        }
    }

    /// The element of a load that is as wide.
    #[must_use]
    pub const fn element(self) -> Element {
        match self.bytes() {
            16 => Element::B128,
            8 => Element::B64,
            2 => Element::U16,
            _ => Element::B32,
        }
    }
}

/// Where a generic address points.
#[must_use]
#[inline]
pub const fn classify_generic(address: u64) -> (Space, u64) {
    if address >= SHARED_WINDOW && address < SHARED_WINDOW + WINDOW_SIZE {
        (Space::Shared, address - SHARED_WINDOW)
    } else if address >= LOCAL_WINDOW && address < LOCAL_WINDOW + WINDOW_SIZE {
        (Space::Local, address - LOCAL_WINDOW)
    } else {
        (Space::Global, address)
    }
}
