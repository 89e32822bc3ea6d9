//! Structures and tables of NVTX, as its headers have them since version 2.

use crate::types::In;
use std::ffi::c_void;
use std::ptr;

/// The table of NVTX that leads to its functions.
const CALLBACKS: u32 = 1;

/// What a program says of a range.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Attributes {
    /// Of NVTX.
    pub version: u16,
    /// Bytes that the program filled in.
    pub size: u16,
    /// Category, colour and payload, with their kinds.
    pub skipped: [u32; 7],
    /// What the message is: 1 narrow text, 2 wide text, 3 a registered string.
    pub message_kind: i32,
    padding: i32,
    /// Address of the text, or the handle of the string.
    pub message: usize,
}

/// How NVTX gives its tables.
pub type GetExportTable = extern "C" fn(u32) -> *const c_void;

/// The table by which functions are found.
#[repr(C)]
#[derive(Clone, Copy)]
struct Callbacks {
    size: usize,
    module: Option<extern "C" fn(u32, *mut *mut *mut *const c_void, *mut u32) -> i32>,
}

/// A function of ours, which suits the signature of its number.
#[derive(Clone, Copy)]
pub struct Function(pub *const c_void);

/// A function of ours with its signature, so that the compiler holds both against each other.
macro_rules! function {
    ($name:ident($($type:ty),*) $(-> $result:ty)?) => {
        crate::nvtx::abi::Function($name as extern "C" fn($($type),*) $(-> $result)? as *const std::ffi::c_void)
    };
}
pub(crate) use function;

/// Places of the functions of one module of NVTX.
pub struct Table {
    places: *mut *mut *const c_void,
    size: usize,
}

impl Table {
    /// That of a module, if this NVTX has it.
    pub fn find(export: GetExportTable, module: u32) -> Option<Self> {
        let callbacks = In(export(CALLBACKS).cast::<Callbacks>()).get().ok()?;
        let find = callbacks
            .module
            .filter(|_| callbacks.size >= size_of::<Callbacks>())?;
        let (mut places, mut size) = (ptr::null_mut(), 0);
        let found = find(module, &raw mut places, &raw mut size) != 0;
        (found && !places.is_null()).then_some(Self {
            places,
            size: size as usize,
        })
    }

    /// Puts functions in their places; a number that this NVTX lacks is left out.
    pub fn set(&self, functions: &[(usize, Function)]) {
        for (number, function) in functions.iter().filter(|(number, _)| *number < self.size) {
            // SAFETY: NVTX says that the array has so many pointers, each null or to a place for a function of this
            // number's signature.
            unsafe {
                let place = *self.places.add(*number);
                if !place.is_null() {
                    place.write(function.0);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_lies_where_nvtx_has_it() {
        assert_eq!(std::mem::offset_of!(Attributes, message_kind), 32);
        assert_eq!(std::mem::offset_of!(Attributes, message), 40);
        assert_eq!(size_of::<Attributes>(), 48);
    }
}
