//! One point of a sweep: what is simulated, checked, and named by a digest of it.

use crate::axes::Assignment;
use crate::command::{word, words};
use crate::file::PLAIN;
use crate::{Cell, SweepError};
use lockstep_config::{GpuConfig, aliases, to_toml};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// Digits of a digest that name a run.
const DIGITS: usize = 16;

/// Options that the sweep gives itself.
const OURS: &[&str] = &["--gpu", "--set", "--out", "--overwrite", "--force", "--"];

/// What `lockstep` is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Executable {
    /// `lockstep run`: a CUDA program.
    Program,
    /// `lockstep kernel`: a kernel of a file.
    Kernel,
}

/// A run as `lockstep` is asked for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// What `file` is.
    pub executable: Executable,
    /// The program or the file with the kernel.
    pub file: String,
    /// Its arguments; of a kernel, the options that give its shape and arguments.
    pub arguments: Vec<String>,
    /// The GPU.
    pub gpu: String,
    /// `KEY=VALUE` each.
    pub settings: Vec<String>,
    /// Further options.
    pub options: Vec<String>,
    /// The launch from which on it is simulated, if launches before it are shared with other points.
    pub warm_start: Option<u64>,
}

impl Run {
    /// The command line behind `lockstep`, for results in `folder`. So many threads are used unless
    /// the options say how many.
    pub fn words(&self, folder: &Path, threads: usize) -> Vec<String> {
        if self.warm_start.is_some() {
            return self.words_from_checkpoint(folder, threads);
        }
        let mut words = match self.executable {
            Executable::Program => vec!["run".to_string(), "--quiet".into()],
            Executable::Kernel => {
                let mut words = vec!["kernel".to_string(), self.file.clone()];
                words.extend(self.arguments.iter().cloned());
                words
            }
        };
        words.extend(["--gpu".into(), self.gpu.clone()]);
        for setting in &self.settings {
            words.extend(["--set".into(), setting.clone()]);
        }
        words.extend(self.options.iter().cloned());
        let named = |word: &String| word == "--threads" || word.starts_with("--threads=");
        if !self.options.iter().any(named) {
            words.extend(["--threads".into(), threads.max(1).to_string()]);
        }
        let folder = folder.display().to_string();
        words.extend(["--out".into(), folder, "--overwrite".into()]);
        if self.executable == Executable::Program {
            words.extend(["--".into(), self.file.clone()]);
            words.extend(self.arguments.iter().cloned());
        }
        words
    }
}

impl Run {
    /// The same for a point that goes on from a checkpoint, which has program and options.
    fn words_from_checkpoint(&self, folder: &Path, threads: usize) -> Vec<String> {
        let checkpoint = self.checkpoint(folder).display().to_string();
        let mut words = vec!["resume".to_string(), checkpoint, "--quiet".into()];
        words.extend(["--gpu".into(), self.gpu.clone()]);
        for setting in &self.settings {
            words.extend(["--set".into(), setting.clone()]);
        }
        words.extend(["--threads".into(), threads.max(1).to_string()]);
        let folder = folder.display().to_string();
        words.extend(["--out".into(), folder, "--overwrite".into()]);
        words
    }

    /// The checkpoint that a point goes on from, whose results are in `folder`: points share it that differ in
    /// settings alone.
    pub fn checkpoint(&self, folder: &Path) -> PathBuf {
        let mut hasher = blake3::Hasher::new();
        let first = self.warm_start.unwrap_or(0).to_string();
        for list in [
            &[self.file.clone(), self.gpu.clone(), first][..],
            &self.arguments,
            &self.options,
        ] {
            for word in list {
                hasher.update(&(word.len() as u64).to_le_bytes());
                hasher.update(word.as_bytes());
            }
            hasher.update(&u64::MAX.to_le_bytes());
        }
        let mut digits = hasher.finalize().to_hex().to_string();
        digits.truncate(DIGITS);
        let sweep = folder.ancestors().nth(2).unwrap_or(folder);
        sweep.join("checkpoints").join(digits)
    }

