//! A folder for tests.

use std::fs::File;
use std::path::PathBuf;

/// A folder that is removed at the end of a test.
pub struct Place(pub PathBuf);

impl Place {
    pub fn new(name: &str) -> Self {
        let name = format!("lockstep-checkpoint-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn create(&self, name: &str) -> File {
        File::create_new(self.file(name)).unwrap()
    }

    pub fn open(&self, name: &str) -> File {
        let mut options = File::options();
        options
            .read(true)
            .write(true)
            .open(self.file(name))
            .unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
