//! `lockstep sample --job`: one rank of a parallel program, in the folder of its job.

use anyhow::{Context, bail};
use lockstep_collector::ClockOffset;
use lockstep_report::job::{self, RankInfo};
use lockstep_segment::{RANK_VARIABLES, node_name, rank};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// This rank.
pub struct JobRank {
    job: PathBuf,
    /// Where it leaves what it sampled.
    pub folder: PathBuf,
}

impl JobRank {
    /// Makes the folder of this rank, and writes down how its clock stands to that of the job's folder.
    pub fn begin(job: &Path) -> anyhow::Result<Self> {
        let Some(text) = rank() else {
            bail!(
                "--job: no launcher numbered this process ({} are not set); start it as `mpirun -n N lockstep sample --job DIR -- PROGRAM`",
                RANK_VARIABLES.join(", ")
            );
        };
        let number: u32 = text.parse().with_context(|| {
            format!("--job: the launcher says that this is rank `{text}`, which is no number")
        })?;
        let folder = job::rank_folder(job, number);
        if folder.exists() {
            bail!(
                "--job {}: rank {number} was sampled into this folder before; give a folder of its own to every job",
                job.display()
            );
        }
        let make = |path: &Path| {
            let made = std::fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(path);
            made.with_context(|| format!("--job: {}", path.display()))
        };
        make(&folder)?;
        let clock = ClockOffset::of_folder(&folder)
            .with_context(|| format!("--job: {}", folder.display()))?;
        let info = RankInfo {
            rank: number,
            node: node_name(),
            clock_offset_ns: clock.offset,
            clock_within_ns: clock.within,
        };
        info.write(&folder)?;
        Ok(Self {
            job: job.to_owned(),
            folder,
        })
    }

    /// Gathers what all ranks have left so far.
    pub fn end(&self) -> anyhow::Result<()> {
        job::gather(&self.job).context("--job: what the ranks left cannot be gathered")?;
        Ok(())
    }
}
