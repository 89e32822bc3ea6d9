//! The record of calls: everything that a run's answers depend on, in order, and what they were.
//!
//! A record is nine bytes (magic, version, whether it is full), then a sequence of [`Entry`]s, each
//! a postcard frame after its length, the whole compressed with zstd. A large image that several calls load is in the
//! first of them. With the bytes that the host wrote it
//! can be replayed without the program, and with the answers a replay can be checked; without
//! either it still tells what was called, by whom and in which order
//! (`docs/decisions/0031-what-a-record-holds.md`).
//!
//! A reader trusts nothing: it holds one entry at a time, and large images that may come again, and an entry may not
//! be far larger than what it was read from.

mod images;

use crate::Client;
use images::{Read as ReadImages, Written as WrittenImages};
use lockstep_protocol::{Extent, Request, Response, Rows};
use lockstep_units::Time;
use serde::{Deserialize, Serialize};
use std::io::{BufReader, BufWriter, Read, Write};
use thiserror::Error;

/// How every record begins; the version follows.
const MAGIC: &[u8; 7] = b"LKSTREC";
/// The version that is written, and the only one that is read.
const VERSION: u8 = b'2';
/// Longest entry that a reader accepts: a call that carries a module of 1 GiB.
const MAXIMUM_ENTRY: u32 = (1 << 30) + (1 << 20);
/// In place of a length: the call that follows loads an image that an earlier one has, and is written without it. Where
/// it stands in the call and its number follow, in four and eight bytes.
const AGAIN: u32 = u32::MAX - 1;
/// Longest piece of memory in one entry.
const PIECE: usize = 1 << 20;
/// Bytes of an entry that need no file behind them.
const FREE_EXPANSION: u64 = 16 << 20;
/// How many times larger than its compressed form an entry may be, past [`FREE_EXPANSION`].
/// Machine code and PTX shrink some ten times.
const MAXIMUM_EXPANSION: u64 = 1000;
/// Entries after which what is compressed so far is handed to the system: a run that is killed
/// leaves a record of nearly all that it did.
const FLUSH_AFTER: u32 = 256;

/// One thing that came from outside, or went there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Entry {
    /// A request, with the simulated time at which it was handled.
    Call {
        /// The host thread: numbered, over all processes, in the order of first calls.
        thread: u64,
        /// The process, numbered likewise.
        process: u32,
        /// The period between two advances of simulated time that the call belongs to: calls of
        /// one period have no order among threads. 0 while nobody counts them.
        quiet: u64,
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
    /// What the call before it was answered, and what its program could then read.
    Answered {
        /// The answer.
        response: Response,
        /// Memory that the program copies out of the window, or that the device changed where
        /// the program can look.
        read: Vec<Piece>,
        /// A digest of what it held.
        digest: [u8; 32],
    },
    /// A process is gone.
    Gone {
        /// The process.
        process: u32,
    },
    /// A process is gone because it was killed.
    Killed {
        /// The process.
        process: u32,
    },
    /// Simulated time had passed until then for somebody who waits when the call after it came: the host decided
    /// when.
    Reached {
        /// Simulated time, in femtoseconds.
        at: u64,
    },
}

/// A piece of the window: rows, and how much of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// Where.
    pub rows: Rows,
    /// How much.
    pub extent: Extent,
}

impl Entry {
    /// One entry as a record holds it, for those who send it on.
    ///
    /// # Errors
    /// It is longer than an entry may be.
    pub fn to_bytes(&self) -> Result<Vec<u8>, RecordError> {
        let malformed = |error: postcard::Error| RecordError::Malformed(error.to_string());
        let bytes = postcard::to_extend(self, Vec::new()).map_err(malformed)?;
        match bytes.len() <= MAXIMUM_ENTRY as usize {
            true => Ok(bytes),
            false => Err(RecordError::Malformed("an entry too long".into())),
        }
    }

    /// Reads one entry, and nothing else.
    ///
    /// # Errors
    /// The bytes are no entry, or more than one.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, RecordError> {
        let entry = match postcard::take_from_bytes(bytes) {
            Ok((entry, [])) => entry,
            Ok((_, rest)) => {
                let left = format!("{} bytes are left over", rest.len());
                return Err(RecordError::Malformed(left));
            }
            Err(error) => return Err(RecordError::Malformed(error.to_string())),
        };
        match &entry {
            Self::Wrote { bytes, .. } if bytes.len() > PIECE => Err(RecordError::Malformed(
                "it writes more at once than any record does".into(),
            )),
            _ => Ok(entry),
        }
    }
}

