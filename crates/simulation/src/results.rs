//! What came of a run, ready to be shown and written.

use crate::description::{Description, Mode};
use crate::machine::Machine;
use crate::server::Figures;
use lockstep_protocol::UnsupportedManner;
use lockstep_runtime::device::KernelResult;
use lockstep_runtime::{LaunchSummary, Runtime};
use lockstep_telemetry::run_folder::{
    Ending, HostSpeed, HostWork, InstructionMix, KernelRow, ManagedTrace, RunFolder,
    RunFolderError, STALL_COLUMNS, StatisticRow, Summary, Totals, UnsupportedRow,
};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Results {
    /// The run at a glance.
    pub summary: Summary,
    /// Launches, in the order of calls.
    pub kernels: Vec<KernelRow>,
    /// Every statistic of every component.
    pub statistics: Vec<StatisticRow>,
    /// What happened to managed memory, if there was any.
    pub managed: Option<ManagedTrace>,
    /// What watched parts did, if any was watched.
    pub watched: Option<String>,
    /// Where it was written.
    pub folder: Option<PathBuf>,
    /// Times that the state was saved and loaded.
    pub reloads: u64,
    /// What somebody who watches should be told, beside problems.
    pub notices: Vec<String>,
}

impl Results {
    /// Collects everything from a runtime that has stopped.
    pub fn collect(
        description: &Description,
        command: &[String],
        runtime: &mut Runtime<Machine>,
        figures: Figures,
        wall: Duration,
        mut ending: Ending,
    ) -> Self {
        let launches = runtime.launches().to_vec();
        let kernels: Vec<KernelRow> = launches
            .iter()
            .map(|launch| row(launch, description))
            .collect();
        ending.complete = launches.iter().all(|launch| launch.result.is_some());
        for fault in runtime.faults() {
            ending.problems.push(fault.message.clone());
        }
        if ending.exit_code == 0 && !ending.problems.is_empty() {
            ending.exit_code = 1;
        }
        let totals = totals(runtime, &kernels);
        let machine = runtime.device_mut();
        let digest = machine.digest();
        let memory_digest = machine.memory_digest();
        let statistics = machine.statistics();
        let managed = machine.managed_trace();
        let watched = machine.watched();
        let reproducible = machine.is_reproducible();
        let reloads = machine.reloads();
        let work = machine.host_work();
        let host = HostSpeed {
            work,
            ..host_speed(description, &totals, figures, wall, &launches)
        };
        let summary = Summary {
            lockstep: env!("CARGO_PKG_VERSION").into(),
            command: command.to_vec(),
            gpu: description.gpu.clone(),
            mode: description.mode.name().into(),
            frontend: crate::machine::frontend_name(description.frontend).into(),
            ending,
            totals,
            digest: Some(digest),
            memory_digest: Some(memory_digest),
            reproducible,
            unsupported: runtime.unsupported().iter().map(unsupported_row).collect(),
            warnings: runtime.warnings().to_vec(),
            host,
            configuration: serde_json::to_value(&description.config).unwrap_or_default(),
        };
        Self {
            summary,
            kernels,
            statistics,
            managed,
            watched,
            folder: None,
            reloads,
            notices: Vec::new(),
        }
    }

    /// Writes the run folder.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write(&mut self, folder: &RunFolder) -> Result<(), RunFolderError> {
        self.folder = Some(folder.path().to_path_buf());
        folder.write_kernels(&self.kernels)?;
        folder.write_statistics(&self.statistics)?;
        if let Some(trace) = &self.managed {
            folder.write_managed(trace, &self.kernels)?;
        }
        if let Some(watched) = &self.watched {
            folder.write_watched(watched)?;
        }
        folder.write_summary(&self.summary)
    }
}

fn unsupported_row(call: &lockstep_runtime::UnsupportedCall) -> UnsupportedRow {
    let manner = match call.manner {
        UnsupportedManner::Called => "called",
        UnsupportedManner::AskedFor => "asked for",
        UnsupportedManner::Option => "option",
    };
    UnsupportedRow {
        name: call.name.clone(),
        manner: manner.into(),
    }
}

