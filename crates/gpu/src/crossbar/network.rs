//! A network of routers: a mesh, or one switch.
//!
//! A packet is cut into flits. A flit stays `router` cycles in every router and crosses a port in one
//! cycle. The first flit of a packet takes hold of an output, the last one gives it back (wormhole
//! switching); outputs are given round robin. A flit leaves only if there is room in the next
//! queue: a full one gives back-pressure, and room that a flit leaves is the credit that the router
//! before it sees a cycle later. Which way packets go is the network's shape (`shape.rs`).
//!
//! Without traffic a packet of `n` flits over `h` hops takes `(h + 1) × router + n` cycles of the
//! network's clock from its arrival at the first edge to its delivery.
//!
//! Left out: virtual channels. Sources have room for whatever they send, sinks take whatever comes. A kernel is taken to be
//! complete when slices have what reached them; stores that still are in the network are not waited
//! for.
//!
//! Start reading at [`Network::run`].

use std::sync::Arc;

use lockstep_engine::{Inbox, LoadError, Outbox, PartitionId, Reader, Wake, Window, Writer};
use lockstep_stats::statistics;
use lockstep_units::{Bytes, Cycle};
use serde::{Deserialize, Serialize};

use super::Packet;
use super::router::{Flit, NONE, Router, Target};
use super::shape::NetworkParameters;
use crate::message::Message;
use crate::probe::{Probe, Topic};

statistics! {
    /// What a network counts.
    pub struct NetworkStats {
        /// Packets delivered.
        packets: Counter [packets],
        /// Flits that came in.
        flits: Counter [flits],
        /// Flits that went from one router to another.
        hops: Counter [flits],
        /// Flits that could have left and found no room in the next queue, once for every cycle.
        blocked: Counter [cycles],
        /// Cycles of the network from arrival to delivery, summed over packets.
        latency: Counter [cycles],
    }
}

/// A packet on its way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Travelling {
    packet: Packet,
    /// Cycle in which it came.
    since: u64,
}

/// What changes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct State {
    routers: Vec<Router>,
    packets: Vec<Option<Travelling>>,
    free: Vec<u32>,
    /// Flits in all routers.
    flits: u64,
    /// The next cycle to be simulated.
    cycle: u64,
    stats: NetworkStats,
}

/// A network from one side of the interconnect to the other.
#[derive(Debug)]
pub struct Network {
    parameters: Arc<NetworkParameters>,
    state: State,
    probe: Option<Box<Probe>>,
    /// Inputs chosen for the outputs of one router.
    chosen: Vec<u16>,
    /// Queues that lose a flit in this cycle.
    left: Vec<(u32, u16)>,
}

impl Network {
    /// An empty network.
    #[must_use]
    pub fn new(parameters: Arc<NetworkParameters>, probe: Option<Box<Probe>>) -> Self {
        let shapes = parameters.inputs.iter().zip(&parameters.targets);
        let routers = shapes
            .map(|(inputs, targets)| Router::new(*inputs, targets.len()))
            .collect();
        Self {
            state: State {
                routers,
                ..State::default()
            },
            parameters,
            probe,
            chosen: Vec::new(),
            left: Vec::new(),
        }
    }

    /// What it counted.
    #[must_use]
    pub fn stats(&self) -> &NetworkStats {
        &self.state.stats
    }

    /// Goes on counting from there.
    pub fn set_stats(&mut self, stats: NetworkStats) {
        self.state.stats = stats;
    }

