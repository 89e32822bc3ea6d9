//! Reports and comparisons as documents: the order of what they say.
//!
//! Start reading at [`report_page`]; `page/tables.rs` has the tables.

mod comparison;
mod tables;

pub use comparison::comparison_page;

use crate::advice::Advice;
use crate::charts;
use crate::document::{Block, Document};
use crate::kernel::{KernelMemory, KernelReport};
use crate::report::{Report, RunReport};
use lockstep_run_folder::Run;
use lockstep_text::numbers::{bandwidth, duration, group, percent, plural, rounded};

/// Kernels in a table; the rest is in the JSON form.
pub const MAXIMUM_KERNELS: usize = 20;
/// Kernels that get advice.
const MAXIMUM_ADVISED: usize = 5;
/// Sentences of advice for one kernel.
const MAXIMUM_ADVICE: usize = 3;

/// A report as a document. `runs` are those that it was made of.
pub fn report_page(report: &Report, runs: &[Run]) -> Document {
    let mut blocks = Vec::new();
    for (about, run) in report.runs.iter().zip(runs) {
        if report.runs.len() > 1 {
            blocks.push(Block::Heading(2, about.info.name.clone()));
        }
        run_blocks(&mut blocks, about, run);
    }
    if let Some(compared) = &report.comparison {
        blocks.push(Block::Heading(2, "Side by side".to_string()));
        comparison::blocks(&mut blocks, compared);
    }
    let names: Vec<&str> = report
        .runs
        .iter()
        .map(|run| run.info.name.as_str())
        .collect();
    Document {
        title: format!("Report of {}", names.join(", ")),
        blocks,
    }
}

fn run_blocks(blocks: &mut Vec<Block>, run: &RunReport, folder: &Run) {
    blocks.push(Block::Paragraph(about(run)));
    let mut said: Vec<String> = run.info.problems.clone();
    said.extend(run.notes.iter().cloned());
    if !said.is_empty() {
        blocks.push(Block::List(said));
    }
    if run.kernels.is_empty() {
        blocks.push(Block::Paragraph(
            "No launch is known, so there is nothing more to say.".to_string(),
        ));
        return;
    }
    let kernels = &run.kernels[..run.kernels.len().min(MAXIMUM_KERNELS)];
    blocks.push(Block::Heading(3, "Where the time went".to_string()));
    blocks.push(Block::Table(tables::time(kernels)));
    if run.kernels.len() > kernels.len() {
        blocks.push(Block::Paragraph(rest(&run.kernels[kernels.len()..])));
    }
    figure(
        blocks,
        charts::time_line(folder, kernels),
        "Launches over time; a row is a stream, a colour one of the kernels above. Point at one for its name.",
    );
    advice(blocks, kernels);
    if kernels.iter().any(|kernel| !kernel.stalls.is_empty()) {
        blocks.push(Block::Heading(
            3,
            "What warps did in their cycles".to_string(),
        ));
        blocks.push(Block::Table(tables::stalls(kernels)));
        figure(
            blocks,
            charts::stalls(kernels),
            "Cycles of warps by what they did, under the names of Nsight Compute.",
        );
    }
    limits(blocks, run, kernels);
    if kernels.iter().any(|kernel| kernel.occupancy.is_some()) {
        blocks.push(Block::Heading(
            3,
            "Occupancy and what bounds it".to_string(),
        ));
        blocks.push(Block::Table(tables::occupancy(kernels)));
    }
    let unknown = KernelMemory::default();
    if kernels.iter().any(|kernel| kernel.memory != unknown) {
        blocks.push(Block::Heading(3, "Caches and DRAM".to_string()));
        blocks.push(Block::Table(tables::memory(kernels)));
    }
    blocks.push(Block::Heading(3, "Instructions".to_string()));
    blocks.push(Block::Table(tables::instructions(kernels)));
    if !run.hottest.is_empty() {
        blocks.push(Block::Heading(3, "Hottest instructions".to_string()));
        blocks.push(Block::Table(tables::hottest(&run.hottest)));
    }
    memory_of_run(blocks, run);
    let full: Vec<String> = kernels
        .iter()
        .filter(|kernel| kernel.name != kernel.full_name)
        .map(|kernel| format!("{}: {}", kernel.name, kernel.full_name))
        .collect();
    if !full.is_empty() {
        blocks.push(Block::Heading(3, "Whole names".to_string()));
        blocks.push(Block::List(full));
    }
    blocks.push(tables::launches(&folder.launches));
}

