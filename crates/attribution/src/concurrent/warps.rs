//! Warps of a run of shared intervals.

use crate::solver::{Problem, Solution};

/// Warps of a run of shared intervals. What was launched is known, so every group gets its own;
/// the hardware counts a warp again when it comes back after a context switch, and that remainder is
/// told at the end of the run.
pub(super) struct Warps<'a> {
    problem: &'a Problem<'a>,
    solution: &'a Solution,
    measured: u64,
    given: u64,
    /// Below 1 if fewer warps were seen than launched: moments without samples.
    scale: f64,
    due: Vec<f64>,
}

impl<'a> Warps<'a> {
    pub fn new(problem: &'a Problem<'a>, solution: &'a Solution) -> Self {
        let place = problem.warps.unwrap_or(usize::MAX);
        let counts = problem.growth.iter().filter_map(|one| *one.get(place)?);
        let measured: u64 = counts.sum();
        let work = solution.work.iter().flat_map(|work| &work.warps);
        let launched: f64 = work.sum();
        Self {
            problem,
            solution,
            measured,
            given: 0,
            scale: (measured as f64 / launched.max(1.0)).min(1.0),
            due: vec![0.0; problem.rates.len()],
        }
    }

    /// Warps of the groups at work in an interval.
    pub fn share(&mut self, interval: usize, present: &[(usize, f64)]) -> Vec<u64> {
        let shares = present.iter().map(|(g, work)| {
            let all = &self.solution.work[*g];
            // Warps of a long kernel start together, and work later.
            let start = match (self.problem.groups[*g].short, all.first == interval) {
                (true, _) => *work,
                (false, true) => all.warps.iter().sum(),
                (false, false) => 0.0,
            };
            // What rounding leaves goes on to the next group of the kernel.
            let due = &mut self.due[self.problem.groups[*g].kernel];
            *due += start * self.scale;
            // Kernels that each round up may together not get more than was counted.
            let given = ((*due + 0.5) as u64).min(self.measured - self.given);
            *due -= given as f64;
            self.given += given;
            given
        });
        shares.collect()
    }

    /// Warps that were counted and not launched.
    pub fn beyond(&self) -> u64 {
        self.measured.saturating_sub(self.given)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solver::{Group, Work};

    /// Three kernels of a warp each, of which two were counted: each rounds two thirds up.
    #[test]
    fn no_more_warps_are_given_than_were_counted() {
        let group = |kernel| Group {
            stream: kernel,
            kernel,
            begin: 0,
            end: Some(10),
            not_before: 0,
            waited: false,
            warps: 1.0,
            within: Some(1.0),
            short: true,
        };
        let problem = Problem {
            intervals: vec![(0, 10)],
            growth: vec![&[Some(2)]],
            warps: Some(0),
            groups: (0..3).map(group).collect(),
            rates: vec![vec![None]; 3],
            counted: vec![vec![None]; 3],
            numbers: vec![0, 1, 2],
        };
        let work = Work {
            first: 0,
            warps: vec![1.0],
        };
        let solution = Solution {
            work: vec![work; 3],
            rates: vec![vec![1.0]; 3],
        };
        let mut warps = Warps::new(&problem, &solution);
        let given = warps.share(0, &[(0, 1.0), (1, 1.0), (2, 1.0)]);
        assert_eq!(given, [1, 1, 0]);
        assert_eq!(warps.beyond(), 0);
    }
}
