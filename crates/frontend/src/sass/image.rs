//! A cubin decoded, bound and linked.

use std::collections::BTreeMap;

use lockstep_isa::{
    Instruction, Module, Operation,
    instruction::{Flow, SchedulingInfo},
    module::{CODE_BASE, ConstantBank, Global, GlobalKind},
    sass::{
        Architecture, Decoded, Value, Word, decode,
        execute::{Frame, bind},
        word::WORD_BYTES,
    },
    warpgroup::Warpgroup,
};

use super::{
    cubin::{Cubin, Section, Symbol},
    error::Error,
    grid_barrier,
    kernel::MOST_CONSTANT,
    lines,
    relocation::{self, Action},
    source_lines::name_lines,
    system_functions::{SYSTEM_FUNCTIONS, system_functions, undefined_function, undefined_length},
};

const OBJECT: u8 = 1;
const FUNCTION: u8 = 2;
/// A texture reference: a symbol that no section holds.
const TEXTURE: u8 = 10;
const KERNEL_MARK: u8 = 0x10;
const MANAGED_MARK: u8 = 0x04;

/// Machine code of one module, its variables not placed yet.
#[derive(Debug, Clone)]
pub struct Image {
    pub(super) cubin: Cubin,
    pub(super) architecture: Architecture,
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
    /// Functions that are defined nowhere, behind those: symbols and how far behind.
    missing: Vec<(usize, u32)>,
}

