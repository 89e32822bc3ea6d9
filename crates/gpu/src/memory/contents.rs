//! The bytes of device, pinned and managed memory.
//!
//! They live in one sparse mapping, usually a file that the CUDA program maps too. Nothing
//! changes them while an epoch runs; [`Log`](super::Log)s are applied at its end, each sector by
//! one thread. Fresh memory reads zero.

use std::fmt;
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use rustix::mm::Advice;
use thiserror::Error;

use super::aliases::Aliases;
use super::geometry::{SECTOR, SectorBytes};
use super::initialised::Initialised;
use super::mapping::Mapping;
use super::multicast::{MulticastMapping, Multicasts};
use super::pages::{PAGE, Pages};
use super::ranges::{RangeError, Ranges};

/// Why contents could not be made.
#[derive(Debug, Error)]
pub enum ContentsError {
    /// Base or size is not a multiple of a page, or the window would pass the end of addresses.
    #[error("a window of {size:#x} bytes at {base:#x} is not made of whole pages")]
    Shape {
        /// First address.
        base: u64,
        /// Bytes.
        size: u64,
    },
    /// The system refused the mapping.
    #[error("cannot map {size} bytes for simulated memory: {cause}")]
    Map {
        /// Bytes.
        size: u64,
        /// What the system said.
        cause: io::Error,
    },
}

/// Simulated memory and which of its addresses are valid.
pub struct Contents {
    start: *mut u8,
    base: u64,
    size: u64,
    /// What `start` points into.
    mapping: Arc<Mapping>,
    pages: Pages,
    pub(super) ranges: RwLock<Ranges>,
    aliases: RwLock<Aliases>,
    multicasts: RwLock<Multicasts>,
    /// Changes whenever `ranges` does, so that SMs may keep what they looked up.
    version: AtomicU64,
    /// Pages of regions whose pages are not those of device memory.
    pub(super) page_sizes: Vec<(Range<u64>, u64)>,
    /// Memory of the context, which can be read, and a page that has what it holds.
    pub(super) context_memory: Option<(Range<u64>, u64)>,
    /// Which bytes were ever written, if that is asked.
    pub(super) initialised: Option<Arc<Initialised>>,
}

// SAFETY: the mapping belongs to the process, not to a thread. Writes happen while no epoch
// runs, or at its end with each sector written by one thread; see `write_sector`.
unsafe impl Send for Contents {}
// SAFETY: as above.
unsafe impl Sync for Contents {}

impl fmt::Debug for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Contents {{ base: {:#x}, size: {:#x} }}",
            self.base, self.size
        )
    }
}

impl Contents {
    /// Memory of its own that simulated addresses from `base` name; it lies anywhere in this
    /// process.
    ///
    /// # Errors
    /// If the window is not made of whole pages or cannot be mapped.
    pub fn anonymous(base: u64, size: u64) -> Result<Self, ContentsError> {
        Self::mapped(base, size, Mapping::anonymous)
    }

    /// The first `size` bytes of a file that others map too.
    ///
    /// # Errors
    /// If the window is not made of whole pages or cannot be mapped.
    pub fn shared(file: impl AsFd, base: u64, size: u64) -> Result<Self, ContentsError> {
        Self::mapped(base, size, |size| Mapping::of_file(file, size))
    }

    /// All of a mapping, which others may use too.
    ///
    /// # Errors
    /// If the window is not made of whole pages.
    pub fn over(mapping: Arc<Mapping>, base: u64) -> Result<Self, ContentsError> {
        Self::check(base, mapping.size())?;
        Ok(Self::new(mapping, base))
    }

    /// Memory that the caller has mapped.
    ///
    /// # Errors
    /// If the window is not made of whole pages.
    ///
    /// # Safety
    /// `start` must be the start of `size` readable and writable bytes that stay mapped as long
    /// as the value lives.
    pub unsafe fn borrowed(start: *mut u8, base: u64, size: u64) -> Result<Self, ContentsError> {
        Self::check(base, size)?;
        // SAFETY: by the caller's promise.
        let mapping = unsafe { Mapping::borrowed(start, size) };
        Ok(Self::new(Arc::new(mapping), base))
    }

