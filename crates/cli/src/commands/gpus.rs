//! `lockstep gpus`: what can be simulated.

use anyhow::Context;
use clap::{Args, Subcommand};
use lockstep_config::{CATALOGUE, load};
use lockstep_report::{Align, Table};

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
    /// Make a GPU file from a sectioned configuration, as SST-GPU reads them
    Import {
        /// The configuration; what it does not say comes from `--base`
        file: std::path::PathBuf,
        /// GPU of the catalogue below it
        #[arg(long, default_value = "v100")]
        base: String,
    },
}

impl Gpus {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<i32> {
        match self.what {
            None => list(),
            Some(What::Show { name, file }) => {
                match lockstep_config::find(&name) {
                    Some(entry) if file => print!("{}", entry.text),
                    _ => {
                        let resolved = crate::options::configuration(&name, &[])?;
                        print!("{}", lockstep_config::listing(&resolved));
                    }
                }
                Ok(0)
            }
            Some(What::Import { file, base }) => {
                let path = file.display().to_string();
                let text = std::fs::read_to_string(&file).with_context(|| path.clone())?;
                let imported = lockstep_config::import(&path, &text, &base)?;
                print!("{}", imported.text);
                for (key, because) in &imported.unused {
                    eprintln!("not used: {key} ({because})");
                }
                Ok(0)
            }
        }
    }
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
    print!("{table}");
    println!("\n`lockstep gpus show NAME` prints every number of one with its source.");
    Ok(0)
}
