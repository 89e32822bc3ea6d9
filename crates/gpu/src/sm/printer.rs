//! What kernels printed on one SM, until somebody takes it.

use serde::{Deserialize, Serialize};

/// Text that an SM keeps until it is taken; more is dropped with a word about it.
const MOST_BYTES: usize = 64 << 20;

/// Text that a kernel printed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Printed {
    /// The cycle in which it was printed.
    pub cycle: u64,
    /// The SM it was printed on.
    pub sm: u32,
    /// Its number among the texts of the SM.
    pub sequence: u64,
    /// The text.
    pub text: String,
}

/// The texts of one SM.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Printer {
    texts: Vec<Printed>,
    bytes: usize,
    count: u64,
}

impl Printer {
    /// Keeps a text.
    pub fn add(&mut self, mut text: String, sm: u32, cycle: u64) {
        if self.bytes > MOST_BYTES {
            text.clear();
        } else if self.bytes + text.len() > MOST_BYTES {
            text = "[output of this SM exceeds 64 MiB; the rest is dropped]\n".into();
            self.bytes = MOST_BYTES;
        }
        self.bytes += text.len();
        if !text.is_empty() {
            self.texts.push(Printed {
                cycle,
                sm,
                sequence: self.count,
                text,
            });
            self.count += 1;
        }
    }

    /// Takes all texts.
    pub fn take(&mut self) -> Vec<Printed> {
        self.bytes = 0;
        std::mem::take(&mut self.texts)
    }

    /// Whether there is any.
    #[must_use]
    pub fn has_text(&self) -> bool {
        !self.texts.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_much_is_dropped_with_a_word_about_it() {
        let mut printer = Printer::default();
        printer.add("a".repeat(MOST_BYTES - 1), 3, 1);
        printer.add("bb".into(), 3, 2);
        printer.add("cc".into(), 3, 3);
        let texts = printer.take();
        assert_eq!(texts.len(), 2);
        assert!(texts[1].text.contains("the rest is dropped"));
        printer.add("dd".into(), 3, 4);
        assert_eq!(printer.take()[0].sequence, 2);
    }
}
