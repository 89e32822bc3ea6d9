//! Which process counts exactly on a GPU: the range profiler counts for one at a time.
//!
//! A process that wants to launch waits until the one before it has given the hardware up, and says by
//! a second lock that it waits. The owner gives it up after a while when somebody waits, between two
//! launches. Changing hands takes half a second, so it keeps it for twice as long.
//!
//! A process that ended is gone from its lock before the driver has taken its profiler down, so the
//! hardware may be busy for a moment after the lock was taken ([`Hardware::is_freed_soon`]).

#![allow(
    clippy::disallowed_methods,
    reason = "how long others are waited for is host time"
)]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::ownership::Ownership;

/// Time that a process may count while others wait.
const LEASE: Duration = Duration::from_secs(1);
/// Time that the driver may need to take down what a process left.
const LEFT: Duration = Duration::from_secs(2);
/// Time between two attempts.
const PAUSE: Duration = Duration::from_millis(5);
/// A process that just gave the hardware up lets others have it first.
const COURTESY: Duration = Duration::from_millis(50);
/// Longer than this nobody waits: the owner may be waiting for the very process that waits for it.
const PATIENCE: Duration = Duration::from_secs(10);

/// The counting hardware of one GPU, as this process sees it.
pub struct Hardware {
    folder: PathBuf,
    uuid: String,
    /// Since when this process owns it, or counts.
    owned: Option<(Ownership, Instant)>,
    given: Option<Instant>,
    /// It was busy although nobody had the lock: another tool counts.
    taken: bool,
    /// Somebody kept it for longer than we wait.
    kept: bool,
}

impl Hardware {
    /// Of GPU `uuid`; locks are in `folder`.
    pub fn new(folder: PathBuf, uuid: String) -> Self {
        Self {
            folder,
            uuid,
            owned: None,
            given: None,
            taken: false,
            kept: false,
        }
    }

    /// Waits until this process may count; false if another one keeps the hardware.
    pub fn take(&mut self) -> Result<bool, String> {
        if self.owned.is_some() {
            return Ok(true);
        }
        let begun = Instant::now();
        let given = self.given.filter(|given| given.elapsed() < COURTESY);
        if given.is_some() && self.is_wanted()? {
            std::thread::sleep(COURTESY);
        }
        let mut wish = None;
        loop {
            if let Some(ownership) = Ownership::take(&self.folder, &self.uuid)? {
                self.owned = Some((ownership, Instant::now()));
                self.kept = false;
                return Ok(true);
            }
            if self.kept || begun.elapsed() >= PATIENCE {
                self.kept = true;
                return Ok(false);
            }
            if wish.is_none() {
                wish = Some(Ownership::share(&self.folder, &self.wish())?);
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// The hardware is busy: waits a moment and says whether to try again.
    pub fn is_freed_soon(&mut self) -> bool {
        let owned = self.owned.as_ref().map(|(_, since)| since.elapsed());
        self.taken |= owned.is_none_or(|owned| owned >= LEFT);
        if !self.taken {
            std::thread::sleep(PAUSE);
        }
        !self.taken
    }

    /// Counting begins now; preparing it took its time.
    pub fn counts(&mut self) {
        if let Some((_, since)) = &mut self.owned {
            *since = Instant::now();
        }
    }

    /// Whether it is time to give the hardware to others.
    pub fn is_due(&self) -> bool {
        let kept_long = |owned: &(Ownership, Instant)| owned.1.elapsed() >= LEASE;
        self.owned.as_ref().is_some_and(kept_long) && self.is_wanted().unwrap_or(false)
    }

    /// Others may count now.
    pub fn give(&mut self) {
        self.owned = None;
        self.given = Some(Instant::now());
    }

    fn is_wanted(&self) -> Result<bool, String> {
        Ok(Ownership::take(&self.folder, &self.wish())?.is_none())
    }

    fn wish(&self) -> String {
        format!("{}.wanted", self.uuid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_it_gives_it_up_when_somebody_waits() {
        let folder = std::env::temp_dir().join(format!("lockstep-hardware-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let hardware = || Hardware::new(folder.clone(), "GPU-1".to_owned());
        let mut first = hardware();
        assert_eq!(first.take(), Ok(true));
        assert!(!first.is_due());
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let mut second = hardware();
                second.take()
            });
            while !first.is_due() {
                std::thread::sleep(PAUSE);
            }
            first.give();
            // The other one comes first, although this one asks at once.
            assert_eq!(first.take(), Ok(true));
            assert_eq!(waiting.join().unwrap(), Ok(true));
        });
        assert!(!first.is_due(), "nobody waits any more");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
