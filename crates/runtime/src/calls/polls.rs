//! A host that looks at memory again and again while kernels run.
//!
//! Nothing but calls lets simulated time pass, so a host that waits for what a kernel writes would
//! wait for ever. The program's library notices such a host and asks here, look by look. Time
//! passes in steps that grow with the time that the host has waited: an eighth of it, and at least
//! `host.poll`. How often the host really looked does not matter, so the answer does not depend on
//! its speed, as long as what it saw is why it stopped looking.
//!
//! Hosts of several processes wait for each other as well: what one sees it sends to the next, and between
//! the two nothing tells that the next is about to look elsewhere. If steps grew all the while, a message that goes
//! from host to host would pass exponentially more time at each of them. So when one of several sees something,
//! the steps of all begin anew.
//!
//! Start reading at [`Runtime::host_poll`].

use crate::device::Device;
use crate::timeline::Wait;
use crate::{CallResult, Client, Runtime};
use lockstep_protocol::Reply;
use lockstep_protocol::pages::PAGE;
use lockstep_units::{Duration, Time};
use std::collections::BTreeMap;

/// Looks that pass no time: a host that merely works in memory that a kernel could write looks
/// there a few times as well.
const PATIENCE: u32 = 16;

/// Most pages of which it is kept what a host saw.
const MOST_PAGES: usize = 64;

/// Hosts that poll, by process.
pub(crate) type Polls = BTreeMap<u32, Poll>;

/// A host that polls.
#[derive(Debug)]
pub(crate) struct Poll {
    /// Since when it has waited, or when one of several hosts last saw something.
    since: Time,
    /// What it saw at its last look, by page.
    pages: BTreeMap<u64, Vec<u8>>,
    /// Whether the last step changed a page.
    changed: bool,
    /// Looks after which time may pass again: who looks when something has changed must have had the
    /// time to see it, on a machine that has other things to do too.
    seen_after: u32,
}

impl<D: Device> Runtime<D> {
    /// What a look waits for: nothing while the host may only be working, or has nothing to wait
    /// for.
    pub(super) fn poll_wait(&self, client: Client, polls: u32) -> Option<Wait> {
        let waits = self.has_patience(client, polls) && self.timeline.has_work();
        waits.then_some(Wait::Until(self.poll_end(client)))
    }

    /// Whether the host has looked often enough for time to pass.
    fn has_patience(&self, client: Client, polls: u32) -> bool {
        let poll = self.polls.get(&client.process);
        polls >= poll.map_or(PATIENCE, |poll| poll.seen_after.max(PATIENCE))
    }

    /// When the next look is.
    fn poll_end(&self, client: Client) -> Time {
        let poll = self.polls.get(&client.process);
        let waited = poll.map_or(0, |poll| self.now.since(poll.since).0);
        self.now + Duration(self.config.host.poll.0.max(waited / 8))
    }

    /// The host has looked at memory that kernels can write, so many times without another call.
    pub(super) fn host_poll(
        &mut self,
        client: Client,
        address: u64,
        polls: u32,
    ) -> CallResult<Reply> {
        let pending = self.timeline.has_work();
        if !pending || !self.has_patience(client, polls) {
            return Ok(Reply::Polled { pending });
        }
        let end = self.poll_end(client);
        let mut poll = self.polls.remove(&client.process).unwrap_or(Poll {
            since: self.now,
            pages: BTreeMap::new(),
            changed: false,
            seen_after: 0,
        });
        let page = address - address % PAGE;
        if poll.pages.len() < MOST_PAGES && !poll.pages.contains_key(&page) {
            poll.pages.insert(page, self.page(page));
        }
        self.now = end;
        let reached = self.catch_up();
        poll.changed = false;
        for (page, seen) in &mut poll.pages {
            let now = self.page(*page);
            poll.changed |= *seen != now;
            *seen = now;
        }
        if poll.changed {
            poll.seen_after = polls.saturating_add(PATIENCE);
        }
        let seen = poll.changed && !self.polls.is_empty();
        self.polls.insert(client.process, poll);
        if seen {
            self.polls
                .values_mut()
                .for_each(|poll| poll.since = self.now);
        }
        reached?;
        Ok(Reply::Polled {
            pending: self.timeline.has_work(),
        })
    }

    fn page(&self, page: u64) -> Vec<u8> {
        let mut bytes = vec![0; PAGE as usize];
        // An address that is no memory of the device's has nothing to see.
        if self.memory.covering(page, PAGE).is_ok() {
            self.device.read(page, &mut bytes);
        }
        bytes
    }

    /// A call that is no look: the host has seen what it waited for, or given up.
    pub(crate) fn end_polling(&mut self, client: Client) {
        let Some(poll) = self.polls.remove(&client.process) else {
            return;
        };
        if !poll.changed {
            let page = poll.pages.keys().next().copied().unwrap_or(0);
            self.depends(format!(
                "the host looked at memory at {page:#x} again and again while kernels ran, and \
                 stopped although nothing had changed there: how long it looked was up to the host"
            ));
        }
    }
}
