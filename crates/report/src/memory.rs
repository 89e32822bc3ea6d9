//! Caches, DRAM and links over a whole run, from its statistics.

use lockstep_run_folder::Statistics;
use lockstep_text::numbers::quotient;
use serde::Serialize;

/// Picoseconds of a nanosecond: links count their time in the first, runs in the second.
const PICOSECONDS: f64 = 1e3;

/// What the parts of the memory system did in a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RunMemory {
    /// L1 and L2 by kind of access.
    pub caches: Vec<CacheAccesses>,
    /// DRAM accesses that found their row open, from 0 to 1.
    pub dram_row_hit_rate: Option<f64>,
    /// The most sectors on their way to one SM at once.
    pub most_sectors_in_flight: Option<u64>,
    /// Links by kind.
    pub links: Vec<LinkUse>,
}

/// One kind of access to one level of cache.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CacheAccesses {
    /// `L1` or `L2`.
    pub cache: &'static str,
    /// The kind of access.
    pub access: String,
    /// Sectors looked up.
    pub sectors: u64,
    /// Those that were there, from 0 to 1.
    pub hit_rate: f64,
    /// Those that were on their way already, from 0 to 1.
    pub hit_on_miss_rate: f64,
}

/// The links of one kind, all together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkUse {
    /// What they carry and whose they are.
    pub name: String,
    /// How many there are.
    pub links: u64,
    /// Bytes that left.
    pub bytes: u64,
    /// Busy time of the busiest one, of the time of all kernels, from 0 to 1.
    pub busiest: Option<f64>,
    /// How long a packet waited for others before it left, in nanoseconds.
    pub wait_ns: Option<f64>,
}

/// Of a run whose kernels took so long together.
pub fn memory(statistics: &Statistics, kernel_ns: f64) -> RunMemory {
    let mut caches = cache(statistics, "L1", "gpu */sm/*/l1/");
    caches.extend(cache(statistics, "L2", "gpu */slice/*/l2/"));
    let sum = |kind: &str, name: &str| statistics.get(kind, name).map(|found| found.sum);
    let rows = sum("gpu */slice/*", "row_hits").zip(sum("gpu */slice/*", "row_misses"));
    RunMemory {
        caches,
        dram_row_hit_rate: rows
            .and_then(|(hits, misses)| quotient(hits as f64, hits as f64 + misses as f64)),
        most_sectors_in_flight: statistics
            .get("gpu */sm/*/mshr", "peak_sectors")
            .map(|found| found.largest),
        links: links(statistics, kernel_ns),
    }
}

fn cache(statistics: &Statistics, cache: &'static str, prefix: &str) -> Vec<CacheAccesses> {
    let mut all: Vec<CacheAccesses> = statistics
        .kinds(prefix)
        .into_iter()
        .filter_map(|kind| {
            let sum = |name: &str| Some(statistics.get(kind, name)?.sum as f64);
            let (hits, late) = (sum("hits")?, sum("hits_on_miss")?);
            let sectors = hits + late + sum("sector_misses")? + sum("line_misses")?;
            Some(CacheAccesses {
                cache,
                access: kind.strip_prefix(prefix)?.replace('_', " "),
                sectors: sectors as u64,
                hit_rate: quotient(hits, sectors)?,
                hit_on_miss_rate: quotient(late, sectors)?,
            })
        })
        .collect();
    all.sort_by_key(|one| std::cmp::Reverse(one.sectors));
    all
}

fn links(statistics: &Statistics, kernel_ns: f64) -> Vec<LinkUse> {
    let prefix = "gpu */link/";
    let mut all: Vec<LinkUse> = statistics
        .kinds(prefix)
        .into_iter()
        .filter_map(|kind| {
            let bytes = statistics.get(kind, "bytes")?;
            let packets = statistics.get(kind, "packets")?;
            let (busy, wait) = (statistics.get(kind, "busy"), statistics.get(kind, "wait"));
            let name = kind.strip_prefix(prefix)?.trim_end_matches(['*', ' ']);
            Some(LinkUse {
                name: name.replace('/', " of "),
                links: bytes.components,
                bytes: bytes.sum,
                busiest: busy
                    .and_then(|busy| quotient(busy.largest as f64 / PICOSECONDS, kernel_ns)),
                wait_ns: wait
                    .and_then(|wait| quotient(wait.sum as f64 / PICOSECONDS, packets.sum as f64)),
            })
        })
        .filter(|link| link.bytes > 0)
        .collect();
    all.sort_by_key(|link| std::cmp::Reverse(link.bytes));
    all
}
