//! 512 KiB from the page that faulted on.

use super::{Event, Memory, Pages, run_ahead};
use crate::space::Space;

/// 512 KiB.
const PAGES: u32 = 128;

pub(super) fn plan(space: &mut Space, event: Event<'_>, _: &mut Memory) -> Pages {
    let mut all = event.faults.clone();
    for (first, faults) in event.faults {
        for page in faults.iter() {
            let page = first + u64::from(page);
            let Some(allocation) = space.allocation(page) else {
                continue;
            };
            let left = allocation.first + allocation.pages() - page;
            run_ahead(space, &mut all, page, left.min(u64::from(PAGES)) as u32);
        }
    }
    all
}
