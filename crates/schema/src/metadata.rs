//! The metadata file: which counters, how often, in which mode.

use std::fs;
use std::path::Path;

use lockstep_counters::{DEVICE_GAUGES, Metric, measurable, stalls};
use lockstep_units::{Bytes, Duration};
use serde::{Deserialize, Serialize};

use super::error::SchemaError;
use super::nearest::nearest;
use lockstep_segment::layout::MOST_VALUES;

/// The file that is used when none is given.
const DEFAULT: &str = include_str!("../../../configs/counters/default.toml");
/// The file that is used when exact counts are asked for and no file is given.
const EXACT: &str = include_str!("../../../configs/counters/exact.toml");

/// Larger files are refused before they are read.
const LARGEST_FILE: u64 = 1 << 20;

/// How the counters of a real GPU are read. A simulated GPU is always exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Periodic sampling of the whole device, at no cost to the program.
    #[default]
    Sampled,
    /// Every kernel on its own, counted exactly, at milliseconds per launch.
    Exact,
    /// Only the time line of kernels, no counters.
    Timeline,
}

/// How the time line of kernels is learned in sampled mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Timeline {
    /// Launches as the host makes them; their place on the device follows from the warps that the
    /// hardware counts. Kernels stay as they are.
    #[default]
    Launches,
    /// Begin and end of every kernel, measured by code that CUPTI adds to it: eight instructions
    /// per warp on Hopper, which the counters then count too.
    Kernels,
    /// Nothing is learned of kernels, and no launch is touched: the whole GPU is one row.
    None,
}

/// A metadata file, checked.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Metadata {
    /// Time between two samples of the counters.
    pub interval: Duration,
    /// How a real GPU is read.
    #[serde(default)]
    pub mode: Mode,
    /// How kernels are placed in time.
    #[serde(default)]
    pub timeline: Timeline,
    /// Names or aliases, in the order of the columns.
    pub counters: Vec<String>,
    /// What else is read, and how often.
    #[serde(default)]
    pub gauges: GaugeSettings,
    /// The shared memory of a sampled process.
    #[serde(default)]
    pub segment: SegmentSettings,
}

/// Power, temperature, clocks and memory.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct GaugeSettings {
    /// Time between two readings, of gauges and of the process's host side.
    pub interval: Duration,
    /// Names, in any order.
    pub names: Vec<String>,
}

impl Default for GaugeSettings {
    fn default() -> Self {
        Self {
            interval: Duration::microseconds(100_000),
            names: DEVICE_GAUGES
                .iter()
                .map(|one| one.name.to_owned())
                .collect(),
        }
    }
}

/// Who may read the shared memory of a sampled process, and how large it may grow.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct SegmentSettings {
    /// Group that may read it; nobody but the user when empty.
    pub group: String,
    /// Bytes one process may use before the oldest unread records are given up.
    pub maximum: Bytes,
}

impl Default for SegmentSettings {
    fn default() -> Self {
        Self {
            group: String::new(),
            maximum: Bytes(256 << 20),
        }
    }
}

impl Default for Metadata {
    fn default() -> Self {
        Self::parse("built-in defaults", DEFAULT).expect("the default metadata file is tested")
    }
}

impl Metadata {
    /// The five counters, counted exactly.
    pub fn exact() -> Self {
        Self::parse("built-in defaults", EXACT).expect("the exact metadata file is tested")
    }

    /// Every counter that real GPUs have, without reasons for stalls, for a simulated one, which counts
    /// them all at once.
    pub fn of_everything() -> Self {
        let stalls: Vec<&str> = stalls().map(|counter| counter.name).collect();
        let counters = measurable().map(|counter| counter.name);
        let counters = counters.filter(|name| !stalls.contains(name));
        Self {
            counters: counters.map(str::to_owned).collect(),
            ..Self::default()
        }
    }

    /// Reads and checks the file at `path`.
    pub fn read(path: &Path) -> Result<Self, SchemaError> {
        let unreadable = |source| SchemaError::Unreadable {
            path: path.to_owned(),
            source,
        };
        let length = fs::metadata(path).map_err(unreadable)?.len();
        let place = path.display().to_string();
        if length > LARGEST_FILE {
            return Err(SchemaError::Malformed {
                place,
                because: format!("{length} bytes, and a metadata file has at most {LARGEST_FILE}"),
            });
        }
        Self::parse(&place, &fs::read_to_string(path).map_err(unreadable)?)
    }

