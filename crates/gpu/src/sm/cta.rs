//! Thread blocks (CTAs) of one SM, and the launches that they belong to.

use std::sync::Arc;

use lockstep_counters::Counters;
use lockstep_engine::{LoadError, Reader, Writer};
use serde::{Deserialize, Serialize};

use super::barrier::{BARRIERS, Barrier};
use super::cluster::ClusterMember;
use super::mbarrier_table::MbarrierTable;
use super::tracing::BlockTrace;
use super::warpgroup::Warpgroups;
use crate::check::race::RaceChecker;
use crate::l2::NO_LAUNCH;
use crate::launch::{LaunchContext, LaunchTable};

/// A launch, counted by the SM for itself: barriers hold on to it for a moment, and a count that all SMs
/// share would go from processor to processor with each of them.
pub type OwnContext = Arc<Arc<LaunchContext>>;

/// The slot of a warp that has left.
pub const GONE: u8 = u8::MAX;

/// A block and what its warps share.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Block {
    /// Launch it is a block of.
    pub launch: u32,
    /// The launch, as slices know it.
    pub tag: u8,
    /// Linear index in the grid.
    pub index: u64,
    /// Slots of its warps, by their number in the block.
    pub warps: Vec<u8>,
    /// Warps that have not ended, by their number in the block.
    pub live: u32,
    /// Shared memory.
    pub shared: Vec<u8>,
    /// Barriers in it.
    pub mbarriers: MbarrierTable,
    /// The cluster, if it is of one.
    pub cluster: Option<Box<ClusterMember>>,
    /// Grids before its own have not ended.
    pub waits: bool,
    /// It has let the grid that follows begin.
    pub triggered: bool,
    /// Barriers.
    pub barriers: [Barrier; BARRIERS],
    /// What it counted.
    pub counters: Counters,
    /// Cycle in which it started.
    pub since: u64,
    /// Cycle in which its last store is known to have arrived.
    pub stored: u64,
    /// What its warp groups have under way, if they ever had.
    pub warpgroups: Option<Box<Warpgroups>>,
    /// Who touched its shared memory, if races are looked for.
    pub race: Option<Box<RaceChecker>>,
    /// What its warps have executed, if somebody wants to know.
    pub trace: Option<Box<BlockTrace>>,
}

/// A launch with blocks on this SM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResidentLaunch {
    launch: u32,
    blocks: u32,
    since: u64,
    /// Warps that have left each sub-core, since the launch came.
    left: Vec<u32>,
    /// Blocks that have ended.
    ended: u32,
    /// Blocks for which the work distributor was told that there is room.
    rooms: u32,
}

impl ResidentLaunch {
    /// A block of so many warps has ended. For how many more blocks there is room now: as many as
    /// could be dealt to the sub-cores for the warps that have left them, and at least one for each
    /// block that has ended.
    fn end_block(&mut self, warps: u32) -> u32 {
        self.ended += 1;
        let sub_cores = self.left.len() as u32;
        let dealt = if warps.is_multiple_of(sub_cores) {
            let fewest = self.left.iter().min().copied().unwrap_or(0);
            fewest / (warps / sub_cores)
        } else {
            // Blocks whose warps cannot be dealt evenly fill what others of them leave.
            self.left.iter().sum::<u32>() / warps
        };
        let rooms = dealt.max(self.ended);
        let more = rooms - self.rooms;
        self.rooms = rooms;
        more
    }
}

/// The blocks of an SM by slot, and their launches.
#[derive(Debug)]
pub struct BlockTable {
    /// Blocks.
    pub blocks: Vec<Option<Box<Block>>>,
    /// Launches of the blocks.
    pub contexts: Vec<Option<OwnContext>>,
    /// Launches that are here.
    resident: Vec<ResidentLaunch>,
}

impl BlockTable {
    /// No blocks, and room for some.
    #[must_use]
    pub fn new(slots: usize) -> Self {
        Self {
            blocks: (0..slots).map(|_| None).collect(),
            contexts: vec![None; slots],
            resident: Vec::new(),
        }
    }

    /// The launch of the block in a slot.
    #[must_use]
    #[inline]
    pub fn launch_of(&self, slot: u8) -> Option<&LaunchContext> {
        let context = self.contexts[usize::from(slot)].as_deref();
        context.map(|context| &**context)
    }

    /// The launch of the block in a slot, as slices know it.
    #[must_use]
    pub fn tag_of(&self, slot: u8) -> u8 {
        let block = self.blocks[usize::from(slot)].as_ref();
        block.map_or(NO_LAUNCH, |block| block.tag)
    }

    /// The launch, as another block here has it or else from the table.
    ///
    /// # Panics
    /// If the table does not have it.
    #[must_use]
    pub fn own_context(&self, launch: u32, launches: &LaunchTable) -> OwnContext {
        let mut here = self.contexts.iter().flatten();
        if let Some(context) = here.find(|context| context.id.0 == launch) {
            return Arc::clone(context);
        }
        let context = launches.get(launch);
        Arc::new(context.expect("the work distributor starts launches of the table"))
    }

