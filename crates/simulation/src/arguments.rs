//! Arguments of a kernel, written as text.
//!
//! A scalar is `TYPE:VALUE` (`u32:5`, `f32:1.5`); a buffer is `TYPE[COUNT]`, with what it holds
//! after an equals sign: `=iota`, `=0` or any other value, `=random:SEED`. Types are `u8` to
//! `u64`, `s8` to `s64`, `f32` and `f64`.

use std::fmt::Write;
use std::str::FromStr;

/// Largest buffer, in bytes.
const MAXIMUM_BYTES: u64 = 64 << 30;

/// The type of a scalar or of the elements of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElementType {
    kind: Kind,
    bytes: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Unsigned,
    Signed,
    Float,
}

/// What a buffer holds at the start.
#[derive(Clone, Debug, PartialEq)]
pub enum Pattern {
    /// The same everywhere.
    Value(Vec<u8>),
    /// 0, 1, 2, …
    Iota,
    /// From a seed: all bits of integers, fractions from 0 to 1.
    Random(u64),
}

/// One argument.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// Bytes to pass as they are.
    Scalar {
        /// Its type.
        kind: ElementType,
        /// Its bytes.
        bytes: Vec<u8>,
    },
    /// Device memory whose address is passed.
    Buffer {
        /// Type of its elements.
        kind: ElementType,
        /// How many.
        count: u64,
        /// What it holds.
        pattern: Pattern,
    },
}

impl ElementType {
    /// Bytes of one.
    pub fn bytes(self) -> u64 {
        u64::from(self.bytes)
    }

    fn encode(self, text: &str) -> Result<Vec<u8>, String> {
        let refused = || format!("`{text}` is not a value of type {self}");
        let size = usize::from(self.bytes);
        match self.kind {
            Kind::Float if size == 4 => text
                .parse::<f32>()
                .map(|value| value.to_le_bytes().to_vec()),
            Kind::Float => text
                .parse::<f64>()
                .map(|value| value.to_le_bytes().to_vec()),
            Kind::Unsigned | Kind::Signed => {
                let value = parse_integer(text).ok_or_else(refused)?;
                let bits = 8 * u32::from(self.bytes);
                let (least, most) = match self.kind {
                    Kind::Signed => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
                    _ => (0, (1i128 << bits) - 1),
                };
                if !(least..=most).contains(&value) {
                    return Err(refused());
                }
                return Ok(value.to_le_bytes()[..size].to_vec());
            }
        }
        .map_err(|_| refused())
    }

    /// A value as text.
    pub fn show(self, bytes: &[u8]) -> String {
        let mut wide = [0; 8];
        wide[..bytes.len().min(8)].copy_from_slice(&bytes[..bytes.len().min(8)]);
        let raw = u64::from_le_bytes(wide);
        match (self.kind, self.bytes) {
            (Kind::Float, 4) => f32::from_bits(raw as u32).to_string(),
            (Kind::Float, _) => f64::from_bits(raw).to_string(),
            (Kind::Unsigned, _) => raw.to_string(),
            (Kind::Signed, size) => {
                let unused = 64 - 8 * u32::from(size);
                (((raw << unused) as i64) >> unused).to_string()
            }
        }
    }
}

impl std::fmt::Display for ElementType {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let letter = match self.kind {
            Kind::Unsigned => 'u',
            Kind::Signed => 's',
            Kind::Float => 'f',
        };
        formatter.write_char(letter)?;
        write!(formatter, "{}", 8 * u32::from(self.bytes))
    }
}

impl FromStr for ElementType {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, bytes) = match text {
            "u8" => (Kind::Unsigned, 1),
            "u16" => (Kind::Unsigned, 2),
            "u32" => (Kind::Unsigned, 4),
            "u64" => (Kind::Unsigned, 8),
            "s8" => (Kind::Signed, 1),
            "s16" => (Kind::Signed, 2),
            "s32" => (Kind::Signed, 4),
            "s64" => (Kind::Signed, 8),
            "f32" => (Kind::Float, 4),
            "f64" => (Kind::Float, 8),
            _ => {
                return Err(format!(
                    "`{text}` is not a type; types are u8 to u64, s8 to s64, f32, f64"
                ));
            }
        };
        Ok(Self { kind, bytes })
    }
}

impl FromStr for Argument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let whole = |reason: String| format!("argument `{text}`: {reason}");
        if let Some((kind, rest)) = text.split_once('[') {
            let kind: ElementType = kind.trim().parse().map_err(whole)?;
            let (count, pattern) = rest.split_once(']').ok_or_else(|| {
                whole("a `]` is missing; write for example f32[1024]=iota".into())
            })?;
            let count = parse_integer(count.trim())
                .and_then(|count| u64::try_from(count).ok())
                .filter(|count| *count > 0 && count.saturating_mul(kind.bytes()) <= MAXIMUM_BYTES)
                .ok_or_else(|| {
                    whole(format!(
                        "`{count}` is not a number of elements, or too many"
                    ))
                })?;
            let pattern = parse_pattern(kind, pattern.trim()).map_err(whole)?;
            return Ok(Self::Buffer {
                kind,
                count,
                pattern,
            });
        }
        let (kind, value) = text.split_once(':').ok_or_else(|| {
            whole("write TYPE:VALUE (u32:5) or TYPE[COUNT]=PATTERN (f32[1024]=iota)".into())
        })?;
        let kind: ElementType = kind.trim().parse().map_err(whole)?;
        let bytes = kind.encode(value.trim()).map_err(whole)?;
        Ok(Self::Scalar { kind, bytes })
    }
}

