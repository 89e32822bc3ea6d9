//! `validation/sets.toml`: which programs may be used for what.

use crate::{CorrelationError, read};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// What a family of programs is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Set {
    /// Parameters may be fitted to it.
    Calibration,
    /// Looked at, never fitted to.
    Development,
    /// Run once a release.
    Sealed,
    /// Counted, but without cycles in any figure.
    Untimed,
}

impl Set {
    /// All of them, in the order in which they are printed.
    pub const ALL: [Set; 4] = [
        Set::Calibration,
        Set::Development,
        Set::Sealed,
        Set::Untimed,
    ];

    /// As the file spells it.
    pub fn name(self) -> &'static str {
        match self {
            Set::Calibration => "calibration",
            Set::Development => "development",
            Set::Sealed => "sealed",
            Set::Untimed => "untimed",
        }
    }
}

/// A family of programs, which is never divided between sets.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Family {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub set: Set,
    /// Why it has no cycles in any figure, where it is untimed.
    pub because: Option<String>,
    /// Its programs.
    pub programs: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    family: Vec<Family>,
}

/// The split of all programs.
#[derive(Clone, Debug)]
pub struct Sets {
    /// In the file's order.
    pub families: Vec<Family>,
    of_program: BTreeMap<String, usize>,
}

impl Sets {
    /// Reads and checks the file.
    pub fn load(path: &Path) -> Result<Self, CorrelationError> {
        Self::parse(&read(path)?).map_err(|problem| CorrelationError::malformed(path, problem))
    }

    /// From the file's text; a program in two families and an untimed family without a reason are
    /// refused.
    pub fn parse(text: &str) -> Result<Self, String> {
        let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
        let mut of_program = BTreeMap::new();
        for (index, family) in file.family.iter().enumerate() {
            if (family.set == Set::Untimed) != family.because.is_some() {
                return Err(format!(
                    "family `{}`: `because` goes with `set = \"untimed\"`, and only with it",
                    family.name
                ));
            }
            for program in &family.programs {
                if let Some(other) = of_program.insert(program.clone(), index) {
                    return Err(format!(
                        "`{program}` is in the families `{}` and `{}`; a program has one",
                        file.family[other].name, family.name
                    ));
                }
            }
        }
        Ok(Self {
            families: file.family,
            of_program,
        })
    }

    /// The set of a program.
    pub fn set_of(&self, program: &str) -> Option<Set> {
        self.family_of(program).map(|family| family.set)
    }

    /// The family of a program.
    pub fn family_of(&self, program: &str) -> Option<&Family> {
        self.of_program
            .get(program)
            .map(|&index| &self.families[index])
    }

    /// Programs of a set, in the file's order.
    pub fn programs(&self, set: Set) -> impl Iterator<Item = &str> {
        self.families
            .iter()
            .filter(move |family| family.set == set)
            .flat_map(|family| family.programs.iter().map(String::as_str))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_in_one_set() {
        let text = r#"
            [[family]]
            name = "sums"
            set = "calibration"
            programs = ["scan", "reduce"]
            [[family]]
            name = "races"
            set = "untimed"
            because = "chance decides"
            programs = ["race"]
        "#;
        let sets = Sets::parse(text).expect("sets");
        assert_eq!(sets.set_of("reduce"), Some(Set::Calibration));
        assert_eq!(sets.set_of("race"), Some(Set::Untimed));
        assert_eq!(sets.set_of("other"), None);
        assert_eq!(
            sets.programs(Set::Calibration).collect::<Vec<_>>(),
            ["scan", "reduce"]
        );
        let twice = text.replace("\"race\"", "\"scan\"");
        assert!(
            Sets::parse(&twice)
                .expect_err("twice")
                .contains("`scan` is in the families")
        );
        let without = text.replace("because = \"chance decides\"", "");
        assert!(Sets::parse(&without).is_err());
    }

    #[test]
    fn the_projects_own_file_is_well_formed_and_knows_every_program() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let sets = Sets::load(&root.join("validation/sets.toml")).expect("sets");
        let table: toml::Table = read(&root.join("workloads/workloads.toml"))
            .expect("table")
            .parse()
            .expect("TOML");
        let programs = table["program"].as_array().expect("programs");
        let mut listed = 0;
        // Programs for several GPUs have no measurements to be held against.
        for program in programs.iter().filter(|one| one.get("gpus").is_none()) {
            let name = program["name"].as_str().expect("name");
            assert!(
                sets.set_of(name).is_some(),
                "{name} is in no family of sets.toml"
            );
            listed += 1;
        }
        let known: usize = sets
            .families
            .iter()
            .map(|family| family.programs.len())
            .sum();
        assert_eq!(
            known, listed,
            "sets.toml names a program that does not exist"
        );
        for set in Set::ALL {
            assert!(
                sets.programs(set).next().is_some(),
                "{} is empty",
                set.name()
            );
        }
    }
}