    fn check(base: u64, size: u64) -> Result<(), ContentsError> {
        let whole = base.is_multiple_of(PAGE) && size.is_multiple_of(PAGE);
        if whole && size > 0 && base.checked_add(size).is_some() {
            Ok(())
        } else {
            Err(ContentsError::Shape { base, size })
        }
    }

    fn mapped(
        base: u64,
        size: u64,
        map: impl FnOnce(u64) -> io::Result<Mapping>,
    ) -> Result<Self, ContentsError> {
        Self::check(base, size)?;
        match map(size) {
            Ok(mapping) => Ok(Self::new(Arc::new(mapping), base)),
            Err(cause) => Err(ContentsError::Map { size, cause }),
        }
    }

    fn new(mapping: Arc<Mapping>, base: u64) -> Self {
        let size = mapping.size();
        Self {
            start: mapping.start(),
            base,
            size,
            mapping,
            pages: Pages::new(size / PAGE),
            ranges: RwLock::default(),
            aliases: RwLock::default(),
            multicasts: RwLock::default(),
            version: AtomicU64::new(1),
            page_sizes: Vec::new(),
            context_memory: None,
            initialised: None,
        }
    }

    /// The addresses of the window.
    #[must_use]
    pub fn window(&self) -> Range<u64> {
        self.base..self.base + self.size
    }

