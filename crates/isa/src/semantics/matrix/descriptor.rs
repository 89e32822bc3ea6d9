//! Matrix descriptors: where the matrices of a warp group lie in shared memory. PTX ISA,
//! "Asynchronous warpgroup level matrix shared memory layout".
//!
//! Memory is laid out in groups of eight rows of 16 bytes, or with a swizzle of 32, 64 or 128 bytes:
//! rows are the elements of one index along the contiguous dimension. Swizzling exchanges 16-byte
//! pieces by address bits: bits 4 up are exclusive-ored with bits 7 up.

/// A matrix in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor(pub u64);

impl Descriptor {
    /// First byte.
    #[must_use]
    pub const fn start(self) -> u32 {
        (self.0 as u32 & 0x3fff) << 4
    }

    /// Leading dimension byte offset.
    #[must_use]
    pub const fn leading(self) -> u32 {
        ((self.0 >> 16) as u32 & 0x3fff) << 4
    }

    /// Stride dimension byte offset.
    #[must_use]
    pub const fn stride(self) -> u32 {
        ((self.0 >> 32) as u32 & 0x3fff) << 4
    }

    /// Where a repeating pattern begins, in units of 128 bytes.
    #[must_use]
    pub const fn base_offset(self) -> u32 {
        (self.0 >> 49) as u32 & 7
    }

    /// Bytes of a swizzled row; 16 without swizzling.
    #[must_use]
    pub const fn row_bytes(self) -> u32 {
        match self.0 >> 62 {
            0 => 16,
            1 => 128,
            2 => 64,
            _ => 32,
        }
    }

    /// Address of byte `along` of the contiguous dimension at index `across` of the other one.
    /// `major_k`: the contiguous dimension is k.
    #[must_use]
    #[inline(always)]
    pub const fn address(self, along: u32, across: u32, major_k: bool) -> u32 {
        let row = self.row_bytes();
        let within = across % 8 * row + along % row;
        let (pieces, groups) = (along / row, across / 8);
        let offset = if row == 16 && !major_k {
            // Without a swizzle the two offsets change places.
            pieces * self.stride() + groups * self.leading()
        } else {
            pieces * self.leading() + groups * self.stride()
        };
        let address = self.start().wrapping_add(within).wrapping_add(offset);
        let swizzle = row / 16 - 1;
        let pattern = (address >> 7).wrapping_sub(self.base_offset());
        address ^ (pattern & swizzle) << 4
    }
}
