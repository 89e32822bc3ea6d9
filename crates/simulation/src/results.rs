//! What came of a run, ready to be shown and written.

mod sampling;

use crate::checks;
use crate::description::{Description, Mode};
use crate::node::Node;
use crate::regions;
use crate::server::Figures;
use lockstep_counters::Counters;
use lockstep_protocol::UnsupportedManner;
use lockstep_run_folder::series::{self, SERIES, Series};
use lockstep_run_folder::{
    CheckRow, CounterTotals, Ending, HostSpeed, HostWork, InstructionMix, KernelRow, LineRow,
    ManagedTrace, RunFolder, RunFolderError, RunState, Summary, Totals, UnsupportedRow,
};
use lockstep_runtime::device::KernelLaunch;
use lockstep_runtime::{LaunchSummary, MetFault, Runtime};
use lockstep_stats::Table;
use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
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
    pub statistics: Table,
    /// What happened to managed memory, if there was any.
    pub managed: Option<ManagedTrace>,
    /// What watched parts did, if any was watched.
    pub watched: Option<String>,
    /// What checks found.
    pub checks: Vec<CheckRow>,
    /// What was issued by instruction, if that was asked for.
    pub lines: Option<Vec<LineRow>>,
    /// Where it was written.
    pub folder: Option<PathBuf>,
    /// Times that the state was saved and loaded.
    pub reloads: u64,
    /// What somebody who watches should be told, beside problems.
    pub notices: Vec<String>,
    /// The call or option that failed near the end because it is lacking here.
    pub unsupported_at_end: Option<UnsupportedRow>,
}

impl Results {
    /// Collects everything from a runtime that no program called: nobody could have handled a fault.
    pub(crate) fn without_program(
        description: &Description,
        command: &[String],
        runtime: &mut Runtime<Node>,
        wall: Duration,
        mut problems: Vec<String>,
    ) -> Self {
        let faults = runtime.faults().iter();
        problems.extend(faults.map(|met| met.fault.message.clone()));
        let figures = Figures {
            simulating: wall,
            ..Figures::default()
        };
        let ending = Ending {
            exit_code: 0,
            signal: None,
            problems,
            complete: true,
        };
        Self::collect(description, command, runtime, figures, wall, ending)
    }

