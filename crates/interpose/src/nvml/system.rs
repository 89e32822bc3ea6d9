//! The library itself and the system around the devices.

use super::boundary::{NvmlError, check_version, nvml, set_text};
use super::library;
use crate::types::Out;

/// The driver of the H200 whose answers ours are compared with. Programs take it apart at its dots.
const DRIVER: &str = "580.159.04";

/// `nvmlConfComputeSystemState_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct ConfidentialState {
    environment: u32,
    feature: u32,
    tools: u32,
}

/// `nvmlSystemConfComputeSettings_v1_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct ConfidentialSettings {
    version: u32,
    environment: u32,
    feature: u32,
    tools: u32,
    several_gpus: u32,
}

nvml! {
    fn nvmlInit_v2() {
        library::initialize()
    }

    fn nvmlInit() {
        library::initialize()
    }

    /// The flags allow that there is no GPU, and that none is attached; either is fine.
    fn nvmlInitWithFlags(flags: u32) {
        const KNOWN: u32 = 0b11;
        if flags & !KNOWN != 0 {
            return Err(NvmlError::INVALID_ARGUMENT);
        }
        library::initialize()
    }

    fn nvmlShutdown() {
        library::shut_down()
    }

    fn nvmlSystemGetDriverVersion [_library] (version: Out<u8>, length: u32) {
        set_text(version, DRIVER, length)
    }

    /// The major version of CUDA stands before that of the driver.
    fn nvmlSystemGetNVMLVersion [library] (version: Out<u8>, length: u32) {
        set_text(version, &format!("{}.{DRIVER}", library.cuda_version / 1000), length)
    }

    /// Needs no initialisation on hardware; without a simulator there is no driver to ask.
    fn nvmlSystemGetCudaDriverVersion_v2 | nvmlSystemGetCudaDriverVersion [library] (version: Out<i32>) {
        Ok(version.set(library.cuda_version)?)
    }

    fn nvmlSystemGetProcessName [_library] (process: u32, name: Out<u8>, length: u32) {
        let line = std::fs::read(format!("/proc/{process}/cmdline"))
            .map_err(|_| NvmlError::NOT_FOUND)?;
        let first = line.split(|byte| *byte == 0).next().unwrap_or_default();
        set_text(name, &String::from_utf8_lossy(first), length)
    }

    /// Boxes of GPUs with a power supply of their own: none.
    fn nvmlUnitGetCount [_library] (count: Out<u32>) {
        Ok(count.set(0)?)
    }

    /// Nothing is encrypted between the host and a simulated GPU.
    fn nvmlSystemGetConfComputeState [_library] (state: Out<ConfidentialState>) {
        Ok(state.set(ConfidentialState {
            environment: 0,
            feature: 0,
            tools: 0,
        })?)
    }

    fn nvmlSystemGetConfComputeSettings [_library] (settings: Out<ConfidentialSettings>) {
        check_version(settings, 1)?;
        Ok(settings.set(ConfidentialSettings {
            version: settings.current()?.version,
            environment: 0,
            feature: 0,
            tools: 0,
            several_gpus: 0,
        })?)
    }
}
