//! From layers of TOML to one checked configuration.
//!
//! A GPU file may lie above a base: another GPU, or a chip that several GPUs share. Any layer may name
//! a file of `configs/drams` (`dram.device`) and one of `configs/gpus/floorsweeping`
//! (`device.floorsweeping`), which then lie right below it. The user's file lies above the GPU it is
//! based on, and above that lies each `--set`, in the order of the command line. A layer is taken in
//! whole or refused with its own name, so a message always says where the mistake was made.
//!
//! Start reading at [`resolve`].

use crate::catalogue::{self, CATALOGUE, CHIPS, DEFAULT_GPU, PARTS, PartKind};
use crate::tree::{keys, lookup, merge};
use crate::{ConfigError, GpuConfig, aliases, bounds};
use std::borrow::Cow;
use std::path::Path;
use std::sync::OnceLock;
use toml::{Table, Value};

/// Files beyond this many bytes are not configurations.
const MAXIMUM_FILE: u64 = 1 << 20;

/// A GPU lies above another one, which lies above a chip: more is a circle.
const DEEPEST_BASE: u32 = 4;

/// One layer of a configuration.
#[derive(Clone, Debug)]
pub(crate) struct Layer {
    /// The name of a GPU, chip or part, the path of a file, or a `--set`.
    pub name: String,
    /// The file, where it is one.
    pub text: Cow<'static, str>,
    /// What it says, under present names.
    pub table: Table,
}

/// A configuration and where it comes from.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The configuration, checked.
    pub config: GpuConfig,
    /// What its author should know, such as keys that have another name today.
    pub warnings: Vec<String>,
    /// Lowest first.
    pub(crate) layers: Vec<Layer>,
}

/// The configuration of the GPU called `gpu` (or in the file `gpu`), changed by `settings`.
///
/// # Errors
/// The layer, the key and what is wrong with it.
pub fn load<S: AsRef<str>>(gpu: Option<&str>, settings: &[S]) -> Result<GpuConfig, ConfigError> {
    resolve(gpu, settings).map(|resolved| resolved.config)
}

/// As [`load`], with the layers and what there is to say about them.
///
/// # Errors
/// The layer, the key and what is wrong with it.
pub fn resolve<S: AsRef<str>>(gpu: Option<&str>, settings: &[S]) -> Result<Resolved, ConfigError> {
    let gpu = gpu.unwrap_or(DEFAULT_GPU);
    let mut stack = Stack::default();
    stack.push_gpu(gpu)?;
    let mut table = stack.merged();
    let mut config = typed(gpu, &table)?;
    for setting in settings {
        stack.push_setting(setting.as_ref())?;
        table = stack.merged();
        config = typed(&format!("--set {}", setting.as_ref()), &table)?;
    }
    bounds::check(gpu, &table)?;
    config.check()?;
    Ok(Resolved {
        config,
        warnings: stack.warnings,
        layers: stack.layers,
    })
}

/// The whole configuration as text that [`load`] would accept as a file.
pub fn to_toml(config: &GpuConfig) -> String {
    toml::to_string(config).expect("every section is a table of plain values")
}

/// Layers as they are found, lowest first.
#[derive(Default)]
struct Stack {
    layers: Vec<Layer>,
    warnings: Vec<String>,
}

impl Stack {
    fn push_gpu(&mut self, gpu: &str) -> Result<(), ConfigError> {
        if let Some(entry) = catalogue::find(gpu) {
            return self.push_text(entry.name, Cow::Borrowed(entry.text), 0);
        }
        let looks_like_a_path = gpu.contains('/') || gpu.ends_with(".toml");
        if !looks_like_a_path && !Path::new(gpu).is_file() {
            return Err(unknown_gpu(gpu));
        }
        self.push_text(gpu, Cow::Owned(read(gpu)?), 0)
    }

    /// A file: what it lies above, then itself.
    fn push_text(
        &mut self,
        name: &str,
        text: Cow<'static, str>,
        depth: u32,
    ) -> Result<(), ConfigError> {
        let mut table = parse(name, &text)?;
        if let Some(base) = table.remove("base") {
            let Value::String(base) = base else {
                return Err(malformed(
                    name,
                    format!("`base` = {base}, but it must be the name of a GPU, as a string"),
                ));
            };
            if depth == DEEPEST_BASE {
                return Err(malformed(name, format!("`base` = {base}: too many bases")));
            }
            let entry = catalogue::find(&base).or_else(|| catalogue::find_in(CHIPS, &base));
            let entry = entry.ok_or_else(|| unknown_gpu(&base))?;
            self.push_text(entry.name, Cow::Borrowed(entry.text), depth + 1)?;
        }
        self.push_table(name, text, table)
    }

