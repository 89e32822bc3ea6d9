//! Samplers and exporters that serve a page, and programs that they serve.

#[path = "../../../exporter/tests/support/page.rs"]
pub mod page;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command};
use std::time::Duration;

use lockstep_segment::now;

use super::{Bench, command, program};

/// A sampler or an exporter that serves.
pub struct Daemon {
    child: Child,
    url: String,
}

impl Daemon {
    /// Starts `lockstep sampled` with these options, which name an address.
    pub fn start(bench: &Bench, options: &[&str]) -> Self {
        let arguments: Vec<&str> = ["sampled"].iter().chain(options).copied().collect();
        let mut child = command(bench, &arguments).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let url = line.trim().strip_prefix("figures are at ");
        let url = url.unwrap_or_else(|| panic!("no address: {line}"));
        let url = url.to_owned();
        Self { child, url }
    }

    /// Scrapes until the page is as it should be, and fails with what it was.
    pub fn wait_for(&self, what: &str, is_there: impl Fn(&str) -> bool) -> String {
        let begun = now();
        loop {
            let (_, page) = page::get(&self.url, "");
            if is_there(&page) {
                return page;
            }
            assert!(now() - begun < 120_000_000_000, "{what}: {page}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Kills it without warning.
    pub fn kill(self) {
        drop(self);
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program of the user, with nothing but the injector in its environment.
pub fn program_of_user(bench: &Bench, steps: &[&str]) -> Command {
    let mut child = Command::new(program());
    let ours = ["LOCKSTEP_SAMPLE_SEGMENTS", "LOCKSTEP_SAMPLE_LOCKS"];
    let environment = bench.environment.iter();
    child.args(steps).envs(
        environment
            .filter(|(name, _)| !ours.contains(&name.as_str()))
            .cloned(),
    );
    child.env("LOCKSTEP_SAMPLE_BASE", bench.folder.join("base"));
    child
}
