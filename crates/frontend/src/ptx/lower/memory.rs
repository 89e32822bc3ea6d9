//! Loads, stores, atomics, prefetches, copies to shared memory.

use lockstep_isa::{
    Operand as Value, Operation,
    instruction::{Latency, Mix, Unit},
    memory::{
        Action, AddressOperand, AtomicOperation, AtomicType, CachePolicy, Element, MemoryOperation,
        Order, Scope, Space, Strength,
    },
    operand::PredicateOperand,
    ptx::{Class, Type},
};

use super::{Lowering, Register, moves::type_of, names::Symbol};
use crate::ptx::{
    error::Error,
    ir::{Code, Spread},
    syntax::{Instruction, Operand, Scalar, ScalarKind, VariableSpace},
};

const MEMORY: Class = Class {
    unit: Unit::LoadStore,
    latency: Latency::Memory,
    mix: Mix::LoadStore,
};

/// The modifiers of an access, sorted.
#[derive(Clone, Copy, Debug)]
struct Modifiers {
    space: Option<VariableSpace>,
    order: Option<Order>,
    scope: Option<Scope>,
    cache: CachePolicy,
    elements: u8,
    scalar: Option<Scalar>,
    /// Result of a call, argument of a function.
    no_flush: bool,
}

/// Modifiers of matrix accesses, which have their own reader.
const KNOWN_ELSEWHERE: &[&str] = &["sync", "aligned", "m8n8", "x1", "x2", "x4", "trans"];

