//! Virtual environments of Python with pinned packages, each made once.
//!
//! A stamp with the text of its requirements says that an environment is complete, so that later calls
//! cost nothing and a change of a version installs again.

use crate::process;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// Why there is none.
pub enum Missing {
    /// The package index did not answer, or not with what was asked for.
    Index(String),
    /// This machine lacks something else.
    Machine(anyhow::Error),
}

/// A folder with an environment, or where one shall be.
pub struct VirtualEnvironment {
    folder: PathBuf,
}

impl VirtualEnvironment {
    /// The one in a folder.
    pub fn at(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Its interpreter.
    pub fn python(&self) -> PathBuf {
        self.folder.join("bin/python")
    }

    /// Whether exactly this was installed.
    pub fn holds(&self, requirements: &str) -> bool {
        std::fs::read_to_string(self.stamp()).is_ok_and(|text| text == requirements)
    }

    /// Makes it where it is not, installs into it, and leaves the stamp.
    pub fn install(&self, requirements: &str) -> Result<(), Missing> {
        self.make().map_err(Missing::Machine)?;
        let listed = self.folder.join("lockstep-requirements.txt");
        write(&listed, requirements).map_err(Missing::Machine)?;
        let mut pip = process::command(self.python());
        pip.args(["-m", "pip", "install", "--disable-pip-version-check"])
            .args(["--no-input", "--retries", "2", "--timeout", "60"])
            .arg("--requirement")
            .arg(&listed);
        process::run(&mut pip).map_err(|error| Missing::Index(format!("{error:#}")))?;
        write(&self.stamp(), requirements).map_err(Missing::Machine)
    }

    fn make(&self) -> Result<()> {
        if self.python().exists() {
            return Ok(());
        }
        process::run(
            process::command("python3")
                .args(["-m", "venv"])
                .arg(&self.folder),
        )
        .context(
            "cannot make a virtual environment; install python3 with its venv module \
             (Debian and Ubuntu: apt install python3-venv)",
        )
    }

    fn stamp(&self) -> PathBuf {
        self.folder.join("lockstep-stamp.txt")
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_holds_what_its_stamp_says_and_nothing_else() {
        let folder = crate::simulator::scratch_folder();
        std::fs::create_dir_all(&folder).expect("a folder");
        let environment = VirtualEnvironment::at(folder.clone());
        assert!(!environment.holds("a==1"));
        write(&environment.stamp(), "a==1").expect("a stamp");
        assert!(environment.holds("a==1"));
        assert!(!environment.holds("a==2"));
        std::fs::remove_dir_all(&folder).expect("the folder goes");
    }
}
