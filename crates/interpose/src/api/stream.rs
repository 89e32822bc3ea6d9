//! Streams.

use super::context::to_handle;
use super::launch_attribute::Value;
use super::{pool, stream_attribute};
use crate::boundary::{driver, runtime};
use crate::call::done;
use crate::context::{current, current_for_runtime, find};
use crate::graph::capture;
use crate::graph::model::NodeWork;
use crate::opaque::{self, Kind};
use crate::streams::{Target, create, created, remove, target};
use crate::types::{Address, In, Out};
use lockstep_protocol::{CuResult, EventHandle, Request, StreamName, clamp_priority};

fn destroy(handle: Address) -> Result<(), CuResult> {
    let stream = remove(handle)?;
    stream_attribute::forget(handle);
    done(&Request::StreamDestroy { stream })
}

fn synchronize(target: Target) -> Result<(), CuResult> {
    capture::refuses_wait(target)?;
    done(&Request::StreamSynchronize {
        context: target.context,
        stream: target.stream,
    })?;
    pool::release_unused();
    Ok(())
}

fn query(target: Target) -> Result<(), CuResult> {
    capture::refuses_wait(target)?;
    done(&Request::StreamQuery {
        context: target.context,
        stream: target.stream,
    })
}

/// Makes later work of a stream wait for an event.
pub fn wait_event(target: Target, event: Address, flags: u32) -> Result<(), CuResult> {
    if flags > 1 {
        return Err(CuResult::INVALID_VALUE);
    }
    let number = opaque::decode(Kind::Event, event).ok_or(CuResult::INVALID_HANDLE)?;
    let external = flags == 1;
    if external && capture::takes(target, || Ok(NodeWork::Wait(event)))? {
        return Ok(());
    }
    if capture::takes_wait(target, event)? {
        return Ok(());
    }
    done(&Request::StreamWaitEvent {
        context: target.context,
        stream: target.stream,
        event: EventHandle(number),
    })
}

fn priority(handle: Address) -> Result<i32, CuResult> {
    Ok(created(handle)?.map_or(0, |stream| stream.priority))
}

fn flags(handle: Address) -> Result<u32, CuResult> {
    Ok(created(handle)?.map_or(0, |stream| stream.flags))
}

/// A number that no other stream of the process has.
fn identity(target: Target) -> u64 {
    match target.stream {
        StreamName::Legacy => 1,
        StreamName::PerThread => 2,
        StreamName::Created(stream) => stream.0 + 2,
    }
}

runtime! {
    fn cudaStreamCreate(stream: Out<Address>) {
        stream.check()?;
        Ok(stream.set(create(current_for_runtime()?, 0, 0)?)?)
    }

    fn cudaStreamCreateWithFlags(stream: Out<Address>, flags: u32) {
        stream.check()?;
        Ok(stream.set(create(current_for_runtime()?, flags, 0)?)?)
    }

    fn cudaStreamCreateWithPriority(stream: Out<Address>, flags: u32, priority: i32) {
        stream.check()?;
        Ok(stream.set(create(current_for_runtime()?, flags, clamp_priority(priority))?)?)
    }

    fn cudaStreamDestroy(stream: Address) {
        Ok(destroy(stream)?)
    }

    fn cudaStreamSynchronize | cudaStreamSynchronize_ptsz [defaults] (stream: Address) {
        Ok(synchronize(target(stream, defaults, current_for_runtime)?)?)
    }

    fn cudaStreamQuery | cudaStreamQuery_ptsz [defaults] (stream: Address) {
        Ok(query(target(stream, defaults, current_for_runtime)?)?)
    }

    fn cudaStreamWaitEvent | cudaStreamWaitEvent_ptsz [defaults] (stream: Address, event: Address, flags: u32) {
        Ok(wait_event(target(stream, defaults, current_for_runtime)?, event, flags)?)
    }

    fn cudaStreamGetPriority | cudaStreamGetPriority_ptsz [_defaults] (stream: Address, answer: Out<i32>) {
        Ok(answer.set(priority(stream)?)?)
    }

    fn cudaStreamGetFlags | cudaStreamGetFlags_ptsz [_defaults] (stream: Address, answer: Out<u32>) {
        Ok(answer.set(flags(stream)?)?)
    }

    fn cudaStreamGetId | cudaStreamGetId_ptsz [defaults] (stream: Address, answer: Out<u64>) {
        Ok(answer.set(identity(target(stream, defaults, current_for_runtime)?))?)
    }

    fn cudaStreamGetDevice | cudaStreamGetDevice_ptsz [defaults] (stream: Address, answer: Out<i32>) {
        let target = target(stream, defaults, current_for_runtime)?;
        Ok(answer.set(find(target.context)?.device as i32)?)
    }

    fn cudaStreamGetAttribute | cudaStreamGetAttribute_ptsz [_defaults] (stream: Address, number: u32, value: Out<u8>) {
        Ok(stream_attribute::get(stream, number, value)?)
    }

    fn cudaStreamSetAttribute | cudaStreamSetAttribute_ptsz [_defaults] (stream: Address, number: u32, value: In<Value>) {
        Ok(stream_attribute::set(stream, number, value)?)
    }

    fn cudaStreamCopyAttributes | cudaStreamCopyAttributes_ptsz [_defaults] (to: Address, from: Address) {
        Ok(stream_attribute::copy(to, from)?)
    }
}

