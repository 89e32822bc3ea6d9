//! README.md: written by hand, but for its figures and its first example.
//!
//! The figures come from measurements; the example is run like a workload.

pub mod example;

use crate::{regions, status_page};
use anyhow::{Result, bail};

/// The page.
pub const PATH: &str = "README.md";
/// Most words of the page: a stranger reads it to the end.
const WORDS: usize = 700;

/// The page as it should be, the example as it is.
pub fn page() -> Result<String> {
    let figures = format!(
        "{}\n{}",
        status_page::accuracy::sentence()?,
        status_page::speed::sentence()?
    );
    regions::with(&regions::read(PATH)?, "figures", &figures)
}

/// Fails if the page is longer than a stranger reads.
pub fn check_length() -> Result<()> {
    let words = regions::read(PATH)?.split_whitespace().count();
    if words > WORDS {
        bail!(
            "{PATH} has {words} words, {WORDS} are allowed: move what is not for a first look to docs/status.md or the book"
        );
    }
    Ok(())
}
