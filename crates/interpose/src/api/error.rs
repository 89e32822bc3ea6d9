//! Errors: the last one of each thread, names and texts.

use super::error_table::ERRORS;
use crate::boundary::{driver, guarded};
use crate::thread;
use crate::types::Out;
use lockstep_protocol::{CuResult, RESULT_NAMES};
use std::ffi::c_char;

const UNRECOGNIZED: &str = "unrecognized error code\0";

fn text(code: i32) -> Option<&'static str> {
    let row = ERRORS.binary_search_by_key(&code, |row| row.0).ok()?;
    Some(ERRORS[row].2)
}

/// The name of a code of the runtime API.
pub fn name(code: i32) -> Option<&'static str> {
    let row = ERRORS.binary_search_by_key(&code, |row| row.0).ok()?;
    Some(ERRORS[row].1.trim_end_matches('\0'))
}

/// What the last failure left. That a context has fallen shows in the next call, not here.
fn last_error() -> i32 {
    thread::current().last_error.get()
}

#[unsafe(export_name = "lockstep_cudaGetLastError")]
extern "C" fn get_last_error() -> i32 {
    guarded("cudaGetLastError", || {
        let code = last_error();
        thread::current().last_error.set(0);
        code
    })
    .unwrap_or(CuResult::UNKNOWN.0 as i32)
}

#[unsafe(export_name = "lockstep_cudaPeekAtLastError")]
extern "C" fn peek_at_last_error() -> i32 {
    guarded("cudaPeekAtLastError", last_error).unwrap_or(CuResult::UNKNOWN.0 as i32)
}

#[unsafe(export_name = "lockstep_cudaGetErrorName")]
extern "C" fn get_error_name(code: i32) -> *const c_char {
    let row = ERRORS.binary_search_by_key(&code, |row| row.0);
    row.map_or(UNRECOGNIZED, |row| ERRORS[row].1)
        .as_ptr()
        .cast()
}

#[unsafe(export_name = "lockstep_cudaGetErrorString")]
extern "C" fn get_error_string(code: i32) -> *const c_char {
    text(code).unwrap_or(UNRECOGNIZED).as_ptr().cast()
}

driver! {
    fn cuGetErrorString(code: u32, answer: Out<usize>) {
        let found = CuResult(code).name().and(text(code as i32));
        answer.set(found.map_or(0, |text| text.as_ptr() as usize))?;
        found.map(|_| ()).ok_or(CuResult::INVALID_VALUE)
    }

    fn cuGetErrorName(code: u32, answer: Out<usize>) {
        let found = RESULT_NAMES.iter().position(|row| row.0.0 == code);
        answer.set(found.map_or(0, |row| NAMES[row].as_ptr() as usize))?;
        found.map(|_| ()).ok_or(CuResult::INVALID_VALUE)
    }
}

/// Longest name of a code, zero included.
const NAME_BYTES: usize = 64;

/// The driver's names with the zero that C wants.
static NAMES: [[u8; NAME_BYTES]; RESULT_NAMES.len()] = {
    let mut names = [[0; NAME_BYTES]; RESULT_NAMES.len()];
    let mut row = 0;
    while row < names.len() {
        let name = RESULT_NAMES[row].1.as_bytes();
        assert!(name.len() < NAME_BYTES);
        let mut place = 0;
        while place < name.len() {
            names[row][place] = name[place];
            place += 1;
        }
        row += 1;
    }
    names
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_in_order_and_texts_end_with_zero() {
        assert!(ERRORS.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert!(
            ERRORS
                .iter()
                .all(|row| row.1.ends_with('\0') && row.2.ends_with('\0'))
        );
        assert_eq!(
            text(700),
            Some("an illegal memory access was encountered\0")
        );
    }

    #[test]
    fn every_code_of_the_driver_has_a_name_in_c() {
        for (row, (code, name)) in RESULT_NAMES.iter().enumerate() {
            let c = std::ffi::CStr::from_bytes_until_nul(&NAMES[row]).unwrap();
            assert_eq!(c.to_str().unwrap(), *name, "{code}");
        }
    }
}
