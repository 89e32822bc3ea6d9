//! `ldmatrix` and `stmatrix`: 8 x 8 matrices of 16-bit elements in shared memory.

use lockstep_isa::Mask;
use lockstep_isa::addresses::Addresses;
use lockstep_isa::memory::{MemoryOperation, Space, classify_generic};
use lockstep_isa::warp_register::{FULL, LANES, lanes_of};

use super::describe::{describe, illegal};
use crate::check::race::{self, AccessKind};
use crate::fault::FaultKind;
use crate::sm::lsu::outcome::Traffic;
use crate::sm::lsu::shared_banks::bank_wavefronts;
use crate::sm::problem::Problem;
use crate::sm::site::Site;

/// Where the 16 bytes of each matrix row are in shared memory.
fn matrix_row(
    site: &Site<'_, '_>,
    operation: &MemoryOperation,
    addresses: &[u64; LANES],
    lane: usize,
) -> Result<usize, Problem> {
    let (space, offset) = match operation.space {
        Space::Generic => classify_generic(addresses[lane]),
        space => (space, addresses[lane]),
    };
    if offset % 16 != 0 {
        let kind = FaultKind::Misaligned {
            what: describe(operation),
            address: addresses[lane],
            bytes: 16,
        };
        return Err(Problem { lane, kind });
    }
    let inside = offset
        .checked_add(16)
        .is_some_and(|end| end <= site.block.shared.len() as u64);
    if space != Space::Shared || !inside {
        return Err(illegal(
            site,
            operation,
            lane,
            addresses[lane],
            Space::Global,
        ));
    }
    Ok(offset as usize)
}

/// Element `column` of row `row` of an 8 × 8 matrix lies with lane `4 × row + column / 2`, in the
/// half `column % 2` of its register.
pub(super) fn load_matrix(
    site: &mut Site<'_, '_>,
    operation: &MemoryOperation,
    execute: Mask,
    addresses: &[u64; LANES],
    matrices: u8,
    transpose: bool,
) -> Result<(), Problem> {
    tell_race(site, operation, AccessKind::Read, addresses, matrices)?;
    for matrix in 0..usize::from(matrices.min(4)) {
        let mut rows = [[0u16; 8]; 8];
        for (row, halves) in rows.iter_mut().enumerate() {
            let at = matrix_row(site, operation, addresses, 8 * matrix + row)?;
            let bytes = &site.block.shared[at..at + 16];
            *halves = std::array::from_fn(|column| {
                u16::from_le_bytes([bytes[2 * column], bytes[2 * column + 1]])
            });
        }
        let Some(destination) = operation.data[matrix] else {
            continue;
        };
        for lane in lanes_of(execute) {
            let (row, column) = (lane / 4, 2 * (lane % 4));
            let [low, high] = [0, 1].map(|half| {
                if transpose {
                    rows[column + half][row]
                } else {
                    rows[row][column + half]
                }
            });
            site.warp.registers[usize::from(destination)].0[lane] =
                u32::from(low) | u32::from(high) << 16;
        }
    }
    matrix_done(site, matrices, addresses);
    Ok(())
}

pub(super) fn store_matrix(
    site: &mut Site<'_, '_>,
    operation: &MemoryOperation,
    execute: Mask,
    addresses: &[u64; LANES],
    matrices: u8,
    transpose: bool,
) -> Result<(), Problem> {
    tell_race(site, operation, AccessKind::Write, addresses, matrices)?;
    for matrix in 0..usize::from(matrices.min(4)) {
        for lane in lanes_of(execute) {
            let word = site.port.values[matrix].0[lane];
            for half in 0..2 {
                let (mut row, mut column) = (lane / 4, 2 * (lane % 4) + half);
                if transpose {
                    (row, column) = (column, row);
                }
                let at = matrix_row(site, operation, addresses, 8 * matrix + row)? + 2 * column;
                let value = (word >> (16 * half)) as u16;
                site.block.shared[at..at + 2].copy_from_slice(&value.to_le_bytes());
            }
        }
    }
    matrix_done(site, matrices, addresses);
    Ok(())
}

/// Rows of matrices count as accesses of the lanes that name them.
fn tell_race(
    site: &mut Site<'_, '_>,
    operation: &MemoryOperation,
    kind: AccessKind,
    addresses: &[u64; LANES],
    matrices: u8,
) -> Result<(), Problem> {
    if site.block.race.is_none() {
        return Ok(());
    }
    let mut rows = Vec::new();
    for lane in 0..8 * usize::from(matrices.min(4)) {
        let at = matrix_row(site, operation, addresses, lane)?;
        rows.push((lane, at as u32, 16));
    }
    race::hooks::pieces(site, kind, &rows);
    Ok(())
}

fn matrix_done(site: &mut Site<'_, '_>, matrices: u8, addresses: &[u64; LANES]) {
    // Eight lanes name the rows of a matrix, 16 bytes each.
    let named = FULL >> (LANES as u32 - 8 * u32::from(matrices.clamp(1, 4)));
    let wavefronts = if site.timed {
        bank_wavefronts(
            &Addresses::of(*addresses, 16),
            named,
            16,
            site.port.arrays.shared_banks,
        )
    } else {
        1
    };
    site.block.counters.shared_accesses += 1;
    site.port.done.traffic = Traffic::Shared {
        wavefronts,
        atomic: None,
    };
}
