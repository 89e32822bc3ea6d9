//! The scatter plot: simulated against measured cycles of every kernel, both axes logarithmic.

use crate::compare::Report;
use crate::sets::Set;
use std::fmt::Write;

const SIDE: f64 = 760.0;
const MARGIN: f64 = 110.0;

/// Colours that colour-blind readers can tell apart; shapes differ as well.
fn colour(set: Set) -> &'static str {
    match set {
        Set::Calibration => "#0072b2",
        Set::Development => "#e69f00",
        Set::Sealed => "#009e73",
        Set::Untimed => "#999999",
    }
}

/// The plot as an SVG document.
pub fn svg(report: &Report) -> String {
    let mut points = Vec::new();
    for program in report.timed(&Set::ALL) {
        for kernel in &program.kernels {
            if let Some(pair) = kernel.cycles()
                && pair.simulated > 0.0
                && pair.hardware.median() > 0.0
            {
                // A launch, so that kernels of one and of many launches stand on one scale.
                let launches = kernel.launches as f64;
                points.push((
                    program,
                    kernel,
                    pair.hardware.median() / launches,
                    pair.simulated / launches,
                ));
            }
        }
    }
    let least = points
        .iter()
        .map(|(_, _, h, s)| h.min(*s))
        .fold(1e6, f64::min);
    let most = points
        .iter()
        .map(|(_, _, h, s)| h.max(*s))
        .fold(1e4, f64::max);
    let (low, high) = (least.log10().floor(), most.log10().ceil());
    let at = |value: f64| (value.log10() - low) / (high - low) * (SIDE - 2.0 * MARGIN);
    let x = |value: f64| MARGIN + at(value);
    let y = |value: f64| SIDE - MARGIN - at(value);

    let mut page = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {SIDE} {SIDE}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <title>{} cycles a launch, simulated against measured</title>\n\
         <rect width=\"{SIDE}\" height=\"{SIDE}\" fill=\"white\"/>\n",
        escape(&report.gpu)
    );
    let (begin, end) = (10f64.powf(low), 10f64.powf(high));
    for exponent in low as i32..=high as i32 {
        let value = 10f64.powi(exponent);
        let _ = writeln!(
            page,
            "<path d=\"M{:.1} {:.1}V{:.1}M{:.1} {:.1}H{:.1}\" stroke=\"#ddd\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            x(value),
            y(begin),
            y(end),
            x(begin),
            y(value),
            x(end),
            x(value),
            SIDE - MARGIN + 20.0,
            crate::text::count(value),
            MARGIN - 8.0,
            y(value) + 4.0,
            crate::text::count(value)
        );
    }
    // Equality, and 10 % to both sides of it.
    for (factor, dash) in [
        (1.0, ""),
        (1.1, " stroke-dasharray=\"4 4\""),
        (1.0 / 1.1, " stroke-dasharray=\"4 4\""),
    ] {
        let (from, to) = (begin.max(begin / factor), end.min(end / factor));
        let _ = writeln!(
            page,
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"#888\"{dash}/>",
            x(from),
            y(from * factor),
            x(to),
            y(to * factor)
        );
    }
    for (program, kernel, hardware, simulated) in &points {
        let label = format!(
            "{}/{} {}: {} measured, {} simulated",
            program.case.program,
            program.case.size,
            kernel.name,
            crate::text::count(*hardware),
            crate::text::count(*simulated)
        );
        let shape = match program.set {
            Set::Calibration => format!(
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"4\"",
                x(*hardware),
                y(*simulated)
            ),
            _ => format!(
                "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"7\" height=\"7\"",
                x(*hardware) - 3.5,
                y(*simulated) - 3.5
            ),
        };
        let _ = writeln!(
            page,
            "{shape} fill=\"{}\" fill-opacity=\"0.6\" stroke=\"white\" stroke-width=\"0.5\"><title>{}</title></{}>",
            colour(program.set),
            escape(&label),
            if program.set == Set::Calibration {
                "circle"
            } else {
                "rect"
            }
        );
    }
    let _ = writeln!(
        page,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">measured cycles a launch</text>\
         <text transform=\"translate(18 {:.1}) rotate(-90)\" text-anchor=\"middle\">simulated cycles a launch</text>\
         <text x=\"{MARGIN}\" y=\"50\" font-size=\"16\">{}: {} kernels; lines: equal, and 10 % off</text>",
        SIDE / 2.0,
        SIDE - MARGIN + 52.0,
        SIDE / 2.0,
        escape(&report.gpu),
        points.len()
    );
    for (index, set) in crate::text::timed_sets(report).into_iter().enumerate() {
        let _ = writeln!(
            page,
            "<rect x=\"{:.1}\" y=\"66\" width=\"10\" height=\"10\" fill=\"{}\"/><text x=\"{:.1}\" y=\"76\">{}</text>",
            MARGIN + 130.0 * index as f64,
            colour(set),
            MARGIN + 130.0 * index as f64 + 16.0,
            set.name()
        );
    }
    page.push_str("</svg>\n");
    page
}

/// Text that may stand in a document.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
