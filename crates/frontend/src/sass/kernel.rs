//! What a cubin says about a kernel: registers, barriers, shared memory, parameters, constants.

use std::collections::BTreeMap;

use lockstep_isa::{
    Kernel,
    module::{Bank0Layout, ConstantBank, Parameter},
    sass::{Architecture, execute::bind::PREDICATES},
};

use super::{
    cubin::Symbol, error::Error, image::Image, info, relocated::Relocated,
    relocation::TEXTURE_INDEX,
};

/// What no GPU of these architectures exceeds; a header that does was not written by a compiler.
const MOST_REGISTERS: u64 = 255;
const MOST_BARRIERS: u64 = 16;
const MOST_SHARED: u64 = 256 << 10;
const MOST_LOCAL: u64 = 512 << 10;
/// Bytes of a constant bank.
pub(super) const MOST_CONSTANT: u64 = 64 << 10;
/// Figures of a stack from here on say that it cannot be bounded.
const UNBOUNDED_STACK: u32 = 1 << 24;

/// Convergence barriers of a warp, `B0` to `B15`.
const CONVERGENCE_BARRIERS: u16 = 16;

/// Shared memory that Hopper's code leaves to the system at the start of a block's.
const HOPPER_RESERVED_SHARED: u32 = 0x400;

impl Image {
    /// # Errors
    /// If a figure of its headers exceeds what any GPU has.
    pub(super) fn kernel(
        &self,
        symbol: &Symbol,
        entry: u32,
        uniform_registers: u16,
        relocated: &Relocated<'_>,
    ) -> Result<Kernel, Error> {
        let name = &symbol.name;
        let hopper = self.architecture >= Architecture::Sm90;
        let text = symbol.section.map(|section| &self.cubin.sections[section]);
        let shared = self.cubin.section(&format!(".nv.shared.{name}"));
        let shared = shared.map_or(0, |index| self.cubin.sections[index].size);
        let shared = Error::limit(name, "bytes of shared memory", shared, MOST_SHARED)? as u32;
        let reserved = if hopper { HOPPER_RESERVED_SHARED } else { 0 };
        let mut kernel = Kernel {
            name: name.clone(),
            entry,
            predicates: PREDICATES,
            convergence_barriers: CONVERGENCE_BARRIERS,
            virtual_architecture: self.cubin.virtual_architecture,
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
        check_limits(&kernel)?;
        self.add_kernel_constants(relocated, &mut kernel)?;
        self.add_bank0_words(relocated, &mut kernel);
        kernel.warp_registers = uniform_registers + (kernel.registers as u16).max(1);
        Ok(kernel)
    }

    /// Constants of one kernel alone.
    fn add_kernel_constants(
        &self,
        relocated: &Relocated<'_>,
        kernel: &mut Kernel,
    ) -> Result<(), Error> {
        for (number, section) in self.cubin.sections.iter().enumerate() {
            let bank = section
                .name
                .strip_prefix(".nv.constant")
                .and_then(|rest| rest.split_once('.'));
            if let Some((bank, owner)) = bank
                && owner == kernel.name
                && let Ok(bank @ 1..=17) = bank.parse::<u8>()
            {
                let bytes = section.bytes.len() as u64;
                Error::limit(&section.name, "bytes of constants", bytes, MOST_CONSTANT)?;
                kernel.constants.push(ConstantBank {
                    bank,
                    bytes: relocated.bytes(number).to_vec(),
                    backing: None,
                });
            }
        }
        Ok(())
    }

    /// Words of bank 0 that hold texture references: the rest of the bank is the driver's and the launch's.
    fn add_bank0_words(&self, relocated: &Relocated<'_>, kernel: &mut Kernel) {
        let name = format!(".nv.constant0.{}", kernel.name);
        for relocation in &self.cubin.relocations {
            let section = &self.cubin.sections[relocation.section];
            let start = relocation.offset as usize;
            if relocation.kind == TEXTURE_INDEX
                && section.name == name
                && let Some(end) = start.checked_add(4)
                && let Some(&[a, b, c, d]) = relocated.bytes(relocation.section).get(start..end)
            {
                let word = u32::from_le_bytes([a, b, c, d]);
                kernel.bank0_words.push((start as u32, word));
            }
        }
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
                    if value < UNBOUNDED_STACK =>
                {
                    kernel.local_bytes = kernel.local_bytes.max(value)
                }
                _ => {}
            }
        }
        kernel.local_bytes = kernel.local_bytes.next_multiple_of(16);
    }
}

/// Refuses figures that no kernel can have.
fn check_limits(kernel: &Kernel) -> Result<(), Error> {
    let parameters = kernel.parameters.iter();
    let end = parameters.map(|one| u64::from(one.offset) + u64::from(one.size));
    let bytes = u64::from(kernel.parameter_bytes).max(end.max().unwrap_or(0));
    let figures = [
        ("registers", u64::from(kernel.registers), MOST_REGISTERS),
        ("barriers", u64::from(kernel.barriers), MOST_BARRIERS),
        (
            "bytes of local memory",
            u64::from(kernel.local_bytes),
            MOST_LOCAL,
        ),
        (
            "bytes of constants and parameters",
            u64::from(kernel.parameter_base) + bytes,
            MOST_CONSTANT,
        ),
    ];
    for (what, found, most) in figures {
        Error::limit(&kernel.name, what, found, most)?;
    }
    Ok(())
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

/// Where bank 0 has the address that the bank of `__constant__` variables has in global memory: code adds offsets
/// in the bank to it where it needs an address.
pub(super) fn user_bank_word(architecture: Architecture) -> u32 {
    if architecture >= Architecture::Sm90 {
        0xd0
    } else {
        0x50
    }
}

/// Where the driver's words are, by architecture.
fn bank0(architecture: Architecture) -> Bank0Layout {
    let hopper = architecture >= Architecture::Sm90;
    Bank0Layout {
        block_size: Some(0x0),
        grid_size: Some(0xc),
        shared_window: (!hopper).then_some(0x18),
        local_window: Some(0x20),
        parameter_window: hopper.then_some(0x198),
        bank_window: (!hopper).then_some(0x40),
        stack_pointer: Some(0x28),
        dynamic_shared: Some(0x2c),
        grid: Some(0x30),
        environment: Some(if hopper { 0x40 } else { 0x88 }),
        sms: Some(0x10c),
        cluster: hopper.then_some(0x140),
        descriptor: Some(if hopper { 0x208 } else { 0x118 }),
    }
}
