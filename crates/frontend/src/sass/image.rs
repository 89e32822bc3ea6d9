//! A cubin decoded, bound and linked.

use std::{collections::BTreeMap, sync::Arc};

use lockstep_isa::{
    Instruction, Kernel, Module, Operand, Operation,
    instruction::{CodeAddress, Flow, SchedulingInfo, SystemCall, SystemCallKind},
    module::{Bank0Layout, CODE_BASE, ConstantBank, Global, GlobalKind, Parameter, SourceLine},
    operand::Source,
    sass::{
        Architecture, Decoded, Value, Word, decode,
        execute::{Frame, bind, bind::PREDICATES},
        word::WORD_BYTES,
    },
};

use super::{
    cubin::{Cubin, Section, Symbol},
    error::Error,
    info, lines,
    relocation::{self, Action},
};

const OBJECT: u8 = 1;
const FUNCTION: u8 = 2;
const KERNEL_MARK: u8 = 0x10;
const MANAGED_MARK: u8 = 0x04;
/// Convergence barriers of a warp, `B0` to `B15`.
const CONVERGENCE_BARRIERS: u16 = 16;
/// Shared memory that Hopper's code leaves to the system at the start of a block's.
const HOPPER_RESERVED_SHARED: u32 = 0x400;

/// Device functions that the system provides: name, what it does, argument registers, result.
const SYSTEM_FUNCTIONS: &[(&str, SystemCallKind, &[u8], Option<u8>)] = &[
    ("vprintf", SystemCallKind::Print, &[4, 6], Some(4)),
    ("malloc", SystemCallKind::Allocate, &[4], Some(4)),
    ("free", SystemCallKind::Free, &[4], None),
    (
        "__assertfail",
        SystemCallKind::AssertFail,
        &[4, 6, 8, 10, 12],
        None,
    ),
];

/// Machine code of one module, its variables not placed yet.
#[derive(Debug, Clone)]
pub struct Image {
    cubin: Cubin,
    architecture: Architecture,
    globals: Vec<Global>,
    /// Symbol that each global stands for.
    global_symbols: Vec<usize>,
}

/// Where each function of the module went.
struct Layout {
    /// First instruction of each text section.
    sections: BTreeMap<usize, u32>,
    /// System functions behind all code, in the order of [`SYSTEM_FUNCTIONS`].
    system: u32,
    /// Functions that are defined nowhere, one instruction each behind those: symbols.
    missing: Vec<usize>,
}

impl Image {
    /// Reads a cubin.
    ///
    /// # Errors
    /// If it is broken or for an architecture without a decoder.
    pub fn read(bytes: &[u8]) -> Result<Self, Error> {
        let cubin = Cubin::read(bytes)?;
        let architecture =
            Architecture::from_sm(cubin.architecture).ok_or(Error::UnknownArchitecture {
                architecture: cubin.architecture,
            })?;
        let mut globals = Vec::new();
        let mut global_symbols = Vec::new();
        for (index, symbol) in cubin.symbols.iter().enumerate() {
            if let Some(global) = variable(&cubin, symbol) {
                globals.push(global);
                global_symbols.push(index);
            }
        }
        Ok(Self {
            cubin,
            architecture,
            globals,
            global_symbols,
        })
    }

    /// Compute capability × 10 of the code.
    #[must_use]
    pub fn architecture(&self) -> u32 {
        self.cubin.architecture
    }

    /// Variables that need an address.
    #[must_use]
    pub fn globals(&self) -> &[Global] {
        &self.globals
    }

