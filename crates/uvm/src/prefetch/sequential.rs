//! The whole space in the order of addresses, some pages further with each fault.

use super::{Event, Memory, Pages};
use crate::space::Space;

pub(super) fn plan(space: &mut Space, event: Event<'_>, memory: &mut Memory) -> Pages {
    let mut all = event.faults.clone();
    let faults: u32 = event.faults.values().map(|pages| pages.count()).sum();
    let mut left = faults.saturating_mul(event.ahead);
    let ends: Vec<(u64, u64)> = space
        .allocations()
        .map(|known| (known.first, known.first + known.pages()))
        .collect();
    for (first, end) in ends {
        let mut at = memory.cursor.max(first);
        while at < end && left > 0 {
            if let Some((tree, index)) = space.find(at)
                && !tree.valid().contains(index)
            {
                all.entry(tree.first).or_default().insert(index);
                left -= 1;
            }
            at += 1;
        }
        memory.cursor = memory.cursor.max(at);
        if left == 0 {
            break;
        }
    }
    all
}