    fn push_setting(&mut self, text: &str) -> Result<(), ConfigError> {
        let table = parse_setting(text)?;
        self.push_table(&format!("--set {text}"), Cow::Borrowed(""), table)
    }

    fn push_table(
        &mut self,
        name: &str,
        text: Cow<'static, str>,
        mut table: Table,
    ) -> Result<(), ConfigError> {
        self.warnings.extend(aliases::apply(name, &mut table)?);
        refuse_unknown(name, &table)?;
        for kind in PARTS {
            if let Some(Value::String(part)) = lookup(&table, kind.key) {
                self.push_part(kind, part)?;
            }
        }
        self.layers.push(Layer {
            name: name.into(),
            text,
            table,
        });
        Ok(())
    }

    /// A file that a key names, with the few keys that such a file may have.
    fn push_part(&mut self, kind: &PartKind, part: &str) -> Result<(), ConfigError> {
        let text = match catalogue::find_in(kind.entries, part) {
            Some(entry) => Cow::Borrowed(entry.text),
            None if part.ends_with(".toml") => Cow::Owned(read(part)?),
            None => {
                let known = kind.entries.iter().map(|entry| entry.name);
                return Err(ConfigError::unknown_policy(kind.what, part, known));
            }
        };
        let table = parse(part, &text)?;
        refuse_unknown(part, &table)?;
        let foreign = keys(&table).into_iter().find(|key| !kind.may_have(key));
        if let Some(key) = foreign {
            let what = kind.what;
            return Err(malformed(part, format!("`{key}` is no key of a {what}")));
        }
        self.layers.push(Layer {
            name: part.into(),
            text,
            table,
        });
        Ok(())
    }

    fn merged(&self) -> Table {
        let mut table = Table::new();
        for layer in &self.layers {
            merge(&mut table, &layer.table);
        }
        table
    }
}

/// Every key that there is, with the value that the first GPU of the catalogue has.
fn known() -> &'static Table {
    static KNOWN: OnceLock<Table> = OnceLock::new();
    KNOWN.get_or_init(|| {
        const TESTED: &str = "files of the catalogue are tested";
        let mut table = Table::new();
        let entry = &CATALOGUE[0];
        let mut own: Table = entry.text.parse().expect(TESTED);
        if let Some(Value::String(base)) = own.remove("base") {
            let base = catalogue::find_in(CHIPS, &base).expect(TESTED);
            merge(&mut table, &base.text.parse().expect(TESTED));
        }
        merge(&mut table, &own);
        for kind in PARTS {
            if let Some(Value::String(part)) = lookup(&table, kind.key).cloned() {
                let part = catalogue::find_in(kind.entries, &part).expect(TESTED);
                merge(&mut table, &part.text.parse().expect(TESTED));
            }
        }
        let config = typed(entry.name, &table).unwrap_or_else(|error| panic!("{error}"));
        // What files need not name is named here, so that a layer above can change it.
        match Value::try_from(config) {
            Ok(Value::Table(table)) => table,
            _ => unreachable!("a configuration is a table"),
        }
    })
}

fn malformed(path: &str, message: String) -> ConfigError {
    ConfigError::Malformed {
        path: path.into(),
        message,
    }
}

fn read(path: &str) -> Result<String, ConfigError> {
    let unreadable = |source| ConfigError::Unreadable {
        path: path.into(),
        source,
    };
    let size = std::fs::metadata(path).map_err(unreadable)?.len();
    if size > MAXIMUM_FILE {
        let message = format!("{size} bytes are too many for a configuration");
        return Err(malformed(path, message));
    }
    std::fs::read_to_string(path).map_err(unreadable)
}

fn parse(path: &str, text: &str) -> Result<Table, ConfigError> {
    text.parse()
        .map_err(|error: toml::de::Error| malformed(path, error.to_string().trim_end().to_string()))
}

