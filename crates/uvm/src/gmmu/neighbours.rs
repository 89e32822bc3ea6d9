//! On a node with several GPUs: what a GPU knows of the others, and pages that it uses on them.
//!
//! Start reading at [`Gmmu::join_node`]; how pages come is in `claims.rs`, how they
//! go in `recalls.rs`.

use std::collections::BTreeMap;

use lockstep_units::Duration;
use serde::{Deserialize, Serialize};

use super::claims::Claim;
use super::recalls::Recall;
use super::{Event, Gmmu, Pending};
use crate::channel::Channel;
use crate::geometry::PageSize;
use crate::gmmu::Advice;
use crate::news::{News, Placed};
use crate::page_set::PageSet;
use crate::space::Space;
use crate::statistics::NeighbourStats;

/// Bytes of a sector, and of the data of a packet between GPUs.
const SECTOR: u64 = 32;
const LINE: u64 = 128;

/// The link to other GPUs, for accesses to single lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NeighbourLink {
    /// What it carries in one direction.
    pub bytes_per_second: u64,
    /// What a packet has beside its data.
    pub packet_header: u64,
    /// From one GPU to another.
    pub latency: Duration,
}

/// What is known of the pages of one tree beside what the tree says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Around {
    /// Pages that each other GPU has.
    pub held: BTreeMap<u32, PageSet>,
    /// Pages that are here and that others have copies of.
    pub shared: PageSet,
    /// Pages that are better elsewhere: on another GPU, or on the host.
    preferred: BTreeMap<Option<u32>, PageSet>,
}

impl Around {
    /// The first of the other GPUs that has a page.
    fn holder(&self, index: u32) -> Option<u32> {
        let mut held = self.held.iter();
        held.find(|(_, pages)| pages.contains(index))
            .map(|(gpu, _)| *gpu)
    }

    /// Pages that others have.
    fn elsewhere(&self) -> PageSet {
        let held = self.held.values();
        held.fold(PageSet::EMPTY, |all, pages| all | *pages)
    }
}

/// Everything that concerns the other GPUs of a node.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Neighbours {
    link: NeighbourLink,
    /// When the link to the others carries nothing more of accesses to single lines.
    link_free_at: u64,
    /// Transfers that wait for frames, and then are claimed.
    pub waiting: Channel,
    /// What is claimed and has not come, by number.
    pub claims: BTreeMap<u64, Claim>,
    pub next_claim: u64,
    /// Pages that may come and have not, by tree.
    pub granted: BTreeMap<u64, PageSet>,
    /// Pages that others claim and that were not given yet.
    pub recalls: Vec<Recall>,
    pub around: BTreeMap<u64, Around>,
    /// What the directory was not told yet.
    pub news: Vec<News>,
    pub stats: NeighbourStats,
}

impl Neighbours {
    /// Pages leave for the host.
    pub(super) fn leaving(&mut self, tree: u64, pages: PageSet) {
        if let Some(around) = self.around.get_mut(&tree) {
            around.shared -= pages;
        }
        self.news.push(News::Leaving { tree, pages });
    }

    /// Pages have come to the host.
    pub(super) fn left(&mut self, tree: u64, pages: PageSet) {
        self.news.push(News::Left { tree, pages });
    }

    /// Of what an entry could cover around a page, as much as may be written like the page itself.
    pub(super) fn mapping(&self, space: &Space, page: u64, size: PageSize) -> PageSize {
        let shared = space
            .shape(page)
            .and_then(|(first, _)| Some((first, self.around.get(&first)?.shared)));
        let Some((first, shared)) = shared.filter(|(_, shared)| !shared.is_empty()) else {
            return size;
        };
        let index = (page - first) as u32;
        let alike = |size: &&PageSize| {
            let pages = size.pages() as u32;
            let inside = shared.count_in(index / pages * pages, pages);
            inside == 0 || inside == pages
        };
        let fits = PageSize::ALL.iter().rev().filter(|other| **other <= size);
        fits.copied()
            .find(|size| alike(&size))
            .unwrap_or(PageSize::Small)
    }
}

impl Gmmu {
    /// Makes it that of one of several GPUs of a node: pages come only after they were claimed.
    pub fn join_node(&mut self, link: NeighbourLink) {
        self.state.neighbours = Some(Box::new(Neighbours {
            link,
            link_free_at: 0,
            waiting: Channel::default(),
            claims: BTreeMap::new(),
            next_claim: 0,
            granted: BTreeMap::new(),
            recalls: Vec::new(),
            around: BTreeMap::new(),
            news: Vec::new(),
            stats: NeighbourStats::default(),
        }));
    }

    /// What it counted of the other GPUs, if there are any.
    #[must_use]
    pub fn neighbour_stats(&self) -> Option<&NeighbourStats> {
        let neighbours = self.state.neighbours.as_deref()?;
        Some(&neighbours.stats)
    }

    /// Whether there is something that the directory was not told.
    #[must_use]
    pub fn has_news(&self) -> bool {
        let neighbours = self.state.neighbours.as_deref();
        neighbours.is_some_and(|neighbours| !neighbours.news.is_empty())
    }

    /// What the directory is to be told, in the order in which it happened.
    pub fn take_news(&mut self) -> Vec<News> {
        match &mut self.state.neighbours {
            Some(neighbours) => std::mem::take(&mut neighbours.news),
            None => Vec::new(),
        }
    }

