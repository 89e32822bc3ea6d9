//! An import on its way: options that are taken one idea at a time, each with the settings that
//! follow from it.

use super::Imported;
use super::file::{Setting, file};
use super::options::{Given, Options};
use crate::{ConfigError, GpuConfig, load};
use std::collections::BTreeSet;

/// Numbers beyond this are no sizes of anything.
const LARGEST: f64 = 1e15;

/// Values up to this many bytes stand beside what follows from them.
const SHORT: usize = 32;

/// Settings that stand and fall together, and the options that they come from.
struct Step {
    options: Vec<String>,
    settings: Vec<Setting>,
}

/// Options, what they have become, and what they have not.
pub(super) struct Steps<'import> {
    /// Everything that was given.
    pub options: &'import Options,
    /// The GPU below.
    pub below: &'import GpuConfig,
    steps: Vec<Step>,
    taken: BTreeSet<String>,
    /// What was not used, and what it would have changed.
    pub unused: Vec<(String, String)>,
}

impl<'import> Steps<'import> {
    /// Nothing taken yet.
    pub fn new(options: &'import Options, below: &'import GpuConfig) -> Self {
        Self {
            options,
            below,
            steps: Vec::new(),
            taken: BTreeSet::new(),
            unused: Vec::new(),
        }
    }

    /// An option under the first of these names that was given.
    pub fn given(&self, names: &[&str]) -> Option<(String, &'import Given)> {
        let found = names
            .iter()
            .find_map(|name| self.options.get_key_value(*name));
        found.map(|(name, given)| (name.clone(), given))
    }

    /// Settings that follow from options, with how they do if they are not simply what was written.
    pub fn take(&mut self, options: &[&str], how: &str, settings: &[(&str, String)]) {
        let options: Vec<String> = options
            .iter()
            .filter(|name| self.options.contains_key(**name))
            .map(|name| (*name).to_string())
            .collect();
        self.taken.extend(options.iter().cloned());
        let written: Vec<String> = options.iter().map(|name| self.written(name)).collect();
        let written = written.join(", ");
        let source = match how {
            "" => format!("[published: {written}]"),
            how => format!("[derived: {written}; {how}]"),
        };
        let settings = settings.iter().map(|(key, value)| Setting {
            key: (*key).into(),
            value: value.clone(),
            source: source.clone(),
        });
        self.steps.push(Step {
            options,
            settings: settings.collect(),
        });
    }

    /// An option as it was written; where it stands, if it is long.
    fn written(&self, name: &str) -> String {
        let given = &self.options[name];
        match given.value.len() <= SHORT {
            true => format!("-{name} {}", given.value),
            false => format!("-{name} at {}", given.place),
        }
    }

    /// Says what an option, or a part of one, would have changed.
    pub fn leave(&mut self, option: &str, because: impl Into<String>) {
        self.taken
            .insert(option.split(' ').next().unwrap_or(option).into());
        self.unused.push((format!("-{option}"), because.into()));
    }

    /// Whether somebody has said something about an option.
    pub fn is_settled(&self, option: &str) -> bool {
        self.taken.contains(option)
    }

    /// A number under one of these names.
    pub fn number(&self, names: &[&str]) -> Result<Option<u64>, ConfigError> {
        let decimal = self.decimal(names)?;
        let Some(number) = decimal else {
            return Ok(None);
        };
        match number.fract() == 0.0 {
            true => Ok(Some(number as u64)),
            false => Err(self.wrong(names, "a whole number")),
        }
    }

    /// A number that need not be whole, not below zero.
    pub fn decimal(&self, names: &[&str]) -> Result<Option<f64>, ConfigError> {
        let Some((_, given)) = self.given(names) else {
            return Ok(None);
        };
        let number = decimal(&given.value);
        number
            .map(Some)
            .ok_or_else(|| self.wrong(names, "a number"))
    }

    /// Numbers between separators.
    pub fn list(&self, name: &str, separator: char) -> Result<Option<Vec<f64>>, ConfigError> {
        let Some((_, given)) = self.given(&[name]) else {
            return Ok(None);
        };
        let numbers = given.value.split(separator).map(decimal);
        let numbers: Option<Vec<f64>> = numbers.collect();
        let what = format!("numbers with `{separator}` between them");
        numbers.map(Some).ok_or_else(|| self.wrong(&[name], &what))
    }

    /// The error for a value that is not what it should be.
    pub fn wrong(&self, names: &[&str], what: &str) -> ConfigError {
        let (name, given) = match self.given(names) {
            Some((name, given)) => (name, given.clone()),
            None => (
                names.join(", "),
                Given {
                    place: String::new(),
                    value: String::new(),
                },
            ),
        };
        ConfigError::Malformed {
            path: given.place,
            message: format!("`-{name} {}`: write {what}", given.value),
        }
    }

    /// The file. Steps that the GPU below cannot take are left out, with the reason.
    pub fn finish(mut self, path: &str, base: &str) -> Result<Imported, ConfigError> {
        let lines = |steps: &[Step]| -> Vec<String> {
            let settings = steps.iter().flat_map(|step| &step.settings);
            settings.map(Setting::line).collect()
        };
        let mut steps = std::mem::take(&mut self.steps);
        if load(Some(base), &lines(&steps)).is_err() {
            let mut kept: Vec<Step> = Vec::new();
            for step in steps {
                kept.push(step);
                if let Err(error) = load(Some(base), &lines(&kept))
                    && let Some(step) = kept.pop()
                {
                    for option in step.options {
                        let because = format!("no GPU here can be built so: {error}");
                        self.unused.push((format!("-{option}"), because));
                    }
                }
            }
            steps = kept;
        }
        let settings: Vec<Setting> = steps.into_iter().flat_map(|step| step.settings).collect();
        self.unused.sort();
        Ok(Imported {
            text: file(path, base, &last_of_each(settings)),
            unused: self.unused,
        })
    }
}

/// A file has every key once: the last counts.
fn last_of_each(settings: Vec<Setting>) -> Vec<Setting> {
    let mut seen = BTreeSet::new();
    let mut kept: Vec<Setting> = settings
        .into_iter()
        .rev()
        .filter(|setting| seen.insert(setting.key.clone()))
        .collect();
    kept.reverse();
    kept
}

/// A number that is not below zero and not beyond any size.
pub(super) fn decimal(text: &str) -> Option<f64> {
    let number: f64 = text.trim().parse().ok()?;
    (0.0..=LARGEST).contains(&number).then_some(number)
}
