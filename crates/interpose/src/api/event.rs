//! Events and the simulated time between them.

use super::{ipc, pool};
use crate::boundary::{driver, runtime};
use crate::call::{ask, call, done, unexpected};
use crate::context::{current, current_for_runtime};
use crate::fair_mutex::FairMutex;
use crate::graph::capture;
use crate::graph::model::NodeWork;
use crate::opaque::{self, Kind};
use crate::options;
use crate::process::lock;
use crate::streams::{Target, target};
use crate::types::{Address, Out};
use lockstep_protocol::options::Group;
use lockstep_protocol::{ContextHandle, CuResult, EventHandle, Reply, Request};
use std::collections::BTreeSet;

/// `cudaEventDisableTiming`.
const DISABLE_TIMING: u32 = 2;
/// `cudaEventInterprocess`.
const INTERPROCESS: u32 = 4;

/// Events that note no time.
static UNTIMED: FairMutex<BTreeSet<Address>> = FairMutex::new(BTreeSet::new());

/// Whether an event notes the time.
pub fn has_timing(event: Address) -> bool {
    !lock(&UNTIMED).contains(&event)
}

fn decode(event: Address) -> Result<EventHandle, CuResult> {
    let number = opaque::decode(Kind::Event, event).ok_or(CuResult::INVALID_HANDLE)?;
    Ok(EventHandle(number))
}

fn create(context: ContextHandle, flags: u32) -> Result<Address, CuResult> {
    // What processes share has no times.
    if flags & INTERPROCESS != 0 && flags & DISABLE_TIMING == 0 {
        return Err(CuResult::INVALID_VALUE);
    }
    options::accept_flags(Group::EventFlag, flags)?;
    let event = ask!(Event, &Request::EventCreate { context, flags });
    let handle = opaque::encode(Kind::Event, event.0);
    if flags & DISABLE_TIMING != 0 {
        lock(&UNTIMED).insert(handle);
    }
    if flags & INTERPROCESS != 0 {
        ipc::note_event(handle);
    }
    Ok(handle)
}

fn destroy(event: Address) -> Result<(), CuResult> {
    if ipc::close_event(event) {
        return Ok(());
    }
    ipc::forget_event(event);
    lock(&UNTIMED).remove(&event);
    let event = decode(event)?;
    done(&Request::EventDestroy { event })
}

/// Records an event; also for launches that end with one.
pub fn record(target: Target, event: Address) -> Result<(), CuResult> {
    decode(event)?;
    if capture::takes_record(target, event)? {
        return Ok(());
    }
    done(&Request::EventRecord {
        context: target.context,
        stream: target.stream,
        event: decode(event)?,
    })
}

/// Records an event; `external` (1) makes it a node of its own in a stream that captures.
fn record_with_flags(target: Target, event: Address, flags: u32) -> Result<(), CuResult> {
    if flags > 1 {
        return Err(CuResult::INVALID_VALUE);
    }
    decode(event)?;
    if flags == 1 && capture::takes(target, || Ok(NodeWork::Record(event)))? {
        return Ok(());
    }
    record(target, event)
}

fn synchronize(event: Address) -> Result<(), CuResult> {
    capture::refuses_event(event)?;
    let event = decode(event)?;
    done(&Request::EventSynchronize { event })?;
    pool::release_unused();
    Ok(())
}

fn query(event: Address) -> Result<(), CuResult> {
    capture::refuses_event(event)?;
    let event = decode(event)?;
    done(&Request::EventQuery { event })
}

fn elapsed(milliseconds: Out<f32>, start: Address, end: Address) -> Result<(), CuResult> {
    milliseconds.check()?;
    let request = Request::EventElapsed {
        start: decode(start)?,
        end: decode(end)?,
    };
    match call(&request)? {
        Reply::Elapsed { picoseconds } => milliseconds.set((picoseconds as f64 / 1e9) as f32),
        other => Err(unexpected("Elapsed", &other)),
    }
}

runtime! {
    fn cudaEventCreate(event: Out<Address>) {
        event.check()?;
        Ok(event.set(create(current_for_runtime()?, 0)?)?)
    }

    fn cudaEventCreateWithFlags(event: Out<Address>, flags: u32) {
        event.check()?;
        Ok(event.set(create(current_for_runtime()?, flags)?)?)
    }

    fn cudaEventDestroy(event: Address) {
        Ok(destroy(event)?)
    }

    fn cudaEventRecord | cudaEventRecord_ptsz [defaults] (event: Address, stream: Address) {
        Ok(record(target(stream, defaults, current_for_runtime)?, event)?)
    }

    fn cudaEventRecordWithFlags | cudaEventRecordWithFlags_ptsz [defaults] (event: Address, stream: Address, flags: u32) {
        Ok(record_with_flags(target(stream, defaults, current_for_runtime)?, event, flags)?)
    }

    fn cudaEventSynchronize(event: Address) {
        Ok(synchronize(event)?)
    }

    fn cudaEventQuery(event: Address) {
        Ok(query(event)?)
    }

    fn cudaEventElapsedTime(milliseconds: Out<f32>, start: Address, end: Address) {
        Ok(elapsed(milliseconds, start, end)?)
    }

    fn cudaEventElapsedTime_v2(milliseconds: Out<f32>, start: Address, end: Address) {
        Ok(elapsed(milliseconds, start, end)?)
    }
}

driver! {
    fn cuEventCreate(event: Out<Address>, flags: u32) {
        event.check()?;
        event.set(create(current()?, flags)?)
    }

    fn cuEventDestroy_v2(event: Address) {
        destroy(event)
    }

    fn cuEventDestroy(event: Address) {
        destroy(event)
    }

    fn cuEventRecord | cuEventRecord_ptsz [defaults] (event: Address, stream: Address) {
        record(target(stream, defaults, current)?, event)
    }

    fn cuEventRecordWithFlags | cuEventRecordWithFlags_ptsz [defaults] (event: Address, stream: Address, flags: u32) {
        record_with_flags(target(stream, defaults, current)?, event, flags)
    }

    fn cuEventSynchronize(event: Address) {
        synchronize(event)
    }

    fn cuEventQuery(event: Address) {
        query(event)
    }

    fn cuEventElapsedTime(milliseconds: Out<f32>, start: Address, end: Address) {
        elapsed(milliseconds, start, end)
    }

    fn cuEventElapsedTime_v2(milliseconds: Out<f32>, start: Address, end: Address) {
        elapsed(milliseconds, start, end)
    }
}
