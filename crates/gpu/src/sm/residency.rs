//! Blocks come to an SM, their warps leave it, blocks end.

use lockstep_counters::Counters;
use lockstep_engine::Outbox;
use lockstep_units::Bytes;

use super::cluster::{ClusterBarrier, ClusterMember};
use super::cta::{Block, GONE, OwnContext};
use super::issue_model::IssueModel;
use super::mbarrier_table::MbarrierTable;
use super::now::Now;
use super::ordering::{FenceWait, Waiter};
use super::report;
use super::state::SmState;
use crate::check::race::RaceChecker;
use crate::fault::FaultKind;
use crate::message::{BlockDone, Message, StartCluster};
use crate::probe::Topic;

impl SmState {
    /// A block comes: its warps get slots, dealt to the sub-cores.
    pub(super) fn start_block<M: IssueModel>(
        &mut self,
        model: &mut M,
        launch: u32,
        index: u64,
        tag: u8,
        waits: bool,
        cluster: Option<Box<ClusterMember>>,
        now: Now,
    ) {
        let context = self.blocks.own_context(launch, &self.launches);
        let slot = self.blocks.blocks.iter().position(Option::is_none);
        let slot = slot.expect("the work distributor counts block slots");
        let sms = u64::from(self.parameters.sms.max(1));
        self.port.share = (context.launch.config.blocks().min(sms) * 256 / sms).max(1) as u32;
        let sub_cores = self.parameters.sub_cores.max(1);
        let warps = self.place_warps(&context, slot as u8, index, sub_cores);
        if self.blocks.add(launch, sub_cores as usize, now.cycle)
            && let Some(translation) = &mut self.port.translation
        {
            translation.start_launch();
        }
        // An H200 gives shared memory in units of 128 bytes, and an access within them passes; the check for such
        // accesses sees words alone.
        let unit = if self.port.checks.memory { 4 } else { 128 };
        let shared = context.launch.shared().next_multiple_of(unit) as usize;
        let race = self.port.checks.race;
        let race = race.then(|| Box::new(RaceChecker::new(warps.len(), shared)));
        self.blocks.blocks[slot] = Some(Box::new(Block {
            launch,
            tag,
            index,
            live: (u64::MAX >> (64 - warps.len())) as u32,
            shared: vec![0; shared],
            mbarriers: MbarrierTable::default(),
            cluster,
            waits,
            triggered: false,
            barriers: Default::default(),
            counters: Counters {
                warps_launched: warps.len() as u64,
                ..Counters::default()
            },
            since: now.cycle,
            stored: 0,
            warpgroups: None,
            race,
            trace: self.begin_trace(launch, warps.len()),
            warps: warps.clone(),
        }));
        let alone = self.blocks.is_alone();
        model.start_block(&context, &self.warps, &warps, alone, now.cycle);
        let replayed = context.launch.module.trace.clone();
        self.blocks.contexts[slot] = Some(context);
        if let Some(source) = replayed
            && let Err(problem) = self.begin_replay(&*source, index, &warps)
        {
            let kind = FaultKind::Trace(problem);
            return report::fail_block(self, slot as u8, kind, now);
        }
        for warp in warps {
            self.refresh(model, warp, now.cycle);
        }
    }

    /// A block of a cluster comes.
    pub(super) fn start_cluster<M: IssueModel>(
        &mut self,
        model: &mut M,
        start: StartCluster,
        now: Now,
    ) {
        let context = self.blocks.own_context(start.launch, &self.launches);
        let warps = context.launch.config.warps() as usize;
        let (_, index) = start.blocks[start.rank as usize];
        let member = ClusterMember {
            rank: start.rank,
            barrier: ClusterBarrier::new(start.blocks.len(), warps),
            blocks: start.blocks,
        };
        let member = Some(Box::new(member));
        self.start_block(
            model,
            start.launch,
            index,
            start.tag,
            start.waits,
            member,
            now,
        );
    }

    /// Fills a warp slot for each warp of a new block.
    fn place_warps(
        &mut self,
        context: &OwnContext,
        block: u8,
        index: u64,
        sub_cores: u32,
    ) -> Vec<u8> {
        let [x, y, _] = context.launch.config.grid.map(u64::from);
        let mut identity = context.identity(self.parameters.sms);
        identity.block = [
            (index % x) as u32,
            (index / x % y) as u32,
            (index / (x * y)) as u32,
        ];
        identity.sm = self.number;
        identity.warp_slots = self.parameters.warps;
        identity.timer_step = self.parameters.timer_step;
        let mut warps = Vec::with_capacity(context.launch.config.warps() as usize);
        let first = (!self.slots.resident).trailing_zeros();
        for number in 0..context.launch.config.warps() {
            let all = self.parameters.warps;
            let free = self.slots.free_slot(first, number, all, sub_cores);
            identity.warp_in_block = number;
            identity.warp_slot = free;
            self.warps[free as usize].start(context, identity, block);
            if !self.last_errors.is_empty() {
                self.last_errors.remove(&(free as u8));
            }
            self.slots.resident |= 1 << free;
            warps.push(free as u8);
        }
        warps
    }

    /// A warp has ended and has all its answers.
    pub(super) fn leave(&mut self, slot: u8) {
        let warp = &self.warps[usize::from(slot)];
        let member = warp.identity.warp_in_block as usize;
        self.blocks.warp_leaves(warp.block, member, slot);
        self.port.bulk.groups.leave(slot);
        self.slots.leave(slot);
    }

    /// If all warps of a block have ended and their answers are in, waits for what it sent.
    /// Whether the block may be reported is decided by `check_fences`, at once or later.
    pub(super) fn try_end_block(&mut self, slot: u8) {
        let Some(block) = &self.blocks.blocks[usize::from(slot)] else {
            return;
        };
        if block.live != 0 || block.warps.iter().any(|warp| *warp != GONE) {
            return;
        }
        self.ordering.wait_for(FenceWait {
            waiter: Waiter::Block(slot),
            generation: self.port.in_flight.close(),
            boundary: false,
            until: block.stored,
        });
    }

    /// A block has ended, and everything that it sent has arrived.
    pub(super) fn end_block(&mut self, slot: u8, now: Now, outbox: &mut Outbox<'_, Message>) {
        let (mut block, rooms) = self.blocks.remove(slot, now.cycle);
        self.end_trace(&mut block);
        self.stats.add(&block.counters);
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
            triggered: block.triggered,
            rooms,
            counters: block.counters,
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
