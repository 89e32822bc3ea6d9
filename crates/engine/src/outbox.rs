//! What one partition sends while it runs.

use lockstep_units::{Bytes, Duration, Time};
use serde::{Deserialize, Serialize};

use crate::exchange::SendBuffer;
use crate::order::Order;
use crate::{LinkId, PartitionId, Topology, Window};

/// What a partition remembers between windows about its sending.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Egress {
    /// How many messages it has sent: the tie-break among messages due at once.
    pub sequence: u64,
    /// What was sent over each kind of link.
    pub links: Box<[LinkUse]>,
}

/// What one partition has sent over one kind of link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkUse {
    /// When the link has passed on what was sent over it.
    pub(crate) busy_until: Time,
    /// Messages.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// How long they kept the link busy.
    pub busy: Duration,
    /// How long they waited for others before they began to leave, summed over messages, in
    /// femtoseconds.
    pub waited: u128,
}

impl Egress {
    pub(crate) fn new(topology: &Topology) -> Self {
        Self {
            sequence: 0,
            links: vec![LinkUse::default(); topology.links().len()].into(),
        }
    }
}

/// Where a partition puts its messages during one window.
pub struct Outbox<'a, M> {
    pub(crate) topology: &'a Topology,
    pub(crate) sender: PartitionId,
    pub(crate) window: Window,
    pub(crate) egress: &'a mut Egress,
    pub(crate) buffer: &'a mut SendBuffer<M>,
}

impl<M> Outbox<'_, M> {
    /// Sends a message of `size` over a link, ready at the sender's egress at `at`, and says when
    /// it will be due.
    ///
    /// Messages of one sender over one kind of link leave one after the other, each taking its
    /// size over the bandwidth of the link; then the latency passes. A link without bandwidth
    /// passes any number at once.
    ///
    /// # Panics
    /// If `at` lies before the window, or if the link does not lead from this partition to that
    /// one: both would break the promise that what happens in a window is unknown to others
    /// until it ends.
    #[inline]
    pub fn send(
        &mut self,
        link: LinkId,
        to: PartitionId,
        at: Time,
        size: Bytes,
        message: M,
    ) -> Time {
        let kind = self.topology.wire(link);
        assert!(
            kind.from.contains(&self.sender.0) && kind.to.contains(&to.0),
            "{}",
            self.topology.no_such_link(link, self.sender, to)
        );
        assert!(
            at >= self.window.start,
            "partition {} sends at {at}, before its window, which starts at {}",
            self.sender,
            self.window.start
        );
        let used = &mut self.egress.links[link.index()];
        used.messages += 1;
        used.bytes += size.0;
        let departure = match kind.bandwidth {
            Some(bandwidth) => {
                let (begin, busy) = (at.max(used.busy_until), bandwidth.time_for(size));
                used.waited += u128::from(begin.since(at).0);
                used.busy += busy;
                used.busy_until = begin + busy;
                used.busy_until
            }
            None => at,
        };
        let due = departure + kind.latency;
        debug_assert!(due >= self.window.end, "latency is lookahead");
        let order = Order {
            due,
            sender: self.sender,
            sequence: self.egress.sequence,
        };
        self.egress.sequence += 1;
        self.buffer.push(to, order, message);
        due
    }

    /// How long a message that is ready at `at` would wait before it starts to leave.
    #[inline]
    pub fn backlog(&self, link: LinkId, at: Time) -> Duration {
        self.egress.links[link.index()].busy_until.since(at)
    }

    /// The partition that sends.
    #[inline]
    pub fn sender(&self) -> PartitionId {
        self.sender
    }

    /// The machine it is part of.
    #[inline]
    pub fn topology(&self) -> &Topology {
        self.topology
    }
}
