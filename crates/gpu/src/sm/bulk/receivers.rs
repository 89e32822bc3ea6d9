//! Thread blocks of the cluster that data go to.

use lockstep_isa::bulk::Transfer;

use super::command::{Command, illegal};
use crate::fault::FaultKind;
use crate::message::{ClusterAction, ClusterLane, ClusterRequest};
use crate::sm::site::Site;

/// Where the number of a block in its cluster begins in a shared address.
const RANK: u32 = 24;

/// A shared address without the number of its block.
pub(super) fn offset_of(address: u32) -> u32 {
    address & ((1 << RANK) - 1)
}

/// Who receives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Receivers {
    /// The block that asks.
    pub own: bool,
    /// Others: SM, and number in the grid.
    others: Vec<(u32, u64)>,
}

impl Receivers {
    /// The blocks that a command names.
    pub(super) fn of(
        site: &Site<'_, '_>,
        command: &Command,
        transfer: Transfer,
    ) -> Result<Self, FaultKind> {
        let own = site.block.cluster.as_ref().map_or(0, |member| member.rank);
        let ranks = match transfer {
            Transfer::Load { multicast: true } => u32::from(command.receivers),
            Transfer::Load { .. } | Transfer::Shared { .. } => 1u32
                .checked_shl(rank_of(site, command.shared, own))
                .unwrap_or(0),
            // The others read the memory of their own block, or none.
            _ => 1 << own,
        };
        let mut receivers = Self {
            own: ranks >> own & 1 != 0,
            others: Vec::new(),
        };
        for rank in (0..32).filter(|rank| ranks >> rank & 1 != 0 && *rank != own) {
            let members = site.block.cluster.as_ref().map(|member| &member.blocks);
            let block = members.and_then(|members| members.get(rank as usize));
            let block = block.ok_or_else(|| {
                FaultKind::Cluster(format!(
                    "a bulk copy to block {rank} of a cluster that has {}",
                    members.map_or(1, Vec::len)
                ))
            })?;
            receivers.others.push(*block);
        }
        let counts = matches!(transfer, Transfer::Load { .. } | Transfer::Shared { .. });
        let barrier = offset_of(command.barrier);
        if counts && receivers.own && u64::from(barrier) + 8 > site.block.shared.len() as u64 {
            let address = u64::from(barrier);
            return Err(illegal(site, "shared mbarrier of a bulk copy", address, 8));
        }
        Ok(receivers)
    }

    /// Whether another block receives.
    pub(super) fn has_others(&self) -> bool {
        !self.others.is_empty()
    }

    /// What is sent to the others, by SM.
    pub(super) fn requests(
        &self,
        launch: u32,
        action: ClusterAction,
        lanes: Vec<ClusterLane>,
    ) -> Vec<(u32, Box<ClusterRequest>)> {
        let all = self.others.iter().map(|(sm, block)| {
            let mut request = ClusterRequest::new(launch, *block, action);
            request.lanes.clone_from(&lanes);
            (*sm, request)
        });
        all.collect()
    }
}

/// Whose memory an address names. Machine code has ranks there; in PTX 0 is the own block, and others are
/// the rank plus one.
fn rank_of(site: &Site<'_, '_>, address: u32, own: u32) -> u32 {
    match address >> RANK {
        named if site.context.launch.module.native => named,
        0 => own,
        named => named - 1,
    }
}
