//! GPUs of a node that touch the same pages, without hardware between them and their directory.

use std::collections::BTreeMap;
use std::sync::Arc;

use lockstep_config::UvmConfig;
use lockstep_units::{Duration, Random};

use super::Directory;
use crate::geometry::PAGE;
use crate::gmmu::{Advice, NeighbourLink};
use crate::harness::{Bench, settings};
use crate::news::Order;
use crate::settings::Settings;
use crate::statistics::NeighbourStats;

/// Cycles between two meetings, and those that pages take from one GPU to another.
const MEETING: u64 = 600;
const CARRIED: u64 = 2000;
const MIB: u64 = 1 << 20;

/// GPUs of a node.
struct Node {
    gpus: Vec<Bench>,
    directory: Directory,
    now: u64,
    /// When pages arrive that are on the links.
    links: BTreeMap<(u64, u64), ()>,
    zero_fill: bool,
}

impl Node {
    fn new(gpus: u32, settings: &Arc<Settings>) -> Self {
        let config = &settings.config;
        let zero_fill = config.first_touch == "zero-fill";
        let bench = |_| {
            let mut bench = Bench::new(settings);
            bench.gmmu.join_node(NeighbourLink {
                bytes_per_second: 100_000_000_000,
                packet_header: 16,
                latency: Duration::nanoseconds(500),
            });
            bench
        };
        Self {
            gpus: (0..gpus).map(bench).collect(),
            directory: Directory::new(0..gpus, zero_fill, config.packing),
            now: 0,
            links: BTreeMap::new(),
            zero_fill,
        }
    }

    fn map(&mut self, bytes: u64) {
        self.directory.map(0, bytes);
        for gpu in &mut self.gpus {
            gpu.gmmu.map_memory(0, bytes);
        }
    }

    fn advise(&mut self, bytes: u64, advice: impl Fn(usize) -> Option<Advice>) {
        for (number, gpu) in self.gpus.iter_mut().enumerate() {
            if let Some(advice) = advice(number) {
                gpu.gmmu.advise(0, bytes, advice);
                if let Advice::ReadMostly(yes) = advice {
                    self.directory.set_read_mostly(0, bytes, yes);
                }
            }
        }
    }

    fn touch(&mut self, gpu: usize, page: u64, write: bool) {
        self.gpus[gpu].touch(self.now, 0, page, write);
    }

    /// Lets time pass until the next meeting, and meets.
    fn pass(&mut self) {
        self.now += MEETING;
        for gpu in &mut self.gpus {
            gpu.run_until(self.now);
        }
        self.meet();
    }

    fn meet(&mut self) {
        for (number, gpu) in (0..).zip(&mut self.gpus) {
            for news in gpu.gmmu.take_news() {
                self.directory.take(number, news);
            }
        }
        while let Some((&(at, number), ())) = self.links.first_key_value()
            && at <= self.now
        {
            self.links.remove(&(at, number));
            if let Some((gpu, order)) = self.directory.carried(number) {
                self.order(gpu, order);
            }
        }
        for placed in self.directory.placed() {
            for (number, gpu) in (0..).zip(&mut self.gpus) {
                if number != placed.gpu {
                    gpu.gmmu.placed(&placed);
                }
            }
        }
        for (gpu, order) in self.directory.orders() {
            self.order(gpu, order);
        }
        for carry in self.directory.to_carry() {
            self.links.insert((self.now + CARRIED, carry.number), ());
        }
    }

    fn order(&mut self, gpu: u32, order: Order) {
        self.gpus[gpu as usize].gmmu.order(self.now, order);
    }

    /// Lets time pass until nothing happens any more.
    fn settle(&mut self) {
        for _ in 0..100_000 {
            self.pass();
            let quiet = self.gpus.iter().all(|gpu| {
                let gmmu = &gpu.gmmu;
                gmmu.next().is_none() && !gmmu.waits_for_neighbours() && !gmmu.owes_pages()
            });
            let says = |gpu: &Bench| gpu.gmmu.has_news() || gpu.gmmu.has_outputs();
            let waits = self.gpus.iter().any(says);
            if quiet && !waits && self.links.is_empty() {
                return;
            }
        }
        panic!("it never ends");
    }

