//! The MIO queues of an SM: memory instructions on their way from the sub-cores to the one pipe that
//! they share.
//!
//! A memory instruction waits in the queue of its sub-core, has its addresses made there, and is
//! taken by the pipe: shared memory and L1TEX are the same memory. A line, or a wavefront over the
//! banks, takes that pipe for a cycle. Times are decided when an instruction issues: the pipe is
//! reserved in the order of issue.
//!
//! Start reading at [`MioQueues::enter`].

use serde::{Deserialize, Serialize};

/// When the pipe takes an instruction, and when its sub-core's queue has room for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When the pipe takes it.
    pub taken: u64,
    /// When the queue takes another.
    pub room: u64,
}

/// The queues and the pipe.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MioQueues {
    /// When each sub-core can make addresses again.
    addresses: Vec<u64>,
    /// When the last instructions of each sub-core were taken by the pipe, as a ring.
    queues: Vec<Vec<u64>>,
    heads: Vec<u8>,
    /// When the pipe takes another instruction.
    free: u64,
    /// Wavefronts of the last one.
    wavefronts: u64,
}

impl MioQueues {
    /// Empty queues for so many instructions each.
    #[must_use]
    pub fn new(sub_cores: usize, depth: usize) -> Self {
        Self {
            addresses: vec![0; sub_cores],
            queues: vec![vec![0; depth.max(1)]; sub_cores],
            heads: vec![0; sub_cores],
            free: 0,
            wavefronts: 1,
        }
    }

    /// Whether another one has the same shape.
    #[must_use]
    pub fn fits(&self, other: &Self) -> bool {
        self.addresses.len() == other.addresses.len()
            && self.heads.len() == other.heads.len()
            && self.queues.len() == other.queues.len()
            && self
                .queues
                .iter()
                .zip(&other.queues)
                .all(|(own, of)| own.len() == of.len())
    }

    /// Passes an instruction of a sub-core through queue and pipe.
    #[inline]
    pub fn enter(&mut self, sub_core: usize, cycle: u64, wavefronts: u64, interval: u64) -> Entry {
        let made = cycle.max(self.addresses[sub_core]);
        self.addresses[sub_core] = made + interval;
        let taken = made.max(self.free);
        self.free = taken + wavefronts;
        self.wavefronts = wavefronts;
        let queue = &mut self.queues[sub_core];
        let head = &mut self.heads[sub_core];
        queue[usize::from(*head)] = taken;
        *head = ((usize::from(*head) + 1) % queue.len()) as u8;
        let room = queue[usize::from(*head)] + 1;
        Entry {
            taken,
            room: room.max(cycle + 1),
        }
    }

    /// A fence: the pipe waits for a while, and for some `eighths` of the instruction before.
    #[inline]
    pub fn drain(
        &mut self,
        sub_core: usize,
        cycle: u64,
        [wait, eighths]: [u64; 2],
        interval: u64,
    ) -> Entry {
        let last = self.wavefronts;
        let wait = wait + last * eighths / 8;
        let drained = self.enter(sub_core, cycle, wait, interval);
        self.wavefronts = last;
        drained
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pipe_takes_instructions_in_turn_and_the_queue_fills() {
        let mut mio = MioQueues::new(2, 2);
        assert_eq!(
            mio.enter(0, 10, 4, 2),
            Entry {
                taken: 10,
                room: 11
            }
        );
        // The pipe is busy until 14, the queue has one more place.
        assert_eq!(
            mio.enter(1, 11, 1, 2),
            Entry {
                taken: 14,
                room: 12
            }
        );
        assert_eq!(
            mio.enter(0, 12, 1, 2),
            Entry {
                taken: 15,
                room: 13
            }
        );
        // Both places of sub-core 0 are used: room when the first of them was taken.
        assert_eq!(
            mio.enter(0, 13, 1, 2),
            Entry {
                taken: 16,
                room: 16
            }
        );
    }

    #[test]
    fn a_fence_waits_for_most_of_the_instruction_before_it() {
        let mut mio = MioQueues::new(1, 4);
        mio.enter(0, 0, 8, 1);
        assert_eq!(mio.drain(0, 1, [5, 7], 1).taken, 8);
        assert_eq!(mio.enter(0, 2, 1, 1).taken, 8 + 5 + 7);
    }
}
