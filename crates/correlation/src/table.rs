//! The comparison as a CSV table: a row for each kernel and counter.

use crate::compare::Report;
use std::io;

/// The table.
pub fn csv(report: &Report) -> io::Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record([
        "program",
        "size",
        "set",
        "kernel",
        "launches",
        "net_cycles",
        "counter",
        "hardware",
        "hardware_least",
        "hardware_most",
        "simulated",
        "error",
    ])?;
    for program in &report.programs {
        for kernel in &program.kernels {
            for (counter, pair) in &kernel.counters {
                let number = |value: f64| {
                    format!("{value:.6}")
                        .trim_end_matches('0')
                        .trim_end_matches('.')
                        .to_owned()
                };
                writer.write_record([
                    program.case.program.clone(),
                    program.case.size.clone(),
                    program.set.name().into(),
                    kernel.name.clone(),
                    kernel.launches.to_string(),
                    number(kernel.net_cycles),
                    (*counter).into(),
                    number(pair.hardware.median()),
                    number(pair.hardware.least()),
                    number(pair.hardware.most()),
                    number(pair.simulated),
                    number(pair.error),
                ])?;
            }
        }
    }
    writer.into_inner().map_err(csv::IntoInnerError::into_error)
}
