//! MSHRs of an SM: sectors on their way from L2, and the transactions that wait for them.

use serde::{Deserialize, Serialize};

use crate::sm::front_end::instruction_fetch::CodeMiss;
use crate::statistics::MshrStats;

/// No MSHR.
pub const NO_MSHR: u32 = u32::MAX;

/// What asked for the sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Owner {
    /// Loads, through L1.
    Data,
    /// Instruction fetch.
    Code(CodeMiss),
}

/// One miss-status holding register: sectors of one line on their way.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Mshr {
    /// The line.
    pub line: u64,
    /// Its sectors.
    pub sectors: u8,
    /// What asked for them.
    pub owner: Owner,
    /// Transactions that wait for them.
    pub targets: Vec<u32>,
    /// An older MSHR of the same line, or [`NO_MSHR`].
    pub next: u32,
}

/// All MSHRs of an SM, by number; numbers are used again.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct MshrTable {
    slots: Vec<Mshr>,
    free: Vec<u32>,
    /// Sectors on their way.
    pub sectors: u32,
    /// What it counted.
    pub stats: MshrStats,
}

impl MshrTable {
    /// Opens one.
    pub fn open(&mut self, line: u64, sectors: u8, owner: Owner, next: u32) -> u32 {
        self.sectors += sectors.count_ones();
        self.stats.allocations.increment();
        self.stats.peak_sectors.see(u64::from(self.sectors));
        let open = self.slots.len() - self.free.len() + 1;
        self.stats.peak.see(open as u64);
        match self.free.pop() {
            Some(number) => {
                let miss = &mut self.slots[number as usize];
                miss.targets.clear();
                (miss.line, miss.sectors) = (line, sectors);
                (miss.owner, miss.next) = (owner, next);
                number
            }
            None => {
                self.slots.push(Mshr {
                    line,
                    sectors,
                    owner,
                    targets: Vec::new(),
                    next,
                });
                self.slots.len() as u32 - 1
            }
        }
    }

    /// One that is open.
    #[inline]
    pub fn get_mut(&mut self, number: u32) -> &mut Mshr {
        &mut self.slots[number as usize]
    }

    /// Makes a transaction wait for the misses of a chain that bring some of the sectors. Says
    /// for how many it waits.
    pub fn wait(&mut self, mut number: u32, sectors: u8, transaction: u32) -> u16 {
        let mut count = 0;
        while number != NO_MSHR {
            let miss = &mut self.slots[number as usize];
            if miss.sectors & sectors != 0 {
                miss.targets.push(transaction);
                self.stats.merges.increment();
                count += 1;
            }
            number = miss.next;
        }
        count
    }

    /// Takes a miss out of the chain that begins at `head`, and gives the new head.
    pub fn unlink(&mut self, head: u32, number: u32) -> u32 {
        let after = self.slots[number as usize].next;
        if head == number {
            return after;
        }
        let mut at = head;
        while at != NO_MSHR {
            let next = self.slots[at as usize].next;
            if next == number {
                self.slots[at as usize].next = after;
                break;
            }
            at = next;
        }
        head
    }

    /// Closes one; its list of targets is taken out by the caller before.
    pub fn close(&mut self, number: u32) {
        self.sectors -= self.slots[number as usize].sectors.count_ones();
        self.free.push(number);
    }
}
