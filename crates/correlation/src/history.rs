//! `validation/history.csv`: figures by commit.
//!
//! A row for each commit, GPU, state of the caches, set and choice of sizes. The sealed set never enters it: what is not
//! looked at cannot be tuned to.

use crate::compare::Report;
use crate::sets::Set;
use crate::state::State;
use crate::{CorrelationError, read};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// One row. Figures are absent while a program cannot be compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Short name of the commit.
    pub commit: String,
    /// Day of the commit.
    pub date: String,
    /// The GPU.
    pub gpu: String,
    /// In which state launches found the caches.
    #[serde(default)]
    pub state: State,
    /// The set.
    pub set: String,
    /// Sizes that were run, joined by `+`.
    pub sizes: String,
    /// Programs and sizes that were run.
    pub programs: usize,
    /// Of these, not comparable.
    pub failed: usize,
    /// Mean of the programs' errors.
    pub mean: Option<f64>,
    /// Mean over programs of Σ sim / Σ hw − 1.
    #[serde(default)]
    pub signed: Option<f64>,
    /// Their median.
    pub median: Option<f64>,
    /// Their 90th percentile.
    pub ninetieth: Option<f64>,
    /// The largest.
    pub maximum: Option<f64>,
    /// Their mean, weighted by hardware time.
    pub time_weighted: Option<f64>,
    /// exp(mean |ln(sim/hw)|) − 1 over kernels.
    pub log_error: Option<f64>,
    /// R² of logarithms over kernels.
    pub log_r_squared: Option<f64>,
    /// Mean of the programs' errors over kernels of 20,000 net cycles and more.
    pub large_mean: Option<f64>,
    /// Small kernels within 10 % or 400 cycles.
    pub small_right: usize,
    /// Small kernels.
    pub small: usize,
    /// Launches whose counts repeat on hardware and are equal.
    pub counts_equal: usize,
    /// Launches whose counts repeat on hardware.
    pub counts_repeating: usize,
}

/// The rows of a report, one a set that was run, without the sealed and the untimed ones.
pub fn rows(report: &Report, commit: &str, date: &str) -> Vec<Row> {
    [Set::Calibration, Set::Development]
        .into_iter()
        .filter_map(|set| row(report, set, commit, date))
        .collect()
}

/// The row of one set; nothing when none of its programs was run.
pub fn row(report: &Report, set: Set, commit: &str, date: &str) -> Option<Row> {
    let sets = [set];
    let own: Vec<_> = report.timed(&sets).collect();
    let mut sizes: Vec<&str> = own
        .iter()
        .map(|program| program.case.size.as_str())
        .collect();
    sizes.sort_unstable();
    sizes.dedup();
    let only_this = Report {
        gpu: report.gpu.clone(),
        state: report.state,
        programs: own.iter().map(|program| (*program).clone()).collect(),
    };
    let all = only_this.headline(&[set], |_| true);
    let large = only_this.headline(&[set], |kernel| !kernel.is_small());
    let (small_right, small) = only_this.small_kernels(&[set]);
    let exact = only_this.exact();
    (!own.is_empty()).then(|| Row {
        commit: commit.into(),
        date: date.into(),
        gpu: report.gpu.clone(),
        state: report.state,
        set: set.name().into(),
        sizes: sizes.join("+"),
        programs: own.len(),
        failed: only_this.failures().len(),
        mean: all.map(|figures| rounded(figures.errors.mean)),
        signed: all.map(|figures| rounded(figures.signed)),
        median: all.map(|figures| rounded(figures.errors.median)),
        ninetieth: all.map(|figures| rounded(figures.errors.ninetieth)),
        maximum: all.map(|figures| rounded(figures.errors.maximum)),
        time_weighted: all.map(|figures| rounded(figures.errors.time_weighted)),
        log_error: all.map(|figures| rounded(figures.log_error)),
        log_r_squared: all.and_then(|figures| figures.log_r_squared).map(rounded),
        large_mean: large.map(|figures| rounded(figures.errors.mean)),
        small_right,
        small,
        counts_equal: exact.equal,
        counts_repeating: exact.repeating,
    })
}

fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

/// Reads the file; a missing one has no rows.
pub fn load(path: &Path) -> Result<Vec<Row>, CorrelationError> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    csv::Reader::from_reader(read(path)?.as_bytes())
        .deserialize()
        .collect::<Result<_, _>>()
        .map_err(|error| CorrelationError::malformed(path, error.to_string()))
}

/// The rows of the newest commit that a GPU has, by state, set and sizes: figures of several builds make no table.
pub fn newest<'rows>(history: &'rows [Row], gpu: &str) -> Vec<&'rows Row> {
    let own = || history.iter().filter(|row| row.gpu == gpu);
    let commit = own().next_back().map(|row| row.commit.as_str());
    own()
        .filter(|row| Some(row.commit.as_str()) == commit)
        .collect()
}

/// Adds rows; one with the same commit, GPU, state, set and sizes is replaced.
pub fn add(history: &mut Vec<Row>, rows: Vec<Row>) {
    let key = |row: &Row| {
        (
            row.commit.clone(),
            row.gpu.clone(),
            row.state,
            row.set.clone(),
            row.sizes.clone(),
        )
    };
    for row in rows {
        match history.iter_mut().find(|old| key(old) == key(&row)) {
            Some(old) => *old = row,
            None => history.push(row),
        }
    }
}

/// Writes the file.
pub fn save(path: &Path, history: &[Row]) -> std::io::Result<()> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in history {
        writer.serialize(row)?;
    }
    std::fs::write(
        path,
        writer
            .into_inner()
            .map_err(csv::IntoInnerError::into_error)?,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_measured_again_replaces_its_row() {
        let row = |commit: &str, mean: f64| Row {
            commit: commit.into(),
            date: "2026-11-15".into(),
            gpu: "h200".into(),
            state: State::Cold,
            set: "development".into(),
            sizes: "default".into(),
            programs: 1,
            failed: 0,
            mean: Some(mean),
            signed: None,
            median: None,
            ninetieth: None,
            maximum: None,
            time_weighted: None,
            log_error: None,
            log_r_squared: None,
            large_mean: None,
            small_right: 0,
            small: 0,
            counts_equal: 0,
            counts_repeating: 0,
        };
        let mut history = vec![row("aaa", 0.3), row("bbb", 0.2)];
        add(&mut history, vec![row("bbb", 0.1), row("ccc", 0.05)]);
        let means: Vec<_> = history.iter().map(|row| row.mean).collect();
        assert_eq!(means, [Some(0.3), Some(0.1), Some(0.05)]);

        let folder = std::env::temp_dir().join(format!("lockstep-history-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("folder");
        let path = folder.join("history.csv");
        save(&path, &history).expect("saved");
        assert_eq!(load(&path).expect("loaded"), history);
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}
