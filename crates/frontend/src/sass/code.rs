//! Machine code of a linked module: words, and instructions when somebody asks for them.

use std::{collections::BTreeMap, sync::Arc};

use lockstep_isa::{
    Instruction, MachineCode, Operation,
    instruction::SchedulingInfo,
    sass::{
        Architecture, Word, decode,
        execute::{Frame, bind},
        word::WORD_BYTES,
    },
};

use super::{cubin::Cubin, error::Error};

/// A text section among the instructions of its module.
#[derive(Clone, Copy, Debug)]
pub(super) struct Text {
    /// Index of its first instruction.
    pub start: u32,
    /// Number of instructions.
    pub length: u32,
    /// Its number in the file.
    pub section: usize,
}

/// The code of a module: text sections of a file that modules share, what relocations write there, and behind them the
/// functions of the system.
#[derive(Debug)]
pub(super) struct LinkedCode {
    pub cubin: Arc<Cubin>,
    pub architecture: Architecture,
    /// By their first instruction, ascending.
    pub texts: Vec<Text>,
    /// Words that relocations change, by index.
    pub relocated: BTreeMap<u32, Word>,
    /// Number of uniform registers of all code.
    pub uniform_registers: u16,
    /// Numbers of source lines, each from an instruction on, ascending.
    pub lines: Vec<(u32, u32)>,
    /// Functions of the system behind all sections, with their texts.
    pub system: Vec<(Instruction, String)>,
}

/// A word of machine code and where it stands.
struct Place {
    text: Text,
    /// In bytes from the start of its section.
    address: u64,
    word: Word,
}

impl LinkedCode {
    /// Number of instructions in text sections.
    pub(super) fn words(&self) -> u32 {
        self.texts.last().map_or(0, |last| last.start + last.length)
    }

    /// The words of a text section as relocations leave them, with their indices.
    pub(super) fn words_of(&self, text: Text) -> impl Iterator<Item = (u32, Word)> {
        let (words, _) = self.cubin.sections[text.section]
            .bytes
            .as_chunks::<{ WORD_BYTES as usize }>();
        let range = text.start..text.start + text.length;
        let mut changed = self.relocated.range(range.clone()).peekable();
        range.zip(words).map(move |(index, bytes)| {
            let changed = changed.next_if(|(at, _)| **at == index);
            let word = changed.map_or(Word(u128::from_le_bytes(*bytes)), |(_, word)| *word);
            (index, word)
        })
    }

    fn place(&self, index: u32) -> Option<Place> {
        let after = self.texts.partition_point(|text| text.start <= index);
        let text = self.texts[after.checked_sub(1)?];
        let offset = index - text.start;
        if offset >= text.length {
            return None;
        }
        let address = u64::from(offset) * WORD_BYTES;
        let bytes = self.cubin.sections[text.section]
            .bytes
            .get(address as usize..)?;
        let word = match self.relocated.get(&index) {
            Some(word) => *word,
            None => Word::from_bytes(bytes)?,
        };
        Some(Place {
            text,
            address,
            word,
        })
    }

    /// A word as an instruction. One that no table describes, or whose operands contradict each other, is illegal when
    /// it is executed.
    fn bound(&self, place: &Place) -> Instruction {
        let Place {
            text,
            address,
            word,
        } = *place;
        let section = &self.cubin.sections[text.section];
        let function = || section.name.trim_start_matches(".text.").to_owned();
        let frame = Frame {
            uniform_registers: self.uniform_registers,
            section: text.start,
            length: text.length,
            architecture: self.cubin.architecture,
        };
        let error = match decode(self.architecture, address, word) {
            Ok(decoded) => match bind(&decoded, &frame) {
                Ok(instruction) => return instruction,
                Err(error) => Error::BadInstruction {
                    function: function(),
                    address,
                    text: decoded.to_string(),
                    word: word.0,
                    why: error.to_string(),
                },
            },
            Err(_) => Error::UnknownInstruction {
                function: function(),
                address,
                word: word.0,
                architecture: self.cubin.architecture,
            },
        };
        let scheduling = SchedulingInfo {
            control: Some(word.control()),
            ..SchedulingInfo::default()
        };
        let operation = Operation::Illegal(error.to_string().into_boxed_str());
        Instruction::new(operation, scheduling)
    }
}

impl MachineCode for LinkedCode {
    fn length(&self) -> usize {
        self.words() as usize + self.system.len()
    }

    fn instruction(&self, index: usize) -> Instruction {
        let Some(place) = self.place(index as u32) else {
            return self.system[index - self.words() as usize].0.clone();
        };
        let mut instruction = self.bound(&place);
        let after = self
            .lines
            .partition_point(|(start, _)| *start as usize <= index);
        if let Some(before) = after.checked_sub(1) {
            instruction.scheduling.line = self.lines[before].1;
        }
        instruction
    }

    fn text(&self, index: usize) -> String {
        let Some(place) = self.place(index as u32) else {
            return self.system[index - self.words() as usize].1.clone();
        };
        match decode(self.architecture, place.address, place.word) {
            Ok(decoded) => decoded.to_string(),
            Err(_) => format!("{:#034x}", place.word.0),
        }
    }
}
