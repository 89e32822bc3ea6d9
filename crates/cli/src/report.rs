//! The report at the end of a run, on standard error so that the program's own output stays its
//! own.

use lockstep_run_folder::{CounterTotals, SamplingSummary};
use lockstep_simulation::Results;
use lockstep_text::names::readable;
use lockstep_text::note;
use lockstep_text::numbers::{counted, duration, group, rounded, shape};
use lockstep_text::{Align, Table};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Rows of the kernel table.
const MAXIMUM_ROWS: usize = 20;
/// Reasons for waiting.
const MAXIMUM_REASONS: usize = 5;
/// Lines of what watched parts did.
const MAXIMUM_LINES: usize = 200;

/// Prints the whole report.
pub fn print(results: &Results) {
    print_bad_ending(results);
    note!("{}", text(results));
}

/// Prints what a program met last before it ended badly.
pub fn print_bad_ending(results: &Results) {
    if let Some(line) = bad_ending(results) {
        note!("lockstep: {line}\n");
    }
}

/// What a program that ended badly met last that is lacking here: often why.
fn bad_ending(results: &Results) -> Option<String> {
    let code = results.summary.ending.exit_code;
    let last = results.unsupported_at_end.as_ref().filter(|_| code != 0)?;
    let what = match last.manner.as_str() {
        "option" => "was refused, because it is an option that is not supported",
        _ => "answered 801, because it is not supported",
    };
    Some(format!(
        "the program ended badly (exit code {code}); before that, `{}` {what}",
        last.name
    ))
}

/// How cycles were projected.
fn sampled(sampling: &SamplingSummary) -> String {
    format!(
        "{} of {} launches were simulated cycle by cycle, one instruction of {:.1}; the cycles of the others are \
         projected: {} ± {} in all ({:.2} %, 95 % confidence)",
        group(sampling.detailed_launches),
        group(sampling.detailed_launches + sampling.projected_launches),
        sampling.fewer_inst,
        group(sampling.cycles),
        group(sampling.cycles_half_width.round() as u64),
        sampling.half_width_percent,
    )
}

/// Prints what went wrong, and notices.
pub fn print_problems(results: &Results) {
    for notice in &results.notices {
        note!("lockstep: {notice}\n");
    }
    for warning in &results.summary.warnings {
        note!("lockstep: warning: {warning}\n");
    }
    for problem in &results.summary.ending.problems {
        note!("lockstep: {problem}\n");
    }
    if !results.summary.ending.complete {
        note!("lockstep: not every kernel was complete when the run ended\n");
    }
}

fn text(results: &Results) -> String {
    let summary = &results.summary;
    let mut text = String::new();
    if results.kernels.is_empty() && summary.totals.calls == 0 {
        return text;
    }
    let name = match summary.gpu_names.is_empty() {
        true => summary.configuration["device"]["name"]
            .as_str()
            .unwrap_or(&summary.gpu)
            .to_string(),
        false => summary.gpu_names.join(", "),
    };
    let _ = writeln!(text, "\n── {name}, {} ──", summary.mode);
    if !results.kernels.is_empty() {
        let _ = write!(text, "{}", kernel_table(results));
    }
    let totals = &summary.totals;
    let mut line = format!(
        "{}, {}",
        counted(totals.calls, "call"),
        counted(totals.kernels, "kernel")
    );
    if let Some(count) = totals.counters.get("inst_executed") {
        let _ = write!(line, ", {} warp instructions", group(count));
    }
    if let Some(cycles) = totals.counters.get("cycles") {
        let _ = write!(line, ", {} cycles", group(cycles));
    }
    if summary.mode != "functional" {
        let _ = write!(line, ", {} simulated", duration(totals.simulated_ns));
    }
    let _ = writeln!(text, "{line}");
    if let Some(sampling) = &summary.sampling {
        let _ = writeln!(text, "{}", sampled(sampling));
    }
    for remark in &summary.remarks {
        let _ = writeln!(text, "{remark}");
    }
    if let Some(line) = waits(&totals.counters) {
        let _ = writeln!(text, "{line}");
    }
    if let Some(digest) = &summary.digest {
        let note = if summary.reproducible {
            ""
        } else {
            "  (another run may have another one)"
        };
        let _ = writeln!(text, "digest {digest}{note}");
        for sentence in &summary.depends_on_host {
            let _ = writeln!(text, "  {sentence}");
        }
    }
    let _ = writeln!(text, "{}", speed(results));
    if !summary.unsupported.is_empty() {
        let _ = writeln!(text, "{}", unsupported(results));
    }
    if let Some(watched) = &results.watched {
        let lines: Vec<&str> = watched.lines().collect();
        let shown = lines.len().min(MAXIMUM_LINES);
        let _ = writeln!(text, "\n{}", lines[..shown].join("\n"));
        if lines.len() > shown {
            let more = group((lines.len() - shown) as u64);
            let _ = writeln!(text, "… and {more} more lines, in debug.txt");
        }
    }
    if let Some(folder) = &results.folder {
        let _ = writeln!(text, "results in {}", folder.display());
    }
    text
}

