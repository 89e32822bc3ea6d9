//! A folder that only its owner can read, held open: whatever others put in its place or into it,
//! what is written here goes where it was meant to.

use super::{RunFolderError, checkpoint};
use rustix::fs::{AtFlags, FallocateFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Only the owner.
const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// What becomes of a folder that is there already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// It must be empty.
    #[default]
    MustBeEmpty,
    /// What an earlier run left in it is removed; the rest stays.
    Overwrite,
    /// The same, but its checkpoint stays: the run goes on from there.
    Resume,
}

/// An open folder.
#[derive(Clone, Debug)]
pub struct Directory {
    path: PathBuf,
    handle: Arc<OwnedFd>,
}

impl Directory {
    /// Makes a folder that was not there. What leads to it is made as well.
    ///
    /// # Errors
    /// It cannot be made; `AlreadyExists` if something of its name is there.
    pub fn create_new(path: &Path) -> io::Result<Self> {
        if let Some(parent) = path.parent().filter(|parent| *parent != Path::new("")) {
            std::fs::create_dir_all(parent)?;
        }
        rustix::fs::mkdir(path, Mode::from_raw_mode(FOLDER_MODE))?;
        Self::open(path)
    }

    /// Makes a folder, or takes one that is there: never through a link, and never over files that
    /// a user may want. `ours` are the names that an earlier run may have left.
    ///
    /// # Errors
    /// It cannot be had so.
    pub fn create(path: &Path, existing: Existing, ours: &[&str]) -> Result<Self, RunFolderError> {
        let at = |error: io::Error| RunFolderError::of(path, error);
        match Self::create_new(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map_err(at),
        }
        let folder = match Self::open(path) {
            Ok(folder) => folder,
            Err(error) => {
                let kind = path.symlink_metadata().map(|found| found.file_type());
                let path = path.display().to_string();
                return Err(match kind {
                    Ok(kind) if kind.is_symlink() => RunFolderError::Link { path },
                    Ok(kind) if !kind.is_dir() => RunFolderError::NotAFolder { path },
                    _ => RunFolderError::System { path, error },
                });
            }
        };
        match existing {
            Existing::Overwrite => folder.remove(ours).map_err(at)?,
            Existing::Resume => {
                let kept = |name: &&str| !checkpoint::NAMES.contains(name);
                let ours: Vec<&str> = ours.iter().copied().filter(kept).collect();
                folder.remove(&ours).map_err(at)?;
            }
            Existing::MustBeEmpty => {
                if let Some(found) = folder.names().map_err(at)?.first() {
                    return Err(RunFolderError::NotEmpty {
                        path: path.display().to_string(),
                        found: found.clone(),
                    });
                }
            }
        }
        // Of somebody else: then everybody it lets in could read what a program computes.
        rustix::fs::fchmod(&folder.handle, Mode::from_raw_mode(FOLDER_MODE))
            .map_err(|error| at(error.into()))?;
        Ok(folder)
    }

    fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
        let handle = rustix::fs::open(path, flags, Mode::empty())?;
        Ok(Self {
            path: path.to_path_buf(),
            handle: Arc::new(handle),
        })
    }

    /// Where it was made.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Everything in it, in order.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.handle)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    /// Removes files by name, with what was about to replace them. A link is removed, not followed.
    fn remove(&self, names: &[&str]) -> io::Result<()> {
        for name in names {
            self.remove_file(name)?;
            self.remove_file(&draft(name))?;
        }
        Ok(())
    }

    /// Removes a file, if there is one.
    pub fn remove_file(&self, name: &str) -> io::Result<()> {
        match rustix::fs::unlinkat(&self.handle, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes a file that was not there.
    pub fn new_file(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let flags = flags | OFlags::RDWR;
        let mode = Mode::from_raw_mode(FILE_MODE);
        Ok(rustix::fs::openat(&self.handle, name, flags, mode)?.into())
    }

    /// Opens a plain file of ours that is there.
    pub(super) fn existing_file(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDWR | OFlags::NONBLOCK;
        let file: File = rustix::fs::openat(&self.handle, name, flags, Mode::empty())?.into();
        match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// Writes a file whole or not at all: readers never see half of it.
    pub fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.replace_with(name, |file| file.write_all(bytes))
    }

    /// The same, with whatever `write` writes.
    pub fn replace_with(
        &self,
        name: &str,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> io::Result<()> {
        let draft = draft(name);
        self.remove_file(&draft)?;
        let mut file = self.new_file(&draft)?;
        let written = write(&mut file).and_then(|()| {
            Ok(rustix::fs::renameat(
                &self.handle,
                &*draft,
                &self.handle,
                name,
            )?)
        });
        if written.is_err() {
            // Half a file helps nobody, and takes the room of others.
            let _ = self.remove_file(&draft);
        }
        written
    }

    /// Exchanges two files, or gives the second name to the first where that is not possible.
    pub(super) fn exchange(&self, one: &str, other: &str) -> io::Result<()> {
        let (from, to) = (&self.handle, &self.handle);
        match rustix::fs::renameat_with(from, one, to, other, RenameFlags::EXCHANGE) {
            Ok(()) => Ok(()),
            // There is no other yet, or the file system cannot exchange.
            Err(_) => Ok(rustix::fs::renameat(from, one, to, other)?),
        }
    }

    /// Bytes that its file system has for us.
    pub fn free(&self) -> io::Result<u64> {
        let found = rustix::fs::fstatvfs(&self.handle)?;
        Ok(found.f_bavail.saturating_mul(found.f_frsize))
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

/// What a file is called before it is whole.
pub(super) fn draft(name: &str) -> String {
    format!(".{name}.part")
}

/// Takes room for a file ahead of its contents; false if the file system cannot promise any.
///
/// # Errors
/// There is none.
pub(super) fn reserve(file: &File, bytes: u64) -> io::Result<bool> {
    match rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, 0, bytes) {
        Ok(()) => Ok(true),
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::PERM | Errno::INVAL) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    /// A place that is removed at the end of a test.
    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Self {
            let name = format!("lockstep-directory-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            let _ = std::fs::remove_dir_all(&path);
            std::fs::create_dir(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn mode(path: &Path) -> u32 {
        std::fs::symlink_metadata(path)
            .unwrap()
            .permissions()
            .mode()
            & 0o7777
    }

    #[test]
    fn a_folder_and_its_files_are_for_their_owner() {
        let place = Place::new("modes");
        let path = place.0.join("a/b");
        let folder = Directory::create(&path, Existing::MustBeEmpty, &[]).unwrap();
        folder.replace("table.csv", b"x").unwrap();
        assert_eq!(mode(&path), 0o700);
        assert_eq!(mode(&path.join("table.csv")), 0o600);
        assert_eq!(folder.names().unwrap(), ["table.csv"]);
        // One that was made for us, too.
        let made = place.0.join("made");
        std::fs::create_dir(&made).unwrap();
        Directory::create(&made, Existing::MustBeEmpty, &[]).unwrap();
        assert_eq!(mode(&made), 0o700);
    }

    #[test]
    fn what_is_in_a_folder_is_not_mixed_with_a_new_run() {
        let place = Place::new("mixed");
        let path = place.0.join("run");
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("stats.csv"), "old").unwrap();
        std::fs::write(path.join("thesis.tex"), "years").unwrap();
        let refused = Directory::create(&path, Existing::MustBeEmpty, &[]).unwrap_err();
        let text = refused.to_string();
        assert!(
            text.contains("not empty") && text.contains("--overwrite"),
            "{text}"
        );
        let folder = Directory::create(&path, Existing::Overwrite, &["stats.csv"]).unwrap();
        assert_eq!(folder.names().unwrap(), ["thesis.tex"]);
    }

    #[test]
    fn links_are_not_followed() {
        let place = Place::new("links");
        let (target, link) = (place.0.join("target"), place.0.join("link"));
        std::fs::create_dir(&target).unwrap();
        symlink(&target, &link).unwrap();
        for existing in [Existing::MustBeEmpty, Existing::Overwrite] {
            let refused = Directory::create(&link, existing, &[]).unwrap_err();
            assert!(refused.to_string().contains("symbolic link"), "{refused}");
        }
        // Inside a folder: neither a draft nor a file leads elsewhere.
        let victim = place.0.join("victim");
        std::fs::write(&victim, "precious").unwrap();
        let run = place.0.join("run");
        let folder = Directory::create(&run, Existing::MustBeEmpty, &[]).unwrap();
        symlink(&victim, run.join("stats.csv")).unwrap();
        symlink(&victim, run.join(".stats.csv.part")).unwrap();
        folder.replace("stats.csv", b"new").unwrap();
        assert!(folder.new_file("stats.csv").is_err());
        assert_eq!(std::fs::read(&victim).unwrap(), b"precious");
        assert_eq!(std::fs::read(run.join("stats.csv")).unwrap(), b"new");
        // And what others put in the place of the folder is not written to.
        std::fs::rename(&run, place.0.join("moved")).unwrap();
        symlink(&target, &run).unwrap();
        folder.replace("stats.csv", b"newer").unwrap();
        assert_eq!(std::fs::read_dir(&target).unwrap().count(), 0);
    }

    #[test]
    fn a_file_in_its_place_is_named() {
        let place = Place::new("file");
        let path = place.0.join("file");
        std::fs::write(&path, "").unwrap();
        let refused = Directory::create(&path, Existing::Overwrite, &[]).unwrap_err();
        assert!(refused.to_string().contains("not a folder"), "{refused}");
    }
}
