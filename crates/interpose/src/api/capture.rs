//! Stream capture, of which there is none yet: queries answer so.

use crate::boundary::{RuntimeError, driver, runtime};
use crate::context::{current, current_for_runtime};
use crate::streams::{Defaults, target};
use crate::thread;
use crate::types::{Address, Out};
use lockstep_protocol::CuResult;

/// `cudaStreamCaptureStatusNone`.
const NONE: i32 = 0;

fn check(stream: Address, defaults: Defaults) -> Result<(), RuntimeError> {
    target(stream, defaults, current_for_runtime)?;
    Ok(())
}

fn exchange(mode: Out<i32>) -> Result<(), CuResult> {
    let wanted = mode.current()?;
    if !(0..=2).contains(&wanted) {
        return Err(CuResult::INVALID_VALUE);
    }
    mode.set(thread::current().capture_mode.replace(wanted))
}

runtime! {
    fn cudaStreamIsCapturing | cudaStreamIsCapturing_ptsz [defaults] (stream: Address, status: Out<i32>) {
        check(stream, defaults)?;
        Ok(status.set(NONE)?)
    }

    fn cudaStreamGetCaptureInfo | cudaStreamGetCaptureInfo_ptsz [defaults] (stream: Address, status: Out<i32>, identity: Out<u64>) {
        check(stream, defaults)?;
        identity.set_if_wanted(0);
        Ok(status.set(NONE)?)
    }

    fn cudaStreamGetCaptureInfo_v2 | cudaStreamGetCaptureInfo_v2_ptsz [defaults] (stream: Address, status: Out<i32>, identity: Out<u64>, graph: Out<Address>, dependencies: Out<Address>, count: Out<usize>) {
        check(stream, defaults)?;
        identity.set_if_wanted(0);
        graph.set_if_wanted(0);
        dependencies.set_if_wanted(0);
        count.set_if_wanted(0);
        Ok(status.set(NONE)?)
    }

    fn cudaStreamGetCaptureInfo_v3 | cudaStreamGetCaptureInfo_v3_ptsz [defaults] (stream: Address, status: Out<i32>, identity: Out<u64>, graph: Out<Address>, dependencies: Out<Address>, edges: Out<Address>, count: Out<usize>) {
        check(stream, defaults)?;
        identity.set_if_wanted(0);
        graph.set_if_wanted(0);
        dependencies.set_if_wanted(0);
        edges.set_if_wanted(0);
        count.set_if_wanted(0);
        Ok(status.set(NONE)?)
    }

    fn cudaThreadExchangeStreamCaptureMode(mode: Out<i32>) {
        Ok(exchange(mode)?)
    }
}

driver! {
    fn cuStreamIsCapturing | cuStreamIsCapturing_ptsz [defaults] (stream: Address, status: Out<i32>) {
        target(stream, defaults, current)?;
        status.set(NONE)
    }

    fn cuStreamGetCaptureInfo | cuStreamGetCaptureInfo_ptsz [defaults] (stream: Address, status: Out<i32>, identity: Out<u64>) {
        target(stream, defaults, current)?;
        identity.set_if_wanted(0);
        status.set(NONE)
    }

    fn cuStreamGetCaptureInfo_v2 | cuStreamGetCaptureInfo_v2_ptsz [defaults] (stream: Address, status: Out<i32>, identity: Out<u64>, graph: Out<Address>, dependencies: Out<Address>, count: Out<usize>) {
        target(stream, defaults, current)?;
        identity.set_if_wanted(0);
        graph.set_if_wanted(0);
        dependencies.set_if_wanted(0);
        count.set_if_wanted(0);
        status.set(NONE)
    }

    fn cuStreamGetCaptureInfo_v3 | cuStreamGetCaptureInfo_v3_ptsz [defaults] (stream: Address, status: Out<i32>, identity: Out<u64>, graph: Out<Address>, dependencies: Out<Address>, edges: Out<Address>, count: Out<usize>) {
        target(stream, defaults, current)?;
        identity.set_if_wanted(0);
        graph.set_if_wanted(0);
        dependencies.set_if_wanted(0);
        edges.set_if_wanted(0);
        count.set_if_wanted(0);
        status.set(NONE)
    }

    fn cuThreadExchangeStreamCaptureMode(mode: Out<i32>) {
        exchange(mode)
    }
}
