//! The instructions of a module, each decoded when it is first asked for.
//!
//! A library may carry millions of instructions of which a program executes some thousand. Machine code therefore stays
//! words until somebody asks for an instruction; then the page around it is decoded, once, whoever asks. What a page
//! holds does not depend on who was first, so nothing that threads do can be seen in it.
//!
//! Start reading at [`Code::get`].

use std::{
    fmt,
    ops::{Index, Range},
    sync::{Arc, OnceLock},
};

use crate::instruction::{Instruction, Operation, SchedulingInfo};

/// Instructions that are decoded together.
pub const PAGE: usize = 64;

/// Machine code of a module, linked, as words: says what an instruction is. Threads ask it in any order, and the answer
/// to a question is always the same.
pub trait MachineCode: fmt::Debug + Send + Sync {
    /// Number of instructions.
    fn length(&self) -> usize;

    /// An instruction, as an SM sees it; its index is less than [`Self::length`].
    fn instruction(&self, index: usize) -> Instruction;

    /// The text of such an instruction.
    fn text(&self, index: usize) -> String;
}

/// All functions of a module, one after the other.
#[derive(Clone, Default)]
pub struct Code {
    pages: Vec<OnceLock<Arc<Page>>>,
    length: usize,
    /// Where pages come from that are not there yet.
    words: Option<Arc<dyn MachineCode>>,
}

/// Some instructions in a row; the last page of a module is filled up.
#[derive(Clone)]
struct Page {
    instructions: [Instruction; PAGE],
    /// How many from each on, to the end of the page at most, do nothing but compute.
    straight: [u8; PAGE],
}

impl Page {
    fn new(instructions: [Instruction; PAGE]) -> Self {
        let mut page = Self {
            instructions,
            straight: [0; PAGE],
        };
        page.find_straight_lines();
        page
    }

    /// Finds where warps can run straight on: what only computes moves no lane.
    fn find_straight_lines(&mut self) {
        let mut next = 0;
        for (instruction, straight) in self.instructions.iter().zip(&mut self.straight).rev() {
            let computes = matches!(
                instruction.operation,
                Operation::Compute(_) | Operation::Nothing
            );
            next = match computes && !instruction.scheduling.pseudo {
                true => next + 1,
                false => 0,
            };
            *straight = next;
        }
    }
}

impl Code {
    /// Machine code, none of it decoded.
    #[must_use]
    pub fn of_words(words: Arc<dyn MachineCode>) -> Self {
        let length = words.length();
        let pages = (0..length.div_ceil(PAGE)).map(|_| OnceLock::new());
        Self {
            pages: pages.collect(),
            length,
            words: Some(words),
        }
    }

    /// Number of instructions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// An instruction; none behind the last.
    #[must_use]
    #[inline(always)]
    pub fn get(&self, index: usize) -> Option<&Instruction> {
        if index >= self.length {
            return None;
        }
        Some(&self.page(index).instructions[index % PAGE])
    }

    /// The instructions from one on that do nothing but compute, as far as its page goes: warps can run through them
    /// without looking where their lanes are.
    #[must_use]
    #[inline(always)]
    pub fn straight_line(&self, index: usize) -> &[Instruction] {
        if index >= self.length {
            return &[];
        }
        let (page, first) = (self.page(index), index % PAGE);
        let count = usize::from(page.straight[first]).min(self.length - index);
        &page.instructions[first..first + count]
    }

    /// Some instructions in their order.
    pub fn range(&self, range: Range<usize>) -> impl DoubleEndedIterator<Item = &Instruction> {
        range.map(|index| &self[index])
    }