fn parse_pattern(kind: ElementType, text: &str) -> Result<Pattern, String> {
    let Some(text) = text.strip_prefix('=') else {
        return if text.is_empty() {
            Ok(Pattern::Value(vec![0; usize::from(kind.bytes)]))
        } else {
            Err(format!(
                "`{text}` after `]`; write =iota, =VALUE or =random:SEED"
            ))
        };
    };
    match text.trim() {
        "iota" => Ok(Pattern::Iota),
        "random" => Ok(Pattern::Random(0)),
        text => match text.strip_prefix("random:") {
            Some(seed) => seed
                .parse()
                .map(Pattern::Random)
                .map_err(|_| format!("`{seed}` is not a seed, a whole number")),
            None => kind.encode(text).map(Pattern::Value),
        },
    }
}

fn parse_integer(text: &str) -> Option<i128> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let value = match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok()?,
        None => digits.parse::<u64>().ok()?,
    };
    Some(sign * i128::from(value))
}

/// The bytes of elements `first..first + count` of a buffer.
pub fn contents(kind: ElementType, pattern: &Pattern, first: u64, count: u64) -> Vec<u8> {
    let size = usize::from(kind.bytes);
    let mut bytes = Vec::with_capacity(size * count as usize);
    for index in first..first + count {
        match (pattern, kind.kind, size) {
            (Pattern::Value(value), ..) => bytes.extend_from_slice(value),
            (Pattern::Iota, Kind::Float, 4) => {
                bytes.extend_from_slice(&(index as f32).to_le_bytes())
            }
            (Pattern::Iota, Kind::Float, _) => {
                bytes.extend_from_slice(&(index as f64).to_le_bytes())
            }
            (Pattern::Iota, ..) => bytes.extend_from_slice(&index.to_le_bytes()[..size]),
            (Pattern::Random(seed), Kind::Float, 4) => {
                let fraction = (random(*seed, index) >> 40) as f32 / (1u32 << 24) as f32;
                bytes.extend_from_slice(&fraction.to_le_bytes());
            }
            (Pattern::Random(seed), Kind::Float, _) => {
                let fraction = (random(*seed, index) >> 11) as f64 / (1u64 << 53) as f64;
                bytes.extend_from_slice(&fraction.to_le_bytes());
            }
            (Pattern::Random(seed), ..) => {
                bytes.extend_from_slice(&random(*seed, index).to_le_bytes()[..size])
            }
        }
    }
    bytes
}

/// The `index`-th number of a seed: any of them without the others (SplitMix64).
fn random(seed: u64, index: u64) -> u64 {
    let mut mixed = seed.wrapping_add((index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(text: &str, expected: Expect) {
        let shown = match text.parse::<Argument>() {
            Ok(Argument::Scalar { kind, bytes }) => {
                format!("{kind} {} {bytes:02x?}", kind.show(&bytes))
            }
            Ok(Argument::Buffer {
                kind,
                count,
                pattern,
            }) => {
                let first = contents(kind, &pattern, 0, count.min(4));
                let values: Vec<String> = first
                    .chunks(kind.bytes() as usize)
                    .map(|bytes| kind.show(bytes))
                    .collect();
                format!("{count} x {kind}: {}", values.join(" "))
            }
            Err(error) => error,
        };
        expected.assert_eq(&shown);
    }

    #[test]
    fn scalars_have_types() {
        check("u32:5", expect!["u32 5 [05, 00, 00, 00]"]);
        check("s16:-2", expect!["s16 -2 [fe, ff]"]);
        check(
            "u64:0xffffffffffffffff",
            expect!["u64 18446744073709551615 [ff, ff, ff, ff, ff, ff, ff, ff]"],
        );
        check("f32:1.5", expect!["f32 1.5 [00, 00, c0, 3f]"]);
        check(
            "u8:256",
            expect!["argument `u8:256`: `256` is not a value of type u8"],
        );
        check(
            "int:4",
            expect![
                "argument `int:4`: `int` is not a type; types are u8 to u64, s8 to s64, f32, f64"
            ],
        );
        check(
            "5",
            expect![
                "argument `5`: write TYPE:VALUE (u32:5) or TYPE[COUNT]=PATTERN (f32[1024]=iota)"
            ],
        );
    }

    #[test]
    fn buffers_have_patterns() {
        check("f32[1024]=iota", expect!["1024 x f32: 0 1 2 3"]);
        check("s32[3]=-7", expect!["3 x s32: -7 -7 -7"]);
        check("u8[300]", expect!["300 x u8: 0 0 0 0"]);
        check(
            "f32[8]=random:1",
            expect!["8 x f32: 0.5665615 0.7457817 0.9710027 0.44435918"],
        );
        check(
            "u32[0]",
            expect!["argument `u32[0]`: `0` is not a number of elements, or too many"],
        );
        check(
            "u32[4",
            expect!["argument `u32[4`: a `]` is missing; write for example f32[1024]=iota"],
        );
        check(
            "u32[4]=x",
            expect!["argument `u32[4]=x`: `x` is not a value of type u32"],
        );
        check(
            "u64[99999999999999999999]",
            expect![
                "argument `u64[99999999999999999999]`: `99999999999999999999` is not a number of elements, or too many"
            ],
        );
    }
}
