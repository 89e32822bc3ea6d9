//! Regions of a program: `--region`, which may be repeated.
//!
//! A launch is within a region by its name, its number, or by what the program was at when it made it: a range of
//! NVTX, or between the profiler's start and its stop.

use crate::selection::{Launches, LaunchesError, named};
use lockstep_runtime::{Annotations, LaunchSummary};
use regex_lite::Regex;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// What `kernels.csv` says of a launch that is within none.
const OUTSIDE: &str = "outside";

/// One region.
#[derive(Clone, Debug)]
pub struct Region {
    text: String,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    /// Ranges whose whole name suits, or whose `name@domain` does.
    Nvtx(Regex),
    /// From the profiler's start to its stop.
    Profiler,
    /// Found in the name of the kernel.
    Kernel(Regex),
    /// Numbers of launches.
    Launch(Launches),
}

/// A region that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RegionError {
    /// Its kind.
    #[error(
        "`{0}` is no region; write nvtx:NAME, nvtx:NAME@DOMAIN, profiler, kernel:REGEX or launch:RANGE"
    )]
    Unknown(String),
    /// Its pattern.
    #[error("`{text}`: {reason}")]
    Pattern {
        /// The region.
        text: String,
        /// What is wrong.
        reason: String,
    },
    /// Its numbers.
    #[error(transparent)]
    Launches(#[from] LaunchesError),
}

impl FromStr for Region {
    type Err = RegionError;

    fn from_str(text: &str) -> Result<Self, RegionError> {
        let unknown = || RegionError::Unknown(text.into());
        let pattern = |pattern: &str| {
            Regex::new(pattern).map_err(|error| RegionError::Pattern {
                text: text.into(),
                reason: error.to_string(),
            })
        };
        let kind = match text.split_once(':') {
            None if text == "profiler" => Kind::Profiler,
            None => return Err(unknown()),
            Some((_, "")) => return Err(unknown()),
            Some(("nvtx", name)) => Kind::Nvtx(pattern(&format!("^(?:{name})$"))?),
            Some(("kernel", name)) => Kind::Kernel(pattern(name)?),
            Some(("launch", numbers)) => Kind::Launch(numbers.parse()?),
            Some(_) => return Err(unknown()),
        };
        Ok(Self {
            text: text.into(),
            kind,
        })
    }
}

impl fmt::Display for Region {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl Region {
    /// Whether a launch is within.
    pub fn holds(&self, launch: &LaunchSummary) -> bool {
        match &self.kind {
            Kind::Nvtx(pattern) => launch.within.ranges.iter().any(|range| {
                pattern.is_match(&range.name)
                    || pattern.is_match(&format!("{}@{}", range.name, range.domain))
            }),
            Kind::Profiler => launch.within.profiled,
            Kind::Kernel(pattern) => named(pattern, &launch.kernel),
            Kind::Launch(launches) => launches.contains(launch.id),
        }
    }

    /// Whether the program has to say what it is at.
    fn is_annotated(&self) -> bool {
        matches!(self.kind, Kind::Nvtx(_) | Kind::Profiler)
    }

    /// Whether it is a range of NVTX.
    pub fn is_nvtx(&self) -> bool {
        matches!(self.kind, Kind::Nvtx(_))
    }
}

/// The region of a launch as `kernels.csv` has it: the first that holds it. Empty where there are none.
pub fn region_of(regions: &[Region], launch: &LaunchSummary) -> String {
    if regions.is_empty() {
        return String::new();
    }
    let first = regions.iter().find(|region| region.holds(launch));
    first.map_or_else(|| OUTSIDE.into(), Region::to_string)
}

/// What was within each region, in sentences.
pub fn remarks(regions: &[Region], launches: &[LaunchSummary]) -> Vec<String> {
    let sentence = |region: &Region| {
        let within = launches.iter().filter(|launch| region.holds(launch));
        format!(
            "{} of {} launches were within {region}",
            within.count(),
            launches.len()
        )
    };
    regions.iter().map(sentence).collect()
}

/// What a user should know of regions: those that nothing was in, and what the program did not begin or end.
pub fn warnings(
    regions: &[Region],
    launches: &[LaunchSummary],
    annotations: &Annotations,
) -> Vec<String> {
    let empty = |region: &&Region| !launches.iter().any(|launch| region.holds(launch));
    let names: Vec<&str> = annotations.names().collect();
    let ranges = match names.is_empty() {
        true => "the program had no NVTX range".to_owned(),
        false => format!("ranges of the program: {}", names.join(", ")),
    };
    let sentence = |region: &Region| match region.is_nvtx() {
        true => format!("no launch was within --region {region}; {ranges}"),
        false => format!("no launch was within --region {region}"),
    };
    let mut all: Vec<String> = regions.iter().filter(empty).map(sentence).collect();
    if regions.iter().any(Region::is_annotated) {
        all.extend(annotations.unbalanced().iter().cloned());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selection::tests::launch;
    use lockstep_protocol::RangeName;
    use std::sync::Arc;

    #[test]
    fn regions_are_read_and_nonsense_is_named() {
        for right in [
            "profiler",
            "nvtx:solve",
            "nvtx:a|b",
            "kernel:add",
            "launch:0,5-9",
        ] {
            assert_eq!(right.parse::<Region>().expect(right).to_string(), right);
        }
        for wrong in ["", "solve", "nvtx:", "profiler:x", "range:x"] {
            let error = wrong.parse::<Region>().expect_err(wrong);
            assert!(error.to_string().contains("is no region"), "{error}");
        }
        for wrong in ["kernel:(", "nvtx:[", "launch:x"] {
            assert!(wrong.parse::<Region>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_whole_name_of_a_range_must_suit_with_or_without_its_domain() {
        let mut inside = launch("_Z3addPff", 3);
        inside.within.ranges = vec![Arc::new(RangeName {
            name: "solve".into(),
            domain: "library".into(),
        })];
        let holds = |text: &str| text.parse::<Region>().unwrap().holds(&inside);
        assert!(holds("nvtx:solve"));
        assert!(holds("nvtx:solve@library"));
        assert!(holds("nvtx:sol.*"));
        assert!(!holds("nvtx:sol"));
        assert!(!holds("nvtx:solve@other"));
        assert!(!holds("profiler"));
        assert!(holds("kernel:add"));
        assert!(holds("launch:3"));
    }

    #[test]
    fn a_launch_has_the_first_region_that_holds_it() {
        let regions = ["launch:0", "kernel:add"].map(|text| text.parse().unwrap());
        assert_eq!(region_of(&regions, &launch("add", 0)), "launch:0");
        assert_eq!(region_of(&regions, &launch("add", 1)), "kernel:add");
        assert_eq!(region_of(&regions, &launch("scale", 1)), "outside");
        assert_eq!(region_of(&[], &launch("scale", 1)), "");
    }

    #[test]
    fn a_region_that_holds_nothing_is_named_with_what_there_was() {
        let regions = ["nvtx:solv".parse().unwrap()];
        let all = warnings(&regions, &[launch("add", 0)], &Annotations::default());
        assert_eq!(
            all,
            ["no launch was within --region nvtx:solv; the program had no NVTX range"]
        );
    }
}
