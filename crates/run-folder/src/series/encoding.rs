//! The bytes of `series.blocks`: a head, then blocks of rows, column by column.
//!
//! ```text
//! file    "LKSERIES", version (1 byte), whether the run has ended (1 byte), blocks
//! block   length of the rest (u32), part (u8), rows (u32), columns (u16), heads of columns, columns
//! head    length of the name (u8), name, length of the unpacked column (u32), of the packed one (u32)
//! column  LZ4: times as differences of their bits, the others as they are, all as LEB128
//! ```
//!
//! Numbers are little-endian. A block can be skipped by its length, and a column by its own: one counter of a
//! million rows is read without the others.

use std::io::{self, Read, Write};
use std::sync::Arc;

/// The first bytes of the file.
const MAGIC: &[u8; 8] = b"LKSERIES";
const VERSION: u8 = 1;
/// Bytes of the head of the file.
pub const FILE_HEAD: u64 = 10;
/// Rows of a block at most; with more it is not ours.
const LARGEST_ROWS: usize = 1 << 24;
/// Bytes of an unpacked column at most.
const LARGEST_COLUMN: usize = 1 << 30;
/// Bytes of a LEB128 number at most.
const LARGEST_NUMBER: usize = 10;
/// Bytes that the name of a kernel may have.
const LARGEST_NAME: usize = 1 << 16;

/// The head of a file.
pub fn write_head(sink: &mut impl Write, complete: bool) -> io::Result<()> {
    sink.write_all(MAGIC)?;
    sink.write_all(&[VERSION, complete.into()])
}

/// Whether the file is whole; `None` if its head is not there yet.
pub fn read_head(file: &mut impl Read) -> Result<Option<bool>, String> {
    let mut head = [0; FILE_HEAD as usize];
    match file.read_exact(&mut head) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error.to_string()),
        Ok(()) => {}
    }
    match (head.strip_prefix(MAGIC), head[8], head[9]) {
        (None, ..) => Err("it does not begin like a series".into()),
        (_, VERSION, complete @ 0..=1) => Ok(Some(complete == 1)),
        (_, version, _) => Err(format!(
            "it is a series of version {version}; this program reads version {VERSION}"
        )),
    }
}

/// A block that is being made.
pub struct BlockBuilder {
    part: u8,
    rows: u32,
    heads: Vec<u8>,
    columns: u16,
    packed: Vec<u8>,
    scratch: Vec<u8>,
}

