//! PTX to machine code by the real assembler, for programs that carry no machine code for the
//! simulated GPU.
//!
//! An assembler that knows the GPU may be older than the PTX (sm_70 was dropped after CUDA 12). Its
//! `.version` and `.target` lines are then lowered, which is fine as long as nothing newer is used; the
//! assembler itself tells when something is.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

/// Assemblers that were found, best first.
#[derive(Clone, Debug)]
pub struct Assembler {
    programs: Vec<PathBuf>,
}

/// Machine code, and what was changed to get it.
#[derive(Debug)]
pub struct Assembled {
    /// A cubin.
    pub cubin: Vec<u8>,
    /// What the user should know.
    pub notes: Vec<String>,
}

impl Assembler {
    /// `$LOCKSTEP_PTXAS`, those on `PATH`, those in the project's own environment above the program
    /// or the current folder.
    #[must_use]
    pub fn find() -> Self {
        let mut programs = Vec::new();
        programs.extend(std::env::var_os("LOCKSTEP_PTXAS").map(PathBuf::from));
        if let Some(path) = std::env::var_os("PATH") {
            programs.extend(std::env::split_paths(&path).map(|folder| folder.join("ptxas")));
        }
        let starts = [std::env::current_exe().ok(), std::env::current_dir().ok()];
        for start in starts.into_iter().flatten() {
            for folder in start.ancestors() {
                programs.extend(in_environment(&folder.join(".lockstep/venv/lib")));
            }
        }
        programs.retain(|program| program.is_file());
        let mut seen = std::collections::BTreeSet::new();
        programs.retain(|program| seen.insert(program.clone()));
        Self { programs }
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
            let done = match texts {
                [text] => assemble_with(program, text, architecture, Kind::Whole),
                units => assemble_units(program, units, architecture),
            };
            match done {
                Ok(assembled) => return Ok(assembled),
                Err(error) => said = format!("{}: {error}", program.display()),
            }
        }
        Err(said)
    }
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

/// What an assembler is to make.
#[derive(Clone, Copy)]
enum Kind {
    /// Code that runs.
    Whole,
    /// One unit of several, to be linked.
    Unit,
}

/// Each unit by itself, then all together.
fn assemble_units(program: &Path, units: &[&str], architecture: u32) -> Result<Assembled, String> {
    let linker = program.with_file_name("nvlink");
    if !linker.is_file() {
        return Err(format!(
            "the program was compiled in {} units that are linked on the device (-rdc=true), and there is no \
             `nvlink` beside this assembler to link them; compile it with `-arch=sm_{architecture}` so that its \
             linked machine code can run",
            units.len()
        ));
    }
    let mut notes = Vec::new();
    let mut cubins = Vec::new();
    for unit in units {
        let assembled = assemble_with(program, unit, architecture, Kind::Unit)?;
        notes.extend(assembled.notes);
        cubins.push(assembled.cubin);
    }
    notes.dedup();
    let cubin = in_folder(|folder| {
        let output = folder.join("out.cubin");
        let mut command = Command::new(&linker);
        command
            .arg(format!("-arch=sm_{architecture}"))
            .arg("-o")
            .arg(&output);
        for (index, cubin) in cubins.iter().enumerate() {
            let input = folder.join(format!("unit{index}.cubin"));
            std::fs::write(&input, cubin).map_err(|error| error.to_string())?;
            command.arg(input);
        }
        output_of(&mut command, &output)
    })?;
    notes.push(format!(
        "the PTX of {} units is linked by {}",
        units.len(),
        linker.display()
    ));
    Ok(Assembled { cubin, notes })
}

fn assemble_with(
    program: &Path,
    text: &str,
    architecture: u32,
    kind: Kind,
) -> Result<Assembled, String> {
    let mut notes = Vec::new();
    let mut text = text.trim_end_matches('\0').to_owned();
    if let Some((target, number)) = directive(&text, ".target sm_")
        && number
            .parse()
            .is_ok_and(|number: u32| number > architecture)
    {
        text.replace_range(target, &architecture.to_string());
        notes.push(format!(
            "PTX for sm_{number} is assembled for sm_{architecture}; it uses nothing that sm_{architecture} lacks"
        ));
    }
    match call(program, &text, architecture, kind) {
        Err(said) => {
            // The assembler names the newest version that it reads.
            let newest = said
                .split_once("current version is '")
                .and_then(|(_, rest)| rest.split_once('\''))
                .map(|(version, _)| version.to_owned());
            let (Some(newest), Some((place, version))) = (newest, directive(&text, ".version "))
            else {
                return Err(said);
            };
            text.replace_range(place, &newest);
            notes.push(format!(
                "PTX of version {version} is assembled as version {newest}, the newest that {} reads",
                program.display()
            ));
            let cubin = call(program, &text, architecture, kind)?;
            Ok(Assembled { cubin, notes })
        }
        Ok(cubin) => Ok(Assembled { cubin, notes }),
    }
}

