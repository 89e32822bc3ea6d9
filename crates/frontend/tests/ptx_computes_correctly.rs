//! Every `.ptx` under `tests/computes_correctly` leaves in memory what its comments say.

use crate::harness;
use std::path::Path;

#[test]
fn every_file_computes_what_it_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/computes_correctly");
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .expect("the folder is part of the repository")
        .map(|entry| entry.expect("a readable entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "ptx"))
        .collect();
    files.sort();
    assert!(!files.is_empty());
    let mut failures = Vec::new();
    for path in files {
        let text = std::fs::read_to_string(&path).expect("a text");
        if let Err(message) = harness::compare(&text) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            failures.push(format!("{name}: {message}"));
        }
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n\n"));
}
