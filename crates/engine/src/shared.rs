//! What the workers of an engine share, and the share of a step that each of them does.

use std::any::Any;
use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use lockstep_units::Time;

use crate::boundary::{Logged, Shard};
use crate::cells::Cells;
use crate::cost;
use crate::exchange::{Exchange, Side};
use crate::foresee::{foresee_all, foresee_value};
use crate::gate::Gate;
use crate::profile::Stopwatch;
use crate::sync::Padded;
use crate::{Boundary, Outbox, Partition, PartitionId, Perturbation, Topology, Wake, Window};

/// What the workers are to do when the gate opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// Run the partitions of their lists.
    Lists,
    /// The same, and then what is left of the lists of others.
    Steal,
    /// Run all partitions: one worker, alone.
    Queue,
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
    /// Counts the steps: sides of the exchange are told apart by it.
    pub step: u64,
    pub window: Window,
    /// Whether partitions without work are left alone.
    pub jumping: bool,
    /// Whether to measure what partitions cost.
    pub measure: bool,
    /// Nanoseconds that a partition must be expected to take for another worker to take it over.
    pub worth_taking: u64,
    pub perturbation: Option<Perturbation>,
    /// Bits of the partitions with messages from the last step.
    pub mail: Vec<u64>,
    /// For each worker, the partitions it runs.
    pub lists: Vec<Padded<Vec<PartitionId>>>,
    /// All partitions with work, the dearest first.
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
    /// Bits of the partitions they are for.
    pub mail: Vec<u64>,
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
            mail: Vec::new(),
            busy: 0,
        }))
    }

    /// Notes what was sent, so that the leader need not look at the boards.
    fn note_sent<M>(&mut self, side: &Side<M>) {
        (self.sent, self.earliest) = (side.len() as u64, side.earliest());
        self.mail.clear();
        if self.sent > 0 {
            self.mail.extend_from_slice(side.mail());
        }
    }
}

/// Takes the next place of a list that is left.
#[inline]
fn take(list: &[PartitionId], taken: &AtomicUsize) -> Option<usize> {
    // Looking first leaves the line with those who have something to take.
    if taken.load(Ordering::Relaxed) >= list.len() {
        return None;
    }
    Some(taken.fetch_add(1, Ordering::Relaxed)).filter(|&index| index < list.len())
}

pub(crate) struct Shared<P: Partition, B: Boundary<P>> {
    pub topology: Topology,
    pub cells: Cells<P>,
    pub exchange: Exchange<P::Message>,
    pub boundary: UnsafeCell<B>,
    pub gate: Gate,
    pub plan: UnsafeCell<Plan>,
    /// How far the list of each worker was taken.
    pub taken: Box<[Padded<AtomicUsize>]>,
    pub reports: Box<[Padded<UnsafeCell<Report>>]>,
    pub panicked: AtomicBool,
    /// The first panic of a worker, to be raised by the leader.
    pub panic: Mutex<Option<Box<dyn Any + Send>>>,
}

