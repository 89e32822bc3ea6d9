//! Device code as the simulator sees it, as text.

use crate::images;
use crate::program::{RunError, system};
use lockstep_isa::Module;
use object::{Object, ObjectSection};
use std::fmt::Write;
use std::path::Path;

/// Largest file that is looked into.
const MAXIMUM_FILE: u64 = 4 << 30;

/// Every function of a PTX, cubin or fat binary file, or of a program that carries one; only the
/// function called `entry` if it is given.
///
/// # Errors
/// The file cannot be read, or holds no device code, or not that function.
pub fn disassemble(path: &Path, entry: Option<&str>) -> Result<String, RunError> {
    let name = path.display().to_string();
    let size = std::fs::metadata(path).map_err(system(&name))?.len();
    if size > MAXIMUM_FILE {
        return Err(RunError::Request(format!(
            "{name}: {size} bytes are too many"
        )));
    }
    let bytes = std::fs::read(path).map_err(system(&name))?;
    let code = device_code(&bytes);
    let refused = |failure: lockstep_protocol::Failure| {
        RunError::Request(format!("{name}: {}", failure.message))
    };
    let mut text = String::new();
    let mut found = false;
    for (what, module) in images::read_all(code.as_deref().unwrap_or(&bytes)).map_err(refused)? {
        let _ = writeln!(text, "// {what}");
        found |= list(&module, entry, &mut text);
    }
    if let Some(entry) = entry
        && !found
    {
        return Err(RunError::Request(format!(
            "{name} has no function called `{entry}`"
        )));
    }
    Ok(text)
}

/// The fat binaries inside a host program; none if it is something else.
fn device_code(bytes: &[u8]) -> Option<Vec<u8>> {
    let file = object::File::parse(bytes).ok()?;
    let section = file.section_by_name(".nv_fatbin")?;
    section.data().ok().map(<[u8]>::to_vec)
}

/// Writes the functions of a module; true if any was written.
fn list(module: &Module, only: Option<&str>, text: &mut String) -> bool {
    let mut any = false;
    for (index, (start, name)) in module.functions.iter().enumerate() {
        if only.is_some_and(|only| only != name) {
            continue;
        }
        any = true;
        let end = module
            .functions
            .get(index + 1)
            .map_or(module.code.len(), |(next, _)| *next as usize);
        let _ = writeln!(text, "{name}:");
        let mut line = 0;
        let start = *start as usize;
        for (place, instruction) in (start..).zip(module.code.range(start..end)) {
            if instruction.scheduling.line != line {
                line = instruction.scheduling.line;
                if let Some(source) = module.lines.get(line as usize) {
                    let _ = writeln!(text, "        // {}:{}", source.file, source.line);
                }
            }
            let listing = module.text(place as u32).unwrap_or_default();
            let shown = if listing.is_empty() {
                format!("{:?}", instruction.operation)
            } else {
                listing.to_string()
            };
            let _ = writeln!(text, "{place:>6}  {shown}");
        }
    }
    any
}
