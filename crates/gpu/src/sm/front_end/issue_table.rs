//! What every instruction of a module costs, decoded once: the issue model reads a row of this
//! instead of looking at instructions.

use std::sync::{Arc, OnceLock};

use lockstep_isa::bulk::BulkAction;
use lockstep_isa::code::PAGE;
use lockstep_isa::instruction::{
    BlockBarrierMode, DependencyBarrier, Flow, Latency, Mix, SchedulingInfo, Unit,
};
use lockstep_isa::memory::{Action, CachePolicy};
use lockstep_isa::operand::PredicateRegister;
use lockstep_isa::semantics::matrix::Multiply;
use lockstep_isa::warpgroup::Warpgroup;
use lockstep_isa::{Instruction, Module, Operand, Operation};

use crate::parameters::SmParameters;
use crate::sm::front_end::hazards::{Hazard, Hazards};
use crate::sm::warpgroup::group_interval;

/// What takes instructions at its own rate. A sub-core has one of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Pipe {
    /// Integer and logic.
    Alu,
    /// Either half of the multiply-add unit.
    Fma,
    /// The half that also multiplies integers.
    FmaHeavy,
    /// Double precision.
    Double,
    /// Pairs of half precision.
    Half,
    /// Transcendental functions and conversions.
    Transcendental,
    /// One value a warp.
    Uniform,
    /// Matrix multiply.
    Tensor,
    /// Branches and convergence.
    Branch,
    /// The queue of memory instructions.
    LoadStore,
    /// Texture.
    Texture,
    /// Barriers, special registers, the rest.
    Miscellaneous,
}

/// Number of [`Pipe`]s.
pub const PIPES: usize = 12;

/// What the issue model does with an instruction besides occupying its pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Results after a fixed time.
    Compute,
    /// Results after a time that the memory pipe decides, though no memory is asked: shuffles,
    /// loads of constants.
    Exchange,
    /// Memory decides.
    Memory,
    /// Lanes move.
    Flow,
    /// Meets others.
    Barrier,
    /// Waits for its accesses.
    Fence,
    /// Rests.
    Sleep,
    /// Closes a group of copies to shared memory.
    CloseCopies,
    /// Closes a group of stores and reductions in bulk.
    CommitBulk,
    /// Waits for a dependence counter to fall to a value, and for others to be 0.
    Await {
        /// The counter.
        counter: u8,
        /// Its value.
        at_most: u8,
        /// The others.
        also: u8,
    },
}

/// No dependence counter.
pub const NO_COUNTER: u8 = 7;

/// One instruction as the issue model sees it.
#[derive(Clone, Copy, Debug)]
pub struct IssueInfo {
    /// What it does.
    pub kind: Kind,
    /// What takes it.
    pub pipe: Pipe,
    /// Cycles for which it does.
    pub interval: u8,
    /// Whether the compiler's control bits rule.
    pub native: bool,
    /// Cycles before the warp may issue again.
    pub stall: u8,
    /// Cycles from its result or the last read of its operands until its counters say so.
    pub after_result: u8,
    /// Counter raised now and lowered at write-back.
    pub write_counter: u8,
    /// Counter raised now and lowered when operands are read.
    pub read_counter: u8,
    /// Counters that must be zero before issue.
    pub wait_mask: u8,
    /// Costs nothing.
    pub free: bool,
    /// Reads of each register bank.
    pub reads: [u8; 2],
    /// Cycles from issue to the issue of a dependent.
    pub latency: u16,
    /// Cycles until its operands are read.
    pub operands: u16,
    /// 32-bit words that a lane loads.
    pub words: u8,
    /// A load that bypasses L1.
    pub bypass: bool,
    /// A copy to shared memory.
    pub copies: bool,
    /// The line of constants that must be there, or [`NO_CONSTANT`].
    pub constant: u32,
    /// Whether it reads constants at an index.
    pub indexed_constant: bool,
}

/// Where the bank begins in the number of a line of constants; parameters are in bank 0.
pub const BANK_SHIFT: u32 = 24;

/// No constant is read.
pub const NO_CONSTANT: u32 = u32::MAX;

/// The rows of a module, each found when somebody first asks for it or one near it.
#[derive(Debug, Default)]
pub struct IssueTable {
    pages: Vec<OnceLock<Box<Page>>>,
    source: Option<(Arc<Module>, SmParameters)>,
}

/// Rows of instructions that are decoded together.
#[derive(Debug)]
struct Page {
    rows: Vec<IssueInfo>,
    hazards: Hazards,
}

