//! The instruction as the SM sees it.

use crate::{
    bulk::BulkOperation,
    device_runtime::DeviceRuntimeCall,
    lanes::Lanes,
    memory::{FenceOperation, MemoryOperation},
    operand::{Operand, PredicateOperand, PredicateRegister, Source},
    texture::TextureOperation,
    warpgroup::Warpgroup,
};

/// The semantics of an instruction that touches nothing but its warp: reads operands through
/// [`Lanes`], loops over the 32 lanes, writes back under [`Lanes::execute`].
pub type Compute = fn(&mut Lanes<'_>, &Instruction);

/// One decoded instruction. `sources`, `predicates` and `modifiers` mean what the function in
/// `operation` takes them to mean; the timing fields are for the SM.
#[derive(Clone, Debug)]
pub struct Instruction {
    /// The operation it performs.
    pub operation: Operation,
    /// Executed by the lanes where this holds.
    pub guard: PredicateOperand,
    /// First destination register; 64-bit and wider results go on upward from it.
    pub destination: Option<u16>,
    /// First uniform destination.
    pub uniform_destination: Option<u8>,
    /// Up to four values read.
    pub sources: [Source; 4],
    /// Up to three predicates read besides the guard.
    pub predicates: [PredicateOperand; 3],
    /// Up to two predicates written.
    pub predicate_destinations: [PredicateRegister; 2],
    /// Bits that belong to the function: rounding, comparison, look-up table, lane mode.
    pub modifiers: u64,
    /// Scheduling information for the SM.
    pub scheduling: SchedulingInfo,
}

/// Everything an instruction can do.
#[derive(Clone, Debug)]
pub enum Operation {
    /// Does nothing (`NOP`, hints that we do not model).
    Nothing,
    /// Registers in, registers out.
    Compute(Compute),
    /// Reads or writes memory in any space.
    Memory(Box<MemoryOperation>),
    /// A command for the TMA engine.
    Bulk(Box<BulkOperation>),
    /// A question for the texture unit.
    Texture(Box<TextureOperation>),
    /// Changes where lanes go next.
    Flow(Flow),
    /// Meets other warps of the block.
    Barrier(BlockBarrier),
    /// Meets other blocks of the cluster, or other grids.
    Grid(GridOperation),
    /// Matrix products of a warp group, and registers that move between warps.
    Warpgroup(Warpgroup),
    /// Orders memory accesses.
    Fence(FenceOperation),
    /// Asks the system: print, allocate, assert, trap.
    System(Box<SystemCall>),
    /// Decodes and prints but cannot run; executing it stops the run with this sentence.
    Unsupported(Box<str>),
    /// No instruction of this architecture, or none that its kernel may execute; executing it is an
    /// illegal instruction, with this sentence.
    Illegal(Box<str>),
}

/// Control flow. Program counters are indices into [`crate::Module::code`]. Wherever lanes "under
/// guard" are spoken of, `predicates[0]` narrows the guard further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Lanes under guard (and `predicates[0]`) go to `target`, the others fall through.
    Branch {
        /// Index of the branch target in the code.
        target: u32,
    },
    /// All active lanes go to `target` if a live lane of the mask in `sources[0]` is not under guard (`BRA.DIV`); with
    /// `if_converged`, if all of them are (`BRA.CONV`).
    BranchOnDivergence {
        /// Index of the branch target in the code.
        target: u32,
        /// Branch when all are here rather than when one is missing.
        if_converged: bool,
    },
    /// Each lane goes to `base + address(sources[0])`, see [`crate::module::CODE_BASE`].
    BranchIndirect {
        /// How the value in `sources[0]` becomes an index into the code.
        address: CodeAddress,
    },
    /// Jump, and put the index of the next instruction (as a code address) in `destination`
    /// (two registers) if there is one.
    Call {
        /// Index of the branch target in the code.
        target: u32,
    },
    /// As [`Flow::Call`], each lane to the function in `sources[0]`.
    CallIndirect {
        /// How the value in `sources[0]` becomes an index into the code.
        address: CodeAddress,
    },
    /// Each lane goes back to the code address in `sources[0]`.
    Return {
        /// How the value in `sources[0]` becomes an index into the code.
        address: CodeAddress,
    },
    /// The lanes under guard end.
    Exit,
    /// `BSSY`: the active lanes will reconverge at `ConvergeWait` of this barrier.
    ConvergeSet {
        /// Convergence barrier.
        barrier: u16,
    },
    /// `BSYNC`: wait for all lanes recorded in this barrier.
    ConvergeWait {
        /// Convergence barrier.
        barrier: u16,
    },
    /// `BREAK`: the lanes under guard no longer take part.
    ConvergeBreak {
        /// Convergence barrier.
        barrier: u16,
    },
    /// `WARPSYNC`, `bar.warp.sync` and the implicit synchronisation of `*.sync` instructions: wait until
    /// the lanes of the mask in `sources[0]` have all come here. With a `sources[1]` the next instruction is one that
    /// they execute together.
    WarpSync,
    /// `WARPSYNC.EXCLUSIVE`: as [`Flow::WarpSync`], and nobody else executes what follows with the lanes of the mask.
    WarpSyncExclusive,
    /// `WARPSYNC.COLLECTIVE`: wait until the lanes of the mask in `sources[0]` have all come to such an
    /// instruction, then execute what follows one of them together.
    Collective {
        /// Where the lanes that wait here go on after [`Flow::EndCollective`].
        target: u32,
    },
    /// `ENDCOLLECTIVE`: each lane goes to the target of its own [`Flow::Collective`].
    EndCollective,
    /// Let other lanes of the warp go first.
    Yield,
}

