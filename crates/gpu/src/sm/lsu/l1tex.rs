//! The memory pipe of an SM and its L1.
//!
//! A memory instruction waits in the queue of its sub-core, has its addresses made there, and is
//! taken by the one pipe that the sub-cores share: shared memory and L1 are the same memory. A
//! line, or a pass over the banks, takes that pipe for a cycle. L1 holds sectored lines, writes
//! through and lets any number of misses run, up to a limit over which no further memory
//! instruction issues. Stores to lines that are on their way out leave with them (`write_combining`).
//!
//! Times are decided when an instruction issues: pipes are reserved in the order of issue.
//!
//! Start reading at `Sm::access_lines`.

use lockstep_engine::{Outbox, PartitionId};
use lockstep_units::{Bytes, Cycle};
use serde::{Deserialize, Serialize};

use super::mshr::{MshrTable, NO_MSHR, Owner};
use super::write_combining::WriteCombiningBuffer;
use crate::cache::{self, SectorCache};
use crate::memory::{LINE, SECTOR};
use crate::message::Message;
use crate::parameters::SmParameters;
use crate::sm::lsu::port::{NOBODY, Transaction};
use crate::sm::now::Now;
use crate::sm::now::PENDING;
use crate::sm::{Issue, Sm};

/// Sectors of a line.
const SECTORS: u64 = LINE / SECTOR;

/// Parts of a cycle in which arriving bytes and leaving requests are counted.
const FINE: u64 = 256;

/// The memory pipe and L1.
#[derive(Clone, Debug)]
pub(in crate::sm) struct LoadStore {
    /// When each sub-core can make addresses again.
    addresses: Vec<u64>,
    /// When the last instructions of each sub-core were taken by the pipe, as a ring.
    queues: Vec<Vec<u64>>,
    heads: Vec<u8>,
    /// When the pipe takes another instruction.
    free: u64,
    /// Passes of the last one.
    wavefronts: u64,
    /// When everything that has come from L2 is written, in parts of cycles.
    ingress: u64,
    /// When the next load can ask L2 for a line, in parts of cycles.
    egress: u64,
    stores: WriteCombiningBuffer,
    l1: SectorCache,
    mshrs: MshrTable,
    /// When there was room for another miss again.
    opened: u64,
    /// Translation lets no memory instruction issue.
    pub(in crate::sm) blocked: bool,
    /// Sectors that may be on their way.
    most: u32,
    /// Parts of a cycle for 64 arriving bytes.
    fine_per_64: u64,
    /// Parts of a cycle between two lines that loads ask L2 for.
    fine_per_miss: u64,
}

/// [`LoadStore`] as it is saved.
#[derive(Serialize, Deserialize)]
pub(in crate::sm) struct Saved {
    addresses: Vec<u64>,
    queues: Vec<Vec<u64>>,
    heads: Vec<u8>,
    free: u64,
    wavefronts: u64,
    ingress: u64,
    egress: u64,
    stores: WriteCombiningBuffer,
    l1: cache::Saved,
    mshrs: MshrTable,
    opened: u64,
}

/// The lines of an access.
#[derive(Clone, Copy)]
pub(in crate::sm) struct LineSet {
    lines: [(u64, u8); 32],
    count: usize,
}

impl LoadStore {
    pub fn new(parameters: &SmParameters) -> Self {
        let sub_cores = parameters.sub_cores.max(1) as usize;
        Self {
            addresses: vec![0; sub_cores],
            queues: vec![vec![0; parameters.queue.max(1)]; sub_cores],
            heads: vec![0; sub_cores],
            free: 0,
            wavefronts: 1,
            ingress: 0,
            egress: 0,
            stores: WriteCombiningBuffer::new(parameters.store_lines),
            l1: SectorCache::new(parameters.l1_sets, 0).with_candidates(parameters.l1_drawn),
            mshrs: MshrTable::default(),
            opened: 0,
            blocked: false,
            most: parameters.l1_outstanding,
            fine_per_64: 64 * FINE / parameters.ingress_bytes.max(1),
            fine_per_miss: u64::from(parameters.l1_miss_interval) * FINE / 100,
        }
    }

