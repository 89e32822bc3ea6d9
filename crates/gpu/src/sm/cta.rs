//! Blocks come and go.

use std::sync::Arc;

use lockstep_engine::Outbox;
use lockstep_units::Bytes;
use serde::{Deserialize, Serialize};

use super::ordering::{FenceWait, Waiter};
use super::warp::Block;
use super::{Issue, OwnContext, Sm};
use crate::counters::Counters;
use crate::message::{BlockDone, Message};
use crate::probe::Topic;
use crate::sm::now::Now;

/// A launch with blocks on this SM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Present {
    pub launch: u32,
    pub blocks: u32,
    pub since: u64,
    /// Warps that have left each sub-core, since the launch came.
    pub left: Vec<u32>,
    /// Blocks that have ended.
    pub ended: u32,
    /// Blocks for which the dispatcher was told that there is room.
    pub rooms: u32,
}

/// The slot of a warp that has left.
pub(super) const GONE: u8 = u8::MAX;

impl Present {
    /// A block of so many warps has ended. For how many more blocks there is room now: as many as
    /// could be dealt to the sub-cores for the warps that have left them, and at least one for each
    /// block that has ended.
    fn end_block(&mut self, warps: u32) -> u32 {
        self.ended += 1;
        let sub_cores = self.left.len() as u32;
        let dealt = if warps.is_multiple_of(sub_cores) {
            let fewest = self.left.iter().min().copied().unwrap_or(0);
            fewest / (warps / sub_cores)
        } else {
            // Blocks whose warps cannot be dealt evenly fill what others of them leave.
            self.left.iter().sum::<u32>() / warps
        };
        let rooms = dealt.max(self.ended);
        let more = rooms - self.rooms;
        self.rooms = rooms;
        more
    }
}

impl Sm {
    pub(super) fn start_block(&mut self, launch: u32, index: u64, now: Now) {
        let context = self.own_context(launch);
        let slot = self
            .blocks
            .iter()
            .position(Option::is_none)
            .expect("the dispatcher counts block slots");
        let sms = u64::from(self.parameters.sms.max(1));
        self.port.share = (context.launch.blocks().min(sms) * 256 / sms).max(1) as u32;
        let [x, y, _] = context.launch.grid.map(u64::from);
        let mut identity = context.identity(self.parameters.sms);
        identity.block = [
            (index % x) as u32,
            (index / x % y) as u32,
            (index / (x * y)) as u32,
        ];
        identity.sm = self.number;
        identity.warp_slots = self.parameters.warps;
        identity.timer_step = self.parameters.timer_step;
        let mut warps = Vec::with_capacity(context.launch.warps() as usize);
        let first = (!self.resident).trailing_zeros();
        for number in 0..context.launch.warps() {
            let free = self.free_slot(first, number);
            identity.warp_in_block = number;
            identity.warp_slot = free;
            self.warps[free as usize].start(&context, identity, slot as u8);
            self.resident |= 1 << free;
            warps.push(free as u8);
        }
        match self
            .present
            .iter_mut()
            .find(|present| present.launch == launch)
        {
            Some(present) => present.blocks += 1,
            None => {
                self.present.push(Present {
                    launch,
                    blocks: 1,
                    since: now.cycle,
                    left: vec![0; self.parameters.sub_cores.max(1) as usize],
                    ended: 0,
                    rooms: 0,
                });
                if let Some(translation) = &mut self.port.translation {
                    translation.start_launch();
                }
            }
        }
        self.stats.blocks.increment();
        self.stats.warps.add(warps.len() as u64);
        self.blocks[slot] = Some(Box::new(Block {
            launch,
            index,
            live: (u64::MAX >> (64 - warps.len())) as u32,
            shared: vec![0; context.launch.shared().next_multiple_of(16) as usize],
            barriers: Default::default(),
            counters: Counters {
                warps_launched: warps.len() as u64,
                ..Counters::default()
            },
            since: now.cycle,
            stored: 0,
            warps: warps.clone(),
        }));
        if let Issue::Timing(timing) = &mut self.issue {
            let alone = self.present.len() == 1;
            timing.start_block(&context, alone, self.parameters.cold, now.cycle);
            let native = context.launch.module.native;
            for warp in &warps {
                let of = &self.warps[usize::from(*warp)];
                let interval = self.parameters.warp_interval;
                timing.start_warp(*warp, of, native, now.cycle, interval);
            }
        }
        self.contexts[slot] = Some(context);
        for warp in warps {
            self.refresh(warp, now.cycle);
        }
    }