    /// Decodes everything and fixes all addresses, those of [`Self::globals`] in their order.
    ///
    /// # Errors
    /// If an instruction or a relocation is unknown, or a variable is defined nowhere. A function that is
    /// defined nowhere stops the kernel that calls it.
    pub fn link(&self, addresses: &[u64]) -> Result<Module, Error> {
        if addresses.len() != self.globals.len() {
            return Err(Error::Addresses {
                given: addresses.len(),
                wanted: self.globals.len(),
            });
        }
        let layout = self.lay_out();
        let sections = self.relocated(&layout, addresses)?;
        let uniform_registers = self.uniform_registers(&sections)?;
        let mut module = Module {
            architecture: self.cubin.architecture,
            native: true,
            ..Module::default()
        };
        let lines = lines::read(&self.cubin);
        let mut known = BTreeMap::new();
        for (section, start) in &layout.sections {
            debug_assert_eq!(*start as usize, module.code.len());
            self.bind_section(&sections, *section, *start, uniform_registers, &mut module)?;
            let rows = lines.get(section).map_or(&[][..], Vec::as_slice);
            name_lines(rows, *start, &mut known, &mut module);
        }
        system_functions(uniform_registers, &mut module);
        for index in &layout.missing {
            missing_function(&self.cubin.symbols[*index].name, &mut module);
        }
        self.add_constants(&sections, &mut module);
        self.add_initial(&sections, addresses, &mut module);
        for symbol in &self.cubin.symbols {
            let Some(section) = symbol.section.filter(|_| symbol.kind == FUNCTION) else {
                continue;
            };
            let Some(start) = layout.sections.get(&section) else {
                continue;
            };
            let words = self.cubin.sections[section].bytes.len() as u64 / WORD_BYTES;
            let offset = symbol.value / WORD_BYTES;
            if offset >= words {
                return Err(Error::malformed(
                    "ELF symbol",
                    format!("`{}` lies {offset} instructions into {words}", symbol.name),
                ));
            }
            let index = start + offset as u32;
            module.functions.push((index, symbol.name.clone()));
            if symbol.other & KERNEL_MARK != 0 {
                let mut kernel = self.kernel(symbol, index, uniform_registers, &sections);
                let code = *start as usize..*start as usize + words as usize;
                kernel.calls = module.code[code].iter().any(|instruction| {
                    matches!(
                        instruction.operation,
                        Operation::Flow(Flow::Call { .. } | Flow::CallIndirect { .. })
                    )
                });
                module.kernels.push(kernel);
            }
        }
        module.functions.sort();
        module.find_straight_line_code();
        Ok(module)
    }

    fn lay_out(&self) -> Layout {
        let mut sections = BTreeMap::new();
        let mut next = 0;
        for (index, section) in self.cubin.sections.iter().enumerate() {
            if section.name.starts_with(".text.") {
                sections.insert(index, next);
                next += (section.bytes.len() as u64 / WORD_BYTES) as u32;
            }
        }
        let missing = |symbol: &Symbol| {
            symbol.kind == FUNCTION
                && symbol.section.is_none()
                && SYSTEM_FUNCTIONS
                    .iter()
                    .all(|(name, ..)| *name != symbol.name)
        };
        Layout {
            sections,
            system: next,
            missing: (0..self.cubin.symbols.len())
                .filter(|index| missing(&self.cubin.symbols[*index]))
                .collect(),
        }
    }

    /// Contents of all sections with relocations applied.
    fn relocated(&self, layout: &Layout, addresses: &[u64]) -> Result<Vec<Section>, Error> {
        let mut sections = self.cubin.sections.clone();
        for relocation in &self.cubin.relocations {
            let name = &self.cubin.sections[relocation.section].name;
            let loaded = [".text.", ".nv.constant", ".nv.global"];
            if !loaded.iter().any(|prefix| name.starts_with(prefix)) {
                continue;
            }
            let symbol = &self.cubin.symbols[relocation.symbol];
            let unknown = || Error::UnknownRelocation {
                section: name.clone(),
                offset: relocation.offset,
                kind: relocation.kind,
                symbol: symbol.name.clone(),
            };
            let kind = relocation::kind(relocation.kind).ok_or_else(unknown)?;
            let Action::Address(size, parts) = kind.action else {
                continue;
            };
            let value = self.address(relocation.symbol, layout, addresses)?;
            let bytes = &mut sections[relocation.section].bytes;
            let start = usize::try_from(relocation.offset).map_err(|_| unknown())?;
            let end = start
                .checked_add(usize::from(size))
                .filter(|end| *end <= bytes.len());
            let place = &mut bytes[start..end.ok_or_else(unknown)?];
            relocation::patch(parts, place, value, relocation.addend);
        }
        Ok(sections)
    }

    /// Final address of a symbol: a variable, code, or a function of the system.
    fn address(&self, index: usize, layout: &Layout, addresses: &[u64]) -> Result<u64, Error> {
        let symbol = &self.cubin.symbols[index];
        if let Some(global) = self
            .global_symbols
            .iter()
            .position(|symbol| *symbol == index)
        {
            return Ok(addresses[global]);
        }
        let unresolved = || Error::Unresolved {
            symbol: symbol.name.clone(),
        };
        let Some(section) = symbol.section else {
            let system = SYSTEM_FUNCTIONS
                .iter()
                .position(|(name, ..)| *name == symbol.name);
            // Code that is never called may name what nobody defines.
            let behind = match system {
                Some(system) => 2 * system,
                None => {
                    let missing = layout.missing.binary_search(&index);
                    2 * SYSTEM_FUNCTIONS.len() + missing.map_err(|_| unresolved())?
                }
            };
            return Ok(CODE_BASE + WORD_BYTES * (u64::from(layout.system) + behind as u64));
        };
        if let Some(start) = layout.sections.get(&section) {
            return Ok((CODE_BASE + WORD_BYTES * u64::from(*start)).wrapping_add(symbol.value));
        }
        // A section symbol stands for its first variable.
        let inside = self.global_symbols.iter().position(|other| {
            let other = &self.cubin.symbols[*other];
            other.section == Some(section) && other.value == symbol.value
        });
        inside
            .map(|global| addresses[global])
            .ok_or_else(unresolved)
    }

