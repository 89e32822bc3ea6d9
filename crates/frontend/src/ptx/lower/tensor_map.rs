//! `tensormap.replace`, `tensormap.cp_fenceproxy`: fields of a tensor map in memory, at the bits where the
//! hardware has them (`units::TensorMap`), as compiled code does it.

use lockstep_isa::{
    Lanes, Operand as Value, Operation, WarpRegister,
    memory::{Action, CachePolicy, Element, Order, Scope, Space, Strength},
    ptx::{Type, class},
    semantics,
    semantics::lane_loops::{Semantics, binary},
};

use super::{Lowering, Register, memory::MEMORY};
use crate::ptx::{
    error::Error,
    syntax::{Instruction, Operand},
};

/// A 64-bit value shifted right by a number, the low word of it.
const SHIFT: Semantics = semantics!(shift_down);
const ADD: Semantics = semantics!(binary; |a, b| a.wrapping_add(b));
/// `a + 4 * b`, for the word of a lane.
const WORD_OF_LANE: Semantics = semantics!(binary; |a, b| a.wrapping_add(b.wrapping_mul(4)));

fn shift_down(l: &mut Lanes<'_>, i: &lockstep_isa::Instruction) {
    let [value, by, ..] = i.sources.map(|source| l.integer64(source));
    let words = std::array::from_fn(|lane| (value[lane] >> by[lane]) as u32);
    l.write(i.destination, 0, &WarpRegister(words));
}

/// Bits of a word of a tensor map.
#[derive(Clone, Copy)]
struct Field {
    word: u32,
    shift: u32,
    bits: u32,
    /// The map has one less than the program says.
    less_one: bool,
}

const fn field(word: u32, shift: u32, bits: u32, less_one: bool) -> Field {
    Field {
        word,
        shift,
        bits,
        less_one,
    }
}

/// Words of a tensor map.
const MAP_WORDS: u32 = 32;

impl<'p, 'a> Lowering<'p, 'a> {
    /// `tensormap.…`.
    pub(super) fn tensor_map(&mut self, i: &'p Instruction<'a>) -> Result<(), Error> {
        match i.modifiers.first() {
            Some(&"replace") => self.replace_field(i),
            Some(&"cp_fenceproxy") => self.copy_map(i),
            _ => self.stop(i, "works on a tensor map in a way that is not modelled"),
        }
    }

    fn replace_field(&mut self, i: &'p Instruction<'a>) -> Result<(), Error> {
        let Some(name) = i.modifiers.get(2).copied() else {
            return self.wrong("a field of a tensor map must be named");
        };
        let Some((value, before)) = i.operands.split_last() else {
            return self.wrong("a value must stand here");
        };
        let ordinal = match before.get(1) {
            Some(operand) => self.literal(operand, Type::B32)?.unwrap_or(5) as u32,
            None => 0,
        };
        if ordinal >= 5 {
            return self.wrong("a tensor has dimensions 0 to 4");
        }
        match name {
            "global_address" => {
                let words = self.words_of(value, [0, 32])?;
                self.put_word(i, 0, words[0])?;
                self.put_word(i, 1, words[1])
            }
            "global_stride" => {
                let words = self.words_of(value, [4, 36])?;
                self.put_word(i, 3 + ordinal, words[0])?;
                self.put_bits(i, field(7, 4 * ordinal, 4, false), words[1])
            }
            "global_dim" => self.put_value(i, field(8 + ordinal, 0, 32, true), value),
            "box_dim" if ordinal == 0 => self.put_value(i, field(13, 24, 8, true), value),
            "box_dim" => self.put_value(i, field(14, 8 * (ordinal - 1), 8, true), value),
            "element_stride" => self.put_value(i, field(13, 3 * ordinal, 3, true), value),
            "rank" => self.put_value(i, field(2, 4, 3, false), value),
            "interleave_layout" => self.put_value(i, field(2, 11, 2, false), value),
            "swizzle_mode" => {
                self.put_value(i, field(2, 13, 2, false), value)?;
                self.put_value(i, field(2, 22, 1, false), &Operand::Integer(0))
            }
            "fill_mode" => self.put_value(i, field(2, 15, 1, false), value),
            "elemtype" => self.put_element_type(i, value),
            _ => self.stop(i, "replaces a field of a tensor map that Hopper has not"),
        }
    }

    /// TF32 is FP32 with a bit of its own, which other types leave alone.
    fn put_element_type(
        &mut self,
        i: &'p Instruction<'a>,
        value: &Operand<'a>,
    ) -> Result<(), Error> {
        let number = match self.literal(value, Type::B32)? {
            Some(number @ 0..=12) => number as i64,
            _ => return self.wrong("the type of an element is a number from 0 to 12"),
        };
        if number >= 11 {
            let set = Operand::Integer(1);
            self.put_value(i, field(2, 16, 1, false), &set)?;
        }
        let plain = if number >= 11 { number - 4 } else { number };
        self.put_value(i, field(2, 7, 4, false), &Operand::Integer(plain))
    }

