//! The reading side of a segment. It reads bytes, it never maps them: whatever the publisher does
//! to the file, the worst is a short read.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};

use super::directory::{process_namespace, process_start_ticks};
use super::error::SegmentError;
use super::layout::{self, HEADER_BYTES, MOST_REGIONS, MOST_VALUES, header, row};
use super::record::{Identity, Record, u32_at, u64_at};

/// Whether a segment's process still publishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// It is alive.
    Running,
    /// It said that it was done.
    Finished,
    /// It ended without saying so.
    Killed,
}

/// What one call of [`SegmentReader::read`] found.
#[derive(Debug, Default)]
pub struct Batch {
    /// Records in order, each with its index.
    pub records: Vec<(u64, Record)>,
    /// Records that were overwritten before they could be read.
    pub lost: u64,
}

/// One cumulative row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Identity of the device.
    pub device: u32,
    /// Identity of the context.
    pub context: u32,
    /// The driver's number of the stream.
    pub stream: u32,
    /// Identity of the kernel.
    pub kernel: u32,
    /// Launches so far.
    pub launches: u64,
    /// Nanoseconds that they ran.
    pub busy: u64,
    /// Last change, nanoseconds since 1970.
    pub updated: u64,
    /// Counters so far.
    pub values: Vec<u64>,
}

#[derive(Clone, Copy, Debug)]
struct RegionEntry {
    kind: u32,
    offset: u64,
    length: u64,
    first: u64,
}

/// Most bytes taken from a ring in one call.
const LARGEST_READ: u64 = 8 << 20;
/// Tries before a value that keeps changing is left for the next call.
const TRIES: usize = 64;

/// Reads one segment.
#[derive(Debug)]
pub struct SegmentReader {
    file: File,
    path: PathBuf,
    writable: bool,
    process: u32,
    started: u64,
    namespace: u64,
    values: usize,
    slot_bytes: usize,
    cursor: u64,
    generation: u64,
    regions: Vec<RegionEntry>,
    identities: Vec<Identity>,
    /// Where the next identity stands: place among the name regions, and offset in it.
    next_identity: (usize, usize),
    lost: u64,
}

/// Opens a file in a folder that may be another user's: no link is followed, and no pipe waited for.
fn open_file(path: &Path, writable: bool) -> std::io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    OpenOptions::new()
        .read(true)
        .write(writable)
        .custom_flags(flags.bits() as i32)
        .open(path)
}

