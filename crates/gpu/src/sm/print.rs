//! `printf` as device code calls it: a format and a packed list of arguments.

use std::fmt::Write;

/// What one conversion asks for.
#[derive(Clone, Debug, Default)]
struct Conversion {
    minus: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
    /// Bytes of an integer argument.
    size: u32,
}

/// Longest field and most digits that are honoured.
const MOST: usize = 4096;

/// Arguments in memory, each aligned to its size.
struct Arguments<'a> {
    read: &'a mut dyn FnMut(u64, &mut [u8]) -> bool,
    next: u64,
}

impl Arguments<'_> {
    fn take(&mut self, bytes: u64) -> u64 {
        let at = self.next.next_multiple_of(bytes);
        self.next = at + bytes;
        let mut value = [0; 8];
        (self.read)(at, &mut value[..bytes as usize]);
        u64::from_le_bytes(value)
    }

    fn text(&mut self, address: u64) -> Vec<u8> {
        read_text(self.read, address)
    }
}

/// Bytes of a string up to its zero, at most [`MOST`].
pub fn read_text(read: &mut dyn FnMut(u64, &mut [u8]) -> bool, address: u64) -> Vec<u8> {
    let mut text = Vec::new();
    let mut byte = [0];
    while text.len() < MOST && read(address.wrapping_add(text.len() as u64), &mut byte) {
        if byte[0] == 0 {
            break;
        }
        text.push(byte[0]);
    }
    text
}

/// Formats as C does. `read` copies bytes at a generic address and says whether it could.
/// Returns the text and the number of arguments taken.
pub fn format(
    format: &[u8],
    arguments: u64,
    read: &mut dyn FnMut(u64, &mut [u8]) -> bool,
) -> (Vec<u8>, u32) {
    let mut text = Vec::new();
    let mut arguments = Arguments {
        read,
        next: arguments,
    };
    let mut taken = 0;
    let mut rest = format;
    while let Some((&byte, after)) = rest.split_first() {
        if byte != b'%' {
            text.push(byte);
            rest = after;
            continue;
        }
        let (conversion, letter, after) = parse(after, &mut arguments, &mut taken);
        match letter {
            Some(b'%') => text.push(b'%'),
            Some(letter) => match convert(&conversion, letter, &mut arguments) {
                Some(field) => {
                    taken += 1;
                    text.extend(pad(&conversion, field, letter));
                }
                // Not a conversion: C leaves it undefined, people want to see it.
                None => text.extend_from_slice(&rest[..rest.len() - after.len()]),
            },
            None => text.extend_from_slice(rest),
        }
        rest = after;
    }
    (text, taken)
}

/// Flags, width, precision and length; then the letter and what follows it.
fn parse<'a>(
    mut rest: &'a [u8],
    arguments: &mut Arguments<'_>,
    taken: &mut u32,
) -> (Conversion, Option<u8>, &'a [u8]) {
    let mut conversion = Conversion {
        size: 4,
        ..Conversion::default()
    };
    while let Some((&flag, after)) = rest.split_first() {
        match flag {
            b'-' => conversion.minus = true,
            b'+' => conversion.plus = true,
            b' ' => conversion.space = true,
            b'#' => conversion.alternate = true,
            b'0' => conversion.zero = true,
            _ => break,
        }
        rest = after;
    }
    let mut number = |rest: &mut &'a [u8]| -> Option<i64> {
        if let Some(after) = rest.strip_prefix(b"*") {
            *rest = after;
            *taken += 1;
            return Some(i64::from(arguments.take(4) as u32 as i32));
        }
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (number, after) = rest.split_at(digits);
        *rest = after;
        (digits > 0).then(|| {
            number.iter().fold(0i64, |value, digit| {
                (value * 10 + i64::from(digit - b'0')).min(MOST as i64)
            })
        })
    };
    if let Some(width) = number(&mut rest) {
        conversion.minus |= width < 0;
        conversion.width = (width.unsigned_abs() as usize).min(MOST);
    }
    if let Some(after) = rest.strip_prefix(b".") {
        rest = after;
        let precision = number(&mut rest).unwrap_or(0);
        conversion.precision = usize::try_from(precision)
            .ok()
            .map(|digits| digits.min(MOST));
    }
    while let Some((&letter, after)) = rest.split_first() {
        conversion.size = match (letter, conversion.size) {
            (b'h', 2) => 1,
            (b'h', _) => 2,
            (b'l' | b'j' | b'z' | b't' | b'q' | b'L', _) => 8,
            _ => break,
        };
        rest = after;
    }
    match rest.split_first() {
        Some((&letter, after)) => (conversion, Some(letter), after),
        None => (conversion, None, rest),
    }
}