    /// A slot for a warp of a new block: its warps are dealt to the sub-cores, from `first` on.
    fn free_slot(&self, first: u32, number: u32) -> u32 {
        let (warps, sub_cores) = (self.parameters.warps, self.parameters.sub_cores.max(1));
        let own = ((first + number) % sub_cores..warps).step_by(sub_cores as usize);
        let free = |slot: &u32| self.resident >> slot & 1 == 0;
        let slot = own.chain(0..warps).find(free);
        slot.expect("the dispatcher counts warp slots")
    }

    /// A warp has ended and has all its answers: its place is free, though its block may not have ended.
    pub(super) fn leave(&mut self, slot: u8) {
        let warp = &self.warps[usize::from(slot)];
        let member = warp.identity.warp_in_block as usize;
        let block = self.blocks[usize::from(warp.block)]
            .as_mut()
            .expect("a warp has a block");
        block.warps[member] = GONE;
        self.resident &= !(1 << slot);
        self.ready &= !(1 << slot);
        let launch = block.launch;
        let present = self
            .present
            .iter_mut()
            .find(|present| present.launch == launch);
        let present = present.expect("the launch of a block is present");
        let sub_core = usize::from(slot) % present.left.len();
        present.left[sub_core] += 1;
    }

    /// The launch, as another block here has it or else from the table.
    fn own_context(&self, launch: u32) -> OwnContext {
        let mut here = self.contexts.iter().flatten();
        if let Some(context) = here.find(|context| context.id.0 == launch) {
            return Arc::clone(context);
        }
        let context = self.launches.get(launch);
        Arc::new(context.expect("the dispatcher starts launches of the table"))
    }

    /// If all warps of a block have ended and their answers are in, waits for what it sent.
    /// Whether the block may be reported is decided by `check_fences`, at once or later.
    pub(super) fn try_end_block(&mut self, slot: u8) {
        let Some(block) = &self.blocks[usize::from(slot)] else {
            return;
        };
        if block.live != 0 || block.warps.iter().any(|warp| *warp != GONE) {
            return;
        }
        let generation = self.port.in_flight.close();
        let until = block.stored;
        self.wait_for(FenceWait {
            waiter: Waiter::Block(slot),
            generation,
            boundary: false,
            until,
        });
    }

    pub(super) fn end_block(&mut self, slot: u8, now: Now, outbox: &mut Outbox<'_, Message>) {
        let block = self.blocks[usize::from(slot)]
            .take()
            .expect("a block ends once");
        self.contexts[usize::from(slot)] = None;
        let mut counters = block.counters;
        counters.blocks_completed = 1;
        counters.warp_cycles += (now.cycle - block.since) * block.warps.len() as u64;
        let position = self
            .present
            .iter()
            .position(|present| present.launch == block.launch)
            .expect("the launch of a block is present");
        self.present[position].blocks -= 1;
        let rooms = self.present[position].end_block(block.warps.len() as u32);
        if self.present[position].blocks == 0 {
            let present = self.present.remove(position);
            counters.active_cycles = now.cycle - present.since;
            self.stats.active.add(counters.active_cycles);
        }
        self.stats.count(&counters);
        if let Some(probe) = &self.port.probe {
            probe.note(Topic::Sm, now.time, || {
                let cycles = now.cycle - block.since;
                format!(
                    "a block of launch {} ends after {cycles} cycles",
                    block.launch
                )
            });
        }
        let done = Message::BlockDone(Box::new(BlockDone {
            launch: block.launch,
            rooms,
            counters,
        }));
        let wiring = self.port.wiring;
        outbox.send(
            wiring.report,
            wiring.dispatcher,
            now.time,
            Bytes(wiring.header),
            done,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn present(left: &[u32]) -> Present {
        Present {
            launch: 0,
            blocks: 4,
            since: 0,
            left: left.to_vec(),
            ended: 0,
            rooms: 0,
        }
    }

    #[test]
    fn warps_that_have_left_make_room_alike_from_all_sub_cores() {
        let mut here = present(&[8, 9, 8, 11]);
        assert_eq!(here.end_block(16), 2, "of several blocks");
        here.left = vec![11, 9, 12, 12];
        assert_eq!(here.end_block(16), 0, "the room was told of before");
        here.left = vec![12, 12, 12, 12];
        assert_eq!(here.end_block(16), 1);
        // Six warps are not dealt evenly.
        assert_eq!(present(&[3, 0, 9, 1]).end_block(6), 2);
    }

    /// Other launches may have been in the way when the warps were dealt.
    #[test]
    fn every_block_that_ends_makes_room() {
        let mut here = present(&[0, 2, 1, 1]);
        assert_eq!(here.end_block(4), 1);
        here.left = vec![1, 3, 2, 2];
        assert_eq!(here.end_block(4), 1);
    }
}
