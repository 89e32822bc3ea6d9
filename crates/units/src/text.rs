//! The notation of quantities: a decimal number, then a unit.
//!
//! Reading is exact: "1.5 KiB" is 1,536 bytes, and "1.3 B" is an error rather than a rounding.
//! Printing is lossless: what [`Scale::print`] writes, [`Scale::parse`] reads back to the same
//! integer.

use std::fmt;

use thiserror::Error;

/// One spelling of a unit, and how many of the smallest unit it is worth.
pub(crate) struct Unit {
    pub symbol: &'static str,
    pub factor: u64,
    /// Whether printing may choose this spelling; the others are only read.
    pub printed: bool,
}

impl Unit {
    pub(crate) const fn printed(symbol: &'static str, factor: u64) -> Self {
        Self {
            symbol,
            factor,
            printed: true,
        }
    }

    pub(crate) const fn read(symbol: &'static str, factor: u64) -> Self {
        Self {
            symbol,
            factor,
            printed: false,
        }
    }
}

/// How the unit of a printed value is chosen.
pub(crate) enum Printing {
    /// The largest unit that leaves no fraction: 1,536 bytes could be "1.5 KiB", and are "1536 B",
    /// since fractions of binary units are hard to read.
    Whole,
    /// The largest unit not above the value, with as many decimals as it takes. Every printed
    /// factor is a power of ten, so the decimals end.
    Decimal,
}

/// All spellings of one kind of quantity, smallest unit first.
pub(crate) struct Scale {
    /// What the quantity is called in errors: "a size".
    pub what: &'static str,
    /// A correct text, for errors.
    pub example: &'static str,
    pub printing: Printing,
    pub units: &'static [Unit],
}

/// Why a text is not a quantity.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ParseError {
    /// The text does not begin with a number.
    #[error(
        "`{text}` is not {what}: it does not start with a decimal number (for example \"{example}\")"
    )]
    NoNumber {
        /// The text that was found.
        text: String,
        /// The quantity that was wanted.
        what: &'static str,
        /// What would have been accepted.
        example: &'static str,
    },
    /// A bare number, which could mean anything.
    #[error(
        "`{text}` is not {what}: the unit is missing (for example \"{example}\"; units: {known})"
    )]
    NoUnit {
        /// The text that was found.
        text: String,
        /// The quantity that was wanted.
        what: &'static str,
        /// What would have been accepted.
        example: &'static str,
        /// Every unit that would have been accepted.
        known: String,
    },
    /// A unit of another kind, or none.
    #[error("`{text}` is not {what}: unknown unit `{unit}`; known: {known}")]
    UnknownUnit {
        /// The text that was found.
        text: String,
        /// The quantity that was wanted.
        what: &'static str,
        /// The unit that was found.
        unit: String,
        /// Every unit that would have been accepted.
        known: String,
    },
    /// The value falls between two multiples of the smallest unit.
    #[error("`{text}` is not {what}: it is not a whole number of {smallest}")]
    NotWhole {
        /// The text that was found.
        text: String,
        /// The quantity that was wanted.
        what: &'static str,
        /// The smallest unit.
        smallest: &'static str,
    },
    /// The value does not fit in 64 bits of the smallest unit.
    #[error("`{text}` is not {what}: it is above the largest, {largest}")]
    TooLarge {
        /// The text that was found.
        text: String,
        /// The quantity that was wanted.
        what: &'static str,
        /// The largest value, printed.
        largest: String,
    },
    /// A rate of zero, with which nothing would ever happen.
    #[error("`{text}` is not {what}: it must be above zero")]
    Zero {
        /// The text that was found.
        text: String,
        /// The quantity that was wanted.
        what: &'static str,
    },
}

/// Errors quote what they refuse, but not megabytes of it.
pub(crate) fn quoted(text: &str) -> String {
    const LONGEST: usize = 64;
    if text.chars().count() <= LONGEST {
        return text.to_owned();
    }
    text.chars().take(LONGEST).chain("…".chars()).collect()
}

/// A decimal number without loss: `mantissa` / 10^`decimals`.
struct Decimal {
    mantissa: u128,
    decimals: u32,
}

enum DecimalError {
    NoNumber,
    TooLarge,
}

impl Decimal {
    fn parse(text: &str) -> Result<Self, DecimalError> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let dotted = text.contains('.');
        let digits = |part: &str| part.bytes().any(|byte| byte.is_ascii_digit());
        if !digits(whole) || (dotted && !digits(fraction)) {
            return Err(DecimalError::NoNumber);
        }
        // Trailing zeros of a fraction carry nothing, and would only use up the mantissa.
        let fraction = if dotted {
            fraction.trim_end_matches(['0', '_'])
        } else {
            ""
        };
        let mut number = Self {
            mantissa: 0,
            decimals: 0,
        };
        for (part, counts) in [(whole, 0), (fraction, 1)] {
            for byte in part.bytes() {
                match byte {
                    b'_' => {}
                    b'0'..=b'9' => {
                        number.mantissa = number
                            .mantissa
                            .checked_mul(10)
                            .and_then(|scaled| scaled.checked_add(u128::from(byte - b'0')))
                            .ok_or(DecimalError::TooLarge)?;
                        number.decimals += counts;
                    }
                    _ => return Err(DecimalError::NoNumber),
                }
            }
        }
        Ok(number)
    }
}