    /// All instructions in their order. All of them are decoded for that.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Instruction> {
        self.range(0..self.length)
    }

    /// Number of instructions that were decoded.
    #[must_use]
    pub fn decoded(&self) -> usize {
        let decoded = self
            .pages
            .iter()
            .zip(0..)
            .filter(|(page, _)| page.get().is_some());
        decoded
            .map(|(_, number): (_, usize)| PAGE.min(self.length - number * PAGE))
            .sum()
    }

    /// The words that it is decoded from, if it is.
    #[must_use]
    pub fn words(&self) -> Option<&Arc<dyn MachineCode>> {
        self.words.as_ref()
    }

    /// Puts another instruction in the place of one.
    ///
    /// # Panics
    /// If there is none.
    pub fn replace(&mut self, index: usize, instruction: Instruction) {
        assert!(
            index < self.length,
            "instruction {index} of {}",
            self.length
        );
        self.page(index);
        if let Some(page) = self.pages[index / PAGE].get_mut() {
            let page = Arc::make_mut(page);
            page.instructions[index % PAGE] = instruction;
            page.find_straight_lines();
        }
    }

    /// Changes all of it. All of it is decoded for that.
    pub fn edit(&mut self, change: impl FnOnce(&mut Vec<Instruction>)) {
        let mut all: Vec<Instruction> = self.iter().cloned().collect();
        change(&mut all);
        *self = Self {
            words: self.words.take(),
            ..all.into()
        };
    }

    #[inline(always)]
    fn page(&self, index: usize) -> &Page {
        match self.pages[index / PAGE].get() {
            Some(page) => page,
            None => self.decode(index / PAGE),
        }
    }

    #[cold]
    fn decode(&self, number: usize) -> &Page {
        self.pages[number].get_or_init(|| {
            let words = self.words.as_deref();
            let instruction = |place: usize| {
                let index = number * PAGE + place;
                match words {
                    Some(words) if index < self.length => words.instruction(index),
                    _ => filling(),
                }
            };
            Arc::new(Page::new(std::array::from_fn(instruction)))
        })
    }
}

fn filling() -> Instruction {
    Instruction::new(Operation::Nothing, SchedulingInfo::default())
}

impl From<Vec<Instruction>> for Code {
    fn from(all: Vec<Instruction>) -> Self {
        let length = all.len();
        let mut all = all.into_iter();
        let page = |_| {
            let page = Page::new(std::array::from_fn(|_| all.next().unwrap_or_else(filling)));
            OnceLock::from(Arc::new(page))
        };
        Self {
            pages: (0..length.div_ceil(PAGE)).map(page).collect(),
            length,
            words: None,
        }
    }
}

impl Index<usize> for Code {
    type Output = Instruction;

    #[inline(always)]
    fn index(&self, index: usize) -> &Instruction {
        match self.get(index) {
            Some(instruction) => instruction,
            None => panic!("instruction {index} of {}", self.length),
        }
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Code")
            .field("instructions", &self.length)
            .field("decoded", &self.decoded())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::{instruction::Flow, lanes::Lanes};

    fn compute(_: &mut Lanes<'_>, _: &Instruction) {}

    /// Every tenth instruction is an exit; counts how often one is asked for.
    #[derive(Debug, Default)]
    struct Words {
        asked: AtomicUsize,
    }

    impl MachineCode for Words {
        fn length(&self) -> usize {
            3 * PAGE + 5
        }

        fn instruction(&self, index: usize) -> Instruction {
            self.asked.fetch_add(1, Ordering::Relaxed);
            let operation = match index % 10 {
                9 => Operation::Flow(Flow::Exit),
                _ => Operation::Compute(compute),
            };
            let mut instruction = Instruction::new(operation, SchedulingInfo::default());
            instruction.modifiers = index as u64;
            instruction
        }

        fn text(&self, index: usize) -> String {
            index.to_string()
        }
    }

    #[test]
    fn a_page_is_decoded_once_and_only_when_it_is_asked_for() {
        let words = Arc::new(Words::default());
        let code = Code::of_words(words.clone());
        assert_eq!((code.len(), code.decoded()), (3 * PAGE + 5, 0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert_eq!(code[PAGE + 3].modifiers, PAGE as u64 + 3));
            }
        });
        assert_eq!(code.decoded(), PAGE);
        assert_eq!(words.asked.load(Ordering::Relaxed), PAGE);
        assert_eq!(code[code.len() - 1].modifiers, 3 * PAGE as u64 + 4);
        assert_eq!(code.decoded(), PAGE + 5);
        assert!(code.get(code.len()).is_none());
    }

    #[test]
    fn straight_lines_end_with_the_page_and_with_the_code() {
        let code = Code::of_words(Arc::new(Words::default()));
        let lengths = [0, 8, 9, 60, 63, 3 * PAGE, 3 * PAGE + 4, 3 * PAGE + 5];
        let found = lengths.map(|index| code.straight_line(index).len());
        assert_eq!(found, [9, 1, 0, 4, 1, 5, 1, 0]);
    }

    #[test]
    fn a_copy_with_another_instruction_leaves_the_first_alone() {
        let code = Code::of_words(Arc::new(Words::default()));
        let mut other = code.clone();
        other.replace(
            70,
            Instruction::new(Operation::Nothing, SchedulingInfo::default()),
        );
        assert!(matches!(other[70].operation, Operation::Nothing));
        assert!(matches!(code[70].operation, Operation::Compute(_)));
        other.edit(|all| all.truncate(3));
        assert_eq!((other.len(), other.decoded()), (3, 3));
        assert_eq!(other.iter().count(), 3);
    }
}
