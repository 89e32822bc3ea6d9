//! What an issue model answers to the state that both modes share.

use std::ops::Range;

use lockstep_engine::Outbox;

use super::mbarrier_waits::CopyArrival;
use super::now::Now;
use super::state::SmState;
use super::translation::deferred::DeferredLoad;
use super::warp::Warp;
use crate::launch::LaunchContext;
use crate::message::Message;

/// When instructions of an SM issue and their results are there. Functional mode answers "now" to
/// everything. Functions that need an answer are generic over the model, so which one it is costs
/// nothing while instructions run.
pub trait IssueModel {
    /// Whether instructions take their time.
    const TIMED: bool;

    /// A block has come, whose warps are in `slots`; `alone` if no other launch is here.
    fn start_block(
        &mut self,
        launch: &LaunchContext,
        warps: &[Warp],
        slots: &[u8],
        alone: bool,
        cycle: u64,
    );

    /// Finds out when the next instruction of a ready warp can issue, not before `cycle`.
    fn schedule(&mut self, slot: u8, warp: &Warp, launch: Option<&LaunchContext>, cycle: u64);

    /// Memory has answered an instruction of a warp; its values are there at `cycle`.
    fn complete(&mut self, slot: u8, pc: u32, launch: &LaunchContext, group: u32, cycle: u64);

    /// When the copies to shared memory of a warp are complete that an arrival waits for. `None` if that is not
    /// known yet: then the arrival comes back from `take_copy_arrivals`.
    fn copies_complete(&mut self, slot: u8, arrival: CopyArrival, cycle: u64) -> Option<u64>;

    /// Arrivals whose copies are complete, with the cycle in which they are.
    fn take_copy_arrivals(&mut self, slot: u8) -> Vec<(u64, CopyArrival)>;

    /// Counts an arrival at a barrier of a block.
    fn arrive_at_barrier(&mut self, cycle: u64);

    /// When those go on who waited at a barrier that is complete now.
    fn barrier_release(&self, cycle: u64) -> u64;

    /// Bytes of a strong access came from a slice; says when they are written.
    fn receive_strong(&mut self, bytes: u64, cycle: u64) -> u64;

    /// Sectors of an L1 miss came from L2.
    fn receive_sectors(&mut self, state: &mut SmState, mshr: u32, now: Now);

    /// A load whose page has its translation now goes on at a cycle.
    fn resume_load(
        &mut self,
        state: &mut SmState,
        load: DeferredLoad,
        at: u64,
        now: Now,
        outbox: &mut Outbox<'_, Message>,
    );

    /// Whether the uTLB has room for another miss; without, no memory instruction issues.
    fn set_translation_full(&mut self, full: bool);

    /// The SM no longer holds back so many requests that memory instructions wait for it.
    fn requests_leave(&mut self, cycle: u64);

    /// Lets warps look again that could not issue because the uTLB was full.
    fn wake_all(&mut self);

    /// Lines of memory are no longer what L1 holds; `all` if L1 is to be emptied instead.
    fn invalidate_l1(&mut self, lines: Range<u64>, all: bool);
}
