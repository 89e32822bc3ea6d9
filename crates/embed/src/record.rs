//! Records of CUDA calls as C reads them: entry by entry, as bytes to send on.

use crate::LockstepStatus;
use crate::guard::{self, Failure, Handle, Troubles};
use crate::handle::{given_back, made};
use lockstep_simulation::{RecordReader, full_record};
use std::ffi::c_char;
use std::fs::File;

/// The calls of a program, as `lockstep run --record full` writes them (`calls.record` of its run folder).
pub struct LockstepRecord {
    file: OpenRecord,
    troubles: Troubles,
}

/// A record that is read.
pub(crate) struct OpenRecord {
    entries: RecordReader<File>,
    /// The entry that was read last.
    entry: Vec<u8>,
}

impl Handle for LockstepRecord {
    type Inside = OpenRecord;

    fn parts(&mut self) -> (&mut OpenRecord, &mut Troubles) {
        (&mut self.file, &mut self.troubles)
    }

    fn troubles(&self) -> &Troubles {
        &self.troubles
    }
}

/// Opens a record. On failure `message`, if it is not null, gets the reason, cut to `message_bytes`.
///
/// # Safety
/// The pointers are good.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_record_open(
    path: *const c_char,
    record: *mut *mut LockstepRecord,
    message: *mut c_char,
    message_bytes: usize,
) -> LockstepStatus {
    // SAFETY: as the caller says.
    unsafe {
        made(record, message, message_bytes, || {
            let path = guard::text(path, "path")?;
            let named =
                |error: &dyn std::fmt::Display| Failure::argument(format!("{path}: {error}"));
            let file = File::open(path).map_err(|error| named(&error))?;
            Ok(LockstepRecord {
                file: OpenRecord {
                    entries: full_record(file).map_err(|error| named(&error))?,
                    entry: Vec::new(),
                },
                troubles: Troubles::default(),
            })
        })
    }
}

/// Reads the next entry; 0 bytes after the last. The bytes stay until the next call.
///
/// # Safety
/// The pointers are good.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_record_next(
    record: *mut LockstepRecord,
    entry: *mut *const u8,
    entry_bytes: *mut usize,
) -> LockstepStatus {
    let unreadable = |error: &dyn std::fmt::Display| Failure::argument(error.to_string());
    // SAFETY: as the caller says.
    guard::status(unsafe {
        guard::on(record, |record| {
            let next = record.entries.next().transpose();
            record.entry = match next.map_err(|error| unreadable(&error))? {
                Some(next) => next.to_bytes().map_err(|error| unreadable(&error))?,
                None => Vec::new(),
            };
            guard::put(entry, record.entry.as_ptr())?;
            guard::put(entry_bytes, record.entry.len())
        })
    })
}

/// Why the last call on a record failed; it stays until the next failure.
///
/// # Safety
/// The pointer is null or a record of this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_record_message(record: *const LockstepRecord) -> *const c_char {
    // SAFETY: as the caller says.
    unsafe { guard::message(record, c"there is no record") }
}

/// Closes a record; null is nothing to close.
///
/// # Safety
/// The record is from this library and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_record_close(record: *mut LockstepRecord) {
    // SAFETY: as the caller says.
    unsafe { given_back(record) };
}
