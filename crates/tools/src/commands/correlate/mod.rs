//! `lockstep correlate`: error against a real GPU, by the validation protocol.
//!
//! Runs the programs of the sets, each in a process of its own (`programs`), compares what they
//! left with the measurements (the crate `lockstep-correlation`), and writes text, plot and page.

mod programs;

use crate::{data, simulator};
use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};
use lockstep_correlation::hardware::Case;
use lockstep_correlation::{
    Hardware, Report, Set, Sets, State, compare, counts, history, page, plot, stalls, table, text,
};
use lockstep_text::{note, say};
use programs::{Programs, Workload};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Error against a real GPU: figures, plot and page.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  lockstep correlate --gpu h200 --quick\n  lockstep correlate --gpu h200 --only softmax --set l2.hit-latency=\"210 cycles\"\n  lockstep correlate --gpu h200 --programs sealed"
)]
pub struct Correlate {
    /// GPU of the catalogue whose measurements are compared
    #[arg(long, value_name = "NAME", default_value = lockstep_config::DEFAULT_GPU)]
    gpu: String,
    /// Folder of measurements, or one table of cold cycles [default: validation/hardware/GPU]
    #[arg(long, value_name = "DIR|CSV")]
    hardware: Option<PathBuf>,
    /// The development set at the default size
    #[arg(long)]
    quick: bool,
    /// State in which launches find the caches
    #[arg(long, value_enum, value_name = "STATE", default_value_t = StateName::Cold, conflicts_with = "counts")]
    state: StateName,
    /// Only instruction counts, in functional mode: every set and size, into counts.csv
    #[arg(long, conflicts_with_all = ["quick", "stalls", "history"])]
    counts: bool,
    /// Set of programs; may be repeated [default: calibration, development and untimed]
    #[arg(long, value_enum, value_name = "SET")]
    programs: Vec<SetName>,
    /// Size of the programs; may be repeated [default: default and medium]
    #[arg(long = "size", value_name = "SIZE")]
    sizes: Vec<String>,
    /// Only programs whose `name/size` contains this; may be repeated
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
    /// Change one setting of the simulated GPU; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    /// Programs simulated at a time, each on one thread; 0 takes what the machine has
    #[arg(long, value_name = "N", default_value_t = 0)]
    jobs: usize,
    /// Seconds after which a program counts as hanging
    #[arg(long, value_name = "SECONDS", default_value_t = 900)]
    limit: u64,
    /// Compare the run folders that are under --out already, and simulate only what is not there
    #[arg(long)]
    reuse: bool,
    /// Print also what warps wait for, on hardware and simulated; `stalls.csv` has it in any case
    #[arg(long)]
    stalls: bool,
    /// A `lockstep` command of another build that simulates [default: this one]
    #[arg(long, value_name = "FILE", conflicts_with = "history")]
    simulator: Option<PathBuf>,
    /// Folder with one executable a program [default: .lockstep/bin/sm_ARCHITECTURE]
    #[arg(long, value_name = "DIR")]
    binaries: Option<PathBuf>,
    /// The table of programs
    #[arg(long, value_name = "FILE", default_value = "workloads/workloads.toml")]
    workloads: PathBuf,
    /// The split into sets
    #[arg(long, value_name = "FILE", default_value = "validation/sets.toml")]
    sets: PathBuf,
    /// Folder for the results [default: lockstep-out/correlate-GPU]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Add the figures to this table under the name given by --commit
    #[arg(long, value_name = "FILE", requires = "commit")]
    history: Option<PathBuf>,
    /// `NAME:DAY` of the commit that was built
    #[arg(long, value_name = "NAME:DAY")]
    commit: Option<String>,
}

/// Names for [`State`].
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum StateName {
    /// Emptied before every launch
    Cold,
    /// As the program left them, which is how programs run
    AsRun,
}

impl From<StateName> for State {
    fn from(name: StateName) -> Self {
        match name {
            StateName::Cold => Self::Cold,
            StateName::AsRun => Self::AsRun,
        }
    }
}

/// Names for [`Set`].
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SetName {
    /// Parameters may be fitted to it
    Calibration,
    /// Looked at, never fitted to
    Development,
    /// Once a release
    Sealed,
    /// Counts only
    Untimed,
}

impl From<SetName> for Set {
    fn from(name: SetName) -> Self {
        match name {
            SetName::Calibration => Self::Calibration,
            SetName::Development => Self::Development,
            SetName::Sealed => Self::Sealed,
            SetName::Untimed => Self::Untimed,
        }
    }
}

