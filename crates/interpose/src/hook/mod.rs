//! Serves CUDA runtimes that are linked into a program or a shared object.
//!
//! nvcc's default is a static runtime: its entry points are ordinary functions of the
//! program, which no library can stand in for. Their names are in the symbol table, so
//! before the program starts, the first bytes of each are overwritten with a jump to the
//! function of ours with the same name. The same is done to every object that is loaded
//! later, at the moment when the loader has mapped it and none of its code has run
//! ([`loader`]), and to NVIDIA's own `libcudart.so` if a program insists on one.

mod loader;
mod patch;
mod symbols;

pub use loader::warning;

use crate::boundary::guarded;
use crate::{heap, report};
use std::path::Path;

/// Runs before the constructors of the program and, because this library is linked with
/// `-z initfirst`, of the libraries that it is linked with.
#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = start;

#[cfg_attr(test, allow(dead_code))]
extern "C" fn start() {
    guarded("start", || {
        heap::survive_fork();
        loader::for_each_new(serve);
        loader::watch(serve_new);
    });
}

/// What the loader calls when it has mapped or unmapped something.
extern "C" fn serve_new() {
    guarded("dlopen", || loader::for_each_new(serve));
}

/// Redirects the entry points of one object, if it carries a CUDA runtime.
fn serve(path: &Path, base: usize) {
    let Some(found) = symbols::runtime_in(path) else {
        return;
    };
    if let Err(reason) = patch::redirect(&found, base) {
        report::sentence(&format!(
            "{} carries a CUDA runtime whose entry points cannot be redirected: {reason}; build \
             it with `-cudart shared`",
            path.display()
        ));
    }
}
