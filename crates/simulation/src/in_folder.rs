//! A run that no program makes, with its results in a folder.

use crate::description::Description;
use crate::guardian::Guardian;
use crate::interrupts::Interrupts;
use crate::program::{RunError, check_memory, system};
use crate::reporter::{Phase, Reporter};
use crate::results::Results;
use lockstep_run_folder::{RunFolder, RunState};
use std::sync::Arc;

/// Simulates something and writes what came of it into the folder that a run has, however it ends. The first word of
/// `command` names the folder where the user named none.
///
/// # Errors
/// The run could not take place at all.
pub fn in_folder<T>(
    description: &Description,
    command: &[String],
    simulate: impl FnOnce(&Arc<RunFolder>, &Interrupts) -> Result<(Results, T), RunError>,
) -> Result<(Results, T), RunError> {
    check_memory()?;
    let name = command.first().map_or("", String::as_str);
    let interrupts = Interrupts::listen(description.progress.stop_flag());
    let interrupts = Arc::new(interrupts.map_err(system("listening for signals"))?);
    let folder = RunFolder::create(description.out.as_deref(), description.existing, name)?;
    let folder = Arc::new(folder);
    let guardian =
        Guardian::start(None, &folder, false).map_err(system("a guardian for the results"))?;
    let reporter = Reporter::start(description, command, &folder, &interrupts)?;
    reporter.phase(Phase::Running);
    match simulate(&folder, &interrupts) {
        Ok((mut results, more)) => {
            reporter.finish();
            stopped(&mut results, &interrupts);
            results.write(&folder)?;
            drop(guardian);
            Ok((results, more))
        }
        Err(error) => {
            reporter.failed(&error.to_string(), error.exit_code());
            Err(error)
        }
    }
}

/// Says that a run was ended, if it was.
fn stopped(results: &mut Results, interrupts: &Interrupts) {
    let summary = &mut results.summary;
    if let Some(code) = interrupts.exit_code() {
        summary.state = RunState::Stopped;
        summary.partial = true;
        summary.ending.exit_code = code;
        summary.ending.signal = interrupts.signal();
        let halted = interrupts.halted().map(|halt| halt.reason);
        summary.ending.problems.extend(halted);
    }
}
