//! What programs ask for: memory, prefetches, advice, the host's own accesses.

use lockstep_units::Duration;
use serde::{Deserialize, Serialize};

use super::{Event, FarFault, Gmmu, Output};
use crate::channel::{Channel, Migration, NO_CLAIM};
use crate::geometry::PAGE;
use crate::log::Cause;
use crate::page_set::PageSet;
use crate::prefetch::tree_driver::neighbours;
use crate::split::{Split, split};
use crate::tlb::Scope;
use crate::tree::TakenBack;

/// What a program says about its use of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Advice {
    /// Mostly read: the host keeps its copy.
    ReadMostly(bool),
    /// Better on the host: the device uses it over the link.
    PreferredHost,
    /// Better on the device.
    PreferredDevice,
    /// Better on another GPU of the node: while it is there, it is used over the link.
    PreferredNeighbour(u32),
    /// Nowhere in particular.
    PreferredNone,
    /// The device is to reach it without faults, wherever it is.
    AccessedBy(bool),
}

/// A request of the program that takes time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ProgramRequest {
    what: What,
    /// The next page to look at.
    cursor: u64,
    end: u64,
    /// Transfers that are not complete.
    left: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum What {
    ToDevice,
    ToHost,
    /// Pages of one tree that the host's fault moves.
    HostFault {
        tree: u64,
        pages: PageSet,
    },
    Flush,
    /// Nothing moves: the host finds memory for pages that nobody has touched.
    Populate,
}

impl Gmmu {
    /// Adds managed memory; its pages are on the host.
    pub fn map_memory(&mut self, address: u64, bytes: u64) {
        let packing = self.settings.config.packing;
        self.state.space.add(address, bytes, packing);
        // The host has nothing of it yet.
        self.state.changes += u64::from(self.settings.config.first_touch == "zero-fill");
    }

    /// The host has memory of its own for these pages.
    pub fn populate(&mut self, address: u64, bytes: u64) {
        if self.settings.config.first_touch == "zero-fill" {
            self.each_tree(address, bytes, |tree, pages| tree.untouched -= pages);
        }
    }

    /// Removes managed memory; nothing is written back. Nothing may use it any more.
    pub fn unmap_memory(&mut self, address: u64) {
        let now = self.state.now;
        if let Some((tree, pages)) = self.state.space.unmap_shared(address) {
            self.drop_pages(tree, pages, now);
            return;
        }
        let trees = self.state.space.unmap(address);
        let state = &mut *self.state;
        for tree in &trees {
            let held = tree.device | tree.leaving;
            state.used -= u64::from(held.count()).min(state.used);
            for index in tree.incoming.iter() {
                state.faults.remove(&(tree.first + u64::from(index)));
            }
            if let Some((migration, _)) = &mut state.to_device.busy
                && migration.tree == tree.first
            {
                // Frames of a claim go with it.
                if migration.claim == NO_CLAIM {
                    state.used -= u64::from(migration.pages.count()).min(state.used);
                }
                migration.pages = PageSet::EMPTY;
            }
            if let Some((migration, _)) = &mut state.to_host.busy
                && migration.tree == tree.first
            {
                migration.pages = PageSet::EMPTY;
            }
        }
        for tree in &trees {
            self.forget_claims(tree.first, PageSet::range(0, tree.pages), now);
        }
        for tree in trees.iter().filter(|tree| !tree.device.is_empty()) {
            let (first, count) = (tree.first, tree.pages);
            if let Some(shared) = &mut self.state.shared {
                shared.shoot_down(Scope::Pages { first, count });
            }
            self.emit(now, Output::ShootDown(Scope::Pages { first, count }));
        }
    }

    /// Forgets pages of a tree whose other pages stay.
    fn drop_pages(&mut self, first: u64, pages: PageSet, now: u64) {
        self.forget_claims(first, pages, now);
        let state = &mut *self.state;
        let Some(tree) = state.space.tree_mut(first) else {
            return;
        };
        let held = tree.device & pages;
        state.used -= u64::from(held.count()).min(state.used);
        for set in [
            &mut tree.device,
            &mut tree.untouched,
            &mut tree.staged,
            &mut tree.dirty,
            &mut tree.touched,
            &mut tree.prefetched,
            &mut tree.pinned,
            &mut tree.evicted,
            &mut tree.remote,
            &mut tree.duplicated,
            &mut tree.thrashing,
        ] {
            *set -= pages;
        }
        if !held.is_empty() {
            self.shoot_down(first, held, now);
        }
    }

