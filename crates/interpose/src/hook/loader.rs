//! The loader's list of objects, and its announcement of new ones.
//!
//! The loader keeps a list for debuggers (`_r_debug`) and calls an empty function
//! (`r_brk`) whenever the list has changed: after a new object is mapped, before it is
//! relocated and before any of its constructors run. A debugger puts a breakpoint there; we
//! put a jump. Hooking `dlopen` by name would come too late, because the constructors of
//! the object register its kernels before `dlopen` returns.

use super::patch;
use crate::fair_mutex::FairMutex;
use crate::process::lock;
use std::collections::BTreeSet;
use std::ffi::{CStr, OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;

/// Why new objects are not announced, if they are not. It is said when the program turns
/// out to use CUDA, not to every shell that inherits the preload.
static UNWATCHED: OnceLock<String> = OnceLock::new();

/// `struct link_map`, as far as it is public.
#[repr(C)]
struct LinkMap {
    base: usize,
    name: *const c_char,
    dynamic: usize,
    next: *const LinkMap,
}

/// `struct r_debug`, as far as it is public.
#[repr(C)]
struct Debug {
    version: i32,
    objects: *const LinkMap,
    changed: usize,
    state: i32,
}

/// The list is complete.
const CONSISTENT: i32 = 0;

/// Objects that were looked at, by base and dynamic section.
static SEEN: FairMutex<BTreeSet<(usize, usize)>> = FairMutex::new(BTreeSet::new());

fn debug() -> Option<&'static Debug> {
    // SAFETY: a look-up by a constant name.
    let symbol: *const c_void = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_r_debug".as_ptr()) };
    // SAFETY: the C library documents the symbol as this structure, which is never freed.
    unsafe { symbol.cast::<Debug>().as_ref() }
}

/// Calls `body` with the path and base of each object that is new since the last time.
pub fn for_each_new(body: impl Fn(&Path, usize)) {
    let Some(debug) = debug() else {
        return;
    };
    if debug.state != CONSISTENT {
        return;
    }
    let mut seen = lock(&SEEN);
    let mut present = BTreeSet::new();
    let mut place = debug.objects;
    let mut main = true;
    // SAFETY: the list is consistent now, and only the loader changes it, which is either
    // not running (before the program starts) or waiting for us in the function it called.
    while let Some(object) = unsafe { place.as_ref() } {
        let key = (object.base, object.dynamic);
        present.insert(key);
        if !seen.contains(&key) {
            if main {
                body(Path::new("/proc/self/exe"), object.base);
            } else if !object.name.is_null() {
                // SAFETY: names in the list end with a zero.
                let name = unsafe { CStr::from_ptr(object.name) };
                body(Path::new(OsStr::from_bytes(name.to_bytes())), object.base);
            }
        }
        main = false;
        place = object.next;
    }
    *seen = present;
}

/// Has `announce` called whenever the list has changed.
pub fn watch(announce: extern "C" fn()) {
    let Some(debug) = debug() else {
        return;
    };
    let function = debug.changed;
    if function == 0 {
        let _ = UNWATCHED.set("it has no function for debuggers".into());
        return;
    }
    // SAFETY: the loader's own code is mapped and readable, and continues after the function.
    let bytes = unsafe { std::slice::from_raw_parts(function as *const u8, 16) };
    if !returns_at_once(bytes) {
        let _ = UNWATCHED.set("its function for debuggers is not as expected".into());
        return;
    }
    let outcome = patch::writable(function, function + patch::JUMP_BYTES, || {
        // SAFETY: the function is empty and padded to 16 bytes, the pages are writable, and
        // only the loader calls it, which is not running now.
        unsafe { patch::write(function, announce as *const () as usize) };
    });
    if let Err(error) = outcome {
        let _ = UNWATCHED.set(error.to_string());
    }
}

/// A sentence if objects that are loaded later go unnoticed.
pub fn warning() -> Option<String> {
    let reason = UNWATCHED.get()?;
    Some(format!(
        "the loader of this C library cannot be watched ({reason}): shared objects that carry a \
         static CUDA runtime and are loaded by dlopen are not served"
    ))
}

/// Whether code is an empty function followed by padding up to 16 bytes.
fn returns_at_once(bytes: &[u8]) -> bool {
    const RETURN: u8 = 0xc3;
    const BRANCH_TARGET: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
    let body = bytes.strip_prefix(&BRANCH_TARGET).unwrap_or(bytes);
    let Some((&RETURN, padding)) = body.split_first() else {
        return false;
    };
    // Compilers pad with long no-operations (66…, 0f 1f…, 2e…), short ones or traps.
    matches!(padding[0], 0x66 | 0x0f | 0x2e | 0x90 | 0xcc)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_function_is_recognised() {
        let pad = |bytes: &[u8]| {
            let mut all = bytes.to_vec();
            all.resize(16, 0x90);
            all
        };
        assert!(returns_at_once(&pad(&[0xc3, 0x66, 0x66, 0x2e, 0x0f, 0x1f])));
        assert!(returns_at_once(&pad(&[
            0xf3, 0x0f, 0x1e, 0xfa, 0xc3, 0x0f, 0x1f
        ])));
        assert!(!returns_at_once(&pad(&[0x48, 0x8d, 0x05])));
        assert!(!returns_at_once(&pad(&[0xc3, 0x48, 0x89])));
    }

    #[test]
    fn the_list_names_the_program_and_its_libraries() {
        let names = std::cell::RefCell::new(Vec::new());
        for_each_new(|path, _| names.borrow_mut().push(path.to_path_buf()));
        let names = names.into_inner();
        assert_eq!(names[0], Path::new("/proc/self/exe"));
        assert!(
            names
                .iter()
                .any(|path| path.to_string_lossy().contains("libc.so"))
        );
    }
}
