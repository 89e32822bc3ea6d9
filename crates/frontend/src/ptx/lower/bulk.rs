//! Bulk copies: `cp.async.bulk`, `cp.reduce.async.bulk`, their groups and prefetches.

use lockstep_isa::{
    Operand as Value, Operation,
    bulk::{BulkAction, BulkOperation, Transfer},
    memory::{AtomicOperation, AtomicType},
    ptx::Type,
};

use super::{Lowering, memory::MEMORY};
use crate::ptx::{
    error::Error,
    ir::{Code, Uniformity},
    syntax::{Instruction, Operand},
};

/// Reductions by name.
const REDUCTIONS: &[(&str, AtomicOperation)] = &[
    ("add", AtomicOperation::Add),
    ("min", AtomicOperation::Min),
    ("max", AtomicOperation::Max),
    ("inc", AtomicOperation::Increment),
    ("dec", AtomicOperation::Decrement),
    ("and", AtomicOperation::And),
    ("or", AtomicOperation::Or),
    ("xor", AtomicOperation::Xor),
];

/// Types of reductions by name.
const TYPES: &[(&str, AtomicType)] = &[
    ("u32", AtomicType::U32),
    ("s32", AtomicType::S32),
    ("b32", AtomicType::U32),
    ("u64", AtomicType::U64),
    ("s64", AtomicType::S64),
    ("b64", AtomicType::U64),
    ("f16", AtomicType::F16),
    ("bf16", AtomicType::Bf16),
    ("f32", AtomicType::F32 { flush: false }),
    ("f64", AtomicType::F64),
];

impl<'p, 'a> Lowering<'p, 'a> {
    /// `cp.async.bulk…` and `cp.reduce.async.bulk…`.
    pub(super) fn bulk(&mut self, i: &'p Instruction<'a>) -> Result<(), Error> {
        let has = |word: &str| i.modifiers.contains(&word);
        if has("commit_group") {
            return self.bulk_group(BulkAction::Commit);
        }
        if has("wait_group") {
            let most = match i.operands.first() {
                Some(operand) => self.literal(operand, Type::B32)?,
                None => None,
            };
            let Some(most) = most else {
                return self.wrong("a number of groups must stand here");
            };
            let at_most = most.min(u64::from(u32::MAX)) as u32;
            return self.bulk_group(BulkAction::Wait { at_most });
        }
        let transfer = self.transfer(i)?;
        if has("tensor") {
            self.bulk_tensor(i, transfer)
        } else {
            self.bulk_bytes(i, transfer)
        }
    }

    fn bulk_group(&mut self, action: BulkAction) -> Result<(), Error> {
        let operation = BulkOperation::new(action, false);
        self.push_bulk(self.code(Operation::Nothing, MEMORY), operation);
        Ok(())
    }

    fn push_bulk(&mut self, mut code: Code<'a>, operation: BulkOperation) {
        code.uniformity = Uniformity::Divergent;
        code.communicates = true;
        code.instruction.operation = Operation::Bulk(Box::new(operation));
        self.push(code);
    }

    /// Which way data go: the first space that is named is where to.
    fn transfer(&self, i: &'p Instruction<'a>) -> Result<Transfer, Error> {
        let has = |word: &str| i.modifiers.contains(&word);
        if has("prefetch") {
            return Ok(Transfer::Prefetch);
        }
        let spaces = ["global", "shared::cluster", "shared::cta"];
        let mut named = i.modifiers.iter().filter(|word| spaces.contains(word));
        let (Some(to), Some(from)) = (named.next(), named.next()) else {
            return self
                .wrong("a bulk copy names the space that it writes and the one that it reads");
        };
        let reduction = REDUCTIONS.iter().find(|(name, _)| has(name));
        let reduction = reduction.map(|(_, operation)| *operation);
        let kind = TYPES
            .iter()
            .find(|(name, _)| has(name))
            .map(|(_, kind)| *kind);
        if i.modifiers.first() == Some(&"reduce") {
            let Some(operation) = reduction else {
                return self.wrong("a reduction needs an operation such as `.add`");
            };
            if *to == "global" {
                return Ok(Transfer::Reduce { operation, kind });
            }
            let Some(kind) = kind else {
                return self.wrong("a reduction needs a type such as `.u32`");
            };
            return Ok(Transfer::Shared {
                reduce: Some((operation, kind)),
            });
        }
        let multicast = has("multicast::cluster");
        Ok(match (*to, *from) {
            ("global", _) => Transfer::Store,
            (_, "global") => Transfer::Load { multicast },
            _ => Transfer::Shared { reduce: None },
        })
    }

