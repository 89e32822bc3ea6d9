//! What rank 0 tells the others, so that each does what it does.

use lockstep_gpu::Ranks;
use lockstep_protocol::Request;
use lockstep_runtime::{Client, Entry};
use serde::{Deserialize, Serialize};

/// One thing that every rank does after rank 0.
#[derive(Serialize, Deserialize)]
pub enum Told {
    /// What an entry of a record says.
    Entry(Entry),
    /// Lets time pass until the first of these calls of several threads has nothing to wait for: connection,
    /// process, request.
    Waits(Vec<(u64, u32, Request)>),
    /// Compares what came of the run, and ends.
    End,
}

impl Told {
    /// Rank 0: tells the others. One that is gone is noticed where its answer is needed.
    pub fn tell(&self, ranks: &Ranks) {
        let told = postcard::to_extend(self, Vec::new());
        let sent = told.map(|bytes| ranks.broadcast(&bytes));
        if let Err(error) = sent {
            ranks.lose(&format!("what ranks are told cannot be written: {error}"));
        }
    }

    /// Another rank: waits for what comes next.
    ///
    /// # Errors
    /// Rank 0 is gone, or says something else.
    pub fn hear(ranks: &Ranks) -> Result<Self, String> {
        let bytes = ranks.receive().map_err(|lost| lost.0)?;
        postcard::from_bytes(&bytes)
            .map_err(|error| format!("what rank 0 says makes no sense: {error}"))
    }

    /// Calls that wait, of these clients.
    pub fn waits(calls: impl Iterator<Item = (Client, Request)>) -> Self {
        let calls = calls.map(|(client, request)| (client.connection, client.process, request));
        Self::Waits(calls.collect())
    }
}
