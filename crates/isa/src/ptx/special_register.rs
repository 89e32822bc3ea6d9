//! Special registers: what `mov` can read besides registers. PTX ISA, "Special Registers".

use super::prelude::*;
use crate::{WarpRegister, lanes::Identity, warp_register::LANES};

/// A special register.
#[derive(Clone, Copy, Debug)]
pub struct SpecialRegister {
    /// Name with its percent sign and component.
    pub name: &'static str,
    /// 32 or 64.
    pub bits: u32,
    /// The same for all lanes of a warp, whenever they read it.
    pub uniform: bool,
    /// Writes it to the destination.
    pub semantics: Semantics,
}

macro_rules! registers {
    ($($name:literal $bits:literal $uniform:literal $semantics:expr;)*) => {
        /// All of them.
        pub const SPECIAL_REGISTERS: &[SpecialRegister] = &[$(
            SpecialRegister { name: $name, bits: $bits, uniform: $uniform, semantics: $semantics },
        )*];
    };
}

registers! {
    "%tid.x" 32 false semantics!(rows; |id| id.threads(0));
    "%tid.y" 32 false semantics!(rows; |id| id.threads(1));
    "%tid.z" 32 false semantics!(rows; |id| id.threads(2));
    "%ntid.x" 32 true semantics!(all_lanes; |id| id.block_size[0]);
    "%ntid.y" 32 true semantics!(all_lanes; |id| id.block_size[1]);
    "%ntid.z" 32 true semantics!(all_lanes; |id| id.block_size[2]);
    "%ctaid.x" 32 true semantics!(all_lanes; |id| id.block[0]);
    "%ctaid.y" 32 true semantics!(all_lanes; |id| id.block[1]);
    "%ctaid.z" 32 true semantics!(all_lanes; |id| id.block[2]);
    "%nctaid.x" 32 true semantics!(all_lanes; |id| id.grid_size[0]);
    "%nctaid.y" 32 true semantics!(all_lanes; |id| id.grid_size[1]);
    "%nctaid.z" 32 true semantics!(all_lanes; |id| id.grid_size[2]);
    "%laneid" 32 false semantics!(each_lane; |_, lane| lane as u32);
    "%warpid" 32 true semantics!(all_lanes; |id| id.warp_slot);
    "%nwarpid" 32 true semantics!(all_lanes; |id| id.warp_slots);
    "%smid" 32 true semantics!(all_lanes; |id| id.sm);
    "%nsmid" 32 true semantics!(all_lanes; |id| id.sms);
    "%gridid" 64 true semantics!(all_lanes64; |id| id.grid);
    "%lanemask_eq" 32 false semantics!(each_lane; |_, lane| 1 << lane);
    "%lanemask_le" 32 false semantics!(each_lane; |_, lane| u32::MAX >> (31 - lane));
    "%lanemask_lt" 32 false semantics!(each_lane; |_, lane| (1 << lane) - 1);
    "%lanemask_ge" 32 false semantics!(each_lane; |_, lane| u32::MAX << lane);
    "%lanemask_gt" 32 false semantics!(each_lane; |_, lane| (u32::MAX << lane) & !(1 << lane));
    "%clock" 32 false semantics!(all_lanes; |id| id.clock as u32);
    "%clock_hi" 32 false semantics!(all_lanes; |id| (id.clock >> 32) as u32);
    "%clock64" 64 false semantics!(all_lanes64; |id| id.clock);
    "%globaltimer" 64 false semantics!(all_lanes64; |id| id.nanoseconds());
    "%globaltimer_lo" 32 false semantics!(all_lanes; |id| id.nanoseconds() as u32);
    "%globaltimer_hi" 32 false semantics!(all_lanes; |id| (id.nanoseconds() >> 32) as u32);
    "%dynamic_smem_size" 32 true semantics!(all_lanes; |id| id.dynamic_shared);
    "%total_smem_size" 32 true semantics!(all_lanes; |id| id.total_shared);
    "%aggr_smem_size" 32 true semantics!(all_lanes; |id| id.total_shared);
    "%envreg0" 32 true semantics!(all_lanes; |id| id.environment[0]);
    "%envreg1" 32 true semantics!(all_lanes; |id| id.environment[1]);
    "%envreg2" 32 true semantics!(all_lanes; |id| id.environment[2]);
    "%envreg3" 32 true semantics!(all_lanes; |id| id.environment[3]);
    // A block without a cluster is a cluster of one.
    "%is_explicit_cluster" 32 true semantics!(all_lanes; |id| u32::from(id.explicit_cluster));
    "%clusterid.x" 32 true semantics!(all_lanes; |id| id.block[0] / id.cluster()[0]);
    "%clusterid.y" 32 true semantics!(all_lanes; |id| id.block[1] / id.cluster()[1]);
    "%clusterid.z" 32 true semantics!(all_lanes; |id| id.block[2] / id.cluster()[2]);
    "%nclusterid.x" 32 true semantics!(all_lanes; |id| id.grid_size[0] / id.cluster()[0]);
    "%nclusterid.y" 32 true semantics!(all_lanes; |id| id.grid_size[1] / id.cluster()[1]);
    "%nclusterid.z" 32 true semantics!(all_lanes; |id| id.grid_size[2] / id.cluster()[2]);
    "%cluster_ctaid.x" 32 true semantics!(all_lanes; |id| id.block[0] % id.cluster()[0]);
    "%cluster_ctaid.y" 32 true semantics!(all_lanes; |id| id.block[1] % id.cluster()[1]);
    "%cluster_ctaid.z" 32 true semantics!(all_lanes; |id| id.block[2] % id.cluster()[2]);
    "%cluster_nctaid.x" 32 true semantics!(all_lanes; |id| id.cluster()[0]);
    "%cluster_nctaid.y" 32 true semantics!(all_lanes; |id| id.cluster()[1]);
    "%cluster_nctaid.z" 32 true semantics!(all_lanes; |id| id.cluster()[2]);
    "%cluster_ctarank" 32 true semantics!(all_lanes; |id| id.cluster_rank());
    "%cluster_nctarank" 32 true semantics!(all_lanes; |id| id.cluster_blocks());
}

/// The special register with this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static SpecialRegister> {
    SPECIAL_REGISTERS
        .iter()
        .find(|register| register.name == name)
}

#[inline(always)]
fn each_lane(l: &mut Lanes<'_>, i: &Instruction, f: impl Fn(&Identity, usize) -> u32) {
    let row = WarpRegister(std::array::from_fn(|lane| f(l.identity, lane)));
    l.write(i.destination, 0, &row);
}

#[inline(always)]
fn rows(l: &mut Lanes<'_>, i: &Instruction, f: impl Fn(&Identity) -> WarpRegister) {
    let row = f(l.identity);
    l.write(i.destination, 0, &row);
}

#[inline(always)]
fn all_lanes(l: &mut Lanes<'_>, i: &Instruction, f: impl Fn(&Identity) -> u32) {
    l.write(i.destination, 0, &WarpRegister::splat(f(l.identity)));
}

#[inline(always)]
fn all_lanes64(l: &mut Lanes<'_>, i: &Instruction, f: impl Fn(&Identity) -> u64) {
    l.write64(i.destination, &[f(l.identity); LANES]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct() {
        for (index, register) in SPECIAL_REGISTERS.iter().enumerate() {
            assert!(
                SPECIAL_REGISTERS[..index]
                    .iter()
                    .all(|other| other.name != register.name)
            );
        }
    }
}
