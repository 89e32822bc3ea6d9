//! Which kernels have a label of their own.
//!
//! Every label is a series that a monitoring system keeps, so there is none by default. With N
//! asked for, a kernel gets its label when it is one of the N that executed most, and keeps it: a
//! series that came and went would look like counters that fall. What it did before is in `other`.
//! After four times N labels the list is closed.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// Label of all kernels without one of their own.
pub const OTHER: &str = "other";
/// Labels for each kernel that was asked for, over the time of the exporter.
const LABELS_PER_KERNEL: usize = 4;
/// Kernels whose weight is known; a program with more has no few that matter.
const MOST_KNOWN: usize = 65_536;

/// The kernels that have labels, and what decides.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct KernelLabels {
    top: usize,
    labelled: BTreeSet<String>,
    weights: BTreeMap<String, u64>,
}

impl KernelLabels {
    /// Labels for the `top` kernels; no kernel label at all with 0.
    pub fn new(top: usize) -> Self {
        Self {
            top,
            ..Self::default()
        }
    }

    /// Goes on with what was learned before, if the same was asked for.
    pub fn resume(&mut self, before: Self) {
        if before.top == self.top {
            *self = before;
        }
    }

    /// Notes that kernels did so much more, and labels those that are now among the top.
    pub fn weigh<'a>(&mut self, growth: impl Iterator<Item = (&'a str, u64)>) {
        if self.top == 0 {
            return;
        }
        for (kernel, weight) in growth {
            if let Some(sum) = self.weights.get_mut(kernel) {
                *sum = sum.saturating_add(weight);
            } else if self.weights.len() < MOST_KNOWN {
                self.weights.insert(kernel.to_owned(), weight);
            }
        }
        let mut order: Vec<(&String, &u64)> = self.weights.iter().collect();
        order.sort_by(|left, right| right.1.cmp(left.1).then(left.0.cmp(right.0)));
        for (kernel, _) in order.into_iter().take(self.top) {
            if self.labelled.len() < self.top * LABELS_PER_KERNEL {
                self.labelled.insert(kernel.clone());
            }
        }
    }

    /// The label of `kernel`; nothing where kernels have none.
    pub fn label(&self, kernel: &str) -> Option<String> {
        let label = match (self.top, self.labelled.contains(kernel)) {
            (0, _) => return None,
            (_, true) => kernel,
            (_, false) => OTHER,
        };
        Some(label.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_keeps_its_label_when_others_overtake_it() {
        let mut labels = KernelLabels::new(1);
        labels.weigh([("a", 3), ("b", 2)].into_iter());
        assert_eq!(labels.label("a").as_deref(), Some("a"));
        assert_eq!(labels.label("b").as_deref(), Some(OTHER));
        labels.weigh([("b", 2)].into_iter());
        assert_eq!(labels.label("a").as_deref(), Some("a"));
        assert_eq!(labels.label("b").as_deref(), Some("b"));
    }

    #[test]
    fn labels_are_bounded_however_many_kernels_come() {
        let mut labels = KernelLabels::new(2);
        for i in 0..100_u64 {
            labels.weigh([(format!("k{i}").as_str(), i)].into_iter());
        }
        assert_eq!(labels.labelled.len(), 2 * LABELS_PER_KERNEL);
    }

    #[test]
    fn no_kernel_has_a_label_unless_asked() {
        let mut labels = KernelLabels::new(0);
        labels.weigh([("a", 3)].into_iter());
        assert_eq!(labels.label("a"), None);
    }
}
