//! Clusters: addresses of other blocks' shared memory, the barrier of a cluster, asynchronous stores; and grids that
//! begin before the one before has ended.
//!
//! Bits 24-31 of a shared address are 0 for the block's own memory, else the rank of a block plus one.

use lockstep_isa::{
    Instruction as Isa, Lanes, Operand as Value, Operation, WarpRegister,
    instruction::{GridOperation, Latency, Mix, Unit},
    memory::{
        Action, AddressOperand, CachePolicy, Element, FenceOperation, Scope, Space, Strength,
    },
    ptx::{Class, Type, class},
    semantics,
    semantics::lane_loops::{Semantics, map_lanes},
};

use super::{Lowering, Register, atomic::atomic_operation, memory::MEMORY, moves::type_of};
use crate::ptx::{
    error::Error,
    ir::{Code, Uniformity},
    syntax::{Instruction, Operand, Scalar},
};

const MEETING: Class = Class {
    unit: Unit::Miscellaneous,
    latency: Latency::Barrier,
    mix: Mix::Other,
};

const MAPA: Semantics = semantics!(map_address);
const RANK: Semantics = semantics!(rank_of_address);

/// The same place in the memory of the block whose rank is the second operand.
fn map_address(l: &mut Lanes<'_>, i: &Isa) {
    let (place, rank) = (l.integer(i.sources[0]), l.integer(i.sources[1]));
    let mapped = map_lanes(|n| place.0[n] & 0xff_ffff | rank.0[n].wrapping_add(1) << 24);
    l.write(i.destination, 0, &mapped);
}

fn rank_of_address(l: &mut Lanes<'_>, i: &Isa) {
    let place = l.integer(i.sources[0]);
    let own = l.identity.cluster_rank();
    let rank = map_lanes(|n| match place.0[n] >> 24 {
        0 => own,
        named => named - 1,
    });
    l.write(i.destination, 0, &rank);
}

impl<'p, 'a> Lowering<'p, 'a> {
    /// `mapa`: a shared address of 32 bits, or a generic one of 64, whose upper word stays.
    pub(super) fn mapa(&mut self, i: &'p Instruction<'a>) -> Result<(), Error> {
        self.expect_operands(&i.operands, 3..=3)?;
        let target = self.register_operand(&i.operands[0])?;
        let wide = target.words() == 2;
        let kind = if wide { Type::B64 } else { Type::B32 };
        let place = self.new_register(32 * u32::from(target.words()));
        self.copy_value(place, &i.operands[1], kind)?;
        let mut code = self.compute(MAPA, class::INTEGER);
        code.instruction.sources[0] = code.read(place.place(), 1).into();
        code.instruction.sources[1] = self.value(&mut code, &i.operands[2], Type::B32)?.into();
        code.instruction.destination = Some(code.write(target.place(), 1));
        self.push(code);
        if wide {
            let mut code = self.move32(target.word(1), Value::Immediate(0));
            code.instruction.sources[0] = code.read(place.word(1), 1).into();
            self.push(code);
        }
        Ok(())
    }

    /// Puts an operand into a register of its own, so that its words can be read apart.
    fn copy_value(&mut self, to: Register, operand: &Operand<'a>, kind: Type) -> Result<(), Error> {
        let mut code = if to.words() == 2 {
            self.move64(to.place(), Value::Immediate(0))
        } else {
            self.move32(to.place(), Value::Immediate(0))
        };
        code.instruction.sources[0] = Value::None.into();
        code.instruction.sources[0] = self.value(&mut code, operand, kind)?.into();
        self.push(code);
        Ok(())
    }

    /// `getctarank`.
    pub(super) fn cluster_rank(&mut self, i: &'p Instruction<'a>) -> Result<(), Error> {
        self.expect_operands(&i.operands, 2..=2)?;
        let wide = i.modifiers.contains(&"u64");
        let kind = if wide { Type::B64 } else { Type::B32 };
        let target = self.register_operand(&i.operands[0])?;
        let mut code = self.compute(RANK, class::INTEGER);
        code.instruction.sources[0] = self.value(&mut code, &i.operands[1], kind)?.into();
        code.instruction.destination = Some(code.write(target.place(), 1));
        self.push(code);
        Ok(())
    }

