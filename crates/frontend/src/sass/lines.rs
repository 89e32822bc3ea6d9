//! Source lines of machine code: the line program of `.debug_line`.
//!
//! nvcc writes it with `-lineinfo` and `-G`, in the form of DWARF 2. A sequence begins by setting
//! an address, and the relocation of that place says which function's code it is about. A program
//! that is broken gives fewer lines, never an error: code runs without them.

use super::cubin::Cubin;
use std::collections::BTreeMap;

/// From an address of a text section on, the file and the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Offset in the section.
    pub address: u64,
    /// Name of the file, with its folder.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// File and line of the call that it was put in the place of, the outermost one.
    pub inlined_at: Option<(String, u32)>,
}

/// Rows in the order of addresses, by text section.
pub type Lines = BTreeMap<usize, Vec<Row>>;

/// All lines of a cubin.
#[must_use]
pub fn read(cubin: &Cubin) -> Lines {
    let mut lines = Lines::new();
    let Some(index) = cubin.section(".debug_line") else {
        return lines;
    };
    let targets: BTreeMap<u64, (usize, u64)> = cubin
        .relocations
        .iter()
        .filter(|relocation| relocation.section == index)
        .filter_map(|relocation| {
            let symbol = cubin.symbols.get(relocation.symbol)?;
            let addend = u64::try_from(relocation.addend.unwrap_or(0)).ok()?;
            let start = symbol.value.checked_add(addend)?;
            Some((relocation.offset, (symbol.section?, start)))
        })
        .collect();
    let mut reader = Reader {
        bytes: &cubin.sections[index].bytes,
        at: 0,
    };
    while unit(&mut reader, &targets, &mut lines).is_some() {}
    for rows in lines.values_mut() {
        rows.sort_by_key(|row| row.address);
    }
    lines
}

/// The row that covers an address.
#[must_use]
pub fn at(rows: &[Row], address: u64) -> Option<&Row> {
    let after = rows.partition_point(|row| row.address <= address);
    rows[..after].last()
}

struct Reader<'bytes> {
    bytes: &'bytes [u8],
    at: usize,
}

impl<'bytes> Reader<'bytes> {
    fn take(&mut self, count: usize) -> Option<&'bytes [u8]> {
        let part = self.bytes.get(self.at..self.at.checked_add(count)?)?;
        self.at += count;
        Some(part)
    }

    fn number(&mut self, count: usize) -> Option<u64> {
        let bytes = self.take(count)?;
        Some(
            bytes
                .iter()
                .rev()
                .fold(0, |all, byte| all << 8 | u64::from(*byte)),
        )
    }

    fn byte(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }

    fn unsigned(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn signed(&mut self) -> Option<i64> {
        let mut value = 0i64;
        for shift in (0..63).step_by(7) {
            let byte = self.byte()?;
            value |= i64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                let negative = byte & 0x40 != 0 && shift + 7 < 64;
                return Some(if negative {
                    value | -1 << (shift + 7)
                } else {
                    value
                });
            }
        }
        None
    }

    fn text(&mut self) -> Option<String> {
        let rest = self.bytes.get(self.at..)?;
        let length = rest.iter().position(|byte| *byte == 0)?;
        let text = String::from_utf8_lossy(&rest[..length]).into_owned();
        self.at += length + 1;
        Some(text)
    }
}

/// What a unit says before its program.
struct Header {
    minimum_length: u64,
    line_base: i64,
    line_range: u64,
    /// Arguments of the standard opcodes.
    arguments: Vec<u8>,
    files: Vec<String>,
}

/// Reads one unit; `None` at the end, or where it makes no sense.
fn unit(
    reader: &mut Reader<'_>,
    targets: &BTreeMap<u64, (usize, u64)>,
    lines: &mut Lines,
) -> Option<()> {
    let length = usize::try_from(reader.number(4)?).ok()?;
    let end = reader.at.checked_add(length)?;
    let version = reader.number(2)?;
    let header_length = usize::try_from(reader.number(4)?).ok()?;
    let program = reader.at.checked_add(header_length)?;
    if end > reader.bytes.len() || program > end {
        return None;
    }
    if (2..=4).contains(&version) {
        let mut inside = Reader {
            bytes: &reader.bytes[..end],
            at: reader.at,
        };
        if let Some(header) = header(&mut inside, version) {
            inside.at = program;
            // A program that breaks off has said what it could.
            let _ = run(&mut inside, &header, targets, lines);
        }
    }
    reader.at = end;
    Some(())
}

