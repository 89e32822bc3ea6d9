//! Launches on their way to the hardware and back, each in its mode.

use super::{Machine, hardware_mode};
use crate::description::Mode;
use lockstep_counters::LaunchCounters;
use lockstep_gpu::{GpuError, KernelRecord, Launch};
use lockstep_isa::Module;
use lockstep_protocol::CuResult;
use lockstep_runtime::device::{Fault, KernelLaunch, KernelResult};
use std::sync::Arc;

impl Machine {
    pub(super) fn module_number(&mut self, module: &Arc<Module>) -> u64 {
        if let Some(index) = self
            .modules
            .iter()
            .position(|known| Arc::ptr_eq(known, module))
        {
            return index as u64;
        }
        self.modules.push(module.clone());
        self.modules.len() as u64 - 1
    }

    pub(super) fn results(&mut self, records: Vec<KernelRecord>) -> Vec<KernelResult> {
        self.progress.ended(records.len());
        let mut results = Vec::with_capacity(records.len());
        for record in records {
            if let Some((id, mode)) = self.launches.remove(&record.launch) {
                results.push(result(id, &record, mode == Mode::Timing));
            }
        }
        results
    }

    /// Hands a launch to the hardware, in its mode.
    pub(super) fn begin(&mut self, launch: KernelLaunch) -> Result<(), Fault> {
        let (number, mode) = (launch.id, self.mode_of(&launch));
        let refused = |error: GpuError| Fault {
            code: CuResult::LAUNCH_OUT_OF_RESOURCES,
            launch: Some(number),
            message: error.to_string(),
        };
        self.gpu.set_mode(hardware_mode(mode)).map_err(refused)?;
        self.options.mode = hardware_mode(mode);
        let module_id = self.module_number(&launch.module);
        let work_space = launch.cooperative.unwrap_or(0);
        let name = launch.module.kernels[launch.kernel].name.clone();
        self.progress.began(&name);
        let handed = self.gpu.launch(Launch {
            module: launch.module,
            module_id,
            kernel: launch.kernel,
            grid: launch.grid,
            block: launch.block,
            dynamic_shared: launch.dynamic_shared,
            carveout: launch.carveout,
            stack: launch.stack,
            arguments: launch.arguments,
            queue: launch.queue as u32,
            environment: [0, (work_space >> 32) as u32, work_space as u32, 0],
            constants: launch.constants,
            at: launch.at,
        });
        self.launches
            .insert(handed.map_err(refused)?, (number, mode));
        Ok(())
    }

    /// The mode that a launch runs in.
    pub(super) fn mode_of(&self, launch: &KernelLaunch) -> Mode {
        let name = &launch.module.kernels[launch.kernel].name;
        match self.mode {
            Mode::Timing if self.selection.chooses(name, launch.id) => Mode::Timing,
            _ => Mode::Functional,
        }
    }

    /// Whether no kernel of the other mode is in the way.
    pub(super) fn can_begin(&self, launch: &KernelLaunch) -> bool {
        self.gpu.mode() == hardware_mode(self.mode_of(launch)) || self.gpu.is_idle()
    }

    /// Hands over the launches that waited for those of the other mode.
    pub(super) fn begin_held(&mut self) -> Result<(), Fault> {
        while let Some(launch) = self.held.front()
            && self.can_begin(launch)
            && let Some(launch) = self.held.pop_front()
        {
            self.begin(launch)?;
        }
        Ok(())
    }
}

fn result(id: u64, record: &KernelRecord, timed: bool) -> KernelResult {
    KernelResult {
        id,
        start: record.start,
        end: record.end,
        start_cycle: timed.then_some(record.start_cycle.0),
        counters: LaunchCounters {
            values: record.counters,
            timed,
        },
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn columns_of_stalls_are_the_models_reasons_in_their_order() {
        let columns =
            lockstep_counters::stalls().map(|one| one.name.trim_start_matches("stalled_"));
        assert!(columns.eq(lockstep_gpu::REASON_NAMES));
    }
}