/// How a register value names code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeAddress {
    /// A 64-bit code address: [`crate::module::CODE_BASE`] + 16 × index.
    Absolute,
    /// A byte offset (16 an instruction) from this index.
    Relative {
        /// Index that offset 0 means.
        base: u32,
    },
    /// An index into the code.
    Index,
}

/// `bar.sync`, `bar.arrive`, `bar.red` and `barrier.*`: barrier number in `sources[0]`, number of
/// threads in `sources[1]` (all threads of the block when absent).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockBarrier {
    /// Whether to wait and what to combine.
    pub mode: BlockBarrierMode,
    /// `.aligned`: all lanes of the warp come together.
    pub aligned: bool,
}

/// What a block barrier does besides counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockBarrierMode {
    /// Wait for the others.
    Sync,
    /// Count and go on.
    Arrive,
    /// Wait, and count the threads where `predicates[0]` holds into `destination`.
    ReducePopulation,
    /// Wait, and write "all hold" to `predicate_destinations[0]`.
    ReduceAnd,
    /// Wait, and write "any holds" to `predicate_destinations[0]`.
    ReduceOr,
}

/// What concerns blocks other than the thread's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GridOperation {
    /// `barrier.cluster.arrive`, `UCGABAR_ARV`.
    ClusterArrive,
    /// `barrier.cluster.wait`, `UCGABAR_WAIT`.
    ClusterWait,
    /// `griddepcontrol.launch_dependents`, `PREEXIT`: the grid that follows may begin.
    LaunchDependents,
    /// `griddepcontrol.wait`, `ACQBULK`: waits until the grids before have ended.
    WaitForPrerequisites,
}

/// Calls that leave the device code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemCall {
    /// The service that is called.
    pub kind: SystemCallKind,
    /// Arguments by position; 64-bit values are register pairs.
    pub arguments: Vec<Operand>,
    /// First register of the result, if any.
    pub result: Option<u16>,
}

