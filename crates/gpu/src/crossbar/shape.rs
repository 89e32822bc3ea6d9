//! The shape of a network: which routers there are, what their ports lead to, and how packets go.
//!
//! In a mesh, packets go along their row first and then along their column (dimension-order routing),
//! so none can wait for another in a circle, and packets between two nodes stay in order. A switch is
//! one router.
//!
//! Start reading at [`NetworkParameters::new`], then [`NetworkParameters::route`].

use lockstep_config::{ConfigError, GpuConfig};
use lockstep_engine::LinkId;
use lockstep_units::Hertz;

use super::router::{NONE, Target};
use super::{Kind, Packet};

/// Where a source or a sink is attached: a router and the first of its ports there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The router.
    pub router: u32,
    /// The port.
    pub port: u16,
}

/// The shape of a network and what it is wired to.
#[derive(Clone, Debug)]
pub struct NetworkParameters {
    /// The clock of its routers.
    pub clock: Hertz,
    /// Bytes of a flit.
    pub flit: u32,
    /// Flits that a queue between routers holds.
    pub queue: u32,
    /// Cycles that a flit stays in a router.
    pub router: u64,
    /// Ports of a node into the network.
    pub lanes_in: u32,
    /// Ports of a node out of it.
    pub lanes_out: u32,
    /// Routers of a row.
    pub columns: u32,
    /// Where the outputs of each router lead.
    pub targets: Vec<Vec<Target>>,
    /// Inputs of each router.
    pub inputs: Vec<usize>,
    /// Where each source is attached.
    pub sources: Vec<Place>,
    /// Where each sink is attached.
    pub sinks: Vec<Place>,
    /// Number of the first partition that sends.
    pub first_source: u32,
    /// Number of the first partition that receives.
    pub first_sink: u32,
    /// To sinks.
    pub link: LinkId,
    /// Whether sinks must know who sent.
    pub wrapped: bool,
}

/// One side of a network.
#[derive(Clone, Copy, Debug)]
pub struct Side {
    /// Number of its first partition.
    pub first: u32,
    /// Partitions.
    pub count: u32,
}

/// Directions of a grid, and the ports of a router for them.
const EAST: usize = 0;
const WEST: usize = 1;
const SOUTH: usize = 2;
const NORTH: usize = 3;
const DIRECTIONS: usize = 4;

/// The node of an SM or a slice among all of them: slices are spread evenly between SMs.
fn nodes(sms: u32, slices: u32) -> (Vec<u32>, Vec<u32>) {
    let all = sms + slices;
    let (mut of_sms, mut of_slices) = (Vec::new(), Vec::new());
    for node in 0..all {
        // A slice comes wherever another of the even parts is complete.
        let before = u64::from(node) * u64::from(slices) / u64::from(all);
        let after = u64::from(node + 1) * u64::from(slices) / u64::from(all);
        if after > before {
            of_slices.push(node);
        } else {
            of_sms.push(node);
        }
    }
    (of_sms, of_slices)
}

impl NetworkParameters {
    /// The network that a GPU file describes, from one side to the other.
    ///
    /// # Errors
    /// If the GPU file asks for what cannot be built.
    pub fn new(
        config: &GpuConfig,
        kind: Kind,
        sms: Side,
        slices: Side,
        replies: bool,
        link: LinkId,
    ) -> Result<Self, ConfigError> {
        let mesh = &config.interconnect.network;
        let all = sms.count + slices.count;
        let (of_sms, of_slices) = nodes(sms.count, slices.count);
        let (from, to) = if replies {
            (of_slices, of_sms)
        } else {
            (of_sms, of_slices)
        };
        let (first_source, first_sink) = if replies {
            (slices.first, sms.first)
        } else {
            (sms.first, slices.first)
        };
        let mut network = Self {
            clock: mesh.clock,
            flit: mesh.flit.0 as u32,
            queue: mesh.buffer_flits,
            router: mesh.router_latency.0,
            lanes_in: mesh.injection_ports,
            lanes_out: mesh.ejection_ports,
            columns: 1,
            targets: Vec::new(),
            inputs: Vec::new(),
            sources: Vec::new(),
            sinks: Vec::new(),
            first_source,
            first_sink,
            link,
            wrapped: !replies,
        };
        if kind == Kind::Mesh {
            network.grid(mesh.columns, all, &from, &to);
        } else {
            network.switch(&from, &to);
        }
        let most = network.inputs.iter().copied().max().unwrap_or(0);
        if most >= usize::from(NONE) / 2 {
            return Err(ConfigError::impossible(
                "interconnect.network.injection-ports",
                mesh.injection_ports,
                format!("a router would have {most} of them, and 32,766 are the most"),
            ));
        }
        Ok(network)
    }

