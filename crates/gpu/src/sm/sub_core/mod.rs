//! A sub-core (SMSP): warp scheduler, scoreboards, register file, dispatch ports.
//!
//! | file | what |
//! |---|---|
//! | `scheduler/` | which warp issues next, policies by name |
//! | `issue_state.rs` | what the schedulers know of warps: dense arrays over warp slots |
//! | `scoreboard.rs` | dependence counters, registers on their way, groups of copies |
//! | `control_bit_checker.rs`, `early_reads.rs` | whether the compiler's control bits keep their promise |
//! | `register_file.rs` | bank conflicts of operand reads |
//! | `dispatch_ports.rs` | when functional units take another instruction |
//! | `stall.rs` | why warps wait, under Nsight's names |
//!
//! Start reading at [`SubCore::pick`].

pub mod control_bit_checker;
pub mod dispatch_ports;
pub mod early_reads;
pub mod issue_state;
pub mod parameters;
pub mod register_file;
pub mod scheduler;
pub mod scoreboard;
pub mod stall;

use serde::{Deserialize, Serialize};

use super::front_end::issue_table::{IssueInfo, Pipe};
use super::now::PENDING;
use super::statistics::SubCoreStats;
use crate::parameters::SmParameters;
use dispatch_ports::DispatchPorts;
use issue_state::IssueState;
use register_file::RegisterFile;
use scheduler::{WarpMask, WarpScheduler};

/// One sub-core.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SubCore {
    scheduler: WarpScheduler,
    /// Its functional units.
    pub ports: DispatchPorts,
    register_file: RegisterFile,
    /// Nobody here can issue before, as far as is known.
    asleep: u64,
    /// Nobody here may issue before: registers are being read.
    hold: u64,
    /// What it counted.
    pub(super) stats: SubCoreStats,
}

impl SubCore {
    /// One without warps.
    #[must_use]
    pub fn new(scheduler: WarpScheduler) -> Self {
        Self {
            scheduler,
            ports: DispatchPorts::default(),
            register_file: RegisterFile::default(),
            asleep: 0,
            hold: 0,
            stats: SubCoreStats::default(),
        }
    }

    /// The cycle before which nobody here issues, as far as is known.
    #[must_use]
    #[inline]
    pub fn idle_until(&self) -> u64 {
        self.asleep.max(self.hold)
    }

    /// The cycle before which no warp here can issue, as far as is known.
    #[must_use]
    #[inline]
    pub fn asleep_until(&self) -> u64 {
        self.asleep
    }

    /// A warp may be able to issue from a cycle on.
    #[inline]
    pub fn wake_at(&mut self, cycle: u64) {
        self.asleep = self.asleep.min(cycle);
    }

    /// Lets the scheduler look at all warps again.
    #[inline]
    pub fn wake(&mut self) {
        self.asleep = 0;
    }

    /// The first cycle in which a warp's next instruction finds its operands and its pipe ready;
    /// [`PENDING`] for memory instructions if `lsu_full`.
    #[inline(always)]
    pub fn issue_at(&self, slot: usize, warps: &IssueState, lsu_full: bool) -> u64 {
        let pipe = usize::from(warps.pipes[slot]);
        if lsu_full && pipe == Pipe::LoadStore as usize {
            return PENDING;
        }
        warps.issue_at[slot].max(self.ports.free_at(pipe))
    }

    /// The warp that issues in a cycle, among `ready`; without one, the sub-core sleeps until the
    /// first of them could. `lsu_full` if no memory instruction may issue.
    #[inline]
    pub fn pick(
        &mut self,
        ready: WarpMask,
        warps: &IssueState,
        lsu_full: bool,
        cycle: u64,
    ) -> Option<u8> {
        let mut left = ready;
        let mut eligible = 0;
        let mut later = PENDING;
        while left != 0 {
            let slot = left.trailing_zeros() as usize;
            left &= left - 1;
            let at = self.issue_at(slot, warps, lsu_full);
            if at <= cycle {
                eligible |= 1 << slot;
            } else {
                later = later.min(at);
            }
        }
        let picked = self.scheduler.pick(eligible, &warps.ages);
        self.asleep = if picked.is_some() { cycle + 1 } else { later };
        picked
    }

    /// Keeps the pipe and the register banks of an instruction busy.
    #[inline]
    pub fn occupy(&mut self, info: &IssueInfo, cycle: u64, parameters: &SmParameters) {
        self.stats.issued[info.pipe as usize] += 1;
        self.ports
            .dispatch(info, cycle, parameters.sub_core.split_multiply);
        let window = parameters.sub_core.read_window;
        let over = self.register_file.read(info.reads, cycle, window);
        // Reads that do not fit in their window hold up what comes after.
        self.hold = cycle + 1 + over;
    }
}