impl BlockBuilder {
    /// A block of `rows` rows of a part.
    pub fn new(part: u8, rows: usize) -> Self {
        Self {
            part,
            rows: rows as u32,
            heads: Vec::new(),
            columns: 0,
            packed: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// Adds a column of numbers.
    pub fn numbers(&mut self, name: &str, values: impl Iterator<Item = u64>) {
        self.scratch.clear();
        for value in values {
            put_number(&mut self.scratch, value);
        }
        self.column(name);
    }

    /// Adds a column of numbers that may be absent.
    pub fn options(&mut self, name: &str, values: impl Iterator<Item = Option<u64>>) {
        self.numbers(
            name,
            values.map(|value| value.map_or(0, |value| value.saturating_add(1))),
        );
    }

    /// Adds a column of times.
    pub fn times(&mut self, name: &str, values: impl Iterator<Item = f64>) {
        let mut before = 0;
        self.numbers(
            name,
            values.map(|value| {
                value
                    .to_bits()
                    .wrapping_sub(std::mem::replace(&mut before, value.to_bits()))
            }),
        );
    }

    /// Adds a column of names: each name once, then one number a row.
    pub fn names<'names>(&mut self, name: &str, values: impl Iterator<Item = Option<&'names str>>) {
        let mut known: Vec<&str> = Vec::new();
        let mut places = Vec::new();
        let mut last = 0;
        for value in values {
            // Rows below each other mostly share a name.
            let place = match value {
                None => 0,
                Some(value) if last > 0 && known[last - 1] == value => last,
                Some(value) => match known.iter().position(|one| *one == value) {
                    Some(place) => place + 1,
                    None => {
                        known.push(value);
                        known.len()
                    }
                },
            };
            last = place;
            places.push(place as u64);
        }
        self.scratch.clear();
        put_number(&mut self.scratch, known.len() as u64);
        for name in known {
            let end = name.floor_char_boundary(LARGEST_NAME);
            put_number(&mut self.scratch, end as u64);
            self.scratch.extend_from_slice(&name.as_bytes()[..end]);
        }
        for place in places {
            put_number(&mut self.scratch, place);
        }
        self.column(name);
    }

    /// Packs what was put.
    fn column(&mut self, name: &str) {
        let packed = lz4_flex::block::compress(&self.scratch);
        self.columns += 1;
        self.heads.push(name.len() as u8);
        self.heads.extend_from_slice(name.as_bytes());
        for length in [self.scratch.len(), packed.len()] {
            self.heads.extend_from_slice(&(length as u32).to_le_bytes());
        }
        self.packed.extend_from_slice(&packed);
    }

    /// Writes the block.
    pub fn write(self, sink: &mut impl Write) -> io::Result<()> {
        let length = 7 + self.heads.len() + self.packed.len();
        let length = u32::try_from(length).map_err(|_| io::ErrorKind::FileTooLarge)?;
        // A block appears at once, for those who read while the run goes on.
        let mut bytes = Vec::with_capacity(4 + length as usize);
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.push(self.part);
        bytes.extend_from_slice(&self.rows.to_le_bytes());
        bytes.extend_from_slice(&self.columns.to_le_bytes());
        bytes.extend_from_slice(&self.heads);
        bytes.extend_from_slice(&self.packed);
        sink.write_all(&bytes)
    }
}

/// A block as it is in the file.
#[derive(Debug, Default)]
pub struct PackedBlock {
    /// Rows.
    pub rows: usize,
    columns: Vec<PackedColumn>,
    bytes: Vec<u8>,
}

#[derive(Debug)]
struct PackedColumn {
    name: String,
    unpacked: usize,
    place: std::ops::Range<usize>,
}

/// The length of a block and the part it is of, which stand before the rest of it.
pub const BLOCK_HEAD: usize = 5;

/// The head of a block: the length of the rest, and the part.
pub fn block_head(head: [u8; BLOCK_HEAD]) -> Result<(u64, u8), String> {
    let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
    let rest = length.checked_sub(1);
    let rest = rest.ok_or_else(|| "a block is empty".to_string())?;
    Ok((rest.into(), head[4]))
}

impl PackedBlock {
    /// Reads the rest of a block, in the memory of the one before.
    pub fn read(&mut self, file: &mut impl Read, rest: u64) -> Result<bool, String> {
        self.bytes.clear();
        let read = file.take(rest).read_to_end(&mut self.bytes);
        let read = read.map_err(|error| error.to_string())?;
        if (read as u64) < rest {
            return Ok(false);
        }
        let mut bytes = Cursor(&self.bytes);
        self.rows = bytes.word()? as usize;
        if self.rows > LARGEST_ROWS {
            return Err(format!("a block has {} rows", self.rows));
        }
        let [low, high] = bytes.array()?;
        self.columns.clear();
        for _ in 0..u16::from_le_bytes([low, high]) {
            let [length] = bytes.array()?;
            let name = bytes.some(length.into())?;
            let name = String::from_utf8_lossy(name).into_owned();
            let (unpacked, packed) = (bytes.word()? as usize, bytes.word()? as usize);
            self.columns.push(PackedColumn {
                name,
                unpacked,
                place: 0..packed,
            });
        }
        let mut at = self.bytes.len() - bytes.0.len();
        for column in &mut self.columns {
            column.place = at..at + column.place.end;
            at = column.place.end;
        }
        match at == self.bytes.len() {
            true => Ok(true),
            false => Err("the columns of a block are not as long as it says".into()),
        }
    }

