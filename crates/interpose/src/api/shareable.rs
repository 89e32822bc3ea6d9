//! Physical memory and multicast objects as file descriptors, which travel to other processes over sockets.
//!
//! A descriptor is that of a small sealed file in memory that names the physical memory. It keeps that
//! memory no longer than somebody holds or has mapped it.

use super::virtual_memory::{
    FILE_DESCRIPTOR, Properties, of_any_handle, properties_of_multicast, retain,
};
use crate::boundary::driver;
use crate::context::check_initialized;
use crate::process::device;
use crate::types::{Address, Location, Out};
use lockstep_protocol::CuResult;
use std::fs::File;
use std::io::Write;
use std::mem::ManuallyDrop;
use std::os::fd::{FromRawFd, IntoRawFd};
use std::os::unix::fs::FileExt;

/// What the file begins with.
const MAGIC: u64 = u64::from_le_bytes(*b"lkst shr");
/// The same of a multicast object.
const MULTICAST_MAGIC: u64 = u64::from_le_bytes(*b"lkst mlt");

/// What the file holds: the memory's number, bytes, device as the simulator counts, kinds of handles and
/// flags.
type Words = [u64; 6];

driver! {
    fn cuMemExportToShareableHandle(place: Out<i32>, handle: Address, kind: u32, flags: u64) {
        check_initialized()?;
        place.check()?;
        let (number, properties, bytes, is_multicast) = of_any_handle(handle)?;
        if flags != 0 || kind != FILE_DESCRIPTOR || properties.handle_types & FILE_DESCRIPTOR == 0 {
            return Err(CuResult::INVALID_VALUE);
        }
        let (magic, ordinal) = match is_multicast {
            true => (MULTICAST_MAGIC, 0),
            false => (MAGIC, device(properties.location.number)?.ordinal),
        };
        let words = [
            magic,
            number,
            bytes as u64,
            ordinal.into(),
            properties.handle_types.into(),
            properties.flags,
        ];
        place.set(file_of(words).map_err(|_| CuResult::OPERATING_SYSTEM)?.into_raw_fd())
    }

    /// The descriptor stays the program's.
    fn cuMemImportFromShareableHandle(handle: Out<Address>, descriptor: usize, kind: u32) {
        check_initialized()?;
        handle.check()?;
        if kind != FILE_DESCRIPTOR {
            return Err(CuResult::INVALID_VALUE);
        }
        let [magic, number, bytes, ordinal, handle_types, flags] = words_of(descriptor as i32)?;
        if magic == MULTICAST_MAGIC {
            let properties = properties_of_multicast(handle_types as u32);
            return handle.set(retain(number, properties, bytes as usize, true)?);
        }
        let mut visible = (0..).map_while(|number| Some((number, device(number).ok()?.ordinal)));
        let found = visible.find(|(_, known)| u64::from(*known) == ordinal);
        let (number_of_device, _) = found.ok_or(CuResult::INVALID_DEVICE)?;
        let properties = Properties {
            kind: 1,
            handle_types: handle_types as u32,
            location: Location { kind: 1, number: number_of_device },
            metadata: 0,
            flags,
        };
        handle.set(retain(number, properties, bytes as usize, false)?)
    }
}

/// A file in memory that nobody can change any more.
fn file_of(words: Words) -> std::io::Result<File> {
    // SAFETY: the name ends with a zero.
    let file = unsafe {
        libc::memfd_create(
            c"lockstep-shared-memory".as_ptr(),
            libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING,
        )
    };
    if file < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just made, and is nobody else's.
    let mut file = unsafe { File::from_raw_fd(file) };
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    file.write_all(&bytes)?;
    let seals = libc::F_SEAL_GROW | libc::F_SEAL_SHRINK | libc::F_SEAL_WRITE | libc::F_SEAL_SEAL;
    let descriptor = file.into_raw_fd();
    // SAFETY: sealing takes nothing but numbers; the descriptor is ours.
    let (sealed, file) = unsafe {
        (
            libc::fcntl(descriptor, libc::F_ADD_SEALS, seals),
            File::from_raw_fd(descriptor),
        )
    };
    match sealed {
        0 => Ok(file),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// What a descriptor of the program's names; an invalid value if it is none of ours.
fn words_of(descriptor: i32) -> Result<Words, CuResult> {
    // SAFETY: the file is only read, and the descriptor not closed; a wrong one is an error of the system.
    let file = ManuallyDrop::new(unsafe { File::from_raw_fd(descriptor.max(0)) });
    let mut bytes = [0; size_of::<Words>()];
    let read = file.read_exact_at(&mut bytes, 0);
    if descriptor < 0 || read.is_err() {
        return Err(CuResult::INVALID_VALUE);
    }
    let mut words = [0; 6];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    match words[0] {
        MAGIC | MULTICAST_MAGIC => Ok(words),
        _ => Err(CuResult::INVALID_VALUE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_descriptor_names_memory_and_others_do_not() {
        let words = [MAGIC, 7, 2 << 20, 1, 1, 0];
        let file = file_of(words).unwrap();
        assert_eq!(words_of(file.as_raw_fd()), Ok(words));
        assert!(file.write_at(&[0], 0).is_err(), "sealed");
        let other = file_of([1; 6]).unwrap();
        for wrong in [other.as_raw_fd(), -1, 99_999] {
            assert_eq!(words_of(wrong), Err(CuResult::INVALID_VALUE));
        }
    }
}
