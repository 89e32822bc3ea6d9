//! Programs as front ends deliver them.

use std::{borrow::Cow, ops::Range, sync::Arc};

use crate::{
    code::Code,
    instruction::Instruction,
    lanes::{ConstantBanks, Identity},
    memory::{PARAMETER_WINDOW, WINDOW_SIZE},
    trace::TraceSource,
};

/// Code addresses that programs can hold in registers: `CODE_BASE + 16 × index`. Lies where no
/// allocation can be.
pub const CODE_BASE: u64 = 0x0000_1200_0000_0000;

/// Code, linked: every address in it is final.
#[derive(Debug, Clone, Default)]
pub struct Module {
    /// All functions, one after the other.
    pub code: Code,
    /// Entry points by name.
    pub kernels: Vec<Kernel>,
    /// Names of functions by their first index, ascending, for messages.
    pub functions: Vec<(u32, String)>,
    /// First instructions of the pieces that were linked as one, ascending; empty if all code is one.
    /// Only calls, and jumps by register, lead from one into another.
    pub sections: Vec<u32>,
    /// Source lines that [`crate::instruction::SchedulingInfo::line`] points into; entry 0 is unused.
    pub lines: Vec<SourceLine>,
    /// Constant banks that the module fills (not bank 0).
    pub constants: Vec<ConstantBank>,
    /// Bytes to write to global memory before the first launch.
    pub initial: Vec<(u64, Vec<u8>)>,
    /// Compute capability that the code is for, e.g. 90.
    pub architecture: u32,
    /// True for SASS: control bits rule, counts equal the hardware's, lanes reconverge only where the
    /// code says so.
    pub native: bool,
    /// Whether its code calls the device runtime: it may launch kernels.
    pub launches_kernels: bool,
    /// Texts of instructions for messages, by index; may be empty. Machine code is spelled when somebody asks:
    /// see [`Self::text`].
    pub listing: Vec<String>,
    /// Whether warps may run straight on where code only computes. Only in machine code: its lanes diverge and
    /// reconverge where an instruction says so. In PTX lanes may reconverge anywhere, so one has to look after every
    /// step.
    pub runs_straight: bool,
    /// What the blocks of its kernel did, if it is replayed from a trace instead of executed.
    pub trace: Option<Arc<dyn TraceSource>>,
}

impl Module {
    /// Function that holds an instruction.
    #[must_use]
    pub fn function_at(&self, index: u32) -> Option<&str> {
        let after = self.functions.partition_point(|(start, _)| *start <= index);
        self.functions
            .get(after.checked_sub(1)?)
            .map(|(_, name)| name.as_str())
    }

    /// Number of sections; code that is all one has one.
    #[must_use]
    pub fn section_count(&self) -> usize {
        self.sections.len().max(1)
    }

    /// Instructions of a section.
    #[must_use]
    pub fn section(&self, number: usize) -> Range<u32> {
        let start = self.sections.get(number).copied().unwrap_or(0);
        let end = self.sections.get(number + 1).copied();
        start..end.unwrap_or(self.code.len() as u32).max(start)
    }

    /// The section that holds an instruction.
    #[must_use]
    pub fn section_of(&self, index: u32) -> usize {
        let after = self.sections.partition_point(|start| *start <= index);
        after.saturating_sub(1)
    }

    /// Instructions from one on that warps can run through without looking: see [`Code::straight_line`].
    #[must_use]
    #[inline(always)]
    pub fn straight_line(&self, index: u32) -> &[Instruction] {
        if self.runs_straight {
            self.code.straight_line(index as usize)
        } else {
            &[]
        }
    }

    /// Text of an instruction for messages, if it is known.
    #[must_use]
    pub fn text(&self, index: u32) -> Option<Cow<'_, str>> {
        let index = index as usize;
        if let Some(text) = self.listing.get(index) {
            return Some(Cow::Borrowed(text));
        }
        let words = self.code.words().filter(|words| index < words.length())?;
        Some(Cow::Owned(words.text(index)))
    }

    /// Kernel by name.
    #[must_use]
    pub fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.kernels.iter().find(|kernel| kernel.name == name)
    }
}

/// A line of the source program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SourceLine {
    /// File as the compiler wrote it.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// `file:line` of the call that the compiler put this line in the place of; empty if there
    /// is none.
    pub inlined_at: String,
}

