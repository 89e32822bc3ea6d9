//! Machine code that was made from PTX, kept between runs as the driver keeps it (`~/.nv/ComputeCache`).
//!
//! A folder of the user's own, a file an entry, named by a hash of everything that decides its contents. A file begins with the
//! hash of what follows: what was cut off or changed is removed and made anew. Files are written under another name and renamed, so
//! that runs at one time do not disturb each other. When all together are too large, those not used for longest go.
//!
//! Nothing here fails: without a cache, or with one that cannot be written, code is made in every run.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// Bytes of all entries together.
const MOST_BYTES: u64 = 512 << 20;
/// Bytes of the largest entry that is kept.
const LARGEST: u64 = MOST_BYTES / 4;
/// When a file that was never renamed is the leftover of a run that was killed.
const LEFTOVER: Duration = Duration::from_secs(3600);
/// Bytes before the contents of an entry: their hash.
const HEADER: usize = blake3::OUT_LEN;
/// Changes when entries are to be understood in another way.
const FORMAT: &str = "lockstep cache 1";

/// A folder of entries.
#[derive(Debug)]
pub struct Cache {
    folder: PathBuf,
    most_bytes: u64,
}

/// What decides the contents of an entry.
pub struct Key(blake3::Hasher);

impl Key {
    /// Of a kind of entries.
    pub fn new(kind: &str) -> Self {
        let mut key = Self(blake3::Hasher::new());
        key.add(FORMAT.as_bytes());
        key.add(kind.as_bytes());
        key
    }

    /// Adds a part; where one ends and the next begins counts too.
    pub fn add(&mut self, part: &[u8]) {
        self.0.update(&(part.len() as u64).to_le_bytes());
        self.0.update(part);
    }

    fn name(&self) -> String {
        self.0.finalize().to_hex().to_string()
    }
}

impl Cache {
    /// `$LOCKSTEP_CACHE`, or `lockstep` in the user's cache folder; none if the variable is empty, or if the folder cannot be
    /// made or belongs to somebody else.
    pub fn open() -> Option<Self> {
        let absolute = |name: &str| {
            std::env::var_os(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
        };
        let folder = match std::env::var_os("LOCKSTEP_CACHE") {
            Some(given) if given.is_empty() => return None,
            Some(given) => PathBuf::from(given),
            None => absolute("XDG_CACHE_HOME")
                .or_else(|| absolute("HOME").map(|home| home.join(".cache")))?
                .join("lockstep"),
        };
        Self::at(&folder.join("ptxas"), MOST_BYTES)
    }

    /// The cache in a folder, which is made, for its user alone, if it is not there.
    pub fn at(folder: &Path, most_bytes: u64) -> Option<Self> {
        // If it is there, what it is decides below.
        let _ = std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder);
        let data = std::fs::symlink_metadata(folder).ok()?;
        let others_may_write = data.mode() & 0o022 != 0;
        let private = data.is_dir() && is_ours(&data) && !others_may_write;
        private.then(|| Self {
            folder: folder.to_owned(),
            most_bytes,
        })
    }

    /// What was kept under a key.
    pub fn load(&self, key: &Key) -> Option<Vec<u8>> {
        let path = self.folder.join(key.name());
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(&path)
            .ok()?;
        let contents = read(&file);
        if contents.is_none() {
            // It is written anew; a folder that cannot be changed keeps it.
            let _ = std::fs::remove_file(&path);
        } else {
            touch(&file);
        }
        contents
    }

    /// Keeps contents under a key.
    pub fn store(&self, key: &Key, contents: &[u8]) {
        if contents.len() as u64 > LARGEST.min(self.most_bytes) {
            return;
        }
        if self.write(&key.name(), contents).is_ok() {
            self.make_room();
        }
    }

