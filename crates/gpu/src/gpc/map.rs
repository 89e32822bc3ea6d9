//! Which TPC is in which GPC.

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
    fn gpcs_that_do_not_exist_wrap_around() {
        let map = GpcMap::new(0, &[5]);
        assert_eq!(
            (map.gpcs(), map.gpc_of_tpc(0), map.gpc_of_tpc(9)),
            (1, 0, 0)
        );
    }
}