impl Scale {
    fn known(&self) -> String {
        self.units
            .iter()
            .map(|unit| unit.symbol)
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// Reads "512 KiB" into multiples of the smallest unit.
    pub(crate) fn parse(&self, text: &str) -> Result<u64, ParseError> {
        let trimmed = text.trim();
        let split = trimmed
            .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))
            .unwrap_or(trimmed.len());
        let (number, unit) = (&trimmed[..split], trimmed[split..].trim_start());
        let what = self.what;
        let too_large = || ParseError::TooLarge {
            text: quoted(text),
            what,
            largest: self.text(u64::MAX),
        };
        let number = Decimal::parse(number).map_err(|error| match error {
            DecimalError::NoNumber => ParseError::NoNumber {
                text: quoted(text),
                what,
                example: self.example,
            },
            DecimalError::TooLarge => too_large(),
        })?;
        if unit.is_empty() {
            return Err(ParseError::NoUnit {
                text: quoted(text),
                what,
                example: self.example,
                known: self.known(),
            });
        }
        let factor = self
            .units
            .iter()
            .find(|known| known.symbol == unit)
            .ok_or_else(|| ParseError::UnknownUnit {
                text: quoted(text),
                what,
                unit: quoted(unit),
                known: self.known(),
            })?;
        let scaled = number
            .mantissa
            .checked_mul(u128::from(factor.factor))
            .ok_or_else(too_large)?;
        let not_whole = || ParseError::NotWhole {
            text: quoted(text),
            what,
            smallest: self.units[0].symbol,
        };
        // More decimals than 10^38 can hold cannot cancel out: the mantissa has fewer digits.
        let divisor = 10u128.checked_pow(number.decimals).ok_or_else(not_whole)?;
        if !scaled.is_multiple_of(divisor) {
            return Err(not_whole());
        }
        u64::try_from(scaled / divisor).map_err(|_| too_large())
    }

    /// Writes a value so that [`Scale::parse`] gives it back.
    pub(crate) fn print(&self, value: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text(value))
    }

    pub(crate) fn text(&self, value: u64) -> String {
        let fits = |unit: &&Unit| {
            unit.printed
                && match self.printing {
                    Printing::Whole => value != 0 && value.is_multiple_of(unit.factor),
                    Printing::Decimal => unit.factor <= value,
                }
        };
        let unit = self.units.iter().rev().find(fits).unwrap_or(&self.units[0]);
        let (whole, rest) = (value / unit.factor, value % unit.factor);
        if rest == 0 {
            return format!("{whole} {}", unit.symbol);
        }
        let width = unit.factor.ilog10() as usize;
        let decimals = format!("{rest:0width$}");
        format!("{whole}.{} {}", decimals.trim_end_matches('0'), unit.symbol)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use crate::{Bytes, Cycles, Hertz};

    fn check<T>(texts: &[&str], expect: Expect)
    where
        T: std::str::FromStr<Err = super::ParseError> + std::fmt::Display,
    {
        let mut seen = String::new();
        for text in texts {
            match text.parse::<T>() {
                Ok(value) => seen.push_str(&format!("{value}\n")),
                Err(error) => seen.push_str(&format!("error: {error}\n")),
            }
        }
        expect.assert_eq(&seen);
    }

    #[test]
    fn errors_name_what_was_found_and_what_would_do() {
        check::<Bytes>(
            &[
                "",
                "KiB",
                "12",
                "12 kb",
                "1.3 B",
                "1.3. B",
                "-4 B",
                "99999999 TiB",
                ".5 KiB",
                "5. B",
            ],
            expect![[r#"
                error: `` is not a size: it does not start with a decimal number (for example "512 KiB")
                error: `KiB` is not a size: it does not start with a decimal number (for example "512 KiB")
                error: `12` is not a size: the unit is missing (for example "512 KiB"; units: B, kB, KiB, MB, MiB, GB, GiB, TB, TiB)
                error: `12 kb` is not a size: unknown unit `kb`; known: B, kB, KiB, MB, MiB, GB, GiB, TB, TiB
                error: `1.3 B` is not a size: it is not a whole number of B
                error: `1.3. B` is not a size: it does not start with a decimal number (for example "512 KiB")
                error: `-4 B` is not a size: it does not start with a decimal number (for example "512 KiB")
                error: `99999999 TiB` is not a size: it is above the largest, 18446744073709551615 B
                error: `.5 KiB` is not a size: it does not start with a decimal number (for example "512 KiB")
                error: `5. B` is not a size: it does not start with a decimal number (for example "512 KiB")
            "#]],
        );
    }

    #[test]
    fn a_value_prints_in_the_unit_a_reader_expects() {
        check::<Bytes>(
            &["512 KiB", "1.5 KiB", "0.5MiB", "24 GB", "1_000 B", "0 TiB"],
            expect![[r#"
                512 KiB
                1536 B
                512 KiB
                23437500 KiB
                1000 B
                0 B
            "#]],
        );
        check::<Hertz>(
            &[
                "1.41 GHz",
                "1410 MHz",
                "1 Hz",
                "0 Hz",
                "0.1 Hz",
                "1.4100000000000000000000000000000 GHz",
            ],
            expect![[r#"
                1.41 GHz
                1.41 GHz
                1 Hz
                error: `0 Hz` is not a frequency: it must be above zero
                error: `0.1 Hz` is not a frequency: it is not a whole number of Hz
                1.41 GHz
            "#]],
        );
        check::<Cycles>(
            &["30 cycles", "1 cycle", "30 ns"],
            expect![[r#"
                30 cycles
                1 cycle
                error: `30 ns` is not a number of cycles: unknown unit `ns`; known: cycles, cycle
            "#]],
        );
    }

    #[test]
    fn endless_text_is_refused_briefly() {
        let long = "9".repeat(100_000);
        let error = long.parse::<Bytes>().unwrap_err().to_string();
        assert!(error.len() < 400, "{} characters", error.len());
        let long = format!("0.{}1 B", "0".repeat(100_000));
        let error = long.parse::<Bytes>().unwrap_err().to_string();
        assert!(error.len() < 400, "{} characters", error.len());
    }
}
