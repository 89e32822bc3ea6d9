//! Numbers for people.

/// A whole number with its thousands apart.
pub fn group(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of things: `1 kernel`, `2,000 kernels`.
pub fn counted(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", group(number))
}

/// A time given in nanoseconds.
pub fn duration(nanoseconds: f64) -> String {
    match nanoseconds {
        short if short < 1e3 => format!("{short:.0} ns"),
        short if short < 1e6 => format!("{:.2} us", short / 1e3),
        short if short < 1e9 => format!("{:.2} ms", short / 1e6),
        long => format!("{:.2} s", long / 1e9),
    }
}

/// A number in two or three digits and a letter.
pub fn rounded(number: f64) -> String {
    match number {
        small if small < 10.0 => format!("{small:.1}"),
        small if small < 1e4 => format!("{small:.0}"),
        small if small < 1e6 => format!("{:.0}k", small / 1e3),
        small if small < 1e9 => format!("{:.1}M", small / 1e6),
        large if large < 1e12 => format!("{:.1}G", large / 1e9),
        large => format!("{:.1}T", large / 1e12),
    }
}

/// Blocks or threads in their dimensions, without those that are 1.
pub fn shape([x, y, z]: [u32; 3]) -> String {
    match (y, z) {
        (1, 1) => x.to_string(),
        (_, 1) => format!("{x}x{y}"),
        _ => format!("{x}x{y}x{z}"),
    }
}

/// A share from 0 to 1 in percent.
pub fn percent(share: f64) -> String {
    match 100.0 * share {
        0.0 => "0 %".to_string(),
        little if little < 0.1 => "<0.1 %".to_string(),
        small if small < 10.0 => format!("{small:.1} %"),
        large => format!("{large:.0} %"),
    }
}

/// A number of bytes.
pub fn bytes(count: f64) -> String {
    match count {
        few if few < 1e3 => format!("{few:.0} B"),
        some if some < 1e6 => format!("{:.1} kB", some / 1e3),
        some if some < 1e9 => format!("{:.1} MB", some / 1e6),
        many => format!("{:.2} GB", many / 1e9),
    }
}

/// Bytes in a second.
pub fn bandwidth(bytes_per_second: f64) -> String {
    match bytes_per_second {
        0.0 => "0 B/s".to_string(),
        slow if slow < 1e9 => format!("{:.1} MB/s", slow / 1e6),
        fast if fast < 1e12 => format!("{:.1} GB/s", fast / 1e9),
        fast => format!("{:.2} TB/s", fast / 1e12),
    }
}

/// A number of things: `1 launch`, `1,400 launches`.
pub fn plural(count: u64, one: &str, many: &str) -> String {
    let word = if count == 1 { one } else { many };
    format!("{} {word}", group(count))
}

/// A cell whose value may be unknown.
pub fn known<V>(value: Option<V>, text: impl FnOnce(V) -> String) -> String {
    value.map_or_else(|| "-".to_string(), text)
}

/// A quotient, if there is something to divide by and both are numbers.
pub fn quotient(part: f64, whole: f64) -> Option<f64> {
    let value = part / whole;
    (whole > 0.0 && value.is_finite()).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_for_people() {
        assert_eq!(group(0), "0");
        assert_eq!(group(1_234_567), "1,234,567");
        assert_eq!(duration(950.0), "950 ns");
        assert_eq!(duration(4600.0), "4.60 us");
        assert_eq!(rounded(12_345_678.0), "12.3M");
        assert_eq!(shape([160, 1, 1]), "160");
        assert_eq!(shape([16, 16, 1]), "16x16");
        assert_eq!(percent(0.123), "12 %");
        assert_eq!(percent(0.0123), "1.2 %");
        assert_eq!(percent(0.0001), "<0.1 %");
        assert_eq!(bytes(14_336.0), "14.3 kB");
        assert_eq!(bandwidth(4.8e12), "4.80 TB/s");
        assert_eq!(quotient(1.0, 0.0), None);
    }
}
