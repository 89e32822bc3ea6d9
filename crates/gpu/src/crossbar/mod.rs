//! The interconnect between SMs and L2 slices: how packets travel.
//!
//! Kinds by name, see [`INTERCONNECTS`]. `crossbar` and `simple` are links of the engine: what waits
//! does so at the sender's egress port (and, at an SM, at its ingress). `mesh` and `switched` are
//! networks of routers with flits, queues, back-pressure and a clock of their own: one partition
//! carries requests, another one replies. Half of the latency of an interconnect lies before its
//! network and half behind it; these are the lookahead, and the hops come on top.
//!
//! Queues of limited length lie at both ends: the queue of a slice has room for some requests of each
//! SM, which the SM knows as [`credits`]. Replies are always taken.
//! Left out: queues inside `crossbar`, and any in `simple`, which has no credits.
//!
//! Start reading at [`Egress::send`], then at [`network`].

pub mod credits;
pub mod network;
mod router;
pub mod shape;

use lockstep_config::{ConfigError, GpuConfig};
use lockstep_engine::{LinkId, Outbox, PartitionId};
use lockstep_units::{Bytes, Time};
use serde::{Deserialize, Serialize};

use crate::message::Message;
use crate::probe::{Probe, Topic};

/// How packets travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Ports with bandwidth at SMs and slices, distances that differ.
    Crossbar,
    /// A latency and a bandwidth.
    Simple,
    /// A grid of routers.
    Mesh,
    /// One router.
    Switched,
}

/// A kind that a GPU file can name.
pub struct Policy {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub summary: &'static str,
    /// Which it is.
    pub kind: Kind,
}

/// All kinds, in the order of the documentation.
pub const INTERCONNECTS: &[Policy] = &[
    Policy {
        name: "crossbar",
        summary: "ports of limited bandwidth out of every SM and slice and into every SM, ways of different length",
        kind: Kind::Crossbar,
    },
    Policy {
        name: "simple",
        summary: "a latency, and a bandwidth at the sender; nothing else",
        kind: Kind::Simple,
    },
    Policy {
        name: "mesh",
        summary: "a grid of routers with flits, queues and a clock of its own",
        kind: Kind::Mesh,
    },
    Policy {
        name: "switched",
        summary: "one switch with flits, ports and a clock of its own",
        kind: Kind::Switched,
    },
];

impl Kind {
    /// The kind that a GPU file names.
    ///
    /// # Errors
    /// If there is no such kind.
    pub fn of(config: &GpuConfig) -> Result<Self, ConfigError> {
        let name = &config.interconnect.kind;
        let found = INTERCONNECTS.iter().find(|policy| policy.name == name);
        found.map(|policy| policy.kind).ok_or_else(|| {
            let names = INTERCONNECTS.iter().map(|policy| policy.name);
            ConfigError::unknown_policy("interconnect", name, names)
        })
    }
}

/// A packet inside a network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Packet {
    /// Who sent it.
    pub from: PartitionId,
    /// Who shall have it.
    pub to: PartitionId,
    /// Bytes with what is around them.
    pub size: u32,
    /// What it carries.
    pub message: Message,
}

/// The port by which an SM or a slice sends packets.
#[derive(Clone, Copy, Debug)]
pub struct Egress {
    /// The link to the other side, or to the network.
    pub link: LinkId,
    /// The network, if there is one.
    pub network: Option<PartitionId>,
    /// For people who watch.
    pub topic: Topic,
}

impl Egress {
    /// Sends a packet that is ready at `at`.
    #[inline]
    pub fn send(
        &self,
        to: PartitionId,
        at: Time,
        size: Bytes,
        message: Message,
        outbox: &mut Outbox<'_, Message>,
        probe: Option<&Probe>,
    ) {
        if let Some(probe) = probe {
            let wait = outbox.backlog(self.link, at);
            probe.note(self.topic, at, || {
                let wait = probe.cycle(Time::ZERO + wait);
                format!(
                    "{} to {}, {} bytes, after waiting {wait} cycles",
                    message.words(),
                    outbox.topology().name(to),
                    size.0
                )
            });
        }
        match self.network {
            None => outbox.send(self.link, to, at, size, message),
            Some(network) => {
                let packet = Packet {
                    from: outbox.sender(),
                    to,
                    size: size.0.min(u64::from(u32::MAX)) as u32,
                    message,
                };
                let message = Message::Packet(Box::new(packet));
                outbox.send(self.link, network, at, size, message)
            }
        };
    }
}
