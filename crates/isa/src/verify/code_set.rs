//! Which instructions of a module a kernel may execute.

/// A set of instructions by their index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodeSet {
    words: Vec<u64>,
}

impl CodeSet {
    /// None of so many instructions.
    #[must_use]
    pub fn none(instructions: usize) -> Self {
        Self {
            words: vec![0; instructions.div_ceil(64)],
        }
    }

    /// Adds an instruction; one behind the last is ignored.
    pub fn insert(&mut self, index: usize) {
        if let Some(word) = self.words.get_mut(index / 64) {
            *word |= 1 << (index % 64);
        }
    }

    /// Whether an instruction is in it.
    #[must_use]
    #[inline]
    pub fn holds(&self, index: u64) -> bool {
        let word = usize::try_from(index / 64)
            .ok()
            .and_then(|word| self.words.get(word));
        word.is_some_and(|word| word >> (index % 64) & 1 != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_inserted_is_held_and_nothing_else() {
        let mut set = CodeSet::none(70);
        for index in [0, 63, 64, 69, 4000] {
            set.insert(index);
        }
        let held: Vec<u64> = (0..200).filter(|index| set.holds(*index)).collect();
        assert_eq!(held, [0, 63, 64, 69]);
        assert!(!set.holds(u64::MAX));
    }
}
