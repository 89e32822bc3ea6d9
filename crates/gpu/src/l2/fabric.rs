//! The fabric between the two L2 partitions, where one slice meets it.
//!
//! Every slice has a lane of its own to the other partition and one from it, of so many bytes a cycle
//! (`l2.fabric-bytes-per-cycle`); lanes are interleaved by address because slices are. What crosses takes a
//! lane for its bytes: lines that SMs of the other partition read go out, what they write comes in, and so
//! do their requests, a flit each. What has to wait does so in a queue of `l2.fabric-queue` flits; beyond
//! it the slice takes up nothing.
//!
//! As on the bus of DRAM, work is counted in the order in which it arrives, and not gaps: what waits for its
//! turn, or for DRAM, leaves the lane to others.
//!
//! Start reading at [`FabricLanes::cross`].

use lockstep_units::{Duration, Time};
use serde::{Deserialize, Serialize};

use crate::memory::SECTOR;

/// Bytes of a flit: a sector, or a request.
pub const FLIT: u64 = SECTOR;

/// Which way something crosses, as its home slice sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the other partition.
    In,
    /// To the other partition.
    Out,
}

/// The lanes of one slice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FabricLanes {
    /// When what came before has crossed, by direction.
    free: [Time; 2],
}

/// How something crosses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crossing {
    /// When its first flit has the lane.
    pub at: Time,
    /// Until when the slice takes up nothing, because the queue is full.
    pub stalls: Option<Time>,
}

/// What lanes are made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FabricParameters {
    /// How long a flit takes; nothing if lanes have any width.
    pub flit: Duration,
    /// How long what waits for a lane takes at most before the slice waits for it.
    pub queue: Duration,
}

impl FabricLanes {
    /// Flits of a request that has `arrived` cross, not before `at`.
    #[inline]
    pub fn cross(
        &mut self,
        parameters: FabricParameters,
        direction: Direction,
        flits: u64,
        arrived: Time,
        at: Time,
    ) -> Crossing {
        let free = &mut self.free[direction as usize];
        let slot = arrived.max(*free);
        *free = slot + parameters.flit * flits;
        let room = parameters.queue.0;
        let full = slot.0 - arrived.0 > room;
        Crossing {
            at: at.max(slot),
            stalls: full.then(|| Time(slot.0 - room)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMETERS: FabricParameters = FabricParameters {
        flit: Duration(10),
        queue: Duration(30),
    };

    #[test]
    fn what_crosses_waits_for_what_went_the_same_way_before() {
        let mut lanes = FabricLanes::default();
        let mut cross = |direction, flits, at| {
            let crossing = lanes.cross(PARAMETERS, direction, flits, Time(at), Time(at));
            (crossing.at.0, crossing.stalls)
        };
        assert_eq!(cross(Direction::Out, 2, 100), (100, None));
        assert_eq!(cross(Direction::In, 1, 100), (100, None), "the other way");
        assert_eq!(cross(Direction::Out, 2, 100), (120, None));
        assert_eq!(cross(Direction::Out, 1, 105), (140, Some(Time(110))));
        assert_eq!(cross(Direction::Out, 1, 500), (500, None));
    }

    #[test]
    fn what_crosses_later_leaves_the_lane_to_others() {
        let mut lanes = FabricLanes::default();
        let later = lanes.cross(PARAMETERS, Direction::Out, 1, Time(100), Time(900));
        let sooner = lanes.cross(PARAMETERS, Direction::Out, 1, Time(100), Time(100));
        assert_eq!((later.at, sooner.at), (Time(900), Time(110)));
    }

    #[test]
    fn lanes_of_any_width_hold_up_nobody() {
        let mut lanes = FabricLanes::default();
        let wide = FabricParameters {
            flit: Duration::ZERO,
            queue: Duration::ZERO,
        };
        for _ in 0..100 {
            let crossing = lanes.cross(wide, Direction::In, 4, Time(7), Time(7));
            assert_eq!((crossing.at, crossing.stalls), (Time(7), None));
        }
    }
}
