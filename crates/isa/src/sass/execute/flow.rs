//! Branches, calls, convergence and the rest that changes where a warp goes.

use super::{
    bind::{BindError, Spelling},
    warp,
};
use crate::{
    instruction::{
        CodeAddress, Flow, GridOperation, Instruction, Latency, Mix, Operation, SchedulingInfo,
        SystemCall, SystemCallKind, Unit,
    },
    lanes::Lanes,
    module::CODE_BASE,
    operand::{Operand, PredicateOperand},
    sass::decoded::Value,
};

/// Binds an instruction that changes where lanes go; `None` if this one does not.
///
/// # Errors
/// If a target lies outside the function.
pub fn bind(spelling: &Spelling<'_>) -> Result<Option<Instruction>, BindError> {
    let mut instruction = match spelling.name {
        "BRA" | "JMP" => branch(spelling)?,
        "BRX" | "BRXU" | "JMX" => indirect(spelling, |address| Flow::BranchIndirect { address })?,
        "CALL" => call(spelling)?,
        "RET" => indirect(spelling, |address| Flow::Return { address })?,
        "EXIT" => flow(Flow::Exit),
        "BSSY" => flow(Flow::ConvergeSet {
            barrier: barrier(spelling)?,
        }),
        "BSYNC" => flow(Flow::ConvergeWait {
            barrier: barrier(spelling)?,
        }),
        "BREAK" => flow(Flow::ConvergeBreak {
            barrier: barrier(spelling)?,
        }),
        "WARPSYNC" => warp_sync(spelling)?,
        "YIELD" => flow(Flow::Yield),
        "BMOV" => move_barrier(spelling)?,
        "RPCMOV" => move_return_pc(spelling)?,
        "LEPC" => code_address(spelling)?,
        "NANOSLEEP" => sleep(spelling)?,
        "BPT" => system(
            if spelling.has("TRAP") {
                SystemCallKind::Trap
            } else {
                SystemCallKind::Breakpoint
            },
            Vec::new(),
        ),
        "ENDCOLLECTIVE" => flow(Flow::EndCollective),
        "UCGABAR_ARV" => grid(GridOperation::ClusterArrive),
        "UCGABAR_WAIT" => grid(GridOperation::ClusterWait),
        "PREEXIT" => grid(GridOperation::LaunchDependents),
        "ACQBULK" => grid(GridOperation::WaitForPrerequisites),
        "NOP" => Instruction::new(Operation::Nothing, scheduling()),
        _ => return Ok(None),
    };
    // A second predicate narrows the guard: `EXIT P2`, `BRA UP0, …`.
    if let Operation::Flow(_) = instruction.operation {
        let second = spelling
            .operands()
            .iter()
            .find_map(|operand| spelling.predicate(operand));
        instruction.predicates[0] = second.unwrap_or(PredicateOperand::TRUE);
    }
    Ok(Some(instruction))
}

fn scheduling() -> SchedulingInfo {
    SchedulingInfo {
        unit: Unit::Branch,
        latency: Latency::Branch,
        mix: Mix::Control,
        ..SchedulingInfo::default()
    }
}

fn grid(operation: GridOperation) -> Instruction {
    Instruction::new(
        Operation::Grid(operation),
        SchedulingInfo {
            unit: Unit::Miscellaneous,
            latency: Latency::Barrier,
            mix: Mix::Control,
            ..SchedulingInfo::default()
        },
    )
}

fn flow(flow: Flow) -> Instruction {
    Instruction::new(Operation::Flow(flow), scheduling())
}

fn system(kind: SystemCallKind, arguments: Vec<Operand>) -> Instruction {
    let call = SystemCall {
        kind,
        arguments,
        result: None,
    };
    Instruction::new(Operation::System(Box::new(call)), scheduling())
}

/// The code address in the text, as an index.
fn target(spelling: &Spelling<'_>) -> Result<u32, BindError> {
    let target = spelling
        .operands()
        .iter()
        .find_map(|operand| match operand.value {
            Value::Target(address) => Some(address),
            _ => None,
        });
    spelling
        .frame
        .index(target.ok_or_else(|| BindError::new("has no target"))?)
}

