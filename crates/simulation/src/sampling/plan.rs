//! Launches that an earlier run of the same program had, with their exact counts: a population to draw from.
//!
//! Launches of a group are divided into strata by gaps between their instruction counts. In each, one launch is drawn
//! that finds warm caches; that is the first phase. The second adds launches where Neyman's allocation wants more,
//! each with the same chance among those that are still to come, as long as few instructions are simulated in all.
//! A launch that the earlier run did not have is chosen as without a plan.

use super::{Counts, Shape};
use lockstep_run_folder::{ReadError, Run};
use lockstep_units::splitmix64;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Instruction counts with a gap of more than one part in so many between them are two strata.
const GAP: u64 = 50;
/// Strata of a group, at the most: so many, or one for so many launches.
const STRATA: (usize, usize) = (8, 50);
/// The first launch of a group is chosen as well if there are no more than so many: then its cold caches count.
const FEW: usize = 20;
/// One part in so many of all instructions may take its time: of programs with at least so many launches, and others.
const SHARE: (u64, u64) = (50, 8);
const MANY: usize = 1000;

/// Why an earlier run is no plan.
#[derive(Debug, Error)]
pub enum PlanError {
    /// Its folder cannot be read.
    #[error(transparent)]
    Folder(#[from] ReadError),
    /// It did not count instructions.
    #[error("{}: {found} of its launches have instruction counts; a plan is the folder of a simulated run that had some", path.display())]
    Counts {
        /// The folder.
        path: PathBuf,
        /// Launches with counts.
        found: usize,
    },
}

/// One launch of the earlier run.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Planned {
    group: usize,
    counts: Counts,
    /// Launches of its group behind it.
    behind: u64,
}

/// Launches of an earlier run, and which of them are to be simulated at least.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plan {
    shapes: Vec<Shape>,
    launches: BTreeMap<u64, Planned>,
    chosen: BTreeSet<u64>,
    /// Instructions that may take their time beside those of chosen launches.
    spare: u64,
}

impl Plan {
    /// Reads a run folder.
    ///
    /// # Errors
    /// It cannot be read, or has no launches with instruction counts.
    pub fn read(path: &Path, seed: u64) -> Result<Self, PlanError> {
        let run = Run::read(path)?;
        let by_host = run.launches.iter().filter(|launch| launch.parent.is_none());
        let known = by_host.filter_map(|launch| {
            let counts = Counts {
                instructions: launch.counter("inst_executed")?,
                threads: launch.counter("thread_inst_executed")?,
            };
            let shape = Shape {
                kernel: launch.kernel.clone(),
                grid: launch.grid,
                block: launch.block,
            };
            Some((launch.number, shape, counts))
        });
        let known: Vec<_> = known.collect();
        if known.is_empty() {
            let path = path.to_owned();
            return Err(PlanError::Counts { path, found: 0 });
        }
        Ok(Self::new(known, seed))
    }

    /// Of launches with their numbers, in order.
    fn new(known: Vec<(u64, Shape, Counts)>, seed: u64) -> Self {
        let mut groups: BTreeMap<Shape, Vec<(u64, Counts)>> = BTreeMap::new();
        let (mut all, count) = (0u64, known.len());
        for (number, shape, counts) in known {
            all = all.saturating_add(counts.instructions);
            groups.entry(shape).or_default().push((number, counts));
        }
        let mut plan = Self {
            shapes: groups.keys().cloned().collect(),
            launches: BTreeMap::new(),
            chosen: BTreeSet::new(),
            spare: 0,
        };
        for (group, launches) in groups.into_values().enumerate() {
            if launches.len() <= FEW {
                plan.chosen
                    .extend(launches.first().map(|(number, _)| *number));
            }
            let warm = launches.get(1..).unwrap_or_default();
            for stratum in strata(warm) {
                let place = splitmix64(seed ^ splitmix64(stratum[0])) % stratum.len() as u64;
                plan.chosen.insert(stratum[place as usize]);
            }
            let behind = (0..launches.len() as u64).rev();
            for ((number, counts), behind) in launches.into_iter().zip(behind) {
                let planned = Planned {
                    group,
                    counts,
                    behind,
                };
                plan.launches.insert(number, planned);
            }
        }
        let share = if count >= MANY { SHARE.0 } else { SHARE.1 };
        let chosen = plan
            .chosen
            .iter()
            .filter_map(|number| plan.launches.get(number));
        let taken: u64 = chosen.map(|launch| launch.counts.instructions).sum();
        plan.spare = (all / share).saturating_sub(taken);
        plan
    }

