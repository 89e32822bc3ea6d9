//! A machine of one block, for tests: warps in turn, one instruction each, memory as bytes.
//!
//! It shares nothing with the simulated GPU but the instruction contract, so that it can serve
//! as its second opinion.

#![allow(dead_code, unused_imports, reason = "each test file uses its part")]

mod case;
mod memory;

pub use case::compare;
pub use memory::Memory as TestMemory;

use lockstep_frontend::ptx;
use lockstep_isa::{
    Convergence, Instruction, Kernel, Lanes, Mask, Module, Operand, Operation, WarpRegister,
    instruction::{BlockBarrier, BlockBarrierMode, CodeAddress, Flow, SystemCall, SystemCallKind},
    lanes::{ConstantBanks, Identity},
    module::CODE_BASE,
    operand::PredicateRegister,
    warp_register::{LANES, lanes_of},
    warpgroup::{GROUP_WARPS, Warpgroup, multiply_rows},
};
use memory::Memory;

/// Where module variables begin.
pub const VARIABLES: u64 = 0x1000_0000;
/// Where arguments begin.
pub const BUFFERS: u64 = 0x2000_0000;

/// Memory without buffers.
pub fn new_memory() -> Memory {
    Memory::default()
}

/// Parses and links; variables one after the other.
pub fn link(text: &str) -> Result<Module, ptx::Error> {
    let image = ptx::parse(text)?;
    let mut next = VARIABLES;
    let addresses: Vec<u64> = image
        .globals()
        .iter()
        .map(|global| {
            let start = next.next_multiple_of(global.alignment.max(1));
            next = start + global.size;
            start
        })
        .collect();
    image.link(&addresses)
}

/// One warp.
struct Warp {
    registers: Vec<WarpRegister>,
    predicates: Vec<Mask>,
    convergence: Convergence,
    identity: Identity,
}

/// One block of a launch.
pub struct Machine<'m> {
    module: &'m Module,
    kernel: &'m Kernel,
    constants: ConstantBanks,
    warps: Vec<Warp>,
    pub memory: Memory,
    /// Texts that were printed: format strings as they are.
    pub printed: Vec<String>,
    /// Warp instructions that count.
    pub executed: u64,
    /// Instructions that passes inserted.
    pub free: u64,
    /// Turns of all warps after which a kernel counts as one that never ends.
    pub turns: u64,
}

impl<'m> Machine<'m> {
    /// A block of `threads` threads about to run `kernel`.
    pub fn new(
        module: &'m Module,
        kernel: &'m Kernel,
        block: [u32; 3],
        grid: [u32; 3],
        threads: [u32; 3],
        arguments: &[u8],
        dynamic_shared: u32,
        memory: Memory,
    ) -> Self {
        let count = threads.iter().product::<u32>();
        let identity = Identity {
            block,
            block_size: threads,
            grid_size: grid,
            warp_slots: 64,
            sms: 1,
            dynamic_shared,
            total_shared: kernel.shared_bytes + dynamic_shared,
            local_bytes: kernel.local_bytes,
            ..Identity::default()
        };
        let read = |address: u64, bytes: &mut [u8]| memory.copy_global(address, bytes);
        let constants = kernel.launch_constants(module, &identity, arguments, &read);
        let warps = (0..count.div_ceil(32))
            .map(|warp| {
                let lanes = (count - 32 * warp).min(32);
                let mask = if lanes == 32 {
                    Mask::MAX
                } else {
                    (1 << lanes) - 1
                };
                Warp {
                    registers: vec![
                        WarpRegister::splat(0xdead_beef);
                        usize::from(kernel.warp_registers)
                    ],
                    predicates: vec![0x5555_5555; usize::from(kernel.predicates)],
                    convergence: Convergence::new(
                        mask,
                        kernel.entry,
                        kernel.convergence_barriers,
                        !module.native,
                    ),
                    identity: Identity {
                        warp_in_block: warp,
                        warp_slot: warp,
                        ..identity
                    },
                }
            })
            .collect();
        let mut memory = memory;
        memory.start_block(kernel, dynamic_shared, count);
        Self {
            module,
            kernel,
            constants,
            warps,
            memory,
            printed: Vec::new(),
            executed: 0,
            free: 0,
            turns: 20_000_000,
        }
    }

