//! Where the calls of programs are written down: in the record of the run, and with the ranks that play them.

use crate::ranks::Told;
use crate::server::Recording;
use lockstep_gpu::Ranks;
use lockstep_protocol::{Request, Response};
use lockstep_runtime::{Client, Entry, Piece, RecordError, RecordWriter, pieces};
use lockstep_units::Time;
use std::fs::File;

/// The record of a run, and the ranks that are told what it would hold.
pub struct Entries {
    record: Option<RecordWriter<File>>,
    /// Whether the record has data.
    full: bool,
    ranks: Option<Ranks>,
}

impl Entries {
    /// Entries go into this file, as far as it is to have them, and to these ranks.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn new(
        file: Option<File>,
        recording: Recording,
        ranks: Option<Ranks>,
    ) -> Result<Self, RecordError> {
        let full = recording == Recording::Full;
        let file = file.filter(|_| recording != Recording::None);
        Ok(Self {
            record: file.map(|file| RecordWriter::new(file, full)).transpose()?,
            full,
            ranks: ranks.filter(|ranks| ranks.count() > 1),
        })
    }

    /// Whether somebody wants to know what the host wrote and read.
    pub fn want_data(&self) -> bool {
        self.full || self.ranks.is_some()
    }

    /// The ranks that play the calls.
    pub fn ranks(&self) -> Option<&Ranks> {
        self.ranks.as_ref()
    }

    /// Notes a request about to be handled, in a quiet period.
    pub fn call(
        &mut self,
        client: Client,
        quiet: u64,
        at: Time,
        request: &Request,
    ) -> Result<(), RecordError> {
        self.tell(|| Entry::Call {
            thread: client.connection,
            process: client.process,
            quiet,
            at: at.0,
            request: request.clone(),
        });
        self.write(false, |record| record.call(client, quiet, at, request))
    }

    /// Notes memory that the host wrote.
    pub fn wrote(&mut self, address: u64, bytes: &[u8]) -> Result<(), RecordError> {
        for (address, piece) in pieces(address, bytes) {
            self.tell(|| Entry::Wrote {
                address,
                bytes: piece.to_vec(),
            });
        }
        self.write(true, |record| record.wrote(address, bytes))
    }

    /// Notes what the last request was answered, and what its program can read now.
    pub fn answered(
        &mut self,
        response: &Response,
        read: &[Piece],
        digest: [u8; 32],
    ) -> Result<(), RecordError> {
        self.tell(|| Entry::Answered {
            response: response.clone(),
            read: read.to_vec(),
            digest,
        });
        self.write(true, |record| record.answered(response, read, digest))
    }

    /// Notes that a process is gone, perhaps because it was killed.
    pub fn gone(&mut self, process: u32, killed: bool) -> Result<(), RecordError> {
        self.tell(|| match killed {
            true => Entry::Killed { process },
            false => Entry::Gone { process },
        });
        self.write(false, |record| match killed {
            true => record.killed(process),
            false => record.gone(process),
        })
    }

    /// Notes how far time had come for somebody who waits when the next call came.
    pub fn reached(&mut self, at: Time) -> Result<(), RecordError> {
        self.tell(|| Entry::Reached { at: at.0 });
        self.write(false, |record| record.reached(at))
    }

    /// Writes no more into the record.
    pub fn abandon_record(&mut self) {
        self.record = None;
    }

    /// Ends the record.
    ///
    /// # Errors
    /// The file.
    pub fn finish_record(&mut self) -> Result<(), RecordError> {
        match self.record.take() {
            Some(record) => record.finish().map(drop),
            None => Ok(()),
        }
    }

    fn tell(&self, entry: impl FnOnce() -> Entry) {
        if let Some(ranks) = &self.ranks {
            Told::Entry(entry()).tell(ranks);
        }
    }

    fn write(
        &mut self,
        is_data: bool,
        write: impl FnOnce(&mut RecordWriter<File>) -> Result<(), RecordError>,
    ) -> Result<(), RecordError> {
        match &mut self.record {
            Some(record) if self.full || !is_data => write(record),
            _ => Ok(()),
        }
    }
}
