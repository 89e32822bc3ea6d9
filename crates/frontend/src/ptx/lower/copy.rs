//! Prefetches, cache control and copies to shared memory.

use lockstep_isa::{
    Operand as Value, Operation,
    memory::{Action, CachePolicy, Element, Space, Strength},
    operand::PredicateOperand,
    ptx::Type,
};

use super::{Lowering, memory::MEMORY, names::Symbol};
use crate::ptx::{
    error::Error,
    syntax::{Instruction, Operand},
};

impl<'p, 'a> Lowering<'p, 'a> {
    /// `prefetch` and cache control: no value moves.
    pub(super) fn prefetch(&mut self, i: &'p Instruction<'a>) -> Result<(), Error> {
        if i.modifiers.contains(&"tensormap") {
            self.push(self.code(Operation::Nothing, MEMORY));
            return Ok(());
        }
        let modifiers = self.access_modifiers(i)?;
        let Some(first) = i.operands.first() else {
            return self.wrong("an address must stand here");
        };
        let mut code = self.code(Operation::Nothing, MEMORY);
        let address = self.address(&mut code, first)?;
        let action = match i.opcode {
            "prefetch" | "prefetchu" => Action::Prefetch,
            _ => Action::CacheControl,
        };
        let operation = self.access(
            action,
            self.access_space(modifiers.space),
            Element::U8,
            address,
            Strength::Weak,
            CachePolicy::Default,
        );
        self.push_access(code, operation);
        Ok(())
    }

    /// `cp.async` and the waiting for it. Copies are made at once, so that groups need no count.
    pub(super) fn copy(&mut self, i: &'p Instruction<'a>) -> Result<(), Error> {
        let second = i.modifiers.get(1).copied().unwrap_or("");
        if i.modifiers.contains(&"bulk") {
            return self.bulk(i);
        }
        if second == "mbarrier" {
            return self.copy_arrives(i);
        }
        if i.modifiers.first() != Some(&"async") {
            return self.wrong("`cp` is followed by `.async` or `.reduce.async`");
        }
        if matches!(second, "commit_group" | "wait_group" | "wait_all") {
            self.push(self.code(Operation::Nothing, MEMORY));
            return Ok(());
        }
        self.expect_operands(&i.operands, 3..=5)?;
        let element = match self.literal(&i.operands[2], Type::B32)? {
            Some(4) => Element::B32,
            Some(8) => Element::B64,
            Some(16) => Element::B128,
            _ => return self.wrong("a copy is of 4, 8 or 16 bytes"),
        };
        let mut code = self.code(Operation::Nothing, MEMORY);
        let to = self.address(&mut code, &i.operands[0])?;
        let from = self.address(&mut code, &i.operands[1])?;
        let cache = if second == "cg" {
            CachePolicy::L2Only
        } else {
            CachePolicy::Default
        };
        let mut operation = self.access(
            Action::CopyToShared,
            Space::Global,
            element,
            from,
            Strength::Weak,
            cache,
        );
        operation.values[0] = to.base;
        operation.values[2] = Value::Immediate(to.offset as u64);
        let hinted = i.modifiers.contains(&"L2::cache_hint");
        let extra = &i.operands[3..i.operands.len() - usize::from(hinted)];
        if let Some(extra) = extra.first() {
            if self.is_flag(extra) {
                // The source is ignored where the predicate holds.
                let ignored = self.predicate(&mut code, extra)?;
                code.instruction.predicates[0] = PredicateOperand {
                    negate: !ignored.negate,
                    ..ignored
                };
            } else {
                operation.values[1] = self.value(&mut code, extra, Type::B32)?;
            }
        }
        self.push_access(code, operation);
        Ok(())
    }

    fn is_flag(&mut self, operand: &Operand<'a>) -> bool {
        match operand {
            Operand::Name(name) => matches!(self.lookup(name), Some(Symbol::Flag(_))),
            Operand::Negated(_) => true,
            _ => false,
        }
    }
}
