//! ARCHITECTURE.md against the tree: every crate and every top-level folder is named there once, and
//! nothing else is; and the order of the crates is the order in which they use each other. And no
//! file of tests is forgotten.

use crate::{process, project};
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

/// Checks the page; an error lists every difference.
pub fn check() -> Result<()> {
    let root = project::root();
    let page = std::fs::read_to_string(root.join("ARCHITECTURE.md")).context("ARCHITECTURE.md")?;
    let listed = names_of(&page, "## Crates");
    let mut problems = folder_problems(&page)?;
    problems.extend(test_problems(&root.join("crates"))?);

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
        if listed[..position].contains(name) {
            problems.push(format!("ARCHITECTURE.md lists `{name}` more than once"));
        }
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
    problems.extend(package_problems()?);
    if !problems.is_empty() {
        bail!("{}", problems.join("\n"));
    }
    Ok(())
}

/// Packages that `lockstep` may link, its own and those that its macros need included: every one of them is compiled
/// before a first result.
const MOST_PACKAGES: usize = 120;

/// More packages in `lockstep` than it may link.
fn package_problems() -> Result<Vec<String>> {
    let mut tree = process::cargo(&[
        "tree",
        "--locked",
        "--package",
        "lockstep-cli",
        "--edges",
        "normal",
        "--prefix",
        "none",
    ]);
    let listed = process::capture(&mut tree, Duration::from_secs(120))?;
    if !listed.success() {
        bail!("`cargo tree` failed: {}", listed.tail(3));
    }
    let name = |line: &str| line.split(' ').next().map(str::to_owned);
    let packages: BTreeSet<String> = listed.out.lines().filter_map(name).collect();
    let count = packages.len();
    Ok(match count > MOST_PACKAGES {
        true => vec![format!(
            "`lockstep` links {count} packages, and {MOST_PACKAGES} are the most: what looks at runs belongs into \
             `lockstep-tools` (`cargo tree --package lockstep-cli --edges normal`)"
        )],
        false => Vec::new(),
    })
}

/// Files of tests that no `tests/main.rs` names, where a crate has one: they would not be compiled.
fn test_problems(crates: &Path) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for entry in std::fs::read_dir(crates)? {
        let tests = entry?.path().join("tests");
        let Ok(main) = std::fs::read_to_string(tests.join("main.rs")) else {
            continue;
        };
        for file in std::fs::read_dir(&tests)? {
            let path = file?.path();
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            let is_test = path.extension().is_some_and(|end| end == "rs") && name != "main";
            if is_test && !main.contains(&format!("\nmod {name};")) {
                problems.push(format!(
                    "{} is not among the modules of main.rs beside it, so it is never run",
                    path.display()
                ));
            }
        }
    }
    Ok(problems)
}

/// Top-level folders with committed files that the page does not name, and names without such a folder.
fn folder_problems(page: &str) -> Result<Vec<String>> {
    let listed: BTreeSet<String> = names_of(page, "## Folders").into_iter().collect();
    let committed = process::git(&["ls-files"])?;
    let present: BTreeSet<String> = committed
        .lines()
        .filter_map(|path| path.split_once('/'))
        .map(|(folder, _)| folder.to_string())
        .collect();
    let missing = present.difference(&listed);
    let stale = listed.difference(&present);
    Ok(missing
        .map(|name| format!("folder `{name}` is not in ARCHITECTURE.md"))
        .chain(stale.map(|name| {
            format!("ARCHITECTURE.md lists the folder `{name}`, which is not in the tree")
        }))
        .collect())
}

/// First cells of the table under a heading, without their back-ticks.
fn names_of(page: &str, heading: &str) -> Vec<String> {
    page.lines()
        .skip_while(|line| !line.starts_with(heading))
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
    fn the_page_and_the_tree_agree() {
        check().unwrap();
    }

    #[test]
    fn names_come_from_the_table_under_their_heading_only() {
        let page = "# A\n\n## Crates, bottom up\n\n| crate | what |\n|---|---|\n| `units` | exact |\n| `stats` | counts |\n\n## Other\n| `not` | one |\n";
        assert_eq!(names_of(page, "## Crates"), ["units", "stats"]);
        assert_eq!(names_of(page, "## Other"), ["not"]);
        assert!(names_of(page, "## None").is_empty());
    }

    #[test]
    fn only_our_own_dependencies_count() {
        let manifest = "[dependencies]\nserde = \"1\"\nlockstep-units.workspace = true\n[dev-dependencies]\nlockstep-gpu.workspace = true\n";
        assert_eq!(uses(manifest).expect("manifest"), ["units"]);
    }
}
