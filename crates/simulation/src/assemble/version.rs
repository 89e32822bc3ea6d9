//! Which `ptxas` a file is. Starting it costs some 20 ms, so each file is asked once: what it said is kept under its path, size
//! and time of change.

use super::cache::{Cache, Key};
use super::tool;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// How long it may take to tell.
const PATIENCE: Duration = Duration::from_secs(20);

/// The version of an assembler, as `13.3.33`; nothing if it does not tell.
pub(super) fn of(program: &Path, cache: Option<&Cache>) -> Option<String> {
    let data = std::fs::metadata(program).ok()?;
    let mut key = Key::new("version");
    key.add(program.as_os_str().as_encoded_bytes());
    key.add(&data.len().to_le_bytes());
    for part in [data.mtime(), data.mtime_nsec()] {
        key.add(&part.to_le_bytes());
    }
    let kept = cache
        .and_then(|cache| cache.load(&key))
        .and_then(|bytes| String::from_utf8(bytes).ok());
    if kept.is_some() {
        return kept;
    }
    let version = tool::in_folder(|folder| {
        let mut command = Command::new(program);
        let (_, said) = tool::run(command.arg("--version"), &folder.join("said.txt"), PATIENCE)?;
        Ok(parse(&said))
    });
    let version = version.ok().flatten()?;
    if let Some(cache) = cache {
        cache.store(&key, version.as_bytes());
    }
    Some(version)
}

/// The number in `Cuda compilation tools, release 13.3, V13.3.33`.
fn parse(said: &str) -> Option<String> {
    let (_, after) = said.split_once(", V")?;
    let number: String = after
        .chars()
        .take_while(|c| c.is_ascii_digit() || *c == '.')
        .take(32)
        .collect();
    (!number.is_empty()).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_number_behind_the_release() {
        let said = "ptxas: NVIDIA (R) Ptx optimizing assembler\nCuda compilation tools, release 13.3, V13.3.33\n";
        assert_eq!(parse(said).as_deref(), Some("13.3.33"));
        assert_eq!(parse("bash: no such option"), None);
        assert_eq!(parse(", V"), None);
    }
}
