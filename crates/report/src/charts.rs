//! Pictures of a report, as SVG inside its page.
//!
//! Colours of text and lines follow the page (`currentColor`), so that dark and light both read; the
//! others are of Okabe and Ito's palette, which colour-blind readers can tell apart.

mod axes;
mod comparison;
mod roofline;

pub use comparison::comparison;
pub use roofline::roofline;

use crate::kernel::KernelReport;
use lockstep_correlation::plot::escape;
use lockstep_run_folder::Run;
use lockstep_text::names::readable;
use lockstep_text::numbers::{duration, percent};
use std::fmt::Write;

const WIDTH: f64 = 900.0;
const PALETTE: [&str; 8] = [
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#999999",
];
/// Kernels in a picture.
const MAXIMUM_KERNELS: usize = 12;
/// Launches on the time line; more cannot be told apart.
const MAXIMUM_LAUNCHES: usize = 4000;

fn begin(height: f64, title: &str) -> String {
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">\n",
        escape(title)
    )
}

fn text(page: &mut String, x: f64, y: f64, anchor: &str, words: &str) {
    let _ = writeln!(
        page,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>",
        escape(words)
    );
}

/// A box with what it stands for when pointed at.
fn rectangle(page: &mut String, [x, y, width, height]: [f64; 4], colour: &str, words: &str) {
    let _ = writeln!(
        page,
        "<rect x=\"{x:.2}\" y=\"{y:.1}\" width=\"{width:.2}\" height=\"{height:.1}\" fill=\"{colour}\"><title>{}</title></rect>",
        escape(words)
    );
}

/// What the warps of each kernel did, a bar a kernel.
pub fn stalls(kernels: &[KernelReport]) -> Option<String> {
    let shown: Vec<&KernelReport> = kernels
        .iter()
        .filter(|kernel| !kernel.stalls.is_empty())
        .take(MAXIMUM_KERNELS)
        .collect();
    // One colour a reason, in the order in which they first matter; rare ones share the last.
    let mut reasons: Vec<&str> = Vec::new();
    for stall in shown.iter().flat_map(|kernel| &kernel.stalls) {
        if stall.share >= 0.05
            && !reasons.contains(&stall.name)
            && reasons.len() < PALETTE.len() - 1
        {
            reasons.push(stall.name);
        }
    }
    if shown.is_empty() {
        return None;
    }
    let (left, bar, step) = (300.0, 16.0, 24.0);
    let height = shown.len() as f64 * step + 60.0;
    let mut page = begin(height, "What warps did in their cycles, by kernel");
    for (row, kernel) in shown.iter().enumerate() {
        let y = row as f64 * step + 4.0;
        text(&mut page, left - 8.0, y + 13.0, "end", &kernel.name);
        let (mut x, mut other) = (left, 0.0);
        for stall in &kernel.stalls {
            let Some(colour) = reasons.iter().position(|reason| *reason == stall.name) else {
                other += stall.share;
                continue;
            };
            let width = stall.share * (WIDTH - left - 10.0);
            let words = format!("{}: {}", stall.name.replace('_', " "), percent(stall.share));
            rectangle(&mut page, [x, y, width, bar], PALETTE[colour], &words);
            x += width;
        }
        let width = other * (WIDTH - left - 10.0);
        rectangle(
            &mut page,
            [x, y, width, bar],
            PALETTE[7],
            &format!("others: {}", percent(other)),
        );
    }
    let mut x = 10.0;
    for (colour, reason) in reasons.iter().copied().chain(["others"]).enumerate() {
        let colour = if reason == "others" { 7 } else { colour };
        rectangle(
            &mut page,
            [x, height - 36.0, 12.0, 12.0],
            PALETTE[colour],
            reason,
        );
        let words = reason.replace('_', " ");
        text(&mut page, x + 16.0, height - 25.0, "start", &words);
        x += 30.0 + 7.0 * words.len() as f64;
    }
    page.push_str("</svg>\n");
    Some(page)
}

/// Launches over time, a row a stream.
pub fn time_line(run: &Run, kernels: &[KernelReport]) -> Option<String> {
    let timed: Vec<_> = run
        .launches
        .iter()
        .filter_map(|launch| Some((launch, launch.start_ns?, launch.duration_ns?)))
        .take(MAXIMUM_LAUNCHES)
        .collect();
    let first = timed
        .iter()
        .map(|(_, start, _)| *start)
        .fold(f64::INFINITY, f64::min);
    let last = timed
        .iter()
        .map(|(_, start, length)| start + length)
        .fold(0.0, f64::max);
    if timed.is_empty() || last <= first {
        return None;
    }
    let mut rows: Vec<(&str, u64)> = timed
        .iter()
        .map(|(one, ..)| (one.gpu.as_str(), one.stream))
        .collect();
    rows.sort_unstable();
    rows.dedup();
    rows.truncate(24);
    let (left, step) = (110.0, 24.0);
    let height = rows.len() as f64 * step + 40.0;
    let mut page = begin(height, "Launches over time");
    let at = |time: f64| left + (time - first) / (last - first) * (WIDTH - left - 10.0);
    for (number, (gpu, stream)) in rows.iter().enumerate() {
        let y = number as f64 * step + 4.0;
        let gpu: String = gpu.chars().take(6).collect();
        text(
            &mut page,
            left - 8.0,
            y + 13.0,
            "end",
            &format!("{gpu}, stream {stream}"),
        );
    }
    for (launch, start, length) in timed {
        let place = (launch.gpu.as_str(), launch.stream);
        let Some(row) = rows.iter().position(|row| *row == place) else {
            continue;
        };
        let rank = kernels
            .iter()
            .position(|kernel| kernel.symbol == launch.kernel);
        let colour = PALETTE[rank.unwrap_or(7).min(7)];
        let words = format!(
            "{}: {}, {}",
            launch.number,
            readable(&launch.kernel),
            duration(length)
        );
        // Thinner than a tenth of a pixel is not seen.
        let width = (at(start + length) - at(start)).max(0.3);
        rectangle(
            &mut page,
            [at(start), row as f64 * step + 4.0, width, 16.0],
            colour,
            &words,
        );
    }
    text(&mut page, left, height - 12.0, "start", "0");
    text(
        &mut page,
        WIDTH - 10.0,
        height - 12.0,
        "end",
        &duration(last - first),
    );
    page.push_str("</svg>\n");
    Some(page)
}
