//! Divides the counters of one GPU among the kernels that ran on it.
//!
//! A sample says how much each counter of the whole GPU grew in an interval. Which kernels ran then
//! is known in one of two ways:
//!
//! - Kernels timed by the device: each gets a part by the time that it overlaps the interval.
//! - Launches known by their host time only: the device starts warps in the order of launches, and
//!   the sampled `warps_launched` says how many, so the queue of launches is worked off by that
//!   count. A launch cannot start before the host made it: both clocks are the same. A kernel that
//!   started no warp in an interval may still be running in it: it keeps what others cannot explain.
//!
//! Inside an interval, parts follow what each kernel is known to do per warp (or per nanosecond);
//! that is learned as samples come ([`super::habits`]). A sample with one kernel in it is exact, any
//! other estimated, and parts always add up to the whole. Work that no launch explains goes to the
//! kernel `(other)`.
//!
//! While several streams, contexts or processes are at work at once, the order of launches says
//! little; then marks tell how far each stream had come, and [`super::sharing`] divides whole runs
//! of intervals. Every kernel gets the warps that were launched; warps beyond those were restored
//! after a context switch (the hardware counts them again) and go to `(other)`.

#[cfg(test)]
mod recorded;
mod shared;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::habits::Habits;
use super::rates::Rates;
use super::rows::{Key, LaunchRow};

/// One interval of a whole GPU.
#[derive(Clone, Debug)]
pub struct DeviceSample {
    /// Nanoseconds since 1970.
    pub begin: u64,
    /// Nanoseconds since 1970.
    pub end: u64,
    /// Growth of each counter.
    pub growth: Vec<Option<u64>>,
    /// Samples before it are missing.
    pub after_gap: bool,
}

/// The part of one key in one interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Whose.
    pub key: Key,
    /// No other key had a part.
    pub exact: bool,
    /// Estimated while several streams, contexts or processes were at work ([`DOUBT`]).
    pub shared: bool,
    /// Its part of each counter.
    pub growth: Vec<Option<u64>>,
}

/// How far the part of a stream may be off while the GPU is shared, in parts of what the whole GPU did
/// in the intervals that it shared. Of all streams recorded on an H200 none was off by so much
/// (`recorded`); kernels of one stream are told apart less well.
pub const DOUBT: f64 = 0.08;

/// Where a launch stands in the queue.
type Place = (u64, u64);

/// A stream: its process, context and number.
type Lane = (u32, u32, u32);

fn lane(key: &Key) -> Lane {
    (key.process, key.context, key.stream)
}

/// Launches of a stream up to `launch` were over at `end`, and not all of them at `begin`.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    /// Number of the launch.
    pub launch: u64,
    /// Nanoseconds since 1970.
    pub begin: u64,
    /// Nanoseconds since 1970.
    pub end: u64,
}

/// A launch on its way through the device.
struct Queued {
    row: LaunchRow,
    timed: bool,
    /// Warps that the device has not started yet.
    left: u64,
    begun: bool,
}

/// Warps started in one or more intervals, and everything they did.
struct Episode {
    bases: Vec<(Key, f64)>,
    growth: Vec<Option<u64>>,
    intervals: u32,
}

/// Longer episodes are learned from before they are over.
const LONGEST_EPISODE: u32 = 8;

/// The work of one GPU.
pub struct Attribution {
    gpu: Arc<str>,
    counters: usize,
    /// Place of `warps_launched` among the counters.
    warps: Option<usize>,
    /// By host time, then by arrival.
    queue: BTreeMap<Place, Queued>,
    arrivals: u64,
    /// The launch that started warps last, and may still run.
    running: Option<(Place, Queued)>,
    habits: Habits,
    /// What kernels were counted to do before.
    rates: Rates,
    episode: Option<Episode>,
    /// Samples since the device last did anything.
    idle: u32,
    /// Launches of each stream in the queue.
    lanes: BTreeMap<Lane, usize>,
    marks: BTreeMap<Lane, Vec<Mark>>,
    /// What intervals of several streams told.
    learned: shared::Learned,
}