    /// How many uniform registers the code names, and one row more for barriers.
    fn uniform_registers(&self, sections: &[Section]) -> Result<u16, Error> {
        let mut highest = 0;
        for section in sections
            .iter()
            .filter(|section| section.name.starts_with(".text."))
        {
            for (address, word) in words(section) {
                let decoded = self.decode(section, address, word)?;
                highest = highest.max(highest_uniform(&decoded));
            }
        }
        Ok(highest + 1)
    }

    fn decode(&self, section: &Section, address: u64, word: Word) -> Result<Decoded, Error> {
        decode(self.architecture, address, word).map_err(|_| Error::UnknownInstruction {
            function: section.name.trim_start_matches(".text.").to_owned(),
            address,
            word: word.0,
        })
    }

    fn bind_section(
        &self,
        sections: &[Section],
        index: usize,
        start: u32,
        uniform_registers: u16,
        module: &mut Module,
    ) -> Result<(), Error> {
        let section = &sections[index];
        let frame = Frame {
            uniform_registers,
            section: start,
            length: (section.bytes.len() as u64 / WORD_BYTES) as u32,
            architecture: self.cubin.architecture,
        };
        for (address, word) in words(section) {
            let decoded = self.decode(section, address, word)?;
            let instruction = bind(&decoded, &frame).map_err(|error| Error::BadInstruction {
                function: section.name.trim_start_matches(".text.").to_owned(),
                address,
                text: decoded.to_string(),
                why: error.to_string(),
            })?;
            module.code.push(instruction);
            module.listing.push(decoded.to_string());
        }
        Ok(())
    }

    fn add_constants(&self, sections: &[Section], module: &mut Module) {
        for section in sections {
            let bank = match section.name.strip_prefix(".nv.constant") {
                Some("2") => 2,
                Some("3") => 3,
                Some("4") => 4,
                _ => continue,
            };
            module.constants.push(ConstantBank {
                bank,
                bytes: section.bytes.clone(),
                backing: None,
            });
        }
    }

    /// Initial bytes of the variables.
    fn add_initial(&self, sections: &[Section], addresses: &[u64], module: &mut Module) {
        for (index, address) in self.global_symbols.iter().zip(addresses) {
            let symbol = &self.cubin.symbols[*index];
            let Some(section) = symbol.section else {
                continue;
            };
            let (start, end) = (
                symbol.value as usize,
                symbol.value.saturating_add(symbol.size) as usize,
            );
            if let Some(bytes) = sections[section].bytes.get(start..end)
                && !bytes.is_empty()
            {
                module.initial.push((*address, bytes.to_vec()));
            }
        }
    }

    fn kernel(
        &self,
        symbol: &Symbol,
        entry: u32,
        uniform_registers: u16,
        sections: &[Section],
    ) -> Kernel {
        let name = &symbol.name;
        let hopper = self.architecture >= Architecture::Sm90;
        let text = symbol.section.map(|section| &self.cubin.sections[section]);
        let shared = self.cubin.section(&format!(".nv.shared.{name}"));
        let shared = shared.map_or(0, |index| self.cubin.sections[index].size as u32);
        let reserved = if hopper { HOPPER_RESERVED_SHARED } else { 0 };
        let mut kernel = Kernel {
            name: name.clone(),
            entry,
            predicates: PREDICATES,
            convergence_barriers: CONVERGENCE_BARRIERS,
            registers: text.map_or(0, |section| section.info >> 24),
            barriers: text.map_or(0, |section| (section.flags >> 20 & 0x7f) as u32),
            shared_bytes: if hopper {
                shared.saturating_sub(reserved)
            } else {
                shared
            },
            shared_reserved: reserved,
            parameter_base: if hopper { 0x210 } else { 0x160 },
            bank0: bank0(self.architecture),
            ..Kernel::default()
        };
        self.read_module_attributes(symbol, &mut kernel);
        read_kernel_attributes(self.cubin.bytes(&format!(".nv.info.{name}")), &mut kernel);
        kernel.constant_bytes = self.cubin.bytes(&format!(".nv.constant0.{name}")).len() as u32;
        for section in sections {
            let bank = section
                .name
                .strip_prefix(".nv.constant")
                .and_then(|rest| rest.split_once('.'));
            if let Some((bank, owner)) = bank
                && owner == name
                && let Ok(bank @ 1..=17) = bank.parse::<u8>()
            {
                kernel.constants.push(ConstantBank {
                    bank,
                    bytes: section.bytes.clone(),
                    backing: None,
                });
            }
        }
        kernel.warp_registers = uniform_registers + (kernel.registers as u16).clamp(1, 255);
        kernel
    }

