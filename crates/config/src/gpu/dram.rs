//! The section `[dram]`: the memory behind the L2 slices.

use crate::limits::Limit;
use lockstep_units::{Bytes, BytesPerCycle, Cycles, Duration, Hertz};
use serde::{Deserialize, Serialize};

/// The memory behind the L2 slices.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DramConfig {
    /// The memory devices, as a file of `configs/drams` or a path; its keys lie below those of the file
    /// that names it.
    pub device: String,
    /// Independent channels; slices are divided evenly between them.
    pub channels: u32,
    /// Clock of a channel.
    pub clock: Hertz,
    /// Bytes that a channel moves in one of its cycles.
    pub bytes_per_cycle: BytesPerCycle,
    /// Bytes of one access.
    pub burst: Bytes,
    /// Model of a channel, by name.
    pub back_end: String,
    /// Requests of a slice that its channel has accepted and not done yet; a further one is refused until one
    /// is done, and waits in its MSHR or among the lines that are written back. 0 for any number.
    #[serde(default)]
    pub queue: u32,
    /// From a miss in the slice to its data, without contention and with the bank's row closed, in
    /// SM cycles.
    pub latency: Cycles,
    /// Share of the peak that a stream of accesses in one direction reaches, in percent.
    pub efficiency: u32,
    /// The same for what is written; 0 if it is no other.
    #[serde(default)]
    pub write_efficiency: u32,
    /// What turning the bus from reads to writes or back costs a burst, on average (back end `simple`).
    pub turnaround: Duration,
    /// How long a refresh of a channel takes (tRFC of the back end `simple`).
    pub refresh_time: Duration,
    /// Between the beginnings of two of them (tREFI); 0 for none.
    pub refresh_interval: Duration,
    /// Groups of channels that are refreshed together, as those of a stack are; 0 if each channel is
    /// refreshed by itself.
    pub refresh_groups: u32,
    /// Memory of a group that is refreshed together: banks take turns, and so much lies in the same
    /// bank of all channels. 0 if a refresh stops all banks.
    #[serde(default)]
    pub refresh_span: Bytes,
    /// Parts of a channel that are refreshed apart. With two, the halves of a line lie in
    /// different ones, and the bus serves one part while the other is refreshed.
    pub pseudo_channels: u32,
    /// Between two activates behind a slice, whatever their banks (tRRD of the back end `simple`).
    pub activate_interval: Duration,
    /// Banks of the part of memory that is behind a slice.
    pub banks: u32,
    /// Bytes of the row buffer of a bank.
    pub row_buffer: Bytes,
    /// What an access saves if its row is open.
    pub row_hit_savings: Duration,
    /// Between two activates of one bank (tRC of the back end `simple`).
    pub row_cycle_time: Duration,
    /// Command timing, for the back ends `timing` and `timing-in-order`.
    pub command_timing: CommandTimingConfig,
}

/// Command timing of the memory devices under JEDEC's names, for the back ends `timing` and
/// `timing-in-order`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CommandTimingConfig {
    /// Activate to column command.
    #[serde(rename = "tRCD")]
    pub t_rcd: Duration,
    /// Column command to data.
    #[serde(rename = "tCL")]
    pub t_cl: Duration,
    /// Activate to activate in one bank.
    #[serde(rename = "tRC")]
    pub t_rc: Duration,
    /// Read to precharge.
    #[serde(rename = "tRTP")]
    pub t_rtp: Duration,
    /// Precharge to activate.
    #[serde(rename = "tRP")]
    pub t_rp: Duration,
    /// Activate to activate in different banks.
    #[serde(rename = "tRRD")]
    pub t_rrd: Duration,
    /// Window of four activates.
    #[serde(rename = "tFAW")]
    pub t_faw: Duration,
    /// Column to column command in one bank group.
    #[serde(rename = "tCCDL")]
    pub t_ccdl: Duration,
    /// Write data to precharge.
    #[serde(rename = "tWR")]
    pub t_wr: Duration,
    /// Write data to read command; the model takes the same from reads to writes.
    #[serde(rename = "tWTR")]
    pub t_wtr: Duration,
    /// Between two refresh commands; 0 for none.
    #[serde(rename = "tREFI")]
    pub t_refi: Duration,
    /// How long a refresh takes.
    #[serde(rename = "tRFC")]
    pub t_rfc: Duration,
}

impl DramConfig {
    pub(super) fn limits(&self) -> Vec<Limit> {
        vec![
            Limit::new("dram.channels", self.channels).from(1).to(4096),
            Limit::new("dram.queue", self.queue).to(1 << 16),
            Limit::new("dram.banks", self.banks).from(1).to(1024),
            Limit::new("dram.row-buffer", self.row_buffer.0)
                .from(1)
                .power_of_two(),
            Limit::new("dram.burst", self.burst.0)
                .from(1)
                .power_of_two(),
            Limit::new("dram.efficiency", self.efficiency)
                .from(1)
                .to(100),
            Limit::new("dram.write-efficiency", self.write_efficiency).to(100),
        ]
    }
}
