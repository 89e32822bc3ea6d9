//! Contexts: which exist, and which one a call is for.

use crate::call::{ask, call, done};
use crate::fair_mutex::FairMutex;
use crate::process::{lock, process};
use crate::{registry, streams, thread};
use lockstep_protocol::{ContextHandle, CuResult, Request};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// What is known of a context that lives.
#[derive(Clone, Copy)]
pub struct Context {
    /// Its device, among the visible ones.
    pub device: usize,
    /// The flags it was made with.
    pub flags: u32,
    primary: bool,
}

struct Primary {
    handle: ContextHandle,
    retained: u32,
    by_runtime: bool,
}

struct Contexts {
    alive: BTreeMap<ContextHandle, Context>,
    primaries: BTreeMap<usize, Primary>,
    primary_flags: BTreeMap<usize, u32>,
}

static CONTEXTS: FairMutex<Contexts> = FairMutex::new(Contexts {
    alive: BTreeMap::new(),
    primaries: BTreeMap::new(),
    primary_flags: BTreeMap::new(),
});

static INITIALIZED: AtomicBool = AtomicBool::new(false);

/// `cuInit`: connects, and finds at least one device.
pub fn initialize() -> Result<(), CuResult> {
    if process()?.devices.is_empty() {
        return Err(CuResult::NO_DEVICE);
    }
    INITIALIZED.store(true, Ordering::Relaxed);
    Ok(())
}

/// Fails unless `cuInit` or a call of the runtime came before.
pub fn check_initialized() -> Result<(), CuResult> {
    if INITIALIZED.load(Ordering::Relaxed) {
        process().map(|_| ())
    } else {
        Err(CuResult::NOT_INITIALIZED)
    }
}

/// The current context of the driver API.
pub fn current() -> Result<ContextHandle, CuResult> {
    check_initialized()?;
    let context = thread::current().contexts.borrow().last().copied();
    let context = context.ok_or(CuResult::INVALID_CONTEXT)?;
    find(context)?;
    Ok(context)
}

/// The current context of the runtime API: the driver's if there is one, else the primary
/// context of the device that was chosen, which then becomes current.
pub fn current_for_runtime() -> Result<ContextHandle, CuResult> {
    initialize()?;
    let thread = thread::current();
    let top = thread.contexts.borrow().last().copied();
    if let Some(context) = top {
        match lock(&CONTEXTS).alive.get(&context) {
            Some(_) => return Ok(context),
            // A reset left it dead; the runtime quietly makes another.
            None => drop(thread.contexts.borrow_mut().pop()),
        }
    }
    let context = primary_for_runtime(thread.device.get())?;
    thread.contexts.borrow_mut().push(context);
    Ok(context)
}

/// What is known of a context; dead or foreign handles are refused.
pub fn find(context: ContextHandle) -> Result<Context, CuResult> {
    let alive = lock(&CONTEXTS).alive.get(&context).copied();
    alive.ok_or(CuResult::INVALID_CONTEXT)
}

/// Retains the primary context of a visible device.
pub fn retain_primary(device: usize) -> Result<ContextHandle, CuResult> {
    let (handle, new) = {
        let mut contexts = lock(&CONTEXTS);
        match contexts.primaries.get_mut(&device) {
            Some(primary) => {
                primary.retained += 1;
                (primary.handle, false)
            }
            None => (contexts.open_primary(device, 1, false)?, true),
        }
    };
    if new {
        registry::context_made(handle)?;
    }
    Ok(handle)
}

/// The primary context of a visible device, retained once on behalf of the runtime.
fn primary_for_runtime(device: usize) -> Result<ContextHandle, CuResult> {
    let (handle, new) = {
        let mut contexts = lock(&CONTEXTS);
        match contexts.primaries.get_mut(&device) {
            Some(primary) => {
                primary.by_runtime = true;
                (primary.handle, false)
            }
            None => (contexts.open_primary(device, 0, true)?, true),
        }
    };
    if new {
        registry::context_made(handle)?;
    }
    Ok(handle)
}