    /// What the module says about one of its kernels.
    fn read_module_attributes(&self, symbol: &Symbol, kernel: &mut Kernel) {
        let named = |index: u32| {
            self.cubin
                .symbols
                .get(index as usize)
                .is_some_and(|other| other == symbol)
        };
        for attribute in info::attributes(self.cubin.bytes(".nv.info")) {
            if !named(attribute.word(0)) {
                continue;
            }
            let value = attribute.word(1);
            match attribute.id {
                info::REGISTER_COUNT => kernel.registers = value,
                // Larger figures say that the stack cannot be bounded.
                info::FRAME_SIZE | info::MIN_STACK_SIZE | info::MAX_STACK_SIZE
                    if value < 1 << 24 =>
                {
                    kernel.local_bytes = kernel.local_bytes.max(value)
                }
                _ => {}
            }
        }
        kernel.local_bytes = kernel.local_bytes.next_multiple_of(16);
    }
}

/// Numbers of source lines: file, line, and the call that it was put in the place of.
type KnownLines = BTreeMap<(Arc<str>, u32, Option<(Arc<str>, u32)>), u32>;

/// Gives the instructions of a section, from `start` on, the lines that they come from.
fn name_lines(rows: &[lines::Row], start: u32, known: &mut KnownLines, module: &mut Module) {
    if rows.is_empty() {
        return;
    }
    if module.lines.is_empty() {
        module.lines.push(SourceLine::default());
    }
    for index in start as usize..module.code.len() {
        let address = (index as u64 - u64::from(start)) * WORD_BYTES;
        let Some(row) = lines::at(rows, address) else {
            continue;
        };
        let number = *known
            .entry((row.file.clone(), row.line, row.inlined_at.clone()))
            .or_insert_with(|| {
                let call = row.inlined_at.as_ref();
                let inlined_at = call.map(|(file, line)| format!("{file}:{line}"));
                module.lines.push(SourceLine {
                    file: row.file.to_string(),
                    line: row.line,
                    inlined_at: inlined_at.unwrap_or_default(),
                });
                module.lines.len() as u32 - 1
            });
        module.code[index].scheduling.line = number;
    }
}

/// The words of a text section with their addresses.
fn words(section: &Section) -> impl Iterator<Item = (u64, Word)> {
    let (words, _) = section.bytes.as_chunks::<{ WORD_BYTES as usize }>();
    words
        .iter()
        .zip(0u64..)
        .filter_map(|(bytes, index)| Some((index * WORD_BYTES, Word::from_bytes(bytes)?)))
}

/// One past the highest uniform register that an instruction may touch; pairs count.
fn highest_uniform(decoded: &Decoded) -> u16 {
    let mut highest = 0;
    let mut touch = |index: u8| {
        if index < 63 {
            highest = highest.max(u16::from(index) + 2);
        }
    };
    for operand in &decoded.operands {
        match operand.value {
            Value::UniformRegister(index) => touch(index),
            Value::Memory(memory) => {
                [memory.uniform, memory.descriptor]
                    .into_iter()
                    .flatten()
                    .for_each(&mut touch);
            }
            Value::Constant(constant) => {
                if let lockstep_isa::sass::decoded::Index::Uniform(index) = constant.index {
                    touch(index);
                }
            }
            Value::RegisterTarget {
                register,
                uniform: true,
                ..
            } => touch(register),
            Value::Descriptor(index) | Value::MatrixDescriptor(index) => touch(index),
            _ => {}
        }
    }
    highest
}

