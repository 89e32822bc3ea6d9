//! Whether the warps of an SM go round in circles.
//!
//! While an SM is watched, the state of a warp is hashed whenever it moves backwards in its code. If
//! memory does not change, a state that comes again comes for ever: a warp's next state depends on
//! nothing else, unless it reads a clock. Recurrence is found with two numbers a warp, by Brent's
//! method: the hash kept for comparison is renewed after 1, 2, 4, 8, ... samples.
//!
//! What is watched changes nothing that is simulated. Start reading at [`Recurrence::note`].

use lockstep_isa::memory::{Action, MbarrierAction, MemoryOperation, Space, classify_generic};
use lockstep_isa::warp_register::lanes_of;
use lockstep_isa::{Instruction, Mask, Operation};

use super::cta::Block;
use super::site::Site;
use super::state::SmState;
use super::warp::Warp;

/// A warp whose state has not come again in so many samples is not going round in a circle.
const WANDERS: u32 = 1 << 12;
/// A state must come again so often.
const ROUNDS: u32 = 3;
/// How many times its period a state may be late: what loads bring comes sooner or later.
const LATE: u32 = 8;

/// The warps of one SM while they are watched.
#[derive(Debug)]
pub struct Recurrence {
    courses: Vec<Course>,
    /// Hashes of the shared memory of blocks, by slot, and of the local memory of warps.
    shared: Vec<u64>,
    local: Vec<u64>,
    progress: bool,
}

/// The way of one warp.
#[derive(Clone, Debug, Default)]
struct Course {
    executed: bool,
    last_pc: u32,
    kept: u64,
    samples_since: u32,
    power: u32,
    /// Samples from a state to its return; 0 as long as none has returned.
    period: u32,
    rounds: u32,
    /// Space and address of what the first lane loaded last.
    loaded: Option<(Space, u64)>,
}

impl Recurrence {
    /// Watches an SM from now on.
    pub fn new(state: &SmState) -> Self {
        let blocks = state.blocks.blocks.iter();
        Self {
            courses: vec![Course::default(); state.warps.len()],
            shared: blocks
                .map(|block| block.as_ref().map_or(0, |block| hash_shared(block)))
                .collect(),
            local: state.warps.iter().map(|warp| warp.local.hash()).collect(),
            progress: false,
        }
    }

    /// Whether something happened that will not come again.
    pub fn saw_progress(&self) -> bool {
        self.progress
    }

    /// A warp is about to execute an instruction.
    fn note(&mut self, slot: usize, warp: &Warp, block: &Block, instruction: &Instruction) {
        let pc = warp.convergence.pc();
        match &instruction.operation {
            Operation::Compute(_) | Operation::Nothing | Operation::Flow(_) => {}
            Operation::Memory(operation) if only_reads(operation) => {}
            Operation::System(_) => self.progress = true,
            _ => self.compare(slot, warp, block),
        }
        let course = &mut self.courses[slot];
        if !course.executed || pc <= course.last_pc {
            course.sample(hash_warp(warp));
            self.progress |= course.wanders();
        }
        course.executed = true;
        course.last_pc = pc;
    }

    /// Notices what was written to shared and local memory since the last look.
    fn compare(&mut self, slot: usize, warp: &Warp, block: &Block) {
        self.progress |= self.shared[usize::from(warp.block)] != hash_shared(block)
            || self.local[slot] != warp.local.hash();
    }

    /// Whether no warp will ever do anything new, if nobody outside this SM writes memory.
    pub fn is_stuck(&mut self, state: &SmState) -> bool {
        if state.port.bulk.is_busy() {
            return false;
        }
        let resident = (0..state.warps.len()).filter(|slot| state.slots.resident >> slot & 1 != 0);
        for slot in resident {
            let warp = &state.warps[slot];
            let Some(block) = &state.blocks.blocks[usize::from(warp.block)] else {
                return false;
            };
            self.compare(slot, warp, block);
            let course = &self.courses[slot];
            let circles = course.rounds >= ROUNDS;
            if !circles && (course.executed || !waits_at_barrier(state, slot)) {
                return false;
            }
        }
        !self.progress
    }

    /// What a warp that goes round in a circle loads there.
    pub fn loaded(&self, slot: usize) -> Option<String> {
        let (space, address) = self.courses[slot].loaded?;
        Some(match space {
            Space::Shared => format!("shared memory at {address:#x}"),
            Space::Local => format!("local memory at {address:#x}"),
            _ => format!("{address:#x}"),
        })
    }
}

