//! Protocol Buffers on the wire, as much as a trace needs.

use super::thrift::varint;

/// Kinds of values on the wire.
const VARINT: u64 = 0;
const LENGTH: u64 = 2;

/// Writes one message.
#[derive(Clone, Debug, Default)]
pub struct Message(Vec<u8>);

impl Message {
    fn key(&mut self, field: u64, kind: u64) {
        varint(&mut self.0, field << 3 | kind);
    }

    /// A whole number or an enum.
    pub fn uint(mut self, field: u64, value: u64) -> Self {
        self.key(field, VARINT);
        varint(&mut self.0, value);
        self
    }

    /// A number with a sign, as `int64` and `int32` have it.
    pub fn int(self, field: u64, value: i64) -> Self {
        self.uint(field, value as u64)
    }

    /// A string.
    pub fn text(self, field: u64, value: &str) -> Self {
        self.bytes(field, value.as_bytes())
    }

    /// A message.
    pub fn inner(self, field: u64, value: Message) -> Self {
        self.bytes(field, &value.0)
    }

    fn bytes(mut self, field: u64, value: &[u8]) -> Self {
        self.key(field, LENGTH);
        varint(&mut self.0, value.len() as u64);
        self.0.extend_from_slice(value);
        self
    }

    /// All its bytes.
    pub fn end(self) -> Vec<u8> {
        self.0
    }
}
