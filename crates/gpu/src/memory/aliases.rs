//! Addresses that name memory elsewhere in the window: those of the program's own memory that it
//! registered, and those that it mapped memory to that has several.

use std::ops::Range;

/// Ranges of addresses and what they name, sorted and apart.
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

    /// Forgets what the addresses from `start` on name.
    pub fn remove(&mut self, start: u64) {
        self.sorted.retain(|(range, _)| range.start != start);
    }

    /// Whether no address names another.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// Whether some address names memory of a range.
    #[must_use]
    pub fn lead_to(&self, memory: &Range<u64>) -> bool {
        self.sorted.iter().any(|(_, to)| memory.contains(to))
    }

    /// Where bytes from an address on are: places in a row, each with how many lie there together.
    #[must_use]
    pub fn pieces(&self, address: u64, bytes: u64) -> Vec<(u64, u64)> {
        let mut pieces = Vec::new();
        let mut at = address;
        let end = address.saturating_add(bytes);
        while at < end {
            let after = self.sorted.partition_point(|(range, _)| range.end <= at);
            let next = self.sorted.get(after);
            let (place, until) = match next {
                Some((range, to)) if range.contains(&at) => (to + (at - range.start), range.end),
                Some((range, _)) => (at, range.start),
                None => (at, end),
            };
            pieces.push((place, until.min(end) - at));
            at = until;
        }
        pieces
    }

    /// What an address names.
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
        assert!(
            aliases.lead_to(&(0x40_0000..0x40_2000)) && !aliases.lead_to(&(0x40_0001..0x41_0000))
        );
        assert_eq!(
            aliases.pieces(0x1ff0, 0x4020),
            [(0x30_0ff0, 0x10), (0x2000, 0x4000), (0x40_0000, 0x10)]
        );
        aliases.remove(0x6000);
        aliases.remove(0x1000);
        assert!(aliases.is_empty());
        assert_eq!(aliases.pieces(5, 7), [(5, 7)]);
    }
}
