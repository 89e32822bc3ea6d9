//! Values by number: many questions in one call, each answered for itself.

use super::boundary::{NvmlError, nvml};
use super::library::{Device, Handle};
use crate::types::Out;

/// `nvmlFieldValue_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Field {
    number: u32,
    scope: u32,
    /// Microseconds since 1970.
    time: i64,
    latency: i64,
    kind: u32,
    result: u32,
    value: u64,
}

const _: () = assert!(size_of::<Field>() == 40);

const UNSIGNED: u32 = 1;
const UNSIGNED_LONG_LONG: u32 = 3;

/// Fields from `first` to `last` that have one answer.
struct Row {
    first: u32,
    last: u32,
    kind: u32,
    answer: fn(Device<'_>) -> Option<u64>,
}

const fn row(first: u32, last: u32, kind: u32, answer: fn(Device<'_>) -> Option<u64>) -> Row {
    Row {
        first,
        last,
        kind,
        answer,
    }
}

/// What is known of memory errors where they are corrected.
fn no_errors(device: Device<'_>) -> Option<u64> {
    device.corrects_errors().then_some(0)
}

/// Fields that have an answer; all others are not supported.
const ROWS: &[Row] = &[
    // Whether errors are corrected, now and later.
    row(1, 2, UNSIGNED, |device| {
        Some(u64::from(device.corrects_errors()))
    }),
    // Counts of errors.
    row(3, 28, UNSIGNED_LONG_LONG, no_errors),
    // Retired pages.
    row(29, 31, UNSIGNED, no_errors),
    row(92, 93, UNSIGNED, no_errors),
    // Links of NVLink.
    row(91, 91, UNSIGNED, |_| Some(0)),
    // Remapped rows.
    row(142, 145, UNSIGNED, no_errors),
    // Whether a link is up.
    row(165, 165, UNSIGNED, |_| Some(0)),
    // Links to a processor on the same board.
    row(170, 170, UNSIGNED, |_| Some(0)),
];

nvml! {
    fn nvmlDeviceGetFieldValues [library] (device: Handle, count: i32, fields: Out<Field>) {
        let device = library.device(device)?;
        fields.check()?;
        for index in 0..usize::try_from(count).map_err(|_| NvmlError::INVALID_ARGUMENT)? {
            let place = fields.element(index);
            let mut field = place.current()?;
            answer(device, &mut field);
            place.set(field)?;
        }
        Ok(())
    }
}

fn answer(device: Device<'_>, field: &mut Field) {
    let mut rows = ROWS.iter();
    let row = rows.find(|row| (row.first..=row.last).contains(&field.number));
    field.time = now();
    field.latency = 0;
    let answered = row.and_then(|row| Some((row.kind, (row.answer)(device)?)));
    match answered {
        Some((kind, value)) => (field.kind, field.value, field.result) = (kind, value, 0),
        None => field.result = NvmlError::NOT_SUPPORTED.0,
    }
}

/// The host's clock, in microseconds since 1970: it is the program's own.
fn now() -> i64 {
    // SAFETY: the structure is plain data, and the call fills it.
    let mut time: libc::timespec = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is that of a live structure.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &mut time) };
    time.tv_sec * 1_000_000 + time.tv_nsec / 1000
}
