//! From text to a linked module: the list of passes is [`Image::link`].

use std::collections::BTreeMap;

use lockstep_isa::{
    Instruction, Kernel, Module, Operation,
    instruction::SystemCallKind,
    module::{Bank0Layout, ConstantBank, Global, GlobalKind, Parameter, SourceLine},
};

use super::{
    allocate::{self, Allocation},
    calls::Calls,
    emit::{self, Placed},
    error::Error,
    flat::Flat,
    flow::Graph,
    ir::Body,
    lower::{self, Lowering},
    parser, reconvergence, recursion,
    syntax::{Function, InitialValue, Linkage, Program, Variable, VariableSpace},
};

/// A parsed text whose variables have no addresses yet.
#[derive(Debug)]
pub struct Image {
    text: String,
    globals: Vec<Global>,
    /// Compute capability × 10 of the GPU that runs it, if it is known.
    gpu: Option<u32>,
}

/// What a name of the module stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ModuleName {
    Variable(usize),
    Function(usize),
}

/// Names of the module.
pub(super) struct Symbols<'p, 'a> {
    pub(super) program: &'p Program<'a>,
    names: BTreeMap<&'a str, ModuleName>,
    pub(super) calls: Calls,
    /// Compute capability × 10 of the GPU.
    pub(super) gpu: u32,
}

impl<'p, 'a> Symbols<'p, 'a> {
    /// Definitions win over declarations.
    fn new(program: &'p Program<'a>, gpu: Option<u32>) -> Self {
        let mut names = BTreeMap::new();
        for (index, variable) in program.variables.iter().enumerate() {
            let defined = variable.linkage != Linkage::Extern;
            if defined || !names.contains_key(variable.name) {
                names.insert(variable.name, ModuleName::Variable(index));
            }
        }
        for (index, function) in program.functions.iter().enumerate() {
            if function.body.is_some() || !names.contains_key(function.name) {
                names.insert(function.name, ModuleName::Function(index));
            }
        }
        for (alias, target) in &program.aliases {
            if let Some(found) = names.get(target).copied() {
                names.insert(alias, found);
            }
        }
        let mut symbols = Self {
            program,
            names,
            calls: Calls::default(),
            gpu: gpu.unwrap_or(program.architecture),
        };
        symbols.calls = Calls::new(program, &symbols);
        symbols
    }

    pub(super) fn find(&self, name: &str) -> Option<ModuleName> {
        self.names.get(name).copied()
    }

    /// Byte offsets of a kernel's parameters, each at its alignment.
    pub(super) fn parameter_offsets(&self, function: &Function<'_>) -> Vec<u64> {
        parameter_layout(function).0
    }

    /// Bytes of a kernel's parameters.
    pub(super) fn parameter_bytes(&self, function: &Function<'_>) -> u32 {
        parameter_layout(function).1 as u32
    }
}

fn parameter_layout(function: &Function<'_>) -> (Vec<u64>, u64) {
    let mut end = 0u64;
    let offsets = function
        .parameters
        .iter()
        .map(|parameter| {
            let start = end.next_multiple_of(parameter.alignment.max(1));
            end = start.saturating_add(parameter.size.unwrap_or(0));
            start
        })
        .collect();
    (offsets, end)
}

/// Where a variable of the module is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VariablePlace {
    /// At an address.
    Global(u64),
    /// At an offset of the constant bank.
    Constant(u64),
    /// Wherever the kernel has it: number of the word that tells.
    Shared(u32),
    /// Nowhere: a texture reference, by its index.
    Texture(u64),
    /// Not in this module.
    Undefined,
}

/// Where all variables of the module are.
pub(super) struct Layout {
    pub(super) variables: Vec<VariablePlace>,
    pub(super) constant_base: u64,
    pub(super) constant_bytes: u64,
    /// Word that tells where the system's part of shared memory is.
    pub(super) reserved_slot: u32,
}

/// File and line, and those of the call that the line was put in the place of.
type SourcePlace = (u64, u32, Option<(u64, u32)>);

/// Source lines, numbered from 1.
pub(super) struct Lines {
    files: BTreeMap<u64, String>,
    numbers: BTreeMap<SourcePlace, u32>,
    pub(super) list: Vec<SourceLine>,
}

impl Lines {
    fn new(program: &Program<'_>) -> Self {
        let files = program.files.iter();
        Self {
            files: files
                .map(|(number, path)| (*number, (*path).to_owned()))
                .collect(),
            numbers: BTreeMap::new(),
            list: vec![SourceLine::default()],
        }
    }

