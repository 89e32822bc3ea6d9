//! The folder in which segments live, and the removal of those whose process is gone.

use std::fs::{self, File};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::error::SegmentError;
use super::groups::group_number;
use super::reader::{Liveness, SegmentReader};

/// A folder of segments, private to its user unless a group is configured.
#[derive(Clone, Debug)]
pub struct SegmentDirectory {
    path: PathBuf,
    group: Option<u32>,
}

/// Segments of dead processes are kept this long for a reader that may still come, in nanoseconds.
pub const KEPT: u64 = 3600 * 1_000_000_000;
/// Ending of a segment's file name.
const ENDING: &str = "segment";

impl SegmentDirectory {
    /// The user's own folder: where every program of the user publishes unless told otherwise.
    /// `LOCKSTEP_SAMPLE_BASE` names another one.
    pub fn of_user() -> PathBuf {
        if let Some(base) = std::env::var_os("LOCKSTEP_SAMPLE_BASE") {
            return base.into();
        }
        let user = rustix::process::geteuid().as_raw();
        Path::new("/dev/shm").join(format!("lockstep-{user}"))
    }

    /// Where programs of this user publish that nobody gave another folder: `lockstep sample` gives its own to what
    /// runs under it.
    pub fn of_programs() -> PathBuf {
        match std::env::var_os("LOCKSTEP_SAMPLE_SEGMENTS") {
            Some(given) => given.into(),
            None => Self::of_user().join("programs"),
        }
    }

    /// Opens the folder, making it if it is missing. `group` may read it, if it is not empty.
    pub fn open(path: &Path, group: &str) -> Result<Self, SegmentError> {
        let group = if group.is_empty() {
            None
        } else {
            Some(group_number(group)?)
        };
        let mode = if group.is_some() { 0o750 } else { 0o700 };
        let mut builder = fs::DirBuilder::new();
        builder.mode(mode).recursive(true);
        builder
            .create(path)
            .map_err(|error| SegmentError::system(path, "make the folder", error))?;
        let found = fs::symlink_metadata(path)
            .map_err(|error| SegmentError::system(path, "look at the folder", error))?;
        let user = rustix::process::geteuid().as_raw();
        let refused = if !found.is_dir() {
            Some("it is not a folder".to_owned())
        } else if found.uid() != user {
            Some(format!(
                "it belongs to user {}, and this is user {user}",
                found.uid()
            ))
        } else if found.mode() & 0o022 != 0 {
            Some(format!(
                "others may write to it (mode {:o})",
                found.mode() & 0o777
            ))
        } else {
            None
        };
        if let Some(because) = refused {
            return Err(SegmentError::Unsafe {
                path: path.to_owned(),
                because,
            });
        }
        if let Some(group) = group {
            give_to_group(path, group, mode)?;
        }
        Ok(Self {
            path: path.to_owned(),
            group,
        })
    }

    /// Whether the folder is another user's, whose group may let this one read it.
    pub fn is_of_another_user(path: &Path) -> bool {
        let user = rustix::process::geteuid().as_raw();
        fs::symlink_metadata(path).is_ok_and(|found| found.uid() != user)
    }

    /// Opens a folder for reading only, whoever owns it.
    pub fn observe(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            group: None,
        }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Says, as long as it is kept, that its holder stores records and lets publishers reuse their
    /// room. Nothing if the folder is missing, or its file system has no locks.
    pub fn store(&self) -> Option<File> {
        let folder = File::open(&self.path).ok()?;
        flock(&folder, FlockOperation::LockShared).ok()?;
        Some(folder)
    }

    /// As [`Self::store`], for a reader that steps back where another one stores; nothing then.
    pub fn store_alone(&self) -> Option<File> {
        let folder = File::open(&self.path).ok()?;
        flock(&folder, FlockOperation::NonBlockingLockExclusive).ok()?;
        Some(folder)
    }

