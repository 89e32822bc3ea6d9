//! Unified memory: the section `[uvm]` of a GPU file and its parts.
//!
//! A file need not have it: what it does not name has the values of the seed's simulator.

use crate::ConfigError;
use lockstep_units::{Bytes, Cycles, Duration};
use serde::{Deserialize, Serialize};

/// Managed memory: translation, faults, migration.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct UvmConfig {
    /// Device memory for managed pages; 0 for all that the device has.
    pub capacity: Bytes,
    /// Managed memory in percent of the device memory it gets, if that is to be less than it
    /// needs: 125 gives it four fifths; 100 leaves `capacity` to decide.
    pub oversubscription: u32,
    /// What becomes of managed pages when the host waits for the device: `lazy` leaves them where
    /// they are, `sync-flush` brings back what was written.
    pub host_access: String,
    /// Serving a fault of the host, transfers not included.
    pub host_fault: Duration,
    /// What the host takes for a block that nobody has touched (`first-touch` = `zero-fill`).
    pub host_populate: Duration,
    /// How often an SM says that it still uses a page; 0 for at every use.
    pub touch_interval: Cycles,
    /// Whether whole blocks and whole 2 MiB are mapped by one entry, and blocks side by side are one
    /// in the TLBs.
    pub promotion: bool,
    /// Whether allocations below 1 MiB lie side by side in 2 MiB that they share and come along
    /// with each other, as CUDA places them; else each has trees of its own, as UVMSmart gives it.
    pub packing: bool,
    /// What the device gets of memory that nobody has touched: `migrate` moves it from the host,
    /// `zero-fill` fills it with zeros on the device.
    pub first_touch: String,
    /// Seed of everything random.
    pub seed: u64,
    /// The TLBs.
    pub tlb: TlbConfig,
    /// The GMMU and its page walks.
    pub walk: WalkConfig,
    /// Far faults and the host runtime that serves them.
    pub fault: FaultConfig,
    /// What is brought along.
    pub prefetch: PrefetchConfig,
    /// What has to leave.
    pub evict: EvictConfig,
    /// The link between host and device.
    pub link: LinkConfig,
    /// Using pages where they are, over the link.
    pub zero_copy: ZeroCopyConfig,
    /// Pages that move to and fro.
    pub thrash: ThrashConfig,
}

/// The TLBs.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct TlbConfig {
    /// Entries of the L1 TLB of an SM.
    pub entries: u32,
    /// Ways of a set; 0 for one set.
    pub ways: u32,
    /// Misses of an SM that may be outstanding before its memory instructions wait (MSHRs).
    pub mshrs: u32,
    /// Entries of the L2 TLB, which SMs share; 0 for none.
    pub l2_entries: u32,
    /// Ways of its sets.
    pub l2_ways: u32,
    /// From a request to a hit in it.
    pub l2_latency: Cycles,
    /// What a change of the page table removes: `entry`, `range`, `whole`.
    pub shootdown: String,
    /// Which changes do: `unmap`, or `map` for new mappings as well.
    pub shootdown_on: String,
    /// Whether TLBs hear of changes themselves, so that nothing is ever removed for more than its
    /// own entry.
    pub coherent: bool,
    /// Whether a kernel of another context than the last finds empty TLBs: the page-table base
    /// was changed.
    pub flush_on_launch: bool,
}

/// The GMMU and its page walks.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct WalkConfig {
    /// From an SM to the GMMU and back, each; 0 for the latency of the interconnect.
    pub hop_latency: Cycles,
    /// `fixed` takes `latency`, `levels` reads one entry a level.
    pub mode: String,
    /// A walk.
    pub latency: Cycles,
    /// A walk that ends at an entry for 2 MiB.
    pub latency_large: Cycles,
    /// Page walkers: walks at a time; 0 for any number.
    pub walkers: u32,
    /// Walks that may begin in one cycle; 0 for any number. Faults that are found in the same cycle
    /// are planned together.
    pub walks_per_cycle: u32,
    /// Levels to an entry for 4 KiB or 64 KiB; one for 2 MiB is one level nearer.
    pub levels: u32,
    /// Reading one entry that is not in the walk cache.
    pub level_latency: Cycles,
    /// Upper entries that the walk cache holds.
    pub cache_entries: u32,
}

