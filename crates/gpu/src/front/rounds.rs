//! Which SMs the blocks of a launch go to that finds all of them empty, GPC by GPC.
//!
//! Measured on an H200 (`placement.cu`): each GPC in turn receives a block for every SM it has, one
//! after the other, and the next launch goes on with the next GPC. What is left after as many such
//! rounds as there are blocks for goes to one SM of every TPC before it goes to the others, but is
//! numbered GPC by GPC, too. Some TPCs are in no GPC's turn: they have turns of their own, come
//! first, and come round sooner.
//!
//! That is how blocks that are neighbours share the ports of a GPC, and why the longest of a grid's
//! blocks may all fall to one GPC.
//!
//! Start reading at [`Units::plan`].

use std::collections::BTreeSet;

use crate::gpc::GpcMap;

/// SMs by whose turn they are in.
#[derive(Clone, Debug)]
pub struct Units {
    /// Those with turns of their own.
    first: Vec<u32>,
    /// Turns of GPCs between their first and second turn, and between all later ones.
    turns: [u32; 2],
    /// Those of each GPC.
    gpcs: Vec<Vec<u32>>,
    /// All of them, the one that receives a single block first.
    ranked: Vec<u32>,
}

impl Units {
    /// SMs by their GPC, besides those named as first, which have `turns` of their own; `ranks` as
    /// [`ranks`](super::policy::ranks) says.
    #[must_use]
    pub fn new(first: &[u32], turns: &[u32], ranks: &[u32], map: &GpcMap) -> Self {
        let mut gpcs = vec![Vec::new(); map.gpcs() as usize];
        let mut own = Vec::new();
        for sm in 0..ranks.len() as u32 {
            if first.contains(&sm) {
                own.push(sm);
            } else {
                gpcs[map.gpc_of_sm(sm) as usize].push(sm);
            }
        }
        let mut ranked: Vec<u32> = (0..ranks.len() as u32).collect();
        ranked.sort_unstable_by_key(|sm| ranks[*sm as usize]);
        let turn = |index: usize| turns.get(index).or(turns.last()).copied().unwrap_or(0);
        Self {
            first: own,
            turns: [turn(0), turn(1)],
            gpcs,
            ranked,
        }
    }

    /// The SMs of the first blocks of a launch, as many as find room; an SM has room for `most`.
    /// `next` is the GPC whose turn it is.
    #[must_use]
    pub fn plan(&self, blocks: u64, most: u32, next: &mut u32) -> Vec<u32> {
        let sms = self.ranked.len() as u64;
        let rounds = (blocks / sms).min(u64::from(most)) as u32;
        let mut order = self.rounds(rounds, *next);
        if rounds < most {
            let left = (blocks - u64::from(rounds) * sms) as usize;
            self.remainder(left, next, &mut order);
        }
        order
    }

    /// Rounds in which every SM receives a block.
    fn rounds(&self, rounds: u32, next: u32) -> Vec<u32> {
        let gpcs = self.gpcs.len() as u32;
        let mut order = Vec::new();
        let (mut own, mut wait) = (0, 0);
        for turn in 0..rounds * gpcs {
            if wait == 0 && own < rounds {
                order.extend(&self.first);
                wait = self.turns[usize::from(own > 0)];
                own += 1;
            }
            wait -= u32::from(wait > 0);
            order.extend(&self.gpcs[((next + turn) % gpcs) as usize]);
        }
        for _ in own..rounds {
            order.extend(&self.first);
        }
        order
    }

    /// Fewer blocks than there are SMs.
    fn remainder(&self, left: usize, next: &mut u32, order: &mut Vec<u32>) {
        let chosen: BTreeSet<u32> = self.ranked[..left].iter().copied().collect();
        order.extend(self.first.iter().filter(|sm| chosen.contains(sm)));
        let gpcs = self.gpcs.len() as u32;
        for gpc in (0..gpcs).map(|turn| (*next + turn) % gpcs) {
            let sms = &self.gpcs[gpc as usize];
            order.extend(sms.iter().filter(|sm| chosen.contains(sm)));
        }
        if let Some(last) = order.last() {
            self.passed(*last, next);
        }
    }

