//! What a machine must have beside Rust: installed through apt when we may, else named.

use crate::process;
use anyhow::{Result, bail};
use std::process::Command;

/// One thing that must be there.
#[derive(Clone, Copy)]
pub struct Need {
    /// A command that succeeds where it is.
    probe: &'static [&'static str],
    /// Debian's and Ubuntu's package for it.
    package: &'static str,
    /// What it is for.
    purpose: &'static str,
}

/// nvcc calls it for host code, and our C shims are linked with it.
pub const CXX: Need = Need {
    probe: &["c++", "--version"],
    package: "g++",
    purpose: "a C++ compiler, which nvcc uses for host code",
};

/// The CUDA compiler lives in a virtual environment.
pub const VENV: Need = Need {
    probe: &["python3", "-c", "import venv, ensurepip"],
    package: "python3-venv",
    purpose: "python3 with venv, in which the CUDA compiler is installed",
};

/// Makes sure that all are there, or ends with a sentence that names what is not.
pub fn need(needs: &[Need]) -> Result<()> {
    let missing = |needs: &[Need]| -> Vec<Need> {
        needs
            .iter()
            .copied()
            .filter(|need| !works(need.probe))
            .collect()
    };
    let lacking = missing(needs);
    if lacking.is_empty() {
        return Ok(());
    }
    let packages: Vec<&str> = lacking.iter().map(|need| need.package).collect();
    if is_root() && works(&["apt-get", "--version"]) {
        process::step(&format!("apt-get install {}", packages.join(" ")));
        let environment = [("DEBIAN_FRONTEND", "noninteractive")];
        process::run(
            Command::new("apt-get")
                .envs(environment)
                .args(["update", "-q"]),
        )?;
        process::run(
            Command::new("apt-get")
                .envs(environment)
                .args(["install", "-q", "-y", "--no-install-recommends"])
                .args(&packages),
        )?;
    }
    let lacking = missing(needs);
    if lacking.is_empty() {
        return Ok(());
    }
    let purposes: Vec<String> = lacking
        .iter()
        .map(|need| format!("{} (package {})", need.purpose, need.package))
        .collect();
    bail!(
        "this machine lacks {}; on Debian or Ubuntu: apt install {}",
        purposes.join(" and "),
        lacking
            .iter()
            .map(|need| need.package)
            .collect::<Vec<_>>()
            .join(" ")
    )
}

fn works(probe: &[&str]) -> bool {
    Command::new(probe[0])
        .args(&probe[1..])
        .output()
        .is_ok_and(|output| output.status.success())
}

fn is_root() -> bool {
    Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|output| output.stdout == b"0\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_not_asked_for() {
        let shell = Need {
            probe: &["sh", "-c", "true"],
            package: "dash",
            purpose: "a shell",
        };
        assert!(need(&[shell]).is_ok());
    }

    #[test]
    fn a_probe_that_fails_or_is_absent_does_not_work() {
        assert!(!works(&["sh", "-c", "false"]));
        assert!(!works(&["no-such-command-anywhere"]));
    }
}
