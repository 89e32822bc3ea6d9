//! A small assembler for kernels in tests, and a GPU to run them on.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::sync::Arc;

use lockstep_config::GpuConfig;
use lockstep_gpu::{Contents, Gpu, KernelRecord, Launch, Mode, Options};
use lockstep_isa::instruction::{
    BlockBarrier, BlockBarrierMode, Flow, Latency, Mix, SchedulingInfo, SystemCall, SystemCallKind,
    Unit,
};
use lockstep_isa::lanes::Lanes;
use lockstep_isa::memory::{
    Action, AddressOperand, AtomicOperation, AtomicType, CachePolicy, Element, FenceOperation,
    MemoryOperation, Order, Scope, Space, Strength,
};
use lockstep_isa::operand::{PredicateOperand, PredicateRegister};
use lockstep_isa::{Instruction, Kernel, Mask, Module, Operand, Operation, WarpRegister};

/// First address of test memory.
pub const BASE: u64 = 0x2000_0000_0000;
/// Bytes of it.
pub const SIZE: u64 = 1 << 30;

/// An H200 with two GPCs of four SMs.
pub fn two_gpcs() -> GpuConfig {
    let settings = [
        "device.sms=8",
        "device.gpcs=2",
        "device.gpc-tpcs=[2,2]",
        "device.gpc-of-tpc=[0,1,0,1]",
        "dispatch.first-sms=[]",
        "l2.slices=4",
        "l2.partitions=1",
        "l2.first-partition-gpcs=[]",
        "l2.capacity=\"20 MiB\"",
        "dram.channels=4",
    ];
    lockstep_config::load(Some("h200"), &settings).unwrap()
}

/// A register.
#[derive(Clone, Copy)]
pub struct R(pub u16);

impl From<R> for Operand {
    fn from(register: R) -> Self {
        Self::Register(register.0)
    }
}

/// A predicate.
#[derive(Clone, Copy)]
pub struct P(pub u16);

/// A literal.
pub fn imm(value: u64) -> Operand {
    Operand::Immediate(value)
}

/// A place in the code, known or not yet.
#[derive(Clone, Copy)]
pub struct Label(usize);

pub const WEAK: Strength = Strength::Weak;
pub const RELAXED: Strength = strong(Scope::Gpu, Order::Relaxed);
pub const ACQUIRE: Strength = strong(Scope::Gpu, Order::Acquire);
pub const RELEASE: Strength = strong(Scope::Gpu, Order::Release);
pub const VOLATILE: Strength = strong(Scope::System, Order::Volatile);

const fn strong(scope: Scope, order: Order) -> Strength {
    Strength::Strong { scope, order }
}

/// Assembles one kernel.
#[derive(Default)]
pub struct Assembler {
    code: Vec<Instruction>,
    labels: Vec<Option<u32>>,
    jumps: Vec<(usize, Label)>,
    rows: u16,
    predicates: u16,
    barriers: u16,
    guard: PredicateOperand,
    pub shared_bytes: u32,
    pub local_bytes: u32,
}

fn shape(unit: Unit, latency: Latency, mix: Mix) -> SchedulingInfo {
    SchedulingInfo {
        unit,
        latency,
        mix,
        source_registers: [1; 4],
        destination_registers: 1,
        ..SchedulingInfo::default()
    }
}

macro_rules! binary {
    ($name:ident, $a:ident, $b:ident, $result:expr) => {
        pub fn $name(&mut self, d: R, a: impl Into<Operand>, b: impl Into<Operand>) {
            fn compute(lanes: &mut Lanes<'_>, instruction: &Instruction) {
                let a = lanes.integer(instruction.sources[0]);
                let b = lanes.integer(instruction.sources[1]);
                let row = WarpRegister(std::array::from_fn(|lane| {
                    let ($a, $b) = (a.0[lane], b.0[lane]);
                    $result
                }));
                lanes.write(instruction.destination, 0, &row);
            }
            self.compute(compute, Some(d), &[a.into(), b.into()]);
        }
    };
}

macro_rules! compare {
    ($name:ident, $a:ident, $b:ident, $result:expr) => {
        pub fn $name(&mut self, p: P, a: impl Into<Operand>, b: impl Into<Operand>) {
            fn compute(lanes: &mut Lanes<'_>, instruction: &Instruction) {
                let a = lanes.integer(instruction.sources[0]);
                let b = lanes.integer(instruction.sources[1]);
                let mut mask: Mask = 0;
                for lane in 0..32 {
                    let ($a, $b) = (a.0[lane], b.0[lane]);
                    mask |= Mask::from($result) << lane;
                }
                lanes.set_predicate(instruction.predicate_destinations[0], mask);
            }
            self.compute(compute, None, &[a.into(), b.into()]);
            self.last().predicate_destinations[0] = PredicateRegister::Lanes(p.0);
        }
    };
}

