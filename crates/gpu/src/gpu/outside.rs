//! What a simulator around this one sees of the GPU while kernels run: requests that leave it, and blocks that end.

use lockstep_units::Time;
use serde::{Deserialize, Serialize};

use super::{Gpu, Mode};
use crate::error::GpuError;
use crate::l2::{L2Slice, OutsideRequest, slice_of};
use crate::partition::GpuPartition;

/// A block that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedBlock {
    /// Its launch.
    pub launch: u32,
    /// The SM that it ran on.
    pub sm: u32,
    /// When the work distributor heard of it.
    pub at: Time,
}

impl Gpu {
    /// Has somebody else model what is behind the L1 caches, or not. Nothing may run; what L2 held is lost.
    ///
    /// # Errors
    /// Kernels run, or the GPU has no time.
    pub fn set_outside_memory(&mut self, outside: bool) -> Result<(), GpuError> {
        if self.options.mode != Mode::Timing {
            let because = "without time no request leaves the GPU";
            return Err(GpuError::Outside(because.into()));
        }
        if !self.is_idle() {
            return Err(GpuError::Busy);
        }
        self.options.outside_memory = outside;
        for id in self.places.slices() {
            if let GpuPartition::Slice(slice) = self.engine.partition_mut(id) {
                slice.set_outside(outside);
            }
        }
        Ok(())
    }

    /// Whether somebody else does.
    #[must_use]
    pub fn has_outside_memory(&self) -> bool {
        self.options.outside_memory
    }

    /// Takes the requests that have left, in the order of time, slice and number.
    pub fn take_outside_requests(&mut self) -> Vec<OutsideRequest> {
        let mut all = Vec::new();
        for id in self.places.slices() {
            // Looking first keeps idle slices asleep.
            if self.slice_asks(id.0 - self.places.first_slice)
                && let GpuPartition::Slice(slice) = self.engine.partition_mut(id)
            {
                all.append(&mut slice.take_outside());
            }
        }
        all.sort_by_key(|request| (request.at, request.number));
        all
    }

    /// Goes on as what was loaded.
    pub(super) fn take_on_outside(&mut self) {
        self.options.outside_memory = self.slice(0).is_some_and(L2Slice::is_outside);
    }

    fn slice_asks(&self, number: u32) -> bool {
        self.slice(number).is_some_and(L2Slice::asks_outside)
    }

    fn slice(&self, number: u32) -> Option<&L2Slice> {
        let id = self.places.slices().nth(number as usize)?;
        match self.engine.partition(id) {
            GpuPartition::Slice(slice) => Some(slice),
            _ => None,
        }
    }

    /// Requests that have left and are not complete.
    #[must_use]
    pub fn waits_for_outside(&self) -> usize {
        if !self.options.outside_memory {
            return 0;
        }
        let slices = (0..self.places.slices).filter_map(|number| self.slice(number));
        slices.map(L2Slice::waits_for_outside).sum()
    }

    /// A request is complete at a time, or now if that has passed. Its answer needs the way back to the SM.
    ///
    /// # Errors
    /// There is no such request, or it is complete.
    pub fn complete_outside(&mut self, request: u64, at: Time) -> Result<(), GpuError> {
        let slices = u64::from(self.places.slices);
        let id = Some(slice_of(request)).filter(|slice| *slice < slices);
        let id = id.and_then(|slice| self.places.slices().nth(slice as usize));
        let answer = id.and_then(|id| match self.engine.partition_mut(id) {
            GpuPartition::Slice(slice) => slice.complete_outside(request),
            _ => None,
        });
        let (Some(id), Some(answer)) = (id, answer) else {
            return Err(GpuError::Outside(format!(
                "no request {request:#x} waits for its completion"
            )));
        };
        self.outside_acts();
        self.engine.post(id, at.max(self.now()), answer)?;
        Ok(())
    }

    /// Has blocks that end be listed, or not.
    pub fn list_ended_blocks(&mut self, list: bool) {
        self.distributor_mut().list_ended_blocks(list);
    }

    /// Takes the blocks that have ended, in their order.
    pub fn take_ended_blocks(&mut self) -> Vec<EndedBlock> {
        match self.distributor().has_ended_blocks() {
            true => self.distributor_mut().take_ended_blocks(),
            false => Vec::new(),
        }
    }
}
