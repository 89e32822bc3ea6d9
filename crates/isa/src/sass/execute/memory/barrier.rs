//! Barriers of a block (`BAR`, `B2R`), dependency barriers (`DEPBAR`) and fences (`MEMBAR`).

use super::super::bind::{BARRIER_OUTCOME, BindError, Spelling};
use super::{scheduling, scope};
use crate::{
    instruction::{
        BlockBarrier, BlockBarrierMode, DependencyBarrier, Instruction, Latency, Mix, Operation,
        SchedulingInfo, Unit,
    },
    lanes::Lanes,
    memory::FenceOperation,
    operand::{Operand, PredicateRegister},
    sass::decoded::Value,
};

/// `LDGDEPBAR`, `DEPBAR`: no value moves, but the SM waits or counts.
pub(super) fn dependence(spelling: &Spelling<'_>) -> Instruction {
    let (mut counter, mut at_most, mut also) = (7, 0, 0);
    for operand in spelling.operands() {
        match operand.value {
            Value::Counter(number) => counter = number,
            Value::CounterSet(set) => also = set,
            Value::Immediate(number) => at_most = number.bits as u8,
            _ => {}
        }
    }
    let dependency_barrier = if spelling.name == "DEPBAR" {
        DependencyBarrier::Wait {
            counter,
            at_most,
            also,
        }
    } else {
        DependencyBarrier::Arrive
    };
    let mut instruction = Instruction::new(
        Operation::Nothing,
        SchedulingInfo {
            latency: Latency::Integer,
            ..scheduling(Unit::Miscellaneous, 0, [0; 4])
        },
    );
    instruction.scheduling.dependency_barrier = dependency_barrier;
    instruction
}

/// `BAR.SYNC id, threads`, `BAR.ARV`, `BAR.RED`.
pub(super) fn barrier(spelling: &Spelling<'_>) -> Result<Instruction, BindError> {
    let mode = if spelling.has("RED") {
        if spelling.has("POPC") {
            BlockBarrierMode::ReducePopulation
        } else if spelling.has("AND") {
            BlockBarrierMode::ReduceAnd
        } else {
            BlockBarrierMode::ReduceOr
        }
    } else if spelling.has("ARV") {
        BlockBarrierMode::Arrive
    } else if spelling.has("SYNC") || spelling.has("SYNCALL") {
        BlockBarrierMode::Sync
    } else {
        return Ok(spelling.unsupported("is a barrier that cannot be executed yet"));
    };
    let mut instruction = Instruction::new(
        Operation::Barrier(BlockBarrier {
            mode,
            // So compilers spell `bar` and `barrier.aligned`; a plain `BAR.SYNC` is `barrier`.
            aligned: spelling.has("DEFER_BLOCKING"),
        }),
        SchedulingInfo {
            unit: Unit::Miscellaneous,
            latency: Latency::Barrier,
            mix: Mix::Control,
            source_registers: [1, 1, 0, 0],
            ..SchedulingInfo::default()
        },
    );
    let mut next = 0;
    for operand in spelling.operands() {
        if let Some(predicate) = spelling.predicate(operand) {
            instruction.predicates[0] = predicate;
        } else if next < 2 {
            instruction.sources[next] = spelling.source(operand)?;
            next += 1;
        }
    }
    if next == 1
        && let Operand::Register(_) = instruction.sources[0].operand
    {
        return packed_barrier(spelling, instruction);
    }
    match mode {
        BlockBarrierMode::ReducePopulation => {
            instruction.destination = Some(spelling.frame.barrier_count());
        }
        BlockBarrierMode::ReduceAnd | BlockBarrierMode::ReduceOr => {
            instruction.predicate_destinations[0] = PredicateRegister::Lanes(BARRIER_OUTCOME);
        }
        _ => {}
    }
    Ok(instruction)
}

/// A register alone names the barrier; the number of threads is that of the block.
pub(super) fn packed_barrier(
    _: &Spelling<'_>,
    instruction: Instruction,
) -> Result<Instruction, BindError> {
    Ok(instruction)
}

/// `B2R.RESULT`: what the last reducing barrier found.
pub(super) fn barrier_result(spelling: &Spelling<'_>) -> Result<Instruction, BindError> {
    if !spelling.has("RESULT") {
        return Ok(
            spelling.unsupported("reads the state of a barrier, which cannot be executed yet")
        );
    }
    let mut instruction = Instruction::new(
        Operation::Compute(take_outcome),
        SchedulingInfo {
            unit: Unit::Miscellaneous,
            latency: Latency::SpecialRegister,
            destination_registers: 1,
            ..SchedulingInfo::default()
        },
    );
    for operand in spelling.operands() {
        if let Value::Register(index) = operand.value {
            instruction.destination = spelling.frame.register(index);
        } else if let Some(predicate) = spelling.predicate(operand) {
            instruction.predicate_destinations[0] = predicate.register;
        }
    }
    instruction.sources[0] = Operand::Register(spelling.frame.barrier_count()).into();
    Ok(instruction)
}

pub(super) fn take_outcome(lanes: &mut Lanes<'_>, i: &Instruction) {
    let count = lanes.integer(i.sources[0]);
    lanes.write(i.destination, 0, &count);
    let outcome = lanes.predicates[usize::from(BARRIER_OUTCOME)];
    lanes.set_predicate(i.predicate_destinations[0], outcome);
}

pub(super) fn fence(spelling: &Spelling<'_>) -> Instruction {
    let operation = FenceOperation {
        scope: scope(spelling),
        sequential: spelling.has("SC"),
    };
    Instruction::new(
        Operation::Fence(operation),
        scheduling(Unit::LoadStore, 0, [0; 4]),
    )
}
