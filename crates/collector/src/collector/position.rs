//! Readers that come and go: how far one came, who a process is, and what is no longer needed.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Collector, SampledUntil, Source};
use lockstep_segment::{Identity, IdentityKind, SegmentReader};

/// Launches of a process that is gone are waited for this long, in nanoseconds.
const PATIENCE: u64 = 10_000_000_000;

/// How far a reader has come in a segment. The next reader goes on there, so that nothing is
/// counted twice and nothing is left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Position {
    /// The first record that is still needed.
    pub needed: u64,
    /// Records before this one were read.
    pub read: u64,
    /// Samples before this one were divided among kernels and stored.
    pub samples: u64,
}

/// The parallel program that a process is a part of, as its batch system says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Membership {
    /// Its job; nothing outside of jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// Its rank; nothing if it is alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<String>,
}

impl Source {
    /// The first record that is not stored yet.
    pub(super) fn needed(&self) -> u64 {
        let launch = self.outstanding.front().copied().unwrap_or(u64::MAX);
        self.first_held().min(launch)
    }

    fn first_held(&self) -> u64 {
        let held = self.held.first().map_or(u64::MAX, |(index, ..)| *index);
        held.min(self.reader.cursor())
    }

    /// Its process has ended, and everything of it is stored. A reader that never ends passes the
    /// time: it does not wait for ever for what became of the last launches of a killed process.
    pub(super) fn is_over(&self, now: Option<u64>) -> bool {
        let given_up = |now| self.reader.heartbeat().saturating_add(PATIENCE) < now;
        let settled = self.outstanding.is_empty() || now.is_some_and(given_up);
        self.ended && self.held.is_empty() && settled
    }

    /// The segment's name, which no other segment ever has.
    fn name(&self) -> String {
        let name = self.reader.path().file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }
}

impl Collector {
    /// Goes on where a reader before this one stopped, and takes records that others acknowledged,
    /// too. To be told before anything is read.
    pub fn resume(&mut self, positions: BTreeMap<String, Position>, sampled: SampledUntil) {
        self.resumed = positions;
        self.sampled_until = sampled;
        self.rewinds = true;
    }

    /// How far this reader has come in each segment, for the next one.
    pub fn positions(&self) -> BTreeMap<String, Position> {
        let sources = self.sources.values().map(|source| {
            let resumed = source.resumed;
            let position = Position {
                needed: source.needed(),
                read: source.reader.cursor().max(resumed.read),
                samples: source.first_held().max(resumed.samples),
            };
            (source.name(), position)
        });
        sources.collect()
    }

    /// The node on which processes publish; nothing before one did.
    pub fn node(&self) -> Option<&str> {
        self.node.as_deref()
    }

    /// Jobs and ranks of the processes that said so.
    pub fn memberships(&self) -> &BTreeMap<u32, Membership> {
        &self.memberships
    }

    /// The index of each GPU on its node.
    pub fn gpu_indices(&self) -> BTreeMap<Arc<str>, u32> {
        let indices = self.indices.iter();
        indices
            .map(|(gpu, (index, _))| (Arc::clone(gpu), *index))
            .collect()
    }

    /// Forgets what a process did, once its segment is gone and nobody asks for its totals.
    pub fn forget(&mut self, process: u32) {
        self.totals.retain(|key, _| key.process != process);
        self.processes.remove(&process);
        self.memberships.remove(&process);
    }

    /// A segment that was just found, from where it is to be read.
    pub(super) fn begin(&self, reader: SegmentReader) -> Source {
        let mut source = Source::new(reader);
        if let Some(resumed) = self.resumed.get(&source.name()) {
            source.resumed = *resumed;
            source.reader.resume_at(resumed.needed);
        } else if self.rewinds {
            source.reader.rewind();
        }
        source
    }

    /// Learns the job or the rank of a process.
    pub(super) fn join(&mut self, process: u32, identity: &Identity) {
        let membership = self.memberships.entry(process).or_default();
        let text = Some(identity.text.clone());
        match identity.kind {
            IdentityKind::Job => membership.job = text,
            _ => membership.rank = text,
        }
    }
}
