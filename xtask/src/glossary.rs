//! `docs/reference/glossary.md` against the tree: every term stands in the files that its row names.

use crate::project;
use anyhow::{Context, Result, bail};

const PATH: &str = "docs/reference/glossary.md";
/// Term, meaning, NVIDIA, ncu, gem5, JEDEC, code.
const CELLS: usize = 7;

/// Words that a reader will look for first.
const WANTED: &[&str] = &[
    "TPC",
    "GPC",
    "LSU",
    "L1TEX",
    "MSHR",
    "scoreboard",
    "wavefront",
    "reconvergence",
    "register file",
    "write combining",
    "write-back",
    "arbiter",
    "back-pressure",
    "credit",
];

/// Checks every row; an error lists all that is wrong.
pub fn check() -> Result<()> {
    let page = std::fs::read_to_string(project::root().join(PATH)).context(PATH)?;
    let rows = rows(&page)?;
    let mut troubles = Vec::new();
    for (term, files) in &rows {
        if files.is_empty() {
            troubles.push(format!("{term}: no file is named"));
        }
        for file in files {
            match std::fs::read_to_string(project::root().join(file)) {
                Ok(text) if mentions(&text, term) => {}
                Ok(_) => troubles.push(format!("{term}: {file} does not have the word")),
                Err(error) => troubles.push(format!("{term}: {file}: {error}")),
            }
        }
    }
    for word in WANTED {
        if !rows.iter().any(|(term, _)| term == word) {
            troubles.push(format!("{word} has no row"));
        }
    }
    if !troubles.is_empty() {
        bail!("{PATH}:\n{}", troubles.join("\n"));
    }
    Ok(())
}

/// Terms with the files of their last cell.
fn rows(page: &str) -> Result<Vec<(String, Vec<String>)>> {
    let mut rows = Vec::new();
    for line in page.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        if cells.len() != CELLS {
            bail!("{PATH}: {} cells, not {CELLS}: {line}", cells.len());
        }
        if cells[0] == "term" {
            continue;
        }
        let files = cells[CELLS - 1].split('`').skip(1).step_by(2);
        rows.push((cells[0].to_string(), files.map(str::to_string).collect()));
    }
    Ok(rows)
}

/// Whether a file has the word, however it is joined: "register file", `register_file`, `RegisterFile`. What a term
/// says in parentheses tells it from another and is no part of the word.
fn mentions(text: &str, term: &str) -> bool {
    let word = term.split(" (").next().unwrap_or(term);
    joined(text).contains(&joined(word))
}

fn joined(text: &str) -> String {
    text.chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_glossary_names_files_that_have_its_words() {
        check().unwrap();
    }

    #[test]
    fn a_word_is_found_however_it_is_joined() {
        for text in [
            "the register file",
            "register_file",
            "RegisterFile",
            "Register-file",
        ] {
            assert!(mentions(text, "register file"), "{text}");
        }
        assert!(mentions("a partition", "partition (of L2)"));
        assert!(!mentions("registers", "register file"));
    }

    #[test]
    fn rows_are_read_and_others_are_refused() {
        let head = "| term | a | b | c | d | e | code |\n|---|---|---|---|---|---|---|\n";
        let page = format!("{head}| SM | one | | | | | `a.rs`, `b.rs` |\n");
        let found = rows(&page).expect("rows");
        assert_eq!(
            found,
            [("SM".to_string(), vec!["a.rs".to_string(), "b.rs".into()])]
        );
        assert!(rows("| SM | one |\n").is_err());
    }
}
