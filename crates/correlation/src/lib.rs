//! Error of the simulator against measured hardware.
//!
//! Three inputs: tables of measurements ([`hardware`]), run folders of simulated programs
//! ([`simulated`]) and the split of programs into sets ([`sets`]). [`compare()`] joins them launch by
//! launch; [`figures`] is the arithmetic of the protocol, one function a figure; [`cause`] guesses
//! why a kernel is wrong. Text, plot, page, history and model card are made from one [`Report`].
//!
//! Left out: running anything. The `correlate` command runs programs and hands over what they left.
//!
//! Start reading at [`compare::compare`].

pub mod card;
pub mod cause;
pub mod compare;
pub mod counters;
pub mod counts;
pub mod figures;
pub mod hardware;
pub mod history;
pub mod page;
pub mod pairs;
pub mod plot;
pub mod sets;
pub mod simulated;
pub mod stalls;
pub mod state;
pub mod table;
pub mod text;
pub mod traffic;

pub use compare::{KernelComparison, ProgramComparison, Report, compare};
pub use hardware::{Hardware, Measurements};
pub use sets::{Set, Sets};
pub use simulated::{Failure, ProgramRun};
pub use state::State;

use std::path::PathBuf;

/// What can be wrong with the inputs.
#[derive(Debug, thiserror::Error)]
pub enum CorrelationError {
    /// A file that cannot be read.
    #[error("cannot read {path}: {reason}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        reason: std::io::Error,
    },
    /// A table with something that is not understood.
    #[error("{path}: {problem}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Where and what.
        problem: String,
    },
}

impl CorrelationError {
    fn malformed(path: &std::path::Path, problem: impl Into<String>) -> Self {
        Self::Malformed {
            path: path.to_path_buf(),
            problem: problem.into(),
        }
    }
}

fn read(path: &std::path::Path) -> Result<String, CorrelationError> {
    std::fs::read_to_string(path).map_err(|reason| CorrelationError::Unreadable {
        path: path.to_path_buf(),
        reason,
    })
}
