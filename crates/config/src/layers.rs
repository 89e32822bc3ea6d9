//! From layers of TOML to one checked configuration.
//!
//! The lowest layer is a GPU of the catalogue, which names every key there is. Above it lies the
//! user's file, above that each `--set`, in the order of the command line. A layer is taken in
//! whole or refused with its own name, so a message always says where the mistake was made.
//!
//! Start reading at [`load`].

use crate::bounds;
use crate::catalogue::{self, CATALOGUE, CatalogueEntry, DEFAULT_GPU};
use crate::{ConfigError, GpuConfig, HostMachineConfig, NetworkConfig, UvmConfig};
use std::path::Path;
use toml::{Table, Value};

/// Files beyond this many bytes are not configurations.
const MAXIMUM_FILE: u64 = 1 << 20;

/// The configuration of the GPU called `gpu` (or in the file `gpu`), changed by `settings`.
///
/// # Errors
/// The layer, the key and what is wrong with it.
pub fn load<S: AsRef<str>>(gpu: Option<&str>, settings: &[S]) -> Result<GpuConfig, ConfigError> {
    let (mut table, mut config) = lowest_layers(gpu.unwrap_or(DEFAULT_GPU))?;
    for setting in settings {
        let text = setting.as_ref();
        let layer = parse_setting(text, &table)?;
        let path = format!("--set {text}");
        refuse_unknown(&path, &layer, &table)?;
        merge(&mut table, layer);
        config = typed(&path, &table)?;
    }
    bounds::check(gpu.unwrap_or(DEFAULT_GPU), &table)?;
    config.check()?;
    Ok(config)
}

/// The whole configuration as text that [`load`] would accept as a file.
pub fn to_toml(config: &GpuConfig) -> String {
    toml::to_string(config).expect("every section is a table of plain values")
}

fn lowest_layers(gpu: &str) -> Result<(Table, GpuConfig), ConfigError> {
    if let Some(entry) = catalogue::find(gpu) {
        let table = built_in(entry);
        let config = typed(entry.name, &table)?;
        return Ok((table, config));
    }
    let looks_like_a_path = gpu.contains('/') || gpu.ends_with(".toml");
    if !looks_like_a_path && !Path::new(gpu).is_file() {
        return Err(unknown_gpu(gpu));
    }
    let mut layer = parse(gpu, &read(gpu)?)?;
    let base = match layer.remove("base") {
        None => None,
        Some(Value::String(name)) => {
            Some(catalogue::find(&name).ok_or_else(|| unknown_gpu(&name))?)
        }
        Some(other) => {
            let message =
                format!("`base` = {other}, but it must be the name of a GPU, as a string");
            return Err(ConfigError::Malformed {
                path: gpu.into(),
                message,
            });
        }
    };
    // Whatever the base, every GPU file has the same keys.
    let mut table = built_in(base.unwrap_or(&CATALOGUE[0]));
    refuse_unknown(gpu, &layer, &table)?;
    if base.is_some() {
        merge(&mut table, layer);
    } else {
        table = layer;
    }
    let config = typed(gpu, &table)?;
    Ok((table, config))
}

/// A GPU of the catalogue; it may lie above another one, which lies above none.
fn built_in(entry: &CatalogueEntry) -> Table {
    const TESTED: &str = "files of the catalogue are tested";
    // What files need not name is named here, so that a layer above can change it.
    let mut table = Table::new();
    const PLAIN: &str = "a table of plain values";
    let uvm = Value::try_from(UvmConfig::default()).expect(PLAIN);
    table.insert("uvm".into(), uvm);
    let network = Value::try_from(NetworkConfig::default()).expect(PLAIN);
    let interconnect = [
        ("kind".into(), "crossbar".into()),
        ("network".into(), network),
    ];
    table.insert("interconnect".into(), Table::from_iter(interconnect).into());
    let sm = Table::from_iter([("shared-double".into(), false.into())]);
    table.insert("sm".into(), sm.into());
    let machine = Value::try_from(HostMachineConfig::default()).expect(PLAIN);
    table.insert(
        "host".into(),
        Table::from_iter([("machine".into(), machine)]).into(),
    );
    let mut layer: Table = entry.text.parse().expect(TESTED);
    if let Some(Value::String(base)) = layer.remove("base") {
        let base = catalogue::find(&base).expect(TESTED);
        merge(&mut table, base.text.parse().expect(TESTED));
    }
    merge(&mut table, layer);
    table
}

