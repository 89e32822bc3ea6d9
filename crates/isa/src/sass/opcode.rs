//! What an instruction does: the first word of its spelling.

use std::fmt;

/// The first word of an instruction, as a row of the tables spells it. The rows are the only list of
/// opcodes: a new one needs no entry here.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Opcode(&'static str);

impl Opcode {
    /// The opcode that is spelled `name`.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self(name)
    }

    /// The spelling.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.0
    }
}

impl fmt::Debug for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}
