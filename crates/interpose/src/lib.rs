//! What is loaded into the CUDA program.
//!
//! The program calls CUDA's runtime and driver API; the functions here answer, by
//! themselves where they can and otherwise by asking the simulator over a socket. Three
//! ways lead in, and all end at the same table of `entries`:
//!
//! - the shims (`libcuda.so.1`, `libcudart.so.*`, `libnvidia-ml.so.1`) for programs that load
//!   those libraries;
//! - the hooks (`hook`) for programs and shared objects that carry the runtime inside them;
//! - `cuGetProcAddress` and its kin (`api::entry_point`).
//!
//! This library holds all state. `api` has one file a chapter of CUDA's documentation;
//! a call is implemented by writing its function there, in `runtime!` or `driver!`. What
//! nobody wrote answers 801 and is reported to the simulator. `nvml` does the same for NVML;
//! `nvtx` hears of the ranges of a program where a run asks for them.
//!
//! It runs inside somebody else's program: it connects only at the first CUDA call, raises
//! no signal, lets no panic out, keeps no thread-local value with a destructor (calls still
//! come from `atexit` handlers), and survives `fork`.

mod api;
mod boundary;
mod call;
mod context;
mod entries;
mod fair_mutex;
mod fresh;
mod graph;
mod heap;
mod hook;
mod host_name;
mod image;
mod managed;
mod nvml;
mod nvtx;
mod opaque;
mod options;
mod process;
mod registry;
mod report;
mod spin;
mod streams;
mod thread;
mod trace;
mod types;
mod views;
mod watch;
