//! Code as programs hand it over: a pointer, whose first bytes say what it points to.
//!
//! The pointer comes without a length, so each format tells how long it is.

use lockstep_protocol::{CuResult, ImageKind, ImageRole, ModuleImage};
use std::ffi::CStr;

/// First word of the structure that registration passes.
const WRAPPER_MAGIC: u32 = 0x466243B1;
/// First word of a fat binary.
const FAT_BINARY_MAGIC: u32 = 0xBA55ED50;
/// First bytes of an ELF file.
const ELF_MAGIC: [u8; 4] = *b"\x7fELF";
/// First bytes of several images that were linked at run time: ours.
const LINKED_MAGIC: [u8; 8] = *b"\x01lkstlnk";
/// No image is longer.
const MAXIMUM: u64 = 1 << 30;
/// More images from before linking than any program has.
const MAXIMUM_IMAGES: usize = 65_536;

/// The images behind a pointer of the program.
///
/// # Safety
///
/// The pointer must point to a complete image, wrapper or text, as CUDA demands.
pub unsafe fn from_pointer(pointer: *const u8) -> Result<Vec<ModuleImage>, CuResult> {
    if pointer.is_null() {
        return Err(CuResult::INVALID_VALUE);
    }
    // SAFETY: the shortest image, an empty text, has one byte, and this looks no further
    // than the first byte that differs from a magic number.
    if unsafe { begins_with(pointer, &WRAPPER_MAGIC.to_le_bytes()) } {
        // SAFETY: by the caller's promise a wrapper follows its magic number.
        return unsafe { from_wrapper(pointer) };
    }
    // SAFETY: as above.
    if unsafe { begins_with(pointer, &LINKED_MAGIC) } {
        // SAFETY: what begins so was made by `linked`, which wrote its length here.
        let length = unsafe { read::<u64>(pointer, 8) };
        if length > MAXIMUM {
            return Err(CuResult::INVALID_IMAGE);
        }
        // SAFETY: the image itself says that it has this many bytes.
        let bytes = unsafe { std::slice::from_raw_parts(pointer, length as usize) };
        return unlinked(bytes);
    }
    // SAFETY: by the caller's promise it is one complete image.
    Ok(vec![unsafe { single(pointer, ImageRole::Main) }?])
}

