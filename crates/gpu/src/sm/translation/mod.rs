//! What an SM does for managed memory: looks up pages in its uTLB, and keeps accesses back whose
//! page has no translation yet.
//!
//! An access that waits holds its transaction open, so a warp runs on until it needs the value, and
//! a block ends only when its stores have found their pages.
//!
//! Start reading at [`Translation::admit`]; what the GMMU answers comes in `messages.rs`. Memory that is
//! not managed is translated in `device.rs`.

pub mod deferred;
pub mod device;
mod messages;

use std::collections::BTreeMap;
use std::ops::Range;

use lockstep_engine::{LinkId, Outbox, PartitionId};
use lockstep_units::{Bytes, Time};
use lockstep_uvm::{Lookup, MicroTlb, Scope};
use serde::{Deserialize, Serialize};

use crate::memory::PAGE;
use crate::message::Message;
use deferred::{Deferred, fault_entries, lines_of_first_instruction};

/// Where requests go, and what is managed.
#[derive(Clone, Debug)]
pub struct TranslationWiring {
    /// SM to GMMU.
    pub link: LinkId,
    /// The GMMU.
    pub gmmu: PartitionId,
    /// Managed addresses.
    pub managed: Range<u64>,
    /// The uTLB, to be cloned.
    pub translator: MicroTlb,
    /// Whether a new launch finds an empty uTLB.
    pub flush_on_launch: bool,
    /// Whether all accesses that wait for a page on the host are told.
    pub every_warp: bool,
}

/// The translation side of an SM.
#[derive(Debug)]
pub struct Translation {
    wiring: TranslationWiring,
    /// The uTLB.
    pub translator: MicroTlb,
    deferred: BTreeMap<u64, Vec<Deferred>>,
    /// Entries of the fault buffer that the GMMU was told of, by page, if all are to be told.
    told: BTreeMap<u64, usize>,
    /// Since when no memory instruction may issue.
    full_since: Option<u64>,
}

/// [`Translation`] as it is saved.
#[derive(Serialize, Deserialize)]
pub struct Saved {
    translator: MicroTlb,
    deferred: BTreeMap<u64, Vec<Deferred>>,
    told: BTreeMap<u64, usize>,
    full_since: Option<u64>,
}

/// When something is asked and by which warp, and what a message takes besides its contents.
#[derive(Clone, Copy)]
pub struct Moment {
    /// Warp slot.
    pub warp: u8,
    /// SM cycle.
    pub cycle: u64,
    /// When its edge falls.
    pub time: Time,
    /// Bytes around the payload of a packet.
    pub header: u64,
}

impl Translation {
    /// An empty uTLB.
    #[must_use]
    pub fn new(wiring: TranslationWiring) -> Self {
        Self {
            translator: wiring.translator.clone(),
            wiring,
            deferred: BTreeMap::new(),
            told: BTreeMap::new(),
            full_since: None,
        }
    }

    /// For saving.
    #[must_use]
    pub fn saved(&self) -> Saved {
        Saved {
            translator: self.translator.clone(),
            deferred: self.deferred.clone(),
            told: self.told.clone(),
            full_since: self.full_since,
        }
    }

    /// Takes on what was saved.
    pub fn restore(&mut self, saved: Saved) {
        self.translator = saved.translator;
        (self.deferred, self.told) = (saved.deferred, saved.told);
        self.full_since = saved.full_since;
    }

