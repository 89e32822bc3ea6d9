//! What happens between epochs, when all partitions stand still.

use std::sync::atomic::Ordering;

use lockstep_units::Time;

use crate::cells::Cells;
use crate::meeting::Split;
use crate::{Partition, PartitionId, Topology, Window};

/// One of the parts into which a commit is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Index of this part.
    pub index: usize,
    /// Number of parts. Depends on the host: the outcome of all parts together must not.
    pub count: usize,
}

/// Whether to go on after an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// With the next epoch.
    Continue,
    /// Not now: [`Engine::run`](crate::Engine::run) returns
    /// [`Outcome::Stopped`](crate::Outcome::Stopped).
    Stop,
}

/// What happens between epochs.
pub trait Boundary<P: Partition>: Send + Sync + 'static {
    /// Applies one shard of what partitions logged in the window.
    ///
    /// Called once for each shard, at the same time on several workers, and only if a partition
    /// said that it [has a log](Partition::has_log). All shards see all logs; each applies what is
    /// its own, by address for example. Afterwards the logs are
    /// [cleared](Partition::clear_log).
    fn commit(&self, window: Window, shard: Shard, logged: Logged<'_, P>) {
        let _ = (window, shard, logged);
    }

    /// Decides on one thread what concerns all, after the commit.
    ///
    /// With jumping on it is not called for epochs in which nothing happened, so it must change
    /// nothing then.
    fn after(&mut self, window: Window, partitions: &mut Partitions<'_, P>) -> Control {
        let _ = (window, partitions);
        Control::Continue
    }
}

/// Nothing happens between epochs.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoBoundary;

impl<P: Partition> Boundary<P> for NoBoundary {}

/// The partitions that logged something in this window, in the order of their numbers.
pub struct Logged<'a, P: Partition> {
    pub(crate) cells: &'a Cells<P>,
    pub(crate) ids: &'a [(PartitionId, u64)],
}

impl<P: Partition> Clone for Logged<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Partition> Copy for Logged<'_, P> {}

impl<'a, P: Partition> Logged<'a, P> {
    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = (PartitionId, &'a P)> {
        self.concerning(u64::MAX)
    }

    /// Each of them whose log concerns one of these [parts](Partition::log_parts).
    pub fn concerning(self, parts: u64) -> impl Iterator<Item = (PartitionId, &'a P)> {
        let ids = self.ids.iter().filter(move |(_, own)| own & parts != 0);
        // SAFETY: the engine makes this view for a commit, during which no thread changes a
        // partition, and it does not outlive the commit.
        ids.map(move |&(id, _)| (id, unsafe { &self.cells.look(id).partition }))
    }

    /// How many there are.
    pub fn len(self) -> usize {
        self.ids.len()
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.ids.is_empty()
    }
}

/// All partitions, while they stand still.
pub struct Partitions<'a, P: Partition> {
    pub(crate) cells: &'a Cells<P>,
    pub(crate) topology: &'a Topology,
    pub(crate) now: Time,
    pub(crate) split: Option<&'a Split>,
}

impl<P: Partition> Partitions<'_, P> {
    /// When the last window ended.
    pub fn now(&self) -> Time {
        self.now
    }

    /// The machine.
    pub fn topology(&self) -> &Topology {
        self.topology
    }

    /// One partition.
    ///
    /// # Panics
    /// If there is no such partition.
    pub fn get(&self, id: PartitionId) -> &P {
        // SAFETY: the engine makes this view on its own thread while no worker runs, and it
        // borrows the view for as long as the partition is looked at.
        unsafe { &self.cells.look(id).partition }
    }

    /// One partition, to be changed. It will run in the next window.
    ///
    /// # Panics
    /// If there is no such partition.
    pub fn get_mut(&mut self, id: PartitionId) -> &mut P {
        self.cells.touched.store(true, Ordering::Relaxed);
        // SAFETY: as for `get`, and the view is borrowed mutably meanwhile.
        let cell = unsafe { self.cells.get(id) };
        cell.wake = cell.wake.min(self.now.0);
        &mut cell.partition
    }

    /// Whether this rank runs a partition: of one that it does not run only the log is known, until all are
    /// [gathered](crate::Engine::gather).
    pub fn is_local(&self, id: PartitionId) -> bool {
        self.split.is_none_or(|split| split.is_local(id))
    }

    /// Whether something holds on any rank. Where there are several, whoever changes partitions asks this
    /// afterwards, on every rank, so that all know that some may have work.
    pub fn any(&mut self, own: bool) -> bool {
        match self.split {
            None => own,
            Some(split) => {
                self.cells.asked.store(true, Ordering::Relaxed);
                split.ranks.any(own)
            }
        }
    }

    /// All of them, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (PartitionId, &P)> {
        (0..self.cells.len() as u32)
            .map(PartitionId)
            .map(|id| (id, self.get(id)))
    }
}
