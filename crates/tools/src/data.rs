//! Files that come with the command: measurements, sets and the table of programs.

use std::path::{Path, PathBuf};

/// Where they lie from the command's own folder: in an installation (`lib/lockstep` beside
/// `share/lockstep`), and in a checkout (`target/release`).
const ROOTS: [&str; 2] = ["../../share/lockstep", "../.."];

/// A file by its path in the project: the one below the current folder if there is one, else the
/// one that came with the command. A path that is nowhere is answered as it is, so that whoever
/// reads it can say so.
pub fn find(path: &Path) -> PathBuf {
    if path.exists() || path.is_absolute() {
        return path.to_path_buf();
    }
    let command = std::env::current_exe().and_then(|path| path.canonicalize());
    let folder = command
        .ok()
        .and_then(|path| path.parent().map(Path::to_path_buf));
    folder
        .and_then(|folder| installed(&folder, path))
        .unwrap_or_else(|| path.to_path_buf())
}

fn installed(folder: &Path, path: &Path) -> Option<PathBuf> {
    ROOTS
        .iter()
        .map(|root| folder.join(root).join(path))
        .find(|path| path.exists())
        .map(|path| path.canonicalize().unwrap_or(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_an_installation_are_found_beside_the_command() {
        let name = format!("lockstep-data-{}", std::process::id());
        let root = std::env::temp_dir().join(name);
        let (folder, shared) = (root.join("lib/lockstep"), root.join("share/lockstep/a"));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::create_dir_all(&shared).unwrap();
        std::fs::write(shared.join("b.toml"), "").unwrap();
        let found = installed(&folder, Path::new("a/b.toml"));
        let missing = installed(&folder, Path::new("a/c.toml"));
        std::fs::remove_dir_all(&root).unwrap();
        assert!(found.is_some_and(|path| path.ends_with("share/lockstep/a/b.toml")));
        assert_eq!(missing, None);
    }
}