    /// Gives up everything that is under way, because the kernels that wanted it are gone. Pages
    /// that were moving stay where they came from. Says which requests of the program that ends.
    pub fn abort(&mut self) -> Vec<u64> {
        self.abort_claims();
        let state = &mut *self.state;
        state.events.clear();
        state.faults.clear();
        state.new_faults.clear();
        state.waiting_for_mshr.clear();
        state.buffer.clear();
        state.entries_by_sm.fill(0);
        state.batch = None;
        state.fetch_scheduled = false;
        state.jobs.clear();
        state.to_device = Channel::default();
        state.to_host = Channel::default();
        state.starved = None;
        state.walks = 0;
        state.walk_queue.clear();
        let firsts: Vec<u64> = state.space.trees().map(|tree| tree.first).collect();
        state.used = 0;
        for first in firsts {
            if let Some(tree) = state.space.tree_mut(first) {
                tree.incoming = PageSet::EMPTY;
                tree.leaving = PageSet::EMPTY;
                tree.staged = PageSet::EMPTY;
                tree.pinned = PageSet::EMPTY;
                state.used += u64::from(tree.device.count());
            }
        }
        self.outputs.clear();
        std::mem::take(&mut self.state.programs)
            .into_keys()
            .collect()
    }

    /// Takes advice.
    pub fn advise(&mut self, address: u64, bytes: u64, advice: Advice) {
        if self.state.neighbours.is_some() {
            self.prefer(address, bytes, advice);
        }
        let several = self.state.neighbours.is_some();
        self.each_tree(address, bytes, |tree, pages| match advice {
            Advice::ReadMostly(true) => tree.duplicated |= pages,
            Advice::ReadMostly(false) => tree.duplicated -= pages,
            // With neighbours a preferred place counts only while the page is there.
            Advice::PreferredHost if several => {}
            Advice::PreferredDevice | Advice::PreferredNone if several => {}
            Advice::PreferredNeighbour(_) => {}
            Advice::PreferredHost | Advice::AccessedBy(true) => tree.remote |= pages,
            Advice::PreferredDevice | Advice::PreferredNone | Advice::AccessedBy(false) => {
                tree.remote -= pages;
            }
        });
    }

    pub(super) fn each_tree(
        &mut self,
        address: u64,
        bytes: u64,
        mut f: impl FnMut(&mut crate::tree::Tree, PageSet),
    ) {
        let (mut page, end) = page_range(address, bytes);
        while page < end {
            let Some((tree, index)) = self.state.space.find(page) else {
                return;
            };
            let count = u64::from(tree.pages - index).min(end - page) as u32;
            f(tree, PageSet::range(index, count));
            page += u64::from(count);
        }
    }

    /// Moves pages because the program asked for it; [`Output::Done`] says when they are there.
    pub fn prefetch(&mut self, now: u64, ticket: u64, address: u64, bytes: u64, to_device: bool) {
        let (cursor, end) = page_range(address, bytes);
        let what = if to_device {
            What::ToDevice
        } else {
            What::ToHost
        };
        if to_device {
            self.each_tree(address, bytes, |tree, pages| tree.remote -= pages);
        }
        let cost = self.settings.config.prefetch.start_cost;
        self.begin(
            now,
            self.settings.cycles(cost),
            ticket,
            ProgramRequest {
                what,
                cursor,
                end,
                left: 0,
            },
        );
    }

