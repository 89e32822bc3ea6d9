//! What strong accesses do to the bytes of a sector, and how long lanes of atomics take.
//!
//! Start reading at [`perform`].

use lockstep_isa::memory::{AtomicOperation, AtomicType};
use lockstep_isa::semantics::atomic;
use lockstep_units::Duration;

use super::parameters::SliceParameters;
use crate::memory::{Contents, Log, SectorBytes};
use crate::message::{LaneAccess, StrongAction, StrongRequest};
use crate::statistics::SliceStats;

/// Performs a strong access: it sees contents and what the slice has done in this epoch.
pub fn perform(
    request: &mut StrongRequest,
    contents: &Contents,
    log: &mut Log,
    stats: &mut SliceStats,
) {
    stats.strong_accesses.increment();
    let sector = request.sector;
    match request.action {
        StrongAction::Load => request.bytes = value(sector, contents, log),
        StrongAction::Store => log.write(sector, &request.bytes, request.mask, 0),
        StrongAction::Atomic(function, kind) | StrongAction::Reduce(function, kind) => {
            let mut bytes = value(sector, contents, log);
            let mut mask = 0;
            let size = kind.bytes() as usize;
            let elements = request.lanes.chunks_exact_mut(LaneAccess::needed(kind));
            stats.atomic_lanes.add(elements.len() as u64);
            for accesses in elements {
                let at = usize::from(accesses[0].offset);
                let mut cell = [0; 16];
                cell[..size].copy_from_slice(&bytes[at..at + size]);
                let old = u128::from_le_bytes(cell);
                let operand = LaneAccess::joined(accesses, |access| access.operand);
                let second = LaneAccess::joined(accesses, |access| access.second);
                let new = atomic::apply(function, kind, old, operand, second)
                    .expect("the SM sends what can be performed");
                bytes[at..at + size].copy_from_slice(&new.to_le_bytes()[..size]);
                mask |= (((1u64 << size) - 1) as u32) << at;
                for (half, access) in accesses.iter_mut().enumerate() {
                    access.operand = (old >> (64 * half)) as u64;
                }
            }
            log.write(sector, &bytes, mask, 0);
        }
    }
}

fn value(sector: u64, contents: &Contents, log: &Log) -> SectorBytes {
    let mut bytes = contents.sector(sector);
    log.overlay(sector, &mut bytes);
    bytes
}

/// How long each of several lanes takes that want the same word.
pub fn lane_time(action: StrongAction, parameters: &SliceParameters) -> Duration {
    use AtomicType::{Bf16, Bf16x2, F16, F16x2, F32, F64};
    match action {
        StrongAction::Atomic(AtomicOperation::Add, kind)
        | StrongAction::Reduce(AtomicOperation::Add, kind) => match kind {
            F32 { .. } | F64 | F16x2 | Bf16x2 | F16 | Bf16 => parameters.atomic_float_lane,
            _ => parameters.atomic_lane,
        },
        _ => parameters.atomic_lane,
    }
}

/// The most lanes that want one word.
pub fn most_alike(lanes: &[LaneAccess]) -> u32 {
    let mut words = [0u8; 32];
    let mut most = 1;
    for access in lanes {
        let count = &mut words[usize::from(access.offset / 2) % 32];
        *count += 1;
        most = most.max(*count);
    }
    u32::from(most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::SECTOR;

    const BASE: u64 = 0x1000_0000;

    fn lane(lane: u8, offset: u8, operand: u64) -> LaneAccess {
        LaneAccess {
            lane,
            offset,
            element: 0,
            operand,
            second: 0,
        }
    }

    #[test]
    fn lanes_of_an_atomic_see_each_other_and_return_what_was_there() {
        let contents = Contents::anonymous(BASE, 4096).unwrap();
        contents.write(BASE, &7u32.to_le_bytes());
        let (mut log, mut stats) = (Log::default(), SliceStats::default());
        let mut request = StrongRequest {
            action: StrongAction::Atomic(AtomicOperation::Add, AtomicType::U32),
            sector: BASE / SECTOR,
            lanes: vec![lane(0, 0, 1), lane(1, 0, 10), lane(2, 4, 5)],
            ..StrongRequest::default()
        };
        perform(&mut request, &contents, &mut log, &mut stats);
        let old: Vec<u64> = request.lanes.iter().map(|lane| lane.operand).collect();
        assert_eq!(old, [7, 8, 0]);
        let mut load = StrongRequest {
            sector: BASE / SECTOR,
            ..StrongRequest::default()
        };
        perform(&mut load, &contents, &mut log, &mut stats);
        assert_eq!(load.bytes[..8], [18, 0, 0, 0, 5, 0, 0, 0]);
        assert_eq!(stats.atomic_lanes.get(), 3);
    }

    #[test]
    fn lanes_that_want_one_word_are_counted() {
        assert_eq!(most_alike(&[]), 1);
        let lanes = [lane(0, 0, 0), lane(1, 4, 0), lane(2, 4, 0), lane(3, 8, 0)];
        assert_eq!(most_alike(&lanes), 2);
    }
}
