//! NVML (`libnvidia-ml.so.1`): the simulated GPUs as monitoring programs see them.
//!
//! One file a chapter. A function is implemented by writing it in `nvml!`; every other name of
//! `api/nvml.txt` answers that the GPU does not support it. That is also the answer for what no
//! model knows, such as power and temperature: no figure is invented.
//!
//! What a GPU is comes with the simulator's welcome; how it is used is asked for over a connection
//! of its own, beside the order of CUDA calls (`docs/decisions/0050-nvml-looks-on.md`). So looking
//! takes no simulated time, changes no digest, and a process that only looks may fork and use CUDA
//! in its children.
//!
//! `CUDA_VISIBLE_DEVICES` has no say here, as with a real driver: NVML shows all devices.
//!
//! Start reading at [`library::Library`].

mod boundary;
mod clock;
mod device;
mod error;
mod event;
mod fabric;
mod field;
mod library;
mod memory;
mod mode;
mod nvlink;
mod pci;
mod process;
mod reliability;
mod system;
mod topology;

pub use error::text as error_text;
