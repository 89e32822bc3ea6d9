//! PTX to machine code by the real assembler, for programs that carry no machine code for the
//! simulated GPU.
//!
//! An assembler that knows the GPU may be older than the PTX (sm_70 was dropped after CUDA 12). Its
//! `.version` and `.target` lines are then lowered, which is fine as long as nothing newer is used; the
//! assembler itself tells when something is.
//!
//! | file | what |
//! |---|---|
//! | `call.rs` | one assembler at work on one program |
//! | `tool.rs` | assembler and linker as processes |
//! | `version.rs` | which `ptxas` a file is |
//! | `cache.rs` | what was made, kept between runs |

mod cache;
mod call;
#[cfg(test)]
mod tests;
mod tool;
mod version;

use cache::{Cache, Key};
use call::{Call, Kind};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

/// How long an assembler may work on one text. Large kernels take minutes.
const PATIENCE: Duration = Duration::from_secs(600);

/// Whether PTX is made into machine code where a program carries none for the GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Assembling {
    /// If an assembler is there and takes it, as a driver does; else PTX runs.
    #[default]
    IfPossible,
    /// Without it the program is refused.
    Required,
    /// PTX runs.
    Never,
}

/// Assemblers that were found, best first.
#[derive(Debug)]
pub struct Assembler {
    programs: Vec<PathBuf>,
    limit: Duration,
    cache: Option<Cache>,
    /// What each said of its version.
    versions: Mutex<BTreeMap<PathBuf, Option<String>>>,
}

/// Machine code, and what was changed to get it.
#[derive(Debug, PartialEq, Eq)]
pub struct Assembled {
    /// A cubin.
    pub cubin: Vec<u8>,
    /// What the user should know.
    pub notes: Vec<String>,
    /// By whom it was made.
    pub by: String,
}

impl Assembler {
    /// `$LOCKSTEP_PTXAS`; if that is not set, those on `PATH` and those in the project's own environment
    /// above this command or the current folder.
    #[must_use]
    pub fn find() -> Self {
        let mut programs = match std::env::var_os("LOCKSTEP_PTXAS") {
            Some(named) => vec![PathBuf::from(named)],
            None => at_hand(),
        };
        programs.retain(|program| program.is_file());
        let mut seen = std::collections::BTreeSet::new();
        programs.retain(|program| seen.insert(program.clone()));
        Self::new(programs, PATIENCE, Cache::open())
    }

    fn new(programs: Vec<PathBuf>, limit: Duration, cache: Option<Cache>) -> Self {
        Self {
            programs,
            limit,
            cache,
            versions: Mutex::default(),
        }
    }

    /// Assembles texts for an architecture (90 for sm_90). Several are units of one program, which the
    /// `nvlink` beside the assembler links.
    ///
    /// # Errors
    /// There is no assembler, or none that takes the texts; the sentence is what the last one said.
    pub fn assemble(&self, texts: &[&str], architecture: u32) -> Result<Assembled, String> {
        let mut said = "no `ptxas` was found: put it on PATH, name it in LOCKSTEP_PTXAS, or run \
                        `cargo xtask demo` once, which fetches one"
            .to_owned();
        for program in &self.programs {
            match self.assemble_by(program, texts, architecture) {
                Ok(assembled) => return Ok(assembled),
                Err(error) => said = format!("{}: {error}", program.display()),
            }
        }
        Err(said)
    }

    /// The same by one of them, or from the cache. Who does not tell its version makes everything anew.
    fn assemble_by(
        &self,
        program: &Path,
        texts: &[&str],
        architecture: u32,
    ) -> Result<Assembled, String> {
        let version = self.version(program);
        let by = match &version {
            Some(version) => format!("ptxas {version}"),
            None => "ptxas".into(),
        };
        let cache = self.cache.as_ref().zip(version).map(|(cache, version)| {
            let mut key = Key::new("assembled");
            key.add(version.as_bytes());
            key.add(&architecture.to_le_bytes());
            for text in texts {
                key.add(text.as_bytes());
            }
            (cache, key)
        });
        let kept = cache
            .as_ref()
            .and_then(|(cache, key)| unpack(&cache.load(key)?, &by));
        if let Some(kept) = kept {
            return Ok(kept);
        }
        let call = Call {
            program,
            by,
            architecture,
            limit: self.limit,
        };
        let done = match texts {
            [text] => call.assemble(text, Kind::Whole),
            units => call.assemble_units(units),
        }?;
        if let Some((cache, key)) = cache {
            cache.store(&key, &pack(&done));
        }
        Ok(done)
    }

    fn version(&self, program: &Path) -> Option<String> {
        let mut versions = self
            .versions
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(known) = versions.get(program) {
            return known.clone();
        }
        let version = version::of(program, self.cache.as_ref());
        versions.insert(program.to_owned(), version.clone());
        version
    }
}

/// What is kept of machine code: the length of the notes, the notes, the cubin.
fn pack(assembled: &Assembled) -> Vec<u8> {
    let notes = assembled.notes.join("\n");
    let mut bytes = (notes.len() as u64).to_le_bytes().to_vec();
    bytes.extend(notes.as_bytes());
    bytes.extend(&assembled.cubin);
    bytes
}

fn unpack(bytes: &[u8], by: &str) -> Option<Assembled> {
    let (length, rest) = bytes.split_first_chunk()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    let (notes, cubin) = rest.split_at_checked(length)?;
    let notes = std::str::from_utf8(notes).ok()?;
    Some(Assembled {
        cubin: cubin.to_vec(),
        notes: notes.lines().map(str::to_owned).collect(),
        by: by.to_owned(),
    })
}

/// Where an assembler may be, best first.
fn at_hand() -> Vec<PathBuf> {
    let mut places = Vec::new();
    if let Some(path) = std::env::var_os("PATH") {
        places.extend(std::env::split_paths(&path).map(|folder| folder.join("ptxas")));
    }
    let starts = [std::env::current_exe().ok(), std::env::current_dir().ok()];
    for start in starts.into_iter().flatten() {
        for folder in start.ancestors() {
            places.extend(in_environment(&folder.join(".lockstep/venv/lib")));
        }
    }
    places
}

/// The assemblers of every CUDA package in a virtual environment.
fn in_environment(library: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for python in std::fs::read_dir(library).into_iter().flatten().flatten() {
        for package in ["cu13", "cuda_nvcc"] {
            let place = python.path().join("site-packages/nvidia").join(package);
            found.push(place.join("bin/ptxas"));
        }
    }
    found
}
