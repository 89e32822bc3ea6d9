//! When the values of one warp are ready by the compiler's own account.
//!
//! The control bits of SASS are a promise: with fixed latency the stall counts between an
//! instruction and the one that reads its result are long enough, with variable latency a counter
//! is raised and waited for. The checker keeps that account for one warp on a clock of its own, which
//! only stall counts move: the earliest that the hardware could issue. It knows no latencies; it
//! tells how far apart the two ends of each dependence were, and whether the reader waited.
//!
//! Left out: overwriting what a slow instruction has yet to read or write; the memory pipe keeps
//! accesses in order, and compilers rely on it without a counter.

use lockstep_isa::instruction::{Control, CounterThreshold};
use lockstep_isa::{Instruction, Mask};
use serde::{Deserialize, Serialize};

use crate::sm::front_end::hazards::{Hazard, Span};

/// Counters of a warp that control bits name.
const COUNTERS: usize = 6;
/// Cycles that hardware lets pass before an instruction without control bits, more than any fixed latency.
const UNSCHEDULED: u64 = 33;
/// Stands for "no instruction yet".
const NOBODY: u32 = u32::MAX;

/// What a register is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum File {
    /// A warp register, uniform registers included.
    Register,
    /// A predicate.
    Predicate,
}

/// How a value is known to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// The writer raised no counter: so many cycles lie between the two.
    After(u64),
    /// The writer raised this counter, and nobody has waited for it since.
    Outstanding(u8),
    /// The writer raised a counter, and it was waited for.
    Waited,
}

/// One instruction needs what another made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dependence {
    /// What kind of register.
    pub file: File,
    /// Its number.
    pub register: u16,
    /// The instruction that wrote it.
    pub writer: u32,
    /// How far the value is.
    pub readiness: Readiness,
}

/// A raised counter: the ticket of one raise. It is lowered when `done` has reached the ticket.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Ticket {
    counter: u8,
    number: u32,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Cell {
    writer: u32,
    at: u64,
    /// Lanes that wrote: the others still have what was there before.
    lanes: Mask,
    written: Option<Ticket>,
}

const FRESH: Cell = Cell {
    writer: NOBODY,
    at: 0,
    lanes: 0,
    written: None,
};

/// The account of one warp.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ControlBitChecker {
    time: u64,
    registers: Vec<Cell>,
    predicates: Vec<Cell>,
    raised: [u32; COUNTERS],
    done: [u32; COUNTERS],
}

impl ControlBitChecker {
    /// Forgets everything: a fresh warp with so many registers and predicates.
    pub fn reset(&mut self, registers: usize, predicates: usize) {
        self.time = 0;
        self.registers.clear();
        self.registers.resize(registers, FRESH);
        self.predicates.clear();
        self.predicates.resize(predicates, FRESH);
        self.raised = [0; COUNTERS];
        self.done = [0; COUNTERS];
    }

    /// Enters an instruction that `active` lanes come to and `execute` of them carry out, and tells
    /// each dependence on an earlier one. Nothing happens if it has no control bits.
    pub fn issue(
        &mut self,
        pc: u32,
        instruction: &Instruction,
        hazard: &Hazard<'_>,
        active: Mask,
        execute: Mask,
        tell: &mut impl FnMut(Dependence),
    ) {
        let Some(control) = instruction.scheduling.control else {
            return;
        };
        if control.is_empty() {
            // Hardware waits for what has no control bits.
            self.done = self.raised;
            self.time += UNSCHEDULED;
        }
        self.wait(&control);
        self.reads(File::Register, hazard.reads, execute, tell);
        self.reads(File::Predicate, hazard.predicate_reads, active, tell);
        // Both may name one counter, and a reader counts as a raise too.
        self.raise(control.read_counter);
        let written = self.raise(control.write_counter);
        for (file, spans) in [
            (File::Register, hazard.writes),
            (File::Predicate, hazard.predicate_writes),
        ] {
            let cell = Cell {
                writer: pc,
                at: self.time,
                lanes: execute,
                written,
            };
            for register in spans.iter().flat_map(Span::all) {
                if let Some(place) = self.file(file).get_mut(register) {
                    *place = cell;
                }
            }
        }
        self.time += u64::from(control.stall.max(1));
    }

    fn file(&mut self, file: File) -> &mut Vec<Cell> {
        match file {
            File::Register => &mut self.registers,
            File::Predicate => &mut self.predicates,
        }
    }

    fn wait(&mut self, control: &Control) {
        for counter in 0..COUNTERS {
            if control.wait_mask >> counter & 1 != 0 {
                self.done[counter] = self.raised[counter];
            }
        }
        if let Some(CounterThreshold { counter, at_most }) = control.threshold
            && let Some(raised) = self.raised.get(usize::from(counter))
        {
            // The oldest are lowered first.
            let done = &mut self.done[usize::from(counter)];
            *done = (*done).max(raised.saturating_sub(u32::from(at_most)));
        }
    }

