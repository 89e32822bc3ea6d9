//! Calls that wait, seen from outside: what several host threads wait for at once, and whose wait
//! is over first.

use crate::device::Device;
use crate::timeline::Wait;
use crate::{Client, Runtime};
use lockstep_protocol::{ContextHandle, Request};
use std::ops::Range;

impl<D: Device> Runtime<D> {
    /// What a call waits for; nothing if it is not one that only waits, or if it would fail.
    pub fn wait_of(&mut self, client: Client, request: &Request) -> Option<Wait> {
        let points = match request {
            Request::ContextSynchronize { context } => {
                let streams = self.streams_of(*context).into_iter();
                streams
                    .map(|(key, _)| (key, self.timeline.end(key)))
                    .collect()
            }
            Request::StreamSynchronize { context, stream } => {
                self.stream_points(client, *context, *stream).ok()?
            }
            Request::EventSynchronize { event } => {
                let recorded = self.event(*event).ok()?.recorded;
                let point = recorded.map(|(_, stream, position)| (stream, position));
                point.into_iter().collect()
            }
            Request::HostPoll { polls, .. } => return self.poll_wait(client, *polls),
            _ => return None,
        };
        Some(Wait::Points(points))
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

    /// Lets time pass until one of some waits is over. After a fault all of them are: the calls
    /// themselves tell of it.
    pub fn advance_to_first(&mut self, waits: &[Wait]) {
        let advanced = self.timeline.advance_to_first(&mut self.device, waits);
        // A run that was stopped, or streams that wait for each other, are told by the calls too.
        let _ = self.outcome(advanced);
    }

    /// Whether a wait is over.
    pub fn is_over(&self, wait: &Wait) -> bool {
        self.timeline.is_over(wait)
    }
}
