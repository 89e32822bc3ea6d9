//! What leaves the device when its memory is full. One file a policy.

mod driver;
mod least_frequent_large;
mod oldest_large;
mod oldest_page;
mod random_page;
mod sequential_local;
pub(crate) mod tree;

use crate::page_set::PageSet;
use crate::space::Space;
use crate::tree::Tree;
use lockstep_units::Random;

/// Pages of one tree that are evicted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Victim {
    /// First page of the tree.
    pub tree: u64,
    /// Pages of it.
    pub pages: PageSet,
}

/// Candidates from which an eviction policy chooses, oldest first.
#[derive(Debug)]
pub struct EvictionCandidates<'a> {
    /// All managed memory.
    pub space: &'a Space,
    /// Random number generator.
    pub random: &'a mut Random,
    /// Share of the list, from its old end, that is passed over, in percent.
    pub reserve: u32,
    /// Pages that somebody waits for may be chosen as well.
    pub force: bool,
}

/// An eviction policy.
#[derive(Clone, Copy)]
pub struct Evictor {
    /// The name in configurations.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub summary: &'static str,
    /// The next victim, if there is one.
    pub choose: fn(&mut EvictionCandidates<'_>) -> Option<Victim>,
}

impl std::fmt::Debug for Evictor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// All evictors.
pub const EVICTORS: &[Evictor] = &[
    Evictor {
        name: "lru-4k",
        summary: "the page that was used longest ago",
        choose: oldest_page::choose,
    },
    Evictor {
        name: "random-4k",
        summary: "a page at random",
        choose: random_page::choose,
    },
    Evictor {
        name: "sequential-local",
        summary: "the 64 KiB block used longest ago, of the 2 MiB used longest ago",
        choose: sequential_local::choose,
    },
    Evictor {
        name: "tree",
        summary: "as sequential-local, and on its way to the root every node that would be less than half full",
        choose: tree::choose,
    },
    Evictor {
        name: "lru-2m",
        summary: "the 2 MiB used longest ago",
        choose: oldest_large::choose,
    },
    Evictor {
        name: "lfu-2m",
        summary: "the 2 MiB used least often; of those, what was never written, then what was used longest ago",
        choose: least_frequent_large::choose,
    },
    Evictor {
        name: "driver",
        summary: "the 2 MiB to which a page came longest ago",
        choose: driver::choose,
    },
];

impl Evictor {
    /// The evictor of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        EVICTORS.iter().find(|policy| policy.name == name)
    }
}

impl EvictionCandidates<'_> {
    /// Trees with something to evict.
    fn trees(&self) -> impl Iterator<Item = &Tree> {
        let force = self.force;
        self.space
            .trees()
            .filter(move |tree| !tree.evictable(force).is_empty())
    }

    /// Of so many candidates, oldest first, the number of the one to take.
    fn position(&self, candidates: usize) -> usize {
        let skipped = candidates * self.reserve.min(99) as usize / 100;
        if self.force { 0 } else { skipped }
    }

    /// All evictable pages of a tree.
    fn whole(&self, tree: &Tree) -> Victim {
        Victim {
            tree: tree.first,
            pages: tree.evictable(self.force),
        }
    }

    /// Trees by a key, the smallest first; the one to take after the reserve.
    fn smallest_tree<K: Ord>(&self, key: impl Fn(&Tree) -> K) -> Option<Victim> {
        if self.reserve == 0 || self.force {
            let tree = self.trees().min_by_key(|tree| (key(tree), tree.first))?;
            return Some(self.whole(tree));
        }
        let mut trees: Vec<&Tree> = self.trees().collect();
        trees.sort_by_key(|tree| (key(tree), tree.first));
        let position = self.position(trees.len());
        trees.get(position).map(|tree| self.whole(tree))
    }
}
