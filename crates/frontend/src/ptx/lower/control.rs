//! Branches, block barriers, fences.

use lockstep_isa::{
    Operand as Value, Operation,
    instruction::{BlockBarrier, BlockBarrierMode, CodeAddress, Flow, Latency, Mix, Unit},
    memory::{
        Action, AddressOperand, CachePolicy, Element, FenceOperation, MemoryOperation, Scope,
        Space, Strength,
    },
    ptx::{Class, Type},
};

use super::{Lowering, TABLE_BANK, names::Symbol};
use crate::ptx::{
    error::Error,
    ir::{Amount, Field, Fixup, Target, Uniformity},
    syntax::{Instruction, Operand},
};

const BRANCH: Class = Class {
    unit: Unit::Branch,
    latency: Latency::Branch,
    mix: Mix::Control,
};
const BARRIER: Class = Class {
    unit: Unit::Miscellaneous,
    latency: Latency::Barrier,
    mix: Mix::Other,
};

impl<'p, 'a> Lowering<'p, 'a> {
    pub(super) fn branch(&mut self, i: &'p Instruction<'a>) -> Result<(), Error> {
        self.expect_operands(&i.operands, 1..=1)?;
        let Operand::Name(name) = &i.operands[0] else {
            return self.wrong("a branch goes to a label");
        };
        let mut code = self.code(Operation::Flow(Flow::Branch { target: 0 }), BRANCH);
        code.target = Target::Label(self.label(name)?);
        code.uniform_jump = i.modifiers.contains(&"uni");
        self.push(code);
        Ok(())
    }

    /// `brx.idx`: a load from a jump table, and a branch to what it gives.
    pub(super) fn branch_indexed(&mut self, i: &'p Instruction<'a>) -> Result<(), Error> {
        self.expect_operands(&i.operands, 2..=2)?;
        let Operand::Name(list) = &i.operands[1] else {
            return self.wrong("`brx.idx` needs the name of a list of targets");
        };
        let Some(Symbol::Targets(names)) = self.lookup(list) else {
            return self.unknown(list, "a list of targets");
        };
        let mut labels = Vec::new();
        for name in names {
            labels.push(self.label(name)?);
        }
        let table = self.body.tables.len();
        self.body.tables.push(labels);
        let place = self.new_register(32);
        let mut load = self.code(Operation::Nothing, BRANCH);
        let index = self.value(&mut load, &i.operands[0], Type::B32)?;
        let destination = load.write(place.place(), 1);
        load.instruction.operation = Operation::Memory(Box::new(MemoryOperation {
            space: Space::Constant { bank: TABLE_BANK },
            action: Action::Load,
            element: Element::B32,
            elements: 1,
            address: AddressOperand {
                base: index,
                wide: false,
                shift: 2,
                uniform: Value::None,
                uniform_wide: false,
                offset: 0,
            },
            data: [Some(destination), None, None, None],
            values: [Value::None; 4],
            strength: Strength::Weak,
            cache: CachePolicy::Default,
        }));
        load.fixups.push(Fixup {
            field: Field::Offset,
            amount: Amount::Table(table),
        });
        self.counted = true;
        self.push(load);
        let flow = Flow::BranchIndirect {
            address: CodeAddress::Index,
        };
        let mut code = self.code(Operation::Flow(flow), BRANCH);
        code.instruction.sources[0] = code.read(place.place(), 1).into();
        code.target = Target::Table(table);
        code.uniform_jump = i.modifiers.contains(&"uni");
        self.counted = false;
        self.push(code);
        Ok(())
    }

    /// `bar`, `barrier`.
    pub(super) fn barrier(&mut self, i: &'p Instruction<'a>) -> Result<(), Error> {
        let has = |word: &str| i.modifiers.contains(&word);
        if has("warp") {
            self.expect_operands(&i.operands, 1..=1)?;
            let mut code = self.code(Operation::Flow(Flow::WarpSync), BARRIER);
            code.instruction.sources[0] = self.value(&mut code, &i.operands[0], Type::B32)?.into();
            code.uniformity = Uniformity::Divergent;
            self.push(code);
            return Ok(());
        }
        if has("cluster") {
            return self.cluster_barrier(i);
        }
        let (mode, target) = if has("arrive") {
            (BlockBarrierMode::Arrive, 0)
        } else if has("popc") {
            (BlockBarrierMode::ReducePopulation, 1)
        } else if has("red") && has("and") {
            (BlockBarrierMode::ReduceAnd, 1)
        } else if has("red") && has("or") {
            (BlockBarrierMode::ReduceOr, 1)
        } else if has("sync") {
            (BlockBarrierMode::Sync, 0)
        } else {
            return self.wrong("a barrier is `.sync`, `.arrive` or `.red`");
        };
        self.expect_operands(&i.operands, 1 + 2 * target..=2 + 2 * target)?;
        let mut code = self.code(
            Operation::Barrier(BlockBarrier {
                mode,
                aligned: i.opcode == "bar" || has("aligned"),
            }),
            BARRIER,
        );
        code.uniformity = Uniformity::Divergent;
        match self.literal(&i.operands[target], Type::B32)? {
            Some(number) => self.body.barriers = self.body.barriers.max(number.min(15) as u32 + 1),
            None => self.body.any_barrier = true,
        }
        let counted = &i.operands[target..i.operands.len() - target];
        for (index, operand) in counted.iter().enumerate() {
            code.instruction.sources[index] = self.value(&mut code, operand, Type::B32)?.into();
        }
        if target == 1 {
            let tested = i.operands.len() - 1;
            code.instruction.predicates[0] = self.predicate(&mut code, &i.operands[tested])?;
            if mode == BlockBarrierMode::ReducePopulation {
                let register = self.register_operand(&i.operands[0])?;
                code.instruction.destination = Some(code.write(register.place(), 1));
            } else if let Some(flag) = self.written_flag(&i.operands[0])? {
                code.instruction.predicate_destinations[0] = code.write_flag(flag);
            }
        }
        self.push(code);
        Ok(())
    }

    /// `membar`, `fence`.
    pub(super) fn fence(&mut self, i: &'p Instruction<'a>) -> Result<(), Error> {
        let has = |word: &str| i.modifiers.contains(&word);
        // Proxies other than the generic one are not modelled, so nothing needs ordering there.
        let other = |word: &&str| word.starts_with("proxy") || word.starts_with("mbarrier_init");
        if i.modifiers.iter().any(other) {
            self.push(self.code(Operation::Nothing, BARRIER));
            return Ok(());
        }
        let scope = if has("cta") {
            Scope::Block
        } else if has("cluster") {
            Scope::Cluster
        } else if has("gl") || has("gpu") {
            Scope::Gpu
        } else if has("sys") {
            Scope::System
        } else {
            return self.wrong("a fence needs a scope such as `.gpu`");
        };
        let fence = FenceOperation {
            scope,
            // `membar` is `fence.sc`.
            sequential: i.opcode == "membar" || has("sc"),
        };
        self.push(self.code(Operation::Fence(fence), BARRIER));
        Ok(())
    }
}
