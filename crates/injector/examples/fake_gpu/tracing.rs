//! Subscribers and activity records.

use std::ffi::{c_char, c_void};

use lockstep_injector::cupti::layouts::KernelActivity;
use lockstep_injector::cupti::{BufferCompleted, BufferRequested, Callback, numbers};

use crate::state::{clock_offset, demand, device_now, failure, state};

const SUBSCRIBER: usize = 0x77;
/// Bytes of a record of the newest version; ours reads only its beginning.
const RECORD_BYTES: usize = 224;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiSubscribe(
    handle: *mut *mut c_void,
    callback: Callback,
    user: *mut c_void,
) -> i32 {
    if let Some(code) = failure("cuptiSubscribe") {
        return code;
    }
    let mut state = state();
    if state.callback.is_some() {
        return numbers::MULTIPLE_SUBSCRIBERS;
    }
    state.callback = Some((callback, user as usize));
    unsafe { *handle = SUBSCRIBER as *mut c_void };
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiUnsubscribe(_handle: *mut c_void) -> i32 {
    demand(
        state().callback.take().is_some(),
        "cuptiUnsubscribe: nobody subscribed",
    );
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiEnableCallback(
    enable: u32,
    handle: *mut c_void,
    domain: u32,
    number: u32,
) -> i32 {
    demand(
        handle as usize == SUBSCRIBER,
        "cuptiEnableCallback: a handle that is no subscriber",
    );
    let mut state = state();
    if enable == 1 {
        state.enabled.insert((domain, number));
    } else {
        state.enabled.remove(&(domain, number));
    }
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetContextId(context: *mut c_void, number: *mut u32) -> i32 {
    let state = state();
    let Some(context) = state.contexts.get(&(context as usize)) else {
        return 3;
    };
    unsafe { *number = context.number };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetDeviceId(context: *mut c_void, number: *mut u32) -> i32 {
    let state = state();
    let Some(context) = state.contexts.get(&(context as usize)) else {
        return 3;
    };
    unsafe { *number = context.device };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetStreamIdEx(
    _context: *mut c_void,
    stream: *mut c_void,
    _per_thread: u8,
    number: *mut u32,
) -> i32 {
    unsafe { *number = stream as usize as u32 };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetTimestamp(time: *mut u64) -> i32 {
    unsafe { *time = device_now() };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetVersion(version: *mut u32) -> i32 {
    unsafe { *version = 130_000 };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetResultString(result: i32, text: *mut *const c_char) -> i32 {
    let word = match result {
        0 => c"CUPTI_SUCCESS",
        17 => c"CUPTI_ERROR_INVALID_METRIC_NAME",
        26 => c"CUPTI_ERROR_HARDWARE_BUSY",
        35 => c"CUPTI_ERROR_INSUFFICIENT_PRIVILEGES",
        39 => c"CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED",
        _ => c"CUPTI_ERROR_UNKNOWN",
    };
    unsafe { *text = word.as_ptr() };
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityRegisterCallbacks(
    requested: BufferRequested,
    completed: BufferCompleted,
) -> i32 {
    let mut state = state();
    demand(
        !state.recording,
        "cuptiActivityRegisterCallbacks: after a kind was enabled",
    );
    state.buffers = Some((requested, completed));
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityEnable(kind: u32) -> i32 {
    if let Some(code) = failure("cuptiActivityEnable") {
        return code;
    }
    let mut state = state();
    demand(
        state.buffers.is_some(),
        "cuptiActivityEnable: before cuptiActivityRegisterCallbacks",
    );
    demand(
        kind == numbers::ACTIVITY_CONCURRENT_KERNEL,
        "cuptiActivityEnable: an unexpected kind",
    );
    state.recording = true;
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityDisable(_kind: u32) -> i32 {
    state().recording = false;
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiActivityGetNumDroppedRecords(
    _context: *mut c_void,
    _stream: u32,
    dropped: *mut usize,
) -> i32 {
    unsafe { *dropped = 0 };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiActivityGetNextRecord(
    buffer: *mut u8,
    valid: usize,
    record: *mut *mut u32,
) -> i32 {
    let last = unsafe { *record }.cast::<u8>();
    let next = if last.is_null() {
        buffer
    } else {
        unsafe { last.add(RECORD_BYTES) }
    };
    if next as usize + RECORD_BYTES > buffer as usize + valid {
        return numbers::MAX_LIMIT_REACHED;
    }
    unsafe { *record = next.cast() };
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityFlushAll(forced: u32) -> i32 {
    loop {
        // Callbacks run without the lock, as the real library runs them from any thread.
        let locked = state();
        let Some((requested, completed)) = locked.buffers else {
            return 0;
        };
        demand(
            locked.recording,
            "cuptiActivityFlushAll: nothing is recorded",
        );
        let now = device_now();
        let ready = |end: u64| forced == 1 || end <= now;
        if !locked.unreported.iter().any(|one| ready(one.work.end)) {
            return 0;
        }
        drop(locked);
        let (mut buffer, mut size, mut most) = (std::ptr::null_mut(), 0, 0);
        unsafe { requested(&mut buffer, &mut size, &mut most) };
        demand(
            !buffer.is_null() && (buffer as usize).is_multiple_of(8),
            "an activity buffer that is not aligned",
        );
        if buffer.is_null() {
            return 0;
        }
        let mut used = 0;
        let mut locked = state();
        let mut rest = Vec::new();
        for one in std::mem::take(&mut locked.unreported) {
            if !ready(one.work.end) || used + RECORD_BYTES > size {
                rest.push(one);
                continue;
            }
            let finished = one.work.end <= now;
            let host = |time: u64| {
                if finished {
                    time.wrapping_sub(clock_offset())
                } else {
                    0
                }
            };
            let record = buffer.wrapping_add(used).cast::<KernelActivity>();
            unsafe {
                std::ptr::write_bytes(record.cast::<u8>(), 0, RECORD_BYTES);
                (*record).kind = numbers::ACTIVITY_CONCURRENT_KERNEL;
                (*record).start = host(one.work.begin);
                (*record).end = host(one.work.end);
                (*record).deviceId = one.work.device as u32;
                (*record).contextId = one.context;
                (*record).streamId = one.stream;
                (*record).gridX = one.grid as i32;
                (*record).gridY = 1;
                (*record).gridZ = 1;
                (*record).blockX = one.block as i32;
                (*record).blockY = 1;
                (*record).blockZ = 1;
                (*record).correlationId = one.correlation;
                (*record).name = one.name.as_ptr();
            }
            used += RECORD_BYTES;
        }
        locked.unreported = rest;
        drop(locked);
        unsafe { completed(std::ptr::null_mut(), 0, buffer, size, used) };
    }
}
