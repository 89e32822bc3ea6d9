//! What can be wrong with a metadata file.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// A metadata file that cannot be used, and why.
#[derive(Debug, Error)]
pub enum SchemaError {
    /// The file could not be read.
    #[error("{}: cannot read the metadata file: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The text is not the TOML that was expected.
    #[error("{place}: malformed metadata: {because}")]
    Malformed {
        /// File name, or a word for where the text came from.
        place: String,
        /// Line, what was found and what was expected, in the parser's words.
        because: String,
    },
    /// A counter or gauge that no registry entry has.
    #[error("{place}: no {kind} is called `{name}`; nearest: {nearest}")]
    Unknown {
        /// File name, or a word for where the text came from.
        place: String,
        /// `counter` or `gauge`.
        kind: &'static str,
        /// What was asked for.
        name: String,
        /// The closest known names.
        nearest: String,
    },
    /// A counter named twice, perhaps once by its alias.
    #[error("{place}: counter `{name}` is listed twice (first as `{first}`)")]
    Twice {
        /// File name, or a word for where the text came from.
        place: String,
        /// The second spelling.
        name: String,
        /// The first spelling.
        first: String,
    },
    /// A counter that the sampling hardware cannot give in one pass.
    #[error(
        "{place}: `{name}` needs several passes over a kernel, so it cannot be sampled while the program runs; {instead}"
    )]
    SeveralPasses {
        /// File name, or a word for where the text came from.
        place: String,
        /// The counter.
        name: String,
        /// What to do.
        instead: String,
    },
    /// A value that is out of the range that makes sense.
    #[error("{place}: `{key}` = {found}, but {because}")]
    OutOfRange {
        /// File name, or a word for where the text came from.
        place: String,
        /// The key.
        key: &'static str,
        /// Its value.
        found: String,
        /// The rule that it breaks.
        because: &'static str,
    },
}
