//! Finds the entry points of a CUDA runtime inside an ELF file.

use crate::entries::{self, RuntimeMajor};
use object::Endianness;
use object::elf::{FileHeader64, SHN_UNDEF, STT_FUNC};
use object::read::elf::{FileHeader, SectionTable, Sym};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

/// Fewer known names than this are somebody's wrappers, not a runtime.
const FEWEST: usize = 100;

/// A name that only our shims ask for.
const SHIM_MARK: &[u8] = b"lockstep_entries_";

/// An entry point of the object and where it should lead.
pub struct Found {
    /// Its address before the object is moved to where it is loaded.
    pub address: u64,
    /// Bytes up to the next function, or its own length where that is not known.
    pub room: u64,
    /// Where calls shall go.
    pub target: usize,
    /// Its name, for messages.
    pub name: String,
}

/// The entry points of the CUDA runtime in a file; `None` if there is none.
pub fn runtime_in(path: &Path) -> Option<Vec<Found>> {
    let map = Map::open(path)?;
    let data = map.bytes();
    let header = FileHeader64::<Endianness>::parse(data).ok()?;
    let endian = header.endian().ok()?;
    if header.e_machine(endian) != object::elf::EM_X86_64 {
        return None;
    }
    let sections = header.sections(endian, data).ok()?;
    let mut functions = Functions::default();
    for kind in [object::elf::SHT_SYMTAB, object::elf::SHT_DYNSYM] {
        functions.read(&sections, endian, data, kind)?;
    }
    functions.finish()
}

#[derive(Default)]
struct Functions {
    /// Where functions of any name begin.
    starts: std::collections::BTreeSet<u64>,
    /// Those that sound like CUDA: name to address and length.
    cuda: BTreeMap<String, (u64, u64)>,
}

impl Functions {
    /// Reads one symbol table; `None` if the object is one of our shims.
    fn read(
        &mut self,
        sections: &SectionTable<'_, FileHeader64<Endianness>>,
        endian: Endianness,
        data: &[u8],
        kind: u32,
    ) -> Option<()> {
        let Ok(table) = sections.symbols(endian, data, kind) else {
            return Some(());
        };
        let strings = table.strings();
        for symbol in table.iter() {
            let Ok(name) = symbol.name(endian, strings) else {
                continue;
            };
            if name.starts_with(SHIM_MARK) {
                return None;
            }
            if symbol.st_type() != STT_FUNC || symbol.st_shndx(endian) == SHN_UNDEF {
                continue;
            }
            let address = symbol.st_value(endian);
            self.starts.insert(address);
            if (name.starts_with(b"cuda") || name.starts_with(b"__cuda"))
                && let Ok(name) = std::str::from_utf8(name)
            {
                self.cuda
                    .insert(name.to_string(), (address, symbol.st_size(endian)));
            }
        }
        Some(())
    }

    fn finish(self) -> Option<Vec<Found>> {
        let major = self.major();
        let mut by_address: BTreeMap<u64, Found> = BTreeMap::new();
        let mut known = 0;
        for (name, (address, length)) in &self.cuda {
            let Some(entry) = entries::runtime(name, major) else {
                continue;
            };
            known += 1;
            let next = self.starts.range(address + 1..).next();
            // Two names of one function: the plain one, which sorts first, speaks for both.
            by_address.entry(*address).or_insert_with(|| Found {
                address: *address,
                room: next.map_or(*length, |next| next - address),
                target: entry.address(),
                name: name.clone(),
            });
        }
        (known >= FEWEST).then(|| by_address.into_values().collect())
    }

    /// Which major version the names belong to.
    fn major(&self) -> RuntimeMajor {
        let has = |name: &str| self.cuda.contains_key(name);
        if has("cudaGetDeviceProperties_v2") {
            RuntimeMajor::Twelve
        } else if has("cudaThreadSynchronize") {
            RuntimeMajor::Eleven
        } else {
            RuntimeMajor::Thirteen
        }
    }
}

/// A file in memory. Only the pages that are looked at are read.
struct Map {
    start: *mut libc::c_void,
    length: usize,
}

impl Map {
    fn open(path: &Path) -> Option<Self> {
        let file = File::open(path).ok()?;
        let length = usize::try_from(file.metadata().ok()?.len()).ok()?;
        if length == 0 {
            return None;
        }
        // SAFETY: a new private mapping of a file that is open, at a place that the kernel
        // chooses.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ,
                libc::MAP_PRIVATE,
                file.as_raw_fd(),
                0,
            )
        };
        (start != libc::MAP_FAILED).then_some(Self { start, length })
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping lives as long as `self`. The file is an object that is loaded;
        // whoever shortens it meanwhile breaks the program itself.
        unsafe { std::slice::from_raw_parts(self.start.cast(), self.length) }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing refers to it any more.
        unsafe { libc::munmap(self.start, self.length) };
    }
}
