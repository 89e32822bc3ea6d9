//! The engine: time, step by step.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use lockstep_units::{Duration, Time};

use crate::boundary::{Boundary, NoBoundary, Partitions};
use crate::cost::WorkerCount;
use crate::epoch_barrier::MOST_FOLLOWERS;
use crate::meeting::Split;
use crate::order::Order;
use crate::outbox::LinkUse;
use crate::pool::Pool;
use crate::profile::{Profile, Stopwatch};
use crate::shared::Shared;
use crate::{EngineError, LinkId, Options, Partition, PartitionId, Topology};

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
    /// Another rank is gone: this one cannot go on.
    Lost,
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
pub struct EngineCounters {
    /// Epochs that were run.
    pub steps: u64,
    /// Of these, the ones that the calling thread ran alone.
    pub alone: u64,
    /// Workers that took part, summed over the steps.
    pub workers: u64,
    /// Epochs that were jumped over.
    pub skipped: u64,
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
    pub(crate) pool: Option<Pool>,
    pub(crate) options: Options,
    /// The next epoch to run.
    pub(crate) epoch: u64,
    /// How many messages came from outside.
    pub(crate) posted: u64,
    pub(crate) step: u64,
    /// When the first message of the last step is due, if any was sent.
    pub(crate) in_flight: Option<Time>,
    /// Bits of the partitions with messages from the last step.
    pub(crate) mail: Vec<u64>,
    /// When each partition next has work, in femtoseconds. For those with work in the next window it
    /// may be its start.
    pub(crate) next_wake: Vec<u64>,
    /// Nanoseconds that each is expected to take, as of the last time that they were put in order.
    pub(crate) costs: Vec<u64>,
    pub(crate) worker_count: WorkerCount,
    /// Bits of the partitions that may have a log to clear.
    pub(crate) uncleared: Vec<u64>,
    pub(crate) counters: EngineCounters,
    pub(crate) profile: Profile,
    /// How partitions are divided among ranks, if there are several.
    pub(crate) split: Option<Box<Split>>,
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
            mail: vec![0; words],
            next_wake: vec![0; found],
            costs: vec![0; found],
            worker_count: WorkerCount::default(),
            uncleared: vec![0; words],
            counters: EngineCounters::default(),
            profile: Profile::default(),
            split: None,
            broken: false,
        };
        engine.set_options(options);
        Ok(engine)
    }

    /// Changes how the host runs the simulation, which never changes the simulation.
    pub fn set_options(&mut self, options: Options) {
        self.stop_pool();
        let workers = options.threads.clamp(1, MOST_FOLLOWERS + 1);
        Arc::get_mut(&mut self.shared)
            .expect("no worker is left")
            .resize(workers);
        for (index, owner) in self.shared.cells.owners.iter().enumerate() {
            owner.store((index % workers) as u32, Ordering::Relaxed);
        }
        self.worker_count = WorkerCount::default();
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
    pub fn counters(&self) -> EngineCounters {
        self.counters
    }

    /// Where the time of the host went so far.
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// When anybody next has work, if ever.
    pub fn next_work(&self) -> Option<Time> {
        let ids = (0..self.shared.cells.len() as u32).map(PartitionId);
        // SAFETY: no worker runs between calls of `run`, and whoever changes a cell borrows the
        // engine mutably.
        let wakes = ids.map(|id| unsafe { self.shared.cells.look(id).wake });
        wakes.min().filter(|next| *next != u64::MAX).map(Time)
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
        let now = self.now().0;
        if self.is_local(id) {
            self.next_wake[id.index()] = self.next_wake[id.index()].min(now);
        }
        // SAFETY: no worker runs between calls of `run`, and the engine is borrowed mutably.
        let cell = unsafe { self.shared.cells.get(id) };
        cell.wake = cell.wake.min(now);
        &mut cell.partition
    }

    /// What a partition has sent over a kind of link.
    pub fn link_use(&self, id: PartitionId, link: LinkId) -> LinkUse {
        // SAFETY: no worker runs between calls of `run`, and whoever changes a cell borrows the
        // engine mutably.
        let cell = unsafe { self.shared.cells.look(id) };
        cell.egress.links[link.index()]
    }

    /// Goes on counting what links carry where an engine of the same topology stopped.
    ///
    /// # Panics
    /// If the other engine has fewer partitions or links.
    pub fn count_links_on(&mut self, old: &Self) {
        for index in 0..self.shared.cells.len() {
            let id = PartitionId(index as u32);
            // SAFETY: no worker runs between calls of `run`; this engine is borrowed mutably, and
            // whoever changes a cell of the other borrows that one mutably.
            let (cell, other) = unsafe { (self.shared.cells.get(id), old.shared.cells.look(id)) };
            for (own, before) in cell.egress.links.iter_mut().zip(&other.egress.links) {
                *own = LinkUse {
                    busy_until: own.busy_until,
                    ..*before
                };
            }
        }
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
        if !self.is_local(to) {
            return Ok(());
        }
        // SAFETY: no worker runs between calls of `run`, and the engine is borrowed mutably.
        let cell = unsafe { self.shared.cells.get(to) };
        cell.inbox.push(order, message);
        cell.wake = cell.wake.min(due.0);
        self.next_wake[to.index()] = self.next_wake[to.index()].min(due.0);
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
        let watch = Stopwatch::start();
        let Ok(limit) = self.agree_on_run(limit) else {
            self.broken = false;
            return Outcome::Lost;
        };
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
                self.counters.skipped += epoch - self.epoch;
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
        self.profile.total += std::time::Duration::from_nanos(watch.read());
        self.broken = false;
        outcome
    }

    /// Runs for a length of time, rounded up to a boundary.
    pub fn pass(&mut self, length: Duration) -> Outcome {
        self.run(self.now() + length, |_| false)
    }

    pub(crate) fn view(&self) -> Partitions<'_, P> {
        Partitions {
            cells: &self.shared.cells,
            topology: &self.shared.topology,
            now: self.now(),
            split: self.split.as_deref(),
        }
    }
}

impl<P: Partition, B: Boundary<P>> Drop for Engine<P, B> {
    fn drop(&mut self) {
        self.stop_pool();
    }
}
