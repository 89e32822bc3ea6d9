//! The log: what the program asked, what the device answered to it, and what the program could read then.
//!
//! Entries are a kind, a length and bytes. They are compressed some mebibytes at a time and added to the end of
//! the file; a checkpoint says how far the file counts and what its bytes must be.

use super::CheckpointError;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// Bytes of entries that are compressed together.
const TOGETHER: usize = 4 << 20;
/// The longest entry: text and answers are short, memory comes in pieces.
const LONGEST: u32 = 1 << 30;
/// How hard to compress: what matters is that the run does not wait.
const LEVEL: i32 = 1;
/// Bytes read at a time.
const AT_ONCE: usize = 1 << 20;

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A call of the program.
    Call,
    /// Memory that the program could read after it.
    Seen,
    /// What it was answered.
    Answered,
    /// A process is gone.
    Gone,
    /// Whether the device took a launch.
    Launched,
    /// How an advance ended, and where the device stood then.
    Advanced,
    /// Where the device stood when kernels were given up.
    Aborted,
    /// What kernels printed.
    Output,
    /// Whether addresses of the program name memory.
    Alias,
    /// What memory held.
    Read,
    /// What freed memory held, as digests.
    Freed,
    /// Whether managed pages have places.
    Paged,
    /// When a request for managed pages was complete.
    Done,
    /// Whether the host lacks a page.
    Resident,
    /// The pages that it lacks.
    ResidentPages,
    /// Whether pages have moved.
    Changed,
}

/// All of them, by their number.
const KINDS: [Kind; 16] = [
    Kind::Call,
    Kind::Seen,
    Kind::Answered,
    Kind::Gone,
    Kind::Launched,
    Kind::Advanced,
    Kind::Aborted,
    Kind::Output,
    Kind::Alias,
    Kind::Read,
    Kind::Freed,
    Kind::Paged,
    Kind::Done,
    Kind::Resident,
    Kind::ResidentPages,
    Kind::Changed,
];

/// How much of the file counts, and the digest of that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    bytes: u64,
    digest: [u8; 32],
}

/// Adds entries.
pub struct LogWriter {
    file: File,
    waiting: Vec<u8>,
    bytes: u64,
    hasher: blake3::Hasher,
}

impl LogWriter {
    /// Writes into an empty file.
    pub fn new(file: File) -> Self {
        Self {
            file,
            waiting: Vec::new(),
            bytes: 0,
            hasher: blake3::Hasher::new(),
        }
    }

    /// Goes on where a log counts to, if it is as it was written; what is behind that goes.
    ///
    /// # Errors
    /// It is shorter or has other bytes.
    pub fn go_on(path: &Path, mut file: File, position: Position) -> Result<Self, CheckpointError> {
        let hasher = verify(path, &mut file, position)?;
        file.set_len(position.bytes)
            .and_then(|()| file.seek(SeekFrom::Start(position.bytes)))
            .map_err(CheckpointError::system(path))?;
        Ok(Self {
            file,
            waiting: Vec::new(),
            bytes: position.bytes,
            hasher,
        })
    }