/// What device code can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SystemCallKind {
    /// `vprintf(format, arguments)`, pointers generic; result: 0 or a negative number.
    Print,
    /// `malloc(bytes)` from the device heap; result: 64-bit pointer.
    Allocate,
    /// `free(pointer)`.
    Free,
    /// `__assertfail(message, file, line, function, character size)`.
    AssertFail,
    /// `trap`, `BPT.TRAP`: the launch fails.
    Trap,
    /// `brkpt`: nothing without a debugger.
    Breakpoint,
    /// `nanosleep`: the warp rests for about this many nanoseconds (argument 0).
    Sleep,
    /// `NANOSLEEP.SYNCS`: a short rest between two tests of an `mbarrier`.
    SleepAtMbarrier,
    /// A call of the device runtime: grids, streams and events of device code.
    DeviceRuntime {
        /// The call.
        call: DeviceRuntimeCall,
        /// The answer is CUDA's error, which becomes the thread's last one, as a function of the library has it;
        /// else it is the system's own.
        library: bool,
    },
}

impl SystemCallKind {
    /// Registers of an argument.
    #[must_use]
    pub fn argument_words(self, index: usize) -> u32 {
        match self {
            Self::Sleep | Self::SleepAtMbarrier => 1,
            Self::DeviceRuntime { call, .. } => {
                let words = call.argument_words().get(index);
                words.copied().map_or(2, u32::from)
            }
            _ => 2,
        }
    }

    /// Registers of the result.
    #[must_use]
    pub fn result_words(self) -> u32 {
        match self {
            Self::Allocate => 2,
            Self::DeviceRuntime { call, .. } => u32::from(call.result_words()),
            _ => 1,
        }
    }
}

/// What the SM needs to know of an instruction besides its semantics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SchedulingInfo {
    /// Execution unit.
    pub unit: Unit,
    /// Row of the latency table of the GPU file; see [`Latency`].
    pub latency: Latency,
    /// What the profilers' instruction mix counts it as.
    pub mix: Mix,
    /// Registers that each source spans (0 if it is not a register).
    pub source_registers: [u8; 4],
    /// Registers written from `destination` on.
    pub destination_registers: u8,
    /// The compiler's scheduling bits (SASS); `None` means a scoreboard decides.
    pub control: Option<Control>,
    /// Fixed latencies that the compiler counts on where no dependence counter is used (SASS).
    pub fixed_latency: FixedLatency,
    /// Line of the source, as an index into [`crate::Module::lines`], 0 for none.
    pub line: u32,
    /// A pseudo instruction, inserted by a front end pass: it takes no time and is not counted.
    pub pseudo: bool,
    /// What it does with groups of asynchronous copies and dependence counters (SASS).
    pub dependency_barrier: DependencyBarrier,
    /// The constant bank that it reads at an index: `sources[0]`, and `sources[1]` further on (SASS).
    pub indexed_constant: Option<u8>,
}

/// Instructions that only dependence counters know of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum DependencyBarrier {
    /// All others.
    #[default]
    None,
    /// `LDGDEPBAR`: raises its write counter until all copies to shared memory before it are done.
    Arrive,
    /// `DEPBAR.LE`: waits until a counter has fallen to a value and others are zero.
    Wait {
        /// The counter.
        counter: u8,
        /// Its value.
        at_most: u8,
        /// The others, a bit each.
        also: u8,
    },
}

/// Execution units of an SM sub-core or of the SM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
#[repr(u8)]
pub enum Unit {
    /// Integer and logic.
    #[default]
    Alu,
    /// FP32 multiply-add, also integer multiply.
    Fma,
    /// FP64.
    Double,
    /// FP16 pairs.
    Half,
    /// Transcendental functions and conversions.
    Transcendental,
    /// One value a warp.
    Uniform,
    /// Matrix multiply.
    Tensor,
    /// Branches and convergence.
    Branch,
    /// Address generation and all memory.
    LoadStore,
    /// Texture.
    Texture,
    /// Barriers, special registers, the rest.
    Miscellaneous,
}

/// Number of [`Unit`]s.
pub const UNITS: usize = 11;