    /// The host touches memory: its pages move back, a single one with its neighbours.
    pub fn host_access(&mut self, now: u64, ticket: u64, address: u64, bytes: u64, write: bool) {
        let page = address / PAGE;
        let (first, end) = page_range(address, bytes.max(1));
        let cost = self.settings.cycles(self.settings.config.host_fault);
        if end - first > 1 {
            self.populate(address, bytes);
            // More than one fault brings is asked for by range.
            self.state.stats.host_faults.increment();
            let request = ProgramRequest {
                what: What::ToHost,
                cursor: first,
                end,
                left: 0,
            };
            self.begin(now, cost, ticket, request);
            return;
        }
        let mut moves = None;
        if let Some((tree, index)) = self.state.space.find(page) {
            if tree.untouched.contains(index) {
                // Nobody has touched it: the host gets zeros, and the pages around it.
                tree.untouched -= PageSet::one(index).whole_blocks();
                let cost = self.settings.config.host_populate;
                let request = ProgramRequest {
                    what: What::Populate,
                    cursor: page,
                    end: page,
                    left: 0,
                };
                self.begin(now, self.settings.cycles(cost), ticket, request);
                return;
            }
            let here = tree.device | tree.incoming;
            let reads_copy = tree.duplicated.contains(index) && !write;
            if here.contains(index) && !reads_copy {
                let valid = tree.all() - here;
                let wanted = neighbours(tree.pages, valid, PageSet::one(index), tree.thrashing);
                let pages = (wanted & here) | PageSet::one(index);
                moves = Some((tree.first, pages));
            }
        }
        let Some((tree, pages)) = moves else {
            self.emit(now, Output::Done { ticket });
            return;
        };
        self.state.stats.host_faults.increment();
        let what = What::HostFault { tree, pages };
        self.begin(
            now,
            cost,
            ticket,
            ProgramRequest {
                what,
                cursor: page,
                end: page + 1,
                left: 0,
            },
        );
    }

    /// Brings back everything that was written; what was not stays.
    pub fn flush(&mut self, now: u64, ticket: u64) {
        self.begin(
            now,
            0,
            ticket,
            ProgramRequest {
                what: What::Flush,
                cursor: 0,
                end: 1,
                left: 0,
            },
        );
    }

    fn begin(&mut self, now: u64, cost: u64, ticket: u64, request: ProgramRequest) {
        self.state.programs.insert(ticket, request);
        self.at(now + cost, Event::Program(ticket));
    }

    /// The next part of a request.
    pub(super) fn continue_program(&mut self, ticket: u64, now: u64) {
        let Some(request) = self.state.programs.get(&ticket).cloned() else {
            return;
        };
        let migrations = match request.what {
            What::ToDevice | What::ToHost => self.next_chunk(ticket, &request, now),
            What::HostFault { tree, pages } if request.cursor < request.end => {
                self.advance(ticket, request.end);
                self.host_migrations(tree, pages, request.cursor, ticket, now)
            }
            What::Flush if request.cursor < request.end => {
                self.advance(ticket, request.end);
                self.dirty_migrations(ticket, now)
            }
            What::HostFault { .. } | What::Flush | What::Populate => Vec::new(),
        };
        if migrations.is_empty() {
            self.state.programs.remove(&ticket);
            if matches!(request.what, What::ToDevice | What::ToHost) {
                self.state.stats.user_prefetches.increment();
            }
            self.emit(now, Output::Done { ticket });
            return;
        }
        if let Some(request) = self.state.programs.get_mut(&ticket) {
            request.left = migrations.len() as u32;
        }
        for migration in migrations {
            if request.what == What::ToDevice {
                self.enqueue(migration);
            } else {
                self.state.to_host.push(migration);
            }
        }
    }

    fn advance(&mut self, ticket: u64, to: u64) {
        if let Some(request) = self.state.programs.get_mut(&ticket) {
            request.cursor = to;
        }
    }

    /// A transfer of a request is complete.
    pub(super) fn part_done(&mut self, ticket: u64, now: u64) {
        let Some(request) = self.state.programs.get_mut(&ticket) else {
            return;
        };
        request.left = request.left.saturating_sub(1);
        if request.left == 0 {
            let config = &self.settings.config.prefetch;
            let cost = match request.what {
                What::ToDevice => config.block_cost,
                What::ToHost => config.host_block_cost,
                _ => Duration::ZERO,
            };
            let cost = self.settings.cycles(cost);
            self.at(now + cost, Event::Program(ticket));
        }
    }

