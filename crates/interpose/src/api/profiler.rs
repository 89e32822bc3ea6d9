//! The profiler's start and stop: the borders of a region of interest.

use crate::boundary::{driver, runtime};
use crate::call::done;
use crate::context::{current, current_for_runtime};
use crate::types::Text;
use lockstep_protocol::{CuResult, Request};

fn profiler(start: bool) -> Result<(), CuResult> {
    done(&Request::Profiler { start })
}

runtime! {
    fn cudaProfilerStart() {
        current_for_runtime()?;
        Ok(profiler(true)?)
    }

    fn cudaProfilerStop() {
        current_for_runtime()?;
        Ok(profiler(false)?)
    }

    /// What to count is configured elsewhere.
    fn cudaProfilerInitialize(configuration: Text, output: Text, mode: i32) {
        let _ = (configuration, output, mode);
        Ok(())
    }
}

driver! {
    fn cuProfilerStart() {
        current()?;
        profiler(true)
    }

    fn cuProfilerStop() {
        current()?;
        profiler(false)
    }

    fn cuProfilerInitialize(configuration: Text, output: Text, mode: i32) {
        let _ = (configuration, output, mode);
        Ok(())
    }
}
