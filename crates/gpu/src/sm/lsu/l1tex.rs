//! L1TEX: the first-level data cache of an SM, its MSHRs and its write combining.
//!
//! L1 holds sectored lines, writes through and lets any number of misses run, up to a limit over
//! which no further memory instruction issues. A line that is missing is an MSHR with the
//! transactions that wait for it as targets. Stores to lines that are on their way out leave with
//! them (`write_combining.rs`).
//!
//! Start reading at [`L1Tex::access`].

use std::ops::Range;

use lockstep_counters::Counters;
use lockstep_engine::{LoadError, Outbox, Reader, Writer};
use lockstep_units::Hertz;
use serde::{Deserialize, Serialize};

use super::line_set::{LineSet, SECTORS};
use super::mshr::{MshrTable, NO_MSHR, Owner};
use super::port::Port;
use super::transactions::{NOBODY, Transaction};
use super::write_combining::{CombiningWindow, Store, WriteCombiningBuffer};
use crate::cache::{self, SectorCache};
use crate::l2::NO_LAUNCH;
use crate::memory::SECTOR;
use crate::message::Message;
use crate::parameters::SmParameters;
use crate::sm::front_end::instruction_fetch::CodeMiss;
use crate::sm::now::PENDING;
use crate::sm::statistics::L1_KINDS;
use crate::sm::warp::Warp;
use crate::statistics::{AccessStats, MshrStats};

/// Parts of a cycle in which arriving bytes and leaving requests are counted.
const FINE: u64 = 256;

/// The most ways that a saved L1 may have.
const MOST_LINES: usize = 1 << 20;

/// What an access asks of L1.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// A load through L1.
    Load,
    /// A load from local memory through L1.
    LoadLocal,
    /// A load that bypasses L1.
    LoadBypass,
    /// A store to memory that others see.
    Store,
    /// A store to local memory, which L1 keeps beside passing it on.
    StoreLocal,
}

/// One access.
pub struct Access {
    /// Warp slot.
    pub slot: u8,
    /// Slot of its block.
    pub block: usize,
    /// The instruction.
    pub pc: u32,
    /// What it asks of L1.
    pub manner: Manner,
    /// A transaction that is open already, or `NOBODY`; what misses opens one.
    pub transaction: u32,
    /// Group of copies, or `NO_GROUP`.
    pub group: u32,
    /// When the pipe takes it.
    pub taken: u64,
    /// For how many cycles.
    pub wavefronts: u64,
    /// When a load that hits is done.
    pub hit: u64,
    /// What is added when sectors come from L2.
    pub fill: u64,
    /// Stores: sectors that are written in part, by their position in `Port::found`.
    pub partial: u32,
}

/// What an access may reach outside of L1TEX.
pub struct Requester<'a, 'o> {
    /// The port to memory.
    pub port: &'a mut Port,
    /// The warp that accesses.
    pub warp: &'a mut Warp,
    /// What its block counts.
    pub counters: &'a mut Counters,
    /// The launch of the block, as slices know it.
    pub tag: u8,
    /// The SM's clock.
    pub clock: Hertz,
    /// Where messages leave.
    pub outbox: &'a mut Outbox<'o, Message>,
}

impl Requester<'_, '_> {
    /// Opens the transaction of an access, if it is not open.
    pub fn transaction(&mut self, transaction: u32, access: &Access) -> u32 {
        if transaction != NOBODY {
            return transaction;
        }
        self.warp.pending += 1;
        self.port.transactions.open(Transaction {
            warp: access.slot,
            pc: access.pc,
            remaining: 0,
            ready: access.hit,
            fill: access.fill as u16,
            group: access.group,
        })
    }

    /// A transaction waits for some answers more.
    pub fn expect(&mut self, transaction: u32, answers: u16) {
        let already = self.port.transactions.get(transaction).remaining;
        self.port
            .transactions
            .expect(transaction, already + answers);
    }
}

/// What the sectors were that came from L2.
pub enum Filled {
    /// Code.
    Code(CodeMiss),
    /// Data: they are written at a cycle, and these transactions waited for them.
    Data {
        /// When they are written.
        at: u64,
        /// Who waited; to be given back to [`L1Tex::recycle`].
        targets: Vec<u32>,
    },
}

