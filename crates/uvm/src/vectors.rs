//! The published examples, worked through by every variant.

use serde_json::Value;

use crate::evict::tree::with_neighbours;
use crate::gmmu::{Gmmu, Output};
use crate::harness;
use crate::log::Direction;
use crate::prefetch::{Event, Memory, Pages, Prefetcher};
use crate::split::split;
use crate::tree::Tree;
use crate::{BLOCK_PAGES, PAGE, PageSet, Space};
use lockstep_units::Random;

fn vectors() -> Value {
    serde_json::from_str(include_str!("vectors.json")).unwrap()
}

fn numbers(value: &Value) -> Vec<u32> {
    let list = value.as_array().unwrap();
    list.iter().map(|n| n.as_u64().unwrap() as u32).collect()
}

fn leaves(pages: PageSet) -> Vec<u32> {
    let mut all: Vec<u32> = pages.iter().map(|page| page / BLOCK_PAGES).collect();
    all.dedup();
    all
}

fn transfers(value: &Value) -> Vec<Vec<u32>> {
    value.as_array().unwrap().iter().map(numbers).collect()
}

fn walk_through(vector: &Value, policy: &Prefetcher) {
    let id = vector["id"].as_str().unwrap();
    let mut space = Space::default();
    let size = vector["leaves"].as_u64().unwrap() * u64::from(BLOCK_PAGES) * PAGE;
    space.map(0, size);
    let mut memory = Memory {
        random: Random::new(1),
        cursor: 0,
    };
    for (number, step) in vector["steps"].as_array().unwrap().iter().enumerate() {
        let place = format!("{id} with {}, step {number}", policy.name);
        let faults: PageSet = numbers(&step["fault_leaves"])
            .iter()
            .map(|leaf| leaf * BLOCK_PAGES)
            .collect();
        let event = Pages::from([(0, faults)]);
        let event = Event {
            faults: &event,
            ahead: 0,
        };
        let planned = (policy.plan)(&mut space, event, &mut memory);
        let tree = space.tree_mut(0).unwrap();
        let new = planned[&0] - tree.valid();
        assert_eq!(leaves(new), numbers(&step["new_leaves"]), "{place}");
        let cut: Vec<Vec<u32>> = split(new, faults, policy.split)
            .iter()
            .map(|transfer| vec![transfer.first * 4, transfer.pages * 4])
            .collect();
        assert_eq!(cut, transfers(&step["transfers_kb"]), "{place}");
        tree.device |= new;
        assert_eq!(
            tree.device.count() * 4,
            step["valid_kb"].as_u64().unwrap() as u32,
            "{place}"
        );
    }
}

#[test]
fn the_tree_based_prefetchers_bring_what_the_vectors_say() {
    let mut walked = 0;
    for vector in vectors()["tbnp"].as_array().unwrap() {
        let names: &[&str] = match vector["variant"].as_str().unwrap() {
            "seed" => &["tree", "tree-uvmsmart"],
            "driver" => &["tree-driver"],
            other => panic!("no variant is called {other}"),
        };
        for name in names {
            walk_through(vector, Prefetcher::named(name).unwrap());
            walked += 1;
        }
    }
    assert_eq!(walked, 22);
}

/// Seed and driver differ only where a cascade shows.
#[test]
fn without_a_cascade_the_variants_agree() {
    for vector in vectors()["tbnp"].as_array().unwrap() {
        if matches!(
            vector["id"].as_str().unwrap(),
            "V1" | "V2" | "V3" | "V4" | "V5a" | "V5b"
        ) {
            walk_through(vector, Prefetcher::named("tree-driver").unwrap());
        }
    }
}

#[test]
fn touching_a_tree_in_order_faults_once_a_level() {
    for name in ["tree", "tree-uvmsmart", "tree-driver"] {
        for (leaves, expected) in [(32, 6), (16, 5), (8, 4), (4, 3), (2, 2), (1, 1)] {
            let policy = Prefetcher::named(name).unwrap();
            let mut space = Space::default();
            space.map(0, leaves * u64::from(BLOCK_PAGES) * PAGE);
            let mut memory = Memory {
                random: Random::new(1),
                cursor: 0,
            };
            let mut faults = 0;
            for page in 0..leaves as u32 * BLOCK_PAGES {
                if space.tree_mut(0).unwrap().device.contains(page) {
                    continue;
                }
                faults += 1;
                let event = Pages::from([(0, PageSet::one(page))]);
                let event = Event {
                    faults: &event,
                    ahead: 0,
                };
                let planned = (policy.plan)(&mut space, event, &mut memory);
                space.tree_mut(0).unwrap().device |= planned[&0];
            }
            assert_eq!(faults, expected, "{name} {leaves}");
        }
    }
}

