//! Blocks and clusters leave for SMs.
//!
//! Start reading at [`WorkDistributor::send_blocks`].

use lockstep_engine::{Outbox, PartitionId};
use lockstep_units::{Bytes, Time};

use super::policy::DispatchPolicy;
use super::slots::SmSlots;
use super::work_distributor::WorkDistributor;
use crate::message::{Message, StartCluster};
use crate::probe::Topic;

/// Where blocks go.
enum Target {
    /// One block to an SM.
    Sm(u32),
    /// A cluster to several, by rank.
    Cluster(Vec<u32>),
}

impl WorkDistributor {
    /// Sends blocks, those of the most urgent and then of the oldest kernel first, as many as `now`
    /// allows. Blocks that run are never taken from their SM for more urgent ones.
    pub(super) fn send_blocks(&mut self, now: Time, outbox: &mut Outbox<'_, Message>) {
        while self.state.next_send <= now {
            let Some((index, target)) = self.next_block(now) else {
                return;
            };
            let interval = match target {
                Target::Sm(sm) => {
                    self.send_block(index, sm, now, outbox);
                    self.parameters.interval
                }
                Target::Cluster(sms) => {
                    self.send_cluster(index, &sms, now, outbox);
                    self.parameters.interval * sms.len() as u64 + self.parameters.cluster_interval
                }
            };
            // The first blocks go to all SMs at once.
            if self.state.running[index].sent >= u64::from(self.parameters.sms) {
                self.state.next_send = now + interval;
            }
        }
    }

    fn send_block(&mut self, index: usize, sm: u32, now: Time, outbox: &mut Outbox<'_, Message>) {
        let running = &mut self.state.running[index];
        let message = Message::StartBlock {
            launch: running.launch,
            block: running.sent,
            tag: running.tag,
            waits: running.waits,
        };
        running.sent += 1;
        if let DispatchPolicy::GpcRounds { next } = &mut self.policy
            && running.sent > running.plan.len() as u64
            && running.sent == running.blocks
        {
            self.parameters.units.passed(sm, next);
        }
        self.send_to(index, sm, message, now, outbox);
    }

    /// Sends the blocks of a cluster, all at once.
    fn send_cluster(
        &mut self,
        index: usize,
        sms: &[u32],
        now: Time,
        outbox: &mut Outbox<'_, Message>,
    ) {
        let running = &mut self.state.running[index];
        let number = running.sent / u64::from(running.cluster);
        running.sent += u64::from(running.cluster);
        let (launch, tag, waits) = (running.launch, running.tag, running.waits);
        let context = self.waiting_context(launch);
        let block = |rank: u32| context.launch.block_of_cluster(number, rank);
        let ranked = (0..).zip(sms);
        let blocks: Vec<(u32, u64)> = ranked.map(|(rank, sm)| (*sm, block(rank))).collect();
        for (rank, sm) in (0..).zip(sms) {
            let message = Message::StartCluster(Box::new(StartCluster {
                launch,
                tag,
                waits,
                rank,
                blocks: blocks.clone(),
            }));
            self.send_to(index, *sm, message, now, outbox);
        }
    }

    fn send_to(
        &mut self,
        index: usize,
        sm: u32,
        message: Message,
        now: Time,
        outbox: &mut Outbox<'_, Message>,
    ) {
        if let Some(probe) = &self.probe {
            probe.note(Topic::Dispatcher, now, || {
                format!("sends {} to sm {sm}", message.words())
            });
        }
        self.state.stats.blocks.increment();
        let running = &self.state.running[index];
        let slots = &mut self.state.slots[sm as usize];
        let before = slots.warps;
        slots.take(running.launch, &running.needs);
        self.note_warps(sm, before);
        let to = PartitionId(self.parameters.first_sm + sm);
        outbox.send(self.parameters.start, to, now, Bytes(64), message);
    }

    /// A kernel with a block or a cluster that fits somewhere, and where. While a cluster fits nowhere, nothing
    /// of kernels behind its own is sent: their blocks would take the room that it waits for, one by one.
    fn next_block(&mut self, now: Time) -> Option<(usize, Target)> {
        for (index, running) in self.state.running.iter().enumerate() {
            if !running.has_block(now) {
                continue;
            }
            let clustered = running.cluster > 1;
            if self.nowhere.contains(&running.launch) {
                if clustered {
                    return None;
                }
                continue;
            }
            let limits = &self.parameters.limits;
            let slots = &self.state.slots;
            let fits = |slots: &SmSlots| slots.fits(running.launch, &running.needs, limits);
            if clustered {
                let fits = |sm: u32| fits(&slots[sm as usize]);
                let next = &mut self.state.next_gpc;
                let groups = &self.parameters.clusters;
                if let Some(sms) = groups.place(running.cluster, next, slots, fits) {
                    return Some((index, Target::Cluster(sms)));
                }
                self.nowhere.push(running.launch);
                return None;
            }
            let planned = running.plan.get(running.sent as usize).copied();
            let planned = planned.filter(|sm| fits(&slots[*sm as usize]));
            let sm = planned.or_else(|| self.policy.pick(slots, &self.freest, fits));
            if let Some(sm) = sm {
                return Some((index, Target::Sm(sm)));
            }
            self.nowhere.push(running.launch);
        }
        None
    }

    /// When something of its own is to happen: a kernel is complete, or a block may leave that has
    /// room. A block that fits nowhere waits for a message.
    pub(super) fn next_action(&mut self, now: Time) -> Time {
        let mut next = self.next_completion();
        for running in &self.state.running {
            if let Some(end) = running.end.filter(|_| running.draining == 0) {
                next = next.min(end);
            }
        }
        let limits = &self.parameters.limits;
        let slots = &self.state.slots;
        // From when on a cluster that fits nowhere holds back what is behind it.
        let mut held = Time::NEVER;
        for running in &self.state.running {
            let at = running.first.max(self.state.next_send).max(now);
            if running.sent >= running.blocks || at >= held {
                continue;
            }
            let clustered = running.cluster > 1;
            let mut room = !self.nowhere.contains(&running.launch);
            if room && at < next {
                let fits =
                    |sm: u32| slots[sm as usize].fits(running.launch, &running.needs, limits);
                room = if clustered {
                    let mut turn = self.state.next_gpc;
                    let groups = &self.parameters.clusters;
                    groups
                        .place(running.cluster, &mut turn, slots, fits)
                        .is_some()
                } else {
                    self.freest.iter().any(fits)
                };
                if room {
                    next = at;
                } else {
                    self.nowhere.push(running.launch);
                }
            }
            if clustered && !room {
                held = held.min(running.first);
            }
        }
        next
    }
}
