//! What an SM does for managed memory: looks up pages in its TLB, and keeps accesses back whose
//! page has no translation yet.
//!
//! Values moved at issue, as for every access; what waits here is its time. An access that waits
//! holds its transaction open, so a warp runs on until it needs the value, and a block ends only
//! when its stores have found their pages.
//!
//! Start reading at [`Sm::translate_lines`].

use std::collections::BTreeMap;
use std::ops::Range;

use lockstep_engine::{LinkId, Outbox, PartitionId};
use lockstep_units::{Bytes, Cycle, Time};
use lockstep_uvm::{Lookup, Scope, Translator};
use serde::{Deserialize, Serialize};

use super::{Issue, Sm};
use crate::memory::{LINE, PAGE, SECTOR};
use crate::message::{Message, StrongRequest};
use crate::sm::lsu::l1tex::{Access, LineSet, Manner};
use crate::sm::lsu::port::Port;
use crate::sm::now::Now;

/// Pages beyond which an SM forgets all of L1 rather than line by line.
const MOST_LINE_BY_LINE: u32 = 64;

/// An access that waits for its translation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Deferred {
    /// Sectors of a line to be read.
    Load {
        line: u64,
        sectors: u8,
        transaction: u32,
        past: bool,
    },
    /// Sectors of a line to be written.
    Store {
        line: u64,
        sectors: u8,
        partial: u8,
        transaction: u32,
    },
    /// An access that its slice performs, how many lines of the page its instruction asks for, and
    /// which warp's it is.
    Strong(Box<StrongRequest>, u8, u8),
}

/// Where requests go, and what is managed.
#[derive(Clone, Debug)]
pub struct TranslationWiring {
    /// SM to GMMU.
    pub link: LinkId,
    /// The GMMU.
    pub gmmu: PartitionId,
    /// Managed addresses.
    pub managed: Range<u64>,
    /// The TLB, to be cloned.
    pub translator: Translator,
    /// Whether a new launch finds an empty TLB.
    pub flush_on_launch: bool,
    /// Whether all accesses that wait for a page on the host are told.
    pub every_warp: bool,
}

/// The translation side of an SM.
#[derive(Debug)]
pub(super) struct Translation {
    wiring: TranslationWiring,
    pub translator: Translator,
    deferred: BTreeMap<u64, Vec<Deferred>>,
    /// Entries of the fault buffer that the GMMU was told of, by page, if all are to be told.
    told: BTreeMap<u64, usize>,
    /// Since when no memory instruction may issue.
    blocked: Option<u64>,
}

/// [`Translation`] as it is saved.
pub(super) type Saved = (
    Translator,
    BTreeMap<u64, Vec<Deferred>>,
    BTreeMap<u64, usize>,
    Option<u64>,
);

/// The same by reference.
type ToSave<'a> = (
    &'a Translator,
    &'a BTreeMap<u64, Vec<Deferred>>,
    &'a BTreeMap<u64, usize>,
    Option<u64>,
);

impl Translation {
    pub fn new(wiring: TranslationWiring) -> Self {
        Self {
            translator: wiring.translator.clone(),
            wiring,
            deferred: BTreeMap::new(),
            told: BTreeMap::new(),
            blocked: None,
        }
    }

    pub fn saved(&self) -> ToSave<'_> {
        (&self.translator, &self.deferred, &self.told, self.blocked)
    }

    pub fn restore(&mut self, saved: Saved) {
        (self.translator, self.deferred, self.told, self.blocked) = saved;
    }

    pub fn is_full(&self) -> bool {
        self.blocked.is_some()
    }

    /// A new launch: the page-table base may be another.
    pub fn start_launch(&mut self) {
        if self.wiring.flush_on_launch {
            self.translator.shoot_down(Scope::Whole);
        }
    }

    #[inline]
    fn is_managed(&self, address: u64) -> bool {
        address.wrapping_sub(self.wiring.managed.start)
            < self.wiring.managed.end - self.wiring.managed.start
    }

    /// Whether an access to an address may go on; asks for its translation if not.
    #[inline]
    fn pass(
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
            Lookup::Hit { tell: false } => return true,
            Lookup::Hit { tell: true } => Message::Used { page, write },
            Lookup::Waits => return false,
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
        let wavefronts = matches!(message, Message::Used { .. });
        let TranslationWiring { link, gmmu, .. } = self.wiring;
        outbox.send(link, gmmu, moment.time, Bytes(moment.header), message);
        wavefronts
    }
}

