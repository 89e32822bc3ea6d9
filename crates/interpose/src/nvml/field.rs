//! Values by number: many questions in one call, each answered for itself.

use super::boundary::{NvmlError, nvml};
use super::library::{Device, Handle};
use super::nvlink;
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
    answer: Answer,
}

/// What a field of a device holds, if that is known, for what the caller put into its scope.
type Answer = fn(Device<'_>, Place) -> Option<u64>;

/// Which of several a field is about.
#[derive(Clone, Copy)]
struct Place {
    /// From the first number of the row.
    offset: u32,
    /// What the caller wrote beside the number: a link, where links have no numbers of their own.
    scope: u32,
}

const fn row(first: u32, last: u32, kind: u32, answer: Answer) -> Row {
    Row {
        first,
        last,
        kind,
        answer,
    }
}

/// What is known of memory errors where they are corrected.
fn no_errors(device: Device<'_>, _: Place) -> Option<u64> {
    device.corrects_errors().then_some(0)
}

/// Fields that have an answer; all others are not supported.
const ROWS: &[Row] = &[
    // Whether errors are corrected, now and later.
    row(1, 2, UNSIGNED, |device, _| {
        Some(u64::from(device.corrects_errors()))
    }),
    // Counts of errors.
    row(3, 28, UNSIGNED_LONG_LONG, no_errors),
    // Retired pages.
    row(29, 31, UNSIGNED, no_errors),
    row(92, 93, UNSIGNED, no_errors),
    // Speed of NVLinks by their numbers, of any of them, and how many there are.
    row(84, 89, UNSIGNED, |device, place| {
        nvlink::megabytes_per_second(device, place.offset)
    }),
    row(90, 90, UNSIGNED, |device, _| {
        nvlink::megabytes_per_second(device, 0)
    }),
    row(91, 91, UNSIGNED, |device, _| {
        let links = device.description.nvlinks.len();
        (links > 0).then_some(links as u64)
    }),
    row(132, 137, UNSIGNED, |device, place| {
        nvlink::megabytes_per_second(device, 6 + place.offset)
    }),
    // Remapped rows.
    row(142, 145, UNSIGNED, no_errors),
    // NVLinks that lead to a switch.
    row(147, 147, UNSIGNED, |device, _| {
        let links = device.description.nvlinks.iter();
        Some(links.filter(|link| link.peer.is_none()).count() as u64)
    }),
    // Speed of an NVLink, whether it is up, and its version.
    row(164, 164, UNSIGNED, |device, place| {
        nvlink::megabytes_per_second(device, place.scope)
    }),
    row(165, 165, UNSIGNED, |device, place| {
        nvlink::link(device, place.scope)
            .ok()
            .map(|_| nvlink::ENABLED.into())
    }),
    row(166, 166, UNSIGNED, |device, place| {
        nvlink::link(device, place.scope).ok()?;
        nvlink::version(device).map(u64::from)
    }),
    // Links to a processor on the same board.
    row(170, 170, UNSIGNED, |_, _| Some(0)),
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
    let answered = row.and_then(|row| {
        let place = Place {
            offset: field.number - row.first,
            scope: field.scope,
        };
        Some((row.kind, (row.answer)(device, place)?))
    });
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
