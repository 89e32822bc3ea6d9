//! Where the calls of the SST-GPU report's table 1 go: the report sends each to its CTA scheduler, some also to its SM
//! groups; here a call becomes requests, and a request reaches one part of the simulator.
//!
//! Two tests hold the table to what the code does: one of `interpose` makes the calls and looks at what is asked, one of
//! `runtime` asks and looks at what is reached. `docs/reference/sst_calls.md` is made from it.

/// What a request reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The runtime's own tables: contexts, modules, addresses.
    Runtime,
    /// A copy engine.
    CopyEngine,
    /// The CTA scheduler (the work distributor), which sends blocks to SMs.
    CtaScheduler,
}

/// A call of the table.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// Its name.
    pub call: &'static str,
    /// Whether the report sends it to the SM groups as well as to the scheduler.
    pub report_sms: bool,
    /// What the simulator is asked for it, by [`Request::name`](crate::Request::name).
    pub requests: &'static [&'static str],
    /// Whether that waits for the first call that needs what is registered.
    pub is_late: bool,
}

const fn route(call: &'static str, report_sms: bool, requests: &'static [&'static str]) -> Route {
    Route {
        call,
        report_sms,
        requests,
        is_late: false,
    }
}

const fn late(call: &'static str, request: &'static [&'static str]) -> Route {
    Route {
        is_late: true,
        ..route(call, true, request)
    }
}

/// The calls, in the report's order. Those without a request are answered in the program's own process.
pub const ROUTES: &[Route] = &[
    late("__cudaRegisterFatBinary", &["ModuleLoad"]),
    late("__cudaRegisterFunction", &["ModuleFunction"]),
    route("cudaMalloc", false, &["Allocate"]),
    route("cudaMemcpy", false, &["Copy"]),
    route("cudaMemset", false, &["Fill"]),
    route("cudaConfigureCall", true, &[]),
    route("cudaSetupArgument", true, &[]),
    route("cudaFree", false, &["Free"]),
    route("cudaLaunch", true, &["Launch"]),
    route("cudaGetLastError", false, &[]),
    route(
        "cudaFuncSetCacheConfig",
        false,
        &["FunctionCachePreference"],
    ),
    route("cudaSetDevice", false, &[]),
    route("cudaGetDeviceCount", false, &[]),
    route("cudaGetDeviceProperties", false, &[]),
    late("__cudaRegisterVar", &["ModuleGlobal"]),
    route(
        "cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
        false,
        &["OccupancyBlocks"],
    ),
];

/// What a request of the table reaches.
#[must_use]
pub fn part_of(request: &str) -> Part {
    match request {
        "Launch" => Part::CtaScheduler,
        "Copy" | "Fill" => Part::CopyEngine,
        _ => Part::Runtime,
    }
}
