//! Intervals in which several streams, contexts or processes were at work.
//!
//! Marks say how far each stream had come; groups of launches between two marks go to
//! [`super::super::sharing`], and what it finds is handed to kernels and launches.

use std::collections::BTreeMap;

use super::super::rows::{Key, LaunchRow};
use super::super::sharing::{Evidence, Group, Problem, Solution, Work};
use super::{Attribution, DeviceSample, Lane, Mark, Part, Place, Queued, lane, split};

/// Intervals that are divided together while streams share the GPU.
const LONGEST_RUN: usize = 512;
/// Intervals of more than one stream that make a run.
const SHORTEST_RUN: usize = 3;
/// Intervals of one stream alone in the middle of a run: they tell most.
const LONGEST_GAP: usize = 5;
/// Marks that are kept of a stream.
const MOST_MARKS: usize = 1 << 16;

/// Launches of one stream and kernel that ran before the same mark: place of the stream, time of the
/// mark, place of the kernel.
type Between = (usize, Option<u64>, usize);

/// Between which times a launch ran.
#[derive(Clone, Copy, Debug)]
struct Window {
    begin: u64,
    end: Option<u64>,
    /// It was not over yet at this time.
    not_before: u64,
    /// Everything before it in its stream was over when it was made.
    waited: bool,
}

/// Warps of a run of shared intervals. What was launched is known, so every group gets its own;
/// the hardware counts a warp again when it comes back after a context switch, and that remainder is
/// told at the end of the run.
struct Warps<'a> {
    problem: &'a Problem<'a>,
    solution: &'a Solution,
    measured: u64,
    given: u64,
    /// Below 1 if fewer warps were seen than launched: moments without samples.
    scale: f64,
    due: Vec<f64>,
}

/// Kernels whose evidence is kept; beyond that it begins anew.
const MOST_KERNELS: usize = 128;

/// What all runs of shared intervals told.
#[derive(Default)]
pub(super) struct Learned {
    numbers: BTreeMap<Key, usize>,
    evidence: Evidence,
}

impl Learned {
    /// The number of each kernel.
    fn numbers(&mut self, kernels: &[Key]) -> Vec<usize> {
        let new = kernels.iter().filter(|key| !self.numbers.contains_key(key));
        if self.numbers.len() + new.count() > MOST_KERNELS {
            *self = Self::default();
        }
        let number = |key: &Key| {
            let next = self.numbers.len();
            *self.numbers.entry(key.clone()).or_insert(next)
        };
        kernels.iter().map(number).collect()
    }
}

impl<'a> Warps<'a> {
    fn new(problem: &'a Problem<'a>, solution: &'a Solution) -> Self {
        let place = problem.warps.unwrap_or(usize::MAX);
        let counts = problem.growth.iter().filter_map(|one| *one.get(place)?);
        let measured: u64 = counts.sum();
        let work = solution.work.iter().flat_map(|work| &work.warps);
        let launched: f64 = work.sum();
        Self {
            problem,
            solution,
            measured,
            given: 0,
            scale: (measured as f64 / launched.max(1.0)).min(1.0),
            due: vec![0.0; problem.rates.len()],
        }
    }

    /// Warps of the groups at work in an interval.
    fn share(&mut self, interval: usize, present: &[(usize, f64)]) -> Vec<u64> {
        let shares = present.iter().map(|(g, work)| {
            let all = &self.solution.work[*g];
            // Warps of a long kernel start together, and work later.
            let start = match (self.problem.groups[*g].short, all.first == interval) {
                (true, _) => *work,
                (false, true) => all.warps.iter().sum(),
                (false, false) => 0.0,
            };
            // What rounding leaves goes on to the next group of the kernel.
            let due = &mut self.due[self.problem.groups[*g].kernel];
            *due += start * self.scale;
            let given = (*due + 0.5) as u64;
            *due -= given as f64;
            self.given += given;
            given
        });
        shares.collect()
    }

    /// Warps that were counted and not launched.
    fn beyond(&self) -> u64 {
        self.measured.saturating_sub(self.given)
    }
}

