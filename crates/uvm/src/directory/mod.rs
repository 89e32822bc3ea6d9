//! Where the managed pages of a node are: on the host, on GPUs of it, or on the way.
//!
//! The GMMU of each GPU knows its own pages. What it wants beside them it claims here; the
//! directory asks those back that other GPUs hold, has them carried over the links between the
//! GPUs, and says when they are there. Claims for a page are served in the order in which they
//! came, and a page that is under way is nobody else's before it has arrived.
//!
//! Modelled: one place for each page, or several copies of pages that are mostly read; claims that
//! wait for each other; pages on their way to the host.
//! Left out: what the lock of the driver for 2 MiB costs, and copies for the host (a read by the
//! host moves a page that it has no copy of).
//!
//! | file | what |
//! |---|---|
//! | `claims.rs` | how claims are served |
//! | `host.rs` | what the program and the host do to pages |
//!
//! Start reading at [`Directory::take`].

mod claims;
mod host;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Range;

use crate::geometry::LARGE_PAGES;
use crate::news::{Carry, ClaimId, News, Order, Placed};
use crate::page_set::PageSet;
use crate::space::Space;

/// Where the pages of one tree are.
#[derive(Clone, Debug)]
struct Places {
    /// Nobody has touched them.
    untouched: PageSet,
    /// The host has a copy.
    host: PageSet,
    /// Each GPU has a copy, or will have it.
    held: Vec<PageSet>,
    /// Asked back, or on the way between two GPUs.
    moving: PageSet,
    /// On the way to the host.
    leaving: PageSet,
    /// May have several copies.
    read_mostly: PageSet,
}

impl Places {
    /// Pages that some GPU has.
    fn on_gpus(&self) -> PageSet {
        let all = self.held.iter().copied();
        all.fold(PageSet::EMPTY, |all, held| all | held)
    }

    /// Pages of the host that it cannot use without being noticed.
    fn away(&self) -> PageSet {
        let everything = PageSet::range(0, LARGE_PAGES);
        (everything - self.host) | (self.read_mostly & self.on_gpus())
    }
}

/// Pages that a GPU wants.
#[derive(Clone, Debug)]
struct Claim {
    id: ClaimId,
    tree: u64,
    /// Those that were not granted and are not on their way.
    left: PageSet,
    /// Those that are to be written.
    written: PageSet,
    /// Those that others were asked for and have not given.
    asked: Vec<(u32, PageSet)>,
    /// Those that others had and gave.
    given: Vec<(u32, PageSet)>,
}

impl Claim {
    /// Pages that somebody was asked for and has not given.
    fn outstanding(&self) -> PageSet {
        let asked = self.asked.iter().map(|(_, pages)| *pages);
        asked.fold(PageSet::EMPTY, |all, pages| all | pages)
    }
}

/// Pages on the way between two GPUs.
#[derive(Clone, Copy, Debug)]
struct Carried {
    claim: ClaimId,
    tree: u64,
    pages: PageSet,
    /// Whether they are copies.
    shared: bool,
}

/// Where the managed pages of a node are.
#[derive(Clone, Debug)]
pub struct Directory {
    gpus: Range<u32>,
    zero_fill: bool,
    packing: bool,
    /// Allocations and the shapes of their trees; where pages are is in `places`.
    space: Space,
    places: BTreeMap<u64, Places>,
    /// In the order in which they came.
    claims: Vec<Claim>,
    carries: BTreeMap<u64, Carried>,
    next_carry: u64,
    orders: Vec<(u32, Order)>,
    to_carry: Vec<Carry>,
    placed: Vec<Placed>,
}

impl Directory {
    /// That of some GPUs, without managed memory. What is allocated is on the host, or with
    /// `zero_fill` nowhere until somebody touches it.
    #[must_use]
    pub fn new(gpus: Range<u32>, zero_fill: bool, packing: bool) -> Self {
        Self {
            gpus,
            zero_fill,
            packing,
            space: Space::new(zero_fill),
            places: BTreeMap::new(),
            claims: Vec::new(),
            carries: BTreeMap::new(),
            next_carry: 0,
            orders: Vec::new(),
            to_carry: Vec::new(),
            placed: Vec::new(),
        }
    }

