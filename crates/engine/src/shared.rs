//! What the workers of an engine share, and the share of a step that each of them does.

use std::any::Any;
use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use lockstep_units::Time;

use crate::boundary::{Logged, Shard};
use crate::cells::Cells;
use crate::cost;
use crate::epoch_barrier::EpochBarrier;
use crate::exchange::{Exchange, SendBuffer};
use crate::prefetch::{prefetch_all, prefetch_value};
use crate::profile::Stopwatch;
use crate::sync::Padded;
use crate::wake_report::WakeReport;
use crate::work_queue::WorkQueue;
use crate::{Boundary, Outbox, Partition, PartitionId, Perturbation, Topology, Wake, Window};

/// What the workers are to do when the epoch barrier opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// Run the partitions of their lists.
    OwnQueue,
    /// The same, and then what is left of the lists of others.
    Steal,
    /// Run all partitions: one worker, alone.
    Alone,
    /// Commit their shards of the logs.
    Commit,
    /// End.
    Exit,
}

/// What the leader decided; written while the workers wait.
pub(crate) struct Plan {
    pub task: Task,
    /// How many workers take part.
    pub workers: usize,
    /// Counts the steps: send buffers are told apart by it.
    pub step: u64,
    pub window: Window,
    /// The end of the window after this one.
    pub horizon: Time,
    /// Whether partitions without work are left alone.
    pub jumping: bool,
    /// Whether to measure what partitions cost.
    pub measure: bool,
    /// Nanoseconds that a partition must be expected to take for another worker to take it over.
    pub worth_stealing: u64,
    pub perturbation: Option<Perturbation>,
    /// Bits of the partitions with messages from the last step.
    pub mail: Vec<u64>,
    /// Bits of the partitions with work.
    pub active: Vec<u64>,
    /// All partitions, the costliest first.
    pub order: Vec<PartitionId>,
    /// The partitions with work, for the leader alone.
    pub queue: Vec<PartitionId>,
    /// The partitions that logged something, in order.
    pub logged: Vec<(PartitionId, u64)>,
}

/// What a worker tells the leader after a step.
pub(crate) struct Report {
    /// The partitions that logged something, and which parts of a commit that concerns.
    pub logged: Vec<(PartitionId, u64)>,
    pub fault: Option<(Time, PartitionId)>,
    /// How many partitions ran.
    pub ran: u64,
    /// How many messages they sent.
    pub sent: u64,
    /// When the first of these is due.
    pub earliest: Time,
    /// Nanoseconds of its last share.
    pub busy: u64,
}

impl Report {
    fn new() -> Padded<UnsafeCell<Self>> {
        let (logged, earliest) = (Vec::new(), Time::NEVER);
        Padded(UnsafeCell::new(Self {
            logged,
            fault: None,
            ran: 0,
            sent: 0,
            earliest,
            busy: 0,
        }))
    }
}

/// Whether the bit of a partition is set.
#[inline]
pub(crate) fn is_set(words: &[u64], id: PartitionId) -> bool {
    words[id.index() / 64] >> (id.index() % 64) & 1 != 0
}

pub(crate) struct Shared<P: Partition, B: Boundary<P>> {
    pub topology: Topology,
    pub cells: Cells<P>,
    pub exchange: Exchange<P::Message>,
    pub boundary: UnsafeCell<B>,
    pub epoch_barrier: EpochBarrier,
    pub plan: UnsafeCell<Plan>,
    /// What each worker has to run.
    pub work_queues: Box<[Padded<WorkQueue>]>,
    /// What each worker reports to the leader.
    pub wake_reports: Box<[Padded<WakeReport>]>,
    pub reports: Box<[Padded<UnsafeCell<Report>>]>,
    pub panicked: AtomicBool,
    /// The first panic of a worker, to be raised by the leader.
    pub panic: Mutex<Option<Box<dyn Any + Send>>>,
}

// SAFETY: the epoch barrier orders all accesses to what is not `Sync` by itself. While workers work, the
// plan and the boundary are only read and each report belongs to its worker; while they wait, the
// leader alone has everything.
unsafe impl<P: Partition, B: Boundary<P>> Sync for Shared<P, B> {}
// SAFETY: all it owns is `Send`.
unsafe impl<P: Partition, B: Boundary<P>> Send for Shared<P, B> {}

impl<P: Partition, B: Boundary<P>> Shared<P, B> {
    pub(crate) fn new(topology: Topology, partitions: Vec<P>, boundary: B) -> Self {
        let window = topology.window(0);
        Self {
            cells: Cells::new(&topology, partitions),
            exchange: Exchange::new(1, topology.partitions()),
            boundary: UnsafeCell::new(boundary),
            epoch_barrier: EpochBarrier::new(0),
            plan: UnsafeCell::new(Plan {
                task: Task::Exit,
                workers: 1,
                step: 0,
                window,
                horizon: window.end,
                jumping: true,
                measure: false,
                worth_stealing: 0,
                perturbation: None,
                mail: vec![0; topology.partitions().div_ceil(64)],
                active: vec![0; topology.partitions().div_ceil(64)],
                order: (0..topology.partitions() as u32).map(PartitionId).collect(),
                queue: Vec::new(),
                logged: Vec::new(),
            }),
            work_queues: [].into(),
            wake_reports: [].into(),
            reports: [Report::new()].into(),
            panicked: AtomicBool::new(false),
            panic: Mutex::new(None),
            topology,
        }
    }

