//! Streams, and the order that CUDA promises between them.

use crate::context::Stream;
use crate::device::{Device, Fault};
use crate::timeline::{Effect, Position, StreamKey, Work};
use crate::{CallResult, Client, Runtime, fail, failure};
use lockstep_protocol::{
    ContextHandle, CuResult, EventHandle, MemoryAccess, Reply, StreamHandle, StreamName,
    ValueAction, ValueWork, clamp_priority,
};

/// `CU_STREAM_NON_BLOCKING`.
const NON_BLOCKING: u32 = 1;

impl<D: Device> Runtime<D> {
    pub(super) fn stream_create(
        &mut self,
        context: ContextHandle,
        flags: u32,
        priority: i32,
    ) -> CallResult<Reply> {
        let gpu = self.context(context)?.device;
        if flags & !NON_BLOCKING != 0 {
            return fail(CuResult::INVALID_VALUE, format!("stream flags {flags:#x}"));
        }
        let (handle, key) = (StreamHandle(self.fresh()), self.fresh());
        self.timeline.create(key, gpu);
        self.streams.insert(
            handle,
            Stream {
                key,
                context,
                blocking: flags & NON_BLOCKING == 0,
                priority: clamp_priority(priority),
            },
        );
        Ok(Reply::Stream(handle))
    }

    pub(super) fn stream_priority(
        &mut self,
        handle: StreamHandle,
        priority: i32,
    ) -> CallResult<Reply> {
        match self.streams.get_mut(&handle) {
            Some(stream) => {
                stream.priority = clamp_priority(priority);
                Ok(Reply::Done)
            }
            None => fail(CuResult::INVALID_HANDLE, format!("there is no {handle}")),
        }
    }

    pub(super) fn stream_destroy(&mut self, handle: StreamHandle) -> CallResult<Reply> {
        // Its work still runs; the timeline keeps what is left of it.
        match self.streams.remove(&handle) {
            Some(_) => Ok(Reply::Done),
            None => fail(CuResult::INVALID_HANDLE, format!("there is no {handle}")),
        }
    }

    pub(super) fn stream_synchronize(
        &mut self,
        client: Client,
        context: ContextHandle,
        name: StreamName,
    ) -> CallResult<Reply> {
        let position = self.meet(client, context, name)?;
        self.wait(position.0, position.1)?;
        self.spend(self.config.host.synchronize);
        Ok(Reply::Done)
    }

    pub(super) fn stream_query(
        &mut self,
        client: Client,
        context: ContextHandle,
        name: StreamName,
    ) -> CallResult<Reply> {
        let (key, position) = self.meet(client, context, name)?;
        self.poll(key, position)
    }

    pub(super) fn stream_wait_event(
        &mut self,
        client: Client,
        context: ContextHandle,
        name: StreamName,
        event: EventHandle,
    ) -> CallResult<Reply> {
        let recorded = self.event(event)?.recorded;
        let key = self.stream_key(client, context, name)?;
        if let Some((_, stream, position)) = recorded {
            self.enqueue(context, key, Work::Wait { stream, position });
        }
        Ok(Reply::Done)
    }

    pub(super) fn host_function(
        &mut self,
        client: Client,
        context: ContextHandle,
        name: StreamName,
    ) -> CallResult<Reply> {
        let (key, position) = self.meet(client, context, name)?;
        self.wait(key, position)?;
        self.spend(self.config.host.callback);
        Ok(Reply::Done)
    }

    pub(super) fn value(
        &mut self,
        client: Client,
        context: ContextHandle,
        name: StreamName,
        work: ValueWork,
    ) -> CallResult<Reply> {
        self.check_value(&work)?;
        let key = self.stream_key(client, context, name)?;
        self.spend(self.config.host.copy);
        if self.value_is_allowed(context, &work).is_ok() {
            self.enqueue(context, key, Work::Value(work));
        }
        Ok(Reply::Done)
    }

    /// Refuses a value where no memory is, or across an alignment.
    pub(super) fn check_value(&self, work: &ValueWork) -> CallResult<()> {
        let bytes = u64::from(work.bytes);
        if !matches!(bytes, 4 | 8) || !work.address.is_multiple_of(bytes) {
            return fail(
                CuResult::INVALID_VALUE,
                format!("a value of {bytes} bytes at {:#x}", work.address),
            );
        }
        self.memory.covering(work.address, bytes)?;
        Ok(())
    }

    /// Ends a context in which a stream would use a value that it may not: that is found by the
    /// hardware, not by the call, and the next call is told.
    pub(super) fn value_is_allowed(
        &mut self,
        context: ContextHandle,
        work: &ValueWork,
    ) -> CallResult<()> {
        let wanted = match work.action {
            ValueAction::Write => MemoryAccess::ReadWrite,
            _ => MemoryAccess::Read,
        };
        let checked = self.check_access(work.address, u64::from(work.bytes), wanted);
        checked.map_err(|refused| {
            let message = format!("a value in a stream: {}", refused.message);
            let fault = Fault {
                code: CuResult::LAUNCH_FAILED,
                launch: None,
                message,
                address: None,
                of_simulator: false,
            };
            self.take_fault(fault, Some(context))
        })
    }

