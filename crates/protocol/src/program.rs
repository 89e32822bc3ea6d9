//! What kind of program a file is, before it is run.
//!
//! Nearly every program can be served, and this does not decide whether: libraries may
//! bring CUDA along at any time. It exists for the one kind that cannot, and to say
//! beforehand what would otherwise show as a puzzling error.

use object::Endianness;
use object::elf::{EM_X86_64, ET_DYN, ET_EXEC, FileHeader64, SHN_UNDEF, STT_FUNC};
use object::read::elf::{Dyn, FileHeader, SectionHeader, Sym};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// What a program is, as far as CUDA is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramKind {
    /// The runtime is linked in and its entry points have names: it is redirected.
    StaticRuntime,
    /// It needs a shared runtime; the library's name.
    SharedRuntime(String),
    /// It needs the driver's library and no runtime.
    DriverApi,
    /// It carries GPU code and a runtime without names: its calls cannot be redirected.
    StrippedStaticRuntime,
    /// An ELF program in which no CUDA is to be seen. It may still load some.
    NoCuda,
    /// A statically linked program, which loads no libraries, ours included.
    StaticExecutable,
    /// An ELF file for another machine.
    OtherMachine,
    /// A script; its interpreter.
    Script(String),
    /// A file of another kind.
    Unknown,
}

impl ProgramKind {
    /// A sentence for the kinds that cannot be served.
    pub fn obstacle(&self) -> Option<&'static str> {
        match self {
            Self::StrippedStaticRuntime => Some(
                "it carries the CUDA runtime inside it, and its symbols were stripped, so its CUDA \
                 calls cannot be found; build it with `nvcc -cudart shared`, or do not strip it",
            ),
            Self::StaticExecutable => Some(
                "it is linked statically, so no library can be loaded into it; build it without \
                 `-static`",
            ),
            Self::OtherMachine => Some("it is built for another processor than this one"),
            _ => None,
        }
    }
}

/// Looks at a file. Contents that make no sense are [`ProgramKind::Unknown`], never an
/// error; an error means that the file cannot be read.
pub fn inspect(path: &Path) -> io::Result<ProgramKind> {
    let mut start = [0; 256];
    let mut file = File::open(path)?;
    let length = file.read(&mut start)?;
    let start = &start[..length];
    if let Some(line) = start.strip_prefix(b"#!") {
        let line = line.split(|byte| *byte == b'\n').next().unwrap_or(line);
        let line = String::from_utf8_lossy(line);
        let interpreter = line.split_whitespace().next().unwrap_or_default();
        return Ok(ProgramKind::Script(interpreter.to_string()));
    }
    if !start.starts_with(b"\x7fELF") {
        return Ok(ProgramKind::Unknown);
    }
    let data = object::read::ReadCache::new(file);
    Ok(inspect_elf(&data).unwrap_or(ProgramKind::Unknown))
}

/// What is to be seen in an ELF file.
#[derive(Default)]
struct Sights {
    gpu_code: bool,
    runtime_inside: bool,
    needed: Vec<String>,
    has_interpreter: bool,
}

fn inspect_elf<'data, R: object::ReadRef<'data>>(data: R) -> object::Result<ProgramKind> {
    let Ok(header) = FileHeader64::<Endianness>::parse(data) else {
        return Ok(ProgramKind::OtherMachine);
    };
    let endian = header.endian()?;
    if header.e_machine(endian) != EM_X86_64 {
        return Ok(ProgramKind::OtherMachine);
    }
    let mut sights = Sights::default();
    let programs = header.program_headers(endian, data)?;
    sights.has_interpreter = programs
        .iter()
        .any(|program| program.p_type.get(endian) == object::elf::PT_INTERP);
    let sections = header.sections(endian, data)?;
    for (_, section) in sections.enumerate() {
        let name = sections.section_name(endian, section)?;
        sights.gpu_code |= matches!(name, b".nv_fatbin" | b".nvFatBinSegment");
        if let Some((entries, link)) = section.dynamic(endian, data)? {
            let strings = sections.strings(endian, data, link)?;
            for entry in entries {
                if entry.tag32(endian) == Some(object::elf::DT_NEEDED)
                    && let Some(offset) = entry.val32(endian)
                    && let Ok(name) = strings.get(offset)
                {
                    sights
                        .needed
                        .push(String::from_utf8_lossy(name).into_owned());
                }
            }
        }
    }
    let symbols = sections.symbols(endian, data, object::elf::SHT_SYMTAB)?;
    for symbol in symbols.iter() {
        if symbol.st_type() == STT_FUNC && symbol.st_shndx(endian) != SHN_UNDEF {
            let name = symbol.name(endian, symbols.strings())?;
            sights.runtime_inside |= name == b"__cudaRegisterFatBinary" || name == b"cudaMalloc";
        }
    }
    let executable = matches!(header.e_type(endian), ET_EXEC | ET_DYN);
    Ok(sights.judge(executable))
}