impl Assembler {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn reg(&mut self) -> R {
        self.rows += 1;
        R(self.rows - 1)
    }

    pub fn regs<const N: usize>(&mut self) -> [R; N] {
        std::array::from_fn(|_| self.reg())
    }

    pub fn pred(&mut self) -> P {
        self.predicates += 1;
        P(self.predicates - 1)
    }

    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    pub fn place(&mut self, label: Label) {
        self.labels[label.0] = Some(self.code.len() as u32);
    }

    pub fn here(&mut self) -> Label {
        let label = self.label();
        self.place(label);
        label
    }

    /// Executes what `body` adds only where the predicate holds (or does not).
    pub fn guarded(&mut self, p: P, holds: bool, body: impl FnOnce(&mut Self)) {
        let old = std::mem::replace(
            &mut self.guard,
            PredicateOperand {
                register: PredicateRegister::Lanes(p.0),
                negate: !holds,
            },
        );
        body(self);
        self.guard = old;
    }

    fn last(&mut self) -> &mut Instruction {
        self.code.last_mut().unwrap()
    }

    fn push(&mut self, operation: Operation, shape: SchedulingInfo) {
        let mut instruction = Instruction::new(operation, shape);
        instruction.guard = self.guard;
        self.code.push(instruction);
    }

    pub fn compute(
        &mut self,
        function: lockstep_isa::instruction::Compute,
        destination: Option<R>,
        sources: &[Operand],
    ) {
        let shape = shape(Unit::Alu, Latency::Integer, Mix::Integer);
        self.push(Operation::Compute(function), shape);
        self.last().destination = destination.map(|r| r.0);
        for (index, source) in sources.iter().enumerate() {
            self.last().sources[index] = (*source).into();
        }
    }

    binary!(add, a, b, a.wrapping_add(b));
    binary!(sub, a, b, a.wrapping_sub(b));
    binary!(mul, a, b, a.wrapping_mul(b));
    binary!(and, a, b, a & b);
    binary!(shr, a, b, a.checked_shr(b).unwrap_or(0));
    binary!(shl, a, b, a.checked_shl(b).unwrap_or(0));
    compare!(equal, a, b, a == b);
    compare!(not_equal, a, b, a != b);
    compare!(less, a, b, a < b);

    pub fn mov(&mut self, d: R, a: impl Into<Operand>) {
        self.add(d, a, imm(0));
    }

    /// Multiply-add on floats: `d = a * b + c`.
    pub fn fma(
        &mut self,
        d: R,
        a: impl Into<Operand>,
        b: impl Into<Operand>,
        c: impl Into<Operand>,
    ) {
        fn compute(lanes: &mut Lanes<'_>, instruction: &Instruction) {
            let [a, b, c, _] = instruction.sources.map(|source| lanes.float(source));
            let row = WarpRegister(std::array::from_fn(|lane| {
                let [a, b, c] = [a.0[lane], b.0[lane], c.0[lane]].map(f32::from_bits);
                (a * b + c).to_bits()
            }));
            lanes.write(instruction.destination, 0, &row);
        }
        self.compute(compute, Some(d), &[a.into(), b.into(), c.into()]);
        self.last().scheduling.unit = Unit::Fma;
        self.last().scheduling.mix = Mix::Fp32;
    }

    /// Makes the last instruction one of the double-precision unit.
    pub fn on_double(&mut self) {
        self.last().scheduling.unit = Unit::Double;
    }

    /// Index of the thread in the whole (one-dimensional) grid.
    pub fn thread(&mut self, d: R) {
        fn compute(lanes: &mut Lanes<'_>, instruction: &Instruction) {
            let id = lanes.identity;
            let first = id.block[0] * id.block_size[0] + id.warp_in_block * 32;
            let row = WarpRegister(std::array::from_fn(|lane| first + lane as u32));
            lanes.write(instruction.destination, 0, &row);
        }
        self.compute(compute, Some(d), &[]);
    }

    pub fn lane(&mut self, d: R) {
        fn compute(lanes: &mut Lanes<'_>, instruction: &Instruction) {
            let row = WarpRegister(std::array::from_fn(|lane| lane as u32));
            lanes.write(instruction.destination, 0, &row);
        }
        self.compute(compute, Some(d), &[]);
    }

    pub fn warp(&mut self, d: R) {
        fn compute(lanes: &mut Lanes<'_>, instruction: &Instruction) {
            let row = WarpRegister::splat(lanes.identity.warp_in_block);
            lanes.write(instruction.destination, 0, &row);
        }
        self.compute(compute, Some(d), &[]);
    }

    pub fn block(&mut self, d: R) {
        fn compute(lanes: &mut Lanes<'_>, instruction: &Instruction) {
            let row = WarpRegister::splat(lanes.identity.block[0]);
            lanes.write(instruction.destination, 0, &row);
        }
        self.compute(compute, Some(d), &[]);
    }

