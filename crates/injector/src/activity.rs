//! Activity records: which kernel ran when, in which context and stream.
//!
//! No work is done when the program launches; CUPTI fills buffers and hands them over when they
//! are full or flushed. Kernels of graphs and of `cuLaunchKernelEx` are recorded like any other.

use std::alloc::{Layout, alloc, dealloc};
use std::ffi::{CStr, c_void};
use std::sync::Mutex;

use crate::cupti::layouts::KernelActivity;
use crate::cupti::{CuptiError, numbers};
use crate::guard::guarded;
use crate::session::{self, Session};

const BUFFER_BYTES: usize = 1 << 20;
/// Buffers kept for the next request.
const SPARE_BUFFERS: usize = 16;

static SPARE: Mutex<Vec<usize>> = Mutex::new(Vec::new());

fn buffer_layout() -> Layout {
    Layout::from_size_align(BUFFER_BYTES, 64).expect("a power of two and a size that fits")
}

/// Starts recording kernels.
pub fn start(session: &'static Session) -> Result<(), CuptiError> {
    let tracing = session.cupti.tracing;
    let check = |doing, result| session.cupti.check(doing, result);
    // SAFETY: functions of the signatures that CUPTI calls, here for the life of the process.
    check("registering activity buffers", unsafe {
        (tracing.activity_register)(requested, completed)
    })?;
    // SAFETY: a kind of record that CUPTI knows.
    check("recording kernels", unsafe {
        (tracing.activity_enable)(numbers::ACTIVITY_CONCURRENT_KERNEL)
    })
}

/// Hands over records of finished kernels; with `all`, also those of unfinished ones.
pub fn flush(session: &Session, all: bool) {
    // SAFETY: one flag.
    unsafe { (session.cupti.tracing.activity_flush)(u32::from(all)) };
}

/// CUPTI wants an empty buffer.
unsafe extern "C" fn requested(buffer: *mut *mut u8, size: *mut usize, records: *mut usize) {
    let spare = SPARE.lock().ok().and_then(|mut spare| spare.pop());
    // SAFETY: a layout of more than no bytes.
    let memory = spare.map_or_else(
        || unsafe { alloc(buffer_layout()) },
        |address| address as *mut u8,
    );
    // SAFETY: CUPTI passes three valid places.
    unsafe {
        *buffer = memory;
        *size = if memory.is_null() { 0 } else { BUFFER_BYTES };
        *records = 0;
    }
}

/// CUPTI gives a filled buffer back.
unsafe extern "C" fn completed(
    context: *mut c_void,
    stream: u32,
    buffer: *mut u8,
    _size: usize,
    valid: usize,
) {
    guarded("reading records of kernels", || {
        if let Some(session) = session::current() {
            read(session, buffer, valid);
            let mut dropped = 0;
            // SAFETY: the context that CUPTI named (null for all) and a valid place.
            let result =
                unsafe { (session.cupti.tracing.activity_dropped)(context, stream, &mut dropped) };
            if result == numbers::SUCCESS && dropped > 0 {
                session.lose(&format!("{dropped} kernel records were dropped by CUPTI"));
            }
        }
    });
    let kept = SPARE.lock().is_ok_and(|mut spare| {
        let room = spare.len() < SPARE_BUFFERS;
        if room {
            spare.push(buffer as usize);
        }
        room
    });
    if !kept && !buffer.is_null() {
        // SAFETY: came from `requested` with this layout, and nobody else has it now.
        unsafe { dealloc(buffer, buffer_layout()) };
    }
}

fn read(session: &'static Session, buffer: *mut u8, valid: usize) {
    let mut record: *mut u32 = std::ptr::null_mut();
    let mut launches = Vec::new();
    loop {
        // SAFETY: the buffer and its valid size as CUPTI gave them; `record` is null or the last record.
        let result = unsafe { (session.cupti.tracing.activity_next)(buffer, valid, &mut record) };
        if result != numbers::SUCCESS || record.is_null() {
            break;
        }
        // SAFETY: every record begins with its kind.
        let kind = unsafe { *record };
        if kind != numbers::ACTIVITY_CONCURRENT_KERNEL && kind != numbers::ACTIVITY_KERNEL {
            continue;
        }
        // SAFETY: records of this kind begin with these fields since version 9; CUPTI aligns them
        // to eight bytes.
        let kernel = unsafe { &*record.cast::<KernelActivity>() };
        // A kernel that had not finished when it was flushed has no times.
        if kernel.end == 0 || kernel.end < kernel.start {
            continue;
        }
        let name = if kernel.name.is_null() {
            "(unnamed)".into()
        } else {
            // SAFETY: not null, and terminated by CUPTI.
            unsafe { CStr::from_ptr(kernel.name) }.to_string_lossy()
        };
        let axis = |value: i32| u32::try_from(value).unwrap_or(0);
        launches.push(session::Launch {
            device: kernel.deviceId,
            context: kernel.contextId,
            stream: kernel.streamId,
            number: u64::from(kernel.correlationId),
            begin: kernel.start,
            end: kernel.end,
            grid: [axis(kernel.gridX), axis(kernel.gridY), axis(kernel.gridZ)],
            block: [
                axis(kernel.blockX),
                axis(kernel.blockY),
                axis(kernel.blockZ),
            ],
            name: name.into_owned(),
            counts: Vec::new(),
        });
    }
    session.publish_launches(&launches);
}