    /// `barrier.cluster.arrive`, which releases unless it says otherwise, and `.wait`.
    pub(super) fn cluster_barrier(&mut self, i: &'p Instruction<'a>) -> Result<(), Error> {
        self.expect_operands(&i.operands, 0..=0)?;
        let has = |word: &str| i.modifiers.contains(&word);
        let operation = if has("arrive") {
            if !has("relaxed") {
                let fence = FenceOperation {
                    scope: Scope::Cluster,
                    sequential: false,
                };
                self.push(self.code(Operation::Fence(fence), MEETING));
            }
            GridOperation::ClusterArrive
        } else if has("wait") {
            GridOperation::ClusterWait
        } else {
            return self.wrong("a barrier of a cluster is `.arrive` or `.wait`");
        };
        self.push_grid(operation);
        Ok(())
    }

    /// `griddepcontrol`.
    pub(super) fn grid_dependency(&mut self, i: &'p Instruction<'a>) -> Result<(), Error> {
        let operation = match i.modifiers.first().copied() {
            Some("launch_dependents") => GridOperation::LaunchDependents,
            Some("wait") => GridOperation::WaitForPrerequisites,
            _ => return self.wrong("`griddepcontrol` is `.launch_dependents` or `.wait`"),
        };
        self.push_grid(operation);
        Ok(())
    }

    fn push_grid(&mut self, operation: GridOperation) {
        let mut code = self.code(Operation::Grid(operation), MEETING);
        code.uniformity = Uniformity::Divergent;
        code.communicates = true;
        self.push(code);
    }

    /// `st.async`, `red.async`: address and barrier become one pair of registers, as in machine code.
    pub(super) fn store_async(&mut self, i: &'p Instruction<'a>) -> Result<(), Error> {
        self.expect_operands(&i.operands, 3..=3)?;
        let name = i.modifiers.last().copied().unwrap_or("");
        let Some(scalar) = Scalar::from_name(name) else {
            return self.wrong("an asynchronous store needs a type such as `.b32`");
        };
        let pair = self.new_register(64);
        for (word, operand) in [(0, &i.operands[0]), (1, &i.operands[2])] {
            self.address_word(pair, word, operand)?;
        }
        let mut code = self.code(Operation::Nothing, MEMORY);
        let address = AddressOperand {
            base: code.read(pair.place(), 2),
            wide: true,
            shift: 0,
            uniform: Value::None,
            uniform_wide: false,
            offset: 0,
        };
        let element = if scalar.bits == 64 {
            Element::B64
        } else {
            Element::B32
        };
        let action = if i.opcode == "red" {
            match async_reduction(i, name) {
                Some(action) => action,
                None => return self.wrong(format!("`.{name}` has no such reduction")),
            }
        } else {
            Action::StoreAsync
        };
        let values = Self::elements(&i.operands[1]).to_vec();
        let mut access = self.access(
            action,
            Space::Shared,
            element,
            address,
            Strength::Weak,
            CachePolicy::Default,
        );
        access.elements = values.len() as u8;
        for (place, value) in access.values.iter_mut().zip(&values) {
            *place = self.value(&mut code, value, type_of(scalar))?;
        }
        self.push_access(code, access);
        Ok(())
    }

    /// One word of a pair: the shared address that an operand in brackets names.
    fn address_word(
        &mut self,
        pair: Register,
        word: u16,
        operand: &Operand<'a>,
    ) -> Result<(), Error> {
        let mut code: Code<'a> = self.compute(ADD32, class::INTEGER);
        let address = self.address(&mut code, operand)?;
        code.instruction.sources[0] = address.base.into();
        code.instruction.sources[1] = Value::Immediate(address.offset as u64).into();
        code.instruction.destination = Some(code.write(pair.word(word), 1));
        self.push(code);
        Ok(())
    }
}

const ADD32: Semantics = semantics!(add_words);

fn add_words(l: &mut Lanes<'_>, i: &Isa) {
    let (a, b) = (l.integer(i.sources[0]), l.integer(i.sources[1]));
    let sum: WarpRegister = map_lanes(|n| a.0[n].wrapping_add(b.0[n]));
    l.write(i.destination, 0, &sum);
}

fn async_reduction(i: &Instruction<'_>, name: &str) -> Option<Action> {
    use lockstep_isa::memory::AtomicType;
    let operation = i.modifiers.iter().find_map(|word| atomic_operation(word))?;
    let kind = match name {
        "s32" => AtomicType::S32,
        "u64" => AtomicType::U64,
        "s64" => AtomicType::S64,
        "u32" | "b32" => AtomicType::U32,
        _ => return None,
    };
    Some(Action::ReduceAsync(operation, kind))
}
