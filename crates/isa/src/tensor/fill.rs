//! What elements outside of a tensor read as, and what types do to elements that are loaded.

use lockstep_units::TensorElement;

/// The halves of what elements outside of the tensor read as, where NaN is asked for: an H200 takes the same
/// for all types, whatever it is as one of them.
const NAN: [u8; 2] = 0x7ff7u16.to_le_bytes();

/// Fills bytes of the tile that are outside of the tensor; they begin at a whole element.
pub fn outside(element: TensorElement, nan: bool, bytes: &mut [u8]) {
    let pattern = if nan && element.is_float() {
        NAN
    } else {
        [0; 2]
    };
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = pattern[index % 2];
    }
}

/// Rounds elements that are loaded as TF32 to 10 bits of fraction, to nearest even; NaNs become one NaN.
/// `FTZ` changes nothing here: it is for reductions.
pub fn convert(element: TensorElement, bytes: &mut [u8]) {
    if !matches!(element, TensorElement::Tf32 | TensorElement::Tf32Ftz) {
        return;
    }
    for word in bytes.chunks_exact_mut(4) {
        let value = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        word.copy_from_slice(&tf32(value).to_le_bytes());
    }
}

fn tf32(value: u32) -> u32 {
    let (sign, magnitude) = (value & 0x8000_0000, value & 0x7fff_ffff);
    if magnitude > 0x7f80_0000 {
        return 0x7fff_e000;
    }
    let odd = magnitude >> 13 & 1;
    sign | (magnitude + 0xfff + odd) & !0x1fff
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As an H200 loads them.
    #[test]
    fn tf32_is_rounded_to_nearest_even() {
        for (from, to) in [
            (0x3f80_1fff, 0x3f80_2000),
            (0x3f80_1000, 0x3f80_0000),
            (0x3f80_3000, 0x3f80_4000),
            (0x807f_ffff, 0x8080_0000),
            (0x7f7f_ffff, 0x7f80_0000),
            (0xffc1_2345, 0x7fff_e000),
            (0xff80_0000, 0xff80_0000),
            (0x8000_0001, 0x8000_0000),
        ] {
            assert_eq!(tf32(from), to, "{from:#x}");
        }
    }

    #[test]
    fn nothing_is_zero_or_nan() {
        let mut bytes = [1; 4];
        outside(TensorElement::F32, true, &mut bytes);
        assert_eq!(bytes, [0xf7, 0x7f, 0xf7, 0x7f]);
        outside(TensorElement::U32, true, &mut bytes);
        assert_eq!(bytes, [0; 4]);
    }
}
