//! A GPU whose time, and perhaps memory, a simulator around this one gives.

use super::{Machine, SHORT_SLICE};
use lockstep_units::Time;

/// What an advance found the GPU to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Awaits {
    /// It works, or waits for something of its own.
    Nothing,
    /// Nothing happened, and requests are not complete: there is no use in looking now and then.
    Requests,
    /// Nothing ever happens before a request is complete.
    RequestsAlone,
}

impl Machine {
    /// How far time may pass, not beyond `limit`: waits until some is given, and takes on what is complete by then.
    /// Nothing if the run is given up.
    pub(super) fn time_given(&mut self, limit: Time, awaits: Awaits) -> Option<Time> {
        let Some(clock) = self.outside.clone() else {
            return Some(limit);
        };
        let alone = awaits == Awaits::RequestsAlone;
        let (until, complete) = clock.given(self.gpu.now(), limit, alone)?;
        for (request, at) in complete {
            if let Err(error) = self.gpu.complete_outside(request, at) {
                // The clock lets no number pass that does not wait, unless a fault took its kernel.
                tracing::debug!("{error}");
            }
        }
        Some(until)
    }

    /// When to look next whether somebody outside the hardware wants something, while kernels run.
    pub(super) fn next_look(&mut self, awaits: Awaits) -> Time {
        let slice = match self.reload {
            None => self.pace.slice(),
            Some(_) => SHORT_SLICE,
        };
        match awaits {
            Awaits::Nothing => self.next_stop(slice).min(self.sample_due()),
            Awaits::Requests | Awaits::RequestsAlone => self.sample_due(),
        }
    }

    /// What [`tell_outside`](Self::tell_outside) compares: where the GPU stands, and how much it has done.
    pub(super) fn awaited(&self) -> (Time, u64) {
        (self.gpu.now(), self.gpu.engine_counters().steps)
    }

    /// Hands over the requests that have left, and says whether the GPU did nothing but wait for others.
    pub(super) fn tell_outside(&mut self, before: (Time, u64)) -> Awaits {
        let Some(clock) = self.outside.as_ref().filter(|clock| clock.has_memory()) else {
            return Awaits::Nothing;
        };
        let requests = self.gpu.take_outside_requests();
        let (now, steps) = self.awaited();
        let awaits = match steps == before.1 && self.gpu.waits_for_outside() > 0 {
            true if !requests.is_empty() => Awaits::Nothing,
            // Nobody has work, or time would have passed until there.
            true if now == before.0 => Awaits::RequestsAlone,
            true => Awaits::Requests,
            false => Awaits::Nothing,
        };
        clock.left(requests);
        awaits
    }
}
