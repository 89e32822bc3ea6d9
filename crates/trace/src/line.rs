//! One instruction of one warp: a line of a trace.

use std::fmt::Write;
use std::str::SplitAsciiWhitespace;

use lockstep_isa::Mask;

use crate::address::{self, Addresses};
use crate::header::{KernelHeader, hexadecimal};

/// Most destination registers of a line. Tracers write one at the most.
const MOST_DESTINATIONS: usize = 8;
/// Most source registers of a line. Tracers write five, their reader takes four.
const MOST_SOURCES: usize = 8;
/// Source registers that are written, as many as the tracer's own reader takes.
pub const WRITTEN_SOURCES: usize = 4;

/// An instruction that a warp executed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstructionLine {
    /// Bytes from the start of its function.
    pub pc: u64,
    /// Lanes that executed it.
    pub lanes: Mask,
    /// Registers written.
    pub destinations: Vec<u8>,
    /// Opcode with its modifiers, as in `LDG.E.64`.
    pub opcode: String,
    /// Registers read.
    pub sources: Vec<u8>,
    /// Bytes of an access, and where each lane accesses memory.
    pub memory: Option<(u32, Addresses)>,
    /// The number in the instruction, if the trace has it (version 5).
    pub immediate: i64,
}

impl InstructionLine {
    /// Reads a line. What has lists keeps their memory.
    ///
    /// # Errors
    /// A sentence, if something is missing or of the wrong kind.
    pub fn read(&mut self, line: &str, header: &KernelHeader) -> Result<(), String> {
        let words = &mut line.split_ascii_whitespace();
        if header.version < 3 {
            // Block and warp, which the group says already.
            for _ in 0..4 {
                number::<u32>(words, "a block or a warp")?;
            }
        }
        self.read_words(words, header)
    }

    /// The same, after whatever says which warp it is.
    pub(crate) fn read_words(
        &mut self,
        words: &mut SplitAsciiWhitespace<'_>,
        header: &KernelHeader,
    ) -> Result<(), String> {
        if header.line_info {
            number::<u64>(words, "a line of the source")?;
        }
        self.pc = hexadecimal_word(words, "a program counter")?;
        let lanes = hexadecimal_word(words, "a mask of lanes")?;
        self.lanes = Mask::try_from(lanes)
            .map_err(|_| format!("a mask of {lanes:#x}: a warp has 32 lanes"))?;
        registers(
            words,
            &mut self.destinations,
            MOST_DESTINATIONS,
            "destination",
        )?;
        self.opcode.clear();
        let opcode = words.next().unwrap_or_default();
        if !opcode.starts_with(|letter: char| letter.is_ascii_uppercase()) {
            return Err(format!("`{opcode}`, where an opcode belongs"));
        }
        self.opcode.push_str(opcode);
        registers(words, &mut self.sources, MOST_SOURCES, "source")?;
        let width: u32 = number(words, "the bytes of an access")?;
        self.memory = match width {
            0 => None,
            width => Some((width, address::read(words, self.lanes)?)),
        };
        self.immediate = match words.next() {
            None => 0,
            Some(word) => word
                .parse()
                .map_err(|_| format!("`{word}`, where a number or nothing belongs"))?,
        };
        match words.next() {
            None => Ok(()),
            Some(word) => Err(format!("`{word}` at the end of an instruction")),
        }
    }

    /// Writes the line of version 5, without the end of a line.
    pub fn write(&self, text: &mut String) {
        let _ = write!(text, "{:04x} {:08x} ", self.pc, self.lanes);
        write_registers(text, &self.destinations);
        let _ = write!(text, "{} ", self.opcode);
        write_registers(text, &self.sources);
        match &self.memory {
            None => text.push('0'),
            Some((width, addresses)) => {
                let _ = write!(text, "{width} ");
                address::write(text, addresses, self.lanes);
            }
        }
        let _ = write!(text, " {}", self.immediate);
    }
}

/// Bytes of an access as tracers read them off an opcode: the first word that is a number of bits.
#[must_use]
pub fn width_of(opcode: &str) -> u32 {
    let bits = |word: &str| {
        let digits = word.strip_prefix('U').unwrap_or(word);
        let number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        number.then(|| digits.parse::<u32>().ok()).flatten()
    };
    let named = opcode.split('.').skip(1).find_map(bits);
    named.map_or(4, |bits| (bits / 8).max(1))
}

fn write_registers(text: &mut String, registers: &[u8]) {
    let _ = write!(text, "{} ", registers.len());
    for register in registers {
        let _ = write!(text, "R{register} ");
    }
}

