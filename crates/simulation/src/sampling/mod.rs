//! Sampled detail: a few launches take their time, the others run in functional mode, and their cycles are
//! projected from those that did.
//!
//! Launches of one kernel with one shape are a group. Within it a stratum is made of launches with the same exact
//! instruction counts, or nearly the same; counts of a functional launch are known when it has ended. The first
//! launch of a group finds cold caches and is simulated for itself; the second is the pilot. From then on one launch
//! is chosen at random in each window of launches, and windows are short where a group weighs much and its launches
//! scatter (Neyman's allocation) and long where they do not. With a plan, an earlier run of the same program, the
//! number of launches and their counts are known before (`plan.rs`).
//!
//! Chance comes from a seed, the group and the window, never from the host, so that a sampled run has one digest.
//!
//! | file | what |
//! |---|---|
//! | `group.rs` | what is known of launches that are alike, and what that says of another one |
//! | `choice.rs` | which launches are chosen |
//! | `plan.rs` | launches that an earlier run had |
//! | `estimate.rs` | cycles of all launches, with their interval |
//!
//! Start reading at [`Sampler::chooses`], then [`Sampler::project`].

mod choice;
mod estimate;
mod group;
mod plan;

use group::{Group, Scatter};
use lockstep_counters::Counters;
use lockstep_isa::Launch;
use lockstep_stats::Digest;
use lockstep_units::Cycles;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub use estimate::Sampled;
pub use plan::{Plan, PlanError};

/// How launches are sampled.
#[derive(Clone, Debug, Default)]
pub struct SamplingOptions {
    /// Where chance comes from.
    pub seed: u64,
    /// What an earlier run of the program launched, if there was one.
    pub plan: Option<Plan>,
}

impl SamplingOptions {
    /// What two runs that sample alike share.
    pub fn identity(&self) -> String {
        let plan = postcard::to_stdvec(&self.plan);
        let plan = plan.unwrap_or_else(|error| panic!("a plan can be written: {error}"));
        format!("sampled {} {}", self.seed, Digest::of_page(&plan))
    }
}

/// What is known of a launch before it runs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Shape {
    /// Mangled name of the kernel.
    pub kernel: String,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
}

impl Shape {
    /// That of a launch.
    pub fn of(launch: &Launch) -> Self {
        Self {
            kernel: launch.kernel().name.clone(),
            grid: launch.config.grid,
            block: launch.config.block,
        }
    }
}

/// What is known of a launch when it has run, in either mode. The order is by instructions first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Counts {
    /// Warp instructions.
    pub instructions: u64,
    /// Thread instructions.
    pub threads: u64,
}

impl Counts {
    /// Those of a launch.
    pub fn of(counters: &Counters) -> Self {
        Self {
            instructions: counters.inst_executed,
            threads: counters.thread_inst_executed,
        }
    }
}

/// Chooses launches, and projects the cycles of those that are not chosen.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sampler {
    seed: u64,
    plan: Option<Plan>,
    /// Cycles of a launch that does nothing.
    floor: u64,
    numbers: BTreeMap<Shape, usize>,
    groups: Vec<Group>,
    /// Groups of launches that have begun and not ended.
    running: BTreeMap<u64, usize>,
    /// How far one-step projections were from what was measured, over all groups.
    scatter: Scatter,
    /// Instructions of launches that were chosen.
    detailed: u64,
}

impl Sampler {
    /// For a GPU on which an empty launch takes so many cycles.
    pub fn new(options: &SamplingOptions, floor: Cycles) -> Self {
        Self {
            seed: options.seed,
            plan: options.plan.clone(),
            floor: floor.0,
            numbers: BTreeMap::new(),
            groups: Vec::new(),
            running: BTreeMap::new(),
            scatter: Scatter::default(),
            detailed: 0,
        }
    }

    /// A launch begins: whether it is to take its time.
    pub fn chooses(&mut self, number: u64, shape: Shape) -> bool {
        let next = self.groups.len();
        let index = *self.numbers.entry(shape.clone()).or_insert(next);
        if index == next {
            self.groups.push(Group::default());
        }
        self.running.insert(number, index);
        let chosen = self.is_chosen(number, &shape, index);
        self.groups[index].begun += 1;
        chosen
    }

