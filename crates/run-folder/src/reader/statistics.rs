//! `stats.csv`, in sums over the components of a kind.
//!
//! `gpu 0/sm/17/mshr` is of the kind `gpu */sm/*/mshr`: a report wants all MSHRs, and the one that
//! was worst off.

use crate::error::ReadError;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

/// Kinds and statistics at most; a run has some hundred.
const MAXIMUM_ENTRIES: usize = 100_000;

/// One statistic over the components of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sum {
    /// Components.
    pub components: u64,
    /// Over all of them.
    pub sum: u64,
    /// Of the one that has most.
    pub largest: u64,
}

/// All statistics of a run, by kind of component and by name.
#[derive(Clone, Debug, Default)]
pub struct Statistics(BTreeMap<(String, String), Sum>);

impl Statistics {
    /// Reads a file; what does not fit is said.
    pub fn read(path: &Path, file: File) -> Result<(Self, Vec<String>), ReadError> {
        let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(file);
        let head = reader.headers();
        let head = head.map_err(|error| ReadError::malformed(path, error.to_string()))?;
        if head.iter().take(3).ne(["component", "statistic", "value"]) {
            return Err(ReadError::malformed(
                path,
                "not a table of statistics: its first columns are not component, statistic and value",
            ));
        }
        let (mut all, mut wrong) = (Self::default(), 0u64);
        for row in reader.records() {
            let value = row.as_ref().ok().and_then(|row| {
                let value: u64 = row.get(2)?.parse().ok()?;
                Some((kind(row.get(0)?), row.get(1)?.to_string(), value))
            });
            match value {
                Some((kind, name, value)) => all.add((kind, name), value),
                None => wrong += 1,
            }
        }
        let notes = (wrong > 0)
            .then(|| format!("stats.csv: {wrong} lines cannot be read and are left out"));
        Ok((all, notes.into_iter().collect()))
    }

    fn add(&mut self, key: (String, String), value: u64) {
        if self.0.len() >= MAXIMUM_ENTRIES && !self.0.contains_key(&key) {
            return;
        }
        let entry = self.0.entry(key).or_default();
        entry.components += 1;
        entry.sum = entry.sum.saturating_add(value);
        entry.largest = entry.largest.max(value);
    }

    /// One statistic of a kind, as `gpu */slice/*` and `row_hits`.
    pub fn get(&self, kind: &str, name: &str) -> Option<Sum> {
        self.0.get(&(kind.to_string(), name.to_string())).copied()
    }

    /// Kinds that begin with a text, each once.
    pub fn kinds(&self, prefix: &str) -> Vec<&str> {
        let mut kinds: Vec<&str> = self
            .0
            .keys()
            .map(|(kind, _)| kind.as_str())
            .filter(|kind| kind.starts_with(prefix))
            .collect();
        kinds.dedup();
        kinds
    }
}

/// A component without its numbers; those of several nodes are of one kind.
fn kind(component: &str) -> String {
    let on_node = component.strip_prefix("node ");
    let own = on_node.and_then(|rest| rest.split_once('/'));
    let component = own.map_or(component, |(_, rest)| rest);
    let mut kind = String::new();
    let mut start = true;
    for letter in component.chars() {
        // `l1` is a name; `1` after a separator is a number.
        match letter {
            '0'..='9' if start => {
                if !kind.ends_with('*') {
                    kind.push('*');
                }
            }
            letter => {
                kind.push(letter);
                start = matches!(letter, '/' | ' ');
            }
        }
    }
    kind
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_of_a_kind_are_one() {
        assert_eq!(
            kind("gpu 0/sm/17/l1/global_load"),
            "gpu */sm/*/l1/global_load"
        );
        assert_eq!(
            kind("node 7/gpu 0/sm/17/l1/global_load"),
            "gpu */sm/*/l1/global_load"
        );
        assert_eq!(
            kind("gpu 0/link/reply/slice 95"),
            "gpu */link/reply/slice *"
        );
        assert_eq!(kind(""), "");
    }
}