impl Attribution {
    /// A stream had come so far.
    pub fn progressed(&mut self, process: u32, context: u32, stream: u32, mark: Mark) {
        let marks = self.marks.entry((process, context, stream)).or_default();
        if marks.last().is_none_or(|last| last.launch < mark.launch) {
            marks.push(mark);
        }
        if marks.len() > MOST_MARKS {
            marks.drain(..MOST_MARKS / 2);
        }
    }

    /// Whether launches of more than one stream wait or run.
    pub fn shares(&self) -> bool {
        self.lanes.len() > 1
    }

    /// Divides samples in order, as [`Self::sample`] does one; parts of each sample.
    pub fn samples(
        &mut self,
        samples: &[DeviceSample],
        done: &mut Vec<LaunchRow>,
    ) -> Vec<Vec<Part>> {
        let mut parts = Vec::with_capacity(samples.len());
        while let Some(next) = samples.get(parts.len()) {
            let run = self.shared_run(&samples[parts.len()..]);
            if run == 0 {
                parts.push(self.sample(next, done));
            } else {
                let run = &samples[parts.len()..][..run];
                parts.extend(self.divide_shared(run, done));
            }
        }
        parts
    }

    /// Between which times a launch ran, as far as marks of its stream say.
    fn window(&self, one: &Queued, host: u64) -> Window {
        let marks = self.marks.get(&lane(&one.row.key));
        let marks = marks.map_or(&[] as &[Mark], Vec::as_slice);
        let next = marks.partition_point(|mark| mark.launch < one.row.launch);
        let before = next.checked_sub(1).map(|place| marks[place]);
        let next = marks.get(next);
        Window {
            begin: host.max(before.map_or(0, |mark| mark.begin)),
            end: next.map(|mark| mark.end),
            not_before: next.map_or(0, |mark| mark.begin),
            waited: before.is_some_and(|mark| mark.end <= host),
        }
    }

    /// Whether marks say that a launch had not begun when the sample ended.
    pub(super) fn comes_later(&self, one: &Queued, host: u64, sample: &DeviceSample) -> bool {
        if self.marks.is_empty() {
            return false; // one stream at a time: nothing is marked
        }
        let window = self.window(one, host);
        window.begin >= sample.end || self.waits_at(one, &window, sample.end)
    }

    /// Whether a launch surely waited when its stream was looked at last, at `time` or later.
    ///
    /// A stream that is marked gets a mark about every half millisecond of its own work, so a launch
    /// farther beyond its last mark than marks are apart had not begun; hundreds may wait like that.
    fn waits_at(&self, one: &Queued, window: &Window, time: u64) -> bool {
        let marks = self.marks.get(&lane(&one.row.key)).map(Vec::as_slice);
        let apart = match marks {
            Some([.., before, last]) => last.launch - before.launch,
            _ => 1,
        };
        let last = marks.and_then(<[Mark]>::last);
        let waits = |mark: &Mark| mark.end > time && one.row.launch > mark.launch + apart;
        window.end.is_none() && last.is_some_and(waits)
    }

