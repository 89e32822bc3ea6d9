//! Launches of both modes on one GPU: what those that take no time leave behind, and, where launches are sampled,
//! the time that is projected for them.
//!
//! A sampled run has one launch at a time on the hardware: each is chosen when it begins, so all before it have ended.
//! A launch that is not chosen runs in functional mode; when it has ended its cycles are projected, and it is told of
//! when they have passed. A kernel that waits for another one gets it beside it, in its own mode.

use super::Machine;
use crate::description::Mode;
use crate::sampling::{Counts, Sampled, Sampler, SamplingOptions, Shape};
use lockstep_gpu::{GpuError, KernelRecord, Launch};
use lockstep_protocol::layout;
use lockstep_runtime::device::{Fault, KernelResult};
use lockstep_units::{Cycles, Duration, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ops::Range;

/// An allocation with more bytes is no array that kernels have been all over.
pub(super) const LARGE: u64 = 4 << 30;

/// Pages that launches wrote which took no time, since the last that did.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct UntimedPages {
    /// By the last launch.
    pub(super) last: BTreeSet<u64>,
    /// By launches before it.
    pub(super) before: BTreeSet<u64>,
}

/// What a sampled run knows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Sampling {
    sampler: Sampler,
    /// Launches whose projected end has not come, with their queues.
    pending: Vec<(u64, KernelResult)>,
}

impl Sampling {
    /// For a GPU on which an empty launch takes so many cycles.
    pub fn new(options: &SamplingOptions, floor: Cycles) -> Self {
        Self {
            sampler: Sampler::new(options, floor),
            pending: Vec::new(),
        }
    }

    /// Whether no projected time is passing.
    pub fn is_idle(&self) -> bool {
        self.pending.is_empty()
    }
}

impl Machine {
    /// What sampling says of the run, if it was sampled.
    pub fn sampled(&self) -> Option<Sampled> {
        let sampling = self.sampling.as_ref();
        sampling.map(|sampling| sampling.sampler.finish())
    }

    /// The mode of a launch that begins, where launches are sampled. What kernels launch is measured with them.
    pub(super) fn chosen_mode(&mut self, number: u64, launch: &Launch) -> Option<Mode> {
        let busy = !self.gpu.is_idle();
        let now = self.gpu.mode();
        let sampling = self.sampling.as_mut()?;
        if launch.device_runtime.is_some() && !busy {
            return Some(Mode::Timing);
        }
        let chosen = sampling.sampler.chooses(number, Shape::of(launch));
        let timed = match busy {
            false => chosen,
            // Beside a kernel that waits for it.
            true => now == lockstep_gpu::Mode::Timing,
        };
        Some(if timed {
            Mode::Timing
        } else {
            Mode::Functional
        })
    }

    /// Changes the mode of the hardware. What launches left in memory while they took no time is in L2 afterwards,
    /// and no page of an allocation is met for the first time.
    pub(super) fn set_mode(&mut self, mode: lockstep_gpu::Mode) -> Result<(), GpuError> {
        if mode == self.gpu.mode() {
            return Ok(());
        }
        match mode {
            lockstep_gpu::Mode::Functional => {
                self.gpu.contents().take_recent_pages(self.device_memory());
                self.gpu.set_mode(mode)?;
            }
            lockstep_gpu::Mode::Timing => {
                self.gather_untimed_pages();
                self.gpu.set_mode(mode)?;
                let pages = std::mem::take(&mut self.untimed_pages);
                self.enter_caches(pages);
            }
        }
        self.options.mode = mode;
        Ok(())
    }

    /// Notes which pages launches wrote that took no time, before somebody changes what counts as recent.
    pub(super) fn gather_untimed_pages(&mut self) {
        if self.options.both_modes && self.gpu.mode() == lockstep_gpu::Mode::Functional {
            let pages = self.gpu.contents().take_recent_pages(self.device_memory());
            self.untimed_pages.last.extend(pages);
        }
    }

