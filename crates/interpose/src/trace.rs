//! `lockstep -vv`: every CUDA call of the program with its arguments and its answer, one line each on
//! standard error, as it returns.

use crate::api::error_name;
use crate::nvml::error_text;
use crate::types::{Address, Dim3, In, Out, Text};
use crate::{registry, report};
use lockstep_protocol::CuResult;
use lockstep_protocol::library::CALLS_VARIABLE;
use std::fmt::Write;
use std::sync::OnceLock;

/// Numbers from here on are places rather than sizes.
const FIRST_PLACE: usize = 1 << 32;

/// Whether calls are printed.
pub fn is_on() -> bool {
    static ON: OnceLock<bool> = OnceLock::new();
    *ON.get_or_init(|| std::env::var_os(CALLS_VARIABLE).is_some())
}

/// Prints a call that has returned, if calls are printed.
macro_rules! trace {
    ($api:ident $name:ident ($($argument:ident),*) = $code:ident) => {
        crate::trace::trace!($api [stringify!($name)] ($($argument),*) = $code)
    };
    ($api:ident [$name:expr] ($($argument:ident),*) = $code:ident) => {
        if crate::trace::is_on() {
            #[allow(unused_imports)]
            use crate::trace::{Opaque as _, Readable as _};
            let arguments: &[(&str, String)] = &[
                $((stringify!($argument), (&crate::trace::Show(&$argument)).shown())),*
            ];
            crate::trace::$api($name, arguments, $code);
        }
    };
}
pub(crate) use trace;

/// A call of the runtime API.
pub fn runtime(name: &str, arguments: &[(&str, String)], code: i32) {
    line(name, arguments, error_name(code).unwrap_or("?"));
}

/// A call of the driver API.
pub fn driver(name: &str, arguments: &[(&str, String)], code: u32) {
    line(name, arguments, CuResult(code).name().unwrap_or("?"));
}

/// A call of NVML.
pub fn nvml(name: &str, arguments: &[(&str, String)], code: u32) {
    line(name, arguments, error_text(code).to_str().unwrap_or("?"));
}

fn line(name: &str, arguments: &[(&str, String)], answer: &str) {
    let mut text = format!("{name}(");
    for (index, (argument, value)) in arguments.iter().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        // Writing to a string cannot fail.
        let _ = write!(text, "{comma}{argument}: {value}");
    }
    report::sentence(&format!("{text}) = {answer}"));
}

/// An argument to print. A type that can be read is; of any other only its presence is shown: the
/// compiler takes the first of the two traits that fits.
pub struct Show<'a, T>(pub &'a T);

/// What can be read.
pub trait Readable {
    fn shown(&self) -> String;
}

/// What cannot.
pub trait Opaque {
    fn shown(&self) -> String;
}

impl<T: Value> Readable for Show<'_, T> {
    fn shown(&self) -> String {
        self.0.text()
    }
}

impl<T> Opaque for &Show<'_, T> {
    fn shown(&self) -> String {
        "...".into()
    }
}

/// Types of arguments that have a text.
pub trait Value {
    fn text(&self) -> String;
}

macro_rules! plain {
    ($($type:ty),*) => {
        $(impl Value for $type {
            fn text(&self) -> String {
                self.to_string()
            }
        })*
    };
}
plain!(i32, u32, u16, u8, i64, f32, bool);

impl Value for usize {
    fn text(&self) -> String {
        place(*self)
    }
}

impl Value for u64 {
    fn text(&self) -> String {
        place(*self as usize)
    }
}

/// A size as a number, an address as one, and the stub of a kernel as its name.
fn place(address: Address) -> String {
    if address < FIRST_PLACE {
        return address.to_string();
    }
    let kernel = registry::kernel_of_stub(address).unwrap_or(address);
    match registry::kernel_symbol(kernel) {
        Ok((_, name)) => name,
        Err(_) => format!("{address:#x}"),
    }
}

impl Value for Dim3 {
    fn text(&self) -> String {
        format!("({}, {}, {})", self.x, self.y, self.z)
    }
}

impl Value for Text {
    fn text(&self) -> String {
        self.get().map_or("null".into(), |text| format!("{text:?}"))
    }
}

/// What the call left there.
impl<T: Value + Copy> Value for Out<T> {
    fn text(&self) -> String {
        self.current()
            .map_or("null".into(), |value| format!("-> {}", value.text()))
    }
}

impl<T: Value + Copy> Value for In<T> {
    fn text(&self) -> String {
        self.get()
            .map_or("null".into(), |value| format!("&{}", value.text()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_shown_as_what_they_are() {
        struct Unknown;
        let (mut value, unknown) = (7usize, Unknown);
        let out = Out::<usize>::at(&raw mut value as usize);
        let grid = Dim3 { x: 2, y: 3, z: 1 };
        assert_eq!(Show(&4096usize).shown(), "4096");
        assert_eq!(Show(&0x2070_0000_0000usize).shown(), "0x207000000000");
        assert_eq!(Show(&out).shown(), "-> 7");
        assert_eq!(Show(&Out::<usize>::at(0)).shown(), "null");
        assert_eq!(Show(&grid).shown(), "(2, 3, 1)");
        assert_eq!((&Show(&unknown)).shown(), "...");
    }
}
