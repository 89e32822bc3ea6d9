//! `lockstep kernel`: one kernel, no host program.

use crate::options::{RecordingOptions, SimulationOptions};
use crate::{report, watch};
use clap::Args;
use lockstep_simulation::{Argument, KernelDescription, run_kernel};
use lockstep_text::say;
use std::path::PathBuf;

/// Run one kernel of a PTX or cubin file, without a host program.
#[derive(Args)]
#[command(
    after_help = "Arguments are scalars (u32:5, s64:-1, f32:1.5) or buffers (f32[1024]=iota, u32[64]=0,\nf32[1024]=random:7; without `=` they hold zeros).\n\nExample:\n  lockstep kernel vector_add.ptx --grid 4 --block 256 \\\n      --arg f32[1024]=iota --arg f32[1024]=1 --arg f32[1024] --arg u32:1024 --print 2:8"
)]
pub struct Kernel {
    /// PTX, cubin or fat binary
    file: PathBuf,
    /// Name of the kernel; needed if the file has several
    #[arg(long, value_name = "NAME")]
    entry: Option<String>,
    /// Blocks
    #[arg(long, value_name = "X[,Y[,Z]]", default_value = "1", value_parser = parse_shape)]
    grid: [u32; 3],
    /// Threads of a block
    #[arg(long, value_name = "X[,Y[,Z]]", default_value = "32", value_parser = parse_shape)]
    block: [u32; 3],
    /// Dynamic shared memory of a block, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    shared: u32,
    /// An argument; once for each, in order
    #[arg(long = "arg", value_name = "TYPE:VALUE|TYPE[COUNT]=PATTERN")]
    arguments: Vec<Argument>,
    /// Print this many elements of a buffer afterwards (argument from 0)
    #[arg(long, value_name = "ARG[:COUNT]", value_parser = parse_print)]
    print: Vec<(usize, u64)>,
    /// Launch it this often, one after the other
    #[arg(long, value_name = "N", default_value_t = 1)]
    repeat: u32,
    #[command(flatten)]
    options: SimulationOptions,
    #[command(flatten)]
    recording: RecordingOptions,
}

impl Kernel {
    /// Runs it; 0 if the kernel ended well.
    pub fn run(self) -> anyhow::Result<i32> {
        let mut description = self.options.describe()?;
        self.recording.add(&mut description)?;
        let kernel = KernelDescription {
            file: self.file,
            entry: self.entry,
            grid: self.grid,
            block: self.block,
            dynamic_shared: self.shared,
            arguments: self.arguments,
            print: self.print,
            repeat: self.repeat,
        };
        let watcher = watch::Watcher::start(&description.progress);
        let outcome = run_kernel(&description, &kernel);
        watcher.finish();
        let (results, printed) = outcome?;
        for buffer in printed {
            say!(
                "argument {} ({}): {}\n",
                buffer.argument,
                buffer.kind,
                buffer.values.join(" ")
            );
        }
        report::print(&results);
        report::print_problems(&results);
        Ok(results.summary.ending.exit_code)
    }
}

fn parse_shape(text: &str) -> Result<[u32; 3], String> {
    let mut shape = [1; 3];
    let parts: Vec<&str> = text.split([',', 'x']).collect();
    if parts.len() > 3 {
        return Err("three numbers at most".into());
    }
    for (size, part) in shape.iter_mut().zip(parts) {
        *size = part
            .trim()
            .parse()
            .ok()
            .filter(|size| *size > 0)
            .ok_or_else(|| {
                format!("`{part}` is not a whole number above 0; write for example 16,8")
            })?;
    }
    Ok(shape)
}

fn parse_print(text: &str) -> Result<(usize, u64), String> {
    let (argument, count) = text.split_once(':').unwrap_or((text, "16"));
    let refused = || format!("`{text}` is not ARGUMENT:COUNT; write for example 2:8");
    Ok((
        argument.parse().map_err(|_| refused())?,
        count.parse().map_err(|_| refused())?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_and_prints_are_read() {
        assert_eq!(parse_shape("4"), Ok([4, 1, 1]));
        assert_eq!(parse_shape("4,2"), Ok([4, 2, 1]));
        assert_eq!(parse_shape("4x2x3"), Ok([4, 2, 3]));
        assert!(
            parse_shape("0").is_err()
                && parse_shape("1,2,3,4").is_err()
                && parse_shape("").is_err()
        );
        assert_eq!(parse_print("2:8"), Ok((2, 8)));
        assert_eq!(parse_print("2"), Ok((2, 16)));
        assert!(parse_print("x").is_err());
    }
}
