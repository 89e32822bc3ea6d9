//! Writing and reading state.
//!
//! Values are encoded with `postcard`: compact, and the same on every host.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::LoadError;

/// Where state is written.
pub struct Writer<'a> {
    bytes: &'a mut Vec<u8>,
}

impl<'a> Writer<'a> {
    /// Writes at the end of `bytes`.
    pub fn new(bytes: &'a mut Vec<u8>) -> Self {
        Self { bytes }
    }

    /// Writes a value.
    ///
    /// # Panics
    /// If the value cannot be encoded, which its type decides (a sequence of unknown length).
    pub fn write<T: Serialize + ?Sized>(&mut self, value: &T) {
        let bytes = std::mem::take(self.bytes);
        *self.bytes = postcard::to_extend(value, bytes).expect("state encodes into memory");
    }

    /// Writes bytes as they are, with their length.
    pub fn write_bytes(&mut self, bytes: &[u8]) {
        self.write(&(bytes.len() as u64));
        self.bytes.extend_from_slice(bytes);
    }

    /// Writes what `f` writes, with its length, so that a reader can tell where it ends.
    pub fn section(&mut self, f: impl FnOnce(&mut Writer<'_>)) {
        let mut inner = Vec::new();
        f(&mut Writer::new(&mut inner));
        self.write_bytes(&inner);
    }
}

/// Where state is read.
pub struct Reader<'a> {
    all: usize,
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads from the beginning of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            all: bytes.len(),
            rest: bytes,
        }
    }

    /// Reads a value.
    ///
    /// # Errors
    /// If the bytes end early, or are not such a value.
    pub fn read<T: DeserializeOwned>(&mut self) -> Result<T, LoadError> {
        let (value, rest) =
            postcard::take_from_bytes(self.rest).map_err(|error| LoadError::Undecodable {
                at: self.all - self.rest.len(),
                because: error.to_string(),
            })?;
        self.rest = rest;
        Ok(value)
    }

    /// Reads what [`Writer::write_bytes`] wrote.
    ///
    /// # Errors
    /// If the bytes end early.
    pub fn read_bytes(&mut self) -> Result<&'a [u8], LoadError> {
        let length = self.read::<u64>()?;
        let at = self.all - self.rest.len();
        if length > self.rest.len() as u64 {
            let because = format!("{length} bytes announced, {} left", self.rest.len());
            return Err(LoadError::Undecodable { at, because });
        }
        let (bytes, rest) = self.rest.split_at(length as usize);
        self.rest = rest;
        Ok(bytes)
    }

    /// Reads what [`Writer::section`] wrote; `f` has to read all of it.
    ///
    /// # Errors
    /// As `f`, and if it leaves something unread.
    pub fn section<R>(
        &mut self,
        f: impl FnOnce(&mut Reader<'_>) -> Result<R, LoadError>,
    ) -> Result<R, LoadError> {
        let mut inner = Reader::new(self.read_bytes()?);
        let result = f(&mut inner)?;
        if inner.rest.is_empty() {
            Ok(result)
        } else {
            Err(LoadError::Malformed {
                what: "more was saved than was loaded",
            })
        }
    }

    /// What was not read.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether everything was read.
    pub fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }
}