    /// Makes the file of a new segment, under a name that no reader looks at yet.
    pub(super) fn create(&self) -> Result<(File, PathBuf, PathBuf), SegmentError> {
        use rustix::fs::{Mode, OFlags, open};
        let process = std::process::id();
        let started = process_start_ticks(process).unwrap_or(0);
        let mode = if self.group.is_some() { 0o640 } else { 0o600 };
        for attempt in 0..1024 {
            let name = self
                .path
                .join(format!("{process}-{started}-{attempt}.{ENDING}"));
            if name.exists() {
                continue;
            }
            let hidden = self
                .path
                .join(format!(".{process}-{started}-{attempt}.new"));
            let flags =
                OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            match open(&hidden, flags, Mode::from_raw_mode(mode)) {
                Ok(descriptor) => {
                    if let Some(group) = self.group {
                        give_to_group(&hidden, group, mode)?;
                    }
                    return Ok((descriptor.into(), hidden, name));
                }
                Err(rustix::io::Errno::EXIST) => {}
                Err(error) => return Err(SegmentError::system(&hidden, "make a segment", error)),
            }
        }
        Err(SegmentError::Unsafe {
            path: self.path.clone(),
            because: "it already holds 1024 segments of this process".to_owned(),
        })
    }

    /// The segments that are there now, in the order of their names.
    pub fn segments(&self) -> Result<Vec<PathBuf>, SegmentError> {
        let list = match fs::read_dir(&self.path) {
            Ok(list) => list,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(SegmentError::system(&self.path, "list the folder", error)),
        };
        let mut found = Vec::new();
        for entry in list {
            let entry = entry
                .map_err(|error| SegmentError::system(&self.path, "list the folder", error))?;
            let path = entry.path();
            if path.extension().is_some_and(|ending| ending == ENDING) {
                found.push(path);
            }
        }
        found.sort();
        Ok(found)
    }

    /// Removes segments whose process is gone and whose last sign of life is older than `keep`
    /// nanoseconds before `now`; says how many it removed.
    ///
    /// What a killed process left is kept that long for a reader that was killed with it.
    pub fn reap(&self, now: u64, keep: u64) -> Result<usize, SegmentError> {
        let mut removed = 0;
        for path in self.segments()? {
            let gone = match SegmentReader::open(&path) {
                Ok(reader) => {
                    reader.liveness() != Liveness::Running
                        && reader.heartbeat().saturating_add(keep) <= now
                }
                // Never finished being made, or of another version: nobody can read it.
                Err(_) => fs::metadata(&path).is_ok_and(|found| {
                    (found.mtime().max(0) as u64)
                        .saturating_mul(1_000_000_000)
                        .saturating_add(keep)
                        <= now
                }),
            };
            if gone && fs::remove_file(&path).is_ok() {
                removed += 1;
            }
        }
        self.reap_unfinished(now, keep);
        Ok(removed)
    }

    /// Removes half-made files of processes that died while they made them.
    fn reap_unfinished(&self, now: u64, keep: u64) {
        let Ok(list) = fs::read_dir(&self.path) else {
            return;
        };
        for path in list.filter_map(|entry| Some(entry.ok()?.path())) {
            let half_made = path.extension().is_some_and(|ending| ending == "new");
            let old = fs::metadata(&path).is_ok_and(|found| {
                (found.mtime().max(0) as u64)
                    .saturating_mul(1_000_000_000)
                    .saturating_add(keep)
                    <= now
            });
            if half_made && old {
                // Whoever looks next tries again; until then it only takes room.
                let _ = fs::remove_file(&path);
            }
        }
    }
}

fn give_to_group(path: &Path, group: u32, mode: u32) -> Result<(), SegmentError> {
    std::os::unix::fs::chown(path, None, Some(group))
        .map_err(|error| SegmentError::system(path, "give the segment to its group", error))?;
    // The process's umask may have taken bits away that the group needs.
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .map_err(|error| SegmentError::system(path, "set the mode", error))
}

/// When `process` started, in the kernel's ticks since boot; nothing if there is no such process.
pub fn process_start_ticks(process: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The second field is the program's name in brackets and may itself hold spaces and brackets.
    let rest = &stat[stat.rfind(')')? + 1..];
    let mut fields = rest.split_ascii_whitespace();
    // A zombie has ended, though its number is not yet free.
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// The inode of this process's namespace of process numbers.
pub(super) fn process_namespace() -> u64 {
    fs::metadata("/proc/self/ns/pid").map_or(0, |found| found.ino())
}
