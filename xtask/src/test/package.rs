//! The stage `package`: the Python package, installed from the tree of the release build into an environment of its
//! own, with its types and its tests.
//!
//! Packages of the environment are pinned in `requirements-python.txt`. Tests that want Triton or numba are clients
//! (`cargo xtask validate --clients`), whose downloads are too large for CI.

use crate::virtual_environment::{Missing, VirtualEnvironment};
use crate::{package, process, project};
use anyhow::{Result, anyhow};
use std::process::Command;

const REQUIREMENTS: &str = include_str!("../../requirements-python.txt");

/// The environment with everything but the package itself, made once.
pub fn environment() -> Result<VirtualEnvironment> {
    let environment = VirtualEnvironment::at(project::local().join("python"));
    if !environment.holds(REQUIREMENTS) {
        environment.install(REQUIREMENTS).map_err(|missing| match missing {
            Missing::Index(error) => anyhow!(
                "the Python package is tested with packages of PyPI, which could not be reached ({error}); \
                 connect, or leave it out with `--skip package`"
            ),
            Missing::Machine(error) => error,
        })?;
    }
    Ok(environment)
}

/// Installs the package and runs its tests.
pub fn check(environment: &VirtualEnvironment) -> Result<()> {
    let tree = package::build_tree(&project::target().join("python"))?;
    let source = project::root().join("python");
    process::run(
        python(environment, &["-m", "pip", "install"])
            .args(["--quiet", "--disable-pip-version-check", "--no-index"])
            .args(["--no-deps", "--no-build-isolation", "--force-reinstall"])
            .arg(&source)
            .env("LOCKSTEP_TREE", tree),
    )?;
    process::run(&mut python(
        environment,
        &["-m", "mypy", "--cache-dir", "/dev/null"],
    ))?;
    process::run(&mut python(
        environment,
        &["-m", "pytest", "--quiet", "-p", "no:cacheprovider", "tests"],
    ))
}

/// The interpreter in the package's folder, leaving nothing beside the sources; only the package's own command counts.
fn python(environment: &VirtualEnvironment, arguments: &[&str]) -> Command {
    let mut command = process::command(environment.python());
    command
        .args(arguments)
        .current_dir(project::root().join("python"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("LOCKSTEP_CACHE", project::local().join("cache"))
        .env_remove("LOCKSTEP");
    command
}