fn row(launch: &LaunchSummary, description: &Description) -> KernelRow {
    let mut row = KernelRow {
        launch: launch.id,
        kernel: launch.kernel.clone(),
        gpu: launch.gpu,
        context: launch.context,
        stream: launch.stream,
        grid: launch.grid,
        block: launch.block,
        registers: Some(launch.registers),
        shared_bytes: Some(launch.shared),
        mode: description.mode_of(&launch.kernel, launch.id).name().into(),
        ..KernelRow::default()
    };
    let Some(result) = &launch.result else {
        return row;
    };
    row.inst_executed = result.counter("inst_executed");
    row.inst_issued = result.counter("inst_issued");
    row.thread_inst_executed = result.counter("thread_inst_executed");
    row.warps_launched = result.counter("warps_launched");
    row.mix = mix(result);
    if description.mode_of(&launch.kernel, launch.id) == Mode::Functional {
        return row;
    }
    let nanoseconds = |femtoseconds: u64| femtoseconds as f64 / 1e6;
    row.start_ns = Some(nanoseconds(result.start.0));
    row.duration_ns = Some(nanoseconds(result.end.since(result.start).0));
    row.cycles = result.counter("cycles");
    row.active_cycles = result.counter("active_cycles");
    row.l1_sectors = result.counter("l1_sectors");
    row.l1_sector_hits = result.counter("l1_sector_hits");
    row.l2_sectors = result.counter("l2_sectors");
    row.l2_sector_hits = result.counter("l2_sector_hits");
    row.l2_sectors_of_kernel = result.counter("l2_sectors_of_kernel");
    row.l2_sectors_of_sms = result.counter("l2_sectors_of_sms");
    row.dram_bytes_read = result.counter("dram_bytes_read");
    row.dram_bytes_written = result.counter("dram_bytes_written");
    row.start_cycle = result.counter("start_cycle");
    row.stalls = Some(STALL_COLUMNS.map(|column| result.counter(column).unwrap_or(0)));
    let warps = f64::from(description.config.sm.warps);
    row.achieved_occupancy = match (result.counter("warp_cycles"), row.active_cycles) {
        (Some(resident), Some(active)) if active > 0 => {
            Some(resident as f64 / (active as f64 * warps))
        }
        _ => None,
    };
    row
}

fn mix(result: &KernelResult) -> Option<InstructionMix> {
    let all = result.counter("inst_executed").filter(|all| *all > 0)?;
    let share = |name| {
        result
            .counter(name)
            .map_or(0.0, |count| 100.0 * count as f64 / all as f64)
    };
    let lanes = result.counter("thread_inst_executed").unwrap_or(0) as f64 / (all as f64 * 32.0);
    Some(InstructionMix {
        fp32: share("mix_fp32"),
        fp64: share("mix_fp64"),
        integer: share("mix_integer"),
        control: share("mix_control"),
        load_store: share("mix_load_store"),
        other: share("mix_other"),
        inactive: 100.0 * (1.0 - lanes),
    })
}

fn totals(runtime: &Runtime<Machine>, kernels: &[KernelRow]) -> Totals {
    let sum = |field: fn(&KernelRow) -> Option<u64>| {
        kernels
            .iter()
            .filter_map(field)
            .reduce(|all, more| all.saturating_add(more))
    };
    Totals {
        calls: runtime.calls(),
        kernels: kernels.len() as u64,
        simulated_ns: runtime.now().0 as f64 / 1e6,
        kernel_ns: kernels.iter().filter_map(|row| row.duration_ns).sum(),
        cycles: sum(|row| row.cycles),
        inst_executed: sum(|row| row.inst_executed),
        thread_inst_executed: sum(|row| row.thread_inst_executed),
        stalled_cycles: stalled_cycles(kernels),
    }
}

fn stalled_cycles(kernels: &[KernelRow]) -> BTreeMap<&'static str, u64> {
    let mut sums = BTreeMap::new();
    for stalls in kernels.iter().filter_map(|row| row.stalls) {
        for (column, cycles) in STALL_COLUMNS.into_iter().zip(stalls) {
            let reason = column.trim_start_matches("stalled_");
            let sum: &mut u64 = sums.entry(reason).or_default();
            *sum = sum.saturating_add(cycles);
        }
    }
    sums
}

fn host_speed(
    description: &Description,
    totals: &Totals,
    figures: Figures,
    wall: Duration,
    launches: &[LaunchSummary],
) -> HostSpeed {
    let simulating = figures.simulating.as_secs_f64();
    let rate = |count: Option<u64>| {
        count
            .filter(|_| simulating > 0.0)
            .map(|count| count as f64 / simulating)
    };
    let kernel_seconds: f64 = totals.kernel_ns / 1e9;
    let known = !launches.is_empty() && kernel_seconds > 0.0;
    HostSpeed {
        threads: crate::machine::worker_threads(description),
        seconds: wall.as_secs_f64(),
        simulating_seconds: simulating,
        processor_seconds: figures.processor.map(|time| time.as_secs_f64()),
        first_answer_seconds: figures.first_answer.map(|time| time.as_secs_f64()),
        inst_per_second: rate(totals.inst_executed),
        sm_cycles_per_second: rate(
            totals
                .cycles
                .map(|cycles| cycles * u64::from(description.config.device.sms)),
        ),
        cycles_per_second: rate(totals.cycles),
        slow_down: known.then(|| simulating / kernel_seconds),
        peak_memory: peak_memory(),
        work: HostWork::default(),
    }
}

/// The most memory that this process ever had, in bytes.
fn peak_memory() -> u64 {
    // SAFETY: a zeroed `rusage` is valid, and the call only fills it in.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024
}