fn header(reader: &mut Reader<'_>, version: u64) -> Option<Header> {
    let minimum_length = reader.number(1)?;
    if version >= 4 {
        reader.byte()?; // Operations of an instruction.
    }
    reader.byte()?; // Whether rows are statements.
    let line_base = i64::from(reader.byte()? as i8);
    let line_range = reader.number(1)?;
    let opcode_base = reader.byte()?;
    let arguments = reader
        .take(usize::from(opcode_base.checked_sub(1)?))?
        .to_vec();
    let mut folders = vec![String::new()];
    loop {
        match reader.text()? {
            end if end.is_empty() => break,
            folder => folders.push(folder),
        }
    }
    let mut files = vec![String::new()];
    loop {
        let name = reader.text()?;
        if name.is_empty() {
            break;
        }
        let folder = usize::try_from(reader.unsigned()?).ok()?;
        reader.unsigned()?; // When it was changed.
        reader.unsigned()?; // Its length.
        files.push(match folders.get(folder) {
            Some(folder) if !folder.is_empty() && !name.starts_with('/') => {
                format!("{folder}/{name}")
            }
            _ => name,
        });
    }
    (line_range != 0).then_some(Header {
        minimum_length,
        line_base,
        line_range,
        arguments,
        files,
    })
}

/// Where a program stands.
struct State {
    /// Section and start of the function, once its address is set.
    target: Option<(usize, u64)>,
    address: u64,
    file: usize,
    line: i64,
    /// Rows of the sequence so far.
    rows: Vec<(usize, u32, Option<usize>)>,
    /// The row of the call that lines stand in the place of.
    call: Option<usize>,
}

impl State {
    fn new() -> Self {
        Self {
            target: None,
            address: 0,
            file: 1,
            line: 1,
            rows: Vec::new(),
            call: None,
        }
    }

    fn row(&mut self, header: &Header, lines: &mut Lines) {
        let line = u32::try_from(self.line).unwrap_or(0);
        // The outermost call of a call is that of the row that calls.
        let outermost = self
            .call
            .and_then(|row| Some(self.rows.get(row)?.2.unwrap_or(row)));
        self.rows.push((self.file, line, outermost));
        let (Some((section, start)), Some(file)) = (self.target, header.files.get(self.file))
        else {
            return;
        };
        let inlined_at = outermost
            .and_then(|row| self.rows.get(row))
            .and_then(|(file, line, _)| Some((header.files.get(*file)?.clone(), *line)));
        lines.entry(section).or_default().push(Row {
            address: start.wrapping_add(self.address),
            file: file.clone(),
            line,
            inlined_at,
        });
    }
}

/// NVIDIA's own opcode: the lines that follow stand in the place of a call, which is a row of
/// this sequence by its number from 1; 0 ends that.
const INLINED_CALL: u8 = 0x90;

