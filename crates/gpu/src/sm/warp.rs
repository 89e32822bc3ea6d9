//! One warp, resident on an SM: its registers, its lanes, its local memory.

use lockstep_isa::lanes::{Identity, Lanes};
use lockstep_isa::{Convergence, Instruction, Mask, WarpRegister};
use serde::{Deserialize, Serialize};

use super::local_memory::LocalMemory;
use super::replay::WarpReplay;
use crate::launch::LaunchContext;
use crate::sm::sub_core::control_bit_checker::ControlBitChecker;

/// Everything that belongs to a warp. Its memory is kept when the slot is used again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Warp {
    /// Where its lanes are.
    pub convergence: Convergence,
    /// Its part of the register file.
    pub registers: Vec<WarpRegister>,
    /// Predicates, a lane mask each.
    pub predicates: Vec<Mask>,
    /// Its place in grid, block and SM.
    pub identity: Identity,
    /// Memory of its threads.
    pub local: LocalMemory,
    /// Slot of its block.
    pub block: u8,
    /// Accesses whose values have not come back yet.
    pub pending: u32,
    /// The ordering before a release is done, the access itself comes next.
    pub released: bool,
    /// Until when it waits at an `mbarrier`; 0 if it does not.
    pub suspended_until: u64,
    /// When its values are ready by the compiler's account, in the checking mode.
    pub control_bit_checker: Option<Box<ControlBitChecker>>,
    /// What it does next, if it is replayed from a trace.
    pub replay: Option<Box<WarpReplay>>,
}

impl Default for Warp {
    fn default() -> Self {
        Self {
            convergence: Convergence::new(0, 0, 0, false),
            registers: Vec::new(),
            predicates: Vec::new(),
            identity: Identity::default(),
            local: LocalMemory::default(),
            block: 0,
            pending: 0,
            released: false,
            suspended_until: 0,
            control_bit_checker: None,
            replay: None,
        }
    }
}

impl Warp {
    /// Makes the slot a fresh warp of a launch.
    pub fn start(&mut self, context: &LaunchContext, identity: Identity, block: u8) {
        let kernel = context.launch.kernel();
        let first = identity.warp_in_block * 32;
        let threads = (context.launch.config.threads() - first).min(32);
        let lanes = (u64::MAX >> (64 - threads)) as Mask;
        let joins = !context.launch.module.native;
        self.convergence
            .restart(lanes, kernel.entry, kernel.convergence_barriers, joins);
        self.registers.clear();
        self.registers
            .resize(usize::from(kernel.warp_registers), WarpRegister::ZERO);
        self.predicates.clear();
        self.predicates.resize(usize::from(kernel.predicates), 0);
        self.identity = identity;
        self.local.reset(identity.local_bytes);
        self.block = block;
        self.pending = 0;
        self.released = false;
        self.suspended_until = 0;
        self.replay = None;
        if let Some(control_bit_checker) = &mut self.control_bit_checker {
            control_bit_checker.reset(
                usize::from(kernel.warp_registers),
                usize::from(kernel.predicates),
            );
        }
    }

    /// The warp at an instruction.
    #[inline(always)]
    pub fn lanes<'a>(
        &'a mut self,
        context: &'a LaunchContext,
        instruction: &Instruction,
    ) -> Lanes<'a> {
        let mut lanes = self.lanes_that(context, 0);
        lanes.execute = lanes.active & lanes.predicate(instruction.guard);
        lanes
    }

    /// The warp at an instruction whose guard is known.
    #[inline(always)]
    pub fn lanes_that<'a>(&'a mut self, context: &'a LaunchContext, execute: Mask) -> Lanes<'a> {
        let active = self.convergence.active();
        Lanes {
            registers: &mut self.registers,
            predicates: &mut self.predicates,
            convergence: &mut self.convergence,
            constants: context.banks(),
            identity: &self.identity,
            active,
            execute,
        }
    }
}

impl Warp {
    /// Asks the host to fetch what executing a warp begins with.
    #[inline(always)]
    pub fn prefetch(&self) {
        fetch(std::ptr::from_ref(self).cast(), size_of::<Self>());
    }

    /// Asks the host to fetch a register that will be needed soon.
    #[inline(always)]
    pub fn prefetch_register(&self, register: u16) {
        if let Some(register) = self.registers.get(usize::from(register)) {
            fetch(
                std::ptr::from_ref(register).cast(),
                size_of::<WarpRegister>(),
            );
        }
    }
}

/// Asks the host to bring bytes into its first cache, where hosts can be asked.
#[inline(always)]
fn fetch(from: *const i8, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    for line in (0..bytes).step_by(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch is a hint: it reads nothing that a program could see and never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(line)) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (from, bytes);
}
