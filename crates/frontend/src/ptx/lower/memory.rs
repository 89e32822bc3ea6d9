//! Loads and stores, and what all accesses share: modifiers, strength, the operation.

use lockstep_isa::{
    Operand as Value, Operation,
    instruction::{Latency, Mix, Unit},
    memory::{
        Action, AddressOperand, CachePolicy, Element, MemoryOperation, Order, Scope, Space,
        Strength,
    },
    ptx::Class,
};

use super::{Lowering, Register, atomic::atomic_operation, moves::type_of};
use crate::ptx::{
    error::Error,
    ir::{Code, Uniformity},
    syntax::{Instruction, Operand, Scalar, ScalarKind, VariableSpace},
};

pub(super) const MEMORY: Class = Class {
    unit: Unit::LoadStore,
    latency: Latency::Memory,
    mix: Mix::LoadStore,
};

/// The modifiers of an access, sorted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Modifiers {
    pub(super) space: Option<VariableSpace>,
    pub(super) order: Option<Order>,
    pub(super) scope: Option<Scope>,
    pub(super) cache: CachePolicy,
    pub(super) elements: u8,
    pub(super) scalar: Option<Scalar>,
    /// Result of a call, argument of a function.
    pub(super) no_flush: bool,
}

/// Modifiers of matrix accesses, which have their own reader.
const KNOWN_ELSEWHERE: &[&str] = &["sync", "aligned", "m8n8", "x1", "x2", "x4", "trans"];

impl<'p, 'a> Lowering<'p, 'a> {
    pub(super) fn access_modifiers(&self, i: &Instruction<'_>) -> Result<Modifiers, Error> {
        let mut found = Modifiers {
            space: None,
            order: None,
            scope: None,
            cache: CachePolicy::Default,
            elements: 1,
            scalar: None,
            no_flush: false,
        };
        for word in &i.modifiers {
            if let Some(space) = self.space_of(word) {
                found.space = Some(space);
                continue;
            }
            match *word {
                "volatile" => found.order = Some(Order::Volatile),
                "relaxed" | "mmio" => found.order = found.order.or(Some(Order::Relaxed)),
                "acquire" => found.order = Some(Order::Acquire),
                "release" => found.order = Some(Order::Release),
                "acq_rel" => found.order = Some(Order::AcquireRelease),
                "cta" => found.scope = Some(Scope::Block),
                "cluster" => found.scope = Some(Scope::Cluster),
                "gpu" => found.scope = Some(Scope::Gpu),
                "sys" => found.scope = Some(Scope::System),
                "cg" => found.cache = CachePolicy::L2Only,
                "cs" => found.cache = CachePolicy::Streaming,
                "lu" => found.cache = CachePolicy::LastUse,
                "cv" => found.cache = CachePolicy::Volatile,
                "wt" => found.cache = CachePolicy::WriteThrough,
                "nc" => found.cache = CachePolicy::ReadOnly,
                "L1::no_allocate" => found.cache = CachePolicy::NoAllocate,
                "v2" => found.elements = 2,
                "v4" => found.elements = 4,
                "v8" => found.elements = 8,
                "noftz" => found.no_flush = true,
                // Defaults, and hints that change no value.
                "weak" | "ca" | "wb" | "L1" | "L2" | "unified" | "async" | "bulk" => {}
                "ld_reduce" | "st" | "red" | "acc::f32" if i.opcode == "multimem" => {}
                other if other.starts_with("L1::") || other.starts_with("L2::") => {}
                other if KNOWN_ELSEWHERE.contains(&other) || atomic_operation(other).is_some() => {}
                other => match Scalar::from_name(other) {
                    Some(scalar) => found.scalar = Some(scalar),
                    None => {
                        return self.wrong(format!("`.{other}` is no modifier of a memory access"));
                    }
                },
            }
        }
        Ok(found)
    }

    pub(super) fn strength(&self, modifiers: &Modifiers, default: Option<Order>) -> Strength {
        let shared_by_others = !matches!(
            modifiers.space,
            Some(VariableSpace::Constant | VariableSpace::Local | VariableSpace::Parameter)
        );
        match modifiers.order.or(default) {
            Some(order) if shared_by_others => Strength::Strong {
                scope: match (order, modifiers.scope) {
                    (Order::Volatile, _) => Scope::System,
                    (_, scope) => scope.unwrap_or(Scope::Gpu),
                },
                order,
            },
            _ => Strength::Weak,
        }
    }

