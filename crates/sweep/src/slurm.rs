//! Points as job arrays of Slurm.
//!
//! One script holds the command of every point in a `case`; an array has one task a point. The
//! submission waits until all tasks ended, and the folders say what became of them.

use crate::command::{quoted, quoted_word};
use crate::{Launcher, Point, SweepError, SweepFolder};
use std::fmt::Write;
use std::process::Command;

/// Tasks of one array: the limit that Slurm has unless an administrator changes it is 1001.
const ARRAY: usize = 1000;

/// Writes the script for these points, submits it and waits for its end; at most so many tasks run
/// at a time, if that is said.
///
/// # Errors
/// The script cannot be written, or Slurm refused it.
pub fn submit(
    folder: &SweepFolder,
    launcher: &Launcher,
    points: &[&Point],
    at_a_time: Option<usize>,
) -> Result<(), SweepError> {
    folder.replace("slurm.sh", script(folder, launcher, points).as_bytes())?;
    let path = folder.path().join("slurm.sh");
    for first in (0..points.len()).step_by(ARRAY) {
        let tasks = ARRAY.min(points.len() - first);
        let limit = at_a_time.map_or(String::new(), |limit| format!("%{limit}"));
        let output = Command::new("sbatch")
            .arg("--wait")
            .arg(format!("--array=1-{tasks}{limit}"))
            .arg(format!("--export=ALL,LOCKSTEP_SWEEP_FIRST={first}"))
            .arg(&path)
            .output();
        let output = output.map_err(|error| SweepError::Slurm {
            message: format!("{error}; --slurm needs Slurm's commands on this machine"),
        })?;
        // It passes on the exit codes of tasks; only a job that was never made is an error here.
        let said = String::from_utf8_lossy(&output.stdout);
        if !said.contains("Submitted") {
            let message = String::from_utf8_lossy(&output.stderr).trim().to_string();
            return Err(SweepError::Slurm { message });
        }
    }
    Ok(())
}

fn script(folder: &SweepFolder, launcher: &Launcher, points: &[&Point]) -> String {
    let logs = folder
        .path()
        .join("logs/slurm-%A_%a.txt")
        .display()
        .to_string();
    let mut text = format!(
        "#!/bin/sh\n\
         #SBATCH --job-name=lockstep-sweep\n\
         #SBATCH --output={}\n\
         case $((SLURM_ARRAY_TASK_ID + ${{LOCKSTEP_SWEEP_FIRST:-0}})) in\n",
        quoted_word(&logs)
    );
    for (index, point) in points.iter().enumerate() {
        let _ = writeln!(
            text,
            "{}) exec {} >{} 2>&1 ;;",
            index + 1,
            quoted(&launcher.words(folder, point)),
            quoted_word(&folder.log(point).display().to_string())
        );
    }
    text.push_str("*) echo \"no point for task $SLURM_ARRAY_TASK_ID\" >&2; exit 1 ;;\nesac\n");
    text
}
