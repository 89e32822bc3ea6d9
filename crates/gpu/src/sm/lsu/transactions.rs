//! Memory instructions whose answers are on their way.

use serde::{Deserialize, Serialize};

/// A memory instruction whose answers are on their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transaction {
    /// Warp slot.
    pub warp: u8,
    /// The instruction.
    pub pc: u32,
    /// Answers still to come.
    pub remaining: u16,
    /// Cycle before which it is not done, as far as answers have come.
    pub ready: u64,
    /// Cycles that pass between an answer and its use.
    pub fill: u16,
    /// Group of copies to shared memory, or `u32::MAX`.
    pub group: u32,
}

/// The transaction of accesses that nobody waits for.
pub const NOBODY: u32 = u32::MAX;

/// Transactions by number; numbers are used again, the lowest first taken back last.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Transactions {
    slots: Vec<Transaction>,
    free: Vec<u32>,
}

impl Transactions {
    /// Opens one.
    pub fn open(&mut self, transaction: Transaction) -> u32 {
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = transaction;
                slot
            }
            None => {
                self.slots.push(transaction);
                self.slots.len() as u32 - 1
            }
        }
    }

    /// One that is open.
    #[must_use]
    pub fn get(&self, number: u32) -> Transaction {
        self.slots[number as usize]
    }

    /// An answer came; closes the transaction and gives it if it was the last.
    pub fn answer(&mut self, number: u32, at: u64) -> Option<Transaction> {
        let transaction = &mut self.slots[number as usize];
        transaction.remaining -= 1;
        transaction.ready = transaction.ready.max(at + u64::from(transaction.fill));
        (transaction.remaining == 0).then(|| {
            self.free.push(number);
            *transaction
        })
    }

    /// Sets how much later than its answers it is done.
    pub fn delay(&mut self, number: u32, cycles: u16) {
        self.slots[number as usize].fill = cycles;
    }

    /// Sets how many answers are to come.
    pub fn expect(&mut self, number: u32, answers: u16) {
        self.slots[number as usize].remaining = answers;
    }
}