    /// A router a node, in rows.
    fn grid(&mut self, columns: u32, nodes: u32, from: &[u32], to: &[u32]) {
        self.columns = match columns {
            0 => (1..=nodes).find(|side| side * side >= nodes).unwrap_or(1),
            given => given.min(nodes),
        };
        for node in 0..nodes {
            let mut targets = vec![Target::Nowhere; DIRECTIONS];
            let (x, y) = (node % self.columns, node / self.columns);
            // What leaves to the east comes in from the west.
            if x + 1 < self.columns && node + 1 < nodes {
                targets[EAST] = Target::Router(node + 1, WEST as u16);
            }
            if x > 0 {
                targets[WEST] = Target::Router(node - 1, EAST as u16);
            }
            if node + self.columns < nodes {
                targets[SOUTH] = Target::Router(node + self.columns, NORTH as u16);
            }
            if y > 0 {
                targets[NORTH] = Target::Router(node - self.columns, SOUTH as u16);
            }
            targets.resize(DIRECTIONS + self.lanes_out as usize, Target::Sink);
            self.targets.push(targets);
            self.inputs.push(DIRECTIONS + self.lanes_in as usize);
        }
        let place = |node: &u32| Place {
            router: *node,
            port: DIRECTIONS as u16,
        };
        self.sources = from.iter().map(place).collect();
        self.sinks = to.iter().map(place).collect();
    }

    /// One router for everybody.
    fn switch(&mut self, from: &[u32], to: &[u32]) {
        let places = |count: usize, lanes: u32| {
            (0..count as u32)
                .map(|number| Place {
                    router: 0,
                    port: (number * lanes) as u16,
                })
                .collect()
        };
        self.sources = places(from.len(), self.lanes_in);
        self.sinks = places(to.len(), self.lanes_out);
        self.targets = vec![vec![Target::Sink; to.len() * self.lanes_out as usize]];
        self.inputs = vec![from.len() * self.lanes_in as usize];
    }

    /// The output by which a packet leaves a router: along the row, then along the column. The last
    /// row of a grid may be short; who cannot go on along it leaves it first.
    pub fn route(&self, router: u32, packet: &Packet) -> u16 {
        let sink = self.sinks[(packet.to.0 - self.first_sink) as usize];
        let lane = (packet.from.0 - self.first_source) % self.lanes_out;
        if sink.router == router {
            return sink.port + lane as u16;
        }
        let (x, to_x) = (router % self.columns, sink.router % self.columns);
        let (y, to_y) = (router / self.columns, sink.router / self.columns);
        let targets = &self.targets[router as usize];
        let direction = match x.cmp(&to_x) {
            std::cmp::Ordering::Less if targets[EAST] != Target::Nowhere => EAST,
            std::cmp::Ordering::Less => NORTH,
            std::cmp::Ordering::Greater => WEST,
            std::cmp::Ordering::Equal if y < to_y => SOUTH,
            std::cmp::Ordering::Equal => NORTH,
        };
        direction as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Message;
    use lockstep_engine::{LinkKind, PartitionId, Topology};
    use lockstep_units::Duration;

    #[test]
    fn every_source_reaches_every_sink() {
        for (sms, slices, columns) in [(5, 2, 0), (7, 4, 3), (1, 1, 1), (132, 96, 0), (3, 9, 100)] {
            let setting = format!("interconnect.network.columns={columns}");
            let config = lockstep_config::load(Some("h200"), &[setting]).unwrap();
            let mut builder = Topology::builder(config.device.clock);
            let kind = builder.partitions("any", 1);
            let link = builder.link(LinkKind {
                name: "any".into(),
                from: kind,
                to: kind,
                latency: Duration::nanoseconds(50),
                bandwidth: None,
            });
            let side = |first, count| Side { first, count };
            let p = NetworkParameters::new(
                &config,
                Kind::Mesh,
                side(0, sms),
                side(sms, slices),
                false,
                link,
            )
            .unwrap();
            for from in 0..sms {
                for to in sms..sms + slices {
                    let packet = Packet {
                        from: PartitionId(from),
                        to: PartitionId(to),
                        size: 1,
                        message: Message::InvalidateAll,
                    };
                    let mut router = p.sources[from as usize].router;
                    let mut hops = 0;
                    while let Target::Router(next, _) =
                        p.targets[router as usize][usize::from(p.route(router, &packet))]
                    {
                        (router, hops) = (next, hops + 1);
                        assert!(hops < sms + slices, "{from} to {to} goes round");
                    }
                    assert_eq!(
                        router,
                        p.sinks[(to - sms) as usize].router,
                        "{from} to {to}"
                    );
                }
            }
        }
    }
}
