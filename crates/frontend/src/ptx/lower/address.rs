//! Addresses: of variables, in operands, between generic and other spaces.

use lockstep_isa::{
    Lanes, Operand as Value,
    memory::{AddressOperand, LOCAL_WINDOW, SHARED_WINDOW, Space, WINDOW_SIZE},
    ptx::{Type, class},
    semantics,
    semantics::lane_loops::{Semantics, binary, binary64, mask_of},
};

use super::{
    CONSTANT_BANK, KERNEL_BANK, Lowering, PARAMETER_BASE, RESERVED_SHARED, Register, names::Symbol,
    operands::ReservedPlace,
};
use crate::ptx::{
    error::Error,
    image::{ModuleName, VariablePlace},
    ir::{Amount, Code, Field, Fixup, Place},
    syntax::{Instruction, Operand, Statement, VariableSpace},
};

const ADD: Semantics = semantics!(binary64; |a, b| a.wrapping_add(b));
/// A 32-bit address and a number, as 64 bits.
const ADD_NARROW: Semantics = semantics!(add_narrow);
const ADD32: Semantics = semantics!(binary; |a, b| a.wrapping_add(b));
/// `a` lies in the `c` bytes from `b`.
const WITHIN: Semantics = semantics!(within_range);
/// As [`WITHIN`], the other way round, for two ranges of equal size.
const OUTSIDE_WINDOWS: Semantics = semantics!(outside_windows);

fn add_narrow(l: &mut Lanes<'_>, i: &lockstep_isa::Instruction) {
    let base = l.integer(i.sources[0]);
    let offset = l.integer64(i.sources[1])[0] as u32;
    let sum = lockstep_isa::WarpRegister(base.0.map(|base| base.wrapping_add(offset)));
    l.write(i.destination, 0, &sum);
    l.write(i.destination, 1, &lockstep_isa::WarpRegister::ZERO);
}

fn within_range(l: &mut Lanes<'_>, i: &lockstep_isa::Instruction) {
    let [a, b, c, _] = i.sources.map(|source| l.integer64(source));
    let inside = mask_of(|n| a[n].wrapping_sub(b[n]) < c[n]);
    l.set_predicate(i.predicate_destinations[0], inside);
}

/// `a` is shared memory of the own block, which an address may name by its rank.
const OWN_BLOCK: Semantics = semantics!(in_own_block);

fn in_own_block(l: &mut Lanes<'_>, i: &lockstep_isa::Instruction) {
    let [a, b, ..] = i.sources.map(|source| l.integer64(source));
    let own = u64::from(l.identity.cluster_rank()) + 1;
    let inside = mask_of(|n| {
        let offset = a[n].wrapping_sub(b[n]);
        let named = offset >> 24 & 0xff;
        offset < WINDOW_SIZE && (named == 0 || named == own)
    });
    l.set_predicate(i.predicate_destinations[0], inside);
}

fn outside_windows(l: &mut Lanes<'_>, i: &lockstep_isa::Instruction) {
    let a = l.integer64(i.sources[0]);
    let inside = |x: u64, window: u64| x.wrapping_sub(window) < WINDOW_SIZE;
    let outside = mask_of(|n| !inside(a[n], SHARED_WINDOW) && !inside(a[n], LOCAL_WINDOW));
    l.set_predicate(i.predicate_destinations[0], outside);
}

/// An address that is known up to what is added at the end.
enum Known {
    Number(u64),
    LocalBase(u64),
    KernelWord { slot: u32, offset: i64 },
    Function(usize),
}

impl<'p, 'a> Lowering<'p, 'a> {
    /// Whether a name is a variable or function rather than a register.
    pub(super) fn is_address(&mut self, name: &'a str) -> bool {
        match self.lookup(name) {
            Some(Symbol::Local(_) | Symbol::Shared(_)) => true,
            Some(_) => false,
            None => self.parameters.contains_key(name) || self.symbols.find(name).is_some(),
        }
    }