    /// Runs to the end. An error is a sentence.
    pub fn run(&mut self) -> Result<(), String> {
        for _ in 0..self.turns {
            let mut moved = false;
            for warp in 0..self.warps.len() {
                if self.warps[warp].convergence.active() != 0 {
                    self.step(warp)?;
                    moved = true;
                }
            }
            if self.warps.iter().all(|warp| warp.convergence.live() == 0) {
                return Ok(());
            }
            if !moved {
                let stuck: Vec<_> = self
                    .warps
                    .iter()
                    .map(|warp| format!("{:?}", warp.convergence.waiting_paths()))
                    .collect();
                return Err(format!("no lane can run: {}", stuck.join("; ")));
            }
        }
        Err(format!("still running after {} turns", self.turns))
    }

    fn step(&mut self, index: usize) -> Result<(), String> {
        let module = self.module;
        let pc = self.warps[index].convergence.pc();
        let instruction = module
            .code
            .get(pc as usize)
            .ok_or_else(|| format!("no code at {pc}"))?;
        if instruction.scheduling.pseudo {
            self.free += 1;
        } else {
            self.executed += 1;
        }
        let at = |message: String| {
            let text = module.text(pc).unwrap_or_default();
            format!("{message} at {pc} ({text})")
        };
        let warp = &mut self.warps[index];
        warp.identity.clock = self.executed;
        let active = warp.convergence.active();
        let mut lanes = lanes(warp, &self.constants, active);
        lanes.execute = active & lanes.predicate(instruction.guard);
        let execute = lanes.execute;
        match &instruction.operation {
            Operation::Nothing | Operation::Fence(_) | Operation::Grid(_) => {
                warp.convergence.advance()
            }
            Operation::Compute(compute) => {
                compute(&mut lanes, instruction);
                warp.convergence.advance();
            }
            Operation::Memory(operation) => {
                let warp_in_block = lanes.identity.warp_in_block;
                self.memory
                    .access(
                        &mut lanes,
                        instruction,
                        operation,
                        warp_in_block,
                        &self.constants,
                    )
                    .map_err(at)?;
                warp.convergence.advance();
            }
            Operation::Flow(what) => flow(warp, &self.constants, instruction, *what, execute),
            Operation::Barrier(barrier) => self.barrier(index, instruction, *barrier, execute),
            Operation::Warpgroup(what) => {
                if let Warpgroup::Multiply(multiply) = what {
                    let part = index % GROUP_WARPS;
                    let shared = self.memory.shared();
                    multiply_rows(&mut lanes, instruction, *multiply, part, shared)
                        .map_err(|byte| at(format!("no byte {byte:#x} in shared memory")))?;
                }
                warp.convergence.advance();
            }
            Operation::System(call) => {
                self.system(index, call, execute).map_err(at)?;
                self.warps[index].convergence.advance();
            }
            Operation::Texture(_) => return Err(at("textures need a GPU".to_owned())),
            Operation::Bulk(_) => return Err(at("bulk copies need a GPU".to_owned())),
            Operation::Unsupported(sentence) | Operation::Illegal(sentence) => {
                if execute != 0 {
                    return Err(sentence.to_string());
                }
                warp.convergence.advance();
            }
        }
        Ok(())
    }

