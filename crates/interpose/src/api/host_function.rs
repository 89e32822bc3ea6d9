//! Host functions and callbacks in streams.
//!
//! The call waits until the stream has come to the function, runs it, and returns: order
//! within the stream holds, and every run makes the same calls in the same order. What it
//! costs: a function that waits for something its own thread does later never ends.

use crate::boundary::{driver, runtime};
use crate::call::done;
use crate::context::{current, current_for_runtime};
use crate::graph::capture;
use crate::graph::model::{HostNode, NodeWork};
use crate::streams::{Target, target};
use crate::types::{Address, HostFunction, StreamCallback};
use lockstep_protocol::{CuResult, Request};
use std::ffi::c_void;

fn reach(target: Target) -> Result<(), CuResult> {
    done(&Request::HostFunction {
        context: target.context,
        stream: target.stream,
    })
}

fn run(target: Target, function: HostFunction, data: *mut c_void) -> Result<(), CuResult> {
    let called = function.ok_or(CuResult::INVALID_VALUE)?;
    let captured = capture::takes(target, || Ok(NodeWork::Host(HostNode { function, data })))?;
    if captured {
        return Ok(());
    }
    reach(target)?;
    // SAFETY: the program asked for this function to be called with this argument.
    unsafe { called(data) };
    Ok(())
}

fn call_back(
    target: Target,
    stream: Address,
    callback: StreamCallback,
    data: *mut c_void,
    flags: u32,
) -> Result<(), CuResult> {
    let callback = callback.ok_or(CuResult::INVALID_VALUE)?;
    if flags != 0 {
        return Err(CuResult::INVALID_VALUE);
    }
    capture::refuses_wait(target)?;
    // A callback, unlike a host function, is told of an error in its stream.
    let status = reach(target).err().map_or(0, |error| error.0 as i32);
    // SAFETY: as above.
    unsafe { callback(stream, status, data) };
    Ok(())
}

runtime! {
    fn cudaLaunchHostFunc | cudaLaunchHostFunc_ptsz [defaults] (stream: Address, function: HostFunction, data: *mut c_void) {
        Ok(run(target(stream, defaults, current_for_runtime)?, function, data)?)
    }

    fn cudaLaunchHostFunc_v2 | cudaLaunchHostFunc_v2_ptsz [defaults] (stream: Address, function: HostFunction, data: *mut c_void, mode: u32) {
        let _ = mode; // How to wait, not whether.
        Ok(run(target(stream, defaults, current_for_runtime)?, function, data)?)
    }

    fn cudaStreamAddCallback | cudaStreamAddCallback_ptsz [defaults] (stream: Address, callback: StreamCallback, data: *mut c_void, flags: u32) {
        let target = target(stream, defaults, current_for_runtime)?;
        Ok(call_back(target, stream, callback, data, flags)?)
    }
}

driver! {
    fn cuLaunchHostFunc | cuLaunchHostFunc_ptsz [defaults] (stream: Address, function: HostFunction, data: *mut c_void) {
        run(target(stream, defaults, current)?, function, data)
    }

    fn cuLaunchHostFunc_v2 | cuLaunchHostFunc_v2_ptsz [defaults] (stream: Address, function: HostFunction, data: *mut c_void, mode: u32) {
        let _ = mode;
        run(target(stream, defaults, current)?, function, data)
    }

    fn cuStreamAddCallback | cuStreamAddCallback_ptsz [defaults] (stream: Address, callback: StreamCallback, data: *mut c_void, flags: u32) {
        call_back(target(stream, defaults, current)?, stream, callback, data, flags)
    }
}