    /// Address of a variable in its own space, or code address of a function.
    fn known_address(&mut self, name: &'a str, offset: i64) -> Result<Known, Error> {
        let plus = |base: u64| base.wrapping_add(offset as u64);
        match self.lookup(name) {
            Some(Symbol::Local(place)) => return Ok(Known::LocalBase(plus(place))),
            Some(Symbol::Shared(place)) => return Ok(Known::Number(plus(place))),
            _ => {}
        }
        if self.function.is_kernel
            && let Some(index) = self.parameters.get(name)
        {
            let place = self.symbols.parameter_offsets(self.function)[*index];
            return Ok(Known::Number(plus(u64::from(PARAMETER_BASE) + place)));
        }
        match self.symbols.find(name) {
            Some(ModuleName::Variable(index)) => match self.layout.variables[index] {
                VariablePlace::Global(address) => Ok(Known::Number(plus(address))),
                VariablePlace::Texture(index) => Ok(Known::Number(index)),
                VariablePlace::Constant(place) => Ok(Known::Number(plus(place))),
                VariablePlace::Shared(slot) => {
                    if !self.body.shared_variables.contains(&index) {
                        self.body.shared_variables.push(index);
                    }
                    Ok(Known::KernelWord { slot, offset })
                }
                VariablePlace::Undefined => self.wrong(format!(
                    "`{name}` is declared `.extern` and defined in no module that was given"
                )),
            },
            Some(ModuleName::Function(index)) => Ok(Known::Function(index)),
            None => self.unknown(name, "a variable or function"),
        }
    }

    /// The address of a variable as an operand. Local variables and functions get their place at
    /// the end, through the source that the caller fills next.
    pub(super) fn variable_address(
        &mut self,
        code: &mut Code<'a>,
        name: &'a str,
        offset: i64,
    ) -> Result<Value, Error> {
        let source = code
            .instruction
            .sources
            .iter()
            .position(|source| source.operand == Value::None)
            .unwrap_or(0) as u8;
        let field = Field::Source(source);
        match self.known_address(name, offset)? {
            Known::Number(address) => Ok(Value::Immediate(address)),
            Known::LocalBase(address) => match self.frame {
                Some(frame) => {
                    let sum = self.new_register(64);
                    let mut add = self.compute(ADD, class::INTEGER);
                    let place = Place::Virtual {
                        register: frame,
                        word: 0,
                    };
                    add.instruction.sources[0] = add.read(place, 2).into();
                    add.instruction.sources[1] = Value::Immediate(address).into();
                    add.instruction.destination = Some(add.write(sum.place(), 2));
                    self.push(add);
                    Ok(code.read(sum.place(), 2))
                }
                None => {
                    let amount = Amount::LocalBase;
                    code.fixups.push(Fixup { field, amount });
                    Ok(Value::Immediate(address))
                }
            },
            Known::Function(index) => {
                let amount = Amount::Function(index);
                code.fixups.push(Fixup { field, amount });
                Ok(Value::Immediate(0))
            }
            Known::KernelWord { slot, offset: 0 } => Ok(kernel_word(slot)),
            Known::KernelWord { slot, offset } => {
                let sum = self.new_register(64);
                let mut add = self.compute(ADD, class::INTEGER);
                add.instruction.sources[0] = kernel_word(slot).into();
                add.instruction.sources[1] = Value::Immediate(offset as u64).into();
                add.instruction.destination = Some(add.write(sum.place(), 2));
                self.push(add);
                Ok(code.read(sum.place(), 2))
            }
        }
    }

    /// A place in the system's part of shared memory, which lies where the kernel says.
    pub(super) fn reserved_address(&mut self, place: ReservedPlace) -> Register {
        let register = self.new_register(32);
        let code = match place {
            ReservedPlace::Size => self.move32(
                register.place(),
                Value::Immediate(u64::from(RESERVED_SHARED)),
            ),
            ReservedPlace::Offset(offset) => {
                let mut code = self.compute(ADD32, class::INTEGER);
                code.instruction.sources[0] = kernel_word(self.layout.reserved_slot).into();
                code.instruction.sources[1] = Value::Immediate(u64::from(offset)).into();
                code.instruction.destination = Some(code.write(register.place(), 1));
                code
            }
        };
        self.push(code);
        register
    }

