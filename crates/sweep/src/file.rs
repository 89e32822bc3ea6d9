//! The sweep file: TOML that names programs, GPUs and settings, fixed or in axes.
//!
//! ```toml
//! gpu = "v100"                  # what every point has
//! program = "./hydrodynamics"
//! arguments = "22 2"
//! options = "--cold-caches"     # further options of `lockstep run`
//! warm-start = 1000             # launches before this one run once, functionally, for all points
//!
//! [set]                         # settings, the same for every point
//! "dram.clock" = "877 MHz"
//!
//! [grid]                        # every combination of these
//! "sm.warps" = [32, 64]
//! arguments = ["22 2", "30 2"]
//!
//! [[list]]                      # keys that change together
//! "device.clock" = ["500 MHz", "1312 MHz"]
//! "l2.clock" = ["500 MHz", "1312 MHz"]
//! ```
//!
//! `[[part]]` tables have the same keys and lie above what the file says outside them: the points of
//! a sweep are those of its parts, one after the other. `[plot]` and `[pareto]` name columns of the
//! table that is made.

use crate::SweepError;
use std::collections::BTreeMap;
use toml::{Table, Value};

/// Sweep files beyond this many bytes are none.
const MAXIMUM_FILE: u64 = 1 << 20;

/// Keys that are no settings of a GPU and may stand in `[grid]` and `[[list]]` as well.
pub(crate) const PLAIN: &[&str] = &[
    "gpu",
    "program",
    "kernel",
    "arguments",
    "options",
    "warm-start",
];

/// A sweep as its author wrote it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct File {
    /// What the points are made of, in order.
    pub parts: Vec<Part>,
    /// What is drawn.
    pub plot: Plot,
    /// Columns of which less is better, then those of which more is.
    pub pareto: Option<Pareto>,
}

/// Settings that are fixed and settings that vary.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Part {
    /// Values by key, the same for every point.
    pub fixed: BTreeMap<String, Value>,
    /// Every combination of one entry of each axis is a point.
    pub axes: Vec<Axis>,
}

/// Keys that change together, each with as many values as the others.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    /// Values by key.
    pub values: BTreeMap<String, Vec<Value>>,
}

impl Axis {
    /// How many places it has.
    pub fn length(&self) -> usize {
        self.values.values().next().map_or(0, Vec::len)
    }
}

/// Columns of the plot; what is not named is chosen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plot {
    /// Along.
    pub x: Option<String>,
    /// Upwards.
    pub y: Option<String>,
}

/// Columns of the Pareto front.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pareto {
    /// Less is better.
    pub minimize: Vec<String>,
    /// More is better.
    pub maximize: Vec<String>,
}

impl File {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, or is no sweep file.
    pub fn read(path: &std::path::Path) -> Result<Self, SweepError> {
        let size = std::fs::metadata(path).map_err(SweepError::at(path))?.len();
        let name = path.display().to_string();
        if size > MAXIMUM_FILE {
            let message = format!("{size} bytes are too many for a sweep file");
            return Err(SweepError::malformed(&name, message));
        }
        let text = std::fs::read_to_string(path).map_err(SweepError::at(path))?;
        Self::parse(&name, &text)
    }

    /// Reads text; `path` is for messages.
    ///
    /// # Errors
    /// It is no sweep file.
    pub fn parse(path: &str, text: &str) -> Result<Self, SweepError> {
        let reader = Reader { path };
        let mut table: Table = text.parse().map_err(|error: toml::de::Error| {
            SweepError::malformed(path, error.to_string().trim_end())
        })?;
        let plot = reader.plot(table.remove("plot"))?;
        let pareto = reader.pareto(table.remove("pareto"))?;
        let parts = table.remove("part");
        let below = reader.part(&Part::default(), table)?;
        let parts = match parts {
            None => vec![below],
            Some(parts) => {
                let tables = reader.tables("part", parts)?;
                let read = tables.into_iter().map(|part| reader.part(&below, part));
                read.collect::<Result<_, _>>()?
            }
        };
        Ok(Self {
            parts,
            plot,
            pareto,
        })
    }
}

/// Reads tables of one file.
struct Reader<'path> {
    path: &'path str,
}

