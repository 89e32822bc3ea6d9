//! What the parts of a GPU say to each other.
//!
//! A load goes as [`Message::Read`] or [`Message::Strong`] from its SM to the home slice and comes back
//! as [`Message::ReadDone`] or [`Message::Performed`]; over a network, both travel as packets.
//!
//! Start reading at [`Message`].

use lockstep_counters::Counters;
use lockstep_isa::device_runtime::DeviceRuntimeCall;
use lockstep_isa::memory::{AtomicOperation, AtomicType};
use lockstep_isa::semantics::mbarrier::Change;
use lockstep_uvm::{Order, PageSize, Scope};
use serde::{Deserialize, Serialize};

use crate::crossbar::Packet;
use crate::l2::Reply;
use crate::memory::{LINE, SECTOR, SectorBytes};

/// Everything that travels over links.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// Outside to work distributor: a launch waits in the table.
    Launch(u32),
    /// Work distributor to SM: run this block.
    StartBlock {
        /// Launch.
        launch: u32,
        /// Linear index of the block in its grid.
        block: u64,
        /// The launch, as slices know it.
        tag: u8,
        /// Grids before it have not ended.
        waits: bool,
    },
    /// Work distributor to SM: run this block of a cluster.
    StartCluster(Box<StartCluster>),
    /// SM to SM: an access to shared memory of another block of the cluster, or an arrival at its barrier.
    Cluster(Box<ClusterRequest>),
    /// SM to SM: it is performed; loads and atomics carry what was read.
    ClusterDone(Box<ClusterRequest>),
    /// SM to work distributor: a block lets the grid that follows begin.
    DependentsMayStart {
        /// Launch.
        launch: u32,
    },
    /// Work distributor to SM: the grids before this launch have ended.
    PrerequisitesDone {
        /// Launch.
        launch: u32,
    },
    /// SM to work distributor: a block has ended.
    BlockDone(Box<BlockDone>),
    /// SM to work distributor: allocate or free on the device heap.
    Heap(Box<HeapRequest>),
    /// Work distributor to SM: the answer.
    HeapDone(Box<HeapRequest>),
    /// SM to work distributor: a call of the device runtime.
    DeviceRuntime(Box<DeviceRuntimeRequest>),
    /// Work distributor to SM: the answer.
    DeviceRuntimeDone(Box<DeviceRuntimeRequest>),
    /// SM to slice: perform this.
    Strong(Box<StrongRequest>),
    /// Slice to SM: performed; loads and atomics carry what was read.
    Performed(Box<StrongRequest>),
    /// SM to slice: some sectors of a line; timing only, values were read at issue.
    Read {
        /// Number of the line.
        line: u64,
        /// Which of its sectors.
        sectors: u8,
        /// Number that the SM knows it by.
        miss: u32,
        /// Whose it is.
        tag: u8,
    },
    /// Slice to SM: these sectors.
    ReadDone {
        /// Number that the SM knows it by.
        miss: u32,
    },
    /// Slice to SM: it has taken up so many requests, and has room for as many more.
    Credits(u16),
    /// SM to slice: some sectors of a line were written; timing only.
    Write {
        /// Number of the line.
        line: u64,
        /// Which of its sectors.
        sectors: u8,
        /// Those of them of which only some bytes were written.
        partial: u8,
        /// Whose it is.
        tag: u8,
    },
    /// Work distributor to slice: say when all writes of this launch are in.
    Drain {
        /// Launch.
        launch: u32,
        /// The launch, as slices know it.
        tag: u8,
    },
    /// Slice to work distributor: they are.
    Drained {
        /// Launch.
        launch: u32,
    },
    /// Outside to slice: a request that left the GPU is complete; its answer, if somebody waits for one.
    OutsideDone(Option<Box<Reply>>),
    /// Work distributor to slice: invalidate what is cached.
    InvalidateAll,
    /// SM to GMMU: translate a managed page.
    Translate {
        /// Page.
        page: u64,
        /// Whether it is to be written.
        write: bool,
        /// Sectors that are wanted of it.
        sectors: u8,
        /// Accesses of one instruction that wait for it.
        accesses: u8,
        /// The warp whose instruction that is.
        warp: u8,
    },
    /// SM to GMMU: more accesses wait for a page that is on the host.
    Again {
        /// Page.
        page: u64,
        /// Whether one of them writes.
        write: bool,
        /// Entries of the fault buffer that they make.
        entries: u8,
    },
    /// SM to GMMU: a managed page is in use.
    Used {
        /// Page.
        page: u64,
        /// Whether it was written.
        write: bool,
    },
    /// GMMU to SM: the page is mapped.
    Translated {
        /// Page.
        page: u64,
        /// What the entry covers.
        size: PageSize,
        /// Whether it is not to be written without asking.
        read_only: bool,
    },
    /// GMMU to SM: the access was made over the link to the host.
    Remote {
        /// Page.
        page: u64,
    },
    /// GMMU to SM: the page is on the host.
    Nack {
        /// Page.
        page: u64,
    },
    /// GMMU to SM: the page is there, ask again.
    Replay {
        /// Page.
        page: u64,
    },
    /// GMMU to SM: invalidate translations.
    ShootDown(Scope),
    /// GMMU to SM and slice: invalidate what is cached of some pages.
    Invalidate {
        /// First page.
        first: u64,
        /// Pages.
        count: u32,
    },
    /// GMMU to slice: the link between host and device writes or reads these lines.
    Dma(Box<DmaLines>),
    /// Outside to GMMU: the program moves managed memory.
    Managed(Box<ManagedRequest>),
    /// SM or slice to a network, or network to slice: a packet on its way.
    Packet(Box<Packet>),
}