/// After so many samples without any work, launches made before them are over, whatever the count
/// of warps says: counts may be missing from moments in which sampling was stopped.
const IDLE: u32 = 3;
/// Launches beyond this wait for samples that do not come: they are let go without counts.
const LONGEST_QUEUE: usize = 1 << 20;

impl Attribution {
    /// Of the GPU called `gpu`, with so many counters; `warps` is the place of `warps_launched`.
    pub fn new(gpu: Arc<str>, counters: usize, warps: Option<usize>) -> Self {
        Self {
            gpu,
            counters,
            warps,
            queue: BTreeMap::new(),
            arrivals: 0,
            running: None,
            habits: Habits::new(counters),
            rates: Rates::default(),
            episode: None,
            idle: 0,
            lanes: BTreeMap::new(),
            marks: BTreeMap::new(),
            learned: shared::Learned::default(),
        }
    }

    /// What kernels do was counted before.
    pub fn know(&mut self, rates: Rates) {
        self.rates = rates;
    }

    fn enqueue(&mut self, place: Place, one: Queued) {
        *self.lanes.entry(lane(&one.row.key)).or_default() += 1;
        self.queue.insert(place, one);
    }

    fn dequeued(&mut self, one: &Queued) {
        let lane = lane(&one.row.key);
        if let Some(count) = self.lanes.get_mut(&lane) {
            *count -= 1;
            if *count == 0 {
                self.lanes.remove(&lane);
            }
        }
    }

    /// A launch was made. Launches may come a little out of order.
    pub fn launched(&mut self, row: LaunchRow, timed: bool, done: &mut Vec<LaunchRow>) {
        let volume = |sizes: [u32; 3]| sizes.iter().map(|size| u64::from(*size)).product::<u64>();
        let warps = volume(row.grid) * volume(row.block).div_ceil(32);
        let place = (row.begin, self.arrivals);
        self.arrivals += 1;
        self.enqueue(
            place,
            Queued {
                row,
                timed,
                left: warps,
                begun: false,
            },
        );
        if self.queue.len() > LONGEST_QUEUE
            && let Some((_, one)) = self.queue.pop_first()
        {
            self.dequeued(&one);
            done.push(one.row);
        }
    }

    /// Launches that no sample has explained yet.
    pub fn waiting(&self) -> usize {
        self.queue.len() + usize::from(self.running.is_some())
    }

    /// Divides one sample; launches that are over go to `done`.
    pub fn sample(&mut self, sample: &DeviceSample, done: &mut Vec<LaunchRow>) -> Vec<Part> {
        let worked = sample.growth.iter().flatten().any(|growth| *growth > 0);
        self.idle = if worked { 0 } else { self.idle + 1 };
        if self.idle >= IDLE {
            let length = sample.end - sample.begin;
            self.let_go(sample.begin.saturating_sub(length * u64::from(IDLE)), done);
            return Vec::new();
        }
        let timed = self
            .queue
            .first_key_value()
            .is_some_and(|(_, one)| one.timed);
        let shares = if timed {
            self.shares_by_time(sample)
        } else {
            self.shares_by_warps(sample)
        };
        let parts = self.divide(sample, shares);
        self.retire(sample.end, done);
        parts
    }

    /// Overlap with the interval, in nanoseconds: (place in the queue, base).
    fn shares_by_time(&mut self, sample: &DeviceSample) -> Vec<(Place, f64)> {
        let mut shares = Vec::new();
        for (place, one) in &mut self.queue {
            if one.row.begin >= sample.end {
                break;
            }
            let overlap = one
                .row
                .end
                .min(sample.end)
                .saturating_sub(one.row.begin.max(sample.begin));
            if overlap > 0 {
                one.begun = true;
                shares.push((*place, overlap as f64));
            }
        }
        shares
    }

