//! What an H200 left, as the recorder wrote it.

use super::{form::Form, values::SPECIAL};

/// Vectors that share a digest.
pub const GROUP: usize = 64;

/// Results of one form.
pub struct Recorded {
    /// Of all results.
    pub digest: u64,
    /// Of each [`GROUP`] vectors, the lower half.
    pub groups: Vec<u32>,
    /// Each result of the first vectors, by result; empty where only digests were kept.
    pub special: Vec<Vec<u64>>,
}

/// One step of the digest.
pub fn mix(digest: u64, word: u64) -> u64 {
    let digest = (digest ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    digest ^ digest >> 32
}

/// Reads the records of `forms`; `None` is a form that faulted on the H200.
pub fn read(bytes: &[u8], forms: &[&Form], full: bool) -> Vec<Option<Recorded>> {
    let mut reader = Reader(bytes);
    let mut records = Vec::new();
    for (number, form) in forms.iter().enumerate() {
        let found = reader.number(4) as usize;
        assert_eq!(found, number, "a record of {}", form.name);
        if reader.number(4) != 0 {
            records.push(None);
            continue;
        }
        let digest = reader.number(8);
        let groups = (0..form.vectors() / GROUP).map(|_| reader.number(4) as u32);
        let groups = groups.collect();
        let sizes = if full {
            form.result_bytes()
        } else {
            Vec::new()
        };
        let special = sizes
            .iter()
            .map(|size| (0..SPECIAL).map(|_| reader.number(*size)).collect())
            .collect();
        records.push(Some(Recorded {
            digest,
            groups,
            special,
        }));
    }
    assert!(
        reader.0.is_empty(),
        "{} bytes behind the last record",
        reader.0.len()
    );
    records
}

struct Reader<'b>(&'b [u8]);

impl Reader<'_> {
    fn number(&mut self, bytes: usize) -> u64 {
        let (taken, rest) = self.0.split_at(bytes);
        self.0 = rest;
        let mut word = [0; 8];
        word[..bytes].copy_from_slice(taken);
        u64::from_le_bytes(word)
    }
}