    /// The next pages of a prefetch, at most those of one tree.
    fn next_chunk(&mut self, ticket: u64, request: &ProgramRequest, now: u64) -> Vec<Migration> {
        let mut page = request.cursor;
        while page < request.end {
            let Some((tree, index)) = self.state.space.find(page) else {
                break;
            };
            let count = u64::from(tree.pages - index).min(request.end - page) as u32;
            let first = tree.first;
            let fresh = tree.untouched;
            let range = PageSet::range(index, count);
            page += u64::from(count);
            let wanted = if request.what == What::ToDevice {
                range - tree.device - tree.incoming
            } else {
                range & (tree.device - tree.staged)
            };
            for index in (range & tree.staged).iter() {
                self.cancel_eviction(first, index);
            }
            if wanted.is_empty() {
                continue;
            }
            if request.what == What::ToDevice {
                self.expect(first, wanted, now);
            }
            self.advance(ticket, page);
            let migration = |(start, count): &(u32, u32), fill| Migration {
                tree: first,
                pages: PageSet::range(*start, *count),
                cause: Cause::User,
                planned: now,
                ticket,
                claim: NO_CLAIM,
                fill,
            };
            let moved = (wanted - fresh).runs();
            let filled = (wanted & fresh).runs();
            let moved = moved.iter().map(|run| migration(run, false));
            return moved
                .chain(filled.iter().map(|run| migration(run, true)))
                .collect();
        }
        self.advance(ticket, request.end);
        Vec::new()
    }

    /// Pages of a tree are on their way without having been asked for by an SM.
    fn expect(&mut self, first: u64, pages: PageSet, now: u64) {
        if let Some(tree) = self.state.space.tree_mut(first) {
            tree.incoming |= pages;
        }
        for index in pages.iter() {
            let entry = self.state.faults.entry(first + u64::from(index));
            entry.or_insert_with(|| FarFault {
                detected: now,
                sharers: Vec::new(),
                prefetch: true,
                write: false,
            });
        }
    }

    fn host_migrations(
        &mut self,
        tree: u64,
        pages: PageSet,
        page: u64,
        ticket: u64,
        now: u64,
    ) -> Vec<Migration> {
        let faulted = PageSet::one((page - tree) as u32);
        split(pages, faulted, Split::AtCause)
            .iter()
            .map(|transfer| Migration {
                tree,
                pages: PageSet::range(transfer.first, transfer.pages),
                cause: Cause::HostFault,
                planned: now,
                ticket,
                claim: NO_CLAIM,
                fill: false,
            })
            .collect()
    }

    fn dirty_migrations(&mut self, ticket: u64, now: u64) -> Vec<Migration> {
        let mut migrations = Vec::new();
        for tree in self.state.space.trees() {
            for (first, count) in (tree.device & (tree.dirty - tree.staged)).runs() {
                migrations.push(Migration {
                    fill: false,
                    tree: tree.first,
                    pages: PageSet::range(first, count),
                    cause: Cause::Flush,
                    planned: now,
                    ticket,
                    claim: NO_CLAIM,
                });
            }
        }
        migrations
    }

    /// The host took pages back. The device has to wait for those that moved too often, and after
    /// that has happened a number of times they stay on the host for a while.
    pub(super) fn note_thrashing(&mut self, migration: &Migration, now: u64) {
        let config = &self.settings.config.thrash;
        if config.policy != "driver" {
            return;
        }
        let lapse = self.settings.cycles(config.lapse);
        let nap = now + self.settings.cycles(config.nap);
        let pin = now + self.settings.cycles(config.pin);
        let state = &mut *self.state;
        let Some(tree) = state.space.tree_mut(migration.tree) else {
            return;
        };
        if tree.taken_back.is_empty() {
            tree.taken_back = vec![TakenBack::default(); tree.pages as usize];
        }
        for index in migration.pages.iter() {
            let page = migration.tree + u64::from(index);
            let known = &mut tree.taken_back[index as usize];
            let soon = known.last != 0 && now - known.last < lapse;
            known.count = if soon { known.count + 1 } else { 1 };
            known.last = now;
            if known.count < config.threshold {
                continue;
            }
            tree.thrashing.insert(index);
            known.count = 0;
            if known.naps < config.pin_threshold {
                known.naps += 1;
                state.napping.insert(page, nap);
                state.stats.thrash_waits.increment();
            } else {
                state.held_on_host.insert(page, pin);
                state.stats.thrash_pinned.increment();
            }
        }
    }
}

/// The pages that some bytes lie in.
fn page_range(address: u64, bytes: u64) -> (u64, u64) {
    let end = address.saturating_add(bytes).div_ceil(PAGE);
    (address / PAGE, end)
}
