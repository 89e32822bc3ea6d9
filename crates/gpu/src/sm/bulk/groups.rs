//! Groups of stores and reductions in bulk, of each warp: `cp.async.bulk.commit_group` and `wait_group`.

use serde::{Deserialize, Serialize};

/// Groups of one warp.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct WarpGroups {
    slot: u8,
    /// When what was asked for since the last group is complete.
    open: u64,
    /// When each group is complete, the oldest first.
    closed: Vec<u64>,
}

/// Groups of all warps that have some.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Groups {
    warps: Vec<WarpGroups>,
}

impl Groups {
    fn of(&mut self, slot: u8) -> &mut WarpGroups {
        let known = self.warps.iter().position(|warp| warp.slot == slot);
        let index = known.unwrap_or_else(|| {
            self.warps.push(WarpGroups {
                slot,
                ..WarpGroups::default()
            });
            self.warps.len() - 1
        });
        &mut self.warps[index]
    }

    /// A command of a warp is complete at a cycle.
    pub fn add(&mut self, slot: u8, ready: u64) {
        let groups = self.of(slot);
        groups.open = groups.open.max(ready);
    }

    /// Closes the group of a warp; says when it is complete.
    pub fn commit(&mut self, slot: u8, now: u64) -> u64 {
        let groups = self.of(slot);
        let ready = std::mem::take(&mut groups.open);
        groups.closed.retain(|ready| *ready > now);
        groups.closed.push(ready);
        ready
    }

    /// When no more than so many groups of a warp are under way.
    #[must_use]
    pub fn ready(&self, slot: u8, at_most: u32) -> u64 {
        let Some(groups) = self.warps.iter().find(|warp| warp.slot == slot) else {
            return 0;
        };
        let waited = groups.closed.len().saturating_sub(at_most as usize);
        groups.closed[..waited].iter().copied().max().unwrap_or(0)
    }

    /// A warp has ended.
    pub fn leave(&mut self, slot: u8) {
        self.warps.retain(|warp| warp.slot != slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_groups_are_waited_for() {
        let mut groups = Groups::default();
        groups.add(3, 100);
        groups.add(3, 90);
        assert_eq!(groups.commit(3, 10), 100);
        groups.add(3, 150);
        assert_eq!(groups.commit(3, 20), 150);
        assert_eq!(groups.ready(3, 0), 150);
        assert_eq!(groups.ready(3, 1), 100);
        assert_eq!((groups.ready(3, 2), groups.ready(4, 0)), (0, 0));
        groups.leave(3);
        assert_eq!(groups.ready(3, 0), 0);
    }

    #[test]
    fn a_group_of_nothing_is_complete() {
        let mut groups = Groups::default();
        assert_eq!(groups.commit(0, 10), 0);
        assert_eq!(groups.ready(0, 0), 0);
    }
}
