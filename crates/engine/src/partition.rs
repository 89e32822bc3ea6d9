//! What the engine runs.

use std::fmt;
use std::ops::Range;

use lockstep_units::{Cycle, Duration, Hertz, Time};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{Inbox, LoadError, Outbox, Reader, Writer};

/// The dense number of a partition: kinds in the order of their declaration, then by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PartitionId(pub u32);

impl PartitionId {
    /// The sender of messages that were posted from outside the simulated machine.
    pub const OUTSIDE: Self = Self(u32::MAX);

    /// The number as an index.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for PartitionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::OUTSIDE {
            f.pad("outside")
        } else {
            fmt::Display::fmt(&self.0, f)
        }
    }
}

/// A stretch of simulated time, from `start` until just before `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// The first instant inside.
    pub start: Time,
    /// The first instant after.
    pub end: Time,
}

impl Window {
    /// Whether an instant is inside.
    #[inline]
    pub fn contains(&self, time: Time) -> bool {
        self.start <= time && time < self.end
    }

    /// How long it is.
    #[inline]
    pub fn length(&self) -> Duration {
        self.end - self.start
    }

    /// The cycles of a clock whose edges fall inside.
    pub fn cycles(&self, clock: Hertz) -> Range<Cycle> {
        clock.cycle_at_or_after(self.start)..clock.cycle_at_or_after(self.end)
    }
}

/// When a partition next has work of its own.
///
/// A message wakes its receiver when it is due, whatever this says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wake {
    /// At this time; at the next window, if the time has passed.
    At(Time),
    /// Not before a message is due.
    OnMessage,
}

/// A part of the machine that is simulated by one thread at a time and speaks only in messages.
///
/// A model is usually an enum over the kinds of partitions it has, so that the engine holds one
/// dense array and calls are static.
pub trait Partition: Send + Sync + 'static {
    /// What partitions say to one another. Keep it small: it is moved twice on its way.
    type Message: Send + Serialize + DeserializeOwned + 'static;

    /// Simulates the whole window.
    ///
    /// Takes its due messages from `inbox` in order, sends through `outbox`, and says when it next
    /// has work. If no message is due in the window and the last [`Wake`] lies after it, the call
    /// must change nothing: with jumping on, the engine does not make it.
    fn run(
        &mut self,
        window: Window,
        inbox: &mut Inbox<Self::Message>,
        outbox: &mut Outbox<'_, Self::Message>,
    ) -> Wake;

    /// Whether the last [`run`](Self::run) logged something that
    /// [`Boundary::commit`](crate::Boundary::commit) has to apply.
    fn has_log(&self) -> bool {
        false
    }

    /// Which of up to 64 parts of a commit the log concerns, if there is one: a shard of the commit
    /// need not look at partitions that have nothing for it.
    fn log_parts(&self) -> u64 {
        u64::MAX
    }

    /// Forgets the log, after it was committed and before anything else happens to the partition.
    fn clear_log(&mut self) {}

    /// Writes the log, for a rank where this partition is a ghost.
    fn save_log(&self, writer: &mut Writer<'_>) {
        let _ = writer;
    }

    /// Takes on the log that [`save_log`](Self::save_log) wrote; its own is empty.
    ///
    /// # Errors
    /// If the bytes are not what was written.
    fn load_log(&mut self, reader: &mut Reader<'_>) -> Result<(), LoadError> {
        let _ = reader;
        Ok(())
    }

    /// When something fatal happened in the last [`run`](Self::run). The run stops at the end of
    /// that epoch and names the earliest fault, the lowest partition first.
    fn fault(&self) -> Option<Time> {
        None
    }

    /// Writes everything that [`load`](Self::load) needs, at the boundary of an epoch.
    fn save(&self, writer: &mut Writer<'_>);

    /// Takes on the state that was saved. The partition was built from the same configuration.
    ///
    /// # Errors
    /// If the bytes are not what [`save`](Self::save) wrote.
    fn load(&mut self, reader: &mut Reader<'_>) -> Result<(), LoadError>;
}