    pub(super) fn access(
        &self,
        action: Action,
        space: Space,
        element: Element,
        address: AddressOperand,
        strength: Strength,
        cache: CachePolicy,
    ) -> MemoryOperation {
        MemoryOperation {
            space,
            action,
            element,
            elements: 1,
            address,
            data: [None; 4],
            values: [Value::None; 4],
            strength,
            cache,
        }
    }

    /// Turns a finished access into the operation of `code` and appends it.
    pub(super) fn push_access(&mut self, mut code: Code<'a>, operation: MemoryOperation) {
        code.communicates = matches!(
            operation.action,
            Action::Atomic(..) | Action::Reduce(..) | Action::Mbarrier(_)
        ) || operation.strength != Strength::Weak;
        let constant = matches!(operation.space, Space::Constant { .. });
        if !constant {
            code.uniformity = Uniformity::Divergent;
        }
        code.instruction.operation = Operation::Memory(Box::new(operation));
        self.push(code);
    }

    pub(super) fn load(&mut self, i: &'p Instruction<'a>) -> Result<(), Error> {
        self.expect_operands(&i.operands, 2..=3)?;
        let modifiers = self.access_modifiers(i)?;
        let Some(scalar) = modifiers.scalar else {
            return self.wrong("a load needs a type such as `.u32`");
        };
        let targets = Self::elements(&i.operands[0]);
        if targets.len() != usize::from(modifiers.elements) {
            return self.wrong(format!("{} elements expected", modifiers.elements));
        }
        let targets = targets.to_vec();
        if modifiers.space == Some(VariableSpace::Parameter)
            && self.load_parameter(&targets, &i.operands[1], scalar)?
        {
            return Ok(());
        }
        // Wider than four elements or 16 bytes goes in parts; the first one counts.
        let per_part = (16 / scalar.bytes()).clamp(1, 4) as usize;
        let mut extensions = Vec::new();
        for (part, chunk) in targets.chunks(per_part).enumerate() {
            let mut code = self.code(Operation::Nothing, MEMORY);
            let mut address = self.address(&mut code, &i.operands[1])?;
            let skipped = (part * per_part) as i64 * scalar.bytes() as i64;
            address.offset = address.offset.wrapping_add(skipped);
            let mut operation = self.access(
                Action::Load,
                self.access_space(modifiers.space),
                element_of(scalar),
                address,
                self.strength(&modifiers, None),
                modifiers.cache,
            );
            operation.elements = chunk.len() as u8;
            for (place, target) in operation.data.iter_mut().zip(chunk) {
                *place = self.received(&mut code, target, scalar, &mut extensions)?;
            }
            self.push_access(code, operation);
        }
        for (to, from) in extensions {
            self.extend(to, from, scalar.signed());
        }
        Ok(())
    }

    /// A register that receives an element; wider registers through a temporary.
    fn received(
        &mut self,
        code: &mut Code<'a>,
        target: &Operand<'a>,
        scalar: Scalar,
        extensions: &mut Vec<(Register, Register)>,
    ) -> Result<Option<u16>, Error> {
        if *target == Operand::Sink {
            return Ok(None);
        }
        let rows = element_of(scalar).words();
        let mut register = self.register_operand(target)?;
        if register.words() < rows {
            return self.wrong(format!(
                "a register of {} bits stands where {} bits are loaded",
                register.scalar.bits, scalar.bits
            ));
        }
        if register.words() > rows {
            if rows != 1 {
                return self.wrong("a 128-bit register cannot receive a 64-bit element");
            }
            let narrow = self.new_register(32);
            extensions.push((register, narrow));
            register = narrow;
        }
        Ok(Some(code.write(register.place(), rows)))
    }

