//! Operands of an arithmetic instruction: which are destinations, sources and predicates.

use super::super::bind::{BindError, Spelling, UNIFORM_PREDICATES, predicate_register};
use crate::{
    instruction::Instruction,
    operand::{Operand, PredicateOperand, PredicateRegister, Source},
    sass::decoded::Value,
};

/// Destinations stand in front: predicates, a register, predicates again. The rest are sources.
pub(super) fn place_operands(
    spelling: &Spelling<'_>,
    instruction: &mut Instruction,
) -> Result<(), BindError> {
    let operands = spelling.operands();
    let first_source = place_destinations(spelling, instruction);
    let (mut sources, mut predicates) = (0, 0);
    let mut source = |instruction: &mut Instruction, source: Source| {
        let Some(slot) = instruction.sources.get_mut(sources) else {
            return Err(BindError::new(
                "has more sources than an instruction can have",
            ));
        };
        *slot = source;
        sources += 1;
        Ok(())
    };
    let look_up_table = matches!(spelling.name, "LOP3" | "ULOP3")
        .then(|| {
            operands
                .iter()
                .rposition(|operand| matches!(operand.value, Value::Immediate(_)))
        })
        .flatten();
    for (position, operand) in operands.iter().enumerate().skip(first_source) {
        if let Some(predicate) = spelling.predicate(operand) {
            let Some(slot) = instruction.predicates.get_mut(predicates) else {
                return Err(BindError::new(
                    "has more predicates than an instruction can have",
                ));
            };
            *slot = predicate;
            predicates += 1;
            continue;
        }
        match operand.value {
            // Look-up tables of LOP3 and PLOP3 went into the modifiers.
            Value::Immediate(_) if matches!(spelling.name, "PLOP3" | "UPLOP3") => {}
            Value::Immediate(_) if look_up_table == Some(position) => {}
            // So did the selector of sparse matrices.
            Value::Immediate(_) if matches!(spelling.name, "HMMA" | "IMMA") => {}
            Value::SpecialRegister(_) | Value::PredicateFile { .. } => {}
            _ => source(instruction, spelling.source(operand)?)?,
        }
    }
    finish_operands(spelling, instruction, predicates);
    Ok(())
}

/// Places what stands in front and gives the position of the first source.
fn place_destinations(spelling: &Spelling<'_>, instruction: &mut Instruction) -> usize {
    let operands = spelling.operands();
    let mut written = 0;
    let mut next = 0;
    let mut write = |instruction: &mut Instruction, register: PredicateRegister| {
        if written < 2 {
            instruction.predicate_destinations[written] = register;
            written += 1;
        }
    };
    let sets_predicates_only = matches!(
        spelling.name,
        "ISETP"
            | "UISETP"
            | "FSETP"
            | "DSETP"
            | "HSETP2"
            | "PLOP3"
            | "UPLOP3"
            | "FCHK"
            | "R2P"
            | "UR2UP"
    );
    let leading = match spelling.name {
        "FCHK" => 1,
        "VOTE" | "VOTEU" | "ELECT" | "R2UR" | "SHFL" | "LOP3" | "ULOP3" | "MATCH" => 1,
        "R2P" | "UR2UP" => 0,
        _ => 2,
    };
    while next < operands.len() && next < leading {
        let Some(register) = predicate_register(operands[next].value) else {
            break;
        };
        write(instruction, register);
        next += 1;
    }
    if !sets_predicates_only
        && let Some(operand) = operands.get(next)
        && let Value::Register(_) | Value::UniformRegister(_) = operand.value
    {
        instruction.destination = match operand.value {
            Value::Register(index) => spelling.frame.register(index),
            Value::UniformRegister(index) => spelling.frame.uniform(index),
            _ => None,
        };
        next += 1;
        let last_is_source = matches!(spelling.name, "VOTE" | "VOTEU");
        while next + usize::from(last_is_source) < operands.len() {
            let Some(register) = predicate_register(operands[next].value) else {
                break;
            };
            if operands[next].invert || matches!(spelling.name, "SEL" | "USEL") {
                break;
            }
            write(instruction, register);
            next += 1;
        }
    }
    next
}

/// What the order of operands does not say.
fn finish_operands(spelling: &Spelling<'_>, instruction: &mut Instruction, predicates: usize) {
    match spelling.name {
        // `LEA R, a, b, shift` has no high word; `.SX32` neither.
        "LEA" | "ULEA" => {
            let values = spelling
                .operands()
                .iter()
                .filter(|operand| predicate_register(operand.value).is_none())
                .count();
            if values == 4 {
                instruction.sources[3] = instruction.sources[2];
                instruction.sources[2] = Source::default();
            }
        }
        "IADD3" | "UIADD3" if predicates == 0 => {
            instruction.predicates = [PredicateOperand::FALSE; 3];
        }
        // Which predicates move; without a mask all of a byte do.
        "P2R" | "R2P" => instruction.sources[2] = Operand::Immediate(0).into(),
        "UP2UR" | "UR2UP" => {
            if instruction.sources[1].operand == Operand::None {
                instruction.sources[1] = Operand::Immediate(0xff).into();
            }
            instruction.sources[2] = Operand::Immediate(UNIFORM_PREDICATES.into()).into();
        }
        _ => {}
    }
}