    pub(super) fn number(&mut self, file: u64, line: u32, call: Option<(u64, u32)>) -> u32 {
        let next = self.list.len() as u32;
        let number = *self.numbers.entry((file, line, call)).or_insert(next);
        if number == next {
            let name = |file| self.files.get(&file).cloned().unwrap_or_default();
            let inlined_at = call.map(|(file, line)| format!("{}:{line}", name(file)));
            self.list.push(SourceLine {
                file: name(file),
                line,
                inlined_at: inlined_at.unwrap_or_default(),
            });
        }
        number
    }
}

/// Largest memory of all variables together.
const LARGEST_VARIABLES: u64 = 1 << 40;
/// Largest constant memory.
const LARGEST_CONSTANTS: u64 = 64 << 10;
/// Largest space of a kernel's parameters.
const LARGEST_PARAMETERS: u64 = 32 << 10;

/// Variables that need addresses: global ones, then constant ones, these at increasing offsets.
fn list_globals(program: &Program<'_>) -> Result<(Vec<Global>, Vec<Option<usize>>), Error> {
    let mut globals = Vec::new();
    let mut numbers = vec![None; program.variables.len()];
    let mut total = 0u64;
    let mut add = |index: usize, variable: &Variable<'_>, kind: GlobalKind, alignment: u64| {
        numbers[index] = Some(globals.len());
        globals.push(Global {
            name: variable.name.to_owned(),
            size: variable.size.unwrap_or(0),
            alignment,
            kind,
        });
    };
    for (index, variable) in program.variables.iter().enumerate() {
        if variable.space == VariableSpace::Global && variable.linkage != Linkage::Extern {
            total = total.saturating_add(variable.size.unwrap_or(0));
            let kind = if variable.texture {
                GlobalKind::Texture
            } else if variable.managed {
                GlobalKind::Managed
            } else {
                GlobalKind::Device
            };
            add(index, variable, kind, variable.alignment);
        }
    }
    if total > LARGEST_VARIABLES {
        return Err(Error::TooLarge {
            what: "the memory of all variables",
            found: total,
            limit: LARGEST_VARIABLES,
        });
    }
    let constants = |variable: &&Variable<'_>| {
        variable.space == VariableSpace::Constant && variable.linkage != Linkage::Extern
    };
    let widest = program
        .variables
        .iter()
        .filter(constants)
        .map(|v| v.alignment)
        .max();
    let mut end = 0u64;
    for (index, variable) in program.variables.iter().enumerate() {
        if !constants(&variable) {
            continue;
        }
        // The first one is aligned for all, so that offsets hold from wherever it lies.
        let first = end == 0;
        let alignment = if first {
            widest.unwrap_or(1).max(16)
        } else {
            variable.alignment
        };
        let offset = end.next_multiple_of(alignment.max(1));
        end = offset.saturating_add(variable.size.unwrap_or(0).max(1));
        if end > LARGEST_CONSTANTS {
            return Err(Error::TooLarge {
                what: "constant memory",
                found: end,
                limit: LARGEST_CONSTANTS,
            });
        }
        let kind = GlobalKind::Constant {
            bank: lower::CONSTANT_BANK,
            offset: offset as u32,
        };
        add(index, variable, kind, alignment);
    }
    // A constant of no size still has a place of its own.
    for global in &mut globals {
        if matches!(global.kind, GlobalKind::Constant { .. }) {
            global.size = global.size.max(1);
        }
    }
    Ok((globals, numbers))
}

impl Image {
    /// Parses a text and lists its variables.
    pub fn new(text: String) -> Result<Self, Error> {
        let program = parser::parse(&text)?;
        let (globals, _) = list_globals(&program)?;
        for function in &program.functions {
            let (_, bytes) = parameter_layout(function);
            if function.is_kernel && bytes > LARGEST_PARAMETERS {
                return Err(Error::TooLarge {
                    what: "the space of a kernel's parameters",
                    found: bytes,
                    limit: LARGEST_PARAMETERS,
                });
            }
        }
        Ok(Self {
            text,
            globals,
            gpu: None,
        })
    }

    /// Says which GPU will run it, by compute capability × 10: their units round differently.
    #[must_use]
    pub fn for_gpu(self, architecture: u32) -> Self {
        Self {
            gpu: Some(architecture),
            ..self
        }
    }