impl Translation {
    /// Tells of accesses that have come to wait for a page since it was said to be on the host.
    fn tell_again(&mut self, page: u64, time: Time, header: u64, outbox: &mut Outbox<'_, Message>) {
        if !self.wiring.every_warp || !self.translator.has_faulted(page) {
            return;
        }
        let all = self
            .deferred
            .get(&page)
            .map_or(0, |waiting| entries(waiting));
        let told = self.told.entry(page).or_default();
        if all > *told {
            let message = Message::Again {
                page,
                write: self.translator.wants_write(page),
                entries: few(all - *told),
            };
            *told = all;
            let TranslationWiring { link, gmmu, .. } = self.wiring;
            outbox.send(link, gmmu, time, Bytes(header), message);
        }
    }
}

/// Entries of the fault buffer that accesses to one page make: two loads one, whichever warps they
/// are of, and each store one.
fn entries(waiting: &[Deferred]) -> usize {
    let is_load = |one: &&Deferred| match one {
        Deferred::Load { .. } => true,
        Deferred::Store { .. } => false,
        Deferred::Strong(request, ..) => {
            matches!(request.action, crate::message::StrongAction::Load)
        }
    };
    let loads = waiting.iter().filter(is_load).count();
    loads.div_ceil(2) + waiting.len() - loads
}

/// When something is asked and by which warp, and what a message takes besides its contents.
#[derive(Clone, Copy)]
struct Moment {
    warp: u8,
    cycle: u64,
    time: Time,
    header: u64,
}

/// How many of the lines that wait for a page belong to the instruction that has waited longest:
/// they are told one by one, those of other instructions have to wait for their turn.
fn of_one_instruction(waiting: &[Deferred]) -> usize {
    let transaction = |one: &Deferred| match one {
        Deferred::Load { transaction, .. } | Deferred::Store { transaction, .. } => {
            Some(*transaction)
        }
        Deferred::Strong(..) => None,
    };
    match waiting.first() {
        Some(Deferred::Strong(_, lines, _)) => usize::from(*lines),
        Some(first) => {
            let first = transaction(first);
            let own = waiting.iter().map(transaction);
            own.take_while(|other| *other == first).count()
        }
        None => 1,
    }
}

/// A number of accesses as it is told: nobody needs to know of more.
fn few(accesses: usize) -> u8 {
    accesses.min(usize::from(u8::MAX)) as u8
}

impl Port {
    /// Keeps a strong access back if its page has no translation. `lines` says how many of the
    /// page its instruction asks for.
    pub(super) fn defer_strong(
        &mut self,
        request: Box<StrongRequest>,
        warp: u8,
        lines: impl Fn() -> usize,
        now: Now,
        outbox: &mut Outbox<'_, Message>,
    ) -> Option<Box<StrongRequest>> {
        let header = self.wiring.header;
        let Some(translation) = &mut self.translation else {
            return Some(request);
        };
        let write = !matches!(request.action, crate::message::StrongAction::Load);
        let address = request.sector * SECTOR;
        let moment = Moment {
            warp,
            cycle: now.cycle,
            time: now.time,
            header,
        };
        if translation.pass(address, write, 1, &lines, moment, outbox) {
            return Some(request);
        }
        let waiting = translation.deferred.entry(address / PAGE).or_default();
        waiting.push(Deferred::Strong(request, few(lines()), warp));
        translation.tell_again(address / PAGE, now.time, header, outbox);
        None
    }
}

