//! What the runtime needs of the simulated hardware, and nothing more.
//!
//! The hardware advances only inside these calls; between them it stands still at a boundary, so
//! its memory can be read and written freely.

use crate::LaunchSummary;
use crate::timeline::Moves;
use lockstep_counters::LaunchCounters;
use lockstep_isa::Launch;
use lockstep_protocol::{CuResult, Extent, MemoryAccess, Rows};
use lockstep_units::Time;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

/// What is known of a kernel that has ended. What a mode does not know is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelResult {
    /// The number of the launch.
    pub id: u64,
    /// When its first block was sent out or its launch began on the device.
    pub start: Time,
    /// When its blocks had ended.
    pub end: Time,
    /// When the grids that it launched were complete as well, if it launched any.
    pub complete: Option<Time>,
    /// The cycle of the SM clock in which it started, if the mode knows it.
    pub start_cycle: Option<u64>,
    /// What was counted.
    pub counters: LaunchCounters,
    /// What it was, if a kernel launched it; then the number is that of the launch by the host that it goes
    /// back to.
    pub by_kernel: Option<Box<KernelLaunch>>,
}

/// A launch by a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelLaunch {
    /// The device's own number of it.
    pub number: u32,
    /// That of the launch whose kernel launched it.
    pub parent: u32,
    /// Mangled name of the kernel.
    pub kernel: String,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Registers of a thread.
    pub registers: u32,
    /// Shared memory of a block in bytes, static and dynamic.
    pub shared: u64,
}

/// Something that a copy engine does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Its number, in the order in which transfers began.
    pub number: u64,
    /// The copy engine.
    pub engine: u32,
    /// The stream.
    pub stream: u64,
    /// What it moves.
    pub moves: Moves,
    /// When it begins.
    pub start: Time,
    /// When it ends.
    pub end: Time,
}

/// Why the hardware stopped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    /// CUDA's code for it.
    pub code: CuResult,
    /// The launch that it happened in.
    pub launch: Option<u64>,
    /// Kernel, block, thread, instruction, line, and what to do.
    pub message: String,
    /// The address in global memory that it is about, if it is about one.
    pub address: Option<u64>,
    /// Whether a real GPU may not have it: something is lacking here, a check of the simulator found it, or the
    /// simulator gave up waiting.
    pub of_simulator: bool,
}

/// How an advance ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Advance {
    /// The limit was reached, or kernels ended before it, or both.
    Reached(Vec<KernelResult>),
    /// A kernel did something that it must not.
    Faulted(Fault),
    /// Somebody asked the run to stop.
    Stopped,
    /// A call has come for which the advance was to end ([`Device::listen`]); it stands at a boundary.
    Called,
}

/// Whether somebody makes a call; asked now and then while time passes.
pub type Listener = Arc<dyn Fn() -> bool + Send + Sync>;

/// Advice on the use of managed pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// They are mostly read, or no longer: copies of them may be in several places.
    ReadMostly(bool),
    /// They belong on the host.
    PreferredHost,
    /// They belong on a GPU.
    PreferredDevice(u32),
    /// They belong nowhere in particular.
    PreferredNone,
    /// A GPU will reach them wherever they are, or no longer.
    AccessedBy(u32, bool),
}

/// Managed pages that begin to go from one GPU to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carry {
    /// Number by which [`Device::managed_carried`] knows them.
    pub number: u64,
    /// The GPU that had them.
    pub from: u32,
    /// The GPU that gets them.
    pub to: u32,
    /// Bytes.
    pub bytes: u64,
}

/// A part of the machine outside the hardware, for those who watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A copy engine, by number.
    Copy(u32),
    /// The host.
    Host,
}

/// A multicast object as kernels of one GPU may use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MulticastView {
    /// Bytes that are mapped, from offset 0 on.
    pub bytes: u64,
    /// Whether kernels may write.
    pub writable: bool,
    /// Its GPUs, by number.
    pub members: Vec<MulticastMember>,
}

/// What one GPU has bound to a multicast object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MulticastMember {
    /// The GPU.
    pub gpu: u32,
    /// Offsets and where their memory is, by offset.
    pub bound: Vec<(Range<u64>, u64)>,
}

/// The simulated hardware.
pub trait Device {
    /// Says what multicast object kernels of a GPU have at an address, or that they have none there.
    fn set_multicast(&mut self, _gpu: u32, _address: u64, _view: Option<MulticastView>) {}

    /// Notes what a part outside the hardware does, if somebody watches.
    fn note(&mut self, _part: Part, _at: Time, _words: &dyn Fn() -> String) {}

    /// A launch was asked for; [`launch`](Self::launch) hands it over when its turn comes. For those who
    /// write it down.
    fn announce(&mut self, _launch: &LaunchSummary) {}

    /// A copy engine begins to work. For those who write it down.
    fn transfer(&mut self, _transfer: &Transfer) {}

    /// GPUs that there are; they are numbered from 0.
    fn gpus(&self) -> u32 {
        1
    }

    /// The GPUs of the node that a GPU is on.
    fn neighbours(&self, _gpu: u32) -> Range<u32> {
        0..self.gpus()
    }

    /// A context is made on a GPU: it may have work from now on.
    fn open(&mut self, _gpu: u32) {}

    /// The boundary at which it stands; with several GPUs, the one that all of them have reached.
    fn now(&self) -> Time;

    /// Hands the launch with a number, counted from 0 in the order of calls, to a GPU. It begins at
    /// the first boundary not before its time.
    ///
    /// # Errors
    /// The hardware cannot take it at all.
    fn launch(&mut self, gpu: u32, id: u64, launch: Launch) -> Result<(), Fault>;