impl Reader<'_> {
    fn wrong(&self, message: impl Into<String>) -> SweepError {
        SweepError::malformed(self.path, message)
    }

    /// A part above what the file says for all.
    fn part(&self, below: &Part, table: Table) -> Result<Part, SweepError> {
        let mut part = below.clone();
        for (key, value) in table {
            match key.as_str() {
                "set" => part.fixed.extend(flatten(self.table("set", value)?)),
                "grid" => {
                    for (key, values) in flatten(self.table("grid", value)?) {
                        let values = self.values(&key, values)?;
                        part.axes.push(Axis {
                            values: BTreeMap::from([(key, values)]),
                        });
                    }
                }
                "list" => {
                    for table in self.tables("list", value)? {
                        part.axes.push(self.list(table)?);
                    }
                }
                key if PLAIN.contains(&key) => {
                    part.fixed.insert(key.into(), value);
                }
                _ => return Err(self.unknown(&key)),
            }
        }
        self.refuse_twice(&part)?;
        Ok(part)
    }

    fn unknown(&self, key: &str) -> SweepError {
        if key.contains('.') || key.contains('-') {
            return self.wrong(format!(
                "`{key}` stands outside every section: settings of a GPU belong into [set], [grid] or [[list]]"
            ));
        }
        let known = ["set", "grid", "list", "part", "plot", "pareto"];
        let known = PLAIN.iter().copied().chain(known);
        let nearest = lockstep_config::nearest(key, known.clone());
        let nearest = nearest.map_or(String::new(), |name| format!("; did you mean `{name}`?"));
        let known = known.collect::<Vec<_>>().join(", ");
        self.wrong(format!(
            "no key of a sweep is called `{key}`{nearest}; known: {known}"
        ))
    }

    fn list(&self, table: Table) -> Result<Axis, SweepError> {
        let mut axis = Axis::default();
        for (key, values) in flatten(table) {
            let values = self.values(&key, values)?;
            if let Some((other, known)) = axis.values.first_key_value()
                && known.len() != values.len()
            {
                return Err(self.wrong(format!(
                    "[[list]]: `{key}` has {} values and `{other}` has {}; keys of a list change together",
                    values.len(),
                    known.len()
                )));
            }
            axis.values.insert(key, values);
        }
        if axis.values.is_empty() {
            return Err(self.wrong("[[list]] names no key"));
        }
        Ok(axis)
    }

    /// What one place of an axis chooses from.
    fn values(&self, key: &str, value: Value) -> Result<Vec<Value>, SweepError> {
        match value {
            Value::Array(values) if !values.is_empty() => Ok(values),
            other => Err(self.wrong(format!(
                "`{key}` = {other}: write the values to take as a list, for example `\"{key}\" = [32, 64]`"
            ))),
        }
    }

    /// A key that two axes set would have two values.
    fn refuse_twice(&self, part: &Part) -> Result<(), SweepError> {
        let mut seen = std::collections::BTreeSet::new();
        for key in part.axes.iter().flat_map(|axis| axis.values.keys()) {
            if !seen.insert(key) {
                return Err(self.wrong(format!("`{key}` varies in two places; leave one out")));
            }
        }
        Ok(())
    }

    fn plot(&self, value: Option<Value>) -> Result<Plot, SweepError> {
        let mut plot = Plot::default();
        let Some(value) = value else { return Ok(plot) };
        for (key, value) in self.table("plot", value)? {
            let column = Some(self.text(&key, value)?);
            match key.as_str() {
                "x" => plot.x = column,
                "y" => plot.y = column,
                _ => return Err(self.wrong(format!("[plot] has `x` and `y`, and no `{key}`"))),
            }
        }
        Ok(plot)
    }

    fn pareto(&self, value: Option<Value>) -> Result<Option<Pareto>, SweepError> {
        let Some(value) = value else { return Ok(None) };
        let mut pareto = Pareto::default();
        for (key, value) in self.table("pareto", value)? {
            let columns = match value {
                Value::Array(columns) => columns,
                one => vec![one],
            };
            let columns = columns.into_iter().map(|column| self.text(&key, column));
            let columns = columns.collect::<Result<_, _>>()?;
            match key.as_str() {
                "minimize" => pareto.minimize = columns,
                "maximize" => pareto.maximize = columns,
                _ => {
                    let message = format!("[pareto] has `minimize` and `maximize`, and no `{key}`");
                    return Err(self.wrong(message));
                }
            }
        }
        if pareto.minimize.len() + pareto.maximize.len() != 2 {
            return Err(self.wrong("[pareto] takes two columns in all"));
        }
        Ok(Some(pareto))
    }

    fn text(&self, key: &str, value: Value) -> Result<String, SweepError> {
        match value {
            Value::String(text) => Ok(text),
            other => Err(self.wrong(format!("`{key}` = {other}: write the name of a column"))),
        }
    }

    fn table(&self, name: &str, value: Value) -> Result<Table, SweepError> {
        match value {
            Value::Table(table) => Ok(table),
            other => Err(self.wrong(format!("`{name}` = {other}, but it is a section: [{name}]"))),
        }
    }

    fn tables(&self, name: &str, value: Value) -> Result<Vec<Table>, SweepError> {
        let wrong = || self.wrong(format!("`{name}` is a section that repeats: [[{name}]]"));
        let Value::Array(values) = value else {
            return Err(wrong());
        };
        let tables = values.into_iter().map(|value| match value {
            Value::Table(table) => Ok(table),
            _ => Err(wrong()),
        });
        tables.collect()
    }
}