    /// Touches pages on a GPU and waits for all.
    fn use_pages(&mut self, gpu: usize, pages: impl IntoIterator<Item = u64>, write: bool) {
        let before = self.gpus[gpu].accesses.len();
        let mut count = 0;
        for page in pages {
            self.touch(gpu, page, write);
            count += 1;
        }
        self.settle();
        assert_eq!(self.gpus[gpu].accesses.len(), before + count);
        self.check();
    }

    fn is_on(&self, gpu: usize, page: u64) -> bool {
        self.gpus[gpu].gmmu.space().is_resident(page)
    }

    fn stats(&self, gpu: usize) -> &NeighbourStats {
        self.gpus[gpu].gmmu.neighbour_stats().unwrap()
    }

    /// At rest: GPUs have what the directory says, and a page that is not copied is in one place.
    fn check(&self) {
        for (first, places) in &self.directory.places {
            assert!(places.moving.is_empty() && places.leaving.is_empty());
            for (held, gpu) in places.held.iter().zip(&self.gpus) {
                let tree = gpu.gmmu.space().tree(*first);
                let here = tree.map_or_else(Default::default, |tree| tree.device);
                assert_eq!(here, *held, "tree {first}");
            }
            for page in 0..512 {
                let index = crate::PageSet::one(page);
                let on_gpus = places.held.iter().filter(|held| held.contains(page));
                let copies = on_gpus.count() + usize::from(places.host.contains(page));
                let fresh = !(places.untouched & index).is_empty();
                assert_eq!(copies == 0, fresh, "page {page} is nowhere");
                if !places.read_mostly.contains(page) {
                    assert!(copies <= 1, "page {page} has {copies} copies");
                }
            }
        }
        assert!(self.directory.claims.is_empty() && self.directory.carries.is_empty());
    }
}

/// One page at a time, served alone.
fn plain(change: impl FnOnce(&mut UvmConfig)) -> Arc<Settings> {
    settings(|config| {
        config.prefetch.policy = "none".into();
        config.prefetch.oversubscribed = "none".into();
        change(config);
    })
}

#[test]
fn a_page_goes_to_and_fro_between_gpus() {
    let mut node = Node::new(2, &plain(|_| {}));
    node.map(MIB);
    for round in 0..6 {
        node.use_pages(round % 2, 0..4, round % 2 == 0);
        assert!(node.is_on(round % 2, 3) && !node.is_on(1 - round % 2, 3));
    }
    assert_eq!(node.directory.away(0, MIB), [(0, 4 * PAGE)]);
    let came = [0, 1].map(|gpu| node.stats(gpu).migrated.get());
    let gave = [0, 1].map(|gpu| node.stats(gpu).given.get());
    assert_eq!(came, [2 * 4 * PAGE, 3 * 4 * PAGE]);
    assert_eq!(gave, [3 * 4 * PAGE, 2 * 4 * PAGE]);
    let from_host = [0, 1].map(|gpu| node.gpus[gpu].gmmu.stats().demand.get());
    assert_eq!(from_host, [4 * PAGE, 0], "the host is asked once");
    let faults = [0, 1].map(|gpu| node.gpus[gpu].gmmu.stats().far_faults.get());
    assert_eq!(faults, [12, 12]);
}