    /// Simulates a window.
    pub fn run(
        &mut self,
        window: Window,
        inbox: &mut Inbox<Message>,
        outbox: &mut Outbox<'_, Message>,
    ) -> Wake {
        let clock = self.parameters.clock;
        while let Some(delivery) = inbox.take_in_window() {
            let Message::Packet(packet) = delivery.message else {
                panic!("a network was sent {:?}", delivery.message);
            };
            if let Some(probe) = &self.probe {
                probe.note(Topic::Network, delivery.due, || {
                    let topology = outbox.topology();
                    let (from, to) = (topology.name(packet.from), topology.name(packet.to));
                    format!("{} from {from} to {to} comes in", packet.message.words())
                });
            }
            self.enter(*packet, clock.cycle_at_or_after(delivery.due).0);
        }
        let end = clock.cycle_at_or_after(window.end).0;
        let mut cycle = clock.cycle_at_or_after(window.start).0;
        cycle = cycle.max(self.state.cycle);
        while cycle < end && self.state.flits > 0 {
            let moved = self.step(cycle, outbox);
            cycle = match moved {
                true => cycle + 1,
                false => self.next_ready().max(cycle + 1),
            };
        }
        self.state.cycle = cycle;
        if self.state.flits == 0 {
            return Wake::OnMessage;
        }
        Wake::At(clock.edge(Cycle(cycle)).max(window.end))
    }

    /// Cuts a packet into flits at its source.
    fn enter(&mut self, packet: Packet, cycle: u64) {
        let p = &*self.parameters;
        let state = &mut self.state;
        let source = p.sources[(packet.from.0 - p.first_source) as usize];
        // By destination, so that packets between two nodes stay in order.
        let lane = (packet.to.0 - p.first_sink) % p.lanes_in;
        let count = packet.size.div_ceil(p.flit).max(1);
        let travelling = Travelling {
            packet,
            since: cycle,
        };
        let number = match state.free.pop() {
            Some(number) => {
                state.packets[number as usize] = Some(travelling);
                number
            }
            None => {
                state.packets.push(Some(travelling));
                state.packets.len() as u32 - 1
            }
        };
        let router = &mut state.routers[source.router as usize];
        let input = &mut router.inputs[usize::from(source.port) + lane as usize];
        for index in 0..count {
            input.flits.push_back(Flit {
                packet: number,
                ready: cycle + p.router,
                head: index == 0,
                tail: index + 1 == count,
            });
        }
        router.flits += count;
        state.flits += u64::from(count);
        state.stats.flits.add(u64::from(count));
    }

    /// One cycle; says whether any flit moved or waited for room.
    fn step(&mut self, cycle: u64, outbox: &mut Outbox<'_, Message>) -> bool {
        let p = self.parameters.clone();
        let mut chosen = std::mem::take(&mut self.chosen);
        let mut active = false;
        for number in 0..self.state.routers.len() {
            let state = &mut self.state;
            let router = &state.routers[number];
            if router.flits == 0 {
                continue;
            }
            let packets = &state.packets;
            let wanted = |packet: u32| match &packets[packet as usize] {
                Some(travelling) => p.route(number as u32, &travelling.packet),
                None => panic!("a flit belongs to packet {packet}, which is not there"),
            };
            router.arbitrate(cycle, wanted, &mut chosen);
            for (output, input) in chosen.iter().enumerate() {
                if *input == NONE {
                    continue;
                }
                active = true;
                let target = p.targets[number][output];
                if let Target::Router(next, port) = target {
                    let queue = &state.routers[next as usize].inputs[usize::from(port)];
                    if queue.taken >= p.queue {
                        state.stats.blocked.increment();
                        continue;
                    }
                }
                let flit = state.routers[number].pass(*input, output as u16);
                let Some(flit) = flit else {
                    continue;
                };
                self.left.push((number as u32, *input));
                match target {
                    Target::Router(next, port) => {
                        state.stats.hops.increment();
                        let next = &mut state.routers[next as usize];
                        let queue = &mut next.inputs[usize::from(port)];
                        queue.taken += 1;
                        queue.flits.push_back(Flit {
                            ready: cycle + p.router,
                            ..flit
                        });
                        next.flits += 1;
                    }
                    Target::Sink => {
                        state.flits -= 1;
                        if flit.tail {
                            deliver(state, &p, flit.packet, cycle + 1, outbox);
                        }
                    }
                    Target::Nowhere => panic!("a packet leaves router {number} over the edge"),
                }
            }
        }
        // Room that a flit leaves is known to the router before it from the next cycle on.
        for (router, input) in self.left.drain(..) {
            let input = &mut self.state.routers[router as usize].inputs[usize::from(input)];
            input.taken = input.taken.saturating_sub(1);
        }
        self.chosen = chosen;
        active
    }

