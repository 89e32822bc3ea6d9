//! Functions get their places: code, rows, predicates, barriers and memory along the call graph.

use std::collections::{BTreeMap, BTreeSet};

use lockstep_isa::{
    Module, Operand, Operation,
    instruction::Flow,
    module::{CODE_BASE, ConstantBank},
};

use super::{
    error::Error,
    image::{Compiled, Symbols},
    ir::{Amount, Code, Field, Place, Target},
    lower::{KERNEL_BANK, RESERVED_SHARED, RETURN_ROWS, TABLE_BANK},
    syntax::{Program, VariableSpace},
};

/// Stack of a recursive kernel's thread beyond the context's stack size: frames of PTX hold every
/// register that is live, those of compiled code only what does not fit into the machine's.
const STACK_BYTES: u64 = 3072;

/// Local memory that a thread can have, as CUDA has it.
const LARGEST_LOCAL: u64 = 512 << 10;

/// What a function and everything that it calls needs, or where it begins.
#[derive(Clone, Debug, Default)]
struct Extent {
    rows: u32,
    flags: u32,
    barriers: u32,
    local: u64,
}

impl Extent {
    fn plus(&self, other: &Self) -> Self {
        Self {
            rows: self.rows + other.rows,
            flags: self.flags + other.flags,
            barriers: self.barriers + other.barriers,
            local: self.local.next_multiple_of(16) + other.local,
        }
    }

    fn at_least(&mut self, other: &Self) {
        self.rows = self.rows.max(other.rows);
        self.flags = self.flags.max(other.flags);
        self.barriers = self.barriers.max(other.barriers);
        self.local = self.local.max(other.local);
    }
}

/// What a launch of a kernel needs.
#[derive(Debug, Default)]
pub(super) struct Needs {
    pub(super) entry: u32,
    pub(super) rows: u16,
    pub(super) flags: u16,
    pub(super) barriers: u16,
    pub(super) shared_bytes: u32,
    pub(super) local_bytes: u32,
    pub(super) stack_start: u32,
    /// Whether it may call itself.
    pub(super) calls: bool,
    pub(super) named_barriers: u32,
    pub(super) constants: Vec<ConstantBank>,
}

/// Where every function is.
pub(super) struct Placed {
    /// By index in the program.
    functions: BTreeMap<usize, PlacedFunction>,
    kernels: Vec<(usize, Needs)>,
    tables: BTreeMap<(usize, usize), u32>,
}

struct PlacedFunction {
    entry: u32,
    start: Extent,
}