// SAFETY: the gate orders all accesses to what is not `Sync` by itself. While workers work, the
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
            gate: Gate::new(0),
            plan: UnsafeCell::new(Plan {
                task: Task::Exit,
                workers: 1,
                step: 0,
                window,
                jumping: true,
                measure: false,
                worth_taking: 0,
                perturbation: None,
                mail: vec![0; topology.partitions().div_ceil(64)],
                lists: vec![Padded(Vec::new())],
                queue: Vec::new(),
                logged: Vec::new(),
            }),
            taken: [Padded::default()].into(),
            reports: [Report::new()].into(),
            panicked: AtomicBool::new(false),
            panic: Mutex::new(None),
            topology,
        }
    }

    /// Makes room for so many workers, while none is there.
    pub(crate) fn resize(&mut self, workers: usize) {
        self.exchange = Exchange::new(workers, self.topology.partitions());
        self.gate = Gate::new(workers - 1);
        self.plan.get_mut().lists = (0..workers).map(|_| Padded(Vec::new())).collect();
        self.taken = (0..workers).map(|_| Padded::default()).collect();
        self.reports = (0..workers).map(|_| Report::new()).collect();
    }

    /// Does one worker's share of the task, and keeps a panic for the leader.
    ///
    /// # Safety
    /// The leader has written the plan and waits, or is this thread; every worker calls this once.
    pub(crate) unsafe fn share_caught(&self, worker: usize) {
        let watch = Stopwatch::start();
        // SAFETY: as the caller promises.
        let result = catch_unwind(AssertUnwindSafe(|| unsafe { self.share(worker) }));
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
    /// As for [`Shared::share_caught`].
    pub(crate) unsafe fn share(&self, worker: usize) {
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
        // SAFETY: every worker has its own report and its own board.
        let report = unsafe { &mut *self.reports[worker].0.get() };
        report.logged.clear();
        report.fault = None;
        report.ran = 0;
        (report.sent, report.earliest) = (0, Time::NEVER);
        let work = |side: &mut Side<P::Message>| {
            let mut run = |side: &mut Side<P::Message>, id: PartitionId| {
                if let Some(perturbation) = plan.perturbation {
                    perturbation.delay(plan.step, worker, id.0);
                }
                // SAFETY: lists are disjoint and hand out each partition once, so this worker alone has
                // the cell and takes its messages.
                unsafe { self.run(plan, id, side, report) };
            };
            match plan.task {
                Task::Lists => {
                    let list = &plan.lists[worker].0;
                    for (index, &id) in list.iter().enumerate() {
                        self.foresee(plan, list, index + 1);
                        run(side, id);
                    }
                }
                Task::Steal => {
                    // One's own list first: what one ran before is warm in the caches.
                    let (list, taken) = (&plan.lists[worker].0, &self.taken[worker].0);
                    while let Some(index) = take(list, taken) {
                        self.foresee(plan, list, index + 1);
                        run(side, list[index]);
                    }
                    while let Some(whose) = self.dearest_left(plan, worker) {
                        let list = &plan.lists[whose].0;
                        let Some(index) = take(list, &self.taken[whose].0) else {
                            continue;
                        };
                        let id = list[index];
                        self.cells.owners[id.index()].store(worker as u32, Ordering::Relaxed);
                        run(side, id);
                    }
                }
                Task::Queue | Task::Commit | Task::Exit => {
                    plan.queue.iter().for_each(|&id| run(side, id));
                }
            }
            report.note_sent(side);
        };
        // SAFETY: every worker has its own board; its side of this step is read in the next one.
        unsafe { self.exchange.write(worker, plan.step, work) };
    }

    /// Has the processor fetch the messages of a partition that is run soon: they lie in the caches of
    /// those who sent them.
    #[inline]
    fn foresee(&self, plan: &Plan, list: &[PartitionId], index: usize) {
        let has_mail = |id: PartitionId| plan.mail[id.index() / 64] >> (id.index() % 64) & 1 != 0;
        if let Some(&id) = list.get(index)
            && has_mail(id)
        {
            // SAFETY: the sides of the last step are not written in this one.
            unsafe { self.exchange.foresee(plan.step - 1, id) };
        }
    }

    /// Has the processor fetch what the leader reads when it plans, from the caches of the workers.
    pub(crate) fn foresee_planning(&self, workers: usize) {
        foresee_all(&self.cells.wakes);
        foresee_all(&self.cells.owners);
        self.reports[..workers].iter().for_each(foresee_value);
    }

    /// Another worker that has a partition left which is worth taking over, the dearest of all.
    fn dearest_left(&self, plan: &Plan, worker: usize) -> Option<usize> {
        let others = (worker + 1..plan.workers).chain(0..worker);
        let left = others.filter_map(|whose| {
            let taken = self.taken[whose].0.load(Ordering::Relaxed);
            let cost = self.expected(*plan.lists[whose].0.get(taken)?);
            (cost >= plan.worth_taking).then_some((cost, whose))
        });
        left.max_by_key(|(cost, _)| *cost).map(|(_, whose)| whose)
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
        side: &mut Side<P::Message>,
        report: &mut Report,
    ) {
        // SAFETY: as the caller promises.
        let cell = unsafe { self.cells.get(id) };
        if cell.logged {
            cell.logged = false;
            cell.partition.clear_log();
        }
        let mail = plan.mail[id.index() / 64] >> (id.index() % 64) & 1 != 0;
        cell.inbox.open(plan.window.end, |inbox| {
            if mail {
                // SAFETY: as the caller promises; the sides of the last step are not written in
                // this one.
                unsafe {
                    self.exchange.take(plan.step - 1, id, |order, message| {
                        inbox.push(order, message)
                    });
                }
            }
        });
        let wake = &self.cells.wakes[id.index()];
        let due = cell.inbox.next_due().unwrap_or(Time::NEVER);
        let next = due.0.min(wake.load(Ordering::Relaxed));
        if plan.jumping && next >= plan.window.end.0 {
            wake.store(next, Ordering::Relaxed);
            return;
        }
        let mut outbox = Outbox {
            topology: &self.topology,
            sender: id,
            window: plan.window,
            egress: &mut cell.egress,
            side,
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
        wake.store(own.min(due).max(plan.window.end).0, Ordering::Relaxed);
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
