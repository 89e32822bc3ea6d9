//! Thrift's compact protocol, as much as the headers of a Parquet file need.

/// Types of fields.
const FALSE: u8 = 2;
const I8: u8 = 3;
const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// Writes one struct; fields come in ascending order.
#[derive(Default)]
pub struct Struct {
    bytes: Vec<u8>,
    last: i16,
}

impl Struct {
    fn field(&mut self, id: i16, kind: u8) {
        // Ids of these headers are at most 15 apart, so the short form always does.
        let step = (id - self.last) as u8;
        self.bytes.push(step << 4 | kind);
        self.last = id;
    }

    /// An `i32` or an enum.
    pub fn i32(mut self, id: i16, value: i32) -> Self {
        self.field(id, I32);
        zigzag(&mut self.bytes, value.into());
        self
    }

    /// An `i64`.
    pub fn i64(mut self, id: i16, value: i64) -> Self {
        self.field(id, I64);
        zigzag(&mut self.bytes, value);
        self
    }

    /// A `bool` that is false.
    pub fn no(mut self, id: i16) -> Self {
        self.field(id, FALSE);
        self
    }

    /// An `i8`.
    pub fn byte(mut self, id: i16, value: u8) -> Self {
        self.field(id, I8);
        self.bytes.push(value);
        self
    }

    /// A string.
    pub fn text(mut self, id: i16, value: &str) -> Self {
        self.field(id, BINARY);
        binary(&mut self.bytes, value);
        self
    }

    /// A struct.
    pub fn inner(mut self, id: i16, value: Struct) -> Self {
        self.field(id, STRUCT);
        self.bytes.extend(value.end());
        self
    }

    /// A list of structs.
    pub fn list(mut self, id: i16, values: Vec<Struct>) -> Self {
        self.head(id, STRUCT, values.len());
        for value in values {
            self.bytes.extend(value.end());
        }
        self
    }

    /// A list of enums.
    pub fn numbers(mut self, id: i16, values: &[i32]) -> Self {
        self.head(id, I32, values.len());
        for value in values {
            zigzag(&mut self.bytes, (*value).into());
        }
        self
    }

    /// A list of strings.
    pub fn texts(mut self, id: i16, values: &[&str]) -> Self {
        self.head(id, BINARY, values.len());
        for value in values {
            binary(&mut self.bytes, value);
        }
        self
    }

    fn head(&mut self, id: i16, kind: u8, count: usize) {
        self.field(id, LIST);
        if count < 15 {
            self.bytes.push((count as u8) << 4 | kind);
        } else {
            self.bytes.push(0xf0 | kind);
            varint(&mut self.bytes, count as u64);
        }
    }

    /// All its bytes.
    pub fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}

fn binary(bytes: &mut Vec<u8>, value: &str) {
    varint(bytes, value.len() as u64);
    bytes.extend_from_slice(value.as_bytes());
}

/// Seven bits a byte, the lowest first. Protocol Buffers have the same.
pub fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn zigzag(bytes: &mut Vec<u8>, value: i64) {
    varint(bytes, (value << 1 ^ value >> 63) as u64);
}
