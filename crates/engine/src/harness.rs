//! One partition on a test bench: post messages, run windows, look at what it sent.

use lockstep_units::Time;

use crate::exchange::SendBuffer;
use crate::order::Order;
use crate::outbox::Egress;
use crate::{Inbox, Outbox, Partition, PartitionId, Topology, Wake, Window};

/// A message that a partition on the bench has sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent<M> {
    /// When it will be due.
    pub due: Time,
    /// The receiver.
    pub to: PartitionId,
    /// What was sent.
    pub message: M,
}

/// A partition alone, run by hand; for the tests of those who write partitions.
pub struct Harness<P: Partition> {
    topology: Topology,
    id: PartitionId,
    /// The partition under test.
    pub partition: P,
    inbox: Inbox<P::Message>,
    egress: Egress,
    buffer: SendBuffer<P::Message>,
    epoch: u64,
    posted: u64,
}

impl<P: Partition> Harness<P> {
    /// Puts a partition on the bench, as number `id` of a machine.
    pub fn new(topology: Topology, id: PartitionId, partition: P) -> Self {
        Self {
            inbox: Inbox::default(),
            egress: Egress::new(&topology),
            buffer: SendBuffer::new(topology.partitions()),
            epoch: 0,
            posted: 0,
            topology,
            id,
            partition,
        }
    }

    /// The machine it belongs to.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The next window to run.
    pub fn window(&self) -> Window {
        self.topology.window(self.epoch)
    }

    /// Puts a message in its inbox.
    pub fn post(&mut self, sender: PartitionId, due: Time, message: P::Message) {
        self.inbox.push(
            Order {
                due,
                sender,
                sequence: self.posted,
            },
            message,
        );
        self.posted += 1;
    }

    /// Clears the log of the window before, runs the next, and returns what was sent, in the order
    /// of sending.
    pub fn run(&mut self) -> (Wake, Vec<Sent<P::Message>>) {
        if self.partition.has_log() {
            self.partition.clear_log();
        }
        let window = self.window();
        self.epoch += 1;
        self.inbox.open(window.end, |_| {});
        let mut outbox = Outbox {
            topology: &self.topology,
            sender: self.id,
            window,
            egress: &mut self.egress,
            buffer: &mut self.buffer,
        };
        let wake = self.partition.run(window, &mut self.inbox, &mut outbox);
        let sent = self.buffer.drain().into_iter();
        (
            wake,
            sent.map(|(order, to, message)| Sent {
                due: order.due,
                to,
                message,
            })
            .collect(),
        )
    }

    /// Runs windows until one sends something or `windows` have passed.
    pub fn run_until_sent(&mut self, windows: usize) -> Vec<Sent<P::Message>> {
        (0..windows)
            .map(|_| self.run().1)
            .find(|sent| !sent.is_empty())
            .unwrap_or_default()
    }
}
