//! Puts together what the parts of an SM counted.

use lockstep_stats::Table;

use super::statistics::{L1_KINDS, PartStats};
use super::{Mode, Sm};

impl Sm {
    /// Goes on counting where another SM stopped.
    pub fn count_on(&mut self, old: &Self) {
        self.state.stats = old.state.stats;
        self.state.parts_before = old.part_stats();
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