    /// A launch begins that takes no time.
    pub(super) fn begin_untimed(&mut self) {
        self.gather_untimed_pages();
        let pages = &mut self.untimed_pages;
        pages.before.append(&mut pages.last);
    }

    /// Forgets which pages were written lately: their contents were only put back.
    pub(super) fn skip_recent_pages(&self) {
        if self.options.both_modes {
            self.gpu.contents().take_recent_pages(self.device_memory());
        }
    }

    pub(super) fn device_memory(&self) -> Range<u64> {
        layout::Region::Device(self.ordinal).range()
    }

    /// Takes the measurement of a launch that has ended, or projects when it would have.
    pub(super) fn note_sample(&mut self, record: &KernelRecord, result: &mut KernelResult) {
        let clock = self.config.device.clock;
        let Some(sampling) = &mut self.sampling else {
            return;
        };
        let counts = Counts::of(&record.counters);
        if result.counters.timed {
            let cycles = record.counters.cycles;
            sampling.sampler.measured(result.id, counts, cycles);
            return;
        }
        let cycles = sampling.sampler.project(result.id, counts);
        // Functional mode may have taken longer; time does not go back.
        result.end = result
            .end
            .max(record.start + clock.duration(Cycles(cycles)));
        result.complete = None;
        sampling.pending.push((record.queue, result.clone()));
    }

    /// Keeps back launches whose projected end has not come.
    pub(super) fn hold_projected(&self, results: &mut Vec<KernelResult>) {
        if let Some(sampling) = &self.sampling {
            let is_pending = |result: &KernelResult| {
                let mut pending = sampling.pending.iter();
                result.by_kernel.is_none() && pending.any(|(_, other)| other.id == result.id)
            };
            results.retain(|result| !is_pending(result));
        }
    }

    /// Launches whose projected end has come.
    pub(super) fn take_projected(&mut self) -> Vec<KernelResult> {
        let now = self.gpu.now();
        let Some(sampling) = &mut self.sampling else {
            return Vec::new();
        };
        let ended = sampling
            .pending
            .extract_if(.., |(_, result)| result.end <= now);
        let mut ended: Vec<_> = ended.collect();
        ended.sort_by_key(|(_, result)| (result.end, result.id));
        for (queue, result) in &ended {
            self.gpu.set_ended(*queue, result.end);
        }
        let results: Vec<_> = ended.into_iter().map(|(_, result)| result).collect();
        if !results.is_empty() {
            self.note_ended(&results);
        }
        results
    }

    /// Whether no projected time is passing.
    pub(super) fn is_projection_over(&self) -> bool {
        self.sampling
            .as_ref()
            .is_none_or(|sampling| sampling.is_idle())
    }

    /// How far the hardware may go on: for a slice of time, or, with nothing to do, to the next projected end.
    pub(super) fn next_stop(&self, slice: Duration) -> Time {
        let pending = self.sampling.iter().flat_map(|sampling| &sampling.pending);
        let first = pending.map(|(_, result)| result.end).min();
        first
            .filter(|_| self.gpu.is_idle())
            .unwrap_or(self.gpu.now() + slice)
    }

    /// Whether a launch waits only because launches are sampled one at a time.
    pub(super) fn can_begin_beside(&self) -> bool {
        self.sampling.is_some() && !self.held.is_empty()
    }

    /// Kernels wait for something that nothing on the hardware does: the next launch may.
    pub(super) fn begin_beside(&mut self) -> Result<(), Fault> {
        match self.held.pop_front() {
            Some((number, launch)) => self.begin(number, launch),
            None => Ok(()),
        }
    }

    /// All launches are given up.
    pub(super) fn abort_sampling(&mut self) {
        if let Some(sampling) = &mut self.sampling {
            sampling.sampler.abort();
            sampling.pending.clear();
        }
    }
}
