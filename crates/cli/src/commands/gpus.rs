//! `lockstep gpus`: what can be simulated.

use anyhow::Context;
use clap::{Args, Subcommand};
use lockstep_config::{CATALOGUE, load};
use lockstep_text::{Align, Table};
use lockstep_text::{note, say};
use std::io::Write;
use std::path::{Path, PathBuf};

/// List the GPUs that can be simulated, or show the file of one.
#[derive(Args)]
#[command(
    after_help = "A GPU of your own is a .toml file; it may begin with `base = \"h200\"` and name only what differs:\n  lockstep run --gpu my_gpu.toml -- ./program"
)]
pub struct Gpus {
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Subcommand)]
enum What {
    /// Show every setting of a GPU, with the source of every number
    Show {
        /// Its name
        name: String,
        /// Only what its own file says
        #[arg(long)]
        file: bool,
    },
    /// Make a GPU file from a configuration of GPGPU-Sim, Accel-Sim, UVMSmart or SST-GPU
    #[command(
        after_help = "Keys without a counterpart are listed on standard error, with what they would have changed.\n\nExample:\n  lockstep gpus import gpgpusim.config trace.config --output mine.toml\n  lockstep run --gpu mine.toml -- ./program"
    )]
    Import {
        /// The configuration; what it does not say comes from `--base`. A trace.config may follow a gpgpusim.config
        #[arg(required = true, num_args = 1..=8)]
        files: Vec<PathBuf>,
        /// GPU of the catalogue below it [default: the nearest]
        #[arg(long)]
        base: Option<String>,
        /// Write the GPU file here, which must not be there, and not to standard output
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

impl Gpus {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<i32> {
        match self.what {
            None => list(),
            Some(What::Show { name, file }) => {
                match lockstep_config::find(&name) {
                    Some(entry) if file => say!("{}", entry.text),
                    _ => {
                        let resolved = crate::options::configuration(&name, &[])?;
                        say!("{}", lockstep_config::listing(&resolved));
                    }
                }
                Ok(0)
            }
            Some(What::Import {
                files,
                base,
                output,
            }) => import(&files, base.as_deref(), output.as_deref()),
        }
    }
}

/// Files of others beyond this many bytes are not read.
const MAXIMUM_FILE: u64 = 1 << 20;

fn import(files: &[PathBuf], base: Option<&str>, output: Option<&Path>) -> anyhow::Result<i32> {
    let mut texts = Vec::new();
    for file in files {
        let path = file.display().to_string();
        let size = std::fs::metadata(file).with_context(|| path.clone())?.len();
        anyhow::ensure!(
            size <= MAXIMUM_FILE,
            "{path}: {size} bytes are too many for a configuration"
        );
        let text = std::fs::read_to_string(file).with_context(|| path.clone())?;
        texts.push((path, text));
    }
    let imported = lockstep_config::import(&texts, base)?;
    match output {
        None => say!("{}", imported.text),
        Some(path) => {
            let made = std::fs::File::create_new(path);
            let written = made.and_then(|mut file| file.write_all(imported.text.as_bytes()));
            written.with_context(|| path.display().to_string())?;
        }
    }
    for (key, because) in &imported.unused {
        note!("not used: {key} ({because})\n");
    }
    Ok(0)
}

fn list() -> anyhow::Result<i32> {
    let mut table = Table::new(&[
        ("name", Align::Left),
        ("GPU", Align::Left),
        ("sm", Align::Right),
        ("SMs", Align::Right),
        ("clock", Align::Right),
        ("L2", Align::Right),
        ("memory", Align::Right),
        ("bandwidth", Align::Right),
    ]);
    for entry in CATALOGUE {
        let config = load::<&str>(Some(entry.name), &[]).context("the catalogue")?;
        let dram = &config.dram;
        let bandwidth =
            dram.bytes_per_cycle.at(dram.clock).get() as f64 * f64::from(dram.channels) / 1e9;
        table.row(&[
            entry.name.to_string(),
            entry.title().to_string(),
            config.device.compute_capability.architecture().to_string(),
            config.device.sms.to_string(),
            config.device.clock.to_string(),
            config.l2.capacity.to_string(),
            format!(
                "{:.1} GiB",
                config.device.memory.0 as f64 / f64::from(1 << 30)
            ),
            format!("{bandwidth:.0} GB/s"),
        ]);
    }
    say!("{table}");
    say!("\n`lockstep gpus show NAME` prints every number of one with its source.\n");
    Ok(0)
}
