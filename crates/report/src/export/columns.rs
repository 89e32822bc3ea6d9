//! Launches as columns.

use crate::columns::{Column, Values};
use lockstep_counters::{COUNTERS, LAUNCH_GAUGES, Metric};
use lockstep_run_folder::Launch;
use lockstep_run_folder::Run;
use lockstep_text::names;

/// Whose names counters have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Names {
    /// Those of `kernels.csv`.
    #[default]
    Lockstep,
    /// Those of Nsight Compute; ours where it has none.
    Ncu,
}

impl Names {
    /// The name of a metric.
    pub fn of(self, metric: &Metric) -> &'static str {
        match self {
            Self::Lockstep => metric.name,
            Self::Ncu => metric.ncu.first().copied().unwrap_or(metric.name),
        }
    }
}

/// All columns: which launch it is, what it did, what it was made of. A counter that no launch knows
/// has none.
pub fn columns(run: &Run, names: Names) -> Vec<Column> {
    let launches = &run.launches;
    let text = |name: &str, value: fn(&Launch) -> String| Column {
        name: name.into(),
        values: Values::Text(launches.iter().map(|one| Some(value(one).into())).collect()),
    };
    let whole = |name: &str, value: fn(&Launch) -> Option<u64>| Column {
        name: name.into(),
        values: Values::Whole(launches.iter().map(value).collect()),
    };
    let decimal = |name: &str, value: fn(&Launch) -> Option<f64>| Column {
        name: name.into(),
        values: Values::Decimal(launches.iter().map(value).collect()),
    };
    let mut all = vec![
        whole("launch", |one| Some(one.number)),
        text("kernel", |one| names::whole(&one.kernel)),
        text("symbol", |one| one.kernel.clone()),
        text("gpu", |one| one.gpu.clone()),
        whole("context", |one| Some(one.context)),
        whole("stream", |one| Some(one.stream)),
        whole("grid_x", |one| Some(one.grid[0].into())),
        whole("grid_y", |one| Some(one.grid[1].into())),
        whole("grid_z", |one| Some(one.grid[2].into())),
        whole("block_x", |one| Some(one.block[0].into())),
        whole("block_y", |one| Some(one.block[1].into())),
        whole("block_z", |one| Some(one.block[2].into())),
        decimal("start_ns", |one| one.start_ns),
        decimal("duration_ns", |one| one.duration_ns),
        whole("registers", |one| one.registers.map(u64::from)),
        whole("shared_bytes", |one| one.shared_bytes),
        whole("parent", |one| one.parent),
    ];
    for (place, metric) in COUNTERS.iter().enumerate() {
        let values: Vec<_> = launches.iter().map(|one| one.counters()[place]).collect();
        if values.iter().any(Option::is_some) {
            all.push(Column {
                name: names.of(metric).into(),
                values: Values::Whole(values),
            });
        }
    }
    for (place, metric) in LAUNCH_GAUGES.iter().enumerate() {
        // What Nsight Compute has in percent goes from 0 to 1 here.
        let scale = if names == Names::Ncu && !metric.ncu.is_empty() {
            100.0
        } else {
            1.0
        };
        let values = launches.iter().map(|one| one.gauges()[place]);
        let values: Vec<_> = values
            .map(|value| value.map(|value| value * scale))
            .collect();
        if values.iter().any(Option::is_some) {
            all.push(Column {
                name: names.of(metric).into(),
                values: Values::Decimal(values),
            });
        }
    }
    all
}
