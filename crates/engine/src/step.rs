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
use crate::shared::Task;
use crate::{Engine, Options, Outcome, Partition, PartitionId, Schedule, Window};

/// Nanoseconds that a partition must be expected to take for another worker to take it over: with
/// less, finding it takes as long.
const WORTH_TAKING: u64 = 300;

impl<P: Partition, B: Boundary<P>> Engine<P, B> {
    /// Runs one epoch and what follows it.
    pub(crate) fn step(&mut self, window: Window) -> Option<Outcome> {
        self.collect_mail();
        self.step += 1;
        let workers = self.plan(window);
        self.work(workers);
        self.epoch += 1;
        self.figures.steps += 1;
        self.figures.alone += u64::from(workers == 1);
        self.figures.workers += workers as u64;
        let fault = self.gather(workers);
        let shared = Arc::clone(&self.shared);
        // SAFETY: the workers wait, and the boundary is reached through this reference alone.
        let boundary = unsafe { &mut *shared.boundary.get() };
        let control = boundary.after(window, &mut self.view());
        if let Some((at, partition)) = fault {
            return Some(Outcome::Fault { at, partition });
        }
        (control == Control::Stop).then_some(Outcome::Stopped)
    }

    /// Decides how many workers take part, and who of them runs which partition.
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
        plan.jumping = jumping;
        plan.measure = threads > 1 && cost::is_measured(self.step);
        plan.perturbation = perturbation;
        if threads > 1 && schedule != Schedule::Static && cost::is_balanced(self.step) {
            balance(cells, threads);
        }
        if threads > 1 && cost::is_ordered(self.step) {
            let dearest = |id: &PartitionId| cost::expected(&cells.costs[id.index()]);
            self.dearest_first
                .sort_by_cached_key(|id| (Reverse(dearest(id)), *id));
        }
        let mut length = 0;
        for &id in &self.dearest_first {
            let wake = cells.wakes[id.index()].load(Ordering::Relaxed);
            let mail = plan.mail[id.index() / 64] >> (id.index() % 64) & 1 != 0;
            if !jumping || mail || wake < window.end.0 {
                put(&mut plan.queue, &mut length, id);
                // Whoever runs it clears its log first.
                self.uncleared[id.index() / 64] &= !(1 << (id.index() % 64));
            }
        }
        cut(&mut plan.queue, length);
        let workers = self.workers_for();
        plan.workers = workers;
        if workers == 1 {
            plan.task = Task::Queue;
            if let Some(perturbation) = perturbation {
                plan.queue
                    .sort_unstable_by_key(|id| perturbation.draw(self.step, id.0.into()));
            }
            return workers;
        }
        plan.worth_taking = match (perturbation, self.options.together_from_nanoseconds) {
            (None, 1..) => WORTH_TAKING,
            _ => 0,
        };
        plan.task = match schedule {
            Schedule::Dynamic => Task::Steal,
            Schedule::Static | Schedule::Balanced => Task::Lists,
        };
        self.lengths[..workers].fill(0);
        for &id in &plan.queue {
            let owner = match perturbation {
                Some(perturbation) => perturbation.draw(self.step, id.0.into()) as usize,
                None => self.shared.cells.owners[id.index()].load(Ordering::Relaxed) as usize,
            } % workers;
            put(&mut plan.lists[owner].0, &mut self.lengths[owner], id);
        }
        let lists = plan.lists.iter_mut().zip(&self.shared.taken);
        for ((list, taken), &length) in lists.zip(&self.lengths[..workers]) {
            cut(&mut list.0, length);
            taken.0.store(0, Ordering::Relaxed);
        }
        workers
    }

    /// How many workers the partitions of the queue are worth.
    fn workers_for(&mut self) -> usize {
        // SAFETY: the workers wait.
        let queue = unsafe { &(*self.shared.plan.get()).queue };
        let Options {
            threads,
            together_from,
            together_from_nanoseconds,
            ..
        } = self.options;
        if threads == 1 || queue.len() < together_from {
            return 1;
        }
        let costs = &self.shared.cells.costs;
        let costs = queue.iter().map(|id| cost::expected(&costs[id.index()]));
        let enough = together_from_nanoseconds;
        self.crew.choose(threads, costs, enough)
    }

    /// Has the planned task done, by so many workers.
    fn work(&mut self, workers: usize) {
        let shared = &self.shared;
        // SAFETY: the workers wait.
        let (task, measure) = unsafe { ((*shared.plan.get()).task, (*shared.plan.get()).measure) };
        if workers == 1 {
            let watch = measure.then(Stopwatch::start);
            // SAFETY: the workers wait, so this is the only one.
            unsafe { shared.share(0) };
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
        shared.gate.open(workers - 1);
        // SAFETY: the plan is written, and every worker does its share once.
        unsafe { shared.share_caught(0) };
        shared
            .gate
            .meet(&mut pool.patience, || shared.foresee_planning(workers));
        let wall = watch.read();
        // SAFETY: the workers wait.
        let busy = shared.reports[..workers]
            .iter()
            .map(|report| unsafe { (*report.0.get()).busy });
        let longest = busy.clone().max().unwrap_or(0);
        self.crew.note(wall.saturating_sub(longest), workers);
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
    fn gather(&mut self, workers: usize) -> Option<(Time, PartitionId)> {
        // SAFETY: the workers wait.
        let plan = unsafe { &mut *self.shared.plan.get() };
        if !plan.logged.is_empty() {
            plan.logged.clear();
        }
        let mut fault = None;
        for report in &self.shared.reports[..workers] {
            // SAFETY: the workers wait.
            let report = unsafe { &*report.0.get() };
            plan.logged.extend_from_slice(&report.logged);
            self.figures.runs += report.ran;
            self.figures.messages += report.sent;
            if report.sent > 0 {
                let earliest = self.in_flight.unwrap_or(Time::NEVER);
                self.in_flight = Some(earliest.min(report.earliest));
                for (all, some) in self.mail.iter_mut().zip(&report.mail) {
                    *all |= some;
                }
            }
            fault = [fault, report.fault].into_iter().flatten().min();
        }
        if !plan.logged.is_empty() {
            plan.logged.sort_unstable();
            for (id, _) in &plan.logged {
                self.uncleared[id.index() / 64] |= 1 << (id.index() % 64);
            }
            self.figures.commits += 1;
            if workers == 1 {
                // SAFETY: the workers wait, and nothing changes boundary or partitions meanwhile.
                unsafe { self.shared.commit(plan, Shard { index: 0, count: 1 }) };
            } else {
                plan.task = Task::Commit;
                self.work(workers);
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
        if self.in_flight.take().is_some() {
            std::mem::swap(mail, &mut self.mail);
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