/// A symbol that is a variable, as a global.
fn variable(cubin: &Cubin, symbol: &Symbol) -> Option<Global> {
    let section = &cubin.sections[symbol.section.filter(|_| symbol.kind == OBJECT)?];
    let kind = if section.name == ".nv.constant3" {
        GlobalKind::Constant {
            bank: 3,
            offset: symbol.value as u32,
        }
    } else if !section.name.starts_with(".nv.global") {
        return None;
    } else if symbol.other & MANAGED_MARK != 0 {
        GlobalKind::Managed
    } else {
        GlobalKind::Device
    };
    // The section's alignment holds for its start; a symbol has what its offset leaves of it.
    let alignment = match symbol.value {
        0 => section.alignment,
        value => section.alignment.min(1 << value.trailing_zeros().min(20)),
    };
    Some(Global {
        name: symbol.name.clone(),
        size: symbol.size,
        alignment: alignment.max(16),
        kind,
    })
}

fn read_kernel_attributes(bytes: &[u8], kernel: &mut Kernel) {
    let mut parameters = BTreeMap::new();
    for attribute in info::attributes(bytes) {
        match attribute.id {
            info::PARAMETER => {
                let parameter = Parameter {
                    offset: u32::from(attribute.half(3)),
                    size: attribute.word(2) >> 18,
                };
                parameters.insert(attribute.half(2), parameter);
            }
            info::PARAMETER_WIDE => {
                let parameter = Parameter {
                    offset: u32::from(attribute.half(3)),
                    size: u32::from(attribute.half(4)),
                };
                parameters.insert(attribute.half(2), parameter);
            }
            info::PARAMETER_BANK => {
                kernel.parameter_base = u32::from(attribute.half(2));
                kernel.parameter_bytes = u32::from(attribute.half(3));
            }
            info::PARAMETER_BYTES => {
                kernel.parameter_bytes = kernel.parameter_bytes.max(u32::from(attribute.half(0)));
            }
            info::MAX_THREADS => {
                let product = (0..3).fold(1u64, |product, axis| {
                    product.saturating_mul(attribute.word(axis).max(1).into())
                });
                kernel.max_threads = product.min(1024) as u32;
            }
            info::REQUIRED_THREADS => {
                kernel.required_threads = Some([0, 1, 2].map(|axis| attribute.word(axis).max(1)));
            }
            info::BARRIERS => kernel.barriers = u32::from(attribute.half(0)),
            info::CLUSTER => {
                kernel.cluster = Some([0, 1, 2].map(|axis| attribute.word(axis).max(1)))
            }
            _ => {}
        }
    }
    kernel.parameters = parameters.into_values().collect();
}

/// Where the driver's words are, by architecture.
fn bank0(architecture: Architecture) -> Bank0Layout {
    let hopper = architecture >= Architecture::Sm90;
    Bank0Layout {
        block_size: Some(0x0),
        grid_size: Some(0xc),
        shared_window: (!hopper).then_some(0x18),
        local_window: Some(0x20),
        stack_pointer: Some(0x28),
        dynamic_shared: Some(0x2c),
        grid: Some(0x30),
        environment: Some(if hopper { 0x40 } else { 0x88 }),
        sms: Some(0x10c),
        descriptor: Some(if hopper { 0x208 } else { 0x118 }),
    }
}

/// Behind the module's code: each function of the system, and the way back through `R20`.
fn system_functions(uniform_registers: u16, module: &mut Module) {
    let row = |register: u8| uniform_registers + u16::from(register);
    for (name, kind, arguments, result) in SYSTEM_FUNCTIONS {
        module
            .functions
            .push((module.code.len() as u32, (*name).to_owned()));
        let call = SystemCall {
            kind: *kind,
            arguments: arguments
                .iter()
                .map(|register| Operand::Register(row(*register)))
                .collect(),
            result: result.map(row),
        };
        let shape = SchedulingInfo {
            pseudo: true,
            ..SchedulingInfo::default()
        };
        module
            .code
            .push(Instruction::new(Operation::System(Box::new(call)), shape));
        let back = Operation::Flow(Flow::Return {
            address: CodeAddress::Absolute,
        });
        let mut back = Instruction::new(back, shape);
        back.sources[0] = Source::from(Operand::Register(row(20)));
        module.code.push(back);
        module.listing.push(format!("{name} (system)"));
        module.listing.push("return".to_owned());
    }
}

/// Behind those: what runs in place of a function that is defined nowhere.
fn missing_function(name: &str, module: &mut Module) {
    let sentence = Error::Unresolved {
        symbol: name.to_owned(),
    }
    .to_string();
    module
        .functions
        .push((module.code.len() as u32, name.to_owned()));
    module.code.push(Instruction::new(
        Operation::Unsupported(sentence.into_boxed_str()),
        SchedulingInfo {
            pseudo: true,
            ..SchedulingInfo::default()
        },
    ));
    module.listing.push(format!("{name} (defined nowhere)"));
}