#[test]
fn the_tree_based_evictor_removes_what_the_vectors_say() {
    for vector in vectors()["tbne_full_tree"].as_array().unwrap() {
        let pages = vector["leaves"].as_u64().unwrap() as u32 * BLOCK_PAGES;
        let mut tree = Tree::new(0, pages);
        tree.device = tree.all();
        for step in vector["steps"].as_array().unwrap() {
            let victim = step["victim"].as_u64().unwrap() as u32;
            let gone = with_neighbours(&tree, victim);
            assert_eq!(leaves(gone), numbers(&step["evicted"]), "{}", vector["id"]);
            tree.device -= gone;
            assert_eq!(
                u64::from(tree.device.count()) * 4,
                step["valid_kb"].as_u64().unwrap()
            );
        }
    }
}

/// Two of four blocks left are exactly half: nothing more leaves.
#[test]
fn half_a_node_stays() {
    let mut tree = Tree::new(0, 4 * BLOCK_PAGES);
    tree.device = tree.all();
    tree.device -= with_neighbours(&tree, 0);
    let gone = with_neighbours(&tree, 2);
    assert_eq!(leaves(gone), [2]);
}

#[test]
fn the_link_takes_what_the_vectors_say() {
    let all = vectors();
    let settings = harness::settings(|_| {});
    for (kib, micros) in all["pcie_seed_table_us"].as_object().unwrap() {
        let bytes = kib.parse::<u64>().unwrap() << 10;
        let time = settings.link.time(lockstep_units::Bytes(bytes), true);
        let got = time.0 as f64 / 1e9;
        let expected = micros.as_f64().unwrap();
        assert!(
            (got / expected - 1.0).abs() < 1e-5,
            "{kib} KiB: {got} {expected}"
        );
    }
    // Cycles, rounded up, at three clocks.
    for (pages, cycles) in [
        (1, [1754, 1421, 1554]),
        (4, [3508, 2842, 3107]),
        (15, [10067, 8157, 8919]),
        (16, [10664, 8641, 9447]),
        (31, [18084, 14653, 16021]),
        (63, [33915, 27480, 30045]),
        (64, [34410, 27881, 30483]),
        (127, [65404, 52995, 57941]),
        (255, [128377, 104019, 113728]),
        (256, [128869, 104418, 114163]),
        (512, [254814, 206467, 225737]),
    ] {
        for (mhz, expected) in [1481, 1200, 1312].into_iter().zip(cycles) {
            let settings = harness::settings_at(mhz, |_| {});
            assert_eq!(
                settings.transfer(pages, true),
                expected,
                "{pages} pages at {mhz} MHz"
            );
        }
    }
}

/// The host's own faults are served by the driver's rule.
#[test]
fn the_hosts_faults_move_what_the_hardware_traces_show() {
    let all = vectors();
    let host = all["tbnp"].as_array().unwrap().iter();
    for vector in host.filter(|v| v["id"].as_str().unwrap().starts_with('H')) {
        let settings = harness::settings(|_| {});
        let mut gmmu = Gmmu::new(settings);
        gmmu.map_memory(0, 2 << 20);
        gmmu.prefetch(0, 0, 0, 2 << 20, true);
        gmmu.run(u64::MAX);
        assert_eq!(
            gmmu.outputs()
                .filter(|(_, o)| matches!(o, Output::Done { .. }))
                .count(),
            1
        );
        for (number, step) in vector["steps"].as_array().unwrap().iter().enumerate() {
            let before = gmmu.migration_log().len();
            let page = u64::from(numbers(&step["fault_leaves"])[0] * BLOCK_PAGES);
            gmmu.host_access(1_000_000, number as u64 + 1, page * PAGE, PAGE, true);
            gmmu.run(u64::MAX);
            let moved: Vec<Vec<u32>> = gmmu.migration_log()[before..]
                .iter()
                .filter(|record| record.direction == Direction::ToHost)
                .map(|record| vec![record.page as u32 * 4, record.pages * 4])
                .collect();
            assert_eq!(
                moved,
                transfers(&step["transfers_kb"]),
                "{} step {number}",
                vector["id"]
            );
        }
    }
}
