//! What the script of a client said: its lines, read and counted again.
//!
//! `validation/clients/checks.py` prints them. A script that dies on its way, or whose count is not that of
//! its lines, has no verdict.

use anyhow::{Context, Result, bail};

/// What one check came to.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Its results were right.
    Passed,
    /// They were not, or something was thrown.
    Failed(String),
    /// It was not run, for a reason that is known.
    Lacks(String),
}

/// All that a script said.
#[derive(Debug)]
pub struct Verdict {
    /// The version of the package that was checked.
    pub version: String,
    /// Name and outcome of each check, in order.
    pub checks: Vec<(String, Outcome)>,
}

impl Verdict {
    /// How many passed.
    pub fn passed(&self) -> usize {
        self.count(|outcome| *outcome == Outcome::Passed)
    }

    /// How many were left out for a known reason.
    pub fn lacking(&self) -> usize {
        self.count(|outcome| matches!(outcome, Outcome::Lacks(_)))
    }

    fn count(&self, wanted: impl Fn(&Outcome) -> bool) -> usize {
        self.checks
            .iter()
            .filter(|(_, outcome)| wanted(outcome))
            .count()
    }
}

/// Reads standard output of a script; lines of the client itself in between are passed over.
pub fn read(text: &str) -> Result<Verdict> {
    let mut lines = text.lines();
    let version = lines
        .by_ref()
        .find_map(|line| line.strip_prefix("client ")?.split_once(' '))
        .context("it ended before its first check")?
        .1
        .to_owned();
    let mut verdict = Verdict {
        version,
        checks: Vec::new(),
    };
    let mut last = 0;
    for line in lines {
        if let Some((number, name, outcome)) = check(line) {
            if number <= last {
                bail!("check {number} `{name}` comes after check {last}");
            }
            last = number;
            verdict.checks.push((name, outcome));
        } else if let Some(told) = total(line) {
            let counted = (verdict.passed(), verdict.checks.len(), verdict.lacking());
            if told != counted {
                bail!("its count is {told:?} (passed, checks, lacking), its lines say {counted:?}");
            }
            return Ok(verdict);
        }
    }
    match verdict.checks.last() {
        Some((name, _)) => bail!("it ended without a count, after check {last} `{name}`"),
        None => bail!("it ended in its first check"),
    }
}

/// `3 sort: ok`, `3 sort: FAILED why` or `3 sort: lacks why`.
fn check(line: &str) -> Option<(usize, String, Outcome)> {
    let (head, said) = line.split_once(": ")?;
    let (number, name) = head.split_once(' ')?;
    let outcome = match said.split_once(' ').unwrap_or((said, "")) {
        ("ok", "") => Outcome::Passed,
        ("FAILED", why) => Outcome::Failed(why.to_owned()),
        ("lacks", why) => Outcome::Lacks(why.to_owned()),
        _ => return None,
    };
    Some((number.parse().ok()?, name.to_owned(), outcome))
}

/// `5 of 7 checks passed, 2 lacking` as (passed, checks, lacking).
fn total(line: &str) -> Option<(usize, usize, usize)> {
    let (passed, rest) = line.split_once(" of ")?;
    let (checks, rest) = rest.split_once(" checks passed, ")?;
    let lacking = rest.strip_suffix(" lacking")?;
    Some((
        passed.parse().ok()?,
        checks.parse().ok()?,
        lacking.parse().ok()?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "\
[Taichi] Starting on arch=cuda
client taichi 1.7.4
1 fields: ok
a line of the client: with a colon
2 sparse: lacks a lock
3 sort: FAILED ValueError: 1 is not 2
1 of 3 checks passed, 1 lacking
goodbye
";

    #[test]
    fn lines_and_count_are_read_among_others() {
        let verdict = read(GOOD).expect("a verdict");
        assert_eq!(verdict.version, "1.7.4");
        assert_eq!((verdict.passed(), verdict.lacking()), (1, 1));
        assert_eq!(
            verdict.checks[2],
            (
                "sort".into(),
                Outcome::Failed("ValueError: 1 is not 2".into())
            )
        );
    }

    #[test]
    fn a_script_that_dies_has_no_verdict() {
        let fault = |text: &str| read(text).expect_err("no verdict").to_string();
        assert_eq!(fault("Traceback"), "it ended before its first check");
        assert_eq!(fault("client a 1\n"), "it ended in its first check");
        let cut = GOOD.split_once("3 sort").expect("a third check").0;
        assert_eq!(
            fault(cut),
            "it ended without a count, after check 2 `sparse`"
        );
    }

    #[test]
    fn a_count_that_is_not_that_of_the_lines_is_no_verdict() {
        let error = read(&GOOD.replace("1 of 3", "2 of 3")).expect_err("a wrong count");
        assert!(
            error.to_string().contains("its count is (2, 3, 1)"),
            "{error}"
        );
        let error = read(&GOOD.replace("3 sort", "2 sort")).expect_err("a number twice");
        assert!(error.to_string().contains("after check 2"), "{error}");
    }

    #[test]
    fn other_lines_are_no_checks() {
        for line in [
            "",
            "sort: ok",
            "3 sort ok",
            "x sort: ok",
            "3 sort: okay",
            "3 sort: ok yes",
        ] {
            assert_eq!(check(line), None, "{line}");
        }
        assert_eq!(total("5 of 7 checks passed"), None);
    }
}
