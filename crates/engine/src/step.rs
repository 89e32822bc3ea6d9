//! One step of the engine: plan, run, commit, decide.

use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use lockstep_units::Time;

use crate::boundary::{Boundary, Control, Shard};
use crate::cells::Cells;
use crate::cost;
use crate::pool::Pool;
use crate::profile::Stopwatch;
use crate::ranks::Lost;
use crate::shared::{Task, is_set};
use crate::{Engine, Options, Outcome, Partition, PartitionId, Schedule, Window};

/// Nanoseconds that a partition must be expected to take for another worker to take it over: with
/// less, finding it takes as long.
const WORTH_STEALING: u64 = 300;

impl<P: Partition, B: Boundary<P>> Engine<P, B> {
    /// Runs one epoch and what follows it.
    pub(crate) fn step(&mut self, window: Window) -> Option<Outcome> {
        self.collect_mail();
        self.step += 1;
        let workers = self.plan(window);
        self.run_workers(workers);
        self.epoch += 1;
        self.counters.steps += 1;
        self.counters.alone += u64::from(workers == 1);
        self.counters.workers += workers as u64;
        let Ok(fault) = self.collect_reports(workers) else {
            return Some(Outcome::Lost);
        };
        let shared = Arc::clone(&self.shared);
        // SAFETY: the workers wait, and the boundary is reached through this reference alone.
        let boundary = unsafe { &mut *shared.boundary.get() };
        let control = boundary.after(window, &mut self.view());
        if shared.cells.touched.swap(false, Ordering::Relaxed) {
            self.refresh_wakes();
        }
        if shared.cells.asked.swap(false, Ordering::Relaxed) && self.agree_on_wakes().is_err() {
            return Some(Outcome::Lost);
        }
        if let Some((at, partition)) = fault {
            return Some(Outcome::Fault { at, partition });
        }
        (control == Control::Stop).then_some(Outcome::Stopped)
    }

    /// Decides who has work, and how many workers take part.
    fn plan(&mut self, window: Window) -> usize {
        // SAFETY: the workers wait.
        let plan = unsafe { &mut *self.shared.plan.get() };
        let Options {
            threads,
            schedule,
            jumping,
            perturbation,
            ..
        } = self.options;
        let cells = &self.shared.cells;
        plan.step = self.step;
        plan.window = window;
        plan.horizon = window.end + window.length();
        plan.jumping = jumping;
        plan.measure = threads > 1 && cost::is_measured(self.step);
        plan.perturbation = perturbation;
        if threads > 1 && schedule != Schedule::Static && cost::is_balanced(self.step) {
            balance(cells, threads);
        }
        if threads > 1 && cost::is_ordered(self.step) {
            for (known, cost) in self.costs.iter_mut().zip(&cells.costs) {
                *known = cost::expected(cost);
            }
            let costs = &self.costs;
            plan.order
                .sort_by_key(|id| (Reverse(costs[id.index()]), *id));
        }
        for (index, active) in plan.active.iter_mut().enumerate() {
            let of_word = self.next_wake.iter().skip(index * 64).take(64);
            let bits = of_word.enumerate().fold(0, |bits, (bit, wake)| {
                bits | u64::from(!jumping || *wake < window.end.0) << bit
            });
            *active = bits | plan.mail[index];
            if let Some(split) = &self.split {
                *active &= split.local[index];
            }
            // Whoever runs a partition clears its log first.
            self.uncleared[index] &= !*active;
        }
        let workers = self.workers_for(&plan.active);
        plan.workers = workers;
        if workers == 1 {
            plan.task = Task::Alone;
            plan.queue.clear();
            let active = plan.order.iter().filter(|id| is_set(&plan.active, **id));
            plan.queue.extend(active);
            if let Some(perturbation) = perturbation {
                plan.queue
                    .sort_unstable_by_key(|id| perturbation.draw(self.step, id.0.into()));
            }
            return workers;
        }
        plan.worth_stealing = match (perturbation, self.options.together_from_nanoseconds) {
            (None, 1..) => WORTH_STEALING,
            _ => 0,
        };
        plan.task = match schedule {
            Schedule::Dynamic => Task::Steal,
            Schedule::Static | Schedule::Balanced => Task::OwnQueue,
        };
        workers
    }

