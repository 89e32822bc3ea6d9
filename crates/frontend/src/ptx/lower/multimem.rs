//! Accesses to multicast objects: `multimem.ld_reduce`, `multimem.st`, `multimem.red`.
//!
//! Stores and reductions are those of other addresses, as they are in machine code: the address says that they go to
//! every member.

use lockstep_isa::{
    Operation,
    memory::{Accumulation, Action},
};

use super::{
    Lowering,
    atomic::{atomic_operation, atomic_type},
    memory::MEMORY,
};
use crate::ptx::{
    error::Error,
    syntax::{Instruction, Operand},
};

impl<'p, 'a> Lowering<'p, 'a> {
    pub(super) fn multimem(&mut self, i: &'p Instruction<'a>) -> Result<(), Error> {
        if i.modifiers
            .iter()
            .any(|word| word.starts_with("e4m3") || word.starts_with("e5m2"))
        {
            return self.stop(
                i,
                "works on floats of 8 bits, which no GPU here has multicast for",
            );
        }
        match i.modifiers.first().copied() {
            Some("ld_reduce") => self.load_reduced(i),
            Some("st") => self.store(i),
            Some("red") => self.atomic(i),
            _ => self.stop(
                i,
                "copies in bulk to a multicast object, which is not modelled",
            ),
        }
    }

    fn load_reduced(&mut self, i: &'p Instruction<'a>) -> Result<(), Error> {
        self.expect_operands(&i.operands, 2..=3)?;
        let modifiers = self.access_modifiers(i)?;
        let Some(operation) = i.modifiers.iter().find_map(|word| atomic_operation(word)) else {
            return self.wrong("a reduction needs an operation such as `.add`");
        };
        let Some(scalar) = modifiers.scalar else {
            return self.wrong("a reduction needs a type such as `.u32`");
        };
        let name = i.modifiers.last().copied().unwrap_or("");
        // Sums over the members keep subnormals: `LDGMC` has no form that flushes them.
        let kept = super::memory::Modifiers {
            no_flush: true,
            ..modifiers
        };
        let Some(kind) = atomic_type(name, scalar, operation, &kept) else {
            return self.wrong(format!("`.{name}` has no such reduction"));
        };
        let accumulation = match i.modifiers.contains(&"acc::f32") {
            true => Accumulation::Single,
            false => Accumulation::Element,
        };
        let targets = Self::elements(&i.operands[0]);
        if targets.len() != usize::from(modifiers.elements) {
            return self.wrong(format!("{} elements expected", modifiers.elements));
        }
        let read = Self::address_parts(&i.operands[1]);
        if targets.len() > 4 && read.iter().any(|operand| targets.contains(operand)) {
            return self.stop(i, "writes a register that it reads, which is not modelled");
        }
        let mut skipped = 0;
        // More than four elements go in two parts; the first one counts.
        for part in targets.chunks(4) {
            let mut code = self.code(Operation::Nothing, MEMORY);
            let mut address = self.address(&mut code, &i.operands[1])?;
            address.offset = address.offset.wrapping_add(skipped);
            skipped += part.len() as i64 * i64::from(kind.bytes());
            let mut access = self.access(
                Action::LoadReduce(operation, kind, accumulation),
                self.access_space(modifiers.space),
                kind.element(),
                address,
                self.strength(&modifiers, None),
                modifiers.cache,
            );
            access.elements = part.len() as u8;
            for (slot, target) in access.data.iter_mut().zip(part) {
                if *target == Operand::Sink {
                    continue;
                }
                let register = self.register_operand(target)?;
                if register.words() != access.element.words() {
                    return self.wrong("the register is not as wide as the element");
                }
                *slot = Some(code.write(register.place(), access.element.words()));
            }
            code.communicates = true;
            self.push_access(code, access);
        }
        Ok(())
    }
}
