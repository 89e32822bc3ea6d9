//! Addresses of the lanes of a warp, as traces pack them.
//!
//! Three modes: 0 lists every address, 1 has the first and a stride for lanes side by side, 2 has the
//! first and the way from each lane to the next.

use std::fmt::Write;
use std::str::SplitAsciiWhitespace;

use lockstep_isa::Mask;
use lockstep_isa::warp_register::{LANES, lanes_of};

use crate::header::hexadecimal;

/// An address for each lane; 0 for lanes that access nothing.
pub type Addresses = [u64; LANES];

/// Reads a mode and the addresses of the lanes of a mask.
///
/// # Errors
/// A sentence, if something else is there.
pub fn read(words: &mut SplitAsciiWhitespace<'_>, lanes: Mask) -> Result<Addresses, String> {
    let mode = words.next().unwrap_or_default();
    let mut address = |what: &str| {
        let word = words.next().unwrap_or_default();
        hexadecimal(word).ok_or_else(|| format!("`{word}`, where {what} belongs"))
    };
    let mut addresses = [0; LANES];
    match mode {
        "0" => {
            for lane in lanes_of(lanes) {
                addresses[lane] = address("the address of a lane")?;
            }
        }
        "1" => {
            let base = address("the first address")?;
            let stride: i64 = number(words, "the stride of addresses")?;
            let first = lanes.trailing_zeros();
            for lane in lanes_of(lanes) {
                let steps = lane as i64 - i64::from(first);
                addresses[lane] = base.wrapping_add_signed(stride.wrapping_mul(steps));
            }
        }
        "2" => {
            let mut at = address("the first address")?;
            for (index, lane) in lanes_of(lanes).enumerate() {
                if index > 0 {
                    let way: i64 = number(words, "the way to the next lane's address")?;
                    at = at.wrapping_add_signed(way);
                }
                addresses[lane] = at;
            }
        }
        _ => {
            return Err(format!(
                "`{mode}`, where an address mode belongs: 0, 1 or 2"
            ));
        }
    }
    Ok(addresses)
}

fn number(words: &mut SplitAsciiWhitespace<'_>, what: &str) -> Result<i64, String> {
    let word = words.next().unwrap_or_default();
    word.parse()
        .map_err(|_| format!("`{word}`, where {what} belongs"))
}

/// Writes a mode and the addresses of the lanes of a mask in the shortest way.
pub fn write(text: &mut String, addresses: &Addresses, lanes: Mask) {
    let first = lanes.trailing_zeros() as usize;
    let base = addresses.get(first).copied().unwrap_or(0);
    if let Some(stride) = stride(addresses, lanes) {
        let _ = write!(text, "1 {base:#x} {stride}");
        return;
    }
    let _ = write!(text, "2 {base:#x}");
    let mut at = base;
    for lane in lanes_of(lanes).skip(1) {
        let way = addresses[lane].wrapping_sub(at) as i64;
        let _ = write!(text, " {way}");
        at = addresses[lane];
    }
}

/// The stride of two or more lanes side by side, if all have one that readers take: 32 bits.
fn stride(addresses: &Addresses, lanes: Mask) -> Option<i32> {
    if lanes == 0 {
        return Some(0);
    }
    let first = lanes.trailing_zeros();
    let run = lanes >> first;
    if run == 1 || run & run.wrapping_add(1) != 0 {
        return None;
    }
    let mut pairs = lanes_of(lanes & lanes << 1);
    let way = |lane: usize| addresses[lane].wrapping_sub(addresses[lane - 1]) as i64;
    let stride = way(first as usize + 1);
    let stride = i32::try_from(stride).ok()?;
    pairs
        .all(|lane| way(lane) == i64::from(stride))
        .then_some(stride)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(addresses: &Addresses, lanes: Mask) -> String {
        let mut text = String::new();
        write(&mut text, addresses, lanes);
        text
    }

    #[test]
    fn every_mode_is_read() {
        let read = |text: &str, lanes| {
            let addresses = read(&mut text.split_ascii_whitespace(), lanes)?;
            Ok::<_, String>(addresses[..4].to_vec())
        };
        assert_eq!(read("0 0x10 0x30", 0b101), Ok(vec![0x10, 0, 0x30, 0]));
        assert_eq!(read("1 0x100 -8", 0b111), Ok(vec![0x100, 0xf8, 0xf0, 0]));
        assert_eq!(
            read("2 0x100 16 -32", 0b1101),
            Ok(vec![0x100, 0, 0x110, 0xf0])
        );
        assert_eq!(
            read("3 0x100", 1),
            Err("`3`, where an address mode belongs: 0, 1 or 2".into())
        );
        assert_eq!(
            read("2 0x100", 0b11),
            Err("``, where the way to the next lane's address belongs".into())
        );
    }

    #[test]
    fn the_shortest_mode_is_written() {
        let side_by_side: Addresses = std::array::from_fn(|lane| 0x1000 + 4 * lane as u64);
        assert_eq!(written(&side_by_side, u32::MAX), "1 0x1000 4");
        assert_eq!(written(&side_by_side, 0b1011), "2 0x1000 4 8");
        assert_eq!(written(&side_by_side, 1 << 31), "2 0x107c");
        assert_eq!(written(&side_by_side, 0), "1 0x0 0");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            lanes: u32,
            first: u64,
            stride in -64i64..64,
            scattered in proptest::option::of(proptest::array::uniform32(any::<u64>())),
        ) {
            let mut addresses = scattered.unwrap_or_else(|| {
                std::array::from_fn(|lane| first.wrapping_add_signed(stride * lane as i64))
            });
            for (lane, address) in addresses.iter_mut().enumerate() {
                *address *= u64::from(lanes >> lane & 1);
            }
            let text = written(&addresses, lanes);
            prop_assert_eq!(read(&mut text.split_ascii_whitespace(), lanes), Ok(addresses));
        }

        #[test]
        fn no_words_make_it_panic(text in "[0-9a-fx -]{0,80}", lanes: u32) {
            let _ = read(&mut text.split_ascii_whitespace(), lanes);
        }
    }
}