    /// Checks `text`; `place` is what errors name.
    pub fn parse(place: &str, text: &str) -> Result<Self, SchemaError> {
        let parsed: Self = toml::from_str(text).map_err(|error| SchemaError::Malformed {
            place: place.to_owned(),
            because: error.to_string().trim_end().to_owned(),
        })?;
        parsed.check(place)?;
        Ok(parsed)
    }

    /// The text of a file that reads back to this.
    pub fn text(&self) -> String {
        toml::to_string(self).expect("plain values always have a TOML form")
    }

    fn check(&self, place: &str) -> Result<(), SchemaError> {
        let rules: [(&'static str, Duration, u64, &'static str); 2] = [
            (
                "interval",
                self.interval,
                100_000,
                "samples come at most every 100 us and at least every 10 s",
            ),
            (
                "gauges.interval",
                self.gauges.interval,
                1_000_000,
                "gauges are read at most every 1 ms and at least every 10 s",
            ),
        ];
        for (key, found, shortest, because) in rules {
            let length = nanoseconds(found);
            if length < shortest || length > 10_000_000_000 {
                return Err(SchemaError::OutOfRange {
                    place: place.to_owned(),
                    key,
                    found: found.to_string(),
                    because,
                });
            }
        }
        if self.segment.maximum.0 < 1 << 20 {
            return Err(SchemaError::OutOfRange {
                place: place.to_owned(),
                key: "segment.maximum",
                found: self.segment.maximum.to_string(),
                because: "a process needs at least 1 MiB",
            });
        }
        if self.counters.len() > MOST_VALUES {
            return Err(SchemaError::OutOfRange {
                place: place.to_owned(),
                key: "counters",
                found: format!("{} names", self.counters.len()),
                because: "a record has room for 16 counters",
            });
        }
        let mut seen: Vec<(&'static str, &str)> = Vec::new();
        for name in &self.counters {
            let counter = find_counter(place, name)?;
            if let Some((_, first)) = seen.iter().find(|(known, _)| *known == counter.name) {
                return Err(SchemaError::Twice {
                    place: place.to_owned(),
                    name: name.clone(),
                    first: (*first).to_owned(),
                });
            }
            seen.push((counter.name, name));
        }
        for name in &self.gauges.names {
            find_gauge(place, name)?;
        }
        Ok(())
    }

    /// The counters by registry entry, in the file's order.
    pub fn resolved_counters(&self) -> Vec<&'static Metric> {
        self.counters
            .iter()
            .filter_map(|name| find_counter("", name).ok())
            .collect()
    }

    /// Refuses what a real GPU cannot do in this mode, before any program is started.
    pub fn check_for_real_gpu(&self, place: &str) -> Result<(), SchemaError> {
        if self.mode != Mode::Sampled {
            return Ok(());
        }
        for counter in self.resolved_counters() {
            if !counter.can_be_sampled() {
                return Err(SchemaError::SeveralPasses {
                    place: place.to_owned(),
                    name: counter.name.to_owned(),
                    instead: instead_of(counter),
                });
            }
        }
        Ok(())
    }

    /// Time between two samples, in nanoseconds.
    pub fn interval_nanoseconds(&self) -> u64 {
        nanoseconds(self.interval)
    }

    /// Time between two readings of the gauges, in nanoseconds.
    pub fn gauge_interval_nanoseconds(&self) -> u64 {
        nanoseconds(self.gauges.interval)
    }
}

fn nanoseconds(length: Duration) -> u64 {
    length.0 / 1_000_000
}

fn instead_of(counter: &Metric) -> String {
    let near = format!("{}_pred_on", counter.name);
    if measurable().any(|one| one.name == near && one.can_be_sampled()) {
        format!("set mode = \"exact\", or sample `{near}` instead")
    } else {
        "set mode = \"exact\", or leave it out".to_owned()
    }
}

fn find_counter(place: &str, name: &str) -> Result<&'static Metric, SchemaError> {
    measurable()
        .find(|one| one.name == name || one.ncu.contains(&name))
        .ok_or_else(|| SchemaError::Unknown {
            place: place.to_owned(),
            kind: "counter",
            name: name.chars().take(96).collect(),
            nearest: quoted(nearest(
                name,
                measurable().flat_map(|one| one.ncu.iter().copied().chain([one.name])),
            )),
        })
}