impl Sm {
    /// Looks up the pages of an access. What has no translation is kept back; the rest is given,
    /// with the transaction that is open now.
    pub(super) fn translate_lines(
        &mut self,
        set: &LineSet,
        access: &mut Access,
        outbox: &mut Outbox<'_, Message>,
    ) -> Option<LineSet> {
        let translation = self.port.translation.as_ref()?;
        if !set
            .iter()
            .any(|(line, _)| translation.is_managed(line * LINE))
        {
            return None;
        }
        let header = self.port.wiring.header;
        let write = matches!(access.manner, Manner::Store | Manner::StoreLocal);
        let mut kept = LineSet::of(&[]);
        let mut answers = 0;
        for (index, (line, sectors)) in set.iter().enumerate() {
            let at = access.taken + index as u64;
            let moment = Moment {
                warp: access.slot,
                cycle: at,
                time: self.clock().edge(Cycle(at)),
                header,
            };
            let count = sectors.count_ones() as u8;
            let Some(translation) = &mut self.port.translation else {
                return None;
            };
            let page = line * LINE / PAGE;
            let beside = || {
                let pages = set.iter().map(|(line, _)| line * LINE / PAGE);
                pages.filter(|other| *other == page).count()
            };
            if translation.pass(line * LINE, write, count, beside, moment, outbox) {
                kept.push(line, sectors);
                continue;
            }
            access.transaction = self.expect(access.transaction, access);
            answers += 1;
            let transaction = access.transaction;
            let waits = if write {
                let partial = self.partial_sectors(line, access.partial);
                Deferred::Store {
                    line,
                    sectors,
                    partial,
                    transaction,
                }
            } else {
                Deferred::Load {
                    line,
                    sectors,
                    transaction,
                    past: access.manner == Manner::LoadBypass,
                }
            };
            if let Some(translation) = &mut self.port.translation {
                let waiting = translation.deferred.entry(line * LINE / PAGE).or_default();
                waiting.push(waits);
                translation.tell_again(page, moment.time, header, outbox);
            }
        }
        if answers > 0 {
            let already = self.port.transactions.get(access.transaction).remaining;
            let all = already + answers;
            self.port.transactions.expect(access.transaction, all);
            self.check_blocked(access.taken);
        }
        Some(kept)
    }

    /// The sectors of a line that a store writes in part.
    fn partial_sectors(&self, line: u64, partial: u32) -> u8 {
        let sectors = LINE / SECTOR;
        let mut mask = 0;
        let mut left = partial;
        while left != 0 {
            let sector = self.port.found.sectors[left.trailing_zeros() as usize];
            left &= left - 1;
            if sector / sectors == line {
                mask |= 1 << (sector % sectors);
            }
        }
        mask
    }

    /// Says whether memory instructions may issue, whenever that may have changed.
    fn check_blocked(&mut self, now: u64) {
        let (Some(translation), Issue::Timing(timing)) =
            (&mut self.port.translation, &mut self.issue)
        else {
            return;
        };
        let full = translation.translator.is_full();
        match (translation.blocked, full) {
            (None, true) => translation.blocked = Some(now),
            (Some(since), false) => {
                let blocked = now.saturating_sub(since);
                translation.translator.stats.blocked.add(blocked);
                translation.blocked = None;
                timing.wake_all();
            }
            _ => {}
        }
        timing.set_blocked(full);
    }

    /// The same after loading.
    pub(super) fn restore_blocked(&mut self) {
        if let (Some(translation), Issue::Timing(timing)) =
            (&self.port.translation, &mut self.issue)
        {
            timing.set_blocked(translation.is_full());
        }
    }

