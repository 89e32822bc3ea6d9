//! What is heard while simulated time passes for somebody who waits: a call that is on its way, a connection that
//! is being made, and the end of a process.
//!
//! All were at rest when time began to pass, so whoever comes was woken by the host's clock, by the world outside
//! the run, or had been given up. Its call is not left waiting until the others' wait is over: a kernel may spin
//! for what that call brings.

use super::arrivals::Arrivals;
use crate::connections::has_hung_up;
use lockstep_protocol::doorbell::Doorbells;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// Who may be heard, as it was when all were at rest.
pub struct Listening {
    /// Where processes ring before they call.
    pub doorbells: Arc<Doorbells>,
    /// Who is about to be let in.
    pub arrivals: Arrivals,
    /// Processes, and how often each had rung, or more if calls of it came for which it does not ring.
    pub rung: Vec<(u32, u64)>,
    /// Connections of those who have made calls.
    pub peers: Vec<Arc<UnixStream>>,
}

impl Listening {
    /// Whether somebody has come, or gone.
    pub fn hears(&self) -> bool {
        let rings = |(process, before): &(u32, u64)| self.doorbells.rung(*process) > *before;
        self.rung.iter().any(rings)
            || !self.arrivals.nobody()
            || self.peers.iter().any(|peer| has_hung_up(peer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_protocol::{Listener, window};

    #[test]
    fn who_hangs_up_or_arrives_is_heard() {
        let window = window::create().unwrap();
        let listener = Listener::bind_under(&std::env::temp_dir(), |_| Ok(())).unwrap();
        let path = listener.path().to_owned();
        let (own, other) = UnixStream::pair().unwrap();
        let listening = Listening {
            doorbells: Arc::new(Doorbells::map(&window).unwrap()),
            arrivals: Arrivals::at(Arc::new(listener)),
            rung: vec![(77, 0)],
            peers: vec![Arc::new(own)],
        };
        assert!(!listening.hears());
        let client = UnixStream::connect(path).unwrap();
        assert!(listening.hears(), "it is at the door");
        let arriving = listening.arrivals.begins();
        drop((arriving, client));
        drop(other);
        assert!(listening.hears(), "it has hung up");
    }
}
