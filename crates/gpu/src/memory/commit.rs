//! The end of an epoch: logs become contents.
//!
//! Sectors are divided into buckets and each bucket is committed by one worker: the slice logs
//! first, then the SM logs, where a byte that several SMs wrote takes the value of the largest
//! (cycle, SM). Sectors of one SM alone, which are nearly all, are applied as they are.

use std::cell::Cell;

use super::contents::Contents;
use super::geometry::{SECTOR, SectorBytes};
use super::log::{Entry, Log};
use super::table::SectorTable;

/// Where a sector was met first.
#[derive(Clone, Copy, Debug)]
struct Claim {
    /// Position in the list of SM logs.
    log: u32,
    /// Position in the bucket of that log.
    position: u32,
}

/// A sector that several SMs wrote.
#[derive(Clone, Copy, Debug)]
struct Conflict {
    sector: u64,
    mask: u32,
    bytes: SectorBytes,
    cycles: [u16; SECTOR as usize],
}

/// Memory that a worker keeps between commits, away from that of others.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct CommitScratch {
    table: SectorTable,
    claims: Vec<Claim>,
    conflicts: Vec<Conflict>,
    sectors: Vec<u64>,
}

/// A claim with this bit set is an index into the conflicts.
const CONFLICT: u32 = 1 << 31;

/// Applies one bucket of all logs. `sms` is in the order of SM numbers. Says whether memory has changed, if it is to
/// `compare`.
///
/// # Safety
/// No other thread reads contents or commits this bucket meanwhile.
pub unsafe fn commit_bucket<'a>(
    contents: &Contents,
    slices: impl Iterator<Item = &'a Log>,
    sms: &[&'a Log],
    bucket: usize,
    scratch: &mut CommitScratch,
    compare: bool,
) -> bool {
    let changed = Cell::new(false);
    let write = |sector: u64, bytes: &SectorBytes, mask: u32| {
        // SAFETY: the sector is of this bucket, which the caller leaves to this thread.
        unsafe {
            if compare && contents.differs(sector, bytes, mask) {
                changed.set(true);
            }
            contents.write_sector(sector, bytes, mask);
        }
    };
    let apply = |entry: &Entry| write(entry.sector, &entry.bytes, entry.mask);
    for log in slices {
        log.bucket(bucket).for_each(apply);
    }
    let mut writers = sms.iter().filter(|log| log.bucket(bucket).len() > 0);
    match (writers.next(), writers.next()) {
        (None, _) => {}
        (Some(log), None) => log.bucket(bucket).for_each(apply),
        _ => {
            find_conflicts(sms, bucket, scratch);
            for claim in &scratch.claims {
                if claim.log & CONFLICT == 0 {
                    apply(sms[claim.log as usize].bucket_entry(bucket, claim.position as usize));
                }
            }
            for conflict in &scratch.conflicts {
                write(conflict.sector, &conflict.bytes, conflict.mask);
            }
            scratch.table.clear(scratch.sectors.drain(..));
            scratch.claims.clear();
            scratch.conflicts.clear();
        }
    }
    changed.get()
}

fn find_conflicts(sms: &[&Log], bucket: usize, scratch: &mut CommitScratch) {
    for (number, log) in sms.iter().enumerate() {
        for (position, entry) in log.bucket(bucket).enumerate() {
            let next = scratch.claims.len() as u32;
            let (claim, first) = scratch.table.entry(entry.sector, next);
            if first {
                scratch.sectors.push(entry.sector);
                scratch.claims.push(Claim {
                    log: number as u32,
                    position: position as u32,
                });
                continue;
            }
            let claim = &mut scratch.claims[*claim as usize];
            if claim.log & CONFLICT == 0 {
                let first = sms[claim.log as usize].bucket_entry(bucket, claim.position as usize);
                *claim = Claim {
                    log: CONFLICT,
                    position: scratch.conflicts.len() as u32,
                };
                scratch.conflicts.push(Conflict {
                    sector: first.sector,
                    mask: first.mask,
                    bytes: first.bytes,
                    cycles: first.cycles,
                });
            }
            let conflict = &mut scratch.conflicts[claim.position as usize];
            join(conflict, entry);
        }
    }
}