    /// Two words of a 64-bit value, shifted right by so many bits each.
    fn words_of(&mut self, value: &Operand<'a>, shifts: [u64; 2]) -> Result<[Register; 2], Error> {
        let mut words = [self.new_register(32), self.new_register(32)];
        for (word, shift) in words.iter_mut().zip(shifts) {
            let mut code = self.compute(SHIFT, class::INTEGER);
            code.instruction.sources[0] = self.value(&mut code, value, Type::B64)?.into();
            code.instruction.sources[1] = Value::Immediate(shift).into();
            code.instruction.destination = Some(code.write(word.place(), 1));
            self.push(code);
        }
        Ok(words)
    }

    fn put_value(
        &mut self,
        i: &'p Instruction<'a>,
        field: Field,
        value: &Operand<'a>,
    ) -> Result<(), Error> {
        let register = self.new_register(32);
        let mut code = self.compute(ADD, class::INTEGER);
        code.instruction.sources[0] = self.value(&mut code, value, Type::B32)?.into();
        let less = if field.less_one {
            u64::from(u32::MAX)
        } else {
            0
        };
        code.instruction.sources[1] = Value::Immediate(less).into();
        code.instruction.destination = Some(code.write(register.place(), 1));
        self.push(code);
        self.put_bits(i, field, register)
    }

    fn put_bits(
        &mut self,
        i: &'p Instruction<'a>,
        field: Field,
        value: Register,
    ) -> Result<(), Error> {
        if field.bits == 32 {
            return self.put_word(i, field.word, value);
        }
        let word = self.new_register(32);
        let mut code = self.code(Operation::Nothing, MEMORY);
        let mut address = self.address(&mut code, &i.operands[0])?;
        address.offset += i64::from(4 * field.word);
        let mut load = self.access(
            Action::Load,
            self.map_space(i),
            Element::B32,
            address,
            Strength::Weak,
            CachePolicy::Default,
        );
        load.data[0] = Some(code.write(word.place(), 1));
        self.push_access(code, load);
        self.put_field(word, value, field.shift, field.bits, false);
        self.put_word(i, field.word, word)
    }

    fn put_word(
        &mut self,
        i: &'p Instruction<'a>,
        word: u32,
        value: Register,
    ) -> Result<(), Error> {
        let mut code = self.code(Operation::Nothing, MEMORY);
        let mut address = self.address(&mut code, &i.operands[0])?;
        address.offset += i64::from(4 * word);
        let mut store = self.access(
            Action::Store,
            self.map_space(i),
            Element::B32,
            address,
            Strength::Weak,
            CachePolicy::Default,
        );
        store.values[0] = code.read(value.place(), 1);
        self.push_access(code, store);
        Ok(())
    }

    fn map_space(&self, i: &'p Instruction<'a>) -> Space {
        let named = i.modifiers.iter().find_map(|word| self.space_of(word));
        self.access_space(named)
    }

    /// `tensormap.cp_fenceproxy`: each lane copies a word from shared to global memory.
    fn copy_map(&mut self, i: &'p Instruction<'a>) -> Result<(), Error> {
        self.expect_operands(&i.operands, 3..=3)?;
        let lane = self.read_special("%laneid")?;
        let word = self.new_register(32);
        let mut places = Vec::new();
        for operand in &i.operands[..2] {
            let mut code = self.code(Operation::Nothing, MEMORY);
            let address = self.address(&mut code, operand)?;
            let base = self.address_sum(code, address);
            places.push(self.lane_word(base, lane));
        }
        let strong = Strength::Strong {
            scope: Scope::Gpu,
            order: Order::Relaxed,
        };
        for (place, action, space, strength) in [
            (places[1], Action::Load, Space::Shared, Strength::Weak),
            (places[0], Action::Store, Space::Global, strong),
        ] {
            let mut code = self.code(Operation::Nothing, MEMORY);
            let address = self.register_address(&mut code, place);
            let cache = CachePolicy::Default;
            let mut access = self.access(action, space, Element::B32, address, strength, cache);
            if action == Action::Load {
                access.data[0] = Some(code.write(word.place(), 1));
            } else {
                access.values[0] = code.read(word.place(), 1);
            }
            self.push_access(code, access);
        }
        Ok(())
    }

    /// The address of a lane's word of a map, whose words do not cross 4 GiB.
    fn lane_word(&mut self, base: Register, lane: Register) -> Register {
        const { assert!(MAP_WORDS == 32, "a word for each lane") };
        let sum = self.new_register(64);
        let mut code = self.compute(WORD_OF_LANE, class::INTEGER);
        code.instruction.sources[0] = code.read(base.place(), 1).into();
        code.instruction.sources[1] = code.read(lane.place(), 1).into();
        code.instruction.destination = Some(code.write(sum.place(), 1));
        self.push(code);
        let high = self.move32(sum.word(1), Value::None);
        let mut high = high;
        high.instruction.sources[0] = high.read(base.word(1), 1).into();
        self.push(high);
        sum
    }
}