impl IssueTable {
    /// Looks at none of the instructions of a module.
    #[must_use]
    pub fn new(module: &Arc<Module>, parameters: &SmParameters) -> Self {
        let pages = module.code.len().div_ceil(PAGE);
        Self {
            pages: (0..pages).map(|_| OnceLock::new()).collect(),
            source: Some((module.clone(), parameters.clone())),
        }
    }

    /// The module that it is about.
    #[must_use]
    pub fn module(&self) -> Option<&Arc<Module>> {
        self.source.as_ref().map(|(module, _)| module)
    }

    /// One instruction.
    #[must_use]
    #[inline]
    pub fn info(&self, pc: u32) -> Option<&IssueInfo> {
        self.page(pc)?.rows.get(pc as usize % PAGE)
    }

    /// What it reads and writes, for the scoreboard.
    ///
    /// # Panics
    /// If the module has no such instruction.
    #[must_use]
    #[inline]
    pub fn hazard(&self, pc: u32) -> Hazard<'_> {
        let page = self.page(pc).expect("an instruction of the module");
        page.hazards.get(pc as usize % PAGE)
    }

    #[inline]
    fn page(&self, pc: u32) -> Option<&Page> {
        let page = self.pages.get(pc as usize / PAGE)?;
        match page.get() {
            Some(page) => Some(page),
            None => self.look_at(pc as usize / PAGE),
        }
    }

    #[cold]
    fn look_at(&self, number: usize) -> Option<&Page> {
        let (module, parameters) = self.source.as_ref()?;
        let code = &module.code;
        let page = self.pages[number].get_or_init(|| {
            let first = number * PAGE;
            let range = first..code.len().min(first + PAGE);
            let row = |index: usize| {
                let before = index.checked_sub(1).map(|before| &code[before]);
                info(&code[index], before, parameters)
            };
            Box::new(Page {
                rows: range.clone().map(row).collect(),
                hazards: Hazards::new(code.range(range)),
            })
        });
        Some(page)
    }
}

fn info(instruction: &Instruction, before: Option<&Instruction>, p: &SmParameters) -> IssueInfo {
    let scheduling = &instruction.scheduling;
    let control = scheduling.control.unwrap_or_default();
    let kind = kind(instruction);
    let (pipe, interval) = pipe(instruction, p);
    let unscheduled = is_unscheduled(instruction, before);
    // A stall of one with the wish to yield keeps the warp away for the next cycle too.
    let stall = match (control.stall, control.yields) {
        _ if unscheduled => p.sub_core.unscheduled_stall as u8,
        // Products of 64 bits hold up their warp.
        (stall, _) if is_wide_product(scheduling) => {
            stall.max(p.sub_core.wide_multiply_stall as u8)
        }
        (0, _) => 1,
        (1, true) => 2,
        (stall, _) => stall,
    };
    let mut info = IssueInfo {
        kind,
        pipe,
        interval,
        native: scheduling.control.is_some(),
        stall,
        after_result: 0,
        write_counter: if scheduling.control.is_some() {
            control.write_counter
        } else {
            NO_COUNTER
        },
        read_counter: if scheduling.control.is_some() {
            control.read_counter
        } else {
            NO_COUNTER
        },
        wait_mask: control.wait_mask,
        free: scheduling.pseudo,
        reads: reads(instruction, before, p),
        latency: latency(instruction, p),
        operands: operands(instruction, p),
        words: words(instruction),
        bypass: bypasses_l1(instruction),
        copies: matches!(&instruction.operation, Operation::Memory(operation)
            if operation.action == Action::CopyToShared),
        constant: constant(instruction, p),
        indexed_constant: scheduling.indexed_constant.is_some() && p.front_end.constant_lines > 0,
    };
    if unscheduled {
        wait_for_everything(&mut info, instruction, p);
    }
    info
}

/// Whether control bits say nothing, here and before: a single one does so in scheduled code too.
fn is_unscheduled(instruction: &Instruction, before: Option<&Instruction>) -> bool {
    let empty = |instruction: &Instruction| {
        let control = instruction.scheduling.control;
        control.is_some_and(|control| control.is_empty())
    };
    empty(instruction) && before.is_none_or(empty)
}

/// Counters that stand for what hardware waits for by itself: results, and operands of memory instructions.
/// `DEPBAR` names others.
const OWN_RESULT: u8 = 5;
const OWN_OPERANDS: u8 = 4;
/// The counter of groups of copies, which `DEPBAR` names.
const COPIES: u8 = 0;