    /// Makes addresses valid for kernels.
    ///
    /// # Errors
    /// If the range is empty, leaves the window or overlaps another.
    pub fn map(&self, range: Range<u64>) -> Result<(), RangeError> {
        let window = self.window();
        if range.start < window.start || range.end > window.end {
            return Err(RangeError::Outside { range, window });
        }
        let mut ranges = self.ranges.write().unwrap_or_else(PoisonError::into_inner);
        ranges.insert(range)?;
        self.version.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Makes the allocation that starts at an address invalid and says what it was.
    pub fn unmap(&self, start: u64) -> Option<Range<u64>> {
        let mut ranges = self.ranges.write().unwrap_or_else(PoisonError::into_inner);
        let range = ranges.remove(start);
        self.version.fetch_add(1, Ordering::Release);
        if let Some(range) = &range {
            let mut aliases = self.aliases.write().unwrap_or_else(PoisonError::into_inner);
            aliases.forget(range);
        }
        range
    }

    /// Lets addresses without an allocation name memory of the window, until that memory is unmapped.
    /// False if there is one, or if they name other memory already.
    pub fn alias(&self, range: Range<u64>, to: u64) -> bool {
        let apart = |other: &Range<u64>| other.end <= range.start || range.end <= other.start;
        let free = self.ranges().iter().all(|other| apart(&other));
        let mut aliases = self.aliases.write().unwrap_or_else(PoisonError::into_inner);
        free && aliases.insert(range, to)
    }

    /// Lets the addresses from `start` on name nothing any more.
    pub fn forget_alias(&self, start: u64) {
        let mut aliases = self.aliases.write().unwrap_or_else(PoisonError::into_inner);
        aliases.remove(start);
    }

    /// What an address names that has no allocation of its own.
    #[must_use]
    pub fn resolve_alias(&self, address: u64) -> Option<u64> {
        let aliases = self.aliases.read().unwrap_or_else(PoisonError::into_inner);
        aliases.resolve(address)
    }

    /// All addresses that name memory of the window.
    #[must_use]
    pub fn aliases(&self) -> Aliases {
        let aliases = self.aliases.read().unwrap_or_else(PoisonError::into_inner);
        aliases.clone()
    }

    /// Says what multicast object the addresses from `start` on are, or that they are none any more.
    pub fn set_multicast(&self, start: u64, mapping: Option<MulticastMapping>) {
        let mut multicasts = self
            .multicasts
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        multicasts.set(start, mapping);
    }

    /// The multicast object that an address without an allocation is of.
    #[must_use]
    pub fn find_multicast(&self, address: u64) -> Option<Arc<MulticastMapping>> {
        let multicasts = self
            .multicasts
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        multicasts.find(address).cloned()
    }

    /// Which of some addresses are of multicast objects, a bit each by the number beside it.
    pub fn find_multicasts(&self, addresses: impl Iterator<Item = (usize, u64)>) -> u32 {
        let multicasts = self
            .multicasts
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        if multicasts.is_empty() {
            return 0;
        }
        addresses
            .filter(|(_, address)| multicasts.find(*address).is_some())
            .fold(0, |mask, (number, _)| mask | 1 << number)
    }

    /// Says whether kernels may only read the allocation that starts at an address.
    pub fn set_read_only(&self, start: u64, read_only: bool) {
        let mut ranges = self.ranges.write().unwrap_or_else(PoisonError::into_inner);
        ranges.set_read_only(start, read_only);
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Says that the allocation that starts at an address is none of the program.
    pub fn set_system(&self, start: u64) {
        let mut ranges = self.ranges.write().unwrap_or_else(PoisonError::into_inner);
        ranges.set_system(start);
    }

    /// Whether there is an allocation that kernels may only read.
    #[must_use]
    pub fn has_read_only(&self) -> bool {
        self.ranges
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .has_read_only()
    }

    /// The allocation that holds an address, if kernels may only read it.
    #[must_use]
    pub fn find_read_only(&self, address: u64) -> Option<Range<u64>> {
        self.ranges
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .find_read_only(address)
    }

    /// The allocation that holds an address.
    #[must_use]
    pub fn find(&self, address: u64) -> Option<Range<u64>> {
        self.ranges
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .find(address)
    }

    /// The allocation closest to an address.
    #[must_use]
    pub fn nearest(&self, address: u64) -> Option<Range<u64>> {
        self.ranges
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .nearest(address)
    }

    /// All allocations.
    #[must_use]
    pub fn ranges(&self) -> Ranges {
        self.ranges
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// A number that changes with the allocations.
    #[must_use]
    #[inline]
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Where `length` bytes at an address are in this process.
    ///
    /// # Panics
    /// If they are not inside the window: whoever asks has checked the address.
    #[inline]
    fn pointer(&self, address: u64, length: u64) -> *mut u8 {
        let offset = address.wrapping_sub(self.base);
        assert!(
            offset <= self.size && length <= self.size - offset,
            "{length} bytes at {address:#x} are outside the window"
        );
        // SAFETY: the offset lies inside the mapping.
        unsafe { self.start.add(offset as usize) }
    }

    /// Copies bytes out. The addresses must lie in the window.
    #[inline]
    pub fn read(&self, address: u64, bytes: &mut [u8]) {
        let from = self.pointer(address, bytes.len() as u64);
        // SAFETY: the source lies inside the mapping and is not written while this runs, except
        // by a CUDA program that races with its own device; any bytes are then valid.
        unsafe { std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), bytes.len()) }
    }

    /// Copies bytes in, as the host and copy engines do while no epoch runs.
    pub fn write(&self, address: u64, bytes: &[u8]) {
        let to = self.pointer(address, bytes.len() as u64);
        // SAFETY: the destination lies inside the mapping and no epoch runs.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) }
        self.note_host_write(address..address + bytes.len() as u64);
    }

    /// Copies bytes within, as copy engines do while no epoch runs; the ranges may overlap.
    pub fn copy(&self, destination: u64, source: u64, bytes: u64) {
        let from = self.pointer(source, bytes);
        let to = self.pointer(destination, bytes);
        // SAFETY: both ranges lie inside the mapping and no epoch runs.
        unsafe { std::ptr::copy(from, to, bytes as usize) }
        self.note_host_write(destination..destination + bytes);
    }

    /// Makes addresses read zero, as fresh memory does, and gives whole pages back to the host.
    pub fn forget(&self, range: Range<u64>) {
        let length = range.end.saturating_sub(range.start);
        let start = self.pointer(range.start, length);
        let first = range.start.next_multiple_of(PAGE).min(range.end);
        let last = (range.end / PAGE * PAGE).max(first);
        // SAFETY: both parts lie inside the mapping and no epoch runs. A hole in the file, or a
        // private page that is dropped, reads zero.
        unsafe {
            start.write_bytes(0, (first - range.start) as usize);
            let whole = start.add((first - range.start) as usize);
            let advice = if self.mapping.is_shared() {
                Advice::LinuxRemove
            } else {
                Advice::LinuxDontNeed
            };
            let bytes = (last - first) as usize;
            if bytes > 0 && rustix::mm::madvise(whole.cast(), bytes, advice).is_err() {
                whole.write_bytes(0, bytes);
            }
            whole.add(bytes).write_bytes(0, (range.end - last) as usize);
        }
    }

    /// One 32-bit word.
    #[must_use]
    #[inline(always)]
    pub fn word(&self, address: u64) -> u32 {
        let from = self.pointer(address, 4).cast::<u32>();
        // SAFETY: four bytes inside the mapping, see `read`.
        unsafe { from.read_unaligned() }
    }

    /// The bytes of a sector, by its number.
    #[must_use]
    #[inline(always)]
    pub fn sector(&self, sector: u64) -> SectorBytes {
        let from = self.pointer(sector * SECTOR, SECTOR).cast::<SectorBytes>();
        // SAFETY: 32 bytes inside the mapping, see `read`.
        unsafe { from.read_unaligned() }
    }

    /// Overwrites the bytes of a sector that `mask` has a bit for.
    ///
    /// # Safety
    /// No other thread reads or writes this sector meanwhile.
    #[inline]
    pub unsafe fn write_sector(&self, sector: u64, bytes: &SectorBytes, mask: u32) {
        let to = self.pointer(sector * SECTOR, SECTOR).cast::<SectorBytes>();
        self.pages.mark((sector * SECTOR - self.base) / PAGE);
        if let Some(initialised) = &self.initialised {
            initialised.add(sector, mask);
        }
        // SAFETY: 32 bytes inside the mapping, ours alone as the caller promises.
        unsafe {
            if mask == u32::MAX {
                to.write_unaligned(*bytes);
            } else {
                let mut merged = to.read_unaligned();
                merge(&mut merged, bytes, mask);
                to.write_unaligned(merged);
            }
        }
    }

    /// Whether writing these bytes of a sector would change it.
    ///
    /// # Safety
    /// No other thread writes this sector meanwhile.
    pub unsafe fn differs(&self, sector: u64, bytes: &SectorBytes, mask: u32) -> bool {
        let at = self.pointer(sector * SECTOR, SECTOR).cast::<SectorBytes>();
        // SAFETY: 32 bytes inside the mapping, which nobody writes, as the caller promises.
        let old = unsafe { at.read_unaligned() };
        let mut new = old;
        merge(&mut new, bytes, mask);
        new != old
    }

    /// Remembers that someone else wrote these addresses (a copy, the program itself), so that
    /// the digest covers them.
    pub fn note_host_write(&self, range: Range<u64>) {
        let window = self.window();
        let (start, end) = (range.start.max(window.start), range.end.min(window.end));
        if start < end {
            if let Some(initialised) = &self.initialised {
                initialised.set(start..end, true);
            }
            for page in (start - self.base) / PAGE..=(end - 1 - self.base) / PAGE {
                self.pages.mark(page);
            }
        }
    }

    /// Addresses of the pages that were ever written, ascending.
    pub fn written_pages(&self) -> impl Iterator<Item = u64> + '_ {
        self.pages.iter().map(|page| self.base + page * PAGE)
    }

