//! Memory that has several addresses, as the program's process sees it.
//!
//! Its bytes are in one place of the window. At every address that the program mapped it to, the pages
//! of that place are mapped too, so that whatever is copied past the simulator finds them.

use crate::fair_mutex::FairMutex;
use crate::fresh;
use crate::process::lock;
use crate::types::Address;
use lockstep_protocol::CuResult;
use lockstep_protocol::layout::WINDOW_BASE;
use std::collections::BTreeMap;
use std::os::fd::AsRawFd;

/// Addresses that show pages of another place, and how many bytes of it.
static VIEWS: FairMutex<BTreeMap<Address, usize>> = FairMutex::new(BTreeMap::new());

/// Shows `bytes` of a place at an address of the window.
pub fn show(address: Address, bytes: usize, place: Address) -> Result<(), CuResult> {
    let mut views = lock(&VIEWS);
    map(address, bytes, place)?;
    views.insert(address, bytes);
    Ok(())
}

/// Shows at an address what is there again; nothing changes if that was so.
pub fn hide(address: Address) {
    let mut views = lock(&VIEWS);
    if let Some(bytes) = views.remove(&address)
        && map(address, bytes, address).is_err()
    {
        // It still shows the other place, which nobody looks at by this address any more.
        views.insert(address, bytes);
    }
}

/// Whether some of these addresses show another place.
pub fn overlap(address: Address, bytes: usize) -> bool {
    let views = lock(&VIEWS);
    let before = views.range(..address.saturating_add(bytes)).next_back();
    before.is_some_and(|(start, length)| address < start + length)
}

fn map(address: Address, bytes: usize, place: Address) -> Result<(), CuResult> {
    let file = fresh::file().ok_or(CuResult::NOT_INITIALIZED)?;
    // SAFETY: the addresses are a part of the window, reserved by the program through the simulator, which
    // has just mapped or unmapped them; the mapping stays a shared one of the same file.
    let mapped = unsafe {
        libc::mmap(
            address as *mut libc::c_void,
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_NORESERVE | libc::MAP_FIXED,
            file.as_raw_fd(),
            (place as u64 - WINDOW_BASE) as libc::off_t,
        )
    };
    if mapped == libc::MAP_FAILED {
        return Err(CuResult::OUT_OF_MEMORY);
    }
    // SAFETY: the range is the mapping just made. A core dump must not hold the holes of a sparse file.
    let _ = unsafe { libc::madvise(mapped, bytes, libc::MADV_DONTDUMP) };
    Ok(())
}
