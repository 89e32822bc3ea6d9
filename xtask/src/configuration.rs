//! The page of configuration keys: sentences from the code, values of the H200.

use crate::project;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fmt::Write;

/// A field of a section: key, type, sentence.
type Field = (String, String, String);

/// Makes the page.
pub fn page(notice: &str) -> Result<String> {
    let read = |path: &str| {
        std::fs::read_to_string(project::root().join(path)).with_context(|| path.to_string())
    };
    let mut sections = sections(&read("crates/config/src/uvm.rs")?);
    for file in [
        "mod",
        "device",
        "sm",
        "pipes",
        "l1",
        "translation",
        "l2",
        "interconnect",
        "dram",
        "launch",
        "host",
        "copy",
    ] {
        let path = format!("crates/config/src/gpu/{file}.rs");
        sections.extend(self::sections(&read(&path)?));
    }
    let values = values(&effective()?);
    let mut page = format!(
        "{notice}# Configuration keys\n\nEvery key of a GPU file, with its value for `h200`. `--set KEY=VALUE` changes one for a run; an unknown key is refused with the nearest known one. `lockstep gpus show NAME` prints a file with the source of every number.\n"
    );
    write_section(&mut page, "GpuConfig", "", &sections, &values)?;
    Ok(page)
}

/// Every key of a GPU file with its value, as a run would write it.
fn effective() -> Result<String> {
    let config = lockstep_config::load::<&str>(Some("h200"), &[])?;
    Ok(lockstep_config::to_toml(&config))
}

fn write_section(
    page: &mut String,
    name: &str,
    prefix: &str,
    sections: &BTreeMap<String, (String, Vec<Field>)>,
    values: &BTreeMap<String, String>,
) -> Result<()> {
    let Some((about, fields)) = sections.get(name) else {
        return Ok(());
    };
    let plain: Vec<&Field> = fields
        .iter()
        .filter(|(_, kind, _)| !sections.contains_key(kind))
        .collect();
    if !plain.is_empty() {
        writeln!(
            page,
            "\n## {prefix}\n\n{about}\n\n| key | h200 | meaning |\n|---|---|---|"
        )?;
        for (key, _, about) in plain {
            let key = format!("{prefix}.{key}");
            let value = values.get(&key).map_or("", String::as_str);
            writeln!(page, "| `{key}` | {value} | {about} |")?;
        }
    }
    for (key, kind, _) in fields {
        if sections.contains_key(kind) {
            let inner = if prefix.is_empty() {
                key.clone()
            } else {
                format!("{prefix}.{key}")
            };
            write_section(page, kind, &inner, sections, values)?;
        }
    }
    Ok(())
}

/// Public structs of a source file by name: their sentence and fields.
fn sections(source: &str) -> BTreeMap<String, (String, Vec<Field>)> {
    let mut sections = BTreeMap::new();
    let mut current: Option<(String, String, Vec<Field>)> = None;
    let mut about = String::new();
    let mut renamed = None;
    for line in source.lines() {
        let line = line.trim();
        if let Some(text) = line.strip_prefix("///") {
            if !about.is_empty() {
                about.push(' ');
            }
            about.push_str(text.trim());
        } else if let Some(name) = line
            .strip_prefix("pub struct ")
            .and_then(|rest| rest.strip_suffix(" {"))
        {
            current = Some((name.into(), std::mem::take(&mut about), Vec::new()));
        } else if line == "}" {
            if let Some((name, about, fields)) = current.take() {
                sections.insert(name, (about, fields));
            }
            about.clear();
        } else if let Some(rest) = line.strip_prefix("#[serde(rename = \"") {
            renamed = rest.split('"').next().map(str::to_string);
        } else if let (Some((_, _, fields)), Some(rest)) =
            (current.as_mut(), line.strip_prefix("pub "))
            && let Some((name, kind)) = rest.trim_end_matches(',').split_once(": ")
        {
            let key = renamed.take().unwrap_or_else(|| name.replace('_', "-"));
            fields.push((key, kind.into(), std::mem::take(&mut about)));
        } else if !line.starts_with("#[") {
            about.clear();
        }
    }
    sections
}

/// Values of a GPU by key.
fn values(text: &str) -> BTreeMap<String, String> {
    let mut values = BTreeMap::new();
    let mut section = String::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            section = name.into();
        } else if let Some((key, rest)) = line.split_once(" = ") {
            let value = rest.split("  #").next().unwrap_or(rest).trim();
            values.insert(
                format!("{section}.{key}"),
                value.trim_matches('"').to_string(),
            );
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_its_line_with_a_meaning_and_every_line_its_key() {
        let page = page("").unwrap();
        let keys = values(&effective().unwrap());
        assert!(keys.len() > 200, "{}", keys.len());
        let mut lines = BTreeMap::new();
        for line in page.lines().filter(|line| line.starts_with("| `")) {
            let cells: Vec<&str> = line.trim_matches('|').split(" | ").collect();
            let [key, value, meaning] = cells[..] else {
                panic!("three cells: {line}");
            };
            let key = key.trim().trim_matches('`').to_string();
            assert!(meaning.trim().len() > 5, "{line}");
            assert!(!value.trim().is_empty(), "{line}");
            assert!(lines.insert(key, line).is_none(), "twice: {line}");
        }
        for key in keys.keys() {
            assert!(lines.contains_key(key), "{key} has no line");
        }
        assert_eq!(lines.len(), keys.len());
    }
}