    /// Collects everything from a runtime that has stopped.
    pub fn collect(
        description: &Description,
        command: &[String],
        runtime: &mut Runtime<Node>,
        figures: Figures,
        wall: Duration,
        mut ending: Ending,
    ) -> Self {
        let ranks_remark = ranks_remark(description);
        runtime.device_mut().gather();
        let launches = runtime.launches().to_vec();
        let mut kernels: Vec<KernelRow> = launches
            .iter()
            .map(|launch| row_of(launch, description))
            .collect();
        kernels.extend(by_kernels(
            runtime.launches_by_kernels(),
            &kernels,
            description,
        ));
        let sampled = runtime.device_mut().sampled();
        if let Some(sampled) = &sampled {
            sampling::fill_in(&mut kernels, &launches, sampled, description);
        }
        ending.complete = launches.iter().all(|launch| launch.result.is_some());
        let message = |met: &MetFault| met.fault.message.clone();
        let mut problems: Vec<String> = runtime.faults().iter().map(message).collect();
        // A program that was told of a fault ends as it likes; no program is there if the ending has it already.
        let handled = runtime.faults().iter().filter(|met| met.is_handled());
        let mut handled: Vec<String> = handled.map(message).collect();
        handled.retain(|problem| !ending.problems.contains(problem));
        problems.extend(runtime.device_mut().failure().map(str::to_owned));
        let configuration = serde_json::to_value(&description.config).unwrap_or_else(|error| {
            problems.push(format!("summary.json lacks the configuration: {error}"));
            serde_json::Value::Null
        });
        let gpu = description.config.device.name.clone();
        let found = checks::collect(runtime, description.checks, &gpu);
        problems.extend(found.problems);
        for problem in problems {
            if !ending.problems.contains(&problem) {
                ending.problems.push(problem);
            }
        }
        let failed = ending.problems.iter().any(|one| !handled.contains(one));
        if ending.exit_code == 0 && failed {
            ending.exit_code = 1;
        }
        let mut totals = totals(runtime, &kernels);
        if let Some(sampled) = &sampled {
            totals.counters = sampling::totals(&kernels, sampled);
        }
        let machine = runtime.device_mut();
        let series = machine.finish_series().err();
        if let Some(error) = &series {
            ending.problems.push(format!("series: {error}"));
            ending.exit_code = ending.exit_code.max(1);
        }
        let lines = machine.lines();
        let statistics = machine.statistics();
        let digest = machine.digest_of(&statistics);
        let disagreement = machine.agree_on(&digest);
        if let Some(sentence) = &disagreement {
            if !ending.problems.contains(sentence) {
                ending.problems.push(sentence.clone());
            }
            ending.exit_code = ending.exit_code.max(1);
        }
        let agreed = disagreement.is_none();
        let memory_digest = machine.memory_digest();
        let managed = machine.managed_trace();
        let watched = machine.watched();
        let reloads = machine.reloads();
        let work = machine.host_work();
        let host = HostSpeed {
            work,
            ..host_speed(description, &totals, figures, wall, &launches)
        };
        let regions = &description.selection.regions;
        let state = match failed || series.is_some() || !agreed {
            false => RunState::Finished,
            true => RunState::Failed,
        };
        let summary = Summary {
            lockstep: env!("CARGO_PKG_VERSION").into(),
            state,
            partial: !ending.complete,
            command: command.to_vec(),
            gpu: description.gpu.clone(),
            gpu_names: description.gpu_names(),
            mode: match sampled.is_some() {
                true => "sampled".into(),
                false => description.mode.name().into(),
            },
            frontend: crate::machine::frontend_name(description.frontend).into(),
            ending,
            totals,
            sampling: sampled.as_ref().map(sampling::summary),
            digest: agreed.then_some(digest),
            memory_digest: agreed.then_some(memory_digest),
            reproducible: runtime.dependences().is_empty(),
            depends_on_host: runtime.dependences().to_vec(),
            unsupported: runtime.unsupported().iter().map(unsupported_row).collect(),
            warnings: [
                runtime.warnings(),
                &found.warnings,
                &regions::warnings(regions, &launches, runtime.annotations()),
            ]
            .concat(),
            remarks: node_remark(description)
                .into_iter()
                .chain(ranks_remark)
                .chain(runtime.remarks().iter().cloned())
                .chain(regions::remarks(regions, &launches))
                .collect(),
            host,
            configuration,
        };
        Self {
            summary,
            kernels,
            statistics,
            managed,
            watched,
            checks: found.rows,
            lines,
            folder: None,
            reloads,
            notices: Vec::new(),
            unsupported_at_end: runtime.unsupported_at_end().as_ref().map(unsupported_row),
        }
    }

    /// Something went wrong that nobody else has noticed.
    pub(crate) fn fail(&mut self, sentence: String) {
        self.summary.state = RunState::Failed;
        let ending = &mut self.summary.ending;
        ending.exit_code = ending.exit_code.max(1);
        ending.problems.push(sentence);
    }

