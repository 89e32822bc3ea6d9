//! Lines of a file, whatever it is compressed with, in bounded memory.

use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

use crate::error::{TraceError, system};

/// Longest line: 32 addresses and a kernel's mangled name are far below it.
const LONGEST_LINE: u64 = 64 << 10;

/// Bytes that are read at a time.
const BUFFER: usize = 256 << 10;

/// Memory that decompression may take, in KiB: archives name it themselves.
const DECOMPRESSION_MEMORY: u32 = 256 << 10;

/// How a file is compressed, by the end of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// `.gz`
    Gzip,
    /// `.xz`
    Xz,
    /// `.zst`
    Zstandard,
}

/// Ends of names, in the order in which they are tried.
pub const ENDINGS: &[(&str, Compression)] = &[
    ("", Compression::None),
    (".xz", Compression::Xz),
    (".gz", Compression::Gzip),
    (".zst", Compression::Zstandard),
];

impl Compression {
    /// The compression that a name tells, and the name without it.
    #[must_use]
    pub fn of(name: &str) -> (Self, &str) {
        for (ending, compression) in &ENDINGS[1..] {
            if let Some(rest) = name.strip_suffix(ending) {
                return (*compression, rest);
            }
        }
        (Self::None, name)
    }
}

/// The lines of one file.
pub struct Input {
    name: String,
    reader: BufReader<Box<dyn Read + Send>>,
    line: u64,
    text: Vec<u8>,
}

impl std::fmt::Debug for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.name, self.line)
    }
}

impl Input {
    /// Opens a file.
    ///
    /// # Errors
    /// If it cannot be opened, or is not compressed as its name says.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        let name = path.display().to_string();
        let file = File::open(path).map_err(system(&name))?;
        Self::of(&name, Box::new(file))
    }

    /// Lines of bytes that are there already, compressed as the name says.
    ///
    /// # Errors
    /// If they are not compressed as the name says.
    pub fn of_bytes(name: &str, bytes: Vec<u8>) -> Result<Self, TraceError> {
        Self::of(name, Box::new(Cursor::new(bytes)))
    }

    fn of(name: &str, raw: Box<dyn Read + Send>) -> Result<Self, TraceError> {
        let reader: Box<dyn Read + Send> = match Compression::of(name).0 {
            Compression::None => raw,
            Compression::Gzip => Box::new(flate2::read::MultiGzDecoder::new(raw)),
            Compression::Xz => Box::new(lzma_rust2::XzReader::new_mem_limit(
                raw,
                true,
                DECOMPRESSION_MEMORY,
            )),
            Compression::Zstandard => {
                Box::new(zstd::stream::read::Decoder::new(raw).map_err(system(name))?)
            }
        };
        Ok(Self {
            name: name.into(),
            reader: BufReader::with_capacity(BUFFER, reader),
            line: 0,
            text: Vec::new(),
        })
    }

    /// What the file is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Number of the line that was read last, from 1.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.line
    }

    /// The next line that is not empty, without spaces around it; none at the end of the file.
    ///
    /// # Errors
    /// If the file cannot be read, or a line is too long or no text.
    pub fn next_line(&mut self) -> Result<Option<&str>, TraceError> {
        loop {
            self.text.clear();
            let mut limited = (&mut self.reader).take(LONGEST_LINE);
            let read = limited.read_until(b'\n', &mut self.text);
            self.line += 1;
            if read.map_err(system(&self.name))? == 0 {
                return Ok(None);
            }
            if self.text.len() as u64 == LONGEST_LINE && self.text.last() != Some(&b'\n') {
                return Err(self.malformed(format!("a line of more than {LONGEST_LINE} bytes")));
            }
            if !self.text.trim_ascii().is_empty() {
                break;
            }
        }
        if std::str::from_utf8(&self.text).is_err() {
            return Err(self.malformed("bytes that are no text; is the file compressed?"));
        }
        Ok(std::str::from_utf8(&self.text).ok().map(str::trim_ascii))
    }

    /// An error at the line that was read last.
    pub(crate) fn malformed(&self, problem: impl Into<String>) -> TraceError {
        TraceError::Malformed {
            file: self.name.clone(),
            line: self.line,
            problem: problem.into(),
        }
    }
}

/// The file that a list names, or the same compressed.
#[must_use]
pub fn find_file(folder: &Path, name: &str) -> Option<PathBuf> {
    let paths = ENDINGS
        .iter()
        .map(|(ending, _)| folder.join(format!("{name}{ending}")));
    paths.into_iter().find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn lines(mut input: Input) -> Result<Vec<String>, TraceError> {
        let mut lines = Vec::new();
        while let Some(line) = input.next_line()? {
            lines.push(line.to_string());
        }
        Ok(lines)
    }

    #[test]
    fn lines_are_the_same_whatever_they_are_compressed_with() {
        let text = b"one\n\n  two \nthree";
        let gzip = {
            let mut encoder =
                flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(text).unwrap();
            encoder.finish().unwrap()
        };
        let xz = {
            let options = lzma_rust2::XzOptions::with_preset(1);
            let mut encoder = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
            encoder.write_all(text).unwrap();
            encoder.finish().unwrap()
        };
        let zstandard = zstd::encode_all(&text[..], 1).unwrap();
        for (name, bytes) in [
            ("t.traceg", text.to_vec()),
            ("t.traceg.gz", gzip),
            ("t.traceg.xz", xz),
            ("t.traceg.zst", zstandard),
        ] {
            let input = Input::of_bytes(name, bytes.clone()).unwrap();
            assert_eq!(lines(input).unwrap(), ["one", "two", "three"], "{name}");
            if name != "t.traceg" {
                let torn = Input::of_bytes(name, bytes[..bytes.len() / 2].to_vec());
                assert!(torn.and_then(lines).is_err(), "{name}");
            }
        }
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let long = vec![b'x'; 70_000];
        let error = lines(Input::of_bytes("t", long).unwrap()).unwrap_err();
        assert_eq!(error.to_string(), "t:1: a line of more than 65536 bytes");
        let error = lines(Input::of_bytes("t", vec![b'a', b'\n', 0xff]).unwrap()).unwrap_err();
        assert!(error.to_string().starts_with("t:2: bytes that are no text"));
    }
}
