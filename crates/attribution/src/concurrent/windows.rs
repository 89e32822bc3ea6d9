//! Between which times a launch ran, as far as the marks of its stream say.

use crate::attribution::Attribution;
use crate::launch::Queued;
use crate::sample::{DeviceSample, Mark};

/// Marks that are kept of a stream.
const MOST_MARKS: usize = 1 << 16;

/// Between which times a launch ran.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub begin: u64,
    pub end: Option<u64>,
    /// It was not over yet at this time.
    pub not_before: u64,
    /// Everything before it in its stream was over when it was made.
    pub waited: bool,
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

    /// Between which times a launch ran, as far as marks of its stream say.
    pub(super) fn window(&self, one: &Queued, host: u64) -> Window {
        let marks = self.marks.get(&one.row.key.stream_id());
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
    pub(crate) fn comes_later(&self, one: &Queued, host: u64, sample: &DeviceSample) -> bool {
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
    pub(super) fn waits_at(&self, one: &Queued, window: &Window, time: u64) -> bool {
        let marks = self.marks.get(&one.row.key.stream_id()).map(Vec::as_slice);
        let apart = match marks {
            Some([.., before, last]) => last.launch - before.launch,
            _ => 1,
        };
        let last = marks.and_then(<[Mark]>::last);
        let waits = |mark: &Mark| mark.end > time && one.row.launch > mark.launch + apart;
        window.end.is_none() && last.is_some_and(waits)
    }
}
