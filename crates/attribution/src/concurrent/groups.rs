//! Groups of launches between two marks of a stream, as the solver takes them.

use std::collections::BTreeMap;

use super::windows::Window;
use crate::attribution::Attribution;
use crate::launch::{Key, Place, Queued, StreamId};
use crate::sample::DeviceSample;
use crate::solver::Group;

/// Launches of one stream and kernel that ran before the same mark: place of the stream, time of the
/// mark, place of the kernel.
type Between = (usize, Option<u64>, usize);

/// The launches that may have run in a run of intervals.
pub(super) struct Groups {
    /// The kernels, by their place in the groups.
    pub kernels: Vec<Key>,
    pub groups: Vec<Group>,
    /// The launches of each group.
    pub launches: Vec<Vec<Place>>,
    /// Launches that are over when the last interval ends.
    pub over: Vec<Place>,
}

/// Numbers that are given to kernels and streams as they are met.
#[derive(Default)]
struct Places {
    kernels: Vec<Key>,
    by_kernel: BTreeMap<Key, usize>,
    by_stream: BTreeMap<StreamId, usize>,
}

impl Places {
    /// The places of a key's stream and kernel.
    fn of(&mut self, key: &Key) -> (usize, usize) {
        let next = self.by_stream.len();
        let stream = *self.by_stream.entry(key.stream_id()).or_insert(next);
        let kernel = *self.by_kernel.entry(key.clone()).or_insert_with(|| {
            self.kernels.push(key.clone());
            self.kernels.len() - 1
        });
        (stream, kernel)
    }
}

impl Groups {
    /// Finds the groups of the launches that wait or run.
    pub fn of(attribution: &Attribution, samples: &[DeviceSample]) -> Self {
        let begin = samples.first().map_or(0, |one| one.begin);
        let end = samples.last().map_or(0, |one| one.end);
        let length = (end - begin) / samples.len() as u64;
        let mut places = Places::default();
        let mut members: BTreeMap<Between, (Group, Vec<Place>)> = BTreeMap::new();
        let mut over: Vec<Place> = Vec::new();
        for (place, one) in attribution.queue.range(..(end, 0)) {
            let window = attribution.window(one, place.0);
            if window.end.is_some_and(|until| until <= end) {
                over.push(*place);
            }
            let until = window.end.unwrap_or(u64::MAX).min(end);
            if !may_run(attribution, one, &window, begin, end) {
                continue;
            }
            let (stream, kernel) = places.of(&one.row.key);
            let (group, launches) = members
                .entry((stream, window.end, kernel))
                .or_insert_with(|| (empty_group(stream, kernel, &window, end), Vec::new()));
            group.warps += one.left as f64;
            launches.push(*place);
            let span = until.saturating_sub(group.begin.max(begin));
            group.short = launches.len() as u64 * 2 * length.max(1) >= span;
        }
        let (groups, launches) = members.into_values().unzip();
        Self {
            kernels: places.kernels,
            groups,
            launches,
            over,
        }
    }
}

/// Whether a launch may have run between `begin` and `end`.
fn may_run(attribution: &Attribution, one: &Queued, window: &Window, begin: u64, end: u64) -> bool {
    let until = window.end.unwrap_or(u64::MAX).min(end);
    one.left > 0 && window.begin < end && until > begin && !attribution.waits_at(one, window, begin)
}

/// A group without warps, of launches with this window.
fn empty_group(stream: usize, kernel: usize, window: &Window, end: u64) -> Group {
    let within = window.end.map(|until| {
        let length = until.saturating_sub(window.begin).max(1) as f64;
        end.min(until).saturating_sub(window.begin) as f64 / length
    });
    Group {
        stream,
        kernel,
        begin: window.begin,
        end: window.end.filter(|until| *until <= end),
        not_before: window.not_before,
        waited: window.waited,
        warps: 0.0,
        within,
        short: true,
    }
}
