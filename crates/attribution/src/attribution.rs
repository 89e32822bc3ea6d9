//! The work of one GPU: launches that wait, and samples that are divided among them.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::concurrent::Learned;
use crate::counted_rates::Rates;
use crate::launch::{Key, LaunchRow, Place, Queued, StreamId};
use crate::learned_rates::LearnedRates;
use crate::sample::{DeviceSample, Mark, Part};
use crate::sequential::Episode;

/// The work of one GPU.
pub struct Attribution {
    pub(crate) gpu: Arc<str>,
    pub(crate) counters: usize,
    /// Place of `warps_launched` among the counters.
    pub(crate) warps: Option<usize>,
    /// By host time, then by arrival.
    pub(crate) queue: BTreeMap<Place, Queued>,
    pub(crate) arrivals: u64,
    /// The launch that started warps last, and may still run.
    pub(crate) running: Option<(Place, Queued)>,
    pub(crate) learned_rates: LearnedRates,
    /// What kernels were counted to do before.
    pub(crate) rates: Rates,
    pub(crate) episode: Option<Episode>,
    /// Samples since the device last did anything.
    pub(crate) idle: u32,
    /// Launches of each stream in the queue.
    pub(crate) streams: BTreeMap<StreamId, usize>,
    pub(crate) marks: BTreeMap<StreamId, Vec<Mark>>,
    /// What intervals of several streams told.
    pub(crate) learned: Learned,
    /// What counts without any launch are called.
    rest: &'static str,
}

/// Counts that no launch explains.
const OTHER: &str = "(other)";
/// Counts of a GPU whose launches nobody follows.
const ALL: &str = "(all)";

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
            learned_rates: LearnedRates::new(counters),
            rates: Rates::default(),
            episode: None,
            idle: 0,
            streams: BTreeMap::new(),
            marks: BTreeMap::new(),
            learned: Learned::default(),
            rest: OTHER,
        }
    }

    /// No launch is followed: whatever the GPU counts is of one row, `(all)`.
    pub fn take_as_one(&mut self) {
        self.rest = ALL;
    }

    /// What kernels do was counted before.
    pub fn know(&mut self, rates: Rates) {
        self.rates = rates;
    }

    pub(crate) fn enqueue(&mut self, place: Place, one: Queued) {
        *self.streams.entry(one.row.key.stream_id()).or_default() += 1;
        self.queue.insert(place, one);
    }

    pub(crate) fn dequeued(&mut self, one: &Queued) {
        let stream = one.row.key.stream_id();
        if let Some(count) = self.streams.get_mut(&stream) {
            *count -= 1;
            if *count == 0 {
                self.streams.remove(&stream);
            }
        }
    }

    /// A launch was made. Launches may come a little out of order.
    pub fn launched(&mut self, row: LaunchRow, timed: bool, done: &mut Vec<LaunchRow>) {
        let place = (row.begin, self.arrivals);
        self.arrivals += 1;
        self.enqueue(
            place,
            Queued {
                left: row.warps(),
                row,
                timed,
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

    /// Counts without any launch: another program, or the driver's own kernels.
    pub(crate) fn unexplained(&self, sample: &DeviceSample) -> Vec<Part> {
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

    pub(crate) fn other(&self) -> Key {
        Key {
            gpu: Arc::clone(&self.gpu),
            process: 0,
            context: 0,
            stream: 0,
            kernel: self.rest.into(),
        }
    }

    /// Lets go of launches that are over.
    pub(crate) fn retire(&mut self, time: u64, done: &mut Vec<LaunchRow>) {
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

    /// Launches made before `time` are over. One whose call had not returned by then may only begin: its thread was
    /// held up on the way to the device.
    fn let_go(&mut self, time: u64, done: &mut Vec<LaunchRow>) {
        done.extend(self.running.take().map(|(_, one)| one.row));
        let later = self.queue.split_off(&(time, 0));
        for (place, one) in std::mem::replace(&mut self.queue, later) {
            if one.begun || one.row.end < time {
                self.dequeued(&one);
                done.push(one.row);
            } else {
                self.queue.insert(place, one);
            }
        }
    }

    /// No sample follows: everything that is left is over.
    pub fn finish(&mut self, done: &mut Vec<LaunchRow>) {
        self.streams.clear();
        done.extend(self.running.take().map(|(_, one)| one.row));
        done.extend(
            std::mem::take(&mut self.queue)
                .into_values()
                .map(|one| one.row),
        );
    }
}
