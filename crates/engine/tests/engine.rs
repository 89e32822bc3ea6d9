//! What an engine promises, one sentence a test.

mod toy;

use expect_test::expect;
use lockstep_engine::*;
use lockstep_units::{Bandwidth, Bytes, Cycles, Duration, Hertz, Time};
use toy::{Shape, answer, machine};

/// Sends one message of `size` bytes a window while it has any left, and notes what arrives.
#[derive(Default)]
struct Talker {
    link: Option<LinkId>,
    to: u32,
    sizes: Vec<u64>,
    seen: Vec<(Time, u32, u64)>,
    panics: bool,
    stubborn: bool,
}

impl Partition for Talker {
    type Message = u64;

    fn run(
        &mut self,
        window: Window,
        inbox: &mut Inbox<u64>,
        outbox: &mut Outbox<'_, u64>,
    ) -> Wake {
        assert!(!self.panics, "as told");
        if self.stubborn && !inbox.is_empty() {
            // Leaves what is due where it is, for one window.
            self.stubborn = false;
            return Wake::OnMessage;
        }
        while let Some(delivery) = inbox.take_in_window() {
            self.seen
                .push((delivery.due, delivery.sender.0, delivery.message));
        }
        if let Some(link) = self.link {
            for size in std::mem::take(&mut self.sizes) {
                outbox.send(link, PartitionId(self.to), window.start, Bytes(size), size);
            }
        }
        Wake::OnMessage
    }

    fn save(&self, writer: &mut Writer<'_>) {
        writer.write(&self.seen);
    }

    fn load(&mut self, reader: &mut Reader<'_>) -> Result<(), LoadError> {
        self.seen = reader.read()?;
        Ok(())
    }
}

fn talk(latency: Duration, bandwidth: Option<Bandwidth>) -> (Topology, LinkId) {
    let mut builder = Topology::builder(Hertz::mega(1_000));
    let kind = builder.partitions("talker", 3);
    let other = builder.partitions("other", 1);
    let link = LinkKind {
        name: "talk".into(),
        from: kind,
        to: kind,
        latency,
        bandwidth,
    };
    let talk = builder.link(link.clone());
    builder.link(LinkKind {
        name: "aside".into(),
        to: other,
        ..link
    });
    (builder.build().unwrap(), talk)
}

fn talkers(options: Options, change: impl FnOnce(&mut [Talker], LinkId)) -> Engine<Talker> {
    let (topology, link) = talk(Duration::nanoseconds(100), Bandwidth::new(1_000_000_000));
    let mut partitions: Vec<Talker> = (0..4).map(|_| Talker::default()).collect();
    change(&mut partitions, link);
    Engine::new(topology, partitions, options).unwrap()
}

#[test]
fn messages_leave_one_after_the_other_and_then_travel() {
    let mut engine = talkers(Options::default(), |partitions, link| {
        partitions[0] = Talker {
            link: Some(link),
            to: 2,
            sizes: vec![10, 20],
            ..Talker::default()
        };
        partitions[1] = Talker {
            link: Some(link),
            to: 2,
            sizes: vec![10],
            ..Talker::default()
        };
    });
    assert_eq!(engine.run_until(|_| false), Outcome::Quiescent);
    // 10 bytes take 10 ns at 1 GB/s; those of two senders leave side by side.
    let ns = |count: u64| Time(count * 1_000_000);
    assert_eq!(
        engine.partition(PartitionId(2)).seen,
        [(ns(110), 0, 10), (ns(110), 1, 10), (ns(130), 0, 20)]
    );
    assert_eq!(
        engine.now(),
        ns(200),
        "the end of the last window with work"
    );
    assert_eq!(engine.counters().messages, 3);
}

#[test]
fn posted_messages_arrive_after_those_of_partitions_and_in_order() {
    let mut engine = talkers(Options::default(), |partitions, link| {
        partitions[1] = Talker {
            link: Some(link),
            to: 0,
            sizes: vec![0],
            ..Talker::default()
        };
    });
    let due = Time(100_000_000);
    for message in [5, 4, 6] {
        engine.post(PartitionId(0), due, message).unwrap();
    }
    engine.run_until(|_| false);
    let outside = PartitionId::OUTSIDE.0;
    let expected = [
        (due, 1, 0),
        (due, outside, 5),
        (due, outside, 4),
        (due, outside, 6),
    ];
    assert_eq!(engine.partition(PartitionId(0)).seen, expected);
    let error = engine.post(PartitionId(0), due, 1).unwrap_err().to_string();
    assert_eq!(
        error,
        "a message for talker 0 is due at 100 ns, but the simulation is at 200 ns"
    );
    let error = engine.post(PartitionId(9), due, 1).unwrap_err().to_string();
    assert_eq!(error, "there is no partition 9; the last is 3");
}

