//! The scatter plot: simulated against measured cycles of every kernel, both axes logarithmic.

use crate::compare::{KernelComparison, ProgramComparison, Report};
use crate::sets::Set;
use crate::text::count;
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

/// A kernel on the plot, in cycles a launch.
struct Point<'report> {
    program: &'report ProgramComparison,
    kernel: &'report KernelComparison,
    hardware: f64,
    simulated: f64,
}

/// Powers of ten at both ends of the axes.
struct Axes {
    low: f64,
    high: f64,
}

impl Axes {
    fn of(points: &[Point<'_>]) -> Self {
        let least = points
            .iter()
            .map(|point| point.hardware.min(point.simulated));
        let most = points
            .iter()
            .map(|point| point.hardware.max(point.simulated));
        Self {
            low: least.fold(1e6, f64::min).log10().floor(),
            high: most.fold(1e4, f64::max).log10().ceil(),
        }
    }

    fn at(&self, value: f64) -> f64 {
        (value.log10() - self.low) / (self.high - self.low) * (SIDE - 2.0 * MARGIN)
    }

    fn x(&self, value: f64) -> f64 {
        MARGIN + self.at(value)
    }

    fn y(&self, value: f64) -> f64 {
        SIDE - MARGIN - self.at(value)
    }

    /// The values at both ends.
    fn ends(&self) -> (f64, f64) {
        (10f64.powf(self.low), 10f64.powf(self.high))
    }
}

/// The plot as an SVG document.
pub fn svg(report: &Report) -> String {
    let points = points(report);
    let axes = Axes::of(&points);
    let mut page = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {SIDE} {SIDE}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <title>{} cycles a launch, simulated against measured</title>\n\
         <rect width=\"{SIDE}\" height=\"{SIDE}\" fill=\"white\"/>\n",
        escape(&report.gpu)
    );
    draw_grid(&mut page, &axes);
    draw_equality(&mut page, &axes);
    for point in &points {
        draw_point(&mut page, &axes, point);
    }
    draw_legend(&mut page, report, points.len());
    page.push_str("</svg>\n");
    page
}

fn points(report: &Report) -> Vec<Point<'_>> {
    let mut points = Vec::new();
    for program in report.timed(&Set::ALL) {
        for kernel in &program.kernels {
            if let Some(pair) = kernel.cycles()
                && pair.simulated > 0.0
                && pair.hardware.median() > 0.0
            {
                // A launch, so that kernels of one and of many launches stand on one scale.
                let launches = kernel.launches as f64;
                points.push(Point {
                    program,
                    kernel,
                    hardware: pair.hardware.median() / launches,
                    simulated: pair.simulated / launches,
                });
            }
        }
    }
    points
}

/// A line at every power of ten.
fn draw_grid(page: &mut String, axes: &Axes) {
    let (begin, end) = axes.ends();
    for exponent in axes.low as i32..=axes.high as i32 {
        let value = 10f64.powi(exponent);
        let _ = writeln!(
            page,
            "<path d=\"M{:.1} {:.1}V{:.1}M{:.1} {:.1}H{:.1}\" stroke=\"#ddd\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            axes.x(value),
            axes.y(begin),
            axes.y(end),
            axes.x(begin),
            axes.y(value),
            axes.x(end),
            axes.x(value),
            SIDE - MARGIN + 20.0,
            count(value),
            MARGIN - 8.0,
            axes.y(value) + 4.0,
            count(value)
        );
    }
}

/// Equality, and 10 % to both sides of it.
fn draw_equality(page: &mut String, axes: &Axes) {
    let (begin, end) = axes.ends();
    for (factor, dash) in [
        (1.0, ""),
        (1.1, " stroke-dasharray=\"4 4\""),
        (1.0 / 1.1, " stroke-dasharray=\"4 4\""),
    ] {
        let (from, to) = (begin.max(begin / factor), end.min(end / factor));
        let _ = writeln!(
            page,
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"#888\"{dash}/>",
            axes.x(from),
            axes.y(from * factor),
            axes.x(to),
            axes.y(to * factor)
        );
    }
}

fn draw_point(page: &mut String, axes: &Axes, point: &Point<'_>) {
    let program = point.program;
    let label = format!(
        "{}/{} {}: {} measured, {} simulated",
        program.case.program,
        program.case.size,
        point.kernel.name,
        count(point.hardware),
        count(point.simulated)
    );
    let (x, y) = (axes.x(point.hardware), axes.y(point.simulated));
    let (shape, tag) = match program.set {
        Set::Calibration => (
            format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\""),
            "circle",
        ),
        _ => (
            format!(
                "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"7\" height=\"7\"",
                x - 3.5,
                y - 3.5
            ),
            "rect",
        ),
    };
    let _ = writeln!(
        page,
        "{shape} fill=\"{}\" fill-opacity=\"0.6\" stroke=\"white\" stroke-width=\"0.5\"><title>{}</title></{tag}>",
        colour(program.set),
        escape(&label),
    );
}

fn draw_legend(page: &mut String, report: &Report, kernels: usize) {
    let _ = writeln!(
        page,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">measured cycles a launch</text>\
         <text transform=\"translate(18 {:.1}) rotate(-90)\" text-anchor=\"middle\">simulated cycles a launch</text>\
         <text x=\"{MARGIN}\" y=\"50\" font-size=\"16\">{}: {kernels} kernels; lines: equal, and 10 % off</text>",
        SIDE / 2.0,
        SIDE - MARGIN + 52.0,
        SIDE / 2.0,
        escape(&report.gpu)
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
}

/// Text that may stand in a document.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
