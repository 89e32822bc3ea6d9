//! One direction of the link: what waits, what is under way.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::log::Cause;
use crate::page_set::PageSet;

/// Pages of one tree that move together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Migration {
    /// First page of the tree.
    pub tree: u64,
    /// Pages of it.
    pub pages: PageSet,
    /// The cause of the migration.
    pub cause: Cause,
    /// When it was planned.
    pub planned: u64,
    /// The request of the program that it belongs to, or `NO_TICKET`.
    pub ticket: u64,
    /// The claim at the directory of the node that it belongs to, which has its frames, or `NO_CLAIM`.
    pub claim: u64,
    /// Whether nothing moves: nobody has touched the pages, and zeros are written on the device.
    pub fill: bool,
}

/// Belongs to no request of the program.
pub const NO_TICKET: u64 = u64::MAX;

/// Belongs to no claim.
pub const NO_CLAIM: u64 = u64::MAX;

/// One direction. What faults want goes before what programs prefetch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Channel {
    first: VecDeque<Migration>,
    later: VecDeque<Migration>,
    /// Pages of all that waits.
    pages: u64,
    /// The migration under way, and the cycle at which it started.
    pub busy: Option<(Migration, u64)>,
    /// When the link carries nothing more: accesses over it count too.
    pub free_at: u64,
}

impl Channel {
    /// Queues a migration.
    pub fn push(&mut self, migration: Migration) {
        self.pages += u64::from(migration.pages.count());
        if migration.cause == Cause::User {
            self.later.push_back(migration);
        } else {
            self.first.push_back(migration);
        }
    }

    /// The migration that goes next.
    #[must_use]
    pub fn head(&self) -> Option<&Migration> {
        self.first.front().or_else(|| self.later.front())
    }

    /// Takes what goes next.
    pub fn pop(&mut self) -> Option<Migration> {
        let migration = self.first.pop_front().or_else(|| self.later.pop_front())?;
        self.pages -= u64::from(migration.pages.count());
        Some(migration)
    }

    /// Pages of all that waits.
    #[must_use]
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// Takes the pages out of the migration that holds a page of a tree; the migration stays, empty.
    pub fn cancel(&mut self, tree: u64, page: u32) -> Option<PageSet> {
        let migration = self
            .first
            .iter_mut()
            .chain(&mut self.later)
            .find(|migration| migration.tree == tree && migration.pages.contains(page))?;
        let pages = std::mem::take(&mut migration.pages);
        self.pages -= u64::from(pages.count());
        Some(pages)
    }

    /// Number of migrations that wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.first.len() + self.later.len()
    }
}
