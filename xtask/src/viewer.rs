//! `cargo xtask viewer`: fetches the charting library of `lockstep view`, by version and checksum.
//!
//! The library is not in the repository. A build takes what lies in `.lockstep/viewer`; without, the page of the
//! viewer says that charts are missing.

use crate::{process, project};
use anyhow::{Context, Result, bail};
use clap::Args;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// The package, as npm knows it.
const PACKAGE: &str = "uplot@1.6.32";
/// What npm calls its archive.
const ARCHIVE: &str = "uplot-1.6.32.tgz";
/// SHA-256 of the archive.
const CHECKSUM: &str = "4b8a8191e425658e3ea8c8c1314b0fc679c861ee3a1af2b20c7b16ba50b5133d";
/// What of it is built into the page.
const FILES: [&str; 3] = ["dist/uPlot.iife.min.js", "dist/uPlot.min.css", "LICENSE"];
/// How long fetching may take.
const PATIENCE: Duration = Duration::from_secs(300);

/// Fetch the charting library of the viewer; the next build has it.
#[derive(Args)]
pub struct Viewer {}

impl Viewer {
    /// Runs it.
    pub fn run(self) -> Result<()> {
        let place = project::local().join("viewer");
        fs::create_dir_all(&place).with_context(|| project::shown(&place))?;
        let archive = place.join(ARCHIVE);
        if !archive.exists() {
            process::step(&format!("fetching {PACKAGE}"));
            let mut npm = process::command("npm");
            npm.args(["pack", PACKAGE, "--silent", "--pack-destination"]);
            let fetched = process::capture(npm.arg(&place), PATIENCE)
                .context("npm is needed to fetch the charting library: install Node.js")?;
            if !fetched.success() {
                bail!("npm pack {PACKAGE} failed:\n{}", fetched.tail(10));
            }
        }
        if let Err(error) = check(&archive) {
            // The next call fetches another.
            let _ = fs::remove_file(&archive);
            return Err(error);
        }
        unpack(&place, &archive)?;
        process::step(
            "the charting library is in place; build again to have it in `lockstep view`",
        );
        Ok(())
    }
}

/// Refuses an archive that is not the one that was reviewed.
fn check(archive: &Path) -> Result<()> {
    let sum = process::capture(process::command("sha256sum").arg(archive), PATIENCE)?;
    if !sum.success() {
        bail!("sha256sum failed:\n{}", sum.tail(5));
    }
    let found = sum.out.split_whitespace().next().unwrap_or_default();
    if found != CHECKSUM {
        bail!(
            "{}: its SHA-256 is {found}, and {CHECKSUM} was expected; nothing was unpacked",
            project::shown(archive)
        );
    }
    Ok(())
}

/// Puts the files where the build looks for them.
fn unpack(place: &Path, archive: &Path) -> Result<()> {
    let unpacked = place.join("unpacked");
    fs::create_dir_all(&unpacked)?;
    let mut tar = process::command("tar");
    tar.arg("xzf").arg(archive).arg("-C").arg(&unpacked);
    process::run(&mut tar)?;
    let library = place.join("uplot");
    fs::create_dir_all(&library)?;
    for file in FILES {
        let from = unpacked.join("package").join(file);
        let name = Path::new(file).file_name().unwrap_or_default();
        fs::copy(&from, library.join(name)).with_context(|| project::shown(&from))?;
    }
    fs::remove_dir_all(&unpacked)?;
    Ok(())
}
