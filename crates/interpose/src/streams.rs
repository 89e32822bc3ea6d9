//! Streams: what a handle means, and whose context it brings along.

use crate::call::{ask, done};
use crate::fair_mutex::FairMutex;
use crate::opaque::{self, Kind};
use crate::options;
use crate::process::lock;
use crate::types::Address;
use lockstep_protocol::options::Group;
use lockstep_protocol::{
    ContextHandle, CuResult, Request, StreamHandle, StreamName, clamp_priority,
};
use std::collections::BTreeMap;

/// Which default stream a null handle means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defaults {
    /// The legacy one.
    Legacy,
    /// The thread's own.
    PerThread,
}

impl Defaults {
    /// The default stream's name.
    pub fn name(self) -> StreamName {
        match self {
            Self::Legacy => StreamName::Legacy,
            Self::PerThread => StreamName::PerThread,
        }
    }
}

/// `cudaStreamLegacy`, `CU_STREAM_LEGACY`.
const LEGACY: Address = 1;
/// `cudaStreamPerThread`, `CU_STREAM_PER_THREAD`.
const PER_THREAD: Address = 2;

/// What is known of a created stream.
#[derive(Clone, Copy)]
pub struct Stream {
    /// The context it was created in.
    pub context: ContextHandle,
    /// `CUstream_flags`.
    pub flags: u32,
    /// Its priority.
    pub priority: i32,
}

static STREAMS: FairMutex<BTreeMap<StreamHandle, Stream>> = FairMutex::new(BTreeMap::new());

/// Where work goes: a context and a stream of it.
#[derive(Clone, Copy)]
pub struct Target {
    /// The context.
    pub context: ContextHandle,
    /// The stream.
    pub stream: StreamName,
}

/// Creates a stream.
pub fn create(context: ContextHandle, flags: u32, priority: i32) -> Result<Address, CuResult> {
    options::accept_flags(Group::StreamFlag, flags)?;
    let request = Request::StreamCreate {
        context,
        flags,
        priority,
    };
    let handle = ask!(Stream, &request);
    let stream = Stream {
        context,
        flags,
        priority,
    };
    lock(&STREAMS).insert(handle, stream);
    Ok(opaque::encode(Kind::Stream, handle.0))
}

/// Forgets a stream and answers its name on the wire.
pub fn remove(handle: Address) -> Result<StreamHandle, CuResult> {
    let number = opaque::decode(Kind::Stream, handle).ok_or(CuResult::INVALID_HANDLE)?;
    let stream = StreamHandle(number);
    match lock(&STREAMS).remove(&stream) {
        Some(_) => Ok(stream),
        None => Err(CuResult::INVALID_HANDLE),
    }
}

/// A created stream; `None` for the default ones.
pub fn created(handle: Address) -> Result<Option<Stream>, CuResult> {
    if handle <= PER_THREAD {
        return Ok(None);
    }
    let number = opaque::decode(Kind::Stream, handle).ok_or(CuResult::INVALID_HANDLE)?;
    let found = lock(&STREAMS).get(&StreamHandle(number)).copied();
    found.map(Some).ok_or(CuResult::INVALID_HANDLE)
}

/// Where work on a stream goes. A created stream brings its own context; a default one
/// takes the current, which `current` finds.
pub fn target(
    handle: Address,
    defaults: Defaults,
    current: impl FnOnce() -> Result<ContextHandle, CuResult>,
) -> Result<Target, CuResult> {
    if let Some(stream) = created(handle)? {
        let number = opaque::decode(Kind::Stream, handle).ok_or(CuResult::INVALID_HANDLE)?;
        return Ok(Target {
            context: stream.context,
            stream: StreamName::Created(StreamHandle(number)),
        });
    }
    let stream = match handle {
        LEGACY => StreamName::Legacy,
        PER_THREAD => StreamName::PerThread,
        _ => defaults.name(),
    };
    Ok(Target {
        context: current()?,
        stream,
    })
}

/// Gives a stream another priority.
pub fn set_priority(handle: Address, wanted: i32) -> Result<(), CuResult> {
    let number = opaque::decode(Kind::Stream, handle).ok_or(CuResult::INVALID_HANDLE)?;
    let (stream, priority) = (StreamHandle(number), clamp_priority(wanted));
    done(&Request::StreamPriority { stream, priority })?;
    if let Some(stream) = lock(&STREAMS).get_mut(&stream) {
        stream.priority = priority;
    }
    Ok(())
}

/// The priority of a stream; that of default streams is the least urgent.
pub fn priority(target: Target) -> i32 {
    match target.stream {
        StreamName::Created(handle) => {
            let streams = lock(&STREAMS);
            streams.get(&handle).map_or(0, |stream| stream.priority)
        }
        StreamName::Legacy | StreamName::PerThread => 0,
    }
}

/// Whether a stream of a context is one that the legacy default stream waits for.
pub fn is_blocking(stream: u64, context: ContextHandle) -> bool {
    let streams = lock(&STREAMS);
    let found = streams.get(&StreamHandle(stream));
    found.is_some_and(|stream| stream.context == context && stream.flags & 1 == 0)
}

/// Forgets the streams of a context that is gone.
pub fn context_gone(context: ContextHandle) {
    lock(&STREAMS).retain(|_, stream| stream.context != context);
}
