//! Kernels end: their blocks have, their writes are in, and the grids that they launched are complete.
//!
//! Start reading at [`WorkDistributor::end_kernels`].

use lockstep_engine::{Outbox, PartitionId};
use lockstep_units::{Bytes, Time};

use super::device_launches::{GridNumber, ReadyLaunch};
use super::work_distributor::WorkDistributor;
use crate::launch::{KernelRecord, LaunchId};
use crate::message::Message;

impl WorkDistributor {
    pub(super) fn end_kernels(&mut self, now: Time, outbox: &mut Outbox<'_, Message>) {
        let before = self.state.running.len();
        let clock = self.parameters.clock;
        let mut index = 0;
        while index < self.state.running.len() {
            let running = &self.state.running[index];
            let ended = running.draining == 0;
            let Some(end) = running.end.filter(|end| ended && *end <= now) else {
                index += 1;
                continue;
            };
            let running = self.state.running.remove(index);
            self.note(end, || format!("launch {} is complete", running.launch));
            let context = self
                .launches
                .get(running.launch)
                .expect("a running launch is in the table");
            let latencies = &self.parameters.device.latencies;
            let record = KernelRecord {
                launch: LaunchId(running.launch),
                kernel: context.launch.kernel().name.clone(),
                grid: context.launch.config.grid,
                block: context.launch.config.block,
                registers: context.launch.kernel().registers,
                shared: u64::from(context.launch.own_shared()),
                queue: context.launch.queue,
                start: running.start,
                end,
                complete: end,
                start_cycle: clock.cycle_at_or_after(running.start),
                end_cycle: clock.cycle_at_or_after(end),
                counters: running.counters,
                tag: running.tag,
                launched_by: context.launched_by,
            };
            let devices = &mut self.state.device_launches;
            if devices.ended(running.launch, end, latencies) {
                self.state.open.insert(running.launch, record);
                let complete = devices.take_complete();
                self.state.completing.extend(complete);
            } else {
                self.state.ended.insert(record.queue, end);
                self.state.records.push(record);
            }
        }
        if self.complete_kernels(now) || self.state.running.len() != before {
            self.release_dependents(now, outbox);
        }
    }

    /// Tells blocks that wait for the grids before theirs, if these have ended.
    fn release_dependents(&mut self, now: Time, outbox: &mut Outbox<'_, Message>) {
        for index in 0..self.state.running.len() {
            let running = &self.state.running[index];
            let (queue, launch) = (running.queue, running.launch);
            let mut all = self.state.running.iter();
            let mut open = self.state.open.values();
            if !running.waits
                || all.any(|other| other.queue == queue && other.launch < launch)
                || open.any(|other| other.queue == queue && other.launch.0 < launch)
            {
                continue;
            }
            let running = &mut self.state.running[index];
            running.waits = false;
            if running.sent == 0 {
                continue;
            }
            for sm in 0..self.parameters.sms {
                let to = PartitionId(self.parameters.first_sm + sm);
                let message = Message::PrerequisitesDone { launch };
                outbox.send(self.parameters.start, to, now, Bytes(0), message);
            }
        }
    }

    /// Hands on the records of kernels that are complete by now, with all that they launched. Says whether there are any.
    fn complete_kernels(&mut self, now: Time) -> bool {
        let before = self.state.completing.len();
        let (due, later) = std::mem::take(&mut self.state.completing)
            .into_iter()
            .partition(|(_, at)| *at <= now);
        self.state.completing = later;
        let mut due: Vec<(u32, Time)> = due;
        due.sort_by_key(|(launch, at)| (*at, *launch));
        for (launch, at) in due {
            let Some(mut record) = self.state.open.remove(&launch) else {
                continue;
            };
            record.complete = at;
            self.note(at, || {
                format!("launch {launch} and all that it launched are complete")
            });
            if record.launched_by.is_none() {
                self.state.ended.insert(record.queue, at);
            }
            self.state.records.push(record);
        }
        self.state.completing.len() != before
    }

    /// When the next kernel is complete of which nothing runs any more.
    pub(super) fn next_completion(&self) -> Time {
        let times = self.state.completing.iter().map(|(_, at)| *at);
        times.min().unwrap_or(Time::NEVER)
    }

    /// Whether kernels launched grids that nothing holds back.
    #[must_use]
    pub fn has_device_launches(&self) -> bool {
        !self.state.device_launches.ready().is_empty()
    }

    /// Takes the grids that kernels launched and that nothing holds back.
    pub fn take_device_launches(&mut self) -> Vec<ReadyLaunch> {
        self.state.device_launches.take_ready()
    }

    /// One of them has become a launch.
    pub fn device_launch_begun(&mut self, grid: GridNumber, launch: LaunchId) {
        self.state.device_launches.begun(grid, launch.0);
    }
}
