//! A machine that models nothing and is hard to keep deterministic: nodes that answer messages
//! with more messages, set alarms, read a memory and write to it through logs. Times are whole
//! nanoseconds, so that many things happen at once.

#![allow(dead_code, reason = "every test file uses its own part")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lockstep_engine::*;
use lockstep_units::{Bandwidth, Bytes, Duration, Hertz, Time, splitmix64};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

pub const CELLS: usize = 32;

/// Contents that change only at boundaries.
pub type Memory = Arc<[AtomicU64; CELLS]>;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    pub value: u64,
    /// Counts the notes of one sender.
    pub sequence: u64,
    pub hops: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Write {
    at: Time,
    cell: usize,
    value: u64,
}

/// What a node changes, and so saves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct State {
    digest: u64,
    received: u64,
    sent: u64,
    last: Option<(Time, u32, u64)>,
    alarms: BTreeSet<Time>,
    log: Vec<Write>,
    faulty: Option<Time>,
}

pub struct Node {
    /// Over which links it reaches whom.
    routes: Vec<(LinkId, PartitionId)>,
    memory: Memory,
    state: State,
    /// Fails at its n-th message, if at all.
    fails_at: Option<u64>,
}

impl Node {
    pub fn digest(&self) -> u64 {
        splitmix64(self.state.digest ^ splitmix64(self.state.received))
    }

    pub fn received(&self) -> u64 {
        self.state.received
    }

    pub fn fail_at(&mut self, message: u64) {
        self.fails_at = Some(message);
    }

    fn absorb(&mut self, value: u64) -> u64 {
        self.state.digest = splitmix64(self.state.digest ^ value);
        self.state.digest
    }

    fn speak(&mut self, now: Time, hops: u8, outbox: &mut Outbox<'_, Note>) {
        let drawn = self.absorb(now.0);
        let read = self.memory[drawn as usize % CELLS].load(Ordering::Relaxed);
        self.absorb(read);
        if self.routes.is_empty() || hops == 0 {
            return;
        }
        // Slightly more than one answer on average, bounded by the hops.
        for index in 0..[1, 1, 1, 2][drawn as usize % 4] {
            let drawn = self.absorb(index);
            let (link, to) = self.routes[(drawn >> 8) as usize % self.routes.len()];
            let at = now + Duration::nanoseconds(drawn >> 16 & 3);
            let note = Note {
                value: drawn,
                sequence: self.state.sent,
                hops: hops - 1,
            };
            self.state.sent += 1;
            let due = outbox.send(link, to, at, Bytes((drawn >> 32 & 3) * 64), note);
            self.absorb(due.0);
        }
    }
}

impl Partition for Node {
    type Message = Note;

    fn run(
        &mut self,
        window: Window,
        inbox: &mut Inbox<Note>,
        outbox: &mut Outbox<'_, Note>,
    ) -> Wake {
        loop {
            let alarm = self.state.alarms.first().copied().unwrap_or(Time::NEVER);
            let due = inbox.next_due().unwrap_or(Time::NEVER);
            let now = alarm.min(due);
            if now >= window.end {
                return self
                    .state
                    .alarms
                    .first()
                    .map_or(Wake::OnMessage, |&time| Wake::At(time));
            }
            assert!(
                now >= window.start,
                "{now} was missed: the window starts at {}",
                window.start
            );
            while let Some(delivery) = inbox.take_due(now) {
                let place = (delivery.due, delivery.sender.0, delivery.message.sequence);
                assert!(
                    self.state.last.is_none_or(|last| last < place),
                    "messages out of order"
                );
                self.state.last = Some(place);
                self.state.received += 1;
                let drawn = self.absorb(delivery.message.value ^ u64::from(delivery.sender.0));
                if drawn.is_multiple_of(3) {
                    self.state.alarms.insert(
                        now + window.length() * (splitmix64(drawn) % 20)
                            + Duration::nanoseconds(splitmix64(drawn) >> 60),
                    );
                }
                if drawn.is_multiple_of(5) {
                    let cell = splitmix64(drawn) as usize % CELLS;
                    self.state.log.push(Write {
                        at: now,
                        cell,
                        value: drawn,
                    });
                }
                if self.fails_at == Some(self.state.received) {
                    self.state.faulty = Some(now);
                }
                self.speak(now, delivery.message.hops, outbox);
            }
            if alarm == now {
                self.state.alarms.remove(&alarm);
                self.speak(now, 2, outbox);
            }
        }
    }

    fn has_log(&self) -> bool {
        !self.state.log.is_empty()
    }

    fn clear_log(&mut self) {
        self.state.log.clear();
    }

    fn save_log(&self, writer: &mut Writer<'_>) {
        writer.write(&self.state.log);
    }

    fn load_log(&mut self, reader: &mut Reader<'_>) -> Result<(), LoadError> {
        self.state.log = reader.read()?;
        Ok(())
    }

    fn fault(&self) -> Option<Time> {
        self.state.faulty
    }

    fn save(&self, writer: &mut Writer<'_>) {
        writer.write(&self.state);
    }

    fn load(&mut self, reader: &mut Reader<'_>) -> Result<(), LoadError> {
        self.state = reader.read()?;
        Ok(())
    }
}

/// Applies logs by (time, partition, sequence), each shard its own cells.
pub struct Commits {
    memory: Memory,
    pub calls: u64,
}

