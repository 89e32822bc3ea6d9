//! `kernels.csv`: a row a launch. What a mode does not know stays empty.
//!
//! Columns of counters and of gauges come from the table of counters (`lockstep_counters`); only what
//! a launch is, and not what it did, is named here.

use lockstep_counters::{COUNTERS, LAUNCH_GAUGES, LaunchCounters};
use std::io;

/// The counter that can be projected.
const CYCLES: &str = "cycles";

/// What is known of one launch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelRow {
    /// The number of the launch, from 0.
    pub launch: u64,
    /// The name of the kernel.
    pub kernel: String,
    /// The node, where there are several.
    pub node: Option<u32>,
    /// The device, by its number on its node.
    pub gpu: u32,
    /// The context.
    pub context: u64,
    /// The stream.
    pub stream: u64,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// When it began, in nanoseconds of simulated time.
    pub start_ns: Option<f64>,
    /// How long it took, in nanoseconds of simulated time.
    pub duration_ns: Option<f64>,
    /// What was counted, once it has ended.
    pub counters: Option<LaunchCounters>,
    /// Warps present in active cycles, of the most that fit, from 0 to 1.
    pub achieved_occupancy: Option<f64>,
    /// The instruction mix.
    pub mix: Option<InstructionMix>,
    /// Registers of a thread.
    pub registers: Option<u32>,
    /// Shared memory of a block in bytes, static and dynamic.
    pub shared_bytes: Option<u64>,
    /// What was modelled: `timing` or `functional`; `projected` if cycles of a functional launch were projected from
    /// timed ones.
    pub mode: String,
    /// Projected cycles.
    pub projected: Option<u64>,
    /// The cycle of the SM clock in which it began.
    pub start_cycle: Option<u64>,
    /// The number of the launch whose kernel launched it; none if the host did.
    pub parent: Option<u64>,
    /// The region of the program that it was in, or `outside`; empty if no region was asked for.
    pub region: String,
}

impl KernelRow {
    /// The device as the table names it: a number, with its node where there are several.
    fn gpu_name(&self) -> String {
        match self.node {
            Some(node) => format!("node {node}/gpu {}", self.gpu),
            None => self.gpu.to_string(),
        }
    }

    /// A counter by name, if it is known.
    pub fn counter(&self, name: &str) -> Option<u64> {
        let projected = self.projected.filter(|_| name == CYCLES);
        projected.or_else(|| self.counters.as_ref()?.get(name))
    }

    /// A gauge of the table by name, if it is known.
    fn gauge(&self, name: &str) -> Option<f64> {
        if name == "achieved_occupancy" {
            return self.achieved_occupancy;
        }
        let mix = self.mix.as_ref()?;
        Some(match name {
            "fp32" => mix.fp32,
            "fp64" => mix.fp64,
            "integer" => mix.integer,
            "control" => mix.control,
            "load_store" => mix.load_store,
            "other" => mix.other,
            "inactive" => mix.inactive,
            _ => return None,
        })
    }
}

/// Shares of the instructions executed, in percent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct InstructionMix {
    /// Single and half precision.
    pub fp32: f64,
    /// Double precision.
    pub fp64: f64,
    /// Integer and logic.
    pub integer: f64,
    /// Branches, calls, barriers of convergence.
    pub control: f64,
    /// Loads, stores, atomics.
    pub load_store: f64,
    /// Everything else.
    pub other: f64,
    /// Lanes that did not take part, of all lanes of all instructions.
    pub inactive: f64,
}

/// Columns that say which launch it is and when it ran.
const WHICH: [&str; 9] = [
    "launch",
    "kernel",
    "gpu",
    "context",
    "stream",
    "grid",
    "block",
    "start_ns",
    "duration_ns",
];

/// Columns that say what it was made of.
const MADE_OF: [&str; 6] = [
    "registers",
    "shared_bytes",
    "mode",
    "start_cycle",
    "parent",
    "region",
];

/// All columns in their order.
pub fn kernel_columns() -> impl Iterator<Item = &'static str> {
    let counted = COUNTERS.iter().chain(LAUNCH_GAUGES).map(|one| one.name);
    WHICH.into_iter().chain(counted).chain(MADE_OF)
}

pub(super) fn to_csv<'row>(rows: impl IntoIterator<Item = &'row KernelRow>) -> io::Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(kernel_columns())?;
    for row in rows {
        writer.write_record(fields(row))?;
    }
    writer.into_inner().map_err(|error| error.into_error())
}

/// A row, in the order of the columns.
pub(super) fn fields(row: &KernelRow) -> Vec<String> {
    let count = |value: Option<u64>| value.map(|value| value.to_string()).unwrap_or_default();
    let decimal = |value: Option<f64>| value.map(|value| format!("{value:.3}")).unwrap_or_default();
    let shape = |[x, y, z]: [u32; 3]| format!("{x}x{y}x{z}");
    let mut fields = vec![
        row.launch.to_string(),
        row.kernel.clone(),
        row.gpu_name(),
        row.context.to_string(),
        row.stream.to_string(),
        shape(row.grid),
        shape(row.block),
        decimal(row.start_ns),
        decimal(row.duration_ns),
    ];
    match &row.counters {
        Some(counters) => fields.extend(counters.all().map(|(metric, value)| {
            let projected = row.projected.filter(|_| metric.name == CYCLES);
            count(projected.or(value))
        })),
        None => fields.extend(COUNTERS.iter().map(|_| String::new())),
    }
    fields.extend(LAUNCH_GAUGES.iter().map(|one| decimal(row.gauge(one.name))));
    fields.extend([
        count(row.registers.map(u64::from)),
        count(row.shared_bytes),
        row.mode.clone(),
        count(row.start_cycle),
        count(row.parent),
        row.region.clone(),
    ]);
    fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_counters::Counters;

    #[test]
    fn a_row_has_a_field_for_every_column_and_leaves_the_unknown_empty() {
        let mut row = KernelRow {
            kernel: "add, twice".into(),
            grid: [160, 1, 1],
            block: [256, 2, 1],
            start_ns: Some(1.5),
            ..KernelRow::default()
        };
        let columns = kernel_columns().count();
        assert_eq!(fields(&row).len(), columns);
        row.counters = Some(LaunchCounters {
            values: Counters {
                inst_executed: 7,
                cycles: 9,
                ..Counters::default()
            },
            timed: false,
        });
        assert_eq!(fields(&row).len(), columns);
        let text = String::from_utf8(to_csv([&row]).unwrap()).unwrap();
        let (head, line) = text.split_once('\n').unwrap();
        assert!(head.starts_with(
            "launch,kernel,gpu,context,stream,grid,block,start_ns,duration_ns,cycles,active_cycles,"
        ));
        let known = "0,\"add, twice\",0,0,0,160x1x1,256x2x1,1.500,,,,7,,";
        assert!(line.starts_with(known), "{line}");
        row.node = Some(3);
        assert_eq!(fields(&row)[2], "node 3/gpu 0");
    }

    #[test]
    fn every_gauge_of_the_table_has_a_value() {
        let row = KernelRow {
            achieved_occupancy: Some(0.5),
            mix: Some(InstructionMix::default()),
            ..KernelRow::default()
        };
        for gauge in LAUNCH_GAUGES {
            assert!(row.gauge(gauge.name).is_some(), "{}", gauge.name);
        }
    }
}