/// The field without padding: sign or prefix, and digits.
struct Field {
    prefix: String,
    body: Vec<u8>,
    /// Zeros may be put between prefix and body.
    numeric: bool,
}

fn convert(conversion: &Conversion, letter: u8, arguments: &mut Arguments<'_>) -> Option<Field> {
    let size = u64::from(conversion.size);
    let sign = |negative: bool| {
        match (negative, conversion.plus, conversion.space) {
            (true, ..) => "-",
            (_, true, _) => "+",
            (_, _, true) => " ",
            _ => "",
        }
        .to_owned()
    };
    Some(match letter {
        b'd' | b'i' => {
            let raw = arguments.take(size.max(4));
            let value = match conversion.size {
                1 => i64::from(raw as i8),
                2 => i64::from(raw as i16),
                4 => i64::from(raw as i32),
                _ => raw as i64,
            };
            let digits = value.unsigned_abs().to_string();
            integer(conversion, sign(value < 0), digits, value == 0)
        }
        b'u' | b'o' | b'x' | b'X' => {
            let raw = arguments.take(size.max(4));
            let value = match conversion.size {
                1 => raw & 0xff,
                2 => raw & 0xffff,
                4 => raw & 0xffff_ffff,
                _ => raw,
            };
            let (prefix, digits) = match letter {
                b'u' => ("", value.to_string()),
                b'o' if conversion.alternate && value != 0 => ("0", format!("{value:o}")),
                b'o' => ("", format!("{value:o}")),
                b'x' if conversion.alternate && value != 0 => ("0x", format!("{value:x}")),
                b'x' => ("", format!("{value:x}")),
                _ if conversion.alternate && value != 0 => ("0X", format!("{value:X}")),
                _ => ("", format!("{value:X}")),
            };
            integer(conversion, prefix.to_owned(), digits, value == 0)
        }
        b'c' => plain(vec![arguments.take(4) as u8]),
        b's' => {
            let address = arguments.take(8);
            let mut text = if address == 0 {
                b"(null)".to_vec()
            } else {
                arguments.text(address)
            };
            text.truncate(conversion.precision.unwrap_or(MOST));
            plain(text)
        }
        b'p' => {
            let value = arguments.take(8);
            plain(if value == 0 {
                b"(nil)".to_vec()
            } else {
                format!("{value:#x}").into_bytes()
            })
        }
        b'f' | b'F' | b'e' | b'E' | b'g' | b'G' | b'a' | b'A' => {
            let value = f64::from_bits(arguments.take(8));
            float(conversion, letter, value, sign(value.is_sign_negative()))
        }
        b'n' => {
            // Writing to memory is refused as CUDA does; the argument is skipped.
            arguments.take(8);
            plain(Vec::new())
        }
        _ => return None,
    })
}

fn plain(body: Vec<u8>) -> Field {
    Field {
        prefix: String::new(),
        body,
        numeric: false,
    }
}

fn integer(conversion: &Conversion, prefix: String, digits: String, zero: bool) -> Field {
    let mut body = digits.into_bytes();
    if let Some(precision) = conversion.precision {
        if precision == 0 && zero {
            body.clear();
        }
        while body.len() < precision {
            body.insert(0, b'0');
        }
    }
    Field {
        prefix,
        body,
        // A precision switches the zero flag off.
        numeric: conversion.precision.is_none(),
    }
}

fn float(conversion: &Conversion, letter: u8, value: f64, sign: String) -> Field {
    let magnitude = value.abs();
    let upper = letter.is_ascii_uppercase();
    if !magnitude.is_finite() {
        let word = if magnitude.is_nan() { "nan" } else { "inf" };
        let word = if upper {
            word.to_uppercase()
        } else {
            word.into()
        };
        return Field {
            prefix: sign,
            body: word.into_bytes(),
            numeric: false,
        };
    }
    let mut prefix = sign;
    let mut text = match letter.to_ascii_lowercase() {
        b'f' => fixed(
            magnitude,
            conversion.precision.unwrap_or(6),
            conversion.alternate,
        ),
        b'e' => exponent(
            magnitude,
            conversion.precision.unwrap_or(6),
            conversion.alternate,
        ),
        b'g' => general(magnitude, conversion),
        _ => {
            prefix.push_str("0x");
            hexadecimal(magnitude, conversion.precision, conversion.alternate)
        }
    };
    if upper {
        text = text.to_uppercase();
        prefix = prefix.to_uppercase();
    }
    Field {
        prefix,
        body: text.into_bytes(),
        numeric: true,
    }
}

