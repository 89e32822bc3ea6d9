//! The engine: time, step by step.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use lockstep_units::{Duration, Time};

use crate::boundary::{Boundary, Control, NoBoundary, Partitions, Shard};
use crate::cost;
use crate::inbox::Order;
use crate::pool::Pool;
use crate::shared::{Shared, Task};
use crate::{EngineError, Options, Partition, PartitionId, Schedule, Topology, Window};

/// Why a run came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The condition holds.
    Condition,
    /// The condition does not hold, and nobody has any work left: it never will.
    Quiescent,
    /// The time limit was reached first.
    Limit,
    /// [`Boundary::after`] said so.
    Stopped,
    /// A partition reported a fault; this is the earliest, of the lowest partition.
    Fault {
        /// When it happened.
        at: Time,
        /// Who reported it.
        partition: PartitionId,
    },
}

/// What the host did: how a simulation ran, not what was simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Epochs that were run.
    pub steps: u64,
    /// Of these, the ones that the calling thread ran alone.
    pub alone: u64,
    /// Epochs that were jumped over.
    pub jumped: u64,
    /// Runs of a partition through a window.
    pub runs: u64,
    /// Steps with a commit.
    pub commits: u64,
    /// Messages sent between partitions.
    pub messages: u64,
}

/// Runs partitions through simulated time.
///
/// Between calls of [`run`](Self::run) everything stands still at the boundary of an epoch, every
/// message waits in the inbox of its receiver, and every log is committed and cleared.
pub struct Engine<P: Partition, B: Boundary<P> = NoBoundary> {
    pub(crate) shared: Arc<Shared<P, B>>,
    pool: Option<Pool>,
    options: Options,
    /// The next epoch to run.
    pub(crate) epoch: u64,
    /// How many messages came from outside.
    pub(crate) posted: u64,
    step: u64,
    /// When the first message of the last step is due, if any was sent.
    in_flight: Option<Time>,
    /// For each partition its worker, under the schedules that fix one.
    owners: Vec<u32>,
    /// How many partitions each worker has, while they are dealt out.
    lengths: Vec<usize>,
    /// Bits of the partitions that may have a log to clear.
    uncleared: Vec<u64>,
    figures: Figures,
    broken: bool,
}

impl<P: Partition> Engine<P> {
    /// An engine with nothing to do between epochs.
    ///
    /// # Errors
    /// As [`Engine::with_boundary`].
    pub fn new(
        topology: Topology,
        partitions: Vec<P>,
        options: Options,
    ) -> Result<Self, EngineError> {
        Self::with_boundary(topology, partitions, NoBoundary, options)
    }
}

impl<P: Partition, B: Boundary<P>> Engine<P, B> {
    /// An engine at time zero.
    ///
    /// # Errors
    /// If the topology declares another number of partitions.
    pub fn with_boundary(
        topology: Topology,
        partitions: Vec<P>,
        boundary: B,
        options: Options,
    ) -> Result<Self, EngineError> {
        let (declared, found) = (topology.partitions(), partitions.len());
        if declared != found {
            return Err(EngineError::PartitionCount { declared, found });
        }
        let words = found.div_ceil(64);
        let mut engine = Self {
            shared: Arc::new(Shared::new(topology, partitions, boundary)),
            pool: None,
            options: Options::default(),
            epoch: 0,
            posted: 0,
            step: 1,
            in_flight: None,
            owners: vec![0; found],
            lengths: Vec::new(),
            uncleared: vec![0; words],
            figures: Figures::default(),
            broken: false,
        };
        engine.set_options(options);
        Ok(engine)
    }

    /// Changes how the host runs the simulation, which never changes the simulation.
    pub fn set_options(&mut self, options: Options) {
        self.stop_pool();
        let workers = options.threads.max(1);
        Arc::get_mut(&mut self.shared)
            .expect("no worker is left")
            .resize(workers);
        for (index, owner) in self.owners.iter_mut().enumerate() {
            *owner = (index % workers) as u32;
        }
        self.lengths = vec![0; workers];
        self.options = Options {
            threads: workers,
            ..options
        };
    }

    fn stop_pool(&mut self) {
        if let Some(pool) = self.pool.take() {
            pool.stop(&self.shared);
        }
    }

    /// How the host runs the simulation.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The machine.
    pub fn topology(&self) -> &Topology {
        &self.shared.topology
    }

    /// The boundary at which the simulation stands: the start of the next window.
    pub fn now(&self) -> Time {
        self.topology().window(self.epoch).start
    }

    /// What the host did so far.
    pub fn figures(&self) -> Figures {
        self.figures
    }

    /// When anybody next has work, if ever.
    pub fn next_work(&self) -> Option<Time> {
        let next = self.earliest_work();
        (next != Time::NEVER).then_some(next)
    }