/// Far faults and the host runtime that serves them.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct FaultConfig {
    /// `replayable` lets an SM go on, `stall-sm` lets its TLB take no request until the page is
    /// there.
    pub mode: String,
    /// What serving costs: `additive`, `serial`, `batch`, `calibrated`.
    pub service: String,
    /// Serving one fault, or one batch.
    pub latency: Duration,
    /// From a fault to the host looking at the buffer (`batch`, `calibrated`).
    pub pickup: Duration,
    /// How long after a batch the host polls the buffer again at the earliest, while it need not be
    /// woken (`batch`, `calibrated`).
    pub poll_interval: Duration,
    /// What the GMMU takes to write an entry into the buffer; the host finds what is written when
    /// it looks (`batch`, `calibrated`).
    pub entry_interval: Duration,
    /// Faults that are served together (`batch`, `calibrated`).
    pub batch: u32,
    /// Faults that the buffer holds; those beyond are dropped and come again.
    pub buffer: u32,
    /// Entries that an SM puts into the buffer between two replays, one for each access, those
    /// beyond wait for the next; 0 for one for each page, any number (`batch`, `calibrated`).
    pub per_sm: u32,
    /// The same while the host has to be woken, if more.
    pub per_sm_asleep: u32,
    /// Whether every warp that waits for a page puts entries into the buffer, two loads of 128 B
    /// one and each store one; else only the instruction that asked first does, one for each 128 B.
    pub every_warp: bool,
    /// `calibrated`: a batch.
    pub batch_cost: Duration,
    /// `calibrated`: each entry of the fault buffer in it; several SMs may name one page.
    pub entry_cost: Duration,
    /// `calibrated`: each page that faulted in it.
    pub page_cost: Duration,
    /// `calibrated`: each KiB that moves.
    pub kib_cost: Duration,
    /// `calibrated`: each run of pages without gap that moves.
    pub run_cost: Duration,
    /// `calibrated`: each 2 MiB in it.
    pub block_cost: Duration,
    /// `calibrated`: each 2 MiB that is touched for the first time.
    pub new_block_cost: Duration,
    /// `calibrated`: each 2 MiB in which nothing moves, because all that comes is filled with zeros.
    pub fill_block_cost: Duration,
    /// `calibrated`: each KiB that is filled with zeros.
    pub fill_kib_cost: Duration,
    /// `calibrated`: for how long after a batch the host still polls for faults.
    pub poll_duration: Duration,
    /// `calibrated`: a fault that comes later than that, for which the host has to be woken.
    pub wake_cost: Duration,
    /// `calibrated`: a fault after which the host has to find its way again, besides.
    pub cold_cost: Duration,
    /// `calibrated`: how long there must have been no fault for that; the first of all counts.
    pub cold_after: Duration,
    /// Far faults under way; 0 for any number.
    pub mshrs: u32,
}

/// What is brought along.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct PrefetchConfig {
    /// Prefetcher by name.
    pub policy: String,
    /// Prefetcher from the first eviction on, by name.
    pub oversubscribed: String,
    /// Pages that `sequential` brings with each fault.
    pub ahead: u32,
    /// What the host does before a prefetch of the program begins.
    pub start_cost: Duration,
    /// What the host does for each 2 MiB that a program prefetches to the device.
    pub block_cost: Duration,
    /// The same, to the host, where pages have to be found for it.
    pub host_block_cost: Duration,
}

/// What has to leave.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct EvictConfig {
    /// Evictor by name.
    pub policy: String,
    /// Frames that are kept free, in percent.
    pub free_buffer: u32,
    /// Share of the list of candidates, from its old end, that is passed over, in percent.
    pub reserve: u32,
    /// Pages that were not written: `copy` moves them too, `drop` forgets them.
    pub clean: String,
}

/// The link between host and device.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct LinkConfig {
    /// Profile by name.
    pub profile: String,
    /// Bandwidth of one direction in GB/s; 0 for the profile's.
    pub gigabytes_per_second: u32,
    /// Whether the two directions do not wait for each other.
    pub duplex: bool,
    /// From an access over the link to its answer, without the data.
    pub remote_latency: Duration,
}