    /// The bytes of a column.
    fn column(&self, name: &str) -> Result<Vec<u8>, String> {
        let column = self.columns.iter().find(|column| column.name == name);
        let column = column.ok_or_else(|| format!("it has no column `{name}`"))?;
        let packed = &self.bytes[column.place.clone()];
        // LZ4 makes at most 255 bytes of one.
        if column.unpacked > packed.len().saturating_mul(255).min(LARGEST_COLUMN) {
            return Err(format!("column `{name}` says it is too long"));
        }
        lz4_flex::block::decompress(packed, column.unpacked)
            .map_err(|error| format!("column `{name}`: {error}"))
    }

    /// A column of numbers, in the place of what was there.
    pub fn numbers(&self, name: &str, values: &mut Vec<u64>) -> Result<(), String> {
        let bytes = self.column(name)?;
        let mut cursor = Cursor(&bytes);
        values.clear();
        values.reserve(self.rows.min(bytes.len()));
        for _ in 0..self.rows {
            values.push(cursor.number()?);
        }
        cursor.ends(name)
    }

    /// A column of numbers that may be absent.
    pub fn options(&self, name: &str) -> Result<Vec<Option<u64>>, String> {
        let mut values = Vec::new();
        self.numbers(name, &mut values)?;
        Ok(values
            .into_iter()
            .map(|value| value.checked_sub(1))
            .collect())
    }

    /// A column of times.
    pub fn times(&self, name: &str, values: &mut Vec<f64>) -> Result<(), String> {
        let mut bits = Vec::new();
        self.numbers(name, &mut bits)?;
        let mut before = 0u64;
        values.clear();
        values.extend(bits.into_iter().map(|difference| {
            before = before.wrapping_add(difference);
            f64::from_bits(before)
        }));
        Ok(())
    }

    /// A column of names.
    pub fn names(&self, name: &str) -> Result<Vec<Option<Arc<str>>>, String> {
        let bytes = self.column(name)?;
        let mut cursor = Cursor(&bytes);
        let mut known = Vec::new();
        for _ in 0..cursor.number()?.min(bytes.len() as u64) {
            let length = cursor.number()? as usize;
            known.push(Arc::from(String::from_utf8_lossy(cursor.some(length)?)));
        }
        let mut values = Vec::with_capacity(self.rows.min(bytes.len()));
        for _ in 0..self.rows {
            values.push(match cursor.number()?.checked_sub(1) {
                None => None,
                Some(place) => {
                    Some(Arc::clone(known.get(place as usize).ok_or_else(|| {
                        format!("column `{name}` names what it does not have")
                    })?))
                }
            });
        }
        cursor.ends(name)?;
        Ok(values)
    }
}

fn put_number(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Bytes that are read one after the other.
struct Cursor<'bytes>(&'bytes [u8]);

impl<'bytes> Cursor<'bytes> {
    fn some(&mut self, length: usize) -> Result<&'bytes [u8], String> {
        let (some, rest) = self.0.split_at_checked(length).ok_or_else(short)?;
        self.0 = rest;
        Ok(some)
    }

    fn array<const LENGTH: usize>(&mut self) -> Result<[u8; LENGTH], String> {
        let (some, rest) = self.0.split_first_chunk().ok_or_else(short)?;
        self.0 = rest;
        Ok(*some)
    }

    fn word(&mut self) -> Result<u32, String> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn number(&mut self) -> Result<u64, String> {
        let mut value = 0;
        for place in 0..LARGEST_NUMBER {
            let [byte] = self.array()?;
            value |= u64::from(byte & 0x7f) << (7 * place);
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err("a number does not end".into())
    }

    fn ends(&self, name: &str) -> Result<(), String> {
        match self.0.is_empty() {
            true => Ok(()),
            false => Err(format!("column `{name}` has more values than rows")),
        }
    }
}

fn short() -> String {
    "a block ends within a column".into()
}