    /// `[…]`: base, and number added to it.
    pub(super) fn address(
        &mut self,
        code: &mut Code<'a>,
        operand: &Operand<'a>,
    ) -> Result<AddressOperand, Error> {
        let inner = match operand {
            Operand::Address(list) if list.len() == 1 => &list[0],
            _ => return self.wrong("an address such as [%rd1+4] must stand here"),
        };
        let mut address = AddressOperand {
            base: Value::None,
            wide: true,
            shift: 0,
            uniform: Value::None,
            uniform_wide: false,
            offset: 0,
        };
        let (name, offset) = match inner {
            Operand::Name(name) => (*name, 0),
            Operand::Offset(name, offset) => (*name, *offset),
            Operand::Integer(value) => {
                address.offset = *value;
                return Ok(address);
            }
            _ => return self.wrong("an address such as [%rd1+4] must stand here"),
        };
        if self.is_address(name) {
            match self.known_address(name, offset)? {
                Known::Number(number) => address.offset = number as i64,
                Known::LocalBase(number) => {
                    address.offset = number as i64;
                    match self.frame {
                        Some(register) => {
                            address.base = code.read(Place::Virtual { register, word: 0 }, 2);
                        }
                        None => code.fixups.push(Fixup {
                            field: Field::Offset,
                            amount: Amount::LocalBase,
                        }),
                    }
                }
                Known::KernelWord { slot, offset } => {
                    address.base = kernel_word(slot);
                    address.offset = offset;
                }
                Known::Function(_) => return self.wrong("a function is no memory to access"),
            }
            return Ok(address);
        }
        let register = self.register(name)?;
        address.wide = register.words() >= 2;
        address.base = code.read(register.place(), if address.wide { 2 } else { 1 });
        address.offset = offset;
        Ok(address)
    }

    /// The sum of the parts of an address in a register of its own; `own` names them.
    pub(super) fn address_sum(&mut self, own: Code<'a>, address: AddressOperand) -> Register {
        let sum = self.new_register(64);
        let semantics = if address.wide { ADD } else { ADD_NARROW };
        let mut add = Code {
            uses: own.uses,
            ..self.compute(semantics, class::INTEGER)
        };
        add.instruction.sources[0] = address.base.into();
        add.instruction.sources[1] = Value::Immediate(address.offset as u64).into();
        add.instruction.destination = Some(add.write(sum.place(), 2));
        self.push(add);
        sum
    }

    /// A 64-bit register as an address.
    pub(super) fn register_address(
        &self,
        code: &mut Code<'a>,
        register: Register,
    ) -> AddressOperand {
        AddressOperand {
            base: code.read(register.place(), 2),
            wide: true,
            shift: 0,
            uniform: Value::None,
            uniform_wide: false,
            offset: 0,
        }
    }

    /// The space that an access is made in.
    pub(super) fn access_space(&self, space: Option<VariableSpace>) -> Space {
        match space {
            None => Space::Generic,
            Some(VariableSpace::Global) => Space::Global,
            Some(VariableSpace::Shared) => Space::Shared,
            Some(VariableSpace::Local) => Space::Local,
            Some(VariableSpace::Constant) => Space::Constant {
                bank: CONSTANT_BANK,
            },
            Some(VariableSpace::Parameter) => Space::Constant { bank: 0 },
        }
    }

