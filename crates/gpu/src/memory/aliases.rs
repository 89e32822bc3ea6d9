//! Addresses outside the window that name memory inside of it: memory of the program's own that it
//! registered, and that kernels reach by the program's addresses.

use std::ops::Range;

/// Ranges of the program's addresses and what they name, sorted and apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Aliases {
    sorted: Vec<(Range<u64>, u64)>,
}

impl Aliases {
    /// Makes addresses name the memory from `to` on. False, and nothing changed, if some of them
    /// name other memory already.
    pub fn insert(&mut self, range: Range<u64>, to: u64) -> bool {
        let apart = |other: &Range<u64>| other.end <= range.start || range.end <= other.start;
        let at = self
            .sorted
            .partition_point(|(other, _)| other.start < range.start);
        if !self.sorted.iter().all(|(other, _)| apart(other)) {
            return false;
        }
        self.sorted.insert(at, (range, to));
        true
    }

    /// Forgets what names memory of a range, which is gone.
    pub fn forget(&mut self, memory: &Range<u64>) {
        self.sorted.retain(|(_, to)| !memory.contains(to));
    }

    /// What an address of the program names.
    #[must_use]
    pub fn resolve(&self, address: u64) -> Option<u64> {
        let after = self
            .sorted
            .partition_point(|(range, _)| range.start <= address);
        let (range, to) = self.sorted.get(after.checked_sub(1)?)?;
        range
            .contains(&address)
            .then(|| to + (address - range.start))
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &(Range<u64>, u64)> {
        self.sorted.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_one_place_or_none() {
        let mut aliases = Aliases::default();
        assert!(aliases.insert(0x5000..0x7000, 0x20_0000));
        assert!(aliases.insert(0x1000..0x2000, 0x30_0000));
        assert!(!aliases.insert(0x6000..0x8000, 0x40_0000));
        assert_eq!(aliases.resolve(0x5008), Some(0x20_0008));
        assert_eq!(aliases.resolve(0x6fff), Some(0x20_1fff));
        assert_eq!(aliases.resolve(0x7000), None);
        assert_eq!(aliases.resolve(0x1000), Some(0x30_0000));
        assert_eq!(aliases.resolve(0xfff), None);
        aliases.forget(&(0x20_0000..0x20_2000));
        assert_eq!(aliases.resolve(0x5008), None);
        assert!(aliases.insert(0x6000..0x8000, 0x40_0000));
    }
}
