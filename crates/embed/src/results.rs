//! What is read of a simulation: time, counters, statistics, digest.

use crate::guard::{self, Failure, Handle};
use crate::{LockstepGpu, LockstepStatus};
use lockstep_counters::LaunchCounters;
use lockstep_stats::Table;
use std::ffi::{CString, c_char, c_void};

/// Is given every statistic: the component, the statistic, its unit and its value. The texts live until it returns.
pub type LockstepVisitor = Option<
    unsafe extern "C" fn(
        context: *mut c_void,
        component: *const c_char,
        name: *const c_char,
        unit: *const c_char,
        value: u64,
    ),
>;

/// The time at which the GPU stands, in femtoseconds since the beginning.
///
/// # Safety
/// The pointers are good.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_now(gpu: *mut LockstepGpu, now: *mut u64) -> LockstepStatus {
    // SAFETY: as the caller says.
    guard::status(unsafe { guard::on(gpu, |gpu| guard::put(now, gpu.now().0)) })
}

/// Whether no kernel waits or runs: 1 or 0.
///
/// # Safety
/// The pointers are good.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_is_idle(gpu: *mut LockstepGpu, idle: *mut u32) -> LockstepStatus {
    // SAFETY: as the caller says.
    guard::status(unsafe { guard::on(gpu, |gpu| guard::put(idle, u32::from(gpu.is_idle()))) })
}

/// A counter of a launch that has ended, by its name in `kernels.csv` (`lockstep counters` lists them).
///
/// # Safety
/// The pointers are good.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_counter(
    gpu: *mut LockstepGpu,
    launch: u32,
    name: *const c_char,
    value: *mut u64,
) -> LockstepStatus {
    // SAFETY: as the caller says.
    guard::status(unsafe {
        guard::on(gpu, |gpu| {
            let name = guard::text(name, "name of a counter")?;
            let counters = gpu.counters(launch);
            let counters = counters
                .ok_or_else(|| Failure::argument(format!("no launch {launch} has ended")))?;
            guard::put(value, named(&counters, name)?)
        })
    })
}

/// Hands every statistic of every component to a visitor, in their order. It may call everything but
/// `lockstep_destroy`.
///
/// # Safety
/// The pointers are good.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_statistics(
    gpu: *mut LockstepGpu,
    visitor: LockstepVisitor,
    context: *mut c_void,
) -> LockstepStatus {
    // SAFETY: as the caller says.
    unsafe { hand_out(gpu, |gpu| Ok(gpu.statistics()), visitor, context) }
}

/// Hands every row of a table to a visitor. Nothing is borrowed meanwhile: the visitor may call us.
///
/// # Safety
/// The pointers are good.
pub(crate) unsafe fn hand_out<H: Handle>(
    handle: *mut H,
    table: impl FnOnce(&mut H::Inside) -> Result<Table, Failure>,
    visitor: LockstepVisitor,
    context: *mut c_void,
) -> LockstepStatus {
    let Some(visit) = visitor else {
        return LockstepStatus::InvalidArgument;
    };
    // SAFETY: as the caller says.
    let table = match unsafe { guard::on(handle, table) } {
        Ok(table) => table,
        Err(status) => return status,
    };
    let words = |text: &str| CString::new(text).unwrap_or_default();
    for row in table.rows() {
        let (component, name, unit) = (words(row.component), words(&row.name), words(row.unit));
        // SAFETY: as the caller says.
        unsafe {
            visit(
                context,
                component.as_ptr(),
                name.as_ptr(),
                unit.as_ptr(),
                row.value,
            );
        }
    }
    LockstepStatus::Ok
}

/// Puts a text with a zero behind it where C wants it, and refuses if there is too little room.
///
/// # Safety
/// The place may be written for so many bytes.
pub(crate) unsafe fn put_text(
    text: &str,
    what: &str,
    place: *mut c_char,
    bytes: usize,
) -> Result<(), Failure> {
    if place.is_null() || bytes <= text.len() {
        let needed = text.len() + 1;
        return Err(Failure::argument(format!("{what} takes {needed} bytes")));
    }
    // SAFETY: as the caller says, and there is room.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr(), place.cast(), text.len());
        place.add(text.len()).write(0);
    }
    Ok(())
}

/// A counter by its name.
pub(crate) fn named(counters: &LaunchCounters, name: &str) -> Result<u64, Failure> {
    counters.get(name).ok_or_else(|| {
        Failure::argument(format!(
            "no counter is called `{name}`, or it is not known without time; `lockstep counters` lists them"
        ))
    })
}

/// Writes one hash of everything that was simulated: 64 hexadecimal digits and a zero, into at least 65 bytes.
///
/// # Safety
/// The pointers are good; `digest` may be written for `digest_bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_digest(
    gpu: *mut LockstepGpu,
    digest: *mut c_char,
    digest_bytes: usize,
) -> LockstepStatus {
    // SAFETY: as the caller says.
    guard::status(unsafe {
        guard::on(gpu, |gpu| {
            put_text(&gpu.digest(), "a digest", digest, digest_bytes)
        })
    })
}
