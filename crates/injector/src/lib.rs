//! Samples a real GPU inside an unmodified program.
//!
//! The CUDA driver loads this library into each CUDA process when `CUDA_INJECTION64_PATH` names it,
//! and calls [`InitializeInjection`]. Loaded through `LD_PRELOAD` instead, it sets that variable and
//! waits for the driver, so that programs without CUDA pay nothing. Whatever fails is told in one
//! sentence, and the program runs on.
//!
//! Start reading at [`InitializeInjection`], then `session` and `sampler`.

mod activity;
mod callbacks;
pub mod clock;
pub mod cupti;
pub mod daemon;
mod driver;
mod dynamic;
mod exact;
mod exact_gate;
mod graphs;
mod guard;
mod hardware;
mod host;
mod host_object;
mod neighbours;
pub mod nvml;
mod ownership;
mod preload;
mod progress;
mod report;
mod sampler;
mod session;
mod settings;
mod turns;
mod worker;

use session::Session;
use settings::Settings;

/// Called by the CUDA driver while it starts. Always answers 1: a program never fails because of us.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "the name that the CUDA driver looks for")]
pub extern "C" fn InitializeInjection() -> i32 {
    let begun = std::panic::catch_unwind(|| {
        if let Err(sentence) = begin() {
            report::tell(&sentence);
        }
    });
    if begun.is_err() {
        report::tell("counters are not sampled: the injector stopped at an error of its own");
    }
    1
}

fn begin() -> Result<(), String> {
    let settings = Settings::from_environment()?;
    settings
        .metadata
        .check_for_real_gpu("the metadata file")
        .map_err(|error| error.to_string())?;
    let session = Session::begin(settings)?;
    let started = callbacks::subscribe(session).and_then(|()| {
        if session.traces_kernels() {
            activity::start(session)
        } else {
            Ok(())
        }
    });
    if let Err(error) = started {
        session.lose(&format!("counters are not sampled: {error}"));
        session.finish();
        return Ok(());
    }
    worker::start(session)
}