    /// Answers whether a point is reached, after letting the device advance a little.
    pub(super) fn poll(&mut self, key: StreamKey, position: Position) -> CallResult<Reply> {
        if !self.timeline.reached(key, position) {
            self.spend(self.config.host.query);
            self.catch_up()?;
        }
        if self.timeline.reached(key, position) {
            Ok(Reply::Done)
        } else {
            fail(CuResult::NOT_READY, "")
        }
    }

    /// The stream that a name means to this client.
    pub(super) fn stream_key(
        &mut self,
        client: Client,
        context: ContextHandle,
        name: StreamName,
    ) -> CallResult<StreamKey> {
        if let Some(key) = self.known_stream(Some(client.connection), context, name)? {
            return Ok(key);
        }
        let device = self.context(context)?.device;
        let key = self.fresh();
        self.timeline.create(key, device);
        if let Some(context) = self.contexts.get_mut(&context) {
            context.per_thread.insert(client.connection, key);
        }
        Ok(key)
    }

    /// The stream that a name means to a connection, if the connection has made a call; none if nothing was ever
    /// put into it.
    fn known_stream(
        &self,
        connection: Option<u64>,
        context: ContextHandle,
        name: StreamName,
    ) -> CallResult<Option<StreamKey>> {
        let own = self.context(context)?;
        match name {
            StreamName::Legacy => Ok(Some(own.legacy)),
            StreamName::PerThread => {
                let key = connection.and_then(|connection| own.per_thread.get(&connection));
                Ok(key.copied())
            }
            StreamName::Created(handle) => match self.streams.get(&handle) {
                Some(stream) if stream.context == context => Ok(Some(stream.key)),
                Some(_) => fail(
                    CuResult::INVALID_HANDLE,
                    format!("{handle} lives in another context"),
                ),
                None => fail(CuResult::INVALID_HANDLE, format!("there is no {handle}")),
            },
        }
    }

    /// The priority of a stream's kernels; default streams have the least urgent.
    pub(super) fn priority_of(&self, name: StreamName) -> i32 {
        match name {
            StreamName::Created(handle) => {
                let stream = self.streams.get(&handle);
                stream.map_or(0, |stream| stream.priority)
            }
            StreamName::Legacy | StreamName::PerThread => 0,
        }
    }

    /// Puts work into a stream, in the order that CUDA promises.
    pub(super) fn enqueue(
        &mut self,
        context: ContextHandle,
        key: StreamKey,
        work: Work,
    ) -> Position {
        let after = self.ordered_after(context, key);
        let issued = self.issue_time();
        self.timeline.push(key, work, issued, after)
    }

    /// All streams of a context: key, and whether it is ordered with the legacy stream.
    pub(super) fn streams_of(&self, context: ContextHandle) -> Vec<(StreamKey, bool)> {
        let Some(own) = self.contexts.get(&context) else {
            return Vec::new();
        };
        let created = self
            .streams
            .values()
            .filter(|stream| stream.context == context);
        let per_thread = own.per_thread.values().map(|key| (*key, true));
        [(own.legacy, true)]
            .into_iter()
            .chain(per_thread)
            .chain(created.map(|stream| (stream.key, stream.blocking)))
            .collect()
    }

    /// The points that somebody waits for who synchronises with a stream.
    pub(super) fn stream_points(
        &self,
        connection: Option<u64>,
        context: ContextHandle,
        name: StreamName,
    ) -> CallResult<Vec<(StreamKey, Position)>> {
        let Some(key) = self.known_stream(connection, context, name)? else {
            // A stream of a thread's own is ordered after the legacy one, as it will be when it is there.
            let legacy = self.context(context)?.legacy;
            return Ok(vec![(legacy, self.timeline.end(legacy))]);
        };
        let mut points = self.ordered_after(context, key);
        points.push((key, self.timeline.end(key)));
        Ok(points)
    }

    /// A point after everything that the stream must wait for now, for somebody to wait for.
    fn meet(
        &mut self,
        client: Client,
        context: ContextHandle,
        name: StreamName,
    ) -> CallResult<(StreamKey, Position)> {
        let key = self.stream_key(client, context, name)?;
        if self.ordered_after(context, key).is_empty() {
            return Ok((key, self.timeline.end(key)));
        }
        let position = self.enqueue(context, key, Work::Instant(Effect::None));
        Ok((key, position))
    }

    /// What new work of a stream waits for beside its own stream: the legacy stream waits for
    /// every blocking one, and they for it.
    fn ordered_after(&self, context: ContextHandle, key: StreamKey) -> Vec<(StreamKey, Position)> {
        let streams = self.streams_of(context);
        let legacy = streams.first().map(|(legacy, _)| *legacy);
        let blocking = streams
            .iter()
            .find(|(known, _)| *known == key)
            .is_some_and(|(_, blocking)| *blocking);
        streams
            .into_iter()
            .filter(|(other, other_blocking)| {
                *other != key
                    && if Some(key) == legacy {
                        *other_blocking
                    } else {
                        blocking && Some(*other) == legacy
                    }
            })
            .map(|(other, _)| (other, self.timeline.end(other)))
            .filter(|(other, position)| !self.timeline.reached(*other, *position))
            .collect()
    }

    pub(super) fn event(&self, handle: EventHandle) -> CallResult<&crate::context::Event> {
        self.events
            .get(&handle)
            .ok_or_else(|| failure(CuResult::INVALID_HANDLE, format!("there is no {handle}")))
    }
}
