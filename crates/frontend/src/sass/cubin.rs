//! One cubin: an ELF file of machine code, as ptxas 11 to 13 write it.

use object::{
    Endianness,
    elf::{self, FileHeader64},
    read::elf::{FileHeader, SectionHeader as _, SectionTable, Sym as _},
};

use super::error::Error;

/// ELF machine number of CUDA code.
const MACHINE: u16 = 190;
/// ABI byte of the older header dialect, whose flags hold the architecture in the low byte.
const OLD_ABI: u8 = 0x33;
/// The note of newer files that says what code was compiled for.
const CUDA_NOTE: &str = ".note.nv.cuinfo";
/// Largest section without file contents that is believed.
const LARGEST_SECTION: u64 = 1 << 40;
/// How often a byte of the file may be part of a section, or of a name.
const LARGEST_OVERLAP: usize = 8;

/// A section that matters here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// With its leading dot.
    pub name: String,
    /// Content; empty for sections that only reserve memory.
    pub bytes: Vec<u8>,
    /// Bytes in memory.
    pub size: u64,
    /// Alignment in memory, at least 1.
    pub alignment: u64,
    /// `sh_info`: registers in the top byte of old text sections.
    pub info: u32,
    /// `sh_flags`: barriers from bit 20 in old text sections.
    pub flags: u64,
}

/// A symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// Mangled name.
    pub name: String,
    /// Index into [`Cubin::sections`]; `None` if it is defined elsewhere.
    pub section: Option<usize>,
    /// Offset in its section.
    pub value: u64,
    /// Bytes.
    pub size: u64,
    /// ELF type: 1 object, 2 function, 3 section.
    pub kind: u8,
    /// `st_other`: 0x10 marks kernels, 0x04 managed variables.
    pub other: u8,
}

/// A place to patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relocation {
    /// Section that is patched.
    pub section: usize,
    /// Offset in that section.
    pub offset: u64,
    /// NVIDIA's type number.
    pub kind: u32,
    /// Index into [`Cubin::symbols`].
    pub symbol: usize,
    /// Added to the symbol; `None` if the place holds it.
    pub addend: Option<i64>,
}

/// A file read, nothing interpreted yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cubin {
    /// Compute capability × 10.
    pub architecture: u32,
    /// The virtual architecture that the code was compiled for.
    pub virtual_architecture: u32,
    /// All sections, in the file's order.
    pub sections: Vec<Section>,
    /// All symbols, in the file's order.
    pub symbols: Vec<Symbol>,
    /// All relocations.
    pub relocations: Vec<Relocation>,
}

/// Whether the bytes start like an ELF file.
#[must_use]
pub fn is_elf(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x7fELF")
}

/// The compute capability that a cubin is for.
///
/// # Errors
/// If the header is not that of a cubin.
pub fn architecture(bytes: &[u8]) -> Result<u32, Error> {
    let broken = |error: object::read::Error| Error::malformed("ELF header", error.to_string());
    let header = FileHeader64::<Endianness>::parse(bytes).map_err(broken)?;
    let endian = header.endian().map_err(broken)?;
    if header.e_machine(endian) != MACHINE {
        return Err(Error::malformed(
            "ELF header",
            format!("machine {} is not CUDA's", header.e_machine(endian)),
        ));
    }
    let flags = header.e_flags(endian);
    let old = header.e_ident().os_abi == OLD_ABI;
    Ok(if old { flags & 0xff } else { flags >> 8 & 0xff })
}

/// The virtual architecture that code was compiled for: old headers have it in their flags, newer files in a note. That
/// of the machine code where nothing says it.
fn virtual_architecture(header: &FileHeader64<Endianness>, sections: &[Section]) -> Option<u32> {
    if header.e_ident().os_abi == OLD_ABI {
        let endian = header.endian().ok()?;
        return Some(header.e_flags(endian) >> 16 & 0xff).filter(|found| *found != 0);
    }
    let note = sections.iter().find(|section| section.name == CUDA_NOTE)?;
    // Three words of sizes and kind, the owner's name in whole words, then version and architecture.
    let owner = u32::from_le_bytes(*note.bytes.first_chunk()?);
    let start = 12 + owner.checked_next_multiple_of(4)? as usize + 2;
    let found = note.bytes.get(start..)?.first_chunk()?;
    Some(u16::from_le_bytes(*found).into()).filter(|found| *found != 0)
}

fn broken(error: object::read::Error) -> Error {
    Error::malformed("ELF file", error.to_string())
}

/// One entry of a relocation table: offset, type and symbol, and perhaps an addend.
fn relocation(section: usize, entry: &[u8]) -> Relocation {
    let word = |index: usize| {
        let bytes = entry
            .get(8 * index..8 * index + 8)
            .and_then(|bytes| bytes.try_into().ok());
        bytes.map(u64::from_le_bytes)
    };
    let info = word(1).unwrap_or(0);
    Relocation {
        section,
        offset: word(0).unwrap_or(0),
        kind: info as u32,
        symbol: (info >> 32) as usize,
        addend: word(2).map(|addend| addend as i64),
    }
}

