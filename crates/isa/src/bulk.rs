//! Bulk copies as instructions describe them: boxes of tensors and runs of bytes that the TMA engine of
//! an SM moves between global and shared memory. PTX `cp.async.bulk`, `cp.reduce.async.bulk`; SASS
//! `UTMALDG`, `UTMASTG`, `UTMAREDG`, `UTMAPF`, `UBLKCP`, `UBLKRED`, `UBLKPF`, `UTMACMDFLUSH`.
//!
//! What a box is, which bytes it touches and where they go is in [`crate::tensor`].

use crate::{
    memory::{AtomicOperation, AtomicType},
    operand::Operand,
};

/// One instruction for the TMA engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BulkOperation {
    /// What is asked of it.
    pub action: BulkAction,
    /// One command a warp (SASS) rather than one a lane (PTX).
    pub uniform: bool,
    /// Generic address of the tensor map, two words.
    pub map: Operand,
    /// Address in global memory, two words.
    pub global: Operand,
    /// Address in shared memory that data go to, or come from where they go to global memory.
    pub shared: Operand,
    /// Shared memory to shared memory: where data come from.
    pub source: Operand,
    /// Address of the mbarrier that counts the bytes.
    pub barrier: Operand,
    /// Coordinates in the tensor, the first dimension first.
    pub coordinates: [Operand; 5],
    /// Offsets of a column of pixels, width first.
    pub offsets: [Operand; 3],
    /// Bytes to copy, where there is no tensor.
    pub bytes: Operand,
    /// Thread blocks of the cluster that receive, a bit each.
    pub receivers: Operand,
    /// SASS: 16 bits of offsets, or of size / 16, below 16 bits of receivers.
    pub packed: Operand,
}

/// What is asked of the TMA engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BulkAction {
    /// Something with a box of a tensor.
    Tensor {
        /// Copy, reduction or prefetch.
        transfer: Transfer,
        /// Coordinates that the instruction gives.
        rank: u8,
        /// A column of pixels rather than a box.
        im2col: bool,
    },
    /// Something with bytes side by side.
    Bytes(Transfer),
    /// Closes the group of copies and reductions to global memory.
    Commit,
    /// Waits until no more than so many groups are under way (PTX).
    Wait {
        /// Groups that may be.
        at_most: u32,
    },
}

/// Which way data go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// Global to shared memory.
    Load {
        /// To the same place in several thread blocks of the cluster.
        multicast: bool,
    },
    /// Shared to global memory.
    Store,
    /// Shared to global memory, where it is combined with what is there.
    Reduce {
        /// How.
        operation: AtomicOperation,
        /// As what; a tensor has its own type.
        kind: Option<AtomicType>,
    },
    /// Shared memory to that of a thread block of the cluster.
    Shared {
        /// How it is combined there, and as what; copied if not.
        reduce: Option<(AtomicOperation, AtomicType)>,
    },
    /// Global memory to L2.
    Prefetch,
}

impl BulkOperation {
    /// An action, operands to be filled in.
    #[must_use]
    pub const fn new(action: BulkAction, uniform: bool) -> Self {
        Self {
            action,
            uniform,
            map: Operand::None,
            global: Operand::None,
            shared: Operand::None,
            source: Operand::None,
            barrier: Operand::None,
            coordinates: [Operand::None; 5],
            offsets: [Operand::None; 3],
            bytes: Operand::None,
            receivers: Operand::None,
            packed: Operand::None,
        }
    }

    /// Every operand with its words, to look at or to change.
    pub fn operands_mut(&mut self) -> impl Iterator<Item = (&mut Operand, u16)> {
        let wide = [(&mut self.map, 2), (&mut self.global, 2)];
        let single = [
            (&mut self.shared, 1),
            (&mut self.source, 1),
            (&mut self.barrier, 1),
            (&mut self.bytes, 1),
            (&mut self.receivers, 1),
            (&mut self.packed, 1),
        ];
        let coordinates = self.coordinates.iter_mut().chain(&mut self.offsets);
        wide.into_iter()
            .chain(single)
            .chain(coordinates.map(|operand| (operand, 1)))
    }

    /// Every operand with its words.
    pub fn operands(&self) -> impl Iterator<Item = (Operand, u16)> {
        let wide = [(self.map, 2), (self.global, 2)];
        let single = [
            (self.shared, 1),
            (self.source, 1),
            (self.barrier, 1),
            (self.bytes, 1),
            (self.receivers, 1),
            (self.packed, 1),
        ];
        let coordinates = self.coordinates.into_iter().chain(self.offsets);
        wide.into_iter()
            .chain(single)
            .chain(coordinates.map(|operand| (operand, 1)))
    }
}
