//! The simulated GPU as the runtime sees it, and what only a whole run needs of it: stopping,
//! progress, fresh memory after a free, saving and loading, the digest.

use crate::assemble::Assembler;
use crate::description::{Description, Mode, Schedule};
use crate::freed;
use crate::images;
use crate::progress::Progress;
use crate::selection::Selection;
use lockstep_counters::LaunchCounters;
use lockstep_gpu::memory::PAGE;
use lockstep_gpu::{
    Contents, Direction, EngineOptions, FaultKind, Gpu, GpuError, KernelRecord, Launch, LaunchId,
    Options, Perturbation, Recorder, Topic, WatchError,
};
use lockstep_isa::Module;
use lockstep_protocol::{CuResult, Extent, Rows, layout, window};
use lockstep_runtime::device::{Advance, Advice, Fault, KernelLaunch, KernelResult, Part};
use lockstep_runtime::{Device, FrontendChoice, LoadOptions, Runtime};
use lockstep_stats::{DigestTree, Hasher, Table};
use lockstep_telemetry::run_folder::{
    FaultRow, HostWork, ManagedTrace, MigrationRow, StatisticRow,
};
use lockstep_units::{Cycle, Duration, Time};
use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use thiserror::Error;

/// How much simulated time may pass before somebody who wants to stop is heard. Between two slices all
/// messages are brought to their receivers by one thread, so they should not be short.
const SLICE: Duration = Duration::microseconds(8);

/// The same when state is saved and loaded now and then, which happens between two slices.
const SHORT_SLICE: Duration = Duration::microseconds(2);

/// Allocations of at least so many bytes go back to the device when they are freed; smaller ones are
/// kept for the next that asks. Measured on an H200: a chase through 8 MiB finds lines that another one
/// before it left in L2, one through 20 MiB does not (`validation/microbench/chases.cu`).
const RETURNED: u64 = 16 << 20;

