//! Commands with their operands read, and the tensor maps that they name.

use lockstep_isa::bulk::{BulkAction, BulkOperation};
use lockstep_isa::lanes::{Lanes, ScratchRegister};
use lockstep_isa::memory::{Space, classify_generic};
use lockstep_isa::tensor::Start;
use lockstep_isa::{Instruction, Operand};
use lockstep_units::{TENSOR_MAP_BYTES, TensorMap};

use crate::fault::FaultKind;
use crate::memory::SECTOR;
use crate::sm::site::Site;

/// Bytes that a tensor map is aligned to.
const MAP_ALIGNMENT: u64 = 64;

/// One command, its operands read.
#[derive(Clone, Debug)]
pub(super) struct Command {
    /// What is to be done.
    pub action: BulkAction,
    /// The tensor, if there is one.
    pub map: Option<Box<TensorMap>>,
    /// Where in it the command begins.
    pub start: Start,
    /// Address in global memory, without a tensor.
    pub global: u64,
    /// Address in shared memory that data go to, or come from where they go to global memory.
    pub shared: u32,
    /// Shared to shared memory: where data come from.
    pub source: u32,
    /// The mbarrier.
    pub barrier: u32,
    /// Bytes, without a tensor.
    pub bytes: u32,
    /// Blocks of the cluster that receive.
    pub receivers: u16,
}

impl Command {
    /// Reads the operands of a lane.
    pub(super) fn read(
        site: &mut Site<'_, '_>,
        instruction: &Instruction,
        operation: &BulkOperation,
        lane: usize,
    ) -> Result<Self, FaultKind> {
        let lanes = site.warp.lanes(site.context, instruction);
        let word = |operand: Operand, word: u16| {
            let mut room = ScratchRegister::uninit();
            lanes.raw_at(operand, word, &mut room).0[lane]
        };
        let wide =
            |operand: Operand| u64::from(word(operand, 0)) | u64::from(word(operand, 1)) << 32;
        let packed = word(operation.packed, 0);
        let mut command = Self {
            action: operation.action,
            map: None,
            start: Start {
                coordinates: operation.coordinates.map(|operand| word(operand, 0) as i32),
                offsets: offsets(operation, &lanes, lane, packed),
            },
            global: wide(operation.global),
            shared: word(operation.shared, 0),
            source: word(operation.source, 0),
            barrier: word(operation.barrier, 0),
            // The engine takes 16 bits of sixteenths, whatever the program asked for.
            bytes: match operation.packed {
                Operand::None => word(operation.bytes, 0) & 0xf_fff0,
                _ => (packed & 0xffff) << 4,
            },
            receivers: match operation.packed {
                Operand::None => word(operation.receivers, 0) as u16,
                _ => (packed >> 16) as u16,
            },
        };
        if let BulkAction::Tensor { .. } = operation.action {
            let address = wide(operation.map);
            let bytes = map_bytes(site, lane, address)?;
            let map = TensorMap::decode(&bytes).map_err(|error| {
                FaultKind::IllegalInstruction(format!("the tensor map at {address:#x}: {error}"))
            })?;
            command.map = Some(Box::new(map));
        }
        Ok(command)
    }
}

/// The generic address of the tensor map of a lane's command, 0 if there is none.
pub(super) fn map_address(
    site: &mut Site<'_, '_>,
    instruction: &Instruction,
    operation: &BulkOperation,
    lane: usize,
) -> u64 {
    let lanes = site.warp.lanes(site.context, instruction);
    let word = |word: u16| {
        let mut room = ScratchRegister::uninit();
        u64::from(lanes.raw_at(operation.map, word, &mut room).0[lane])
    };
    word(0) | word(1) << 32
}

/// The sectors of a tensor map, if it lies in global memory.
pub(super) fn map_sectors(address: u64) -> impl Iterator<Item = u64> {
    let first = address / SECTOR;
    first..first + TENSOR_MAP_BYTES as u64 / SECTOR
}

/// The offsets of a column of pixels. Machine code has them in 16 bits: one, two of eight or three of five.
fn offsets(operation: &BulkOperation, lanes: &Lanes<'_>, lane: usize, packed: u32) -> [u32; 3] {
    let BulkAction::Tensor {
        rank, im2col: true, ..
    } = operation.action
    else {
        return [0; 3];
    };
    let (bits, count) = match rank {
        3 => (16, 1),
        4 => (8, 2),
        _ => (5, 3),
    };
    let mut offsets = [0; 3];
    for (index, offset) in offsets.iter_mut().enumerate().take(count) {
        let value = match operation.packed {
            Operand::None => {
                let mut room = ScratchRegister::uninit();
                lanes.raw_at(operation.offsets[index], 0, &mut room).0[lane]
            }
            _ => packed >> (bits * index),
        };
        *offset = value & ((1 << bits) - 1);
    }
    offsets
}

/// The bytes of a tensor map at a generic address: a parameter, global memory, or a thread's copy of its
/// parameters.
fn map_bytes(
    site: &mut Site<'_, '_>,
    lane: usize,
    address: u64,
) -> Result<[u8; TENSOR_MAP_BYTES], FaultKind> {
    let mut bytes = [0; TENSOR_MAP_BYTES];
    let size = TENSOR_MAP_BYTES as u32;
    if let Some(offset) = site.context.launch.kernel().parameter_offset(address) {
        let banks = site.context.banks();
        if let Some(found) = banks.bytes(0, offset, TENSOR_MAP_BYTES) {
            bytes.copy_from_slice(found);
            return Ok(bytes);
        }
        return Err(illegal(site, "tensor map in the parameters", address, size));
    }
    match classify_generic(address) {
        (Space::Local, offset) if site.warp.local.holds(offset, size) => {
            site.warp.local.read(lane, offset as u32, &mut bytes);
            Ok(bytes)
        }
        (Space::Global, _) => {
            if !address.is_multiple_of(MAP_ALIGNMENT) {
                return Err(FaultKind::Misaligned {
                    what: "tensor map".into(),
                    address,
                    bytes: MAP_ALIGNMENT as u32,
                });
            }
            if !site.port.holds(address, u64::from(size)) {
                return Err(illegal(site, "tensor map", address, size));
            }
            let sectors = bytes.chunks_exact_mut(SECTOR as usize);
            for (index, part) in sectors.enumerate() {
                part.copy_from_slice(&site.port.sector(address / SECTOR + index as u64));
            }
            Ok(bytes)
        }
        _ => Err(illegal(site, "tensor map", address, size)),
    }
}

/// An address that no allocation holds.
pub(super) fn illegal(site: &Site<'_, '_>, what: &str, address: u64, bytes: u32) -> FaultKind {
    let nearest = if what.starts_with("shared") {
        Some(0..site.block.shared.len() as u64)
    } else {
        site.port.contents.nearest(address)
    };
    FaultKind::IllegalAddress {
        what: what.into(),
        address,
        bytes,
        nearest,
    }
}