fn kernel_table(results: &Results) -> String {
    let timing = results.summary.mode != "functional";
    let mut columns = vec![
        ("kernel", Align::Left),
        ("grid", Align::Right),
        ("block", Align::Right),
    ];
    if timing {
        columns.extend([("time", Align::Right), ("cycles", Align::Right)]);
    }
    columns.push(("warp instructions", Align::Right));
    let mut table = Table::new(&columns);
    let count = |value: Option<u64>| value.map_or_else(|| "-".into(), group);
    for row in results.kernels.iter().take(MAXIMUM_ROWS) {
        let name = match row.parent {
            Some(parent) => format!("{} (launched by {parent})", readable(&row.kernel)),
            None => readable(&row.kernel),
        };
        let mut cells = vec![name, shape(row.grid), shape(row.block)];
        if timing {
            cells.push(row.duration_ns.map_or_else(|| "-".into(), duration));
            cells.push(count(row.counter("cycles")));
        }
        cells.push(count(row.counter("inst_executed")));
        table.row(&cells);
    }
    let mut text = table.to_string();
    if results.kernels.len() > MAXIMUM_ROWS {
        let mut names: BTreeMap<&str, usize> = BTreeMap::new();
        for row in &results.kernels[MAXIMUM_ROWS..] {
            *names.entry(&row.kernel).or_default() += 1;
        }
        let more = results.kernels.len() - MAXIMUM_ROWS;
        let _ = writeln!(
            text,
            "… and {} of {} more, in kernels.csv",
            launches(more),
            counted(names.len() as u64, "kernel")
        );
    }
    text
}

fn launches(number: usize) -> String {
    match number {
        1 => "1 launch".into(),
        more => format!("{} launches", group(more as u64)),
    }
}

/// What warps did in their cycles, the most frequent first.
fn waits(totals: &CounterTotals) -> Option<String> {
    let cycles: Vec<(&str, u64)> = lockstep_counters::stalls()
        .filter_map(|stall| {
            let reason = stall.name.trim_start_matches("stalled_");
            Some((reason, totals.get(stall.name)?))
        })
        .collect();
    let all = cycles
        .iter()
        .fold(0u64, |all, (_, more)| all.saturating_add(*more));
    let mut shares: Vec<(&str, f64)> = cycles
        .iter()
        .map(|(reason, cycles)| (*reason, 100.0 * *cycles as f64 / all.max(1) as f64))
        .filter(|(_, share)| *share >= 1.0)
        .collect();
    shares.sort_by(|(a, x), (b, y)| y.total_cmp(x).then(a.cmp(b)));
    let words: Vec<String> = shares
        .iter()
        .take(MAXIMUM_REASONS)
        .map(|(reason, share)| format!("{} {share:.0} %", reason.replace('_', " ")))
        .collect();
    (!words.is_empty()).then(|| format!("cycles of warps: {}", words.join(", ")))
}

fn speed(results: &Results) -> String {
    let host = &results.summary.host;
    let threads = counted(host.threads.into(), "thread");
    let mut words = vec![format!("{:.2} s on {threads}", host.seconds)];
    if let Some(rate) = host.inst_per_second {
        words.push(format!("{} warp instructions/s", rounded(rate)));
    }
    if let Some(rate) = host.cycles_per_second {
        words.push(format!("{} cycles/s", rounded(rate)));
    }
    if let Some(slow_down) = host.slow_down {
        words.push(format!("{}x slower than the GPU", rounded(slow_down)));
    }
    words.push(format!("{} MiB at most", host.peak_memory >> 20));
    words.join(", ")
}

fn unsupported(results: &Results) -> String {
    let mut by_manner: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for call in &results.summary.unsupported {
        by_manner.entry(&call.manner).or_default().push(&call.name);
    }
    let mut lines = Vec::new();
    for (manner, names) in by_manner {
        let what = match manner {
            "called" => "not supported, and answered 801",
            "accepted" => "accepted but not modelled",
            "option" => "options not supported, and refused",
            _ if !tracing::enabled!(tracing::Level::INFO) => {
                let entries = counted(names.len() as u64, "name");
                lines.push(format!(
                    "{entries} looked up and not found, harmless unless used (-v lists them)"
                ));
                continue;
            }
            _ => "looked up and not found, harmless unless used",
        };
        lines.push(format!("{what}: {}", names.join(", ")));
    }
    lines.join("\n")
}

/// The beginning of a digest.
pub fn short(digest: &str) -> &str {
    digest.get(..16).unwrap_or(digest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_counters::LaunchCounters;

    #[test]
    fn what_warps_waited_for_comes_in_the_order_of_its_share() {
        let mut launch = LaunchCounters {
            timed: true,
            ..LaunchCounters::default()
        };
        // Selected, wait, long scoreboard, sleeping.
        for (reason, cycles) in [(0, 95), (2, 200), (3, 700), (13, 5)] {
            launch.values.stalls[reason] = cycles;
        }
        assert_eq!(
            waits(&CounterTotals::of([&launch])).as_deref(),
            Some("cycles of warps: long scoreboard 70 %, wait 20 %, selected 10 %")
        );
        assert_eq!(waits(&CounterTotals::default()), None);
    }
}
