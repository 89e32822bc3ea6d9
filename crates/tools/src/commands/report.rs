//! `lockstep report` and `lockstep compare`: what run folders say.

use super::output::Output;
use clap::{Args, ValueEnum};
use lockstep_report::{Document, comparison_page, report, report_page};
use lockstep_run_folder::Run;
use std::path::PathBuf;

/// Say where the time of runs went, what bounds each kernel, and what would help.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  lockstep report lockstep-out/vector_add-1\n  lockstep report lockstep-out/vector_add-1 --format html --output report.html\n  lockstep report before after          both, and side by side"
)]
pub struct ReportArguments {
    /// Folders that `lockstep run` or `lockstep sample` left, whole or not
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<PathBuf>,
    #[command(flatten)]
    form: Form,
}

/// Set two runs side by side: two simulations, or a real GPU and a simulated one.
#[derive(Args)]
#[command(
    after_help = "The first run is the reference. Kernels are paired by name, counters by the table that simulated and real GPUs share:\n  lockstep sample --out real -- ./program\n  lockstep run --out simulated -- ./program\n  lockstep compare real simulated --format html --output compare.html"
)]
pub struct CompareArguments {
    /// The reference
    #[arg(value_name = "A")]
    first: PathBuf,
    /// What is compared with it
    #[arg(value_name = "B")]
    second: PathBuf,
    #[command(flatten)]
    form: Form,
}

/// How and where it is written.
#[derive(Args)]
struct Form {
    /// How it is written
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    #[command(flatten)]
    output: Output,
}

/// How a report is written.
#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// For a terminal
    Text,
    /// Markdown
    Markdown,
    /// Everything that is known, as docs/reference/report.schema.json describes it
    Json,
    /// One page with pictures, which needs nothing else
    Html,
}

impl ReportArguments {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<i32> {
        let runs = self.folders.iter().map(|folder| Run::read(folder));
        let runs = runs.collect::<Result<Vec<_>, _>>()?;
        let about = report(&runs);
        self.form.write(|| report_page(&about, &runs), &about)
    }
}

impl CompareArguments {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<i32> {
        let runs = [Run::read(&self.first)?, Run::read(&self.second)?];
        for run in &runs {
            run.require_launches("compare")?;
        }
        let compared = lockstep_report::compare::compare(&runs);
        self.form.write(|| comparison_page(&compared), &compared)
    }
}

impl Form {
    fn write(
        &self,
        page: impl FnOnce() -> Document,
        data: &impl serde::Serialize,
    ) -> anyhow::Result<i32> {
        let text = match self.format {
            Format::Text => page().text(),
            Format::Markdown => page().markdown(),
            Format::Html => page().html(),
            Format::Json => serde_json::to_string_pretty(data)? + "\n",
        };
        self.output.write(text.as_bytes())
    }
}