    /// Writes the run folder. A table that cannot be written is a problem of the run, and the
    /// others are written; the summary comes last and has room of its own.
    ///
    /// # Errors
    /// The summary cannot be written.
    pub fn write(&mut self, folder: &RunFolder) -> Result<(), RunFolderError> {
        self.folder = Some(folder.path().to_path_buf());
        let managed = |trace| folder.write_managed(trace, &self.kernels);
        let watched = |text: &String| folder.write_watched(text);
        let written = [
            folder.write_kernels(&self.kernels),
            folder.write_statistics(&self.statistics),
            self.managed.as_ref().map_or(Ok(()), managed),
            self.watched.as_ref().map_or(Ok(()), watched),
            match self.checks.is_empty() {
                true => Ok(()),
                false => folder.write_checks(&self.checks),
            },
            self.lines
                .as_ref()
                .map_or(Ok(()), |rows| folder.write_lines(rows)),
            store_series(folder),
        ];
        let ending = &mut self.summary.ending;
        for error in written.into_iter().filter_map(Result::err) {
            self.summary.state = RunState::Failed;
            if error.is_full() || ending.exit_code == 0 {
                ending.exit_code = error.exit_code();
            }
            ending.problems.push(error.to_string());
        }
        folder.write_summary(&self.summary)
    }
}

/// What joins several GPUs, in a sentence.
fn node_remark(description: &Description) -> Option<String> {
    let links = description.links().ok().filter(|node| node.gpus() > 1)?;
    let (gpus, words) = (links.gpus(), links.words());
    Some(match links.nodes() {
        1 => format!("{gpus} GPUs, joined by {words}"),
        nodes => format!(
            "{gpus} GPUs on {nodes} nodes, those of a node joined by {words}; what goes between nodes is sent by \
             the host and takes no simulated time on a network"
        ),
    })
}

/// How ranks simulated together, in a sentence.
fn ranks_remark(description: &Description) -> Option<String> {
    let ranks = description.ranks.as_ref()?;
    let exchanged = ranks.exchanged();
    Some(format!(
        "simulated by {} processes together, which met {} times; this one sent {} bytes to the others",
        ranks.count(),
        exchanged.count,
        exchanged.bytes
    ))
}

/// Joins the blocks of a series to long ones, if there are any.
fn store_series(folder: &RunFolder) -> Result<(), RunFolderError> {
    if Series::open(folder.path()).is_none() {
        return Ok(());
    }
    let stored = folder.directory().replace_with(SERIES, |file| {
        let mut sink = BufWriter::new(file);
        series::finish(folder.path(), &mut sink).map_err(io::Error::other)?;
        sink.flush()
    });
    stored.map_err(|error| RunFolderError::of(&folder.file(SERIES), error))
}

fn unsupported_row(call: &lockstep_runtime::UnsupportedCall) -> UnsupportedRow {
    let manner = match call.manner {
        UnsupportedManner::Called => "called",
        UnsupportedManner::AskedFor => "asked for",
        UnsupportedManner::Option => "option",
        UnsupportedManner::Accepted => "accepted",
    };
    UnsupportedRow {
        name: call.name.clone(),
        manner: manner.into(),
    }
}

/// What was modelled of a launch. What a kernel launches runs as that kernel does.
fn mode(launch: &LaunchSummary, description: &Description) -> &'static str {
    let result = launch.result.as_ref();
    match result.filter(|result| result.by_kernel.is_some()) {
        Some(result) if result.counters.timed => Mode::Timing.name(),
        Some(_) => Mode::Functional.name(),
        None => match result {
            Some(result) if result.counters.timed => Mode::Timing.name(),
            Some(_) => Mode::Functional.name(),
            None if description.sampling.is_some() => Mode::Functional.name(),
            None => description.mode_of(launch).name(),
        },
    }
}

fn row_of(launch: &LaunchSummary, description: &Description) -> KernelRow {
    let mode = mode(launch, description);
    let several = description.nodes > 1;
    KernelRow {
        region: description.selection.region_of(launch),
        node: several.then(|| launch.gpu / description.gpus),
        gpu: launch.gpu % description.gpus,
        ..row(launch, mode, description.config_of(launch.gpu).sm.warps)
    }
}

