//! Who is told while time passes: of kernels and blocks that end, and of requests that leave for memory outside.

use crate::guard::{self, Failure};
use crate::{LockstepGpu, LockstepStatus};
use lockstep_simulation::{EmbeddedGpu, EndedBlock, OutsideAccess, OutsideRequest};
use lockstep_units::Time;
use std::ffi::c_void;

/// Is told of every launch that ended, in their order, before the call that let time pass returns.
pub type LockstepKernelEnd = Option<unsafe extern "C" fn(context: *mut c_void, launch: u32)>;

/// Is told of every block that ended: its launch, the SM, and when the CTA scheduler heard of it, in femtoseconds.
pub type LockstepBlockEnd =
    Option<unsafe extern "C" fn(context: *mut c_void, launch: u32, sm: u32, time: u64)>;

/// Is told of every request that leaves the L1 caches, in the order of time. The request lives until it returns.
pub type LockstepMemoryListener =
    Option<unsafe extern "C" fn(context: *mut c_void, request: *const LockstepMemoryRequest)>;

/// What a request does.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockstepAccess {
    /// It reads sectors.
    Read = 0,
    /// It writes some or all bytes of sectors.
    Write = 1,
    /// It reads a sector, changes it and writes it, and nobody comes between.
    Atomic = 2,
}

/// A request that has left the GPU.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LockstepMemoryRequest {
    /// What `lockstep_complete` takes.
    pub number: u64,
    /// Address of a line of 128 bytes.
    pub address: u64,
    /// When it left, in femtoseconds since the beginning.
    pub time: u64,
    /// Which of the line's four sectors of 32 bytes, a bit each.
    pub sectors: u32,
    /// What it does.
    pub access: LockstepAccess,
    /// The SM that asks.
    pub sm: u32,
    /// The slice of L2 that would have it.
    pub slice: u32,
}

impl From<&OutsideRequest> for LockstepMemoryRequest {
    fn from(request: &OutsideRequest) -> Self {
        Self {
            number: request.number,
            address: request.address,
            time: request.at.0,
            sectors: u32::from(request.sectors),
            access: match request.access {
                OutsideAccess::Read => LockstepAccess::Read,
                OutsideAccess::Write => LockstepAccess::Write,
                OutsideAccess::Atomic => LockstepAccess::Atomic,
            },
            sm: request.sm,
            slice: request.slice,
        }
    }
}

/// All who are told, each with what it is called with.
#[derive(Clone, Copy)]
pub(crate) struct Listeners {
    kernel_end: (LockstepKernelEnd, *mut c_void),
    block_end: (LockstepBlockEnd, *mut c_void),
    memory: (LockstepMemoryListener, *mut c_void),
}

impl Default for Listeners {
    fn default() -> Self {
        Self::new(None, None, std::ptr::null_mut())
    }
}

impl Listeners {
    /// Those who are told of launches and of requests, called with one context.
    pub(crate) fn new(
        kernel_end: LockstepKernelEnd,
        memory: LockstepMemoryListener,
        context: *mut c_void,
    ) -> Self {
        Self {
            kernel_end: (kernel_end, context),
            block_end: (None, context),
            memory: (memory, context),
        }
    }

    /// Tells of blocks that ended. Nothing of the GPU may be borrowed: who is told may call us.
    ///
    /// # Safety
    /// What was set may be called.
    unsafe fn tell_blocks(self, blocks: &[EndedBlock]) {
        if let (Some(tell), context) = self.block_end {
            for EndedBlock { launch, sm, at } in blocks {
                // SAFETY: as the caller says.
                unsafe { tell(context, *launch, *sm, at.0) };
            }
        }
    }

    /// Tells of launches that ended and of requests that left. Nothing of the GPU may be borrowed: who is told may
    /// call us.
    ///
    /// # Safety
    /// What was set may be called.
    pub(crate) unsafe fn tell(
        self,
        launches: impl Iterator<Item = u32>,
        requests: &[OutsideRequest],
    ) {
        if let (Some(tell), context) = self.kernel_end {
            for launch in launches {
                // SAFETY: as the caller says.
                unsafe { tell(context, launch) };
            }
        }
        if let (Some(tell), context) = self.memory {
            for request in requests {
                let request = LockstepMemoryRequest::from(request);
                // SAFETY: as the caller says.
                unsafe { tell(context, &raw const request) };
            }
        }
    }
}

