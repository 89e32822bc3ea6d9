//! `kernels.csv`: a row a launch. What a mode does not know stays empty.

use std::io;

/// What is known of one launch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelRow {
    /// The number of the launch, from 0.
    pub launch: u64,
    /// The name of the kernel.
    pub kernel: String,
    /// The device.
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
    /// ncu: `sm__cycles_elapsed.max`.
    pub cycles: Option<u64>,
    /// ncu: `sm__cycles_active.sum`.
    pub active_cycles: Option<u64>,
    /// ncu: `sm__inst_executed.sum`.
    pub inst_executed: Option<u64>,
    /// ncu: `smsp__inst_issued.sum`.
    pub inst_issued: Option<u64>,
    /// ncu: `smsp__thread_inst_executed.sum`.
    pub thread_inst_executed: Option<u64>,
    /// ncu: `sm__warps_launched.sum`.
    pub warps_launched: Option<u64>,
    /// ncu: `l1tex__t_sectors.sum`.
    pub l1_sectors: Option<u64>,
    /// ncu: `l1tex__t_sectors_lookup_hit.sum`.
    pub l1_sector_hits: Option<u64>,
    /// ncu: `lts__t_sectors.sum`.
    pub l2_sectors: Option<u64>,
    /// ncu: `lts__t_sectors_lookup_hit.sum`.
    pub l2_sector_hits: Option<u64>,
    /// ncu: `lts__t_sectors_srcnode_gpc.sum` and `lts__t_sectors_srcunit_ltcfabric.sum` together.
    pub l2_sectors_of_kernel: Option<u64>,
    /// ncu: `lts__t_sectors_srcunit_tex.sum`.
    pub l2_sectors_of_sms: Option<u64>,
    /// ncu: `dram__bytes_read.sum`.
    pub dram_bytes_read: Option<u64>,
    /// ncu: `dram__bytes_write.sum`.
    pub dram_bytes_written: Option<u64>,
    /// ncu: `sm__warps_active.avg.pct_of_peak_sustained_active`, from 0 to 1.
    pub achieved_occupancy: Option<f64>,
    /// The instruction mix.
    pub mix: Option<InstructionMix>,
    /// Registers of a thread.
    pub registers: Option<u32>,
    /// Shared memory of a block in bytes, static and dynamic.
    pub shared_bytes: Option<u64>,
    /// The cycle of the SM clock in which it began.
    pub start_cycle: Option<u64>,
    /// Cycles of warps by what they waited for, in the order of [`STALL_COLUMNS`].
    pub stalls: Option<[u64; STALL_COLUMNS.len()]>,
    /// What was modelled: `timing` or `functional`.
    pub mode: String,
}

/// Columns of what warps did in the cycles in which they were resident; ncu counts the same as
/// `smsp__warps_issue_stalled_REASON.sum`. What no warp of the model waits for has no column.
pub const STALL_COLUMNS: [&str; 14] = [
    "stalled_selected",
    "stalled_not_selected",
    "stalled_wait",
    "stalled_long_scoreboard",
    "stalled_short_scoreboard",
    "stalled_math_pipe_throttle",
    "stalled_lg_throttle",
    "stalled_mio_throttle",
    "stalled_barrier",
    "stalled_membar",
    "stalled_branch_resolving",
    "stalled_no_instruction",
    "stalled_imc_miss",
    "stalled_sleeping",
];

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

/// Columns in their order; [`STALL_COLUMNS`] come after them.
pub const KERNEL_COLUMNS: &[&str] = &[
    "launch",
    "kernel",
    "gpu",
    "context",
    "stream",
    "grid",
    "block",
    "start_ns",
    "duration_ns",
    "cycles",
    "active_cycles",
    "inst_executed",
    "inst_issued",
    "thread_inst_executed",
    "warps_launched",
    "l1_sectors",
    "l1_sector_hits",
    "l2_sectors",
    "l2_sector_hits",
    "l2_sectors_of_kernel",
    "l2_sectors_of_sms",
    "dram_bytes_read",
    "dram_bytes_written",
    "achieved_occupancy",
    "fp32",
    "fp64",
    "integer",
    "control",
    "load_store",
    "other",
    "inactive",
    "registers",
    "shared_bytes",
    "mode",
    "start_cycle",
];

pub(super) fn to_csv<'row>(rows: impl IntoIterator<Item = &'row KernelRow>) -> io::Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(KERNEL_COLUMNS.iter().chain(&STALL_COLUMNS))?;
    for row in rows {
        writer.write_record(fields(row))?;
    }
    writer.into_inner().map_err(|error| error.into_error())
}

fn fields(row: &KernelRow) -> Vec<String> {
    let count = |value: Option<u64>| value.map(|value| value.to_string()).unwrap_or_default();
    let decimal = |value: Option<f64>| value.map(|value| format!("{value:.3}")).unwrap_or_default();
    let share = |part: fn(&InstructionMix) -> f64| decimal(row.mix.as_ref().map(part));
    let shape = |[x, y, z]: [u32; 3]| format!("{x}x{y}x{z}");
    let mut fields = vec![
        row.launch.to_string(),
        row.kernel.clone(),
        row.gpu.to_string(),
        row.context.to_string(),
        row.stream.to_string(),
        shape(row.grid),
        shape(row.block),
        decimal(row.start_ns),
        decimal(row.duration_ns),
        count(row.cycles),
        count(row.active_cycles),
        count(row.inst_executed),
        count(row.inst_issued),
        count(row.thread_inst_executed),
        count(row.warps_launched),
        count(row.l1_sectors),
        count(row.l1_sector_hits),
        count(row.l2_sectors),
        count(row.l2_sector_hits),
        count(row.l2_sectors_of_kernel),
        count(row.l2_sectors_of_sms),
        count(row.dram_bytes_read),
        count(row.dram_bytes_written),
        decimal(row.achieved_occupancy),
        share(|mix| mix.fp32),
        share(|mix| mix.fp64),
        share(|mix| mix.integer),
        share(|mix| mix.control),
        share(|mix| mix.load_store),
        share(|mix| mix.other),
        share(|mix| mix.inactive),
        count(row.registers.map(u64::from)),
        count(row.shared_bytes),
        row.mode.clone(),
        count(row.start_cycle),
    ];
    for index in 0..STALL_COLUMNS.len() {
        fields.push(count(row.stalls.map(|stalls| stalls[index])));
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_a_field_for_every_column_and_leaves_the_unknown_empty() {
        let row = KernelRow {
            kernel: "add, twice".into(),
            grid: [160, 1, 1],
            block: [256, 2, 1],
            start_ns: Some(1.5),
            inst_executed: Some(7),
            ..KernelRow::default()
        };
        assert_eq!(
            fields(&row).len(),
            KERNEL_COLUMNS.len() + STALL_COLUMNS.len()
        );
        let text = String::from_utf8(to_csv([&row]).unwrap()).unwrap();
        let (head, line) = text.split_once('\n').unwrap();
        assert!(head.starts_with(
            "launch,kernel,gpu,context,stream,grid,block,start_ns,duration_ns,cycles,active_cycles,"
        ));
        let known = "0,\"add, twice\",0,0,0,160x1x1,256x2x1,1.500,,,,7";
        let unknown = KERNEL_COLUMNS.len() + STALL_COLUMNS.len() - 12;
        assert_eq!(line.trim_end(), format!("{known}{}", ",".repeat(unknown)));
    }
}
