//! The CUDA compiler: pinned, from PyPI, in a virtual environment of the project.
//!
//! It needs no GPU and no driver. What it holds is named in `requirements-cuda.txt`.

pub use crate::virtual_environment::Missing;
use crate::virtual_environment::VirtualEnvironment;
use crate::{packages, process, project};
use anyhow::{Context, Result, anyhow, bail};
use std::path::{Path, PathBuf};
use std::time::Duration;

const REQUIREMENTS: &str = include_str!("../requirements-cuda.txt");

/// A compiler that is ready.
#[derive(Clone)]
pub struct Toolkit {
    /// The folder with `bin`, `include` and `lib`.
    root: PathBuf,
}

impl Toolkit {
    /// The compiler.
    pub fn nvcc(&self) -> PathBuf {
        self.root.join("bin/nvcc")
    }

    /// A folder in which `-lcudart` finds the shared runtime. The package has the library only
    /// under its full name, as for a running program, so a link stands here.
    pub fn link_folder(&self) -> Result<PathBuf> {
        let folder = project::local().join("link");
        std::fs::create_dir_all(&folder)?;
        let link = folder.join("libcudart.so");
        let library = self.root.join("lib/libcudart.so.13");
        if std::fs::read_link(&link).ok().as_deref() != Some(&library) {
            // Absent or of an older environment; both end here.
            let _ = std::fs::remove_file(&link);
            std::os::unix::fs::symlink(&library, &link)
                .with_context(|| format!("cannot make {}", link.display()))?;
        }
        Ok(folder)
    }
}

/// The project's CUDA compiler, fetched if it is not there yet.
pub fn toolkit() -> Result<Toolkit, Missing> {
    let environment = VirtualEnvironment::at(project::local().join("venv"));
    if environment.holds(REQUIREMENTS)
        && let Ok(toolkit) = find(environment.folder())
    {
        return Ok(toolkit);
    }
    packages::need(&[packages::CXX, packages::VENV]).map_err(Missing::Machine)?;
    println!(
        "Fetching the CUDA compiler from PyPI into {} (about 220 MB, once)",
        project::shown(environment.folder())
    );
    environment.install(REQUIREMENTS)?;
    find(environment.folder()).map_err(Missing::Machine)
}

/// The same for a task that cannot go on without it.
pub fn required() -> Result<Toolkit> {
    toolkit().map_err(|missing| match missing {
        Missing::Index(reason) => anyhow!("no CUDA compiler: {reason}"),
        Missing::Machine(error) => error,
    })
}

/// The toolkit inside an environment, whichever Python made it.
fn find(environment: &Path) -> Result<Toolkit> {
    let library = environment.join("lib");
    let entries = std::fs::read_dir(&library)
        .with_context(|| format!("cannot read {}", library.display()))?;
    for entry in entries {
        let root = entry?.path().join("site-packages/nvidia/cu13");
        if root.join("bin/nvcc").exists() {
            let toolkit = Toolkit { root };
            let version = process::capture(
                process::command(toolkit.nvcc()).arg("--version"),
                Duration::from_secs(60),
            )?;
            if !version.success() {
                bail!("nvcc is there and does not run: {}", version.tail(3));
            }
            return Ok(toolkit);
        }
    }
    bail!(
        "no nvcc under {}; delete {} and try again",
        library.display(),
        project::shown(environment)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_requirement_is_pinned_exactly() {
        for line in REQUIREMENTS.lines().filter(|line| !line.starts_with('#')) {
            let (name, version) = line.split_once("==").expect("name==version");
            assert!(!name.is_empty() && !version.contains('*'), "{line}");
        }
    }
}