/// Unscheduled code: each instruction waits until the one before has read and written its registers.
fn wait_for_everything(info: &mut IssueInfo, instruction: &Instruction, p: &SmParameters) {
    info.wait_mask = 1 << OWN_RESULT | 1 << OWN_OPERANDS;
    match info.kind {
        Kind::CloseCopies => info.write_counter = COPIES,
        Kind::CommitBulk => info.read_counter = COPIES,
        Kind::Await { .. } => {}
        _ => {
            let predicates = instruction.predicate_destinations;
            if instruction.destination.is_some()
                || instruction.uniform_destination.is_some()
                || predicates != [PredicateRegister::True; 2]
            {
                info.write_counter = OWN_RESULT;
            }
            if matches!(info.kind, Kind::Memory | Kind::Exchange) {
                info.read_counter = OWN_OPERANDS;
            }
            let variable = matches!(info.kind, Kind::Memory | Kind::Exchange)
                || matches!(info.pipe, Pipe::Transcendental | Pipe::Miscellaneous);
            if variable {
                info.after_result = p.sub_core.unscheduled_result as u8;
            }
        }
    }
}

fn is_wide_product(scheduling: &SchedulingInfo) -> bool {
    scheduling.unit == Unit::Fma
        && scheduling.mix == Mix::Integer
        && scheduling.destination_registers == 2
}

fn kind(instruction: &Instruction) -> Kind {
    match (
        &instruction.operation,
        instruction.scheduling.dependency_barrier,
    ) {
        (_, DependencyBarrier::Arrive) => Kind::CloseCopies,
        (
            _,
            DependencyBarrier::Wait {
                counter,
                at_most,
                also,
            },
        ) => Kind::Await {
            counter,
            at_most,
            also,
        },
        (Operation::Memory(_) | Operation::Texture(_), _) => Kind::Memory,
        (Operation::Bulk(operation), _) if operation.action == BulkAction::Commit => {
            Kind::CommitBulk
        }
        (Operation::Bulk(_), _) => Kind::Exchange,
        (Operation::Flow(_), _) => Kind::Flow,
        (Operation::Barrier(barrier), _) if barrier.mode != BlockBarrierMode::Arrive => {
            Kind::Barrier
        }
        (Operation::Grid(_), _) => Kind::Barrier,
        (Operation::Fence(_), _) => Kind::Fence,
        (Operation::System(_), _) => Kind::Sleep,
        (Operation::Compute(_), _) if instruction.scheduling.unit == Unit::LoadStore => {
            Kind::Exchange
        }
        _ => Kind::Compute,
    }
}

fn pipe(instruction: &Instruction, p: &SmParameters) -> (Pipe, u8) {
    let scheduling = &instruction.scheduling;
    if let Operation::Warpgroup(Warpgroup::Multiply(multiply)) = instruction.operation {
        let shape = Multiply::decode(instruction.modifiers);
        let interval = group_interval(shape, multiply).clamp(1, 255);
        return (Pipe::Tensor, interval as u8);
    }
    let interval = p.sub_core.interval[scheduling.unit as usize];
    let (pipe, interval) = match scheduling.unit {
        Unit::Alu => (Pipe::Alu, interval),
        Unit::Fma if scheduling.mix == Mix::Integer => {
            (Pipe::FmaHeavy, p.sub_core.multiply_interval)
        }
        Unit::Fma => (Pipe::Fma, interval),
        Unit::Double => (Pipe::Double, interval),
        Unit::Half => (Pipe::Half, interval),
        Unit::Transcendental
            if scheduling.latency == Latency::Conversion && scheduling.mix == Mix::Integer =>
        {
            (Pipe::Transcendental, p.sub_core.population_interval)
        }
        Unit::Transcendental => (Pipe::Transcendental, interval),
        Unit::Uniform => (Pipe::Uniform, interval),
        Unit::Tensor if scheduling.latency == Latency::MatrixDouble => {
            // An 8 x 8 x 4 product has one double, two registers, of A.
            let registers = u64::from(scheduling.source_registers[0]).max(2);
            (
                Pipe::Tensor,
                p.sub_core.tensor_double_interval * registers / 2,
            )
        }
        Unit::Tensor => {
            // A 16 x 8 x 16 product of halves has four registers of A.
            let registers = u64::from(scheduling.source_registers[0]).max(1);
            if registers <= 2 {
                (Pipe::Tensor, p.sub_core.tensor_short_interval)
            } else {
                (Pipe::Tensor, (interval * registers).div_ceil(4))
            }
        }
        Unit::Branch => (Pipe::Branch, interval),
        Unit::LoadStore => (Pipe::LoadStore, interval),
        // Questions for the texture unit wait with the accesses to memory.
        Unit::Texture => (Pipe::LoadStore, interval),
        Unit::Miscellaneous => (Pipe::Miscellaneous, interval),
    };
    (pipe, interval.clamp(1, 255) as u8)
}

