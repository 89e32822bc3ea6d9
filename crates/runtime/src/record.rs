//! The record of calls: everything that a run's answers depend on, in order.
//!
//! A record is a sequence of [`Entry`]s, each a postcard frame, the whole compressed with zstd.
//! With the bytes that the host wrote it can be replayed without the program; without them it
//! still tells what was called, when and in which order.

use crate::Client;
use lockstep_protocol::Request;
use lockstep_units::Time;
use serde::{Deserialize, Serialize};
use std::io::{BufReader, BufWriter, Read, Write};
use thiserror::Error;

const MAGIC: &[u8; 8] = b"LKSTREC1";
/// Longest entry that a reader accepts.
const MAXIMUM_ENTRY: u32 = 1 << 30;
/// Longest piece of memory in one entry.
const PIECE: usize = 64 << 20;

/// One thing that came from outside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Entry {
    /// A request, with the simulated time at which it was handled.
    Call {
        /// The connection.
        connection: u64,
        /// The process.
        process: u32,
        /// Simulated time of the host, in femtoseconds.
        at: u64,
        /// The request.
        request: Request,
    },
    /// Memory that the host wrote.
    Wrote {
        /// First address.
        address: u64,
        /// The bytes.
        #[serde(with = "serde_bytes")]
        bytes: Vec<u8>,
    },
    /// A process is gone.
    Gone {
        /// The process.
        process: u32,
    },
}

/// Why a record could not be written or read.
#[derive(Debug, Error)]
pub enum RecordError {
    /// The file.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The contents.
    #[error("not a record of calls: {0}")]
    Malformed(String),
}

/// Writes a record.
pub struct RecordWriter<W: Write> {
    stream: zstd::Encoder<'static, BufWriter<W>>,
}

impl<W: Write> RecordWriter<W> {
    /// Starts a record.
    ///
    /// # Errors
    /// The file.
    pub fn new(file: W) -> Result<Self, RecordError> {
        let mut file = BufWriter::new(file);
        file.write_all(MAGIC)?;
        Ok(Self {
            stream: zstd::Encoder::new(file, 1)?,
        })
    }

    /// Notes a request about to be handled.
    ///
    /// # Errors
    /// The file.
    pub fn call(&mut self, client: Client, at: Time, request: &Request) -> Result<(), RecordError> {
        let Client {
            connection,
            process,
        } = client;
        self.entry(&Entry::Call {
            connection,
            process,
            at: at.0,
            request: request.clone(),
        })
    }

    /// Notes memory that the host wrote.
    ///
    /// # Errors
    /// The file.
    pub fn wrote(&mut self, address: u64, bytes: &[u8]) -> Result<(), RecordError> {
        for (index, piece) in bytes.chunks(PIECE).enumerate() {
            let address = address + (index * PIECE) as u64;
            self.entry(&Entry::Wrote {
                address,
                bytes: piece.to_vec(),
            })?;
        }
        Ok(())
    }

    /// Notes that a process is gone.
    ///
    /// # Errors
    /// The file.
    pub fn gone(&mut self, process: u32) -> Result<(), RecordError> {
        self.entry(&Entry::Gone { process })
    }

    /// Ends the record.
    ///
    /// # Errors
    /// The file.
    pub fn finish(self) -> Result<W, RecordError> {
        let file = self.stream.finish()?;
        file.into_inner()
            .map_err(|error| RecordError::Io(error.into_error()))
    }

    fn entry(&mut self, entry: &Entry) -> Result<(), RecordError> {
        let bytes = postcard::to_stdvec(entry)
            .map_err(|error| RecordError::Malformed(error.to_string()))?;
        let length = u32::try_from(bytes.len())
            .map_err(|_| RecordError::Malformed("an entry too long".into()))?;
        self.stream.write_all(&length.to_le_bytes())?;
        self.stream.write_all(&bytes)?;
        Ok(())
    }
}

/// Reads a record, entry by entry.
pub struct RecordReader<R: Read> {
    stream: zstd::Decoder<'static, BufReader<R>>,
}

impl<R: Read> RecordReader<R> {
    /// Opens a record.
    ///
    /// # Errors
    /// The file is not a record.
    pub fn new(mut file: R) -> Result<Self, RecordError> {
        let mut magic = [0; 8];
        file.read_exact(&mut magic)?;
        if &magic != MAGIC {
            return Err(RecordError::Malformed("it does not begin as one".into()));
        }
        Ok(Self {
            stream: zstd::Decoder::new(file)?,
        })
    }

    fn next_entry(&mut self) -> Result<Option<Entry>, RecordError> {
        let mut length = [0; 4];
        match self.stream.read(&mut length)? {
            0 => return Ok(None),
            count => self.stream.read_exact(&mut length[count..])?,
        }
        let length = u32::from_le_bytes(length);
        if length > MAXIMUM_ENTRY {
            return Err(RecordError::Malformed(format!(
                "an entry of {length} bytes"
            )));
        }
        let mut bytes = Vec::new();
        (&mut self.stream)
            .take(u64::from(length))
            .read_to_end(&mut bytes)?;
        if bytes.len() != length as usize {
            return Err(RecordError::Malformed("it ends within an entry".into()));
        }
        postcard::from_bytes(&bytes)
            .map(Some)
            .map_err(|error| RecordError::Malformed(error.to_string()))
    }
}

impl<R: Read> Iterator for RecordReader<R> {
    type Item = Result<Entry, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_entry().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_reads_back_what_was_written() {
        let client = Client {
            connection: 3,
            process: 1,
        };
        let mut writer = RecordWriter::new(Vec::new()).unwrap();
        writer
            .call(client, Time(5), &Request::Profiler { start: true })
            .unwrap();
        writer.wrote(0x2000, &[1, 2, 3]).unwrap();
        writer.gone(1).unwrap();
        let file = writer.finish().unwrap();
        let entries: Vec<Entry> = RecordReader::new(&file[..])
            .unwrap()
            .map(Result::unwrap)
            .collect();
        assert_eq!(
            entries,
            [
                Entry::Call {
                    connection: 3,
                    process: 1,
                    at: 5,
                    request: Request::Profiler { start: true }
                },
                Entry::Wrote {
                    address: 0x2000,
                    bytes: vec![1, 2, 3]
                },
                Entry::Gone { process: 1 },
            ]
        );
        // Cut anywhere, it is an error or a shorter record, never a panic.
        for length in 0..file.len() {
            if let Ok(reader) = RecordReader::new(&file[..length]) {
                let _ = reader.take_while(Result::is_ok).count();
            }
        }
    }
}