/// The number behind a directive at the start of a line: where it stands, and what it is.
fn directive(text: &str, name: &str) -> Option<(std::ops::Range<usize>, String)> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if let Some(rest) = line.strip_prefix(name) {
            let number: String = rest
                .chars()
                .take_while(|c| c.is_ascii_digit() || *c == '.')
                .collect();
            let start = at + name.len();
            return Some((start..start + number.len(), number));
        }
        at += line.len();
    }
    None
}

/// One call of an assembler.
fn call(program: &Path, text: &str, architecture: u32, kind: Kind) -> Result<Vec<u8>, String> {
    in_folder(|folder| {
        let (input, output) = (folder.join("in.ptx"), folder.join("out.cubin"));
        std::fs::write(&input, text).map_err(|error| error.to_string())?;
        let mut command = Command::new(program);
        command
            .arg(format!("-arch=sm_{architecture}"))
            .arg("-o")
            .arg(&output)
            .arg(&input);
        if let Kind::Unit = kind {
            command.arg("-c");
        }
        output_of(&mut command, &output)
    })
}

/// Work with files, in a folder of its own that is gone afterwards.
fn in_folder<T>(work: impl FnOnce(&Path) -> Result<T, String>) -> Result<T, String> {
    static FOLDERS: AtomicU64 = AtomicU64::new(0);
    let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
    let folder =
        std::env::temp_dir().join(format!("lockstep-ptxas-{}-{number}", std::process::id()));
    std::fs::DirBuilder::new()
        .mode(0o700)
        .create(&folder)
        .map_err(|error| format!("{}: {error}", folder.display()))?;
    let done = work(&folder);
    // What is left there hurts nobody.
    let _ = std::fs::remove_dir_all(&folder);
    done
}

/// Runs a tool and reads the file that it writes, or gives what it said.
fn output_of(command: &mut Command, output: &Path) -> Result<Vec<u8>, String> {
    let told = |error: std::io::Error| error.to_string();
    let ended = command.output().map_err(told)?;
    if !ended.status.success() {
        let said = String::from_utf8_lossy(&ended.stderr);
        let first: Vec<&str> = said.lines().take(4).collect();
        return Err(first.join("; "));
    }
    std::fs::read(output).map_err(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives_are_found_at_the_start_of_lines() {
        let text = "// .version 1.0\n.version 9.3\n.target sm_100a\n";
        let (place, version) = directive(text, ".version ").expect("it is there");
        assert_eq!((&text[place], version.as_str()), ("9.3", "9.3"));
        assert_eq!(
            directive(text, ".target sm_").map(|found| found.1),
            Some("100".into())
        );
        assert_eq!(directive("add.s32", ".target sm_"), None);
    }

    #[test]
    fn without_an_assembler_the_sentence_helps() {
        let none = Assembler {
            programs: Vec::new(),
        };
        let said = none.assemble(&[""], 70).expect_err("there is none");
        assert!(said.contains("LOCKSTEP_PTXAS"), "{said}");
    }

    /// An assembler that reads an older PTX is asked again in its own version.
    #[test]
    fn an_older_assembler_is_met_half_way() {
        let folder =
            std::env::temp_dir().join(format!("lockstep-assembler-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let program = folder.join("ptxas");
        let script = "#!/bin/sh\nif grep -q 'version 9' \"$4\"; then\n  echo \"Unsupported .version 9.3; current version is '8.8'\" >&2\n  exit 1\nfi\ncp \"$4\" \"$3\"\n";
        std::fs::write(&program, script).expect("a script");
        let mut rights = std::fs::metadata(&program)
            .expect("it is there")
            .permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut rights, 0o755);
        std::fs::set_permissions(&program, rights).expect("rights");
        let assembler = Assembler {
            programs: vec![program],
        };
        let done = assembler
            .assemble(&[".version 9.3\n.target sm_75\n"], 70)
            .expect("it works");
        assert_eq!(done.cubin, b".version 8.8\n.target sm_70\n");
        assert_eq!(done.notes.len(), 2);
        let _ = std::fs::remove_dir_all(&folder);
    }

    /// A folder with two tools of ours: the assembler marks units, the linker joins them.
    #[test]
    fn several_units_are_linked() {
        let folder = std::env::temp_dir().join(format!("lockstep-units-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let script = |name: &str, text: &str| {
            let path = folder.join(name);
            std::fs::write(&path, text).expect("a script");
            let rights = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(&path, rights).expect("rights");
            path
        };
        let program = script("ptxas", "#!/bin/sh\necho \"$5\" | cat - \"$4\" > \"$3\"\n");
        let assembler = Assembler {
            programs: vec![program],
        };
        let units = ["first\n", "second\n"];
        let said = assembler.assemble(&units, 90).expect_err("no linker");
        assert!(said.contains("nvlink"), "{said}");
        script("nvlink", "#!/bin/sh\ncat \"$4\" \"$5\" > \"$3\"\n");
        let done = assembler.assemble(&units, 90).expect("it works");
        assert_eq!(done.cubin, b"-c\nfirst\n-c\nsecond\n");
        assert!(done.notes[0].contains("2 units"), "{:?}", done.notes);
        let _ = std::fs::remove_dir_all(&folder);
    }
}
