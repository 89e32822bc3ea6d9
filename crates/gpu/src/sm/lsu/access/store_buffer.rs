//! The bytes that a store writes, sector by sector.

use lockstep_isa::Mask;
use lockstep_isa::memory::MemoryOperation;
use lockstep_isa::warp_register::LANES;

use super::registers::emit;
use crate::memory::SECTOR;
use crate::sm::lsu::port::Port;

/// Puts what a store writes into the buffer, sector by sector. Says which sectors were
/// touched.
pub(super) fn collect_store(
    port: &mut Port,
    operation: &MemoryOperation,
    mask: Mask,
    addresses: &[u64; LANES],
) -> Mask {
    let found = &port.found;
    port.masks[..found.count].fill(0);
    let (buffer, masks) = (&mut port.buffer, &mut port.masks);
    let mut used = 0;
    emit(
        &port.values,
        operation,
        mask,
        addresses,
        |lane, address, value, size| {
            let index = usize::from(found.index[lane]);
            let at = (address % SECTOR) as usize;
            buffer[index][at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
            masks[index] |= (((1u64 << size) - 1) as u32) << at;
            used |= 1 << index;
        },
    );
    used
}
