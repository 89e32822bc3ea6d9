//! The management library and the driver's device calls.

use std::ffi::{CStr, c_char, c_void};

use lockstep_injector::nvml::MemoryInfo;

use crate::state::{demand, failure, state};

fn device_count() -> i32 {
    std::env::var("FAKE_GPU_COUNT")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1)
}

fn uuid(device: i32) -> [u8; 16] {
    [
        0xfa,
        0xce,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        device as u8,
    ]
}

#[unsafe(no_mangle)]
pub extern "C" fn cuInit(_flags: u32) -> i32 {
    failure("cuInit").unwrap_or(0)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetCount(count: *mut i32) -> i32 {
    unsafe { *count = device_count() };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGet(device: *mut i32, ordinal: i32) -> i32 {
    if ordinal < 0 || ordinal >= device_count() {
        return 101;
    }
    unsafe { *device = ordinal };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetUuid_v2(bytes: *mut [u8; 16], device: i32) -> i32 {
    unsafe { *bytes = uuid(device) };
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlInit_v2() -> i32 {
    if let Some(code) = failure("nvmlInit_v2") {
        return code;
    }
    state().board = true;
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlShutdown() -> i32 {
    demand(
        std::mem::take(&mut state().board),
        "nvmlShutdown: not started",
    );
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByUUID(
    text: *const c_char,
    handle: *mut *mut c_void,
) -> i32 {
    demand(state().board, "nvmlDeviceGetHandleByUUID: not started");
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    let known = (0..device_count())
        .find(|device| text == format!("GPU-face0000-0000-0000-0000-{:012x}", device));
    let Some(device) = known else { return 6 };
    unsafe { *handle = (0x100 + device as usize) as *mut c_void };
    0
}

fn board_value(handle: *mut c_void, place: *mut u32, value: u32) -> i32 {
    demand(state().board, "a gauge was read before nvmlInit_v2");
    demand(
        (0x100..0x200).contains(&(handle as usize)),
        "a gauge of an unknown handle",
    );
    unsafe { *place = value };
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetPowerUsage(handle: *mut c_void, place: *mut u32) -> i32 {
    board_value(handle, place, 345_678)
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetTemperature(
    handle: *mut c_void,
    sensor: u32,
    place: *mut u32,
) -> i32 {
    demand(sensor == 0, "a temperature of an unknown sensor");
    board_value(handle, place, 45)
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetClockInfo(handle: *mut c_void, clock: u32, place: *mut u32) -> i32 {
    board_value(handle, place, if clock == 1 { 1980 } else { 3201 })
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetMemoryInfo(handle: *mut c_void, memory: *mut MemoryInfo) -> i32 {
    let mut ignored = 0;
    unsafe {
        *memory = MemoryInfo {
            total: 1 << 37,
            free: 1 << 36,
            used: 1 << 36,
        }
    };
    board_value(handle, &mut ignored, 0)
}