/// What was run and how it ended, in a few sentences.
fn about(run: &RunReport) -> String {
    let info = &run.info;
    let mut words = vec![format!(
        "`{}` on {}{}.",
        info.command.join(" ").replace('`', "'"),
        if info.gpu.is_empty() {
            "an unknown GPU"
        } else {
            &info.gpu
        },
        match (info.source.as_str(), info.mode.as_str()) {
            ("real", _) => " (real)".to_string(),
            (_, "") => String::new(),
            (_, mode) => format!(" (simulated, {mode})"),
        }
    )];
    match info.state.as_str() {
        "finished" => {}
        "unknown" => words.push("How the run ended is not known.".to_string()),
        "running" => words.push("The run still goes on, or was killed.".to_string()),
        state => words.push(format!("The run {state}.")),
    }
    words.push(format!(
        "{} of {}.",
        plural(run.launches, "launch", "launches"),
        plural(run.kernels.len() as u64, "kernel", "kernels")
    ));
    if let Some(kernels) = run.kernel_ns {
        words.push(match info.simulated_ns {
            Some(all) => format!(
                "Kernels took {} of {} simulated.",
                duration(kernels),
                duration(all)
            ),
            None => format!("Kernels took {}.", duration(kernels)),
        });
    }
    words.join(" ")
}

fn rest(kernels: &[KernelReport]) -> String {
    let share: f64 = kernels.iter().filter_map(|kernel| kernel.time_share).sum();
    format!(
        "… and {}, {} of the time; `--format json` has all of them.",
        plural(kernels.len() as u64, "more kernel", "more kernels"),
        percent(share)
    )
}

fn figure(blocks: &mut Vec<Block>, svg: Option<String>, caption: &str) {
    blocks.extend(svg.map(|svg| Block::Figure(svg, caption.to_string())));
}

fn advice(blocks: &mut Vec<Block>, kernels: &[KernelReport]) {
    let mut advised = false;
    for kernel in kernels.iter().take(MAXIMUM_ADVISED) {
        let items: Vec<String> = kernel
            .advice
            .iter()
            .take(MAXIMUM_ADVICE)
            .map(sentence)
            .collect();
        if items.is_empty() {
            continue;
        }
        if !advised {
            blocks.push(Block::Heading(3, "What would help".to_string()));
            advised = true;
        }
        let share = kernel.time_share.map_or_else(String::new, |share| {
            format!(", {} of the time", percent(share))
        });
        blocks.push(Block::Paragraph(format!("{}{share}:", kernel.name)));
        blocks.push(Block::List(items));
    }
}

fn sentence(advice: &Advice) -> String {
    match advice.speed_up {
        Some(gain) => format!(
            "{} Without this limit the kernel would be at most {gain:.2} times as fast ({}).",
            advice.sentence, advice.computed
        ),
        None => advice.sentence.clone(),
    }
}

fn limits(blocks: &mut Vec<Block>, run: &RunReport, kernels: &[KernelReport]) {
    let Some(limits) = &run.limits else { return };
    if kernels.iter().all(|kernel| kernel.bounds.is_empty()) {
        return;
    }
    let second = limits.cycles_per_second;
    blocks.push(Block::Heading(
        3,
        "Against the limits of the GPU".to_string(),
    ));
    blocks.push(Block::Paragraph(format!(
        "The GPU issues {} warp instructions a second at most; L2 delivers {} and DRAM {} ({} of its peak of {}). A resource's share is the least time that it needs for what was counted, of the time that passed.",
        rounded(limits.issue * second),
        bandwidth(limits.l2_bytes * second),
        bandwidth(limits.dram_bytes * second),
        percent(limits.dram_bytes / limits.dram_peak_bytes),
        bandwidth(limits.dram_peak_bytes * second)
    )));
    blocks.push(Block::Table(tables::bounds(kernels)));
    figure(
        blocks,
        charts::roofline(kernels, limits),
        "Roofline of warp instructions: one point for the bytes of DRAM (blue) and one for those between SMs and L2 (orange), with the number of the kernel in the tables. A kernel that moved no byte of DRAM has no blue one.",
    );
}

fn memory_of_run(blocks: &mut Vec<Block>, run: &RunReport) {
    let Some(memory) = &run.memory else { return };
    if !memory.caches.is_empty() {
        blocks.push(Block::Heading(
            3,
            "Caches over the run, by kind of access".to_string(),
        ));
        blocks.push(Block::Table(tables::caches(memory)));
    }
    let mut words = Vec::new();
    words.extend(memory.dram_row_hit_rate.map(|rate| {
        format!(
            "{} of accesses to DRAM found their row open.",
            percent(rate)
        )
    }));
    words.extend(memory.most_sectors_in_flight.map(|most| {
        format!(
            "At most {} sectors were on their way to one SM at once.",
            group(most)
        )
    }));
    if !words.is_empty() {
        blocks.push(Block::Paragraph(words.join(" ")));
    }
    if !memory.links.is_empty() {
        blocks.push(Block::Heading(3, "Links over the run".to_string()));
        blocks.push(Block::Table(tables::links(memory)));
    }
}
