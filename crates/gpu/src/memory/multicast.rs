//! Addresses that name memory of several GPUs at once: multicast objects as kernels of one GPU reach them.
//!
//! A multicast object has a range of offsets, and each of its members binds memory of its own to parts of it. An
//! address of it therefore names one place on each member. What is bound where is said anew whenever it changes, while
//! no epoch runs.
//!
//! Start reading at [`MulticastMapping::places`].

use std::ops::Range;
use std::sync::Arc;

/// The most members that an object can have.
pub const MOST_MEMBERS: usize = 16;

/// Memory that one GPU has bound to a multicast object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MulticastMember {
    /// The GPU.
    pub gpu: u32,
    /// Offsets in the object and where the memory for them is, sorted and apart.
    pub bound: Vec<(Range<u64>, u64)>,
}

impl MulticastMember {
    /// Where the memory for an offset is.
    fn place(&self, offset: u64) -> Option<u64> {
        let after = self
            .bound
            .partition_point(|(range, _)| range.start <= offset);
        let (range, place) = self.bound.get(after.checked_sub(1)?)?;
        range
            .contains(&offset)
            .then(|| place + (offset - range.start))
    }
}

/// A multicast object at the addresses at which kernels of one GPU use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MulticastMapping {
    /// The addresses; the first has offset 0.
    pub addresses: Range<u64>,
    /// Whether kernels may write.
    pub writable: bool,
    /// Members by the numbers of their GPUs, which is the order in which values are reduced.
    pub members: Vec<MulticastMember>,
}

/// The places of one address on all members, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Places {
    count: u8,
    places: [u64; MOST_MEMBERS],
}

impl Places {
    /// All of them.
    #[must_use]
    pub fn all(&self) -> &[u64] {
        &self.places[..usize::from(self.count)]
    }
}

impl MulticastMapping {
    /// Where the byte of an address is on each member.
    ///
    /// # Errors
    /// The first GPU that has bound nothing there.
    pub fn places(&self, address: u64) -> Result<Places, u32> {
        let mut found = Places {
            count: 0,
            places: [0; MOST_MEMBERS],
        };
        for (member, slot) in self.members.iter().zip(&mut found.places) {
            let place = member.place(address - self.addresses.start);
            *slot = place.ok_or(member.gpu)?;
            found.count += 1;
        }
        Ok(found)
    }
}

/// Every multicast object that kernels of one GPU may use.
#[derive(Clone, Debug, Default)]
pub struct Multicasts {
    sorted: Vec<Arc<MulticastMapping>>,
}

impl Multicasts {
    /// Says what the addresses from `start` on are, or that they are no multicast object any more.
    pub fn set(&mut self, start: u64, mapping: Option<MulticastMapping>) {
        self.sorted.retain(|known| known.addresses.start != start);
        if let Some(mapping) = mapping {
            let after = self
                .sorted
                .partition_point(|known| known.addresses.start < start);
            self.sorted.insert(after, Arc::new(mapping));
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// The object that an address is of.
    #[must_use]
    pub fn find(&self, address: u64) -> Option<&Arc<MulticastMapping>> {
        let after = self
            .sorted
            .partition_point(|known| known.addresses.start <= address);
        let found = self.sorted.get(after.checked_sub(1)?)?;
        found.addresses.contains(&address).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(gpu: u32, bound: &[(Range<u64>, u64)]) -> MulticastMember {
        let bound = bound.to_vec();
        MulticastMember { gpu, bound }
    }

    #[test]
    fn an_address_names_a_place_on_each_member() {
        let mapping = MulticastMapping {
            addresses: 0x5000..0x9000,
            writable: true,
            members: vec![
                member(1, &[(0..0x4000, 0x10_0000)]),
                member(3, &[(0..0x1000, 0x70_0000), (0x2000..0x4000, 0x60_0000)]),
            ],
        };
        let mut all = Multicasts::default();
        all.set(0x5000, Some(mapping));
        assert!(all.find(0x4fff).is_none() && all.find(0x9000).is_none());
        let found = all.find(0x5008).unwrap();
        assert_eq!(found.places(0x5008).unwrap().all(), [0x10_0008, 0x70_0008]);
        assert_eq!(found.places(0x7010).unwrap().all(), [0x10_2010, 0x60_0010]);
        assert_eq!(found.places(0x6000), Err(3), "nothing is bound there");
        all.set(0x5000, None);
        assert!(all.find(0x5008).is_none());
    }
}