    /// Makes room for so many workers, while none is there.
    pub(crate) fn resize(&mut self, workers: usize) {
        self.exchange = Exchange::new(workers, self.topology.partitions());
        self.epoch_barrier = EpochBarrier::new(workers - 1);
        let partitions = self.topology.partitions();
        self.work_queues = (0..workers)
            .map(|_| Padded(WorkQueue::new(partitions)))
            .collect();
        self.wake_reports = (0..workers)
            .map(|_| Padded(WakeReport::new(partitions)))
            .collect();
        self.reports = (0..workers).map(|_| Report::new()).collect();
    }

    /// Does one worker's share of the task, and keeps a panic for the leader.
    ///
    /// # Safety
    /// The leader has written the plan and waits, or is this thread; every worker calls this once.
    pub(crate) unsafe fn run_worker_caught(&self, worker: usize) {
        let watch = Stopwatch::start();
        // SAFETY: as the caller promises.
        let result = catch_unwind(AssertUnwindSafe(|| unsafe { self.run_worker(worker) }));
        // SAFETY: every worker has its own report.
        unsafe { (*self.reports[worker].0.get()).busy = watch.read() };
        if let Err(payload) = result {
            let mut first = self
                .panic
                .lock()
                .unwrap_or_else(|poisoned| poisoned.into_inner());
            first.get_or_insert(payload);
            self.panicked.store(true, Ordering::Relaxed);
        }
    }

    /// Does one worker's share of the task.
    ///
    /// # Safety
    /// As for [`Shared::run_worker_caught`].
    pub(crate) unsafe fn run_worker(&self, worker: usize) {
        // SAFETY: the plan is only read while workers work.
        let plan = unsafe { &*self.plan.get() };
        if plan.task == Task::Commit {
            let shard = Shard {
                index: worker,
                count: plan.workers,
            };
            // SAFETY: nobody changes boundary or partitions during a commit.
            unsafe { self.commit(plan, shard) };
            return;
        }
        // SAFETY: every worker has its own report and its own outbox.
        let report = unsafe { &mut *self.reports[worker].0.get() };
        report.logged.clear();
        report.fault = None;
        report.ran = 0;
        (report.sent, report.earliest) = (0, Time::NEVER);
        let wake_report = &self.wake_reports[worker].0;
        wake_report.clear();
        let work = |buffer: &mut SendBuffer<P::Message>| {
            let mut run = |buffer: &mut SendBuffer<P::Message>, id: PartitionId| {
                if let Some(perturbation) = plan.perturbation {
                    perturbation.delay(plan.step, worker, id.0);
                }
                // SAFETY: every partition is in one list and its place is taken once, so this worker
                // alone has the cell and takes its messages.
                unsafe { self.run(plan, id, buffer, report, wake_report) };
            };
            match plan.task {
                Task::OwnQueue | Task::Steal => {
                    // One's own list first: what one ran before is warm in the caches.
                    let (work_queue, length) = self.own_work_queue(plan, worker);
                    while let Some(place) = work_queue.take(length) {
                        if place + 1 < length {
                            self.prefetch(plan, work_queue.get(place + 1));
                        }
                        run(buffer, work_queue.get(place));
                    }
                    while plan.task == Task::Steal
                        && let Some((work_queue, length)) = self.costliest_victim(plan, worker)
                    {
                        if let Some(place) = work_queue.take(length) {
                            let id = work_queue.get(place);
                            self.cells.owners[id.index()].store(worker as u32, Ordering::Relaxed);
                            run(buffer, id);
                        }
                    }
                }
                Task::Alone | Task::Commit | Task::Exit => {
                    plan.queue.iter().for_each(|&id| run(buffer, id));
                }
            }
            (report.sent, report.earliest) = (buffer.len() as u64, buffer.earliest());
            if report.sent > 0 {
                wake_report.set_mail(buffer.mail());
            }
        };
        // SAFETY: every worker has its own outbox; its buffer of this step is read in the next one.
        unsafe { self.exchange.write(worker, plan.step, work) };
    }

    /// A worker's list of this step, and its length.
    fn own_work_queue(&self, plan: &Plan, worker: usize) -> (&WorkQueue, usize) {
        self.make_work_queue(plan, worker);
        let work_queue = &self.work_queues[worker].0;
        loop {
            // If this worker was late, another makes the list at this moment.
            if let Some(length) = work_queue.length(plan.step) {
                return (work_queue, length);
            }
            std::hint::spin_loop();
        }
    }

    /// Makes the list of a worker, unless somebody does or has done so.
    fn make_work_queue(&self, plan: &Plan, whose: usize) {
        let work_queue = &self.work_queues[whose].0;
        if !work_queue.claim(plan.step) {
            return;
        }
        let active = plan.order.iter().copied();
        let active = active.filter(|id| is_set(&plan.active, *id));
        work_queue.make(
            plan.step,
            active.filter(|id| self.owner(plan, *id) == whose),
        );
    }