impl Message {
    /// In words, for people who watch.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Strong(request) | Self::Performed(request) => {
                let what = match request.action {
                    StrongAction::Load => "strong load".into(),
                    StrongAction::Store => "strong store".into(),
                    StrongAction::Atomic(action, _) => format!("atomic {action:?}"),
                    StrongAction::Reduce(action, _) => format!("reduction {action:?}"),
                };
                let done = match self {
                    Self::Performed(_) => "answer to ",
                    _ => "",
                };
                let address = request.sector * SECTOR;
                format!(
                    "{done}{what} of {:#x}, {} lanes",
                    address,
                    request.lanes.len()
                )
            }
            Self::Read { line, sectors, .. } => {
                format!(
                    "read of {:#x}, sectors {sectors:04b}",
                    line.wrapping_mul(LINE)
                )
            }
            Self::Write { line, sectors, .. } => {
                format!(
                    "write of {:#x}, sectors {sectors:04b}",
                    line.wrapping_mul(LINE)
                )
            }
            Self::ReadDone { miss } => format!("sectors of miss {miss}"),
            Self::StartBlock { launch, block, .. } => format!("block {block} of launch {launch}"),
            Self::StartCluster(start) => {
                let (_, block) = start.blocks[start.rank as usize];
                format!("block {block} of launch {}, of a cluster", start.launch)
            }
            Self::Cluster(request) => format!(
                "{} shared memory of block {}, {} lanes",
                request.action.words(),
                request.block,
                request.lanes.len()
            ),
            Self::BlockDone(done) => format!("end of a block of launch {}", done.launch),
            Self::Packet(packet) => packet.message.words(),
            other => format!("{other:?}"),
        }
    }
}

/// A block of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartCluster {
    /// Launch.
    pub launch: u32,
    /// The launch, as slices know it.
    pub tag: u8,
    /// Grids before it have not ended.
    pub waits: bool,
    /// The block's number in the cluster.
    pub rank: u32,
    /// SM and number in the grid of each block, by rank.
    pub blocks: Vec<(u32, u64)>,
}

/// What a block of a cluster asks of another, or tells it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterRequest {
    /// Launch.
    pub launch: u32,
    /// The block that it is for, by its number in the grid.
    pub block: u64,
    /// What is to be done.
    pub action: ClusterAction,
    /// What each lane accesses.
    pub lanes: Vec<ClusterLane>,
    /// Transaction of the SM that asks.
    pub transaction: u32,
    /// Order of the access among those of that SM, for fences.
    pub generation: u64,
}

impl ClusterRequest {
    /// Without lanes.
    #[must_use]
    pub fn new(launch: u32, block: u64, action: ClusterAction) -> Box<Self> {
        Box::new(Self {
            launch,
            block,
            action,
            lanes: Vec::new(),
            transaction: u32::MAX,
            generation: 0,
        })
    }
}

