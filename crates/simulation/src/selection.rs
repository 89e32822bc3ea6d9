//! Which launches take their time: `--kernels REGEX`, `--launches RANGE` and `--region`.
//!
//! A launch that is not chosen runs in functional mode, which is faster and leaves the same
//! values. Without a choice, all launches run in the mode of the run.

use crate::regions::{self, Region};
use lockstep_runtime::LaunchSummary;
use regex_lite::Regex;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use thiserror::Error;

/// A choice of launches. Where several parts are given, a launch must suit all of them.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Found in the name of the kernel, mangled or as it is written.
    pub kernels: Option<Regex>,
    /// Numbers of launches, from 0, as `kernels.csv` has them.
    pub launches: Option<Launches>,
    /// Regions of the program; a launch suits if any of them holds it, or if there is none.
    pub regions: Vec<Region>,
}

impl Selection {
    /// Whether there is a choice at all.
    pub fn is_everything(&self) -> bool {
        self.kernels.is_none() && self.launches.is_none() && self.regions.is_empty()
    }

    /// Whether a launch is chosen.
    pub fn chooses(&self, launch: &LaunchSummary) -> bool {
        let (kernels, launches) = (self.kernels.as_ref(), self.launches.as_ref());
        kernels.is_none_or(|pattern| named(pattern, &launch.kernel))
            && launches.is_none_or(|launches| launches.contains(launch.id))
            && (self.regions.is_empty() || self.regions.iter().any(|one| one.holds(launch)))
    }

    /// The region of a launch as `kernels.csv` has it.
    pub fn region_of(&self, launch: &LaunchSummary) -> String {
        regions::region_of(&self.regions, launch)
    }
}

/// Whether a pattern is found in the name of a kernel, mangled or as it is written.
pub fn named(pattern: &Regex, kernel: &str) -> bool {
    pattern.is_match(kernel) || written(kernel).is_some_and(|name| pattern.is_match(&name))
}

/// The name of a kernel as a program writes it.
fn written(kernel: &str) -> Option<String> {
    cpp_demangle::Symbol::new(kernel).ok()?.demangle().ok()
}

/// Numbers of launches, such as `0,5-9,20-`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launches(Vec<RangeInclusive<u64>>);

/// Numbers that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{found}` is no number of a launch and no range; write for example 0,5-9,20-")]
pub struct LaunchesError {
    found: String,
}

impl Launches {
    /// Whether a number is among them.
    pub fn contains(&self, launch: u64) -> bool {
        self.0.iter().any(|range| range.contains(&launch))
    }
}

impl FromStr for Launches {
    type Err = LaunchesError;

    fn from_str(text: &str) -> Result<Self, LaunchesError> {
        text.split(',')
            .map(|part| {
                let part = part.trim();
                range(part).ok_or_else(|| LaunchesError { found: part.into() })
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

fn range(text: &str) -> Option<RangeInclusive<u64>> {
    let Some((first, last)) = text.split_once('-') else {
        let only = text.parse().ok()?;
        return Some(only..=only);
    };
    let (first, last) = (first.trim(), last.trim());
    if first.is_empty() && last.is_empty() {
        return None;
    }
    let first = if first.is_empty() {
        0
    } else {
        first.parse().ok()?
    };
    let last = if last.is_empty() {
        u64::MAX
    } else {
        last.parse().ok()?
    };
    (first <= last).then_some(first..=last)
}

impl fmt::Display for Launches {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, range) in self.0.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            let (first, last) = (range.start(), range.end());
            match *last {
                u64::MAX => write!(formatter, "{comma}{first}-")?,
                last if last == *first => write!(formatter, "{comma}{first}")?,
                last => write!(formatter, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use lockstep_runtime::Within;

    /// A launch of which only name and number matter.
    pub(crate) fn launch(kernel: &str, id: u64) -> LaunchSummary {
        LaunchSummary {
            id,
            kernel: kernel.into(),
            gpu: 0,
            context: 0,
            stream: 0,
            grid: [1; 3],
            block: [1; 3],
            registers: 0,
            shared: 0,
            within: Within::default(),
            result: None,
        }
    }

    #[test]
    fn ranges_are_read_and_written_and_nonsense_is_named() {
        let check = |text: &str, expected: &str| {
            let launches: Launches = text.parse().expect(text);
            assert_eq!(launches.to_string(), expected);
        };
        check("3", "3");
        check("0, 5-9 ,20-", "0,5-9,20-");
        check("-4", "0-4");
        for wrong in ["", "-", "a", "9-5", "1,,2", "1-2-3", "18446744073709551616"] {
            let error = wrong.parse::<Launches>().expect_err(wrong);
            assert!(error.to_string().contains("no range"), "{error}");
        }
    }

    #[test]
    fn a_launch_must_suit_both_parts_and_names_are_found_either_way() {
        let selection = Selection {
            kernels: Some(Regex::new(r"^scale\(float").unwrap()),
            launches: Some("1-2".parse().unwrap()),
            ..Selection::default()
        };
        assert!(!selection.chooses(&launch("_Z5scalePff", 0)));
        assert!(!selection.chooses(&launch("_Z3addPff", 1)));
        let mangled = Selection {
            kernels: Some(Regex::new("5scale").unwrap()),
            ..Selection::default()
        };
        assert!(mangled.chooses(&launch("_Z5scalePff", 7)));
        assert!(selection.chooses(&launch("_Z5scalePff", 2)));
        assert!(Selection::default().chooses(&launch("anything", 9)));
    }

    #[test]
    fn regions_are_united_and_the_other_parts_narrow_them() {
        let mut selection = Selection {
            regions: ["kernel:scale", "launch:5"]
                .map(|text| text.parse().unwrap())
                .into(),
            ..Selection::default()
        };
        assert!(!selection.is_everything());
        assert!(selection.chooses(&launch("_Z5scalePff", 7)));
        assert!(selection.chooses(&launch("_Z3addPff", 5)));
        assert!(!selection.chooses(&launch("_Z3addPff", 7)));
        selection.launches = Some("0-5".parse().unwrap());
        assert!(!selection.chooses(&launch("_Z5scalePff", 7)));
        assert!(selection.chooses(&launch("_Z5scalePff", 2)));
    }
}
