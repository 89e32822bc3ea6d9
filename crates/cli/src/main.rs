//! The `lockstep` command.

use std::process::ExitCode;

/// Workers start blocks, which takes memory, at the same time: the allocator of the C library grows its
/// arenas by changing the protection of pages, and every such call holds up all threads that touch a new one.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    lockstep_cli::main()
}
