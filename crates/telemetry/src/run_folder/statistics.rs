//! `stats.csv`: every statistic of every component.

use serde::Serialize;
use std::io;

/// One statistic of one component.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StatisticRow {
    /// The component.
    pub component: String,
    /// The statistic.
    pub statistic: String,
    /// Its value.
    pub value: String,
    /// Its unit.
    pub unit: String,
    /// What it counts.
    pub description: String,
}

pub(super) fn to_csv(rows: &[StatisticRow]) -> io::Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    if rows.is_empty() {
        writer.write_record(["component", "statistic", "value", "unit", "description"])?;
    }
    for row in rows {
        writer.serialize(row)?;
    }
    writer.into_inner().map_err(|error| error.into_error())
}
