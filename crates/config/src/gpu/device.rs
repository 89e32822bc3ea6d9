//! The section `[device]`: the chip as a whole.

use crate::ComputeCapability;
use crate::limits::Limit;
use lockstep_units::{Bytes, Duration, Hertz};
use serde::{Deserialize, Serialize};

/// The chip as a whole.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DeviceConfig {
    /// The name that a program reads.
    pub name: String,
    /// Instruction set and feature level.
    pub compute_capability: ComputeCapability,
    /// Streaming multiprocessors that are enabled.
    pub sms: u32,
    /// Graphics processing clusters; a thread-block cluster stays inside one.
    pub gpcs: u32,
    /// Which units of the chip are disabled, as a file of `configs/gpus/floorsweeping`; the keys that
    /// such a file has lie below those of the file that names it.
    #[serde(default = "nothing")]
    pub floorsweeping: String,
    /// TPCs of each GPC. SMs are numbered in rounds: a TPC of each GPC that has one left. GPCs beyond
    /// the list all have the same number.
    #[serde(default)]
    pub gpc_tpcs: Vec<u32>,
    /// The GPC of each TPC, where that is known one by one; TPCs that it does not name are as above.
    #[serde(default)]
    pub gpc_of_tpc: Vec<u32>,
    /// Clock of SMs.
    pub clock: Hertz,
    /// By how much `%globaltimer` advances at a time: whole nanoseconds, 1 ns for as fine as it is
    /// written.
    #[serde(default = "one_nanosecond")]
    pub globaltimer_resolution: Duration,
    /// Memory that a program can see and allocate from.
    pub memory: Bytes,
    /// Part of `memory` that the driver keeps for a context.
    pub reserved_memory: Bytes,
    /// Clock of the memory interface as a program reads it; the data rate is twice this.
    pub memory_clock: Hertz,
    /// Width of the memory interface in bits, as a program reads it.
    pub memory_bus_width: u32,
    /// Single to double precision throughput, as a program reads it.
    pub single_to_double_ratio: u32,
    /// Whether memory errors are corrected, as a program reads it.
    pub ecc: bool,
}

/// The finest step of `%globaltimer`.
pub(super) fn one_nanosecond() -> Duration {
    Duration::nanoseconds(1)
}

fn nothing() -> String {
    "none".into()
}

/// SMs of a TPC.
const SMS_PER_TPC: u32 = 2;

impl DeviceConfig {
    /// The GPC of each TPC: as the GPU file names it, else in rounds over the GPCs, each as long as it has
    /// TPCs left.
    #[must_use]
    pub fn gpcs_of_tpcs(&self) -> Vec<u32> {
        let gpcs = self.gpcs.max(1);
        let tpcs = self.sms.div_ceil(SMS_PER_TPC) as usize;
        let sizes = &self.gpc_tpcs[..self.gpc_tpcs.len().min(gpcs as usize)];
        let largest = sizes.iter().copied().max().unwrap_or(0);
        let rounds = (0..largest).flat_map(|round| {
            (0..gpcs).filter(move |gpc| sizes.get(*gpc as usize).is_some_and(|size| *size > round))
        });
        let mut of_tpcs: Vec<u32> = rounds.chain((0..gpcs).cycle()).take(tpcs).collect();
        for (gpc, known) in of_tpcs.iter_mut().zip(&self.gpc_of_tpc) {
            *gpc = *known;
        }
        of_tpcs
    }

    pub(super) fn limits(&self) -> Vec<Limit> {
        vec![
            Limit::new("device.sms", self.sms).from(1).to(4096),
            Limit::new("device.gpcs", self.gpcs).to(4096),
            Limit::new("device.memory", self.memory.0)
                .from(1)
                .to(1 << 40),
        ]
    }
}
