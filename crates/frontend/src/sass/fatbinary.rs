//! nvcc's container: several images of one program, for several GPUs, perhaps compressed.

use std::borrow::Cow;

use super::error::Error;

/// Magic of the wrapper structure in a host program's `.nvFatBinSegment`.
pub const WRAPPER_MAGIC: u32 = 0x4662_43b1;
/// Magic of the container itself.
pub const MAGIC: u32 = 0xba55_ed50;
/// The images of one container are together never larger than this once unpacked.
const LARGEST_IMAGES: usize = 1 << 30;
/// Nor than this many times the container, unless they are small anyway: text shrinks to a tenth, and the
/// machine code of PyTorch's templates to a hundredth.
const LARGEST_TOTAL_GAIN: usize = 192;
/// What is small.
const SMALL_IMAGES: usize = 64 << 20;

const FLAG_LZ4: u64 = 0x2000;
const FLAG_ZSTD: u64 = 0x8000;
const HEADER_BYTES: usize = 16;
const ENTRY_BYTES: usize = 64;
/// Machine code shrinks to a tenth; zeros shrink more, but not beyond this.
const LARGEST_GAIN: usize = 4096;

/// Kind of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// PTX text.
    Ptx,
    /// Machine code.
    Cubin,
    /// Something else, by its number.
    Other(u16),
}

/// One image, unpacked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// PTX text or machine code.
    pub kind: Kind,
    /// Compute capability × 10 that it was compiled for.
    pub architecture: u32,
    /// The bytes; PTX without its closing zeros.
    pub bytes: Vec<u8>,
}

/// One image as it lies in its container.
#[derive(Debug, Clone, Copy)]
pub struct Packed<'a> {
    /// PTX text or machine code.
    pub kind: Kind,
    /// Compute capability × 10 that it was compiled for.
    pub architecture: u32,
    /// The bytes in the container, or of the image itself.
    pub payload: &'a [u8],
    compression: Option<Compression>,
}

/// How an image was packed.
#[derive(Debug, Clone, Copy)]
struct Compression {
    /// By LZ4, else by Zstandard.
    lz4: bool,
    /// Bytes of the image.
    unpacked: usize,
}

impl<'a> Packed<'a> {
    /// An image that is not packed.
    #[must_use]
    pub fn plain(kind: Kind, architecture: u32, payload: &'a [u8]) -> Self {
        Self {
            kind,
            architecture,
            payload,
            compression: None,
        }
    }

    /// Its bytes; PTX without its closing zeros.
    ///
    /// # Errors
    /// If it does not unpack.
    pub fn unpack(&self) -> Result<Cow<'a, [u8]>, Error> {
        let broken = |error: String| Error::malformed("compressed image", error);
        let mut bytes = match self.compression {
            None => Cow::Borrowed(self.payload),
            Some(Compression { lz4, unpacked }) => Cow::Owned(match lz4 {
                true => lz4_flex::block::decompress(self.payload, unpacked)
                    .map_err(|error| broken(error.to_string()))?,
                false => zstd::bulk::decompress(self.payload, unpacked)
                    .map_err(|error| broken(error.to_string()))?,
            }),
        };
        if self.kind == Kind::Ptx {
            let end = bytes.iter().rposition(|byte| *byte != 0);
            let length = end.map_or(0, |last| last + 1);
            match &mut bytes {
                Cow::Borrowed(text) => *text = &text[..length],
                Cow::Owned(text) => text.truncate(length),
            }
        }
        Ok(bytes)
    }
}

fn field<const N: usize>(bytes: &[u8], offset: usize) -> Option<[u8; N]> {
    bytes.get(offset..offset.checked_add(N)?)?.try_into().ok()
}

fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    field(bytes, offset).map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    field(bytes, offset).map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    field(bytes, offset).map(u64::from_le_bytes)
}

/// Whether the bytes start like a container.
#[must_use]
pub fn is_fatbinary(bytes: &[u8]) -> bool {
    u32_at(bytes, 0) == Some(MAGIC)
}

/// Bytes of the container that starts here, header included, if its header is whole.
#[must_use]
pub fn length(bytes: &[u8]) -> Option<usize> {
    let header = usize::from(u16_at(bytes, 6)?);
    let body = usize::try_from(u64_at(bytes, 8)?).ok()?;
    header.checked_add(body)
}

