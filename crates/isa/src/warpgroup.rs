//! What warp groups do: asynchronous matrix products (`wgmma`), and registers that move between the
//! warps of a block (`setmaxnreg`).
//!
//! A warp group is four neighbouring warps of a block. Each of them computes 16 rows of a product of
//! 64 rows, from its own registers and shared memory; the product has ended when it has for all four.

use crate::{
    instruction::Instruction,
    lanes::Lanes,
    operand::Operand,
    semantics::{
        lane_loops::host_has_avx2,
        matrix::{Descriptor, GroupOperand, GroupPlace, Multiply, multiply_group},
    },
    warp_register::WarpRegister,
};

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
    /// `D = A × B + C`, where the modifiers are an encoded [`Multiply`]
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

/// `D = A × B + C` for the rows of the warp with number `part` in its group.
///
/// # Errors
/// The address of a byte that shared memory does not have.
pub fn multiply_rows(
    lanes: &mut Lanes<'_>,
    instruction: &Instruction,
    multiply: GroupMultiply,
    part: usize,
    shared: &[u8],
) -> Result<(), u32> {
    #[cfg(target_arch = "x86_64")]
    if host_has_avx2() {
        // SAFETY: the host has the features that it was compiled for.
        return unsafe { multiply_wide(lanes, instruction, multiply, part, shared) };
    }
    multiply_portable(lanes, instruction, multiply, part, shared)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn multiply_wide(
    lanes: &mut Lanes<'_>,
    instruction: &Instruction,
    multiply: GroupMultiply,
    part: usize,
    shared: &[u8],
) -> Result<(), u32> {
    multiply_portable(lanes, instruction, multiply, part, shared)
}

#[inline(always)]
fn multiply_portable(
    lanes: &mut Lanes<'_>,
    instruction: &Instruction,
    multiply: GroupMultiply,
    part: usize,
    shared: &[u8],
) -> Result<(), u32> {
    let shape = Multiply::decode(instruction.modifiers);
    let rows = |lanes: &Lanes<'_>, operand: Operand, count: usize| -> Vec<WarpRegister> {
        (0..count as u16)
            .map(|word| lanes.raw(operand, word))
            .collect()
    };
    let descriptor = |lanes: &Lanes<'_>, source: usize| {
        let operand = instruction.sources[source].operand;
        let [low, high] = [0, 1].map(|word| lanes.raw(operand, word).0[0]);
        Descriptor(u64::from(low) | u64::from(high) << 32)
    };
    let fragment;
    let a = if multiply.a_in_registers {
        fragment = rows(lanes, instruction.sources[0].operand, shape.a_registers());
        GroupPlace::Registers(&fragment)
    } else {
        GroupPlace::Shared(descriptor(lanes, 0))
    };
    let b = GroupPlace::Shared(descriptor(lanes, 1));
    let c = if lanes.predicate(instruction.predicates[0]) != 0 {
        rows(lanes, instruction.sources[2].operand, shape.c_registers())
    } else {
        vec![WarpRegister::ZERO; shape.c_registers()]
    };
    let metadata = lanes.raw(instruction.sources[3].operand, 0);
    let operand = |place, index: usize| GroupOperand {
        place,
        negate: multiply.negate[index],
        transpose: multiply.transpose[index],
    };
    let operands = [operand(a, 0), operand(b, 1)];
    let d = multiply_group(shape, part, operands, shared, &c, &metadata)?;
    for (word, row) in d.iter().enumerate() {
        lanes.write(instruction.destination, word as u16, row);
    }
    Ok(())
}
