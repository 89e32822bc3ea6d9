//! A host that looks at memory again and again while kernels run.
//!
//! Simulated time passes inside calls, so such a host would wait for ever for what a kernel writes.
//! When no call has come for a while, the memory that host and device share is closed. Whoever looks
//! there then stops, and the simulator is asked (`HostPoll`): it lets time pass once a page was
//! looked at often enough. A page that was opened is closed again once whoever stopped there has run
//! for a moment, so that it saw what there is to see, and stops again if it goes on looking. The
//! next call ends it.
//!
//! A program that does not poll pays for a thread that looks at two counters fifty times a second.
//!
//! Start reading at [`tick`].

use super::running::Looker;
use super::{Access, MEANS, Means, connect, start};
use crate::fair_mutex::FairMutex;
use crate::process::{self, lock};
use crate::report;
use lockstep_protocol::layout::{Region, region_of};
use lockstep_protocol::pages::PAGE;
use lockstep_protocol::{ClientConnection, Reply, Request};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// How long no call comes before memory is closed.
const QUIET: Duration = Duration::from_millis(20);
/// How long a page that was looked at stays open at least.
const OPEN: Duration = Duration::from_micros(100);

/// Ticks for which a page that was looked at is closed again and again.
const LATELY: u32 = 50;

/// Calls that began and that ended, and threads that make calls.
static BEGUN: AtomicU64 = AtomicU64::new(0);
static ENDED: AtomicU64 = AtomicU64::new(0);
static CALLERS: AtomicU64 = AtomicU64::new(0);
/// Whether kernels can reach memory that the program can.
static SHARED: AtomicBool = AtomicBool::new(false);

static WATCH: FairMutex<Watch> = FairMutex::new(Watch {
    calls: 0,
    armed: false,
    ranges: Vec::new(),
    looks: BTreeMap::new(),
    open: BTreeMap::new(),
});

/// What is watched.
struct Watch {
    /// Calls that had begun at the last tick.
    calls: u64,
    /// Whether memory is closed.
    armed: bool,
    ranges: Vec<(u64, u64)>,
    /// How often each page was looked at since the last call.
    looks: BTreeMap<u64, u32>,
    /// Pages that were looked at lately.
    open: BTreeMap<u64, OpenPage>,
}

/// A page that was opened for those who looked there.
struct OpenPage {
    /// Ticks for which it is still closed.
    left: u32,
    /// Who has not looked yet.
    lookers: Vec<Looker>,
}

/// A thread makes its first call.
pub fn caller_came() {
    CALLERS.fetch_add(1, Ordering::Relaxed);
}

/// A thread that made calls has ended.
pub fn caller_left() {
    CALLERS.fetch_sub(1, Ordering::Relaxed);
}

/// A call begins.
pub fn call_begins() {
    BEGUN.fetch_add(1, Ordering::SeqCst);
}

/// A call has ended with a reply.
pub fn call_ended(reply: Option<&Reply>) {
    if let Some(Reply::Address(address)) = reply
        && matches!(region_of(*address), Some(Region::Pinned | Region::Managed))
    {
        SHARED.store(true, Ordering::Relaxed);
    }
    ENDED.fetch_add(1, Ordering::SeqCst);
}

/// How long until the next tick.
pub fn interval() -> Duration {
    if lock(&WATCH).armed { OPEN } else { QUIET }
}

/// Looks whether a host may be polling; closes again what is open if it may.
pub fn tick(connection: &mut Option<ClientConnection>) {
    let (begun, ended) = (BEGUN.load(Ordering::SeqCst), ENDED.load(Ordering::SeqCst));
    let mut watch = lock(&WATCH);
    if begun != watch.calls {
        watch.calls = begun;
        watch.disarm();
        return;
    }
    // Somebody must be outside of calls to look at memory.
    let outside = begun.saturating_sub(ended) < CALLERS.load(Ordering::Relaxed);
    if !SHARED.load(Ordering::Relaxed) || !outside {
        return;
    }
    if !watch.armed {
        drop(watch);
        arm(connection, begun);
        return;
    }
    // More than once: the thread that opens a page may do so after this.
    watch.open.retain(|page, open| {
        open.lookers.retain_mut(|looker| !looker.has_run());
        if open.lookers.is_empty() {
            close(*page, PAGE);
            open.left -= 1;
        }
        open.left > 0
    });
}