/// Settings by whole key, whether they were written with dots, quotes or sections.
fn flatten(table: Table) -> Vec<(String, Value)> {
    let mut flat = Vec::new();
    for (key, value) in table {
        match value {
            Value::Table(inner) => {
                let inner = flatten(inner).into_iter();
                flat.extend(inner.map(|(rest, value)| (format!("{key}.{rest}"), value)));
            }
            value => flat.push((key, value)),
        }
    }
    flat
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn refused(text: &str, expected: Expect) {
        let error = File::parse("sweep.toml", text).unwrap_err();
        expected.assert_eq(&error.to_string());
    }

    #[test]
    fn keys_are_the_same_with_dots_quotes_and_sections() {
        let texts = [
            "[grid]\n\"sm.warps\" = [32, 64]\n",
            "[grid]\nsm.warps = [32, 64]\n",
            "[grid.sm]\nwarps = [32, 64]\n",
        ];
        let files = texts.map(|text| File::parse("x", text).unwrap());
        assert_eq!(files[0], files[1]);
        assert_eq!(files[0], files[2]);
        assert_eq!(files[0].parts[0].axes[0].length(), 2);
    }

    #[test]
    fn parts_lie_above_what_the_file_says_for_all() {
        let text = "gpu = \"v100\"\n[set]\nsm.warps = 64\n[[part]]\n[part.set]\nsm.warps = 32\n[[part]]\ngpu = \"a100\"\n";
        let file = File::parse("x", text).unwrap();
        let seen = |part: usize, key: &str| file.parts[part].fixed[key].to_string();
        assert_eq!(
            (seen(0, "gpu"), seen(0, "sm.warps")),
            ("\"v100\"".into(), "32".into())
        );
        assert_eq!(
            (seen(1, "gpu"), seen(1, "sm.warps")),
            ("\"a100\"".into(), "64".into())
        );
    }

    #[test]
    fn what_is_no_sweep_is_refused() {
        refused(
            "progam = \"x\"\n",
            expect![
                "sweep.toml: no key of a sweep is called `progam`; did you mean `program`?; known: gpu, program, kernel, arguments, options, warm-start, set, grid, list, part, plot, pareto"
            ],
        );
        refused(
            "[grid]\nsm.warps = 3\n",
            expect![[
                r#"sweep.toml: `sm.warps` = 3: write the values to take as a list, for example `"sm.warps" = [32, 64]`"#
            ]],
        );
        refused(
            "[[list]]\na = [1]\nb = [1, 2]\n",
            expect![
                "sweep.toml: [[list]]: `b` has 2 values and `a` has 1; keys of a list change together"
            ],
        );
        refused(
            "[grid]\na = [1]\n[[list]]\na = [1]\n",
            expect!["sweep.toml: `a` varies in two places; leave one out"],
        );
        refused(
            "[pareto]\nminimize = [\"a\"]\n",
            expect!["sweep.toml: [pareto] takes two columns in all"],
        );
        refused(
            "\"sm.warps\" = 3\n",
            expect![
                "sweep.toml: `sm.warps` stands outside every section: settings of a GPU belong into [set], [grid] or [[list]]"
            ],
        );
        assert!(File::parse("x", "[grid").is_err());
    }
}
