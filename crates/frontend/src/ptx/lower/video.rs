//! Video instructions: `vadd` and its kin, `vadd2`, `vadd4` and theirs.

use lockstep_isa::{
    Operand as Value,
    ptx::{Type, class, video::VIDEO},
    semantics::{
        Modifiers,
        video::{Operation, PARTS, Second, Video},
    },
};

use super::Lowering;
use crate::ptx::{
    error::Error,
    syntax::{Instruction, Operand},
};

/// Opcodes without their number of elements.
const OPCODES: &[(&str, Operation)] = &[
    ("vadd", Operation::Add),
    ("vsub", Operation::Subtract),
    ("vabsdiff", Operation::Difference),
    ("vavrg", Operation::Average),
    ("vmin", Operation::Min),
    ("vmax", Operation::Max),
    ("vshl", Operation::ShiftLeft),
    ("vshr", Operation::ShiftRight),
    ("vmad", Operation::Multiply),
    ("vset", Operation::Set),
];

/// Whether an opcode is one of these: what it does, and on how many elements.
pub(super) fn opcode(word: &str) -> Option<(Operation, u32)> {
    let (name, elements) = match word.as_bytes().last() {
        Some(b'2') => (&word[..word.len() - 1], 2),
        Some(b'4') => (&word[..word.len() - 1], 4),
        _ => (word, 1),
    };
    let found = OPCODES.iter().find(|(known, _)| *known == name);
    found.map(|(_, operation)| (*operation, elements))
}

impl<'p, 'a> Lowering<'p, 'a> {
    /// Any video instruction.
    pub(super) fn video(
        &mut self,
        i: &'p Instruction<'a>,
        (operation, elements): (Operation, u32),
    ) -> Result<(), Error> {
        self.expect_operands(&i.operands, 3..=4)?;
        let Some(mut video) = self.video_modifiers(i, operation, elements) else {
            self.stop_at(i, "has modifiers that are not modelled");
            return Ok(());
        };
        let mut code = self.compute(VIDEO, class::INTEGER);
        let (target, part) = self.video_part(&i.operands[0]);
        video.write = match part {
            None if elements == 1 => 0,
            None => (1 << elements) - 1,
            Some(part) if elements == 1 => self.video_place(part)?,
            Some(part) => self
                .video_digits(part, elements)?
                .iter()
                .fold(0, |mask, n| mask | 1 << n),
        };
        let target = self.register(target)?;
        code.instruction.destination = Some(code.write(target.place(), 1));
        for position in 0..3 {
            let Some(operand) = i.operands.get(position + 1) else {
                code.instruction.sources[position] = Value::Immediate(0).into();
                continue;
            };
            let (operand, negated) = match operand {
                Operand::Negated(inner) => (&**inner, true),
                other => (other, false),
            };
            match position {
                2 => video.negate[1] = negated,
                _ => video.negate[0] ^= negated,
            }
            let part = match operand {
                Operand::Name(_) => self.video_part(operand).1,
                _ => None,
            };
            if position < 2 {
                video.select[position] = self.video_selection(part, position, elements)?;
            }
            let value = match (operand, part) {
                (Operand::Name(_), Some(_)) => {
                    let register = self.register(self.video_part(operand).0)?;
                    code.read(register.place(), 1)
                }
                _ => self.value(&mut code, operand, Type::B32)?,
            };
            code.instruction.sources[position] = value.into();
        }
        code.instruction.modifiers = video.encode();
        self.push(code);
        Ok(())
    }

    /// Types come first: of result and operands, of a comparison the operands' alone. Nothing if a word is unknown.
    fn video_modifiers(
        &self,
        i: &Instruction<'_>,
        operation: Operation,
        elements: u32,
    ) -> Option<Video> {
        let types = i
            .modifiers
            .iter()
            .take_while(|word| matches!(**word, "u32" | "s32"));
        let mut signed: Vec<bool> = types.map(|word| *word == "s32").collect();
        let given = signed.len();
        if operation == Operation::Set {
            signed.insert(0, *signed.first()?);
        }
        let mut video = Video {
            operation,
            comparison: Modifiers(0).comparison(),
            elements,
            signed: signed.try_into().ok()?,
            saturate: false,
            second: Second::Merge,
            wrap: false,
            scale: 0,
            plus_one: false,
            negate: [false; 2],
            select: [0; 2],
            write: 0,
        };
        for word in &i.modifiers[given..] {
            match *word {
                "sat" => video.saturate = true,
                "add" => video.second = Second::Add,
                "min" => video.second = Second::Min,
                "max" => video.second = Second::Max,
                "wrap" => video.wrap = true,
                "clamp" => {}
                "shr7" => video.scale = 7,
                "shr15" => video.scale = 15,
                "po" => video.plus_one = true,
                "eq" | "ne" | "lt" | "le" | "gt" | "ge" => {
                    let bits = lockstep_isa::ptx::modifier_bits(word);
                    video.comparison = Modifiers(bits).comparison();
                }
                _ => return None,
            }
        }
        Some(video)
    }

    /// A name and the part of it that is meant.
    fn video_part(&self, operand: &Operand<'a>) -> (&'a str, Option<&'a str>) {
        match operand {
            Operand::Name(name) => match name.split_once('.') {
                Some((register, part)) => (register, Some(part)),
                None => (name, None),
            },
            _ => ("", None),
        }
    }

    fn video_place(&self, part: &str) -> Result<u32, Error> {
        match PARTS.iter().position(|(name, ..)| *name == part) {
            Some(place) => Ok(place as u32),
            None => self.wrong(format!(
                "`.{part}` is no part of a word; parts are b0 to b3, h0 and h1"
            )),
        }
    }

    /// Numbers of elements, the lowest first, as `h10` and `b3210` name them.
    fn video_digits(&self, part: &str, elements: u32) -> Result<Vec<u32>, Error> {
        let letter = if elements == 2 { 'h' } else { 'b' };
        let digits = part.strip_prefix(letter).unwrap_or("");
        let numbers: Option<Vec<u32>> = digits
            .chars()
            .rev()
            .map(|digit| digit.to_digit(8))
            .collect();
        match numbers {
            Some(numbers) if !numbers.is_empty() && numbers.len() <= elements as usize => {
                Ok(numbers)
            }
            _ => self.wrong(format!("`.{part}` names no elements such as `.{letter}0`")),
        }
    }

    fn video_selection(
        &self,
        part: Option<&str>,
        position: usize,
        elements: u32,
    ) -> Result<u16, Error> {
        let Some(part) = part else {
            let first = position as u32 * elements;
            let places = (0..elements).map(|n| ((first + n) as u16) << (4 * n));
            return Ok(if elements == 1 { 0 } else { places.sum() });
        };
        if elements == 1 {
            return Ok(self.video_place(part)? as u16);
        }
        let digits = self.video_digits(part, elements)?;
        let places = (0..)
            .zip(digits)
            .map(|(n, digit)| (digit as u16) << (4 * n));
        Ok(places.sum())
    }
}