#[test]
fn pages_that_are_mostly_read_are_copied_until_somebody_writes() {
    let mut node = Node::new(3, &plain(|_| {}));
    node.map(MIB);
    node.advise(MIB, |_| Some(Advice::ReadMostly(true)));
    for gpu in 0..3 {
        node.use_pages(gpu, [7], false);
    }
    assert!((0..3).all(|gpu| node.is_on(gpu, 7)));
    assert!(node.directory.host_has(7 * PAGE), "it keeps its copy");
    assert_eq!(node.stats(1).copied.get(), PAGE);
    assert_eq!(node.stats(0).given.get(), 0);
    // A read finds its copy; a write makes it the only one.
    node.use_pages(1, [7], false);
    assert_eq!(node.gpus[1].gmmu.stats().far_faults.get(), 1);
    node.use_pages(1, [7], true);
    assert!(node.is_on(1, 7) && !node.is_on(0, 7) && !node.is_on(2, 7));
    assert!(!node.directory.host_has(7 * PAGE));
    assert_eq!(node.stats(1).upgraded.get(), 1);
    assert_eq!(node.stats(0).given_copies.get(), PAGE);
    // One that writes what it has not takes it from all.
    node.use_pages(2, [7], false);
    node.use_pages(0, [7], true);
    assert!(node.is_on(0, 7) && !node.is_on(1, 7) && !node.is_on(2, 7));
    // The writer reads on, and writes again only after others have read.
    node.use_pages(0, [7], true);
    assert_eq!(node.gpus[0].gmmu.stats().far_faults.get(), 2);
}

#[test]
fn a_page_where_it_is_preferred_is_used_over_the_link() {
    let mut node = Node::new(2, &plain(|_| {}));
    node.map(MIB);
    node.advise(MIB, |gpu| {
        Some(match gpu {
            1 => Advice::PreferredDevice,
            _ => Advice::PreferredNeighbour(1),
        })
    });
    // Not there yet: it comes to who touches it.
    node.use_pages(0, [5], false);
    assert!(node.is_on(0, 5));
    node.use_pages(1, [5], false);
    assert!(node.is_on(1, 5));
    node.use_pages(0, [5], true);
    assert!(node.is_on(1, 5), "it stays");
    let stats = node.stats(0);
    assert_eq!(
        (stats.remote_writes.get(), stats.zero_copy.get()),
        (1, 4 * 32)
    );
}

#[test]
fn a_gpu_that_was_promised_access_never_faults() {
    let mut node = Node::new(2, &plain(|_| {}));
    node.map(MIB);
    node.advise(MIB, |gpu| (gpu == 0).then_some(Advice::AccessedBy(true)));
    node.use_pages(0, [5], false);
    assert_eq!(
        node.gpus[0].gmmu.stats().remote_reads.get(),
        1,
        "on the host"
    );
    node.use_pages(1, [5], true);
    node.use_pages(0, [5], false);
    assert_eq!(node.stats(0).remote_reads.get(), 1, "on the other GPU");
    assert_eq!(node.gpus[0].gmmu.stats().far_faults.get(), 0);
    assert!(node.is_on(1, 5));
}

#[test]
fn two_that_want_a_page_at_once_get_it_one_after_the_other() {
    for first_touch in ["migrate", "zero-fill"] {
        let mut node = Node::new(2, &plain(|config| config.first_touch = first_touch.into()));
        node.map(MIB);
        assert_eq!(node.directory.is_untouched(0), node.zero_fill);
        node.touch(0, 9, true);
        node.touch(1, 9, true);
        node.settle();
        assert_eq!([0, 1].map(|gpu| node.gpus[gpu].accesses.len()), [1, 1]);
        assert!(node.is_on(1, 9), "its claim came behind");
        node.check();
    }
}

/// Each holds what the other needs for its batch to end: what was not used goes after a while.
#[test]
fn batches_that_wait_for_each_other_end() {
    let settings = plain(|config| config.fault.service = "batch".into());
    let mut node = Node::new(2, &settings);
    node.map(MIB);
    for _ in 0..4 {
        for page in 0..32 {
            node.touch(0, page, true);
            node.touch(1, 31 - page, true);
        }
        node.settle();
        node.check();
    }
    let count = [0, 1].map(|gpu| node.gpus[gpu].accesses.len());
    assert_eq!(count, [128, 128]);
}

