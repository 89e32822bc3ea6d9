//! One answer: threads, schedules, delays, jumps, saves and loads never show.

mod toy;

use lockstep_engine::*;
use lockstep_units::{Time, splitmix64};
use proptest::prelude::*;
use toy::*;

fn hosts(seed: u64) -> Vec<Options> {
    let mut hosts = Vec::new();
    for threads in [1, 2, 3, 8] {
        for schedule in [Schedule::Static, Schedule::Balanced, Schedule::Dynamic] {
            for (jumping, delays) in [(true, false), (true, true), (false, true)] {
                let perturbation = delays.then_some(Perturbation {
                    seed: seed ^ threads as u64 ^ (jumping as u64) << 9,
                });
                // One partition is enough to wake the others, to test what is rare otherwise.
                hosts.push(Options {
                    threads,
                    schedule,
                    jumping,
                    together_from: 1,
                    together_from_nanoseconds: 0,
                    perturbation,
                });
            }
        }
    }
    hosts
}

/// Alarms beget messages and messages alarms; the machine need not fall silent.
const LIMIT: Time = Time(3_000_000_000);

fn run(shape: &Shape, options: Options) -> (Outcome, Answer) {
    let mut engine = machine(shape, options);
    let outcome = engine.run(LIMIT, |_| false);
    (outcome, answer(&mut engine))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn the_host_never_shows(shape in shapes(40)) {
        let expected = run(&shape, Options::default());
        for options in hosts(shape.seed) {
            prop_assert_eq!(&run(&shape, options.clone()), &expected, "{:?}", options);
        }
    }

    #[test]
    fn a_save_and_a_load_never_show(shape in shapes(40), stops in prop::collection::btree_set(0u64..3_000_000_000, 1..6)) {
        let expected = run(&shape, Options::default());
        let hosts = hosts(shape.seed);
        let mut engine = machine(&shape, hosts[0].clone());
        for (index, &stop) in stops.iter().enumerate() {
            engine.run(Time(stop), |_| false);
            let before = answer(&mut engine);
            // Another engine, on another host and without messages of its own, takes over.
            let host = hosts[splitmix64(shape.seed ^ index as u64) as usize % hosts.len()].clone();
            let mut next = machine(&Shape { posts: 0, ..shape.clone() }, host);
            next.load(&mut Reader::new(&before.saved)).unwrap();
            set_memory(&next, &before.memory);
            prop_assert_eq!(&answer(&mut next), &before);
            engine = next;
        }
        let outcome = engine.run(LIMIT, |_| false);
        prop_assert_eq!(&(outcome, answer(&mut engine)), &expected);
    }

    #[test]
    fn where_a_run_is_interrupted_never_shows(shape in shapes(40), every in 20_000_000u64..500_000_000) {
        let expected = run(&shape, Options::default());
        let mut engine = machine(&shape, Options { threads: 2, together_from: 1,
                    together_from_nanoseconds: 0, ..Options::default() });
        let mut at = 0;
        while at < LIMIT.0 {
            at += every;
            engine.run(Time(at.min(LIMIT.0)), |_| false);
        }
        // The outcome of the last of many calls is that of the one.
        let outcome = engine.run(LIMIT, |_| false);
        prop_assert_eq!(&(outcome, answer(&mut engine)), &expected);
    }

    #[test]
    fn a_condition_stops_every_host_at_the_same_epoch(shape in shapes(40), wanted in 1u64..60) {
        let reached = |partitions: &Partitions<'_, Node>| {
            partitions.iter().map(|(_, node)| node.received()).sum::<u64>() >= wanted
        };
        let mut answers = Vec::new();
        for options in hosts(shape.seed).into_iter().step_by(4) {
            let mut engine = machine(&shape, options);
            let outcome = engine.run(LIMIT, reached);
            answers.push((outcome, answer(&mut engine)));
        }
        prop_assert!(answers.windows(2).all(|pair| pair[0] == pair[1]));
    }

    #[test]
    fn the_first_fault_wins_on_every_host(shape in shapes(40), messages in prop::collection::vec(1u64..6, 3)) {
        let mut answers = Vec::new();
        for options in hosts(shape.seed).into_iter().step_by(4) {
            let mut engine = machine(&shape, options);
            for (index, &message) in messages.iter().enumerate() {
                let id = PartitionId(index as u32 % (shape.nodes + shape.hubs));
                engine.partition_mut(id).fail_at(message);
            }
            let outcome = engine.run(LIMIT, |_| false);
            answers.push((outcome, answer(&mut engine)));
        }
        prop_assert!(answers.windows(2).all(|pair| pair[0] == pair[1]), "{:?}", answers.iter().map(|a| a.0).collect::<Vec<_>>());
    }
}