impl Course {
    fn sample(&mut self, hash: u64) {
        self.samples_since += 1;
        if hash == self.kept && self.power != 0 {
            self.period = self.samples_since;
            self.samples_since = 0;
            self.rounds = self.rounds.saturating_add(1);
        } else if self.samples_since >= self.power {
            let late = self.period != 0 && self.samples_since > self.period.saturating_mul(LATE);
            if self.period == 0 || late {
                *self = Self {
                    kept: hash,
                    power: if late {
                        1
                    } else {
                        self.power.saturating_mul(2).max(1)
                    },
                    loaded: self.loaded,
                    ..Self::default()
                };
            }
        }
    }

    fn wanders(&self) -> bool {
        self.power >= WANDERS && self.period == 0
    }
}

/// Tells the watch, if there is one, what a warp is about to execute.
#[cold]
pub(super) fn note(site: &mut Site<'_, '_>, instruction: &Instruction, execute: Mask) {
    let Some(mut watch) = site.port.recurrence.take() else {
        return;
    };
    let slot = usize::from(site.slot);
    let text = || {
        let pc = site.warp.convergence.pc();
        site.context.launch.module.text(pc)
    };
    if !watch.progress
        && matches!(instruction.operation, Operation::Compute(_))
        && text().is_some_and(|text| reads_clock(&text))
    {
        watch.progress = true;
    }
    watch.note(slot, site.warp, site.block, instruction);
    if let Operation::Memory(operation) = &instruction.operation
        && let Some(lane) = lanes_of(execute).next()
    {
        let lanes = site.warp.lanes_that(site.context, execute);
        let bytes = operation.element.bytes();
        let address = operation.address.evaluate(&lanes, bytes).lanes[lane];
        watch.courses[slot].loaded = Some(match operation.space {
            Space::Generic => classify_generic(address),
            space => (space, address),
        });
    }
    site.port.recurrence = Some(watch);
}

/// Time goes on by itself.
fn reads_clock(text: &str) -> bool {
    const CLOCKS: [&str; 4] = ["CLOCK", "clock", "GLOBALTIMER", "globaltimer"];
    CLOCKS.iter().any(|clock| text.contains(clock))
}

/// Whether an access leaves shared and local memory as they are; the commit looks after global memory.
fn only_reads(operation: &MemoryOperation) -> bool {
    match operation.action {
        Action::Load | Action::LoadMatrix { .. } | Action::Prefetch | Action::CacheControl => true,
        Action::Mbarrier(MbarrierAction::Test { .. }) => true,
        Action::CopyToShared => false,
        _ => operation.space == Space::Global,
    }
}

/// Whether a warp waits for other warps of its block and for nothing else.
fn waits_at_barrier(state: &SmState, slot: usize) -> bool {
    let slots = &state.slots;
    (slots.ready | slots.held | slots.waiting) >> slot & 1 == 0 && state.warps[slot].pending == 0
}

fn hash_shared(block: &Block) -> u64 {
    let (words, rest) = block.shared.as_chunks::<8>();
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    let rest = rest.iter().map(|byte| u64::from(*byte));
    let barriers = block
        .mbarriers
        .states()
        .flat_map(|(at, state)| [at.into(), state]);
    words.chain(rest).chain(barriers).fold(0, mix)
}

/// Everything that decides what a warp does next, but for memory.
fn hash_warp(warp: &Warp) -> u64 {
    let mut hash = warp.convergence.fold_state(0, mix);
    for register in &warp.registers {
        hash = register
            .0
            .iter()
            .fold(hash, |hash, word| mix(hash, u64::from(*word)));
    }
    let predicates = warp.predicates.iter();
    predicates.fold(hash, |hash, lanes| mix(hash, u64::from(*lanes)))
}

/// One step of a hash, by a multiplication.
pub(super) fn mix(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn course(states: impl Iterator<Item = u64>) -> Course {
        let mut course = Course::default();
        states.for_each(|state| course.sample(state + 1));
        course
    }

    #[test]
    fn a_circle_is_found_after_a_way_that_leads_to_it() {
        let way = (0..100).chain((0..1000).map(|step| 100 + step % 7));
        let course = course(way);
        assert_eq!(course.period, 7);
        assert!(course.rounds >= ROUNDS && !course.wanders());
    }

    #[test]
    fn who_counts_does_not_go_in_circles() {
        let course = course(0..20_000);
        assert!(course.wanders());
        assert_eq!(course.rounds, 0);
    }

    #[test]
    fn who_leaves_a_circle_was_in_none() {
        let way = (0..100).map(|step| step % 5).chain(1000..1100);
        assert_eq!(course(way).rounds, 0);
    }
}