    /// Advances to the first boundary not before `limit`, or at which a kernel has ended.
    /// With no kernel running it jumps.
    fn advance(&mut self, limit: Time) -> Advance;

    /// Threads of the host that are inside a call, by process; no others will write memory before the device
    /// does, unless they wake by themselves.
    fn host_is_inside(&mut self, _threads: &BTreeMap<u32, BTreeSet<u32>>) {}

    /// From now on an advance ends when this says that a call has come; none lets it go on to its end.
    fn listen(&mut self, _listener: Option<Listener>) {}

    /// Gives up every running kernel of a GPU, after a fault.
    fn abort(&mut self, gpu: u32);

    /// What kernels printed since the last call.
    fn take_output(&mut self) -> Vec<u8>;

    /// Makes addresses legal that were allocated for a GPU; they read zero.
    fn map(&mut self, gpu: u32, address: u64, bytes: u64);

    /// Lets addresses of a program name memory on the node of a GPU, until that is unmapped; false if they name
    /// other memory already.
    fn alias(&mut self, _gpu: u32, _address: u64, _bytes: u64, _place: u64) -> bool {
        false
    }

    /// Makes addresses illegal again and forgets their contents.
    fn unmap(&mut self, address: u64, bytes: u64);

    /// Says what kernels may do with addresses that have memory of a GPU; their contents stay.
    fn set_access(&mut self, gpu: u32, address: u64, bytes: u64, access: MemoryAccess);

    /// Lets addresses of the window name memory at `place` for all that is read, written and copied past
    /// kernels, or no longer.
    fn name(&mut self, _address: u64, _bytes: u64, _place: Option<u64>) {}

    /// Says what kernels of a GPU may do at addresses that name memory at `place`.
    fn grant(&mut self, _gpu: u32, _address: u64, _bytes: u64, _place: u64, _access: MemoryAccess) {
    }

    /// Moves contents to where nothing is; nothing stays behind.
    fn relocate(&mut self, destination: u64, source: u64, bytes: u64);

    /// Copies out of memory.
    fn read(&self, address: u64, bytes: &mut [u8]);

    /// Copies into memory.
    fn write(&mut self, address: u64, bytes: &[u8]);

    /// Copies within memory; the ranges may overlap only if they are equal.
    fn copy(&mut self, destination: u64, source: u64, bytes: u64);

    /// A copy engine has written rows: it does so through the cache. What came from the host's memory does not stay
    /// there as long as what a device had.
    fn dma_written(&mut self, _rows: Rows, _extent: Extent, _from_host: bool) {}

    /// Gives code on a GPU so many bytes to `malloc` from.
    fn set_heap(&mut self, gpu: u32, bytes: u64);

    /// Lets kernels of a GPU use the memory of a peer, or no longer.
    fn set_peer_access(&mut self, _gpu: u32, _peer: u32, _allowed: bool) {}

    /// Notes that the host wrote here, past the hardware.
    fn touched(&mut self, address: u64, bytes: u64);

    /// Whether managed pages have places: without, they count as being everywhere, and nothing
    /// below is asked but what is allocated and freed.
    fn managed_is_paged(&self) -> bool {
        false
    }

    /// Why there can be no managed memory, in a sentence.
    fn refuses_managed(&self) -> Option<&'static str> {
        None
    }

    /// Managed memory is there; its pages are on the host, or nowhere until somebody touches them.
    fn managed_map(&mut self, _address: u64, _bytes: u64) {}

    /// Managed memory is gone, without being written back.
    fn managed_unmap(&mut self, _address: u64) {}

    /// Moves pages ahead of their use, to a GPU or back to the host; [`Device::managed_done`] says
    /// when that is complete.
    fn managed_prefetch(
        &mut self,
        _ticket: u64,
        _address: u64,
        _bytes: u64,
        _to: Option<u32>,
        _at: Time,
    ) {
    }

    /// Pages that have begun to go from one GPU to another since this was last asked. An advance
    /// ends where there are some.
    fn managed_to_carry(&mut self) -> Vec<Carry> {
        Vec::new()
    }

    /// The last byte of such pages arrives at a time.
    fn managed_carried(&mut self, _number: u64, _at: Time) {}

    /// The host touches pages: they come back, until [`Device::managed_done`].
    fn managed_host_access(
        &mut self,
        _ticket: u64,
        _address: u64,
        _bytes: u64,
        _write: bool,
        _at: Time,
    ) {
    }

    /// Whether all that was written comes back whenever the host has waited for the device.
    fn managed_flushes(&self) -> bool {
        false
    }

    /// All pages come back, until [`Device::managed_done`]: the host may touch any of them.
    fn managed_flush(&mut self, _ticket: u64, _at: Time) {}

    /// When a prefetch or an access was complete, once it is; said once. An advance ends there.
    fn managed_done(&mut self, _ticket: u64) -> Option<Time> {
        Some(Time::ZERO)
    }

    /// The host may have touched a range without being noticed: it has these pages.
    fn managed_populated(&mut self, _address: u64, _bytes: u64) {}

    /// Whether the host does not have the page of an address: its next access has to be noticed.
    fn managed_resident(&self, _address: u64) -> bool {
        false
    }

    /// The parts of a range that the host does not have: address and bytes.
    fn managed_resident_pages(&self, _address: u64, _bytes: u64) -> Vec<(u64, u64)> {
        Vec::new()
    }

    /// Whether pages have moved since this was last asked.
    fn managed_changed(&mut self) -> bool {
        false
    }

    /// Advice on the use of pages, from now on.
    fn managed_advise(&mut self, _address: u64, _bytes: u64, _advice: Advice) {}
}
