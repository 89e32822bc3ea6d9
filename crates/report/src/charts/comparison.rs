//! One run against another.

use super::axes::{Axis, frame};
use super::{MAXIMUM_LAUNCHES, PALETTE, begin, rectangle, text};
use crate::compare::Comparison;
use lockstep_correlation::plot::escape;
use lockstep_text::numbers::rounded;
use std::fmt::Write;

/// Every counter of every kernel, the second run against the first.
pub fn comparison(comparison: &Comparison) -> Option<String> {
    let mut points = Vec::new();
    for kernel in &comparison.kernels {
        for counter in &kernel.counters {
            if let [Some(first), Some(second), ..] = counter.values[..]
                && first > 0.0
                && second > 0.0
            {
                points.push((kernel, counter.counter, first, second));
            }
        }
    }
    points.truncate(MAXIMUM_LAUNCHES);
    if points.is_empty() {
        return None;
    }
    let values: Vec<f64> = points
        .iter()
        .flat_map(|(.., first, second)| [*first, *second])
        .collect();
    let x = Axis::around(&values, 80.0, 620.0);
    let y = Axis::around(&values, 560.0, 30.0);
    let mut page = begin(
        610.0,
        "Every counter of every kernel, the second run against the first",
    );
    let (first, second) = (&comparison.runs[0].name, &comparison.runs[1].name);
    frame(&mut page, &x, &y, [first, second]);
    let _ = writeln!(
        page,
        "<path class=\"roof\" stroke=\"{}\" d=\"M{} {}L{} {}\"/>",
        PALETTE[7], x.from, y.from, x.to, y.to
    );
    for (kernel, counter, first, second) in points {
        let (family, _) = family(counter);
        let words = format!(
            "{} {counter}: {} and {}, {:.2} times",
            kernel.name,
            rounded(first),
            rounded(second),
            second / first
        );
        let _ = writeln!(
            page,
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"4\" fill=\"{}\" fill-opacity=\"0.8\"><title>{}</title></circle>",
            x.at(first),
            y.at(second),
            PALETTE[family],
            escape(&words)
        );
    }
    for (number, name) in ["duration_ns", "inst_", "stalled_", "dram_"]
        .iter()
        .enumerate()
    {
        let (colour, words) = family(name);
        let place = 40.0 + number as f64 * 22.0;
        rectangle(
            &mut page,
            [650.0, place, 12.0, 12.0],
            PALETTE[colour],
            words,
        );
        text(&mut page, 668.0, place + 11.0, "start", words);
    }
    page.push_str("</svg>\n");
    Some(page)
}

fn family(counter: &str) -> (usize, &'static str) {
    match counter {
        time if time.contains("cycles") || time.starts_with("duration") => (0, "time and cycles"),
        work if work.contains("inst_")
            || work.contains("launched")
            || work.contains("completed") =>
        {
            (2, "instructions and warps")
        }
        wait if wait.starts_with("stalled_") => (1, "what warps did"),
        _ => (3, "caches and DRAM"),
    }
}
