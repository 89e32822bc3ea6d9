//! Modules: from the bytes that a program hands over to code whose addresses are final.

use crate::{CallResult, failure};
use lockstep_isa::Module;
use lockstep_isa::module::{Global, GlobalKind};
use lockstep_protocol::{ContextHandle, CuResult, FunctionAttributes, GlobalInfo, ModuleImage};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Which instructions to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FrontendChoice {
    /// SASS for the simulated architecture if the program carries it, else PTX.
    #[default]
    Auto,
    /// SASS only.
    Sass,
    /// PTX only.
    Ptx,
}

/// How images are chosen.
#[derive(Clone, Copy, Debug)]
pub struct LoadOptions {
    /// Which instructions to run.
    pub frontend: FrontendChoice,
    /// The simulated architecture, e.g. 90.
    pub architecture: u32,
    /// Refuse images that the real driver would refuse.
    pub strict: bool,
}

/// Code before its variables have addresses.
pub trait ModuleSource {
    /// Variables that need an address.
    fn globals(&self) -> &[Global];

    /// What the user should know although loading succeeded.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// How the code came to be, for the report of the run.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }

    /// Fixes all addresses, those of `globals` in their order.
    ///
    /// # Errors
    /// CUDA's code, and the log of the linker.
    fn link(self: Box<Self>, addresses: &[u64]) -> CallResult<Module>;
}

/// A loaded module.
#[derive(Debug)]
pub struct LoadedModule {
    /// The context that it lives in.
    pub context: ContextHandle,
    /// The code.
    pub code: Arc<Module>,
    /// Variables by name.
    pub globals: BTreeMap<String, GlobalInfo>,
    /// Texture references by name: their indices among the textures of the context.
    pub textures: Vec<(String, u32)>,
    /// Its constant banks.
    pub constants: Vec<ConstantRange>,
    /// Allocations that hold the variables.
    pub allocations: Vec<u64>,
}

/// A kernel that the program asked for.
#[derive(Debug)]
pub struct Function {
    /// The context that it lives in.
    pub context: ContextHandle,
    /// The module's handle.
    pub module: lockstep_protocol::ModuleHandle,
    /// Index into the module's kernels.
    pub kernel: usize,
    /// Attributes, some of which the program may set.
    pub attributes: FunctionAttributes,
    /// `CUfunc_cache`: 0 none, 1 shared memory, 2 L1, 3 both alike.
    pub cache_preference: u32,
    /// Whether it was launched before.
    pub launched: bool,
}

/// Where a constant bank begins in global memory: a multiple of this many bytes.
const BANK_ALIGNMENT: u64 = 256;

/// A constant bank of a module: bank number, offset in the bank, address in global memory, bytes.
pub type ConstantRange = (u8, u32, u64, u64);

/// The constant banks that a module's variables lie in, whole, each with the address of its first byte.
#[must_use]
pub fn constant_banks(globals: &[Global], addresses: &[u64]) -> Vec<ConstantRange> {
    let mut banks: Vec<ConstantRange> = Vec::new();
    for (global, address) in globals.iter().zip(addresses) {
        let GlobalKind::Constant { bank, offset } = global.kind else {
            continue;
        };
        let end = u64::from(offset) + global.size;
        match banks.iter_mut().find(|(number, ..)| *number == bank) {
            Some((.., bytes)) => *bytes = end.max(*bytes),
            None => banks.push((bank, 0, address - u64::from(offset), end)),
        }
    }
    banks
}

/// Where variables go within one allocation a kind: offsets in the order of `globals`, and the
/// size of the device and of the managed block. Constant variables lie behind those of the device, as their
/// bank has them: code adds offsets in the bank to the address of the bank.
pub fn lay_out(globals: &[Global]) -> CallResult<(Vec<u64>, u64, u64)> {
    let too_large = || {
        failure(
            CuResult::OUT_OF_MEMORY,
            "the variables of the module exceed any memory",
        )
    };
    let (mut device, mut managed) = (0u64, 0u64);
    let mut offsets = Vec::with_capacity(globals.len());
    for global in globals {
        let alignment = global.alignment.clamp(1, 1 << 20);
        if !alignment.is_power_of_two() {
            return Err(failure(
                CuResult::INVALID_IMAGE,
                format!(
                    "variable `{}` asks for an alignment of {}",
                    global.name, global.alignment
                ),
            ));
        }
        let end = match global.kind {
            GlobalKind::Constant { offset, .. } => {
                offsets.push(u64::from(offset));
                continue;
            }
            GlobalKind::Managed => &mut managed,
            GlobalKind::Device | GlobalKind::Texture => &mut device,
        };
        let start = end
            .checked_next_multiple_of(alignment)
            .ok_or_else(too_large)?;
        *end = start.checked_add(global.size).ok_or_else(too_large)?;
        offsets.push(start);
    }
    for (bank, _, _, bytes) in constant_banks(globals, &offsets) {
        let start = device
            .checked_next_multiple_of(BANK_ALIGNMENT)
            .ok_or_else(too_large)?;
        device = start.checked_add(bytes).ok_or_else(too_large)?;
        for (global, offset) in globals.iter().zip(&mut offsets) {
            if matches!(global.kind, GlobalKind::Constant { bank: of, .. } if of == bank) {
                *offset += start;
            }
        }
    }
    Ok((offsets, device, managed))
}

/// Reads images and chooses among them.
pub type Loader =
    Box<dyn Fn(&[ModuleImage], &LoadOptions) -> CallResult<Box<dyn ModuleSource>> + Send>;
