//! The kinds of partitions of a GPU as one type for the engine, and the end of an epoch.
//!
//! Start reading at [`GpuPartition`], then at `GpuBoundary::commit`.

use lockstep_engine::{
    Boundary, Control, Inbox, LoadError, Logged, Outbox, Partition, PartitionId, Partitions,
    Reader, Shard, Wake, Window, Writer,
};
use lockstep_units::{Duration, Time};
use std::sync::{Arc, Mutex, PoisonError};

use crate::crossbar::network::Network;
use crate::fault::Fault;
use crate::front::WorkDistributor;
use crate::l2::L2Slice;
use crate::liveness::Liveness;
use crate::memory::commit::{CommitScratch, commit_bucket};
use crate::memory::{BUCKETS, Contents, Log};
use crate::message::Message;
use crate::mmu::Mmu;
use crate::sm::Sm;

/// A part of a GPU.
#[derive(Debug)]
pub enum GpuPartition {
    /// The work distributor.
    WorkDistributor(Box<WorkDistributor>),
    /// A streaming multiprocessor.
    Sm(Box<Sm>),
    /// An L2 slice with its memory.
    Slice(Box<L2Slice>),
    /// The GMMU and the host runtime behind it.
    Mmu(Box<Mmu>),
    /// A network between SMs and slices.
    Network(Box<Network>),
}

impl GpuPartition {
    /// What went wrong in it.
    #[must_use]
    pub fn fault_report(&self) -> Option<&Fault> {
        let fault = match self {
            Self::Sm(sm) => sm.fault(),
            Self::WorkDistributor(distributor) => distributor.fault(),
            Self::Slice(_) | Self::Mmu(_) | Self::Network(_) => None,
        };
        fault.map(|(_, fault)| &**fault)
    }

    fn log(&self) -> Option<&Log> {
        match self {
            Self::Sm(sm) => Some(sm.log()),
            Self::Slice(slice) => Some(slice.log()),
            Self::WorkDistributor(_) | Self::Mmu(_) | Self::Network(_) => None,
        }
    }
}

impl Partition for GpuPartition {
    type Message = Message;

    fn run(
        &mut self,
        window: Window,
        inbox: &mut Inbox<Message>,
        outbox: &mut Outbox<'_, Message>,
    ) -> Wake {
        match self {
            Self::Sm(sm) => sm.run(window, inbox, outbox),
            Self::Slice(slice) => slice.run(window, inbox, outbox),
            Self::WorkDistributor(distributor) => distributor.run(window, inbox, outbox),
            Self::Mmu(mmu) => mmu.run(window, inbox, outbox),
            Self::Network(network) => network.run(window, inbox, outbox),
        }
    }

    fn has_log(&self) -> bool {
        self.log().is_some_and(|log| !log.is_empty())
    }

    fn log_parts(&self) -> u64 {
        self.log().map_or(0, Log::parts)
    }

    fn save_log(&self, writer: &mut Writer<'_>) {
        if let Some(log) = self.log() {
            log.save(writer);
        }
    }

    fn load_log(&mut self, reader: &mut Reader<'_>) -> Result<(), LoadError> {
        match self {
            Self::Sm(sm) => sm.log_mut().load(reader),
            Self::Slice(slice) => slice.log_mut().load(reader),
            Self::WorkDistributor(_) | Self::Mmu(_) | Self::Network(_) => Ok(()),
        }
    }

    fn clear_log(&mut self) {
        match self {
            Self::Sm(sm) => sm.clear_log(),
            Self::Slice(slice) => slice.clear_log(),
            Self::WorkDistributor(_) | Self::Mmu(_) | Self::Network(_) => {}
        }
    }

    fn fault(&self) -> Option<Time> {
        match self {
            Self::Sm(sm) => sm.fault().map(|(at, _)| *at),
            Self::WorkDistributor(distributor) => distributor.fault().map(|(at, _)| *at),
            Self::Slice(_) | Self::Mmu(_) | Self::Network(_) => None,
        }
    }