impl Correlate {
    /// Runs it; the exit code is 1 when a program cannot be compared or a count differs.
    pub fn run(self) -> anyhow::Result<i32> {
        let resolved = lockstep_config::resolve(Some(&self.gpu), &self.settings);
        let resolved = resolved.context("configuration")?;
        for warning in &resolved.warnings {
            note!("lockstep: warning: {warning}\n");
        }
        let config = resolved.config;
        let architecture = config.device.compute_capability.architecture();
        let hardware_path = self
            .hardware
            .clone()
            .unwrap_or_else(|| data::find(&Path::new("validation/hardware").join(&self.gpu)));
        let mut hardware = Hardware::load(&hardware_path).with_context(|| {
            format!(
                "no measurements of `{}` to compare with; name them with --hardware",
                self.gpu
            )
        })?;
        hardware.state = self.state.into();
        ensure!(
            hardware.timed().is_some(),
            "{} has no warm.csv, so that nothing says how long programs take as they run",
            hardware_path.display()
        );
        let sets = Sets::load(&data::find(&self.sets))?;
        let workloads = programs::load(&data::find(&self.workloads))?;
        let chosen = self.chosen(&sets, &workloads, &hardware);
        ensure!(
            !chosen.is_empty(),
            "no program of these sets and sizes matches; see {} and --only",
            self.sets.display()
        );
        let what = match (self.counts, self.state) {
            (true, _) => "counts",
            (false, StateName::Cold) => "correlate",
            (false, StateName::AsRun) => "correlate-as-run",
        };
        let out = self
            .out
            .clone()
            .unwrap_or_else(|| Path::new("lockstep-out").join(format!("{what}-{}", self.gpu)));
        std::fs::create_dir_all(&out).with_context(|| format!("cannot make {}", out.display()))?;

        let runs = Programs {
            simulator: match &self.simulator {
                Some(path) => path.clone(),
                None => simulator::path()?,
            },
            gpu: &self.gpu,
            settings: &self.settings,
            binaries: self
                .binaries
                .clone()
                .unwrap_or_else(|| Path::new(".lockstep/bin").join(format!("sm_{architecture}"))),
            out: out.join("runs"),
            limit: self.limit,
            jobs: self.jobs,
            reuse: self.reuse,
            counts: self.counts,
            state: hardware.state,
        }
        .run(&chosen)?;
        let report = compare(&self.gpu, &sets, &hardware, &runs);
        if self.counts {
            say!("{}", counts::text(&report));
            write(&out.join("counts.csv"), counts::csv(&report)?)?;
            say!("results in {}\n", out.display());
            return Ok(i32::from(!report.programs.iter().all(counts::agrees)));
        }
        self.write(&report, &hardware, &out)?;
        let exact = report.exact();
        Ok(i32::from(
            !report.failures().is_empty() || exact.equal != exact.repeating,
        ))
    }

    /// The programs to run, each with its size.
    fn chosen(
        &self,
        sets: &Sets,
        workloads: &BTreeMap<String, Workload>,
        hardware: &Hardware,
    ) -> Vec<(Case, Workload)> {
        let wanted: Vec<Set> = match (self.quick, self.programs.is_empty()) {
            // A count is right or wrong: nothing can be fitted to the sealed set.
            _ if self.counts && self.programs.is_empty() => Set::ALL.to_vec(),
            (true, true) => vec![Set::Development],
            (false, true) => vec![Set::Calibration, Set::Development, Set::Untimed],
            (_, false) => self.programs.iter().map(|name| (*name).into()).collect(),
        };
        let sizes: Vec<String> = match (self.quick, self.sizes.is_empty()) {
            _ if self.counts && self.sizes.is_empty() => {
                ["default", "medium", "large"].map(String::from).to_vec()
            }
            (true, true) => vec!["default".into()],
            (false, true) => vec!["default".into(), "medium".into()],
            (_, false) => self.sizes.clone(),
        };
        let mut chosen = Vec::new();
        for set in wanted {
            for program in sets.programs(set) {
                for size in &sizes {
                    let case = Case {
                        program: program.into(),
                        size: size.clone(),
                    };
                    let name = format!("{program}/{size}");
                    let matches =
                        self.only.is_empty() || self.only.iter().any(|text| name.contains(text));
                    // A program without this size was not measured at it; one that the table lacks
                    // altogether is kept, so that it is listed.
                    let has_size = workloads
                        .get(program)
                        .is_none_or(|workload| workload.arguments(size).is_some());
                    // Counts are those of hardware, which did not run every size, nor every untimed program.
                    let is_measured = hardware.cold.launches.contains_key(&case);
                    if (self.counts || set == Set::Untimed) && !is_measured {
                        continue;
                    }
                    if matches && (has_size || is_measured) {
                        chosen.push((case, workloads.get(program).cloned().unwrap_or_default()));
                    }
                }
            }
        }
        chosen
    }

    fn write(&self, report: &Report, hardware: &Hardware, out: &Path) -> anyhow::Result<()> {
        let said = text::text(report);
        let mut provenance = hardware
            .timed()
            .map_or(Vec::new(), |table| table.provenance.clone());
        provenance.push((
            "simulator".into(),
            format!(
                "lockstep {}, {}",
                env!("CARGO_PKG_VERSION"),
                self.commit.as_deref().unwrap_or("commit not named")
            ),
        ));
        provenance.push((
            "settings changed".into(),
            if self.settings.is_empty() {
                "none".into()
            } else {
                self.settings.join(" ")
            },
        ));
        let files = [
            ("report.txt", said.clone().into_bytes()),
            ("scatter.svg", plot::svg(report).into_bytes()),
            ("index.html", page::html(report, &provenance).into_bytes()),
            ("comparison.csv", table::csv(report)?),
            ("stalls.csv", stalls::csv(report).into_bytes()),
        ];
        for (name, contents) in files {
            write(&out.join(name), contents)?;
        }
        say!("{said}");
        if self.stalls {
            say!("\n{}\n", stalls::text(report));
        }
        say!("results in {}\n", out.display());
        let (Some(path), Some(commit)) = (&self.history, &self.commit) else {
            return Ok(());
        };
        ensure!(
            self.only.is_empty() && self.settings.is_empty(),
            "--history keeps figures of whole sets with the settings of the catalogue; leave --only and --set out"
        );
        let (name, day) = commit.split_once(':').unwrap_or((commit, ""));
        let mut rows = history::load(path)?;
        history::add(&mut rows, history::rows(report, name, day));
        history::save(path, &rows).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(())
    }
}

fn write(path: &Path, contents: Vec<u8>) -> anyhow::Result<()> {
    std::fs::write(path, contents).with_context(|| format!("cannot write {}", path.display()))
}