fn run(
    reader: &mut Reader<'_>,
    header: &Header,
    targets: &BTreeMap<u64, (usize, u64)>,
    lines: &mut Lines,
) -> Option<()> {
    let opcode_base = header.arguments.len() as u64 + 1;
    let mut state = State::new();
    while reader.at < reader.bytes.len() {
        let opcode = reader.number(1)?;
        if opcode >= opcode_base {
            let special = opcode - opcode_base;
            state.address = state
                .address
                .wrapping_add(special / header.line_range * header.minimum_length);
            let step = header.line_base + (special % header.line_range) as i64;
            state.line = state.line.wrapping_add(step);
            state.row(header, lines);
            continue;
        }
        match opcode {
            0 => {
                let length = usize::try_from(reader.unsigned()?).ok()?;
                let next = reader.at.checked_add(length)?;
                match reader.byte()? {
                    1 => state = State::new(),
                    2 => {
                        state.target = targets.get(&(reader.at as u64)).copied();
                        state.address = 0;
                        state.rows.clear();
                        state.call = None;
                    }
                    INLINED_CALL => {
                        let row = usize::try_from(reader.unsigned()?).ok()?;
                        state.call = row.checked_sub(1);
                    }
                    _ => {}
                }
                reader.at = next;
            }
            1 => state.row(header, lines),
            2 => {
                let step = reader.unsigned()?.wrapping_mul(header.minimum_length);
                state.address = state.address.wrapping_add(step);
            }
            3 => state.line = state.line.wrapping_add(reader.signed()?),
            4 => state.file = usize::try_from(reader.unsigned()?).ok()?,
            8 => {
                let step = (255 - opcode_base) / header.line_range * header.minimum_length;
                state.address = state.address.wrapping_add(step);
            }
            9 => state.address = state.address.wrapping_add(reader.number(2)?),
            other => {
                // One that changes nothing here, with as many arguments as the header says.
                for _ in 0..*header.arguments.get(other as usize - 1)? {
                    reader.unsigned()?;
                }
            }
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sass::cubin::{Relocation, Section, Symbol};

    fn section(name: &str, bytes: Vec<u8>) -> Section {
        Section {
            name: name.into(),
            size: bytes.len() as u64,
            bytes,
            alignment: 1,
            info: 0,
            flags: 0,
        }
    }

    /// A unit with this header whose rows begin at an address that is still to be filled in, and
    /// where that address stands.
    fn unit(header: &[u8], rows: &[u8]) -> (Vec<u8>, u64) {
        let mut code = vec![0, 9, 2];
        let place = 10 + header.len() + code.len();
        code.extend_from_slice(&[0; 8]);
        code.extend_from_slice(rows);
        let mut bytes = ((6 + header.len() + code.len()) as u32)
            .to_le_bytes()
            .to_vec();
        bytes.extend_from_slice(&[2, 0]);
        bytes.extend_from_slice(&(header.len() as u32).to_le_bytes());
        bytes.extend_from_slice(header);
        bytes.extend(code);
        (bytes, place as u64)
    }

    /// A unit as nvcc 13 writes it, for one function of three lines.
    fn program() -> (Vec<u8>, u64) {
        let mut header = vec![1, 1, (-5i8) as u8, 14, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1];
        header.extend_from_slice(b"/src\0\0bad.cu\0");
        header.extend_from_slice(&[1, 0, 0, 0]);
        // File 1, line 1 + 4, a row; then 16 bytes and one line on; then 32 bytes and -2 lines.
        let rows = [4, 1, 3, 4, 1, 240, 3, 0x7e, 2, 32, 1, 2, 16, 0, 1, 1];
        unit(&header, &rows)
    }

    fn cubin(bytes: Vec<u8>, place: u64) -> Cubin {
        Cubin {
            architecture: 90,
            sections: vec![
                section(".text.kernel", vec![0; 128]),
                section(".debug_line", bytes),
            ],
            symbols: vec![Symbol {
                name: "kernel".into(),
                section: Some(0),
                value: 0,
                size: 128,
                kind: 2,
                other: 0x10,
            }],
            relocations: vec![Relocation {
                section: 1,
                offset: place,
                kind: 2,
                symbol: 0,
                addend: Some(0),
            }],
        }
    }

    #[test]
    fn rows_say_file_and_line_of_every_instruction() {
        let (bytes, place) = program();
        let lines = read(&cubin(bytes, place));
        let at = |address| {
            let row = at(&lines[&0], address).unwrap();
            (row.file.as_str(), row.line)
        };
        assert_eq!(at(0), ("/src/bad.cu", 5));
        assert_eq!(at(15), ("/src/bad.cu", 5));
        assert_eq!(at(16), ("/src/bad.cu", 6));
        assert_eq!(at(48), ("/src/bad.cu", 4));
        assert_eq!(at(1000), ("/src/bad.cu", 4));
    }

    #[test]
    fn a_line_that_was_put_in_the_place_of_a_call_names_the_outermost_one() {
        let mut header = vec![1, 1, (-5i8) as u8, 14, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1];
        header.extend_from_slice(b"\0kernel.cu\0");
        header.extend_from_slice(&[0, 0, 0]);
        header.extend_from_slice(b"header.h\0");
        header.extend_from_slice(&[0, 0, 0, 0]);
        // Line 5; line 6 of the header for it; line 7 of the header for that; a row that is lost.
        let mut rows = vec![3, 4, 1, 2, 16, 0, 3, 0x90, 1, 9, 4, 2, 3, 1, 1];
        rows.extend_from_slice(&[2, 16, 0, 3, 0x90, 2, 9, 3, 1, 1]);
        rows.extend_from_slice(&[2, 16, 0, 3, 0x90, 99, 0, 3, 1, 1]);
        rows.extend_from_slice(&[2, 16, 0, 3, 0x90, 0, 0, 4, 1, 3, 1, 1, 0, 1, 1]);
        let (bytes, place) = unit(&header, &rows);
        let lines = read(&cubin(bytes, place));
        let at = |address| {
            let row = at(&lines[&0], address).unwrap();
            (row.file.as_str(), row.line, row.inlined_at.clone())
        };
        let call = Some(("kernel.cu".to_string(), 5));
        assert_eq!(at(0), ("kernel.cu", 5, None));
        assert_eq!(at(16), ("header.h", 6, call.clone()));
        assert_eq!(at(32), ("header.h", 7, call));
        assert_eq!(at(48), ("header.h", 8, None));
        assert_eq!(at(64), ("kernel.cu", 9, None));
    }

    #[test]
    fn a_broken_program_gives_fewer_lines_and_no_panic() {
        let (bytes, place) = program();
        for length in 0..bytes.len() {
            let _ = read(&cubin(bytes[..length].to_vec(), place));
        }
        for index in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[index] = value;
                let _ = read(&cubin(changed, place));
            }
        }
        assert!(read(&cubin(bytes, 0)).is_empty());
    }
}