    /// A chosen launch has ended.
    pub fn measured(&mut self, number: u64, counts: Counts, cycles: u64) {
        let Some(index) = self.running.remove(&number) else {
            return;
        };
        self.detailed += counts.instructions;
        self.groups[index].add_sample(counts, cycles, self.floor, &mut self.scatter);
    }

    /// Another launch has ended: the cycles that it would have taken, as far as is known now.
    pub fn project(&mut self, number: u64, counts: Counts) -> u64 {
        let Some(index) = self.running.remove(&number) else {
            return self.floor;
        };
        let group = &mut self.groups[index];
        group.untimed.push((number, counts));
        match group.predict(counts, self.floor) {
            Some(prediction) => prediction.cycles as u64,
            // Nothing like it was measured yet; only time that passes meanwhile depends on this.
            None => self.floor,
        }
    }

    /// All launches that were under way are given up.
    pub fn abort(&mut self) {
        self.running.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(kernel: &str) -> Shape {
        Shape {
            kernel: kernel.into(),
            grid: [1, 1, 1],
            block: [32, 1, 1],
        }
    }

    fn counts(instructions: u64) -> Counts {
        Counts {
            instructions,
            threads: 32 * instructions,
        }
    }

    /// Runs launches of a cost model; gives the sampler and how many were chosen.
    fn run(seed: u64, launches: u64, cost: impl Fn(u64) -> (u64, u64)) -> (Sampler, u64) {
        let options = SamplingOptions { seed, plan: None };
        let mut sampler = Sampler::new(&options, Cycles(1000));
        let mut chosen = 0;
        for number in 0..launches {
            let (instructions, cycles) = cost(number);
            if sampler.chooses(number, shape("k")) {
                chosen += 1;
                sampler.measured(number, counts(instructions), cycles);
            } else {
                sampler.project(number, counts(instructions));
            }
        }
        (sampler, chosen)
    }

    #[test]
    fn launches_that_are_alike_are_hardly_simulated_and_known_exactly() {
        let (sampler, chosen) = run(1, 2000, |number| {
            (500, if number == 0 { 9000 } else { 4000 })
        });
        assert!(chosen < 30, "{chosen}");
        let sampled = sampler.finish();
        assert_eq!(sampled.cycles, 9000 + 1999 * 4000);
        assert!(sampled.relative_half_width() < 0.01, "{sampled:?}");
        assert_eq!(sampled.projected.len() as u64, 2000 - chosen);
    }

    #[test]
    fn cycles_follow_instruction_counts() {
        // Counts rise and fall as those of the levels of a graph do, and cycles with them.
        let cost = |number: u64| {
            let instructions = 1000 + 900 * ((number % 40) as i64 - 20).unsigned_abs();
            (instructions, 1000 + 3 * instructions)
        };
        let (sampler, chosen) = run(7, 4000, cost);
        assert!(chosen < 1000, "{chosen}");
        let all: u64 = (0..4000).map(|number| cost(number).1).sum();
        let sampled = sampler.finish();
        let error = (sampled.cycles as f64 / all as f64 - 1.0).abs();
        assert!(error < 0.01, "{error}");
        assert!(error < sampled.relative_half_width(), "{sampled:?}");
    }

    /// Intervals of many samples of a scattered population hold its total about as often as they say.
    #[test]
    fn intervals_hold_the_total_nearly_always() {
        let cost = |number: u64| (500, 4000 + lockstep_units::splitmix64(number) % 2000);
        let all: u64 = (0..1500).map(|number| cost(number).1).sum();
        let held = (0..40).filter(|seed| {
            let sampled = run(*seed, 1500, cost).0.finish();
            sampled.cycles.abs_diff(all) as f64 <= sampled.half_width
        });
        let held = held.count();
        assert!(held >= 36, "{held} of 40");
    }

    #[test]
    fn a_seed_gives_one_answer() {
        let cost = |number: u64| {
            (
                500 + number % 7,
                4000 + lockstep_units::splitmix64(number) % 300,
            )
        };
        assert_eq!(run(3, 900, cost).0.finish(), run(3, 900, cost).0.finish());
        assert_ne!(run(3, 900, cost).0.finish(), run(4, 900, cost).0.finish());
    }
}
