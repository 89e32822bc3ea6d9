//! Transfers between GPUs while their bytes are on the links of the node: copies of the program, and managed pages.
//!
//! How long one takes depends on the others that share its links, and so on what begins later: it is
//! a transfer with a known end only once its last byte has left.

use super::{StreamKey, Takes};
use lockstep_node::{Flows, Topology};
use lockstep_units::{Duration, Time};
use std::collections::BTreeMap;

/// Who waits for a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A stream, with the copy engine that performs it.
    Stream(StreamKey, u32),
    /// The model of paging, with its number there.
    Pages(u64),
}

/// One transfer: who waits for it, and what it takes on top.
#[derive(Clone, Copy, Debug)]
struct Sending {
    owner: Owner,
    latency: Duration,
}

/// The transfers on the links of a node.
#[derive(Clone, Debug)]
pub struct PeerTransfers {
    topology: Topology,
    flows: Flows,
    /// By the order in which they began.
    sending: BTreeMap<u64, Sending>,
}

impl PeerTransfers {
    /// Links with nothing on them.
    pub fn new(topology: Topology) -> Self {
        let links = topology.links().iter().map(|_| topology.data_bandwidth());
        Self {
            flows: Flows::new(links),
            topology,
            sending: BTreeMap::new(),
        }
    }

    /// The links.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Begins a transfer over links; others are none of its business.
    pub fn begin(&mut self, order: u64, at: Time, takes: Takes, owner: Owner) {
        let Takes::Links {
            from,
            to,
            bytes,
            latency,
        } = takes
        else {
            return;
        };
        let latency = latency + self.topology.latency();
        self.sending.insert(order, Sending { owner, latency });
        let route = self.topology.route(from, to);
        self.flows.begin(order, at, route, bytes);
    }

    /// When the last byte of some transfer leaves.
    pub fn next_end(&self) -> Option<Time> {
        self.flows.next_end()
    }

    /// Whether a copy engine is busy with one of them.
    pub fn uses(&self, engine: u32) -> bool {
        let mut owners = self.sending.values().map(|sending| sending.owner);
        owners.any(|owner| matches!(owner, Owner::Stream(_, used) if used == engine))
    }

    /// Transfers whose last byte has left by a time: when it arrives, their order, and their owners.
    pub fn sent(&mut self, by: Time) -> Vec<(Time, u64, Owner)> {
        let left = self.flows.ended(by);
        left.into_iter()
            .filter_map(|(end, order)| {
                let Sending { owner, latency } = self.sending.remove(&order)?;
                Some((end + latency, order, owner))
            })
            .collect()
    }

    /// Gives up what streams wait for.
    pub fn abandon(&mut self, streams: &[StreamKey]) {
        let flows = &mut self.flows;
        self.sending.retain(|order, sending| {
            let stays = match &sending.owner {
                Owner::Stream(stream, _) => !streams.contains(stream),
                Owner::Pages(_) => true,
            };
            if !stays {
                flows.give_up(*order);
            }
            stays
        });
    }
}
