//! A GPU whose time, and perhaps memory, a simulator around this one gives.

use super::Machine;
use lockstep_units::Time;

impl Machine {
    /// How far time may pass, not beyond `limit`: waits until some is given, and takes on what is complete by then.
    /// Nothing if the run is given up.
    pub(super) fn time_given(&mut self, limit: Time) -> Option<Time> {
        let Some(clock) = self.outside.clone() else {
            return Some(limit);
        };
        let (until, complete) = clock.given(self.gpu.now(), limit)?;
        for (request, at) in complete {
            if let Err(error) = self.gpu.complete_outside(request, at) {
                // The clock lets no number pass that does not wait, unless a fault took its kernel.
                tracing::debug!("{error}");
            }
        }
        Some(until)
    }

    /// Hands over the requests that have left.
    pub(super) fn tell_outside(&mut self) {
        if let Some(clock) = self.outside.as_ref().filter(|clock| clock.has_memory()) {
            clock.left(self.gpu.take_outside_requests());
        }
    }
}