/// All images of a container, unpacked. Several containers may follow each other.
///
/// # Errors
/// If a header is broken or an image does not unpack.
pub fn read(bytes: &[u8]) -> Result<Vec<Entry>, Error> {
    let unpacked = |packed: &Packed<'_>| {
        Ok(Entry {
            kind: packed.kind,
            architecture: packed.architecture,
            bytes: packed.unpack()?.into_owned(),
        })
    };
    list(bytes)?.iter().map(unpacked).collect()
}

/// All images of a container, as they lie there: whoever needs one unpacks it.
///
/// # Errors
/// If a header is broken, or an image claims to be larger than what it came from can hold.
pub fn list(bytes: &[u8]) -> Result<Vec<Packed<'_>>, Error> {
    let mut entries = Vec::new();
    let mut left = bytes
        .len()
        .saturating_mul(LARGEST_TOTAL_GAIN)
        .clamp(SMALL_IMAGES, LARGEST_IMAGES.max(bytes.len()));
    let mut rest = bytes;
    while is_fatbinary(rest) {
        let cut = || {
            Error::malformed(
                "fat binary header",
                format!("{} bytes are left", rest.len()),
            )
        };
        let header = usize::from(u16_at(rest, 6).ok_or_else(cut)?);
        if header < HEADER_BYTES {
            // A container without a header would never end.
            return Err(Error::malformed(
                "fat binary header",
                format!("it claims to have {header} bytes, not {HEADER_BYTES}"),
            ));
        }
        let length = length(rest).ok_or_else(cut)?;
        let body = rest.get(header..length).ok_or_else(cut)?;
        read_entries(body, &mut left, &mut entries)?;
        rest = &rest[length..];
        // Containers are padded to eight bytes.
        let zeros = rest.iter().take(8).take_while(|byte| **byte == 0).count();
        rest = &rest[zeros..];
    }
    Ok(entries)
}

/// The images of one container; `left` bytes may still be unpacked.
fn read_entries<'a>(
    mut body: &'a [u8],
    left: &mut usize,
    entries: &mut Vec<Packed<'a>>,
) -> Result<(), Error> {
    while body.len() >= ENTRY_BYTES {
        let cut = |what: &str| Error::malformed("fat binary entry", what.to_owned());
        let kind = u16_at(body, 0).ok_or_else(|| cut("no kind"))?;
        let header = u32_at(body, 4).ok_or_else(|| cut("no header size"))? as usize;
        let padded = u64_at(body, 8).ok_or_else(|| cut("no size"))?;
        let padded = usize::try_from(padded).map_err(|_| cut("a size beyond all memory"))?;
        let end = header.checked_add(padded).filter(|end| *end <= body.len());
        let end = end.ok_or_else(|| cut("a size beyond its container"))?;
        if header < ENTRY_BYTES {
            return Err(cut("a header smaller than its fields"));
        }
        let compressed = u32_at(body, 16).unwrap_or(0) as usize;
        let architecture = u32_at(body, 28).unwrap_or(0);
        let flags = u64_at(body, 40).unwrap_or(0);
        let unpacked = u64_at(body, 56).unwrap_or(0);
        let payload = &body[header..end];
        let (payload, compression) = compression(payload, compressed, unpacked, flags, *left)?;
        *left = left.saturating_sub(compression.map_or(payload.len(), |one| one.unpacked));
        let kind = match kind {
            1 => Kind::Ptx,
            2 => Kind::Cubin,
            other => Kind::Other(other),
        };
        entries.push(Packed {
            kind,
            architecture,
            payload,
            compression,
        });
        body = &body[end..];
    }
    Ok(())
}