impl Placed {
    /// Places all functions.
    pub(super) fn new(
        program: &Program<'_>,
        symbols: &Symbols<'_, '_>,
        functions: &[Compiled<'_>],
    ) -> Result<Self, Error> {
        let position: BTreeMap<usize, usize> = functions
            .iter()
            .enumerate()
            .map(|(position, function)| (function.body.function, position))
            .collect();
        let calls: Vec<Vec<usize>> = functions
            .iter()
            .map(|function| {
                let callees = symbols.calls.callees[function.body.function].iter();
                callees
                    .filter_map(|callee| position.get(callee).copied())
                    .collect()
            })
            .collect();
        let starts = starts(symbols, functions, &position, &calls);
        let mut placed = Self {
            functions: BTreeMap::new(),
            kernels: Vec::new(),
            tables: BTreeMap::new(),
        };
        let mut entry = 0;
        let mut table = 0;
        for (function, start) in functions.iter().zip(&starts) {
            let start = start.clone();
            let index = function.body.function;
            placed
                .functions
                .insert(index, PlacedFunction { entry, start });
            entry += function.flat.code.len() as u32;
            for (number, labels) in function.flat.tables.iter().enumerate() {
                placed.tables.insert((index, number), table);
                table += 4 * labels.len() as u32;
            }
        }
        for (function, start) in functions.iter().zip(&starts) {
            let recursive = symbols.calls.is_recursive(function.body.function);
            check_rows(&start.plus(&own(function, recursive)))?;
        }
        for (number, function) in functions.iter().enumerate() {
            if program.functions[function.body.function].is_kernel {
                let needs = placed.needs(program, symbols, functions, &starts, &calls, number)?;
                placed.kernels.push((function.body.function, needs));
            }
        }
        Ok(placed)
    }

    pub(super) fn kernels(&self) -> impl Iterator<Item = (usize, &Needs)> {
        self.kernels.iter().map(|(index, needs)| (*index, needs))
    }

    /// Code address of a function that this module defines.
    pub(super) fn code_address(&self, function: usize) -> Option<u64> {
        let placed = self.functions.get(&function)?;
        Some(CODE_BASE + 16 * u64::from(placed.entry))
    }

    fn stack_start(&self, kernel: usize) -> u64 {
        let found = self.kernels.iter().find(|(index, _)| *index == kernel);
        found.map_or(0, |(_, needs)| u64::from(needs.stack_start))
    }

    fn needs(
        &self,
        program: &Program<'_>,
        symbols: &Symbols<'_, '_>,
        functions: &[Compiled<'_>],
        starts: &[Extent],
        calls: &[Vec<usize>],
        kernel: usize,
    ) -> Result<Needs, Error> {
        let reached = reached(calls, kernel);
        let mut total = Extent::default();
        let mut barriers = 0;
        let mut stack = false;
        let mut reserved = false;
        let mut variables = BTreeSet::new();
        for member in &reached {
            let function = &functions[*member];
            let recursive = symbols.calls.is_recursive(function.body.function);
            stack |= recursive || symbols.calls.moves_stack(function.body.function);
            reserved |= function.body.reserved_shared;
            total.at_least(&starts[*member].plus(&own(function, recursive)));
            barriers = barriers.max(if function.body.any_barrier {
                16
            } else {
                function.body.barriers
            });
            variables.extend(function.body.shared_variables.iter().copied());
        }
        let own = &functions[kernel].body;
        check_rows(&total)?;
        let stack_start = total.local.next_multiple_of(16);
        let local = if stack {
            stack_start + STACK_BYTES
        } else {
            total.local
        };
        let (shared_bytes, constants) =
            shared_layout(program, own.shared_bytes, &variables, reserved)?;
        Ok(Needs {
            entry: self.functions[&own.function].entry,
            rows: total.rows as u16,
            flags: total.flags as u16,
            barriers: total.barriers as u16,
            shared_bytes,
            local_bytes: local.next_multiple_of(8) as u32,
            stack_start: stack_start as u32,
            calls: stack,
            named_barriers: barriers,
            constants,
        })
    }
}

/// Refuses what a warp cannot have; numbers of rows, predicates and barriers have 16 bits.
fn check_rows(total: &Extent) -> Result<(), Error> {
    let figures = [
        ("the rows of a kernel", u64::from(total.rows), 60_000),
        ("the predicates of a kernel", total.flags.into(), 60_000),
        (
            "the convergence barriers of a kernel",
            total.barriers.into(),
            60_000,
        ),
        ("the local memory of a kernel", total.local, LARGEST_LOCAL),
    ];
    for (what, found, limit) in figures {
        if found > limit {
            return Err(Error::TooLarge { what, found, limit });
        }
    }
    Ok(())
}

/// What a function needs by itself; a recursive one has its variables on the stack.
fn own(function: &Compiled<'_>, recursive: bool) -> Extent {
    Extent {
        rows: function.allocation.row_count,
        flags: function.allocation.flag_count,
        barriers: u32::from(function.barriers),
        local: if recursive {
            0
        } else {
            function.body.local_bytes
        },
    }
}

/// Where every function begins: after all that call it. Functions that may call each other begin
/// together; what must outlive such a call is on the stack.
fn starts(
    symbols: &Symbols<'_, '_>,
    functions: &[Compiled<'_>],
    position: &BTreeMap<usize, usize>,
    calls: &[Vec<usize>],
) -> Vec<Extent> {
    let mut starts = vec![
        Extent {
            rows: argument_rows(functions),
            ..Extent::default()
        };
        functions.len()
    ];
    for group in &symbols.calls.groups {
        let members: Vec<usize> = group
            .iter()
            .filter_map(|f| position.get(f).copied())
            .collect();
        let mut start = Extent::default();
        for member in &members {
            start.at_least(&starts[*member]);
        }
        for member in &members {
            starts[*member] = start.clone();
            let recursive = symbols.calls.is_recursive(functions[*member].body.function);
            let after = start.plus(&own(&functions[*member], recursive));
            for callee in calls[*member]
                .iter()
                .filter(|callee| !members.contains(callee))
            {
                starts[*callee].at_least(&after);
            }
        }
    }
    // Rows and predicates belong to lanes, and a lane is in one place at a time. Barriers belong
    // to the warp, whose lanes may be in several functions, so that each function has its own.
    let is_kernel = |f: &Compiled<'_>| symbols.program.functions[f.body.function].is_kernel;
    let kernels = functions.iter().filter(|function| is_kernel(function));
    let mut next = kernels
        .map(|function| u32::from(function.barriers))
        .max()
        .unwrap_or(0);
    for (start, function) in starts.iter_mut().zip(functions) {
        start.barriers = 0;
        if !is_kernel(function) {
            start.barriers = next;
            next += u32::from(function.barriers);
        }
    }
    starts
}

/// Rows through which arguments travel: as many as the widest call needs.
fn argument_rows(functions: &[Compiled<'_>]) -> u32 {
    let fixed = functions
        .iter()
        .flat_map(|function| &function.flat.code)
        .flat_map(|code| &code.uses)
        .filter_map(|used| match used.place {
            Place::Fixed(row) => Some(u32::from(row) + u32::from(used.rows)),
            Place::Virtual { .. } => None,
        })
        .max();
    fixed.map_or(0, |rows| rows.max(u32::from(RETURN_ROWS)))
}

fn reached(calls: &[Vec<usize>], from: usize) -> BTreeSet<usize> {
    let mut seen = BTreeSet::new();
    let mut work = vec![from];
    while let Some(function) = work.pop() {
        if seen.insert(function) {
            work.extend(&calls[function]);
        }
    }
    seen
}

/// Places the module's shared variables after the kernel's own; those without a size begin where
/// the rest ends. One with a size is placed although it is `.extern`: a definition would have its name, and
/// ptxas ignores the word where there is none. Gives the static bytes, and the bank that tells the places.
fn shared_layout(
    program: &Program<'_>,
    own: u64,
    variables: &BTreeSet<usize>,
    reserved: bool,
) -> Result<(u32, Vec<ConstantBank>), Error> {
    const LIMIT: u64 = 1 << 28;
    let mut end = own;
    let mut places = BTreeMap::new();
    let reserved_start = end.next_multiple_of(16);
    if reserved {
        end = reserved_start + u64::from(RESERVED_SHARED);
    }
    let sized = |index: &&usize| {
        let variable = &program.variables[**index];
        variable.size.is_some_and(|size| size > 0)
    };
    for index in variables.iter().filter(sized) {
        let variable = &program.variables[*index];
        let start = end.next_multiple_of(variable.alignment.max(1));
        end = start.saturating_add(variable.size.unwrap_or(0));
        places.insert(*index, start);
    }
    let dynamic = variables.iter().filter(|index| !sized(index));
    let alignment = dynamic
        .clone()
        .map(|index| program.variables[*index].alignment)
        .max();
    let bytes = end;
    let start = end.next_multiple_of(alignment.unwrap_or(1).max(1));
    for index in dynamic {
        places.insert(*index, start);
    }
    let static_bytes = if alignment.is_some() { start } else { bytes };
    if static_bytes > LIMIT {
        return Err(Error::TooLarge {
            what: "the shared memory of a kernel",
            found: static_bytes,
            limit: LIMIT,
        });
    }
    if places.is_empty() && !reserved {
        return Ok((static_bytes as u32, Vec::new()));
    }
    let shared = program
        .variables
        .iter()
        .enumerate()
        .filter(|(_, variable)| variable.space == VariableSpace::Shared);
    let words = shared
        .map(|(index, _)| places.get(&index).copied().unwrap_or(0))
        .chain([reserved_start])
        .flat_map(u64::to_le_bytes);
    let bank = ConstantBank {
        bank: KERNEL_BANK,
        bytes: words.collect(),
        backing: None,
    };
    Ok((static_bytes as u32, vec![bank]))
}

/// Writes all functions into the module, every number final.
pub(super) fn emit(
    module: &mut Module,
    program: &Program<'_>,
    placed: &Placed,
    functions: Vec<Compiled<'_>>,
) {
    let mut tables = Vec::new();
    let mut instructions = Vec::new();
    for function in functions {
        let index = function.body.function;
        let place = &placed.functions[&index];
        module.sections.push(place.entry);
        module
            .functions
            .push((place.entry, program.functions[index].name.to_owned()));
        for labels in &function.flat.tables {
            for label in labels {
                tables.extend((place.entry + *label as u32).to_le_bytes());
            }
        }
        let rows = &function.allocation.rows;
        let flags = &function.allocation.flags;
        let targets = function.flat.targets;
        let local_bytes = function.body.local_bytes;
        for (code, target) in function.flat.code.into_iter().zip(targets) {
            let code = finish(code, target, index, place, placed, rows, flags, local_bytes);
            module.listing.push(code.text.to_owned());
            instructions.push(code.instruction);
        }
    }
    module.code = instructions.into();
    if !tables.is_empty() {
        module.constants.push(ConstantBank {
            bank: TABLE_BANK,
            bytes: tables,
            backing: None,
        });
    }
}

/// Rows, jumps and fixups of one instruction.
fn finish<'a>(
    mut code: Code<'a>,
    target: Option<usize>,
    function: usize,
    place: &PlacedFunction,
    placed: &Placed,
    rows: &[u16],
    flags: &[u16],
    local_bytes: u64,
) -> Code<'a> {
    let start = &place.start;
    code.resolve(
        |place| match place {
            Place::Virtual { register, word } => start.rows as u16 + rows[register as usize] + word,
            Place::Fixed(row) => row,
        },
        |flag| start.flags as u16 + flags[flag as usize],
    );
    let called = match code.target {
        Target::Function(callee) => placed.functions.get(&callee).map(|callee| callee.entry),
        _ => None,
    };
    if let Operation::Flow(flow) = &mut code.instruction.operation {
        match flow {
            Flow::Branch { target: to } => {
                *to = target.map_or(0, |target| place.entry + target as u32);
            }
            Flow::Call { target: to } => *to = called.unwrap_or(0),
            Flow::ConvergeSet { barrier }
            | Flow::ConvergeWait { barrier }
            | Flow::ConvergeBreak { barrier } => *barrier += start.barriers as u16,
            _ => {}
        }
    }
    for fixup in std::mem::take(&mut code.fixups) {
        let amount = match fixup.amount {
            Amount::Function(index) => placed.code_address(index).unwrap_or(0),
            Amount::LocalBase => start.local.next_multiple_of(16),
            Amount::Table(table) => u64::from(placed.tables[&(function, table)]),
            Amount::Stack => placed.stack_start(function),
            Amount::Frame { back } => {
                let bytes = local_bytes.next_multiple_of(16);
                if back { bytes.wrapping_neg() } else { bytes }
            }
        };
        match (fixup.field, &mut code.instruction.operation) {
            (Field::Offset, Operation::Memory(memory)) => {
                memory.address.offset = memory.address.offset.wrapping_add(amount as i64);
            }
            (Field::Source(source), _) => {
                let operand = &mut code.instruction.sources[usize::from(source)].operand;
                if let Operand::Immediate(value) = operand {
                    *value = value.wrapping_add(amount);
                }
            }
            _ => {}
        }
    }
    code
}