    /// Variables that need addresses.
    pub fn globals(&self) -> &[Global] {
        &self.globals
    }

    /// Makes a module, given the address of each of [`Self::globals`].
    pub fn link(&self, addresses: &[u64]) -> Result<Module, Error> {
        if addresses.len() != self.globals.len() {
            return Err(Error::Addresses {
                given: addresses.len(),
                wanted: self.globals.len(),
            });
        }
        let program = parser::parse(&self.text)?;
        let symbols = Symbols::new(&program, self.gpu);
        let (globals, numbers) = list_globals(&program)?;
        let layout = lay_out(&program, &globals, &numbers, addresses);
        let mut lines = Lines::new(&program);
        let mut functions = Vec::new();
        for (index, function) in program.functions.iter().enumerate() {
            if function.body.is_some()
                && symbols.find(function.name) == Some(ModuleName::Function(index))
            {
                let body = Lowering::run(&symbols, &layout, index, &mut lines)?;
                functions.push(compile(body, function.is_kernel));
            }
        }
        let placed = Placed::new(&program, &symbols, &functions)?;
        let mut module = Module {
            architecture: program.architecture,
            ..Module::default()
        };
        emit::emit(&mut module, &program, &placed, functions);
        module.launches_kernels = module.code.iter().any(calls_device_runtime);
        module.lines = lines.list;
        initialise(&mut module, &program, &symbols, &layout, &placed)?;
        fill_banks(&mut module, &program, &layout);
        make_kernels(&mut module, &program, &symbols, &placed);
        Ok(module)
    }
}

fn calls_device_runtime(instruction: &Instruction) -> bool {
    match &instruction.operation {
        Operation::System(call) => matches!(call.kind, SystemCallKind::DeviceRuntime { .. }),
        _ => false,
    }
}

/// A function ready to be placed.
pub(super) struct Compiled<'a> {
    pub(super) body: Body<'a>,
    pub(super) flat: Flat<'a>,
    pub(super) allocation: Allocation,
    pub(super) barriers: u16,
}

