//! The list of a trace: kernels and copies in the order in which the program asked for them.

use std::path::{Path, PathBuf};

use crate::error::TraceError;
use crate::input::{Input, find_file};

/// Names that a list of grouped traces, or of raw ones, has.
const NAMES: &[&str] = &["kernelslist.g", "kernelslist"];

/// One line of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// A kernel, in this file.
    Kernel(PathBuf),
    /// Bytes that the host copied to the device.
    CopyToDevice {
        /// Where they go.
        address: u64,
        /// How many they are.
        bytes: u64,
    },
}

impl Command {
    /// The line of a list, for a kernel in a file of this name.
    #[must_use]
    pub fn line(&self) -> String {
        match self {
            Self::Kernel(path) => path.display().to_string(),
            Self::CopyToDevice { address, bytes } => {
                format!("MemcpyHtoD,{address:#018x},{bytes}")
            }
        }
    }
}

/// Reads the list of a folder, or the list itself.
///
/// # Errors
/// If there is none, or a line is no command, or a kernel's file is missing.
pub fn read_list(path: &Path) -> Result<Vec<Command>, TraceError> {
    let list = if path.is_dir() {
        let mut found = NAMES.iter().filter_map(|name| find_file(path, name));
        found.next().unwrap_or_else(|| path.join(NAMES[0]))
    } else {
        path.to_path_buf()
    };
    let folder = list.parent().unwrap_or(Path::new("")).to_path_buf();
    read_commands(Input::open(&list)?, &|name| find_file(&folder, name))
}

/// Reads a list whose kernels are where `find` says.
///
/// # Errors
/// As [`read_list`].
pub fn read_commands(
    mut input: Input,
    find: &dyn Fn(&str) -> Option<PathBuf>,
) -> Result<Vec<Command>, TraceError> {
    let mut commands = Vec::new();
    loop {
        let Some(line) = input.next_line()? else {
            return Ok(commands);
        };
        match command(line, find) {
            Ok(command) => commands.extend(command),
            Err(problem) => return Err(input.malformed(problem)),
        }
    }
}

/// One line; none for what changes nothing on the device.
fn command(line: &str, find: &dyn Fn(&str) -> Option<PathBuf>) -> Result<Option<Command>, String> {
    if line.starts_with("kernel") {
        if line.contains('/') || line.contains("..") {
            return Err(format!("`{line}`: kernels lie beside their list"));
        }
        let path = find(line).ok_or_else(|| format!("`{line}` is not beside the list"))?;
        return Ok(Some(Command::Kernel(path)));
    }
    if line.starts_with("MemcpyDtoH") {
        return Ok(None);
    }
    let copy = line.strip_prefix("MemcpyHtoD,");
    let copy = copy.and_then(|rest| {
        let (address, bytes) = rest.split_once(',')?;
        let address = address.trim();
        let digits = address.strip_prefix("0x").unwrap_or(address);
        let address = u64::from_str_radix(digits, 16).ok()?;
        let bytes: u64 = bytes.trim().parse().ok()?;
        address.checked_add(bytes)?;
        Some(Command::CopyToDevice { address, bytes })
    });
    copy.map(Some).ok_or_else(|| {
        format!(
            "`{line}`: a list has file names that begin with `kernel`, and MemcpyHtoD,ADDRESS,BYTES"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Command>, String> {
        let input = Input::of_bytes("kernelslist.g", text.into()).unwrap();
        let find = |name: &str| (name != "kernel-9.traceg").then(|| PathBuf::from(name));
        read_commands(input, &find).map_err(|error| error.to_string())
    }

    #[test]
    fn a_list_names_kernels_and_copies_in_their_order() {
        let copy = Command::CopyToDevice {
            address: 0x7f00_0000,
            bytes: 4096,
        };
        let kernel = Command::Kernel("kernel-1.traceg.xz".into());
        let text = "MemcpyHtoD,0x000000007f000000,4096\nkernel-1.traceg.xz\nMemcpyDtoH,0x0,4\n";
        assert_eq!(read(text), Ok(vec![copy.clone(), kernel.clone()]));
        let written = format!("{}\n{}\n", copy.line(), kernel.line());
        assert_eq!(read(&written), Ok(vec![copy, kernel]));
    }

    #[test]
    fn a_line_that_is_no_command_is_named() {
        for (text, expected) in [
            (
                "kernel-9.traceg",
                "kernelslist.g:1: `kernel-9.traceg` is not beside the list",
            ),
            (
                "\nkernel/../x",
                "kernelslist.g:2: `kernel/../x`: kernels lie beside their list",
            ),
        ] {
            assert_eq!(read(text), Err(expected.into()));
        }
        for text in [
            "MemcpyHtoD,0xg,4",
            "MemcpyHtoD,0xffffffffffffffff,2",
            "launch 3",
        ] {
            assert!(
                read(text).unwrap_err().contains("a list has file names"),
                "{text}"
            );
        }
    }
}
