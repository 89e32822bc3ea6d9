//! Accesses of one SM that wait for the translation of their page.
//!
//! Values moved at issue, as for every access; what waits here is its time.

use serde::{Deserialize, Serialize};

use crate::message::{StrongAction, StrongRequest};

/// Sectors of a line to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeferredLoad {
    /// The line.
    pub line: u64,
    /// Its sectors.
    pub sectors: u8,
    /// The transaction that waits for them.
    pub transaction: u32,
    /// Whether the load bypasses L1.
    pub bypass: bool,
}

/// An access that waits for its translation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Deferred {
    /// Sectors of a line to be read.
    Load(DeferredLoad),
    /// Sectors of a line to be written.
    Store {
        /// The line.
        line: u64,
        /// Its sectors.
        sectors: u8,
        /// Those that are written in part.
        partial: u8,
        /// The transaction that keeps the block from ending.
        transaction: u32,
    },
    /// An access that its slice performs.
    Strong {
        /// The access.
        request: Box<StrongRequest>,
        /// How many lines of the page its instruction asks for.
        lines: u8,
        /// Its warp.
        warp: u8,
    },
}

impl Deferred {
    /// The transaction of a weak access.
    #[must_use]
    pub fn transaction(&self) -> Option<u32> {
        match self {
            Self::Load(DeferredLoad { transaction, .. }) | Self::Store { transaction, .. } => {
                Some(*transaction)
            }
            Self::Strong { .. } => None,
        }
    }

    fn is_load(&self) -> bool {
        match self {
            Self::Load(_) => true,
            Self::Store { .. } => false,
            Self::Strong { request, .. } => matches!(request.action, StrongAction::Load),
        }
    }
}

/// Entries of the fault buffer that accesses to one page make: two loads one, whichever warps they
/// are of, and each store one.
#[must_use]
pub fn fault_entries(waiting: &[Deferred]) -> usize {
    let loads = waiting.iter().filter(|one| one.is_load()).count();
    loads.div_ceil(2) + waiting.len() - loads
}

/// How many of the lines that wait for a page belong to the instruction that has waited longest:
/// they are told one by one, those of other instructions have to wait for their turn.
#[must_use]
pub fn lines_of_first_instruction(waiting: &[Deferred]) -> usize {
    match waiting.first() {
        Some(Deferred::Strong { lines, .. }) => usize::from(*lines),
        Some(first) => {
            let own = waiting.iter().map(Deferred::transaction);
            own.take_while(|other| *other == first.transaction())
                .count()
        }
        None => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(transaction: u32) -> Deferred {
        Deferred::Load(DeferredLoad {
            line: 1,
            sectors: 1,
            transaction,
            bypass: false,
        })
    }

    #[test]
    fn two_loads_make_one_fault_entry_and_each_store_one() {
        let store = Deferred::Store {
            line: 1,
            sectors: 1,
            partial: 0,
            transaction: 9,
        };
        assert_eq!(fault_entries(&[load(1), load(2), load(3)]), 2);
        assert_eq!(fault_entries(&[load(1), store.clone(), store]), 3);
    }

    #[test]
    fn lines_of_the_first_instruction_are_counted_until_another_comes() {
        assert_eq!(lines_of_first_instruction(&[load(1), load(1), load(2)]), 2);
        assert_eq!(lines_of_first_instruction(&[]), 1);
    }
}
