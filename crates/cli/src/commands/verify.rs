//! `lockstep verify`: one program, many ways, one answer.

use crate::options::{NodeOptions, SimulationOptions};
use crate::report;
use anyhow::Context;
use clap::Args;
use lockstep_simulation::{
    Outcome, live_variants, quick_variants, repetitions, variants, verify, verify_record,
};
use lockstep_text::say;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// Simulate a program in many ways and check that all answers are equal.
///
/// The program runs once; its calls are recorded with all data and replayed with 1, 2, 3, 8 and 16
/// threads, both schedules, random delays of the workers, idle time stepped through instead of
/// jumped over, and saving and loading the whole state in the middle of kernels. With `--live` the
/// program itself is run again too, which shows whether its calls come in one order.
#[derive(Args)]
pub struct Verify {
    #[command(flatten)]
    options: SimulationOptions,
    #[command(flatten)]
    node: NodeOptions,
    /// Runs with saving and loading at random epochs
    #[arg(long, value_name = "N", default_value_t = 4)]
    reloads: u64,
    /// Only three ways: one thread, two that are delayed, saving and loading
    #[arg(long, conflicts_with = "reloads")]
    quick: bool,
    /// Only threads and schedules, all of them so many times over
    #[arg(long, value_name = "N", conflicts_with_all = ["reloads", "quick"])]
    repeat: Option<u64>,
    /// Run the program itself so many times more: are its own calls the same each time?
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "record")]
    live: u32,
    /// Processes that keep the host busy meanwhile
    #[arg(long, value_name = "N", default_value_t = 0)]
    load: u32,
    /// Replay what an earlier run left instead of running a program: a run folder, or the record in
    /// it (made with --record full, the same GPU and the same mode)
    #[arg(long, value_name = "DIR|FILE", conflicts_with_all = ["command", "out", "overwrite"])]
    record: Option<PathBuf>,
    /// The program and its arguments
    #[arg(
        last = true,
        required_unless_present = "record",
        value_name = "PROGRAM"
    )]
    command: Vec<String>,
}

impl Verify {
    /// Runs it; 1 if any answer differs.
    pub fn run(self) -> anyhow::Result<i32> {
        let mut description = self.options.describe()?;
        self.node.apply(&mut description, &self.options.settings)?;
        let mut variants = match self.repeat {
            Some(times) => repetitions(times),
            None if self.quick => quick_variants(),
            None => variants(self.reloads),
        };
        if description.all_gpus() > 1 {
            // State is saved and loaded with one GPU only.
            variants.retain(|variant| variant.execution.reload_seed.is_none());
        }
        variants.extend(live_variants(self.live));
        let _load = (0..self.load)
            .map(|_| Load::start())
            .collect::<Result<Vec<_>, _>>()?;
        say!(
            "{:<44} {:>10}  {:<16}  result\n",
            "way",
            "seconds",
            "digest"
        );
        let (reference, outcomes) = match &self.record {
            Some(record) => verify_record(&description, record, &variants, tell)?,
            None => verify(&description, &self.command, &variants, tell)?,
        };
        report::print_problems(&reference);
        let different = outcomes
            .iter()
            .filter(|outcome| !outcome.differences.is_empty())
            .count();
        let Some(digest) = reference.summary.digest.clone() else {
            anyhow::bail!("the first run has no digest, so nothing can be compared with it");
        };
        if different > 0 {
            say!(
                "\n{different} of {} ways gave another answer than {}\n",
                outcomes.len(),
                report::short(&digest)
            );
            return Ok(1);
        }
        say!("\nall {} ways gave the digest {digest}\n", outcomes.len());
        Ok(reference.summary.ending.exit_code)
    }
}

/// Prints the line of one way.
fn tell(outcome: &Outcome) {
    let verdict = if outcome.differences.is_empty() {
        match outcome.reloads {
            0 => "equal".to_string(),
            count => format!("equal, after {count} reloads"),
        }
    } else {
        format!("DIFFERENT: {}", outcome.differences.join("; "))
    };
    say!(
        "{:<44} {:>10.3}  {:<16}  {verdict}\n",
        outcome.variant.describe(),
        outcome.wall.as_secs_f64(),
        report::short(&outcome.digest)
    );
}

/// A process that takes a processor, for as long as this one lives.
struct Load(Child);

impl Load {
    fn start() -> anyhow::Result<Self> {
        let spin =
            "while kill -0 $0 2>&-; do i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; done";
        let child = Command::new("sh")
            .args(["-c", spin, &std::process::id().to_string()])
            .stdin(Stdio::null())
            .spawn()
            .context("cannot start `sh` to keep the host busy")?;
        Ok(Self(child))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // Whoever cannot be ended here ends by itself soon after this process.
        // It kept the host busy and nothing else.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