    /// Whether the uTLB has no room for another miss.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.full_since.is_some()
    }

    /// A new launch: the page-table base may be another.
    pub fn start_launch(&mut self) {
        if self.wiring.flush_on_launch {
            self.translator.shoot_down(Scope::Whole);
        }
    }

    /// Whether an address is that of managed memory.
    #[must_use]
    #[inline]
    pub fn is_managed(&self, address: u64) -> bool {
        address.wrapping_sub(self.wiring.managed.start)
            < self.wiring.managed.end - self.wiring.managed.start
    }

    /// Whether an access to an address may go on; asks for its translation if not.
    #[inline]
    pub fn admit(
        &mut self,
        address: u64,
        write: bool,
        sectors: u8,
        accesses: impl FnOnce() -> usize,
        moment: Moment,
        outbox: &mut Outbox<'_, Message>,
    ) -> bool {
        if !self.is_managed(address) {
            return true;
        }
        let page = address / PAGE;
        let message = match self.translator.look_up(page, write, moment.cycle) {
            Lookup::Hit { report_use: false } => return true,
            Lookup::Hit { report_use: true } => Message::Used { page, write },
            Lookup::Merged => return false,
            Lookup::Miss => {
                let mut accesses = accesses();
                if self.wiring.every_warp {
                    accesses = if write {
                        accesses
                    } else {
                        accesses.div_ceil(2)
                    };
                    self.told.insert(page, accesses);
                }
                Message::Translate {
                    page,
                    write,
                    sectors,
                    accesses: few(accesses),
                    warp: moment.warp,
                }
            }
        };
        let goes_on = matches!(message, Message::Used { .. });
        self.send(message, moment, outbox);
        goes_on
    }

    /// Keeps an access back until its page has a translation.
    pub fn defer(
        &mut self,
        page: u64,
        access: Deferred,
        moment: Moment,
        outbox: &mut Outbox<'_, Message>,
    ) {
        self.deferred.entry(page).or_default().push(access);
        self.tell_again(page, moment, outbox);
    }

    /// Tells of accesses that have come to wait for a page since it was said to be on the host.
    fn tell_again(&mut self, page: u64, moment: Moment, outbox: &mut Outbox<'_, Message>) {
        if !self.wiring.every_warp || !self.translator.has_faulted(page) {
            return;
        }
        let waiting = self.deferred.get(&page);
        let all = waiting.map_or(0, |waiting| fault_entries(waiting));
        let told = self.told.entry(page).or_default();
        if all > *told {
            let message = Message::Again {
                page,
                write: self.translator.wants_write(page),
                entries: few(all - *told),
            };
            *told = all;
            self.send(message, moment, outbox);
        }
    }

    /// The driver has asked for a replay: a page that still waits is asked for again. `warp_of` says
    /// which warp a transaction belongs to.
    fn replay(
        &mut self,
        page: u64,
        warp_of: impl FnOnce(u32) -> u8,
        mut moment: Moment,
        outbox: &mut Outbox<'_, Message>,
    ) {
        if !self.translator.replay(page) {
            return;
        }
        let waiting = self.deferred.get(&page).map_or(&[][..], Vec::as_slice);
        let accesses = if self.wiring.every_warp {
            let all = fault_entries(waiting);
            self.told.insert(page, all);
            all
        } else {
            lines_of_first_instruction(waiting)
        };
        moment.warp = match waiting.first() {
            Some(Deferred::Strong { warp, .. }) => *warp,
            Some(weak) => weak.transaction().map_or(0, warp_of),
            None => 0,
        };
        let message = Message::Translate {
            page,
            write: self.translator.wants_write(page),
            sectors: 4,
            accesses: few(accesses),
            warp: moment.warp,
        };
        self.send(message, moment, outbox);
    }

    /// Takes out what waits for a page.
    fn take_deferred(&mut self, page: u64) -> Vec<Deferred> {
        self.told.remove(&page);
        self.deferred.remove(&page).unwrap_or_default()
    }

    /// Whether the uTLB is full now, and whether it was before and is no longer.
    pub fn update_full(&mut self, cycle: u64) -> (bool, bool) {
        let full = self.translator.is_full();
        let mut opened = false;
        match (self.full_since, full) {
            (None, true) => self.full_since = Some(cycle),
            (Some(since), false) => {
                let blocked = cycle.saturating_sub(since);
                self.translator.stats.blocked.add(blocked);
                self.full_since = None;
                opened = true;
            }
            _ => {}
        }
        (full, opened)
    }

    fn send(&self, message: Message, moment: Moment, outbox: &mut Outbox<'_, Message>) {
        let TranslationWiring { link, gmmu, .. } = self.wiring;
        outbox.send(link, gmmu, moment.time, Bytes(moment.header), message);
    }
}

/// A number of accesses as it is told: nobody needs to know of more.
#[must_use]
pub fn few(accesses: usize) -> u8 {
    accesses.min(usize::from(u8::MAX)) as u8
}
