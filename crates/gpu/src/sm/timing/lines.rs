//! Counts of single instructions, for those who asked for them.

use super::Timing;
use super::account::Issued;
use crate::sm::state::SmState;

impl Timing {
    /// Says what the warp did since its last issue, also for the instruction that it issues now.
    #[cold]
    pub(super) fn count_line(&mut self, state: &mut SmState, issued: &Issued, now: u64) {
        let before = stalls(state, issued);
        self.count_stalls(state, issued, now);
        let launch = state.blocks.launch_of(issued.block as u8);
        if let (Some(before), Some(after), Some(launch), Some(profile)) =
            (before, stalls(state, issued), launch, &state.port.profile)
        {
            let place = (launch.launch.module_id, issued.pc);
            profile.add(place, &before, &after);
        }
    }
}

fn stalls(state: &SmState, issued: &Issued) -> Option<[u64; lockstep_counters::STALLS]> {
    let block = state.blocks.blocks[issued.block].as_ref();
    block.map(|block| block.counters.stalls)
}
