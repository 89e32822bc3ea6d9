//! Source lines of machine code: the line programs of `.debug_line`.
//!
//! nvcc writes them with `-lineinfo` and `-G`, in the form of DWARF 2; `gimli` reads them. A sequence
//! begins by setting an address, and the relocation of that place says which function's code it is
//! about. A program that is broken gives fewer lines, never an error: code runs without them.
//!
//! Left out: DWARF 5, whose names are in sections that nvcc does not write.

use super::cubin::{Cubin, Relocation};
use gimli::{
    AttributeValue, DebugLine, DebugLineOffset, EndianSlice, IncompleteLineProgram,
    LineInstruction, LineRow, LittleEndian, Reader, Relocate, RelocateReader, constants::DwLne,
};
use std::{collections::BTreeMap, sync::Arc};

/// From an address of a text section on, the file and the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Offset in the section.
    pub address: u64,
    /// Name of the file, with its folder.
    pub file: Arc<str>,
    /// Line, from 1.
    pub line: u32,
    /// File and line of the call that it was inlined into, the outermost one.
    pub inlined_at: Option<(Arc<str>, u32)>,
}

/// Rows in the order of addresses, by text section.
pub type Lines = BTreeMap<usize, Vec<Row>>;

/// How much longer all names of files together may be than the section. Files share the names of
/// their folders, but a short section must not make names that fill the memory.
const LONGEST_NAMES: usize = 32;

/// A name that no file system has is no name.
const LONGEST_NAME: usize = 4096;

/// NVIDIA's own opcode: the lines that follow are inlined into a call, which is a row of this
/// sequence by its number from 1; 0 ends that.
const INLINED_CALL: DwLne = DwLne(0x90);

/// All lines of a cubin.
#[must_use]
pub fn read(cubin: &Cubin) -> Lines {
    let Some(index) = cubin.section(".debug_line") else {
        return Lines::new();
    };
    let mut targets = Vec::new();
    let mut numbers = BTreeMap::new();
    for relocation in cubin.relocations.iter().filter(|one| one.section == index) {
        let Some(target) = target(cubin, relocation) else {
            continue;
        };
        targets.push(target);
        numbers.insert(relocation.offset, targets.len() as u64);
    }
    let bytes = &cubin.sections[index].bytes;
    let section = EndianSlice::new(bytes.as_slice(), LittleEndian);
    let section = RelocateReader::new(section, Numbered(&numbers));
    let mut lines = Lines::new();
    let mut left = bytes.len().saturating_mul(LONGEST_NAMES);
    let mut offset = 0;
    while let Ok((end, version)) = unit(&section, offset) {
        if (2..=4).contains(&version)
            && let Ok(program) =
                DebugLine::from(section.clone()).program(DebugLineOffset(offset), 8, None, None)
        {
            let mut sequence = Sequence::new(&program, left);
            // A program that breaks off has said what it could.
            let _ = sequence.run(program, &targets, &mut lines);
            left = sequence.left;
        }
        offset = end;
    }
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

/// The text section that a relocation is about, and where in it.
fn target(cubin: &Cubin, relocation: &Relocation) -> Option<Target> {
    let symbol = cubin.symbols.get(relocation.symbol)?;
    let addend = u64::try_from(relocation.addend.unwrap_or(0)).ok()?;
    let start = symbol.value.checked_add(addend)?;
    Some((symbol.section?, start))
}

/// A text section and an offset in it.
type Target = (usize, u64);

/// Replaces each address by the number of its relocation, from 1; by 0 where there is none.
#[derive(Clone, Copy, Debug)]
struct Numbered<'a>(&'a BTreeMap<u64, u64>);

impl Relocate for Numbered<'_> {
    fn relocate_address(&self, offset: usize, _: u64) -> gimli::Result<u64> {
        Ok(self.0.get(&(offset as u64)).copied().unwrap_or(0))
    }

    fn relocate_offset(&self, _: usize, value: usize) -> gimli::Result<usize> {
        Ok(value)
    }
}

type Bytes<'a> = RelocateReader<EndianSlice<'a, LittleEndian>, Numbered<'a>>;

/// The end and the version of the unit at an offset; an error at the end of the section, or where
/// a unit is longer than it.
fn unit(section: &Bytes<'_>, offset: usize) -> gimli::Result<(usize, u16)> {
    let mut reader = section.clone();
    reader.skip(offset)?;
    let (length, _) = reader.read_initial_length()?;
    let begin = reader.offset_from(section);
    let version = reader.split(length)?.read_u16()?;
    Ok((begin + length, version))
}

/// Where a program stands.
struct Sequence {
    registers: LineRow,
    /// What the address is about, once it is set, and the register's value then.
    target: Option<Target>,
    base: u64,
    /// Rows of the sequence so far: file, line and the row of the outermost call.
    rows: Vec<(u64, u32, Option<usize>)>,
    /// The row of the call that lines are inlined into.
    call: Option<usize>,
    /// Names of the files that were needed so far; `None` for one that has none.
    files: BTreeMap<u64, Option<Arc<str>>>,
    /// How many bytes further names may have.
    left: usize,
}

impl Sequence {
    fn new(program: &IncompleteLineProgram<Bytes<'_>>, left: usize) -> Self {
        Self {
            registers: LineRow::new(program.header()),
            target: None,
            base: 0,
            rows: Vec::new(),
            call: None,
            files: BTreeMap::new(),
            left,
        }
    }