fn fixed(value: f64, precision: usize, alternate: bool) -> String {
    let mut text = format!("{value:.precision$}");
    if precision == 0 && alternate {
        text.push('.');
    }
    text
}

/// Digits, `e`, sign and at least two digits of exponent.
fn exponent(value: f64, precision: usize, alternate: bool) -> String {
    let text = format!("{value:.precision$e}");
    let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
    let power: i32 = power.parse().unwrap_or(0);
    let point = if precision == 0 && alternate { "." } else { "" };
    let sign = if power < 0 { '-' } else { '+' };
    format!("{digits}{point}e{sign}{:02}", power.unsigned_abs())
}

fn general(value: f64, conversion: &Conversion) -> String {
    let precision = conversion.precision.unwrap_or(6).max(1);
    // The exponent after rounding decides the style.
    let rounded = format!("{value:.*e}", precision - 1);
    let power: i64 = rounded
        .split_once('e')
        .and_then(|(_, power)| power.parse().ok())
        .unwrap_or(0);
    let text = if power < -4 || power >= precision as i64 {
        exponent(value, precision - 1, conversion.alternate)
    } else {
        fixed(
            value,
            (precision as i64 - 1 - power) as usize,
            conversion.alternate,
        )
    };
    if conversion.alternate {
        return text;
    }
    let (digits, power) = match text.split_once('e') {
        Some((digits, power)) => (digits, format!("e{power}")),
        None => (text.as_str(), String::new()),
    };
    let digits = if digits.contains('.') {
        digits.trim_end_matches('0').trim_end_matches('.')
    } else {
        digits
    };
    format!("{digits}{power}")
}

/// `1.8p+3`: the leading digit is 1 for normal numbers.
fn hexadecimal(value: f64, precision: Option<usize>, alternate: bool) -> String {
    let bits = value.to_bits();
    let mut fraction = bits & ((1 << 52) - 1);
    let field = (bits >> 52 & 0x7ff) as i32;
    let (mut lead, power) = match (field, fraction) {
        (0, 0) => (0u64, 0),
        (0, _) => (0, -1022),
        _ => (1, field - 1023),
    };
    let mut digits = 13;
    if let Some(precision) = precision.filter(|precision| *precision < 13) {
        // Round half to even at the last digit kept.
        let drop = 4 * (13 - precision) as u32;
        let whole = lead << 52 | fraction;
        let half = 1u64 << (drop - 1);
        let rest = whole & ((1 << drop) - 1);
        let mut kept = whole >> drop;
        if rest > half || (rest == half && kept & 1 == 1) {
            kept += 1;
        }
        let rounded = kept << drop;
        lead = rounded >> 52;
        fraction = rounded & ((1 << 52) - 1);
        digits = precision;
    }
    let all = format!("{fraction:013x}");
    let mut shown = all[..digits].to_owned();
    match precision {
        None => shown = shown.trim_end_matches('0').to_owned(),
        Some(precision) => {
            while shown.len() < precision {
                shown.push('0');
            }
        }
    }
    let point = if shown.is_empty() && !alternate {
        ""
    } else {
        "."
    };
    let mut text = String::new();
    let _ = write!(text, "{lead}{point}{shown}p{power:+}");
    text
}