/// Something that can be launched.
#[derive(Debug, Clone, Default)]
pub struct Kernel {
    /// Mangled name.
    pub name: String,
    /// Index of its first instruction.
    pub entry: u32,
    /// Warp registers a warp needs, those of called functions included.
    pub warp_registers: u16,
    /// Registers a thread counts for occupancy: the cubin's figure, an estimate for PTX.
    pub registers: u32,
    /// Predicates a warp needs.
    pub predicates: u16,
    /// Convergence barriers a warp needs.
    pub convergence_barriers: u16,
    /// Arguments, in order.
    pub parameters: Vec<Parameter>,
    /// Offset of the arguments in constant bank 0.
    pub parameter_base: u32,
    /// Bytes of arguments.
    pub parameter_bytes: u32,
    /// Static shared memory of a block, as the program declares it. Addresses 0 up to
    /// `shared_reserved` belong to the system and come before it.
    pub shared_bytes: u32,
    /// Shared bytes at the start of the block's shared memory that the system keeps (sm_90: 1 KiB
    /// counts here when the code's addresses include it).
    pub shared_reserved: u32,
    /// Local memory of a thread: what the code is known to need.
    pub local_bytes: u32,
    /// Whether it calls functions or makes arrays of a size that it computes: only the program knows then how
    /// deep the stack gets, and a launch adds the context's stack size.
    pub needs_stack: bool,
    /// Constant bytes that the profiler reports.
    pub constant_bytes: u32,
    /// `.maxntid` / `__launch_bounds__`: threads a block may have; 0 is unlimited.
    pub max_threads: u32,
    /// `.reqntid`.
    pub required_threads: Option<[u32; 3]>,
    /// Named barriers used.
    pub barriers: u32,
    /// Cluster dimensions that the kernel asks for.
    pub cluster: Option<[u32; 3]>,
    /// The virtual architecture that it was compiled for, as 75 for `compute_75`.
    pub virtual_architecture: u32,
    /// Constants of this kernel alone, on top of the module's.
    pub constants: Vec<ConstantBank>,
    /// Where the driver's own words are in bank 0.
    pub bank0: Bank0Layout,
    /// Words that the module puts into bank 0, by their offsets: indices of texture references, and the address
    /// of the bank of `__constant__` variables in global memory.
    pub bank0_words: Vec<(u32, u32)>,
}

/// Bytes of one constant bank.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConstantBank {
    /// Bank number.
    pub bank: u8,
    /// Content at load time.
    pub bytes: Vec<u8>,
    /// Where the bank lies in global memory, if programs can write it (`__constant__`): then
    /// that memory is what counts, and every launch takes a fresh copy of it.
    pub backing: Option<u64>,
}

/// One argument of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// Byte offset from the parameter base.
    pub offset: u32,
    /// Size in bytes.
    pub size: u32,
}

/// Offsets of the driver's words in constant bank 0. `None`: not there on this architecture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bank0Layout {
    /// Three words: threads of a block.
    pub block_size: Option<u32>,
    /// Three words: blocks of the grid.
    pub grid_size: Option<u32>,
    /// 64-bit base of the shared window.
    pub shared_window: Option<u32>,
    /// 64-bit base of the local window.
    pub local_window: Option<u32>,
    /// 64-bit generic address of the arguments.
    pub parameter_window: Option<u32>,
    /// 64-bit generic address of the bank, at which code finds the arguments where there is no word for their own.
    pub bank_window: Option<u32>,
    /// Initial stack pointer (offset in local memory).
    pub stack_pointer: Option<u32>,
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: Option<u32>,
    /// 64-bit launch number.
    pub grid: Option<u32>,
    /// Three words: `%envreg0` to `%envreg2`.
    pub environment: Option<u32>,
    /// Number of SMs.
    pub sms: Option<u32>,
    /// Words about clusters, from the flag that somebody asked for them on.
    pub cluster: Option<u32>,
    /// 64-bit memory descriptor; its content is of no concern here.
    pub descriptor: Option<u32>,
}

impl Kernel {
    /// Offset in bank 0 of a generic address, if it is one of the parameters.
    #[must_use]
    pub fn parameter_offset(&self, address: u64) -> Option<u64> {
        let offset = address.checked_sub(PARAMETER_WINDOW)?;
        (offset < WINDOW_SIZE).then_some(offset + u64::from(self.parameter_base))
    }

