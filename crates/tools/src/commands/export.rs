//! `lockstep export`: the launches and the series of a run for other tools.

use super::output::Output;
use clap::{Args, ValueEnum};
use lockstep_report::export::{self, Names};
use lockstep_run_folder::Run;
use lockstep_text::note;
use std::path::PathBuf;

/// Write the launches or the series of a run for other tools.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  lockstep export lockstep-out/vector_add-1 --to csv --names ncu\n  lockstep export lockstep-out/vector_add-1 --to parquet --output launches.parquet\n  lockstep export lockstep-out/vector_add-1 --to perfetto --output trace.perfetto     then open it in Perfetto"
)]
pub struct Export {
    /// A folder that `lockstep run` or `lockstep sample` left
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// What to write
    #[arg(long, value_enum)]
    to: Format,
    /// Which table
    #[arg(long, value_enum, default_value_t = TableName::Launches)]
    table: TableName,
    /// Whose names counters have
    #[arg(long, value_enum, default_value_t = NamesOf::Lockstep)]
    names: NamesOf,
    #[command(flatten)]
    output: Output,
}

/// Tables of a run.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TableName {
    /// A row a launch
    Launches,
    /// A row a part of the GPU and interval of simulated time, of a run with `--series`
    Series,
}

/// Formats of other tools.
#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// A row a launch
    Csv,
    /// The same as a Parquet file
    Parquet,
    /// A time line with typed GPU packets: kernels with their launch dimensions, counters as tracks
    Perfetto,
}

/// Whose names counters have.
#[derive(Clone, Copy, ValueEnum)]
enum NamesOf {
    /// Those of kernels.csv
    Lockstep,
    /// Those of Nsight Compute, where it has one
    Ncu,
}

impl Export {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<i32> {
        let run = Run::read(&self.folder)?;
        if self.table == TableName::Launches {
            run.require_launches("export")?;
        }
        for sentence in &run.notes {
            note!("lockstep: {sentence}\n");
        }
        let names = match self.names {
            NamesOf::Lockstep => Names::Lockstep,
            NamesOf::Ncu => Names::Ncu,
        };
        let bytes = match (self.table, self.to) {
            (TableName::Launches, Format::Csv) => export::csv(&run, names)?,
            (TableName::Launches, Format::Parquet) => export::parquet(&run, names)?,
            (TableName::Launches, Format::Perfetto) => export::perfetto(&run, names),
            (TableName::Series, Format::Csv) => export::series_csv(&run, names)?,
            (TableName::Series, Format::Parquet) => export::series_parquet(&run, names)?,
            (TableName::Series, Format::Perfetto) => anyhow::bail!(
                "--table series goes to csv or parquet; a trace for Perfetto has the launches"
            ),
        };
        self.output.write(&bytes)
    }
}
