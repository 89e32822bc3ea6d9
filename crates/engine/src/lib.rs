//! Partitions, links, epochs, worker threads, save and load.
//!
//! The engine advances [`Partition`]s through simulated time and knows nothing of what they model.
//! Partitions speak only in messages over declared links, and every link has a latency. The
//! smallest latency is the length of an epoch: whatever is sent inside an epoch is due after it,
//! so all partitions of an epoch can run at once, on any number of threads, and meet at its end.
//!
//! ```text
//!  plan ──▶ run all partitions that have work ──▶ commit what they logged ──▶ after ──▶ plan …
//!  (one     (all workers; exchange is written     (all workers, only if       (one
//!  thread)   for the next epoch)                   something was logged)       thread)
//! ```
//!
//! One answer: a partition sees its messages in the order (due, sender, sequence) and nothing
//! else of the others, so neither the number of workers nor their speed can show.
//!
//! ```
//! use lockstep_engine::*;
//! use lockstep_units::{Bytes, Duration, Hertz, Time};
//!
//! /// Sends every number it gets to the other, less one.
//! struct Player {
//!     link: LinkId,
//!     other: PartitionId,
//!     last: u64,
//! }
//!
//! impl Partition for Player {
//!     type Message = u64;
//!
//!     fn run(
//!         &mut self,
//!         _: Window,
//!         inbox: &mut Inbox<u64>,
//!         outbox: &mut Outbox<'_, u64>,
//!     ) -> Wake {
//!         while let Some(ball) = inbox.take_in_window() {
//!             self.last = ball.message;
//!             if ball.message > 0 {
//!                 outbox.send(self.link, self.other, ball.due, Bytes(8), ball.message - 1);
//!             }
//!         }
//!         Wake::OnMessage
//!     }
//!
//!     fn save(&self, writer: &mut Writer<'_>) {
//!         writer.write(&self.last);
//!     }
//!
//!     fn load(&mut self, reader: &mut Reader<'_>) -> Result<(), LoadError> {
//!         self.last = reader.read()?;
//!         Ok(())
//!     }
//! }
//!
//! let mut builder = Topology::builder(Hertz::mega(1_000));
//! let player = builder.partitions("player", 2);
//! let link = builder.link(LinkKind {
//!     name: "ball".into(),
//!     from: player,
//!     to: player,
//!     latency: Duration::nanoseconds(20),
//!     bandwidth: None,
//! });
//! let topology = builder.build()?;
//! let players = [1, 0].map(|other| Player { link, other: topology.id(player, other), last: 0 });
//! let mut engine = Engine::new(topology, players.into(), Options::default())?;
//! engine.post(PartitionId(0), Time::ZERO, 10)?;
//! assert_eq!(engine.run_until(|_| false), Outcome::Quiescent);
//! assert_eq!(engine.partition(PartitionId(1)).last, 1);
//! assert_eq!(engine.now(), Time::ZERO + Duration::nanoseconds(11 * 20));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Several processes can simulate one machine together, each a rank with some of the partitions
//! ([`Ranks`]): they exchange messages and logs at the end of every epoch.
//!
//! Start reading at [`Partition`], then [`Engine::run`].

mod boundary;
mod cells;
mod cost;
mod engine;
mod epoch_barrier;
mod error;
mod exchange;
mod harness;
mod inbox;
mod meeting;
mod options;
mod order;
mod outbox;
mod partition;
mod pool;
mod prefetch;
mod primitives;
mod profile;
mod ranks;
mod save;
mod shared;
mod state;
mod step;
mod sync;
mod topology;
mod topology_text;
mod wake_report;
mod work_queue;

/// For the benchmarks of this crate.
#[doc(hidden)]
pub mod internals {
    pub use crate::epoch_barrier::{EpochBarrier, SpinBudget};
}

pub use boundary::{Boundary, Control, Logged, NoBoundary, Partitions, Shard};
pub use engine::{Engine, EngineCounters, Outcome};
pub use error::{EngineError, LoadError, TopologyError};
pub use harness::{Harness, Sent};
pub use inbox::{Delivery, Inbox};
pub use options::{Options, Perturbation, Schedule};
pub use outbox::{LinkUse, Outbox};
pub use partition::{Partition, PartitionId, Wake, Window};
pub use profile::{Phase, Profile};
pub use ranks::{Exchanged, Lost, Ranks, Transport};
pub use save::{Reader, Writer};
pub use topology::{
    KindId, LinkId, LinkKind, MINIMUM_EPOCH, PartitionKind, Topology, TopologyBuilder,
};