    pub fn clock(&mut self, d: R) {
        fn compute(lanes: &mut Lanes<'_>, instruction: &Instruction) {
            let row = WarpRegister::splat(lanes.identity.clock as u32);
            lanes.write(instruction.destination, 0, &row);
        }
        self.compute(compute, Some(d), &[]);
    }

    /// A word of the arguments.
    pub fn argument(offset: u32) -> Operand {
        Operand::Constant {
            bank: 0,
            offset: 0x200 + offset,
        }
    }

    pub fn memory(&mut self, operation: MemoryOperation) {
        let mut shape = shape(Unit::LoadStore, Latency::Memory, Mix::LoadStore);
        shape.source_registers = [0; 4];
        shape.destination_registers = 0;
        self.push(Operation::Memory(Box::new(operation)), shape);
    }

    /// `base + offset register * 1`.
    pub fn operation(
        space: Space,
        action: Action,
        base: u64,
        offset: Operand,
        strength: Strength,
    ) -> MemoryOperation {
        MemoryOperation {
            space,
            action,
            element: Element::B32,
            elements: 1,
            address: AddressOperand {
                base: offset,
                wide: false,
                shift: 0,
                uniform: imm(base),
                uniform_wide: true,
                offset: 0,
            },
            data: [None; 4],
            values: [Operand::None; 4],
            strength,
            cache: CachePolicy::Default,
        }
    }

    pub fn load(
        &mut self,
        d: R,
        space: Space,
        base: u64,
        offset: impl Into<Operand>,
        strength: Strength,
    ) {
        let mut operation = Self::operation(space, Action::Load, base, offset.into(), strength);
        operation.data[0] = Some(d.0);
        self.memory(operation);
    }

    pub fn store(
        &mut self,
        space: Space,
        base: u64,
        offset: impl Into<Operand>,
        value: impl Into<Operand>,
        strength: Strength,
    ) {
        let mut operation = Self::operation(space, Action::Store, base, offset.into(), strength);
        operation.values[0] = value.into();
        self.memory(operation);
    }

    /// A load or store of another type; `registers` are data or values.
    pub fn access(
        &mut self,
        action: Action,
        space: Space,
        base: u64,
        offset: impl Into<Operand>,
        element: Element,
        registers: &[R],
    ) {
        let mut operation = Self::operation(space, action, base, offset.into(), WEAK);
        operation.element = element;
        operation.elements = registers.len() as u8;
        for (index, register) in registers.iter().enumerate() {
            if action == Action::Load {
                operation.data[index] = Some(register.0);
            } else {
                operation.values[index] = (*register).into();
            }
        }
        self.memory(operation);
    }

    pub fn atomic(
        &mut self,
        d: Option<R>,
        space: Space,
        function: AtomicOperation,
        kind: AtomicType,
        base: u64,
        offset: impl Into<Operand>,
        values: &[Operand],
        strength: Strength,
    ) {
        let action = match d {
            Some(_) => Action::Atomic(function, kind),
            None => Action::Reduce(function, kind),
        };
        let mut operation = Self::operation(space, action, base, offset.into(), strength);
        operation.data[0] = d.map(|d| d.0);
        operation.values[..values.len()].copy_from_slice(values);
        self.memory(operation);
    }

    pub fn fence(&mut self, scope: Scope) {
        let fence = FenceOperation {
            scope,
            sequential: true,
        };
        self.push(
            Operation::Fence(fence),
            shape(Unit::LoadStore, Latency::Memory, Mix::Other),
        );
    }

    pub fn barrier(
        &mut self,
        mode: BlockBarrierMode,
        number: impl Into<Operand>,
        count: Option<u32>,
    ) {
        let barrier = BlockBarrier {
            mode,
            aligned: false,
        };
        self.push(
            Operation::Barrier(barrier),
            shape(Unit::Miscellaneous, Latency::Barrier, Mix::Other),
        );
        self.last().sources[0] = number.into().into();
        if let Some(count) = count {
            self.last().sources[1] = imm(count.into()).into();
        }
    }

    pub fn sync(&mut self) {
        self.barrier(BlockBarrierMode::Sync, imm(0), None);
    }

    /// A barrier that reduces a predicate into another or a register.
    pub fn reduce(&mut self, mode: BlockBarrierMode, p: P, into: Option<P>, d: Option<R>) {
        self.barrier(mode, imm(0), None);
        self.last().predicates[0] = PredicateOperand {
            register: PredicateRegister::Lanes(p.0),
            negate: false,
        };
        if let Some(into) = into {
            self.last().predicate_destinations[0] = PredicateRegister::Lanes(into.0);
        }
        self.last().destination = d.map(|d| d.0);
    }