#[test]
fn a_message_that_is_not_taken_waits_for_the_next_window() {
    let mut engine = talkers(Options::default(), |partitions, _| {
        partitions[0].stubborn = true
    });
    engine.post(PartitionId(0), Time(5_000), 1).unwrap();
    assert_eq!(engine.run(Time(1), |_| false), Outcome::Limit);
    assert_eq!(engine.waiting(PartitionId(0)), 1);
    assert_eq!(engine.next_work(), Some(Time(100_000_000)));
    assert_eq!(engine.run_until(|_| false), Outcome::Quiescent);
    assert_eq!(engine.partition(PartitionId(0)).seen.len(), 1);
}

#[test]
fn time_passes_up_to_the_limit_even_if_nothing_happens() {
    for jumping in [true, false] {
        let mut engine = talkers(
            Options {
                jumping,
                ..Options::default()
            },
            |_, _| (),
        );
        assert_eq!(
            engine.run(Time(1_000_000_001), |_| false),
            Outcome::Quiescent
        );
        assert_eq!(
            engine.now(),
            Time(1_100_000_000),
            "rounded up to a boundary"
        );
        engine.post(PartitionId(0), Time(3_000_000_000), 1).unwrap();
        assert_eq!(engine.run(Time(2_000_000_000), |_| false), Outcome::Limit);
        assert_eq!(engine.now(), Time(2_000_000_000));
        let arrived = |all: &Partitions<'_, Talker>| !all.get(PartitionId(0)).seen.is_empty();
        assert_eq!(engine.run_until(arrived), Outcome::Condition);
        assert_eq!(engine.now(), Time(3_100_000_000));
        assert_eq!(
            engine.run_until(arrived),
            Outcome::Condition,
            "without running anything"
        );
        assert_eq!(engine.now(), Time(3_100_000_000));
    }
}

#[test]
#[should_panic(expected = "link `talk` leads from talker to talker, not from talker 0 to other 0")]
fn a_message_needs_a_link() {
    let mut engine = talkers(Options::default(), |partitions, link| {
        partitions[0] = Talker {
            link: Some(link),
            to: 3,
            sizes: vec![10],
            ..Talker::default()
        };
    });
    engine.run_until(|_| false);
}

#[test]
fn a_panic_of_any_worker_reaches_the_caller() {
    for guilty in 0..3 {
        let together = Options {
            threads: 3,
            together_from: 1,
            together_from_nanoseconds: 0,
            ..Options::default()
        };
        let mut engine = talkers(together, |partitions, _| partitions[guilty].panics = true);
        let run = std::panic::AssertUnwindSafe(|| engine.run_until(|_| false));
        let payload = std::panic::catch_unwind(run).unwrap_err();
        assert_eq!(payload.downcast_ref(), Some(&"as told"));
        // And once broken, it says so instead of going on from half an epoch.
        let run = std::panic::AssertUnwindSafe(|| engine.run_until(|_| false));
        assert!(std::panic::catch_unwind(run).is_err());
    }
}

fn shape() -> Shape {
    Shape {
        nodes: 20,
        hubs: 5,
        pattern: 1,
        seed: 7,
        posts: 8,
        hops: 12,
    }
}

#[test]
fn the_toy_machine_is_busy_enough_to_prove_something() {
    let mut engine = machine(&shape(), Options::default());
    engine.run(Time(3_000_000_000), |_| false);
    let counters = engine.counters();
    assert!(counters.messages > 1_000, "{counters:?}");
    assert!(counters.commits > 50, "{counters:?}");
    assert_eq!(engine.boundary().calls, counters.steps);
    // And with one message at a time it has something to jump over.
    let jumped = |seed| {
        let quiet = Shape {
            posts: 1,
            hops: 3,
            seed,
            ..shape()
        };
        let mut engine = machine(&quiet, Options::default());
        engine.run_until(|all| all.now() > Time(3_000_000_000));
        engine.counters().skipped
    };
    assert!((0..10).map(jumped).sum::<u64>() > 50);
}

#[test]
fn options_change_in_the_middle_of_a_simulation() {
    let limit = Time(2_000_000_000);
    let mut expected = machine(&shape(), Options::default());
    expected.run(limit, |_| false);
    let mut engine = machine(&shape(), Options::default());
    for (part, threads) in [4, 1, 2, 3].into_iter().enumerate() {
        let schedule = [Schedule::Static, Schedule::Dynamic, Schedule::Balanced][part % 3];
        engine.set_options(Options {
            threads,
            schedule,
            ..Options::default()
        });
        engine.run(Time(limit.0 / 4 * (part as u64 + 1)), |_| false);
    }
    assert_eq!(answer(&mut engine), answer(&mut expected));
}

