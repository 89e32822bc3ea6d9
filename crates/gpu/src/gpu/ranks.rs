//! One GPU that several ranks simulate together.
//!
//! SMs and slices are divided among ranks in contiguous groups. The work distributor, the GMMU and networks are
//! run by every rank: what the outside asks them is the same everywhere and at hand. What the outside asks SMs and
//! slices is asked on every rank at the same point, and each answers for its own.
//!
//! Start reading at [`Gpu::gather`].

use lockstep_engine::{Lost, PartitionId, Ranks, Reader, Writer};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Gpu;
use super::layout::Places;
use crate::fault::{Fault, FaultKind};
use crate::sm::Sm;

/// The rank of each partition; none where every rank has it.
pub(super) fn owners(ranks: &Ranks, places: &Places, partitions: usize) -> Vec<Option<usize>> {
    let mut owners = vec![None; partitions];
    let sms = (0..)
        .zip(places.sms())
        .map(|(part, id)| (part, places.sms, id));
    let slices = (0..)
        .zip(places.slices())
        .map(|(part, id)| (part, places.slices, id));
    for (part, parts, id) in sms.chain(slices) {
        owners[id.index()] = Some(ranks.owner(part, parts));
    }
    owners
}

impl Gpu {
    /// Brings SMs and slices of other ranks to the state that they have there, so that statistics are those of
    /// the whole GPU. All ranks call this at the same point.
    ///
    /// # Errors
    /// A rank is gone.
    pub fn gather(&mut self) -> Result<(), Lost> {
        self.engine.gather()
    }

    /// Whether something holds on any rank. All ranks ask at the same point.
    #[must_use]
    pub fn on_any_rank(&self, own: bool) -> bool {
        self.engine.ranks().map_or(own, |ranks| ranks.any(own))
    }

    /// Why this rank cannot go on, if another is gone.
    #[must_use]
    pub fn lost(&self) -> Option<Lost> {
        self.engine.ranks()?.lost()
    }

    /// What each rank has to say, by rank; this one alone without others.
    pub(super) fn share<T: Serialize + DeserializeOwned>(&self, own: T) -> Vec<T> {
        let Some(ranks) = self.engine.ranks() else {
            return vec![own];
        };
        let mut bytes = Vec::new();
        Writer::new(&mut bytes).write(&own);
        let read = |bytes: &Vec<u8>| Reader::new(bytes).read().ok();
        let all = ranks.share(&bytes).ok();
        match all.and_then(|all| all.iter().map(read).collect()) {
            Some(all) => all,
            None => {
                ranks.lose("what another rank says makes no sense");
                vec![own]
            }
        }
    }

    /// What went wrong in a partition, wherever it is.
    pub(super) fn fault_in(&self, partition: PartitionId) -> Option<Box<Fault>> {
        let own = match self.engine.answers_for(partition) {
            true => self.engine.partition(partition).fault_report().cloned(),
            false => None,
        };
        self.share(own).into_iter().flatten().next().map(Box::new)
    }

    /// SMs of this rank, with their numbers.
    pub(super) fn own_sms(&self) -> impl Iterator<Item = (u32, &Sm)> {
        let numbers = 0..self.places.sms;
        let own = numbers.filter(|number| {
            self.engine
                .answers_for(PartitionId(self.places.first_sm + number))
        });
        own.map(|number| (number, self.sm(number)))
    }

    /// The fault of a kernel that this rank cannot simulate any further.
    pub(super) fn lost_fault(&self) -> Box<Fault> {
        let because = self.lost().map_or_else(String::new, |lost| lost.0);
        Box::new(Fault {
            kind: FaultKind::Rank(because),
            launch: self.distributor().oldest_launch().unwrap_or(0),
            kernel: String::new(),
            place: None,
            sm: 0,
            cycle: self.cycle(),
        })
    }
}