    /// The command line behind `lockstep` that makes that checkpoint.
    pub fn checkpoint_words(&self, folder: &Path, threads: usize) -> Vec<String> {
        let plain = Self {
            warm_start: None,
            ..self.clone()
        };
        let mut words = plain.words(&self.checkpoint(folder), threads);
        let first = self.warm_start.unwrap_or(0).to_string();
        let more = ["--mode", "functional", "--checkpoint-before", &first];
        words.splice(2..2, more.map(String::from));
        words
    }
}

/// One point.
#[derive(Clone, Debug)]
pub struct Point {
    /// From 1, in the order of the file.
    pub number: usize,
    /// What is run.
    pub run: Run,
    /// Names its run: equal for points that simulate the same.
    pub id: String,
    /// Its values of the keys that vary.
    pub varied: Vec<Cell>,
}

/// Makes points; remembers the contents of files.
pub(crate) struct Maker<'sweep> {
    /// The sweep file, for messages.
    pub path: &'sweep str,
    /// Keys that vary.
    pub varied: &'sweep [String],
    /// Digests of files by name.
    pub contents: BTreeMap<PathBuf, String>,
}

impl Maker<'_> {
    /// The point that an assignment describes.
    pub fn point(&mut self, number: usize, values: &Assignment) -> Result<Point, SweepError> {
        let run = self.run(number, values)?;
        let config = lockstep_config::load(Some(&run.gpu), &run.settings).map_err(|source| {
            let settings = run.settings.join(", ");
            SweepError::Configuration {
                path: self.path.into(),
                point: format!("{number} ({}; {settings})", run.gpu),
                source: Box::new(source),
            }
        })?;
        let id = self.digest(number, &run, &config)?;
        let varied = self.cells(&run, &config);
        Ok(Point {
            number,
            run,
            id,
            varied,
        })
    }

    fn run(&self, number: usize, values: &Assignment) -> Result<Run, SweepError> {
        let wrong = |message: String| {
            SweepError::malformed(self.path, format!("point {number}: {message}"))
        };
        let one = |key: &str| match values.get(key) {
            None => Ok(None),
            Some(value) => match word(value) {
                Some(word) if !word.is_empty() && !word.contains('\0') => Ok(Some(word)),
                _ => Err(wrong(format!("`{key}` = {value}: write one name"))),
            },
        };
        let several = |key: &str| match values.get(key) {
            None => Ok(Vec::new()),
            Some(value) => words(value).ok_or_else(|| {
                wrong(format!(
                    "`{key}` = {value}: write words, as text or as a list"
                ))
            }),
        };
        let (executable, file) = match (one("program")?, one("kernel")?) {
            (Some(file), None) => (Executable::Program, file),
            (None, Some(file)) => (Executable::Kernel, file),
            (None, None) => {
                let message =
                    "nothing to run: write `program = \"./name\"`, or `kernel = \"file.ptx\"`";
                return Err(wrong(message.into()));
            }
            (Some(_), Some(_)) => {
                return Err(wrong("both `program` and `kernel`: leave one out".into()));
            }
        };
        let (arguments, options) = (several("arguments")?, several("options")?);
        let forbidden = |word: &&String| {
            let name = word.split_once('=').map_or(word.as_str(), |(name, _)| name);
            OURS.contains(&name)
        };
        let mut given = options.iter();
        if executable == Executable::Kernel {
            // These are options as well.
            given = arguments.iter();
        }
        if let Some(word) = options.iter().chain(given).find(forbidden) {
            return Err(wrong(format!(
                "`{word}` is given by the sweep itself: leave it out, and write `gpu`, [set] or --out"
            )));
        }
        let warm_start = match values.get("warm-start") {
            None => None,
            Some(Value::Integer(first)) if *first >= 0 && executable == Executable::Program => {
                Some(first.unsigned_abs())
            }
            Some(value) => {
                return Err(wrong(format!(
                    "`warm-start` = {value}: write the number of a launch of a program, from 0"
                )));
            }
        };
        let settings = values
            .iter()
            .filter(|(key, _)| !PLAIN.contains(&key.as_str()));
        Ok(Run {
            executable,
            file,
            arguments,
            gpu: one("gpu")?.unwrap_or_else(|| lockstep_config::DEFAULT_GPU.into()),
            settings: settings.map(|(key, value)| setting(key, value)).collect(),
            options,
            warm_start,
        })
    }

    /// Of everything that can change the result; how it is spelt does not matter for settings.
    fn digest(
        &mut self,
        number: usize,
        run: &Run,
        config: &GpuConfig,
    ) -> Result<String, SweepError> {
        let contents = self.contents(number, run)?;
        let mut hasher = blake3::Hasher::new();
        let mut add = |text: &str| {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        };
        add(env!("CARGO_PKG_VERSION"));
        add(&to_toml(config));
        add(&format!("{:?}", run.executable));
        add(&contents);
        for list in [
            std::slice::from_ref(&run.file),
            &run.arguments,
            &run.options,
        ] {
            add(&list.len().to_string());
            for word in list {
                add(word);
            }
        }
        if let Some(first) = run.warm_start {
            add(&format!("from launch {first}"));
        }
        let mut digits = hasher.finalize().to_hex().to_string();
        digits.truncate(DIGITS);
        Ok(digits)
    }

    /// A digest of the program or of the file with the kernel: one that was built anew is another.
    fn contents(&mut self, number: usize, run: &Run) -> Result<String, SweepError> {
        let found = find(run);
        let path = found.ok_or_else(|| {
            let message = format!("point {number}: there is no file `{}` to run", run.file);
            SweepError::malformed(self.path, message)
        })?;
        if let Some(known) = self.contents.get(&path) {
            return Ok(known.clone());
        }
        let mut hasher = blake3::Hasher::new();
        let read = std::fs::File::open(&path).and_then(|file| {
            hasher.update_reader(file)?;
            Ok(())
        });
        read.map_err(SweepError::at(&path))?;
        let digest = hasher.finalize().to_hex().to_string();
        self.contents.insert(path, digest.clone());
        Ok(digest)
    }

    /// Values of the keys that vary: as the whole configuration has them, also where a part of the
    /// sweep does not name them.
    fn cells(&self, run: &Run, config: &GpuConfig) -> Vec<Cell> {
        let table = Table::try_from(config).unwrap_or_default();
        let cell = |key: &String| match key.as_str() {
            "gpu" => Cell::Text(run.gpu.clone()),
            "program" | "kernel" => Cell::Text(run.file.clone()),
            "arguments" => Cell::Text(run.arguments.join(" ")),
            "options" => Cell::Text(run.options.join(" ")),
            "warm-start" => Cell::Text(run.warm_start.unwrap_or(0).to_string()),
            key => lookup(&table, aliases::present_name(key)).map_or(Cell::Absent, Cell::of_value),
        };
        self.varied.iter().map(cell).collect()
    }
}

/// `KEY=VALUE`, as `--set` reads it.
fn setting(key: &str, value: &Value) -> String {
    match value {
        Value::String(text) => format!("{key}={text}"),
        value => format!("{key}={value}"),
    }
}

/// The value of a key with dots.
fn lookup<'table>(table: &'table Table, key: &str) -> Option<&'table Value> {
    match key.split_once('.') {
        None => table.get(key),
        Some((section, rest)) => lookup(table.get(section)?.as_table()?, rest),
    }
}

/// The file that is run, in the search path if it is a program without a folder.
fn find(run: &Run) -> Option<PathBuf> {
    let given = Path::new(&run.file);
    if run.executable == Executable::Kernel || run.file.contains('/') {
        return given.is_file().then(|| given.to_path_buf());
    }
    let folders = std::env::var_os("PATH")?;
    let mut found = std::env::split_paths(&folders).map(|folder| folder.join(given));
    found.find(|path| path.is_file())
}
