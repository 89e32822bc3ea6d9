//! What the code that nvcc generates calls before `main` and around launches.
//!
//! Registration only remembers; nothing is loaded and no connection made until a kernel or
//! variable is used.

use super::texture_reference;
use crate::boundary::RuntimeError;
use crate::boundary::{guarded, runtime};
use crate::context::current_for_runtime;
use crate::opaque::{self, Kind};
use crate::registry;
use crate::types::{Address, Out, Text};

fn library(handle: Address) -> Option<u64> {
    opaque::decode(Kind::Library, handle)
}

#[unsafe(export_name = "lockstep___cudaRegisterFatBinary")]
extern "C" fn register_fat_binary(wrapper: Address) -> Address {
    let number = guarded("__cudaRegisterFatBinary", || {
        registry::register_library(wrapper)
    });
    number.map_or(0, |number| opaque::encode(Kind::Library, number))
}

#[unsafe(export_name = "lockstep___cudaRegisterFatBinaryEnd")]
extern "C" fn register_fat_binary_end(_handle: Address) {}

#[unsafe(export_name = "lockstep___cudaUnregisterFatBinary")]
extern "C" fn unregister_fat_binary(handle: Address) {
    guarded("__cudaUnregisterFatBinary", || {
        if let Some(library) = library(handle) {
            registry::unregister_library(library);
            texture_reference::forget(library);
        }
    });
}

#[unsafe(export_name = "lockstep___cudaRegisterFunction")]
extern "C" fn register_function(
    handle: Address,
    stub: Address,
    _device_function: Text,
    name: Text,
    _thread_limit: i32,
    _thread: Address,
    _block: Address,
    _block_size: Address,
    _grid_size: Address,
    _warp_size: Address,
) {
    guarded("__cudaRegisterFunction", || {
        if let (Some(library), Ok(name)) = (library(handle), name.get()) {
            registry::register_kernel(library, stub, name);
        }
    });
}

#[unsafe(export_name = "lockstep___cudaRegisterVar")]
extern "C" fn register_variable(
    handle: Address,
    host: Address,
    _device_address: Text,
    name: Text,
    _external: i32,
    _bytes: usize,
    _constant: i32,
    _global: i32,
) {
    guarded("__cudaRegisterVar", || {
        if let (Some(library), Ok(name)) = (library(handle), name.get()) {
            registry::register_variable(library, host, name);
        }
    });
}

#[unsafe(export_name = "lockstep___cudaRegisterManagedVar")]
extern "C" fn register_managed(
    handle: Address,
    pointer: Address,
    _device_address: Text,
    name: Text,
    _external: i32,
    _bytes: usize,
    _constant: i32,
    _global: i32,
) {
    guarded("__cudaRegisterManagedVar", || {
        if let (Some(library), Ok(name)) = (library(handle), name.get()) {
            registry::register_managed(library, pointer, name);
        }
    });
}

/// Called before the host first reads a managed variable: it must be in its place.
#[unsafe(export_name = "lockstep___cudaInitModule")]
extern "C" fn initialize_module(handle: Address) -> u8 {
    let outcome = guarded("__cudaInitModule", || {
        let context = current_for_runtime().ok()?;
        registry::module_of_library(library(handle)?, context).ok()
    });
    u8::from(outcome.flatten().is_some())
}

runtime! {
    fn __cudaGetKernel(kernel: Out<Address>, stub: Address) {
        let found = registry::kernel_of_stub(stub);
        Ok(kernel.set(found.ok_or(RuntimeError::INVALID_DEVICE_FUNCTION)?)?)
    }

    fn cudaGetKernel(kernel: Out<Address>, stub: Address) {
        let found = registry::kernel_of_stub(stub);
        Ok(kernel.set(found.ok_or(RuntimeError::INVALID_DEVICE_FUNCTION)?)?)
    }
}
