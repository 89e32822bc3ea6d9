//! One page of the same tree at random, with each page that faulted.

use super::{Event, Memory, Pages, by_tree};
use crate::space::Space;

pub(super) fn plan(space: &mut Space, event: Event<'_>, memory: &mut Memory) -> Pages {
    by_tree(space, event, |tree, faults| {
        let mut pages = faults;
        for _ in faults.iter() {
            pages.insert(memory.random.below(u64::from(tree.pages)) as u32);
        }
        pages
    })
}

#[cfg(test)]
mod tests {
    use crate::prefetch::{Event, Memory, Pages, Prefetcher};
    use crate::{PageSet, Space};
    use lockstep_units::Random;

    /// A tree that is touched completely faults on ln 2 of its pages: each fault brings one page
    /// more with the probability that it is still missing.
    #[test]
    fn a_tree_faults_on_ln_2_of_its_pages() {
        let policy = Prefetcher::named("random").unwrap();
        let mut memory = Memory {
            random: Random::new(1),
            cursor: 0,
        };
        let trees = 200;
        let mut space = Space::default();
        space.map(0, trees * 512 * 4096);
        let mut faults = 0;
        for page in 0..trees * 512 {
            // Pages of a tree in a scrambled order, so that no side of the tree is favoured.
            let page = page / 512 * 512 + page % 512 * 191 % 512;
            let (tree, index) = space.find(page).unwrap();
            if tree.device.contains(index) {
                continue;
            }
            faults += 1;
            let first = tree.first;
            let event = Pages::from([(first, PageSet::one(index))]);
            let event = Event {
                faults: &event,
                ahead: 0,
            };
            let pages = (policy.plan)(&mut space, event, &mut memory);
            space.tree_mut(first).unwrap().device |= pages[&first];
        }
        let share = faults as f64 / (trees * 512) as f64;
        assert!((share - std::f64::consts::LN_2).abs() < 0.005, "{share}");
    }
}
