//! One answer for any number of ranks, and an end for those who lose one.

mod toy;

use std::sync::mpsc::{Receiver, Sender, channel};

use lockstep_engine::*;
use lockstep_units::Time;
use proptest::prelude::*;
use toy::*;

/// Ranks that are threads of one process.
struct Channels {
    rank: usize,
    to: Vec<Sender<Vec<u8>>>,
    from: Vec<Receiver<Vec<u8>>>,
}

impl Transport for Channels {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.to.len()
    }

    fn exchange(&mut self, outgoing: &[Vec<u8>], incoming: &mut [Vec<u8>]) -> Result<(), Lost> {
        let others = || (0..self.to.len()).filter(|rank| *rank != self.rank);
        let gone = |rank| move |_| Lost(format!("rank {rank} is gone"));
        for rank in others() {
            let sent = self.to[rank].send(outgoing[rank].clone());
            sent.map_err(|_| Lost(format!("rank {rank} is gone")))?;
        }
        for rank in others() {
            incoming[rank] = self.from[rank].recv().map_err(gone(rank))?;
        }
        Ok(())
    }

    fn broadcast(&mut self, _: &[u8]) -> Result<(), Lost> {
        Ok(())
    }

    fn receive(&mut self) -> Result<Vec<u8>, Lost> {
        Ok(Vec::new())
    }
}

fn ranks(count: usize) -> Vec<Ranks> {
    let mut to: Vec<Vec<_>> = (0..count).map(|_| Vec::new()).collect();
    let mut from: Vec<Vec<_>> = (0..count).map(|_| Vec::new()).collect();
    for receiver in &mut from {
        for sender in &mut to {
            let (send, receive) = channel();
            sender.push(send);
            receiver.push(receive);
        }
    }
    let ends = to.into_iter().zip(from).enumerate();
    ends.map(|(rank, (to, from))| Ranks::new(Box::new(Channels { rank, to, from })))
        .collect()
}

/// Nodes in contiguous groups; hubs are run by all, or by one each.
fn owners(shape: &Shape, ranks: &Ranks, hubs_everywhere: bool) -> Vec<Option<usize>> {
    let nodes = (0..shape.nodes).map(|node| Some(ranks.owner(node, shape.nodes)));
    let hubs = (0..shape.hubs).map(|hub| match hubs_everywhere {
        true => None,
        false => Some(hub as usize % ranks.count()),
    });
    nodes.chain(hubs).collect()
}

fn options(threads: usize, jumping: bool) -> Options {
    Options {
        threads,
        jumping,
        together_from: 1,
        together_from_nanoseconds: 0,
        ..Options::default()
    }
}

const LIMIT: Time = Time(2_000_000_000);

