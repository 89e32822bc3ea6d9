//! How the command of a point is started: directly, or through a shell by a template.

use crate::command::{quoted, quoted_word};
use crate::{Point, SweepError, SweepFolder};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Starts commands.
#[derive(Clone, Debug)]
pub struct Launcher {
    /// The `lockstep` command.
    lockstep: PathBuf,
    /// What a shell runs, with names in braces; without one, the command is started directly.
    template: Option<String>,
    /// Threads of one run.
    threads: usize,
}

impl Launcher {
    /// Starts `lockstep` with so many threads each, through `template` if there is one.
    ///
    /// # Errors
    /// The template does not say where the command goes.
    pub fn new(
        lockstep: &Path,
        template: Option<String>,
        threads: usize,
    ) -> Result<Self, SweepError> {
        if let Some(template) = &template
            && !template.contains("{command}")
        {
            return Err(SweepError::Launcher {
                template: template.clone(),
                because: "write `{command}` where the command belongs, for example \"srun -n1 {command}\"",
            });
        }
        Ok(Self {
            lockstep: lockstep.to_path_buf(),
            template,
            threads,
        })
    }

    /// The words of the command of a point.
    pub fn words(&self, folder: &SweepFolder, point: &Point) -> Vec<String> {
        let mut words = vec![self.lockstep.display().to_string()];
        words.extend(point.run.words(&folder.run(point), self.threads));
        words
    }

    /// Makes the checkpoint that a point goes on from, unless it is there.
    ///
    /// # Errors
    /// It cannot be made; what was said is in the point's log.
    pub fn make_checkpoint(&self, folder: &SweepFolder, point: &Point) -> Result<(), SweepError> {
        let run = folder.run(point);
        let checkpoint = point.run.checkpoint(&run);
        let wanted = point.run.warm_start.is_some();
        if !wanted || checkpoint.join("checkpoint.state").is_file() {
            return Ok(());
        }
        let words = point.run.checkpoint_words(&run, self.threads);
        let log = folder.log(point);
        let same = |file: &std::fs::File| file.try_clone().map_err(SweepError::at(&log));
        let file = folder.new_log(point)?;
        let status = Command::new(&self.lockstep)
            .args(words)
            .stdin(Stdio::null())
            .stdout(same(&file)?)
            .stderr(file)
            .status()
            .map_err(SweepError::at(&self.lockstep))?;
        match status.success() {
            true => Ok(()),
            false => Err(SweepError::Checkpoint {
                point: point.number,
                log: log.display().to_string(),
            }),
        }
    }

    /// The process that simulates a point, not yet started.
    pub(crate) fn process(
        &self,
        folder: &SweepFolder,
        point: &Point,
        worker: usize,
    ) -> Result<Command, SweepError> {
        let words = self.words(folder, point);
        let mut command = match &self.template {
            None => {
                let mut command = Command::new(&words[0]);
                command.args(&words[1..]);
                command
            }
            Some(template) => {
                let mut command = Command::new("sh");
                command
                    .arg("-c")
                    .arg(filled(template, &words, folder, point, worker));
                command
            }
        };
        let log = folder.new_log(point)?;
        let same = log
            .try_clone()
            .map_err(SweepError::at(&folder.log(point)))?;
        command.stdin(Stdio::null()).stdout(log).stderr(same);
        Ok(command)
    }
}

/// A template with its names filled in; braces around anything else are left to the shell.
fn filled(
    template: &str,
    words: &[String],
    folder: &SweepFolder,
    point: &Point,
    worker: usize,
) -> String {
    let names = [
        ("{command}", quoted(words)),
        (
            "{folder}",
            quoted_word(&folder.run(point).display().to_string()),
        ),
        ("{point}", point.number.to_string()),
        ("{worker}", worker.to_string()),
    ];
    let mut text = String::new();
    let mut rest = template;
    // Once from left to right: what was filled in is not looked at again.
    while let Some(at) = rest.find('{') {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        match names.iter().find(|(name, _)| rest.starts_with(name)) {
            Some((name, value)) => {
                text.push_str(value);
                rest = &rest[name.len()..];
            }
            None => {
                text.push('{');
                rest = &rest[1..];
            }
        }
    }
    text.push_str(rest);
    text
}
