//! What a machine says of a run: digests, statistics, managed memory over time, the host's work.

use super::Machine;
use lockstep_gpu::memory::PAGE;
use lockstep_gpu::{Direction, Finding, Recorder};
use lockstep_run_folder::{FaultRow, HostWork, ManagedTrace, MigrationRow};
use lockstep_stats::{Hasher, Table};
use lockstep_units::Cycle;

impl Machine {
    /// One number for everything that was simulated.
    pub fn digest(&self) -> String {
        self.digest_of(&self.statistics())
    }

    /// The same, with statistics that were gathered already.
    pub fn digest_of(&self, statistics: &Table) -> String {
        self.note_host_memory();
        let path = self.path();
        let mut tree = self.gpu.digest_of(&path, statistics);
        tree.insert(format!("{path}/freed"), self.freed.finish());
        if let Some(sampled) = self.sampled() {
            tree.insert(format!("{path}/sampled"), sampled.digest());
        }
        tree.root().to_string()
    }

    /// One number for what memory held, when it was freed and now.
    pub fn memory_digest(&self) -> String {
        self.note_host_memory();
        let mut hasher = Hasher::new("memory");
        hasher.bytes(self.gpu.memory_digest().to_string().as_bytes());
        hasher.bytes(self.freed.finish().to_string().as_bytes());
        hasher.finish().to_string()
    }

    /// What watched parts did; nothing if none was.
    pub fn watched(&self) -> Option<String> {
        self.options.recorder.as_ref().map(Recorder::text)
    }

    /// Every statistic of every part.
    pub fn statistics(&self) -> Table {
        let mut table = Table::default();
        self.add_statistics(&mut table);
        table
    }

    /// The same, into a table with those of others.
    pub fn add_statistics(&self, table: &mut Table) {
        self.gpu.statistics(&self.path(), table);
    }

    /// What its parts are called after.
    fn path(&self) -> String {
        self.name.clone()
    }

    /// What happened to managed memory, in simulated time; nothing without it.
    pub fn managed_trace(&self) -> Option<ManagedTrace> {
        self.gpu.managed_stats()?;
        let clock = self.config.device.clock;
        let nanoseconds = |cycle| clock.edge(Cycle(cycle)).nanoseconds();
        let (faults, migrations) = self.gpu.managed_logs();
        Some(ManagedTrace {
            allocations: self.managed.clone(),
            migrations: migrations
                .iter()
                .map(|record| MigrationRow {
                    start: nanoseconds(record.start),
                    end: nanoseconds(record.end),
                    address: record.page * PAGE,
                    bytes: u64::from(record.pages) * PAGE,
                    to_device: record.direction == Direction::ToDevice,
                    cause: record.cause.name(),
                })
                .collect(),
            faults: faults
                .iter()
                .map(|record| FaultRow {
                    start: nanoseconds(record.detected),
                    end: nanoseconds(record.mapped),
                    address: record.page * PAGE,
                    sm: record.sm,
                    write: record.write,
                })
                .collect(),
        })
    }

    /// What checks found.
    pub fn findings(&self) -> Vec<Finding> {
        self.options.findings.all()
    }

    /// Times that the state was saved and loaded.
    pub fn reloads(&self) -> u64 {
        self.reloads
    }

    /// Where the time of the worker threads went.
    pub fn host_work(&self) -> HostWork {
        let (figures, profile) = (self.gpu.engine_counters(), self.gpu.profile());
        let epochs = figures.steps.max(1) as f64;
        let (running, committing) = (&profile.running, &profile.committing);
        HostWork {
            epochs: figures.steps,
            alone_epochs: figures.alone,
            mean_threads: figures.workers as f64 / epochs,
            mean_partitions: figures.runs as f64 / epochs,
            messages: figures.messages,
            engine_seconds: profile.total.as_secs_f64(),
            alone_seconds: profile.alone(figures.alone).as_secs_f64(),
            shared_seconds: running.wall.as_secs_f64(),
            commit_seconds: committing.wall.as_secs_f64(),
            serial_seconds: profile.serial(figures.alone).as_secs_f64(),
            busy_thread_seconds: running.busy.as_secs_f64(),
            imbalance_thread_seconds: running.imbalance().as_secs_f64(),
            meeting_thread_seconds: running.synchronisation().as_secs_f64(),
            commit_busy_thread_seconds: committing.busy.as_secs_f64(),
            commit_waiting_thread_seconds: committing
                .available
                .saturating_sub(committing.busy)
                .as_secs_f64(),
        }
    }
}