fn pad(conversion: &Conversion, field: Field, letter: u8) -> Vec<u8> {
    let length = field.prefix.len() + field.body.len();
    let missing = conversion.width.saturating_sub(length);
    let mut text = Vec::with_capacity(length + missing);
    let zeros = conversion.zero && !conversion.minus && field.numeric && letter != b'c';
    if !conversion.minus && !zeros {
        text.resize(missing, b' ');
    }
    text.extend_from_slice(field.prefix.as_bytes());
    if zeros {
        text.resize(text.len() + missing, b'0');
    }
    text.extend_from_slice(&field.body);
    if conversion.minus {
        text.resize(text.len() + missing, b' ');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    enum Value<'a> {
        Int(i32),
        Long(i64),
        Double(f64),
        Text(&'a str),
    }
    use Value::*;

    /// Packs the arguments as the compiler does and compares with what C prints.
    fn check(text: &str, values: &[Value<'_>], expected: &str) {
        let mut memory = vec![0u8; 256];
        let mut at = 0;
        for value in values {
            let bytes: Vec<u8> = match value {
                Int(value) => value.to_le_bytes().into(),
                Long(value) => value.to_le_bytes().into(),
                Double(value) => value.to_le_bytes().into(),
                Text(value) => {
                    let address = memory.len() as u64;
                    memory.extend_from_slice(value.as_bytes());
                    memory.push(0);
                    address.to_le_bytes().into()
                }
            };
            at = usize::next_multiple_of(at, bytes.len());
            memory[at..at + bytes.len()].copy_from_slice(&bytes);
            at += bytes.len();
        }
        let mut read = |address: u64, bytes: &mut [u8]| {
            let at = address as usize;
            memory.get(at..at + bytes.len()).is_some_and(|from| {
                bytes.copy_from_slice(from);
                true
            })
        };
        let (found, _) = format(text.as_bytes(), 0, &mut read);
        assert_eq!(String::from_utf8_lossy(&found), expected, "{text}");
    }

    #[test]
    fn integers() {
        check(
            "%d|%5d|%-5d|%05d|%+d|% d",
            &[Int(1), Int(-2), Int(3), Int(-4), Int(5), Int(6)],
            "1|   -2|3    |-0004|+5| 6",
        );
        check(
            "%u %x %X %#x %o %#o",
            &[Int(-1), Int(255), Int(255), Int(255), Int(8), Int(8)],
            "4294967295 ff FF 0xff 10 010",
        );
        check(
            "%lld %ld %llu %zx",
            &[Long(-5), Long(6), Long(-1), Long(255)],
            "-5 6 18446744073709551615 ff",
        );
        check(
            "%hhd %hd %hhu",
            &[Int(0x1ff), Int(0x1_ffff), Int(0x1ff)],
            "-1 -1 255",
        );
        check(
            "%.3d %8.3d %.0d|",
            &[Int(7), Int(-7), Int(0)],
            "007     -007 |",
        );
        check(
            "%*d %-*d| %.*f",
            &[Int(4), Int(1), Int(4), Int(2), Int(2), Double(1.0)],
            "   1 2   | 1.00",
        );
        check("%5%|%%", &[], "%|%");
    }

    #[test]
    fn floats() {
        check(
            "%f %.2f %8.3f|%-8.1f|%08.2f",
            &[
                Double(1.5),
                Double(2.675),
                Double(-3.14179),
                Double(2.25),
                Double(-1.5),
            ],
            "1.500000 2.67   -3.142|2.2     |-0001.50",
        );
        check(
            "%e %.0e %E %g %g %g",
            &[
                Double(12345.678),
                Double(5.0),
                Double(0.0),
                Double(0.0001),
                Double(1e-5),
                Double(1e6),
            ],
            "1.234568e+04 5e+00 0.000000E+00 0.0001 1e-05 1e+06",
        );
        check(
            "%g %g %.3g %#g",
            &[Double(100000.0), Double(0.5), Double(1234.5), Double(1.0)],
            "100000 0.5 1.23e+03 1.00000",
        );
        check(
            "%f %F %5.1f %+f",
            &[
                Double(f64::INFINITY),
                Double(f64::NAN),
                Double(f64::NEG_INFINITY),
                Double(0.0),
            ],
            "inf NAN  -inf +0.000000",
        );
        check(
            "%a %a %.1a %A",
            &[
                Double(1.0),
                Double(-0.15625),
                Double(1.96875),
                Double(255.5),
            ],
            "0x1p+0 -0x1.4p-3 0x2.0p+0 0X1.FFP+7",
        );
        check("%g", &[Double(1e300)], "1e+300");
    }

    #[test]
    fn text_and_pointers() {
        check(
            "[%s] [%6s] [%-6s] [%.2s] %c",
            &[Text("abc"), Text("ab"), Text("ab"), Text("abc"), Int(65)],
            "[abc] [    ab] [ab    ] [ab] A",
        );
        check("%p %p", &[Long(0x1234), Long(0)], "0x1234 (nil)");
        check("%s", &[Long(0)], "(null)");
        check("100%", &[], "100%");
        check("%y %d", &[Int(3)], "%y 3");
    }
}
