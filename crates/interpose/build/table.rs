//! Reads the tables of `api/` and gives every distinct entry point a number.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

/// Major versions of the runtime, in the order of the columns that we generate.
pub const MAJORS: [u32; 3] = [11, 12, 13];

/// All that the tables say.
pub struct Table {
    /// Every function that an entry point can lead to; its place is its number.
    pub entries: Vec<String>,
    /// Runtime names: for each major version the function, if the version has the name.
    pub runtime: BTreeMap<String, [Option<String>; 3]>,
    /// Driver names as exported.
    pub driver: BTreeSet<String>,
    /// Names of NVML.
    pub nvml: BTreeSet<String>,
    /// What `cuGetProcAddress` knows: base name, version, per-thread variant, ABI name.
    lookups: Vec<(String, u32, bool, String)>,
}

impl Table {
    /// Reads all tables.
    pub fn read(runtime: &Path, driver: &Path, nvml: &Path) -> Result<Self, String> {
        let mut table = Self {
            entries: Vec::new(),
            runtime: BTreeMap::new(),
            driver: BTreeSet::new(),
            nvml: BTreeSet::new(),
            lookups: Vec::new(),
        };
        for_each_row(runtime, |name, words| table.add_runtime(name, words))?;
        for_each_row(driver, |name, words| table.add_driver(name, words))?;
        for_each_row(nvml, |name, _| {
            table.nvml.insert(name.to_string());
            Ok(())
        })?;
        table.lookups.sort();
        let mut entries = table.driver.clone();
        entries.extend(table.nvml.iter().cloned());
        for functions in table.runtime.values() {
            entries.extend(functions.iter().flatten().cloned());
        }
        table.entries = entries.into_iter().collect();
        Ok(table)
    }

    fn add_runtime(&mut self, name: &str, words: &[&str]) -> Result<(), String> {
        let mut functions = [None, None, None];
        for word in words {
            let (major, function) = word.split_once('=').unwrap_or((word, name));
            let column = MAJORS
                .iter()
                .position(|known| major == known.to_string())
                .ok_or_else(|| format!("`{word}` names no major version of {MAJORS:?}"))?;
            functions[column] = Some(function.to_string());
        }
        self.runtime.insert(name.to_string(), functions);
        Ok(())
    }

    fn add_driver(&mut self, name: &str, words: &[&str]) -> Result<(), String> {
        if words == ["-"] {
            self.driver.insert(name.to_string());
            return Ok(());
        }
        let mut versions = Vec::new();
        for word in words {
            let (number, suffix) = match word.find('_') {
                Some(place) => word.split_at(place),
                None => (*word, ""),
            };
            let number: u32 = number
                .parse()
                .map_err(|_| format!("`{word}` is no version number"))?;
            versions.push((number, suffix));
        }
        let mut plain: Vec<u32> = versions
            .iter()
            .filter(|(_, suffix)| suffix.is_empty())
            .map(|(number, _)| *number)
            .collect();
        plain.sort_unstable();
        for (number, suffix) in versions {
            // A variant belongs to the newest plain revision that is not newer than it.
            let revision = plain
                .iter()
                .filter(|other| **other <= number)
                .count()
                .max(1);
            let abi = match revision {
                1 => format!("{name}{suffix}"),
                _ => format!("{name}_v{revision}{suffix}"),
            };
            self.driver.insert(abi.clone());
            self.lookups
                .push((name.to_string(), number, !suffix.is_empty(), abi));
        }
        Ok(())
    }

    /// The number of a function.
    pub fn number(&self, function: &str) -> usize {
        self.entries
            .binary_search_by(|entry| entry.as_str().cmp(function))
            .expect("every function of the tables is among the entries")
    }

    /// The number of the function that a runtime name stands for.
    pub fn runtime_number(&self, name: &str, column: usize) -> Option<usize> {
        let function = self.runtime.get(name)?[column].as_ref()?;
        Some(self.number(function))
    }

    /// A number that changes with the entries: core and shims of different builds must not
    /// meet.
    pub fn fingerprint(&self) -> u64 {
        let bytes = self.entries.iter().flat_map(|name| name.bytes().chain([0]));
        bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        })
    }

    /// The symbol through which shims find the core's entries.
    pub fn entries_symbol(&self) -> String {
        format!("lockstep_entries_{:016x}", self.fingerprint())
    }

    /// The tables that the core searches, as Rust.
    pub fn rust(&self) -> String {
        let mut text = String::new();
        let _ = writeln!(text, "/// How many entries there are.");
        let _ = writeln!(
            text,
            "pub const ENTRY_COUNT: usize = {};",
            self.entries.len()
        );
        let _ = writeln!(text, "/// Where the shims find the entries.");
        let _ = writeln!(
            text,
            "#[unsafe(export_name = \"{}\")]",
            self.entries_symbol()
        );
        let _ = writeln!(
            text,
            "pub static SHIM_ENTRIES: EntriesPointer = EntriesPointer(&raw const lockstep_entries);"
        );
        let _ = writeln!(
            text,
            "/// Runtime names, sorted: the entry in each major version."
        );
        let _ = writeln!(text, "pub static RUNTIME: &[(&str, [Option<u16>; 3])] = &[");
        for name in self.runtime.keys() {
            let numbers = [0, 1, 2].map(|column| self.runtime_number(name, column));
            let _ = writeln!(text, "    ({name:?}, {numbers:?}),");
        }
        let _ = writeln!(text, "];");
        let _ = writeln!(text, "/// Driver names as exported, sorted.");
        let _ = writeln!(text, "#[cfg(test)]");
        let _ = writeln!(text, "pub static DRIVER: &[(&str, u16)] = &[");
        for name in &self.driver {
            let _ = writeln!(text, "    ({name:?}, {}),", self.number(name));
        }
        let _ = writeln!(text, "];");
        let _ = writeln!(
            text,
            "/// What `cuGetProcAddress` knows, sorted: base name, version, whether it is the"
        );
        let _ = writeln!(text, "/// per-thread variant, entry.");
        let _ = writeln!(text, "pub static LOOKUPS: &[(&str, u32, bool, u16)] = &[");
        for (name, version, per_thread, abi) in &self.lookups {
            let number = self.number(abi);
            let _ = writeln!(text, "    ({name:?}, {version}, {per_thread}, {number}),");
        }
        let _ = writeln!(text, "];");
        text
    }
}

fn for_each_row(
    path: &Path,
    mut add: impl FnMut(&str, &[&str]) -> Result<(), String>,
) -> Result<(), String> {
    let text =
        std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    for (index, line) in text.lines().enumerate() {
        if line.starts_with('#') || line.trim().is_empty() {
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        add(words[0], &words[1..])
            .map_err(|error| format!("{}:{}: {error}", path.display(), index + 1))?;
    }
    Ok(())
}
