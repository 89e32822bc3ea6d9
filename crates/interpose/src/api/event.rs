//! Events and the simulated time between them.

use crate::boundary::{driver, runtime};
use crate::call::{ask, call, done, unexpected};
use crate::context::{current, current_for_runtime};
use crate::opaque::{self, Kind};
use crate::streams::{Target, target};
use crate::types::{Address, Out};
use lockstep_protocol::{ContextHandle, CuResult, EventHandle, Reply, Request};

/// Blocking wait, no timing, between processes.
const KNOWN_FLAGS: u32 = 7;

fn decode(event: Address) -> Result<EventHandle, CuResult> {
    let number = opaque::decode(Kind::Event, event).ok_or(CuResult::INVALID_HANDLE)?;
    Ok(EventHandle(number))
}

fn create(context: ContextHandle, flags: u32) -> Result<Address, CuResult> {
    if flags & !KNOWN_FLAGS != 0 {
        return Err(CuResult::INVALID_VALUE);
    }
    let event = ask!(Event, &Request::EventCreate { context, flags });
    Ok(opaque::encode(Kind::Event, event.0))
}

fn destroy(event: Address) -> Result<(), CuResult> {
    let event = decode(event)?;
    done(&Request::EventDestroy { event })
}

/// Records an event; also for launches that end with one.
pub fn record(target: Target, event: Address) -> Result<(), CuResult> {
    done(&Request::EventRecord {
        context: target.context,
        stream: target.stream,
        event: decode(event)?,
    })
}

fn synchronize(event: Address) -> Result<(), CuResult> {
    let event = decode(event)?;
    done(&Request::EventSynchronize { event })
}

fn query(event: Address) -> Result<(), CuResult> {
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
        if flags > 1 {
            return Err(CuResult::INVALID_VALUE.into());
        }
        Ok(record(target(stream, defaults, current_for_runtime)?, event)?)
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
        if flags > 1 {
            return Err(CuResult::INVALID_VALUE);
        }
        record(target(stream, defaults, current)?, event)
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
