//! Texts of results.

use std::ffi::{CStr, c_char};

/// Results and how NVML words them.
const TEXTS: &[(u32, &CStr)] = &[
    (0, c"Success"),
    (1, c"Uninitialized"),
    (2, c"Invalid Argument"),
    (3, c"Not Supported"),
    (4, c"Insufficient Permissions"),
    (5, c"Already Initialized"),
    (6, c"Not Found"),
    (7, c"Insufficient Size"),
    (8, c"Insufficient External Power"),
    (9, c"Driver Not Loaded"),
    (10, c"Timeout"),
    (11, c"Interrupt Request Issue"),
    (12, c"NVML Shared Library Not Found"),
    (13, c"Function Not Found"),
    (14, c"Corrupted infoROM"),
    (15, c"GPU is lost"),
    (16, c"GPU requires reset"),
    (17, c"The operating system has blocked the request"),
    (18, c"Driver/library version mismatch"),
    (19, c"In use by another client"),
    (20, c"Insufficient Memory"),
    (21, c"No data"),
    (22, c"Not supported while ECC is enabled"),
    (23, c"Insufficient resources"),
    (24, c"Frequency not supported"),
    (25, c"Argument version mismatch"),
    (26, c"Deprecated"),
    (27, c"Not ready"),
    (28, c"GPU not found"),
    (29, c"Invalid state"),
    (30, c"Reset type not supported"),
];

/// The text of a result; what is no result is an unknown error.
pub fn text(code: u32) -> &'static CStr {
    let found = TEXTS.iter().find(|(known, _)| *known == code);
    found.map_or(c"Unknown Error", |(_, text)| text)
}

/// The one function that answers no code; it works before initialisation too.
#[unsafe(export_name = "lockstep_nvmlErrorString")]
#[allow(non_snake_case)]
extern "C" fn nvmlErrorString(code: u32) -> *const c_char {
    text(code).as_ptr()
}
