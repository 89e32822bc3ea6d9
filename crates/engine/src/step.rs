//! One step of the engine: plan, run, commit, decide.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use lockstep_units::Time;

use crate::boundary::{Boundary, Control, Shard};
use crate::cost;
use crate::pool::Pool;
use crate::shared::Task;
use crate::{Engine, Options, Outcome, Partition, PartitionId, Schedule, Window};

impl<P: Partition, B: Boundary<P>> Engine<P, B> {
    /// Runs one epoch and what follows it.
    pub(crate) fn step(&mut self, window: Window) -> Option<Outcome> {
        self.collect_mail();
        self.step += 1;
        let alone = self.plan(window);
        self.work(alone);
        self.epoch += 1;
        self.figures.steps += 1;
        self.figures.alone += u64::from(alone);
        let fault = self.gather(alone);
        let shared = Arc::clone(&self.shared);
        // SAFETY: the workers wait, and the boundary is reached through this reference alone.
        let boundary = unsafe { &mut *shared.boundary.get() };
        let control = boundary.after(window, &mut self.view());
        if let Some((at, partition)) = fault {
            return Some(Outcome::Fault { at, partition });
        }
        (control == Control::Stop).then_some(Outcome::Stopped)
    }

    /// Decides who runs which partition, and whether the calling thread does it alone.
    fn plan(&mut self, window: Window) -> bool {
        // SAFETY: the workers wait.
        let plan = unsafe { &mut *self.shared.plan.get() };
        let Options {
            threads,
            schedule,
            jumping,
            perturbation,
            ..
        } = self.options;
        plan.step = self.step;
        plan.window = window;
        plan.jumping = jumping;
        plan.measure = threads > 1 && cost::is_measured(self.step);
        plan.perturbation = perturbation;
        let mut length = 0;
        for (index, wake) in self.shared.cells.wakes.iter().enumerate() {
            let mail = plan.mail[index / 64] >> (index % 64) & 1 != 0;
            if !jumping || mail || wake.load(Ordering::Relaxed) < window.end.0 {
                put(&mut plan.queue, &mut length, PartitionId(index as u32));
            }
        }
        cut(&mut plan.queue, length);
        let alone = !self.is_worth_sharing(&plan.queue);
        if alone || schedule == Schedule::Dynamic {
            plan.task = Task::Queue;
            self.shared.taken.0.store(0, Ordering::Relaxed);
            if let Some(perturbation) = perturbation {
                plan.queue
                    .sort_unstable_by_key(|id| perturbation.draw(self.step, id.0.into()));
            }
            return alone;
        }
        if schedule == Schedule::Balanced && cost::is_balanced(self.step) {
            cost::balance(&self.shared.cells.costs, &mut self.owners, threads);
        }
        plan.task = Task::Lists;
        self.lengths.fill(0);
        for &id in &plan.queue {
            let owner = match perturbation {
                Some(perturbation) => perturbation.draw(self.step, id.0.into()) as usize % threads,
                None => self.owners[id.index()] as usize,
            };
            put(&mut plan.lists[owner].0, &mut self.lengths[owner], id);
        }
        for (list, &length) in plan.lists.iter_mut().zip(&self.lengths) {
            cut(&mut list.0, length);
        }
        false
    }

    /// Whether running these partitions takes longer than meeting the other workers.
    fn is_worth_sharing(&self, queue: &[PartitionId]) -> bool {
        let Options {
            threads,
            together_from,
            together_from_nanoseconds,
            ..
        } = self.options;
        if threads == 1 || queue.len() < together_from {
            return false;
        }
        let costs = queue
            .iter()
            .map(|id| cost::expected(&self.shared.cells.costs[id.index()]));
        together_from_nanoseconds == 0 || costs.sum::<u64>() >= together_from_nanoseconds
    }

    /// Has the planned task done, by all workers or alone.
    fn work(&mut self, alone: bool) {
        let shared = &self.shared;
        if alone {
            // SAFETY: the workers wait, so this is the only one.
            unsafe { shared.share(0) };
            return;
        }
        let workers = self.options.threads;
        let pool = self
            .pool
            .get_or_insert_with(|| Pool::start(shared, workers));
        shared.gate.open();
        // SAFETY: the plan is written, and every worker does its share once.
        unsafe { shared.share_caught(0) };
        shared.gate.meet(&mut pool.patience);
        if shared.panicked.swap(false, Ordering::Relaxed) {
            let payload = shared
                .panic
                .lock()
                .unwrap_or_else(|poisoned| poisoned.into_inner())
                .take();
            std::panic::resume_unwind(payload.expect("a panic leaves its payload"));
        }
    }