/// Sets who is told of launches that ended; null for nobody. It may call everything but `lockstep_destroy`.
///
/// # Safety
/// The pointers are good for as long as the GPU lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_on_kernel_end(
    gpu: *mut LockstepGpu,
    kernel_end: LockstepKernelEnd,
    context: *mut c_void,
) -> LockstepStatus {
    // SAFETY: as the caller says.
    unsafe {
        set(
            gpu,
            |_| Ok(()),
            |listeners| listeners.kernel_end = (kernel_end, context),
        )
    }
}

/// Prepares a GPU for a listener and, if it could be, sets it.
///
/// # Safety
/// The pointer is null, or from this library, and nobody else uses the GPU meanwhile.
unsafe fn set(
    gpu: *mut LockstepGpu,
    prepare: impl FnOnce(&mut EmbeddedGpu) -> Result<(), Failure>,
    listener: impl FnOnce(&mut Listeners),
) -> LockstepStatus {
    // SAFETY: as the caller says.
    let prepared = unsafe { guard::on(gpu, prepare) };
    if prepared.is_ok() {
        // SAFETY: the call above found the pointer good.
        listener(unsafe { &mut (*gpu).listeners });
    }
    guard::status(prepared)
}

/// Sets who is told of blocks that ended; null for nobody. It may call everything but `lockstep_destroy`.
///
/// # Safety
/// The pointers are good for as long as the GPU lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_on_block_end(
    gpu: *mut LockstepGpu,
    block_end: LockstepBlockEnd,
    context: *mut c_void,
) -> LockstepStatus {
    let prepare = |gpu: &mut EmbeddedGpu| {
        gpu.list_ended_blocks(block_end.is_some());
        Ok(())
    };
    // SAFETY: as the caller says.
    unsafe {
        set(gpu, prepare, |listeners| {
            listeners.block_end = (block_end, context)
        })
    }
}

/// Sets who models the memory behind the L1 caches, while no kernel runs; null for the GPU's own L2 and DRAM. Every
/// request that leaves an L1 is told then, and is answered when `lockstep_complete` says so; values stay those of the
/// GPU, and code is fetched inside it. It may call everything but `lockstep_destroy`, and may complete the request at
/// once for a later time. A GPU that was loaded has the requests it was saved with.
///
/// # Safety
/// The pointers are good for as long as the GPU lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_on_memory_request(
    gpu: *mut LockstepGpu,
    listener: LockstepMemoryListener,
    context: *mut c_void,
) -> LockstepStatus {
    let outside = listener.is_some();
    let prepare = |gpu: &mut EmbeddedGpu| {
        if gpu.has_outside_memory() != outside {
            gpu.set_outside_memory(outside)?;
        }
        Ok(())
    };
    // SAFETY: as the caller says.
    unsafe {
        set(gpu, prepare, |listeners| {
            listeners.memory = (listener, context)
        })
    }
}

/// A request is complete at a time, in femtoseconds, or now if that has passed. Then the answer begins its way to the
/// SM, and a kernel whose writes are all complete can end.
///
/// # Safety
/// The pointer is good.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_complete(
    gpu: *mut LockstepGpu,
    request: u64,
    time: u64,
) -> LockstepStatus {
    // SAFETY: as the caller says.
    guard::status(unsafe { guard::on(gpu, |gpu| Ok(gpu.complete(request, Time(time))?)) })
}

/// Lets time pass until a boundary of epochs that is not before `until`, in femtoseconds since the beginning.
///
/// # Safety
/// The pointer is good, and so is who is told of what happens.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_advance(gpu: *mut LockstepGpu, until: u64) -> LockstepStatus {
    // SAFETY: as the caller says.
    unsafe { pass(gpu, Some(Time(until))) }
}

/// Lets time pass until every launch has ended. With memory outside, it must be who is told of requests that
/// completes them.
///
/// # Safety
/// The pointer is good, and so is who is told of what happens.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_finish(gpu: *mut LockstepGpu) -> LockstepStatus {
    // SAFETY: as the caller says.
    unsafe { pass(gpu, None) }
}

/// Lets time pass, and tells of what happens whenever somebody may want to answer it.
///
/// # Safety
/// The pointer is good, and so is who is told.
unsafe fn pass(gpu: *mut LockstepGpu, until: Option<Time>) -> LockstepStatus {
    loop {
        // SAFETY: as the caller says.
        let passed = match unsafe { guard::on(gpu, |gpu| Ok(gpu.pass(until)?)) } {
            Ok(passed) => passed,
            Err(status) => return status,
        };
        // SAFETY: the call above found the pointer good, and nothing of the GPU is borrowed.
        unsafe {
            let listeners = (*gpu).listeners;
            listeners.tell_blocks(&passed.blocks);
            listeners.tell(passed.launches.iter().copied(), &passed.requests);
        }
        if passed.is_over {
            return LockstepStatus::Ok;
        }
    }
}