/// The row of a launch that ran in a mode, on SMs with room for so many warps.
pub(crate) fn row(launch: &LaunchSummary, mode: &str, warps: u32) -> KernelRow {
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
        mode: mode.into(),
        ..KernelRow::default()
    };
    let Some(result) = &launch.result else {
        return row;
    };
    let counted = &result.counters.values;
    row.counters = Some(result.counters);
    row.mix = mix(counted);
    if !result.counters.timed {
        return row;
    }
    let nanoseconds = |femtoseconds: u64| femtoseconds as f64 / 1e6;
    row.start_ns = Some(nanoseconds(result.start.0));
    row.duration_ns = Some(nanoseconds(result.end.since(result.start).0));
    row.start_cycle = result.start_cycle;
    let most = counted.active_cycles as f64 * f64::from(warps);
    row.achieved_occupancy = (most > 0.0).then(|| counted.warp_cycles as f64 / most);
    row
}

/// Launches by kernels, numbered behind those by the host in the order in which the device began them.
fn by_kernels(
    launches: &[LaunchSummary],
    by_host: &[KernelRow],
    description: &Description,
) -> Vec<KernelRow> {
    let mut known: Vec<(&LaunchSummary, &KernelLaunch)> = launches
        .iter()
        .filter_map(|launch| Some((launch, launch.result.as_ref()?.by_kernel.as_deref()?)))
        .collect();
    // Each GPU numbers its launches by itself.
    known.sort_by_key(|(summary, launch)| (summary.gpu, launch.number));
    let first = by_host.len() as u64;
    let numbers: BTreeMap<(u32, u32), u64> = known
        .iter()
        .zip(first..)
        .map(|((summary, launch), number)| ((summary.gpu, launch.number), number))
        .collect();
    let rows = known.iter().zip(first..);
    rows.map(|((summary, launch), number)| KernelRow {
        launch: number,
        parent: Some(
            numbers
                .get(&(summary.gpu, launch.parent))
                .copied()
                .unwrap_or(summary.id),
        ),
        ..row_of(summary, description)
    })
    .collect()
}

fn mix(counted: &Counters) -> Option<InstructionMix> {
    let all = counted.inst_executed;
    if all == 0 {
        return None;
    }
    let share = |count: u64| 100.0 * count as f64 / all as f64;
    let [fp32, fp64, integer, control, load_store, other] = counted.mix.map(share);
    let lanes = counted.thread_inst_executed as f64 / (all as f64 * 32.0);
    Some(InstructionMix {
        fp32,
        fp64,
        integer,
        control,
        load_store,
        other,
        inactive: 100.0 * (1.0 - lanes),
    })
}

fn totals(runtime: &Runtime<Node>, kernels: &[KernelRow]) -> Totals {
    Totals {
        calls: runtime.calls(),
        kernels: kernels.len() as u64,
        simulated_ns: runtime.now().0 as f64 / 1e6,
        kernel_ns: kernels.iter().filter_map(|row| row.duration_ns).sum(),
        counters: CounterTotals::of(kernels.iter().filter_map(|row| row.counters.as_ref())),
    }
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
    let cycles = totals.counters.get("cycles");
    let kernel_seconds: f64 = totals.kernel_ns / 1e9;
    let known = !launches.is_empty() && kernel_seconds > 0.0;
    HostSpeed {
        threads: crate::machine::worker_threads(description),
        seconds: wall.as_secs_f64(),
        simulating_seconds: simulating,
        processor_seconds: figures.processor.map(|time| time.as_secs_f64()),
        first_answer_seconds: figures.first_answer.map(|time| time.as_secs_f64()),
        inst_per_second: rate(totals.counters.get("inst_executed")),
        sm_cycles_per_second: rate(
            cycles.map(|cycles| cycles * u64::from(description.config.device.sms)),
        ),
        cycles_per_second: rate(cycles),
        slow_down: known.then(|| simulating / kernel_seconds),
        peak_memory: peak_memory(),
        work: HostWork::default(),
    }
}

/// The most memory that this process ever had, in bytes.
pub fn peak_memory() -> u64 {
    // SAFETY: a zeroed `rusage` is valid, and the call only fills it in.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024
}
