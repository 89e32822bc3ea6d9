//! Launches on their way to the hardware and back, each in its mode.

use super::{Machine, hardware_mode};
use crate::description::Mode;
use lockstep_counters::LaunchCounters;
use lockstep_gpu::{GpuError, KernelRecord, Launch, LaunchedBy};
use lockstep_isa::Module;
use lockstep_protocol::CuResult;
use lockstep_runtime::device::{Fault, KernelLaunch, KernelResult};
use lockstep_runtime::{Device as _, LaunchSummary};
use std::ops::Range;
use std::sync::Arc;

/// Address space of the heap of device code, at the most.
const HEAP_SPACE: u64 = 40 << 30;

/// Address space of the arguments of launches by kernels.
const LAUNCH_POOL: u64 = 8 << 30;

/// Numbers of modules of traces begin here, behind all others.
const TRACED_MODULES: u64 = 1 << 32;

impl Machine {
    /// Whether it has kernels that run or wait.
    pub fn is_busy(&self) -> bool {
        !self.held.is_empty() || !self.gpu.is_idle() || !self.is_projection_over()
    }

    /// Gives it so many worker threads.
    pub fn set_threads(&mut self, threads: usize) {
        let now = self.options.engine.threads;
        // Other threads are started: a few more are not worth it.
        if threads == now || (threads > now && threads < 2 * now) {
            return;
        }
        self.options.engine.threads = threads;
        self.gpu.set_engine_options(self.options.engine.clone());
    }

    /// The number of a module, which a launch may be the first of.
    fn module_number(&mut self, launch: u64, module: &Arc<Module>) -> u64 {
        if module.trace.is_some() {
            return self.traced_number(module);
        }
        if let Some(index) = self
            .modules
            .iter()
            .position(|known| Arc::ptr_eq(known, module))
        {
            return index as u64;
        }
        self.modules.push(module.clone());
        self.introduced.push(launch);
        self.modules.len() as u64 - 1
    }

    /// The number of a module of a trace. Each launch has one of its own, and to keep them all would take as much
    /// memory as their code; instruction caches know equal ones by one number.
    fn traced_number(&mut self, module: &Module) -> u64 {
        let name = module.kernels.first().map_or("", |kernel| &kernel.name);
        let code = (name.to_string(), module.code.len());
        let next = TRACED_MODULES + self.traced.len() as u64;
        *self.traced.entry(code).or_insert(next)
    }

    pub(super) fn results(&mut self, records: Vec<KernelRecord>) -> Vec<KernelResult> {
        let by_host = records.iter().filter(|record| record.launched_by.is_none());
        self.progress.ended(by_host.count());
        let mut results = Vec::with_capacity(records.len());
        for record in records {
            if let Some(tracing) = &self.tracing {
                tracing.end(record.launch);
            }
            if let Some(by) = record.launched_by {
                if let Some(&(id, mode)) = self.launches.get(&by.root) {
                    self.publish_ended(&record, id, mode);
                    let mut result = result(id, &record, mode == Mode::Timing);
                    result.by_kernel = Some(Box::new(by_kernel(&record, by)));
                    results.push(result);
                }
            } else if let Some((id, mode)) = self.launches.remove(&record.launch) {
                self.publish_ended(&record, id, mode);
                let mut result = result(id, &record, mode == Mode::Timing);
                self.note_sample(&record, &mut result);
                results.push(result);
            }
        }
        self.hold_projected(&mut results);
        self.note_ended(&results);
        results
    }

    /// Hands a launch to the hardware, in its mode.
    pub(super) fn begin(&mut self, number: u64, mut launch: Launch) -> Result<(), Fault> {
        let mode = match self.chosen_mode(number, &launch) {
            Some(chosen) => chosen,
            None => self.mode_of(number),
        };
        let refused = |error: GpuError| Fault {
            code: CuResult::LAUNCH_OUT_OF_RESOURCES,
            launch: Some(number),
            message: error.to_string(),
            address: None,
            of_simulator: false,
        };
        self.set_mode(hardware_mode(mode)).map_err(refused)?;
        if mode == Mode::Functional {
            self.begin_untimed();
        }
        launch.module_id = self.module_number(number, &launch.module);
        if launch.device_runtime.is_some() {
            self.map_launch_pool();
        }
        self.progress.began(&launch.kernel().name);
        let traced = match &self.tracing {
            Some(tracing) if self.is_chosen(number) => tracing.describe(&launch).map(Some),
            _ => Ok(None),
        };
        let traced = traced.map_err(|message| Fault {
            code: CuResult::NOT_SUPPORTED,
            launch: Some(number),
            message,
            address: None,
            of_simulator: true,
        })?;
        let handed = self.gpu.launch(launch).map_err(refused)?;
        if let (Some(tracing), Some(kernel)) = (&self.tracing, traced) {
            tracing.begin(handed, kernel);
        }
        self.launches.insert(handed, (number, mode));
        Ok(())
    }

    /// Memory for the arguments of launches by kernels, from the first time on that there may be some.
    fn map_launch_pool(&mut self) {
        if !self.has_launch_pool {
            self.has_launch_pool = true;
            let range = self.launch_pool();
            self.map(self.ordinal, range.start, range.end - range.start);
            self.gpu.set_launch_pool(range);
        }
    }

    /// Where the arguments of launches by kernels lie: behind the heap of device code.
    fn launch_pool(&self) -> Range<u64> {
        let start = self.heap_start() + HEAP_SPACE;
        start..start + LAUNCH_POOL
    }

    /// The mode that a launch runs in.
    pub(super) fn mode_of(&self, number: u64) -> Mode {
        match self.mode {
            Mode::Timing if self.is_chosen(number) => Mode::Timing,
            _ => Mode::Functional,
        }
    }

    /// Notes whether a launch is chosen, which depends on what the program is at when it makes it.
    pub(super) fn note_choice(&mut self, launch: &LaunchSummary) {
        if !self.selection.is_everything() && self.selection.chooses(launch) {
            self.chosen.insert(launch.id);
        }
    }

    fn is_chosen(&self, number: u64) -> bool {
        self.selection.is_everything() || self.chosen.contains(&number)
    }

    /// Whether no kernel of the other mode is in the way.
    pub(super) fn can_begin(&self, number: u64) -> bool {
        if self.waits_for_checkpoint(number) {
            return false;
        }
        if let Some(sampling) = &self.sampling {
            return self.gpu.is_idle() && sampling.is_idle();
        }
        self.gpu.mode() == hardware_mode(self.mode_of(number)) || self.gpu.is_idle()
    }

    /// Hands over the launches that waited for those of the other mode.
    pub(super) fn begin_held(&mut self) -> Result<(), Fault> {
        while let Some((number, _)) = self.held.front()
            && self.can_begin(*number)
            && let Some((number, launch)) = self.held.pop_front()
        {
            self.begin(number, launch)?;
        }
        Ok(())
    }
}

fn result(id: u64, record: &KernelRecord, timed: bool) -> KernelResult {
    KernelResult {
        id,
        start: record.start,
        end: record.end,
        complete: (record.complete != record.end).then_some(record.complete),
        start_cycle: timed.then_some(record.start_cycle.0),
        counters: LaunchCounters {
            values: record.counters,
            timed,
        },
        by_kernel: None,
    }
}

fn by_kernel(record: &KernelRecord, by: LaunchedBy) -> KernelLaunch {
    KernelLaunch {
        number: record.launch.0,
        parent: by.parent.0,
        kernel: record.kernel.clone(),
        grid: record.grid,
        block: record.block,
        registers: record.registers,
        shared: record.shared,
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
