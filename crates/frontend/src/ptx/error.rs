//! What can be wrong with PTX text: always a place, what was found, what would have been right.

use thiserror::Error;

/// A line and column of the text, both from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Position {
    /// Line.
    pub line: u32,
    /// Column, in bytes.
    pub column: u32,
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// Why PTX text could not become a program.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Error {
    /// The text does not follow the grammar.
    #[error("PTX {position}: found {found}, expected {expected}")]
    Syntax {
        /// Place in the text.
        position: Position,
        /// The token that stands there.
        found: String,
        /// What could stand there.
        expected: String,
    },
    /// An instruction that no table knows.
    #[error(
        "PTX {position}: no instruction is spelled `{spelling}` with {operands} operands (in `{text}`)"
    )]
    UnknownInstruction {
        /// Place in the text.
        position: Position,
        /// Opcode and modifiers.
        spelling: String,
        /// How many operands it has.
        operands: usize,
        /// The whole statement.
        text: String,
    },
    /// A name that nothing declares.
    #[error("PTX {position}: `{name}` is not declared as {expected}")]
    UnknownName {
        /// Place in the text.
        position: Position,
        /// The name.
        name: String,
        /// What was looked for.
        expected: &'static str,
    },
    /// Grammar and names are right, the meaning is not.
    #[error("PTX {position}: {message} (in `{text}`)")]
    Meaning {
        /// Place in the text.
        position: Position,
        /// What is wrong, and what would be right.
        message: String,
        /// The statement.
        text: String,
    },
    /// The text is larger than we accept.
    #[error("PTX: {what} is {found}, the limit is {limit}")]
    TooLarge {
        /// The quantity that is limited.
        what: &'static str,
        /// Its value.
        found: u64,
        /// How large it may be.
        limit: u64,
    },
    /// The caller gave addresses for other variables.
    #[error("{given} addresses given for {wanted} module variables")]
    Addresses {
        /// Number of addresses that were given.
        given: usize,
        /// Number of variables that need one.
        wanted: usize,
    },
}