    /// The GMMU says something.
    pub(super) fn translation_message(
        &mut self,
        message: Message,
        now: Now,
        outbox: &mut Outbox<'_, Message>,
    ) {
        let header = self.port.wiring.header;
        let Some(translation) = &mut self.port.translation else {
            return;
        };
        match message {
            Message::Nack { page } => {
                translation.translator.nack(page, now.cycle);
                translation.tell_again(page, now.time, header, outbox);
                self.check_blocked(now.cycle);
            }
            Message::Replay { page } => {
                if translation.translator.replay(page) {
                    let write = translation.translator.wants_write(page);
                    let waiting = translation.deferred.get(&page);
                    let waiting = waiting.map_or(&[][..], Vec::as_slice);
                    let accesses = if translation.wiring.every_warp {
                        let all = entries(waiting);
                        translation.told.insert(page, all);
                        all
                    } else {
                        of_one_instruction(waiting)
                    };
                    let warp = match waiting.first() {
                        Some(Deferred::Strong(_, _, warp)) => *warp,
                        Some(
                            Deferred::Load { transaction, .. }
                            | Deferred::Store { transaction, .. },
                        ) => self.port.transactions.get(*transaction).warp,
                        None => 0,
                    };
                    let message = Message::Translate {
                        page,
                        write,
                        sectors: 4,
                        accesses: few(accesses),
                        warp,
                    };
                    let TranslationWiring { link, gmmu, .. } = translation.wiring;
                    outbox.send(link, gmmu, now.time, Bytes(header), message);
                }
            }
            Message::ShootDown(scope) => translation.translator.shoot_down(scope),
            Message::Translated { page, size } => {
                translation.translator.fill(page, Some(size), now.cycle);
                self.go_on(page, false, now, outbox);
            }
            Message::Remote { page } => {
                translation.translator.fill(page, None, now.cycle);
                self.go_on(page, true, now, outbox);
            }
            Message::Invalidate { first, count } => self.forget_lines(first, count),
            other => panic!("an SM was sent {other:?}"),
        }
    }

    /// A page has its translation, or was accessed over the link: what waited for it goes on.
    fn go_on(&mut self, page: u64, remote: bool, now: Now, outbox: &mut Outbox<'_, Message>) {
        let Some(translation) = &mut self.port.translation else {
            return;
        };
        let waiting = translation.deferred.remove(&page).unwrap_or_default();
        translation.told.remove(&page);
        self.check_blocked(now.cycle);
        for (index, one) in waiting.into_iter().enumerate() {
            // One a cycle, as they would have come.
            let at = now.cycle + 1 + index as u64;
            match one {
                Deferred::Strong(request, ..) => self.port.dispatch_strong(request, now, outbox),
                Deferred::Load { transaction, .. } | Deferred::Store { transaction, .. }
                    if remote =>
                {
                    self.answered(transaction, now.cycle, now);
                }
                Deferred::Load {
                    line,
                    sectors,
                    transaction,
                    past,
                } => self.late_load(line, sectors, transaction, past, at, now, outbox),
                Deferred::Store {
                    line,
                    sectors,
                    partial,
                    transaction,
                } => {
                    self.send_write(line, sectors, partial, at, outbox);
                    self.answered(transaction, at, now);
                }
            }
        }
    }

    fn late_load(
        &mut self,
        line: u64,
        sectors: u8,
        transaction: u32,
        past: bool,
        at: u64,
        now: Now,
        outbox: &mut Outbox<'_, Message>,
    ) {
        let known = self.port.transactions.get(transaction);
        let hit = at + self.parameters.l1_latency;
        let access = Access {
            slot: known.warp,
            block: usize::from(self.warps[usize::from(known.warp)].block),
            pc: known.pc,
            manner: if past {
                Manner::LoadBypass
            } else {
                Manner::Load
            },
            transaction,
            group: known.group,
            taken: at,
            wavefronts: 1,
            hit,
            fill: u64::from(known.fill),
            partial: 0,
        };
        let mut set = LineSet::of(&[]);
        set.push(line, sectors);
        self.access_lines(&set, &access, outbox);
        // The answer that stood for the translation.
        self.answered(transaction, hit, now);
    }

    /// Pages have left the device.
    fn forget_lines(&mut self, first: u64, count: u32) {
        let Issue::Timing(timing) = &mut self.issue else {
            return;
        };
        let lines = PAGE / LINE;
        let range = first * lines..(first + u64::from(count)) * lines;
        timing.forget_lines(range, count > MOST_LINE_BY_LINE);
    }
}