/// Closes all memory that host and device share.
fn arm(connection: &mut Option<ClientConnection>, begun: u64) {
    let means = MEANS.get_or_init(start);
    if matches!(means, Means::Nothing) {
        return;
    }
    if connection.is_none() {
        *connection = connect().ok();
    }
    let Some(connection) = connection else {
        return;
    };
    process::ring();
    let response = match connection.call(&Request::HostVisible) {
        Ok(response) => response,
        Err(error) => report::simulator_gone(&error.to_string()),
    };
    let Ok(Reply::Pages(ranges)) = response.result else {
        return;
    };
    let mut watch = lock(&WATCH);
    if BEGUN.load(Ordering::SeqCst) != begun {
        return;
    }
    for (address, bytes) in &ranges {
        close(*address, *bytes);
    }
    watch.ranges = ranges;
    watch.armed = true;
}

/// Whether an access to this page is somebody who looks at closed memory; counts it.
pub(super) fn look(connection: &mut ClientConnection, access: Access) {
    let Access { address, write, .. } = access;
    let page = address - address % PAGE;
    let polls = {
        let mut watch = lock(&WATCH);
        let mut ranges = watch.ranges.iter();
        let within = |(start, bytes): &(u64, u64)| page + PAGE > *start && page < start + bytes;
        if !watch.armed || !ranges.any(within) {
            return;
        }
        if write {
            // Who writes does not wait.
            watch.open(page, access.thread);
            return;
        }
        let looks = watch.looks.entry(page).or_default();
        *looks = looks.saturating_add(1);
        *looks
    };
    process::ring();
    let pending = match connection.call(&Request::HostPoll { address, polls }) {
        Ok(response) => {
            super::close(&response.left_host);
            crate::call::write_output(&response.output);
            matches!(response.result, Ok(Reply::Polled { pending: true }))
        }
        Err(error) => report::simulator_gone(&error.to_string()),
    };
    let mut watch = lock(&WATCH);
    if !pending {
        watch.disarm();
    } else if watch.armed {
        watch.open(page, access.thread);
    }
}

impl Watch {
    /// A page is about to be opened for a thread that stopped there.
    fn open(&mut self, page: u64, thread: u32) {
        let open = self.open.entry(page).or_insert(OpenPage {
            left: LATELY,
            lookers: Vec::new(),
        });
        open.left = LATELY;
        open.lookers.retain(|looker| looker.thread != thread);
        open.lookers.extend(Looker::new(thread));
    }

    /// Opens everything; nobody is watched until calls stop again.
    fn disarm(&mut self) {
        self.looks.clear();
        self.open.clear();
        if !self.armed {
            return;
        }
        self.armed = false;
        for (address, bytes) in self.ranges.drain(..) {
            // Managed pages that have left for the GPU stay closed; others open when touched.
            if region_of(address) == Some(Region::Pinned) {
                match MEANS.get() {
                    Some(Means::Kernel(faults)) => faults.forget(address, bytes),
                    Some(Means::Protection) => super::protection::open(address, bytes),
                    Some(Means::Nothing) | None => {}
                }
            }
        }
    }
}

fn close(address: u64, bytes: u64) {
    let end = (address + bytes).next_multiple_of(PAGE);
    let address = address - address % PAGE;
    let closed = match MEANS.get() {
        Some(Means::Kernel(faults)) => faults.close(address, end - address),
        Some(Means::Protection) => super::protection::close(address, end - address),
        Some(Means::Nothing) | None => Ok(()),
    };
    // A page that cannot be closed stays open: a host that polls there is not noticed.
    let _ = closed;
}
