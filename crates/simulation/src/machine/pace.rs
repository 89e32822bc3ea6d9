//! How much simulated time passes before somebody who wants to stop is heard.
//!
//! Between two slices all messages are brought to their receivers by one thread, so they should not
//! be short; but a full GPU on a slow host takes seconds for what an empty one does in an instant.
//! Where slices end changes no answer.

use lockstep_units::Duration;
use std::time::{Duration as WallTime, Instant};

/// The longest slice.
const LONGEST: Duration = Duration::microseconds(8);
/// The shortest one.
const SHORTEST: Duration = Duration::nanoseconds(250);
/// The first one: nothing is known yet.
const FIRST: Duration = Duration::nanoseconds(500);
/// A slice that takes longer is followed by a shorter one.
const TOO_LONG: WallTime = WallTime::from_millis(200);
/// A slice that takes less is followed by a longer one.
const SHORT: WallTime = WallTime::from_millis(50);

/// How often those who watch are told how far things are.
const TELL: WallTime = WallTime::from_millis(100);

/// The length of slices, by how long they take.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    slice: Duration,
    /// Time since somebody was told how far things are.
    untold: WallTime,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            slice: FIRST,
            untold: WallTime::ZERO,
        }
    }
}

impl Pace {
    /// How long the next slice is.
    pub fn slice(self) -> Duration {
        self.slice
    }

    /// The time of the host, at the beginning of a slice.
    #[allow(
        clippy::disallowed_methods,
        reason = "how long a slice is changes no answer"
    )]
    pub fn begin(self) -> Instant {
        Instant::now()
    }

    /// Notes the end of a slice that began then; true now and then, when somebody may want to know how far
    /// things are.
    pub fn end(&mut self, began: Instant) -> bool {
        let wall = began.elapsed();
        self.took(wall);
        self.untold += wall;
        let due = self.untold >= TELL;
        if due {
            self.untold = WallTime::ZERO;
        }
        due
    }

    fn took(&mut self, wall: WallTime) {
        if wall > TOO_LONG {
            self.slice = Duration(self.slice.0 / 4).max(SHORTEST);
        } else if wall < SHORT {
            self.slice = Duration(self.slice.0 * 2).min(LONGEST);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_shrink_while_the_host_is_slow_and_grow_again() {
        let mut pace = Pace::default();
        for _ in 0..10 {
            pace.took(WallTime::from_secs(1));
        }
        assert_eq!(pace.slice(), SHORTEST);
        pace.took(WallTime::from_millis(100));
        assert_eq!(pace.slice(), SHORTEST);
        for _ in 0..10 {
            pace.took(WallTime::from_millis(1));
        }
        assert_eq!(pace.slice(), LONGEST);
    }
}
