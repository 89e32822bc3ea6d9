//! The translation side of one SM: its TLB and the misses under way.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::geometry::PageSize;
use crate::statistics::TlbStats;
use crate::tlb::{Found, Scope, Tlb};

/// How a lookup went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// The translation is here; the GMMU should hear of the use if the flag is set.
    Hit {
        /// Whether to tell.
        report_use: bool,
    },
    /// It is asked for already.
    Merged,
    /// It has to be asked for.
    Miss,
}

/// A miss under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Miss {
    since: u64,
    /// Whether something waits to write.
    write: bool,
    /// When it turned out to be a far fault.
    faulted: Option<u64>,
}

/// TLB and misses of one SM.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MicroTlb {
    tlb: Tlb,
    misses: BTreeMap<u64, Miss>,
    most: usize,
    /// Whether a far fault stops the TLB.
    stalls: bool,
    /// Pages that stop it.
    stalled: u32,
    interval: u64,
    /// Its statistics.
    pub stats: TlbStats,
}

impl MicroTlb {
    /// An empty one: entries and ways of the TLB, misses under way, cycles between two words
    /// about one page, and whether a far fault stops the TLB.
    #[must_use]
    pub fn new(entries: u32, ways: u32, misses: u32, interval: u64, stalls: bool) -> Self {
        Self {
            tlb: Tlb::new(entries, ways),
            misses: BTreeMap::new(),
            most: misses as usize,
            stalls,
            stalled: 0,
            interval,
            stats: TlbStats::default(),
        }
    }

    /// Whether no further access may begin.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.stalled > 0 || self.misses.len() >= self.most
    }

    /// Looks up a page.
    #[inline]
    pub fn look_up(&mut self, page: u64, write: bool, now: u64) -> Lookup {
        self.stats.accesses.increment();
        if let Some(found) = self.tlb.find(page)
            && !(write && self.forbids_write(page, found))
        {
            self.stats.hits.increment();
            let report_use = self.tlb.should_report_use(found, write, now, self.interval);
            return Lookup::Hit { report_use };
        }
        if let Some(miss) = self.misses.get_mut(&page) {
            miss.write |= write;
            self.stats.merged.increment();
            return Lookup::Merged;
        }
        self.misses.insert(
            page,
            Miss {
                since: now,
                write,
                faulted: None,
            },
        );
        Lookup::Miss
    }

    /// Whether a page is not to be written without asking. Its entry then goes: a write asks anew.
    fn forbids_write(&mut self, page: u64, found: Found) -> bool {
        let forbids = self.tlb.is_read_only(found);
        if forbids {
            self.tlb.shoot_down(Scope::Pages {
                first: page,
                count: 1,
            });
        }
        forbids
    }

    /// Whether somebody waits to write to a page that is asked for.
    #[must_use]
    pub fn wants_write(&self, page: u64) -> bool {
        self.misses.get(&page).is_some_and(|miss| miss.write)
    }

    /// The page turned out to be on the host; the request is to be made again when reported.
    pub fn nack(&mut self, page: u64, now: u64) {
        if let Some(miss) = self.misses.get_mut(&page)
            && miss.faulted.is_none()
        {
            miss.faulted = Some(now);
            self.stats.far_faults.increment();
            self.stalled += u32::from(self.stalls);
        }
    }

    /// Whether a page that is asked for was said to be on the host.
    #[must_use]
    pub fn has_faulted(&self, page: u64) -> bool {
        let miss = self.misses.get(&page);
        miss.is_some_and(|miss| miss.faulted.is_some())
    }

    /// The page is there: whether to ask again.
    #[must_use]
    pub fn replay(&mut self, page: u64) -> bool {
        let known = self.misses.contains_key(&page);
        self.stats.replays.add(u64::from(known));
        known
    }

    /// The translation came; with no size, the access was made over the link and leaves nothing
    /// here. Says whether somebody waited.
    pub fn fill(&mut self, page: u64, size: Option<PageSize>, read_only: bool, now: u64) -> bool {
        let Some(miss) = self.misses.remove(&page) else {
            return false;
        };
        let waited = now.saturating_sub(miss.since);
        match miss.faulted {
            Some(_) => {
                self.stalled -= u32::from(self.stalls);
                self.stats.fault_wait.add(waited);
            }
            None => self.stats.walk_wait.add(waited),
        }
        if let Some(size) = size
            && self.tlb.insert(page, size, miss.write, now)
        {
            self.stats.evictions.increment();
        }
        if read_only {
            self.tlb.protect(page);
        }
        true
    }

    /// Removes entries.
    pub fn shoot_down(&mut self, scope: Scope) {
        let removed = self.tlb.shoot_down(scope);
        self.stats.shootdowns.increment();
        self.stats.shot_down.add(u64::from(removed));
    }

    /// Misses under way.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.misses.len()
    }
}