    /// Works the queue off by the warps that were started: (place in the queue, warps).
    fn shares_by_warps(&mut self, sample: &DeviceSample) -> Vec<(Place, f64)> {
        // Whatever still runs stands in the queue again.
        let carried = self.running.take().map(|(place, running)| {
            self.enqueue(place, running);
            place
        });
        let started = self.warps.and_then(|place| sample.growth[place]);
        let mut left = started.unwrap_or(u64::MAX);
        let mut shares = Vec::new();
        // Streams of other processes may have been asked for much earlier and run later: their marks
        // say so.
        let mut next = Vec::new();
        for (place, one) in &self.queue {
            if left == 0 || place.0 >= sample.end {
                break;
            }
            if !self.comes_later(one, place.0, sample) {
                next.push((*place, one.left.min(left)));
                left -= one.left.min(left);
            }
        }
        for (place, taken) in next {
            let Some(one) = self.queue.get_mut(&place) else {
                continue;
            };
            one.left -= taken;
            if taken > 0 {
                if !one.begun {
                    one.row.begin = one.row.begin.max(sample.begin);
                    one.begun = true;
                }
                one.row.end = sample.end;
                shares.push((place, taken as f64));
            }
        }
        if let Some(place) = carried
            && shares.iter().all(|(other, _)| *other != place)
            && self.still_runs(sample, &shares)
        {
            if let Some(running) = self.queue.get_mut(&place) {
                running.row.end = sample.end;
            }
            shares.insert(0, (place, 0.0));
        }
        shares
    }

    /// Whether the carried launch explains counts that the others do not.
    fn still_runs(&self, sample: &DeviceSample, shares: &[(Place, f64)]) -> bool {
        if shares.is_empty() {
            return (0..self.counters)
                .any(|i| Some(i) != self.warps && sample.growth[i].is_some_and(|n| n > 0));
        }
        self.remainder(sample, shares)
            .iter()
            .any(|left| *left > 0.02)
    }

    /// For each counter, the fraction that the habits of `shares` leave unexplained.
    fn remainder(&self, sample: &DeviceSample, shares: &[(Place, f64)]) -> Vec<f64> {
        (0..self.counters)
            .map(|i| {
                let whole = sample.growth[i].unwrap_or(0) as f64;
                if Some(i) == self.warps || whole == 0.0 {
                    return 0.0;
                }
                let expected: Option<f64> = shares
                    .iter()
                    .filter(|(_, base)| *base > 0.0)
                    .map(|(place, base)| Some(self.rate(&self.queue[place].row.key, i)? * base))
                    .sum();
                expected.map_or(0.0, |expected| (1.0 - expected / whole).max(0.0))
            })
            .collect()
    }

    /// What is known of a kernel; of one seen just now, what its first episode shows so far.
    fn rate(&self, key: &Key, counter: usize) -> Option<f64> {
        let known = self.rates.of(&key.kernel, counter);
        known
            .or_else(|| self.habits.rate(key, counter))
            .or_else(|| {
                let episode = self.episode.as_ref()?;
                let [(only, base)] = episode.bases.as_slice() else {
                    return None;
                };
                (only == key && *base > 0.0).then_some(episode.growth[counter]? as f64 / base)
            })
    }

