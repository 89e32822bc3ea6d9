//! `lockstep view`: run folders as a page in a browser.

use clap::Args;
use lockstep_text::say;
use lockstep_view::Viewer;
use std::path::PathBuf;

/// Show runs in a browser: time line, counters over time, heat maps, kernels and what their warps wait for.
#[derive(Args)]
#[command(
    after_help = "The page is served to this machine alone, under an address with a token. While a run goes on, it follows.\n\nExamples:\n  lockstep run --series 1000 --lines --out results -- ./program\n  lockstep view results\n  lockstep view before after          side by side"
)]
pub struct View {
    /// Folders that `lockstep run` or `lockstep sample` left, or are about to leave
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// Port of this machine; 0 takes a free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,
}

impl View {
    /// Runs it, until it is ended.
    pub fn run(self) -> anyhow::Result<i32> {
        let viewer = Viewer::bind(&self.folders, self.port)?;
        say!("{}\n", viewer.url());
        viewer.run()?;
        Ok(0)
    }
}
