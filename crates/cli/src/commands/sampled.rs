//! `lockstep sampled`: the sampler of a node, which owns the counters of every GPU.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use lockstep_injector::daemon::{Daemon, DaemonOptions};
use lockstep_telemetry::schema::Metadata;

/// Owns the counters of every GPU of this node, so that programs publish time lines only
///
/// Samples each GPU whether or not a sampled program runs on it, gives its counters up while DCGM
/// (nv-hostengine) runs, and removes what dead programs left in shared memory. Read it with
/// `lockstep sample --all`.
#[derive(Args)]
pub struct SampledArguments {
    /// File that names counters and interval (TOML); see configs/counters
    #[arg(long, value_name = "FILE")]
    metadata: Option<PathBuf>,
    /// Keep sampling while DCGM runs
    #[arg(long)]
    ignore_dcgm: bool,
    /// Stop after so many seconds
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<f64>,
    /// Serve the run that the environment names, for `lockstep sample`
    #[arg(long, hide = true)]
    run: bool,
}

impl SampledArguments {
    /// Runs it until it is interrupted.
    pub fn run(self) -> anyhow::Result<i32> {
        if self.run {
            let options = DaemonOptions::of_run().map_err(anyhow::Error::msg)?;
            Daemon::start(options).map_err(anyhow::Error::msg)?.run();
            return Ok(0);
        }
        let metadata = match &self.metadata {
            Some(path) => Metadata::read(path)?,
            None => Metadata::default(),
        };
        metadata.check_for_real_gpu("the metadata file")?;
        let options = DaemonOptions {
            metadata,
            yields_to_dcgm: !self.ignore_dcgm,
            time: self.seconds.map(Duration::from_secs_f64),
            ..DaemonOptions::default()
        };
        Daemon::start(options).map_err(anyhow::Error::msg)?.run();
        Ok(0)
    }
}