    /// Gives every share its part of every counter.
    fn divide(&mut self, sample: &DeviceSample, shares: Vec<(Place, f64)>) -> Vec<Part> {
        if shares.is_empty() {
            return self.unexplained(sample);
        }
        let unexplained = self.remainder(sample, &shares);
        let mut parts: BTreeMap<Key, Part> = BTreeMap::new();
        let mut bases_by_key: Vec<(Key, f64)> = Vec::new();
        let mut given: Vec<Vec<u64>> = vec![vec![0; self.counters]; shares.len()];
        let bases: f64 = shares.iter().map(|(_, base)| base).sum();
        for i in 0..self.counters {
            let Some(whole) = sample.growth[i] else {
                continue;
            };
            let mean = if bases > 0.0 {
                whole as f64 / bases
            } else {
                0.0
            };
            let weights: Vec<f64> = shares
                .iter()
                .map(|(place, base)| {
                    let carried = *base == 0.0;
                    if Some(i) == self.warps {
                        *base
                    } else if carried {
                        // All of it when nothing else ran, else what the others cannot explain.
                        if shares.len() == 1 {
                            1.0
                        } else {
                            unexplained[i] * whole as f64
                        }
                    } else {
                        base * self.rate(&self.queue[place].row.key, i).unwrap_or(mean)
                    }
                })
                .collect();
            for (share, part) in split(whole, &weights).into_iter().enumerate() {
                given[share][i] = part;
            }
        }
        for ((place, base), given) in shares.iter().zip(&given) {
            let Some(queued) = self.queue.get_mut(place) else {
                continue;
            };
            match bases_by_key
                .iter_mut()
                .find(|(key, _)| *key == queued.row.key)
            {
                Some((_, sum)) => *sum += base,
                None => bases_by_key.push((queued.row.key.clone(), *base)),
            }
            let part = parts.entry(queued.row.key.clone()).or_insert_with(|| Part {
                key: queued.row.key.clone(),
                exact: true,
                shared: false,
                growth: sample
                    .growth
                    .iter()
                    .map(|growth| growth.map(|_| 0))
                    .collect(),
            });
            for ((sum, counter), given) in part
                .growth
                .iter_mut()
                .zip(&mut queued.row.counters)
                .zip(given)
            {
                if let Some(sum) = sum {
                    *sum += given;
                    *counter = Some(counter.unwrap_or(0) + given);
                }
            }
        }
        let carried = shares.iter().any(|(_, base)| *base == 0.0);
        self.remember(bases_by_key, &sample.growth, carried);
        let exact = parts.len() == 1;
        parts
            .into_values()
            .map(|part| Part { exact, ..part })
            .collect()
    }

    /// Learns from an episode: an interval, and those after it into which its last kernel ran on.
    fn remember(&mut self, bases: Vec<(Key, f64)>, growth: &[Option<u64>], carried: bool) {
        let continues = carried
            && self
                .episode
                .as_ref()
                .is_some_and(|episode| episode.intervals < LONGEST_EPISODE);
        if !continues && let Some(over) = self.episode.take() {
            self.habits.learn(&over.bases, &over.growth);
        }
        let counters = self.counters;
        let episode = self.episode.get_or_insert_with(|| Episode {
            bases: Vec::new(),
            growth: vec![None; counters],
            intervals: 0,
        });
        episode.intervals += 1;
        for (key, base) in bases {
            match episode.bases.iter_mut().find(|(known, _)| *known == key) {
                Some((_, sum)) => *sum += base,
                None => episode.bases.push((key, base)),
            }
        }
        for (sum, part) in episode.growth.iter_mut().zip(growth) {
            if let Some(part) = part {
                *sum = Some(sum.unwrap_or(0) + part);
            }
        }
    }

    /// Counts without any launch: another program, or the driver's own kernels.
    fn unexplained(&self, sample: &DeviceSample) -> Vec<Part> {
        if sample.growth.iter().flatten().all(|growth| *growth == 0) {
            return Vec::new();
        }
        vec![Part {
            key: self.other(),
            exact: true,
            shared: false,
            growth: sample.growth.clone(),
        }]
    }

    fn other(&self) -> Key {
        Key {
            gpu: Arc::clone(&self.gpu),
            process: 0,
            context: 0,
            stream: 0,
            kernel: "(other)".into(),
        }
    }

    /// Lets go of launches that are over.
    fn retire(&mut self, time: u64, done: &mut Vec<LaunchRow>) {
        while let Some(front) = self.queue.first_entry() {
            let one = front.get();
            let over = if one.timed {
                one.row.end <= time
            } else {
                one.begun && one.left == 0
            };
            if !over {
                break;
            }
            let over = front.remove_entry();
            self.dequeued(&over.1);
            let before = if over.1.timed {
                Some(over)
            } else {
                self.running.replace(over)
            };
            done.extend(before.map(|(_, one)| one.row));
        }
    }

    /// Launches made before `time` are over.
    fn let_go(&mut self, time: u64, done: &mut Vec<LaunchRow>) {
        done.extend(self.running.take().map(|(_, one)| one.row));
        let later = self.queue.split_off(&(time, 0));
        for one in std::mem::replace(&mut self.queue, later).into_values() {
            self.dequeued(&one);
            done.push(one.row);
        }
    }