fn find_gauge(place: &str, name: &str) -> Result<&'static Metric, SchemaError> {
    DEVICE_GAUGES
        .iter()
        .find(|one| one.name == name)
        .ok_or_else(|| SchemaError::Unknown {
            place: place.to_owned(),
            kind: "gauge",
            name: name.chars().take(96).collect(),
            nearest: quoted(nearest(name, DEVICE_GAUGES.iter().map(|one| one.name))),
        })
}

fn quoted(names: Vec<&str>) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        match Metadata::parse("my.toml", text) {
            Ok(metadata) => match metadata.check_for_real_gpu("my.toml") {
                Ok(()) => "accepted".to_owned(),
                Err(error) => error.to_string(),
            },
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn the_default_file_is_accepted_for_a_real_gpu() {
        Metadata::default().check_for_real_gpu("default").unwrap();
        assert_eq!(Metadata::default().resolved_counters().len(), 5);
    }

    #[test]
    fn every_file_of_the_catalogue_is_accepted() {
        assert_eq!(Metadata::exact().mode, Mode::Exact);
        let catalogue = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs/counters");
        let files: Vec<_> = fs::read_dir(catalogue)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        assert!(files.len() >= 4);
        for file in files {
            let metadata = Metadata::read(&file).unwrap();
            metadata
                .check_for_real_gpu(&file.display().to_string())
                .unwrap();
        }
    }

    #[test]
    fn a_file_reads_back_to_itself() {
        let metadata = Metadata::default();
        assert_eq!(
            Metadata::parse("again", &metadata.text()).unwrap(),
            metadata
        );
    }

    #[test]
    fn a_malformed_file_names_the_line() {
        let message = message("interval = \"10 ms\"\ncounters = [\"inst_executed\"\nmode = 3\n");
        assert!(
            message.starts_with("my.toml: malformed metadata: TOML parse error at line"),
            "{message}"
        );
    }

    #[test]
    fn an_unknown_key_is_refused() {
        let message = message("interval = \"10 ms\"\ncounters = []\nintervall = 3\n");
        assert!(message.contains("unknown field `intervall`"), "{message}");
    }

    #[test]
    fn an_unknown_counter_lists_the_nearest_names() {
        assert_eq!(
            message("interval = \"10 ms\"\ncounters = [\"inst_exeucted\"]\n"),
            "my.toml: no counter is called `inst_exeucted`; nearest: `inst_executed`, `inst_issued`, `thread_inst_executed`"
        );
    }

    #[test]
    fn an_alias_and_its_name_are_one_counter() {
        assert_eq!(
            message(
                "interval = \"1 ms\"\ncounters = [\"inst_executed\", \"sm__inst_executed.sum\"]\n"
            ),
            "my.toml: counter `sm__inst_executed.sum` is listed twice (first as `inst_executed`)"
        );
    }

    #[test]
    fn a_counter_of_several_passes_says_what_to_do() {
        assert_eq!(
            message("interval = \"1 ms\"\ncounters = [\"thread_inst_executed\"]\n"),
            "my.toml: `thread_inst_executed` needs several passes over a kernel, so it cannot be sampled while the program runs; set mode = \"exact\", or sample `thread_inst_executed_pred_on` instead"
        );
        assert_eq!(
            message(
                "mode = \"exact\"\ninterval = \"1 ms\"\ncounters = [\"thread_inst_executed\"]\n"
            ),
            "accepted"
        );
    }

    #[test]
    fn an_interval_out_of_range_is_refused() {
        assert_eq!(
            message("interval = \"10 us\"\ncounters = []\n"),
            "my.toml: `interval` = 10 us, but samples come at most every 100 us and at least every 10 s"
        );
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = Metadata::read(Path::new("/nonexistent/a.toml")).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("/nonexistent/a.toml: cannot read"),
            "{error}"
        );
    }

    #[test]
    fn a_record_has_room_for_what_is_asked_for() {
        let all = Metadata::of_everything();
        assert!(all.counters.iter().any(|name| name == "inst_executed"));
        assert!(Metadata::parse("my.toml", &all.text()).is_ok());
        let names: Vec<String> = measurable().map(|one| format!("{:?}", one.name)).collect();
        let text = format!("interval = \"1 ms\"\ncounters = [{}]\n", names.join(","));
        let found = message(&text);
        assert!(
            found.contains("a record has room for 16 counters"),
            "{found}"
        );
    }
}
