//! What a node says of a run: that of its GPUs together.

use super::Node;
use crate::description::{Description, Interval};
use crate::machine::{Machine, SharedSegment};
use crate::sampling::Sampled;
use lockstep_gpu::Finding;
use lockstep_run_folder::{HostWork, LineRow, ManagedTrace, RunFolder, RunFolderError};
use lockstep_stats::{Hasher, Table};
use std::io;
use std::sync::Arc;

impl Node {
    /// One number for everything that was simulated.
    pub fn digest(&self) -> String {
        self.joined(Machine::digest)
    }

    /// The same, with statistics that were gathered already.
    pub fn digest_of(&self, statistics: &Table) -> String {
        match self.machines.only() {
            Some(only) => only.digest_of(statistics),
            None => self.digest(),
        }
    }

    /// One number for what memory held, when it was freed and now.
    pub fn memory_digest(&self) -> String {
        self.joined(Machine::memory_digest)
    }

    /// One number out of those of the GPUs, in their order; that of a single one is its own.
    fn joined(&self, digest: impl Fn(&Machine) -> String) -> String {
        if let Some(only) = self.machines.only() {
            return digest(only);
        }
        let mut hasher = Hasher::new("node");
        for machine in self.machines.slots() {
            match machine {
                Some(machine) => hasher.text(&digest(machine)),
                None => hasher.text("never used"),
            }
        }
        hasher.finish().to_string()
    }

    /// Brings what other ranks simulate here. Every rank does this before anything is said of the node.
    pub fn gather(&mut self) {
        self.machines.iter_mut().for_each(Machine::gather);
    }

    /// Compares what came of the run with the other ranks; a sentence if it is not the same. Every rank does this.
    pub fn agree_on(&self, digest: &str) -> Option<String> {
        let ranks = self.ranks.as_ref()?;
        let all = match ranks.share(digest.as_bytes()) {
            Ok(all) => all,
            Err(lost) => return Some(lost.0),
        };
        let other = all.iter().position(|one| one != digest.as_bytes())?;
        Some(format!(
            "rank {other} came to another answer than rank {}; this is a fault of the simulator, please report it",
            ranks.rank()
        ))
    }

    /// Every statistic of every part.
    pub fn statistics(&self) -> Table {
        let mut table = Table::default();
        for machine in self.machines.iter() {
            machine.add_statistics(&mut table);
        }
        table
    }

    /// What watched parts did; nothing if none was. Only the first GPU is watched.
    pub fn watched(&self) -> Option<String> {
        self.machines[0].watched()
    }

    /// Writes down from now on what happens, on a node of one GPU; several write at the end alone.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn write_down(
        &mut self,
        folder: &Arc<RunFolder>,
        series: Option<Interval>,
    ) -> Result<(), RunFolderError> {
        match self.machines.only_mut() {
            Some(only) => only.write_down(folder, series),
            None => Ok(()),
        }
    }

    /// Tells readers of shared memory from now on what happens.
    pub fn publish(&mut self, segment: &SharedSegment, description: &Description) {
        self.machines.publish(segment, description);
    }

    /// Ends the series.
    ///
    /// # Errors
    /// It could not be written.
    pub fn finish_series(&mut self) -> io::Result<()> {
        self.machines
            .iter_mut()
            .try_for_each(Machine::finish_series)
    }

    /// What was issued by instruction, if that was asked for; one GPU can be asked.
    pub fn lines(&self) -> Option<Vec<LineRow>> {
        self.machines[0].lines()
    }

    /// What happened to managed memory, in simulated time; nothing without it. Its tables have no place for
    /// several GPUs, which tell in their statistics.
    pub fn managed_trace(&self) -> Option<ManagedTrace> {
        self.machines.only()?.managed_trace()
    }

    /// What checks found.
    pub fn findings(&self) -> Vec<Finding> {
        self.machines.iter().flat_map(Machine::findings).collect()
    }

    /// What failed inside the simulator, if anything did.
    pub fn failure(&self) -> Option<&str> {
        self.machines.iter().find_map(Machine::failure)
    }

    /// What sampling says of the run, if it was sampled; one GPU can be.
    pub fn sampled(&self) -> Option<Sampled> {
        self.machines[0].sampled()
    }

    /// Times that the state was saved and loaded.
    pub fn reloads(&self) -> u64 {
        self.machines.iter().map(Machine::reloads).sum()
    }

    /// Where the time of the worker threads went.
    pub fn host_work(&self) -> HostWork {
        let all = self.machines.iter().map(Machine::host_work);
        all.reduce(added).unwrap_or_default()
    }
}

/// The work for two GPUs: sums, and means over the epochs of both.
fn added(one: HostWork, other: HostWork) -> HostWork {
    let epochs = (one.epochs + other.epochs).max(1) as f64;
    let mean = |first: f64, second: f64| {
        (first * one.epochs as f64 + second * other.epochs as f64) / epochs
    };
    HostWork {
        epochs: one.epochs + other.epochs,
        alone_epochs: one.alone_epochs + other.alone_epochs,
        mean_threads: mean(one.mean_threads, other.mean_threads),
        mean_partitions: mean(one.mean_partitions, other.mean_partitions),
        messages: one.messages + other.messages,
        engine_seconds: one.engine_seconds + other.engine_seconds,
        alone_seconds: one.alone_seconds + other.alone_seconds,
        shared_seconds: one.shared_seconds + other.shared_seconds,
        commit_seconds: one.commit_seconds + other.commit_seconds,
        serial_seconds: one.serial_seconds + other.serial_seconds,
        busy_thread_seconds: one.busy_thread_seconds + other.busy_thread_seconds,
        imbalance_thread_seconds: one.imbalance_thread_seconds + other.imbalance_thread_seconds,
        meeting_thread_seconds: one.meeting_thread_seconds + other.meeting_thread_seconds,
        commit_busy_thread_seconds: one.commit_busy_thread_seconds
            + other.commit_busy_thread_seconds,
        commit_waiting_thread_seconds: one.commit_waiting_thread_seconds
            + other.commit_waiting_thread_seconds,
    }
}
