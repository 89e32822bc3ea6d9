//! Clusters of blocks: which SMs may share one, and how many run at once.

use crate::GpuConfig;

/// SMs that the blocks of one cluster may share: TPCs with turns of their own, each by itself, and the others of
/// each GPC.
#[must_use]
pub fn cluster_groups(config: &GpuConfig) -> (Vec<Vec<u32>>, Vec<Vec<u32>>) {
    let first = &config.dispatch.first_sms;
    let of_tpcs = config.device.gpcs_of_tpcs();
    let mut gpcs = vec![Vec::new(); config.device.gpcs.max(1) as usize];
    let mut own: Vec<Vec<u32>> = Vec::new();
    for sm in 0..config.device.sms {
        if !first.contains(&sm) {
            let gpc = of_tpcs[sm as usize / 2] as usize % gpcs.len();
            gpcs[gpc].push(sm);
        } else if let Some(tpc) = own.last_mut().filter(|tpc| tpc[0] / 2 == sm / 2) {
            tpc.push(sm);
        } else {
            own.push(vec![sm]);
        }
    }
    (own, gpcs)
}

/// How many clusters of `size` blocks run at once where an SM has room for `blocks` of them; as
/// `cudaOccupancyMaxActiveClusters` answers on an H200.
#[must_use]
pub fn most_clusters(config: &GpuConfig, size: u32, blocks: u32) -> u64 {
    let (own, gpcs) = cluster_groups(config);
    let fits = |sms: &&Vec<u32>| sms.len() as u32 >= size;
    let room = |sms: &Vec<u32>| sms.len() as u64 * u64::from(blocks) / u64::from(size.max(1));
    own.iter().chain(&gpcs).filter(fits).map(room).sum()
}

/// Blocks of the largest cluster that a GPC has SMs for; 1 on a GPU without clusters.
#[must_use]
pub fn largest_cluster(config: &GpuConfig) -> u32 {
    if config.interconnect.cluster_latency.0 == 0 {
        return 1;
    }
    let (own, gpcs) = cluster_groups(config);
    let all = own.iter().chain(&gpcs);
    all.map(|sms| sms.len() as u32).max().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `cudaOccupancyMaxActiveClusters` on an H200, for one, two, three and eight blocks an SM.
    #[test]
    fn as_many_clusters_run_at_once_as_on_an_h200() {
        let config = crate::load::<&str>(Some("h200"), &[]).unwrap();
        let clusters = |size, blocks| most_clusters(&config, size, blocks);
        let most = |blocks| [1, 2, 3, 4, 5, 6, 7, 8].map(|size| clusters(size, blocks));
        assert_eq!(most(1), [132, 66, 39, 30, 22, 17, 15, 15]);
        assert_eq!(most(2), [264, 132, 79, 62, 47, 39, 32, 30]);
        assert_eq!(most(3), [396, 198, 124, 92, 69, 62, 47, 45]);
        assert_eq!(most(8), [1056, 528, 327, 248, 193, 163, 139, 124]);
        let large = [9, 10, 11, 12, 13, 14, 15, 16].map(|size| clusters(size, 8));
        assert_eq!(large, [102, 88, 81, 74, 67, 65, 58, 58]);
        assert_eq!((clusters(18, 8), largest_cluster(&config)), (16, 18));
    }
}