impl Piece {
    /// Bytes without pitch.
    pub fn linear(address: u64, bytes: u64) -> Self {
        Self {
            rows: Rows::linear(address, bytes),
            extent: Extent::linear(bytes),
        }
    }
}

/// An [`Entry`] that is still somebody else's, in the same order.
#[derive(Serialize)]
enum Borrowed<'run> {
    Call {
        thread: u64,
        process: u32,
        quiet: u64,
        at: u64,
        request: &'run Request,
    },
    Wrote {
        address: u64,
        #[serde(with = "serde_bytes")]
        bytes: &'run [u8],
    },
    Answered {
        response: &'run Response,
        read: &'run [Piece],
        digest: [u8; 32],
    },
    Gone {
        process: u32,
    },
    Killed {
        process: u32,
    },
    Reached {
        at: u64,
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
    /// A record of another time.
    #[error(
        "it is a record of version {found}, and this Lockstep reads version 2: run the program \
         again with this one"
    )]
    Version {
        /// Its version.
        found: char,
    },
    /// It ends before its end.
    #[error(
        "the record ends early, after {entries} entries: the run was killed, or its disk was full"
    )]
    Truncated {
        /// Whole entries before it.
        entries: u64,
    },
}

/// What the host wrote, in pieces that one entry each may hold.
pub fn pieces(address: u64, bytes: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let pieces = bytes.chunks(PIECE).enumerate();
    pieces.map(move |(index, piece)| (address + (index * PIECE) as u64, piece))
}

/// Writes a record.
pub struct RecordWriter<W: Write> {
    stream: zstd::Encoder<'static, BufWriter<W>>,
    waiting: u32,
    buffer: Vec<u8>,
    images: WrittenImages,
}

impl<W: Write> RecordWriter<W> {
    /// Starts a record; a full one will have what the host wrote and was answered.
    ///
    /// # Errors
    /// The file.
    pub fn new(file: W, full: bool) -> Result<Self, RecordError> {
        let mut file = BufWriter::new(file);
        file.write_all(MAGIC)?;
        file.write_all(&[VERSION, u8::from(full)])?;
        Ok(Self {
            stream: zstd::Encoder::new(file, 1)?,
            waiting: 0,
            buffer: Vec::new(),
            images: WrittenImages::default(),
        })
    }

    /// Notes a request about to be handled, in a quiet period.
    ///
    /// # Errors
    /// The file.
    pub fn call(
        &mut self,
        client: Client,
        quiet: u64,
        at: Time,
        request: &Request,
    ) -> Result<(), RecordError> {
        let Client {
            connection,
            process,
        } = client;
        let shorter = self.images.without_known(request);
        let (request, again) = match &shorter {
            Some((shorter, again)) => (shorter, &again[..]),
            None => (request, &[][..]),
        };
        for &(image, number) in again {
            self.stream.write_all(&AGAIN.to_le_bytes())?;
            self.stream.write_all(&image.to_le_bytes())?;
            self.stream.write_all(&number.to_le_bytes())?;
        }
        self.entry(&Borrowed::Call {
            thread: connection,
            process,
            quiet,
            at: at.0,
            request,
        })
    }

    /// Notes memory that the host wrote.
    ///
    /// # Errors
    /// The file.
    pub fn wrote(&mut self, address: u64, bytes: &[u8]) -> Result<(), RecordError> {
        for (address, bytes) in pieces(address, bytes) {
            self.entry(&Borrowed::Wrote { address, bytes })?;
        }
        Ok(())
    }

    /// Notes what the last request was answered, and what its program can read now.
    ///
    /// # Errors
    /// The file.
    pub fn answered(
        &mut self,
        response: &Response,
        read: &[Piece],
        digest: [u8; 32],
    ) -> Result<(), RecordError> {
        self.entry(&Borrowed::Answered {
            response,
            read,
            digest,
        })
    }

    /// Notes that a process is gone.
    ///
    /// # Errors
    /// The file.
    pub fn gone(&mut self, process: u32) -> Result<(), RecordError> {
        self.entry(&Borrowed::Gone { process })
    }

    /// Notes that a process is gone because it was killed.
    ///
    /// # Errors
    /// The file.
    pub fn killed(&mut self, process: u32) -> Result<(), RecordError> {
        self.entry(&Borrowed::Killed { process })
    }