/// The first-level data cache.
#[derive(Clone, Debug)]
pub struct L1Tex {
    tags: SectorCache,
    mshrs: MshrTable,
    /// What each kind of access found.
    accesses: [AccessStats; L1_KINDS.len()],
    write_combining: WriteCombiningBuffer,
    /// Cycles in which a store joins one before it to the same line.
    combining_window: CombiningWindow,
    /// When everything that has come from L2 is written, in parts of cycles.
    ingress: u64,
    /// When the next load can ask L2 for a line, in parts of cycles.
    egress: u64,
    /// When there was room for another miss again.
    opened: u64,
    /// The uTLB has no room for another miss.
    translation_full: bool,
    /// Sectors that may be on their way.
    most_sectors: u32,
    /// Parts of a cycle for 64 arriving bytes.
    fine_per_64: u64,
    /// Parts of a cycle between two lines that loads ask L2 for.
    fine_per_miss: u64,
}

/// [`L1Tex`] as it is saved.
#[derive(Serialize, Deserialize)]
struct Saved {
    tags: cache::Saved,
    mshrs: MshrTable,
    accesses: [AccessStats; L1_KINDS.len()],
    write_combining: WriteCombiningBuffer,
    ingress: u64,
    egress: u64,
    opened: u64,
}

impl L1Tex {
    /// An empty cache without room: a launch says how much it has.
    #[must_use]
    pub fn new(parameters: &SmParameters) -> Self {
        Self {
            tags: SectorCache::new(parameters.lsu.l1_sets, 0)
                .with_candidates(parameters.lsu.l1_candidates),
            mshrs: MshrTable::default(),
            accesses: Default::default(),
            write_combining: WriteCombiningBuffer::new(parameters.lsu.store_lines),
            combining_window: parameters.lsu.store_window,
            ingress: 0,
            egress: 0,
            opened: 0,
            translation_full: false,
            most_sectors: parameters.lsu.l1_outstanding,
            fine_per_64: 64 * FINE / parameters.lsu.ingress_bytes.max(1),
            fine_per_miss: u64::from(parameters.lsu.l1_miss_interval) * FINE / 100,
        }
    }

    /// Writes everything.
    pub fn save(&self, writer: &mut Writer<'_>) {
        writer.write(&Saved {
            tags: self.tags.saved(),
            mshrs: self.mshrs.clone(),
            accesses: self.accesses.clone(),
            write_combining: self.write_combining.clone(),
            ingress: self.ingress,
            egress: self.egress,
            opened: self.opened,
        });
    }

    /// Takes on what was saved.
    ///
    /// # Errors
    /// If the bytes are not what `save` wrote.
    pub fn load(
        &mut self,
        reader: &mut Reader<'_>,
        parameters: &SmParameters,
    ) -> Result<(), LoadError> {
        let saved: Saved = reader.read()?;
        let fresh = Self::new(parameters);
        let malformed = |what| LoadError::Malformed { what };
        if !saved.write_combining.fits(parameters.lsu.store_lines) {
            return Err(malformed("another write-combining buffer"));
        }
        let tags = SectorCache::from_saved(&saved.tags, fresh.tags, MOST_LINES);
        self.tags = tags.ok_or(malformed("another L1"))?;
        (self.mshrs, self.write_combining) = (saved.mshrs, saved.write_combining);
        self.accesses = saved.accesses;
        (self.ingress, self.egress, self.opened) = (saved.ingress, saved.egress, saved.opened);
        Ok(())
    }

    /// What each kind of access found.
    #[must_use]
    pub fn accesses(&self) -> &[AccessStats; L1_KINDS.len()] {
        &self.accesses
    }

    /// What the MSHRs counted.
    #[must_use]
    pub fn mshr_stats(&self) -> &MshrStats {
        &self.mshrs.stats
    }

    /// Whether no further miss may begin.
    #[must_use]
    #[inline]
    pub fn is_full(&self) -> bool {
        self.mshrs.sectors >= self.most_sectors || self.translation_full
    }

    /// When there was room for another miss again, for the last time.
    #[must_use]
    #[inline]
    pub fn opened(&self) -> u64 {
        self.opened
    }

    /// Requests that were held back have left, so that memory instructions can issue again.
    pub fn open_again(&mut self, cycle: u64) {
        self.opened = self.opened.max(cycle);
    }

    /// Whether the uTLB has no room for another miss.
    pub fn set_translation_full(&mut self, full: bool) {
        self.translation_full = full;
    }

    /// Invalidates lines, or all of L1.
    pub fn invalidate_lines(&mut self, lines: Range<u64>, all: bool) {
        if all {
            self.tags.clear();
        } else {
            lines.for_each(|line| self.tags.invalidate(line));
        }
    }

