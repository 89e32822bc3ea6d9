//! Asking the simulator.

use crate::fair_mutex::FairMutex;
use crate::managed::polling;
use crate::process::lock;
use crate::{managed, nvtx, process, report, spin, thread};
use lockstep_protocol::{CuResult, Reply, Request, Response, UnsupportedManner};
use std::collections::BTreeSet;
use std::ffi::c_void;

/// What has been reported as unsupported.
static REPORTED: FairMutex<BTreeSet<(String, UnsupportedManner)>> = FairMutex::new(BTreeSet::new());

/// Sends a request and waits for its answer. Output of kernels is written on the way.
pub fn call(request: &Request) -> Result<Reply, CuResult> {
    call_with_message(request).map_err(|failure| failure.0)
}

/// As [`call`], with the message of a failure.
pub fn call_with_message(request: &Request) -> Result<Reply, (CuResult, String)> {
    let quiet = |code| (code, String::new());
    process::process().map_err(quiet)?;
    nvtx::flush();
    let thread = thread::current();
    let mut place = thread.connection.borrow_mut();
    let connection = match &mut *place {
        Some(connection) => connection,
        empty => empty.insert(process::connect().map_err(quiet)?),
    };
    process::ring();
    polling::call_begins();
    spin::goes_on();
    let response = match connection.call(request) {
        Ok(response) => response,
        Err(error) => report::simulator_gone(&error.to_string()),
    };
    polling::call_ended(response.result.as_ref().ok());
    drop(place);
    let Response {
        output,
        left_host,
        result,
        ..
    } = response;
    managed::close(&left_host);
    write_output(&output);
    result.map_err(|failure| (failure.code, failure.message))
}

/// Sends a request that answers nothing.
pub fn done(request: &Request) -> Result<(), CuResult> {
    call(request).map(|_| ())
}

/// Takes the expected kind of reply out of an answer.
macro_rules! ask {
    ($kind:ident, $request:expr) => {
        match crate::call::call($request)? {
            lockstep_protocol::Reply::$kind(value) => value,
            other => return Err(crate::call::unexpected(stringify!($kind), &other).into()),
        }
    };
}
pub(crate) use ask;

/// Reports a reply of the wrong kind: the two sides disagree on the protocol.
pub fn unexpected(expected: &str, reply: &Reply) -> CuResult {
    report::sentence(&format!(
        "the simulator answered {reply:?} where {expected} was expected"
    ));
    CuResult::UNKNOWN
}

/// Notes a call that we lack, once a process.
pub fn unsupported(name: &str) {
    note(name, UnsupportedManner::Called);
}

/// Notes that the program used something that we lack, once a process.
pub fn note(name: &str, manner: UnsupportedManner) {
    if !lock(&REPORTED).insert((name.to_string(), manner)) {
        return;
    }
    if manner == UnsupportedManner::Called {
        report::sentence(&format!(
            "{name} is not supported; the call answers \"operation not supported\" (801)"
        ));
    }
    let request = Request::Unsupported {
        name: name.to_string(),
        manner,
    };
    // Without a simulator there is nobody to tell, and the sentence has been said.
    let _ = call(&request);
}

/// Writes what kernels printed through the C library's standard output, so that it keeps
/// its place among what the program prints.
pub fn write_output(bytes: &[u8]) {
    unsafe extern "C" {
        static stdout: *mut libc::FILE;
    }
    if !bytes.is_empty() {
        // SAFETY: `stdout` is the C library's own stream, and the bytes are a live slice.
        unsafe { libc::fwrite(bytes.as_ptr().cast::<c_void>(), 1, bytes.len(), stdout) };
    }
}