    fn raise(&mut self, counter: u8) -> Option<Ticket> {
        let raised = self.raised.get_mut(usize::from(counter))?;
        *raised += 1;
        Some(Ticket {
            counter,
            number: *raised,
        })
    }

    fn open(&self, ticket: Option<Ticket>) -> Option<u8> {
        let ticket = ticket?;
        (ticket.number > self.done[usize::from(ticket.counter)]).then_some(ticket.counter)
    }

    fn reads(
        &mut self,
        file: File,
        spans: &[Span],
        lanes: Mask,
        tell: &mut impl FnMut(Dependence),
    ) {
        for register in spans.iter().flat_map(Span::all) {
            let Some(cell) = self.file(file).get(register).copied() else {
                continue;
            };
            if cell.lanes & lanes == 0 {
                continue;
            }
            let readiness = match (cell.written, self.open(cell.written)) {
                (None, _) => Readiness::After(self.time - cell.at),
                (Some(_), Some(counter)) => Readiness::Outstanding(counter),
                (Some(_), None) => Readiness::Waited,
            };
            tell(Dependence {
                file,
                register: register as u16,
                writer: cell.writer,
                readiness,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sm::front_end::hazards::Hazards;
    use lockstep_isa::Operand;
    use lockstep_isa::instruction::{Operation, SchedulingInfo};

    const FREE: Control = Control {
        stall: 1,
        yields: false,
        write_counter: 7,
        read_counter: 7,
        wait_mask: 0,
        reuse: 0,
        threshold: None,
    };

    /// Reads one register, writes another.
    fn instruction(from: u16, to: u16, control: Control) -> Instruction {
        let scheduling = SchedulingInfo {
            source_registers: [1, 0, 0, 0],
            destination_registers: 1,
            control: Some(control),
            ..SchedulingInfo::default()
        };
        let mut instruction = Instruction::new(Operation::Nothing, scheduling);
        instruction.sources[0] = Operand::Register(from).into();
        instruction.destination = Some(to);
        instruction
    }

    fn told(code: Vec<Instruction>, lanes: &[Mask]) -> Vec<Dependence> {
        let hazards = Hazards::new(&code);
        let mut control_bit_checker = ControlBitChecker::default();
        control_bit_checker.reset(8, 1);
        let mut told = Vec::new();
        for (pc, instruction) in code.iter().enumerate() {
            let hazard = hazards.get(pc);
            control_bit_checker.issue(
                pc as u32,
                instruction,
                &hazard,
                lanes[pc],
                lanes[pc],
                &mut |d| {
                    told.push(d);
                },
            );
        }
        told
    }

    #[test]
    fn stall_counts_are_the_clock() {
        let code = vec![
            instruction(0, 1, Control { stall: 4, ..FREE }),
            instruction(7, 2, Control { stall: 0, ..FREE }),
            instruction(1, 3, FREE),
        ];
        let told = told(code, &[1, 1, 1]);
        assert_eq!(told.len(), 1);
        assert_eq!(
            (told[0].writer, told[0].readiness),
            (0, Readiness::After(5))
        );
    }

    #[test]
    fn a_counter_must_be_waited_for() {
        let load = |to, counter| {
            instruction(
                0,
                to,
                Control {
                    write_counter: counter,
                    ..FREE
                },
            )
        };
        let readiness = |reader: Control| {
            let code = vec![load(1, 2), load(2, 2), instruction(1, 3, reader)];
            told(code, &[1, 1, 1])[0].readiness
        };
        assert_eq!(readiness(FREE), Readiness::Outstanding(2));
        let waits = |mask| Control {
            wait_mask: mask,
            ..FREE
        };
        assert_eq!(readiness(waits(1)), Readiness::Outstanding(2));
        assert_eq!(readiness(waits(4)), Readiness::Waited);
        // The first of two may be done while the second is not.
        let drains = |at_most| Control {
            threshold: Some(CounterThreshold {
                counter: 2,
                at_most,
            }),
            ..FREE
        };
        assert_eq!(readiness(drains(1)), Readiness::Waited);
        assert_eq!(readiness(drains(2)), Readiness::Outstanding(2));
    }

    #[test]
    fn other_lanes_do_not_matter() {
        let code = || vec![instruction(0, 1, FREE), instruction(1, 2, FREE)];
        assert!(told(code(), &[0xff, 0xff00]).is_empty());
        assert_eq!(told(code(), &[0xff, 0x1ff]).len(), 1);
    }
}
