//! Elements as the probe on the H200 made them: by seed, test, operand and place.

/// Kinds of elements, in the probe's order.
pub const TYPES: &[(&str, usize)] = &[
    ("f16", 16),
    ("bf16", 16),
    ("tf32", 32),
    ("e4m3", 8),
    ("e5m2", 8),
    ("f64", 64),
    ("s8", 8),
    ("u8", 8),
    ("s4", 4),
    ("u4", 4),
    ("b1", 1),
    ("f32", 32),
    ("s32", 32),
];

pub fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn draw(seed: u32, test: u32, operand: u32, index: u32) -> u64 {
    let first = mix(u64::from(seed) << 32 | u64::from(test));
    mix(first ^ (u64::from(operand) << 32 | u64::from(index)))
}

/// What decides how elements are spread.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    pub seed: u32,
    pub test: u32,
    pub class: u32,
    /// Elements of A, whose range that of the others follows.
    pub a: &'a str,
}

fn bits_of(kind: &str) -> usize {
    TYPES.iter().find(|(name, _)| *name == kind).unwrap().1
}

fn low(bits: usize) -> u64 {
    if bits == 64 {
        u64::MAX
    } else {
        (1 << bits) - 1
    }
}

impl Source<'_> {
    /// Metadata of a sparse A, for one lane.
    pub fn metadata(&self, lane: u32) -> u32 {
        let h = draw(self.seed, self.test, 3, lane);
        let pairs = [0x4, 0x8, 0xc, 0x9, 0xd, 0xe];
        (0..8).fold(0, |word, nibble| {
            let byte = (h >> (8 * nibble) & 255) as usize;
            let value = match self.a {
                "tf32" if byte & 1 == 1 => 0xe,
                "tf32" => 0x4,
                _ => pairs[byte % 6],
            };
            word | value << (4 * nibble)
        })
    }

    /// Bits of an element: operand 0 is A, 1 B, 2 C.
    pub fn element(&self, kind: &str, operand: u32, index: usize) -> u64 {
        let h = draw(self.seed, self.test, operand, index as u32);
        let bits = bits_of(kind);
        let (e_bits, m_bits, pad) = match kind {
            "f16" => (5, 10, 0),
            "bf16" => (8, 7, 0),
            "tf32" => (8, 10, 13),
            "e4m3" => (4, 3, 0),
            "e5m2" => (5, 2, 0),
            "f64" => (11, 52, 0),
            "f32" => (8, 23, 0),
            _ => return h >> 20 & low(bits),
        };
        if self.class == 0 {
            return if bits == 64 { h } else { h >> 20 & low(bits) };
        }
        let bias = (1i64 << (e_bits - 1)) - 1;
        let top = (1i64 << e_bits) - 1;
        let last = if kind == "e4m3" { 15 } else { top - 1 };
        let mut sign = h & 1;
        let mut fraction = h >> 1 & low(m_bits + pad);
        let (lo, hi) = self.range(kind, operand, bias, last);
        let (lo, hi) = (lo.max(0), hi.min(last));
        let pick = (h >> 48 & 0xfff) as u32;
        let mut exponent = lo + i64::from(pick % (hi - lo + 1) as u32);
        if (self.class == 3 || self.class == 8 && operand == 2) && h >> 60 < 8 {
            (exponent, fraction) = (0, 0);
        }
        if self.class == 7 {
            fraction = 0;
        }
        if kind == "e4m3" && exponent == 15 && fraction == 7 {
            fraction = 6;
        }
        if self.class == 5 && h >> 32 & 31 == 0 {
            let all = low(m_bits + pad);
            (exponent, fraction) = match h >> 37 & 7 {
                0 => (top, 0),
                1 => (top, h >> 1 & all),
                2 => (0, 0),
                3 => (last, all),
                4 => (0, 1 << pad),
                5 => (0, all),
                6 => (1, 0),
                _ => {
                    sign = 0;
                    (top, 0)
                }
            };
        }
        sign << (e_bits + m_bits + pad) | (exponent as u64) << (m_bits + pad) | fraction
    }

    fn range(&self, kind: &str, operand: u32, bias: i64, last: i64) -> (i64, i64) {
        let small = matches!(self.a, "f16" | "e4m3" | "e5m2");
        let factor = operand < 2;
        let (a_bias, wide) = match self.a {
            "e4m3" => (7, 6),
            "f64" => (15, 30),
            _ => (15, 12),
        };
        match self.class {
            1 | 5 if factor => (bias - 2, bias + 2),
            1 | 5 => (bias - 6, bias + 6),
            8 if factor && small => (0, 3),
            8 if factor => (bias - 75, bias - 55),
            8 => (0, 0),
            2 | 3 | 7 if factor => (bias - wide, bias + wide),
            2 | 3 | 7 => (bias - 2 * wide, bias + 2 * wide),
            4 if factor && (small || operand == 0) => (0, 3),
            4 if factor => (bias - 4, bias + 4),
            4 if kind == "f16" => (0, 6),
            4 if small => (bias + 2 * (1 - a_bias) - 8, bias + 2 * (1 - a_bias) + 8),
            4 => (0, 6),
            _ if factor && (small || operand == 0) => (last - 3, last),
            _ if factor => (bias - 2, bias + 2),
            _ if kind == "f16" => (last - 3, last),
            _ if small => {
                let most = if self.a == "e4m3" { 8 } else { 15 };
                (bias + 2 * most - 4, bias + 2 * most + 8)
            }
            _ => (last - 4, last),
        }
    }
}
