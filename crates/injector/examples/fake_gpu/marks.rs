//! Writes in stream order, and captures: the driver's calls around launches.

use std::collections::BTreeSet;
use std::ffi::c_void;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::state::{demand, device_now, failure, state};

/// Device time, address and value of writes to come.
static WRITES: Mutex<Vec<(u64, usize, u64)>> = Mutex::new(Vec::new());
/// Streams that are being captured.
static CAPTURED: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());
/// Pages that the device may write.
static PAGES: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());

thread_local! {
    static MODE: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

/// Begins or ends the capture of a stream.
pub fn capture(stream: u64, on: bool) {
    let mut captured = CAPTURED.lock().unwrap();
    if on {
        captured.insert(stream as usize);
    } else {
        captured.remove(&(stream as usize));
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamIsCapturing(stream: *mut c_void, status: *mut u32) -> i32 {
    let captured = CAPTURED.lock().unwrap().contains(&(stream as usize));
    unsafe { *status = u32::from(captured) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuThreadExchangeStreamCaptureMode(mode: *mut u32) -> i32 {
    let before = MODE.replace(unsafe { *mode });
    unsafe { *mode = before };
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemHostRegister_v2(page: *mut c_void, bytes: usize, _flags: u32) -> i32 {
    if let Some(code) = failure("cuMemHostRegister_v2") {
        return code;
    }
    demand(
        MODE.get() == 2,
        "cuMemHostRegister_v2: may break the capture of another thread",
    );
    demand(
        (page as usize).is_multiple_of(4096) && bytes == 4096,
        "cuMemHostRegister_v2: not a page",
    );
    PAGES.lock().unwrap().insert(page as usize);
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemHostGetDevicePointer_v2(
    address: *mut u64,
    page: *mut c_void,
    _flags: u32,
) -> i32 {
    demand(
        PAGES.lock().unwrap().contains(&(page as usize)),
        "cuMemHostGetDevicePointer_v2: not registered",
    );
    unsafe { *address = page as u64 };
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamWriteValue64_v2(
    stream: *mut c_void,
    address: u64,
    value: u64,
    flags: u32,
) -> i32 {
    demand(
        MODE.get() == 0,
        "cuStreamWriteValue64_v2: the thread's capture mode was not put back",
    );
    demand(
        !CAPTURED.lock().unwrap().contains(&(stream as usize)) && flags == 0,
        "cuStreamWriteValue64_v2: into a stream that is captured",
    );
    demand(
        PAGES.lock().unwrap().contains(&(address as usize & !4095)) && address.is_multiple_of(8),
        "cuStreamWriteValue64_v2: not a word of a registered page",
    );
    let ends = state();
    let end = ends
        .stream_end
        .iter()
        .filter(|((_, one), _)| *one == stream as u64)
        .map(|(_, end)| *end)
        .max()
        .unwrap_or(0);
    drop(ends);
    static WRITER: std::sync::Once = std::sync::Once::new();
    WRITER.call_once(|| {
        std::thread::spawn(|| {
            loop {
                let now = device_now();
                WRITES.lock().unwrap().retain(|(time, address, value)| {
                    if *time > now {
                        return true;
                    }
                    unsafe { &*(*address as *const AtomicU64) }.store(*value, Ordering::Release);
                    false
                });
                std::thread::sleep(Duration::from_micros(100));
            }
        });
    });
    WRITES.lock().unwrap().push((end, address as usize, value));
    0
}