    /// The first cycle in which a flit in front can leave.
    fn next_ready(&self) -> u64 {
        let routers = self.state.routers.iter().filter(|router| router.flits > 0);
        let fronts = routers.flat_map(|router| &router.inputs);
        let ready = fronts.filter_map(|input| input.flits.front());
        ready.map(|flit| flit.ready).min().unwrap_or(u64::MAX)
    }

    /// Writes everything.
    pub fn save(&self, writer: &mut Writer<'_>) {
        writer.write(&self.state);
    }

    /// Takes on what was saved.
    ///
    /// # Errors
    /// If the bytes are not what `save` wrote.
    pub fn load(&mut self, reader: &mut Reader<'_>) -> Result<(), LoadError> {
        let state: State = reader.read()?;
        let alike = |new: &Router, old: &Router| {
            new.inputs.len() == old.inputs.len() && new.outputs.len() == old.outputs.len()
        };
        let known = |flit: &Flit| {
            let packet = state.packets.get(flit.packet as usize);
            packet.is_some_and(Option::is_some)
        };
        let fits = state.routers.len() == self.state.routers.len()
            && state
                .routers
                .iter()
                .zip(&self.state.routers)
                .all(|(a, b)| alike(a, b))
            && state
                .routers
                .iter()
                .flat_map(|router| router.inputs.iter().flat_map(|input| &input.flits))
                .all(known);
        if !fits {
            return Err(LoadError::Malformed {
                what: "another network",
            });
        }
        self.state = state;
        Ok(())
    }
}

fn deliver(
    state: &mut State,
    p: &NetworkParameters,
    number: u32,
    cycle: u64,
    outbox: &mut Outbox<'_, Message>,
) {
    let Some(travelling) = state.packets[number as usize].take() else {
        return;
    };
    state.free.push(number);
    state.stats.packets.increment();
    state.stats.latency.add(cycle - travelling.since);
    let packet = travelling.packet;
    let (to, size): (PartitionId, Bytes) = (packet.to, Bytes(u64::from(packet.size)));
    let message = if p.wrapped {
        Message::Packet(Box::new(packet))
    } else {
        packet.message
    };
    outbox.send(p.link, to, p.clock.edge(Cycle(cycle)), size, message);
}

#[cfg(test)]
mod tests {
    use super::super::Kind;
    use super::super::shape::Side;
    use super::*;
    use crate::partition::GpuPartition;
    use lockstep_engine::{Harness, LinkKind, Topology};
    use lockstep_units::{Duration, Hertz, Time};

    /// Nodes 0 and 2 are SMs, 1 and 3 are slices: a square of four.
    const SMS: u32 = 2;
    const SLICES: u32 = 2;

