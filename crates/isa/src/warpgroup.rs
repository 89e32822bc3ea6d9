//! What warp groups do: asynchronous matrix products (`wgmma`), and registers that move between the
//! warps of a block (`setmaxnreg`).
//!
//! A warp group is four neighbouring warps of a block. Each of them computes 16 rows of a product of
//! 64 rows, from its own registers and shared memory; the product has ended when it has for all four.

/// Warps of a warp group.
pub const GROUP_WARPS: usize = 4;

/// An instruction of a warp group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Warpgroup {
    /// `WARPGROUP.ARRIVE`, `wgmma.fence`: registers written before can be read by products after.
    Arrive,
    /// `wgmma.commit_group`: the products before it are a group.
    Commit,
    /// `WARPGROUP.DEPBAR`, `wgmma.wait_group`: waits until no more groups than this are under way.
    Wait {
        /// Groups.
        at_most: u8,
    },
    /// `D = A × B + C`, where the modifiers are an encoded [`Multiply`](crate::semantics::matrix::Multiply)
    /// of one warp. Sources: A's registers or descriptor, B's descriptor, C, metadata. C counts where
    /// `predicates[0]` holds.
    Multiply(GroupMultiply),
    /// `USETMAXREG.DEALLOC`, `setmaxnreg.dec`: the warp keeps this many registers a thread.
    ReleaseRegisters {
        /// Registers a thread.
        keep: u16,
    },
    /// `USETMAXREG.TRY_ALLOC`, `setmaxnreg.inc`: the warp gets this many registers a thread as soon
    /// as its block has them. With a destination predicate it does not wait, but says whether.
    TakeRegisters {
        /// Registers a thread.
        wanted: u16,
    },
}

/// Operands of a product of a warp group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupMultiply {
    /// A is in registers, not in shared memory.
    pub a_in_registers: bool,
    /// Signs of A and B are changed.
    pub negate: [bool; 2],
    /// Another dimension than k is contiguous in memory, for A and B.
    pub transpose: [bool; 2],
    /// The product is the last of its group.
    pub commits: bool,
}
