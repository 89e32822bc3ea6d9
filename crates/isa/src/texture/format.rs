//! Texels from and to bytes.

use lockstep_units::{ChannelKind, TexelFormat};

use super::srgb::LINEAR;
use crate::semantics::float16::{float_to_half, half_to_float};

/// One component as it lies in memory.
fn raw(format: TexelFormat, bytes: &[u8], channel: usize) -> u32 {
    let size = usize::from(format.bits / 8);
    let mut word = [0; 4];
    if let Some(found) = bytes.get(channel * size..(channel + 1) * size) {
        word[..size].copy_from_slice(found);
    }
    u32::from_le_bytes(word)
}

/// A component sign-extended from the bits of its channel.
fn signed(format: TexelFormat, word: u32) -> i32 {
    let unused = 32 - u32::from(format.bits);
    (word << unused) as i32 >> unused
}

/// A component of a texel as a kernel receives it where colours are sRGB; the fourth is no colour, nor is the second of
/// two.
#[must_use]
pub fn colour(format: TexelFormat, bytes: &[u8], channel: usize) -> u32 {
    match channel {
        3 => component(format, true, bytes, channel),
        1 if format.channels == 2 => component(format, true, bytes, channel),
        _ if channel >= usize::from(format.channels) => 0,
        _ => LINEAR[raw(format, bytes, channel) as usize & 0xff],
    }
}

/// A component of a texel as a kernel receives it: an integer, or the bits of a float.
#[must_use]
pub fn component(format: TexelFormat, normalized: bool, bytes: &[u8], channel: usize) -> u32 {
    if channel >= usize::from(format.channels) {
        return 0;
    }
    let word = raw(format, bytes, channel);
    match format.kind {
        ChannelKind::Float if format.bits == 16 => half_to_float(word as u16),
        ChannelKind::Float => word,
        ChannelKind::Unsigned if normalized => {
            let largest = u32::MAX >> (32 - u32::from(format.bits));
            (f64::from(word) / f64::from(largest)) as f32
        }
        .to_bits(),
        ChannelKind::Signed if normalized => {
            let largest = u32::MAX >> (33 - u32::from(format.bits));
            let value = f64::from(signed(format, word)) / f64::from(largest);
            (value.max(-1.0) as f32).to_bits()
        }
        ChannelKind::Unsigned => word,
        ChannelKind::Signed => signed(format, word) as u32,
    }
}

/// A component as sums of integers take it.
#[must_use]
pub fn integer(format: TexelFormat, bytes: &[u8], channel: usize) -> u32 {
    if channel >= usize::from(format.channels) {
        return 0;
    }
    let word = raw(format, bytes, channel);
    match format.kind {
        ChannelKind::Signed => {
            let lowest = -(i32::MAX >> (32 - u32::from(format.bits)));
            signed(format, word).max(lowest) as u32
        }
        _ => word,
    }
}

/// The border colour as a texel of the format has it.
#[must_use]
pub fn border(format: TexelFormat, normalized: bool, colour: [u32; 4]) -> [u8; 16] {
    let bits = u32::from(format.bits);
    let size = usize::from(format.bits / 8);
    let mut texel = [0; 16];
    for (channel, word) in colour
        .into_iter()
        .enumerate()
        .take(usize::from(format.channels))
    {
        let value = f64::from(f32::from_bits(word));
        let word = match format.kind {
            // The lower bits of a half are cut.
            ChannelKind::Float if bits == 16 => u32::from(cut_to_half(word)),
            ChannelKind::Unsigned if normalized => {
                let largest = f64::from(u32::MAX >> (32 - bits));
                (value * largest).round_ties_even().clamp(0.0, largest) as u32
            }
            ChannelKind::Signed if normalized => {
                let largest = f64::from(u32::MAX >> (33 - bits));
                (value * largest).round_ties_even().clamp(-largest, largest) as i32 as u32
            }
            _ => word,
        };
        let place = channel * size..(channel + 1) * size;
        texel[place].copy_from_slice(&word.to_le_bytes()[..size]);
    }
    texel
}

/// Single to half precision, towards zero: what is too large becomes the largest.
fn cut_to_half(word: u32) -> u16 {
    if f32::from_bits(word).is_nan() {
        return (word >> 16) as u16 & 0x8000 | 0x7fff;
    }
    let nearest = float_to_half(word);
    let (back, wanted) = (
        f32::from_bits(half_to_float(nearest)).abs(),
        f32::from_bits(word).abs(),
    );
    if back > wanted { nearest - 1 } else { nearest }
}

/// Values as they are stored in a format: what is too large for a channel becomes the largest that it holds.
pub fn encode(format: TexelFormat, values: [u32; 4], bytes: &mut [u8; 16]) -> usize {
    let size = usize::from(format.bits / 8);
    for channel in 0..usize::from(format.channels) {
        let value = values[channel];
        let word = match (format.kind, format.bits) {
            (ChannelKind::Float, 16) => u32::from(cut_to_half(value)),
            (ChannelKind::Unsigned, bits @ (8 | 16)) => value.min((1 << bits) - 1),
            (ChannelKind::Signed, bits @ (8 | 16)) => {
                let largest = (1i32 << (bits - 1)) - 1;
                (value as i32).clamp(-largest - 1, largest) as u32
            }
            _ => value,
        };
        bytes[channel * size..(channel + 1) * size].copy_from_slice(&word.to_le_bytes()[..size]);
    }
    size * usize::from(format.channels)
}