    fn system(&mut self, index: usize, call: &SystemCall, execute: Mask) -> Result<(), String> {
        let warp = &mut self.warps[index];
        let active = warp.convergence.active();
        let mut lanes = lanes(warp, &self.constants, active);
        lanes.execute = execute;
        for lane in lanes_of(execute) {
            let value = |n: usize| lanes.pair(call.arguments[n])[lane];
            let result = match call.kind {
                SystemCallKind::Print => {
                    let text = self.memory.text(value(0))?;
                    self.printed.push(text);
                    Some(0)
                }
                SystemCallKind::Allocate => Some(self.memory.allocate(value(0))),
                SystemCallKind::Free
                | SystemCallKind::Breakpoint
                | SystemCallKind::Sleep
                | SystemCallKind::SleepAtMbarrier => None,
                SystemCallKind::AssertFail => {
                    return Err(format!("assertion failed: {}", self.memory.text(value(0))?));
                }
                SystemCallKind::Trap => return Err("trap".to_owned()),
                SystemCallKind::DeviceRuntime { .. } => {
                    return Err("kernels that launch kernels need a GPU".to_owned());
                }
            };
            if let (Some(row), Some(result)) = (call.result, result) {
                let rows = if call.kind == SystemCallKind::Allocate {
                    2
                } else {
                    1
                };
                for word in 0..rows {
                    let value = (result >> (32 * word)) as u32;
                    lanes.registers[usize::from(row) + word].0[lane] = value;
                }
            }
        }
        Ok(())
    }

    fn barrier(
        &mut self,
        index: usize,
        instruction: &Instruction,
        barrier: BlockBarrier,
        execute: Mask,
    ) {
        let warp = &mut self.warps[index];
        if execute == 0 {
            return warp.convergence.advance();
        }
        let active = warp.convergence.active();
        let lanes = lanes(warp, &self.constants, active);
        let first = execute.trailing_zeros() as usize;
        let number = lanes.raw(instruction.sources[0].operand, 0).0[first];
        if execute != active {
            let pc = warp.convergence.pc();
            warp.convergence.branch(execute, pc);
        }
        if barrier.mode == BlockBarrierMode::Arrive {
            // Nobody waits for fewer threads than the block has in these tests.
            return warp.convergence.advance();
        }
        warp.convergence.suspend(number);
        let all = self
            .warps
            .iter()
            .all(|warp| warp.convergence.suspended(number) == warp.convergence.live());
        if all {
            self.release(number);
        }
    }

    fn release(&mut self, number: u32) {
        let (mut population, mut and, mut or) = (0, true, false);
        let mut waiting = Vec::new();
        for (index, warp) in self.warps.iter_mut().enumerate() {
            for split in warp.convergence.waiting_paths().to_vec() {
                let instruction = &self.module.code[split.pc as usize];
                let lanes = lanes(warp, &self.constants, split.lanes);
                let holds = lanes.predicate(instruction.predicates[0]) & split.lanes;
                population += holds.count_ones();
                and &= holds == split.lanes;
                or |= holds != 0;
                waiting.push((index, split, instruction));
            }
        }
        for (index, split, instruction) in waiting {
            let warp = &mut self.warps[index];
            let mut lanes = lanes(warp, &self.constants, split.lanes);
            lanes.execute = split.lanes;
            lanes.write(instruction.destination, 0, &WarpRegister::splat(population));
            let all = |value: bool| if value { Mask::MAX } else { 0 };
            if let Operation::Barrier(barrier) = &instruction.operation {
                let value = match barrier.mode {
                    BlockBarrierMode::ReduceAnd => all(and),
                    _ => all(or),
                };
                if instruction.predicate_destinations[0] != PredicateRegister::True {
                    lanes.set_predicate(instruction.predicate_destinations[0], value);
                }
            }
        }
        for warp in &mut self.warps {
            warp.convergence.resume(number);
        }
    }
}

fn lanes<'w>(warp: &'w mut Warp, constants: &'w ConstantBanks, active: Mask) -> Lanes<'w> {
    Lanes {
        registers: &mut warp.registers,
        predicates: &mut warp.predicates,
        convergence: &mut warp.convergence,
        constants,
        identity: &warp.identity,
        active,
        execute: active,
    }
}

