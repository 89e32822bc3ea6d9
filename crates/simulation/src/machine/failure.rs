//! Failures inside the simulator: nothing that comes after one can be trusted.

use super::Machine;
use lockstep_gpu::{FaultKind, GpuError, LaunchId};
use lockstep_protocol::CuResult;
use lockstep_runtime::device::Fault;
use lockstep_text::names::readable;

impl Machine {
    /// Something that the GPU was asked to do failed inside the simulator. The first one counts:
    /// others follow from it.
    pub fn fail(&mut self, sentence: String) {
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
                address: None,
                of_simulator: true,
            }),
        }
    }

    /// The fault of a kernel, as the runtime knows it.
    pub(super) fn fault_of(&self, fault: &lockstep_gpu::Fault) -> Fault {
        let root = self.gpu.root_of(LaunchId(fault.launch));
        let launch = self.launches.get(&root);
        Fault {
            code: code_of(&fault.kind),
            launch: launch.map(|(id, _)| *id),
            message: readable_names(fault).to_string(),
            address: address_of(&fault.kind),
            of_simulator: is_of_simulator(&fault.kind),
        }
    }

    /// Another rank may be gone: nothing can be simulated any more.
    pub(super) fn note_lost(&mut self) {
        if let Some(lost) = self.gpu.lost() {
            self.fail(lost.0);
        }
    }

    /// Brings what other ranks simulate here, so that what is said of the GPU is of all of it.
    pub fn gather(&mut self) {
        if let Err(lost) = self.gpu.gather() {
            self.fail(lost.0);
        }
    }

    /// Kernels wait for the host to write memory, which only rank 0 would see.
    pub(super) fn refuse_host_writes(&mut self, fault: &lockstep_gpu::Fault) -> Fault {
        self.gpu.fail(Box::new(fault.clone()));
        let mut refused = self.fault_of(fault);
        refused.message = format!(
            "{}; the host may end this by writing memory, which other ranks do not see: run with --ranks 1",
            refused.message
        );
        refused
    }

    /// Kernels go round in circles until the host writes something, which it may; said once.
    pub(super) fn warn_of_spin(&mut self, fault: &lockstep_gpu::Fault, who: &str) {
        if !self.warned_of_spin {
            self.warned_of_spin = true;
            let fault = readable_names(fault);
            tracing::warn!("only the host can end this, and {who} may: {fault}");
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

/// A fault that names kernel and function as people write them.
fn readable_names(fault: &lockstep_gpu::Fault) -> lockstep_gpu::Fault {
    let mut fault = fault.clone();
    fault.kernel = readable(&fault.kernel);
    if let Some(place) = &mut fault.place {
        place.function = readable(&place.function);
    }
    fault
}

/// The address in global memory that a fault is about.
fn address_of(kind: &FaultKind) -> Option<u64> {
    match kind {
        FaultKind::IllegalAddress { what, address, .. } => {
            let own = what.starts_with("shared") || what.starts_with("local");
            (!own).then_some(*address)
        }
        FaultKind::ReadOnly { address, .. } | FaultKind::Multicast { address, .. } => {
            Some(*address)
        }
        _ => None,
    }
}

/// Whether a real GPU may not have met this. An instruction that is not known here may be one that it knows.
fn is_of_simulator(kind: &FaultKind) -> bool {
    matches!(
        kind,
        FaultKind::Unsupported(_)
            | FaultKind::IllegalInstruction(_)
            | FaultKind::EarlyRead(_)
            | FaultKind::Hang(_)
            | FaultKind::Rank(_)
    )
}

/// CUDA's code for what a kernel did.
fn code_of(kind: &FaultKind) -> CuResult {
    match kind {
        FaultKind::IllegalAddress { .. }
        | FaultKind::ReadOnly { .. }
        | FaultKind::Multicast { .. } => CuResult::ILLEGAL_ADDRESS,
        FaultKind::Misaligned { .. } => CuResult::MISALIGNED_ADDRESS,
        FaultKind::Unsupported(_) | FaultKind::IllegalInstruction(_) => {
            CuResult::ILLEGAL_INSTRUCTION
        }
        FaultKind::IllegalJump { .. } => CuResult::INVALID_PC,
        FaultKind::Assert(_) => CuResult::ASSERT,
        FaultKind::Mbarrier(_)
        | FaultKind::Trace(_)
        | FaultKind::Cluster(_)
        | FaultKind::EarlyRead(_)
        | FaultKind::Trap
        | FaultKind::InvalidFree { .. } => CuResult::LAUNCH_FAILED,
        FaultKind::Hang(_) => CuResult::LAUNCH_TIMEOUT,
        FaultKind::Rank(_) => CuResult::UNKNOWN,
        FaultKind::TooLarge(_) => CuResult::LAUNCH_OUT_OF_RESOURCES,
    }
}