    /// Notes how far time had come for somebody who waits when the next call came.
    ///
    /// # Errors
    /// The file.
    pub fn reached(&mut self, at: Time) -> Result<(), RecordError> {
        self.entry(&Borrowed::Reached { at: at.0 })
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

    fn entry(&mut self, entry: &Borrowed<'_>) -> Result<(), RecordError> {
        self.buffer.clear();
        let bytes = postcard::to_extend(entry, std::mem::take(&mut self.buffer))
            .map_err(|error| RecordError::Malformed(error.to_string()))?;
        let length = u32::try_from(bytes.len())
            .ok()
            .filter(|length| *length <= MAXIMUM_ENTRY)
            .ok_or_else(|| RecordError::Malformed("an entry too long".into()))?;
        self.stream.write_all(&length.to_le_bytes())?;
        self.stream.write_all(&bytes)?;
        if bytes.len() <= PIECE {
            self.buffer = bytes;
        }
        self.waiting += 1;
        if self.waiting >= FLUSH_AFTER {
            self.waiting = 0;
            self.stream.flush()?;
        }
        Ok(())
    }
}

/// Counts what is read through it.
struct Counted<R> {
    file: R,
    bytes: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        let count = self.file.read(bytes)?;
        self.bytes += count as u64;
        Ok(count)
    }
}

/// Reads a record, entry by entry.
pub struct RecordReader<R: Read> {
    stream: zstd::Decoder<'static, BufReader<Counted<R>>>,
    full: bool,
    entries: u64,
    ended: bool,
    images: ReadImages,
}

impl<R: Read> RecordReader<R> {
    /// Opens a record.
    ///
    /// # Errors
    /// The file is not a record, or one of another version.
    pub fn new(mut file: R) -> Result<Self, RecordError> {
        let mut start = [0; 9];
        file.read_exact(&mut start)?;
        let [magic @ .., version, full] = start;
        if &magic != MAGIC {
            return Err(RecordError::Malformed("it does not begin as one".into()));
        }
        if version != VERSION {
            return Err(RecordError::Version {
                found: char::from(version),
            });
        }
        Ok(Self {
            stream: zstd::Decoder::new(Counted { file, bytes: 0 })?,
            full: full != 0,
            entries: 0,
            ended: false,
            images: ReadImages::default(),
        })
    }

    /// Whether it has what the host wrote and was answered, and can be replayed.
    pub fn is_full(&self) -> bool {
        self.full
    }

    fn next_entry(&mut self) -> Result<Option<Entry>, RecordError> {
        let length = loop {
            match self.word()? {
                None => return Ok(None),
                Some(AGAIN) => {
                    let mut again = [0; 12];
                    if self.fill(&mut again)? < again.len() {
                        return Err(self.truncated());
                    }
                    let [a, b, c, d, number @ ..] = again;
                    let again = (u32::from_le_bytes([a, b, c, d]), u64::from_le_bytes(number));
                    let known = self.images.comes_again(again);
                    known.map_err(|error| self.named(error))?;
                }
                Some(length) => break length,
            }
        };
        if length > MAXIMUM_ENTRY {
            return Err(self.malformed(&format!("{length} bytes are too many for one")));
        }
        let bytes = self.expand(u64::from(length))?;
        let mut entry = Entry::from_bytes(&bytes).map_err(|error| self.named(error))?;
        if let Entry::Call { request, .. } = &mut entry {
            let complete = self.images.complete(request);
            complete.map_err(|error| self.named(error))?;
        }
        self.entries += 1;
        Ok(Some(entry))
    }

    /// The word that an entry begins with; none at the end.
    fn word(&mut self) -> Result<Option<u32>, RecordError> {
        let mut word = [0; 4];
        match self.fill(&mut word)? {
            // Even a record of nothing is some bytes.
            0 if self.stream.get_ref().get_ref().bytes == 0 => Err(self.truncated()),
            0 => Ok(None),
            4 => Ok(Some(u32::from_le_bytes(word))),
            _ => Err(self.truncated()),
        }
    }

    /// The bytes of an entry: memory follows what really is in the file, not what is announced,
    /// and not without limit what a few bytes of it expand to.
    fn expand(&mut self, length: u64) -> Result<Vec<u8>, RecordError> {
        let before = self.stream.get_ref().get_ref().bytes;
        let mut bytes = Vec::new();
        while (bytes.len() as u64) < length {
            let part = (length - bytes.len() as u64).min(PIECE as u64) as usize;
            let start = bytes.len();
            bytes.resize(start + part, 0);
            if self.fill(&mut bytes[start..])? < part {
                return Err(self.truncated());
            }
            let read = self.stream.get_ref().get_ref().bytes - before;
            if bytes.len() as u64 > FREE_EXPANSION + MAXIMUM_EXPANSION * read {
                return Err(self.malformed(&format!(
                    "it expands to {length} bytes, more than {MAXIMUM_EXPANSION} times what it was \
                     compressed to"
                )));
            }
        }
        Ok(bytes)
    }