/// How an image is packed, and the bytes of it that count, where it may have `most` bytes.
fn compression(
    payload: &[u8],
    compressed: usize,
    unpacked: u64,
    flags: u64,
    most: usize,
) -> Result<(&[u8], Option<Compression>), Error> {
    if flags & (FLAG_LZ4 | FLAG_ZSTD) == 0 {
        return Ok((payload, None));
    }
    let unpacked = usize::try_from(unpacked).unwrap_or(usize::MAX);
    let packed = payload.get(..compressed).unwrap_or(payload);
    // A larger claim is a lie that would cost memory.
    if unpacked > most || unpacked > packed.len().saturating_mul(LARGEST_GAIN) {
        return Err(Error::malformed(
            "compressed image",
            format!(
                "{unpacked} bytes from {}, where {most} may come",
                packed.len()
            ),
        ));
    }
    let lz4 = flags & FLAG_LZ4 != 0;
    Ok((packed, Some(Compression { lz4, unpacked })))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container(flags: u64, payload: &[u8], unpacked: u64) -> Vec<u8> {
        let mut entry = vec![0; ENTRY_BYTES];
        entry[0] = 1;
        entry[4] = ENTRY_BYTES as u8;
        entry[8..16].copy_from_slice(&(payload.len() as u64).to_le_bytes());
        entry[16..20].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        entry[28] = 90;
        entry[40..48].copy_from_slice(&flags.to_le_bytes());
        entry[56..64].copy_from_slice(&unpacked.to_le_bytes());
        entry.extend_from_slice(payload);
        let mut bytes = MAGIC.to_le_bytes().to_vec();
        bytes.extend_from_slice(&[1, 0, 16, 0]);
        bytes.extend_from_slice(&(entry.len() as u64).to_le_bytes());
        bytes.extend(entry);
        bytes
    }

    #[test]
    fn plain_and_compressed_images_unpack_to_the_same_text() {
        let text = b".version 8.0\n.target sm_90\n".repeat(4);
        let packed = zstd::bulk::compress(&text, 3).expect("zstd packs");
        let lz4 = lz4_flex::block::compress(&text);
        let size = text.len() as u64;
        for bytes in [
            container(0, &text, 0),
            container(FLAG_ZSTD, &packed, size),
            container(FLAG_LZ4, &lz4, size),
        ] {
            let entries = read(&bytes).expect("a good container");
            assert_eq!(entries.len(), 1);
            assert_eq!((entries[0].kind, entries[0].architecture), (Kind::Ptx, 90));
            assert_eq!(entries[0].bytes, text);
        }
    }

    #[test]
    fn a_container_without_a_header_is_refused() {
        let mut bytes = container(0, b"abcdefgh", 0);
        bytes[6] = 0;
        let error = read(&bytes).expect_err("no header");
        assert!(
            error.to_string().contains("claims to have 0 bytes"),
            "{error}"
        );
    }

    #[test]
    fn a_container_cut_anywhere_is_refused_or_empty() {
        let whole = container(0, b"abcdefgh", 0);
        for end in 0..whole.len() {
            assert!(
                read(&whole[..end]).map_or(true, |entries| entries.is_empty()),
                "cut at {end}"
            );
        }
    }

    /// Each image is small for what it came from; together they would be gigabytes.
    #[test]
    fn many_images_share_one_limit() {
        let zeros = vec![0; 16 << 20];
        let packed = lz4_flex::block::compress(&zeros);
        let one = container(FLAG_LZ4, &packed, zeros.len() as u64);
        assert_eq!(read(&one.repeat(4)).expect("64 MiB are small").len(), 4);
        let error = read(&one.repeat(5)).expect_err("80 MiB from some kilobytes");
        assert!(error.to_string().contains("compressed image"), "{error}");
    }

    /// Instances of one template differ little, and PyTorch has containers with thousands of them.
    #[test]
    fn large_images_that_repeat_themselves_unpack() {
        let mut state = 1u32;
        let block: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        })
        .take(128 << 10)
        .collect();
        let code = block.repeat(128);
        let packed = zstd::bulk::compress(&code, 3).expect("zstd packs");
        assert!(code.len() > 100 * packed.len(), "{} bytes", packed.len());
        let one = container(FLAG_ZSTD, &packed, code.len() as u64);
        assert_eq!(read(&one.repeat(6)).expect("96 MiB of code").len(), 6);
    }

    #[test]
    fn a_claim_of_endless_data_costs_no_memory() {
        assert!(read(&container(FLAG_ZSTD, &[0; 16], u64::MAX)).is_err());
    }
}