    /// Invalidates sectors that change at their slice. What is on its way here stays.
    pub fn invalidate_sectors(&mut self, sectors: &[u64]) {
        for sector in sectors {
            if let Some(place) = self.tags.find(sector / SECTORS) {
                let known = self.tags.line_mut(place);
                known.present &= !(1u8 << (sector % SECTORS) & !known.partial);
            }
        }
    }

    /// A launch has come: L1 has the size that its shared memory leaves, and is empty.
    pub fn start_launch(&mut self, ways: u32, alone: bool) {
        if self.tags.ways() != ways && (alone || ways < self.tags.ways()) {
            self.tags.resize(ways);
        } else {
            self.tags.clear();
        }
    }

    /// Wavefronts of a store: what is combined with others is only looked up, of the rest a line
    /// whose sectors are written in part takes one more (`passes.cu`). `whole` if none is, `bytes`
    /// that stores pass on in a cycle.
    #[must_use]
    pub fn store_wavefronts(&self, set: &LineSet, whole: bool, store: Store, bytes: u64) -> u64 {
        let buffer = &self.write_combining;
        let (mut lines, mut sectors) = (0, 0);
        for (line, stored) in set.iter() {
            let new = match buffer.holds(set.len()) {
                true => buffer.new_sectors(line, stored, store, self.combining_window),
                false => stored,
            };
            sectors += u64::from(new.count_ones());
            lines += u64::from(new != 0);
        }
        if whole {
            (sectors * SECTOR + bytes / 2) / bytes
        } else {
            sectors + lines
        }
    }

    /// Bytes arrive from L2; says when they are written.
    #[inline]
    pub fn arrive(&mut self, cycle: u64, bytes: u64) -> u64 {
        let begin = self.ingress.max(cycle * FINE);
        self.ingress = begin + bytes * self.fine_per_64 / 64;
        (self.ingress - 1) / FINE
    }

    /// When a load that misses in a cycle can ask for its line.
    #[inline]
    fn depart(&mut self, cycle: u64) -> u64 {
        let begin = self.egress.max(cycle * FINE);
        self.egress = begin + self.fine_per_miss;
        begin / FINE
    }

    /// Looks up the lines of an access and sends for what is not there. Says when it is done,
    /// or [`PENDING`].
    pub fn access(
        &mut self,
        set: &LineSet,
        access: &mut Access,
        requester: &mut Requester<'_, '_>,
    ) -> u64 {
        match access.manner {
            Manner::Load | Manner::LoadLocal | Manner::LoadBypass => {
                return self.load_lines(set, access, requester);
            }
            Manner::Store => {}
            Manner::StoreLocal => {
                requester.counters.l1_sector_hits += u64::from(self.write_local(set));
            }
        }
        self.store_lines(set, access, requester);
        access.hit
    }

    fn load_lines(
        &mut self,
        set: &LineSet,
        access: &mut Access,
        requester: &mut Requester<'_, '_>,
    ) -> u64 {
        let mut transaction = access.transaction;
        let mut answers = 0;
        let mut hits = 0;
        let count = set.len() as u64;
        // Conflicts between banks hold up what is there, not what is looked for.
        let looked_up = access
            .wavefronts
            .min(count.div_ceil(requester.port.arrays.load_tags));
        for (index, (line, sectors)) in set.iter().enumerate() {
            let mut missing = sectors;
            let mut waiting = 0;
            let mut chain = NO_MSHR;
            let mut place = None;
            if access.manner != Manner::LoadBypass {
                place = self.tags.find(line);
            }
            if let Some(place) = place {
                let known = self.tags.line(place);
                missing = sectors & !known.present;
                waiting = sectors & known.present & known.partial;
                hits += (sectors & known.present & !known.partial).count_ones();
                if known.partial != 0 {
                    chain = known.filled as u32;
                }
                if waiting != 0 {
                    hits += waiting.count_ones();
                    transaction = requester.transaction(transaction, access);
                    answers += self.mshrs.wait(chain, waiting, transaction);
                }
            }
            let stats = &mut self.accesses[access.manner as usize];
            stats.look_up(sectors & !waiting, missing, place.is_some());
            stats.hits_on_miss.add(u64::from(waiting.count_ones()));
            if missing == 0 {
                continue;
            }
            transaction = requester.transaction(transaction, access);
            let mshr = self.mshrs.open(line, missing, Owner::Data, chain);
            self.mshrs.get_mut(mshr).targets.push(transaction);
            answers += 1;
            if access.manner != Manner::LoadBypass {
                self.allocate(line, place, missing, mshr);
            }
            let at = self.depart(access.taken + index as u64 * looked_up / count);
            let Requester {
                port,
                tag,
                clock,
                outbox,
                ..
            } = requester;
            port.send_read(line, missing, mshr, *tag, at, *clock, outbox);
        }
        requester.counters.l1_sector_hits += u64::from(hits);
        if answers > 0 {
            requester.expect(transaction, answers);
            access.transaction = transaction;
            return PENDING;
        }
        if access.transaction == NOBODY {
            access.hit
        } else {
            PENDING
        }
    }

