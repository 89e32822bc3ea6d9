//! What can be wrong with a file of machine code.

use thiserror::Error as ThisError;

/// A file that cannot be used.
#[derive(Debug, ThisError, Clone, PartialEq, Eq)]
pub enum Error {
    /// The container is broken.
    #[error("{what}: {found}; the file is cut short or is not what it claims to be")]
    Malformed {
        /// Name of the structure.
        what: &'static str,
        /// The bytes or number that stand there.
        found: String,
    },
    /// Good code for a GPU that is not simulated.
    #[error(
        "the code is for sm_{architecture}, and no decoder knows that; known are sm_70 to sm_90 (compile for one of them, or keep PTX in the program)"
    )]
    UnknownArchitecture {
        /// Compute capability × 10.
        architecture: u32,
    },
    /// An instruction that the tables do not know.
    #[error(
        "{function}+{address:#x}: unknown encoding {word:#034x} for sm_{architecture}; `cuobjdump -sass` of the \
         program, or `nvdisasm --binary SM{architecture}` of these 16 bytes, says what it is; run with \
         `--frontend ptx` if the program carries PTX"
    )]
    UnknownInstruction {
        /// Function that holds it.
        function: String,
        /// Bytes from the start of its section.
        address: u64,
        /// The 128 bits.
        word: u128,
        /// Compute capability × 10.
        architecture: u32,
    },
    /// An instruction whose operands make no sense.
    #[error("{function}+{address:#x}: `{text}` (encoding {word:#034x}) {why}")]
    BadInstruction {
        /// Function that holds it.
        function: String,
        /// Bytes from the start of its section.
        address: u64,
        /// As the disassembler prints it.
        text: String,
        /// The 128 bits.
        word: u128,
        /// Reason why it cannot be bound.
        why: String,
    },
    /// A header that claims what no GPU has.
    #[error("`{name}` has {found} {what}, and {most} are the most; the file is damaged")]
    Limit {
        /// Kernel, variable or section.
        name: String,
        /// The quantity that is limited.
        what: &'static str,
        /// Its value.
        found: u64,
        /// How large it may be.
        most: u64,
    },
    /// A relocation whose meaning is unknown.
    #[error(
        "{section}+{offset:#x}: relocation type {kind} to `{symbol}` is unknown; relink the program with an older or newer toolkit"
    )]
    UnknownRelocation {
        /// Section that would be patched.
        section: String,
        /// Byte offset.
        offset: u64,
        /// Number of the type.
        kind: u32,
        /// Symbol that it refers to.
        symbol: String,
    },
    /// Something outside the module that is not there.
    #[error(
        "`{symbol}` is not defined in this module; link the program with the object that defines it"
    )]
    Unresolved {
        /// Name.
        symbol: String,
    },
    /// The caller did not give an address for each variable.
    #[error("{given} addresses for {wanted} variables")]
    Addresses {
        /// Number of addresses that were given.
        given: usize,
        /// Number of variables that need one.
        wanted: usize,
    },
}

impl Error {
    /// Refuses a figure of a header above what any GPU has.
    pub(super) fn limit(
        name: &str,
        what: &'static str,
        found: u64,
        most: u64,
    ) -> Result<u64, Self> {
        if found <= most {
            return Ok(found);
        }
        Err(Self::Limit {
            name: name.to_owned(),
            what,
            found,
            most,
        })
    }

    pub(super) fn malformed(what: &'static str, found: impl Into<String>) -> Self {
        Self::Malformed {
            what,
            found: found.into(),
        }
    }
}