    pub fn saved(&self) -> Saved {
        Saved {
            addresses: self.addresses.clone(),
            queues: self.queues.clone(),
            heads: self.heads.clone(),
            free: self.free,
            wavefronts: self.wavefronts,
            ingress: self.ingress,
            egress: self.egress,
            stores: self.stores.clone(),
            l1: self.l1.saved(),
            mshrs: self.mshrs.clone(),
            opened: self.opened,
        }
    }

    pub fn from_saved(saved: Saved, parameters: &SmParameters) -> Option<Self> {
        let fresh = Self::new(parameters);
        let fits = saved.addresses.len() == fresh.addresses.len()
            && saved.heads.len() == fresh.heads.len()
            && saved.queues.len() == fresh.queues.len()
            && saved
                .queues
                .iter()
                .all(|q| q.len() == fresh.queues[0].len());
        let l1 = SectorCache::from_saved(&saved.l1, fresh.l1, 1 << 20)?;
        if !fits || !saved.stores.fits(parameters.store_lines) {
            return None;
        }
        Some(Self {
            addresses: saved.addresses,
            queues: saved.queues,
            heads: saved.heads,
            free: saved.free,
            wavefronts: saved.wavefronts,
            ingress: saved.ingress,
            egress: saved.egress,
            stores: saved.stores,
            l1,
            mshrs: saved.mshrs,
            opened: saved.opened,
            ..fresh
        })
    }

