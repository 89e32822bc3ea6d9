//! The architectures whose encodings the tables know.

use std::fmt;

/// A compute capability with its own set of encodings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Architecture {
    /// Volta.
    Sm70,
    /// Turing.
    Sm75,
    /// Ampere, A100.
    Sm80,
    /// Ampere, GA10x.
    Sm86,
    /// Ada.
    Sm89,
    /// Hopper.
    Sm90,
}

/// Every architecture, oldest first; the position is [`Architecture::index`].
pub const ARCHITECTURES: &[Architecture] = &[
    Architecture::Sm70,
    Architecture::Sm75,
    Architecture::Sm80,
    Architecture::Sm86,
    Architecture::Sm89,
    Architecture::Sm90,
];

impl Architecture {
    /// The architecture that decodes code for compute capability `sm` (major × 10 + minor).
    ///
    /// Members of a family that share all encodings map to its first: 72 to 70, 87 and 88 to 86.
    #[must_use]
    pub fn from_sm(sm: u32) -> Option<Self> {
        Some(match sm {
            70 | 72 => Self::Sm70,
            75 => Self::Sm75,
            80 => Self::Sm80,
            86..=88 => Self::Sm86,
            89 => Self::Sm89,
            90 => Self::Sm90,
            _ => return None,
        })
    }

    /// Compute capability as major × 10 + minor.
    #[must_use]
    pub fn sm(self) -> u32 {
        match self {
            Self::Sm70 => 70,
            Self::Sm75 => 75,
            Self::Sm80 => 80,
            Self::Sm86 => 86,
            Self::Sm89 => 89,
            Self::Sm90 => 90,
        }
    }

    /// Position in [`ARCHITECTURES`].
    #[must_use]
    pub fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}", self.sm())
    }
}