    /// How many workers the partitions with work are worth.
    fn workers_for(&mut self, active: &[u64]) -> usize {
        let Options {
            threads,
            together_from,
            together_from_nanoseconds,
            ..
        } = self.options;
        let count = active.iter().map(|bits| bits.count_ones() as usize).sum();
        if threads == 1 || count < together_from {
            return 1;
        }
        let costs = ones(active.iter().copied()).map(|id| self.costs[id.index()]);
        let enough = together_from_nanoseconds;
        self.worker_count.choose(threads, count, costs, enough)
    }

    /// Has the planned task done, by so many workers.
    fn run_workers(&mut self, workers: usize) {
        let shared = &self.shared;
        // SAFETY: the workers wait.
        let (task, measure) = unsafe { ((*shared.plan.get()).task, (*shared.plan.get()).measure) };
        if workers == 1 {
            let watch = measure.then(Stopwatch::start);
            // SAFETY: the workers wait, so this is the only one.
            unsafe { shared.run_worker(0) };
            if let Some(watch) = watch {
                let (count, time) = &mut self.profile.alone_measured;
                *count += 1;
                *time += Duration::from_nanos(watch.read());
            }
            return;
        }
        let threads = self.options.threads;
        let pool = self
            .pool
            .get_or_insert_with(|| Pool::start(shared, threads));
        let watch = Stopwatch::start();
        shared.epoch_barrier.open(workers - 1);
        // SAFETY: the plan is written, and every worker does its share once.
        unsafe { shared.run_worker_caught(0) };
        shared
            .epoch_barrier
            .wait_for_all(&mut pool.spin_budget, || shared.prefetch_planning(workers));
        let wall = watch.read();
        // SAFETY: the workers wait.
        let busy = shared.reports[..workers]
            .iter()
            .map(|report| unsafe { (*report.0.get()).busy });
        let longest = busy.clone().max().unwrap_or(0);
        self.worker_count
            .note(wall.saturating_sub(longest), workers);
        match task {
            Task::Commit => self.profile.committing.enter(wall, busy),
            _ => self.profile.running.enter(wall, busy),
        }
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
    fn collect_reports(&mut self, workers: usize) -> Result<Option<(Time, PartitionId)>, Lost> {
        // SAFETY: the workers wait.
        let plan = unsafe { &mut *self.shared.plan.get() };
        if !plan.logged.is_empty() {
            plan.logged.clear();
        }
        for id in ones(plan.active.iter().copied()) {
            self.next_wake[id.index()] = u64::MAX;
        }
        let mut fault = None;
        for (report, wake_report) in self.shared.reports[..workers]
            .iter()
            .zip(&self.shared.wake_reports)
        {
            // SAFETY: the workers wait.
            let report = unsafe { &*report.0.get() };
            plan.logged.extend_from_slice(&report.logged);
            self.counters.runs += report.ran;
            self.counters.messages += report.sent;
            if report.sent > 0 {
                let earliest = self.in_flight.unwrap_or(Time::NEVER);
                self.in_flight = Some(earliest.min(report.earliest));
                for (all, some) in self.mail.iter_mut().zip(wake_report.0.mail()) {
                    *all |= some;
                }
            }
            for (id, wake) in wake_report.0.later() {
                self.next_wake[id.index()] = wake;
            }
            for id in ones(wake_report.0.due()) {
                self.next_wake[id.index()] = plan.window.end.0;
            }
            fault = [fault, report.fault].into_iter().flatten().min();
        }
        for (id, _) in &plan.logged {
            self.uncleared[id.index() / 64] |= 1 << (id.index() % 64);
        }
        fault = self.meet(plan, fault)?;
        if !plan.logged.is_empty() {
            plan.logged.sort_unstable();
            self.counters.commits += 1;
            if workers == 1 {
                // SAFETY: the workers wait, and nothing changes boundary or partitions meanwhile.
                unsafe { self.shared.commit(plan, Shard { index: 0, count: 1 }) };
            } else {
                plan.task = Task::Commit;
                self.run_workers(workers);
            }
            self.clear_ghost_logs(plan);
        }
        Ok(fault)
    }

    /// Says who has messages from the last step.
    fn collect_mail(&mut self) {
        // SAFETY: the workers wait.
        let mail = unsafe { &mut (*self.shared.plan.get()).mail };
        if mail.iter().any(|&bits| bits != 0) {
            mail.fill(0);
        }
        if self.in_flight.take().is_some() {
            std::mem::swap(mail, &mut self.mail);
        }
    }

    /// When anybody next has work, messages of the last step included.
    pub(crate) fn earliest_work(&self) -> Time {
        let next = self.next_wake.iter().min().copied().unwrap_or(u64::MAX);
        let others = self.split.as_ref().map_or(u64::MAX, |split| split.others);
        Time(next.min(others)).min(self.in_flight.unwrap_or(Time::NEVER))
    }

    /// Looks up anew when partitions next have work.
    pub(crate) fn refresh_wakes(&mut self) {
        for (index, known) in self.next_wake.iter_mut().enumerate() {
            // SAFETY: the workers wait, and nobody changes the cell meanwhile.
            *known = unsafe { self.shared.cells.look(PartitionId(index as u32)).wake };
            let split = self.split.as_ref();
            if split.is_some_and(|split| !split.is_local(PartitionId(index as u32))) {
                *known = u64::MAX;
            }
        }
    }

    /// Brings everything into the state in which it is seen from outside: messages in the
    /// inboxes, logs cleared.
    pub(crate) fn settle(&mut self) {
        self.collect_mail();
        let cells = &self.shared.cells;
        // SAFETY: the workers wait.
        let mail = unsafe { &(*self.shared.plan.get()).mail };
        for id in ones(mail.iter().copied()) {
            // SAFETY: the workers wait, and this is the only reference to the cell.
            let cell = unsafe { cells.get(id) };
            // SAFETY: the workers wait.
            unsafe {
                self.shared.exchange.take(self.step, id, |order, message| {
                    cell.inbox.push(order, message);
                });
            }
            let due = cell.inbox.next_due().unwrap_or(Time::NEVER);
            cell.wake = cell.wake.min(due.0);
            self.next_wake[id.index()] = self.next_wake[id.index()].min(due.0);
        }
        // What was sent in the last step is taken: no later step may look for it.
        self.step += 1;
        for id in ones(self.uncleared.iter().copied()) {
            // SAFETY: the workers wait, and this is the only reference to the cell.
            let cell = unsafe { cells.get(id) };
            if std::mem::take(&mut cell.logged) {
                cell.partition.clear_log();
            }
        }
        self.uncleared.fill(0);
    }
}

/// Shares partitions out anew by what each cost since the last time.
fn balance<P: Partition>(cells: &Cells<P>, workers: usize) {
    let mut loads = vec![0; cells.len()];
    for (index, load) in loads.iter_mut().enumerate() {
        // SAFETY: the workers wait, and this is the only reference to the cell.
        let cell = unsafe { cells.get(PartitionId(index as u32)) };
        let runs = std::mem::take(&mut cell.runs);
        *load = cells.costs[index]
            .load(Ordering::Relaxed)
            .saturating_mul(runs.into());
    }
    cost::balance(&loads, &cells.owners, workers);
}

/// The partitions whose bits are set.
pub(crate) fn ones(words: impl IntoIterator<Item = u64>) -> impl Iterator<Item = PartitionId> {
    words.into_iter().enumerate().flat_map(|(word, bits)| {
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
