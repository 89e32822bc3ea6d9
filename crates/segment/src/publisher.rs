//! The writing side of a segment: one per process, used by one thread at a time.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{Ordering, fence};

use rustix::fs::{FlockOperation, flock};

use super::directory::{SegmentDirectory, process_namespace, process_start_ticks};
use super::error::SegmentError;
use super::layout::{self, HEADER_BYTES, MOST_REGIONS, MOST_VALUES, header, identity, row, slot};
use super::record::{IdentityKind, NO_IDENTITY, Record};
use super::region::Region;

const FIRST_RING: usize = 256 << 10;
const FIRST_TABLE: usize = 64 << 10;

/// What a row of cumulative counters belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowKey {
    /// Identity of the device.
    pub device: u32,
    /// Identity of the context.
    pub context: u32,
    /// The driver's number of the stream.
    pub stream: u32,
    /// Identity of the kernel.
    pub kernel: u32,
}

/// Publishes one process's records. Dropping it marks the segment as finished.
pub struct Publisher {
    file: File,
    path: PathBuf,
    header: Region,
    rings: Vec<Region>,
    names: Vec<Region>,
    tables: Vec<Region>,
    values: usize,
    next: u64,
    maximum: u64,
    size: u64,
    name_bytes: usize,
    identities: u32,
    row_of: BTreeMap<RowKey, u64>,
    known: BTreeMap<(u32, u32), BTreeMap<String, u32>>,
}

impl Publisher {
    /// Makes a segment in `directory` for records of `values` values, of at most `maximum` bytes.
    pub fn create(
        directory: &SegmentDirectory,
        values: usize,
        maximum: u64,
    ) -> Result<Self, SegmentError> {
        assert!(
            values <= MOST_VALUES,
            "the schema has fewer counters than a record has places"
        );
        let (file, hidden, path) = directory.create()?;
        let made = Self::fill(file, &hidden, values, maximum);
        let publisher = made.and_then(|publisher| {
            fs::rename(&hidden, &path)
                .map_err(|error| SegmentError::system(&path, "publish the segment", error))?;
            Ok(publisher)
        });
        if publisher.is_err() {
            // The error that is told is why it could not be made.
            let _ = fs::remove_file(&hidden);
        }
        publisher.map(|mut publisher| {
            publisher.path = path;
            publisher
        })
    }

    fn fill(file: File, path: &Path, values: usize, maximum: u64) -> Result<Self, SegmentError> {
        let header = Region::append(&file, 0, HEADER_BYTES, 0)
            .map_err(|error| SegmentError::system(path, "reserve room for a segment", error))?;
        // Held until this process ends or starts another program: how readers know that it lives.
        // A file system without locks leaves them the process's number and heartbeat.
        let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
        let process = std::process::id();
        let relaxed = Ordering::Relaxed;
        header.half(header::VERSION).store(layout::VERSION, relaxed);
        header
            .half(header::HEADER_BYTES)
            .store(HEADER_BYTES as u32, relaxed);
        header.half(header::PROCESS).store(process, relaxed);
        header
            .half(header::USER)
            .store(rustix::process::geteuid().as_raw(), relaxed);
        header
            .word(header::STARTED)
            .store(process_start_ticks(process).unwrap_or(0), relaxed);
        header
            .word(header::NAMESPACE)
            .store(process_namespace(), relaxed);
        header
            .half(header::STATE)
            .store(layout::STATE_RUNNING, relaxed);
        header.half(header::VALUES).store(values as u32, relaxed);
        header
            .half(header::SLOT_BYTES)
            .store(layout::slot_bytes(values) as u32, relaxed);
        let mut publisher = Self {
            file,
            path: path.to_owned(),
            header,
            rings: Vec::new(),
            names: Vec::new(),
            tables: Vec::new(),
            values,
            next: 0,
            maximum,
            size: HEADER_BYTES as u64,
            name_bytes: 0,
            identities: 0,
            row_of: BTreeMap::new(),
            known: BTreeMap::new(),
        };
        let reserve = |error| SegmentError::system(path, "reserve room for a segment", error);
        publisher
            .add_region(layout::REGION_RING, FIRST_RING, 0)
            .map_err(reserve)?;
        publisher
            .add_region(layout::REGION_IDENTITIES, FIRST_TABLE, 0)
            .map_err(reserve)?;
        publisher
            .add_region(layout::REGION_ROWS, FIRST_TABLE, 0)
            .map_err(reserve)?;
        publisher
            .header
            .word(header::MAGIC)
            .store(layout::MAGIC, Ordering::Release);
        Ok(publisher)
    }