/// Why a GPU could not be made.
#[derive(Debug, Error)]
pub enum MachineError {
    /// Its configuration or its parts.
    #[error(transparent)]
    Gpu(#[from] GpuError),
    /// Its memory.
    #[error("simulated memory: {0}")]
    Memory(String),
    /// A part to be watched.
    #[error(transparent)]
    Watch(#[from] WatchError),
}

/// One simulated GPU in a run.
pub struct Machine {
    gpu: Gpu,
    memory: OwnedFd,
    config: lockstep_config::GpuConfig,
    options: Options,
    progress: Arc<Progress>,
    mode: Mode,
    selection: Selection,
    /// The runtime's number of each launch on the device, and whether it takes its time.
    launches: BTreeMap<LaunchId, (u64, Mode)>,
    /// Launches that wait until those of the other mode have ended, in their order.
    held: VecDeque<KernelLaunch>,
    /// Modules by the number that saved state knows them by.
    modules: Vec<Arc<Module>>,
    output: Vec<u8>,
    /// What freed memory held.
    freed: Hasher,
    /// When to save and load next, and how that goes on.
    reload: Option<Reload>,
    reloads: u64,
    /// Managed memory that there ever was.
    managed: Vec<(u64, u64)>,
}

#[derive(Debug)]
struct Reload {
    random: u64,
    at: Time,
}

/// A runtime over a fresh GPU whose memory is in the file.
///
/// # Errors
/// The GPU cannot be built.
pub fn runtime(
    description: &Description,
    memory: &OwnedFd,
) -> Result<Runtime<Machine>, MachineError> {
    let mut machine = Machine::new(description, memory)?;
    machine.set_heap(lockstep_runtime::DEFAULT_HEAP);
    let options = LoadOptions {
        frontend: description.frontend,
        architecture: description.config.device.compute_capability.architecture(),
        strict: description.strict_image,
    };
    let assembler = description.assemble.then(Assembler::find);
    Ok(Runtime::new(
        description.config.clone(),
        options,
        Box::new(move |all, options| images::load(all, options, assembler.as_ref())),
        machine,
    ))
}

/// The name of a choice.
pub fn frontend_name(choice: FrontendChoice) -> &'static str {
    match choice {
        FrontendChoice::Auto => "auto",
        FrontendChoice::Sass => "sass",
        FrontendChoice::Ptx => "ptx",
    }
}

/// Threads that a run has.
pub fn worker_threads(description: &Description) -> u32 {
    match description.execution.threads {
        0 => std::thread::available_parallelism().map_or(1, |count| count.get() as u32),
        given => given,
    }
}

/// Parts and links of the GPU, as text or for Graphviz.
///
/// # Errors
/// The GPU cannot be built.
pub fn topology(description: &Description, graph: bool) -> Result<String, MachineError> {
    let memory = window::create().map_err(|error| MachineError::Memory(error.to_string()))?;
    let machine = Machine::new(description, &memory)?;
    let topology = machine.gpu.topology();
    Ok(if graph {
        topology.graphviz()
    } else {
        topology.text()
    })
}

fn contents(memory: &OwnedFd) -> Result<Arc<Contents>, MachineError> {
    Contents::shared(memory.as_fd(), layout::WINDOW_BASE, layout::WINDOW_SIZE)
        .map(Arc::new)
        .map_err(|error| MachineError::Memory(error.to_string()))
}

fn options(description: &Description) -> Options {
    let execution = &description.execution;
    let threads = worker_threads(description) as usize;
    let schedule = match (execution.schedule, threads) {
        (Schedule::Static, _) | (Schedule::Auto, 1) => lockstep_gpu::Schedule::Static,
        (Schedule::Dynamic | Schedule::Auto, _) => lockstep_gpu::Schedule::Dynamic,
    };
    Options {
        mode: hardware_mode(description.mode),
        engine: EngineOptions {
            threads,
            schedule,
            jumping: !execution.no_jumping,
            perturbation: execution.delay_seed.map(|seed| Perturbation { seed }),
            ..EngineOptions::default()
        },
        cold_caches: description.cold_caches,
        check: description.check,
        watchdog: Some(description.config.launch.watchdog),
        managed: Some(layout::Region::Managed.range()),
        ..Options::default()
    }
}

fn hardware_mode(mode: Mode) -> lockstep_gpu::Mode {
    match mode {
        Mode::Timing => lockstep_gpu::Mode::Timing,
        Mode::Functional => lockstep_gpu::Mode::Functional,
    }
}

impl Machine {
    fn new(description: &Description, memory: &OwnedFd) -> Result<Self, MachineError> {
        let memory = memory
            .try_clone()
            .map_err(|error| MachineError::Memory(error.to_string()))?;
        let mut options = options(description);
        options.recorder = Recorder::new(&description.watches, &description.config)?;
        let gpu = Gpu::new(&description.config, contents(&memory)?, options.clone())?;
        Ok(Self {
            gpu,
            memory,
            config: description.config.clone(),
            options,
            progress: description.progress.clone(),
            mode: description.mode,
            selection: description.selection.clone(),
            launches: BTreeMap::new(),
            held: VecDeque::new(),
            modules: Vec::new(),
            output: Vec::new(),
            freed: Hasher::new("freed memory"),
            reload: description.execution.reload_seed.map(|seed| Reload {
                random: seed,
                at: Time::ZERO,
            }),
            reloads: 0,
            managed: Vec::new(),
        })
    }

    /// One number for everything that was simulated.
    pub fn digest(&self) -> String {
        self.digests().root().to_string()
    }

    /// One number for what memory held, when it was freed and now.
    pub fn memory_digest(&self) -> String {
        self.note_host_memory();
        let mut hasher = Hasher::new("memory");
        hasher.bytes(self.gpu.memory_digest().to_string().as_bytes());
        hasher.bytes(self.freed.finish().to_string().as_bytes());
        hasher.finish().to_string()
    }

