//! What a rank counted in every interval, of its `series.csv`, whose rows are sums of each kernel since its beginning.

use super::rank::Rank;
use crate::error::ReportError;
use lockstep_counters::COUNTERS;
use std::collections::BTreeMap;

/// Columns that say whose a row is.
const KEYS: [&str; 5] = ["gpu", "process", "context", "stream", "kernel"];

/// The length of the only interval of a rank, in nanoseconds.
const ALONE: u64 = 1_000_000;

/// What a rank counted within an interval, on the clock of the job.
pub(super) struct RankSample {
    pub begin: u64,
    pub end: u64,
    /// In the order of the table of counters.
    pub counters: [u64; COUNTERS.len()],
}

/// Reads them, in the order of time.
pub(super) fn read(rank: &Rank) -> Result<Vec<RankSample>, ReportError> {
    let Some((head, rows)) = rank.table("series.csv")? else {
        return Ok(Vec::new());
    };
    let place = |name: &str| head.iter().position(|one| one == name);
    let Some(time) = place("time_ns") else {
        let because = "its head has no `time_ns`";
        let path = rank.path.join("series.csv");
        return Err(ReportError::malformed(&path, because));
    };
    let keys = KEYS.map(place);
    let counters: Vec<(usize, usize)> = COUNTERS
        .iter()
        .enumerate()
        .filter_map(|(counter, metric)| Some((counter, place(metric.name)?)))
        .collect();
    let mut sums: BTreeMap<[String; KEYS.len()], [u64; COUNTERS.len()]> = BTreeMap::new();
    let mut grown: BTreeMap<u64, [u64; COUNTERS.len()]> = BTreeMap::new();
    for row in &rows {
        let Some(time) = row.get(time).and_then(|text| text.parse().ok()) else {
            continue;
        };
        let count = |place: usize| row.get(place).and_then(|text| text.parse::<u64>().ok());
        // Rows of gauges have no counters.
        if counters.iter().all(|(_, place)| count(*place).is_none()) {
            continue;
        }
        let key = keys.map(|place| place.and_then(|place| row.get(place)).unwrap_or("").into());
        let sums = sums.entry(key).or_insert([0; COUNTERS.len()]);
        let grown = grown.entry(time).or_insert([0; COUNTERS.len()]);
        for (counter, place) in &counters {
            if let Some(now) = count(*place) {
                let more = now.saturating_sub(sums[*counter]);
                grown[*counter] = grown[*counter].saturating_add(more);
                sums[*counter] = sums[*counter].max(now);
            }
        }
    }
    // How long the first one was is not known: as long as the second.
    let mut ends = grown.keys().copied();
    let lengths = ends.next().zip(ends.next());
    let length = lengths.map_or(ALONE, |(first, second)| second - first);
    let mut begin: Option<u64> = None;
    let sample = |(end, counters): (u64, _)| {
        let begin = begin.replace(end).unwrap_or(end.saturating_sub(length));
        RankSample {
            begin: rank.aligned(begin),
            end: rank.aligned(end),
            counters,
        }
    };
    Ok(grown.into_iter().map(sample).collect())
}
