//! Which TPC is in which GPC, and how far away.

use lockstep_config::GpuConfig;
use lockstep_units::Cycles;

/// SMs of a TPC, which share a port to the slices.
const SMS_PER_TPC: u32 = 2;

/// The GPC of every TPC.
#[derive(Clone, Debug)]
pub struct GpcMap {
    gpcs: u32,
    of_tpcs: Vec<u32>,
}

impl GpcMap {
    /// So many GPCs. TPCs that `of_tpcs` does not name are dealt to them in turn.
    #[must_use]
    pub fn new(gpcs: u32, of_tpcs: &[u32]) -> Self {
        let gpcs = gpcs.max(1);
        let of_tpcs = of_tpcs.iter().map(|gpc| gpc % gpcs).collect();
        Self { gpcs, of_tpcs }
    }

    /// From a GPU file.
    #[must_use]
    pub fn of(config: &GpuConfig) -> Self {
        Self::new(config.device.gpcs, &config.device.gpcs_of_tpcs())
    }

    /// How many GPCs there are.
    #[must_use]
    pub fn gpcs(&self) -> u32 {
        self.gpcs
    }

    /// The GPC of an SM.
    #[must_use]
    #[inline]
    pub fn gpc_of_sm(&self, sm: u32) -> u32 {
        self.gpc_of_tpc(tpc_of_sm(sm))
    }

    /// The GPC of a TPC.
    #[must_use]
    #[inline]
    pub fn gpc_of_tpc(&self, tpc: u32) -> u32 {
        match self.of_tpcs.get(tpc as usize) {
            Some(gpc) => *gpc,
            None => tpc % self.gpcs,
        }
    }
}

/// Hop latency of each TPC on top of that of most, by its place in its GPC.
#[must_use]
pub fn tpc_hop_latencies(config: &GpuConfig) -> Vec<Cycles> {
    let gpcs = config.device.gpcs_of_tpcs();
    let place = |tpc: usize| {
        let before = &gpcs[..tpc];
        before.iter().filter(|gpc| **gpc == gpcs[tpc]).count()
    };
    let by_place = &config.interconnect.tpc_hop_latency;
    (0..gpcs.len())
        .map(|tpc| by_place.get(place(tpc)).copied().unwrap_or(Cycles(0)))
        .collect()
}

/// The L2 partition that each GPC is at.
#[must_use]
pub fn partitions_of_gpcs(config: &GpuConfig) -> Vec<u32> {
    let (gpcs, partitions) = (config.device.gpcs.max(1), config.l2.partitions);
    let first = &config.l2.first_partition_gpcs;
    let partition = |gpc: u32| match first.is_empty() || partitions != 2 {
        true => gpc * partitions / gpcs,
        false => u32::from(!first.contains(&gpc)),
    };
    (0..gpcs).map(partition).collect()
}

/// The TPC of an SM.
#[must_use]
#[inline]
pub fn tpc_of_sm(sm: u32) -> u32 {
    sm / SMS_PER_TPC
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tpcs_are_where_they_are_said_to_be() {
        let map = GpcMap::new(3, &[2, 2, 0]);
        let gpcs: Vec<u32> = (0..5).map(|tpc| map.gpc_of_tpc(tpc)).collect();
        assert_eq!(gpcs, [2, 2, 0, 0, 1]);
        assert_eq!([0, 1, 4, 7].map(|sm| map.gpc_of_sm(sm)), [2, 2, 0, 0]);
    }

    #[test]
    fn every_tpc_of_an_h200_has_a_gpc_and_a_hop_latency() {
        let config = lockstep_config::load::<&str>(Some("h200"), &[]).unwrap();
        let map = GpcMap::of(&config);
        let mut sizes = vec![0; map.gpcs() as usize];
        for tpc in 0..config.device.sms / SMS_PER_TPC {
            sizes[map.gpc_of_tpc(tpc) as usize] += 1;
        }
        assert_eq!(sizes.iter().sum::<u32>(), 66);
        assert!(sizes.iter().all(|tpcs| (7..=9).contains(tpcs)), "{sizes:?}");
        assert_eq!(tpc_hop_latencies(&config).len(), 66);
        assert_eq!(partitions_of_gpcs(&config).len(), sizes.len());
    }

    #[test]
    fn gpcs_that_do_not_exist_wrap_around() {
        let map = GpcMap::new(0, &[5]);
        assert_eq!(
            (map.gpcs(), map.gpc_of_tpc(0), map.gpc_of_tpc(9)),
            (1, 0, 0)
        );
    }
}
