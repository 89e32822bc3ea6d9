//! Barriers in shared memory: `SYNCS` of Hopper, `ARRIVES.LDGSTSBAR` of Ampere and Hopper.

use super::super::bind::{BindError, Spelling};
use super::{destination, finish, operation, values};
use crate::{
    instruction::Instruction,
    memory::{Action, AfterCopies, Amount, Element, MbarrierAction, MbarrierResult, Space},
    operand::{Operand, PredicateRegister},
    sass::decoded::Value,
};

/// `SYNCS` in all its forms.
pub(super) fn syncs(spelling: &Spelling<'_>) -> Result<Instruction, BindError> {
    if spelling.has("EXCH") {
        return exchange(spelling);
    }
    if spelling.has("ARRIVE") {
        return arrive(spelling);
    }
    if spelling.has("PHASECHK") {
        return test(spelling);
    }
    if spelling.has("IV") {
        return finished(spelling, MbarrierAction::Invalidate, None);
    }
    Ok(spelling.unsupported("works on all barriers at once, which cannot be executed yet"))
}

/// `ARRIVES.LDGSTSBAR`: when the copies of the warp are complete.
pub(super) fn after_copies(spelling: &Spelling<'_>) -> Result<Instruction, BindError> {
    let then = if spelling.has("ARVCNT") {
        AfterCopies::Arrive
    } else if spelling.has("TRANSCNT") {
        AfterCopies::CompleteTransaction
    } else if spelling.frame.architecture < 90 {
        AfterCopies::ArriveAmpere
    } else {
        return Ok(spelling.unsupported("counts neither arrivals nor transactions"));
    };
    let announces = false;
    let action = MbarrierAction::AfterCopies { then, announces };
    finished(spelling, action, None)
}

fn exchange(spelling: &Spelling<'_>) -> Result<Instruction, BindError> {
    let old = match spelling.operands().first().map(|operand| operand.value) {
        Some(Value::UniformRegister(index)) => spelling.frame.uniform(index),
        _ => return Err(BindError::new("has no destination register")),
    };
    finished(spelling, MbarrierAction::Exchange, old)
}

fn arrive(spelling: &Spelling<'_>) -> Result<Instruction, BindError> {
    use Amount::{One, Value, Zero};
    let named = spelling.words.iter().find_map(|word| {
        Some(match *word {
            "A1T0" => (One, Zero),
            "A0T1" => (Zero, One),
            "A0TR" | "A0TX" => (Zero, Value),
            "ART0" => (Value, Zero),
            _ => return None,
        })
    });
    let (arrivals, transactions) = named.unwrap_or((One, Value));
    let returns = if spelling.has("RED") {
        MbarrierResult::Nothing
    } else if spelling.has("TMASK") {
        MbarrierResult::Lanes
    } else {
        MbarrierResult::State
    };
    let action = MbarrierAction::Change {
        arrivals,
        transactions,
        completes: spelling.has("A0TX"),
        drops: spelling.has("OPTOUT"),
        returns,
    };
    finished(spelling, action, destination(spelling)?)
}

fn test(spelling: &Spelling<'_>) -> Result<Instruction, BindError> {
    let action = MbarrierAction::Test {
        by_parity: false,
        waits: spelling.has("TRYWAIT"),
    };
    let mut instruction = finished(spelling, action, None)?;
    let register = spelling
        .operands()
        .iter()
        .find_map(|operand| spelling.predicate(operand));
    instruction.predicate_destinations[0] =
        register.map_or(PredicateRegister::True, |operand| operand.register);
    Ok(instruction)
}

fn finished(
    spelling: &Spelling<'_>,
    action: MbarrierAction,
    destination: Option<u16>,
) -> Result<Instruction, BindError> {
    let mut operation = operation(spelling, Space::Shared, Action::Mbarrier(action), 0)?;
    operation.element = Element::B64;
    operation.data[0] = destination;
    if let Some(value) = values(spelling)?.first() {
        operation.values[0] = spelling.source(value)?.operand;
    }
    if let (MbarrierAction::Exchange, Operand::Register(low)) = (action, operation.values[0]) {
        operation.values[1] = Operand::Register(low + 1);
    }
    let has_value = operation.values[0] != Operand::None;
    Ok(finish(operation, destination, u8::from(has_value)))
}
