//! The page of options: which attributes, flags and limits are obeyed, refused or only listed, made
//! from the table that the interposer asks.

use crate::project;
use anyhow::{Result, ensure};
use lockstep_protocol::RESULT_NAMES;
use lockstep_protocol::options::{CudaOption, Group, OPTIONS, Treatment};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The page, without its notice.
pub fn page() -> Result<String> {
    let count = |word: &str| {
        let rows = OPTIONS.iter();
        rows.filter(|option| option.treatment.word() == word)
            .count()
    };
    let mut page = format!(
        "# Options of CUDA calls\n\n\
         {} attributes, flags and limits that calls take, and what becomes of each: {} are obeyed, {} \
         are refused, and {} are listed. A listed option is accepted and changes nothing; the report of \
         a run that used one says `accepted but not modelled`, and `summary.json` has it under \
         `unsupported` with the manner `accepted`. What is not here is refused as an invalid value.\n",
        OPTIONS.len(),
        count("obeyed"),
        count("refused"),
        count("listed"),
    );
    for group in Group::ALL {
        write!(
            page,
            "\n## {}\n\n{}.\n\n| option | | what that means |\n|---|---|---|\n",
            group.title(),
            calls(*group)
        )?;
        for option in OPTIONS.iter().filter(|option| option.group == *group) {
            writeln!(
                page,
                "| `{}` | {} | {} |",
                option.name,
                treatment(option),
                option.sentence
            )?;
        }
    }
    Ok(page)
}

fn calls(group: Group) -> String {
    let calls: Vec<String> = group
        .calls()
        .split(", ")
        .map(|call| format!("`{call}`"))
        .collect();
    calls.join(", ")
}

fn treatment(option: &CudaOption) -> String {
    match option.treatment {
        Treatment::Obeyed(test) => format!("obeyed ({test})"),
        Treatment::Listed => "**listed**".into(),
        Treatment::Refused(code) => {
            let name = RESULT_NAMES.iter().find(|(known, _)| *known == code);
            format!("refused: `{}`", name.map_or("?", |(_, name)| name))
        }
    }
}

/// Fails if an option is obeyed without a test that shows it.
pub fn check() -> Result<()> {
    let mut sources = String::new();
    read_tests(&project::root().join("crates"), &mut sources)?;
    for option in OPTIONS {
        let Treatment::Obeyed(test) = option.treatment else {
            continue;
        };
        let program = match test.split_once('/') {
            Some(("conformance", chapter)) => Some(format!("workloads/conformance/{chapter}.cu")),
            Some(("workloads", program)) => Some(format!("workloads/{program}/{program}.cu")),
            _ => None,
        };
        let found = match program {
            Some(program) => project::root().join(program).exists(),
            None => sources.contains(&format!("fn {test}(")),
        };
        ensure!(
            found,
            "{} counts as obeyed, but there is no test `{test}`; name one in \
             crates/protocol/src/options/table.rs",
            option.name
        );
    }
    Ok(())
}

/// Appends every Rust source that has tests.
fn read_tests(folder: &Path, sources: &mut String) -> Result<()> {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    entries.sort();
    for path in entries {
        if path.is_dir() {
            read_tests(&path, sources)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path)?;
            if text.contains("#[test]") {
                sources.push_str(&text);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_obeyed_option_has_a_test() {
        check().expect("a test for each");
    }

    #[test]
    fn the_page_has_every_option_once() {
        let page = page().expect("a page");
        let rows = page.lines().filter(|line| line.starts_with("| `"));
        assert_eq!(rows.count(), OPTIONS.len());
        assert!(!page.contains("`?`"), "a code without a name");
    }
}