    /// Constant banks of a launch: the module's, the kernel's, and bank 0 with the driver's
    /// words and the arguments. `read` copies global memory for banks that programs can write.
    #[must_use]
    pub fn launch_constants(
        &self,
        module: &Module,
        identity: &Identity,
        arguments: &[u8],
        read: &dyn Fn(u64, &mut [u8]),
    ) -> ConstantBanks {
        let mut banks = ConstantBanks::default();
        for bank in module.constants.iter().chain(&self.constants) {
            let mut bytes = bank.bytes.clone();
            if let Some(address) = bank.backing {
                read(address, &mut bytes);
            }
            banks.write(bank.bank, 0, &bytes);
        }
        let end = (self.parameter_base + self.parameter_bytes.max(arguments.len() as u32)) as usize;
        let words = self
            .bank0_words
            .iter()
            .map(|(offset, _)| *offset as usize + 4);
        // The last argument may be less than a word, and words are what is read.
        let end = words.fold(end, usize::max).next_multiple_of(8);
        let mut bank0 = vec![0; end.max(0x400)];
        let start = self.parameter_base as usize;
        bank0[start..start + arguments.len()].copy_from_slice(arguments);
        let mut word = |offset: Option<u32>, index: u32, value: u32| {
            if let Some(offset) = offset {
                let at = (offset + 4 * index) as usize;
                bank0[at..at + 4].copy_from_slice(&value.to_le_bytes());
            }
        };
        for index in 0..3 {
            let axis = index as usize;
            word(self.bank0.block_size, index, identity.block_size[axis]);
            word(self.bank0.grid_size, index, identity.grid_size[axis]);
            word(self.bank0.environment, index, identity.environment[axis]);
        }
        let windows = [
            (self.bank0.shared_window, crate::memory::SHARED_WINDOW),
            (self.bank0.local_window, crate::memory::LOCAL_WINDOW),
            (self.bank0.grid, identity.grid),
            (self.bank0.parameter_window, PARAMETER_WINDOW),
            (
                self.bank0.bank_window,
                PARAMETER_WINDOW - u64::from(self.parameter_base),
            ),
        ];
        for (offset, value) in windows {
            word(offset, 0, value as u32);
            word(offset, 1, (value >> 32) as u32);
        }
        word(self.bank0.stack_pointer, 0, identity.local_bytes);
        word(self.bank0.dynamic_shared, 0, identity.dynamic_shared);
        word(self.bank0.sms, 0, identity.sms);
        for (index, value) in cluster_words(identity) {
            word(self.bank0.cluster, index, value);
        }
        for (offset, value) in &self.bank0_words {
            word(Some(*offset), 0, *value);
        }
        banks.write(0, 0, &bank0);
        banks
    }
}

/// Words about clusters in bank 0, counted from the first: the flag, blocks of a cluster, their reciprocals,
/// clusters of the grid, bytes from one block's part of the shared window to the next, the window, blocks of a
/// cluster in all. So an H200 has them (`validation/hardware/h200/clusters.txt`).
fn cluster_words(identity: &Identity) -> [(u32, u32); 14] {
    let size = identity.cluster();
    let clusters = |axis: usize| identity.grid_size[axis] / size[axis];
    let reciprocal = |axis: usize| (1.0 / size[axis] as f32).to_bits();
    let window = crate::memory::SHARED_WINDOW;
    [
        (0, u32::from(identity.explicit_cluster)),
        (1, size[0]),
        (2, size[1]),
        (3, size[2]),
        (4, reciprocal(0)),
        (5, reciprocal(1)),
        (6, reciprocal(2)),
        (7, clusters(0)),
        (8, clusters(1)),
        (9, clusters(2)),
        (11, crate::memory::CTA_WINDOW as u32),
        (12, window as u32),
        (13, (window >> 32) as u32),
        (18, identity.cluster_blocks()),
    ]
}

/// A variable of a module before it has an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Global {
    /// Mangled name.
    pub name: String,
    /// Size in bytes.
    pub size: u64,
    /// Alignment in bytes, a power of two.
    pub alignment: u64,
    /// Kind of variable, which decides the memory it is in.
    pub kind: GlobalKind,
}

/// Kinds of module variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GlobalKind {
    /// `__device__`.
    Device,
    /// `__managed__`.
    Managed,
    /// `__constant__`: also in a constant bank at this offset; the global copy is authoritative
    /// and banks are refreshed from it at launch.
    Constant {
        /// Bank number.
        bank: u8,
        /// Byte offset in the bank.
        offset: u32,
    },
    /// `texture<...>`, a texture reference: it lies in no memory, and its index among the textures of the context
    /// stands for its address.
    Texture,
}
