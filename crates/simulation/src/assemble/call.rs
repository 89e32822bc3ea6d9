//! One assembler at work on one program.

use super::{Assembled, tool};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// What an assembler is to make.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// Code that runs.
    Whole,
    /// One unit of several, to be linked.
    Unit,
}

/// An assembler at work.
pub(super) struct Call<'call> {
    pub(super) program: &'call Path,
    pub(super) by: String,
    pub(super) architecture: u32,
    pub(super) limit: Duration,
}

impl Call<'_> {
    /// Each unit by itself, then all together.
    pub(super) fn assemble_units(&self, units: &[&str]) -> Result<Assembled, String> {
        let architecture = self.architecture;
        let linker = self.program.with_file_name("nvlink");
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
            let assembled = self.assemble(unit, Kind::Unit)?;
            notes.extend(assembled.notes);
            cubins.push(assembled.cubin);
        }
        notes.dedup();
        let cubin = tool::in_folder(|folder| {
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
            tool::output_of(&mut command, &output, self.limit)
        })?;
        notes.push(format!(
            "the PTX of {} units is linked by the `nvlink` beside {}",
            units.len(),
            self.by
        ));
        Ok(self.made(cubin, notes))
    }

    fn made(&self, cubin: Vec<u8>, notes: Vec<String>) -> Assembled {
        Assembled {
            cubin,
            notes,
            by: self.by.clone(),
        }
    }

    pub(super) fn assemble(&self, text: &str, kind: Kind) -> Result<Assembled, String> {
        let architecture = self.architecture;
        let mut notes = Vec::new();
        let mut text = text.trim_end_matches('\0').to_owned();
        if let Some((target, number)) = directive(&text, ".target sm_")
            && number
                .parse()
                .is_ok_and(|number: u32| number > architecture)
        {
            text.replace_range(target, &architecture.to_string());
            notes.push(format!(
                "PTX for sm_{number}, which the real driver would refuse on sm_{architecture}, is assembled for it; it uses nothing \
                 that sm_{architecture} lacks"
            ));
        }
        match self.call(&text, kind) {
            Err(said) => {
                // The assembler names the newest version that it reads.
                let newest = said
                    .split_once("current version is '")
                    .and_then(|(_, rest)| rest.split_once('\''))
                    .map(|(version, _)| version.to_owned());
                let (Some(newest), Some((place, version))) =
                    (newest, directive(&text, ".version "))
                else {
                    return Err(said);
                };
                text.replace_range(place, &newest);
                notes.push(format!(
                    "PTX of version {version} is assembled as version {newest}, the newest that {} reads",
                    self.by
                ));
                let cubin = self.call(&text, kind)?;
                Ok(self.made(cubin, notes))
            }
            Ok(cubin) => Ok(self.made(cubin, notes)),
        }
    }

    /// One call of the assembler.
    fn call(&self, text: &str, kind: Kind) -> Result<Vec<u8>, String> {
        tool::in_folder(|folder| {
            let (input, output) = (folder.join("in.ptx"), folder.join("out.cubin"));
            std::fs::write(&input, text).map_err(|error| error.to_string())?;
            let mut command = Command::new(self.program);
            command
                .arg(format!(
                    "-arch=sm_{}{}",
                    self.architecture,
                    suffix(text, self.architecture)
                ))
                .arg("-o")
                .arg(&output)
                .arg(&input);
            if let Kind::Unit = kind {
                command.arg("-c");
            }
            tool::output_of(&mut command, &output, self.limit)
        })
    }
}

/// The `a` of PTX for exactly this GPU (sm_90a), which has to be assembled as such.
pub(super) fn suffix(text: &str, architecture: u32) -> &'static str {
    match directive(text, ".target sm_") {
        Some((place, number)) if number == architecture.to_string() => {
            match text[place.end..].chars().next() {
                Some('a') => "a",
                _ => "",
            }
        }
        _ => "",
    }
}

/// The number behind a directive at the start of a line: where it stands, and what it is.
pub(super) fn directive(text: &str, name: &str) -> Option<(std::ops::Range<usize>, String)> {
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
