//! The threads that help the leader.

use std::sync::Arc;
use std::thread::JoinHandle;

use crate::epoch_barrier::SpinBudget;
use crate::profile::Stopwatch;
use crate::shared::{Shared, Task};
use crate::{Boundary, Partition};

/// Threads that wait at the epoch barrier until the engine ends.
pub(crate) struct Pool {
    threads: Vec<JoinHandle<()>>,
    pub spin_budget: SpinBudget,
}

impl Pool {
    /// Starts every worker but the first, which is the calling thread.
    pub(crate) fn start<P: Partition, B: Boundary<P>>(
        shared: &Arc<Shared<P, B>>,
        workers: usize,
    ) -> Self {
        let spin_budget = spin_budget(workers);
        let start = |worker| {
            let shared = Arc::clone(shared);
            let work = move || follow(&shared, worker, spin_budget);
            std::thread::Builder::new()
                .name(format!("lockstep-{worker}"))
                .spawn(work)
                .expect("the host gives a thread for each worker asked for")
        };
        Self {
            threads: (1..workers).map(start).collect(),
            spin_budget,
        }
    }

    /// Ends the threads.
    pub(crate) fn stop<P: Partition, B: Boundary<P>>(self, shared: &Shared<P, B>) {
        // SAFETY: the followers wait at the epoch barrier, so the leader alone has the plan.
        unsafe { (*shared.plan.get()).task = Task::Exit };
        shared.epoch_barrier.open(self.threads.len());
        for thread in self.threads {
            // A follower catches the panics of partitions and has none of its own.
            let _ = thread.join();
        }
    }
}

/// How long to spin: a millisecond when every worker has a processor, hardly when they share. A
/// thread that sleeps may take a tenth of that to wake, on a virtual machine more; one that spun in
/// vain spins less the next time.
fn spin_budget(workers: usize) -> SpinBudget {
    const TURNS: u32 = 1_000;
    const MICROSECONDS: u32 = 1_000;
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get());
    if workers > processors {
        return SpinBudget::new(32);
    }
    // A turn takes between four and two hundred cycles, depending on the processor.
    let watch = Stopwatch::start();
    (0..TURNS).for_each(|_| std::hint::spin_loop());
    let nanoseconds = watch.read().clamp(1_000, 200_000) as u32;
    SpinBudget::new(MICROSECONDS * 1_000 / (nanoseconds / TURNS).max(1))
}

/// The life of one follower.
fn follow<P: Partition, B: Boundary<P>>(
    shared: &Shared<P, B>,
    worker: usize,
    mut spin_budget: SpinBudget,
) {
    let mut turn = 0;
    loop {
        turn = shared
            .epoch_barrier
            .pass(worker - 1, turn, &mut spin_budget);
        // SAFETY: the leader wrote the plan before it opened the epoch barrier and changes it only after
        // all have arrived.
        let task = unsafe { (*shared.plan.get()).task };
        if task == Task::Exit {
            return;
        }
        // SAFETY: the plan is written, the leader waits or does its own share, and every worker
        // comes here once a turn.
        unsafe { shared.run_worker_caught(worker) };
        shared.epoch_barrier.arrive();
    }
}
