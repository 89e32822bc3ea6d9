//! Floating-point immediates as the disassembler spells them.
//!
//! Twenty significant digits without trailing zeros, and scientific notation with all of them
//! from 10⁹ upward; infinities, NaNs and minus zero carry a trailing space.

use std::fmt::{self, Write};

/// Writes `value`.
///
/// # Errors
///
/// Those of the writer.
pub fn write_float(out: &mut impl Write, value: f64) -> fmt::Result {
    if value.is_infinite() {
        return out.write_str(if value > 0.0 { "+INF " } else { "-INF " });
    }
    if value == 0.0 {
        return out.write_str(if value.is_sign_negative() {
            "-0.0 "
        } else {
            "0"
        });
    }
    if value.abs() >= 1e9 {
        return out.write_str(&c_exponent(&format!("{value:.20e}")));
    }
    let scientific = format!("{value:.19e}");
    let (mantissa, exponent) = scientific
        .split_once('e')
        .expect("scientific notation has an exponent");
    let exponent: i32 = exponent.parse().expect("an exponent is a number");
    if exponent < -4 {
        let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
        return out.write_str(&c_exponent(&format!("{mantissa}e{exponent}")));
    }
    let decimals = usize::try_from(19 - exponent).unwrap_or(0);
    let text = format!("{value:.decimals$}");
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    out.write_str(text)
}

/// Writes a NaN given its sign and the highest bit of its fraction.
///
/// # Errors
///
/// Those of the writer.
pub fn write_nan(out: &mut impl Write, negative: bool, quiet: bool) -> fmt::Result {
    let sign = if negative { '-' } else { '+' };
    write!(out, "{sign}{} ", if quiet { "QNAN" } else { "SNAN" })
}

/// `1.5e7` as C prints it, `1.5e+07`.
fn c_exponent(text: &str) -> String {
    let (mantissa, exponent) = text
        .split_once('e')
        .expect("scientific notation has an exponent");
    let exponent: i32 = exponent.parse().expect("an exponent is a number");
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: f64) -> String {
        let mut out = String::new();
        write_float(&mut out, value).expect("strings grow");
        out
    }

    #[test]
    fn spells_floats_as_the_disassembler_does() {
        assert_eq!(text(f64::from(0.1f32)), "0.10000000149011611938");
        assert_eq!(text(1e9), "1.00000000000000000000e+09");
        assert_eq!(text(999_999_488.0), "999999488");
        assert_eq!(text(f64::from(1e-4f32)), "9.9999997473787516356e-05");
        assert_eq!(text(f64::from(1.5e-4f32)), "0.00015000000712461769581");
        assert_eq!(text(262_144.125), "262144.125");
        assert_eq!(text(-0.0), "-0.0 ");
        assert_eq!(
            text(f64::from(f32::MIN_POSITIVE)),
            "1.175494350822287508e-38"
        );
    }
}