    /// Adds an entry.
    pub fn add(&mut self, kind: Kind, bytes: &[u8]) -> io::Result<()> {
        let length = u32::try_from(bytes.len()).ok();
        let Some(length) = length.filter(|length| *length <= LONGEST) else {
            return Err(io::Error::other(format!(
                "an entry of {} bytes is too long",
                bytes.len()
            )));
        };
        self.waiting.push(kind as u8);
        self.waiting.extend_from_slice(&length.to_le_bytes());
        self.waiting.extend_from_slice(bytes);
        match self.waiting.len() >= TOGETHER {
            true => self.flush(),
            false => Ok(()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let compressed = zstd::encode_all(&self.waiting[..], LEVEL)?;
        self.file.write_all(&compressed)?;
        self.waiting.clear();
        self.hasher.update(&compressed);
        self.bytes += compressed.len() as u64;
        Ok(())
    }

    /// Brings everything to the disk, and says how far the file counts now.
    pub fn settle(&mut self) -> io::Result<Position> {
        self.flush()?;
        self.file.sync_data()?;
        Ok(Position {
            bytes: self.bytes,
            digest: *self.hasher.finalize().as_bytes(),
        })
    }
}

/// Looks whether a log is as it was written, as far as it counts.
///
/// # Errors
/// It is not.
pub fn verify(
    path: &Path,
    file: &mut File,
    position: Position,
) -> Result<blake3::Hasher, CheckpointError> {
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; AT_ONCE];
    let mut left = position.bytes;
    while left > 0 {
        let part = left.min(AT_ONCE as u64) as usize;
        let read = file.read(&mut buffer[..part]);
        let read = read.map_err(CheckpointError::system(path))?;
        if read == 0 {
            return Err(CheckpointError::refused(
                path,
                format!("byte {}", position.bytes - left),
                format!(
                    "it ends here, and the checkpoint needs {} bytes: the file was cut",
                    position.bytes
                ),
            ));
        }
        hasher.update(&buffer[..read]);
        left -= read as u64;
    }
    if *hasher.finalize().as_bytes() != position.digest {
        return Err(CheckpointError::refused(
            path,
            format!("bytes 0 to {}", position.bytes),
            "their checksum is not that of the checkpoint: the file was changed, or is of another run",
        ));
    }
    Ok(hasher)
}

/// Reads the entries of a log that [`LogWriter::go_on`] has looked through.
pub struct LogReader {
    stream: BufReader<zstd::Decoder<'static, BufReader<io::Take<File>>>>,
}

impl LogReader {
    /// Reads as far as the log counts.
    ///
    /// # Errors
    /// There is no memory to decompress it.
    pub fn new(file: File, position: Position) -> io::Result<Self> {
        let decoder = zstd::Decoder::new(file.take(position.bytes))?;
        Ok(Self {
            stream: BufReader::with_capacity(AT_ONCE, decoder),
        })
    }

    /// The next entry; nothing at the end.
    pub fn entry(&mut self) -> io::Result<Option<(Kind, Vec<u8>)>> {
        let mut kind = [0];
        if self.stream.read(&mut kind)? == 0 {
            return Ok(None);
        }
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        let length = u32::from_le_bytes(length);
        let kind = KINDS.get(usize::from(kind[0])).copied();
        let Some(kind) = kind.filter(|_| length <= LONGEST) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        let mut bytes = Vec::new();
        let read = (&mut self.stream)
            .take(u64::from(length))
            .read_to_end(&mut bytes)?;
        match read == length as usize {
            true => Ok(Some((kind, bytes))),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::place::Place;
    use super::*;

    #[test]
    fn kinds_are_found_by_their_number() {
        for (number, kind) in KINDS.iter().enumerate() {
            assert_eq!(*kind as usize, number);
        }
    }

    #[test]
    fn a_log_goes_on_where_it_counts_to() {
        let place = Place::new("log");
        let path = place.file("log");
        let mut writer = LogWriter::new(place.create("log"));
        writer.add(Kind::Call, b"one").unwrap();
        let position = writer.settle().unwrap();
        writer.add(Kind::Seen, &[7; 5 << 20]).unwrap();
        drop(writer);
        let mut writer = LogWriter::go_on(&path, place.open("log"), position).unwrap();
        writer.add(Kind::Gone, b"two").unwrap();
        let position = writer.settle().unwrap();
        let mut reader = LogReader::new(place.open("log"), position).unwrap();
        let mut next = || reader.entry().unwrap();
        assert_eq!(next(), Some((Kind::Call, b"one".to_vec())));
        assert_eq!(next(), Some((Kind::Gone, b"two".to_vec())));
        assert_eq!(next(), None);
    }

    #[test]
    fn a_log_that_was_cut_or_changed_is_refused() {
        let place = Place::new("torn-log");
        let path = place.file("log");
        let mut writer = LogWriter::new(place.create("log"));
        writer.add(Kind::Call, &[3; 1000]).unwrap();
        let position = writer.settle().unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        let refusal = || {
            let opened = LogWriter::go_on(&path, place.open("log"), position);
            opened.err().unwrap().to_string()
        };
        bytes[9] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert!(refusal().contains("checksum"), "{}", refusal());
        std::fs::write(&path, &bytes[..10]).unwrap();
        assert!(refusal().contains("byte 10: it ends here"), "{}", refusal());
    }
}
