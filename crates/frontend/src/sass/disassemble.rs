//! Listings of machine code: cubins, fat binaries, and programs that carry them.
//!
//! An instruction is one line, as nvdisasm prints it, with numeric branch targets; what a
//! relocation will write there follows as a comment. A word that no table describes is listed as
//! two numbers and counted, and the listing goes on.
//!
//! Start reading at [`disassemble`].

use std::io::{self, Write};

use lockstep_isa::sass::{Architecture, Word, decode, word::WORD_BYTES};
use object::{Object, ObjectSection};
use thiserror::Error as ThisError;

use super::{
    cubin::{self, Cubin},
    error::Error,
    fatbinary::{self, Kind},
    relocation,
};

/// Sections of a host program that hold fat binaries.
const FATBINARY_SECTIONS: &[&str] = &[".nv_fatbin", "__nv_relfatbin"];

/// Why there is no listing.
#[derive(Debug, ThisError)]
pub enum DisassembleError {
    /// The bytes are no machine code of ours.
    #[error(transparent)]
    Image(#[from] Error),
    /// A host program, or bytes of another kind.
    #[error("{0}; expected is a cubin, a fat binary, or a program or library that nvcc built")]
    Unknown(String),
    /// The listing could not be written.
    #[error("the listing could not be written: {0}")]
    Write(#[from] io::Error),
}

/// What a listing holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Cubins listed.
    pub images: u64,
    /// Cubins for architectures without a decoder, named in the listing only.
    pub skipped: u64,
    /// Words.
    pub instructions: u64,
    /// Words that no table describes.
    pub unknown: u64,
}

/// Writes the machine code in `bytes` as text.
///
/// # Errors
///
/// If the bytes hold no machine code, are malformed, or `out` fails.
pub fn disassemble(bytes: &[u8], out: &mut impl Write) -> Result<Summary, DisassembleError> {
    let mut summary = Summary::default();
    if fatbinary::is_fatbinary(bytes) {
        list_fatbinary(bytes, out, &mut summary)?;
    } else if cubin::is_elf(bytes) && cubin::architecture(bytes).is_ok() {
        list_cubin(bytes, out, &mut summary)?;
    } else {
        let program = object::File::parse(bytes)
            .map_err(|error| DisassembleError::Unknown(error.to_string()))?;
        let mut found = false;
        for name in FATBINARY_SECTIONS {
            let Some(section) = program.section_by_name(name) else {
                continue;
            };
            let data = section
                .data()
                .map_err(|error| DisassembleError::Unknown(error.to_string()))?;
            found = true;
            list_containers(data, out, &mut summary)?;
        }
        if !found {
            let wanted = FATBINARY_SECTIONS.join(" or ");
            return Err(DisassembleError::Unknown(format!("no section {wanted}")));
        }
    }
    Ok(summary)
}

/// Containers lie one after another in a program, each aligned to eight bytes.
fn list_containers(
    data: &[u8],
    out: &mut impl Write,
    summary: &mut Summary,
) -> Result<(), DisassembleError> {
    let mut offset = 0;
    while let Some(rest) = data.get(offset..).filter(|rest| !rest.is_empty()) {
        let length = fatbinary::length(rest).filter(|length| *length <= rest.len());
        offset += match length {
            Some(length) if fatbinary::is_fatbinary(rest) => {
                list_fatbinary(&rest[..length], out, summary)?;
                length.max(8)
            }
            _ => 8,
        };
    }
    Ok(())
}

fn list_fatbinary(
    bytes: &[u8],
    out: &mut impl Write,
    summary: &mut Summary,
) -> Result<(), DisassembleError> {
    for entry in fatbinary::read(bytes)? {
        match entry.kind {
            Kind::Cubin => list_cubin(&entry.bytes, out, summary)?,
            Kind::Ptx => writeln!(out, "// PTX for sm_{}, not listed\n", entry.architecture)?,
            Kind::Other(kind) => {
                writeln!(
                    out,
                    "// image of kind {kind} for sm_{}\n",
                    entry.architecture
                )?;
            }
        }
    }
    Ok(())
}

fn list_cubin(
    bytes: &[u8],
    out: &mut impl Write,
    summary: &mut Summary,
) -> Result<(), DisassembleError> {
    let sm = cubin::architecture(bytes)?;
    let Some(architecture) = Architecture::from_sm(sm) else {
        summary.skipped += 1;
        writeln!(out, "// sm_{sm}: no decoder\n")?;
        return Ok(());
    };
    let cubin = Cubin::read(bytes)?;
    summary.images += 1;
    for (index, section) in cubin.sections.iter().enumerate() {
        let Some(function) = section.name.strip_prefix(".text.") else {
            continue;
        };
        writeln!(out, "// {architecture}\n{function}:")?;
        let mut relocations: Vec<_> = cubin
            .relocations
            .iter()
            .filter(|relocation| relocation.section == index)
            .collect();
        relocations.sort_by_key(|relocation| relocation.offset);
        let mut relocations = relocations.into_iter().peekable();
        let (words, _) = section.bytes.as_chunks::<{ WORD_BYTES as usize }>();
        for (bytes, number) in words.iter().zip(0..) {
            let Some(word) = Word::from_bytes(bytes) else {
                break;
            };
            let address = number * WORD_BYTES;
            summary.instructions += 1;
            write!(out, "        /*{address:04x}*/                   ")?;
            match decode(architecture, address, word) {
                Ok(decoded) => write!(out, "{decoded} ;")?,
                Err(_) => {
                    summary.unknown += 1;
                    let (low, high) = (word.0 as u64, (word.0 >> 64) as u64);
                    write!(out, ".quad {low:#018x}, {high:#018x}  // unknown encoding")?;
                }
            }
            while let Some(relocation) =
                relocations.next_if(|relocation| relocation.offset < address + WORD_BYTES)
            {
                let symbol = &cubin.symbols[relocation.symbol].name;
                match relocation::kind(relocation.kind) {
                    Some(kind) => write!(out, "  // {} {symbol}", kind.name)?,
                    None => write!(out, "  // relocation {} {symbol}", relocation.kind)?,
                }
            }
            writeln!(out)?;
        }
        writeln!(out)?;
    }
    Ok(())
}
