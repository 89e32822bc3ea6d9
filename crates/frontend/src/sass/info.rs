//! `.nv.info`: what the compiler tells the driver about a module and its kernels.

/// One attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// Number, see the constants of this module.
    pub id: u8,
    /// Its bytes: two for inline values.
    pub value: &'a [u8],
}

/// (symbol, bytes): static part of a function's stack.
pub const FRAME_SIZE: u8 = 0x11;
/// (symbol, bytes): least stack of a kernel, callees included.
pub const MIN_STACK_SIZE: u8 = 0x12;
/// (symbol, bytes): as above where it can be bounded.
pub const MAX_STACK_SIZE: u8 = 0x23;
/// (symbol, registers).
pub const REGISTER_COUNT: u8 = 0x2f;
/// Where the parameters are in constant bank 0: symbol, base, size.
pub const PARAMETER_BANK: u8 = 0x0a;
/// Bytes of parameters.
pub const PARAMETER_BYTES: u8 = 0x19;
/// One parameter: index, ordinal, offset, size in the top 14 bits.
pub const PARAMETER: u8 = 0x17;
/// One parameter of a kernel with more than 4 KiB of them.
pub const PARAMETER_WIDE: u8 = 0x45;
/// Threads a block may have, by axis.
pub const MAX_THREADS: u8 = 0x05;
/// Threads a block must have, by axis.
pub const REQUIRED_THREADS: u8 = 0x10;
/// Named barriers.
pub const BARRIERS: u8 = 0x4c;
/// Blocks of a cluster, by axis.
pub const CLUSTER: u8 = 0x3d;

/// Attributes in their order; ends at the first that is not whole.
pub fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = Attribute<'_>> {
    std::iter::from_fn(move || {
        let [format, id, low, high] = *bytes.first_chunk::<4>()?;
        let (value, length) = if format == 4 {
            let length = usize::from(u16::from_le_bytes([low, high]));
            (bytes.get(4..4 + length)?, 4 + length)
        } else {
            (bytes.get(2..4)?, 4)
        };
        bytes = &bytes[length..];
        Some(Attribute { id, value })
    })
}

impl Attribute<'_> {
    /// The 32-bit word at a position, zero if it is not there.
    #[must_use]
    pub fn word(&self, index: usize) -> u32 {
        let bytes = self.value.get(4 * index..4 * index + 4);
        bytes.map_or(0, |b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
    }

    /// The 16-bit half-word at a position, zero if it is not there.
    #[must_use]
    pub fn half(&self, index: usize) -> u16 {
        let bytes = self.value.get(2 * index..2 * index + 2);
        bytes.map_or(0, |b| u16::from_le_bytes([b[0], b[1]]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_follow_each_other() {
        let bytes = [
            4, 0x17, 4, 0, 1, 2, 3, 4, 3, 0x19, 0x10, 0, 4, 0x05, 200, 0, 1,
        ];
        let found: Vec<_> = attributes(&bytes)
            .map(|a| (a.id, a.value.len(), a.word(0), a.half(0)))
            .collect();
        assert_eq!(found, [(0x17, 4, 0x0403_0201, 0x0201), (0x19, 2, 0, 0x10)]);
    }
}