    /// Whether no further miss may begin.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.mshrs.sectors >= self.most || self.blocked
    }

    /// When there was room for another miss again, for the last time.
    #[inline]
    pub fn opened(&self) -> u64 {
        self.opened
    }

    /// Forgets lines, or all of L1.
    pub fn forget(&mut self, lines: std::ops::Range<u64>, all: bool) {
        if all {
            self.l1.clear();
        } else {
            lines.for_each(|line| self.l1.invalidate(line));
        }
    }

    /// Sectors are changed where they are at home: L1 has them no longer. What is on its way here stays.
    pub fn lose(&mut self, sectors: &[u64]) {
        for sector in sectors {
            if let Some(place) = self.l1.find(sector / SECTORS) {
                let known = self.l1.line_mut(place);
                known.present &= !(1u8 << (sector % SECTORS) & !known.partial);
            }
        }
    }

    /// A launch has come: L1 has the size that its shared memory leaves, and is empty.
    pub fn start_launch(&mut self, ways: u32, alone: bool) {
        if self.l1.ways() != ways && (alone || ways < self.l1.ways()) {
            self.l1.resize(ways);
        } else {
            self.l1.clear();
        }
    }

    /// Passes an instruction of a sub-core through queue and pipe. Says when the pipe takes it and
    /// when the queue takes another.
    #[inline]
    pub fn enter(
        &mut self,
        sub_core: usize,
        cycle: u64,
        wavefronts: u64,
        interval: u64,
    ) -> (u64, u64) {
        let made = cycle.max(self.addresses[sub_core]);
        self.addresses[sub_core] = made + interval;
        let taken = made.max(self.free);
        self.free = taken + wavefronts;
        self.wavefronts = wavefronts;
        let queue = &mut self.queues[sub_core];
        let head = &mut self.heads[sub_core];
        queue[usize::from(*head)] = taken;
        *head = ((usize::from(*head) + 1) % queue.len()) as u8;
        let room = queue[usize::from(*head)] + 1;
        (taken, room.max(cycle + 1))
    }

    /// A fence: the pipe ends what it does, and waits a little.
    #[inline]
    pub fn drain(&mut self, sub_core: usize, cycle: u64, wait: u64, interval: u64) -> (u64, u64) {
        let last = self.wavefronts;
        let drained = self.enter(sub_core, cycle, wait + last * 7 / 8, interval);
        self.wavefronts = last;
        drained
    }

    /// Cycles for which a store takes the pipe: what joins others is only looked up, of the rest a line whose sectors
    /// are written in part takes a pass more (`passes.cu`).
    pub fn store_wavefronts(
        &self,
        set: &LineSet,
        whole: bool,
        at: u64,
        window: u64,
        bytes: u64,
    ) -> u64 {
        let (mut lines, mut sectors) = (0, 0);
        for (line, stored) in set.iter() {
            let new = match self.stores.holds(set.len()) {
                true => self.stores.new_sectors(line, stored, at, window),
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
}

impl LoadStore {
    /// When a load that misses in a cycle can ask for its line.
    #[inline]
    fn depart(&mut self, cycle: u64) -> u64 {
        let begin = self.egress.max(cycle * FINE);
        self.egress = begin + self.fine_per_miss;
        begin / FINE
    }
}

impl LineSet {
    /// Groups sectors by line.
    #[inline]
    pub fn of(sectors: &[u64]) -> Self {
        let mut set = Self {
            lines: [(0, 0); 32],
            count: 0,
        };
        for sector in sectors {
            let (line, bit) = (sector / SECTORS, 1u8 << (sector % SECTORS));
            if set.count > 0 && set.lines[set.count - 1].0 == line {
                set.lines[set.count - 1].1 |= bit;
                continue;
            }
            match set.lines[..set.count]
                .iter_mut()
                .find(|known| known.0 == line)
            {
                Some(known) => known.1 |= bit,
                None => {
                    set.lines[set.count] = (line, bit);
                    set.count += 1;
                }
            }
        }
        set
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Adds a line that is not there.
    pub fn push(&mut self, line: u64, sectors: u8) {
        self.lines[self.count] = (line, sectors);
        self.count += 1;
    }

    pub fn iter(&self) -> impl Iterator<Item = (u64, u8)> + '_ {
        self.lines[..self.count].iter().copied()
    }
}

/// What an access asks of L1.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::sm) enum Manner {
    /// A load through L1.
    Load,
    /// A load past L1.
    LoadBypass,
    /// A store to memory that others see.
    Store,
    /// A store to the threads' own memory, which L1 keeps beside passing it on.
    StoreLocal,
}

/// One access, for `access_lines`.
pub(in crate::sm) struct Access {
    pub slot: u8,
    pub block: usize,
    pub pc: u32,
    pub manner: Manner,
    /// A transaction that is open already, or `NOBODY`.
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

impl Sm {
    /// Looks up the lines of an access and sends for what is not there. Says when it is done,
    /// or [`PENDING`].
    pub(in crate::sm) fn access_lines(
        &mut self,
        set: &LineSet,
        access: &Access,
        outbox: &mut Outbox<'_, Message>,
    ) -> u64 {
        match access.manner {
            Manner::Load | Manner::LoadBypass => self.load_lines(set, access, outbox),
            Manner::Store => {
                self.store_lines(set, access, outbox);
                access.hit
            }
            Manner::StoreLocal => {
                let hits = self.keep_lines(set);
                if let Some(block) = self.blocks[access.block].as_mut() {
                    block.counters.l1_sector_hits += u64::from(hits);
                }
                self.store_lines(set, access, outbox);
                access.hit
            }
        }
    }

    fn load_lines(
        &mut self,
        set: &LineSet,
        access: &Access,
        outbox: &mut Outbox<'_, Message>,
    ) -> u64 {
        let mut transaction = access.transaction;
        let mut answers = 0;
        let mut hits = 0;
        for (index, (line, sectors)) in set.iter().enumerate() {
            let Issue::Timing(timing) = &mut self.issue else {
                return PENDING;
            };
            let memory = &mut timing.memory;
            let mut missing = sectors;
            let mut chain = NO_MSHR;
            let mut place = None;
            if access.manner == Manner::Load {
                place = memory.l1.find(line);
                if let Some(place) = place {
                    let known = memory.l1.line(place);
                    missing = sectors & !known.present;
                    let waiting = sectors & known.present & known.partial;
                    hits += (sectors & known.present & !known.partial).count_ones();
                    if known.partial != 0 {
                        chain = known.filled as u32;
                    }
                    if waiting != 0 {
                        hits += waiting.count_ones();
                        transaction = self.expect(transaction, access);
                        let Issue::Timing(timing) = &mut self.issue else {
                            return PENDING;
                        };
                        answers += timing.memory.mshrs.wait(chain, waiting, transaction);
                    }
                }
            }
            if missing == 0 {
                continue;
            }
            transaction = self.expect(transaction, access);
            let Issue::Timing(timing) = &mut self.issue else {
                return PENDING;
            };
            let memory = &mut timing.memory;
            let miss = memory.mshrs.open(line, missing, Owner::Data, chain);
            memory.mshrs.get_mut(miss).targets.push(transaction);
            answers += 1;
            if access.manner == Manner::Load {
                if place.is_none()
                    && let Some((new, _)) = memory.l1.insert(line)
                {
                    place = Some(new);
                }
                if let Some(place) = place {
                    let known = memory.l1.line_mut(place);
                    known.present |= missing;
                    known.partial |= missing;
                    known.filled = u64::from(miss);
                }
            }
            // Conflicts between banks hold up what is there, not what is looked for.
            let looked_up = access
                .wavefronts
                .min((set.len() as u64).div_ceil(self.port.arrays.load_tags));
            let at = memory.depart(access.taken + index as u64 * looked_up / set.len() as u64);
            self.send_read(line, missing, miss, at, outbox);
        }
        if let Some(block) = self.blocks[access.block].as_mut() {
            block.counters.l1_sector_hits += u64::from(hits);
        }
        if answers == 0 {
            return if access.transaction == NOBODY {
                access.hit
            } else {
                PENDING
            };
        }
        let already = self.port.transactions.get(transaction).remaining;
        self.port
            .transactions
            .expect(transaction, already + answers);
        PENDING
    }

    /// Opens the transaction of a load, if it is not open.
    pub(in crate::sm) fn expect(&mut self, transaction: u32, access: &Access) -> u32 {
        if transaction != NOBODY {
            return transaction;
        }
        self.warps[usize::from(access.slot)].pending += 1;
        self.port.transactions.open(Transaction {
            warp: access.slot,
            pc: access.pc,
            remaining: 0,
            ready: access.hit,
            fill: access.fill as u16,
            group: access.group,
        })
    }

    fn store_lines(&mut self, set: &LineSet, access: &Access, outbox: &mut Outbox<'_, Message>) {
        let mut partial = 0u64;
        let mut left = access.partial;
        // Sectors that are written in part are few: their lines are looked for.
        let mut parts = [(0u64, 0u8); 32];
        let mut count = 0;
        while left != 0 {
            let position = left.trailing_zeros() as usize;
            left &= left - 1;
            let sector = self.port.found.sectors[position];
            parts[count] = (sector / SECTORS, 1 << (sector % SECTORS));
            count += 1;
            partial |= 1;
        }
        for (index, (line, sectors)) in set.iter().enumerate() {
            let mut in_part = 0;
            if partial != 0 {
                for (known, bit) in &parts[..count] {
                    if *known == line {
                        in_part |= bit;
                    }
                }
            }
            let at = access.taken + index as u64;
            let window = self.parameters.store_window;
            let Issue::Timing(timing) = &mut self.issue else {
                return;
            };
            let sectors = if access.manner == Manner::Store {
                timing.memory.stores.send(line, sectors, at, window)
            } else {
                sectors
            };
            if sectors != 0 {
                self.send_write(line, sectors, in_part & sectors, at, outbox);
            }
        }
    }

    /// Lines of the threads' own memory that are written are there to be read again. Says how many
    /// of their sectors were there already.
    fn keep_lines(&mut self, set: &LineSet) -> u32 {
        let Issue::Timing(timing) = &mut self.issue else {
            return 0;
        };
        let mut hits = 0;
        let l1 = &mut timing.memory.l1;
        for (line, sectors) in set.iter() {
            let place = l1
                .find(line)
                .or_else(|| l1.insert(line).map(|(place, _)| place));
            if let Some(place) = place {
                let known = l1.line_mut(place);
                hits += (known.present & sectors).count_ones();
                known.present |= sectors;
            }
        }
        hits
    }

    fn send_read(
        &mut self,
        line: u64,
        sectors: u8,
        miss: u32,
        at: u64,
        outbox: &mut Outbox<'_, Message>,
    ) {
        let wiring = self.port.wiring;
        let slice = PartitionId(wiring.slices + self.port.home.slice(line.wrapping_mul(LINE)));
        let at = self.clock().edge(Cycle(at));
        let message = Message::Read {
            line,
            sectors,
            miss,
        };
        let (size, probe) = (Bytes(wiring.header), self.port.probe.as_deref());
        wiring.request.send(slice, at, size, message, outbox, probe);
    }

    pub(in crate::sm) fn send_write(
        &mut self,
        line: u64,
        sectors: u8,
        partial: u8,
        at: u64,
        outbox: &mut Outbox<'_, Message>,
    ) {
        let wiring = self.port.wiring;
        let slice = PartitionId(wiring.slices + self.port.home.slice(line.wrapping_mul(LINE)));
        let at = self.clock().edge(Cycle(at));
        let bytes = u64::from(sectors.count_ones()) * SECTOR;
        let message = Message::Write {
            line,
            sectors,
            partial,
        };
        let (size, probe) = (Bytes(wiring.header + bytes), self.port.probe.as_deref());
        wiring.request.send(slice, at, size, message, outbox, probe);
    }

    /// Sends for the code that warps wait for.
    pub(in crate::sm) fn send_wanted(&mut self, now: Now, outbox: &mut Outbox<'_, Message>) {
        let Issue::Timing(timing) = &mut self.issue else {
            return;
        };
        let wanted = std::mem::take(&mut timing.fetch.wanted);
        for one in &wanted {
            let Issue::Timing(timing) = &mut self.issue else {
                return;
            };
            let (line, sectors) = (one.address, 0xf);
            let mshrs = &mut timing.memory.mshrs;
            let miss = mshrs.open(line, sectors, Owner::Fetch(*one), NO_MSHR);
            self.send_read(line, sectors, miss, now.cycle, outbox);
        }
        let Issue::Timing(timing) = &mut self.issue else {
            return;
        };
        timing.fetch.wanted = wanted;
        timing.fetch.wanted.clear();
    }

    /// Sectors came from L2.
    pub(in crate::sm) fn read_done(&mut self, number: u32, now: Now) {
        let Issue::Timing(timing) = &mut self.issue else {
            panic!("functional mode asks for no sectors");
        };
        if timing.memory.is_full() {
            // Those who could not issue for it look again.
            timing.sub_cores.iter_mut().for_each(|core| core.asleep = 0);
            timing.memory.opened = now.cycle;
        }
        let memory = &mut timing.memory;
        let miss = memory.mshrs.get_mut(number);
        let (line, sectors, owner) = (miss.line, miss.sectors, miss.owner);
        let bytes = u64::from(sectors.count_ones()) * SECTOR;
        if let Owner::Fetch(wanted) = owner {
            memory.mshrs.close(number);
            timing.fetch.arrived(wanted, now.cycle);
            let mut waiting = std::mem::take(&mut timing.fetch.waiting) & self.ready;
            while waiting != 0 {
                let slot = waiting.trailing_zeros() as u8;
                waiting &= waiting - 1;
                self.refresh(slot, now.cycle);
            }
            return;
        }
        let mut targets = std::mem::take(&mut miss.targets);
        let at = memory.arrive(now.cycle, bytes).max(now.cycle);
        if let Some(place) = memory.l1.find(line) {
            let known = *memory.l1.line(place);
            // Whatever the chain of the line holds must be open, so it is looked through always.
            if known.partial != 0 {
                let head = memory.mshrs.unlink(known.filled as u32, number);
                let known = memory.l1.line_mut(place);
                known.partial &= !sectors;
                known.filled = u64::from(head);
            }
        }
        memory.mshrs.close(number);
        for transaction in &targets {
            self.answered(*transaction, at, now);
        }
        targets.clear();
        if let Issue::Timing(timing) = &mut self.issue {
            timing.memory.mshrs.get_mut(number).targets = targets;
        }
    }

    /// Bytes of a strong access came from a slice; says when they are written.
    pub(in crate::sm) fn strong_arrived(&mut self, bytes: u64, now: Now) -> u64 {
        match &mut self.issue {
            Issue::Timing(timing) => timing.memory.arrive(now.cycle, bytes).max(now.cycle),
            Issue::Functional => now.cycle,
        }
    }
}
