//! Libraries opened at run time, and tables of their functions.

use std::ffi::{CStr, CString, c_void};
use std::path::Path;

/// An open library. It is never closed: its functions may be called until the process ends.
#[derive(Clone, Copy)]
pub struct Library(*mut c_void);

// SAFETY: the handle is only passed to `dlsym`, which any thread may call.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

impl Library {
    /// Opens the first of `names` that can be opened; otherwise what the loader said last.
    ///
    /// A library that the program has already loaded is taken before any is read from disk: two
    /// copies of CUPTI in a process do not work together.
    pub fn open(names: &[&str]) -> Result<Self, String> {
        let known: Vec<CString> = names
            .iter()
            .filter_map(|name| CString::new(*name).ok())
            .collect();
        for flags in [libc::RTLD_NOW | libc::RTLD_NOLOAD, libc::RTLD_NOW] {
            for name in &known {
                // SAFETY: a terminated string; loading runs the library's own constructors.
                let handle = unsafe { libc::dlopen(name.as_ptr(), flags) };
                if !handle.is_null() {
                    return Ok(Self(handle));
                }
            }
        }
        // SAFETY: `dlerror` returns a terminated string of this thread, or null.
        let message = unsafe { libc::dlerror() };
        Err(if message.is_null() {
            format!("none of {} could be opened", names.join(", "))
        } else {
            // SAFETY: checked above.
            unsafe { CStr::from_ptr(message) }
                .to_string_lossy()
                .into_owned()
        })
    }

    /// The address of `name`.
    pub fn symbol(self, name: &CStr) -> Option<*mut c_void> {
        // SAFETY: an open handle and a terminated string.
        let address = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        (!address.is_null()).then_some(address)
    }
}

/// `LOCKSTEP_…` replaces the search, for tests and for libraries in unusual places.
pub fn overridden(variable: &str) -> Option<String> {
    let value = std::env::var(variable).ok()?;
    Path::new(&value).is_absolute().then_some(value)
}

/// A struct of functions found by name in a library.
macro_rules! function_table {
    ($(#[$documentation:meta])* $name:ident { $($field:ident = $symbol:literal: fn($($argument:ty),*) -> $result:ty;)* }) => {
        $(#[$documentation])*
        #[derive(Clone, Copy)]
        #[allow(missing_docs, reason = "each field is documented by the library under its symbol")]
        pub struct $name {
            $(pub $field: unsafe extern "C" fn($($argument),*) -> $result,)*
        }
        impl $name {
            /// Finds every function; otherwise the name of the first that is missing.
            pub(crate) fn find(library: $crate::dynamic::Library) -> Result<Self, &'static str> {
                Ok(Self {
                    $($field: {
                        let address = library.symbol($symbol).ok_or(stringify!($symbol))?;
                        // SAFETY: the symbol is the library's function of this signature.
                        unsafe {
                            std::mem::transmute::<*mut std::ffi::c_void, unsafe extern "C" fn($($argument),*) -> $result>(address)
                        }
                    },)*
                })
            }
        }
    };
}

pub(crate) use function_table;