    /// Fills as much as there is.
    fn fill(&mut self, bytes: &mut [u8]) -> Result<usize, RecordError> {
        let mut filled = 0;
        while filled < bytes.len() {
            match self.stream.read(&mut bytes[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) => match error.kind() {
                    std::io::ErrorKind::Interrupted => {}
                    std::io::ErrorKind::UnexpectedEof => return Err(self.truncated()),
                    _ => return Err(self.malformed(&error.to_string())),
                },
            }
        }
        Ok(filled)
    }

    fn truncated(&self) -> RecordError {
        RecordError::Truncated {
            entries: self.entries,
        }
    }

    /// A mistake with the entry that it is in.
    fn named(&self, error: RecordError) -> RecordError {
        match error {
            RecordError::Malformed(reason) => self.malformed(&reason),
            other => other,
        }
    }

    fn malformed(&self, reason: &str) -> RecordError {
        RecordError::Malformed(format!("entry {}: {reason}", self.entries))
    }
}

impl<R: Read> Iterator for RecordReader<R> {
    type Item = Result<Entry, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let entry = self.next_entry().transpose();
        // What follows a mistake means nothing.
        self.ended = !matches!(entry, Some(Ok(_)));
        entry
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_protocol::{ContextHandle, ImageKind, ImageRole, ModuleImage, Reply};

    const CLIENT: Client = Client {
        connection: 3,
        process: 1,
    };

    fn small_record() -> Vec<u8> {
        let mut writer = RecordWriter::new(Vec::new(), true).unwrap();
        let request = Request::Profiler { start: true };
        writer.call(CLIENT, 0, Time(5), &request).unwrap();
        let read = [Piece::linear(0x3000, 16)];
        let response = Response::reply(Reply::Value(7));
        writer.answered(&response, &read, [9; 32]).unwrap();
        writer.wrote(0x2000, &[1, 2, 3]).unwrap();
        writer.gone(1).unwrap();
        writer.killed(2).unwrap();
        writer.reached(Time(9)).unwrap();
        writer.finish().unwrap()
    }

    /// A record of bytes that no writer would write.
    fn forged(frames: &[(u32, &[u8])]) -> Vec<u8> {
        let mut raw = Vec::new();
        for (length, bytes) in frames {
            raw.extend_from_slice(&length.to_le_bytes());
            raw.extend_from_slice(bytes);
        }
        let mut file = b"LKSTREC2\x01".to_vec();
        file.extend(zstd::encode_all(&raw[..], 1).unwrap());
        file
    }

    fn first_error(file: &[u8]) -> String {
        let reader = RecordReader::new(file).unwrap();
        let error = reader.filter_map(Result::err).next().unwrap();
        error.to_string()
    }

    #[test]
    fn a_record_reads_back_what_was_written() {
        let file = small_record();
        let entries: Vec<Entry> = RecordReader::new(&file[..])
            .unwrap()
            .map(Result::unwrap)
            .collect();
        assert_eq!(
            entries,
            [
                Entry::Call {
                    thread: 3,
                    process: 1,
                    quiet: 0,
                    at: 5,
                    request: Request::Profiler { start: true }
                },
                Entry::Answered {
                    response: Response::reply(Reply::Value(7)),
                    read: vec![Piece::linear(0x3000, 16)],
                    digest: [9; 32]
                },
                Entry::Wrote {
                    address: 0x2000,
                    bytes: vec![1, 2, 3]
                },
                Entry::Gone { process: 1 },
                Entry::Killed { process: 2 },
                Entry::Reached { at: 9 },
            ]
        );
    }

    #[test]
    fn a_record_that_was_cut_is_said_to_be_shorter() {
        let file = small_record();
        for length in 0..file.len() {
            let Ok(reader) = RecordReader::new(&file[..length]) else {
                assert!(length < 9, "{length}");
                continue;
            };
            let last = reader.last();
            assert!(
                matches!(last, Some(Err(RecordError::Truncated { .. }))),
                "{length}: {last:?}"
            );
        }
    }

    #[test]
    fn a_record_of_another_time_is_refused_with_a_sentence() {
        let mut file = small_record();
        file[7] = b'1';
        let error = RecordReader::new(&file[..]).err().unwrap().to_string();
        assert!(
            error.contains("version 1") && error.contains("run the program again"),
            "{error}"
        );
        file[0] = b'X';
        assert!(RecordReader::new(&file[..]).is_err());
    }

