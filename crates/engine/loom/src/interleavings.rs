//! Every interleaving of epoch barrier and exchange, explored by `loom`.
//!
//! The models are small on purpose: they finish in seconds.

use lockstep_units::Time;
use loom::sync::Arc;
use loom::thread;

use crate::PartitionId;
use crate::epoch_barrier::{EpochBarrier, SpinBudget};
use crate::exchange::Exchange;
use crate::order::Order;
use crate::sync::UnsafeCell;

const HASTY: SpinBudget = SpinBudget::new(0);

/// A cell that both sides of the epoch barrier use; `loom` objects to any use that the epoch barrier does not order.
struct Guarded(UnsafeCell<u64>);

// SAFETY: the epoch barrier is meant to order all uses, and `loom` checks that it does.
unsafe impl Sync for Guarded {}
// SAFETY: it is a number.
unsafe impl Send for Guarded {}

impl Guarded {
    fn new() -> Self {
        Self(UnsafeCell::new(0))
    }

    fn add(&self, amount: u64) {
        // SAFETY: ordered by the epoch barrier, as `loom` checks.
        self.0.with_mut(|value| unsafe { *value += amount });
    }

    fn get(&self) -> u64 {
        // SAFETY: ordered by the epoch barrier, as `loom` checks.
        self.0.with(|value| unsafe { *value })
    }
}

/// Explores every interleaving in which threads are interrupted at most twice, which is where
/// nearly all errors show: all of them would take hours.
fn bounded(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(model);
}

/// Leader and followers take turns with one cell of the leader's and one each.
fn take_turns(followers: usize, turns: u64, mut spin_budget: SpinBudget) {
    let epoch_barrier = Arc::new(EpochBarrier::new(followers));
    let plan = Arc::new(Guarded::new());
    let reports: Arc<Vec<Guarded>> = Arc::new((0..followers).map(|_| Guarded::new()).collect());
    let threads: Vec<_> = (0..followers)
        .map(|follower| {
            let (epoch_barrier, plan, reports) =
                (epoch_barrier.clone(), plan.clone(), reports.clone());
            thread::spawn(move || {
                for turn in 1..=turns {
                    let passed = epoch_barrier.pass(follower, turn - 1, &mut spin_budget);
                    assert_eq!(passed, turn);
                    assert_eq!(plan.get(), turn);
                    reports[follower].add(turn);
                    epoch_barrier.arrive();
                }
            })
        })
        .collect();
    for turn in 1..=turns {
        plan.add(1);
        epoch_barrier.open(followers);
        epoch_barrier.wait_for_all(&mut spin_budget, || ());
        for report in reports.iter() {
            assert_eq!(report.get(), (1..=turn).sum());
        }
    }
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn the_gate_orders_a_leader_and_a_sleepy_follower() {
    loom::model(|| take_turns(1, 2, HASTY));
}

#[test]
fn the_gate_orders_a_leader_and_a_spinning_follower() {
    loom::model(|| take_turns(1, 2, SpinBudget::new(1)));
}

#[test]
fn the_gate_orders_two_followers() {
    bounded(|| take_turns(2, 1, HASTY));
}

/// A follower that is needed in the last turn only passes the others by, awake or asleep.
fn sit_out(spin_budget: SpinBudget) {
    const TURNS: u64 = 3;
    let epoch_barrier = Arc::new(EpochBarrier::new(1));
    let plan = Arc::new(Guarded::new());
    let report = Arc::new(Guarded::new());
    let follower = {
        let (epoch_barrier, plan, report) = (epoch_barrier.clone(), plan.clone(), report.clone());
        thread::spawn(move || {
            assert_eq!(epoch_barrier.pass(0, 0, &mut spin_budget.clone()), TURNS);
            assert_eq!(plan.get(), TURNS);
            report.add(1);
            epoch_barrier.arrive();
        })
    };
    for turn in 1..=TURNS {
        plan.add(1);
        epoch_barrier.open(usize::from(turn == TURNS));
        epoch_barrier.wait_for_all(&mut spin_budget.clone(), || ());
    }
    assert_eq!(report.get(), 1);
    follower.join().unwrap();
}

#[test]
fn a_follower_that_is_not_needed_sleeps_through_it() {
    loom::model(|| sit_out(HASTY));
}

#[test]
fn a_follower_that_is_not_needed_waits_through_it() {
    loom::model(|| sit_out(SpinBudget::new(1)));
}

/// Two workers with a partition each send to both, in two steps, and take what was sent before.
#[test]
fn the_exchange_moves_every_message_once() {
    const STEPS: u64 = 3;
    fn step(exchange: &Exchange<Box<u64>>, worker: usize, step: u64) {
        let me = PartitionId(worker as u32);
        let mut taken = Vec::new();
        // SAFETY: each worker writes its own outbox and takes for its own partition; the epoch barrier
        // orders the steps, as `loom` checks.
        unsafe {
            exchange.write(worker, step, |buffer| {
                exchange.take(step - 1, me, |order, message| {
                    taken.push((order.sender.0, *message))
                });
                for to in 0..2 {
                    let order = Order {
                        due: Time(step),
                        sender: me,
                        sequence: to,
                    };
                    buffer.push(PartitionId(to as u32), order, Box::new(step * 10 + to));
                }
            });
        }
        taken.sort_unstable();
        let sent = (step - 1) * 10 + worker as u64;
        let expected = if step == 1 {
            vec![]
        } else {
            vec![(0, sent), (1, sent)]
        };
        assert_eq!(taken, expected);
    }
    bounded(|| {
        let epoch_barrier = Arc::new(EpochBarrier::new(1));
        let exchange = Arc::new(Exchange::new(2, 2));
        let follower = {
            let (epoch_barrier, exchange) = (epoch_barrier.clone(), exchange.clone());
            thread::spawn(move || {
                for turn in 1..=STEPS {
                    epoch_barrier.pass(0, turn - 1, &mut HASTY.clone());
                    step(&exchange, 1, turn);
                    epoch_barrier.arrive();
                }
            })
        };
        for turn in 1..=STEPS {
            epoch_barrier.open(1);
            step(&exchange, 0, turn);
            epoch_barrier.wait_for_all(&mut HASTY.clone(), || ());
        }
        follower.join().unwrap();
    });
}
