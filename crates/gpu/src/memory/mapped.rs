//! Memory as a GPU has it mapped, whatever was allocated; and which bytes of it were ever written.

use std::ops::Range;
use std::sync::{Arc, PoisonError};

use super::contents::{Contents, ContentsError};
use super::initialised::Initialised;
use super::pages::PAGE;

/// Bytes of a page of device memory: what a GPU maps at a time.
pub const DEVICE_PAGE: u64 = 2 << 20;

impl Contents {
    /// Says that a region has pages of another size than device memory.
    pub fn set_page_size(&mut self, region: Range<u64>, bytes: u64) {
        self.page_sizes.push((region, bytes));
    }

    /// Says where memory of the context lies that kernels can read, and a page whose bytes are what they find there.
    pub fn set_context_memory(&mut self, range: Range<u64>, page: u64) {
        self.context_memory = Some((range, page));
    }

    /// Where the bytes are that are found at an address of the context's own memory.
    #[must_use]
    pub fn in_context_memory(&self, address: u64, bytes: u64) -> Option<u64> {
        let (range, page) = self.context_memory.as_ref()?;
        let inside = range.contains(&address) && bytes <= PAGE - address % PAGE;
        inside.then(|| page + address % PAGE)
    }

    /// Begins to note which bytes of a region are written.
    ///
    /// # Errors
    /// If there is no room to note it.
    pub fn track_initialised(&mut self, region: Range<u64>) -> Result<(), ContentsError> {
        self.initialised = Some(Arc::new(Initialised::new(region)?));
        Ok(())
    }

    /// Notes what is written where other contents do, which these take the place of.
    pub fn share_initialised(&mut self, others: &Self) {
        self.initialised.clone_from(&others.initialised);
    }

    /// Bytes may be written by somebody who does not note it here.
    pub fn note_written_elsewhere(&self, range: Range<u64>) {
        if let Some(initialised) = &self.initialised {
            initialised.set(range, true);
        }
    }

    /// Bytes belong to a fresh allocation: nobody has written them.
    pub fn note_fresh(&self, range: Range<u64>) {
        if let Some(initialised) = &self.initialised {
            initialised.set(range, false);
        }
    }

    /// Which bytes were ever written, if that is noted.
    #[must_use]
    #[inline]
    pub fn initialised(&self) -> Option<&Initialised> {
        self.initialised.as_deref()
    }

    /// Whether a GPU has memory mapped at all of these bytes, allocated or not.
    #[must_use]
    pub fn is_mapped(&self, address: u64, bytes: u64) -> bool {
        let window = self.window();
        let Some(last) = address.checked_add(bytes.max(1) - 1) else {
            return false;
        };
        if address < window.start || last >= window.end {
            return false;
        }
        let page = self.page_size(address);
        let ranges = self.ranges.read().unwrap_or_else(PoisonError::into_inner);
        (address / page..=last / page).all(|number| ranges.is_mapped(number * page, page))
    }

    fn page_size(&self, address: u64) -> u64 {
        let own = self
            .page_sizes
            .iter()
            .find(|(region, _)| region.contains(&address));
        own.map_or(DEVICE_PAGE, |(_, bytes)| *bytes)
    }
}
