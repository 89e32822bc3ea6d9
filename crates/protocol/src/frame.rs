//! Frames: a little-endian `u32` length, then that many bytes of postcard.
//!
//! The other side is not trusted: a length beyond [`MAXIMUM_FRAME`] is refused before
//! anything is allocated, memory grows only as bytes arrive, and bytes that do not decode
//! (or decode with some left over) are errors.

use serde::{Serialize, de::DeserializeOwned};
use std::io::{self, Read, Write};
use thiserror::Error;

/// Longest frame, in bytes: a module image of 1 GiB, and room for what is around it.
pub const MAXIMUM_FRAME: usize = (1 << 30) + (1 << 16);

/// Why a frame could not be read or written.
#[derive(Debug, Error)]
pub enum FrameError {
    /// The other side is gone, between two frames.
    #[error("the other side closed the connection")]
    Closed,
    /// The other side is gone, within a frame.
    #[error("the connection ended after {received} of a frame's {expected} bytes")]
    Truncated {
        /// Bytes that came.
        received: usize,
        /// Bytes that were announced.
        expected: usize,
    },
    /// A frame beyond the limit.
    #[error("a frame of {length} bytes exceeds the limit of {limit} bytes")]
    TooLong {
        /// Its length.
        length: usize,
        /// The longest that is taken here.
        limit: usize,
    },
    /// Bytes that are no message.
    #[error("a frame of {length} bytes is not a {expected}: {reason}")]
    Malformed {
        /// The type that was expected.
        expected: &'static str,
        /// Length of the frame.
        length: usize,
        /// What the decoder says.
        reason: String,
    },
    /// The operating system says no.
    #[error("connection: {0}")]
    Io(#[from] io::Error),
}

/// Encodes a message as one frame, into a buffer that is reused from call to call.
pub fn encode<T: Serialize>(message: &T, buffer: &mut Vec<u8>) -> Result<(), FrameError> {
    buffer.clear();
    buffer.extend_from_slice(&[0; 4]);
    let bytes = postcard::to_extend(message, std::mem::take(buffer)).map_err(|error| {
        FrameError::Malformed {
            expected: std::any::type_name::<T>(),
            length: 0,
            reason: error.to_string(),
        }
    })?;
    *buffer = bytes;
    let length = buffer.len() - 4;
    if length > MAXIMUM_FRAME {
        let limit = MAXIMUM_FRAME;
        return Err(FrameError::TooLong { length, limit });
    }
    buffer[..4].copy_from_slice(&(length as u32).to_le_bytes());
    Ok(())
}

/// Decodes what is inside a frame.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, FrameError> {
    let malformed = |reason: String| FrameError::Malformed {
        expected: std::any::type_name::<T>(),
        length: bytes.len(),
        reason,
    };
    match postcard::take_from_bytes(bytes) {
        Ok((message, [])) => Ok(message),
        Ok((_, rest)) => Err(malformed(format!("{} bytes are left over", rest.len()))),
        Err(error) => Err(malformed(error.to_string())),
    }
}

/// Writes a message as one frame.
pub fn write<T: Serialize>(
    stream: &mut impl Write,
    message: &T,
    buffer: &mut Vec<u8>,
) -> Result<(), FrameError> {
    encode(message, buffer)?;
    stream.write_all(buffer)?;
    release_if_large(buffer);
    Ok(())
}

/// Reads one message.
pub fn read<T: DeserializeOwned>(
    stream: &mut impl Read,
    buffer: &mut Vec<u8>,
) -> Result<T, FrameError> {
    read_within(stream, buffer, MAXIMUM_FRAME)
}

/// Reads one message of at most so many bytes, from somebody who is not known yet.
pub fn read_within<T: DeserializeOwned>(
    stream: &mut impl Read,
    buffer: &mut Vec<u8>,
    limit: usize,
) -> Result<T, FrameError> {
    let mut header = [0; 4];
    match read_up_to(stream, &mut header)? {
        4 => {}
        0 => return Err(FrameError::Closed),
        received => {
            return Err(FrameError::Truncated {
                received,
                expected: 4,
            });
        }
    }
    let length = u32::from_le_bytes(header) as usize;
    if length > limit {
        return Err(FrameError::TooLong { length, limit });
    }
    buffer.clear();
    // Memory follows what really arrives, not what was announced.
    let mut limited = stream.take(length as u64);
    buffer.reserve(length.min(1 << 20));
    limited.read_to_end(buffer)?;
    if buffer.len() < length {
        return Err(FrameError::Truncated {
            received: buffer.len(),
            expected: length,
        });
    }
    let message = decode(buffer)?;
    release_if_large(buffer);
    Ok(message)
}

/// Fills as much of `bytes` as comes before the end.
fn read_up_to(stream: &mut impl Read, bytes: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < bytes.len() {
        match stream.read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// A buffer that once held a module image is not worth keeping.
fn release_if_large(buffer: &mut Vec<u8>) {
    if buffer.capacity() > 1 << 20 {
        *buffer = Vec::new();
    }
}
