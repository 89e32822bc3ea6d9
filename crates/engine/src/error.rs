//! What can go wrong, in sentences.

use lockstep_units::{Cycles, Duration, Time};
use thiserror::Error;

/// Why a machine cannot be built.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TopologyError {
    /// There is nothing to run.
    #[error("the topology has no partitions; declare at least one")]
    Empty,
    /// More than numbers can name.
    #[error(
        "the topology is too large: {partitions} partitions, {kinds} kinds of them, {links} kinds of links"
    )]
    TooLarge {
        /// Number of partitions.
        partitions: u32,
        /// How many kinds of partitions.
        kinds: usize,
        /// How many kinds of links.
        links: usize,
    },
    /// Two kinds with one name.
    #[error(
        "the name `{name}` is taken twice; kinds of partitions and kinds of links each need their own"
    )]
    NameTaken {
        /// The name.
        name: String,
    },
    /// A link that leaves no time to look ahead.
    #[error(
        "link `{link}` has no latency: a message must take time, since that is how far partitions run ahead of each other"
    )]
    NoLatency {
        /// The name of the link.
        link: String,
    },
    /// The epoch would be all meetings and no work.
    #[error(
        "link `{link}` has a latency of {latency}, so workers would meet more often than every {cycles} ({minimum}): include the fixed pipeline stages in it, or force the short epoch"
    )]
    EpochTooShort {
        /// The name of the link.
        link: String,
        /// Its latency.
        latency: Duration,
        /// What would have been accepted.
        minimum: Duration,
        /// The same in cycles of the core clock.
        cycles: Cycles,
    },
}

/// Why an engine cannot start, or not go on.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum EngineError {
    /// Partitions and their declaration differ.
    #[error("the topology declares {declared} partitions, but {found} were given")]
    PartitionCount {
        /// As declared.
        declared: usize,
        /// As given.
        found: usize,
    },
    /// A message for the past.
    #[error("a message for {receiver} is due at {due}, but the simulation is at {now}")]
    Past {
        /// The name of the receiver.
        receiver: String,
        /// When it would be due.
        due: Time,
        /// When it could be due at the earliest.
        now: Time,
    },
    /// A message for nobody.
    #[error("there is no partition {receiver}; the last is {last}")]
    NoReceiver {
        /// The number that was given.
        receiver: u32,
        /// The largest number there is.
        last: usize,
    },
}

/// Why a saved state cannot be loaded.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum LoadError {
    /// The bytes end early, or do not decode.
    #[error("the saved state does not decode at byte {at}: {because}")]
    Undecodable {
        /// Where, from the beginning of what was read.
        at: usize,
        /// What the decoder said.
        because: String,
    },
    /// The bytes decode to something that cannot be.
    #[error("the saved state is malformed: {what}")]
    Malformed {
        /// A sentence that says what is wrong.
        what: &'static str,
    },
    /// Saved by another version.
    #[error("the saved state has format {found}; this version reads {expected}")]
    Format {
        /// The format that was found.
        found: u32,
        /// The format that is read.
        expected: u32,
    },
    /// Saved for another machine.
    #[error(
        "the saved state belongs to another machine: load it with the configuration it was saved under\nsaved:\n{saved}\nnow:\n{now}"
    )]
    OtherMachine {
        /// The topology when it was saved.
        saved: String,
        /// The topology now.
        now: String,
    },
    /// One partition could not load itself.
    #[error("{partition}: {because}")]
    Partition {
        /// The name of the partition.
        partition: String,
        /// The error it gave.
        because: Box<LoadError>,
    },
}
