//! Loaded through `LD_PRELOAD`: name ourselves to the CUDA driver.

use std::ffi::CStr;

const VARIABLE: &CStr = c"CUDA_INJECTION64_PATH";

#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = at_load;

/// Runs when the library is loaded, before the program's `main` if it is preloaded.
extern "C" fn at_load() {
    let preloaded = std::env::var_os("LD_PRELOAD")
        .is_some_and(|list| list.to_string_lossy().contains("liblockstep_injector"));
    if !preloaded {
        return;
    }
    // SAFETY: a place for the answer; the address is one of this library's own functions.
    let path = unsafe {
        let mut found: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(at_load as *const libc::c_void, &mut found) == 0
            || found.dli_fname.is_null()
        {
            return;
        }
        found.dli_fname
    };
    // SAFETY: terminated strings; before `main` there is one thread. An earlier value stays.
    unsafe { libc::setenv(VARIABLE.as_ptr(), path, 0) };
}
