//! A cubin linked: its words get their addresses, and become instructions when somebody asks for them.

use std::{collections::BTreeMap, sync::Arc};

use lockstep_isa::{
    Code, Module, Operation,
    module::{CODE_BASE, ConstantBank, Global, GlobalKind},
    sass::{Architecture, word::WORD_BYTES},
};

use super::{
    code::{LinkedCode, Text},
    cubin::{Cubin, Symbol},
    error::Error,
    grid_barrier,
    kernel::{self, MOST_CONSTANT},
    lines,
    relocated::Relocated,
    source_lines::name_lines,
    system_functions::{SYSTEM_FUNCTIONS, SystemCode, undefined_length},
};

const OBJECT: u8 = 1;
const FUNCTION: u8 = 2;
/// A texture reference: a symbol that no section holds.
const TEXTURE: u8 = 10;
const KERNEL_MARK: u8 = 0x10;
const MANAGED_MARK: u8 = 0x04;
/// The constant bank of `__constant__` variables, and its section.
const USER_BANK: u8 = 3;
const USER_BANK_SECTION: &str = ".nv.constant3";

/// Instructions from which on several threads look for unknown ones.
const PARALLEL: usize = 1 << 16;

/// Machine code of one module, its variables not placed yet.
#[derive(Debug, Clone)]
pub struct Image {
    pub(super) cubin: Arc<Cubin>,
    pub(super) architecture: Architecture,
    globals: Vec<Global>,
    /// Symbol that each global stands for.
    global_symbols: Vec<usize>,
}