    /// How many of the next intervals are a run that belongs to more than one stream.
    fn shared_run(&self, samples: &[DeviceSample]) -> usize {
        let running = self.running.as_ref().map(|(_, one)| lane(&one.row.key));
        let others = running.is_some_and(|running| !self.lanes.contains_key(&running));
        if self.lanes.len() + usize::from(others) < 2 {
            return 0;
        }
        let samples = &samples[..samples.len().min(LONGEST_RUN)];
        let end = samples.last().map_or(0, |one| one.end);
        // Launches without marks are over when so many warps have started.
        let mut before = 0;
        let mut launches = Vec::new();
        for (place, one) in self.queue.range(..(end, 0)) {
            if one.timed {
                return 0;
            }
            let window = self.window(one, place.0);
            if self.waits_at(one, &window, samples.first().map_or(0, |one| one.begin)) {
                continue;
            }
            before += one.left;
            launches.push((lane(&one.row.key), window, before));
        }
        let mut started = 0;
        let mut is_shared = |sample: &DeviceSample| {
            let mut found = None;
            let shared = launches.iter().any(|(lane, window, before)| {
                let ran = window.begin < sample.end
                    && match window.end {
                        Some(end) => end > sample.begin,
                        None => *before > started,
                    };
                ran && *found.get_or_insert(*lane) != *lane
            });
            started += self
                .warps
                .and_then(|place| sample.growth[place])
                .unwrap_or(u64::MAX / 2);
            shared
        };
        let (mut run, mut shared) = (0, 0);
        for (i, sample) in samples.iter().enumerate() {
            if is_shared(sample) {
                (run, shared) = (i + 1, shared + 1);
            } else if i >= run + LONGEST_GAP {
                break;
            }
        }
        // Fewer than these: one stream hands over to another, and their order says it all.
        if shared < SHORTEST_RUN { 0 } else { run }
    }

    /// Divides intervals in which several streams were at work.
    fn divide_shared(
        &mut self,
        samples: &[DeviceSample],
        done: &mut Vec<LaunchRow>,
    ) -> Vec<Vec<Part>> {
        done.extend(self.running.take().map(|(_, one)| one.row));
        let begin = samples.first().map_or(0, |one| one.begin);
        let end = samples.last().map_or(0, |one| one.end);
        let mut kernels: Vec<Key> = Vec::new();
        let mut places: BTreeMap<Key, usize> = BTreeMap::new();
        let mut members: BTreeMap<Between, (Group, Vec<Place>)> = BTreeMap::new();
        let mut lanes: BTreeMap<Lane, usize> = BTreeMap::new();
        let mut over: Vec<Place> = Vec::new();
        for (place, one) in self.queue.range(..(end, 0)) {
            let window = self.window(one, place.0);
            if window.end.is_some_and(|until| until <= end) {
                over.push(*place);
            }
            let until = window.end.unwrap_or(u64::MAX).min(end);
            let waits = self.waits_at(one, &window, begin);
            if one.left == 0 || window.begin >= end || until <= begin || waits {
                continue;
            }
            let kernel = *places.entry(one.row.key.clone()).or_insert_with(|| {
                kernels.push(one.row.key.clone());
                kernels.len() - 1
            });
            let next = lanes.len();
            let lane_place = *lanes.entry(lane(&one.row.key)).or_insert(next);
            let (group, launches) = members
                .entry((lane_place, window.end, kernel))
                .or_insert_with(|| {
                    let group = Group {
                        lane: lane_place,
                        kernel,
                        begin: window.begin,
                        end: window.end.filter(|until| *until <= end),
                        not_before: window.not_before,
                        waited: window.waited,
                        warps: 0.0,
                        within: window.end.map(|until| {
                            let length = until.saturating_sub(window.begin).max(1) as f64;
                            end.min(until).saturating_sub(window.begin) as f64 / length
                        }),
                        short: true,
                    };
                    (group, Vec::new())
                });
            group.warps += one.left as f64;
            launches.push(*place);
            let span = until.saturating_sub(group.begin.max(begin));
            let length = (end - begin) / samples.len() as u64;
            group.short = launches.len() as u64 * 2 * length.max(1) >= span;
        }
        let (groups, launches): (Vec<Group>, Vec<Vec<Place>>) = members.into_values().unzip();
        let rates = kernels
            .iter()
            .map(|key| {
                (0..self.counters)
                    .map(|i| self.habits.rate(key, i))
                    .collect()
            })
            .collect();
        let counted = kernels
            .iter()
            .map(|key| {
                (0..self.counters)
                    .map(|i| {
                        self.rates
                            .of(&key.kernel, i)
                            .filter(|_| Some(i) != self.warps)
                    })
                    .collect()
            })
            .collect();
        let problem = Problem {
            intervals: samples.iter().map(|one| (one.begin, one.end)).collect(),
            growth: samples.iter().map(|one| one.growth.as_slice()).collect(),
            warps: self.warps,
            groups,
            rates,
            counted,
            numbers: self.learned.numbers(&kernels),
        };
        let solution = problem.solve(&mut self.learned.evidence);
        let mut warps = Warps::new(&problem, &solution);
        let mut counted: Vec<Vec<u64>> = vec![vec![0; self.counters]; problem.groups.len()];
        let mut parts = Vec::with_capacity(samples.len());
        for (s, sample) in samples.iter().enumerate() {
            let present: Vec<(usize, f64)> = problem
                .groups
                .iter()
                .enumerate()
                .filter_map(|(g, _)| {
                    let work = &solution.work[g];
                    let at = s.checked_sub(work.first)?;
                    Some((g, *work.warps.get(at)?))
                })
                .collect();
            if present.is_empty() {
                parts.push(self.unexplained(sample));
                continue;
            }
            let mut by_kernel: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
            for (i, whole) in sample.growth.iter().enumerate() {
                let Some(whole) = *whole else { continue };
                let shares = if Some(i) == self.warps {
                    warps.share(s, &present)
                } else {
                    let weights: Vec<f64> = present
                        .iter()
                        .map(|(g, work)| work * solution.rates[problem.groups[*g].kernel][i])
                        .collect();
                    split(whole, &weights)
                };
                for ((g, _), share) in present.iter().zip(shares) {
                    counted[*g][i] += share;
                    let kernel = problem.groups[*g].kernel;
                    by_kernel
                        .entry(kernel)
                        .or_insert_with(|| vec![0; self.counters])[i] += share;
                }
            }
            let mut bases: Vec<(Key, f64)> = Vec::new();
            for (g, work) in &present {
                let key = &kernels[problem.groups[*g].kernel];
                match bases.iter_mut().find(|(known, _)| known == key) {
                    Some((_, sum)) => *sum += work,
                    None => bases.push((key.clone(), *work)),
                }
            }
            self.habits.learn(&bases, &sample.growth);
            let last = s + 1 == samples.len();
            let beyond = last.then(|| warps.beyond());
            parts.push(self.shared_parts(sample, &kernels, by_kernel, beyond));
        }
        for (launches, (work, counted)) in launches.iter().zip(solution.work.iter().zip(&counted)) {
            self.give_to_launches(launches, work, counted, samples);
        }
        for place in over {
            if let Some(one) = self.queue.remove(&place) {
                self.dequeued(&one);
                done.push(one.row);
            }
        }
        parts
    }