    /// Whether the blocks that are here are all of one launch.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.resident.len() == 1
    }

    /// A block of a launch comes; says whether it is the first of its launch here.
    pub fn add(&mut self, launch: u32, sub_cores: usize, cycle: u64) -> bool {
        let mut all = self.resident.iter_mut();
        if let Some(known) = all.find(|resident| resident.launch == launch) {
            known.blocks += 1;
            return false;
        }
        self.resident.push(ResidentLaunch {
            launch,
            blocks: 1,
            since: cycle,
            left: vec![0; sub_cores],
            ended: 0,
            rooms: 0,
        });
        true
    }

    /// A warp of a block has ended and has all its answers: its slot is free, though its block may
    /// not have ended.
    pub fn warp_leaves(&mut self, block: u8, member: usize, slot: u8) {
        let block = self.blocks[usize::from(block)].as_mut();
        let block = block.expect("a warp has a block");
        block.warps[member] = GONE;
        let launch = block.launch;
        let mut all = self.resident.iter_mut();
        let resident = all.find(|resident| resident.launch == launch);
        let resident = resident.expect("the launch of a block is resident");
        let sub_core = usize::from(slot) % resident.left.len();
        resident.left[sub_core] += 1;
    }

    /// Takes a block out that has ended, with its counters complete. Says for how many more blocks
    /// there is room now.
    ///
    /// # Panics
    /// If there is no such block.
    pub fn remove(&mut self, slot: u8, cycle: u64) -> (Box<Block>, u32) {
        let block = self.blocks[usize::from(slot)].take();
        let mut block = block.expect("a block ends once");
        self.contexts[usize::from(slot)] = None;
        let counters = &mut block.counters;
        counters.blocks_completed = 1;
        counters.warp_cycles += (cycle - block.since) * block.warps.len() as u64;
        let mut all = self.resident.iter();
        let place = all.position(|resident| resident.launch == block.launch);
        let place = place.expect("the launch of a block is resident");
        self.resident[place].blocks -= 1;
        let rooms = self.resident[place].end_block(block.warps.len() as u32);
        if self.resident[place].blocks == 0 {
            counters.active_cycles = cycle - self.resident.remove(place).since;
        }
        (block, rooms)
    }

    /// Adds what blocks have counted that have not ended, until a cycle.
    pub fn add_counted(&self, cycle: u64, all: &mut Counters) {
        for block in self.blocks.iter().flatten() {
            all.add(&block.counters);
            all.warp_cycles += cycle.saturating_sub(block.since) * block.warps.len() as u64;
        }
        for resident in &self.resident {
            all.active_cycles += cycle.saturating_sub(resident.since);
        }
    }

    /// Writes everything.
    pub fn save(&self, writer: &mut Writer<'_>) {
        writer.write(&self.blocks);
        writer.write(&self.resident);
    }

    /// Takes on what was saved; the launches of the blocks must be in the table.
    ///
    /// # Errors
    /// If the bytes are not what `save` wrote, or a launch is missing.
    pub fn load(
        &mut self,
        reader: &mut Reader<'_>,
        launches: &LaunchTable,
    ) -> Result<(), LoadError> {
        let malformed = |what| LoadError::Malformed { what };
        let blocks: Vec<_> = reader.read()?;
        if blocks.len() != self.blocks.len() {
            return Err(malformed("another number of block slots"));
        }
        self.blocks = blocks;
        for (slot, block) in self.blocks.iter().enumerate() {
            self.contexts[slot] = match block {
                Some(block) => {
                    let context = launches.get(block.launch).map(Arc::new);
                    Some(context.ok_or(malformed("a block of an unknown launch"))?)
                }
                None => None,
            };
        }
        self.resident = reader.read()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resident(left: &[u32]) -> ResidentLaunch {
        ResidentLaunch {
            launch: 0,
            blocks: 4,
            since: 0,
            left: left.to_vec(),
            ended: 0,
            rooms: 0,
        }
    }

    #[test]
    fn warps_that_have_left_make_room_alike_from_all_sub_cores() {
        let mut here = resident(&[8, 9, 8, 11]);
        assert_eq!(here.end_block(16), 2, "of several blocks");
        here.left = vec![11, 9, 12, 12];
        assert_eq!(here.end_block(16), 0, "the room was told of before");
        here.left = vec![12, 12, 12, 12];
        assert_eq!(here.end_block(16), 1);
        // Six warps are not dealt evenly.
        assert_eq!(resident(&[3, 0, 9, 1]).end_block(6), 2);
    }

    /// Other launches may have been in the way when the warps were dealt.
    #[test]
    fn every_block_that_ends_makes_room() {
        let mut here = resident(&[0, 2, 1, 1]);
        assert_eq!(here.end_block(4), 1);
        here.left = vec![1, 3, 2, 2];
        assert_eq!(here.end_block(4), 1);
    }
}