#[test]
fn the_program_moves_pages_from_one_gpu_to_another() {
    let mut node = Node::new(2, &plain(|_| {}));
    node.map(4 * MIB);
    node.gpus[0].gmmu.prefetch(node.now, 1, 0, 4 * MIB, true);
    node.settle();
    node.gpus[1].gmmu.prefetch(node.now, 2, MIB, 2 * MIB, true);
    node.settle();
    assert_eq!(node.gpus[1].done.len(), 1);
    assert_eq!(node.stats(1).user_prefetch.get(), 2 * MIB);
    assert_eq!(node.directory.holders(0, MIB), [0]);
    assert_eq!(node.directory.holders(0, 4 * MIB), [0, 1]);
    // Back to the host, from where it is.
    node.gpus[1].gmmu.prefetch(node.now, 3, 0, 4 * MIB, false);
    node.settle();
    assert_eq!(node.directory.holders(0, 4 * MIB), [0]);
    assert_eq!(node.directory.away(0, 4 * MIB), [(0, MIB), (3 * MIB, MIB)]);
    node.check();
}

#[test]
fn memory_that_is_gone_leaves_nothing() {
    let mut node = Node::new(2, &plain(|_| {}));
    node.map(2 * MIB);
    node.use_pages(0, 0..8, true);
    node.use_pages(1, 4..8, true);
    for gpu in &mut node.gpus {
        gpu.gmmu.unmap_memory(0);
    }
    node.meet();
    node.directory.unmap(0, 2 * MIB);
    assert!(node.directory.holders(0, 2 * MIB).is_empty());
    node.map(MIB);
    assert!(node.directory.away(0, MIB).is_empty(), "it is new");
    node.use_pages(1, [4], false);
    assert_eq!(
        node.gpus[1].gmmu.stats().demand.get(),
        PAGE,
        "from the host"
    );
}

#[test]
fn kernels_that_are_gone_leave_pages_to_others() {
    let mut node = Node::new(2, &plain(|_| {}));
    node.map(MIB);
    node.use_pages(0, [3], true);
    node.touch(1, 3, true);
    // Until the page is asked back, given, or on the way.
    for steps in [88, 89, 90, 91, 92, 93, 95] {
        let mut node = Node::new(2, &plain(|_| {}));
        node.map(MIB);
        node.use_pages(0, [3], true);
        node.touch(1, 3, true);
        for _ in 0..steps {
            node.pass();
        }
        node.gpus[1].gmmu.abort();
        node.meet();
        node.directory.ask_again(1);
        node.settle();
        node.check();
        node.use_pages(0, [3], true);
        assert!(node.is_on(0, 3));
    }
}

/// Whatever GPUs touch whenever, with too little memory: every access ends, and pages are where the
/// directory says.
#[test]
fn every_access_ends_wherever_pages_are() {
    for seed in 0..24 {
        let mut random = Random::new(seed);
        let settings = settings(|config| {
            let services = ["additive", "serial", "batch", "calibrated"];
            config.fault.service = services[seed as usize % 4].into();
            let policies = ["none", "tree", "tree-driver", "sequential-local"];
            config.prefetch.policy = policies[seed as usize / 4 % 4].into();
            config.prefetch.oversubscribed = config.prefetch.policy.clone();
            let evictors = ["lru-4k", "tree", "driver"];
            config.evict.policy = evictors[seed as usize % 3].into();
            config.oversubscription = 150;
            if seed % 2 == 0 {
                config.first_touch = "zero-fill".into();
            }
        });
        let mut node = Node::new(3, &settings);
        node.map(8 * MIB);
        if seed % 3 == 0 {
            node.advise(4 * MIB, |_| Some(Advice::ReadMostly(true)));
        }
        let mut wanted = [0; 3];
        for _ in 0..400 {
            for _ in 0..random.below(4) {
                let gpu = random.below(3) as usize;
                let page = random.below(8 * MIB / PAGE / 16) * 16 + random.below(2);
                node.touch(gpu, page, random.below(3) == 0);
                wanted[gpu] += 1;
            }
            node.pass();
        }
        node.settle();
        node.check();
        let got = [0, 1, 2].map(|gpu| node.gpus[gpu].accesses.len());
        assert_eq!(got, wanted, "seed {seed}");
    }
}
