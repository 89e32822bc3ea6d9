//! A GPU as C has it: making, saving, loading and giving it back.

use crate::guard::{self, Failure, Handle, Troubles};
use crate::listeners::Listeners;
use lockstep_protocol::LaunchConfig;
use lockstep_simulation::{Description, EmbeddedGpu, Mode};
use std::ffi::{c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How a call ended.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockstepStatus {
    /// All is well.
    Ok = 0,
    /// A pointer, number, name or address is none.
    InvalidArgument = 1,
    /// The GPU cannot be built as it was described.
    Configuration = 2,
    /// Code cannot be loaded.
    Module = 3,
    /// A launch was refused, or a kernel failed. Other launches are given up with it.
    Fault = 4,
    /// Saved state cannot be taken on.
    State = 5,
    /// The simulator itself failed; the GPU can only be destroyed.
    Internal = 6,
}

/// What is simulated.
#[repr(C)]
pub struct LockstepOptions {
    /// GPU of the catalogue, or the path of a .toml file; null for `h200`.
    pub gpu: *const c_char,
    /// Changes of settings, each as `KEY=VALUE`.
    pub settings: *const *const c_char,
    /// How many there are.
    pub settings_count: usize,
    /// Worker threads; 0 for as many as there are processors. No result depends on them.
    pub threads: u32,
    /// Not 0 for values only, without time.
    pub functional: u32,
}

/// One launch.
#[repr(C)]
pub struct LockstepLaunch {
    /// What `lockstep_find_kernel` answered.
    pub kernel: u32,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Dynamic shared memory of a block, in bytes.
    pub dynamic_shared: u32,
    /// Launches of one queue run one after the other, those of different queues side by side.
    pub queue: u64,
    /// Where each argument lies; it has as many bytes as its parameter.
    pub arguments: *const *const c_void,
    /// How many there are.
    pub arguments_count: usize,
}

impl LockstepLaunch {
    /// Grid, block and shared memory.
    pub(crate) fn config(&self) -> LaunchConfig {
        LaunchConfig {
            grid: self.grid,
            block: self.block,
            dynamic_shared: self.dynamic_shared,
        }
    }
}

/// One simulated GPU.
pub struct LockstepGpu {
    gpu: EmbeddedGpu,
    troubles: Troubles,
    pub(crate) listeners: Listeners,
    /// What was saved last.
    saved: Vec<u8>,
}

impl LockstepGpu {
    fn new(gpu: EmbeddedGpu) -> Self {
        Self {
            gpu,
            troubles: Troubles::default(),
            listeners: Listeners::default(),
            saved: Vec::new(),
        }
    }
}

impl Handle for LockstepGpu {
    type Inside = EmbeddedGpu;

    fn parts(&mut self) -> (&mut EmbeddedGpu, &mut Troubles) {
        (&mut self.gpu, &mut self.troubles)
    }

    fn troubles(&self) -> &Troubles {
        &self.troubles
    }
}

/// Makes an idle GPU at time zero. On failure `message`, if it is not null, gets the reason, cut to `message_bytes`.
///
/// # Safety
/// The pointers are good, and those in `options` too.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_create(
    options: *const LockstepOptions,
    gpu: *mut *mut LockstepGpu,
    message: *mut c_char,
    message_bytes: usize,
) -> LockstepStatus {
    // SAFETY: as the caller says.
    unsafe {
        made(gpu, message, message_bytes, || {
            Ok(LockstepGpu::new(EmbeddedGpu::new(&description(options)?)?))
        })
    }
}

/// Makes a GPU that goes on where another was saved, with the same GPU, settings and mode. On failure `message`, if it
/// is not null, gets the reason, cut to `message_bytes`.
///
/// # Safety
/// The pointers are good, and those in `options` too.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_load(
    options: *const LockstepOptions,
    saved: *const u8,
    saved_bytes: usize,
    gpu: *mut *mut LockstepGpu,
    message: *mut c_char,
    message_bytes: usize,
) -> LockstepStatus {
    // SAFETY: as the caller says.
    unsafe {
        made(gpu, message, message_bytes, || {
            let saved = guard::slice(saved, saved_bytes, "bytes of saved state")?;
            let gpu = EmbeddedGpu::load(&description(options)?, saved)?;
            Ok(LockstepGpu::new(gpu))
        })
    }
}