    /// No sample follows: everything that is left is over.
    pub fn finish(&mut self, done: &mut Vec<LaunchRow>) {
        self.lanes.clear();
        done.extend(self.running.take().map(|(_, one)| one.row));
        done.extend(
            std::mem::take(&mut self.queue)
                .into_values()
                .map(|one| one.row),
        );
    }
}

/// Divides `whole` by `weights`; the parts add up to it.
fn split(whole: u64, weights: &[f64]) -> Vec<u64> {
    let total: f64 = weights.iter().sum();
    let mut given = 0;
    let mut before = 0.0;
    let last = weights.len().saturating_sub(1);
    weights
        .iter()
        .enumerate()
        .map(|(i, weight)| {
            before += weight;
            let until = match () {
                () if i == last => whole,
                () if total > 0.0 => {
                    ((whole as f64 * (before / total)).round() as u64).clamp(given, whole)
                }
                () => whole * (i as u64 + 1) / weights.len() as u64,
            };
            let part = until - given;
            given = until;
            part
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(kernel: &str, process: u32, begin: u64, end: u64, blocks: u32) -> LaunchRow {
        LaunchRow {
            launch: begin,
            key: Key {
                gpu: "GPU-1".into(),
                process,
                context: 1,
                stream: 7,
                kernel: kernel.into(),
            },
            grid: [blocks, 1, 1],
            block: [64, 1, 1],
            begin,
            end,
            exact: false,
            counters: vec![None; 2],
        }
    }

    fn sample(begin: u64, end: u64, instructions: u64, warps: u64) -> DeviceSample {
        DeviceSample {
            begin,
            end,
            growth: vec![Some(instructions), Some(warps)],
            after_gap: false,
        }
    }

    /// Feeds launches and samples, and sums what each kernel got.
    fn sums(
        launches: Vec<(LaunchRow, bool)>,
        samples: &[DeviceSample],
    ) -> BTreeMap<String, (u64, u64)> {
        let mut attribution = Attribution::new("GPU-1".into(), 2, Some(1));
        let mut done = Vec::new();
        for (row, timed) in launches {
            attribution.launched(row, timed, &mut done);
        }
        let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for one in samples {
            for part in attribution.sample(one, &mut done) {
                let sum = sums
                    .entry(format!("{} {}", part.key.kernel, part.key.process))
                    .or_default();
                sum.0 += part.growth[0].unwrap();
                sum.1 += part.growth[1].unwrap();
            }
        }
        attribution.finish(&mut done);
        sums
    }

    #[test]
    fn one_kernel_gets_everything() {
        let launches = vec![(row("a", 1, 5, 5, 50), false)];
        let sums = sums(launches, &[sample(0, 10, 700, 100), sample(10, 20, 300, 0)]);
        assert_eq!(sums, [("a 1".to_owned(), (1000, 100))].into());
    }

    #[test]
    fn warps_tell_kernels_apart_that_run_one_after_the_other() {
        let launches = vec![
            (row("a", 1, 1, 1, 50), false),
            (row("b", 2, 2, 2, 100), false),
        ];
        let samples = [sample(0, 10, 1000, 100), sample(10, 20, 4000, 200)];
        let sums = sums(launches, &samples);
        assert_eq!(sums["a 1"], (1000, 100));
        assert_eq!(sums["b 2"], (4000, 200));
    }

    #[test]
    fn a_shared_interval_is_divided_by_what_each_is_known_to_do() {
        // a: 10 instructions a warp; b: 40. First alone, then both in one interval.
        let launches = vec![
            (row("a", 1, 1, 1, 50), false),
            (row("b", 1, 2, 2, 50), false),
            (row("a", 1, 3, 3, 50), false),
            (row("b", 1, 4, 4, 50), false),
        ];
        let samples = [
            sample(0, 10, 1000, 100),
            sample(10, 20, 4000, 100),
            sample(20, 30, 5000, 200),
        ];
        let sums = sums(launches, &samples);
        assert_eq!(sums["a 1"], (2000, 200));
        assert_eq!(sums["b 1"], (8000, 200));
    }

    #[test]
    fn kernels_that_always_share_intervals_are_told_apart_by_their_proportions() {
        // 200 warps of a and 200 of b in turn; intervals cut that at ever other places.
        let mut launches = Vec::new();
        for pair in 0..300 {
            launches.push((row("a", 1, 2 * pair, 2 * pair, 100), false));
            launches.push((row("b", 1, 2 * pair + 1, 2 * pair + 1, 100), false));
        }
        let mut done = 0;
        let samples: Vec<DeviceSample> = (0..461)
            .map(|i| {
                // a: 10 instructions a warp, b: 40.
                let mut instructions = 0;
                for warp in done..done + 260 {
                    instructions += if warp / 200 % 2 == 0 { 10 } else { 40 };
                }
                done += 260;
                sample(10_000 + 10 * i, 10_010 + 10 * i, instructions, 260)
            })
            .collect();
        let sums = sums(launches, &samples);
        for (name, exact) in [("a 1", 600_000.0), ("b 1", 2_400_000.0)] {
            let ratio = sums[name].0 as f64 / exact;
            assert!((ratio - 1.0).abs() < 0.03, "{name}: {ratio}");
        }
    }

    #[test]
    fn a_kernel_that_runs_on_keeps_what_the_next_cannot_explain() {
        let launches = vec![
            (row("short", 1, 1, 1, 50), false),
            (row("long", 1, 2, 2, 50), false),
            (row("short", 1, 3, 3, 50), false),
        ];
        let samples = [
            sample(0, 10, 1000, 100),
            sample(10, 20, 500, 100),
            sample(20, 30, 900, 0),
            // 800 more of the long one, then the short one's 1000.
            sample(30, 40, 1800, 100),
        ];
        let sums = sums(launches, &samples);
        assert_eq!(sums["short 1"], (2000, 200));
        assert_eq!(sums["long 1"], (2200, 100));
    }

    #[test]
    fn a_launch_cannot_run_before_it_was_made() {
        let launches = vec![(row("late", 1, 15, 15, 50), false)];
        let sums = sums(launches, &[sample(0, 10, 70, 10), sample(10, 20, 500, 100)]);
        assert_eq!(sums["(other) 0"], (70, 10));
        assert_eq!(sums["late 1"], (500, 100));
    }

    #[test]
    fn an_idle_device_has_nothing_left_to_do() {
        // Half of the first launch's warps were never seen.
        let launches = vec![
            (row("a", 1, 1, 1, 50), false),
            (row("b", 1, 1000, 1000, 50), false),
        ];
        let mut samples = vec![sample(0, 10, 500, 50)];
        samples.extend((1..8).map(|i| sample(10 * i, 10 * i + 10, 0, 0)));
        samples.push(sample(1000, 1010, 3000, 100));
        let sums = sums(launches, &samples);
        assert_eq!(sums["a 1"], (500, 50));
        assert_eq!(sums["b 1"], (3000, 100));
    }

    #[test]
    fn timed_kernels_share_by_overlap() {
        let launches = vec![
            (row("a", 1, 0, 10, 50), true),
            (row("b", 1, 10, 30, 50), true),
        ];
        let sums = sums(
            launches,
            &[
                sample(0, 10, 100, 0),
                sample(10, 20, 600, 0),
                sample(20, 30, 600, 0),
            ],
        );
        assert_eq!(sums["a 1"].0, 100);
        assert_eq!(sums["b 1"].0, 1200);
    }

    #[test]
    fn parts_add_up_to_the_whole() {
        assert_eq!(split(10, &[1.0, 1.0, 1.0]).iter().sum::<u64>(), 10);
        assert_eq!(split(7, &[0.0, 0.0]).iter().sum::<u64>(), 7);
        assert_eq!(split(u64::MAX, &[1e-9, 5.0]).iter().sum::<u64>(), u64::MAX);
        assert_eq!(split(5, &[0.0, 3.0]), [0, 5]);
    }
}
