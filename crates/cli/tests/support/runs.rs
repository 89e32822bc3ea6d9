//! Runs of programs whose results lie in `out`.

use super::{Folder, Said};

impl Folder {
    /// Runs a command with options before it.
    pub fn run_program(&self, options: &[&str], command: &[&str]) -> Said {
        let start = ["run", "--quiet", "--force", "--out", "out"];
        self.run(&[&start, options, &["--"], command].concat())
    }

    /// A file of the last run.
    pub fn result(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join("out").join(name)).unwrap()
    }

    /// The summary of the last run.
    pub fn summary(&self) -> serde_json::Value {
        serde_json::from_str(&self.result("summary.json")).unwrap()
    }

    /// The digest of the last run, which must be reproducible.
    pub fn digest(&self) -> String {
        let summary = self.summary();
        let dependences = &summary["depends_on_host"];
        assert_eq!(summary["reproducible"], true, "{dependences}");
        summary["digest"].to_string()
    }
}

/// All digests must be one.
pub fn assert_one(digests: &[String]) {
    let equal = digests.windows(2).all(|pair| pair[0] == pair[1]);
    assert!(equal, "{digests:?}");
}
