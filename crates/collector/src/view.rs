//! The live view: a few lines that a terminal redraws.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::collector::Collector;
use lockstep_schema::DEVICE_GAUGES;

/// Most kernels shown; the rest is one line.
const MOST_KERNELS: usize = 10;

/// The lines of the view, at most `width` characters each.
pub fn live_view(collector: &Collector, seconds: f64, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let (records, lost) = collector.records();
    lines.push(format!(
        "{seconds:7.1} s   {} process(es) running   {records} records read   {lost} lost",
        collector.running()
    ));
    for (gpu, row) in collector.latest_gauges() {
        let mut line = gpu.to_string();
        for (gauge, value) in DEVICE_GAUGES.iter().zip(&row.gauges) {
            let Some(value) = value else { continue };
            let _ = match gauge.name {
                "power" => write!(line, "   {:.0} W", *value as f64 / 1e3),
                "temperature" => write!(line, "   {value} C"),
                "sm_clock" => write!(line, "   SM {value} MHz"),
                "memory_clock" => write!(line, "   memory {value} MHz"),
                _ => write!(line, "   {:.1} GiB", *value as f64 / f64::from(1 << 30)),
            };
        }
        lines.push(line);
    }
    let mut by_kernel: BTreeMap<(&str, u32), (u64, Vec<u64>)> = BTreeMap::new();
    for (key, totals) in collector.totals() {
        let sum = by_kernel.entry((&key.kernel, key.process)).or_default();
        sum.0 += totals.launches;
        sum.1.resize(totals.counters.len(), 0);
        for (sum, part) in sum.1.iter_mut().zip(&totals.counters) {
            *sum += part.unwrap_or(0);
        }
    }
    let mut kernels: Vec<_> = by_kernel.into_iter().collect();
    kernels.sort_by_key(|(_, (launches, counts))| {
        std::cmp::Reverse((counts.first().copied().unwrap_or(0), *launches))
    });
    let mut heading = format!("{:<32} {:>8} {:>10}", "kernel", "process", "launches");
    for name in collector.counters() {
        let _ = write!(
            heading,
            " {:>14}",
            name.chars().take(14).collect::<String>()
        );
    }
    lines.push(heading);
    for ((kernel, process), (launches, counts)) in kernels.iter().take(MOST_KERNELS) {
        let name: String = kernel.chars().take(32).collect();
        let mut line = format!("{name:<32} {process:>8} {launches:>10}");
        for count in counts {
            let _ = write!(line, " {count:>14}");
        }
        lines.push(line);
    }
    if kernels.len() > MOST_KERNELS {
        lines.push(format!("and {} more", kernels.len() - MOST_KERNELS));
    }
    lines.extend(collector.notices().into_iter().take(3));
    lines
        .iter()
        .map(|line| line.chars().take(width.max(20)).collect())
        .collect()
}