    /// Takes the reports of the workers, commits what was logged, and returns the first fault.
    fn gather(&mut self, alone: bool) -> Option<(Time, PartitionId)> {
        // SAFETY: the workers wait.
        let plan = unsafe { &mut *self.shared.plan.get() };
        if !plan.logged.is_empty() {
            plan.logged.clear();
        }
        let mut fault = None;
        let workers = if alone { 1 } else { self.options.threads };
        for report in &self.shared.reports[..workers] {
            // SAFETY: the workers wait.
            let report = unsafe { &*report.0.get() };
            plan.logged.extend_from_slice(&report.logged);
            self.figures.runs += report.ran;
            self.figures.messages += report.sent;
            if report.sent > 0 {
                let earliest = self.in_flight.unwrap_or(Time::NEVER);
                self.in_flight = Some(earliest.min(report.earliest));
            }
            fault = [fault, report.fault].into_iter().flatten().min();
        }
        if !plan.logged.is_empty() {
            plan.logged.sort_unstable();
            for id in &plan.logged {
                self.uncleared[id.index() / 64] |= 1 << (id.index() % 64);
            }
            self.figures.commits += 1;
            if alone {
                // SAFETY: the workers wait, and nothing changes boundary or partitions meanwhile.
                unsafe { self.shared.commit(plan, Shard { index: 0, count: 1 }) };
            } else {
                plan.task = Task::Commit;
                self.work(false);
            }
        }
        fault
    }

    /// Notes who has messages from the last step.
    fn collect_mail(&mut self) {
        // SAFETY: the workers wait.
        let mail = unsafe { &mut (*self.shared.plan.get()).mail };
        if mail.iter().any(|&bits| bits != 0) {
            mail.fill(0);
        }
        if self.in_flight.take().is_none() {
            return;
        }
        // SAFETY: the workers wait.
        unsafe {
            self.shared.exchange.read(self.step, |side| {
                for (all, some) in mail.iter_mut().zip(side.mail()) {
                    *all |= some;
                }
            });
        }
    }

    /// When anybody next has work, messages of the last step included.
    pub(crate) fn earliest_work(&self) -> Time {
        let wakes = self.shared.cells.wakes.iter();
        let next = wakes.map(|wake| wake.load(Ordering::Relaxed)).min();
        Time(next.unwrap_or(u64::MAX)).min(self.in_flight.unwrap_or(Time::NEVER))
    }

    /// Brings everything into the state in which it is seen from outside: messages in the
    /// inboxes, logs cleared.
    pub(crate) fn settle(&mut self) {
        self.collect_mail();
        let cells = &self.shared.cells;
        // SAFETY: the workers wait.
        let mail = unsafe { &(*self.shared.plan.get()).mail };
        for id in ones(mail) {
            // SAFETY: the workers wait, and this is the only reference to the cell.
            let cell = unsafe { cells.get(id) };
            // SAFETY: the workers wait.
            unsafe {
                self.shared.exchange.take(self.step, id, |order, message| {
                    cell.inbox.push(order, message);
                });
            }
            let due = cell.inbox.next_due().unwrap_or(Time::NEVER);
            cells.wakes[id.index()].fetch_min(due.0, Ordering::Relaxed);
        }
        // What was sent in the last step is taken: no later step may look for it.
        self.step += 1;
        for id in ones(&self.uncleared) {
            // SAFETY: the workers wait, and this is the only reference to the cell.
            let cell = unsafe { cells.get(id) };
            if std::mem::take(&mut cell.logged) {
                cell.partition.clear_log();
            }
        }
        self.uncleared.fill(0);
    }
}

/// Makes `id` the element at `length` of a list and counts it, without writing if it is there
/// already: lists seldom change, and what is not written stays in the caches of the workers.
#[inline]
fn put(list: &mut Vec<PartitionId>, length: &mut usize, id: PartitionId) {
    if list.get(*length) != Some(&id) {
        list.truncate(*length);
        list.push(id);
    }
    *length += 1;
}

/// Ends a list that [`put`] has written.
fn cut(list: &mut Vec<PartitionId>, length: usize) {
    if list.len() > length {
        list.truncate(length);
    }
}

/// The partitions whose bits are set.
fn ones(words: &[u64]) -> impl Iterator<Item = PartitionId> {
    words.iter().enumerate().flat_map(|(word, &bits)| {
        let mut left = bits;
        std::iter::from_fn(move || {
            (left != 0).then(|| {
                let bit = left.trailing_zeros();
                left &= left - 1;
                PartitionId(word as u32 * 64 + bit)
            })
        })
    })
}
