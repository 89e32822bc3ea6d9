//! Protocol Buffers on the wire, as much as a trace needs.

use prost::encoding::{WireType, encode_key, encode_varint};

/// Writes one message.
#[derive(Clone, Debug, Default)]
pub struct Message(Vec<u8>);

impl Message {
    /// A whole number or an enum.
    pub fn uint(mut self, field: u32, value: u64) -> Self {
        encode_key(field, WireType::Varint, &mut self.0);
        encode_varint(value, &mut self.0);
        self
    }

    /// A number with a sign, as `int64` and `int32` have it.
    pub fn int(self, field: u32, value: i64) -> Self {
        self.uint(field, value as u64)
    }

    /// A string.
    pub fn text(self, field: u32, value: &str) -> Self {
        self.bytes(field, value.as_bytes())
    }

    /// A message.
    pub fn inner(self, field: u32, value: Message) -> Self {
        self.bytes(field, &value.0)
    }

    fn bytes(mut self, field: u32, value: &[u8]) -> Self {
        encode_key(field, WireType::LengthDelimited, &mut self.0);
        encode_varint(value.len() as u64, &mut self.0);
        self.0.extend_from_slice(value);
        self
    }

    /// All its bytes.
    pub fn end(self) -> Vec<u8> {
        self.0
    }
}