    #[test]
    fn a_small_file_does_not_become_a_large_entry() {
        // 29 KB that once became 900 MB: the entry is given up early.
        let zeros = vec![0; 400 << 20];
        let file = forged(&[(400 << 20, &zeros)]);
        assert!(file.len() < 100 << 10, "{}", file.len());
        let error = first_error(&file);
        assert!(error.contains("entry 0: it expands to"), "{error}");
        assert!(first_error(&forged(&[(u32::MAX, &[])])).contains("too many"));
        // A write is split by every writer.
        let bytes = vec![7; PIECE + 1];
        let write = Entry::Wrote { address: 0, bytes };
        let write = postcard::to_stdvec(&write).unwrap();
        let error = first_error(&forged(&[(write.len() as u32, &write)]));
        assert!(error.contains("writes more at once"), "{error}");
    }

    #[test]
    fn long_writes_are_split() {
        let mut writer = RecordWriter::new(Vec::new(), true).unwrap();
        let bytes: Vec<u8> = (0..3 * PIECE + 5).map(|index| index as u8).collect();
        writer.wrote(0x1000, &bytes).unwrap();
        let file = writer.finish().unwrap();
        let mut written = vec![0; bytes.len()];
        for entry in RecordReader::new(&file[..]).unwrap() {
            let Entry::Wrote { address, bytes } = entry.unwrap() else {
                panic!()
            };
            let start = (address - 0x1000) as usize;
            written[start..start + bytes.len()].copy_from_slice(&bytes);
        }
        assert_eq!(written, bytes);
    }

    /// A call that loads images of so many bytes each, filled with their numbers.
    fn load(images: &[(u8, usize)]) -> Request {
        let image = |&(fill, length): &(u8, usize)| ModuleImage {
            kind: ImageKind::Cubin,
            role: ImageRole::Main,
            bytes: vec![fill; length],
        };
        Request::ModuleLoad {
            context: ContextHandle(1),
            images: images.iter().map(image).collect(),
        }
    }

    #[test]
    fn a_large_image_is_written_once_and_read_each_time() {
        let calls = [
            load(&[(1, 3 << 20), (2, 8)]),
            load(&[(2, 8), (3, 2 << 20), (1, 3 << 20)]),
            load(&[(3, 2 << 20)]),
        ];
        let mut writer = RecordWriter::new(Vec::new(), true).unwrap();
        for call in &calls {
            writer.call(CLIENT, 0, Time(5), call).unwrap();
        }
        let file = writer.finish().unwrap();
        let written = zstd::decode_all(&file[9..]).unwrap();
        assert!(written.len() < 6 << 20, "{} bytes", written.len());
        let read = RecordReader::new(&file[..]).unwrap().map(|entry| {
            let Entry::Call { request, .. } = entry.unwrap() else {
                panic!()
            };
            request
        });
        assert_eq!(read.collect::<Vec<_>>(), calls);
    }

    #[test]
    fn an_image_that_nobody_wrote_does_not_come_again() {
        for (image, number, request) in [
            (0u32, 1u64, load(&[(1, 2 << 20)])),
            (7, 0, load(&[(1, 2 << 20)])),
            (0, 0, Request::Profiler { start: true }),
        ] {
            let call = Entry::Call {
                thread: 0,
                process: 0,
                quiet: 0,
                at: 0,
                request,
            };
            let call = call.to_bytes().unwrap();
            let again = [&image.to_le_bytes()[..], &number.to_le_bytes()].concat();
            let frames = [(AGAIN, &again[..]), (call.len() as u32, &call)];
            let error = first_error(&forged(&frames));
            assert!(
                error.contains("entry 0: it loads an image again"),
                "{error}"
            );
            assert!(first_error(&forged(&[(AGAIN, &[1])])).contains("ends early"));
        }
    }

    #[test]
    fn what_makes_no_sense_is_named_by_its_entry() {
        let good = postcard::to_stdvec(&Entry::Gone { process: 1 }).unwrap();
        let length = good.len() as u32;
        let error = first_error(&forged(&[(length, &good), (2, &[99, 1])]));
        assert!(error.contains("entry 1:"), "{error}");
        let longer = [&good[..], &[0]].concat();
        let error = first_error(&forged(&[(length + 1, &longer)]));
        assert!(error.contains("entry 0: 1 bytes are left over"), "{error}");
    }
}
