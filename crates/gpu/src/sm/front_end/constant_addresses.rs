//! The words of constants that the lanes of a warp ask for by index.
//!
//! One address for all lanes is read at once; different ones are read one after the other, each in a
//! replay of its own. Start reading at [`ConstantAddresses::note`].

use lockstep_isa::lanes::ScratchRegister;
use lockstep_isa::{Instruction, Mask, Operand};

use super::issue_table::BANK_SHIFT;
use crate::launch::LaunchContext;
use crate::sm::warp::Warp;

/// Lanes of a warp.
const LANES: usize = 32;

/// The different words that one instruction asks for, in the order of the lanes.
#[derive(Clone, Debug)]
pub struct ConstantAddresses {
    bank: u8,
    words: [u32; LANES],
    count: usize,
}

impl Default for ConstantAddresses {
    fn default() -> Self {
        Self {
            bank: 0,
            words: [0; LANES],
            count: 0,
        }
    }
}

impl ConstantAddresses {
    /// Another instruction, of which nothing is known yet.
    pub fn begin(&mut self, bank: u8) {
        (self.bank, self.count) = (bank, 0);
    }

    /// A lane asks for the word at an address.
    #[inline]
    pub fn add(&mut self, address: u32) {
        let word = address / 4;
        if !self.words[..self.count].contains(&word) && self.count < LANES {
            self.words[self.count] = word;
            self.count += 1;
        }
    }

    /// Notes what a load by index asks for, before it is executed: it may write its own index.
    #[inline(never)]
    pub fn note(
        &mut self,
        warp: &mut Warp,
        context: &LaunchContext,
        instruction: &Instruction,
        execute: Mask,
        bank: u8,
    ) {
        self.begin(bank);
        let offset = match instruction.sources[1].operand {
            Operand::Immediate(offset) => offset as u32,
            _ => 0,
        };
        let lanes = warp.lanes_that(context, execute);
        let mut room = ScratchRegister::uninit();
        let index = lanes.raw_at(instruction.sources[0].operand, 0, &mut room);
        let mut left = execute;
        while left != 0 {
            let lane = left.trailing_zeros() as usize;
            left &= left - 1;
            self.add(index.0[lane].wrapping_add(offset));
        }
    }

    /// The numbers of the lines that they are in, one for each word.
    pub fn lines(&self, line: u32) -> impl Iterator<Item = u32> {
        let (bank, words_of_line) = (u32::from(self.bank) << BANK_SHIFT, (line / 4).max(1));
        let numbers = self.words[..self.count].iter();
        numbers.map(move |word| bank | (word / words_of_line).min((1 << BANK_SHIFT) - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_that_ask_for_the_same_word_ask_once() {
        let mut addresses = ConstantAddresses::default();
        addresses.begin(3);
        for address in [128, 0, 130, 64, 0] {
            addresses.add(address);
        }
        let bank = 3 << BANK_SHIFT;
        let lines: Vec<u32> = addresses.lines(64).collect();
        assert_eq!(lines, [bank | 2, bank, bank | 1]);
        addresses.begin(4);
        assert_eq!(addresses.lines(64).count(), 0);
    }
}
