//! Puts together what the parts of an SM counted.

use lockstep_counters::Counters;
use lockstep_stats::Table;

use super::statistics::{L1_KINDS, PartStats};
use super::{Mode, Sm};
use crate::profile::SmProfile;

impl Sm {
    /// Counts single instructions from now on, if there is something to add to.
    pub fn count_lines(&mut self, profile: Option<SmProfile>) {
        self.state.port.profile = profile;
    }

    /// Goes on counting where another SM stopped.
    pub fn count_on(&mut self, old: &Self) {
        self.state.stats = old.state.stats;
        self.state.parts_before = old.part_stats();
    }

    /// Instructions that it executed, those of blocks that have not ended included.
    #[must_use]
    pub fn executed(&self) -> u64 {
        let resident = self.state.blocks.blocks.iter().flatten();
        let resident = resident.map(|block| block.counters.inst_executed);
        self.state.stats.inst_executed + resident.sum::<u64>()
    }

    /// What it counted until a cycle, blocks that have not ended included. Warps say what they waited for when
    /// they issue again.
    #[must_use]
    pub fn counted(&self, cycle: u64) -> Counters {
        let mut all = self.state.stats;
        // Also blocks without warps, whose stores are still under way.
        self.state.blocks.add_counted(cycle, &mut all);
        all
    }

    /// What its parts counted, in all.
    fn part_stats(&self) -> PartStats {
        let mut all = self.state.parts_before.clone();
        if let Mode::Timing(timing) = &self.mode {
            all.merge(&timing.part_stats(&self.state.port.gate));
        }
        all
    }

    /// Everything that it and its parts counted; components are named below `path`.
    pub fn statistics(&self, path: &str, table: &mut Table) {
        table.add(path, &self.state.stats);
        let parts = self.part_stats();
        for (number, (core, instructions)) in parts.sub_cores.iter().enumerate() {
            table.add(&format!("{path}/sub_core/{number}"), core);
            table.add(&format!("{path}/sub_core/{number}/l0i"), instructions);
        }
        if parts.sub_cores.is_empty() {
            return;
        }
        table.add(&format!("{path}/l1i"), &parts.instructions);
        table.add(&format!("{path}/constant_cache"), &parts.constants);
        for (kind, stats) in L1_KINDS.into_iter().zip(&parts.l1) {
            table.add(&format!("{path}/l1/{kind}"), stats);
        }
        table.add(&format!("{path}/mshr"), &parts.mshrs);
        table.add(&format!("{path}/credits"), &parts.credits);
    }
}
