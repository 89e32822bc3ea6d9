//! The lines of one access, each with the sectors that it touches.

use crate::memory::{LINE, SECTOR};

/// Sectors of a line.
pub const SECTORS: u64 = LINE / SECTOR;

/// The lines of an access.
#[derive(Clone, Copy)]
pub struct LineSet {
    lines: [(u64, u8); 32],
    count: usize,
}

impl LineSet {
    /// Groups sectors by line.
    #[must_use]
    #[inline]
    pub fn of(sectors: &[u64]) -> Self {
        let mut set = Self {
            lines: [(0, 0); 32],
            count: 0,
        };
        for sector in sectors {
            let (line, bit) = (sector / SECTORS, 1u8 << (sector % SECTORS));
            if set.count > 0 && set.lines[set.count - 1].0 == line {
                set.lines[set.count - 1].1 |= bit;
                continue;
            }
            match set.lines[..set.count]
                .iter_mut()
                .find(|known| known.0 == line)
            {
                Some(known) => known.1 |= bit,
                None => set.push(line, bit),
            }
        }
        set
    }

    /// Number of lines.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds a line that is not there.
    #[inline]
    pub fn push(&mut self, line: u64, sectors: u8) {
        self.lines[self.count] = (line, sectors);
        self.count += 1;
    }

    /// Each line with its sectors, a bit each.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u8)> + '_ {
        self.lines[..self.count].iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_of_a_line_are_one_entry_wherever_they_stand() {
        let set = LineSet::of(&[4, 5, 40, 7, 41]);
        let lines: Vec<_> = set.iter().collect();
        assert_eq!(lines, [(1, 0b1011), (10, 0b11)]);
        assert!(LineSet::of(&[]).is_empty());
    }
}
