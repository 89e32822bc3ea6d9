//! Failures inside the simulator: nothing that comes after one can be trusted.

use super::Machine;
use lockstep_gpu::GpuError;
use lockstep_protocol::CuResult;
use lockstep_runtime::device::Fault;

impl Machine {
    /// Something that the GPU was asked to do failed inside the simulator. The first one counts:
    /// others follow from it.
    pub(super) fn fail(&mut self, sentence: String) {
        self.failure.get_or_insert(sentence);
    }

    /// What failed inside the simulator, if anything did.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Refuses to go on after a failure: results would be wrong.
    pub(super) fn check(&self) -> Result<(), Fault> {
        match &self.failure {
            None => Ok(()),
            Some(sentence) => Err(Fault {
                code: CuResult::UNKNOWN,
                launch: None,
                message: sentence.clone(),
            }),
        }
    }

    /// A request for managed memory that the engine refuses came too late, which is a mistake of
    /// the simulator.
    pub(super) fn check_managed(&mut self, asked: Result<(), GpuError>) {
        if let Err(error) = asked {
            self.fail(format!(
                "managed memory: {error}; this is a fault of the simulator, please report it"
            ));
        }
    }
}