fn read(path: &str) -> Result<String, ConfigError> {
    let unreadable = |source| ConfigError::Unreadable {
        path: path.into(),
        source,
    };
    let size = std::fs::metadata(path).map_err(unreadable)?.len();
    if size > MAXIMUM_FILE {
        let message = format!("{size} bytes are too many for a configuration");
        return Err(ConfigError::Malformed {
            path: path.into(),
            message,
        });
    }
    std::fs::read_to_string(path).map_err(unreadable)
}

fn parse(path: &str, text: &str) -> Result<Table, ConfigError> {
    text.parse()
        .map_err(|error: toml::de::Error| ConfigError::Malformed {
            path: path.into(),
            message: error.to_string().trim_end().to_string(),
        })
}

/// `a.b=value` as a table. A value is TOML; what is not, or would not have the kind of the value
/// below it, is a string, so that nobody has to quote for the shell and for TOML.
fn parse_setting(text: &str, below: &Table) -> Result<Table, ConfigError> {
    let malformed = || ConfigError::NotASetting { text: text.into() };
    let (key, value) = text.split_once('=').ok_or_else(malformed)?;
    let (key, value) = (key.trim(), value.trim());
    let parts: Vec<&str> = key.split('.').collect();
    if parts.iter().any(|part| part.is_empty()) || parts.len() > 8 {
        return Err(malformed());
    }
    let parsed = format!("value = {value}")
        .parse::<Table>()
        .ok()
        .and_then(|mut table| table.remove("value"));
    let text_below = matches!(lookup(below, &parts), Some(Value::String(_)));
    let value = match parsed {
        Some(parsed) if !text_below || parsed.is_str() => parsed,
        _ => Value::String(value.into()),
    };
    let mut layer = value;
    for part in parts.iter().rev() {
        layer = Value::Table(Table::from_iter([((*part).to_string(), layer)]));
    }
    match layer {
        Value::Table(table) => Ok(table),
        _ => Err(malformed()),
    }
}

fn lookup<'table>(table: &'table Table, parts: &[&str]) -> Option<&'table Value> {
    let (first, rest) = parts.split_first()?;
    let value = table.get(*first)?;
    if rest.is_empty() {
        Some(value)
    } else {
        lookup(value.as_table()?, rest)
    }
}

fn refuse_unknown(path: &str, layer: &Table, known: &Table) -> Result<(), ConfigError> {
    let keys = all_keys(known);
    for key in all_keys(layer) {
        // A section where a value belongs is a mistake of kind, which the types explain.
        let is_known = keys
            .iter()
            .any(|known| *known == key || key.starts_with(&format!("{known}.")));
        if !is_known {
            let nearest = nearest(&key, keys.iter().map(String::as_str));
            return Err(ConfigError::UnknownKey {
                path: path.into(),
                key,
                nearest,
            });
        }
    }
    Ok(())
}

/// Every key of the table, with dots, down to plain values.
fn all_keys(table: &Table) -> Vec<String> {
    let mut keys = Vec::new();
    for (key, value) in table {
        match value {
            Value::Table(inner) => keys.extend(
                all_keys(inner)
                    .into_iter()
                    .map(|rest| format!("{key}.{rest}")),
            ),
            _ => keys.push(key.clone()),
        }
    }
    keys
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

fn merge(below: &mut Table, above: Table) {
    for (key, value) in above {
        match (below.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => merge(below, above),
            (_, value) => {
                below.insert(key, value);
            }
        }
    }
}

fn typed(path: &str, table: &Table) -> Result<GpuConfig, ConfigError> {
    serde_path_to_error::deserialize(table.clone()).map_err(|error| ConfigError::Malformed {
        path: path.into(),
        message: match error.path().to_string().as_str() {
            "." => error.inner().message().trim_end().to_string(),
            key => format!("`{key}`: {}", error.inner().message().trim_end()),
        },
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
            let layer: Table = entry.text.parse().unwrap();
            let known = built_in(&CATALOGUE[0]);
            let layer = layer.into_iter().filter(|(key, _)| key != "base").collect();
            refuse_unknown(entry.name, &layer, &known).unwrap();
        }
    }

    #[test]
    fn every_number_of_the_catalogue_has_its_source() {
        for entry in CATALOGUE {
            for line in entry.text.lines() {
                let is_number = line
                    .split_once('=')
                    .is_some_and(|(_, value)| value.contains(|c: char| c.is_ascii_digit()));
                let named = line.starts_with("name")
                    || line.starts_with("base")
                    || line.starts_with("kind")
                    || line.starts_with("compute-capability");
                assert!(
                    !is_number || named || line.contains("  # "),
                    "{}: {line}",
                    entry.name
                );
            }
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
