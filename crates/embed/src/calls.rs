//! What a simulation is given: code, memory, launches.

use crate::guard::{self, Failure};
use crate::{LockstepGpu, LockstepLaunch, LockstepStatus};
use lockstep_simulation::{EmbeddedGpu, EmbeddedLaunch};
use std::ffi::{c_char, c_void};

/// Loads PTX text, a cubin or a fat binary.
///
/// # Safety
/// The pointers are good; `image` for `image_bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_load_module(
    gpu: *mut LockstepGpu,
    image: *const u8,
    image_bytes: usize,
    module: *mut u32,
) -> LockstepStatus {
    // SAFETY: as the caller says.
    guard::status(unsafe {
        guard::on(gpu, |gpu| {
            let image = guard::slice(image, image_bytes, "bytes of code")?;
            guard::put(module, gpu.load_module(image)?)
        })
    })
}

/// Finds a kernel of a module by its (mangled) name.
///
/// # Safety
/// The pointers are good.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_find_kernel(
    gpu: *mut LockstepGpu,
    module: u32,
    name: *const c_char,
    kernel: *mut u32,
) -> LockstepStatus {
    // SAFETY: as the caller says.
    guard::status(unsafe {
        guard::on(gpu, |gpu| {
            let name = guard::text(name, "name of a kernel")?;
            guard::put(kernel, gpu.find_kernel(module, name)?)
        })
    })
}

/// Takes memory of the GPU, which reads zero. Addresses are the same in every simulation that asks for the same.
///
/// # Safety
/// The pointers are good.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_allocate(
    gpu: *mut LockstepGpu,
    bytes: u64,
    address: *mut u64,
) -> LockstepStatus {
    // SAFETY: as the caller says.
    guard::status(unsafe { guard::on(gpu, |gpu| guard::put(address, gpu.allocate(bytes)?)) })
}

/// Writes memory of the GPU, as a copy of the host that takes no time.
///
/// # Safety
/// The pointers are good; `data` for `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_write(
    gpu: *mut LockstepGpu,
    address: u64,
    data: *const c_void,
    bytes: usize,
) -> LockstepStatus {
    // SAFETY: as the caller says.
    guard::status(unsafe {
        guard::on(gpu, |gpu| {
            let data = guard::slice(data.cast::<u8>(), bytes, "bytes to write")?;
            Ok(gpu.write(address, data)?)
        })
    })
}

/// Reads memory of the GPU.
///
/// # Safety
/// The pointers are good; `data` may be written for `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_read(
    gpu: *mut LockstepGpu,
    address: u64,
    data: *mut c_void,
    bytes: usize,
) -> LockstepStatus {
    // SAFETY: as the caller says.
    guard::status(unsafe {
        guard::on(gpu, |gpu| {
            if data.is_null() && bytes > 0 {
                return Err(Failure::argument("there is no place for the bytes"));
            }
            // Before room is made for as many as somebody says.
            gpu.covered(address, bytes as u64)?;
            let mut held = vec![0; bytes];
            gpu.read(address, &mut held)?;
            std::ptr::copy(held.as_ptr(), data.cast(), bytes);
            Ok(())
        })
    })
}

/// Hands a kernel to the GPU; it begins when time passes.
///
/// # Safety
/// The pointers are good, and those of the arguments for as many bytes as their parameters have.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_launch(
    gpu: *mut LockstepGpu,
    launch: *const LockstepLaunch,
    number: *mut u32,
) -> LockstepStatus {
    // SAFETY: as the caller says.
    guard::status(unsafe {
        guard::on(gpu, |gpu| {
            let launch = launch.as_ref();
            let launch = launch.ok_or_else(|| Failure::argument("there is no launch"))?;
            let prepared = EmbeddedLaunch {
                kernel: launch.kernel,
                config: launch.config(),
                arguments: arguments(gpu, launch)?,
                queue: launch.queue,
            };
            guard::put(number, gpu.launch(&prepared)?)
        })
    })
}

/// The bytes of the arguments.
///
/// # Safety
/// The pointers are good.
unsafe fn arguments(gpu: &EmbeddedGpu, launch: &LockstepLaunch) -> Result<Vec<Vec<u8>>, Failure> {
    let parameters = gpu.parameters(launch.kernel)?;
    // SAFETY: as the caller says.
    let given = unsafe { guard::slice(launch.arguments, launch.arguments_count, "arguments")? };
    if given.len() != parameters.len() {
        let (expected, found) = (parameters.len(), given.len());
        return Err(Failure::argument(format!(
            "the kernel has {expected} parameters, and {found} arguments were given"
        )));
    }
    let mut all = Vec::new();
    for (place, parameter) in given.iter().zip(parameters) {
        let bytes = parameter.size as usize;
        // SAFETY: as the caller says.
        let held = unsafe { guard::slice(place.cast::<u8>(), bytes, "bytes of an argument")? };
        all.push(held.to_vec());
    }
    Ok(all)
}