    /// The worker of a partition, among those that take part.
    #[inline]
    fn owner(&self, plan: &Plan, id: PartitionId) -> usize {
        let owner = match plan.perturbation {
            Some(perturbation) => perturbation.draw(plan.step, id.0.into()) as usize,
            None => self.cells.owners[id.index()].load(Ordering::Relaxed) as usize,
        };
        // A division takes as long as all the rest.
        if owner < plan.workers {
            owner
        } else {
            owner % plan.workers
        }
    }

    /// Has the processor fetch the messages of a partition that is run soon: they lie in the caches of
    /// those who sent them.
    #[inline]
    fn prefetch(&self, plan: &Plan, id: PartitionId) {
        if is_set(&plan.mail, id) {
            // SAFETY: the send buffers of the last step are not written in this one.
            unsafe { self.exchange.prefetch(plan.step - 1, id) };
        }
    }

    /// Has the processor fetch what the leader reads when it plans, from the caches of the workers.
    pub(crate) fn prefetch_planning(&self, workers: usize) {
        self.reports[..workers].iter().for_each(prefetch_value);
        for wake_report in &self.wake_reports[..workers] {
            prefetch_all(wake_report.0.head());
        }
    }

    /// The list of another worker that has a partition left which is worth taking over, the costliest of
    /// all, and its length.
    fn costliest_victim(&self, plan: &Plan, worker: usize) -> Option<(&WorkQueue, usize)> {
        let others = (worker + 1..plan.workers).chain(0..worker);
        let left = others.filter_map(|whose| {
            let work_queue = &self.work_queues[whose].0;
            if work_queue.length(plan.step).is_none() {
                self.make_work_queue(plan, whose);
            }
            let length = work_queue.length(plan.step)?;
            let cost = self.expected(work_queue.peek(length)?);
            (cost >= plan.worth_stealing).then_some((cost, work_queue, length))
        });
        let costliest = left.max_by_key(|(cost, ..)| *cost);
        costliest.map(|(_, work_queue, length)| (work_queue, length))
    }

    /// Nanoseconds that a partition is expected to take.
    fn expected(&self, id: PartitionId) -> u64 {
        cost::expected(&self.cells.costs[id.index()])
    }

    /// Commits one shard of the logs.
    ///
    /// # Safety
    /// Nobody changes boundary or partitions meanwhile.
    pub(crate) unsafe fn commit(&self, plan: &Plan, shard: Shard) {
        // SAFETY: as the caller promises.
        let boundary = unsafe { &*self.boundary.get() };
        boundary.commit(
            plan.window,
            shard,
            Logged {
                cells: &self.cells,
                ids: &plan.logged,
            },
        );
    }

    /// Runs one partition through the window of the plan, if it has work there.
    ///
    /// # Safety
    /// No other thread reaches the cell, nor takes messages for it.
    #[inline]
    unsafe fn run(
        &self,
        plan: &Plan,
        id: PartitionId,
        buffer: &mut SendBuffer<P::Message>,
        report: &mut Report,
        wake_report: &WakeReport,
    ) {
        // SAFETY: as the caller promises.
        let cell = unsafe { self.cells.get(id) };
        if cell.logged {
            cell.logged = false;
            cell.partition.clear_log();
        }
        let mail = is_set(&plan.mail, id);
        cell.inbox.open(plan.window.end, |inbox| {
            if mail {
                // SAFETY: as the caller promises; the send buffers of the last step are not written in
                // this one.
                unsafe {
                    self.exchange.take(plan.step - 1, id, |order, message| {
                        inbox.push(order, message)
                    });
                }
            }
        });
        let due = cell.inbox.next_due().unwrap_or(Time::NEVER);
        let next = due.0.min(cell.wake);
        if plan.jumping && next >= plan.window.end.0 {
            cell.wake = next;
            wake_report.add_wake(id, next, plan.horizon.0);
            return;
        }
        let mut outbox = Outbox {
            topology: &self.topology,
            sender: id,
            window: plan.window,
            egress: &mut cell.egress,
            buffer,
        };
        let watch = plan.measure.then(Stopwatch::start);
        let own = match cell
            .partition
            .run(plan.window, &mut cell.inbox, &mut outbox)
        {
            Wake::At(time) => time,
            Wake::OnMessage => Time::NEVER,
        };
        if let Some(watch) = watch {
            cost::note(&self.cells.costs[id.index()], watch);
        }
        let due = cell.inbox.next_due().unwrap_or(Time::NEVER);
        cell.wake = own.min(due).max(plan.window.end).0;
        wake_report.add_wake(id, cell.wake, plan.horizon.0);
        report.ran += 1;
        cell.runs = cell.runs.saturating_add(1);
        if cell.partition.has_log() {
            cell.logged = true;
            report.logged.push((id, cell.partition.log_parts()));
        }
        if let Some(time) = cell.partition.fault() {
            let earliest = report.fault.unwrap_or((time, id));
            report.fault = Some(earliest.min((time, id)));
        }
    }
}