fn branch(spelling: &Spelling<'_>) -> Result<Instruction, BindError> {
    let target = target(spelling)?;
    let (diverged, converged) = (spelling.has("DIV"), spelling.has("CONV"));
    if !diverged && !converged {
        return Ok(flow(Flow::Branch { target }));
    }
    let mut instruction = flow(Flow::BranchOnDivergence {
        target,
        if_converged: converged,
    });
    let mask = spelling.operands().iter().find(|operand| {
        matches!(
            operand.value,
            Value::Register(_) | Value::UniformRegister(_) | Value::Immediate(_)
        )
    });
    // Before sm_80 all lanes are meant.
    instruction.sources[0] = match mask {
        Some(mask) => spelling.source(mask)?,
        None => Operand::Immediate(u64::from(u32::MAX)).into(),
    };
    Ok(instruction)
}

/// A register plus a constant. `CALL.REL` and `RET.REL` come decoded with the place in the section
/// that the register counts from, `BRX` with its distance from the next instruction; `RET.ABS` has
/// the whole address in a pair of registers.
fn indirect(
    spelling: &Spelling<'_>,
    make: fn(CodeAddress) -> Flow,
) -> Result<Instruction, BindError> {
    for operand in spelling.operands() {
        let (register, uniform, address) = match operand.value {
            Value::RegisterTarget {
                register,
                uniform,
                offset,
            } => {
                let address = if spelling.has("ABS") {
                    if offset != 0 {
                        return Ok(spelling.unsupported("adds a constant to a whole code address"));
                    }
                    CodeAddress::Absolute
                } else {
                    let next = spelling.decoded.address as i64 + 16;
                    let start = if spelling.has("REL") {
                        offset
                    } else {
                        next.saturating_add(offset)
                    };
                    let base = i64::from(spelling.frame.section) + start / 16;
                    let base = u32::try_from(base)
                        .map_err(|_| BindError::new("counts from before its module"))?;
                    CodeAddress::Relative { base }
                };
                (register, uniform, address)
            }
            Value::Register(register) => (register, false, CodeAddress::Absolute),
            Value::UniformRegister(register) => (register, true, CodeAddress::Absolute),
            _ => continue,
        };
        let row = if uniform {
            spelling.frame.uniform(register)
        } else {
            spelling.frame.register(register)
        };
        let mut instruction = flow(make(address));
        instruction.sources[0] = row.map_or(Operand::None, Operand::Register).into();
        instruction.scheduling.source_registers[0] = 2;
        return Ok(instruction);
    }
    Err(BindError::new("names no register to go by"))
}

/// Return addresses are set by the code itself, so a call is a jump.
fn call(spelling: &Spelling<'_>) -> Result<Instruction, BindError> {
    if spelling
        .operands()
        .iter()
        .any(|operand| matches!(operand.value, Value::Target(_)))
    {
        return Ok(flow(Flow::Call {
            target: target(spelling)?,
        }));
    }
    let absolute = spelling
        .operands()
        .iter()
        .find_map(|operand| match operand.value {
            Value::AbsoluteTarget(address) => Some(address),
            _ => None,
        });
    if let Some(address) = absolute {
        let index = address.checked_sub(CODE_BASE).map(|offset| offset / 16);
        let index = index.and_then(|index| u32::try_from(index).ok());
        let Some(target) = index else {
            return Ok(spelling.unsupported("calls an address that is no code of this module"));
        };
        return Ok(flow(Flow::Call { target }));
    }
    indirect(spelling, |address| Flow::CallIndirect { address })
}

fn barrier(spelling: &Spelling<'_>) -> Result<u16, BindError> {
    let found = spelling
        .operands()
        .iter()
        .find_map(|operand| match operand.value {
            Value::ConvergenceBarrier(index) => Some(u16::from(index)),
            _ => None,
        });
    found.ok_or_else(|| BindError::new("names no convergence barrier"))
}

fn warp_sync(spelling: &Spelling<'_>) -> Result<Instruction, BindError> {
    let mut instruction = flow(if spelling.has("COLLECTIVE") {
        Flow::Collective {
            target: target(spelling)?,
        }
    } else if spelling.has("EXCLUSIVE") {
        Flow::WarpSyncExclusive
    } else {
        Flow::WarpSync
    });
    let mask = spelling.operands().iter().find(|operand| {
        matches!(
            operand.value,
            Value::Register(_) | Value::UniformRegister(_) | Value::Immediate(_)
        )
    });
    instruction.sources[0] = match mask {
        Some(operand) if !spelling.has("ALL") => spelling.source(operand)?,
        _ => Operand::Immediate(u64::from(u32::MAX)).into(),
    };
    instruction.scheduling.source_registers[0] = 1;
    Ok(instruction)
}