impl SegmentReader {
    /// Opens the segment at `path`; reading starts at what the last storing reader acknowledged.
    pub fn open(path: &Path) -> Result<Self, SegmentError> {
        let failed = |error| SegmentError::system(path, "open the segment", error);
        let (file, writable) = match open_file(path, true) {
            Ok(file) => (file, true),
            Err(_) => (open_file(path, false).map_err(failed)?, false),
        };
        let malformed = |because: &str| SegmentError::Malformed {
            path: path.to_owned(),
            because: because.to_owned(),
        };
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(malformed("it is not a file"));
        }
        let bytes = read_header(&file).ok_or_else(|| malformed("it is shorter than a header"))?;
        let word = |at| u64_at(&bytes, at).unwrap_or(0);
        let half = |at| u32_at(&bytes, at).unwrap_or(0);
        if word(header::MAGIC) != layout::MAGIC {
            return Err(malformed("it does not begin with a segment's mark"));
        }
        if half(header::VERSION) != layout::VERSION {
            return Err(malformed(&format!(
                "layout version {}, and this is version {}",
                half(header::VERSION),
                layout::VERSION
            )));
        }
        let values = half(header::VALUES) as usize;
        let slot_bytes = half(header::SLOT_BYTES) as usize;
        if values > MOST_VALUES || slot_bytes != layout::slot_bytes(values) {
            return Err(malformed("its records have an impossible size"));
        }
        Ok(Self {
            file,
            path: path.to_owned(),
            writable,
            process: half(header::PROCESS),
            started: word(header::STARTED),
            namespace: word(header::NAMESPACE),
            values,
            slot_bytes,
            cursor: word(header::ACKNOWLEDGED).min(word(header::PUBLISHED)),
            generation: u64::MAX,
            regions: Vec::new(),
            identities: Vec::new(),
            next_identity: (0, 0),
            lost: 0,
        })
    }

    /// The segment's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The publishing process.
    pub fn process(&self) -> u32 {
        self.process
    }

    /// Index of the next record that [`Self::read`] will return.
    pub fn cursor(&self) -> u64 {
        self.cursor
    }

    /// Goes on at `index`, where a reader before this one stopped.
    pub fn resume_at(&mut self, index: u64) {
        self.cursor = index.min(self.word(header::PUBLISHED).unwrap_or(0));
    }

    /// Goes back to the oldest record that is still there, whoever acknowledged it: what a storing
    /// reader is done with may be news for another one.
    pub fn rewind(&mut self) {
        let published = self.word(header::PUBLISHED).unwrap_or(0);
        self.refresh();
        let rings = self.rings();
        let oldest = rings.first().map_or(0, |ring| {
            let end = rings.get(1).map_or(published, |next| next.first);
            let capacity = ring.length / self.slot_bytes as u64;
            end.min(published).saturating_sub(capacity).max(ring.first)
        });
        self.cursor = self.cursor.min(oldest);
    }

    /// Records that this reader missed.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Names read so far; their places are the numbers that records carry.
    pub fn identities(&self) -> &[Identity] {
        &self.identities
    }

    /// Reads new names without any record.
    pub fn learn_identities(&mut self) -> &[Identity] {
        self.read_identities();
        &self.identities
    }

    /// Whether the process only samples, and runs no kernels of its own.
    pub fn is_sampler(&self) -> bool {
        let mut bytes = [0; 4];
        let read = self.file.read_exact_at(&mut bytes, header::SAMPLER as u64);
        read.is_ok() && u32::from_le_bytes(bytes) != 0
    }

    /// Last sign of life, nanoseconds since 1970.
    pub fn heartbeat(&self) -> u64 {
        self.word(header::HEARTBEAT).unwrap_or(0)
    }

    fn word(&self, at: usize) -> Option<u64> {
        let mut bytes = [0; 8];
        self.file.read_exact_at(&mut bytes, at as u64).ok()?;
        Some(u64::from_le_bytes(bytes))
    }

    /// Whether the process still publishes.
    pub fn liveness(&self) -> Liveness {
        let mut state = [0; 4];
        if self
            .file
            .read_exact_at(&mut state, header::STATE as u64)
            .is_err()
        {
            return Liveness::Killed;
        }
        if u32::from_le_bytes(state) == layout::STATE_FINISHED {
            return Liveness::Finished;
        }
        // The publisher holds a lock that its end releases, also across namespaces and after it
        // became another program; a forked child may hold it on, hence the second question.
        let unlocked = flock(&self.file, FlockOperation::NonBlockingLockShared).is_ok();
        if unlocked {
            // Closing the file would unlock it as well.
            let _ = flock(&self.file, FlockOperation::Unlock);
            return Liveness::Killed;
        }
        let same_namespace = self.namespace == process_namespace();
        if same_namespace && process_start_ticks(self.process) != Some(self.started) {
            return Liveness::Killed;
        }
        Liveness::Running
    }

    /// Reads the region list again if its generation changed.
    fn refresh(&mut self) {
        for _ in 0..TRIES {
            let Some(generation) = self.word(header::GENERATION) else {
                return;
            };
            if generation == self.generation {
                return;
            }
            let Some(bytes) = read_header(&self.file) else {
                return;
            };
            if generation % 2 == 0 && self.word(header::GENERATION) == Some(generation) {
                self.regions = region_list(&bytes);
                self.generation = generation;
                return;
            }
            std::thread::yield_now();
        }
    }

    /// Reads names published since the last call. Names come before the records that use them.
    fn read_identities(&mut self) {
        let wanted = self.word(header::IDENTITIES).unwrap_or(0);
        self.refresh();
        let tables: Vec<RegionEntry> = self
            .regions
            .iter()
            .copied()
            .filter(|one| one.kind == layout::REGION_IDENTITIES)
            .collect();
        while (self.identities.len() as u64) < wanted {
            let (place, at) = self.next_identity;
            let Some(region) = tables.get(place) else {
                return;
            };
            // A later region that starts here means that this one is full.
            if tables
                .get(place + 1)
                .is_some_and(|next| next.first == self.identities.len() as u64)
            {
                self.next_identity = (place + 1, 0);
                continue;
            }
            let room = (region.length as usize).saturating_sub(at);
            let mut bytes = vec![0; room.min(layout::identity_bytes(layout::LONGEST_TEXT))];
            if self
                .file
                .read_exact_at(&mut bytes, region.offset + at as u64)
                .is_err()
            {
                return;
            }
            let Some((identity, length)) = Identity::decode(&bytes) else {
                return;
            };
            self.identities.push(identity);
            self.next_identity = (place, at + length);
        }
    }

    /// Takes the records that are new since the last call.
    pub fn read(&mut self) -> Batch {
        let Some(published) = self.word(header::PUBLISHED) else {
            return Batch::default();
        };
        // After the count of records, so that every name they use is already there.
        self.read_identities();
        self.read_until(published)
    }

    fn rings(&self) -> Vec<RegionEntry> {
        self.regions
            .iter()
            .copied()
            .filter(|one| one.kind == layout::REGION_RING)
            .collect()
    }

    /// Takes the records before `published`, by the list of regions as it was last read.
    fn read_until(&mut self, published: u64) -> Batch {
        let mut batch = Batch::default();
        let rings = self.rings();
        let slot_bytes = self.slot_bytes as u64;
        let mut budget = LARGEST_READ / slot_bytes;
        for (place, ring) in rings.iter().enumerate() {
            let end = rings
                .get(place + 1)
                .map_or(published, |next| next.first.min(published));
            if self.cursor >= end || self.cursor < ring.first || budget == 0 {
                continue;
            }
            let capacity = ring.length / slot_bytes;
            if capacity == 0 {
                continue;
            }
            // A ring that was left for a larger one lost what its own last round overwrote.
            self.skip_overwritten(end.saturating_sub(capacity).max(ring.first), &mut batch);
            let stop = end.min(self.cursor + budget);
            budget -= stop - self.cursor;
            let begun = self.cursor;
            let bytes = self.read_ring(ring, capacity, stop);
            let claimed = self.claimed_in(ring).max(end);
            let safe = claimed.saturating_sub(capacity).max(ring.first);
            for (i, bytes) in bytes.chunks_exact(self.slot_bytes).enumerate() {
                let index = begun + i as u64;
                match Record::decode(bytes, index, self.values) {
                    Some(record) if index >= safe => batch.records.push((index, record)),
                    _ => {
                        batch.lost += 1;
                        self.lost += 1;
                    }
                }
            }
            self.cursor = stop;
        }
        batch
    }

    /// The first record that was not begun in `ring`: later ones overwrote nothing in it.
    ///
    /// The publisher may have gone on to a larger ring since the list of regions was read. The
    /// count comes first: whatever it counts stands in a ring that the list then names.
    fn claimed_in(&mut self, ring: &RegionEntry) -> u64 {
        let claimed = self.word(header::CLAIMED).unwrap_or(0);
        self.refresh();
        self.rings()
            .iter()
            .map(|other| other.first)
            .filter(|first| *first > ring.first)
            .min()
            .map_or(claimed, |next| claimed.min(next))
    }

    fn skip_overwritten(&mut self, oldest: u64, batch: &mut Batch) {
        let missed = oldest.saturating_sub(self.cursor);
        self.cursor += missed;
        self.lost += missed;
        batch.lost += missed;
    }

    /// The bytes of the slots from the cursor to `stop`, in order.
    fn read_ring(&self, ring: &RegionEntry, capacity: u64, stop: u64) -> Vec<u8> {
        let slot_bytes = self.slot_bytes as u64;
        let mut bytes = Vec::with_capacity(((stop - self.cursor) * slot_bytes) as usize);
        let mut index = self.cursor;
        while index < stop {
            let place = (index - ring.first) % capacity;
            let run = (capacity - place).min(stop - index);
            let from = bytes.len();
            bytes.resize(from + (run * slot_bytes) as usize, 0);
            if self
                .file
                .read_exact_at(&mut bytes[from..], ring.offset + place * slot_bytes)
                .is_err()
            {
                // The file was cut short: what is missing decodes to nothing and counts as lost.
                bytes[from..].fill(0);
            }
            index += run;
        }
        bytes
    }

    /// Says that records before `index` are stored, so that their room may be used again.
    pub fn acknowledge(&self, index: u64) {
        if self.writable {
            // Then the publisher keeps them, and counts what no longer fits as lost.
            let _ = self
                .file
                .write_all_at(&index.to_le_bytes(), header::ACKNOWLEDGED as u64);
        }
    }

    /// The cumulative rows as they are now; a row that changes all the while is left out.
    pub fn rows(&mut self) -> Vec<Row> {
        let count = self.word(header::ROWS).unwrap_or(0);
        self.refresh();
        let row_bytes = layout::row_bytes(self.values);
        let tables: Vec<RegionEntry> = self
            .regions
            .iter()
            .copied()
            .filter(|one| one.kind == layout::REGION_ROWS)
            .collect();
        // A table may claim more than the file has.
        let file_bytes = self.file.metadata().map_or(0, |found| found.len());
        let mut rows = Vec::new();
        for (place, table) in tables.iter().enumerate() {
            let end = tables
                .get(place + 1)
                .map_or(count, |next| next.first.min(count));
            let room = table.length.min(file_bytes.saturating_sub(table.offset));
            let held = end.saturating_sub(table.first).min(room / row_bytes as u64);
            for index in 0..held {
                let offset = table.offset + index * row_bytes as u64;
                rows.extend(self.stable_row(offset, row_bytes));
            }
        }
        rows
    }

    fn stable_row(&self, offset: u64, row_bytes: usize) -> Option<Row> {
        let mut bytes = vec![0; row_bytes];
        for _ in 0..TRIES {
            self.file.read_exact_at(&mut bytes, offset).ok()?;
            let before = u64_at(&bytes, row::SEQUENCE)?;
            if before == 0 {
                return None; // Counted and not written yet: there is nothing to wait for.
            }
            let mut after = [0; 8];
            self.file.read_exact_at(&mut after, offset).ok()?;
            if before % 2 == 0 && u64::from_le_bytes(after) == before {
                return Some(Row {
                    device: u32_at(&bytes, row::DEVICE)?,
                    context: u32_at(&bytes, row::DEVICE + 4)?,
                    stream: u32_at(&bytes, row::DEVICE + 8)?,
                    kernel: u32_at(&bytes, row::DEVICE + 12)?,
                    launches: u64_at(&bytes, row::LAUNCHES)?,
                    busy: u64_at(&bytes, row::BUSY)?,
                    updated: u64_at(&bytes, row::UPDATED)?,
                    values: (0..self.values)
                        .filter_map(|i| u64_at(&bytes, row::VALUES + 8 * i))
                        .collect(),
                });
            }
            std::thread::yield_now();
        }
        None
    }

    /// Removes the segment's file once its process is gone and everything was read.
    pub fn remove(self) -> Result<(), SegmentError> {
        fs::remove_file(&self.path)
            .map_err(|error| SegmentError::system(&self.path, "remove the segment", error))
    }
}

