//! Names of ranges, domains and registered strings.

use super::abi::Attributes;
use crate::fair_mutex::FairMutex;
use crate::process::lock;
use crate::types::{In, Text};

/// Letters of a name that are kept.
const LONGEST: usize = 1024;

/// Kinds of messages.
const NARROW: i32 = 1;
const WIDE: i32 = 2;
const REGISTERED: i32 = 3;

/// Names of domains and strings; a handle is the place of its name here, from 1.
static NAMES: FairMutex<Vec<String>> = FairMutex::new(Vec::new());

/// A zero-terminated string.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct NarrowText(Text);

impl NarrowText {
    /// Its text; empty for null.
    pub fn get(self) -> String {
        let text = self.0.get().unwrap_or_default();
        text.chars().take(LONGEST).collect()
    }
}

/// A string of `wchar_t` that ends with a zero.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct WideText(In<u32>);

impl WideText {
    /// Its text; empty for null.
    pub fn get(self) -> String {
        let letters = (0..LONGEST).map_while(|index| self.0.at(index).ok());
        let letters = letters.take_while(|letter| *letter != 0);
        letters
            .map(|letter| char::from_u32(letter).unwrap_or(char::REPLACEMENT_CHARACTER))
            .collect()
    }
}

/// Keeps a name: its handle.
pub fn register(name: String) -> usize {
    let mut names = lock(&NAMES);
    names.push(name);
    names.len()
}

/// The name behind a handle; empty for one that nobody has.
fn registered(handle: usize) -> String {
    let names = lock(&NAMES);
    let place = handle.checked_sub(1);
    place
        .and_then(|place| names.get(place).cloned())
        .unwrap_or_default()
}

/// The name of a domain.
pub fn domain(handle: usize) -> String {
    registered(handle)
}

/// The message of a range.
pub fn message(attributes: In<Attributes>) -> String {
    // Nothing is known of what is there beyond the size that the program says.
    let filled = In(attributes.0.cast::<[u16; 2]>()).get();
    if !filled.is_ok_and(|[_, size]| usize::from(size) >= size_of::<Attributes>()) {
        return String::new();
    }
    let Ok(attributes) = attributes.get() else {
        return String::new();
    };
    let at = attributes.message;
    match attributes.message_kind {
        NARROW => NarrowText(Text::at(at)).get(),
        WIDE => WideText(In(at as *const u32)).get(),
        REGISTERED => registered(at),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_and_unknown_handles_are_empty() {
        let wide = [0x73, 0xf6, 0xd800, 0];
        assert_eq!(WideText(In(wide.as_ptr())).get(), "sö\u{fffd}");
        assert_eq!(WideText(In(std::ptr::null())).get(), "");
        let narrow = NarrowText(Text::at(c"solve".as_ptr() as usize));
        assert_eq!(narrow.get(), "solve");
        assert_eq!(domain(0), "");
        assert_eq!(domain(usize::MAX), "");
        let handle = register("library".into());
        assert_eq!(domain(handle), "library");
    }
}