    /// All partitions.
    pub fn partitions(&self) -> Partitions<'_, P> {
        self.view()
    }

    /// One partition.
    ///
    /// # Panics
    /// If there is no such partition.
    pub fn partition(&self, id: PartitionId) -> &P {
        // SAFETY: no worker runs between calls of `run`, and whoever changes a partition borrows
        // the engine mutably.
        unsafe { &self.shared.cells.look(id).partition }
    }

    /// One partition, to be changed. It will run in the next window.
    ///
    /// # Panics
    /// If there is no such partition.
    pub fn partition_mut(&mut self, id: PartitionId) -> &mut P {
        self.shared.cells.wakes[id.index()].fetch_min(self.now().0, Ordering::Relaxed);
        // SAFETY: no worker runs between calls of `run`, and the engine is borrowed mutably.
        unsafe { &mut self.shared.cells.get(id).partition }
    }

    /// How many messages wait for a partition.
    pub fn waiting(&self, id: PartitionId) -> usize {
        // SAFETY: no worker runs between calls of `run`, and whoever changes a cell borrows the
        // engine mutably.
        unsafe { self.shared.cells.look(id).inbox.len() }
    }

    /// What happens between epochs.
    pub fn boundary(&self) -> &B {
        // SAFETY: no worker runs between calls of `run`, and whoever changes the boundary borrows
        // the engine mutably.
        unsafe { &*self.shared.boundary.get() }
    }

    /// What happens between epochs, to be changed.
    pub fn boundary_mut(&mut self) -> &mut B {
        // SAFETY: no worker runs between calls of `run`, and the engine is borrowed mutably.
        unsafe { &mut *self.shared.boundary.get() }
    }

    /// Sends a message from outside the machine.
    ///
    /// Such messages come after those of partitions that are due at the same time, in the order
    /// in which they were posted.
    ///
    /// # Errors
    /// If there is no such receiver, or if `due` has passed.
    pub fn post(
        &mut self,
        to: PartitionId,
        due: Time,
        message: P::Message,
    ) -> Result<(), EngineError> {
        let now = self.now();
        if to.index() >= self.shared.cells.len() {
            return Err(EngineError::NoReceiver {
                receiver: to.0,
                last: self.shared.cells.len() - 1,
            });
        }
        if due < now {
            let receiver = self.topology().name(to);
            return Err(EngineError::Past { receiver, due, now });
        }
        let order = Order {
            due,
            sender: PartitionId::OUTSIDE,
            sequence: self.posted,
        };
        self.posted += 1;
        // SAFETY: no worker runs between calls of `run`, and the engine is borrowed mutably.
        unsafe { self.shared.cells.get(to).inbox.push(order, message) };
        self.shared.cells.wakes[to.index()].fetch_min(due.0, Ordering::Relaxed);
        Ok(())
    }

    /// Runs until the condition holds at the boundary of an epoch.
    pub fn run_until(&mut self, condition: impl FnMut(&Partitions<'_, P>) -> bool) -> Outcome {
        self.run(Time::NEVER, condition)
    }

    /// Runs until the condition holds at the boundary of an epoch, nobody has work left, or
    /// `limit` is reached, rounded up to a boundary.
    ///
    /// The condition is looked at before the first epoch and after every epoch in which something
    /// happened; it should depend on the partitions alone. With a limit, time passes until there
    /// even if nobody has work left.
    ///
    /// # Panics
    /// If a partition does; the engine cannot be run again after that.
    pub fn run(
        &mut self,
        limit: Time,
        mut condition: impl FnMut(&Partitions<'_, P>) -> bool,
    ) -> Outcome {
        assert!(!self.broken, "a partition panicked in an earlier run");
        self.broken = true;
        let last = match limit {
            Time::NEVER => u64::MAX,
            limit => limit.0.div_ceil(self.topology().epoch().0),
        };
        let outcome = loop {
            if condition(&self.view()) {
                break Outcome::Condition;
            }
            let next = self.earliest_work();
            if next == Time::NEVER {
                if limit != Time::NEVER {
                    self.epoch = self.epoch.max(last);
                }
                break Outcome::Quiescent;
            }
            let mut epoch = self.epoch;
            if self.options.jumping {
                epoch = epoch
                    .max(self.topology().epoch_of(next))
                    .min(last.max(epoch));
                self.figures.jumped += epoch - self.epoch;
                self.epoch = epoch;
            }
            if epoch >= last {
                break Outcome::Limit;
            }
            if let Some(outcome) = self.step(self.topology().window(epoch)) {
                break outcome;
            }
        };
        self.settle();
        self.broken = false;
        outcome
    }

    /// Lets time pass without running anything, as far as nobody has work before.
    pub fn pass(&mut self, length: Duration) -> Outcome {
        self.run(self.now() + length, |_| false)
    }

    /// Runs one epoch and what follows it.
    fn step(&mut self, window: Window) -> Option<Outcome> {
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
    fn earliest_work(&self) -> Time {
        let wakes = self.shared.cells.wakes.iter();
        let next = wakes.map(|wake| wake.load(Ordering::Relaxed)).min();
        Time(next.unwrap_or(u64::MAX)).min(self.in_flight.unwrap_or(Time::NEVER))
    }

    /// Brings everything into the state in which it is seen from outside: messages in the
    /// inboxes, logs cleared.
    fn settle(&mut self) {
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

    fn view(&self) -> Partitions<'_, P> {
        Partitions {
            cells: &self.shared.cells,
            topology: &self.shared.topology,
            now: self.now(),
        }
    }
}

impl<P: Partition, B: Boundary<P>> Drop for Engine<P, B> {
    fn drop(&mut self) {
        self.stop_pool();
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