/// What is done to shared memory of another block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClusterAction {
    /// Read it.
    Load,
    /// Write it.
    Store,
    /// Read, modify, write; return the old values.
    Atomic(AtomicOperation, AtomicType),
    /// Read, modify, write.
    Reduce(AtomicOperation, AtomicType),
    /// Write it, and tell an `mbarrier` beside it of the bytes.
    StoreAsync,
    /// Read, modify, write, and tell an `mbarrier` of the bytes.
    ReduceAsync(AtomicOperation, AtomicType),
    /// Change an `mbarrier`.
    Mbarrier,
    /// All threads of a block have arrived at the barrier of the cluster.
    Arrived {
        /// Its number in the cluster.
        rank: u32,
        /// Phases that it has arrived at.
        phases: u32,
    },
}

impl ClusterAction {
    /// In words, for errors.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Load => "a load from",
            Self::Store => "a store to",
            Self::Atomic(..) | Self::Reduce(..) => "an atomic on",
            Self::StoreAsync => "an asynchronous store to",
            Self::ReduceAsync(..) => "an asynchronous reduction to",
            Self::Mbarrier => "an arrival at an mbarrier in",
            Self::Arrived { .. } => "an arrival at the barrier of a cluster, not",
        }
    }
}

/// What one lane accesses in shared memory of another block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterLane {
    /// Lane.
    pub lane: u8,
    /// Bytes that it accesses.
    pub bytes: u8,
    /// Where.
    pub place: u32,
    /// The `mbarrier` that is told.
    pub mbarrier: u32,
    /// What is written or was read; atomics have the operand, then the second one.
    pub words: [u32; 4],
    /// What an `mbarrier` is changed by.
    pub change: Change,
}

impl ClusterLane {
    /// The words as bytes.
    #[must_use]
    pub fn as_bytes(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        for (to, word) in bytes.chunks_exact_mut(4).zip(self.words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Takes bytes as words.
    pub fn set_bytes(&mut self, bytes: [u8; 16]) {
        for (word, from) in self.words.iter_mut().zip(bytes.chunks_exact(4)) {
            *word = u32::from_le_bytes([from[0], from[1], from[2], from[3]]);
        }
    }

    /// Two words from one on.
    #[must_use]
    pub fn long(&self, first: usize) -> u64 {
        u64::from(self.words[first]) | u64::from(self.words[first + 1]) << 32
    }
}

/// Lines of one slice that DMA moves between host and device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DmaLines {
    /// Written here, or read and gone.
    pub to_device: bool,
    /// Pages, and which of their lines are those of the slice.
    pub lines: Vec<(u64, u32)>,
}

/// What a program asks of managed memory, to be done in simulated time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManagedRequest {
    /// Number by which it is asked for later.
    pub ticket: u64,
    /// What is to be done.
    pub action: ManagedAction,
}

/// What is to be done with managed memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ManagedAction {
    /// Move pages.
    Prefetch {
        /// First address.
        address: u64,
        /// Bytes.
        bytes: u64,
        /// Towards the device or the host.
        to_device: bool,
    },
    /// The host touches a page.
    HostAccess {
        /// Address.
        address: u64,
        /// Bytes.
        bytes: u64,
        /// Whether it writes.
        write: bool,
    },
    /// Bring back everything that was written.
    Flush,
    /// What the directory of a node with several GPUs says; the ticket means nothing.
    Order(Order),
}

/// A block has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockDone {
    /// Launch.
    pub launch: u32,
    /// It had let the grid that follows begin before.
    pub triggered: bool,
    /// Blocks of the launch that could come for the warps that have left, this one's or others'.
    pub rooms: u32,
    /// What the block counted, with what the SM counted for the launch if this was the last of
    /// its blocks there.
    pub counters: Counters,
}

/// What lanes of one warp ask of the device heap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeapRequest {
    /// Warp slot in the SM.
    pub warp: u8,
    /// Register of the answer, if it is an allocation.
    pub result: Option<u16>,
    /// True to allocate, false to free.
    pub allocate: bool,
    /// Lane and size, or lane and pointer; the answer replaces the size by the pointer.
    pub lanes: Vec<(u8, u64)>,
    /// The instruction that asks.
    pub pc: u32,
    /// The answer to a free of what is no allocation: lane and pointer.
    pub invalid: Option<(u8, u64)>,
}