    fn flow(&mut self, flow: Flow) {
        self.push(
            Operation::Flow(flow),
            shape(Unit::Branch, Latency::Branch, Mix::Control),
        );
    }

    pub fn branch(&mut self, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.flow(Flow::Branch { target: 0 });
    }

    pub fn branch_if(&mut self, p: P, holds: bool, label: Label) {
        self.guarded(p, holds, |k| k.branch(label));
    }

    /// Lanes that part in `body` meet after it.
    pub fn converge(&mut self, body: impl FnOnce(&mut Self)) {
        let barrier = self.barriers;
        self.barriers += 1;
        self.flow(Flow::ConvergeSet { barrier });
        body(self);
        self.flow(Flow::ConvergeWait { barrier });
    }

    pub fn exit(&mut self) {
        self.flow(Flow::Exit);
    }

    pub fn warp_sync(&mut self, mask: u64) {
        self.flow(Flow::WarpSync);
        self.last().sources[0] = imm(mask).into();
        self.last().scheduling.pseudo = true;
    }

    /// Gives the last instruction scheduling bits.
    pub fn control(&mut self, control: lockstep_isa::instruction::Control) {
        self.last().scheduling.control = Some(control);
    }

    pub fn unsupported(&mut self, sentence: &str) {
        self.push(
            Operation::Unsupported(sentence.into()),
            SchedulingInfo::default(),
        );
    }

    pub fn system(&mut self, kind: SystemCallKind, arguments: &[Operand], result: Option<R>) {
        let call = SystemCall {
            kind,
            arguments: arguments.to_vec(),
            result: result.map(|r| r.0),
        };
        self.push(
            Operation::System(Box::new(call)),
            shape(Unit::Miscellaneous, Latency::SpecialRegister, Mix::Other),
        );
    }

    pub fn finish(mut self) -> Arc<Module> {
        self.exit();
        for (at, label) in &self.jumps {
            let place = self.labels[label.0].expect("every label is placed");
            self.code[*at].operation = Operation::Flow(Flow::Branch { target: place });
        }
        let kernel = Kernel {
            name: "test".into(),
            warp_registers: self.rows.max(1) + 1,
            predicates: self.predicates,
            convergence_barriers: self.barriers,
            parameter_base: 0x200,
            parameter_bytes: 64,
            shared_bytes: self.shared_bytes,
            local_bytes: self.local_bytes,
            registers: 32,
            ..Kernel::default()
        };
        Arc::new(Module {
            functions: vec![(0, "test".into())],
            kernels: vec![kernel],
            architecture: 90,
            code: self.code.into(),
            ..Module::default()
        })
    }
}

/// A GPU of few SMs and slices.
pub fn small(sms: u32) -> GpuConfig {
    let settings = [
        format!("device.sms={sms}"),
        "l2.slices=4".to_owned(),
        "l2.capacity=\"20 MiB\"".to_owned(),
        "dram.channels=4".to_owned(),
    ];
    lockstep_config::load(Some("h200"), &settings).unwrap()
}

pub fn memory() -> Arc<Contents> {
    let contents = Contents::anonymous(BASE, SIZE).unwrap();
    contents.map(BASE..BASE + (1 << 20)).unwrap();
    Arc::new(contents)
}

pub fn gpu(config: &GpuConfig, mode: Mode) -> Gpu {
    let options = Options {
        mode,
        watchdog: Some(lockstep_units::Cycles(20_000_000)),
        ..Options::default()
    };
    Gpu::new(config, memory(), options).unwrap()
}

/// Launches a kernel and runs it to its end.
pub fn run(
    gpu: &mut Gpu,
    module: &Arc<Module>,
    grid: u32,
    block: u32,
    arguments: &[u32],
) -> KernelRecord {
    let launch = launch(module, grid, block, arguments);
    let id = gpu.launch(launch).unwrap();
    match gpu.run_until_complete(id) {
        Ok(record) => record,
        Err(error) => panic!("{error}"),
    }
}

pub fn launch(module: &Arc<Module>, grid: u32, block: u32, arguments: &[u32]) -> Launch {
    let mut launch = Launch::new(module, "test", [grid, 1, 1], [block, 1, 1]).unwrap();
    launch.arguments = arguments
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    launch
}

pub fn words(gpu: &Gpu, address: u64, count: usize) -> Vec<u32> {
    let mut bytes = vec![0; 4 * count];
    gpu.contents().read(address, &mut bytes);
    let (words, _) = bytes.as_chunks::<4>();
    words.iter().map(|word| u32::from_le_bytes(*word)).collect()
}

pub fn word(gpu: &Gpu, address: u64) -> u32 {
    words(gpu, address, 1)[0]
}

/// A stream of numbers that follows from a seed.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ value >> 31
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}
