//! The `lockstep-tools` command, which `lockstep` starts.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    lockstep_tools::main()
}