/// `a.b=value` as a table. A value is TOML; what is not, or would not have the kind of the value
/// below it, is a string, so that nobody has to quote for the shell and for TOML.
fn parse_setting(text: &str) -> Result<Table, ConfigError> {
    let no_setting = || ConfigError::NotASetting { text: text.into() };
    let (key, value) = text.split_once('=').ok_or_else(no_setting)?;
    let (key, value) = (key.trim(), value.trim());
    let parts: Vec<&str> = key.split('.').collect();
    if parts.iter().any(|part| part.is_empty()) || parts.len() > 8 {
        return Err(no_setting());
    }
    let parsed = format!("value = {value}")
        .parse::<Table>()
        .ok()
        .and_then(|mut table| table.remove("value"));
    let below = lookup(known(), aliases::present_name(key));
    let text_below = matches!(below, Some(Value::String(_)));
    let mut layer = match parsed {
        Some(parsed) if !text_below || parsed.is_str() => parsed,
        _ => Value::String(value.into()),
    };
    for part in parts.iter().rev() {
        layer = Value::Table(Table::from_iter([((*part).to_string(), layer)]));
    }
    match layer {
        Value::Table(table) => Ok(table),
        _ => Err(no_setting()),
    }
}

fn refuse_unknown(path: &str, layer: &Table) -> Result<(), ConfigError> {
    let known = keys(known());
    for key in keys(layer) {
        // A section where a value belongs is a mistake of kind, which the types explain.
        let is_known = known.iter().any(|known| {
            key.strip_prefix(known)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        });
        if !is_known {
            let nearest = nearest(&key, known.iter().map(String::as_str));
            return Err(ConfigError::UnknownKey {
                path: path.into(),
                key,
                nearest,
            });
        }
    }
    Ok(())
}

/// The name that is spelt most like `wanted`, if any is like it at all.
pub fn nearest<'name>(wanted: &str, names: impl Iterator<Item = &'name str>) -> Option<String> {
    names
        .map(|name| (strsim::jaro_winkler(wanted, name), name))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, name)| name.to_string())
}

fn unknown_gpu(name: &str) -> ConfigError {
    let names = CATALOGUE.iter().map(|entry| entry.name);
    ConfigError::UnknownGpu {
        name: name.into(),
        nearest: nearest(name, names.clone()),
        known: names.collect::<Vec<_>>().join(", "),
    }
}