fn read_header(file: &File) -> Option<Vec<u8>> {
    let mut bytes = vec![0; HEADER_BYTES];
    file.read_exact_at(&mut bytes, 0).ok()?;
    Some(bytes)
}

fn region_list(bytes: &[u8]) -> Vec<RegionEntry> {
    let count = (u32_at(bytes, header::REGIONS).unwrap_or(0) as usize).min(MOST_REGIONS);
    (0..count)
        .filter_map(|i| {
            let at = header::REGION_LIST + i * layout::REGION_ENTRY_BYTES;
            Some(RegionEntry {
                kind: u32_at(bytes, at)?,
                offset: u64_at(bytes, at + 8)?,
                // Larger than any publisher makes; also keeps arithmetic far from overflow.
                length: u64_at(bytes, at + 16)?.min(1 << 40),
                first: u64_at(bytes, at + 24)?,
            })
        })
        .filter(|one| one.offset < 1 << 50)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Publisher, RecordKind, SegmentDirectory};
    use super::*;

    #[test]
    fn a_ring_that_grows_while_it_is_read_loses_nothing() {
        let folder = std::env::temp_dir().join(format!("lockstep-growing-{}", std::process::id()));
        let directory = SegmentDirectory::open(&folder, "").unwrap();
        let mut publisher = Publisher::create(&directory, 5, 64 << 20).unwrap();
        let mut reader = SegmentReader::open(publisher.path()).unwrap();
        let record = Record::new(RecordKind::Launch);
        let published = 100;
        for _ in 0..published {
            publisher.publish(&record);
        }
        reader.read_identities();
        // The reader has looked at the list of regions; now the publisher fills the ring, goes on
        // to a larger one, and is 65 records into it when the reader has copied its bytes.
        let capacity = (256 << 10) / layout::slot_bytes(5) as u64;
        for _ in published..capacity + 65 {
            publisher.publish(&record);
        }
        let first = reader.read_until(published);
        assert_eq!((first.records.len() as u64, first.lost), (published, 0));
        let rest = reader.read();
        assert_eq!(rest.lost, 0);
        assert_eq!(rest.records.len() as u64, capacity + 65 - published);
        fs::remove_dir_all(&folder).unwrap();
    }
}
