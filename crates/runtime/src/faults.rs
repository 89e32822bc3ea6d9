//! Faults of kernels, and whether the program was told.
//!
//! A call answers a fault with CUDA's code, and so do all later calls of the context. A program that is told may go on,
//! and ends as it likes; a fault of which no call told anybody is a problem of the run.

use crate::device::Fault;
use lockstep_protocol::{ContextHandle, CuResult};

/// A fault, and who knows of it.
#[derive(Clone, Debug, PartialEq)]
pub struct MetFault {
    /// What happened.
    pub fault: Fault,
    /// The context that it ended; all of them if there is none.
    context: Option<ContextHandle>,
    told: bool,
}

impl MetFault {
    /// A fault that nobody was told of yet.
    pub(crate) fn new(fault: Fault, context: Option<ContextHandle>) -> Self {
        Self {
            fault,
            context,
            told: false,
        }
    }

    /// A call was answered this code, in a context if it has one.
    pub(crate) fn answered(&mut self, context: Option<ContextHandle>, code: CuResult) {
        let here = self.context.is_none() || context.is_none() || self.context == context;
        self.told |= here && self.fault.code == code;
    }

    /// Whether it is the program's affair: a real GPU has it too, and a call told of it.
    #[must_use]
    pub fn is_handled(&self) -> bool {
        self.told && !self.fault.of_simulator
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(of_simulator: bool) -> Fault {
        Fault {
            code: CuResult::ILLEGAL_ADDRESS,
            launch: None,
            message: "a wild store".into(),
            address: None,
            of_simulator,
        }
    }

    #[test]
    fn a_fault_is_handled_when_a_call_of_its_context_told_of_it() {
        let (own, other) = (Some(ContextHandle(1)), Some(ContextHandle(2)));
        let mut met = MetFault::new(fault(false), own);
        assert!(!met.is_handled());
        met.answered(other, CuResult::ILLEGAL_ADDRESS);
        met.answered(own, CuResult::INVALID_VALUE);
        assert!(!met.is_handled(), "neither was about it");
        met.answered(own, CuResult::ILLEGAL_ADDRESS);
        assert!(met.is_handled());
    }

    #[test]
    fn what_the_simulator_lacks_is_never_handled() {
        let mut met = MetFault::new(fault(true), None);
        met.answered(Some(ContextHandle(1)), CuResult::ILLEGAL_ADDRESS);
        assert!(!met.is_handled());
    }
}