    /// Keeps room in L1 for sectors of a line that are on their way; `place` if the line is there.
    #[inline]
    fn allocate(&mut self, line: u64, place: Option<cache::Place>, missing: u8, mshr: u32) {
        let place = place.or_else(|| self.tags.insert(line).map(|(place, _)| place));
        if let Some(place) = place {
            let known = self.tags.line_mut(place);
            known.present |= missing;
            known.partial |= missing;
            known.filled = u64::from(mshr);
        }
    }

    fn store_lines(&mut self, set: &LineSet, access: &Access, requester: &mut Requester<'_, '_>) {
        for (index, (line, sectors)) in set.iter().enumerate() {
            let at = access.taken + index as u64;
            let new = if access.manner == Manner::Store {
                // L1 writes through, and keeps nothing of it.
                self.accesses[Manner::Store as usize].look_up(sectors, sectors, false);
                let window = self.combining_window;
                let warp = access.slot;
                self.write_combining
                    .send(line, sectors, Store { warp, at }, window)
            } else {
                sectors
            };
            if new == 0 {
                continue;
            }
            let Requester {
                port,
                tag,
                clock,
                outbox,
                ..
            } = requester;
            // Sectors that are written in part are few: their lines are looked for.
            let partial = port.partial_sectors(line, access.partial) & new;
            port.send_write(line, new, partial, *tag, at, *clock, outbox);
        }
    }

    /// Lines of local memory that are written are there to be read again. Says how many of their
    /// sectors were there already.
    fn write_local(&mut self, set: &LineSet) -> u32 {
        let mut hits = 0;
        let tags = &mut self.tags;
        let stats = &mut self.accesses[Manner::StoreLocal as usize];
        for (line, sectors) in set.iter() {
            let here = tags.find(line);
            let place = here.or_else(|| tags.insert(line).map(|(place, _)| place));
            if let Some(place) = place {
                let known = tags.line_mut(place);
                stats.look_up(sectors, sectors & !known.present, here.is_some());
                hits += (known.present & sectors).count_ones();
                known.present |= sectors;
            }
        }
        hits
    }

    /// Sends for a line of code.
    pub fn fetch_code(
        &mut self,
        miss: CodeMiss,
        cycle: u64,
        clock: Hertz,
        port: &mut Port,
        outbox: &mut Outbox<'_, Message>,
    ) {
        let (line, sectors) = (miss.address, 0xf);
        let mshr = self.mshrs.open(line, sectors, Owner::Code(miss), NO_MSHR);
        port.send_read(line, sectors, mshr, NO_LAUNCH, cycle, clock, outbox);
    }

    /// Sectors came from L2. Says what they were, and whether there was no room for another miss
    /// before.
    pub fn fill(&mut self, number: u32, cycle: u64) -> (Filled, bool) {
        let was_full = self.is_full();
        if was_full {
            self.opened = cycle;
            self.mshrs.stats.full.increment();
        }
        let mshr = self.mshrs.get_mut(number);
        let (line, sectors, owner) = (mshr.line, mshr.sectors, mshr.owner);
        if let Owner::Code(miss) = owner {
            self.mshrs.close(number);
            return (Filled::Code(miss), was_full);
        }
        let targets = std::mem::take(&mut mshr.targets);
        let bytes = u64::from(sectors.count_ones()) * SECTOR;
        let at = self.arrive(cycle, bytes).max(cycle);
        if let Some(place) = self.tags.find(line) {
            let known = *self.tags.line(place);
            // Whatever the chain of the line holds must be open, so it is looked through always.
            if known.partial != 0 {
                let head = self.mshrs.unlink(known.filled as u32, number);
                let known = self.tags.line_mut(place);
                known.partial &= !sectors;
                known.filled = u64::from(head);
            }
        }
        self.mshrs.close(number);
        (Filled::Data { at, targets }, was_full)
    }

    /// Gives the list of targets of an MSHR that was filled back, to be used again.
    pub fn recycle(&mut self, number: u32, mut targets: Vec<u32>) {
        targets.clear();
        self.mshrs.get_mut(number).targets = targets;
    }
}
