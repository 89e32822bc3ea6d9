//! Good inputs, by kind, in one file that can be carried to another machine.

use anyhow::{Context, Result, bail};
use lockstep_frontend::sass::{cubin, fatbinary};
use object::{Object, ObjectSection};
use std::io::{Read, Write};
use std::path::Path;

const MAGIC: &[u8; 8] = b"LKSTFUZ1";
/// Larger files are no seeds: a case should take milliseconds.
const LARGEST_FILE: u64 = 32 << 20;
/// Nor are larger images.
const LARGEST_INPUT: usize = 256 << 10;

/// What an input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// PTX text.
    Ptx,
    /// A cubin.
    Cubin,
    /// A fat binary.
    FatBinary,
    /// The description of a GPU.
    Toml,
    /// A record of calls.
    Record,
}

const KINDS: &[Kind] = &[
    Kind::Ptx,
    Kind::Cubin,
    Kind::FatBinary,
    Kind::Toml,
    Kind::Record,
];

/// Inputs in the order in which they were found.
#[derive(Clone, Debug, Default)]
pub struct Corpus {
    inputs: Vec<(Kind, Vec<u8>)>,
}

impl Corpus {
    /// Inputs of a kind.
    pub fn of(&self, kind: Kind) -> Vec<&[u8]> {
        let fitting = self.inputs.iter().filter(|(found, _)| *found == kind);
        fitting.map(|(_, bytes)| &**bytes).collect()
    }

    /// Adds an input, unless it is there.
    pub fn add(&mut self, kind: Kind, bytes: Vec<u8>) {
        let there = self.inputs.iter().any(|(_, known)| *known == bytes);
        if !there && bytes.len() <= LARGEST_INPUT {
            self.inputs.push((kind, bytes));
        }
    }

    /// How many of each kind there are.
    pub fn summary(&self) -> String {
        let counts = KINDS.iter().map(|kind| (kind, self.of(*kind).len()));
        let parts: Vec<String> = counts
            .filter(|(_, count)| *count > 0)
            .map(|(kind, count)| format!("{count} {kind:?}"))
            .collect();
        parts.join(", ")
    }

    /// Adds a file, or all files below a folder, in the order of their names.
    pub fn gather(&mut self, path: &Path) -> Result<()> {
        let metadata = std::fs::metadata(path).with_context(|| path.display().to_string())?;
        if metadata.is_dir() {
            let mut below = std::fs::read_dir(path)?
                .map(|entry| entry.map(|entry| entry.path()))
                .collect::<std::io::Result<Vec<_>>>()?;
            below.sort();
            for path in below {
                self.gather(&path)?;
            }
            return Ok(());
        }
        if metadata.len() > LARGEST_FILE {
            return Ok(());
        }
        let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
        let extension = path.extension().and_then(|extension| extension.to_str());
        match extension {
            Some("ptx") => self.add(Kind::Ptx, bytes),
            Some("toml") => self.add(Kind::Toml, bytes),
            Some("record") => self.add(Kind::Record, bytes),
            _ => self.add_code(&bytes),
        }
        Ok(())
    }

    /// Machine code of any kind, and what is packed in it.
    fn add_code(&mut self, bytes: &[u8]) {
        if fatbinary::is_fatbinary(bytes) {
            for entry in fatbinary::read(bytes).unwrap_or_default() {
                match entry.kind {
                    fatbinary::Kind::Ptx => self.add(Kind::Ptx, entry.bytes),
                    fatbinary::Kind::Cubin => self.add(Kind::Cubin, entry.bytes),
                    fatbinary::Kind::Other(_) => {}
                }
            }
            self.add(Kind::FatBinary, bytes.to_vec());
        } else if cubin::is_elf(bytes) {
            if cubin::architecture(bytes).is_ok() {
                return self.add(Kind::Cubin, bytes.to_vec());
            }
            self.add_program(bytes);
        }
    }

    /// The containers of a host program.
    fn add_program(&mut self, bytes: &[u8]) {
        let Ok(program) = object::File::parse(bytes) else {
            return;
        };
        let Some(section) = program.section_by_name(".nv_fatbin") else {
            return;
        };
        let data = section.data().unwrap_or_default();
        let mut offset = 0;
        while let Some(rest) = data.get(offset..).filter(|rest| !rest.is_empty()) {
            let length = fatbinary::length(rest).filter(|length| *length <= rest.len());
            offset += match length {
                Some(length) if fatbinary::is_fatbinary(rest) => {
                    self.add_code(&rest[..length]);
                    length.max(8)
                }
                _ => 8,
            };
        }
    }

    /// Writes all inputs.
    pub fn write(&self, path: &Path) -> Result<()> {
        let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
        file.write_all(MAGIC)?;
        for (kind, bytes) in &self.inputs {
            file.write_all(&[*kind as u8])?;
            file.write_all(&(bytes.len() as u32).to_le_bytes())?;
            file.write_all(bytes)?;
        }
        file.flush()?;
        Ok(())
    }

    /// Reads them back.
    pub fn read(path: &Path) -> Result<Self> {
        let shown = path.display();
        let mut file =
            std::io::BufReader::new(std::fs::File::open(path).with_context(|| shown.to_string())?);
        let mut magic = [0; 8];
        file.read_exact(&mut magic)?;
        if magic != *MAGIC {
            bail!("{shown} is no corpus; make one with `lockstep-fuzz corpus`");
        }
        let mut corpus = Self::default();
        let mut header = [0; 5];
        while file.read_exact(&mut header).is_ok() {
            let [number, length @ ..] = header;
            let kind = KINDS.get(usize::from(number)).copied();
            let kind = kind.with_context(|| format!("{shown}: kind {number}"))?;
            let mut bytes = vec![0; u32::from_le_bytes(length) as usize];
            file.read_exact(&mut bytes)?;
            corpus.inputs.push((kind, bytes));
        }
        Ok(corpus)
    }
}