    fn write(&self, name: &str, contents: &[u8]) -> std::io::Result<()> {
        static FILES: AtomicU64 = AtomicU64::new(0);
        let number = FILES.fetch_add(1, Ordering::Relaxed);
        let other = format!("new-{}-{number}-{name}", std::process::id());
        let other = self.folder.join(other);
        let written = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&other)
            .and_then(|mut file| {
                file.write_all(blake3::hash(contents).as_bytes())?;
                file.write_all(contents)
            })
            .and_then(|()| std::fs::rename(&other, self.folder.join(name)));
        if written.is_err() {
            // Perhaps the disk is full.
            let _ = std::fs::remove_file(&other);
        }
        written
    }

    /// Removes what was not used for longest until the rest is small enough, and leftovers.
    fn make_room(&self) {
        let mut entries: Vec<(SystemTime, PathBuf, u64)> = Vec::new();
        for entry in std::fs::read_dir(&self.folder).into_iter().flatten() {
            let Ok(entry) = entry else { continue };
            let Ok(data) = entry.metadata() else { continue };
            if !data.is_file() {
                continue;
            }
            let used = data.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            let age = now().duration_since(used).unwrap_or_default();
            let unfinished = entry.file_name().to_string_lossy().starts_with("new-");
            if !unfinished {
                entries.push((used, entry.path(), data.len()));
            } else if age > LEFTOVER {
                // Another run may have removed it.
                let _ = std::fs::remove_file(entry.path());
            }
        }
        let mut bytes: u64 = entries.iter().map(|(_, _, bytes)| bytes).sum();
        if bytes <= self.most_bytes {
            return;
        }
        entries.sort();
        for (_, path, size) in entries {
            // Some room, so that not every run has to look again.
            if bytes <= self.most_bytes / 4 * 3 {
                break;
            }
            let _ = std::fs::remove_file(path);
            bytes -= size;
        }
    }
}

/// The contents of an entry, if they are what was written.
fn read(file: &File) -> Option<Vec<u8>> {
    let data = file.metadata().ok()?;
    let whole = HEADER as u64..=HEADER as u64 + LARGEST;
    if !data.is_file() || !is_ours(&data) || !whole.contains(&data.len()) {
        return None;
    }
    let mut bytes = Vec::with_capacity(data.len() as usize);
    file.take(*whole.end()).read_to_end(&mut bytes).ok()?;
    let (hash, contents) = bytes.split_at_checked(HEADER)?;
    (blake3::hash(contents).as_bytes() == hash).then(|| contents.to_vec())
}

/// Notes that an entry was used; if that fails, it goes a little earlier.
fn touch(file: &File) {
    let _ = file.set_modified(now());
}

#[allow(
    clippy::disallowed_methods,
    reason = "which entries stay decides what is made anew, never what it is"
)]
fn now() -> SystemTime {
    SystemTime::now()
}

