//! What the elements of arrays are made of, in the runtime's words and in the driver's.

use lockstep_protocol::CuResult;

/// `cudaChannelFormatDesc`: bits of up to four channels, and their kind.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Bits of each channel; 0 where there is none.
    pub bits: [i32; 4],
    /// 0 signed, 1 unsigned, 2 floating point.
    pub kind: i32,
}

/// `CUarray_format` for bits and kind.
const DRIVER_FORMATS: &[(u32, i32, i32)] = &[
    (0x01, 8, 1),
    (0x02, 16, 1),
    (0x03, 32, 1),
    (0x08, 8, 0),
    (0x09, 16, 0),
    (0x0a, 32, 0),
    (0x10, 16, 2),
    (0x20, 32, 2),
];

impl Format {
    /// Bytes of an element. Channels are 1, 2 or 4, all alike, as arrays demand.
    pub fn bytes(self) -> Result<usize, CuResult> {
        let channels = self.bits.iter().take_while(|bits| **bits != 0).count();
        let alike = self.bits[..channels]
            .iter()
            .all(|bits| *bits == self.bits[0]);
        let known = DRIVER_FORMATS
            .iter()
            .any(|(_, bits, kind)| (*bits, *kind) == (self.bits[0], self.kind));
        let rest_empty = self.bits[channels..].iter().all(|bits| *bits == 0);
        if !matches!(channels, 1 | 2 | 4) || !alike || !known || !rest_empty {
            return Err(CuResult::INVALID_VALUE);
        }
        Ok(channels * self.bits[0] as usize / 8)
    }

    /// From `CUarray_format` and a number of channels.
    pub fn of_driver(format: u32, channels: u32) -> Result<Self, CuResult> {
        let row = DRIVER_FORMATS.iter().find(|row| row.0 == format);
        let (_, width, kind) = row.copied().ok_or(CuResult::INVALID_VALUE)?;
        let mut bits = [0; 4];
        for place in bits.iter_mut().take(channels as usize) {
            *place = width;
        }
        let made = Self { bits, kind };
        made.bytes()?;
        Ok(made)
    }

    /// `CUarray_format` and the number of channels.
    pub fn driver(self) -> (u32, u32) {
        let row = DRIVER_FORMATS
            .iter()
            .find(|(_, bits, kind)| (*bits, *kind) == (self.bits[0], self.kind));
        let channels = self.bits.iter().filter(|bits| **bits != 0).count();
        (row.map_or(0, |row| row.0), channels as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_the_same_in_both_words() {
        for (number, bits, kind) in DRIVER_FORMATS {
            for channels in [1, 2, 4] {
                let format = Format::of_driver(*number, channels).unwrap();
                assert_eq!(format.driver(), (*number, channels));
                assert_eq!((format.bits[0], format.kind), (*bits, *kind));
                assert_eq!(format.bytes(), Ok(channels as usize * *bits as usize / 8));
            }
            assert!(Format::of_driver(*number, 3).is_err());
        }
        let uneven = Format {
            bits: [8, 16, 0, 0],
            kind: 1,
        };
        assert!(uneven.bytes().is_err());
    }
}
