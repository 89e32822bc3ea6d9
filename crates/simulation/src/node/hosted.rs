//! Memory that belongs to no GPU of a cluster, but to one of its nodes: pinned, managed, and addresses that programs
//! map by themselves. The GPUs of that node reach it, also those that are built later.

use lockstep_protocol::MemoryAccess;
use std::collections::BTreeMap;

/// One allocation.
#[derive(Clone, Debug)]
pub struct Allocation {
    /// Its bytes.
    pub bytes: u64,
    /// The GPU that keeps account of it, on whose node it is.
    pub home: u32,
    /// What kernels may do with it, where the program says so.
    pub access: Option<MemoryAccess>,
    /// Addresses of programs that name parts of it: address, bytes, place.
    pub aliases: Vec<(u64, u64, u64)>,
}

/// All of it, by address.
#[derive(Debug, Default)]
pub struct Hosted(BTreeMap<u64, Allocation>);

impl Hosted {
    /// Memory is there.
    pub fn insert(&mut self, address: u64, bytes: u64, home: u32, access: Option<MemoryAccess>) {
        let allocation = Allocation {
            bytes,
            home,
            access,
            aliases: Vec::new(),
        };
        self.0.insert(address, allocation);
    }

    /// Memory is gone, with what names it.
    pub fn remove(&mut self, address: u64) {
        self.0.remove(&address);
    }

    /// Addresses of a program name a part of it.
    pub fn alias(&mut self, address: u64, bytes: u64, place: u64) {
        if let Some((_, allocation)) = self.0.range_mut(..=place).next_back() {
            allocation.aliases.push((address, bytes, place));
        }
    }

    /// The GPU that keeps account of an address.
    pub fn home(&self, address: u64) -> Option<u32> {
        let (base, allocation) = self.0.range(..=address).next_back()?;
        (address - base < allocation.bytes).then_some(allocation.home)
    }

    /// Everything, by address.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &Allocation)> {
        self.0.iter().map(|(base, allocation)| (*base, allocation))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_at_the_home_of_what_holds_it() {
        let mut hosted = Hosted::default();
        hosted.insert(0x1000, 0x100, 3, None);
        hosted.insert(0x3000, 0x100, 9, None);
        hosted.alias(0x77_0000, 16, 0x3080);
        let homes = [0xfff, 0x1000, 0x10ff, 0x1100, 0x3080].map(|address| hosted.home(address));
        assert_eq!(homes, [None, Some(3), Some(3), None, Some(9)]);
        let aliases: usize = hosted.iter().map(|(_, one)| one.aliases.len()).sum();
        assert_eq!(aliases, 1);
        hosted.remove(0x3000);
        assert_eq!(hosted.home(0x3080), None);
        assert!(hosted.iter().all(|(_, one)| one.aliases.is_empty()));
    }
}
