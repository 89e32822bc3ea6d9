//! Cutting what is to be moved into transfers.

use serde::{Deserialize, Serialize};

use crate::page_set::PageSet;

/// Where a transfer ends, besides at a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Split {
    /// After each page that faulted: pages before it ride along.
    AfterFault,
    /// Wherever pages that faulted and pages that did not meet.
    AtCause,
    /// After every page.
    EveryPage,
}

/// One transfer between host and device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transfer {
    /// First page in its tree.
    pub first: u32,
    /// Number of pages.
    pub pages: u32,
    /// Whether one of them faulted.
    pub demand: bool,
}

/// Cuts the pages of a tree into transfers, by address.
#[must_use]
pub fn split(pages: PageSet, faulted: PageSet, how: Split) -> Vec<Transfer> {
    let mut transfers: Vec<Transfer> = Vec::new();
    let mut open = false;
    for page in pages.iter() {
        let fault = faulted.contains(page);
        let goes_on = open
            && transfers.last().is_some_and(|last| {
                last.first + last.pages == page
                    && (how == Split::AfterFault || last.demand == fault)
            });
        match transfers.last_mut() {
            Some(last) if goes_on => {
                last.pages += 1;
                last.demand |= fault;
            }
            _ => transfers.push(Transfer {
                first: page,
                pages: 1,
                demand: fault,
            }),
        }
        open = match how {
            Split::AfterFault => !fault,
            Split::AtCause => true,
            Split::EveryPage => false,
        };
    }
    transfers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(faults: &[u32], how: Split) -> Vec<(u32, u32)> {
        let faults: PageSet = faults.iter().copied().collect();
        let transfers = split(PageSet::range(0, 16), faults, how);
        transfers
            .iter()
            .map(|t| (t.first * 4, t.pages * 4))
            .collect()
    }

    #[test]
    fn the_seed_ends_a_transfer_after_each_fault() {
        assert_eq!(check(&[5], Split::AfterFault), [(0, 24), (24, 40)]);
        assert_eq!(
            check(&[3, 9], Split::AfterFault),
            [(0, 16), (16, 24), (40, 24)]
        );
        assert_eq!(check(&[0], Split::AfterFault), [(0, 4), (4, 60)]);
    }

    #[test]
    fn the_driver_cuts_where_the_cause_changes() {
        assert_eq!(check(&[5], Split::AtCause), [(0, 20), (20, 4), (24, 40)]);
        assert_eq!(check(&[0], Split::AtCause), [(0, 4), (4, 60)]);
    }
}
