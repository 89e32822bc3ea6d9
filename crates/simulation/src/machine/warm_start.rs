//! Checkpoints between two kernels, and machines of other settings that go on from one.
//!
//! Before a launch that was named, all others are let end; then nothing is on the hardware, and what a run needs to go
//! on is its memory and its calls. So another machine can take it up, with other clocks, caches and latencies. Its
//! caches are cold, but for pages that functional launches wrote, which are in L2 as where a run changes its mode.

use super::checkpoint::RestoreError;
use super::sampling::UntimedPages;
use super::{Machine, context_page};
use crate::checkpoint::{Checkpoints, State, looked_at};
use crate::server::lock;
use lockstep_gpu::Launch;
use lockstep_gpu::memory::PAGE;
use lockstep_protocol::layout;
use lockstep_units::Time;
use std::collections::BTreeMap;

impl Machine {
    /// Whether a launch has to wait because the run is to be saved before it.
    pub(super) fn waits_for_checkpoint(&self, number: u64) -> bool {
        self.save_before.is_some_and(|first| number >= first)
    }

    /// Saves the run before the launch that was named, once all others have ended.
    pub(super) fn save_between_kernels(&mut self) {
        let next = self.held.front().map(|(number, _)| *number);
        if !next.is_some_and(|number| self.waits_for_checkpoint(number)) || !self.gpu.is_idle() {
            return;
        }
        self.save_before = None;
        if let Some(shared) = self.checkpoints.clone() {
            self.write_checkpoint(&mut lock(&shared));
        }
    }

    /// Goes on where another machine was saved between two kernels.
    ///
    /// # Errors
    /// It was saved elsewhere, has what belongs to its hardware alone, or the checkpoint is damaged.
    pub fn restore_elsewhere(
        &mut self,
        checkpoints: &Checkpoints,
        at: Time,
        state: &State,
        mut launches: BTreeMap<u64, Launch>,
    ) -> Result<(), RestoreError> {
        let saved = &state.machine;
        let heap = self.heap_start()..layout::Region::Device(self.ordinal).range().end;
        let of_heap = |page: u64| heap.contains(&page) && page != context_page(self.ordinal);
        let obstacles = [
            (saved.is_busy(), "kernels were running"),
            (
                saved.has_managed(),
                "the program has managed memory, whose pages have places",
            ),
            (
                checkpoints.has_aliases(),
                "the program has registered memory of its own",
            ),
            (
                state.pages.iter().any(|page| of_heap(page.address)),
                "kernels have used the heap of device code, or launched kernels",
            ),
        ];
        if let Some((_, reason)) = obstacles.iter().find(|(found, _)| *found) {
            return Err(RestoreError::Elsewhere(reason));
        }
        self.restore_memory(checkpoints, &state.pages)?;
        for page in state.pages.iter().filter(|page| page.marked) {
            let written = page.address..page.address + PAGE;
            self.gpu.contents().note_host_write(written);
        }
        self.gpu.contents().take_recent_pages(looked_at());
        self.held.clear();
        for number in saved.waiting() {
            let launch = launches.remove(&number);
            let launch = launch.ok_or(RestoreError::Launch(number))?;
            self.held.push_back((number, launch));
        }
        self.output.extend_from_slice(saved.printed());
        // Nothing is on the hardware, so time passes at once.
        self.gpu.advance(at);
        self.enter_caches(saved.written_untimed());
        Ok(())
    }

    /// Pages that launches wrote which took no time are in L2, and no page of an allocation is met for the first
    /// time.
    pub(super) fn enter_caches(&mut self, pages: UntimedPages) {
        self.gpu.kernels_wrote(pages.before.into_iter());
        // What was written last has been read by nobody since.
        let last = pages.last.iter().rev().map(|page| *page..page + PAGE);
        self.gpu.dma_written(lockstep_gpu::DmaSource::Device, last);
        let device = self.device_memory();
        let arrays = self.gpu.contents().ranges();
        let arrays = arrays.iter().filter(|bytes| {
            device.contains(&bytes.start) && bytes.end - bytes.start <= super::sampling::LARGE
        });
        let arrays: Vec<_> = arrays.collect();
        self.gpu.kernels_touched(&arrays);
    }
}