    /// Digests of all parts.
    pub fn digests(&self) -> DigestTree {
        self.note_host_memory();
        let mut tree = self.gpu.digest("gpu 0");
        tree.insert("gpu 0/freed", self.freed.finish());
        tree
    }

    /// Lets the digest cover memory that the host writes by itself, pinned and managed.
    fn note_host_memory(&self) {
        for range in self.gpu.contents().ranges().iter() {
            let region = layout::region_of(range.start);
            if !matches!(
                region,
                Some(layout::Region::Pinned | layout::Region::Managed)
            ) {
                continue;
            }
            let mut at = range.start;
            while let Some(data) = self.next_data(at, range.end) {
                at = self.next_hole(data).unwrap_or(range.end).min(range.end);
                self.gpu.contents().note_host_write(data..at);
            }
        }
    }

    /// What watched parts did; nothing if none was.
    pub fn watched(&self) -> Option<String> {
        self.options.recorder.as_ref().map(Recorder::text)
    }

    /// Every statistic of every part.
    pub fn statistics(&self) -> Vec<StatisticRow> {
        let mut table = Table::default();
        self.gpu.statistics("gpu 0", &mut table);
        let row = |row: &lockstep_stats::Row| StatisticRow {
            component: row.component.clone(),
            statistic: row.name.clone(),
            value: row.value.to_string(),
            unit: row.unit.into(),
            description: row.help.into(),
        };
        table.rows().iter().map(row).collect()
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

    /// Whether the same calls give the same digest. So far, nothing here could prevent it.
    pub fn is_reproducible(&self) -> bool {
        true
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

    fn module_number(&mut self, module: &Arc<Module>) -> u64 {
        if let Some(index) = self
            .modules
            .iter()
            .position(|known| Arc::ptr_eq(known, module))
        {
            return index as u64;
        }
        self.modules.push(module.clone());
        self.modules.len() as u64 - 1
    }

    fn results(&mut self, records: Vec<KernelRecord>) -> Vec<KernelResult> {
        self.progress.ended(records.len());
        let mut results = Vec::with_capacity(records.len());
        for record in records {
            if let Some((id, mode)) = self.launches.remove(&record.launch) {
                results.push(result(id, &record, mode == Mode::Timing));
            }
        }
        results
    }

    /// Saves everything, makes a GPU anew and loads it, if the time for that has come.
    fn reload_if_due(&mut self) {
        let now = self.gpu.now();
        let Some(reload) = &mut self.reload else {
            return;
        };
        if now < reload.at {
            return;
        }
        // Some hundred to some ten thousand cycles further on.
        reload.random = reload
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        reload.at = now + Duration::nanoseconds(100 + (reload.random >> 33) % 10_000);
        if self.gpu.is_idle() {
            return;
        }
        self.note_host_memory();
        let saved = self.gpu.save();
        let (gpu, memory) = self
            .rebuilt(&saved)
            .unwrap_or_else(|error| panic!("state that was saved loads: {error}"));
        self.gpu = gpu;
        self.memory = memory;
        self.reloads += 1;
    }

    fn rebuilt(&self, saved: &[u8]) -> Result<(Gpu, OwnedFd), MachineError> {
        let memory = window::create().map_err(|error| MachineError::Memory(error.to_string()))?;
        let mut gpu = Gpu::new(&self.config, contents(&memory)?, self.options.clone())?;
        gpu.load(saved, &|number| self.modules.get(number as usize).cloned())?;
        Ok((gpu, memory))
    }

    /// Notes what a range holds, then makes it read zero again.
    fn forget(&mut self, address: u64, bytes: u64) {
        let end = address + bytes;
        let mut parts = Vec::new();
        let mut at = address;
        while let Some(data) = self.next_data(at, end) {
            // Asked once for all pages in a row, not for each.
            let until = self.next_hole(data).unwrap_or(end).min(end);
            at = (data - data % PAGE).max(address);
            while at < until {
                let to = (at - at % PAGE + PAGE).min(end);
                parts.push(at..to);
                at = to;
            }
        }
        let threads = self.options.engine.threads;
        let found = freed::digests(self.gpu.contents(), &parts, threads);
        for (part, digest) in parts.into_iter().zip(found) {
            let Some(digest) = digest else {
                continue;
            };
            self.freed.number(part.start);
            self.freed.digest(digest);
            let bytes = part.end - part.start;
            if bytes < PAGE {
                let zeros = vec![0; bytes as usize];
                self.gpu.contents().write(part.start, &zeros);
            }
        }
        self.clear(address, bytes);
    }

    /// Makes whole pages of a range read zero again.
    fn clear(&mut self, address: u64, bytes: u64) {
        let end = address + bytes;
        let (first, last) = (address.next_multiple_of(PAGE), end - end % PAGE);
        if first < last {
            let flags =
                rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
            let offset = first - layout::WINDOW_BASE;
            if rustix::fs::fallocate(&self.memory, flags, offset, last - first).is_err() {
                let zeros = vec![0; PAGE as usize];
                for address in (first..last).step_by(PAGE as usize) {
                    self.gpu.contents().write(address, &zeros);
                }
            }
        }
    }

    /// The first address from `from` that may hold something, before `end`.
    fn next_data(&self, from: u64, end: u64) -> Option<u64> {
        if from >= end {
            return None;
        }
        let offset = rustix::fs::seek(
            &self.memory,
            rustix::fs::SeekFrom::Data(from - layout::WINDOW_BASE),
        )
        .ok()?;
        let address = layout::WINDOW_BASE + offset;
        (address < end).then_some(address)
    }

    /// The first address from `from` that the file has no page for.
    fn next_hole(&self, from: u64) -> Option<u64> {
        let place = rustix::fs::SeekFrom::Hole(from - layout::WINDOW_BASE);
        let offset = rustix::fs::seek(&self.memory, place).ok()?;
        Some(layout::WINDOW_BASE + offset)
    }

    /// Hands a launch to the hardware, in its mode.
    fn begin(&mut self, launch: KernelLaunch) -> Result<(), Fault> {
        let (number, mode) = (launch.id, self.mode_of(&launch));
        let refused = |error: GpuError| Fault {
            code: CuResult::LAUNCH_OUT_OF_RESOURCES,
            launch: Some(number),
            message: error.to_string(),
        };
        self.gpu.set_mode(hardware_mode(mode)).map_err(refused)?;
        self.options.mode = hardware_mode(mode);
        let module_id = self.module_number(&launch.module);
        let work_space = launch.cooperative.unwrap_or(0);
        let name = launch.module.kernels[launch.kernel].name.clone();
        self.progress.began(&name);
        let handed = self.gpu.launch(Launch {
            module: launch.module,
            module_id,
            kernel: launch.kernel,
            grid: launch.grid,
            block: launch.block,
            dynamic_shared: launch.dynamic_shared,
            carveout: launch.carveout,
            stack: launch.stack,
            arguments: launch.arguments,
            queue: launch.queue as u32,
            environment: [0, (work_space >> 32) as u32, work_space as u32, 0],
            constants: launch.constants,
            at: launch.at,
        });
        self.launches
            .insert(handed.map_err(refused)?, (number, mode));
        Ok(())
    }

    /// The mode that a launch runs in.
    fn mode_of(&self, launch: &KernelLaunch) -> Mode {
        let name = &launch.module.kernels[launch.kernel].name;
        match self.mode {
            Mode::Timing if self.selection.chooses(name, launch.id) => Mode::Timing,
            _ => Mode::Functional,
        }
    }

    /// Whether no kernel of the other mode is in the way.
    fn can_begin(&self, launch: &KernelLaunch) -> bool {
        self.gpu.mode() == hardware_mode(self.mode_of(launch)) || self.gpu.is_idle()
    }

    /// Hands over the launches that waited for those of the other mode.
    fn begin_held(&mut self) -> Result<(), Fault> {
        while let Some(launch) = self.held.front()
            && self.can_begin(launch)
            && let Some(launch) = self.held.pop_front()
        {
            self.begin(launch)?;
        }
        Ok(())
    }
}

impl Device for Machine {
    fn note(&mut self, part: Part, at: Time, words: &dyn Fn() -> String) {
        let Some(recorder) = &self.options.recorder else {
            return;
        };
        let (topic, number) = match part {
            Part::Copy(engine) => (Topic::Copy, engine),
            Part::Host => (Topic::Host, 0),
        };
        if let Some(probe) = recorder.probe(&[topic], number) {
            probe.note(topic, at, words);
        }
    }

    fn now(&self) -> Time {
        self.gpu.now()
    }

    fn launch(&mut self, launch: KernelLaunch) -> Result<(), Fault> {
        if self.held.is_empty() && self.can_begin(&launch) {
            return self.begin(launch);
        }
        self.held.push_back(launch);
        Ok(())
    }

    fn advance(&mut self, limit: Time) -> Advance {
        loop {
            if self.progress.is_stopped() {
                return Advance::Stopped;
            }
            self.reload_if_due();
            if let Err(fault) = self.begin_held() {
                return Advance::Faulted(fault);
            }
            let idle = self.gpu.is_idle();
            let next = if idle {
                limit
            } else {
                let slice = match self.reload {
                    None => SLICE,
                    Some(_) => SHORT_SLICE,
                };
                limit.min(self.gpu.now() + slice)
            };
            if idle && limit == Time::NEVER {
                return Advance::Reached(Vec::new());
            }
            let advanced = self.gpu.advance(next);
            self.progress.reached(self.gpu.now().nanoseconds());
            match advanced {
                lockstep_gpu::Advance::Faulted(fault) => {
                    return Advance::Faulted(Fault {
                        code: code_of(&fault.kind),
                        launch: self
                            .launches
                            .get(&LaunchId(fault.launch))
                            .map(|(id, _)| *id),
                        message: fault.to_string(),
                    });
                }
                lockstep_gpu::Advance::Reached(records) => {
                    let moved = self.gpu.has_managed_done();
                    if !records.is_empty() || moved || self.gpu.now() >= limit {
                        return Advance::Reached(self.results(records));
                    }
                }
            }
        }
    }

    fn abort(&mut self) {
        self.launches.clear();
        self.held.clear();
        if let Err(error) = self.gpu.abort() {
            tracing::error!("the GPU could not be made anew: {error}");
        }
    }

    fn take_output(&mut self) -> Vec<u8> {
        for printed in self.gpu.take_output() {
            self.output.extend_from_slice(printed.text.as_bytes());
        }
        std::mem::take(&mut self.output)
    }

    fn map(&mut self, address: u64, bytes: u64) {
        if let Err(error) = self.gpu.contents().map(address..address + bytes) {
            tracing::error!("an allocation that cannot be used: {error}");
        }
    }

    fn unmap(&mut self, address: u64, bytes: u64) {
        if layout::region_of(address) == Some(layout::Region::Managed) {
            self.gpu.managed_unmap(address);
        }
        self.gpu.contents().unmap(address);
        if bytes >= RETURNED {
            self.gpu.released(address..address + bytes);
        }
        self.forget(address, bytes);
    }

    fn set_access(&mut self, address: u64, bytes: u64, allowed: bool) {
        if allowed {
            self.map(address, bytes);
        } else {
            self.gpu.contents().unmap(address);
        }
    }

    fn relocate(&mut self, destination: u64, source: u64, bytes: u64) {
        let end = source + bytes;
        let mut page = vec![0; PAGE as usize];
        let mut at = source;
        while let Some(data) = self.next_data(at, end) {
            let start = (data - data % PAGE).max(source);
            let part = &mut page[..PAGE.min(end - start) as usize];
            self.gpu.contents().read(start, part);
            self.gpu
                .contents()
                .write(destination + (start - source), part);
            at = start + PAGE;
        }
        self.clear(source, bytes);
    }

    fn read(&self, address: u64, bytes: &mut [u8]) {
        self.gpu.contents().read(address, bytes);
    }

    fn write(&mut self, address: u64, bytes: &[u8]) {
        self.gpu.contents().write(address, bytes);
    }

    fn copy(&mut self, destination: u64, source: u64, bytes: u64) {
        self.gpu.contents().copy(destination, source, bytes);
    }

    fn dma_written(&mut self, rows: Rows, extent: Extent) {
        if !layout::region_of(rows.address).is_some_and(layout::Region::is_device) {
            return;
        }
        let slices = (0..extent.depth).rev();
        self.gpu.dma_written(slices.flat_map(|slice| {
            (0..extent.height).rev().map(move |row| {
                let start = rows.address + slice * rows.slice_pitch + row * rows.row_pitch;
                start..start + extent.width
            })
        }));
    }

    fn set_heap(&mut self, bytes: u64) {
        let start = heap_start();
        self.gpu.contents().unmap(start);
        self.map(start, bytes);
        self.gpu.set_heap(start..start + bytes);
    }

    fn touched(&mut self, address: u64, bytes: u64) {
        self.gpu
            .contents()
            .note_host_write(address..address + bytes);
    }

    fn managed_is_paged(&self) -> bool {
        self.options.mode == lockstep_gpu::Mode::Timing
    }

    fn managed_map(&mut self, address: u64, bytes: u64) {
        self.managed.push((address, bytes));
        self.gpu.managed_map(address, bytes);
    }

    fn managed_unmap(&mut self, address: u64) {
        self.gpu.managed_unmap(address);
    }

    fn managed_prefetch(
        &mut self,
        ticket: u64,
        address: u64,
        bytes: u64,
        to_device: bool,
        at: Time,
    ) {
        let asked = self
            .gpu
            .managed_prefetch(ticket, address, bytes, to_device, at);
        refused(asked);
    }

    fn managed_host_access(
        &mut self,
        ticket: u64,
        address: u64,
        bytes: u64,
        write: bool,
        at: Time,
    ) {
        let asked = self
            .gpu
            .managed_host_access(ticket, address, bytes, write, at);
        refused(asked);
    }

    fn managed_flushes(&self) -> bool {
        self.config.uvm.host_access == "sync-flush"
    }

    fn managed_flush(&mut self, ticket: u64, at: Time) {
        refused(self.gpu.managed_flush(ticket, at));
    }

    fn managed_done(&mut self, ticket: u64) -> Option<Time> {
        self.gpu.managed_done(ticket)
    }

    fn managed_populated(&mut self, address: u64, bytes: u64) {
        self.gpu.managed_populated(address, bytes);
    }

    fn managed_resident(&self, address: u64) -> bool {
        self.gpu.managed_resident(address)
    }

    fn managed_resident_pages(&self, address: u64, bytes: u64) -> Vec<(u64, u64)> {
        self.gpu.managed_resident_pages(address, bytes)
    }

    fn managed_changed(&mut self) -> bool {
        self.gpu.managed_changed()
    }

    fn managed_advise(&mut self, address: u64, bytes: u64, advice: Advice) {
        let advice = match advice {
            Advice::ReadMostly(yes) => lockstep_gpu::Advice::ReadMostly(yes),
            Advice::PreferredHost => lockstep_gpu::Advice::PreferredHost,
            Advice::PreferredDevice => lockstep_gpu::Advice::PreferredDevice,
            Advice::PreferredNone => lockstep_gpu::Advice::PreferredNone,
            Advice::AccessedBy(yes) => lockstep_gpu::Advice::AccessedBy(yes),
        };
        self.gpu.managed_advise(address, bytes, advice);
    }
}

/// A request for managed memory that the engine refused: its time had passed, which is a mistake
/// of ours.
fn refused(asked: Result<(), GpuError>) {
    if let Err(error) = asked {
        tracing::error!("managed memory: {error}");
    }
}

/// Where the heap of device code lies: at the end of the device's region, past all allocations.
fn heap_start() -> u64 {
    layout::Region::Device(0).range().end - lockstep_runtime::SYSTEM_SPACE
}

/// CUDA's code for what a kernel did.
fn code_of(kind: &FaultKind) -> CuResult {
    match kind {
        FaultKind::IllegalAddress { .. } => CuResult::ILLEGAL_ADDRESS,
        FaultKind::Misaligned { .. } => CuResult::MISALIGNED_ADDRESS,
        FaultKind::Unsupported(_) => CuResult::ILLEGAL_INSTRUCTION,
        FaultKind::IllegalJump { .. } => CuResult::INVALID_PC,
        FaultKind::Assert(_) => CuResult::ASSERT,
        FaultKind::EarlyRead(_) | FaultKind::Trap | FaultKind::InvalidFree { .. } => {
            CuResult::LAUNCH_FAILED
        }
        FaultKind::Hang(_) => CuResult::LAUNCH_TIMEOUT,
        FaultKind::TooLarge(_) => CuResult::LAUNCH_OUT_OF_RESOURCES,
    }
}

fn result(id: u64, record: &KernelRecord, timed: bool) -> KernelResult {
    KernelResult {
        id,
        start: record.start,
        end: record.end,
        start_cycle: timed.then_some(record.start_cycle.0),
        counters: LaunchCounters {
            values: record.counters,
            timed,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(memory: &OwnedFd, pinned: u64) -> Machine {
        let config = lockstep_config::load::<&str>(Some("h200"), &[]).unwrap();
        let mut machine = Machine::new(&Description::new("h200", config), memory).unwrap();
        machine.map(pinned, 0x10000);
        machine
    }

    #[test]
    fn columns_of_stalls_are_the_models_reasons_in_their_order() {
        let columns =
            lockstep_counters::stalls().map(|one| one.name.trim_start_matches("stalled_"));
        assert!(columns.eq(lockstep_gpu::REASON_NAMES));
    }

    /// What the program writes into pinned memory counts as if a call had written it: a live run
    /// has the first, its replay the second.
    #[test]
    fn who_wrote_a_page_does_not_show() {
        let pages: [(u64, Vec<u8>); 3] = [
            (0, vec![1; PAGE as usize]),
            (3 * PAGE, vec![0; PAGE as usize]),
            (7 * PAGE + 4000, vec![2; 200]),
        ];
        let pinned = layout::Region::Pinned.range().start;
        let digest = |write: &dyn Fn(&mut Machine, &Contents), free: bool| {
            let memory = window::create().unwrap();
            let mut machine = machine(&memory, pinned);
            write(&mut machine, &contents(&memory).unwrap());
            if free {
                machine.unmap(pinned, 0x10000);
            }
            machine.digest()
        };
        for free in [false, true] {
            let by_call = digest(
                &|machine, _| {
                    for (offset, bytes) in &pages {
                        machine.write(pinned + offset, bytes);
                    }
                },
                free,
            );
            let by_program = digest(
                &|_, mapped| {
                    for (offset, bytes) in &pages {
                        mapped.write(pinned + offset, bytes);
                    }
                },
                free,
            );
            let by_nobody = digest(&|_, _| (), free);
            assert_eq!(by_call, by_program, "freed: {free}");
            assert_ne!(by_call, by_nobody, "freed: {free}");
        }
    }
}