    /// Whether pages are claimed that somebody else has to let come.
    #[must_use]
    pub fn waits_for_neighbours(&self) -> bool {
        let neighbours = self.state.neighbours.as_deref();
        neighbours.is_some_and(|neighbours| !neighbours.claims.is_empty())
    }

    /// Whether others wait for pages of this GPU.
    #[must_use]
    pub fn owes_pages(&self) -> bool {
        let neighbours = self.state.neighbours.as_deref();
        neighbours.is_some_and(|neighbours| !neighbours.recalls.is_empty())
    }

    /// Another GPU has pages, or has them no longer.
    pub fn placed(&mut self, placed: &Placed) {
        let state = &mut *self.state;
        let Some(neighbours) = &mut state.neighbours else {
            return;
        };
        let around = neighbours.around.entry(placed.tree).or_default();
        let held = around.held.entry(placed.gpu).or_default();
        if !placed.here {
            *held -= placed.pages;
            return;
        }
        *held |= placed.pages;
        if let Some(tree) = state.space.tree_mut(placed.tree) {
            tree.untouched -= placed.pages;
        }
    }

    /// Takes advice about where pages are better.
    pub(super) fn prefer(&mut self, address: u64, bytes: u64, advice: Advice) {
        let place = match advice {
            Advice::PreferredHost => Some(None),
            Advice::PreferredNeighbour(gpu) => Some(Some(gpu)),
            Advice::PreferredDevice | Advice::PreferredNone => None,
            Advice::ReadMostly(_) | Advice::AccessedBy(_) => return,
        };
        let mut parts = Vec::new();
        self.each_tree(address, bytes, |tree, pages| {
            parts.push((tree.first, pages));
        });
        let Some(neighbours) = &mut self.state.neighbours else {
            return;
        };
        for (tree, pages) in parts {
            let around = neighbours.around.entry(tree).or_default();
            for preferred in around.preferred.values_mut() {
                *preferred -= pages;
            }
            if let Some(place) = place {
                *around.preferred.entry(place).or_default() |= pages;
            }
        }
    }

    /// Pages of a tree that are elsewhere, where they are preferred: nothing brings them along.
    pub(super) fn preferred_elsewhere(&self, tree: u64) -> PageSet {
        let neighbours = self.state.neighbours.as_deref();
        let Some(around) = neighbours.and_then(|one| one.around.get(&tree)) else {
            return PageSet::EMPTY;
        };
        let mut all = PageSet::EMPTY;
        for (place, pages) in &around.preferred {
            all |= match place {
                Some(gpu) => *pages & around.held.get(gpu).copied().unwrap_or_default(),
                None => *pages - around.elsewhere(),
            };
        }
        all
    }

    /// Whether a page that is here is not to be written without asking.
    pub(super) fn is_read_only(&self, page: u64) -> bool {
        let Some(neighbours) = self.state.neighbours.as_deref() else {
            return false;
        };
        let Some((first, _)) = self.state.space.shape(page) else {
            return false;
        };
        let around = neighbours.around.get(&first);
        around.is_some_and(|around| around.shared.contains((page - first) as u32))
    }

    /// Whether another GPU has a page.
    pub(super) fn is_on_neighbour(&self, page: u64) -> bool {
        let Some(neighbours) = self.state.neighbours.as_deref() else {
            return false;
        };
        let around = |(first, _)| Some((first, neighbours.around.get(&first)?));
        let around = self.state.space.shape(page).and_then(around);
        around.is_some_and(|(first, around)| around.holder((page - first) as u32).is_some())
    }

    /// The GPU, or the host, on which an access uses a page that is not here; none if it is to come.
    pub(super) fn used_elsewhere(&mut self, pending: Pending) -> Option<Option<u32>> {
        let state = &mut *self.state;
        let neighbours = state.neighbours.as_deref()?;
        let (tree, index) = state.space.find(pending.page)?;
        let around = neighbours.around.get(&tree.first)?;
        // Copies of pages that are mostly read come here.
        if tree.duplicated.contains(index) && !pending.write {
            return None;
        }
        let place = around.holder(index);
        let preferred = around.preferred.get(&place);
        let is_preferred = preferred.is_some_and(|pages| pages.contains(index));
        (is_preferred || tree.remote.contains(index)).then_some(place)
    }

    /// Makes an access over the link to another GPU.
    pub(super) fn remote_neighbour(&mut self, pending: Pending, now: u64) {
        let bytes = u64::from(pending.sectors.max(1)) * SECTOR;
        let Some(neighbours) = &mut self.state.neighbours else {
            return;
        };
        let stats = &mut neighbours.stats;
        stats.zero_copy.add(bytes);
        if pending.write {
            stats.remote_writes.increment();
        } else {
            stats.remote_reads.increment();
        }
        let link = neighbours.link;
        let moved = bytes + link.packet_header * bytes.div_ceil(LINE);
        let femtoseconds = u128::from(moved) * 1_000_000_000_000_000;
        let carried = femtoseconds / u128::from(link.bytes_per_second.max(1));
        let carried = Duration(u64::try_from(carried).unwrap_or(u64::MAX / 4));
        let begin = now.max(neighbours.link_free_at);
        let free = begin + self.settings.cycles(carried);
        neighbours.link_free_at = free;
        let there_and_back = self.settings.cycles(link.latency + link.latency);
        let Pending { sm, page, .. } = pending;
        self.at(free + there_and_back, Event::RemoteDone { sm, page });
    }
}
