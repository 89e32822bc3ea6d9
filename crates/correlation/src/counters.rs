//! The counters that are compared: those of the table of counters that say how.

use lockstep_counters::{COUNTERS, Metric, of_launches};
use std::collections::BTreeMap;

/// In the order in which they are printed; the first is the one that the headline is about.
pub fn compared() -> impl Iterator<Item = &'static Metric> {
    of_launches().filter(|metric| metric.comparison.is_some())
}

/// The counters that must agree exactly, for launches whose hardware counts repeat.
pub const EXACT: &[&str] = &["inst_executed", "thread_inst_executed", "warps_launched"];

/// The counter of this name, if it is compared.
pub fn named(name: &str) -> Option<&'static Metric> {
    compared().find(|metric| metric.name == name)
}

/// What a simulated launch counted, as a profiler would: with the estimate of what it sees beside the
/// kernel, where the table has one.
pub fn as_profiled(counters: &BTreeMap<String, f64>, name: &str) -> Option<f64> {
    let counted = counters.get(name)?;
    let added = COUNTERS.iter().filter(|one| one.added_to == Some(name));
    let added = added.filter_map(|one| counters.get(one.name));
    Some(counted + added.sum::<f64>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_profiler_sees_beside_the_kernel_is_added_for_comparison_only() {
        let counters = BTreeMap::from([
            ("l2_sectors".to_owned(), 100.0),
            ("l2_sectors_overhead".to_owned(), 7.0),
            ("l1_sectors".to_owned(), 50.0),
        ]);
        assert_eq!(as_profiled(&counters, "l2_sectors"), Some(107.0));
        assert_eq!(as_profiled(&counters, "l1_sectors"), Some(50.0));
        assert_eq!(as_profiled(&counters, "dram_bytes_read"), None);
        assert!(named("l2_sectors_overhead").is_none());
        assert_eq!(compared().next().map(|one| one.name), Some("cycles"));
    }
}
