//! Statistics of many components as rows, for writers.

use serde::Serialize;

use crate::{DigestTree, Statistics, Value};

/// One number of one component.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Which component: "gpu 0/sm/17".
    pub component: String,
    /// Which statistic; of a histogram, with what about it: "latency.sum".
    pub name: String,
    /// What it counts in.
    pub unit: &'static str,
    /// The value.
    pub value: u64,
    /// Sentence that says what it counts.
    pub help: &'static str,
}

/// The statistics of many components, and the digest of each.
#[derive(Clone, Debug, Default)]
pub struct Table {
    rows: Vec<Row>,
    digests: DigestTree,
}

impl Table {
    /// Adds what one component counted.
    ///
    /// # Panics
    /// If a component of that name was added before.
    pub fn add(&mut self, component: &str, statistics: &impl Statistics) {
        self.digests.insert(component, statistics.digest());
        statistics.visit(&mut |description, value| {
            let mut row = |name: String, unit, value| {
                let component = component.to_owned();
                self.rows.push(Row {
                    component,
                    name,
                    unit,
                    value,
                    help: description.help,
                });
            };
            let name = description.name;
            match value {
                Value::Number(number) => row(name.to_owned(), description.unit, number),
                Value::Histogram(histogram) => {
                    row(format!("{name}.count"), "samples", histogram.count());
                    row(format!("{name}.sum"), description.unit, histogram.sum());
                    row(
                        format!("{name}.largest"),
                        description.unit,
                        histogram.largest(),
                    );
                    for (bound, count) in histogram.buckets() {
                        row(format!("{name}.up_to.{bound}"), "samples", count);
                    }
                }
            }
        });
    }

    /// All rows, in the order in which components were added.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The digest of each component.
    pub fn digests(&self) -> &DigestTree {
        &self.digests
    }
}