/// A file with its table of sections.
struct File<'a> {
    bytes: &'a [u8],
    endian: Endianness,
    table: SectionTable<'a, FileHeader64<Endianness>>,
}

impl File<'_> {
    fn sections(&self) -> Result<Vec<Section>, Error> {
        let (bytes, endian, table) = (self.bytes, self.endian, &self.table);
        let mut sections = Vec::new();
        // Sections hardly overlap in a file that a compiler wrote; in another one they could make
        // a few bytes count many thousand times.
        let mut left = bytes.len().saturating_mul(LARGEST_OVERLAP);
        for section in table.iter() {
            let name = table.section_name(endian, section).map_err(broken)?;
            let size = section.sh_size(endian);
            if size > LARGEST_SECTION {
                return Err(Error::malformed("ELF section", format!("{size} bytes")));
            }
            let content = section.data(endian, bytes).map_err(broken)?;
            left = left.checked_sub(content.len()).ok_or_else(|| {
                Error::malformed(
                    "ELF sections",
                    "they hold far more bytes than the file".to_owned(),
                )
            })?;
            sections.push(Section {
                name: String::from_utf8_lossy(name).into_owned(),
                bytes: content.to_vec(),
                size,
                alignment: section.sh_addralign(endian).clamp(1, 1 << 20),
                info: section.sh_info(endian),
                flags: section.sh_flags(endian),
            });
        }
        Ok(sections)
    }

    /// All symbols of a file with so many sections.
    fn symbols(&self, sections: usize) -> Result<Vec<Symbol>, Error> {
        let (bytes, endian) = (self.bytes, self.endian);
        let table = self
            .table
            .symbols(endian, bytes, elf::SHT_SYMTAB)
            .map_err(broken)?;
        let mut symbols = Vec::new();
        // Symbols may share a name, but not all of them the whole file.
        let mut left = bytes.len().saturating_mul(LARGEST_OVERLAP);
        for symbol in table.iter() {
            let name = symbol.name(endian, table.strings()).map_err(broken)?;
            left = left.checked_sub(name.len()).ok_or_else(|| {
                Error::malformed("ELF symbols", "names longer than the file".to_owned())
            })?;
            let section = usize::from(symbol.st_shndx(endian));
            symbols.push(Symbol {
                name: String::from_utf8_lossy(name).into_owned(),
                section: (section != 0 && section < sections).then_some(section),
                value: symbol.st_value(endian),
                size: symbol.st_size(endian),
                kind: symbol.st_type(),
                other: symbol.st_other(),
            });
        }
        Ok(symbols)
    }

    /// All relocations of a file with so many sections and symbols.
    fn relocations(&self, sections: usize, symbols: usize) -> Result<Vec<Relocation>, Error> {
        let (bytes, endian) = (self.bytes, self.endian);
        let mut relocations = Vec::new();
        for section in self.table.iter() {
            let target = section.sh_info(endian) as usize & 0x00ff_ffff;
            if target == 0 || target >= sections {
                continue;
            }
            // Read by hand: ptxas leaves these tables at odd offsets.
            let bytes = section.data(endian, bytes).map_err(broken)?;
            match section.sh_type(endian) {
                elf::SHT_REL => {
                    let (entries, _) = bytes.as_chunks::<16>();
                    relocations.extend(entries.iter().map(|entry| relocation(target, entry)));
                }
                elf::SHT_RELA => {
                    let (entries, _) = bytes.as_chunks::<24>();
                    relocations.extend(entries.iter().map(|entry| relocation(target, entry)));
                }
                _ => {}
            }
        }
        if let Some(bad) = relocations.iter().find(|one| one.symbol >= symbols) {
            return Err(Error::malformed(
                "relocation",
                format!("symbol {} does not exist", bad.symbol),
            ));
        }
        Ok(relocations)
    }
}

impl Cubin {
    /// Reads a file.
    ///
    /// # Errors
    /// If it is not a whole ELF file of CUDA code.
    pub fn read(bytes: &[u8]) -> Result<Self, Error> {
        let architecture = architecture(bytes)?;
        let header = FileHeader64::<Endianness>::parse(bytes).map_err(broken)?;
        let endian = header.endian().map_err(broken)?;
        let table = header.sections(endian, bytes).map_err(broken)?;
        let file = File {
            bytes,
            endian,
            table,
        };
        let sections = file.sections()?;
        let symbols = file.symbols(sections.len())?;
        let relocations = file.relocations(sections.len(), symbols.len())?;
        Ok(Self {
            architecture,
            virtual_architecture: virtual_architecture(header, &sections).unwrap_or(architecture),
            sections,
            symbols,
            relocations,
        })
    }

    /// Index of a section by its name.
    #[must_use]
    pub fn section(&self, name: &str) -> Option<usize> {
        self.sections
            .iter()
            .position(|section| section.name == name)
    }

    /// Content of a section by its name, empty if it is not there.
    #[must_use]
    pub fn bytes(&self, name: &str) -> &[u8] {
        self.section(name)
            .map_or(&[], |index| &self.sections[index].bytes)
    }
}
