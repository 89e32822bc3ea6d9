//! Declared once, and every output agrees.

use expect_test::expect;
use lockstep_stats::*;
use proptest::prelude::*;

statistics! {
    /// What a test
    /// counts.
    pub struct TestStats {
        /// Requests whose line was present.
        hits: Counter [requests],
        /// Requests that wait now.
        waiting: Gauge [requests],
        /// Requests that ever waited at once.
        most_waiting: Maximum [requests],
        /// From acceptance to reply,
        /// all stages included.
        latency: Histogram [cycles / request],
    }
}

fn counted(values: &[u64]) -> TestStats {
    let mut stats = TestStats::default();
    for &value in values {
        stats.hits.increment();
        stats.waiting.set(value % 100);
        stats.most_waiting.see(value);
        stats.latency.add(value);
    }
    stats
}

#[test]
fn a_declaration_is_the_documentation() {
    assert_eq!(TestStats::HELP, "What a test counts.");
    let lines: String = TestStats::DESCRIPTIONS
        .iter()
        .map(|d| format!("{} ({}, {}): {}\n", d.name, d.kind.name(), d.unit, d.help))
        .collect();
    expect![[r#"
        hits (counter, requests): Requests whose line was present.
        waiting (gauge, requests): Requests that wait now.
        most_waiting (maximum, requests): Requests that ever waited at once.
        latency (histogram, cycles / request): From acceptance to reply, all stages included.
    "#]]
    .assert_eq(&lines);
}

#[test]
fn rows_say_everything() {
    let mut table = Table::default();
    table.add("slice/0", &counted(&[0, 1, 230, 255, 256]));
    let lines: String = table
        .rows()
        .iter()
        .map(|row| {
            format!(
                "{} {} {} {}\n",
                row.component, row.name, row.value, row.unit
            )
        })
        .collect();
    expect![[r#"
        slice/0 hits 5 requests
        slice/0 waiting 56 requests
        slice/0 most_waiting 256 requests
        slice/0 latency.count 5 samples
        slice/0 latency.sum 742 cycles / request
        slice/0 latency.largest 256 cycles / request
        slice/0 latency.up_to.0 1 samples
        slice/0 latency.up_to.1 1 samples
        slice/0 latency.up_to.255 2 samples
        slice/0 latency.up_to.511 1 samples
    "#]]
    .assert_eq(&lines);
}

#[test]
fn digests_are_the_same_on_every_host_and_in_every_version() {
    // A change here is a change of the format: every recorded digest becomes void.
    let mut tree = DigestTree::default();
    tree.insert("gpu 0/sm/0", counted(&[1, 2, 3]).digest());
    tree.insert("gpu 0/sm/1", counted(&[]).digest());
    expect!["1cbbfe65a3372a0f5883c079835232955a1867828d7746820b78889d20601b2a"]
        .assert_eq(&tree.root().to_string());
}

#[test]
fn a_difference_is_located() {
    let mut first = DigestTree::default();
    let mut second = DigestTree::default();
    for sm in 0..12 {
        first.insert(format!("gpu 0/sm/{sm}"), counted(&[sm]).digest());
        second.insert(
            format!("gpu 0/sm/{sm}"),
            counted(&[sm + u64::from(sm == 7)]).digest(),
        );
    }
    second.insert("gpu 0/copy", counted(&[]).digest());
    assert_ne!(first.root(), second.root());
    let paths: Vec<_> = first
        .differences(&second)
        .into_iter()
        .map(|d| d.path)
        .collect();
    assert_eq!(paths, ["gpu 0/copy", "gpu 0/sm/7"]);
}

#[test]
fn quantiles_are_within_a_factor_of_two() {
    let mut histogram = Histogram::default();
    (1..=1000).for_each(|value| histogram.add(value));
    assert_eq!(
        [0, 50, 99, 100].map(|percent| histogram.quantile(percent)),
        [1, 511, 1000, 1000]
    );
    assert_eq!(Histogram::default().quantile(50), 0);
}

#[test]
fn what_is_not_a_digest_is_refused() {
    assert!(
        "12".parse::<Digest>()
            .unwrap_err()
            .to_string()
            .contains("found 2 characters")
    );
    assert!("é".repeat(32).parse::<Digest>().is_err());
    assert!("+f".repeat(32).parse::<Digest>().is_err());
    let long = postcard::to_stdvec(&(vec![1u64; 66], 0u64, 0u64)).unwrap();
    assert!(postcard::from_bytes::<Histogram>(&long).is_err());
}

proptest! {
    #[test]
    fn the_order_of_components_never_shows(paths in prop::collection::btree_map("[a-c]/?[a-c0-3/]{0,4}", any::<u64>(), 1..12), rotate in 0usize..12) {
        let digest = |value: &u64| counted(&[*value]).digest();
        let leaves: Vec<_> = paths.iter().collect();
        let mut trees = [DigestTree::default(), DigestTree::default()];
        for (path, value) in &leaves {
            trees[0].insert(path.as_str(), digest(value));
        }
        for index in 0..leaves.len() {
            let (path, value) = leaves[(index + rotate) % leaves.len()];
            trees[1].insert(path.as_str(), digest(value));
        }
        prop_assert_eq!(trees[0].root(), trees[1].root());
        // And every leaf counts.
        let mut changed = DigestTree::default();
        for (index, (path, value)) in leaves.iter().enumerate() {
            let value = if index == rotate % leaves.len() { value.wrapping_add(1) } else { **value };
            changed.insert(path.as_str(), digest(&value));
        }
        prop_assert_ne!(trees[0].root(), changed.root());
    }

    #[test]
    fn merging_is_counting_together(first in prop::collection::vec(0..1u64 << 40, 0..20), second in prop::collection::vec(0..1u64 << 40, 0..20)) {
        let mut merged = counted(&first);
        merged.merge(&counted(&second));
        let mut both = counted(&[first.clone(), second.clone()].concat());
        both.waiting = merged.waiting;
        prop_assert_eq!(merged.digest(), both.digest());
        prop_assert_eq!(both.since(&counted(&first)).hits.get(), second.len() as u64);
        prop_assert_eq!(both.since(&counted(&first)).latency.sum(), second.iter().sum::<u64>());
    }

    #[test]
    fn saved_statistics_load(values in prop::collection::vec(any::<u64>(), 0..20)) {
        let stats = counted(&values);
        let bytes = postcard::to_stdvec(&stats).unwrap();
        prop_assert_eq!(&postcard::from_bytes::<TestStats>(&bytes).unwrap(), &stats);
        let digest = stats.digest();
        prop_assert_eq!(digest.to_string().parse::<Digest>().unwrap(), digest);
        let json = serde_json::to_string(&digest).unwrap();
        prop_assert_eq!(serde_json::from_str::<Digest>(&json).unwrap(), digest);
        let bytes = postcard::to_stdvec(&digest).unwrap();
        prop_assert_eq!(postcard::from_bytes::<Digest>(&bytes).unwrap(), digest);
    }
}