/// Where each function of the module went.
struct Layout {
    /// Each text section by its number in the file.
    texts: BTreeMap<usize, Text>,
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
        Self::of(Arc::new(cubin), architecture)
    }

    /// The same code again, for another context: nothing of it is copied.
    ///
    /// # Errors
    /// None for the file of an image.
    pub fn again(cubin: Arc<Cubin>) -> Result<Self, Error> {
        let architecture =
            Architecture::from_sm(cubin.architecture).ok_or(Error::UnknownArchitecture {
                architecture: cubin.architecture,
            })?;
        Self::of(cubin, architecture)
    }

    fn of(cubin: Arc<Cubin>, architecture: Architecture) -> Result<Self, Error> {
        let mut globals = Vec::new();
        let mut global_symbols = Vec::new();
        for (index, symbol) in cubin.symbols.iter().enumerate() {
            if let Some(global) = variable(&cubin, symbol)? {
                globals.push(global);
                global_symbols.push(index);
            }
        }
        globals.extend(whole_bank(&cubin));
        Ok(Self {
            cubin,
            architecture,
            globals,
            global_symbols,
        })
    }

    /// The file, which the modules that are linked from it share.
    #[must_use]
    pub fn cubin(&self) -> &Arc<Cubin> {
        &self.cubin
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

    /// Fixes all addresses, those of [`Self::globals`] in their order. Nothing is decoded but what says how a kernel is
    /// launched: the rest is when it is first needed.
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
        let address = |symbol| self.address(symbol, &layout, addresses);
        let mut relocated = Relocated::new(&self.cubin, &layout.texts, address)?;
        let mut module = Module {
            architecture: self.cubin.architecture,
            native: true,
            runs_straight: true,
            ..Module::default()
        };
        let mut code = LinkedCode {
            cubin: self.cubin.clone(),
            architecture: self.architecture,
            texts: layout.texts.values().copied().collect(),
            relocated: std::mem::take(&mut relocated.words),
            uniform_registers: 0,
            lines: Vec::new(),
            system: Vec::new(),
        };
        code.uniform_registers = code.count_uniform_registers();
        let lines = lines::read(&self.cubin);
        let mut known = BTreeMap::new();
        for text in &code.texts {
            module.sections.push(text.start);
            // The section before may have ended with a line.
            if code.lines.last().is_some_and(|(_, line)| *line != 0) {
                code.lines.push((text.start, 0));
            }
            if let Some(rows) = lines.get(&text.section) {
                code.lines
                    .extend(name_lines(rows, *text, &mut known, &mut module.lines));
            }
        }
        let mut system = SystemCode::new(code.words(), code.uniform_registers);
        system.add_functions(&mut module);
        for (index, _) in &layout.missing {
            system.add_undefined(&self.cubin.symbols[*index].name, &mut module);
        }
        code.system = system.code;
        self.add_constants(&relocated, &mut module)?;
        self.add_initial(&relocated, addresses, &mut module);
        self.add_functions(&code, &layout, &relocated, &mut module)?;
        if let Some(address) = self.user_bank_address(addresses) {
            let word = kernel::user_bank_word(self.architecture);
            for kernel in &mut module.kernels {
                let words = [(word, address as u32), (word + 4, (address >> 32) as u32)];
                kernel.bank0_words.extend(words);
            }
        }
        module.functions.sort();
        module.sections.sort_unstable();
        module.code = Code::of_words(Arc::new(code));
        Ok(module)
    }

    /// The first encoding that no decoder knows, as a sentence, if there is one. All code is decoded to find it.
    ///
    /// # Errors
    /// If it cannot be linked with these addresses.
    pub fn unknown_encoding(&self, addresses: &[u64]) -> Result<Option<String>, Error> {
        let module = self.link(addresses)?;
        let Some(words) = module.code.words() else {
            return Ok(None);
        };
        let unknown = |index: usize| match words.instruction(index).operation {
            Operation::Illegal(sentence) => Some(sentence.into_string()),
            _ => None,
        };
        // Libraries have millions of them.
        let parts = match words.length() {
            0..PARALLEL => 1,
            _ => std::thread::available_parallelism().map_or(1, usize::from),
        };
        let part = words.length().div_ceil(parts);
        Ok(std::thread::scope(|scope| {
            let looking: Vec<_> = (0..parts)
                .map(|number| {
                    let end = words.length().min((number + 1) * part);
                    scope.spawn(move || (number * part..end).find_map(unknown))
                })
                .collect();
            let found = looking
                .into_iter()
                .map(|one| one.join().unwrap_or_default());
            found.fold(None, Option::or)
        }))
    }

    /// Functions by name, and those among them that can be launched.
    fn add_functions(
        &self,
        code: &LinkedCode,
        layout: &Layout,
        relocated: &Relocated<'_>,
        module: &mut Module,
    ) -> Result<(), Error> {
        for symbol in &self.cubin.symbols {
            let Some(section) = symbol.section.filter(|_| symbol.kind == FUNCTION) else {
                continue;
            };
            let Some(text) = layout.texts.get(&section) else {
                continue;
            };
            let offset = symbol.value / WORD_BYTES;
            if offset >= u64::from(text.length) {
                let length = text.length;
                return Err(Error::malformed(
                    "ELF symbol",
                    format!("`{}` lies {offset} instructions into {length}", symbol.name),
                ));
            }
            let index = text.start + offset as u32;
            module.functions.push((index, symbol.name.clone()));
            if symbol.other & KERNEL_MARK != 0 {
                let mut kernel = self.kernel(symbol, index, code.uniform_registers, relocated)?;
                kernel.needs_stack = code.calls(*text) || code.moves_stack(*text);
                if let Some(most) = code.most_registers(*text) {
                    let rows = code.uniform_registers + most;
                    kernel.warp_registers = kernel.warp_registers.max(rows);
                }
                module.kernels.push(kernel);
            }
        }
        Ok(())
    }

    fn lay_out(&self) -> Layout {
        let mut texts = BTreeMap::new();
        let mut next = 0;
        for (index, section) in self.cubin.sections.iter().enumerate() {
            if section.name.starts_with(".text.") {
                let text = Text {
                    start: next,
                    length: (section.bytes.len() as u64 / WORD_BYTES) as u32,
                    section: index,
                };
                next += text.length;
                texts.insert(index, text);
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
            texts,
            system: next,
            missing: indices.collect(),
        }
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
        if let Some(text) = layout.texts.get(&section) {
            return Ok((CODE_BASE + WORD_BYTES * u64::from(text.start)).wrapping_add(symbol.value));
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

    /// Address of the bank of `__constant__` variables in global memory, if there is one.
    fn user_bank_address(&self, addresses: &[u64]) -> Option<u64> {
        let mut globals = self.globals.iter().zip(addresses);
        globals.find_map(|(global, address)| match global.kind {
            GlobalKind::Constant { offset, .. } => Some(address - u64::from(offset)),
            _ => None,
        })
    }

    /// Initial bytes of the variables.
    fn add_initial(&self, relocated: &Relocated<'_>, addresses: &[u64], module: &mut Module) {
        let mut sections = self.cubin.sections.iter();
        let user_bank = sections.position(|section| section.name == USER_BANK_SECTION);
        if let Some((section, address)) = user_bank.zip(self.user_bank_address(addresses)) {
            let bytes = relocated.bytes(section).to_vec();
            if !bytes.is_empty() {
                module.initial.push((address, bytes));
            }
        }
        for (index, address) in self.global_symbols.iter().zip(addresses) {
            let symbol = &self.cubin.symbols[*index];
            let Some(section) = symbol.section else {
                continue;
            };
            let (start, end) = (
                symbol.value as usize,
                symbol.value.saturating_add(symbol.size) as usize,
            );
            if let Some(bytes) = relocated.bytes(section).get(start..end)
                && !bytes.is_empty()
            {
                module.initial.push((*address, bytes.to_vec()));
            }
        }
    }
    /// Constant banks that all kernels share.
    fn add_constants(&self, relocated: &Relocated<'_>, module: &mut Module) -> Result<(), Error> {
        for (number, section) in self.cubin.sections.iter().enumerate() {
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
                bytes: relocated.bytes(number).to_vec(),
                backing: None,
            });
        }
        Ok(())
    }
}

/// The bank of `__constant__` variables, from its first byte on and without a name: it may hold more than symbols
/// say, and code adds offsets in the bank to its address.
fn whole_bank(cubin: &Cubin) -> Option<Global> {
    let mut sections = cubin.sections.iter();
    let section = sections.find(|section| section.name == USER_BANK_SECTION)?;
    Some(Global {
        name: String::new(),
        size: section.size,
        alignment: section.alignment.max(16),
        kind: GlobalKind::Constant {
            bank: USER_BANK,
            offset: 0,
        },
    })
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
    let kind = if section.name == USER_BANK_SECTION {
        GlobalKind::Constant {
            bank: USER_BANK,
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