fn latency(instruction: &Instruction, p: &SmParameters) -> u16 {
    let scheduling = &instruction.scheduling;
    if let Operation::Warpgroup(_) = instruction.operation {
        // Who needs its results waits for its group.
        return 1;
    }
    if let Operation::Flow(flow) = &instruction.operation {
        let cycles = match flow {
            Flow::CallIndirect { .. } | Flow::Return { .. } => p.sub_core.indirect_latency,
            _ => p.sub_core.branch_latency,
        };
        return cycles.min(u64::from(u16::MAX)) as u16;
    }
    let class = match scheduling.latency {
        // Products with two registers of A have the short chain.
        Latency::MatrixLong if scheduling.source_registers[0] <= 2 => Latency::MatrixShort,
        class => class,
    };
    let mut latency = p.sub_core.latency[class as usize];
    if scheduling.latency == Latency::Conversion && scheduling.control.is_some() {
        latency = p.sub_core.latency[Latency::Transcendental as usize];
    }
    let says_whether = matches!(
        instruction.predicate_destinations[0],
        PredicateRegister::Lanes(_)
    );
    if scheduling.latency == Latency::Shuffle && says_whether {
        latency += p.sub_core.shuffle_predicate;
    }
    latency.min(u64::from(u16::MAX)) as u16
}

fn operands(instruction: &Instruction, p: &SmParameters) -> u16 {
    let cycles = match &instruction.operation {
        Operation::Memory(operation) => match operation.action {
            Action::Store
            | Action::Reduce(..)
            | Action::StoreMatrix { .. }
            | Action::StoreAsync
            | Action::ReduceAsync(..) => p.sub_core.store_operands,
            _ => p.sub_core.load_operands,
        },
        Operation::Texture(operation) if operation.writes() => p.sub_core.store_operands,
        _ => p.sub_core.load_operands,
    };
    cycles.min(u64::from(u16::MAX)) as u16
}

fn bypasses_l1(instruction: &Instruction) -> bool {
    match &instruction.operation {
        Operation::Memory(operation) => matches!(
            operation.cache,
            CachePolicy::L2Only | CachePolicy::NoAllocate | CachePolicy::Volatile
        ),
        _ => false,
    }
}

fn words(instruction: &Instruction) -> u8 {
    match &instruction.operation {
        Operation::Memory(operation) => {
            let words = operation.element.words() * u16::from(operation.elements.max(1));
            words.min(8) as u8
        }
        _ => 1,
    }
}

/// The number of the line of constants that an instruction reads, the bank in the upper half.
fn constant(instruction: &Instruction, p: &SmParameters) -> u32 {
    let mut found = None;
    for source in &instruction.sources {
        if let Operand::Constant { bank, offset } = source.operand {
            found = Some((bank, offset));
        }
    }
    match found {
        Some((bank, offset)) if p.front_end.constant_lines > 0 => {
            u32::from(bank) << BANK_SHIFT
                | (offset / p.front_end.constant_line).min((1 << BANK_SHIFT) - 1)
        }
        _ => NO_CONSTANT,
    }
}

/// How often an instruction reads each bank of registers. Operands that the instruction before
/// left in the reuse cache are not read again.
fn reads(instruction: &Instruction, before: Option<&Instruction>, p: &SmParameters) -> [u8; 2] {
    let mut reads = [0u8; 2];
    let later = matches!(
        instruction.operation,
        Operation::Memory(_) | Operation::Texture(_) | Operation::Warpgroup(_)
    );
    if p.sub_core.register_banks == 0 || later {
        return reads;
    }
    let kept = |slot: usize, register: u16| {
        before.is_some_and(|before| {
            let reuse = before.scheduling.control.map_or(0, |control| control.reuse);
            reuse >> slot & 1 != 0 && before.sources[slot].operand == Operand::Register(register)
        })
    };
    let mut seen = [u16::MAX; 4];
    for (slot, source) in instruction.sources.iter().enumerate() {
        let Operand::Register(first) = source.operand else {
            continue;
        };
        // The same register in two slots is read once.
        if seen.contains(&first) || (slot < 3 && kept(slot, first)) {
            continue;
        }
        seen[slot] = first;
        for next in 0..u16::from(instruction.scheduling.source_registers[slot].max(1)) {
            let bank = (first + next) % p.sub_core.register_banks as u16;
            reads[usize::from(bank.min(1))] += 1;
        }
    }
    reads
}