/// What lanes of one warp ask of the device runtime.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceRuntimeRequest {
    /// The launch that the warp belongs to.
    pub launch: u32,
    /// Warp slot in the SM.
    pub warp: u8,
    /// Number of its block in the grid.
    pub block: u64,
    /// Number of its first thread in the block.
    pub first_thread: u32,
    /// What is asked.
    pub call: DeviceRuntimeCall,
    /// Answers are CUDA's errors, and become the last ones of the threads.
    pub library: bool,
    /// First register of the answer.
    pub result: Option<u16>,
    /// The lanes that ask, ascending.
    pub lanes: Vec<DeviceRuntimeLane>,
}

/// What one lane asks of the device runtime, and what it is answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceRuntimeLane {
    /// Lane.
    pub lane: u8,
    /// Arguments in their order; dimensions are three each.
    pub arguments: [u64; 10],
    /// An error or an address.
    pub answer: u64,
    /// What is to be written where the first argument points.
    pub stored: Option<u64>,
    /// What becomes the last error of the thread, if it is not 0.
    pub last_error: u32,
}

impl DeviceRuntimeLane {
    /// Without arguments yet.
    #[must_use]
    pub fn new(lane: usize) -> Self {
        Self {
            lane: lane as u8,
            ..Self::default()
        }
    }
}

/// One access of one warp to one sector, performed at its home slice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrongRequest {
    /// What to do.
    pub action: StrongAction,
    /// Number of the sector.
    pub sector: u64,
    /// Stores: bytes to write.
    pub mask: u32,
    /// Stores: their values. Loads: the sector as it was.
    pub bytes: SectorBytes,
    /// Loads and atomics: the lanes and where they look.
    pub lanes: Vec<LaneAccess>,
    /// Transaction of the SM.
    pub transaction: u32,
    /// Order of the access among those of its SM, for fences.
    pub generation: u64,
    /// Loads: sectors of its line that its instruction asks for, a bit each.
    pub of_line: u8,
    /// The launch that it belongs to, as slices know it.
    pub tag: u8,
    /// Of a multicast object: which of its members the sector is of.
    pub member: u8,
    /// Of a multicast object: how many members it has; none is an access by any other address.
    pub members: u8,
}

impl StrongRequest {
    /// Bytes of its answer beside the header.
    #[must_use]
    pub fn answer_bytes(&self) -> u32 {
        match self.action {
            StrongAction::Load => SECTOR as u32,
            StrongAction::Atomic(_, kind) => {
                let elements = self.lanes.len() / LaneAccess::needed(kind);
                kind.bytes() * elements as u32
            }
            StrongAction::Store | StrongAction::Reduce(..) => 0,
        }
    }
}

/// What a slice does with a sector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum StrongAction {
    /// Read it.
    #[default]
    Load,
    /// Write it.
    Store,
    /// Read, modify, write; return the old values.
    Atomic(AtomicOperation, AtomicType),
    /// Read, modify, write.
    Reduce(AtomicOperation, AtomicType),
}

/// What one lane accesses in a sector. An atomic on 128 bits is two of them, the lower half first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneAccess {
    /// Lane.
    pub lane: u8,
    /// First byte in the sector.
    pub offset: u8,
    /// Which element of the access.
    pub element: u8,
    /// Atomics: the operand (the comparand for compare and swap); then the old value.
    pub operand: u64,
    /// Compare and swap: the new value.
    pub second: u64,
}

impl LaneAccess {
    /// How many a lane needs for one element of a type.
    #[must_use]
    pub const fn needed(kind: AtomicType) -> usize {
        match kind {
            AtomicType::B128 => 2,
            _ => 1,
        }
    }

    /// One part of those of an element, as one value.
    #[must_use]
    pub fn joined(accesses: &[Self], part: impl Fn(&Self) -> u64) -> u128 {
        let halves = accesses.iter().rev();
        halves.fold(0, |value, access| value << 64 | u128::from(part(access)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every message is copied several times on its way; the scope of a shootdown is the largest.
    #[test]
    fn a_message_is_no_larger_than_three_words() {
        assert!(size_of::<Message>() <= 24);
    }
}
