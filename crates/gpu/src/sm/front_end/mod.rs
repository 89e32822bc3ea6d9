//! The front end of an SM: instruction fetch, instruction and constant caches, decoded code.
//!
//! | file | what |
//! |---|---|
//! | `instruction_fetch.rs` | L0 and L1 instruction caches, stream buffers, code that launches bring |
//! | `constant_cache.rs` | the constant cache |
//! | `constant_addresses.rs` | the words of constants that a warp asks for by index |
//! | `issue_table.rs` | what every instruction of a module costs, decoded once |
//! | `hazards.rs` | which registers and predicates instructions read and write |
//!
//! Start reading at [`FrontEnd::ready_at`].

pub mod constant_addresses;
pub mod constant_cache;
pub mod hazards;
pub mod instruction_fetch;
pub mod issue_table;
pub mod parameters;

use serde::{Deserialize, Serialize};

use super::now::PENDING;
use super::sub_core::stall::Reason;
use crate::launch::LaunchContext;
use crate::parameters::SmParameters;
use constant_cache::ConstantCache;
use instruction_fetch::InstructionFetch;
use issue_table::{IssueInfo, NO_CONSTANT, Pipe};

/// The front end of an SM.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FrontEnd {
    /// Instruction fetch.
    pub fetch: InstructionFetch,
    /// Constants.
    pub constants: ConstantCache,
}

impl FrontEnd {
    /// With empty caches.
    #[must_use]
    pub fn new(parameters: &SmParameters) -> Self {
        Self {
            fetch: InstructionFetch::new(parameters),
            constants: ConstantCache::new(parameters),
        }
    }

    /// The first block of a launch has come in a cycle; `alone` if no other launch is here, `cold`
    /// if it must find nothing.
    pub fn start_launch(&mut self, context: &LaunchContext, alone: bool, cold: bool, cycle: u64) {
        if alone {
            self.constants.clear();
        }
        self.fetch.start_launch(&context.launch, alone, cold, cycle);
    }

    /// When an instruction of a warp has its code and its constants, if it could issue at `at`
    /// otherwise, and what it waits for. `line` is the line of code that the warp has.
    #[inline]
    pub fn ready_at(
        &mut self,
        slot: u8,
        sub_core: usize,
        context: &LaunchContext,
        pc: u32,
        info: &IssueInfo,
        line: &mut u32,
        at: u64,
    ) -> (u64, Option<Reason>) {
        let mut ready = at;
        let mut reason = None;
        let number = self.fetch.number(context.launch.module_id, pc);
        if *line != number {
            let there = self.fetch.line(sub_core, number, ready);
            if there == PENDING {
                self.fetch.waiting |= 1 << slot;
            } else {
                *line = number;
            }
            if there > ready {
                ready = there;
                reason = Some(Reason::NoInstruction);
            }
        }
        if info.constant != NO_CONSTANT && info.pipe != Pipe::LoadStore {
            let there = self.constants.line(context.id.0, info.constant, ready);
            if there > ready {
                ready = there;
                reason = Some(Reason::ImcMiss);
            }
        }
        (ready, reason)
    }
}