/// Several images as one, for whoever loads what was linked at run time.
pub fn linked(images: &[ModuleImage]) -> Vec<u8> {
    if let [single] = images {
        let mut bytes = single.bytes.clone();
        if single.kind == ImageKind::Ptx {
            bytes.push(0);
        }
        return bytes;
    }
    let mut bytes = LINKED_MAGIC.to_vec();
    bytes.extend_from_slice(&[0; 8]);
    bytes.extend_from_slice(&(images.len() as u64).to_le_bytes());
    for image in images {
        bytes.extend_from_slice(&(image.bytes.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&image.bytes);
    }
    let length = bytes.len() as u64;
    bytes[8..16].copy_from_slice(&length.to_le_bytes());
    bytes
}

/// The images of what [`linked`] made.
fn unlinked(bytes: &[u8]) -> Result<Vec<ModuleImage>, CuResult> {
    let word = |at: usize| -> Result<usize, CuResult> {
        let part = bytes.get(at..at + 8).and_then(|part| part.try_into().ok());
        let number = u64::from_le_bytes(part.ok_or(CuResult::INVALID_IMAGE)?);
        usize::try_from(number).map_err(|_| CuResult::INVALID_IMAGE)
    };
    let count = word(16)?;
    if count > MAXIMUM_IMAGES {
        return Err(CuResult::INVALID_IMAGE);
    }
    let mut images = Vec::new();
    let mut at = 24;
    for _ in 0..count {
        let length = word(at)?;
        let end = length.checked_add(at + 8).ok_or(CuResult::INVALID_IMAGE)?;
        let part = bytes.get(at + 8..end).ok_or(CuResult::INVALID_IMAGE)?;
        for mut image in from_bytes(part.to_vec())? {
            image.role = ImageRole::BeforeLinking;
            images.push(image);
        }
        at = end;
    }
    Ok(images)
}

/// The images of bytes whose length is known.
pub fn from_bytes(bytes: Vec<u8>) -> Result<Vec<ModuleImage>, CuResult> {
    if bytes.starts_with(&LINKED_MAGIC) {
        return unlinked(&bytes);
    }
    let kind = if bytes.starts_with(&ELF_MAGIC) {
        ImageKind::Cubin
    } else if bytes.starts_with(&FAT_BINARY_MAGIC.to_le_bytes()) {
        ImageKind::FatBinary
    } else {
        ImageKind::Ptx
    };
    let bytes = match kind {
        ImageKind::Ptx => bytes
            .split(|byte| *byte == 0)
            .next()
            .unwrap_or(&[])
            .to_vec(),
        _ => bytes,
    };
    let wrong = kind == ImageKind::Ptx && !is_ptx(&bytes);
    if wrong || bytes.is_empty() || bytes.len() as u64 > MAXIMUM {
        return Err(CuResult::INVALID_IMAGE);
    }
    Ok(vec![ModuleImage {
        kind,
        role: ImageRole::Main,
        bytes,
    }])
}

/// The wrapper: magic, version, data, and for version 2 a list that ends with null of the
/// fat binaries from before linking.
unsafe fn from_wrapper(pointer: *const u8) -> Result<Vec<ModuleImage>, CuResult> {
    // SAFETY: by the caller's promise 24 bytes of a wrapper are there.
    let (version, data, list) = unsafe {
        (
            read::<u32>(pointer, 4),
            read::<*const u8>(pointer, 8),
            read::<*const *const u8>(pointer, 16),
        )
    };
    if data.is_null() {
        return Err(CuResult::INVALID_IMAGE);
    }
    // SAFETY: by the caller's promise the wrapper's data is a complete image.
    let mut images = vec![unsafe { single(data, ImageRole::Main) }?];
    if version == 2 && !list.is_null() {
        for index in 0..MAXIMUM_IMAGES {
            // SAFETY: the list ends with a null pointer, which ends this loop.
            let image = unsafe { list.add(index).read_unaligned() };
            if image.is_null() {
                break;
            }
            // SAFETY: as for the data.
            images.push(unsafe { single(image, ImageRole::BeforeLinking) }?);
        }
    }
    Ok(images)
}

unsafe fn single(pointer: *const u8, role: ImageRole) -> Result<ModuleImage, CuResult> {
    // SAFETY: as in `from_pointer`.
    let fat_binary = unsafe { begins_with(pointer, &FAT_BINARY_MAGIC.to_le_bytes()) };
    // SAFETY: likewise.
    let elf = unsafe { begins_with(pointer, &ELF_MAGIC) };
    let (kind, length) = if fat_binary {
        // SAFETY: by the caller's promise a 16-byte header follows its magic number.
        let (header, size) = unsafe { (read::<u16>(pointer, 6), read::<u64>(pointer, 8)) };
        let length = size.checked_add(u64::from(header));
        (ImageKind::FatBinary, length.ok_or(CuResult::INVALID_IMAGE)?)
    } else if elf {
        // SAFETY: by the caller's promise a complete ELF file follows its magic number.
        (ImageKind::Cubin, unsafe { elf_length(pointer) }?)
    } else {
        // SAFETY: what is no binary is text, which ends with a zero.
        let text = unsafe { CStr::from_ptr(pointer.cast()) };
        if !is_ptx(text.to_bytes()) {
            return Err(CuResult::INVALID_IMAGE);
        }
        (ImageKind::Ptx, text.count_bytes() as u64)
    };
    if length == 0 || length > MAXIMUM {
        return Err(CuResult::INVALID_IMAGE);
    }
    // SAFETY: the image itself says that it has this many bytes.
    let bytes = unsafe { std::slice::from_raw_parts(pointer, length as usize) };
    Ok(ModuleImage {
        kind,
        role,
        bytes: bytes.to_vec(),
    })
}

/// Where the last section, segment or header table of an ELF file ends.
unsafe fn elf_length(pointer: *const u8) -> Result<u64, CuResult> {
    // SAFETY: by the caller's promise a 64-byte ELF header is there.
    let (class, programs, sections, program_size, program_count, section_size, section_count) = unsafe {
        (
            read::<u8>(pointer, 4),
            read::<u64>(pointer, 0x20),
            read::<u64>(pointer, 0x28),
            u64::from(read::<u16>(pointer, 0x36)),
            u64::from(read::<u16>(pointer, 0x38)),
            u64::from(read::<u16>(pointer, 0x3a)),
            u64::from(read::<u16>(pointer, 0x3c)),
        )
    };
    let tables = [
        (programs, program_size * program_count),
        (sections, section_size * section_count),
    ];
    if class != 2 || (section_count > 0 && section_size < 64) || sections > MAXIMUM {
        return Err(CuResult::INVALID_IMAGE);
    }
    let mut end = 64;
    for (start, size) in tables {
        end = end.max(start.saturating_add(size));
    }
    const NO_BITS: u32 = 8;
    for index in 0..section_count {
        let header = (sections + index * section_size) as usize;
        // SAFETY: the section table is part of the image.
        let (kind, offset, size) = unsafe {
            (
                read::<u32>(pointer, header + 4),
                read::<u64>(pointer, header + 0x18),
                read::<u64>(pointer, header + 0x20),
            )
        };
        if kind != NO_BITS {
            end = end.max(offset.saturating_add(size));
        }
    }
    Ok(end)
}

/// Whether text is PTX at all: every module says its version.
fn is_ptx(text: &[u8]) -> bool {
    const VERSION: &[u8] = b".version";
    text.windows(VERSION.len()).any(|part| part == VERSION)
}

unsafe fn read<T: Copy>(pointer: *const u8, offset: usize) -> T {
    // SAFETY: the caller knows that the bytes are there.
    unsafe { pointer.add(offset).cast::<T>().read_unaligned() }
}

unsafe fn begins_with(pointer: *const u8, magic: &[u8]) -> bool {
    // SAFETY: a byte is read only if all before it matched, so never past a text's end.
    magic
        .iter()
        .enumerate()
        .all(|(index, byte)| unsafe { *pointer.add(index) == *byte })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fat_binary(payload: &[u8]) -> Vec<u8> {
        let mut bytes = FAT_BINARY_MAGIC.to_le_bytes().to_vec();
        bytes.extend_from_slice(&[1, 0, 16, 0]);
        bytes.extend_from_slice(&(payload.len() as u64).to_le_bytes());
        bytes.extend_from_slice(payload);
        bytes
    }

    #[test]
    fn text_ends_at_its_zero() {
        // SAFETY: the text ends with a zero.
        let images = unsafe { from_pointer(c".version 8.0".as_ptr().cast()) }.unwrap();
        assert_eq!(images[0].kind, ImageKind::Ptx);
        assert_eq!(images[0].bytes, b".version 8.0");
        assert_eq!(
            from_bytes(b".version 9\0\0".to_vec()).unwrap()[0].bytes,
            b".version 9"
        );
        assert!(from_bytes(b"abc".to_vec()).is_err());
        assert!(from_bytes(b"\0".to_vec()).is_err());
    }

    #[test]
    fn a_wrapper_of_the_second_version_brings_the_images_from_before_linking() {
        let main = fat_binary(b"linked!!");
        let units = [fat_binary(b"unit 1.."), fat_binary(b"unit 2..")];
        let list = [units[0].as_ptr(), units[1].as_ptr(), std::ptr::null()];
        let mut wrapper = WRAPPER_MAGIC.to_le_bytes().to_vec();
        wrapper.extend_from_slice(&2u32.to_le_bytes());
        wrapper.extend_from_slice(&(main.as_ptr() as u64).to_le_bytes());
        wrapper.extend_from_slice(&(list.as_ptr() as u64).to_le_bytes());
        // SAFETY: wrapper, data and list are complete and alive.
        let images = unsafe { from_pointer(wrapper.as_ptr()) }.unwrap();
        assert_eq!(images.len(), 3);
        assert_eq!(images[0].role, ImageRole::Main);
        assert_eq!(images[0].bytes, main);
        assert_eq!(images[2].role, ImageRole::BeforeLinking);
        assert_eq!(images[2].bytes, units[1]);
    }

    #[test]
    fn the_length_of_an_elf_file_is_where_its_last_part_ends() {
        let file = std::fs::read("/proc/self/exe").unwrap();
        // SAFETY: a test binary of Rust is an ELF file, complete in memory here.
        let images = unsafe { from_pointer(file.as_ptr()) }.unwrap();
        assert_eq!(images[0].bytes.len(), file.len());
    }

    #[test]
    fn what_was_linked_is_taken_apart_again() {
        let text = |text: &str| from_bytes(text.as_bytes().to_vec()).unwrap().remove(0);
        assert_eq!(linked(&[text(".version 8.0")]), b".version 8.0\0");
        let both = linked(&[text(".version 1"), text(".version 2")]);
        // SAFETY: the image is complete.
        let images = unsafe { from_pointer(both.as_ptr()) }.unwrap();
        assert_eq!(images.len(), 2);
        assert_eq!(images[1].bytes, b".version 2");
        assert_eq!(images[1].role, ImageRole::BeforeLinking);
        for length in 8..both.len() {
            assert!(from_bytes(both[..length].to_vec()).is_err());
        }
    }

    #[test]
    fn an_impossible_length_is_an_invalid_image() {
        let mut bytes = fat_binary(b"");
        bytes[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
        // SAFETY: only the header is read.
        let result = unsafe { from_pointer(bytes.as_ptr()) };
        assert_eq!(result, Err(CuResult::INVALID_IMAGE));
    }
}
