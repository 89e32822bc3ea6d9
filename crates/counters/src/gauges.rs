//! Metrics that go up and down. What no model knows (power, temperature) is absent from a simulated
//! run, never 0.

use crate::metric::{Comparison, Metric, Scope, gauge};

/// Gauges of a launch, worked out from its counters when it has ended.
pub const LAUNCH_GAUGES: &[Metric] = &[
    gauge(Scope::Sm, "of the most that fit")
        .compared(Comparison::Share)
        .ncu(&["sm__warps_active.avg.pct_of_peak_sustained_active"])
        .named(
            "achieved_occupancy",
            "Warps present in active cycles, of the most that fit, from 0 to 1.",
        ),
    share("fp32", "Share of single and half precision instructions."),
    share("fp64", "Share of double precision instructions."),
    share("integer", "Share of integer and logic instructions."),
    share(
        "control",
        "Share of branches, calls and barriers of convergence.",
    ),
    share("load_store", "Share of loads, stores and atomics."),
    share("other", "Share of all other instructions."),
    share(
        "inactive",
        "Lanes that did not take part, of all lanes of all instructions.",
    ),
];

const fn share(name: &'static str, summary: &'static str) -> Metric {
    gauge(Scope::Kernel, "percent")
        .untimed()
        .named(name, summary)
}

/// Gauges of a GPU, in the order of their columns. The first four come from the board's sensors, the
/// rest from its memory accounting.
pub const DEVICE_GAUGES: &[Metric] = &[
    gauge(Scope::Gpu, "milliwatts")
        .dcgm("DCGM_FI_DEV_POWER_USAGE", "power_usage")
        .otlp("hw.power")
        .named("power", "Power drawn by the board."),
    gauge(Scope::Gpu, "degrees Celsius")
        .dcgm("DCGM_FI_DEV_GPU_TEMP", "gpu_temp")
        .otlp("hw.temperature")
        .named("temperature", "Temperature of the GPU."),
    gauge(Scope::Gpu, "megahertz")
        .dcgm("DCGM_FI_DEV_SM_CLOCK", "sm_clock")
        .named("sm_clock", "Clock of the multiprocessors."),
    gauge(Scope::Gpu, "megahertz")
        .dcgm("DCGM_FI_DEV_MEM_CLOCK", "memory_clock")
        .named("memory_clock", "Clock of the device memory."),
    gauge(Scope::Gpu, "bytes")
        .dcgm("DCGM_FI_DEV_FB_USED", "fb_used")
        .otlp("hw.gpu.memory.usage")
        .named("memory_used", "Device memory in use by all processes."),
];

/// What a sampled process reports about its own host side, in the order of the columns.
pub const HOST_GAUGES: &[Metric] = &[
    gauge(Scope::Host, "nanoseconds")
        .otlp("process.cpu.time")
        .named(
            "host_cpu_time",
            "Processor time that the process has used, all threads, user and system.",
        ),
    gauge(Scope::Host, "bytes")
        .otlp("process.memory.usage")
        .named("host_memory", "Resident memory of the process."),
];
