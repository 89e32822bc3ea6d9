//! How claims are served.

use super::{Carried, Directory};
use crate::PAGE;
use crate::news::{Carry, ClaimId, Order, Source};
use crate::page_set::PageSet;

impl Directory {
    /// Serves the claims for pages of a tree as far as it can now, those that came first first.
    pub(super) fn serve(&mut self, tree: u64) {
        for index in 0..self.claims.len() {
            if self.claims[index].tree == tree {
                self.serve_one(index);
            }
        }
        self.claims.retain(|claim| !claim.left.is_empty());
    }

    fn serve_one(&mut self, index: usize) {
        let claim = &self.claims[index];
        let (tree, left, written) = (claim.tree, claim.left, claim.written);
        let places = self.places_of(tree);
        let ready = left - places.moving - places.leaving;
        let copied = ready & (places.read_mostly - written);
        self.copy(index, copied);
        self.claim_alone(index, ready - copied);
    }

    /// Gives copies of pages; those who have them keep theirs.
    fn copy(&mut self, index: usize, pages: PageSet) {
        if pages.is_empty() {
            return;
        }
        let (id, tree) = (self.claims[index].id, self.claims[index].tree);
        let own = self.slot(id.gpu);
        let held = self.places_of(tree).held.clone();
        let mut rest = pages - held[own];
        self.grant(index, pages & held[own], Source::Own, true);
        // Another GPU is nearer than the host.
        for (gpu, held) in self.gpus.clone().zip(held) {
            let here = rest & held;
            if gpu == id.gpu || here.is_empty() {
                continue;
            }
            rest -= here;
            let order = Order::Share { tree, pages: here };
            self.orders.push((gpu, order));
            self.places_of(tree).moving |= here;
            self.carry(index, gpu, here, true);
        }
        let zeros = rest & self.places_of(tree).untouched;
        self.grant(index, zeros, Source::Zeros, false);
        self.grant(index, rest - zeros, Source::Host, true);
    }

    /// Gives pages that nobody else is to have; those that others have are asked back.
    fn claim_alone(&mut self, index: usize, pages: PageSet) {
        if pages.is_empty() {
            return;
        }
        let (id, tree) = (self.claims[index].id, self.claims[index].tree);
        let own = self.slot(id.gpu);
        let held = self.places_of(tree).held.clone();
        let mut elsewhere = PageSet::EMPTY;
        for (gpu, held) in self.gpus.clone().zip(&held) {
            let there = pages & *held;
            if gpu == id.gpu || there.is_empty() {
                continue;
            }
            elsewhere |= there;
            self.claims[index].asked.push((gpu, there));
            let by = id;
            let order = Order::Recall {
                by,
                tree,
                pages: there,
            };
            self.orders.push((gpu, order));
        }
        self.places_of(tree).moving |= elsewhere;
        let free = pages - elsewhere;
        let zeros = (free - held[own]) & self.places_of(tree).untouched;
        self.grant(index, free & held[own], Source::Own, false);
        self.grant(index, zeros, Source::Zeros, false);
        self.grant(index, free - held[own] - zeros, Source::Host, false);
    }

    /// Lets pages of a claim come that no other GPU has to give.
    fn grant(&mut self, index: usize, pages: PageSet, source: Source, shared: bool) {
        if pages.is_empty() {
            return;
        }
        let claim = &mut self.claims[index];
        let (id, tree) = (claim.id, claim.tree);
        claim.left -= pages;
        if !shared {
            self.places_of(tree).host -= pages;
        }
        self.hold(id.gpu, tree, pages);
        let order = Order::Granted {
            claim: id.number,
            pages,
            source,
            shared,
        };
        self.orders.push((id.gpu, order));
    }

    /// Sends pages of a claim, which count as moving, over the links between GPUs.
    fn carry(&mut self, index: usize, from: u32, pages: PageSet, shared: bool) {
        let claim = &mut self.claims[index];
        let (id, tree) = (claim.id, claim.tree);
        claim.left -= pages;
        if !shared {
            self.places_of(tree).host -= pages;
        }
        self.hold(id.gpu, tree, pages);
        let number = self.next_carry;
        self.next_carry += 1;
        let carried = Carried {
            claim: id,
            tree,
            pages,
            shared,
        };
        self.carries.insert(number, carried);
        self.to_carry.push(Carry {
            number,
            from,
            to: id.gpu,
            bytes: u64::from(pages.count()) * PAGE,
        });
    }

