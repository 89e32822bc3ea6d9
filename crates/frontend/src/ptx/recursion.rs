//! Functions that call themselves: what must outlive such a call goes to a stack.
//!
//! A function has one set of rows. Around a call that may enter it again, everything that is
//! alive across the call is stored to local memory at the stack pointer, and loaded again
//! afterwards. Lowering marks these calls; this pass finds what is alive and fills the marks in.

use lockstep_isa::{
    Operand, Operation,
    instruction::{Latency, Mix, SchedulingInfo, Unit},
    memory::{Action, AddressOperand, CachePolicy, Element, MemoryOperation, Space, Strength},
    semantics,
    semantics::lane_loops::{Semantics, binary, mask_of},
};

use super::{
    allocate::{self, Alive},
    flow::Graph,
    ir::{Body, Code, FlagId, Mark, Place, RegisterId, Uniformity},
    lower::STACK_ROW,
};

const ADD: Semantics = semantics!(binary; |a, b| a.wrapping_add(b));
/// 1 where a predicate holds.
const FROM_FLAG: Semantics = semantics!(from_flag);
/// A predicate that holds where a word is not zero.
const TO_FLAG: Semantics = semantics!(to_flag);

fn from_flag(l: &mut lockstep_isa::Lanes<'_>, i: &lockstep_isa::Instruction) {
    let mask = l.predicate(i.predicates[0]);
    let row = lockstep_isa::WarpRegister(std::array::from_fn(|n| mask >> n & 1));
    l.write(i.destination, 0, &row);
}

fn to_flag(l: &mut lockstep_isa::Lanes<'_>, i: &lockstep_isa::Instruction) {
    let a = l.integer(i.sources[0]);
    let mask = mask_of(|n| a.0[n] != 0);
    l.set_predicate(i.predicate_destinations[0], mask);
}

/// Fills all marks in.
pub fn save_around_calls<'a>(body: &mut Body<'a>, graph: &mut Graph<'a>) {
    let marked = graph
        .blocks
        .iter()
        .any(|block| block.code.iter().any(|code| code.mark.is_some()));
    if !marked {
        return;
    }
    let alive = allocate::alive_across_marks(body, graph);
    for block in 0..graph.blocks.len() {
        let mut filled = Vec::new();
        // What is filled in belongs to the line of the call.
        let mut line = 0;
        for code in std::mem::take(&mut graph.blocks[block].code) {
            if code.instruction.scheduling.line != 0 {
                line = code.instruction.scheduling.line;
            }
            let start = filled.len();
            match code.mark {
                Some(Mark::Save(call)) => save(body, &alive[&call], &mut filled),
                Some(Mark::Restore(call)) => restore(body, &alive[&call], &mut filled),
                None => filled.push(code),
            }
            for new in &mut filled[start..] {
                if new.instruction.scheduling.line == 0 {
                    new.instruction.scheduling.line = line;
                }
            }
        }
        graph.blocks[block].code = filled;
    }
}

fn shape() -> SchedulingInfo {
    SchedulingInfo {
        unit: Unit::LoadStore,
        latency: Latency::Memory,
        mix: Mix::LoadStore,
        pseudo: true,
        ..SchedulingInfo::default()
    }
}

fn words<'b>(body: &'b Body<'_>, alive: &'b Alive) -> impl Iterator<Item = (RegisterId, u16)> + 'b {
    alive
        .registers
        .iter()
        .flat_map(|register| (0..body.registers[*register as usize]).map(|word| (*register, word)))
}

/// Bytes that a call saves; stacks stay aligned for everything.
fn frame(body: &Body<'_>, alive: &Alive) -> u64 {
    let words = words(body, alive).count() + alive.flags.len();
    (4 * words as u64).next_multiple_of(16)
}

fn save<'a>(body: &mut Body<'a>, alive: &Alive, out: &mut Vec<Code<'a>>) {
    let mut offset = 0;
    for (register, word) in words(body, alive).collect::<Vec<_>>() {
        out.push(store(offset, Place::Virtual { register, word }));
        offset += 4;
    }
    for flag in &alive.flags {
        let register = temporary(body);
        out.push(read_flag(*flag, register));
        out.push(store(offset, Place::Virtual { register, word: 0 }));
        offset += 4;
    }
    out.push(move_stack(frame(body, alive)));
}

fn restore<'a>(body: &mut Body<'a>, alive: &Alive, out: &mut Vec<Code<'a>>) {
    out.push(move_stack(frame(body, alive).wrapping_neg()));
    let mut offset = 0;
    for (register, word) in words(body, alive).collect::<Vec<_>>() {
        out.push(load(offset, Place::Virtual { register, word }));
        offset += 4;
    }
    for flag in &alive.flags {
        let register = temporary(body);
        out.push(load(offset, Place::Virtual { register, word: 0 }));
        out.push(write_flag(*flag, register));
        offset += 4;
    }
}

fn temporary(body: &mut Body<'_>) -> RegisterId {
    body.registers.push(1);
    (body.registers.len() - 1) as RegisterId
}

/// Adds to the stack pointer.
pub fn move_stack<'a>(bytes: u64) -> Code<'a> {
    let mut code = Code::new(Operation::Compute(ADD.choose()), shape());
    code.instruction.sources[0] = code.read(Place::Fixed(STACK_ROW), 1).into();
    code.instruction.sources[1] = Operand::Immediate(bytes).into();
    code.instruction.destination = Some(code.write(Place::Fixed(STACK_ROW), 1));
    code
}

fn access<'a>(offset: i64, action: Action) -> (Code<'a>, MemoryOperation) {
    let mut code = Code::new(Operation::Nothing, shape());
    let base = code.read(Place::Fixed(STACK_ROW), 1);
    let operation = MemoryOperation {
        space: Space::Local,
        action,
        element: Element::B32,
        elements: 1,
        address: AddressOperand {
            base,
            wide: false,
            shift: 0,
            uniform: Operand::None,
            uniform_wide: false,
            offset,
        },
        data: [None; 4],
        values: [Operand::None; 4],
        strength: Strength::Weak,
        cache: CachePolicy::Default,
    };
    (code, operation)
}

fn store<'a>(offset: i64, place: Place) -> Code<'a> {
    let (mut code, mut operation) = access(offset, Action::Store);
    operation.values[0] = code.read(place, 1);
    code.instruction.operation = Operation::Memory(Box::new(operation));
    code
}

fn load<'a>(offset: i64, place: Place) -> Code<'a> {
    let (mut code, mut operation) = access(offset, Action::Load);
    operation.data[0] = Some(code.write(place, 1));
    code.instruction.operation = Operation::Memory(Box::new(operation));
    code.uniformity = Uniformity::Divergent;
    code
}

fn read_flag<'a>(flag: FlagId, register: RegisterId) -> Code<'a> {
    let mut code = Code::new(Operation::Compute(FROM_FLAG.choose()), shape());
    code.instruction.predicates[0] = code.read_flag(flag, false);
    let place = Place::Virtual { register, word: 0 };
    code.instruction.destination = Some(code.write(place, 1));
    code
}

fn write_flag<'a>(flag: FlagId, register: RegisterId) -> Code<'a> {
    let mut code = Code::new(Operation::Compute(TO_FLAG.choose()), shape());
    let place = Place::Virtual { register, word: 0 };
    code.instruction.sources[0] = code.read(place, 1).into();
    code.instruction.predicate_destinations[0] = code.write_flag(flag);
    code
}