#[test]
fn a_state_is_loaded_only_by_the_machine_that_saved_it() {
    let mut saved = answer(&mut machine(&shape(), Options::default())).saved;
    let mut other = machine(
        &Shape {
            nodes: 21,
            ..shape()
        },
        Options::default(),
    );
    let error = other
        .load(&mut Reader::new(&saved))
        .unwrap_err()
        .to_string();
    assert!(error.contains("belongs to another machine"), "{error}");
    let mut same = machine(&shape(), Options::default());
    for cut in [0, 1, saved.len() / 2, saved.len() - 1] {
        let error = same
            .load(&mut Reader::new(&saved[..cut]))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("does not decode") || error.contains("announced"),
            "{error}"
        );
    }
    saved[0] = 99;
    let error = same.load(&mut Reader::new(&saved)).unwrap_err().to_string();
    assert_eq!(error, "the saved state has format 99; this version reads 2");
}

#[test]
fn damaged_states_are_refused_or_loaded_but_never_a_crash() {
    let mut engine = machine(&shape(), Options::default());
    engine.run(Time(500_000_000), |_| false);
    let saved = answer(&mut engine).saved;
    for flip in 0..400 {
        let mut damaged = saved.clone();
        let at = lockstep_units::splitmix64(flip) as usize % damaged.len();
        damaged[at] ^= 1 << (flip % 8);
        let _ = machine(&shape(), Options::default()).load(&mut Reader::new(&damaged));
    }
}

#[test]
fn a_partition_can_be_tested_alone() {
    let (topology, link) = talk(Duration::nanoseconds(100), None);
    let talker = Talker {
        link: Some(link),
        to: 1,
        sizes: vec![7],
        ..Talker::default()
    };
    let mut bench = Harness::new(topology, PartitionId(0), talker);
    bench.post(PartitionId(2), Time(150_000_000), 3);
    let (wake, sent) = bench.run();
    assert_eq!(wake, Wake::OnMessage);
    assert_eq!(
        sent,
        [Sent {
            due: Time(100_000_000),
            to: PartitionId(1),
            message: 7
        }]
    );
    assert!(bench.partition.seen.is_empty());
    assert_eq!(bench.window().start, Time(100_000_000));
    assert!(bench.run().1.is_empty());
    assert_eq!(bench.partition.seen, [(Time(150_000_000), 2, 3)]);
}

#[test]
fn a_topology_describes_itself() {
    let topology = toy::topology(&shape());
    expect![[r#"
        clock 1 GHz, epoch 20 ns (20 cycles), 25 partitions

        kind  count  numbers
        node  20     0 to 19
        hub   5      20 to 24

        link  from  to    latency  cycles  bandwidth
        near  node  node  20 ns    20      64 GB/s
        up    node  hub   33 ns    33      64 GB/s
        down  hub   node  150 ns   150     unlimited
        far   hub   hub   5 us     5000    64 GB/s
    "#]]
    .assert_eq(&topology.text());
    expect![[r#"
        digraph topology {
            rankdir = LR;
            node [shape = box];
            "node" [label = "node\n20"];
            "hub" [label = "hub\n5"];
            "node" -> "node" [label = "near\n20 ns\n64 GB/s"];
            "node" -> "hub" [label = "up\n33 ns\n64 GB/s"];
            "hub" -> "node" [label = "down\n150 ns"];
            "hub" -> "hub" [label = "far\n5 us\n64 GB/s"];
        }
    "#]]
    .assert_eq(&topology.graphviz());
    assert_eq!(topology.name(PartitionId(21)), "hub 1");
}

#[test]
fn an_impossible_topology_is_refused_with_reason() {
    let clock = Hertz::mega(1_000);
    let build = |cycles: u64, forced: bool, name: &str| {
        let mut builder = Topology::builder(clock);
        let kind = builder.partitions("a", 2);
        builder.partitions(name, 1);
        let latency = clock.duration(Cycles(cycles));
        let link = LinkKind {
            name: "x".into(),
            from: kind,
            to: kind,
            latency,
            bandwidth: None,
        };
        builder.link(link);
        if forced {
            builder.force_short_epoch();
        }
        builder
            .build()
            .map(|topology| topology.epoch())
            .map_err(|error| error.to_string())
    };
    assert_eq!(build(16, false, "b"), Ok(Duration::nanoseconds(16)));
    assert_eq!(build(15, true, "b"), Ok(Duration::nanoseconds(15)));
    assert_eq!(
        Topology::builder(clock).build().unwrap_err(),
        TopologyError::Empty
    );
    let errors = [
        build(15, false, "b"),
        build(0, true, "b"),
        build(20, false, "a"),
    ];
    let text: String = errors.map(|error| error.unwrap_err() + "\n").concat();
    expect![[r#"
        link `x` has a latency of 15 ns, so workers would meet more often than every 16 cycles (16 ns): include the fixed pipeline stages in it, or force the short epoch
        link `x` has no latency: a message must take time, since that is how far partitions run ahead of each other
        the name `a` is taken twice; kinds of partitions and kinds of links each need their own
    "#]]
    .assert_eq(&text);
}