impl Image {
    /// Reads a cubin.
    ///
    /// # Errors
    /// If it is broken or for an architecture without a decoder.
    pub fn read(bytes: &[u8]) -> Result<Self, Error> {
        let mut cubin = Cubin::read(bytes)?;
        let architecture =
            Architecture::from_sm(cubin.architecture).ok_or(Error::UnknownArchitecture {
                architecture: cubin.architecture,
            })?;
        grid_barrier::define(&mut cubin, architecture);
        let mut globals = Vec::new();
        let mut global_symbols = Vec::new();
        for (index, symbol) in cubin.symbols.iter().enumerate() {
            if let Some(global) = variable(&cubin, symbol)? {
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
    /// If a relocation is unknown, a variable is defined nowhere, or a header claims what no GPU has. A word
    /// that is no instruction, and a function that is defined nowhere, stop the kernel that comes there.
    pub fn link(&self, addresses: &[u64]) -> Result<Module, Error> {
        if addresses.len() != self.globals.len() {
            return Err(Error::Addresses {
                given: addresses.len(),
                wanted: self.globals.len(),
            });
        }
        let layout = self.lay_out();
        let sections = self.relocated(&layout, addresses)?;
        let uniform_registers = self.uniform_registers(&sections);
        let mut module = Module {
            architecture: self.cubin.architecture,
            native: true,
            ..Module::default()
        };
        let lines = lines::read(&self.cubin);
        let mut known = BTreeMap::new();
        for (section, start) in &layout.sections {
            debug_assert_eq!(*start as usize, module.code.len());
            module.sections.push(*start);
            self.bind_section(&sections, *section, *start, uniform_registers, &mut module);
            let rows = lines.get(section).map_or(&[][..], Vec::as_slice);
            name_lines(rows, *start, &mut known, &mut module);
        }
        system_functions(uniform_registers, &mut module);
        for (index, _) in &layout.missing {
            let name = &self.cubin.symbols[*index].name;
            undefined_function(name, uniform_registers, &mut module);
        }
        add_constants(&sections, &mut module)?;
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
                let mut kernel = self.kernel(symbol, index, uniform_registers, &sections)?;
                let code = *start as usize..*start as usize + words as usize;
                let code = &module.code[code];
                kernel.calls = code.iter().any(|instruction| {
                    matches!(
                        instruction.operation,
                        Operation::Flow(Flow::Call { .. } | Flow::CallIndirect { .. })
                    )
                });
                if let Some(most) = most_registers(code) {
                    let rows = uniform_registers + most;
                    kernel.warp_registers = kernel.warp_registers.max(rows);
                }
                module.kernels.push(kernel);
            }
        }
        module.functions.sort();
        module.sections.sort_unstable();
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
        let mut behind = 0;
        let indices = (0..self.cubin.symbols.len())
            .filter(|index| missing(&self.cubin.symbols[*index]))
            .map(|index| {
                let at = behind;
                behind += undefined_length(&self.cubin.symbols[index].name);
                (index, at)
            });
        Layout {
            sections,
            system: next,
            missing: indices.collect(),
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
                    let missing = layout.missing.binary_search_by_key(&index, |(at, _)| *at);
                    let missing = missing.map_err(|_| unresolved())?;
                    2 * SYSTEM_FUNCTIONS.len() + layout.missing[missing].1 as usize
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

    /// How many uniform registers the code names, and one row more for barriers; before it two for a register of
    /// its own that some code has (`RPCMOV`).
    fn uniform_registers(&self, sections: &[Section]) -> u16 {
        let (mut highest, mut moves) = (0, 0);
        for section in sections
            .iter()
            .filter(|section| section.name.starts_with(".text."))
        {
            for (address, word) in words(section) {
                if let Ok(decoded) = decode(self.architecture, address, word) {
                    highest = highest.max(highest_uniform(&decoded));
                    if decoded.opcode.name() == "RPCMOV" {
                        moves = 2;
                    }
                }
            }
        }
        highest + moves + 1
    }

    fn bind_section(
        &self,
        sections: &[Section],
        index: usize,
        start: u32,
        uniform_registers: u16,
        module: &mut Module,
    ) {
        let section = &sections[index];
        let frame = Frame {
            uniform_registers,
            section: start,
            length: (section.bytes.len() as u64 / WORD_BYTES) as u32,
            architecture: self.cubin.architecture,
        };
        for (address, word) in words(section) {
            let (instruction, text) = self.instruction(section, address, word, &frame);
            if let (Operation::Illegal(sentence), None) =
                (&instruction.operation, &module.unknown_encoding)
            {
                module.unknown_encoding = Some(sentence.to_string());
            }
            module.code.push(instruction);
            module.listing.push(text);
        }
    }

    /// A word as an instruction, and its text. One that no table describes, or whose operands
    /// contradict each other, is illegal when it is executed.
    fn instruction(
        &self,
        section: &Section,
        address: u64,
        word: Word,
        frame: &Frame,
    ) -> (Instruction, String) {
        let function = || section.name.trim_start_matches(".text.").to_owned();
        let (error, text) = match decode(self.architecture, address, word) {
            Ok(decoded) => {
                let text = decoded.to_string();
                match bind(&decoded, frame) {
                    Ok(instruction) => return (instruction, text),
                    Err(error) => {
                        let error = Error::BadInstruction {
                            function: function(),
                            address,
                            text: text.clone(),
                            word: word.0,
                            why: error.to_string(),
                        };
                        (error, text)
                    }
                }
            }
            Err(_) => {
                let error = Error::UnknownInstruction {
                    function: function(),
                    address,
                    word: word.0,
                    architecture: self.cubin.architecture,
                };
                (error, format!("{:#034x}", word.0))
            }
        };
        let scheduling = SchedulingInfo {
            control: Some(word.control()),
            ..SchedulingInfo::default()
        };
        let operation = Operation::Illegal(error.to_string().into_boxed_str());
        (Instruction::new(operation, scheduling), text)
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
}

/// Registers a thread that a warp of a kernel may come to hold, if it asks for more than it begins
/// with (`USETMAXREG`).
fn most_registers(code: &[Instruction]) -> Option<u16> {
    let wanted = code
        .iter()
        .filter_map(|instruction| match instruction.operation {
            Operation::Warpgroup(Warpgroup::TakeRegisters { wanted }) => Some(wanted),
            _ => None,
        });
    wanted.max().map(|most| most.min(255))
}

/// Constant banks that all kernels share.
fn add_constants(sections: &[Section], module: &mut Module) -> Result<(), Error> {
    for section in sections {
        let bank = match section.name.strip_prefix(".nv.constant") {
            Some("2") => 2,
            Some("3") => 3,
            Some("4") => 4,
            _ => continue,
        };
        let bytes = section.bytes.len() as u64;
        Error::limit(&section.name, "bytes of constants", bytes, MOST_CONSTANT)?;
        module.constants.push(ConstantBank {
            bank,
            bytes: section.bytes.clone(),
            backing: None,
        });
    }
    Ok(())
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
            Value::Descriptor(index) => touch(index),
            // Four registers describe two matrices.
            Value::MatrixDescriptor(index) => [index, index.saturating_add(2)]
                .into_iter()
                .for_each(&mut touch),
            _ => {}
        }
    }
    highest
}

/// A symbol that is a variable, as a global.
fn variable(cubin: &Cubin, symbol: &Symbol) -> Result<Option<Global>, Error> {
    if symbol.kind == TEXTURE {
        return Ok(Some(Global {
            name: symbol.name.clone(),
            size: 0,
            alignment: 1,
            kind: GlobalKind::Texture,
        }));
    }
    let Some(section) = symbol.section.filter(|_| symbol.kind == OBJECT) else {
        return Ok(None);
    };
    let section = &cubin.sections[section];
    let kind = if section.name == ".nv.constant3" {
        GlobalKind::Constant {
            bank: 3,
            offset: symbol.value as u32,
        }
    } else if !section.name.starts_with(".nv.global") {
        return Ok(None);
    } else if symbol.other & MANAGED_MARK != 0 {
        GlobalKind::Managed
    } else {
        GlobalKind::Device
    };
    let end = symbol.value.checked_add(symbol.size);
    if end.is_none_or(|end| end > section.size) {
        let (name, start, size) = (&symbol.name, symbol.value, symbol.size);
        let (section, whole) = (&section.name, section.size);
        return Err(Error::malformed(
            "ELF symbol",
            format!("`{name}` has {size} bytes from {start:#x} of {section}, which has {whole}"),
        ));
    }
    // The section's alignment holds for its start; a symbol has what its offset leaves of it.
    let alignment = match symbol.value {
        0 => section.alignment,
        value => section.alignment.min(1 << value.trailing_zeros().min(20)),
    };
    Ok(Some(Global {
        name: symbol.name.clone(),
        size: symbol.size,
        alignment: alignment.max(16),
        kind,
    }))
}