    /// An SM has received the last block so far: the next launch begins with the GPC after its own.
    pub fn passed(&self, sm: u32, next: &mut u32) {
        if let Some(gpc) = self.gpcs.iter().position(|sms| sms.contains(&sm)) {
            *next = (gpc as u32 + 1) % self.gpcs.len() as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::policy::ranks;
    use super::*;

    /// Two GPCs of two TPCs, and a TPC of its own: SMs 8 and 9.
    fn units() -> Units {
        let first = [8, 9];
        let gpcs = GpcMap::new(2, &[0, 1, 0, 1, 0]);
        Units::new(&first, &[5, 6], &ranks(&first, 10), &gpcs)
    }

    #[test]
    fn a_round_goes_gpc_by_gpc_and_the_next_launch_goes_on() {
        let mut next = 1;
        assert_eq!(
            units().plan(10, 4, &mut next),
            [8, 9, 2, 3, 6, 7, 0, 1, 4, 5]
        );
        assert_eq!(next, 1, "both had their turn");
    }

    #[test]
    fn what_is_left_is_spread_over_tpcs_and_numbered_by_gpc() {
        let mut next = 1;
        assert_eq!(units().plan(6, 4, &mut next), [8, 9, 2, 6, 0, 4]);
        assert_eq!(next, 1);
        assert_eq!(units().plan(7, 4, &mut next), [8, 9, 2, 6, 0, 1, 4]);
        assert_eq!(units().plan(3, 4, &mut next), [8, 9, 0]);
        assert_eq!(next, 1);
        // The first GPC alone has a block, so the other one is next.
        next = 0;
        assert_eq!(units().plan(3, 4, &mut next), [8, 9, 0]);
        assert_eq!(next, 1);
        assert_eq!(units().plan(2, 4, &mut next), [8, 9]);
        assert_eq!(next, 1, "no GPC had a turn");
    }

    #[test]
    fn tpcs_with_turns_of_their_own_come_round_sooner() {
        let mut next = 0;
        let order = units().plan(40, 4, &mut next);
        let own: Vec<usize> = (0..40).filter(|at| order[*at] == 8).collect();
        // Five turns of four blocks, and the last two when no GPC is left to wait for.
        assert_eq!(own, [0, 22, 36, 38]);
        for sm in 0..10 {
            let count = order.iter().filter(|other| **other == sm).count();
            assert_eq!(count, 4, "SM {sm}");
        }
    }

    #[test]
    fn blocks_beyond_the_room_are_not_planned() {
        let mut next = 0;
        assert_eq!(units().plan(1000, 3, &mut next).len(), 30);
        assert_eq!(units().plan(0, 3, &mut next), [0; 0]);
    }

    /// What an H200 does, besides the order in which the TPCs with turns of their own come.
    #[test]
    fn blocks_go_where_an_h200_sends_them() {
        let config = lockstep_config::load::<&str>(Some("h200"), &[]).unwrap();
        let (first, tpcs) = (&config.dispatch.first_sms, &config.device.gpc_of_tpc);
        let gpcs = GpcMap::new(config.device.gpcs, tpcs);
        let turns = &config.dispatch.first_sms_turns;
        let units = Units::new(first, turns, &ranks(first, config.device.sms), &gpcs);
        let text = include_str!("../../../../validation/hardware/h200/placement.csv");
        let lines = text.lines().filter(|line| !line.starts_with('#')).skip(1);
        let mut others = Vec::new();
        for line in lines {
            let (blocks, sms) = line.split_once(',').unwrap();
            let own = |sm: u32| if first.contains(&sm) { u32::MAX } else { sm };
            let wanted = sms.split(' ').map(|sm| own(sm.parse().unwrap()));
            let plan = units.plan(blocks.parse().unwrap(), 4, &mut 1);
            if !plan.into_iter().map(own).eq(wanted) {
                others.push(blocks);
            }
        }
        // Up to eight blocks that are left go to TPCs with turns of their own before the last turn of a GPC.
        assert_eq!(others, ["265", "400"]);
    }
}