    pub(super) fn store(&mut self, i: &'p Instruction<'a>) -> Result<(), Error> {
        if i.modifiers.contains(&"bulk") {
            return self.stop(i, "stores in bulk, which is not modelled");
        }
        if i.modifiers.contains(&"async") {
            return self.store_async(i);
        }
        self.expect_operands(&i.operands, 2..=3)?;
        let modifiers = self.access_modifiers(i)?;
        let Some(scalar) = modifiers.scalar else {
            return self.wrong("a store needs a type such as `.u32`");
        };
        let values = Self::elements(&i.operands[1]);
        if values.len() != usize::from(modifiers.elements) {
            return self.wrong(format!("{} elements expected", modifiers.elements));
        }
        let values = values.to_vec();
        if modifiers.space == Some(VariableSpace::Parameter) {
            return self.store_parameter(&i.operands[0], &values, scalar);
        }
        let per_part = (16 / scalar.bytes()).clamp(1, 4) as usize;
        for (part, chunk) in values.chunks(per_part).enumerate() {
            let mut code = self.code(Operation::Nothing, MEMORY);
            let mut address = self.address(&mut code, &i.operands[0])?;
            let skipped = (part * per_part) as i64 * scalar.bytes() as i64;
            address.offset = address.offset.wrapping_add(skipped);
            let mut operation = self.access(
                Action::Store,
                self.access_space(modifiers.space),
                element_of(scalar),
                address,
                self.strength(&modifiers, None),
                modifiers.cache,
            );
            operation.elements = chunk.len() as u8;
            for (place, value) in operation.values.iter_mut().zip(chunk) {
                *place = self.stored(&mut code, value, scalar)?;
            }
            self.push_access(code, operation);
        }
        Ok(())
    }

    fn stored(
        &mut self,
        code: &mut Code<'a>,
        value: &Operand<'a>,
        scalar: Scalar,
    ) -> Result<Value, Error> {
        if scalar.bits == 128 {
            let register = self.register_operand(value)?;
            if register.words() < 4 {
                return self.wrong("128 bits are stored from a 128-bit register");
            }
            return Ok(code.read(register.place(), 4));
        }
        self.value(code, value, type_of(scalar))
    }

    /// Moves a register to or from an address in a register plus a number.
    pub(super) fn access_at(
        &mut self,
        base: Register,
        offset: i64,
        register: Register,
        scalar: Scalar,
        space: Option<&str>,
        store: bool,
    ) -> Result<(), Error> {
        let mut code = self.code(Operation::Nothing, MEMORY);
        let base = code.read(base.place(), 2);
        let address = AddressOperand {
            base,
            wide: true,
            shift: 0,
            uniform: Value::None,
            uniform_wide: false,
            offset,
        };
        let action = if store { Action::Store } else { Action::Load };
        let space = self.access_space(space.and_then(|word| self.space_of(word)));
        let element = element_of(scalar);
        if register.words() < element.words() {
            return self.wrong("the register is too narrow for the element");
        }
        let mut operation = self.access(
            action,
            space,
            element,
            address,
            Strength::Weak,
            CachePolicy::Default,
        );
        if store {
            operation.values[0] = code.read(register.place(), element.words());
        } else {
            operation.data[0] = Some(code.write(register.place(), element.words()));
        }
        self.push_access(code, operation);
        Ok(())
    }

    /// One word to a fixed place of the function's local memory.
    pub(super) fn store_local(&mut self, place: u64, value: Register) {
        let mut code = self.code(Operation::Nothing, MEMORY);
        let address = AddressOperand {
            base: Value::None,
            wide: true,
            shift: 0,
            uniform: Value::None,
            uniform_wide: false,
            offset: place as i64,
        };
        let mut operation = self.access(
            Action::Store,
            Space::Local,
            Element::B32,
            address,
            Strength::Weak,
            CachePolicy::Default,
        );
        operation.values[0] = code.read(value.place(), 1);
        self.push_access(code, operation);
    }

    /// An instruction that parses but stops a run.
    pub(super) fn stop(&mut self, i: &Instruction<'a>, sentence: &str) -> Result<(), Error> {
        let message = format!("`{}` {sentence}", i.text);
        let code = self.code(Operation::Unsupported(message.into()), MEMORY);
        self.push(code);
        Ok(())
    }
}

pub(super) fn element_of(scalar: Scalar) -> Element {
    match (scalar.bits, scalar.kind) {
        (8, ScalarKind::Signed) => Element::S8,
        (8, _) => Element::U8,
        (16, ScalarKind::Signed) => Element::S16,
        (16, _) => Element::U16,
        (64, _) => Element::B64,
        (128, _) => Element::B128,
        _ => Element::B32,
    }
}
