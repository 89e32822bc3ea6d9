//! Events and simulated time between them.

use crate::context::Event;
use crate::device::Device;
use crate::timeline::{Position, StreamKey, Work};
use crate::{CallResult, Client, Runtime, fail, failure};
use lockstep_protocol::{ContextHandle, CuResult, EventHandle, Reply, StreamName};
use lockstep_units::Time;

/// `CU_EVENT_DISABLE_TIMING`.
const DISABLE_TIMING: u32 = 2;
/// `CU_EVENT_INTERPROCESS`.
const INTERPROCESS: u32 = 4;
/// Blocking synchronisation, without timing, between processes.
const KNOWN_FLAGS: u32 = 7;

impl<D: Device> Runtime<D> {
    pub(super) fn event_create(&mut self, context: ContextHandle, flags: u32) -> CallResult<Reply> {
        self.context(context)?;
        if flags & !KNOWN_FLAGS != 0 {
            return fail(CuResult::INVALID_VALUE, format!("event flags {flags:#x}"));
        }
        let handle = EventHandle(self.fresh());
        self.events.insert(
            handle,
            Event {
                context,
                timing: flags & DISABLE_TIMING == 0,
                shared: flags & INTERPROCESS != 0,
                recorded: None,
            },
        );
        Ok(Reply::Event(handle))
    }

    pub(super) fn event_destroy(&mut self, handle: EventHandle) -> CallResult<Reply> {
        let event = *self.event(handle)?;
        if let Some((recording, ..)) = event.recorded {
            self.timeline.forget(recording);
        }
        self.events.remove(&handle);
        Ok(Reply::Done)
    }

    pub(super) fn event_record(
        &mut self,
        client: Client,
        context: ContextHandle,
        name: StreamName,
        handle: EventHandle,
    ) -> CallResult<Reply> {
        let event = self.event(handle)?;
        // An event that processes share is recorded by any of them.
        if event.context != context && !event.shared {
            return fail(
                CuResult::INVALID_HANDLE,
                format!("{handle} lives in another context"),
            );
        }
        let key = self.stream_key(client, context, name)?;
        let recording = self.fresh();
        let position = self.enqueue(context, key, Work::Record { recording });
        self.note_record(handle, recording, key, position);
        Ok(Reply::Done)
    }

    /// Notes where an event is recorded from now on.
    pub(super) fn note_record(
        &mut self,
        handle: EventHandle,
        recording: u64,
        key: StreamKey,
        position: Position,
    ) {
        if let Some(event) = self.events.get_mut(&handle)
            && let Some((before, ..)) = event.recorded.replace((recording, key, position))
        {
            self.timeline.forget(before);
        }
    }

    pub(super) fn event_synchronize(&mut self, handle: EventHandle) -> CallResult<Reply> {
        if let Some((_, stream, position)) = self.event(handle)?.recorded {
            self.wait(stream, position)?;
        }
        self.spend(self.config.host.synchronize);
        Ok(Reply::Done)
    }

    pub(super) fn event_query(&mut self, handle: EventHandle) -> CallResult<Reply> {
        match self.event(handle)?.recorded {
            Some((_, stream, position)) => self.poll(stream, position),
            None => Ok(Reply::Done),
        }
    }

    pub(super) fn event_elapsed(
        &mut self,
        start: EventHandle,
        end: EventHandle,
    ) -> CallResult<Reply> {
        let (start, end) = (self.recorded_time(start)?, self.recorded_time(end)?);
        let femtoseconds = i128::from(end.0) - i128::from(start.0);
        let picoseconds = i64::try_from(femtoseconds / 1000).unwrap_or(i64::MAX);
        Ok(Reply::Elapsed { picoseconds })
    }

    fn recorded_time(&self, handle: EventHandle) -> CallResult<Time> {
        let event = self.event(handle)?;
        let Some((recording, ..)) = event.recorded.filter(|_| event.timing) else {
            return fail(
                CuResult::INVALID_HANDLE,
                format!("{handle} was not recorded, or is without timing"),
            );
        };
        self.timeline
            .recorded(recording)
            .ok_or_else(|| failure(CuResult::NOT_READY, ""))
    }
}