fn registers(
    words: &mut SplitAsciiWhitespace<'_>,
    list: &mut Vec<u8>,
    most: usize,
    what: &str,
) -> Result<(), String> {
    list.clear();
    let count: usize = number(words, "a number of registers")?;
    if count > most {
        return Err(format!(
            "{count} {what} registers; at most {most} are known of"
        ));
    }
    for _ in 0..count {
        let word = words.next().unwrap_or_default();
        let register = word
            .strip_prefix('R')
            .and_then(|digits| digits.parse().ok());
        list.push(register.ok_or_else(|| format!("`{word}`, where a {what} register belongs"))?);
    }
    Ok(())
}

fn hexadecimal_word(words: &mut SplitAsciiWhitespace<'_>, what: &str) -> Result<u64, String> {
    let word = words.next().unwrap_or_default();
    hexadecimal(word).ok_or_else(|| format!("`{word}`, where {what} belongs"))
}

pub(crate) fn number<N: std::str::FromStr>(
    words: &mut SplitAsciiWhitespace<'_>,
    what: &str,
) -> Result<N, String> {
    let word = words.next().unwrap_or_default();
    word.parse()
        .map_err(|_| format!("`{word}`, where {what} belongs"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header(version: u32, line_info: bool) -> KernelHeader {
        KernelHeader {
            version,
            line_info,
            ..KernelHeader::default()
        }
    }

    fn read(text: &str, header: &KernelHeader) -> Result<InstructionLine, String> {
        let mut line = InstructionLine::default();
        line.read(text, header)?;
        Ok(line)
    }

    #[test]
    fn every_version_says_the_same() {
        let load = "0120 0000000f 1 R4 LDG.E.64.SYS 1 R2 8 1 0x7f0000000100 8";
        let new = read(load, &header(3, false)).unwrap();
        assert_eq!(
            (new.pc, new.lanes, &*new.opcode),
            (0x120, 15, "LDG.E.64.SYS")
        );
        assert_eq!(
            (&*new.destinations, &*new.sources),
            (&[4u8][..], &[2u8][..])
        );
        assert_eq!(new.memory.unwrap().1[3], 0x7f00_0000_0118);
        for (text, header) in [
            (format!("3 0 0 1 {load}"), header(1, false)),
            (format!("3 0 0 1 {load} "), header(2, false)),
            (load.to_string(), header(4, false)),
            (format!("77 {load} 0"), header(5, true)),
        ] {
            assert_eq!(read(&text, &header), Ok(new.clone()));
        }
        let wait = read("0040 ffffffff 0 DEPBAR.LE 0 0 2", &header(5, false)).unwrap();
        assert_eq!((wait.immediate, wait.memory), (2, None));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let header = header(5, false);
        for (text, expected) in [
            ("xyz", "`xyz`, where a program counter belongs"),
            ("0 1ffffffff", "a mask of 0x1ffffffff: a warp has 32 lanes"),
            ("0 1 9", "9 destination registers; at most 8 are known of"),
            ("0 1 1 P0", "`P0`, where a destination register belongs"),
            ("0 1 1 R256", "`R256`, where a destination register belongs"),
            ("0 1 0 0", "`0`, where an opcode belongs"),
            ("0 1 0 NOP 0 0 0 0", "`0` at the end of an instruction"),
            ("0 1 0 NOP 0", "``, where the bytes of an access belongs"),
        ] {
            assert_eq!(read(text, &header), Err(expected.to_string()));
        }
    }

    #[test]
    fn widths_are_read_off_opcodes() {
        let widths = ["LDG.E", "LDG.E.64.SYS", "STG.E.U8", "LDS.128", "LDG.E.S8"].map(width_of);
        assert_eq!(widths, [4, 8, 1, 16, 4]);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            pc: u32,
            lanes: u32,
            destinations in proptest::collection::vec(any::<u8>(), 0..2),
            opcode in "[A-Z][A-Z0-9.]{0,20}",
            sources in proptest::collection::vec(any::<u8>(), 0..5),
            memory in proptest::option::of((1u32..17, any::<u64>(), -256i64..256)),
            immediate: i64,
        ) {
            let memory = memory.map(|(width, base, stride)| (width, std::array::from_fn(|lane| {
                u64::from(lanes >> lane & 1) * base.wrapping_add_signed(stride * lane as i64)
            })));
            let line = InstructionLine {
                pc: pc.into(), lanes, destinations, opcode, sources, memory, immediate,
            };
            let mut text = String::new();
            line.write(&mut text);
            prop_assert_eq!(read(&text, &header(5, false)), Ok(line));
        }

        #[test]
        fn no_line_makes_it_panic(text in "[0-9a-fxRLDG. -]{0,120}", version in 1u32..6, line_info: bool) {
            let _ = read(&text, &header(version, line_info));
        }
    }
}