/// Gives back what [`retain_primary`] took.
pub fn release_primary(device: usize) -> Result<(), CuResult> {
    let mut contexts = lock(&CONTEXTS);
    let Some(primary) = contexts.primaries.get_mut(&device) else {
        return Err(CuResult::INVALID_CONTEXT);
    };
    primary.retained = primary.retained.saturating_sub(1);
    if primary.retained > 0 || primary.by_runtime {
        return Ok(());
    }
    let handle = primary.handle;
    contexts.primaries.remove(&device);
    contexts.alive.remove(&handle);
    drop(contexts);
    forget(handle);
    done(&Request::PrimaryContextRelease {
        device: ordinal(device)?,
    })
}

/// Destroys the primary context of a device with all that is in it.
pub fn reset_primary(device: usize) -> Result<(), CuResult> {
    let mut contexts = lock(&CONTEXTS);
    let removed = contexts.primaries.remove(&device);
    if let Some(primary) = &removed {
        contexts.alive.remove(&primary.handle);
    }
    drop(contexts);
    if let Some(primary) = removed {
        forget(primary.handle);
        done(&Request::PrimaryContextReset {
            device: ordinal(device)?,
        })?;
    }
    Ok(())
}

/// Flags of the primary context, and whether it is active.
pub fn primary_state(device: usize) -> (u32, bool) {
    let contexts = lock(&CONTEXTS);
    let flags = contexts.primary_flags.get(&device).copied().unwrap_or(0);
    (flags, contexts.primaries.contains_key(&device))
}

/// Sets the flags of the primary context.
pub fn set_primary_flags(device: usize, flags: u32) {
    lock(&CONTEXTS).primary_flags.insert(device, flags);
}

/// Creates a context and makes it current.
pub fn create(device: usize, flags: u32) -> Result<ContextHandle, CuResult> {
    check_initialized()?;
    let request = Request::ContextCreate {
        device: ordinal(device)?,
        flags,
    };
    let handle = ask!(Context, &request);
    let context = Context {
        device,
        flags,
        primary: false,
    };
    lock(&CONTEXTS).alive.insert(handle, context);
    thread::current().contexts.borrow_mut().push(handle);
    registry::context_made(handle)?;
    Ok(handle)
}

/// Destroys a created context.
pub fn destroy(handle: ContextHandle) -> Result<(), CuResult> {
    let mut contexts = lock(&CONTEXTS);
    match contexts.alive.get(&handle) {
        Some(context) if !context.primary => contexts.alive.remove(&handle),
        _ => return Err(CuResult::INVALID_CONTEXT),
    };
    drop(contexts);
    let stack = &thread::current().contexts;
    let current = stack.borrow().last() == Some(&handle);
    if current {
        stack.borrow_mut().pop();
    }
    forget(handle);
    done(&Request::ContextDestroy { context: handle })
}

/// The simulator's ordinal of a visible device.
pub fn ordinal(device: usize) -> Result<u32, CuResult> {
    let devices = &process()?.devices;
    let device = devices.get(device).ok_or(CuResult::INVALID_DEVICE)?;
    Ok(device.ordinal)
}

/// The visible device that has an ordinal of the simulator's.
pub fn visible_device(ordinal: u32) -> Option<usize> {
    let devices = &process().ok()?.devices;
    devices.iter().position(|device| device.ordinal == ordinal)
}

fn forget(handle: ContextHandle) {
    registry::context_gone(handle);
    streams::context_gone(handle);
}

impl Contexts {
    fn open_primary(
        &mut self,
        device: usize,
        retained: u32,
        by_runtime: bool,
    ) -> Result<ContextHandle, CuResult> {
        let request = Request::PrimaryContextRetain {
            device: ordinal(device)?,
        };
        let handle = ask!(Context, &request);
        let flags = self.primary_flags.get(&device).copied().unwrap_or(0);
        let context = Context {
            device,
            flags,
            primary: true,
        };
        self.alive.insert(handle, context);
        let primary = Primary {
            handle,
            retained,
            by_runtime,
        };
        self.primaries.insert(device, primary);
        Ok(handle)
    }
}

/// Waits for all work of a context.
pub fn synchronize(context: ContextHandle) -> Result<(), CuResult> {
    crate::graph::capture::refuses_unsafe()?;
    call(&Request::ContextSynchronize { context })?;
    crate::api::release_unused_pools();
    Ok(())
}
