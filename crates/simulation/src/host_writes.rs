//! Finds what the host wrote between two calls, so that a record can be replayed without it, and
//! what it could read after one, so that the replay can be checked.
//!
//! Copies from ordinary memory are written by the program after their answer; pinned and managed
//! memory it may write whenever it likes. The first are read back at the program's next call, the
//! others are compared page by page with what they held after the last one.

use lockstep_runtime::{Device, Piece, Runtime};
use lockstep_stats::Hasher;
use std::collections::BTreeMap;

const PAGE: usize = 4096;

/// What the host may have written.
#[derive(Debug, Default)]
pub struct HostWrites {
    /// Ranges that a connection's program writes after its last answer.
    pending: BTreeMap<u64, Vec<(u64, u64)>>,
    /// Pages of host memory that the device sees, as they were after the last call; a page of
    /// zeros is not kept.
    pages: BTreeMap<u64, Box<[u8; PAGE]>>,
}

impl HostWrites {
    /// Before a call of a connection: hands every range that the host wrote to `found`.
    pub fn before<D: Device>(
        &mut self,
        connection: u64,
        runtime: &Runtime<D>,
        mut found: impl FnMut(u64, &[u8]),
    ) {
        for ranges in self.pending.values() {
            for (address, bytes) in ranges {
                // Freed meanwhile: nobody can read it any more.
                if runtime.holds(&Piece::linear(*address, *bytes)).is_err() {
                    continue;
                }
                let mut contents = vec![0; *bytes as usize];
                runtime.device().read(*address, &mut contents);
                found(*address, &contents);
            }
        }
        // Others may still be writing: theirs are read again.
        self.pending.remove(&connection);
        self.compare(runtime, &mut found);
    }

    /// After a call of a connection: notes what it may write from now on; what its program can
    /// read that it could not before.
    pub fn after<D: Device>(&mut self, connection: u64, runtime: &Runtime<D>) -> Vec<Piece> {
        if !runtime.host_writes().is_empty() {
            self.pending
                .entry(connection)
                .or_default()
                .extend_from_slice(runtime.host_writes());
        }
        let copied = runtime.host_reads().iter().copied();
        let mut read: Vec<Piece> = copied
            .filter(|piece| runtime.holds(piece).is_ok())
            .collect();
        self.compare(runtime, &mut |address, bytes| {
            read.push(Piece::linear(address, bytes.len() as u64));
        });
        read
    }

    fn compare<D: Device>(&mut self, runtime: &Runtime<D>, found: &mut impl FnMut(u64, &[u8])) {
        let visible = runtime.host_visible();
        self.pages.retain(|page, _| {
            visible
                .iter()
                .any(|(base, bytes)| page + (PAGE as u64) > *base && *page < base + bytes)
        });
        for (base, bytes) in visible {
            let mut address = base;
            while address < base + bytes {
                let page = address - address % PAGE as u64;
                let length = (page + PAGE as u64).min(base + bytes) - address;
                let mut now = [0; PAGE];
                let at = (address - page) as usize;
                let part = at..at + length as usize;
                runtime.device().read(address, &mut now[part.clone()]);
                let before = self
                    .pages
                    .get(&page)
                    .map_or(&[0; PAGE][..], |known| &known[..]);
                if before[part.clone()] != now[part.clone()] {
                    found(address, &now[part.clone()]);
                    let known = self
                        .pages
                        .entry(page)
                        .or_insert_with(|| Box::new([0; PAGE]));
                    known[part.clone()].copy_from_slice(&now[part]);
                }
                address += length;
            }
        }
    }
}

/// A digest of what memory holds in these pieces, which some allocation must hold.
pub fn digest<D: Device>(runtime: &Runtime<D>, pieces: &[Piece]) -> [u8; 32] {
    let mut hasher = Hasher::new("read back");
    let mut bytes = [0; PAGE];
    for Piece { rows, extent } in pieces {
        if extent.bytes() == Some(0) {
            continue;
        }
        for slice in 0..extent.depth {
            for row in 0..extent.height {
                let first = rows.address + slice * rows.slice_pitch + row * rows.row_pitch;
                for at in (0..extent.width).step_by(PAGE) {
                    let part = &mut bytes[..(extent.width - at).min(PAGE as u64) as usize];
                    runtime.device().read(first + at, part);
                    hasher.bytes(part);
                }
            }
        }
    }
    *hasher.finish().as_bytes()
}