impl<'p, 'a> Lowering<'p, 'a> {
    fn access_modifiers(&self, i: &Instruction<'_>) -> Result<Modifiers, Error> {
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

    fn strength(&self, modifiers: &Modifiers, default: Option<Order>) -> Strength {
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

    fn access(
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
    fn push_access(&mut self, mut code: Code<'a>, operation: MemoryOperation) {
        code.communicates = matches!(operation.action, Action::Atomic(..) | Action::Reduce(..))
            || operation.strength != Strength::Weak;
        let constant = matches!(operation.space, Space::Constant { .. });
        if !constant {
            code.spread = Spread::Varies;
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
        // `st.async` and `st.bulk` belong to Hopper's asynchronous set.
        if i.modifiers
            .iter()
            .any(|word| *word == "async" || *word == "bulk")
        {
            return self.stop(i, "stores asynchronously, which is not modelled");
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

    pub(super) fn atomic(&mut self, i: &'p Instruction<'a>) -> Result<(), Error> {
        let modifiers = self.access_modifiers(i)?;
        if i.modifiers.contains(&"async") {
            return self.stop(i, "reduces asynchronously, which is not modelled");
        }
        let reduce = i.opcode == "red";
        let Some(operation) = i.modifiers.iter().find_map(|word| atomic_operation(word)) else {
            return self.wrong("an atomic needs an operation such as `.add`");
        };
        let Some(scalar) = modifiers.scalar else {
            return self.wrong("an atomic needs a type such as `.u32`");
        };
        let name = i.modifiers.last().copied().unwrap_or("");
        let Some(kind) = atomic_type(name, scalar, operation, &modifiers) else {
            return self.wrong(format!("`.{name}` has no such atomic"));
        };
        if modifiers.elements != 1 {
            return self.stop(i, "works on a vector at once, which is not modelled");
        }
        let operands = if reduce { 2..=3 } else { 3..=5 };
        self.expect_operands(&i.operands, operands)?;
        let (target, rest) = if reduce {
            (None, &i.operands[..])
        } else {
            (Some(&i.operands[0]), &i.operands[1..])
        };
        let mut code = self.code(Operation::Nothing, MEMORY);
        let address = self.address(&mut code, &rest[0])?;
        let action = if reduce {
            Action::Reduce(operation, kind)
        } else {
            Action::Atomic(operation, kind)
        };
        let element = match kind.bytes() {
            8 => Element::B64,
            2 => Element::U16,
            _ => Element::B32,
        };
        let mut access = self.access(
            action,
            self.access_space(modifiers.space),
            element,
            address,
            self.strength(&modifiers, Some(Order::Relaxed)),
            modifiers.cache,
        );
        let compare = operation == AtomicOperation::CompareAndSwap;
        if compare && rest.len() < 3 {
            return self.wrong("compare and swap needs two values");
        }
        for index in 0..if compare { 2 } else { 1 } {
            access.values[index] = self.value(&mut code, &rest[1 + index], type_of(scalar))?;
        }
        if let Some(target) = target
            && *target != Operand::Sink
        {
            let register = self.register_operand(target)?;
            if register.words() < element.words() {
                return self.wrong("the register is too narrow for the old value");
            }
            access.data[0] = Some(code.write(register.place(), element.words()));
        }
        self.push_access(code, access);
        Ok(())
    }

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
        if i.modifiers.first() != Some(&"async") || second == "bulk" || second == "mbarrier" {
            return self.stop(i, "copies in bulk, which is not modelled");
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

    /// An instruction that parses but stops a run.
    pub(super) fn stop(&mut self, i: &Instruction<'a>, sentence: &str) -> Result<(), Error> {
        let message = format!("`{}` {sentence}", i.text);
        let code = self.code(Operation::Unsupported(message.into()), MEMORY);
        self.push(code);
        Ok(())
    }

    /// `ldmatrix` and `stmatrix`.
    pub(super) fn matrix_access(&mut self, i: &'p Instruction<'a>) -> Result<(), Error> {
        self.expect_operands(&i.operands, 2..=2)?;
        let has = |word: &str| i.modifiers.contains(&word);
        if !has("m8n8") || !has("b16") {
            return self.stop(i, "moves matrices of this shape, which is not modelled");
        }
        let matrices = if has("x4") {
            4
        } else if has("x2") {
            2
        } else {
            1
        };
        let transpose = has("trans");
        let store = i.opcode == "stmatrix";
        let (address, registers) = if store {
            (&i.operands[0], &i.operands[1])
        } else {
            (&i.operands[1], &i.operands[0])
        };
        let registers = Self::elements(registers);
        if registers.len() != matrices {
            return self.wrong(format!("{matrices} registers expected"));
        }
        let mut code = self.code(Operation::Nothing, MEMORY);
        let address = self.address(&mut code, address)?;
        let matrices = matrices as u8;
        let action = if store {
            Action::StoreMatrix {
                matrices,
                transpose,
            }
        } else {
            Action::LoadMatrix {
                matrices,
                transpose,
            }
        };
        let space = match self.access_modifiers(i)?.space {
            None => Space::Generic,
            Some(_) => Space::Shared,
        };
        let mut operation = self.access(
            action,
            space,
            Element::B32,
            address,
            Strength::Weak,
            CachePolicy::Default,
        );
        operation.elements = matrices;
        for (index, register) in registers.iter().enumerate() {
            if store {
                operation.values[index] = self.value(&mut code, register, Type::B32)?;
            } else if *register != Operand::Sink {
                let register = self.register_operand(register)?;
                operation.data[index] = Some(code.write(register.place(), 1));
            }
        }
        code.meets = Some(Value::Immediate(u64::from(u32::MAX)));
        self.push_access(code, operation);
        Ok(())
    }
}

fn element_of(scalar: Scalar) -> Element {
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

fn atomic_operation(word: &str) -> Option<AtomicOperation> {
    Some(match word {
        "add" => AtomicOperation::Add,
        "min" => AtomicOperation::Min,
        "max" => AtomicOperation::Max,
        "inc" => AtomicOperation::Increment,
        "dec" => AtomicOperation::Decrement,
        "and" => AtomicOperation::And,
        "or" => AtomicOperation::Or,
        "xor" => AtomicOperation::Xor,
        "exch" => AtomicOperation::Exchange,
        "cas" => AtomicOperation::CompareAndSwap,
        _ => return None,
    })
}

/// The type that an atomic works on, if it has one for the operation.
fn atomic_type(
    name: &str,
    scalar: Scalar,
    operation: AtomicOperation,
    modifiers: &Modifiers,
) -> Option<AtomicType> {
    let any_bits = matches!(
        operation,
        AtomicOperation::Exchange | AtomicOperation::CompareAndSwap
    );
    Some(match (name, scalar.bits) {
        ("f16x2", _) => AtomicType::F16x2,
        ("bf16x2", _) => AtomicType::Bf16x2,
        ("f16", _) => AtomicType::F16,
        ("bf16", _) => AtomicType::Bf16,
        ("f32", _) => AtomicType::F32 {
            // Documented: global memory flushes subnormals, shared memory does not.
            flush: modifiers.space != Some(VariableSpace::Shared) && !modifiers.no_flush,
        },
        ("f64", _) => AtomicType::F64,
        ("s32", _) => AtomicType::S32,
        ("s64", _) => AtomicType::S64,
        ("b16", _) if any_bits => AtomicType::B16,
        (_, 32) => AtomicType::U32,
        (_, 64) => AtomicType::U64,
        _ => return None,
    })
}
