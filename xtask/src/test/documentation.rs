//! Examples in documentation are compiled and run for the crates that have some, since looking for them takes as long
//! as compiling a crate: those without switch it off in their manifest.

use crate::project;
use std::path::Path;

/// Whether a source in a folder, or below it, has an example.
fn is_in(folder: &Path) -> bool {
    let mut paths = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    paths.any(|path| match path.is_dir() {
        true => is_in(&path),
        false => {
            path.extension().is_some_and(|one| one == "rs")
                && has_example(&std::fs::read_to_string(&path).unwrap())
        }
    })
}

/// Whether a source has an example: a fence in its documentation that opens without a language, or with words that
/// rustdoc has for Rust.
fn has_example(source: &str) -> bool {
    let mut inside = false;
    for line in source.lines().map(str::trim_start) {
        let text = line
            .strip_prefix("///")
            .or_else(|| line.strip_prefix("//!"));
        let Some(fence) = text.and_then(|text| text.trim_start().strip_prefix("```")) else {
            continue;
        };
        inside = !inside;
        let mut words = fence.split(',').map(str::trim);
        let is_rust = |word| {
            matches!(
                word,
                "" | "rust" | "no_run" | "should_panic" | "compile_fail"
            )
        };
        if inside && words.all(is_rust) {
            return true;
        }
    }
    false
}

#[test]
fn examples_are_told_from_pictures_and_ends() {
    assert!(has_example("//! ```\n//! let one = 1;\n//! ```"));
    assert!(has_example("    /// ```rust,no_run\n    /// ```"));
    assert!(!has_example("//! ```text\n//! a - b\n//! ```\nfn f() {}"));
    assert!(!has_example("let fence = \"```\";"));
}

#[test]
fn crates_with_examples_and_no_others_have_documentation_tests() {
    let crates = std::fs::read_dir(project::root().join("crates")).unwrap();
    for folder in crates.map(|entry| entry.unwrap().path()) {
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let is_a_library = folder.join("src/lib.rs").exists();
        let tested = is_a_library && !manifest.contains("doctest = false");
        let name = folder.display();
        assert_eq!(
            tested,
            is_in(&folder.join("src")),
            "{name}: `doctest` of its manifest"
        );
    }
}
