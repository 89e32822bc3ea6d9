//! Calls that wait, seen from outside: what several host threads wait for at once, and whose wait
//! is over first.
//!
//! Some calls only wait. Others do something once the work before it is complete, as a blocking copy does: they
//! wait for that, and what they do then takes a time that nobody else can make longer. Whoever answers calls of
//! several threads lets time pass until such a wait is over before the call is handled, since a kernel that it
//! waits for may itself wait for what another thread's call brings.

use crate::device::{Device, Listener};
use crate::timeline::{Goal, Interruption, Wait};
use crate::{Client, Runtime};
use lockstep_protocol::{ContextHandle, Place, Request, StreamName};
use lockstep_units::Time;
use std::ops::Range;

impl<D: Device> Runtime<D> {
    /// What a call waits for before it is answered, or before it does what takes its own time; nothing if it does
    /// not wait, or if it would fail. `client` is nobody before the first call of a thread.
    pub fn wait_of(&self, client: Option<Client>, request: &Request) -> Option<Wait> {
        let connection = client.map(|client| client.connection);
        let points = match request {
            Request::ContextSynchronize { context } => {
                let streams = self.streams_of(*context).into_iter();
                streams
                    .map(|(key, _)| (key, self.timeline.end(key)))
                    .collect()
            }
            Request::EventSynchronize { event } => {
                let recorded = self.event(*event).ok()?.recorded;
                let point = recorded.map(|(_, stream, position)| (stream, position));
                point.into_iter().collect()
            }
            Request::HostPoll { polls, .. } => return self.poll_wait(client?, *polls),
            _ => {
                let (context, stream) = awaited_stream(request)?;
                self.stream_points(connection, context, stream).ok()?
            }
        };
        Some(Wait::Points(points))
    }

    /// Whether a call that does something has to wait for work before it.
    pub fn is_held_up(&self, client: Option<Client>, request: &Request) -> bool {
        let wait = self.wait_of(client, request);
        wait.is_some_and(|wait| !self.is_over(&wait))
    }

    /// Contexts of other processes with work on some GPUs that is not done.
    pub(crate) fn others_at_work(&self, gpus: &Range<u32>, process: u32) -> Vec<ContextHandle> {
        let others = self
            .contexts
            .iter()
            .filter(|(_, context)| context.process != process && gpus.contains(&context.device));
        let busy = |handle: &ContextHandle| {
            let streams = self.streams_of(*handle).into_iter();
            let ends = streams.map(|(key, _)| (key, self.timeline.end(key)));
            !self.timeline.is_over(&Wait::Points(ends.collect()))
        };
        others.map(|(handle, _)| *handle).filter(busy).collect()
    }

    /// Lets time pass until one of some waits is over, or until `listener` says that a call has come: then the
    /// time at which everything stands. After a fault all waits are over: the calls themselves tell of it.
    pub fn advance_to_first(&mut self, waits: &[Wait], listener: Option<Listener>) -> Option<Time> {
        self.device.listen(listener);
        let advanced = self.timeline.advance_to_first(&mut self.device, waits);
        self.device.listen(None);
        let called = advanced == Err(Interruption::Called);
        // A run that was stopped, or streams that wait for each other, are told by the calls too.
        let _ = self.outcome(advanced);
        called.then(|| self.timeline.now())
    }

    /// A call has come when simulated time had passed until then: it was made at that time, not before.
    pub fn host_reaches(&mut self, at: Time) {
        // In a replay the device has not come so far; what is wrong there, the next call tells.
        let advanced = self.timeline.advance(&mut self.device, Goal::Until(at));
        let _ = self.outcome(advanced);
        self.now = self.now.max(at);
    }

    /// Whether a wait is over.
    pub fn is_over(&self, wait: &Wait) -> bool {
        self.timeline.is_over(wait)
    }
}

/// The stream whose work a call waits for.
fn awaited_stream(request: &Request) -> Option<(ContextHandle, StreamName)> {
    match request {
        Request::StreamSynchronize { context, stream }
        | Request::HostFunction { context, stream } => Some((*context, *stream)),
        // The program itself moves what is in its own memory, when the call is answered.
        Request::Copy(copy)
            if copy.blocking || copy.source == Place::Host || copy.destination == Place::Host =>
        {
            Some((copy.context, copy.stream))
        }
        Request::Fill(fill) if fill.blocking => Some((fill.context, fill.stream)),
        _ => None,
    }
}