/// Runs a machine on ranks, each of which lets `run` run it; what each of them says at the end.
fn on_ranks(
    count: usize,
    shape: &Shape,
    options: &Options,
    hubs_everywhere: bool,
    run: impl Fn(usize, &mut Machine) -> Outcome + Sync,
) -> Vec<(Outcome, Answer)> {
    std::thread::scope(|scope| {
        let run = &run;
        let started: Vec<_> = ranks(count)
            .into_iter()
            .map(|ranks| {
                scope.spawn(move || {
                    let mut engine = machine(
                        &Shape {
                            posts: 0,
                            ..shape.clone()
                        },
                        options.clone(),
                    );
                    let number = ranks.rank();
                    let owners = owners(shape, &ranks, hubs_everywhere);
                    engine.split(ranks, owners);
                    post(&mut engine, shape);
                    let outcome = run(number, &mut engine);
                    engine.gather().unwrap();
                    (outcome, answer(&mut engine))
                })
            })
            .collect();
        let ended = started.into_iter().map(|rank| rank.join().unwrap());
        ended.collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10, ..ProptestConfig::default() })]

    #[test]
    fn ranks_never_show(shape in shapes(80), hubs_everywhere in any::<bool>()) {
        let mut alone = machine(&shape, Options::default());
        let expected = (alone.run(LIMIT, |_| false), answer(&mut alone));
        for (count, threads, jumping) in [(1, 1, true), (2, 1, true), (2, 2, true), (3, 1, false), (4, 2, true)] {
            let host = options(threads, jumping);
            let answers = on_ranks(count, &shape, &host, hubs_everywhere, |_, engine| {
                engine.run(LIMIT, |_| false)
            });
            for answer in answers {
                prop_assert_eq!(&answer, &expected, "{} ranks, {:?}", count, host);
            }
        }
    }

    /// Ranks may want to be back at different times: all come back when the first wants to.
    #[test]
    fn where_ranks_are_interrupted_never_shows(shape in shapes(80), every in 20_000_000u64..500_000_000) {
        let mut alone = machine(&shape, Options::default());
        alone.run(LIMIT, |_| false);
        let expected = answer(&mut alone);
        let answers = on_ranks(3, &shape, &options(1, true), true, |rank, engine| {
            let every = every * (rank as u64 + 1) / 2;
            loop {
                let next = Time(engine.now().0 + every).min(LIMIT);
                let outcome = engine.run(next, |_| false);
                // Where it ends is rounded up to a boundary.
                if engine.now() >= LIMIT {
                    return outcome;
                }
            }
        });
        for (_, found) in answers {
            prop_assert_eq!(&found, &expected);
        }
    }

    #[test]
    fn the_first_fault_of_all_ranks_wins(shape in shapes(80), messages in prop::collection::vec(1u64..6, 3)) {
        let plant = |engine: &mut Machine| {
            for (index, &message) in messages.iter().enumerate() {
                let id = PartitionId(index as u32 % (shape.nodes + shape.hubs));
                engine.partition_mut(id).fail_at(message);
            }
        };
        let mut alone = machine(&shape, Options::default());
        plant(&mut alone);
        let outcome = alone.run(LIMIT, |_| false);
        let expected = (outcome, answer(&mut alone));
        let answers = on_ranks(3, &shape, &options(1, true), false, |_, engine| {
            plant(engine);
            engine.run(LIMIT, |_| false)
        });
        for answer in answers {
            prop_assert_eq!(&answer, &expected);
        }
    }
}

#[test]
fn who_loses_a_rank_comes_back_and_says_so() {
    let shape = Shape {
        nodes: 6,
        hubs: 2,
        pattern: 1,
        seed: 5,
        posts: 6,
        hops: 15,
    };
    let mut all = ranks(2);
    drop(all.pop());
    let ranks = all.pop().unwrap();
    let mut engine = machine(&shape, Options::default());
    let owners = owners(&shape, &ranks, true);
    engine.split(ranks.clone(), owners);
    assert_eq!(engine.run(LIMIT, |_| false), Outcome::Lost);
    assert_eq!(engine.run(LIMIT, |_| false), Outcome::Lost);
    assert_eq!(ranks.lost(), Some(Lost("rank 1 is gone".into())));
    assert!(engine.gather().is_err());
    assert!(ranks.any(true) && !ranks.any(false));
}

#[test]
fn ranks_that_do_different_things_are_told_so() {
    let all = ranks(2);
    let lost = std::thread::scope(|scope| {
        let [first, second] = &all[..] else { panic!() };
        let shape = Shape {
            nodes: 2,
            hubs: 1,
            pattern: 0,
            seed: 1,
            posts: 1,
            hops: 3,
        };
        scope.spawn(move || {
            let mut engine = machine(&shape, Options::default());
            let owners = owners(&shape, first, true);
            engine.split(first.clone(), owners);
            engine.run(LIMIT, |_| false)
        });
        scope
            .spawn(|| second.share(b"something else"))
            .join()
            .unwrap()
    });
    let sentence = lost.unwrap_err().to_string();
    assert!(
        sentence.contains("ranks 1 and 0 are at different points"),
        "{sentence}"
    );
}
