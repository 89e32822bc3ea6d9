//! `lockstep sampled`: the sampler of a node, which owns the counters of every GPU, and serves them.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use lockstep_exporter::{Access, Endpoint, Options, Origin, Service};
use lockstep_injector::daemon::{Daemon, DaemonOptions};
use lockstep_schema::Metadata;
use lockstep_text::{note, say};

/// Where Prometheus looks for dcgm-exporter, too.
const PROMETHEUS: &str = "127.0.0.1:9400";

/// Owns the counters of every GPU of this node, so that programs publish time lines only
///
/// Samples each GPU whether or not a sampled program runs on it, gives its counters up while DCGM
/// (nv-hostengine) runs, and removes what dead programs left in shared memory. Read it with
/// `lockstep sample --all`, or let Prometheus read it with --prometheus.
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
    /// Serve figures to Prometheus (OpenMetrics text at /metrics), on 127.0.0.1:9400 or on this
    /// address. Other users of this machine need the token, other machines TLS and the token
    #[arg(long, value_name = "ADDRESS:PORT", num_args = 0..=1, default_missing_value = PROMETHEUS)]
    prometheus: Option<SocketAddr>,
    /// Give the N kernels that execute most a label of their own; the others are `other`
    #[arg(long, value_name = "N", default_value_t = 0)]
    top_kernels: usize,
    /// File whose one line is the token of those who may read; private to its user
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Certificate chain of the endpoint (PEM); needs a build with the feature `tls`
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_certificate: Option<PathBuf>,
    /// Private key of the certificate (PEM); private to its user
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    tls_key: Option<PathBuf>,
    /// Push figures every ten seconds to an OpenTelemetry collector on this machine, as OTLP over
    /// HTTP: http://127.0.0.1:4318
    #[arg(long, value_name = "ENDPOINT")]
    otlp: Option<String>,
    /// Own no counters: only serve what programs publish
    #[arg(long)]
    serve_only: bool,
    /// Serve a run folder again, as it went on; needs no GPU
    #[arg(long, value_name = "DIR", conflicts_with_all = ["metadata", "ignore_dcgm", "serve_only"])]
    replay: Option<PathBuf>,
    /// With --replay: so many times as fast; 0 shows the end at once
    #[arg(
        long,
        value_name = "FACTOR",
        default_value_t = 1.0,
        requires = "replay"
    )]
    speed: f64,
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
        let time = self.seconds.map(Duration::try_from_secs_f64).transpose()?;
        let options = DaemonOptions {
            metadata,
            yields_to_dcgm: !self.ignore_dcgm,
            time,
            ..DaemonOptions::default()
        };
        let only_serves = self.serve_only || self.replay.is_some();
        let service = self.service(&options)?;
        if only_serves {
            let Some(service) = service else {
                anyhow::bail!("nobody would be served: give --prometheus or --otlp");
            };
            service.run(time, report)?;
            return Ok(0);
        }
        options.metadata.check_for_real_gpu("the metadata file")?;
        let daemon = Daemon::start(options).map_err(anyhow::Error::msg)?;
        if let Some(service) = service {
            std::thread::spawn(move || {
                if let Err(error) = service.run(None, report) {
                    report(&error.to_string());
                }
            });
        }
        daemon.run();
        Ok(0)
    }

    /// The exporter, if one was asked for. It says where it is.
    fn service(&self, daemon: &DaemonOptions) -> anyhow::Result<Option<Service>> {
        if self.prometheus.is_none() && self.otlp.is_none() {
            return Ok(None);
        }
        let origin = match &self.replay {
            Some(folder) => Origin::Recording {
                folder: folder.clone(),
                speed: (self.speed > 0.0).then_some(self.speed),
            },
            None => Origin::Segments {
                segments: daemon.segments.clone(),
                folder: daemon.locks.clone(),
                metadata: daemon.metadata.clone(),
            },
        };
        let tls = self.tls_certificate.clone().zip(self.tls_key.clone());
        let service = Service::start(&Options {
            origin,
            top_kernels: self.top_kernels,
            prometheus: self.prometheus,
            access: Access::new(self.token_file.as_deref(), tls)?
                .with_group(&daemon.metadata.segment.group),
            otlp: self.otlp.as_deref().map(Endpoint::parse).transpose()?,
        })?;
        if let Some(url) = service.url() {
            say!("figures are at {url}\n");
        }
        Ok(Some(service))
    }
}

fn report(sentence: &str) {
    note!("lockstep: {sentence}\n");
}
