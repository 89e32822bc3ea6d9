//! ARCHITECTURE.md against the tree: every crate is named there, and nothing else is; and the
//! order of its table is the order in which crates use each other.

use crate::project;
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;

/// Checks the page; an error lists every difference.
pub fn check() -> Result<()> {
    let root = project::root();
    let page = std::fs::read_to_string(root.join("ARCHITECTURE.md")).context("ARCHITECTURE.md")?;
    let listed = crates_of(&page);
    let mut problems = Vec::new();

    let mut present = BTreeSet::new();
    for entry in std::fs::read_dir(root.join("crates"))? {
        let path = entry?.path();
        if path.join("Cargo.toml").exists()
            && let Some(name) = path.file_name()
        {
            present.insert(name.to_string_lossy().into_owned());
        }
    }
    present.insert("xtask".into());
    for name in &present {
        if !listed.contains(name) {
            problems.push(format!(
                "crate `{name}` is not in the table of ARCHITECTURE.md"
            ));
        }
    }
    for name in &listed {
        if !present.contains(name) {
            problems.push(format!(
                "ARCHITECTURE.md lists `{name}`, which is not in the tree"
            ));
        }
    }
    for (position, name) in listed.iter().enumerate() {
        let Ok(manifest) =
            std::fs::read_to_string(root.join("crates").join(name).join("Cargo.toml"))
        else {
            continue;
        };
        for used in uses(&manifest)? {
            if !listed[..position].contains(&used) {
                problems.push(format!(
                    "`{name}` uses `{used}`, which does not stand above it in ARCHITECTURE.md"
                ));
            }
        }
    }
    if !problems.is_empty() {
        bail!("{}", problems.join("\n"));
    }
    Ok(())
}

/// First cells of the table under the heading "Crates", without their back-ticks.
fn crates_of(page: &str) -> Vec<String> {
    page.lines()
        .skip_while(|line| !line.starts_with("## Crates"))
        .skip(1)
        .take_while(|line| !line.starts_with("## "))
        .filter_map(|line| line.strip_prefix("| `"))
        .filter_map(|rest| rest.split_once('`'))
        .map(|(name, _)| name.to_string())
        .collect()
}

/// Crates of ours among a manifest's dependencies, those of tests aside.
fn uses(manifest: &str) -> Result<Vec<String>> {
    let manifest: toml::Table = toml::from_str(manifest)?;
    let dependencies = manifest.get("dependencies").and_then(toml::Value::as_table);
    Ok(dependencies
        .into_iter()
        .flat_map(|table| table.keys())
        .filter_map(|name| name.strip_prefix("lockstep-"))
        .map(str::to_string)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_from_the_table_of_crates_only() {
        let page = "# A\n\n## Crates, bottom up\n\n| crate | what |\n|---|---|\n| `units` | exact |\n| `stats` | counts |\n\n## Other\n| `not` | one |\n";
        assert_eq!(crates_of(page), ["units", "stats"]);
    }

    #[test]
    fn only_our_own_dependencies_count() {
        let manifest = "[dependencies]\nserde = \"1\"\nlockstep-units.workspace = true\n[dev-dependencies]\nlockstep-gpu.workspace = true\n";
        assert_eq!(uses(manifest).expect("manifest"), ["units"]);
    }
}