/// Using pages where they are, over the link.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct ZeroCopyConfig {
    /// `off`, `always`, `oversubscribed`, `adaptive`.
    pub mode: String,
    /// Uses of a block after which it moves.
    pub threshold: u32,
    /// What an eviction multiplies that by.
    pub penalty: u32,
}

/// Pages that move to and fro.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct ThrashConfig {
    /// `off`, or `driver`: the device has to wait for pages that thrash, and those that go on with
    /// it stay on the host for a while.
    pub policy: String,
    /// Moves of a page that are closer together count.
    pub lapse: Duration,
    /// So many in a row are thrashing.
    pub threshold: u32,
    /// How long the device waits for a page that thrashes.
    pub nap: Duration,
    /// After so many waits a page stays on the host.
    pub pin_threshold: u32,
    /// How long it stays.
    pub pin: Duration,
}

impl Default for UvmConfig {
    fn default() -> Self {
        Self {
            capacity: Bytes(0),
            oversubscription: 100,
            host_access: "lazy".into(),
            host_fault: Duration::microseconds(20),
            host_populate: Duration::ZERO,
            touch_interval: Cycles(1000),
            promotion: false,
            packing: false,
            first_touch: "migrate".into(),
            seed: 1,
            tlb: TlbConfig::default(),
            walk: WalkConfig::default(),
            fault: FaultConfig::default(),
            prefetch: PrefetchConfig::default(),
            evict: EvictConfig::default(),
            link: LinkConfig::default(),
            zero_copy: ZeroCopyConfig::default(),
            thrash: ThrashConfig::default(),
        }
    }
}

impl Default for TlbConfig {
    fn default() -> Self {
        Self {
            entries: 4096,
            ways: 0,
            mshrs: 64,
            l2_entries: 0,
            l2_ways: 16,
            l2_latency: Cycles(10),
            shootdown: "whole".into(),
            shootdown_on: "map".into(),
            coherent: false,
            flush_on_launch: false,
        }
    }
}

impl Default for WalkConfig {
    fn default() -> Self {
        Self {
            hop_latency: Cycles(0),
            mode: "fixed".into(),
            latency: Cycles(100),
            latency_large: Cycles(66),
            walkers: 0,
            walks_per_cycle: 0,
            levels: 5,
            level_latency: Cycles(100),
            cache_entries: 128,
        }
    }
}

impl Default for FaultConfig {
    fn default() -> Self {
        Self {
            mode: "replayable".into(),
            service: "serial".into(),
            latency: Duration::microseconds(45),
            pickup: Duration::microseconds(2),
            poll_interval: Duration::ZERO,
            entry_interval: Duration::ZERO,
            batch: 256,
            buffer: 4096,
            per_sm: 0,
            per_sm_asleep: 0,
            every_warp: false,
            batch_cost: Duration::nanoseconds(12_400),
            entry_cost: Duration::ZERO,
            page_cost: Duration::ZERO,
            kib_cost: Duration::nanoseconds(54),
            run_cost: Duration::ZERO,
            block_cost: Duration::ZERO,
            new_block_cost: Duration::microseconds(31),
            fill_block_cost: Duration::ZERO,
            fill_kib_cost: Duration::ZERO,
            poll_duration: Duration::ZERO,
            wake_cost: Duration::ZERO,
            cold_cost: Duration::microseconds(130),
            cold_after: Duration::microseconds(1_000_000),
            mshrs: 0,
        }
    }
}

impl Default for PrefetchConfig {
    fn default() -> Self {
        Self {
            policy: "tree".into(),
            oversubscribed: "tree".into(),
            ahead: 16,
            start_cost: Duration::ZERO,
            block_cost: Duration::ZERO,
            host_block_cost: Duration::ZERO,
        }
    }
}

impl Default for EvictConfig {
    fn default() -> Self {
        Self {
            policy: "lru-2m".into(),
            free_buffer: 0,
            reserve: 0,
            clean: "copy".into(),
        }
    }
}

impl Default for LinkConfig {
    fn default() -> Self {
        Self {
            profile: "pcie-3".into(),
            gigabytes_per_second: 0,
            duplex: true,
            remote_latency: Duration::nanoseconds(1200),
        }
    }
}

impl Default for ZeroCopyConfig {
    fn default() -> Self {
        Self {
            mode: "off".into(),
            threshold: 8,
            penalty: 8,
        }
    }
}