/// Latency classes: what a GPU file gives a number for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
#[repr(u8)]
pub enum Latency {
    /// Integer, logic, moves.
    #[default]
    Integer,
    /// FP32 and 32-bit multiply-add.
    Float,
    /// 32 × 32 → 64 multiply-add.
    WideMultiply,
    /// FP64.
    Double,
    /// FP16 pairs.
    Half,
    /// MUFU.
    Transcendental,
    /// Conversions, POPC, FLO, BREV.
    Conversion,
    /// Predicates and comparisons.
    Compare,
    /// Votes.
    Vote,
    /// Shuffles.
    Shuffle,
    /// Warp-wide reductions.
    WarpReduce,
    /// Match.
    Match,
    /// Uniform datapath.
    Uniform,
    /// S2R and friends.
    SpecialRegister,
    /// Loads from constant banks.
    Constant,
    /// Matrix multiply with a short chain (1688-like).
    MatrixShort,
    /// Matrix multiply with a long chain (16816-like).
    MatrixLong,
    /// FP64 matrix multiply.
    MatrixDouble,
    /// Branch resolution.
    Branch,
    /// Memory: the memory system decides.
    Memory,
    /// Barriers: others decide.
    Barrier,
}

/// Number of [`Latency`] classes.
pub const LATENCIES: usize = 21;

/// The instruction mix of profilers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Mix {
    /// 32-bit (and 16-bit) floating point.
    Fp32,
    /// 64-bit floating point.
    Fp64,
    /// Integer and logic.
    Integer,
    /// Branches, calls, exits, barriers of convergence.
    Control,
    /// Loads, stores, atomics.
    LoadStore,
    /// Everything else.
    #[default]
    Other,
}

/// Number of [`Mix`] classes.
pub const MIXES: usize = 6;

/// Cycles that the compiler leaves at least between an instruction and one that needs its result; 0
/// where it has no fixed latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FixedLatency {
    /// Until a register can be read.
    pub registers: u8,
    /// Until a predicate can be an operand.
    pub predicates: u8,
    /// Until a predicate can guard.
    pub guard: u8,
    /// Cycles by which this instruction itself reads later than others do.
    pub late_read: u8,
}

/// The scheduling bits that the compiler writes into SASS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Control {
    /// Cycles before the warp may issue again.
    pub stall: u8,
    /// Prefer another warp next cycle.
    pub yields: bool,
    /// Counter raised now and lowered at write-back; 7 is none.
    pub write_counter: u8,
    /// Counter raised now and lowered when operands are read; 7 is none.
    pub read_counter: u8,
    /// Counters that must be zero before issue.
    pub wait_mask: u8,
    /// Operand slots kept in the register cache.
    pub reuse: u8,
    /// Counter that must have come down to a number that is not zero before issue (`DEPBAR.LE`).
    pub threshold: Option<CounterThreshold>,
}

impl Control {
    /// Whether the compiler said nothing: no stall, no counter, no wait. Code that `ptxas` 13.3 does not optimise
    /// is like this for sm_90, and hardware waits for each instruction by itself; in optimised code an `ERRBAR` is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let empty = Self {
            yields: true,
            write_counter: 7,
            read_counter: 7,
            ..Self::default()
        };
        *self == empty
    }
}

/// A counter that may stay above zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterThreshold {
    /// The dependence counter.
    pub counter: u8,
    /// The highest value at which the instruction may issue.
    pub at_most: u8,
}

impl Instruction {
    /// An instruction of this operation, unguarded and without operands, to be filled in.
    #[must_use]
    pub fn new(operation: Operation, scheduling: SchedulingInfo) -> Self {
        Self {
            operation,
            guard: PredicateOperand::TRUE,
            destination: None,
            uniform_destination: None,
            sources: [Source::default(); 4],
            predicates: [PredicateOperand::TRUE; 3],
            predicate_destinations: [PredicateRegister::True; 2],
            modifiers: 0,
            scheduling,
        }
    }
}