impl Sights {
    fn judge(self, executable: bool) -> ProgramKind {
        let needs = |prefix: &str| self.needed.iter().find(|name| name.starts_with(prefix));
        if !executable {
            ProgramKind::Unknown
        } else if !self.has_interpreter {
            ProgramKind::StaticExecutable
        } else if self.runtime_inside {
            ProgramKind::StaticRuntime
        } else if let Some(runtime) = needs("libcudart.so") {
            ProgramKind::SharedRuntime(runtime.clone())
        } else if self.gpu_code {
            // Only a runtime takes code from these sections, whether or not the driver is linked too.
            ProgramKind::StrippedStaticRuntime
        } else if needs("libcuda.so").is_some() {
            ProgramKind::DriverApi
        } else {
            ProgramKind::NoCuda
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind_of(contents: &[u8]) -> ProgramKind {
        let directory = std::env::temp_dir();
        let name = format!("lockstep-inspect-{}-{:p}", std::process::id(), contents);
        let path = directory.join(name);
        std::fs::write(&path, contents).unwrap();
        let kind = inspect(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        kind
    }

    #[test]
    fn this_test_has_no_cuda_in_it() {
        let path = std::env::current_exe().unwrap();
        assert_eq!(inspect(&path).unwrap(), ProgramKind::NoCuda);
    }

    #[test]
    fn scripts_name_their_interpreter() {
        let kind = kind_of(b"#! /usr/bin/env python3\nprint()\n");
        assert_eq!(kind, ProgramKind::Script("/usr/bin/env".into()));
    }

    #[test]
    fn what_makes_no_sense_is_unknown() {
        assert_eq!(kind_of(b""), ProgramKind::Unknown);
        assert_eq!(kind_of(b"hello"), ProgramKind::Unknown);
        assert_eq!(kind_of(b"\x7fELF\x02"), ProgramKind::OtherMachine);
        let mut broken = std::fs::read("/proc/self/exe").unwrap();
        broken[0x28..0x30].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(kind_of(&broken), ProgramKind::Unknown);
    }

    #[test]
    fn a_file_that_is_not_there_is_an_error() {
        assert!(inspect(Path::new("/nowhere/program")).is_err());
    }

    #[test]
    fn only_what_cannot_be_served_has_an_obstacle() {
        let sights = Sights {
            gpu_code: true,
            has_interpreter: true,
            ..Default::default()
        };
        let kind = sights.judge(true);
        assert_eq!(kind, ProgramKind::StrippedStaticRuntime);
        assert!(kind.obstacle().unwrap().contains("-cudart shared"));
        assert_eq!(ProgramKind::NoCuda.obstacle(), None);
    }

    #[test]
    fn a_driver_linked_beside_a_stripped_runtime_does_not_hide_it() {
        let sights = |gpu_code| Sights {
            gpu_code,
            has_interpreter: true,
            needed: vec!["libcuda.so.1".into()],
            ..Default::default()
        };
        assert_eq!(sights(true).judge(true), ProgramKind::StrippedStaticRuntime);
        assert_eq!(sights(false).judge(true), ProgramKind::DriverApi);
    }
}
