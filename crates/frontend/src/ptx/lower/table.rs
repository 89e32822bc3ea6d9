//! Instructions that the tables of `isa::ptx` know.

use std::{collections::BTreeMap, sync::OnceLock};

use lockstep_isa::{
    Operand as Value,
    ptx::{Entry, FAMILIES, Pattern, Slot, Type},
    semantics::Modifiers,
};

use super::{Lowering, Register};
use crate::ptx::{
    error::Error,
    ir::{Code, Uniformity},
    syntax::{Instruction, Operand},
};

/// Rows by opcode, their spellings read once.
type Index = BTreeMap<&'static str, Vec<Row>>;

/// How it is spelled, what it does, and whether lanes see each other in it.
type Row = (Pattern, &'static Entry, bool);

fn index() -> &'static Index {
    static INDEX: OnceLock<Index> = OnceLock::new();
    INDEX.get_or_init(|| {
        let mut index = Index::new();
        for (family, entries) in FAMILIES {
            for entry in *entries {
                let pattern = Pattern::new(entry.spelling);
                let row = (pattern.clone(), entry, *family == "warp");
                index.entry(pattern.opcode).or_default().push(row);
            }
        }
        index
    })
}

/// Fewest and most operands that a row is written with.
fn operand_counts(entry: &Entry) -> (usize, usize) {
    let written = |slot: &&Slot| !matches!(slot, Slot::CarryIn | Slot::CarryOut);
    let most = entry.operands.iter().filter(written).count();
    let optional = entry
        .operands
        .iter()
        .filter(|slot| **slot == Slot::OptionalPredicate)
        .count();
    (most - optional, most)
}

impl<'p, 'a> Lowering<'p, 'a> {
    pub(super) fn by_table(&mut self, i: &'p Instruction<'a>) -> Result<(), Error> {
        let rows = index().get(i.opcode).map_or(&[][..], Vec::as_slice);
        let found = rows.iter().find_map(|(pattern, entry, lanes_meet)| {
            let (fewest, most) = operand_counts(entry);
            let bits = pattern.matches(&i.modifiers)?;
            (fewest..=most)
                .contains(&i.operands.len())
                .then_some((bits, *entry, *lanes_meet))
        });
        let Some((bits, entry, lanes_meet)) = found else {
            let spelled = |row: &Row| row.0.matches(&i.modifiers).is_some();
            if !rows.is_empty() && !rows.iter().any(spelled) {
                // A form of a known instruction that a newer compiler may write matters when it runs.
                self.stop_at(i, "has modifiers that are not modelled");
                return Ok(());
            }
            let mut spelling = i.opcode.to_owned();
            for modifier in &i.modifiers {
                spelling.push('.');
                spelling.push_str(modifier);
            }
            return Err(Error::UnknownInstruction {
                position: i.position,
                spelling,
                operands: i.operands.len(),
                text: i.text.to_owned(),
            });
        };
        let mut code = self.compute(entry.semantics, entry.class);
        code.instruction.modifiers = bits;
        if lanes_meet {
            code.uniformity = Uniformity::Divergent;
        }
        let extended = self.bind(&mut code, entry, i)?;
        if lanes_meet && i.modifiers.contains(&"sync") {
            // The member mask is the last source of every row of this family.
            let last = code
                .instruction
                .sources
                .iter()
                .rev()
                .map(|source| source.operand);
            code.converged_lanes = last.into_iter().find(|operand| *operand != Value::None);
        }
        self.push(code);
        if let Some((narrow, register)) = extended {
            self.extend(register, narrow, self.writes_signed(i));
        }
        Ok(())
    }

    /// Whether the type that a conversion writes is signed.
    fn writes_signed(&self, i: &Instruction<'_>) -> bool {
        let place = i.modifiers.len().checked_sub(2);
        place.is_some_and(|place| i.modifiers[place].starts_with('s'))
    }

    /// Fills operands in by their slots. Gives a narrow temporary and the wider register that it
    /// must be extended into, where the program asks for that.
    fn bind(
        &mut self,
        code: &mut Code<'a>,
        entry: &'static Entry,
        i: &'p Instruction<'a>,
    ) -> Result<Option<(Register, Register)>, Error> {
        let mut operands = i.operands.iter();
        let mut sources = 0;
        let mut predicates = 0;
        let mut extended = None;
        for slot in entry.operands {
            match slot {
                Slot::CarryIn => {
                    let carry = self.carry_flag();
                    code.instruction.predicates[0] = code.read_flag(carry, false);
                    continue;
                }
                Slot::CarryOut => {
                    let carry = self.carry_flag();
                    code.instruction.predicate_destinations[0] = code.write_flag(carry);
                    continue;
                }
                _ => {}
            }
            let Some(operand) = operands.next() else {
                continue; // optional
            };
            match slot {
                Slot::Write(kind) => extended = self.bind_write(code, operand, *kind)?,
                Slot::WriteWithPredicate(kind) => match operand {
                    Operand::Pair(register, predicate) => {
                        extended = self.bind_write(code, register, *kind)?;
                        if let Some(flag) = self.written_flag(predicate)? {
                            code.instruction.predicate_destinations[0] = code.write_flag(flag);
                        }
                    }
                    _ => extended = self.bind_write(code, operand, *kind)?,
                },
                Slot::WritePredicate => {
                    let (first, second) = match operand {
                        Operand::Pair(first, second) => (&**first, Some(&**second)),
                        only => (only, None),
                    };
                    for (place, operand) in [Some(first), second].into_iter().flatten().enumerate()
                    {
                        if let Some(flag) = self.written_flag(operand)? {
                            code.instruction.predicate_destinations[place] = code.write_flag(flag);
                        }
                    }
                }
                Slot::Read(kind) => {
                    code.instruction.sources[sources] = self.value(code, operand, *kind)?.into();
                    sources += 1;
                }
                Slot::ReadPredicate | Slot::OptionalPredicate => {
                    code.instruction.predicates[predicates] = self.predicate(code, operand)?;
                    predicates += 1;
                }
                Slot::Byte => match self.literal(operand, Type::B32)? {
                    Some(bits) if bits < 256 => {
                        code.instruction.modifiers |= bits << Modifiers::FREE;
                    }
                    _ => return self.wrong("this operand must be a number from 0 to 255"),
                },
                Slot::CarryIn | Slot::CarryOut => {}
            }
        }
        Ok(extended)
    }

    fn bind_write(
        &mut self,
        code: &mut Code<'a>,
        operand: &Operand<'a>,
        kind: Type,
    ) -> Result<Option<(Register, Register)>, Error> {
        if *operand == Operand::Sink {
            return Ok(None);
        }
        let register = self.register_operand(operand)?;
        if register.words() < kind.words() {
            return self.wrong(format!(
                "a register of {} bits stands where {} bits are written",
                register.scalar.bits,
                kind.bits()
            ));
        }
        if register.words() > kind.words() {
            let narrow = self.new_register(32);
            code.instruction.destination = Some(code.write(narrow.place(), kind.words()));
            return Ok(Some((narrow, register)));
        }
        code.instruction.destination = Some(code.write(register.place(), kind.words()));
        Ok(None)
    }

    /// Flag of `add.cc` and its kin.
    fn carry_flag(&mut self) -> u32 {
        if let Some(flag) = self.carry {
            return flag;
        }
        let flag = self.new_flag();
        self.carry = Some(flag);
        flag
    }
}
