//! Whether any warp of the GPU can still make progress.
//!
//! When no block has begun or ended for long, all warps are watched for a while. If no byte of memory
//! changes meanwhile, and every warp comes back to a state that it was in (see
//! [`recurrence`](crate::sm::recurrence)) or waits for others at a barrier, then nothing will ever
//! change, unless somebody outside the GPU writes its memory. Kernels that compute for long are watched
//! until the first warp is found to move on, which is soon; the next look comes after twice the time.
//!
//! Start reading at [`Liveness::look`].

use std::sync::atomic::{AtomicBool, Ordering};

use lockstep_engine::{PartitionId, Partitions};
use lockstep_units::{Duration, Time};

use crate::partition::GpuPartition;
use crate::sm::Sm;

/// The watch over all warps.
#[derive(Debug)]
pub struct Liveness {
    /// How long no block begins or ends before the first look.
    patience: Duration,
    sms: std::ops::Range<u32>,
    /// Blocks that had begun and ended at the last boundary.
    blocks: (u64, u64),
    /// When that changed last.
    since: Time,
    /// When the next look begins.
    next: Time,
    /// Until when warps are watched, if they are.
    until: Option<Time>,
    /// Memory has changed since the look began.
    changed: AtomicBool,
    /// The last look found that nothing can go on.
    stuck: bool,
}

impl Liveness {
    /// Nothing is watched yet.
    pub fn new(patience: Duration, sms: std::ops::Range<u32>) -> Self {
        Self {
            patience,
            sms,
            blocks: (0, 0),
            since: Time::ZERO,
            next: Time::ZERO + patience,
            until: None,
            changed: AtomicBool::new(false),
            stuck: false,
        }
    }

    /// Whether commits are to say if they change memory: only while warps are watched, and until one did.
    pub fn compares(&self) -> bool {
        self.until.is_some() && !self.changed.load(Ordering::Relaxed)
    }

    /// Memory has changed.
    pub fn memory_changed(&self) {
        self.changed.store(true, Ordering::Relaxed);
    }

    /// Whether the last look found that nothing can go on.
    pub fn is_stuck(&self) -> bool {
        self.stuck
    }

    /// Looks whether warps make progress, at a boundary, when so many blocks have begun and ended. True if they
    /// never will.
    pub fn look(
        &mut self,
        now: Time,
        blocks: (u64, u64),
        partitions: &mut Partitions<'_, GpuPartition>,
    ) -> bool {
        // What was found last has been told, with what was watched.
        if std::mem::take(&mut self.stuck) {
            self.each_sm(partitions, Sm::end_watch);
        }
        if blocks != self.blocks {
            self.blocks = blocks;
            self.since = now;
            self.next = now + self.patience;
            if self.until.take().is_some() {
                self.each_sm(partitions, Sm::end_watch);
            }
            return false;
        }
        let Some(until) = self.until else {
            if now >= self.next {
                self.changed.store(false, Ordering::Relaxed);
                let long = Duration(now.since(self.since).0 / 4);
                self.until = Some(now + long);
                self.each_sm(partitions, Sm::begin_watch);
            }
            return false;
        };
        let mut moves = self.changed.load(Ordering::Relaxed);
        for sm in self.sms.clone() {
            moves = moves
                || partitions.is_local(PartitionId(sm)) && sm_at(partitions, sm).saw_progress();
        }
        let moves = partitions.any(moves);
        if !moves && now < until {
            return false;
        }
        // An idle GPU is not stuck.
        let (mut stuck, mut warps) = (!moves, false);
        self.each_sm(partitions, |sm| {
            stuck = stuck && sm.is_stuck();
            warps = warps || sm.has_warps();
        });
        stuck = !partitions.any(!stuck) && partitions.any(warps);
        self.stuck = stuck;
        if !stuck {
            self.each_sm(partitions, Sm::end_watch);
        }
        self.until = None;
        self.next = now + now.since(self.since);
        stuck
    }

    /// Does something with every SM that has warps; the others sleep on.
    fn each_sm(
        &self,
        partitions: &mut Partitions<'_, GpuPartition>,
        mut change: impl FnMut(&mut Sm),
    ) {
        for number in self.sms.clone() {
            if partitions.is_local(PartitionId(number))
                && sm_at(partitions, number).is_concerned()
                && let GpuPartition::Sm(sm) = partitions.get_mut(PartitionId(number))
            {
                change(sm);
            }
        }
        // Other ranks have to know that SMs were woken here.
        partitions.any(false);
    }
}

fn sm_at<'a>(partitions: &'a Partitions<'_, GpuPartition>, number: u32) -> &'a Sm {
    match partitions.get(PartitionId(number)) {
        GpuPartition::Sm(sm) => sm,
        other => panic!("partition {number} is no SM but {other:?}"),
    }
}