fn flow(
    warp: &mut Warp,
    constants: &ConstantBanks,
    instruction: &Instruction,
    flow: Flow,
    execute: Mask,
) {
    let active = warp.convergence.active();
    let pc = warp.convergence.pc();
    let view = lanes(warp, constants, active);
    let execute = execute & view.predicate(instruction.predicates[0]);
    let targets = |address: CodeAddress| -> [u32; LANES] {
        let operand = instruction.sources[0].operand;
        let values = match address {
            CodeAddress::Absolute => view.pair(operand),
            _ => view.raw(operand, 0).0.map(u64::from),
        };
        std::array::from_fn(|lane| {
            if execute >> lane & 1 == 0 {
                return pc + 1;
            }
            match address {
                CodeAddress::Absolute => ((values[lane] - CODE_BASE) / 16) as u32,
                CodeAddress::Index => values[lane] as u32,
                CodeAddress::Relative { base } => {
                    (i64::from(base) + i64::from(values[lane] as u32 as i32) / 16) as u32
                }
            }
        })
    };
    let mask = match instruction.sources[0].operand {
        Operand::None => Mask::MAX,
        operand => view.raw(operand, 0).0[execute.trailing_zeros() as usize & 31],
    };
    let agree = match instruction.sources[0].operand {
        Operand::None => execute,
        operand => {
            let masks = view.raw(operand, 0).0;
            let same = lanes_of(execute).filter(|lane| masks[*lane] == mask);
            same.fold(0, |agree, lane| agree | 1 << lane)
        }
    };
    match flow {
        Flow::Branch { target } => warp.convergence.branch(execute, target),
        Flow::BranchOnDivergence {
            target,
            if_converged,
        } => {
            let apart = mask & warp.convergence.live() & !active != 0;
            let taken = if apart != if_converged { execute } else { 0 };
            warp.convergence.branch(taken, target);
        }
        Flow::BranchIndirect { address } | Flow::Return { address } => {
            let targets = targets(address);
            warp.convergence.branch_indirect(&targets);
        }
        Flow::Call { target } => {
            link_back(warp, instruction, execute, pc);
            warp.convergence.branch(execute, target);
        }
        Flow::CallIndirect { address } => {
            let targets = targets(address);
            link_back(warp, instruction, execute, pc);
            warp.convergence.branch_indirect(&targets);
        }
        Flow::Exit => warp.convergence.exit(execute),
        Flow::ConvergeSet { barrier } => warp.convergence.converge_set(barrier),
        Flow::ConvergeWait { barrier } => {
            warp.convergence.converge_wait(barrier);
        }
        Flow::ConvergeBreak { barrier } => warp.convergence.converge_break(barrier, execute),
        Flow::WarpSync if execute == 0 => warp.convergence.advance(),
        Flow::WarpSync => {
            warp.convergence.warp_sync(mask);
        }
        Flow::Yield => warp.convergence.yield_to_others(false),
        Flow::Collective { .. } | Flow::WarpSyncExclusive if execute == 0 => {
            warp.convergence.advance();
        }
        Flow::Collective { target } => {
            warp.convergence.collective(agree, mask, target);
        }
        Flow::WarpSyncExclusive => {
            warp.convergence.warp_sync_exclusive(agree, mask);
        }
        Flow::EndCollective => warp.convergence.end_collective(),
    }
}

fn link_back(warp: &mut Warp, instruction: &Instruction, execute: Mask, pc: u32) {
    if let Some(row) = instruction.destination {
        let back = CODE_BASE + 16 * u64::from(pc + 1);
        let row = usize::from(row);
        warp.registers[row].blend(&WarpRegister::splat(back as u32), execute);
        warp.registers[row + 1].blend(&WarpRegister::splat((back >> 32) as u32), execute);
    }
}