/// `BMOV`: convergence barriers to and from registers.
fn move_barrier(spelling: &Spelling<'_>) -> Result<Instruction, BindError> {
    let Ok(index) = barrier(spelling) else {
        return Ok(spelling.unsupported("moves a control register that is not modelled"));
    };
    if spelling.has("PQUAD") {
        return Ok(spelling.unsupported("moves lanes of quads, which are not modelled"));
    }
    let to_barrier = matches!(
        spelling.operands().first().map(|operand| operand.value),
        Some(Value::ConvergenceBarrier(_))
    );
    let compute = if to_barrier {
        warp::write_barrier
    } else {
        warp::read_barrier
    };
    let mut instruction = Instruction::new(
        Operation::Compute(compute),
        SchedulingInfo {
            source_registers: [0, 1, 0, 0],
            destination_registers: 1,
            ..scheduling()
        },
    );
    instruction.sources[0] = Operand::Immediate(u64::from(index)).into();
    for operand in spelling.operands() {
        match operand.value {
            Value::Register(register) if to_barrier => {
                instruction.sources[1] = spelling
                    .frame
                    .register(register)
                    .map_or(Operand::None, Operand::Register)
                    .into();
            }
            Value::Register(register) => {
                instruction.destination = spelling.frame.register(register)
            }
            Value::Immediate(_) => instruction.sources[1] = spelling.source(operand)?,
            _ => {}
        }
    }
    if spelling.has("CLEAR") {
        instruction.modifiers |= warp::CLEAR;
    }
    Ok(instruction)
}

/// `LEPC R`: where this instruction is; `LEPC R, target`: where that one is.
fn code_address(spelling: &Spelling<'_>) -> Result<Instruction, BindError> {
    let target = spelling
        .operands()
        .iter()
        .find_map(|operand| match operand.value {
            Value::Target(address) => Some(address),
            _ => None,
        });
    let address = target.unwrap_or(spelling.decoded.address as i64);
    let index = spelling.frame.index(address)?;
    let register = spelling
        .operands()
        .iter()
        .find_map(|operand| match operand.value {
            Value::Register(register) => Some(register),
            _ => None,
        });
    let mut instruction = Instruction::new(
        Operation::Compute(warp::code_address),
        SchedulingInfo {
            destination_registers: 2,
            latency: Latency::Integer,
            unit: Unit::Alu,
            ..scheduling()
        },
    );
    instruction.destination = register.and_then(|register| spelling.frame.register(register));
    instruction.sources[0] = Operand::Immediate(CODE_BASE + 16 * u64::from(index)).into();
    Ok(instruction)
}

/// `RPCMOV`: a word to or from a register that only this instruction names.
fn move_return_pc(spelling: &Spelling<'_>) -> Result<Instruction, BindError> {
    let [to, from] = spelling.operands() else {
        return Err(BindError::new("moves one word"));
    };
    let word = |operand: &crate::sass::decoded::Operand| match operand.value {
        Value::Word(name, _) => Some(spelling.frame.return_pc(name.name() == "Rpc.HI")),
        Value::Register(index) => spelling.frame.register(index),
        _ => None,
    };
    if spelling.frame.uniform_registers < 3 {
        return Err(BindError::new(
            "moves a register that the module has no room for",
        ));
    }
    let mut instruction = Instruction::new(
        Operation::Compute(copy_word),
        SchedulingInfo {
            unit: Unit::Alu,
            latency: Latency::Integer,
            source_registers: [1, 0, 0, 0],
            destination_registers: 1,
            ..SchedulingInfo::default()
        },
    );
    instruction.destination = word(to);
    instruction.sources[0] = word(from).map_or(Operand::None, Operand::Register).into();
    Ok(instruction)
}

fn copy_word(lanes: &mut Lanes<'_>, i: &Instruction) {
    let word = lanes.integer(i.sources[0]);
    lanes.write(i.destination, 0, &word);
}

fn sleep(spelling: &Spelling<'_>) -> Result<Instruction, BindError> {
    let time = spelling.operands().iter().find(|operand| {
        matches!(
            operand.value,
            Value::Register(_)
                | Value::UniformRegister(_)
                | Value::Immediate(_)
                | Value::Constant(_)
        )
    });
    let argument = match time {
        Some(operand) => spelling.source(operand)?.operand,
        None => Operand::Immediate(0),
    };
    let kind = if spelling.has("SYNCS") {
        SystemCallKind::SleepAtMbarrier
    } else {
        SystemCallKind::Sleep
    };
    Ok(system(kind, vec![argument]))
}