    fn bulk_tensor(&mut self, i: &'p Instruction<'a>, transfer: Transfer) -> Result<(), Error> {
        let mut code = self.code(Operation::Nothing, MEMORY);
        let rank = i.modifiers.iter().find_map(|word| match *word {
            "1d" => Some(1),
            "2d" => Some(2),
            "3d" => Some(3),
            "4d" => Some(4),
            "5d" => Some(5),
            _ => None,
        });
        let Some(rank) = rank else {
            return self.wrong("a tensor needs a dimension such as `.2d`");
        };
        if let Some(mode) = i
            .modifiers
            .iter()
            .find(|word| word.contains("::w") || word.starts_with("tile::"))
        {
            return self.stop(
                i,
                &format!("walks a tensor by `.{mode}`, which Hopper has not"),
            );
        }
        let im2col = i.modifiers.iter().any(|word| word.starts_with("im2col"));
        let action = BulkAction::Tensor {
            transfer,
            rank,
            im2col,
        };
        let mut operation = BulkOperation::new(action, false);
        let mut rest = i.operands.iter();
        match transfer {
            Transfer::Load { .. } => {
                operation.shared = self.plain_address(&mut code, rest.next())?;
                self.tensor_operand(&mut code, &mut operation, rest.next())?;
                operation.barrier = self.plain_address(&mut code, rest.next())?;
            }
            Transfer::Prefetch => self.tensor_operand(&mut code, &mut operation, rest.next())?,
            _ => {
                self.tensor_operand(&mut code, &mut operation, rest.next())?;
                operation.shared = self.plain_address(&mut code, rest.next())?;
            }
        }
        let takes_offsets = matches!(transfer, Transfer::Load { .. } | Transfer::Prefetch);
        if im2col && takes_offsets {
            let Some(Operand::Vector(offsets)) = rest.next() else {
                return self.wrong("the offsets of a column of pixels must stand here");
            };
            for (place, offset) in operation.offsets.iter_mut().zip(offsets) {
                *place = self.value(&mut code, offset, Type::B16)?;
            }
        }
        self.receivers(&mut code, &mut operation, transfer, rest.next())?;
        self.push_bulk(code, operation);
        Ok(())
    }

    fn bulk_bytes(&mut self, i: &'p Instruction<'a>, transfer: Transfer) -> Result<(), Error> {
        let mut code = self.code(Operation::Nothing, MEMORY);
        let mut operation = BulkOperation::new(BulkAction::Bytes(transfer), false);
        let mut rest = i.operands.iter();
        let first = self.plain_address(&mut code, rest.next())?;
        match transfer {
            Transfer::Load { .. } => {
                operation.shared = first;
                operation.global = self.plain_address(&mut code, rest.next())?;
            }
            Transfer::Shared { .. } => {
                operation.shared = first;
                operation.source = self.plain_address(&mut code, rest.next())?;
            }
            Transfer::Store | Transfer::Reduce { .. } => {
                operation.global = first;
                operation.shared = self.plain_address(&mut code, rest.next())?;
            }
            Transfer::Prefetch => operation.global = first,
        }
        let Some(size) = rest.next() else {
            return self.wrong("the bytes to copy must stand here");
        };
        operation.bytes = self.value(&mut code, size, Type::B32)?;
        if matches!(transfer, Transfer::Load { .. } | Transfer::Shared { .. }) {
            operation.barrier = self.plain_address(&mut code, rest.next())?;
        }
        self.receivers(&mut code, &mut operation, transfer, rest.next())?;
        self.push_bulk(code, operation);
        Ok(())
    }

    /// The blocks of a multicast, which follow the barrier.
    fn receivers(
        &mut self,
        code: &mut Code<'a>,
        operation: &mut BulkOperation,
        transfer: Transfer,
        operand: Option<&Operand<'a>>,
    ) -> Result<(), Error> {
        if transfer != (Transfer::Load { multicast: true }) {
            return Ok(());
        }
        let Some(operand) = operand else {
            return self.wrong("the blocks that receive a multicast must stand here");
        };
        operation.receivers = self.value(code, operand, Type::B16)?;
        Ok(())
    }

    /// `[map, {x, y}]`.
    fn tensor_operand(
        &mut self,
        code: &mut Code<'a>,
        operation: &mut BulkOperation,
        operand: Option<&Operand<'a>>,
    ) -> Result<(), Error> {
        let Some(Operand::Address(parts)) = operand else {
            return self.wrong("a tensor such as [%rd1, {%r1, %r2}] must stand here");
        };
        let [map, coordinates] = parts.as_slice() else {
            return self
                .wrong("a tensor map and coordinates such as [%rd1, {%r1, %r2}] must stand here");
        };
        let map = Operand::Address(vec![map.clone()]);
        operation.map = self.plain_address(code, Some(&map))?;
        let coordinates = Self::elements(coordinates).to_vec();
        for (place, coordinate) in operation.coordinates.iter_mut().zip(&coordinates) {
            *place = self.value(code, coordinate, Type::B32)?;
        }
        Ok(())
    }

    /// `[…]` as one value.
    pub(super) fn plain_address(
        &mut self,
        code: &mut Code<'a>,
        operand: Option<&Operand<'a>>,
    ) -> Result<Value, Error> {
        let Some(operand) = operand else {
            return self.wrong("an address such as [%rd1+4] must stand here");
        };
        let mut own = self.code(Operation::Nothing, MEMORY);
        let address = self.address(&mut own, operand)?;
        if address.base == Value::None {
            return Ok(Value::Immediate(address.offset as u64));
        }
        let sum = self.address_sum(own, address);
        Ok(code.read(sum.place(), 2))
    }
}