    /// The parts of one shared interval; warps `beyond` those of launches are of `(other)`.
    fn shared_parts(
        &self,
        sample: &DeviceSample,
        kernels: &[Key],
        by_kernel: BTreeMap<usize, Vec<u64>>,
        beyond: Option<u64>,
    ) -> Vec<Part> {
        let exact = by_kernel.len() == 1;
        let present = |counts: Vec<u64>| {
            let growth = counts.into_iter().zip(&sample.growth);
            growth
                .map(|(count, growth)| growth.map(|_| count))
                .collect()
        };
        let mut parts: Vec<Part> = by_kernel
            .into_iter()
            .map(|(kernel, counts)| Part {
                key: kernels[kernel].clone(),
                exact,
                shared: !exact,
                growth: present(counts),
            })
            .collect();
        if let (Some(place), Some(count)) = (self.warps, beyond.filter(|count| *count > 0)) {
            let mut counts = vec![0; self.counters];
            counts[place] = count;
            parts.push(Part {
                key: self.other(),
                exact: false,
                shared: true,
                growth: present(counts),
            });
        }
        parts
    }

    /// Launches of a group get what it did, in their order and by their warps.
    fn give_to_launches(
        &mut self,
        launches: &[Place],
        work: &Work,
        counted: &[u64],
        samples: &[DeviceSample],
    ) {
        let Some(first) = samples.get(work.first) else {
            return;
        };
        let last = samples.get(work.first + work.warps.len().saturating_sub(1));
        let mut left = match self.warps {
            Some(place) => counted[place],
            None => work.warps.iter().sum::<f64>().round() as u64,
        };
        let mut taken = Vec::with_capacity(launches.len());
        for place in launches {
            let Some(one) = self.queue.get_mut(place) else {
                continue;
            };
            let part = one.left.min(left);
            left -= part;
            one.left -= part;
            if part > 0 {
                if !one.begun {
                    one.row.begin = one.row.begin.max(first.begin);
                    one.begun = true;
                }
                one.row.end = last.unwrap_or(first).end;
            }
            taken.push((*place, part as f64));
        }
        let weights: Vec<f64> = taken.iter().map(|(_, part)| *part).collect();
        for (i, whole) in counted.iter().enumerate() {
            if samples.iter().all(|sample| sample.growth[i].is_none()) {
                continue;
            }
            for ((place, _), share) in taken.iter().zip(split(*whole, &weights)) {
                if let Some(one) = self.queue.get_mut(place) {
                    let counter = &mut one.row.counters[i];
                    *counter = Some(counter.unwrap_or(0) + share);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: u64 = 1_000_000;
    /// What was seen on an H200, and not a multiple of the interval.
    const TURN: u64 = 2_170_000;

    /// A stream whose launches repeat: kernels with warps, instructions a warp, and nanoseconds.
    struct Stream {
        process: u32,
        kernels: Vec<(&'static str, u32, u64, u64)>,
        launches: u64,
        /// Nanoseconds between launches on the host; from the end of the one before, if it waits.
        pace: u64,
        waits: bool,
    }

    /// What each kernel got, and what it did: instructions and warps.
    type Sums = BTreeMap<String, ((u64, u64), (u64, u64))>;

    /// Runs streams of different processes in turns of two milliseconds, as a GPU does, and divides
    /// what a sampler sees of it.
    fn share(streams: &[Stream], marked: bool) -> Sums {
        let mut attribution = Attribution::new("GPU-1".into(), 3, Some(1));
        let mut sums = Sums::new();
        // By stream: launches over, and nanoseconds done of the one that runs.
        let mut state = vec![(0u64, 0u64); streams.len()];
        let mut ends: Vec<Vec<u64>> = vec![Vec::new(); streams.len()];
        let mut samples: Vec<[f64; 3]> = Vec::new();
        let (mut time, mut turn, mut turn_end) = (0u64, 0, TURN);
        let step = 1_000;
        let made = |ends: &[Vec<u64>], s: usize, number: u64| {
            let before = (number as usize).checked_sub(1).map(|last| ends[s][last]);
            if streams[s].waits {
                before.unwrap_or(0) + streams[s].pace
            } else {
                number * streams[s].pace
            }
        };
        let ready = |state: &[(u64, u64)], ends: &[Vec<u64>], s: usize, time: u64| {
            state[s].0 < streams[s].launches && made(ends, s, state[s].0) <= time
        };
        let resumed = |state: &[(u64, u64)], s: usize| {
            let kernels = &streams[s].kernels;
            let warps = kernels[state[s].0 as usize % kernels.len()].1;
            (state[s].1 > 0).then_some(f64::from(warps))
        };
        while (0..streams.len()).any(|s| state[s].0 < streams[s].launches) {
            if time >= turn_end || !ready(&state, &ends, turn, time) {
                let next = (1..=streams.len())
                    .map(|by| (turn + by) % streams.len())
                    .find(|s| ready(&state, &ends, *s, time));
                turn = next.unwrap_or(turn);
                // Warps that were interrupted are started again.
                if let Some(warps) = resumed(&state, turn) {
                    samples.resize((time / MILLISECOND) as usize + 1, [0.0; 3]);
                    samples.last_mut().unwrap()[1] += warps;
                }
                turn_end = time + TURN;
            }
            samples.resize((time / MILLISECOND) as usize + 1, [0.0; 3]);
            if ready(&state, &ends, turn, time) {
                let stream = &streams[turn];
                let (over, done) = &mut state[turn];
                let kernel = stream.kernels[*over as usize % stream.kernels.len()];
                let warps = f64::from(kernel.1);
                let sample = samples.last_mut().unwrap();
                if *done == 0 {
                    sample[1] += warps;
                }
                sample[0] += warps * kernel.2 as f64 * step as f64 / kernel.3 as f64;
                sample[2] += 132.0 * 1.98 * step as f64;
                *done += step;
                if *done >= kernel.3 {
                    (*over, *done) = (*over + 1, 0);
                    ends[turn].push(time + step);
                }
            }
            time += step;
        }
        let mut marks = Vec::new();
        for (s, stream) in streams.iter().enumerate() {
            for number in 0..stream.launches {
                let (name, warps, rate, _) = stream.kernels[number as usize % stream.kernels.len()];
                let row = LaunchRow {
                    launch: number + 1,
                    key: Key {
                        gpu: "GPU-1".into(),
                        process: stream.process,
                        context: 1,
                        stream: 7,
                        kernel: name.into(),
                    },
                    grid: [warps, 1, 1],
                    block: [32, 1, 1],
                    begin: made(&ends, s, number),
                    end: made(&ends, s, number) + 5,
                    exact: false,
                    counters: vec![None; 3],
                };
                let (_, did) = sums
                    .entry(format!("{name} {}", stream.process))
                    .or_default();
                did.0 += u64::from(warps) * rate;
                did.1 += u64::from(warps);
                attribution.launched(row, false, &mut Vec::new());
            }
            // A mark about every half millisecond of its own time, seen by somebody who looks every quarter.
            let time = stream.kernels.iter().map(|kernel| kernel.3).max().unwrap();
            let every = match stream.waits {
                true => 1,
                false => (500_000 / time.max(stream.pace)).max(1),
            };
            let numbers = (every - 1..stream.launches).step_by(every as usize);
            for number in numbers.filter(|_| marked) {
                let seen = ends[s][number as usize].next_multiple_of(250_000);
                let mark = Mark {
                    launch: number + 1,
                    begin: seen - 250_000,
                    end: seen,
                };
                marks.push((stream.process, mark));
            }
        }
        marks.sort_by_key(|(_, mark)| mark.end);
        let mut marks = marks.into_iter().peekable();
        let samples: Vec<DeviceSample> = samples
            .iter()
            .enumerate()
            .map(|(i, counts)| DeviceSample {
                begin: i as u64 * MILLISECOND,
                end: (i as u64 + 1) * MILLISECOND,
                growth: counts
                    .iter()
                    .map(|count| Some(count.round() as u64))
                    .collect(),
                after_gap: false,
            })
            .collect();
        // As a reader comes by: half a second at a time.
        let mut done = Vec::new();
        for batch in samples.chunks(500) {
            // What happened a little later is known when a batch is divided, and no more.
            let known = batch.last().unwrap().end + 20 * MILLISECOND;
            while let Some((process, mark)) = marks.next_if(|(_, mark)| mark.end <= known) {
                attribution.progressed(process, 1, 7, mark);
            }
            for (sample, parts) in batch.iter().zip(attribution.samples(batch, &mut done)) {
                // Warps add up over a run of intervals.
                for i in [0, 2] {
                    let whole: u64 = parts.iter().filter_map(|part| part.growth[i]).sum();
                    assert_eq!(
                        whole,
                        sample.growth[i].unwrap(),
                        "parts add up to the whole"
                    );
                }
                let keys = parts.len();
                for part in parts {
                    assert!(!part.exact || keys == 1);
                    let name = format!("{} {}", part.key.kernel, part.key.process);
                    let (got, _) = sums.entry(name).or_default();
                    got.0 += part.growth[0].unwrap();
                    got.1 += part.growth[1].unwrap();
                }
            }
        }
        attribution.finish(&mut done);
        let launches: u64 = streams.iter().map(|stream| stream.launches).sum();
        assert_eq!(done.len() as u64, launches, "every launch is told once");
        sums
    }

    /// The largest error of a process's instructions, in parts of the GPU's, and of its warps.
    fn worst(sums: &Sums) -> f64 {
        let mut by_process: BTreeMap<&str, [(u64, u64); 2]> = BTreeMap::new();
        for (name, (got, did)) in sums {
            let process = name.rsplit(' ').next().unwrap();
            let sum = by_process.entry(process).or_default();
            for (sum, part) in sum.iter_mut().zip([(got.0, did.0), (got.1, did.1)]) {
                *sum = (sum.0 + part.0, sum.1 + part.1);
            }
        }
        by_process.remove("0");
        let whole: u64 = by_process.values().map(|sum| sum[0].1).sum();
        let of = |(got, did): (u64, u64), base: u64| got.abs_diff(did) as f64 / base as f64;
        let errors = by_process.values();
        let errors = errors.flat_map(|sum| [of(sum[0], whole), of(sum[1], sum[1].1)]);
        errors.fold(0.0, f64::max)
    }

    fn steady(process: u32, name: &'static str, warps: u32, rate: u64, time: u64) -> Stream {
        Stream {
            process,
            kernels: vec![(name, warps, rate, time)],
            launches: 1500,
            pace: 5_000,
            waits: false,
        }
    }

    #[test]
    fn contexts_that_take_turns_are_told_apart() {
        let streams = [
            steady(1, "first", 132, 6_000, 12_000),
            steady(2, "second", 264, 12_000, 23_000),
            steady(3, "third", 396, 18_000, 35_000),
            steady(4, "fourth", 528, 24_000, 46_000),
        ];
        let sums = share(&streams, true);
        assert!(worst(&sums) < 0.02, "{} {sums:?}", worst(&sums));
    }

    #[test]
    fn the_same_warps_at_different_rates_need_marks() {
        let streams = [
            steady(1, "slow", 500, 24_000, 46_000),
            steady(2, "fast", 500, 3_000, 46_000),
        ];
        let sums = share(&streams, true);
        assert!(worst(&sums) < 0.02, "{} {sums:?}", worst(&sums));
    }

    #[test]
    fn processes_of_very_different_kernels_are_told_apart() {
        let streams = [
            Stream {
                process: 1,
                kernels: vec![("fill", 60_000, 59, 60_000), ("add", 60_000, 20, 75_000)],
                launches: 800,
                pace: 6_000,
                waits: false,
            },
            // Waits for each of its launches, as a search by levels does.
            Stream {
                process: 2,
                kernels: vec![
                    ("expand", 31_000, 40, 30_000),
                    ("advance", 31_000, 15, 20_000),
                ],
                launches: 60,
                pace: 30_000,
                waits: true,
            },
            steady(3, "steady", 528, 23_800, 46_000),
        ];
        // The second never has an interval to itself, so its part is known to some hundredths of
        // the whole only; its warps are known.
        let sums = share(&streams, true);
        let whole: u64 = sums.values().map(|(_, did)| did.0).sum();
        for process in ["1", "2", "3"] {
            let of_process = sums.iter().filter(|(name, _)| name.ends_with(process));
            let mut sum = [0i64; 4];
            for (_, (got, did)) in of_process {
                for (sum, part) in sum.iter_mut().zip([got.0, did.0, got.1, did.1]) {
                    *sum += part as i64;
                }
            }
            assert!(sum[0].abs_diff(sum[1]) * 20 <= whole, "{process} {sums:?}");
            assert!(
                sum[2].abs_diff(sum[3]) * 20 <= sum[3] as u64,
                "{process} {sums:?}"
            );
        }
    }

    #[test]
    fn without_marks_warps_are_told_apart_coarsely() {
        let streams = [
            steady(1, "first", 132, 12_000, 46_000),
            steady(2, "second", 528, 12_000, 46_000),
        ];
        for (name, (got, did)) in share(&streams, false) {
            let ratio = got.1 as f64 / did.1.max(1) as f64;
            assert!(
                name.starts_with("(other)") || (ratio - 1.0).abs() < 0.1,
                "{name} {ratio}"
            );
        }
    }
}
