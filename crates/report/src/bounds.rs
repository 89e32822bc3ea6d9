//! The least time that each resource needs for what a kernel asked of it.
//!
//! What was counted, divided by what the GPU can do in a cycle ([`GpuLimits`]): the kernel cannot be
//! faster than the largest of these, whatever else changes. The quotient of a bound and the cycles
//! that passed is how much of the resource was used. Resources whose work is not counted apart
//! (tensor cores, the special function unit, links by kernel) have no bound.

use crate::limits::GpuLimits;
use lockstep_text::numbers::quotient;
use serde::Serialize;

/// Sums of counters by name, as far as they are known.
type Counts<'sums> = &'sums dyn Fn(&str) -> Option<f64>;

/// One resource of a GPU.
pub struct Resource {
    /// Its name.
    pub name: &'static str,
    /// What to do about it.
    pub remedy: &'static str,
    /// Settings of the configuration that take the limit away, as `--set` takes them; none where no setting does.
    pub settings: &'static [&'static str],
    /// Cycles it takes, for the sums of the counters; `None` where they are not known.
    cycles: fn(Counts<'_>, &GpuLimits) -> Option<f64>,
}

/// Bytes of a sector.
pub const SECTOR: f64 = 32.0;

/// All of them; the order is that of the documentation.
pub const RESOURCES: &[Resource] = &[
    Resource {
        name: "DRAM bandwidth",
        remedy: "move fewer bytes: keep data in L2 or shared memory between uses, use smaller types, read each line once",
        settings: &["dram.bytes-per-cycle=1024 B/cycle"],
        cycles: |get, limits| {
            let read = get("dram_bytes_read")? / limits.dram_bytes;
            Some(read + get("dram_bytes_written")? / limits.dram_write_bytes)
        },
    },
    Resource {
        // What SMs ask for, and what has to be written into a slice when it comes from DRAM.
        name: "L2 slices",
        remedy: "ask L2 for less: reuse data in L1, shared memory or registers, and let each warp touch whole lines",
        settings: &[
            "l2.bytes-per-cycle=1024 B/cycle",
            "l2.sector-read-time=0 ps",
            "l2.sector-write-time=0 ps",
        ],
        cycles: |get, limits| {
            let sectors = get("l2_sectors_of_sms").or_else(|| get("l2_sectors"))?;
            let filled = get("dram_bytes_read").unwrap_or(0.0) / limits.l2_fill_bytes;
            Some(sectors * SECTOR / limits.l2_bytes + filled)
        },
    },
    Resource {
        name: "L1TEX wavefronts",
        remedy: "need fewer wavefronts: let neighbouring lanes access neighbouring addresses, avoid bank conflicts, use wider accesses",
        settings: &[],
        cycles: |get, limits| Some(get("l1_wavefronts")? / limits.l1_wavefronts),
    },
    Resource {
        name: "issue slots",
        remedy: "execute fewer instructions: hoist common work, use wider loads and fused operations, avoid divergence",
        settings: &[],
        cycles: |get, limits| Some(get("inst_executed")? / limits.issue),
    },
    Resource {
        name: "FP32 units",
        remedy: "use tensor cores where the arithmetic is a matrix product, or fewer operations",
        settings: &[],
        cycles: |get, limits| Some(get("inst_fp32")? / limits.fp32),
    },
    Resource {
        name: "FP64 units",
        remedy: "use single precision where the result allows it",
        settings: &["sm.interval.double=1 cycle"],
        cycles: |get, limits| Some(get("inst_fp64")? / limits.fp64),
    },
    Resource {
        name: "integer units",
        remedy: "simplify index arithmetic: 32-bit indices, strength reduction, unrolled loops",
        settings: &[],
        cycles: |get, limits| Some(get("inst_integer")? / limits.integer),
    },
    Resource {
        name: "block dispatch",
        remedy: "launch fewer blocks that each do more: a loop over several elements a thread",
        settings: &["dispatch.block-interval=0 ps"],
        cycles: |get, limits| Some(get("blocks_completed")? * limits.block_cycles),
    },
    Resource {
        name: LAUNCH,
        remedy: "launch less often: fuse kernels, give each more work",
        settings: &[
            "launch.start-latency=0 cycles",
            "launch.start-overlap=0 cycles",
            "launch.finish-latency=0 cycles",
        ],
        cycles: |get, limits| Some(get("launches")? * limits.launch_cycles),
    },
];

/// The cost of launching, which is a resource of its own.
pub const LAUNCH: &str = "launch latency";

/// One resource and one kernel.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bound {
    /// The resource.
    pub resource: &'static str,
    /// Cycles that it needs at least.
    pub cycles: f64,
    /// Of the cycles that passed, from 0 to 1.
    pub share: f64,
}

/// The bounds of a kernel, the largest first. `get` knows the counters and `launches`.
pub fn bounds(get: Counts<'_>, limits: &GpuLimits) -> Vec<Bound> {
    let Some(passed) = get("cycles").filter(|cycles| *cycles > 0.0) else {
        return Vec::new();
    };
    let mut bounds: Vec<Bound> = RESOURCES
        .iter()
        .filter_map(|resource| {
            let cycles = (resource.cycles)(get, limits)?;
            Some(Bound {
                resource: resource.name,
                cycles,
                share: quotient(cycles, passed)?,
            })
        })
        .collect();
    bounds.sort_by(|a, b| b.cycles.total_cmp(&a.cycles));
    bounds
}

/// What to do about a resource.
pub fn remedy(name: &str) -> &'static str {
    named(name).map_or("", |resource| resource.remedy)
}

/// Settings that take a resource's limit away.
pub fn settings(name: &str) -> &'static [&'static str] {
    named(name).map_or(&[], |resource| resource.settings)
}

fn named(name: &str) -> Option<&'static Resource> {
    RESOURCES.iter().find(|resource| resource.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_take_a_limit_away_leave_little_of_its_bound() {
        let counts = |name: &str| match name {
            "cycles" => Some(1e6),
            "launches" => Some(100.0),
            _ => Some(1e9),
        };
        let limits = |settings: &[&str]| {
            let config = lockstep_config::load(Some("h200"), settings);
            GpuLimits::of(&config.unwrap_or_else(|error| panic!("{settings:?}: {error}")))
        };
        let plain = limits(&[]);
        for resource in RESOURCES {
            let before = (resource.cycles)(&counts, &plain).unwrap();
            let after = (resource.cycles)(&counts, &limits(resource.settings)).unwrap();
            match resource.settings {
                [] => assert_eq!(after, before, "{}", resource.name),
                _ => assert!(after <= before / 2.0, "{}: {after}", resource.name),
            }
        }
    }
}