    /// Whether a launch is chosen, if the earlier run had it, where `missing` more of its group are wanted than were
    /// measured.
    pub fn chooses(&mut self, number: u64, shape: &Shape, missing: f64, seed: u64) -> Option<bool> {
        let planned = self.launches.get(&number)?;
        if self.shapes.get(planned.group) != Some(shape) {
            return None;
        }
        if self.chosen.contains(&number) {
            return Some(true);
        }
        let instructions = planned.counts.instructions;
        let ahead = planned.behind as f64 + 1.0;
        let chance = (splitmix64(seed ^ splitmix64(number)) >> 11) as f64 / (1u64 << 53) as f64;
        let chosen = instructions <= self.spare && chance * ahead < missing;
        if chosen {
            self.spare -= instructions;
        }
        Some(chosen)
    }
}

/// Divides launches into strata, each a list of numbers.
fn strata(launches: &[(u64, Counts)]) -> Vec<Vec<u64>> {
    let mut sorted: Vec<(u64, u64)> = launches
        .iter()
        .map(|(number, counts)| (counts.instructions, *number))
        .collect();
    sorted.sort_unstable();
    let most = STRATA.0.max(launches.len() / STRATA.1);
    let mut gap = GAP;
    loop {
        let apart = |pair: &[(u64, u64)]| (pair[1].0 - pair[0].0).saturating_mul(gap) > pair[1].0;
        let borders = sorted.windows(2).filter(|pair| apart(pair)).count();
        if borders < most || gap == 0 {
            let same = sorted.chunk_by(|one, other| !apart(&[*one, *other]));
            let numbers =
                |stratum: &[(u64, u64)]| stratum.iter().map(|(_, number)| *number).collect();
            return same.map(numbers).collect();
        }
        gap /= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launches(counts: &[u64]) -> Vec<(u64, Counts)> {
        let of = |instructions: &u64| Counts {
            instructions: *instructions,
            threads: 0,
        };
        (0..).zip(counts.iter().map(of)).collect()
    }

    #[test]
    fn gaps_between_counts_divide_strata() {
        assert_eq!(
            strata(&launches(&[100, 101, 500, 99, 510])),
            [vec![3, 0, 1], vec![2, 4]]
        );
        assert!(strata(&[]).is_empty());
        // So many different counts are no strata.
        let many: Vec<u64> = (1..100).map(|number| number * number).collect();
        assert!(strata(&launches(&many)).len() <= 8);
    }

    #[test]
    fn few_launches_are_chosen_of_many_and_all_of_two() {
        let shape = |kernel: &str| Shape {
            kernel: kernel.into(),
            grid: [1; 3],
            block: [32, 1, 1],
        };
        let counts = Counts {
            instructions: 100,
            threads: 3200,
        };
        let mut known: Vec<_> = (0..2000)
            .map(|number| (number, shape("often"), counts))
            .collect();
        known.extend([
            (2000, shape("twice"), counts),
            (2001, shape("twice"), counts),
        ]);
        let mut plan = Plan::new(known, 5);
        assert_eq!(plan.chosen.len(), 3);
        assert!(!plan.chosen.contains(&0));
        assert_eq!(plan.chooses(2000, &shape("twice"), 0.0, 5), Some(true));
        assert_eq!(plan.chooses(7, &shape("other"), 0.0, 5), None);
        assert_eq!(plan.chooses(9999, &shape("often"), 0.0, 5), None);
        // Where more are wanted, more are drawn, up to the share of all instructions.
        let drawn =
            (0..2000).filter(|number| plan.chooses(*number, &shape("often"), 1e9, 5) == Some(true));
        assert_eq!(drawn.count(), 2002 / 50 - 2);
    }
}
