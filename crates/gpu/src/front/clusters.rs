//! Which SMs the blocks of a cluster go to: all at once, each to another SM of one GPC.
//!
//! Measured on an H200 (`validation/hardware/h200/clusters.txt`): clusters go to the GPCs in turn, and the next
//! launch goes on with the next GPC. Two blocks go to the SMs of a TPC that is as free as any; one that is left
//! goes to a TPC of which half is in use. TPCs with turns of their own are GPCs by themselves: a cluster of two
//! fits there, and comes there first.
//!
//! Start reading at [`ClusterGroups::place`].

use lockstep_config::GpuConfig;
use lockstep_config::occupancy::cluster_groups;

use super::slots::SmSlots;

/// SMs of a TPC.
const SMS_PER_TPC: u32 = 2;

/// SMs that the blocks of one cluster may share.
#[derive(Clone, Debug)]
pub struct ClusterGroups {
    /// Those of TPCs with turns of their own.
    first: Vec<Vec<u32>>,
    /// Those of each GPC besides.
    gpcs: Vec<Vec<u32>>,
}

impl ClusterGroups {
    /// From a GPU file.
    #[must_use]
    pub fn new(config: &GpuConfig) -> Self {
        let (first, gpcs) = cluster_groups(config);
        Self { first, gpcs }
    }

    /// The SMs of a cluster, by rank, if it fits anywhere. `next` is the GPC whose turn it is.
    pub fn place(
        &self,
        size: u32,
        next: &mut u32,
        slots: &[SmSlots],
        fits: impl Fn(u32) -> bool,
    ) -> Option<Vec<u32>> {
        let idle = |sm: u32| slots[sm as usize].warps == 0 && fits(sm);
        for sms in &self.first {
            if let Some(found) = choose(sms, size, slots, &idle) {
                return Some(found);
            }
        }
        let gpcs = self.gpcs.len() as u32;
        for turn in 0..gpcs {
            let gpc = (*next + turn) % gpcs;
            if let Some(found) = choose(&self.gpcs[gpc as usize], size, slots, &fits) {
                *next = (gpc + 1) % gpcs;
                return Some(found);
            }
        }
        let mut first = self.first.iter();
        first.find_map(|sms| choose(sms, size, slots, &fits))
    }
}

fn same_tpc(one: u32, other: u32) -> bool {
    one / SMS_PER_TPC == other / SMS_PER_TPC
}

/// As many different SMs of a group as a cluster has blocks, each with room.
fn choose(
    group: &[u32],
    size: u32,
    slots: &[SmSlots],
    fits: &impl Fn(u32) -> bool,
) -> Option<Vec<u32>> {
    let free: Vec<u32> = group.iter().copied().filter(|sm| fits(*sm)).collect();
    if free.len() < size as usize {
        return None;
    }
    let warps = |sm: u32| slots[sm as usize].warps;
    let mut pairs: Vec<[u32; 2]> = free
        .windows(2)
        .filter(|pair| same_tpc(pair[0], pair[1]))
        .map(|pair| [pair[0], pair[1]])
        .collect();
    pairs.sort_by_key(|[one, other]| (warps(*one).max(warps(*other)), *one));
    pairs.truncate(size as usize / 2);
    let mut chosen: Vec<u32> = pairs.into_iter().flatten().collect();
    let mut rest: Vec<u32> = free.into_iter().filter(|sm| !chosen.contains(sm)).collect();
    // A TPC whose other SM is in use first.
    let partner_idle = |sm: u32| {
        let other = sm ^ 1;
        slots
            .get(other as usize)
            .is_some_and(|slots| slots.warps <= warps(sm))
    };
    rest.sort_by_key(|sm| (warps(*sm), partner_idle(*sm), *sm));
    chosen.extend(rest);
    chosen.truncate(size as usize);
    Some(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn h200() -> ClusterGroups {
        ClusterGroups::new(&lockstep_config::load::<&str>(Some("h200"), &[]).unwrap())
    }

    /// Where an H200 put clusters of blocks of 1,024 threads, as long as it had empty SMs.
    #[test]
    fn clusters_go_where_an_h200_sends_them() {
        for (size, start, wanted) in [
            (
                2,
                2,
                "126 127;128 129;130 131;124 125;4 5;6 7;8 9;10 11;12 13;14 15;0 1;2 3;20 21;22 23",
            ),
            (
                3,
                2,
                "4 5 20;6 7 22;8 9 24;10 11 26;12 13 28;14 15 30;0 1 16;2 3 18;36 37 21;38 39 23",
            ),
            (
                4,
                1,
                "2 3 18 19;4 5 20 21;6 7 22 23;8 9 24 25;10 11 26 27;12 13 28 29;14 15 30 31;0 1 16 17;34 35 50 51",
            ),
            (
                8,
                5,
                "10 11 26 27 42 43 58 59;12 13 28 29 44 45 60 61;14 15 30 31 46 47 62 63;0 1 16 17 32 33 48 49;2 3 18 19 34 35 50 51",
            ),
        ] {
            let groups = h200();
            let mut slots = vec![SmSlots::default(); 132];
            let mut next = start;
            let sort = |list: &str| {
                let mut all: Vec<Vec<u32>> = list
                    .split(';')
                    .map(|one| one.split(' ').map(|sm| sm.parse().unwrap()).collect())
                    .collect();
                // In which order TPCs with turns of their own come is not known.
                all.iter_mut().for_each(|one| {
                    if one[0] >= 124 {
                        *one = Vec::new();
                    }
                });
                all
            };
            let wanted = sort(wanted);
            for one in wanted {
                let found = groups.place(size, &mut next, &slots, |_| true).unwrap();
                for sm in &found {
                    slots[*sm as usize].warps += 32;
                }
                assert!(
                    one.is_empty() && found[0] >= 124 || one == found,
                    "{one:?} {found:?}"
                );
            }
        }
    }

    #[test]
    fn a_cluster_that_fits_no_gpc_is_not_placed() {
        let groups = ClusterGroups {
            first: Vec::new(),
            gpcs: vec![vec![0, 1], vec![2, 3]],
        };
        let slots = vec![SmSlots::default(); 4];
        let mut next = 0;
        assert_eq!(groups.place(3, &mut next, &slots, |_| true), None);
        assert_eq!(
            groups.place(2, &mut next, &slots, |sm| sm > 0),
            Some(vec![2, 3])
        );
        assert_eq!(
            groups.place(2, &mut next, &slots, |sm| sm > 0 && sm < 3),
            None
        );
    }
}