    fn save(&self, writer: &mut Writer<'_>) {
        match self {
            Self::Sm(sm) => sm.save(writer),
            Self::Slice(slice) => slice.save(writer),
            Self::WorkDistributor(distributor) => distributor.save(writer),
            Self::Mmu(mmu) => mmu.save(writer),
            Self::Network(network) => network.save(writer),
        }
    }

    fn load(&mut self, reader: &mut Reader<'_>) -> Result<(), LoadError> {
        match self {
            Self::Sm(sm) => sm.load(reader),
            Self::Slice(slice) => slice.load(reader),
            Self::WorkDistributor(distributor) => distributor.load(reader),
            Self::Mmu(mmu) => mmu.load(reader),
            Self::Network(network) => network.load(reader),
        }
    }
}

/// What happens between epochs: logs become contents, and kernels that run for too long are
/// noticed.
#[derive(Debug)]
pub struct GpuBoundary {
    contents: Arc<Contents>,
    scratch: Vec<Mutex<CommitScratch>>,
    distributor: PartitionId,
    /// How long a kernel may run.
    watchdog: Option<Duration>,
    liveness: Option<Liveness>,
}

impl GpuBoundary {
    /// A boundary over these contents.
    #[must_use]
    pub fn new(
        contents: Arc<Contents>,
        distributor: PartitionId,
        watchdog: Option<Duration>,
        liveness: Option<Liveness>,
    ) -> Self {
        Self {
            contents,
            scratch: (0..BUCKETS).map(|_| Mutex::default()).collect(),
            distributor,
            watchdog,
            liveness,
        }
    }

    /// Whether the last boundary found that no warp can go on.
    #[must_use]
    pub fn is_stuck(&self) -> bool {
        self.liveness.as_ref().is_some_and(Liveness::is_stuck)
    }

    /// Somebody outside the GPU may write its memory, or has done so.
    pub fn outside_acts(&self) {
        if let Some(liveness) = &self.liveness {
            liveness.memory_changed();
        }
    }
}

impl Boundary<GpuPartition> for GpuBoundary {
    fn commit(&self, _: Window, shard: Shard, logged: Logged<'_, GpuPartition>) {
        let compare = self.liveness.as_ref().is_some_and(Liveness::compares);
        let mut sms: Vec<&Log> = Vec::new();
        for bucket in (shard.index..BUCKETS).step_by(shard.count) {
            let concerned = logged.concerning(1 << bucket);
            // Partitions are numbered kind by kind, so SMs come in the order of their numbers.
            sms.clear();
            sms.extend(concerned.filter_map(|(_, partition)| match partition {
                GpuPartition::Sm(sm) => Some(sm.log()),
                _ => None,
            }));
            let concerned = logged.concerning(1 << bucket);
            let slices = concerned.filter_map(|(_, partition)| match partition {
                GpuPartition::Slice(slice) => Some(slice.log()),
                _ => None,
            });
            let mut scratch = self.scratch[bucket]
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            // SAFETY: no partition runs during a commit, and each bucket belongs to one shard.
            let changed = unsafe {
                commit_bucket(&self.contents, slices, &sms, bucket, &mut scratch, compare)
            };
            if changed && let Some(liveness) = &self.liveness {
                liveness.memory_changed();
            }
        }
    }

    fn after(&mut self, window: Window, partitions: &mut Partitions<'_, GpuPartition>) -> Control {
        let GpuPartition::WorkDistributor(distributor) = partitions.get(self.distributor) else {
            return Control::Continue;
        };
        if let (Some(start), Some(watchdog)) = (distributor.oldest_start(), self.watchdog)
            && window.end.since(start) > watchdog
        {
            return Control::Stop;
        }
        let blocks = distributor.blocks();
        let liveness = self.liveness.as_mut();
        if liveness.is_some_and(|liveness| liveness.look(window.end, blocks, partitions)) {
            return Control::Stop;
        }
        Control::Continue
    }
}