    /// Addresses of the pages around a part of the window that were written since this was last asked,
    /// ascending; while no epoch runs.
    pub fn take_recent_pages(&self, range: Range<u64>) -> Vec<u64> {
        let page =
            |address: u64| (address.clamp(self.base, self.base + self.size) - self.base) / PAGE;
        let taken = self.pages.take_recent(page(range.start)..page(range.end));
        let addresses = taken.into_iter().map(|page| self.base + page * PAGE);
        addresses.collect()
    }

    /// Hands over every written page that does not read zero, with its address, ascending. Fresh
    /// memory reads zero, so the others are as if nobody had written them.
    pub fn each_page(&self, mut found: impl FnMut(u64, &[u8])) {
        let mut page = vec![0; PAGE as usize];
        for address in self.written_pages() {
            self.read(address, &mut page);
            if !reads_zero(&page) {
                found(address, &page);
            }
        }
    }
}

/// Whether all of these bytes are zero, many at once.
#[must_use]
pub fn reads_zero(bytes: &[u8]) -> bool {
    let mut parts = bytes.chunks(256);
    parts.all(|part| part.iter().fold(0, |all, byte| all | byte) == 0)
}

/// Takes the bytes of `mask` from `new`.
#[inline]
pub(crate) fn merge(old: &mut SectorBytes, new: &SectorBytes, mask: u32) {
    if mask == u32::MAX {
        *old = *new;
        return;
    }
    for byte in 0..SECTOR as usize {
        let keep = (((mask >> byte) & 1) as u8).wrapping_neg();
        old[byte] = (new[byte] & keep) | (old[byte] & !keep);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fresh_memory_reads_zero_and_keeps_what_is_written() {
        let contents = Contents::anonymous(0x2000_0000_0000, 1 << 40).unwrap();
        let address = 0x2000_0000_0000 + (1 << 39) + 4090;
        let mut bytes = [7; 12];
        contents.read(address, &mut bytes);
        assert_eq!(bytes, [0; 12]);
        contents.write(address, b"twelve bytes");
        contents.read(address, &mut bytes);
        assert_eq!(&bytes, b"twelve bytes");
        assert_eq!(contents.written_pages().count(), 2);
    }

    #[test]
    fn a_page_that_reads_zero_is_as_if_never_written() {
        let contents = Contents::anonymous(0x10000, 0x10000).unwrap();
        contents.write(0x10000, &[1]);
        contents.write(0x11000, &[0; 64]);
        contents.write(0x12000, &[2]);
        contents.write(0x12000, &[0]);
        contents.write(0x13fff, &[3]);
        let mut found = Vec::new();
        contents.each_page(|address, page| found.push((address, page[0], page[0xfff])));
        assert_eq!(found, [(0x10000, 1, 0), (0x13000, 0, 3)]);
    }

    #[test]
    fn forgotten_memory_reads_zero() {
        let file = rustix::fs::memfd_create(c"contents", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        rustix::fs::ftruncate(&file, 0x10000).unwrap();
        let all = [
            Contents::anonymous(0x10000, 0x10000).unwrap(),
            Contents::shared(&file, 0x10000, 0x10000).unwrap(),
        ];
        for contents in all {
            contents.write(0x10000, &[7; 0x10000]);
            contents.forget(0x10ff0..0x14010);
            contents.forget(0x18001..0x18003);
            let mut bytes = vec![0; 0x10000];
            contents.read(0x10000, &mut bytes);
            for (offset, byte) in bytes.iter().enumerate() {
                let gone = (0xff0..0x4010).contains(&offset) || (0x8001..0x8003).contains(&offset);
                assert_eq!(*byte, if gone { 0 } else { 7 }, "{offset:#x}");
            }
        }
    }

    #[test]
    fn ranges_outside_the_window_are_refused() {
        let contents = Contents::anonymous(0x10000, 0x10000).unwrap();
        assert!(contents.map(0xf000..0x11000).is_err());
        assert!(contents.map(0x1f000..0x20001).is_err());
        let before = contents.version();
        contents.map(0x11000..0x12000).unwrap();
        assert_ne!(contents.version(), before);
        assert_eq!(contents.unmap(0x11000), Some(0x11000..0x12000));
    }

    #[test]
    fn odd_windows_are_refused() {
        assert!(Contents::anonymous(1, 4096).is_err());
        assert!(Contents::anonymous(0, 0).is_err());
        assert!(Contents::anonymous(u64::MAX - 4095, 8192).is_err());
    }
}
