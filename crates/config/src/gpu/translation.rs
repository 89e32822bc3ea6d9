//! The section `[translation]`: the TLBs of device memory.

use crate::limits::Limit;
use lockstep_units::{Bytes, Cycles};
use serde::{Deserialize, Serialize};

/// Translation of device memory on the way from an SM to L2. Managed memory has its own, in `[uvm]`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct TranslationConfig {
    /// Memory that one entry of the page table maps.
    pub page: Bytes,
    /// What the first touch of a page by an SM takes: a walk through tables that no cache has. One at a time for each SM,
    /// and none if kernels find empty caches (`--cold-caches`).
    pub first_touch_latency: Cycles,
    /// Entries of the uTLB of an SM; 0 makes translation free.
    pub micro_tlb_entries: u32,
    /// Memory that one of them covers.
    pub micro_tlb_reach: Bytes,
    /// What a miss in the uTLB adds if the TLB of the GPC has the entry.
    pub micro_tlb_miss_latency: Cycles,
    /// Between two misses of an SM's uTLB.
    pub micro_tlb_miss_interval: Cycles,
    /// Entries of the TLB of a GPC, of which every SM has a copy.
    pub gpc_tlb_entries: u32,
    /// Memory that one of them covers.
    pub gpc_tlb_reach: Bytes,
    /// What a miss in the TLB of the GPC adds: the way to the GMMU, a page walk, and back.
    pub walk_latency: Cycles,
    /// Between two walks for one SM.
    pub walk_interval: Cycles,
}

impl Default for TranslationConfig {
    fn default() -> Self {
        Self {
            page: Bytes(2 << 20),
            first_touch_latency: Cycles(0),
            micro_tlb_entries: 0,
            micro_tlb_reach: Bytes(2 << 20),
            micro_tlb_miss_latency: Cycles(0),
            micro_tlb_miss_interval: Cycles(0),
            gpc_tlb_entries: 1,
            gpc_tlb_reach: Bytes(2 << 20),
            walk_latency: Cycles(0),
            walk_interval: Cycles(0),
        }
    }
}

impl TranslationConfig {
    pub(super) fn limits(&self) -> Vec<Limit> {
        vec![
            Limit::new("translation.page", self.page.0)
                .from(128)
                .power_of_two(),
            Limit::new("translation.micro-tlb-entries", self.micro_tlb_entries).to(1 << 16),
            Limit::new("translation.micro-tlb-reach", self.micro_tlb_reach.0)
                .from(128)
                .power_of_two(),
            Limit::new("translation.gpc-tlb-entries", self.gpc_tlb_entries)
                .from(1)
                .to(1 << 20),
            Limit::new("translation.gpc-tlb-reach", self.gpc_tlb_reach.0)
                .from(self.micro_tlb_reach.0)
                .power_of_two(),
        ]
    }
}