    /// `cvta.space`, `cvta.to.space`: a number is added.
    pub(super) fn cvta(&mut self, i: &'p Instruction<'a>) -> Result<(), Error> {
        self.expect_operands(&i.operands, 2..=2)?;
        let to_space = i.modifiers.first() == Some(&"to");
        let Some(space) = i.modifiers.iter().find_map(|word| self.space_of(word)) else {
            return self.wrong("`cvta` needs a space such as `.global`");
        };
        let register = self.register_operand(&i.operands[0])?;
        if register.words() != 2 {
            return self.wrong("`cvta` writes 64-bit registers");
        }
        let window = match space {
            VariableSpace::Global => 0,
            VariableSpace::Shared => SHARED_WINDOW,
            VariableSpace::Local => LOCAL_WINDOW,
            VariableSpace::Constant => self.layout.constant_base,
            VariableSpace::Parameter => match self.parameters_in_local {
                Some(place) => (LOCAL_WINDOW + place).wrapping_sub(u64::from(PARAMETER_BASE)),
                None => return self.wrong("only kernel parameters have generic addresses"),
            },
        };
        let shift = if to_space {
            window.wrapping_neg()
        } else {
            window
        };
        let mut code = self.compute(ADD, class::INTEGER);
        code.instruction.sources[0] = self.value(&mut code, &i.operands[1], Type::B64)?.into();
        code.instruction.sources[1] = Value::Immediate(shift).into();
        code.instruction.destination = Some(code.write(register.place(), 2));
        self.push(code);
        Ok(())
    }

    /// `isspacep`: whether a generic address lies in a window.
    pub(super) fn isspacep(&mut self, i: &'p Instruction<'a>) -> Result<(), Error> {
        self.expect_operands(&i.operands, 2..=2)?;
        let Some(space) = i.modifiers.iter().find_map(|word| self.space_of(word)) else {
            return self.wrong("`isspacep` needs a space such as `.global`");
        };
        let own_only = i.modifiers.contains(&"shared::cta") || i.modifiers.contains(&"shared");
        let (semantics, start, size) = match space {
            VariableSpace::Shared if own_only => (OWN_BLOCK, SHARED_WINDOW, 0),
            VariableSpace::Global => (OUTSIDE_WINDOWS, 0, 0),
            VariableSpace::Shared => (WITHIN, SHARED_WINDOW, WINDOW_SIZE),
            VariableSpace::Local => (WITHIN, LOCAL_WINDOW, WINDOW_SIZE),
            VariableSpace::Constant => (
                WITHIN,
                self.layout.constant_base,
                self.layout.constant_bytes,
            ),
            VariableSpace::Parameter => (WITHIN, 0, 0),
        };
        let mut code = self.compute(semantics, class::COMPARE);
        code.instruction.sources[0] = self.value(&mut code, &i.operands[1], Type::B64)?.into();
        code.instruction.sources[1] = Value::Immediate(start).into();
        code.instruction.sources[2] = Value::Immediate(size).into();
        if let Some(flag) = self.written_flag(&i.operands[0])? {
            code.instruction.predicate_destinations[0] = code.write_flag(flag);
        }
        self.push(code);
        Ok(())
    }

    /// Copies the kernel's parameters to local memory if the program makes generic addresses of
    /// them; gives their place.
    pub(super) fn copy_parameters(&mut self) -> Result<Option<u64>, Error> {
        let takes = self
            .function
            .body
            .as_deref()
            .is_some_and(takes_parameter_address);
        if !takes {
            return Ok(None);
        }
        let bytes = self.symbols.parameter_bytes(self.function);
        let place = self.body.local_bytes.next_multiple_of(16);
        self.body.local_bytes = place + u64::from(bytes).next_multiple_of(4);
        self.counted = true;
        for word in 0..bytes.div_ceil(4) {
            let value = self.new_register(32);
            let from = Value::Constant {
                bank: 0,
                offset: PARAMETER_BASE + 4 * word,
            };
            let code = self.move32(value.place(), from);
            self.push(code);
            self.store_local(place + u64::from(4 * word), value);
        }
        Ok(Some(place))
    }
}

fn kernel_word(slot: u32) -> Value {
    Value::Constant {
        bank: KERNEL_BANK,
        offset: 8 * slot,
    }
}

fn takes_parameter_address(statements: &[Statement<'_>]) -> bool {
    statements.iter().any(|statement| match statement {
        Statement::Instruction(i) => i.opcode == "cvta" && i.modifiers.contains(&"param"),
        Statement::Block(inner) => takes_parameter_address(inner),
        _ => false,
    })
}
