//! `mbarrier` in all forms, and `cp.async.mbarrier.arrive`.

use lockstep_isa::{
    Operation,
    memory::{
        Action, AfterCopies, Amount, CachePolicy, Element, MbarrierAction, MbarrierResult, Order,
        Scope, Space, Strength,
    },
    ptx::{Type, class},
    semantics,
    semantics::{lane_loops::Semantics, mbarrier},
};

use super::{Lowering, memory::MEMORY};
use crate::ptx::{
    error::Error,
    syntax::{Instruction, Operand},
};

const PENDING_COUNT: Semantics = semantics!(pending_count);

fn pending_count(l: &mut lockstep_isa::Lanes<'_>, i: &lockstep_isa::Instruction) {
    let tokens = l.integer64(i.sources[0]);
    let counts = std::array::from_fn(|lane| mbarrier::pending_count(tokens[lane]));
    l.write(i.destination, 0, &lockstep_isa::WarpRegister(counts));
}

impl<'p, 'a> Lowering<'p, 'a> {
    pub(super) fn mbarrier(&mut self, i: &'p Instruction<'a>) -> Result<(), Error> {
        match i.modifiers.first().copied().unwrap_or("") {
            "init" => self.mbarrier_simple(i, MbarrierAction::Initialize, 2),
            "inval" => self.mbarrier_simple(i, MbarrierAction::Invalidate, 1),
            "expect_tx" => self.mbarrier_simple(i, transactions(false), 2),
            "complete_tx" => self.mbarrier_simple(i, transactions(true), 2),
            "arrive" => self.mbarrier_arrive(i, false),
            "arrive_drop" => self.mbarrier_arrive(i, true),
            "test_wait" => self.mbarrier_test(i, false),
            "try_wait" => self.mbarrier_test(i, true),
            "pending_count" => self.mbarrier_pending(i),
            other => self.wrong(format!("`mbarrier.{other}` is no operation")),
        }
    }

    /// Those that return nothing: an address, and perhaps a number.
    fn mbarrier_simple(
        &mut self,
        i: &'p Instruction<'a>,
        action: MbarrierAction,
        operands: usize,
    ) -> Result<(), Error> {
        self.expect_operands(&i.operands, operands..=operands)?;
        self.mbarrier_access(i, action, None, &i.operands[0], i.operands.get(1))
    }

    fn mbarrier_arrive(&mut self, i: &'p Instruction<'a>, drops: bool) -> Result<(), Error> {
        self.expect_operands(&i.operands, 2..=3)?;
        let count = i.operands.get(2);
        let (arrivals, transactions) = match (i.modifiers.contains(&"expect_tx"), count) {
            (true, _) => (Amount::One, Amount::Value),
            (false, Some(_)) => (Amount::Value, Amount::Zero),
            (false, None) => (Amount::One, Amount::Zero),
        };
        let sink = i.operands[0] == Operand::Sink;
        let action = MbarrierAction::Change {
            arrivals,
            transactions,
            completes: false,
            drops,
            returns: if sink {
                MbarrierResult::Nothing
            } else {
                MbarrierResult::State
            },
        };
        let result = (!sink).then_some(&i.operands[0]);
        self.mbarrier_access(i, action, result, &i.operands[1], count)
    }

    fn mbarrier_access(
        &mut self,
        i: &'p Instruction<'a>,
        action: MbarrierAction,
        result: Option<&Operand<'a>>,
        place: &Operand<'a>,
        value: Option<&Operand<'a>>,
    ) -> Result<(), Error> {
        let mut code = self.code(Operation::Nothing, MEMORY);
        let address = self.address(&mut code, place)?;
        let mut access = self.access(
            Action::Mbarrier(action),
            mbarrier_space(i),
            Element::B64,
            address,
            mbarrier_strength(i),
            CachePolicy::Default,
        );
        if let Some(value) = value {
            access.values[0] = self.value(&mut code, value, Type::B32)?;
        }
        if let Some(result) = result {
            let register = self.register_operand(result)?;
            if register.words() < 2 {
                return self.wrong("the state of a barrier has 64 bits");
            }
            access.data[0] = Some(code.write(register.place(), 2));
        }
        self.push_access(code, access);
        Ok(())
    }

    fn mbarrier_test(&mut self, i: &'p Instruction<'a>, waits: bool) -> Result<(), Error> {
        self.expect_operands(&i.operands, 3..=if waits { 4 } else { 3 })?;
        let by_parity = i.modifiers.contains(&"parity");
        let mut code = self.code(Operation::Nothing, MEMORY);
        let address = self.address(&mut code, &i.operands[1])?;
        let mut access = self.access(
            Action::Mbarrier(MbarrierAction::Test { by_parity, waits }),
            mbarrier_space(i),
            Element::B64,
            address,
            Strength::Weak,
            CachePolicy::Default,
        );
        access.values[0] = if by_parity {
            self.value(&mut code, &i.operands[2], Type::B32)?
        } else {
            // The upper word of the state has the phase.
            let state = self.register_operand(&i.operands[2])?;
            if state.words() < 2 {
                return self.wrong("the state of a barrier has 64 bits");
            }
            code.read(state.word(1), 1)
        };
        if let Some(hint) = i.operands.get(3) {
            access.values[1] = self.value(&mut code, hint, Type::B32)?;
        }
        if let Some(flag) = self.written_flag(&i.operands[0])? {
            code.instruction.predicate_destinations[0] = code.write_flag(flag);
        }
        self.push_access(code, access);
        Ok(())
    }

    fn mbarrier_pending(&mut self, i: &'p Instruction<'a>) -> Result<(), Error> {
        self.expect_operands(&i.operands, 2..=2)?;
        let mut code = self.compute(PENDING_COUNT, class::INTEGER);
        code.instruction.sources[0] = self.value(&mut code, &i.operands[1], Type::B64)?.into();
        let register = self.register_operand(&i.operands[0])?;
        code.instruction.destination = Some(code.write(register.place(), 1));
        self.push(code);
        Ok(())
    }

    /// `cp.async.mbarrier.arrive`: when the copies of the thread are complete.
    pub(super) fn copy_arrives(&mut self, i: &'p Instruction<'a>) -> Result<(), Error> {
        self.expect_operands(&i.operands, 1..=1)?;
        let action = if i.modifiers.contains(&"noinc") {
            MbarrierAction::AfterCopies {
                then: AfterCopies::Arrive,
                announces: false,
            }
        } else {
            // Pending arrivals are as many after it as before; it is a transaction as long as it lasts.
            MbarrierAction::AfterCopies {
                then: AfterCopies::CompleteTransaction,
                announces: true,
            }
        };
        self.mbarrier_access(i, action, None, &i.operands[0], None)
    }
}

fn transactions(completes: bool) -> MbarrierAction {
    MbarrierAction::Change {
        arrivals: Amount::Zero,
        transactions: Amount::Value,
        completes,
        drops: false,
        returns: MbarrierResult::Nothing,
    }
}

fn mbarrier_space(i: &Instruction<'_>) -> Space {
    let shared = i.modifiers.iter().any(|word| word.starts_with("shared"));
    if shared {
        Space::Shared
    } else {
        Space::Generic
    }
}

/// Arrivals release by default, for the block.
fn mbarrier_strength(i: &Instruction<'_>) -> Strength {
    let has = |word: &str| i.modifiers.contains(&word);
    if has("cluster") && !has("relaxed") {
        Strength::Strong {
            scope: Scope::Cluster,
            order: Order::Release,
        }
    } else {
        Strength::Weak
    }
}
