//! `cargo xtask bless`: accept what tests found where they keep expected output.

use crate::process;
use anyhow::Result;
use clap::Args;

/// Accept what tests found where they keep expected output. Read the difference like code.
#[derive(Args)]
pub struct Bless {
    /// Only this package
    #[arg(long, value_name = "NAME")]
    package: Option<String>,
}

impl Bless {
    /// Runs it.
    pub fn run(self) -> Result<()> {
        let mut arguments = vec!["test", "--release"];
        match &self.package {
            Some(package) => arguments.extend(["--package", package]),
            None => arguments.push("--workspace"),
        }
        process::run(process::cargo(&arguments).env("UPDATE_EXPECT", "1"))?;
        crate::docs::write()?;
        println!("Review with `git diff`.");
        Ok(())
    }
}