/// The passes over one function: graph, stack, barriers, list, rows.
fn compile(mut body: Body<'_>, is_kernel: bool) -> Compiled<'_> {
    let mut graph = Graph::new(&mut body);
    recursion::save_around_calls(&mut body, &mut graph);
    let barriers = reconvergence::insert(&body, &mut graph, is_kernel);
    let flat = Flat::new(graph);
    let allocation = allocate::allocate(&body, &flat);
    Compiled {
        body,
        flat,
        allocation,
        barriers,
    }
}

fn lay_out(
    program: &Program<'_>,
    globals: &[Global],
    numbers: &[Option<usize>],
    addresses: &[u64],
) -> Layout {
    let mut slots = 0;
    let mut layout = Layout {
        variables: Vec::new(),
        constant_base: 0,
        constant_bytes: 0,
        reserved_slot: 0,
    };
    for (variable, number) in program.variables.iter().zip(numbers) {
        let place = match (variable.space, number) {
            (VariableSpace::Shared, _) => {
                slots += 1;
                VariablePlace::Shared(slots - 1)
            }
            (_, None) => VariablePlace::Undefined,
            (_, Some(number)) => match globals[*number].kind {
                GlobalKind::Constant { offset, .. } => {
                    if offset == 0 {
                        layout.constant_base = addresses[*number];
                    }
                    let end = u64::from(offset) + globals[*number].size;
                    layout.constant_bytes = layout.constant_bytes.max(end);
                    VariablePlace::Constant(u64::from(offset))
                }
                GlobalKind::Texture => VariablePlace::Texture(addresses[*number]),
                _ => VariablePlace::Global(addresses[*number]),
            },
        };
        layout.variables.push(place);
    }
    layout.reserved_slot = slots;
    layout
}

/// Initial bytes of variables, addresses in them resolved.
fn initialise(
    module: &mut Module,
    program: &Program<'_>,
    symbols: &Symbols<'_, '_>,
    layout: &Layout,
    placed: &Placed,
) -> Result<(), Error> {
    for (variable, place) in program.variables.iter().zip(&layout.variables) {
        let start = match place {
            VariablePlace::Global(address) => *address,
            VariablePlace::Constant(offset) => layout.constant_base + offset,
            _ => continue,
        };
        if variable.initial.is_empty() {
            continue;
        }
        let size = variable.size.unwrap_or(0);
        let width = variable.scalar.bytes() as usize;
        let last = variable.initial.iter().map(|initial| initial.offset).max();
        let used = last.unwrap_or(0) + width as u64;
        if used > size {
            return Err(Error::Meaning {
                position: variable.position,
                message: format!("{used} bytes of initial values for a variable of {size} bytes"),
                text: variable.name.to_owned(),
            });
        }
        let mut bytes = vec![0; used as usize];
        for initial in &variable.initial {
            let value = initial_value(variable, &initial.value, symbols, layout, placed)?;
            let at = initial.offset as usize;
            let little = value.to_le_bytes();
            for (index, byte) in bytes[at..at + width].iter_mut().enumerate() {
                *byte = little.get(index).copied().unwrap_or(0);
            }
        }
        module.initial.push((start, bytes));
    }
    Ok(())
}

fn initial_value(
    variable: &Variable<'_>,
    value: &InitialValue<'_>,
    symbols: &Symbols<'_, '_>,
    layout: &Layout,
    placed: &Placed,
) -> Result<u64, Error> {
    let (name, offset, generic, mask) = match value {
        InitialValue::Bits(bits) => return Ok(*bits),
        InitialValue::Address {
            name,
            offset,
            generic,
            mask,
        } => (*name, *offset, *generic, *mask),
    };
    let base = match symbols.find(name) {
        Some(ModuleName::Variable(index)) => match layout.variables[index] {
            VariablePlace::Global(address) => Some(address),
            VariablePlace::Constant(place) if generic => Some(layout.constant_base + place),
            VariablePlace::Constant(place) => Some(place),
            _ => None,
        },
        Some(ModuleName::Function(index)) => placed.code_address(index),
        None => None,
    };
    let Some(base) = base else {
        return Err(Error::UnknownName {
            position: variable.position,
            name: name.to_owned(),
            expected: "a variable with an address, or a function",
        });
    };
    let address = base.wrapping_add(offset as u64);
    Ok(match mask {
        // `mask(0xff00)(x)`: one byte of the address.
        Some(mask) if mask != 0 => (address & mask) >> (mask.trailing_zeros() / 8 * 8),
        _ => address,
    })
}

/// The bank of `.const` variables; global memory holds what counts.
fn fill_banks(module: &mut Module, program: &Program<'_>, layout: &Layout) {
    if layout.constant_bytes == 0 {
        return;
    }
    let mut bytes = vec![0; layout.constant_bytes as usize];
    let end = layout.constant_base + layout.constant_bytes;
    for (address, initial) in &module.initial {
        if (layout.constant_base..end).contains(address) {
            let at = (address - layout.constant_base) as usize;
            bytes[at..at + initial.len()].copy_from_slice(initial);
        }
    }
    debug_assert!(program.variables.len() >= layout.variables.len());
    module.constants.push(ConstantBank {
        bank: lower::CONSTANT_BANK,
        bytes,
        backing: Some(layout.constant_base),
    });
}

fn make_kernels(
    module: &mut Module,
    program: &Program<'_>,
    symbols: &Symbols<'_, '_>,
    placed: &Placed,
) {
    for (index, needs) in placed.kernels() {
        let function = &program.functions[index];
        let offsets = symbols.parameter_offsets(function);
        let parameters = function
            .parameters
            .iter()
            .zip(offsets)
            .map(|(parameter, offset)| Parameter {
                offset: offset as u32,
                size: parameter.size.unwrap_or(0) as u32,
            });
        module.kernels.push(Kernel {
            name: function.name.to_owned(),
            entry: needs.entry,
            warp_registers: needs.rows,
            // The compiler's own figure is not in the text; rows in use are close to it.
            registers: function
                .entry_registers()
                .unwrap_or_else(|| u32::from(needs.rows).clamp(16, 255)),
            predicates: needs.flags,
            convergence_barriers: needs.barriers,
            parameters: parameters.collect(),
            parameter_base: lower::PARAMETER_BASE,
            parameter_bytes: symbols.parameter_bytes(function),
            shared_bytes: needs.shared_bytes,
            shared_reserved: 0,
            local_bytes: needs.local_bytes,
            needs_stack: needs.calls,
            constant_bytes: lower::PARAMETER_BASE + symbols.parameter_bytes(function),
            max_threads: function.max_threads,
            required_threads: function.required_threads,
            barriers: needs.named_barriers,
            cluster: function.cluster,
            virtual_architecture: program.architecture,
            constants: needs.constants.clone(),
            bank0: Bank0Layout::default(),
            bank0_words: Vec::new(),
        });
    }
}