impl Boundary<Node> for Commits {
    fn commit(&self, window: Window, shard: Shard, logged: Logged<'_, Node>) {
        assert!(!logged.is_empty());
        let mut writes = Vec::new();
        for (id, node) in logged.iter() {
            for (sequence, write) in node.state.log.iter().enumerate() {
                assert!(window.contains(write.at), "a log was committed twice");
                if write.cell % shard.count == shard.index {
                    writes.push(((write.at, id, sequence), write));
                }
            }
        }
        writes.sort_unstable_by_key(|(order, _)| *order);
        for (_, write) in writes {
            let cell = &self.memory[write.cell];
            // Order shows: the new value depends on the one before.
            cell.store(
                splitmix64(cell.load(Ordering::Relaxed) ^ write.value),
                Ordering::Relaxed,
            );
        }
    }

    fn after(&mut self, _: Window, partitions: &mut Partitions<'_, Node>) -> Control {
        self.calls += 1;
        assert!(partitions.iter().count() == partitions.topology().partitions());
        Control::Continue
    }
}

/// What machine to build.
#[derive(Clone, Debug)]
pub struct Shape {
    pub nodes: u32,
    pub hubs: u32,
    /// 0: a ring; 1: everyone to everyone; 2: a few random routes each.
    pub pattern: u8,
    pub seed: u64,
    /// Messages posted from outside at the beginning.
    pub posts: u32,
    pub hops: u8,
}

/// Any of them with fewer nodes than `nodes`.
pub fn shapes(nodes: u32) -> impl Strategy<Value = Shape> {
    (1..nodes, 1u32..12, 0u8..3, any::<u64>(), 1u32..12, 1u8..16).prop_map(
        |(nodes, hubs, pattern, seed, posts, hops)| Shape {
            nodes,
            hubs,
            pattern,
            seed,
            posts,
            hops,
        },
    )
}

pub type Machine = Engine<Node, Commits>;

pub fn topology(shape: &Shape) -> Topology {
    let clock = Hertz::mega(1_000);
    let mut builder = Topology::builder(clock);
    let node = builder.partitions("node", shape.nodes);
    let hub = builder.partitions("hub", shape.hubs);
    let link = |name: &str, from, to, cycles: u64, bandwidth| LinkKind {
        name: name.into(),
        from,
        to,
        latency: Duration::nanoseconds(cycles),
        bandwidth,
    };
    let rate = Bandwidth::new(64_000_000_000);
    builder.link(link("near", node, node, 20, rate));
    builder.link(link("up", node, hub, 33, rate));
    builder.link(link("down", hub, node, 150, None));
    builder.link(link("far", hub, hub, 5_000, rate));
    builder.build().unwrap()
}

/// Builds the machine and posts its first messages.
pub fn machine(shape: &Shape, options: Options) -> Machine {
    let topology = topology(shape);
    let memory: Memory = Arc::new([const { AtomicU64::new(0) }; CELLS]);
    let count = topology.partitions() as u32;
    let name = |id: u32| if id < shape.nodes { "node" } else { "hub" };
    let between = |from: u32, to: u32| {
        let link = match (name(from), name(to)) {
            ("node", "node") => "near",
            ("node", _) => "up",
            (_, "node") => "down",
            _ => "far",
        };
        (topology.link_named(link).unwrap(), PartitionId(to))
    };
    let routes = |id: u32| -> Vec<_> {
        match shape.pattern {
            0 => vec![
                between(id, (id + 1) % count),
                between(id, (id + count - 1) % count),
            ],
            1 => (0..count).map(|to| between(id, to)).collect(),
            _ => (0..3)
                .map(|n| {
                    between(
                        id,
                        splitmix64(shape.seed ^ u64::from(id) << 8 ^ n) as u32 % count,
                    )
                })
                .collect(),
        }
    };
    let nodes = (0..count).map(|id| Node {
        routes: routes(id),
        memory: memory.clone(),
        state: State {
            digest: splitmix64(shape.seed ^ u64::from(id)),
            received: 0,
            sent: 0,
            last: None,
            alarms: BTreeSet::new(),
            log: Vec::new(),
            faulty: None,
        },
        fails_at: None,
    });
    let nodes = nodes.collect();
    let boundary = Commits { memory, calls: 0 };
    let mut engine = Engine::with_boundary(topology, nodes, boundary, options).unwrap();
    post(&mut engine, shape);
    engine
}

/// Posts the first messages.
pub fn post(engine: &mut Machine, shape: &Shape) {
    let count = shape.nodes + shape.hubs;
    for post in 0..shape.posts {
        let drawn = splitmix64(shape.seed ^ 0xabcd ^ u64::from(post) << 32);
        let note = Note {
            value: drawn,
            sequence: post.into(),
            hops: shape.hops,
        };
        engine
            .post(
                PartitionId(drawn as u32 % count),
                Time::ZERO + Duration::nanoseconds(drawn >> 60),
                note,
            )
            .unwrap();
    }
}

/// Everything that must not depend on the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub now: Time,
    pub nodes: Vec<u64>,
    pub memory: Vec<u64>,
    pub saved: Vec<u8>,
}

pub fn answer(engine: &mut Machine) -> Answer {
    let mut saved = Vec::new();
    engine.save(&mut Writer::new(&mut saved));
    Answer {
        now: engine.now(),
        nodes: engine
            .partitions()
            .iter()
            .map(|(_, node)| node.digest())
            .collect(),
        memory: memory(engine),
        saved,
    }
}

pub fn memory(engine: &Machine) -> Vec<u64> {
    engine
        .boundary()
        .memory
        .iter()
        .map(|cell| cell.load(Ordering::Relaxed))
        .collect()
}

pub fn set_memory(engine: &Machine, contents: &[u64]) {
    for (cell, &value) in engine.boundary().memory.iter().zip(contents) {
        cell.store(value, Ordering::Relaxed);
    }
}