driver! {
    fn cuStreamCreate(stream: Out<Address>, flags: u32) {
        stream.check()?;
        stream.set(create(current()?, flags, 0)?)
    }

    fn cuStreamCreateWithPriority(stream: Out<Address>, flags: u32, priority: i32) {
        stream.check()?;
        stream.set(create(current()?, flags, clamp_priority(priority))?)
    }

    fn cuStreamDestroy_v2(stream: Address) {
        destroy(stream)
    }

    fn cuStreamDestroy(stream: Address) {
        destroy(stream)
    }

    fn cuStreamSynchronize | cuStreamSynchronize_ptsz [defaults] (stream: Address) {
        synchronize(target(stream, defaults, current)?)
    }

    fn cuStreamQuery | cuStreamQuery_ptsz [defaults] (stream: Address) {
        query(target(stream, defaults, current)?)
    }

    fn cuStreamWaitEvent | cuStreamWaitEvent_ptsz [defaults] (stream: Address, event: Address, flags: u32) {
        wait_event(target(stream, defaults, current)?, event, flags)
    }

    fn cuStreamGetPriority | cuStreamGetPriority_ptsz [_defaults] (stream: Address, answer: Out<i32>) {
        answer.set(priority(stream)?)
    }

    fn cuStreamGetFlags | cuStreamGetFlags_ptsz [_defaults] (stream: Address, answer: Out<u32>) {
        answer.set(flags(stream)?)
    }

    fn cuStreamGetId | cuStreamGetId_ptsz [defaults] (stream: Address, answer: Out<u64>) {
        answer.set(identity(target(stream, defaults, current)?))
    }

    fn cuStreamGetDevice | cuStreamGetDevice_ptsz [defaults] (stream: Address, answer: Out<i32>) {
        let target = target(stream, defaults, current)?;
        answer.set(find(target.context)?.device as i32)
    }

    fn cuStreamGetCtx | cuStreamGetCtx_ptsz [defaults] (stream: Address, context: Out<Address>) {
        context.set(to_handle(target(stream, defaults, current)?.context))
    }

    fn cuStreamGetCtx_v2 | cuStreamGetCtx_v2_ptsz [defaults] (stream: Address, context: Out<Address>, green: Out<Address>) {
        green.set_if_wanted(0);
        context.set(to_handle(target(stream, defaults, current)?.context))
    }

    fn cuStreamGetAttribute | cuStreamGetAttribute_ptsz [_defaults] (stream: Address, number: u32, value: Out<u8>) {
        stream_attribute::get(stream, number, value)
    }

    fn cuStreamSetAttribute | cuStreamSetAttribute_ptsz [_defaults] (stream: Address, number: u32, value: In<Value>) {
        stream_attribute::set(stream, number, value)
    }

    fn cuStreamCopyAttributes | cuStreamCopyAttributes_ptsz [_defaults] (to: Address, from: Address) {
        stream_attribute::copy(to, from)
    }
}
