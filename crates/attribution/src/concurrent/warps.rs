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
            let given = (*due + 0.5) as u64;
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
