//! The roofline.

use super::axes::{Axis, frame};
use super::{MAXIMUM_KERNELS, PALETTE, WIDTH, begin, text};
use crate::kernel::KernelReport;
use crate::limits::GpuLimits;
use lockstep_correlation::plot::escape;
use lockstep_text::numbers::{bandwidth, percent};
use std::fmt::Write;

/// Kernels under the roof of their GPU.
pub fn roofline(kernels: &[KernelReport], limits: &GpuLimits) -> Option<String> {
    let points: Vec<_> = kernels
        .iter()
        .filter_map(|kernel| Some((kernel, kernel.roofline.as_ref()?)))
        .take(MAXIMUM_KERNELS)
        .collect();
    if points.is_empty() {
        return None;
    }
    let second = limits.cycles_per_second;
    let roof = limits.issue * second;
    let slopes = [
        ("DRAM", limits.dram_bytes * second, PALETTE[0]),
        ("L2", limits.l2_bytes * second, PALETTE[1]),
    ];
    let mut intensities: Vec<f64> = slopes.iter().map(|(_, rate, _)| roof / rate).collect();
    let mut rates = vec![roof];
    for (_, point) in &points {
        intensities.extend(point.inst_per_dram_byte);
        intensities.extend(point.inst_per_l2_byte);
        rates.push(point.inst_per_second);
    }
    let x = Axis::around(&intensities, 70.0, WIDTH - 20.0);
    let y = Axis::around(&rates, 380.0, 34.0);
    let mut page = begin(430.0, "Roofline of warp instructions");
    let names = [
        "warp instructions for each byte",
        "warp instructions a second",
    ];
    frame(&mut page, &x, &y, names);
    for (name, rate, colour) in slopes {
        let low = 10f64.powf(x.low).max(10f64.powf(y.low) / rate);
        let knee = roof / rate;
        let _ = writeln!(
            page,
            "<path class=\"roof\" stroke=\"{colour}\" d=\"M{:.1} {:.1}L{:.1} {:.1}H{:.1}\"/>",
            x.at(low),
            y.at(low * rate),
            x.at(knee),
            y.at(roof),
            x.to
        );
        let words = format!("{name} {}", bandwidth(rate));
        let middle = (low * knee).sqrt();
        // The faster one lies to the left: each label stands on its own side.
        let (side, anchor) = if name == "DRAM" {
            (14.0, "start")
        } else {
            (-14.0, "end")
        };
        text(
            &mut page,
            x.at(middle) + side,
            y.at(middle * rate) + 4.0,
            anchor,
            &words,
        );
    }
    for (number, (kernel, point)) in points.iter().enumerate() {
        for (place, (name, _, colour)) in [point.inst_per_dram_byte, point.inst_per_l2_byte]
            .into_iter()
            .zip(slopes)
        {
            let Some(place) = place else { continue };
            let words = format!(
                "{}: {} of the roof ({}), {name}",
                kernel.name,
                percent(point.of_roof),
                point.roof_of
            );
            let _ = writeln!(
                page,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"6\" fill=\"{colour}\"><title>{}</title></circle>",
                x.at(place),
                y.at(point.inst_per_second),
                escape(&words)
            );
            text(
                &mut page,
                x.at(place) + 8.0,
                y.at(point.inst_per_second) + 4.0,
                "start",
                &(number + 1).to_string(),
            );
        }
    }
    page.push_str("</svg>\n");
    Some(page)
}