impl Default for ThrashConfig {
    fn default() -> Self {
        Self {
            policy: "off".into(),
            lapse: Duration::microseconds(500),
            threshold: 3,
            nap: Duration::microseconds(500),
            pin_threshold: 10,
            pin: Duration::microseconds(150_000),
        }
    }
}

/// Smallest device memory that managed pages can be given: two of the largest trees.
const LEAST_CAPACITY: u64 = 4 << 20;

impl UvmConfig {
    /// Refuses what no model can take. Policies are looked up by the model itself.
    ///
    /// # Errors
    /// The first key that is wrong, with its value and the reason.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.check_choices()?;
        self.check_bounds()?;
        if self.capacity.0 != 0 && self.capacity.0 < LEAST_CAPACITY {
            return Err(ConfigError::impossible(
                "uvm.capacity",
                self.capacity.0,
                format!(
                    "a transfer may need as much at once; at least {LEAST_CAPACITY} bytes, or 0"
                ),
            ));
        }
        Ok(())
    }

    fn check_choices(&self) -> Result<(), ConfigError> {
        let choices: [(&'static str, &str, &[&str]); 9] = [
            (
                "uvm.first-touch",
                &self.first_touch,
                &["migrate", "zero-fill"],
            ),
            (
                "uvm.host-access",
                &self.host_access,
                &["lazy", "sync-flush"],
            ),
            (
                "uvm.tlb.shootdown",
                &self.tlb.shootdown,
                &["entry", "range", "whole"],
            ),
            (
                "uvm.tlb.shootdown-on",
                &self.tlb.shootdown_on,
                &["unmap", "map"],
            ),
            ("uvm.walk.mode", &self.walk.mode, &["fixed", "levels"]),
            (
                "uvm.fault.mode",
                &self.fault.mode,
                &["replayable", "stall-sm"],
            ),
            ("uvm.evict.clean", &self.evict.clean, &["copy", "drop"]),
            (
                "uvm.zero-copy.mode",
                &self.zero_copy.mode,
                &["off", "always", "oversubscribed", "adaptive"],
            ),
            ("uvm.thrash.policy", &self.thrash.policy, &["off", "driver"]),
        ];
        for (key, found, known) in choices {
            if !known.contains(&found) {
                return Err(ConfigError::impossible(
                    key,
                    found,
                    format!("it must be one of {}", known.join(", ")),
                ));
            }
        }
        Ok(())
    }

    fn check_bounds(&self) -> Result<(), ConfigError> {
        let bounded = [
            ("uvm.tlb.entries", u64::from(self.tlb.entries), 1, 1 << 20),
            ("uvm.tlb.mshrs", u64::from(self.tlb.mshrs), 1, 1 << 16),
            (
                "uvm.tlb.l2-entries",
                u64::from(self.tlb.l2_entries),
                0,
                1 << 22,
            ),
            (
                "uvm.walk.cache-entries",
                u64::from(self.walk.cache_entries),
                0,
                1 << 16,
            ),
            ("uvm.walk.levels", u64::from(self.walk.levels), 2, 6),
            ("uvm.walk.latency", self.walk.latency.0, 1, 1 << 20),
            (
                "uvm.walk.latency-large",
                self.walk.latency_large.0,
                1,
                1 << 20,
            ),
            (
                "uvm.walk.level-latency",
                self.walk.level_latency.0,
                1,
                1 << 20,
            ),
            ("uvm.fault.batch", u64::from(self.fault.batch), 1, 1 << 20),
            ("uvm.fault.buffer", u64::from(self.fault.buffer), 1, 1 << 24),
            (
                "uvm.prefetch.ahead",
                u64::from(self.prefetch.ahead),
                0,
                1 << 16,
            ),
            (
                "uvm.evict.free-buffer",
                u64::from(self.evict.free_buffer),
                0,
                50,
            ),
            ("uvm.evict.reserve", u64::from(self.evict.reserve), 0, 99),
            (
                "uvm.oversubscription",
                u64::from(self.oversubscription),
                1,
                10_000,
            ),
        ];
        for (key, found, least, most) in bounded {
            if found < least || found > most {
                return Err(ConfigError::impossible(
                    key,
                    found,
                    format!("it must be from {least} to {most}"),
                ));
            }
        }
        Ok(())
    }
}
