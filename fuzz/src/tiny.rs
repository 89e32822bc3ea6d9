//! A GPU that is quick to build and small enough for its parts to overflow.

use lockstep_config::GpuConfig;
use lockstep_simulation::{Assembling, Description, Mode, Progress};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// What makes it small.
const TINY: &[&str] = &[
    "device.sms=2",
    "device.gpcs=1",
    "device.gpc-tpcs=[1]",
    "device.gpc-of-tpc=[0]",
    "l2.first-partition-gpcs=[0]",
    "dispatch.first-sms=[1]",
    "interconnect.tpc-hop-latency=[\"7 cycles\"]",
    "device.memory=1 GiB",
    "l2.slices=2",
    "l2.interleave-slices=2",
    "l2.ways=4",
    "l2.capacity=32 KiB",
    "dram.channels=2",
    "dram.banks=4",
    "dram.refresh-groups=2",
    "launch.watchdog=100000 cycles",
];

/// What a running case can be stopped by.
static RUNNING: Mutex<Option<Arc<Progress>>> = Mutex::new(None);

/// GPUs that were asked for: reading a description takes longer than most cases.
static KNOWN: Mutex<BTreeMap<u32, GpuConfig>> = Mutex::new(BTreeMap::new());

/// The GPU, for code of an architecture.
pub fn config(architecture: u32) -> GpuConfig {
    let Ok(mut known) = KNOWN.lock() else {
        return read(architecture);
    };
    let config = known
        .entry(architecture)
        .or_insert_with(|| read(architecture));
    config.clone()
}

fn read(architecture: u32) -> GpuConfig {
    let (major, minor) = (architecture / 10, architecture % 10);
    let capability = format!("device.compute-capability=\"{major}.{minor}\"");
    let mut settings = TINY.to_vec();
    settings.push(&capability);
    lockstep_config::load(Some("h200"), &settings).expect("the tiny GPU is one")
}

/// A run on it that [`stop`] can end.
pub fn description(config: GpuConfig, mode: Mode) -> Description {
    let mut description = Description::new("tiny", config);
    // What is changed is read here, not by an assembler.
    description.assembling = Assembling::Never;
    description.execution.threads = 1;
    description.mode = mode;
    if let Ok(mut running) = RUNNING.lock() {
        *running = Some(description.progress.clone());
    }
    description
}

/// Asks what runs to end at the next boundary, as a signal to the simulator would.
pub fn stop() {
    if let Ok(running) = RUNNING.lock()
        && let Some(progress) = &*running
    {
        progress.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_isa::sass::architecture::ARCHITECTURES;
    use lockstep_simulation::Session;

    #[test]
    fn it_can_be_built_for_every_architecture_and_mode() {
        for architecture in ARCHITECTURES {
            for mode in [Mode::Functional, Mode::Timing] {
                let description = description(config(architecture.sm()), mode);
                Session::new(&description).expect("it can be built");
            }
        }
    }
}
