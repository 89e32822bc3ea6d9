//! Statistics of many components as rows, for writers.

use std::borrow::Cow;
use std::sync::Arc;

use crate::{DigestTree, Statistics, Value};

/// One number of one component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Which component: "gpu 0/sm/17".
    pub component: Arc<str>,
    /// Which statistic; of a histogram, with what about it: "latency.sum".
    pub name: Cow<'static, str>,
    /// What it counts in.
    pub unit: &'static str,
    /// The value.
    pub value: u64,
    /// Sentence that says what it counts.
    pub help: &'static str,
}

/// The statistics of many components, and the digest of each.
#[derive(Clone, Debug)]
pub struct Table {
    rows: Option<Vec<Row>>,
    digests: Option<DigestTree>,
}

impl Default for Table {
    fn default() -> Self {
        Self {
            rows: Some(Vec::new()),
            digests: Some(DigestTree::default()),
        }
    }
}

impl Table {
    /// One that keeps rows, and works out no digest.
    #[must_use]
    pub fn of_rows() -> Self {
        Self {
            digests: None,
            ..Self::default()
        }
    }

    /// One that keeps digests alone.
    #[must_use]
    pub fn of_digests() -> Self {
        Self {
            rows: None,
            ..Self::default()
        }
    }

    /// Adds what one component counted.
    ///
    /// # Panics
    /// If a component of that name was added before.
    pub fn add(&mut self, component: &str, statistics: &impl Statistics) {
        if let Some(digests) = &mut self.digests {
            digests.insert(component, statistics.digest());
        }
        let Some(rows) = &mut self.rows else {
            return;
        };
        let component: Arc<str> = component.into();
        statistics.visit(&mut |description, value| {
            let mut row = |name: Cow<'static, str>, unit, value| {
                rows.push(Row {
                    component: component.clone(),
                    name,
                    unit,
                    value,
                    help: description.help,
                });
            };
            let (name, unit) = (description.name, description.unit);
            match value {
                Value::Number(number) => row(name.into(), unit, number),
                Value::Histogram(histogram) => {
                    row(format!("{name}.count").into(), "samples", histogram.count());
                    row(format!("{name}.sum").into(), unit, histogram.sum());
                    row(format!("{name}.largest").into(), unit, histogram.largest());
                    for (bound, count) in histogram.buckets() {
                        row(format!("{name}.up_to.{bound}").into(), "samples", count);
                    }
                }
            }
        });
    }

    /// All rows, in the order in which components were added; none if it keeps none.
    pub fn rows(&self) -> &[Row] {
        self.rows.as_deref().unwrap_or_default()
    }

    /// The rows.
    #[must_use]
    pub fn into_rows(self) -> Vec<Row> {
        self.rows.unwrap_or_default()
    }

    /// The digest of each component; none if it keeps none.
    pub fn into_digests(self) -> DigestTree {
        self.digests.unwrap_or_default()
    }
}