    /// Takes what a GPU tells.
    pub fn take(&mut self, gpu: u32, news: News) {
        match news {
            News::Wanted {
                claim: number,
                tree,
                pages,
                written,
            } => {
                self.claims.push(Claim {
                    id: ClaimId { gpu, number },
                    tree,
                    left: pages,
                    written,
                    asked: Vec::new(),
                    given: Vec::new(),
                });
                self.serve(tree);
            }
            News::Given {
                by,
                tree,
                pages,
                had,
            } => self.given(gpu, by, tree, (pages, had)),
            News::Leaving { tree, pages } => {
                self.release(gpu, tree, pages);
                let places = self.places_of(tree);
                places.host |= pages;
                places.leaving |= pages;
            }
            News::Left { tree, pages } => {
                self.places_of(tree).leaving -= pages;
                self.serve(tree);
            }
            News::GivenUp { claim, tree, pages } => self.give_up(gpu, claim, tree, pages),
        }
    }

    /// What GPUs are to be told, in the order in which it was said.
    pub fn orders(&mut self) -> Vec<(u32, Order)> {
        std::mem::take(&mut self.orders)
    }

    /// What is to be carried between GPUs from now on.
    pub fn to_carry(&mut self) -> Vec<Carry> {
        std::mem::take(&mut self.to_carry)
    }

    /// What all other GPUs are to know of where pages are.
    pub fn placed(&mut self) -> Vec<Placed> {
        std::mem::take(&mut self.placed)
    }

    /// Everything that GPUs have, for one that is new.
    pub fn everything_placed(&self) -> Vec<Placed> {
        let mut all = Vec::new();
        for (tree, places) in &self.places {
            for (gpu, held) in self.gpus.clone().zip(&places.held) {
                if !held.is_empty() {
                    all.push(Placed {
                        gpu,
                        tree: *tree,
                        pages: *held,
                        here: true,
                    });
                }
            }
        }
        all
    }

    /// The place of a GPU among those of the node.
    fn slot(&self, gpu: u32) -> usize {
        (gpu - self.gpus.start) as usize
    }

    fn places_of(&mut self, tree: u64) -> &mut Places {
        let (gpus, zero_fill) = (self.gpus.len(), self.zero_fill);
        let everything = PageSet::range(0, LARGE_PAGES);
        let (untouched, host) = match zero_fill {
            true => (everything, PageSet::EMPTY),
            false => (PageSet::EMPTY, everything),
        };
        self.places.entry(tree).or_insert_with(|| Places {
            untouched,
            host,
            held: vec![PageSet::EMPTY; gpus],
            moving: PageSet::EMPTY,
            leaving: PageSet::EMPTY,
            read_mostly: PageSet::EMPTY,
        })
    }

    /// A GPU has pages, or will have them.
    fn hold(&mut self, gpu: u32, tree: u64, pages: PageSet) {
        let slot = self.slot(gpu);
        let places = self.places_of(tree);
        places.untouched -= pages;
        places.held[slot] |= pages;
        self.place(gpu, tree, pages, true);
    }

    /// A GPU has them no longer.
    fn release(&mut self, gpu: u32, tree: u64, pages: PageSet) {
        let slot = self.slot(gpu);
        let held = &mut self.places_of(tree).held[slot];
        let gone = *held & pages;
        *held -= pages;
        self.place(gpu, tree, gone, false);
    }

    fn place(&mut self, gpu: u32, tree: u64, pages: PageSet, here: bool) {
        if !pages.is_empty() {
            self.placed.push(Placed {
                gpu,
                tree,
                pages,
                here,
            });
        }
    }
}