fn is_ours(data: &std::fs::Metadata) -> bool {
    data.uid() == rustix::process::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use super::super::tests::Scratch;
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn key(name: &str) -> Key {
        let mut key = Key::new("test");
        key.add(name.as_bytes());
        key
    }

    #[test]
    fn what_was_kept_is_found_again_and_only_by_its_user() {
        let scratch = Scratch::new();
        let folder = scratch.0.join("a/b");
        let cache = Cache::at(&folder, 1 << 20).expect("a cache");
        assert_eq!(cache.load(&key("one")), None);
        cache.store(&key("one"), b"contents");
        cache.store(&key("empty"), b"");
        assert_eq!(cache.load(&key("one")).as_deref(), Some(&b"contents"[..]));
        assert_eq!(cache.load(&key("empty")).as_deref(), Some(&b""[..]));
        assert_eq!(cache.load(&key("two")), None);
        for path in [folder.clone(), folder.join(key("one").name())] {
            let mode = std::fs::metadata(&path).expect("it is there").mode();
            assert_eq!(mode & 0o077, 0, "{}: {mode:o}", path.display());
        }
        let files = std::fs::read_dir(&folder).expect("a folder").count();
        assert_eq!(files, 2, "nothing else is left");
    }

    #[test]
    fn parts_of_a_key_do_not_run_together() {
        let name = |parts: &[&str]| {
            let mut key = Key::new("test");
            for part in parts {
                key.add(part.as_bytes());
            }
            key.name()
        };
        assert_ne!(name(&["ab", "c"]), name(&["a", "bc"]));
        assert_ne!(name(&["ab"]), name(&["ab", ""]));
    }

    #[test]
    fn entries_that_were_changed_or_cut_off_are_made_anew() {
        let scratch = Scratch::new();
        let cache = Cache::at(&scratch.0.join("c"), 1 << 20).expect("a cache");
        let path = cache.folder.join(key("one").name());
        for spoil in [0, 1, 31, 32, 35] {
            cache.store(&key("one"), b"contents");
            let mut bytes = std::fs::read(&path).expect("an entry");
            bytes[spoil] ^= 1;
            std::fs::write(&path, &bytes).expect("changed");
            assert_eq!(cache.load(&key("one")), None, "byte {spoil}");
            assert!(!path.exists(), "byte {spoil}");
            std::fs::write(&path, &bytes[..spoil]).expect("cut off");
            assert_eq!(cache.load(&key("one")), None, "{spoil} bytes");
        }
        std::fs::create_dir(&path).expect("a folder in its place");
        assert_eq!(cache.load(&key("one")), None);
        cache.store(&key("one"), b"contents");
        let elsewhere = scratch.0.join("elsewhere");
        std::fs::write(&elsewhere, b"x").expect("a file");
        std::fs::remove_dir(&path).expect("gone");
        std::os::unix::fs::symlink(&elsewhere, &path).expect("a link");
        assert_eq!(cache.load(&key("one")), None, "links are not followed");
    }

    #[test]
    fn all_entries_together_stay_under_their_bound() {
        let scratch = Scratch::new();
        let cache = Cache::at(&scratch.0.join("c"), 10_000).expect("a cache");
        cache.store(&key("first"), &[0; 100]);
        let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
        let first = cache.folder.join(key("first").name());
        let file = File::options().write(true).open(first).expect("an entry");
        file.set_modified(old).expect("its time");
        let leftover = cache.folder.join("new-1-1-leftover");
        let file = File::create(&leftover).expect("a leftover");
        file.set_modified(old).expect("its time");
        for number in 0..40 {
            cache.store(&key(&number.to_string()), &[1; 1000]);
            let sizes = std::fs::read_dir(&cache.folder).expect("a folder");
            let bytes: u64 = sizes
                .map(|entry| {
                    entry
                        .and_then(|entry| entry.metadata())
                        .expect("size")
                        .len()
                })
                .sum();
            assert!(bytes <= 10_000, "{number}: {bytes}");
        }
        assert_eq!(cache.load(&key("first")), None, "not used for longest");
        assert!(cache.load(&key("39")).is_some());
        assert!(!leftover.exists());
        cache.store(&key("large"), &[0; 10_001]);
        assert_eq!(cache.load(&key("large")), None);
    }

    #[test]
    fn a_folder_that_others_may_write_is_not_used() {
        let scratch = Scratch::new();
        let folder = scratch.0.join("c");
        std::fs::create_dir(&folder).expect("a folder");
        std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o777)).expect("rights");
        assert!(Cache::at(&folder, 1).is_none());
        std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o755)).expect("rights");
        assert!(Cache::at(&folder, 1).is_some());
        let link = scratch.0.join("link");
        std::os::unix::fs::symlink(&folder, &link).expect("a link");
        assert!(Cache::at(&link, 1).is_none());
        let file = scratch.0.join("file");
        std::fs::write(&file, "").expect("a file");
        assert!(Cache::at(&file.join("below"), 1).is_none());
    }
}
