//! Arguments as C passes them.
//!
//! A pointer argument has one of the types below instead of a raw pointer. Only the C
//! caller makes such values, and CUDA's contract is that a pointer which is not null is
//! valid; the methods check for null and lean on that contract for the rest.

use lockstep_protocol::CuResult;
use std::ffi::{CStr, c_char, c_void};

/// A pointer to untyped memory of the program or of the window.
pub type Address = usize;

/// A pointer that a result is written through.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Out<T>(*mut T);

impl<T> Out<T> {
    /// Writes the result; a null pointer is an invalid value.
    pub fn set(self, value: T) -> Result<(), CuResult> {
        if self.0.is_null() {
            return Err(CuResult::INVALID_VALUE);
        }
        self.set_if_wanted(value);
        Ok(())
    }

    /// Writes the result unless the caller passed null.
    pub fn set_if_wanted(self, value: T) {
        if !self.0.is_null() {
            // SAFETY: by the contract above the pointer is valid for writing a `T`.
            unsafe { self.0.write_unaligned(value) }
        }
    }

    /// Checks for null ahead of work that should not be done in vain.
    pub fn check(self) -> Result<(), CuResult> {
        if self.0.is_null() {
            return Err(CuResult::INVALID_VALUE);
        }
        Ok(())
    }

    /// The element at an index of an array of results.
    pub fn element(self, index: usize) -> Self {
        Self(self.0.wrapping_add(index))
    }

    /// A place that the program named by a number.
    pub fn at(address: Address) -> Self {
        Self(address as *mut T)
    }

    /// The pointer itself.
    pub fn pointer(self) -> *mut T {
        self.0
    }
}

impl<T: Copy> Out<T> {
    /// The value that is there now, of a parameter that goes both ways.
    pub fn current(self) -> Result<T, CuResult> {
        In(self.0.cast_const()).get()
    }
}

impl Out<u8> {
    /// Writes bytes; a null pointer is an invalid value.
    pub fn set_bytes(self, bytes: &[u8]) -> Result<(), CuResult> {
        self.check()?;
        // SAFETY: by the contract above the caller's buffer holds what it asked for.
        unsafe { self.0.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        Ok(())
    }

    /// Writes text that is cut to fit a buffer of `length` bytes, zero included.
    pub fn set_text(self, text: &str, length: usize) -> Result<(), CuResult> {
        if length == 0 {
            return Err(CuResult::INVALID_VALUE);
        }
        let mut bytes = text.as_bytes()[..text.len().min(length - 1)].to_vec();
        bytes.push(0);
        self.set_bytes(&bytes)
    }
}

/// Where an argument is read from.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct In<T>(pub *const T);

impl<T: Copy> In<T> {
    /// Reads it; a null pointer is an invalid value.
    pub fn get(self) -> Result<T, CuResult> {
        self.at(0)
    }

    /// Reads the element at an index.
    pub fn at(self, index: usize) -> Result<T, CuResult> {
        if self.0.is_null() {
            return Err(CuResult::INVALID_VALUE);
        }
        // SAFETY: by the contract above the pointer is valid for reading as many values as
        // the caller said.
        Ok(unsafe { self.0.add(index).read_unaligned() })
    }

    /// Whether the caller passed null.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The pointer as a number.
    pub fn address(self) -> Address {
        self.0 as Address
    }
}

impl In<u8> {
    /// A copy of `length` bytes.
    pub fn bytes(self, length: usize) -> Result<Vec<u8>, CuResult> {
        if self.0.is_null() {
            return Err(CuResult::INVALID_VALUE);
        }
        // SAFETY: by the contract above that many bytes are there.
        Ok(unsafe { std::slice::from_raw_parts(self.0, length) }.to_vec())
    }
}

/// A zero-terminated string.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Text(*const c_char);

impl Text {
    /// A string that the program named by a number.
    pub fn at(address: Address) -> Self {
        Self(address as *const c_char)
    }

    /// The string; null is an invalid value.
    pub fn get(self) -> Result<String, CuResult> {
        if self.0.is_null() {
            return Err(CuResult::INVALID_VALUE);
        }
        // SAFETY: by the contract above the string ends with a zero.
        let text = unsafe { CStr::from_ptr(self.0) };
        Ok(text.to_string_lossy().into_owned())
    }
}

/// `dim3`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dim3 {
    /// First dimension.
    pub x: u32,
    /// Second dimension.
    pub y: u32,
    /// Third dimension.
    pub z: u32,
}

impl From<Dim3> for [u32; 3] {
    fn from(dimensions: Dim3) -> Self {
        [dimensions.x, dimensions.y, dimensions.z]
    }
}

/// `cudaMemLocation`, `CUmemLocation`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Location {
    /// 1 device, 2 host, 3 a NUMA node of the host, 4 the nearest one.
    pub kind: i32,
    /// Ordinal or node.
    pub number: i32,
}

/// A host function: `void (*)(void*)`.
pub type HostFunction = Option<unsafe extern "C" fn(*mut c_void)>;

/// A stream callback: `void (*)(stream, status, void*)`.
pub type StreamCallback = Option<unsafe extern "C" fn(Address, i32, *mut c_void)>;

/// Dynamic shared memory as a function of block size.
pub type SharedMemoryOfBlock = Option<unsafe extern "C" fn(i32) -> usize>;