/// Saves everything, also in the middle of kernels. The bytes stay until the next time, or until the GPU is destroyed.
///
/// # Safety
/// The pointers are good.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_save(
    gpu: *mut LockstepGpu,
    saved: *mut *const u8,
    saved_bytes: *mut usize,
) -> LockstepStatus {
    // SAFETY: as the caller says.
    let bytes = match unsafe { guard::on(gpu, |gpu| Ok(gpu.save())) } {
        Ok(bytes) => bytes,
        Err(status) => return status,
    };
    // SAFETY: the call above found the pointer good, and nothing else is borrowed.
    let handle = unsafe { &mut *gpu };
    handle.saved = bytes;
    let (first, count) = (handle.saved.as_ptr(), handle.saved.len());
    // SAFETY: as the caller says.
    guard::status(unsafe {
        guard::on(gpu, |_| {
            guard::put(saved, first)?;
            guard::put(saved_bytes, count)
        })
    })
}

/// Gives a GPU back; null is nothing to give.
///
/// # Safety
/// The GPU is from this library and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_destroy(gpu: *mut LockstepGpu) {
    // SAFETY: as the caller says.
    unsafe { given_back(gpu) };
}

/// Drops what `made` has made, if it is something.
///
/// # Safety
/// It is null or from `made`, and is not used again.
pub(crate) unsafe fn given_back<T>(handle: *mut T) {
    if !handle.is_null() {
        // SAFETY: it came from a box of `made`, and the caller gives it up.
        let handle = unsafe { Box::from_raw(handle) };
        // A panic while dropping must not leave either.
        let _ = catch_unwind(AssertUnwindSafe(move || drop(handle)));
    }
}

/// Why the last call on a GPU failed; it stays until the next failure.
///
/// # Safety
/// The pointer is null or a GPU of this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_message(gpu: *const LockstepGpu) -> *const c_char {
    // SAFETY: as the caller says.
    unsafe { guard::message(gpu, c"there is no GPU") }
}

/// Makes a handle for C, or says why not.
///
/// # Safety
/// The pointers are good.
pub(crate) unsafe fn made<T>(
    place: *mut *mut T,
    message: *mut c_char,
    message_bytes: usize,
    make: impl FnOnce() -> Result<T, Failure>,
) -> LockstepStatus {
    let outcome = match catch_unwind(AssertUnwindSafe(make)) {
        Ok(Ok(made)) => {
            let handle = Box::into_raw(Box::new(made));
            // SAFETY: as the caller says.
            let put = unsafe { guard::put(place, handle) };
            if put.is_err() {
                // SAFETY: it was just made, and nobody knows of it.
                drop(unsafe { Box::from_raw(handle) });
            }
            put
        }
        Ok(Err(failure)) => Err(failure),
        Err(_) => Err(Failure::internal()),
    };
    let Err(failure) = outcome else {
        return LockstepStatus::Ok;
    };
    if !message.is_null() && message_bytes > 0 {
        let count = failure.message.floor_char_boundary(message_bytes - 1);
        // SAFETY: the caller says that there is room for so many bytes.
        unsafe {
            std::ptr::copy_nonoverlapping(failure.message.as_ptr(), message.cast(), count);
            message.add(count).write(0);
        }
    }
    failure.status
}

/// What C described.
///
/// # Safety
/// The pointers are good.
pub(crate) unsafe fn description(options: *const LockstepOptions) -> Result<Description, Failure> {
    // SAFETY: as the caller says.
    let options = unsafe { options.as_ref() };
    let options = options.ok_or_else(|| Failure::argument("there are no options"))?;
    let gpu = match options.gpu.is_null() {
        true => lockstep_config::DEFAULT_GPU,
        // SAFETY: as the caller says.
        false => unsafe { guard::text(options.gpu, "GPU")? },
    };
    // SAFETY: as the caller says.
    let given = unsafe { guard::slice(options.settings, options.settings_count, "settings")? };
    let mut settings = Vec::new();
    for setting in given {
        // SAFETY: as the caller says.
        settings.push(unsafe { guard::text(*setting, "setting")? });
    }
    let config = lockstep_config::load(Some(gpu), &settings).map_err(|error| Failure {
        status: LockstepStatus::Configuration,
        message: error.to_string(),
    })?;
    let mut description = Description::new(gpu, config);
    description.execution.threads = options.threads;
    if options.functional != 0 {
        description.mode = Mode::Functional;
    }
    Ok(description)
}