    /// The segment's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Records given up because no reader took them in time.
    pub fn lost(&self) -> u64 {
        self.header.word(header::LOST).load(Ordering::Relaxed)
    }

    /// Signs of life: `now` is nanoseconds since 1970.
    pub fn beat(&self, now: u64) {
        self.header
            .word(header::HEARTBEAT)
            .store(now, Ordering::Relaxed);
    }

    /// Says that this process only samples, and runs no kernels of its own.
    pub fn mark_as_sampler(&self) {
        self.header
            .half(header::SAMPLER)
            .store(1, Ordering::Relaxed);
    }

    /// Says that no record follows.
    pub fn finish(&self) {
        self.header
            .half(header::STATE)
            .store(layout::STATE_FINISHED, Ordering::Release);
    }

    fn add_region(&mut self, kind: u32, length: usize, first: u64) -> std::io::Result<()> {
        let used = self.header.half(header::REGIONS).load(Ordering::Relaxed) as usize;
        if used == MOST_REGIONS {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        let length = length.next_multiple_of(HEADER_BYTES);
        let region = Region::append(&self.file, self.size, length, first)?;
        let generation = self.header.word(header::GENERATION);
        generation.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let at = header::REGION_LIST + used * layout::REGION_ENTRY_BYTES;
        self.header.half(at).store(kind, Ordering::Relaxed);
        self.header
            .word(at + 8)
            .store(region.offset, Ordering::Relaxed);
        self.header
            .word(at + 16)
            .store(region.length as u64, Ordering::Relaxed);
        self.header.word(at + 24).store(first, Ordering::Relaxed);
        self.header
            .half(header::REGIONS)
            .store(used as u32 + 1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        generation.fetch_add(1, Ordering::Release);
        self.size += length as u64;
        match kind {
            layout::REGION_RING => self.rings.push(region),
            layout::REGION_IDENTITIES => self.names.push(region),
            _ => self.tables.push(region),
        }
        Ok(())
    }

    /// Appends one record and returns its index.
    pub fn publish(&mut self, record: &Record) -> u64 {
        let slot_bytes = layout::slot_bytes(self.values);
        let index = self.next;
        self.make_room(index, slot_bytes);
        let ring = self
            .rings
            .last()
            .expect("a segment has a ring from the start");
        let capacity = (ring.length / slot_bytes) as u64;
        let at = ((index - ring.first) % capacity) as usize * slot_bytes;
        self.header
            .word(header::CLAIMED)
            .store(index + 1, Ordering::Relaxed);
        ring.word(at + slot::SEQUENCE).store(0, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let mut bytes = [0; layout::slot_bytes(MOST_VALUES)];
        record.encode(&mut bytes, self.values);
        ring.write(at + 8, &bytes[8..slot_bytes]);
        ring.word(at + slot::SEQUENCE)
            .store(index + 1, Ordering::Release);
        self.header
            .word(header::PUBLISHED)
            .store(index + 1, Ordering::Release);
        self.next = index + 1;
        index
    }

    /// Grows the ring rather than overwrite a record that the storing reader still needs.
    fn make_room(&mut self, index: u64, slot_bytes: usize) {
        let ring = self
            .rings
            .last()
            .expect("a segment has a ring from the start");
        let (first, length) = (ring.first, ring.length);
        let capacity = (length / slot_bytes) as u64;
        if index < first + capacity {
            return;
        }
        let overwritten = index - capacity;
        if self
            .header
            .word(header::ACKNOWLEDGED)
            .load(Ordering::Acquire)
            > overwritten
        {
            return;
        }
        let larger = length * 2;
        let fits = self.size + larger as u64 <= self.maximum;
        if !(fits && self.add_region(layout::REGION_RING, larger, index).is_ok()) {
            self.header
                .word(header::LOST)
                .fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Adds a name and returns its number; nothing if there is no room left.
    pub fn name(&mut self, kind: IdentityKind, parent: u32, number: u32, text: &str) -> u32 {
        let mut cut = text.len().min(layout::LONGEST_TEXT);
        while !text.is_char_boundary(cut) {
            cut -= 1;
        }
        let text = &text.as_bytes()[..cut];
        let length = layout::identity_bytes(text.len());
        // A region always keeps room for the end mark.
        if self.name_bytes + length + 8 > self.names.last().map_or(0, |region| region.length) {
            let larger = self
                .names
                .last()
                .map_or(FIRST_TABLE, |region| region.length * 2);
            if self.size + larger as u64 > self.maximum
                || self
                    .add_region(
                        layout::REGION_IDENTITIES,
                        larger,
                        u64::from(self.identities),
                    )
                    .is_err()
            {
                return NO_IDENTITY;
            }
            self.name_bytes = 0;
        }
        let region = self
            .names
            .last()
            .expect("a segment has a table of names from the start");
        let at = self.name_bytes;
        let mut head = [0; identity::TEXT];
        head[identity::KIND..][..4].copy_from_slice(&(kind as u32).to_le_bytes());
        head[identity::LENGTH..][..4].copy_from_slice(&(text.len() as u32).to_le_bytes());
        head[identity::PARENT..][..4].copy_from_slice(&parent.to_le_bytes());
        head[identity::NUMBER..][..4].copy_from_slice(&number.to_le_bytes());
        region.write(at + identity::TEXT, text);
        region.write(at, &head);
        self.name_bytes += length;
        let number = self.identities;
        self.identities += 1;
        self.header
            .word(header::IDENTITIES)
            .store(u64::from(self.identities), Ordering::Release);
        number
    }

    /// As [`Self::name`], but the same name twice gives the same number.
    pub fn name_once(&mut self, kind: IdentityKind, parent: u32, text: &str) -> u32 {
        let key = (kind as u32, parent);
        if let Some(known) = self.known.get(&key).and_then(|names| names.get(text)) {
            return *known;
        }
        let number = self.name(kind, parent, 0, text);
        if number != NO_IDENTITY {
            self.known
                .entry(key)
                .or_default()
                .insert(text.to_owned(), number);
        }
        number
    }

    /// Adds to the cumulative row of `key`: launches, busy time and values.
    pub fn accumulate(&mut self, key: RowKey, launches: u64, busy: u64, now: u64, values: &[u64]) {
        let Some((region, at)) = self.row(key) else {
            return;
        };
        let region = &self.tables[region];
        let sequence = region.word(at + row::SEQUENCE);
        sequence.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        for (i, part) in [key.device, key.context, key.stream, key.kernel]
            .into_iter()
            .enumerate()
        {
            region
                .half(at + row::DEVICE + 4 * i)
                .store(part, Ordering::Relaxed);
        }
        region
            .word(at + row::LAUNCHES)
            .fetch_add(launches, Ordering::Relaxed);
        region
            .word(at + row::BUSY)
            .fetch_add(busy, Ordering::Relaxed);
        region.word(at + row::UPDATED).store(now, Ordering::Relaxed);
        for (i, value) in values.iter().take(self.values).enumerate() {
            region
                .word(at + row::VALUES + 8 * i)
                .fetch_add(*value, Ordering::Relaxed);
        }
        fence(Ordering::SeqCst);
        sequence.fetch_add(1, Ordering::Release);
    }

    /// Region and offset of the row of `key`, made if it is new.
    fn row(&mut self, key: RowKey) -> Option<(usize, usize)> {
        let row_bytes = layout::row_bytes(self.values);
        let index = match self.row_of.get(&key) {
            Some(index) => *index,
            None => {
                let index = self.row_of.len() as u64;
                let last = self.tables.last()?;
                if index - last.first == (last.length / row_bytes) as u64 {
                    let larger = last.length * 2;
                    if self.size + larger as u64 > self.maximum {
                        return None;
                    }
                    self.add_region(layout::REGION_ROWS, larger, index).ok()?;
                }
                self.row_of.insert(key, index);
                self.header
                    .word(header::ROWS)
                    .store(index + 1, Ordering::Release);
                index
            }
        };
        let region = self
            .tables
            .iter()
            .rposition(|region| region.first <= index)?;
        Some((
            region,
            (index - self.tables[region].first) as usize * row_bytes,
        ))
    }

    /// Removes the segment's file: nobody needs its records, and one that stays is reaped later.
    pub fn discard(self) {
        let _ = fs::remove_file(&self.path);
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.finish();
    }
}