fn typed(path: &str, table: &Table) -> Result<GpuConfig, ConfigError> {
    serde_path_to_error::deserialize(table.clone()).map_err(|error| {
        let message = error.inner().message().trim_end();
        malformed(
            path,
            match error.path().to_string().as_str() {
                "." => message.to_string(),
                key => format!("`{key}`: {message}"),
            },
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(settings: &[&str], expected: Expect) {
        let text = match load(Some("h200"), settings) {
            Ok(config) => {
                let reference = to_toml(&load::<&str>(Some("h200"), &[]).unwrap());
                let changed = to_toml(&config);
                changed
                    .lines()
                    .filter(|line| !reference.lines().any(|old| old == *line))
                    .collect::<Vec<_>>()
                    .join("\n")
            }
            Err(error) => error.to_string(),
        };
        expected.assert_eq(&text);
    }

    #[test]
    fn every_gpu_of_the_catalogue_loads_and_reads_back_what_it_wrote() {
        for entry in CATALOGUE {
            let config =
                load::<&str>(Some(entry.name), &[]).unwrap_or_else(|error| panic!("{error}"));
            let table = parse("written", &to_toml(&config)).unwrap();
            assert_eq!(typed("written", &table).unwrap(), config);
            assert!(!entry.title().is_empty());
            config
                .check()
                .unwrap_or_else(|error| panic!("{}: {error}", entry.name));
        }
    }

    #[test]
    fn settings_need_no_quotes() {
        check(
            &[
                "l2.hit-latency=80 cycles",
                "sm.warps = 48",
                "device.compute-capability=9.1",
            ],
            expect![[r#"
                compute-capability = "9.1"
                warps = 48
                hit-latency = "80 cycles""#]],
        );
    }

    #[test]
    fn an_unknown_key_is_refused_with_the_nearest() {
        check(
            &["l2.hit_latency=3 cycles"],
            expect![
                "--set l2.hit_latency=3 cycles: no key is called `l2.hit_latency`; did you mean `l2.hit-latency`?"
            ],
        );
        check(
            &["xyzzy=1"],
            expect!["--set xyzzy=1: no key is called `xyzzy`"],
        );
    }

    #[test]
    fn a_value_of_the_wrong_kind_names_its_key() {
        check(
            &["l2.hit-latency=30 bananas"],
            expect![
                "--set l2.hit-latency=30 bananas: `l2.hit-latency`: `30 bananas` is not a number of cycles: unknown unit `bananas`; known: cycles, cycle"
            ],
        );
        check(
            &["sm.warps=many"],
            expect![[
                r#"--set sm.warps=many: `sm.warps`: invalid type: string "many", expected u32"#
            ]],
        );
        check(
            &["sm"],
            expect![[
                r#"`--set sm`: write KEY=VALUE, for example `--set l2.hit-latency="80 cycles"`"#
            ]],
        );
        check(
            &["sm=3"],
            expect!["--set sm=3: no key is called `sm`; did you mean `sm.warps`?"],
        );
    }

    #[test]
    fn impossible_values_are_refused() {
        check(
            &["sm.warps=0"],
            expect!["`sm.warps` = 0, but it must not be 0"],
        );
        check(
            &["sm.warps=30"],
            expect!["`sm.warps` = 30, but it must be a multiple of `sm.sub-cores` = 4"],
        );
    }

    #[test]
    fn an_unknown_gpu_lists_the_known() {
        let error = load::<&str>(Some("h20"), &[]).unwrap_err().to_string();
        expect!["no GPU is called `h20`; did you mean `h200`?; known: h200, h100, rtx3080ti, a100, rtx2060, v100, gtx1080ti-uvmsmart, v100-sst, sst-listing1, p100; or give the path of a .toml file"]
            .assert_eq(&error);
    }

    #[test]
    fn a_dram_lies_right_below_the_layer_that_names_it() {
        let config = load(Some("h200"), &["dram.burst=32 B", "dram.device=hbm2"]).unwrap();
        assert_eq!(config.dram.burst.0, 32);
        assert_eq!(config.dram.clock.to_string(), "877 MHz");
        assert_eq!(config.dram.channels, 96);
        let config = load(Some("h200"), &["dram.device=hbm2", "dram.burst=64 B"]).unwrap();
        assert_eq!(config.dram.burst.0, 64);
        check(
            &["dram.device=hbm9"],
            expect![
                "no DRAM device is called `hbm9`; did you mean `hbm3`?; known: gddr5, gddr5x, gddr6, gddr6x, hbm2, hbm2e, hbm3, hbm3e"
            ],
        );
    }

    #[test]
    fn an_even_chip_is_one_setting_away() {
        let even = load(Some("h200"), &["device.floorsweeping=none"]).unwrap();
        let own = load::<&str>(Some("h200"), &[]).unwrap();
        assert!(!own.device.gpc_tpcs.is_empty() && !own.dispatch.first_sms.is_empty());
        assert!(even.device.gpc_tpcs.is_empty() && even.dispatch.first_sms.is_empty());
        assert_eq!(even.l2.first_partition_gpcs, [] as [u32; 0]);
    }

    #[test]
    fn every_part_has_only_its_own_keys_and_is_no_gpu() {
        for kind in PARTS {
            for entry in kind.entries {
                assert!(catalogue::find(entry.name).is_none(), "{}", entry.name);
                let mut stack = Stack::default();
                stack
                    .push_part(kind, entry.name)
                    .unwrap_or_else(|error| panic!("{error}"));
            }
        }
        for chip in CHIPS {
            assert!(catalogue::find(chip.name).is_none(), "{}", chip.name);
        }
    }

    #[test]
    fn a_foreign_key_in_a_part_is_refused() {
        let path = std::env::temp_dir().join(format!("lockstep-part-{}.toml", std::process::id()));
        std::fs::write(&path, "[dram]\nburst = \"32 B\"\n[l2]\nways = 16\n").unwrap();
        let setting = format!("dram.device={}", path.display());
        let error = load(Some("h200"), &[&setting]).unwrap_err().to_string();
        std::fs::remove_file(&path).unwrap();
        assert!(
            error.ends_with("`l2.ways` is no key of a DRAM device"),
            "{error}"
        );
    }

    #[test]
    fn a_file_lies_above_its_base() {
        let path =
            std::env::temp_dir().join(format!("lockstep-config-{}.toml", std::process::id()));
        std::fs::write(&path, "base = \"a100\"\n[device]\nsms = 4\n").unwrap();
        let config = load(path.to_str(), &["sm.blocks=8"]).unwrap();
        std::fs::write(&path, "base = \"a100\"\n[device]\nsmss = 4\n").unwrap();
        let error = load::<&str>(path.to_str(), &[]).unwrap_err().to_string();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(
            (config.device.sms, config.sm.blocks, config.device.gpcs),
            (4, 8, 7)
        );
        assert!(
            error.ends_with("no key is called `device.smss`; did you mean `device.sms`?"),
            "{error}"
        );
    }
}