    fn run(
        &mut self,
        mut program: IncompleteLineProgram<Bytes<'_>>,
        targets: &[Target],
        lines: &mut Lines,
    ) -> gimli::Result<()> {
        let mut instructions = program.header().instructions();
        while let Some(instruction) = instructions.next_instruction(program.header())? {
            match instruction {
                LineInstruction::SetAddress(number) => {
                    let index = (number as usize).checked_sub(1);
                    self.target = index.and_then(|index| targets.get(index)).copied();
                    self.base = self.registers.address();
                    self.rows.clear();
                    self.call = None;
                }
                LineInstruction::UnknownExtended(INLINED_CALL, mut arguments) => {
                    self.call = (arguments.read_uleb128()? as usize).checked_sub(1);
                }
                LineInstruction::EndSequence => {
                    self.registers = LineRow::new(program.header());
                    self.target = None;
                    self.rows.clear();
                    self.call = None;
                }
                other => {
                    if self.registers.execute(other, &mut program)? {
                        self.row(&program, lines);
                        self.registers.reset(program.header());
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds a row as the registers are.
    fn row(&mut self, program: &IncompleteLineProgram<Bytes<'_>>, lines: &mut Lines) {
        let line = self.registers.line().map_or(0, u64::from);
        let line = u32::try_from(line).unwrap_or(0);
        let file = self.registers.file_index();
        // The outermost call of a call is that of the row that calls.
        let outermost = self
            .call
            .and_then(|row| Some(self.rows.get(row)?.2.unwrap_or(row)));
        self.rows.push((file, line, outermost));
        let Some((section, start)) = self.target else {
            return;
        };
        let Some(name) = self.file(program, file) else {
            return;
        };
        let call = outermost.and_then(|row| self.rows.get(row)).copied();
        let inlined_at = call.and_then(|(file, line, _)| Some((self.file(program, file)?, line)));
        let advance = self.registers.address().wrapping_sub(self.base);
        lines.entry(section).or_default().push(Row {
            address: start.wrapping_add(advance),
            file: name,
            line,
            inlined_at,
        });
    }

    /// The name of a file, with its folder.
    fn file(&mut self, program: &IncompleteLineProgram<Bytes<'_>>, index: u64) -> Option<Arc<str>> {
        let left = &mut self.left;
        let name = self.files.entry(index).or_insert_with(|| {
            let header = program.header();
            let file = header.file(index)?;
            let name = text(file.path_name())?;
            let folder = file.directory(header).and_then(text);
            let path = match folder {
                Some(folder) if !folder.is_empty() && !name.starts_with('/') => {
                    format!("{folder}/{name}")
                }
                _ => name,
            };
            *left = left.checked_sub(path.len())?;
            (path.len() <= LONGEST_NAME).then(|| path.into())
        });
        name.clone()
    }
}

/// A name that stands in the header itself.
fn text(value: AttributeValue<Bytes<'_>>) -> Option<String> {
    let AttributeValue::String(bytes) = value else {
        return None;
    };
    Some(bytes.to_string_lossy().ok()?.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sass::cubin::{Section, Symbol};

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
            virtual_architecture: 90,
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
            (&*row.file, row.line)
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
            (&*row.file, row.line, row.inlined_at.clone())
        };
        let call = Some(("kernel.cu".into(), 5));
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

    #[test]
    fn a_second_unit_is_read_though_the_first_has_an_unknown_version() {
        let (second, place) = program();
        let (mut bytes, _) = program();
        bytes[4] = 77;
        let place = place + bytes.len() as u64;
        bytes.extend(second);
        let lines = read(&cubin(bytes, place));
        assert_eq!(at(&lines[&0], 0).unwrap().line, 5);
    }

    #[test]
    fn a_second_function_of_a_sequence_begins_at_its_own_address() {
        let mut header = vec![1, 1, (-5i8) as u8, 14, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1];
        header.extend_from_slice(b"\0kernel.cu\0");
        header.extend_from_slice(&[0, 0, 0, 0]);
        // A row, 64 bytes on; then another address, and a row 16 bytes behind it.
        let mut rows = vec![1, 2, 64, 0, 9, 2];
        let second = rows.len() as u64 + 8;
        rows.extend_from_slice(&[0; 8]);
        rows.extend_from_slice(&[2, 16, 3, 2, 1, 0, 1, 1]);
        let (bytes, place) = unit(&header, &rows);
        let mut cubin = cubin(bytes, place);
        cubin.relocations.push(Relocation {
            offset: place + second,
            addend: Some(32),
            ..cubin.relocations[0].clone()
        });
        let lines = read(&cubin);
        let found: Vec<_> = lines[&0]
            .iter()
            .map(|row| (row.address, row.line))
            .collect();
        assert_eq!(found, [(0, 1), (48, 3)]);
    }

    #[test]
    fn many_files_in_one_long_folder_take_no_more_than_a_bounded_memory() {
        let mut header = vec![1, 1, (-5i8) as u8, 14, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1];
        header.extend(vec![b'a'; 4_000]);
        header.extend_from_slice(&[0, 0]);
        let mut rows = Vec::new();
        for file in 1..=4_000u32 {
            header.extend_from_slice(&[b'f', 0, 1, 0, 0]);
            let number = [(file & 0x7f | 0x80) as u8, (file >> 7) as u8];
            rows.extend_from_slice(&[4, number[0], number[1], 1]);
        }
        header.push(0);
        let (bytes, place) = unit(&header, &rows);
        let length = bytes.len();
        let lines = read(&cubin(bytes, place));
        let names: usize = lines[&0].iter().map(|row| row.file.len()).sum();
        assert!(lines[&0].len() > 1, "the first files have names");
        assert!(names <= LONGEST_NAMES * length, "{names} bytes of {length}");
    }
}
