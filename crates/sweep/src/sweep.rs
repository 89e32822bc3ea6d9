//! A sweep: its points, and which of them share a run.

use crate::axes::{self, MOST_POINTS};
use crate::file::{File, Pareto, Plot};
use crate::point::Maker;
use crate::{Point, SweepError};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A sweep, checked in full.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// Keys that vary.
    pub varied: Vec<String>,
    /// Every point, in the order of the file.
    pub points: Vec<Point>,
    /// What is drawn.
    pub plot: Plot,
    /// Two columns of which a front is wanted.
    pub pareto: Option<Pareto>,
}

impl Sweep {
    /// Reads a sweep file and checks every point of it.
    ///
    /// # Errors
    /// The place in the file or the point, and what is wrong with it.
    pub fn read(path: &Path) -> Result<Self, SweepError> {
        let file = File::read(path)?;
        Self::of(&path.display().to_string(), file)
    }

    /// Checks every point of a sweep file.
    ///
    /// # Errors
    /// The point and what is wrong with it.
    pub fn of(path: &str, file: File) -> Result<Self, SweepError> {
        let varied = axes::varied(&file.parts);
        let assignments = axes::combinations(&file.parts).ok_or_else(|| {
            let message = format!("more than {MOST_POINTS} points; take fewer values");
            SweepError::malformed(path, message)
        })?;
        let mut maker = Maker {
            path,
            varied: &varied,
            contents: BTreeMap::new(),
        };
        let points = assignments.iter().enumerate();
        let points = points.map(|(index, values)| maker.point(index + 1, values));
        let points = points.collect::<Result<_, _>>()?;
        Ok(Self {
            varied,
            points,
            plot: file.plot,
            pareto: file.pareto,
        })
    }

    /// One point for each run: those that simulate what an earlier one does are left out.
    pub fn runs(&self) -> Vec<&Point> {
        let mut seen = BTreeSet::new();
        let points = self.points.iter();
        points.filter(|point| seen.insert(&point.id)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn sweep(text: &str) -> Result<Sweep, SweepError> {
        Sweep::of("sweep.toml", File::parse("sweep.toml", text).unwrap())
    }

    fn refused(text: &str, expected: Expect) {
        expected.assert_eq(&sweep(text).unwrap_err().to_string());
    }

    #[test]
    fn points_that_simulate_the_same_share_a_run() {
        let text = "program = \"sh\"\n[grid]\ngpu = [\"h200\", \"a100\"]\nsm.warps = [64, 32]\n[[part]]\n[[part]]\n[part.set]\ndevice.clock = \"1980 MHz\"\n";
        let sweep = sweep(text).unwrap();
        assert_eq!((sweep.points.len(), sweep.runs().len()), (8, 6));
        let same = |a: usize, b: usize| sweep.points[a].id == sweep.points[b].id;
        assert!(same(0, 4) && same(1, 5), "an H200 has that clock");
        assert!(!same(2, 6) && !same(0, 1));
    }

    #[test]
    fn the_same_value_in_other_words_is_the_same_point() {
        let text = "program = \"sh\"\n[grid]\n\"l2.clock\" = [\"1.5 GHz\", \"1500 MHz\"]\n";
        let sweep = sweep(text).unwrap();
        assert_eq!((sweep.points.len(), sweep.runs().len()), (2, 1));
        assert_eq!(sweep.points[0].varied, sweep.points[1].varied);
    }

    #[test]
    fn a_point_is_refused_before_anything_runs() {
        refused(
            "program = \"sh\"\n[grid]\nl2.hit_latency = [3]\n",
            expect![
                "sweep.toml: point 1 (h200; l2.hit_latency=3): --set l2.hit_latency=3: no key is called `l2.hit_latency`; did you mean `l2.hit-latency`?"
            ],
        );
        refused(
            "program = \"sh\"\n[grid]\nsm.warps = [64, 30]\n",
            expect![
                "sweep.toml: point 2 (h200; sm.warps=30): `sm.warps` = 30, but it must be a multiple of `sm.sub-cores` = 4"
            ],
        );
        refused(
            "gpu = \"h20\"\nprogram = \"sh\"\n",
            expect![
                "sweep.toml: point 1 (h20; ): no GPU is called `h20`; did you mean `h200`?; known: h200, h100, rtx3080ti, a100, rtx2060, v100, gtx1080ti-uvmsmart, v100-sst, sst-listing1, p100; or give the path of a .toml file"
            ],
        );
        refused(
            "gpu = \"h200\"\n",
            expect![[
                r#"sweep.toml: point 1: nothing to run: write `program = "./name"`, or `kernel = "file.ptx"`"#
            ]],
        );
        refused(
            "program = \"./not-there\"\n",
            expect!["sweep.toml: point 1: there is no file `./not-there` to run"],
        );
        refused(
            "program = \"sh\"\noptions = \"--out=x\"\n",
            expect![
                "sweep.toml: point 1: `--out=x` is given by the sweep itself: leave it out, and write `gpu`, [set] or --out"
            ],
        );
    }
}