    /// Sends requests (SM, slice, bytes, nanosecond) through a network at 1 GHz with flits of 40
    /// bytes and two cycles a router; says in which nanosecond each is delivered.
    fn delivered(kind: Kind, queue: u32, packets: &[(u32, u32, u32, u64)]) -> Vec<u64> {
        let settings = [
            "interconnect.network.clock=1 GHz".to_string(),
            "interconnect.network.router-latency=2 cycles".to_string(),
            "interconnect.network.injection-ports=1".to_string(),
            format!("interconnect.network.buffer-flits={queue}"),
        ];
        let config = lockstep_config::load(Some("h200"), &settings).unwrap();
        let clock: Hertz = "1 GHz".parse().unwrap();
        let mut builder = Topology::builder(clock);
        let sms = builder.partitions("sm", SMS);
        let slices = builder.partitions("slice", SLICES);
        let networks = builder.partitions("network", 1);
        let latency = Duration::nanoseconds(50);
        let link = builder.link(LinkKind {
            name: "requested".into(),
            from: networks,
            to: slices,
            latency,
            bandwidth: None,
        });
        let topology = builder.build().unwrap();
        let id = topology.id(networks, 0);
        let side = |kind, count| Side {
            first: topology.id(kind, 0).0,
            count,
        };
        let (from, to) = (side(sms, SMS), side(slices, SLICES));
        let parameters = NetworkParameters::new(&config, kind, from, to, false, link).unwrap();
        let network = GpuPartition::Network(Box::new(Network::new(Arc::new(parameters), None)));
        let mut bench = Harness::new(topology, id, network);
        for (number, (sm, slice, size, at)) in packets.iter().enumerate() {
            let packet = Packet {
                from: PartitionId(*sm),
                to: PartitionId(SMS + slice),
                size: *size,
                message: Message::Launch(number as u32),
            };
            let due = Time::ZERO + Duration::nanoseconds(*at);
            bench.post(PartitionId(*sm), due, Message::Packet(Box::new(packet)));
        }
        let mut found = vec![0; packets.len()];
        for _ in 0..100 {
            for sent in bench.run().1 {
                let Message::Packet(packet) = sent.message else {
                    panic!("slices are sent packets");
                };
                let Message::Launch(number) = packet.message else {
                    panic!("what was sent comes out");
                };
                found[number as usize] = (sent.due - latency).nanoseconds();
            }
        }
        found
    }

    #[test]
    fn a_packet_takes_its_hops_and_its_flits() {
        let check = |kind, packet, expected| {
            assert_eq!(delivered(kind, 8, &[packet]), [expected], "{packet:?}");
        };
        // (1 hop + 1) x 2 + 1 flit, (2 + 1) x 2 + 1, (2 + 1) x 2 + 3.
        check(Kind::Mesh, (0, 0, 8, 0), 5);
        check(Kind::Mesh, (0, 1, 40, 0), 7);
        check(Kind::Mesh, (0, 1, 100, 0), 9);
        check(Kind::Mesh, (1, 0, 100, 1000), 1009);
        // 2 + 1, 2 + 3.
        check(Kind::Switched, (0, 0, 8, 0), 3);
        check(Kind::Switched, (1, 1, 100, 200), 205);
    }

    #[test]
    fn packets_wait_for_a_port_that_another_holds() {
        // SM 1 is one hop away: its flits leave in cycles 4, 5 and 6. Those of SM 0 are there in
        // cycle 6 and leave in 7, 8 and 9.
        let both = [(0, 1, 100, 0), (1, 1, 100, 0)];
        assert_eq!(delivered(Kind::Mesh, 8, &both), [10, 7]);
        // Both want the port in cycle 2; the first in turn has it until 4.
        assert_eq!(delivered(Kind::Switched, 8, &both), [5, 8]);
        // Different ports do not meet.
        let apart = [(0, 0, 100, 0), (1, 1, 100, 0)];
        assert_eq!(delivered(Kind::Switched, 8, &apart), [5, 5]);
    }

    #[test]
    fn a_full_queue_holds_flits_back() {
        // With room for one flit the next can come three cycles later: 4, 7, 10.
        assert_eq!(delivered(Kind::Mesh, 1, &[(0, 0, 100, 0)]), [11]);
        // With room for three nothing waits: 4, 5, 6.
        assert_eq!(delivered(Kind::Mesh, 3, &[(0, 0, 100, 0)]), [7]);
    }

    #[test]
    fn a_source_sends_in_order_and_a_flit_a_cycle() {
        let many: Vec<_> = (0..50).map(|_| (0, 1, 64, 0)).collect();
        let found = delivered(Kind::Mesh, 4, &many);
        assert!(found.is_sorted());
        // Two flits each, the first after (2 + 1) x 2 + 2.
        assert_eq!((found[0], found[49]), (8, 8 + 49 * 2));
    }
}