/// Later SMs win ties, so a byte is taken when its cycle is not smaller.
fn join(conflict: &mut Conflict, entry: &Entry) {
    for byte in 0..SECTOR as usize {
        let bit = 1 << byte;
        let written = entry.mask & bit != 0;
        let later = conflict.mask & bit == 0 || entry.cycles[byte] >= conflict.cycles[byte];
        if written && later {
            conflict.bytes[byte] = entry.bytes[byte];
            conflict.cycles[byte] = entry.cycles[byte];
        }
    }
    conflict.mask |= entry.mask;
}

#[cfg(test)]
mod tests {
    use super::super::BUCKETS;
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    struct Write {
        /// Slice 0 or 1, or SM 2 and up.
        writer: usize,
        cycle: u16,
        sector: u64,
        mask: u32,
        value: u8,
    }

    fn writes() -> impl Strategy<Value = Vec<Write>> {
        let one = (0usize..6, 0u16..8, 0u64..24, any::<u32>(), any::<u8>());
        prop::collection::vec(one, 0..120).prop_map(|all| {
            let mut all: Vec<Write> = all
                .into_iter()
                .map(|(writer, cycle, sector, mask, value)| Write {
                    // A sector has one home, so one slice.
                    writer: if writer < 2 {
                        (sector % 2) as usize
                    } else {
                        writer
                    },
                    cycle,
                    sector: 0x1000_0000 + sector,
                    mask,
                    value,
                })
                .collect();
            // Each writer writes in the order of its cycles.
            all.sort_by_key(|write| write.cycle);
            all
        })
    }

    const BASE: u64 = 0x1000_0000 * SECTOR;

    proptest! {
        /// Byte by byte in one list, sorted by (slices first, cycle, SM, sequence): the slow way
        /// and the fast way agree.
        #[test]
        fn commit_equals_a_sorted_replay(writes in writes()) {
            let contents = Contents::anonymous(BASE, 4096).unwrap();
            let mut logs = vec![Log::default(); 6];
            for write in &writes {
                logs[write.writer].write(write.sector, &[write.value; 32], write.mask, write.cycle);
            }
            let mut scratch = CommitScratch::default();
            let (slices, sms) = logs.split_at(2);
            let sms: Vec<&Log> = sms.iter().collect();
            for bucket in 0..BUCKETS {
                // SAFETY: there is one thread.
                unsafe { commit_bucket(&contents, slices.iter(), &sms, bucket, &mut scratch, false) };
            }

            let mut sorted: Vec<&Write> = writes.iter().collect();
            sorted.sort_by_key(|write| {
                if write.writer < 2 { (0, 0, 0) } else { (1, write.cycle, write.writer) }
            });
            let mut expected = vec![0u8; 4096];
            for write in sorted {
                for byte in 0..32 {
                    if write.mask >> byte & 1 == 1 {
                        expected[((write.sector * SECTOR) - BASE) as usize + byte] = write.value;
                    }
                }
            }
            let mut found = vec![0u8; 4096];
            contents.read(BASE, &mut found);
            prop_assert_eq!(found, expected);
        }

        /// A log answers a look-up with what was written last, and is empty after clearing.
        #[test]
        fn a_log_shows_its_own_writes(writes in writes()) {
            let mut log = Log::default();
            let mut expected = vec![None; 24 * 32];
            for write in &writes {
                log.write(write.sector, &[write.value; 32], write.mask, write.cycle);
                for byte in 0..32 {
                    if write.mask >> byte & 1 == 1 {
                        expected[((write.sector - 0x1000_0000) * 32) as usize + byte] =
                            Some(write.value);
                    }
                }
            }
            for sector in 0..24u64 {
                let mut bytes = [0xaa; 32];
                log.overlay(0x1000_0000 + sector, &mut bytes);
                for byte in 0..32 {
                    let wanted = expected[sector as usize * 32 + byte].unwrap_or(0xaa);
                    prop_assert_eq!(bytes[byte], wanted);
                }
            }
            log.clear();
            for sector in 0..24 {
                prop_assert!(log.find(0x1000_0000 + sector).is_none());
            }
        }
    }
}