    /// What was carried has arrived: the order that says so, and to whom.
    pub fn carried(&mut self, number: u64) -> Option<(u32, Order)> {
        let Carried {
            claim,
            tree,
            pages,
            shared,
        } = self.carries.remove(&number)?;
        let places = self.places_of(tree);
        places.moving -= pages;
        let unsaved = pages - places.host;
        self.serve(tree);
        let order = Order::Arrived {
            claim: claim.number,
            pages,
            shared,
            unsaved,
        };
        Some((claim.gpu, order))
    }

    /// A GPU has unmapped pages that were claimed; those that nobody else is asked for go on.
    pub(super) fn given(
        &mut self,
        gpu: u32,
        by: ClaimId,
        tree: u64,
        (pages, had): (PageSet, PageSet),
    ) {
        self.release(gpu, tree, pages);
        let Some(index) = self.claims.iter().position(|claim| claim.id == by) else {
            // Nobody wants them any more: they count as the host's.
            let places = self.places_of(tree);
            places.moving -= pages;
            places.host |= had;
            self.serve(tree);
            return;
        };
        let claim = &mut self.claims[index];
        let mut answered = PageSet::EMPTY;
        for (_, asked) in claim.asked.iter_mut().filter(|(who, _)| *who == gpu) {
            answered |= *asked & pages;
            *asked -= pages;
        }
        claim.asked.retain(|(_, asked)| !asked.is_empty());
        claim.given.push((gpu, had & answered));
        self.send_given(index, answered);
        self.serve(tree);
    }

    /// Sends pages of a claim that all who had them have given.
    fn send_given(&mut self, index: usize, answered: PageSet) {
        let claim = &mut self.claims[index];
        let (id, tree) = (claim.id, claim.tree);
        let mut free = answered - claim.outstanding();
        let mut given = std::mem::take(&mut claim.given);
        let own = self.slot(id.gpu);
        let kept = free & self.places_of(tree).held[own];
        self.places_of(tree).moving -= kept;
        self.grant(index, kept, Source::Own, false);
        free -= kept;
        for (from, pages) in &mut given {
            let sent = *pages & free;
            free -= sent;
            *pages -= sent | kept;
            if !sent.is_empty() {
                self.carry(index, *from, sent, false);
            }
        }
        // Others gave the same: the first was as good.
        let answered = answered - self.claims[index].outstanding();
        given.retain_mut(|(_, pages)| {
            *pages -= answered;
            !pages.is_empty()
        });
        self.claims[index].given = given;
        // Nobody had them any more: they are looked for again.
        self.places_of(tree).moving -= free;
    }

    /// A GPU does not want pages any more that have not come.
    pub(super) fn give_up(&mut self, gpu: u32, number: u64, tree: u64, pages: PageSet) {
        let id = ClaimId { gpu, number };
        let mut granted = pages;
        if let Some(index) = self.claims.iter().position(|claim| claim.id == id) {
            let claim = self.claims.remove(index);
            granted -= claim.left;
            let outstanding = claim.outstanding();
            for (_, given) in claim.given {
                let places = self.places_of(tree);
                places.host |= given;
                places.moving -= given - outstanding;
            }
        }
        // Also what is on the way: when it arrives, nobody waits for it.
        self.release(gpu, tree, granted);
        let places = self.places_of(tree);
        places.host |= granted - places.on_gpus();
        self.serve(tree);
    }

    /// Asks a GPU again for everything that it has not given: it may have forgotten.
    pub fn ask_again(&mut self, gpu: u32) {
        for claim in &self.claims {
            for (_, pages) in claim.asked.iter().filter(|(who, _)| *who == gpu) {
                let order = Order::Recall {
                    by: claim.id,
                    tree: claim.tree,
                    pages: *pages,
                };
                self.orders.push((gpu, order));
            }
        }
    }
}
