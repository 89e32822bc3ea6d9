//! The process's own processor time and memory.

use lockstep_segment::{Record, RecordKind};

use crate::clock;

/// A reading of the process's host side, in the order of the registry's host gauges.
pub fn read() -> Record {
    let mut record = Record::new(RecordKind::Host);
    record.begin = clock::now();
    record.end = record.begin;
    // SAFETY: all zeros is a value of this plain struct.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: a valid place for the answer.
    if unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) } == 0 {
        let nanoseconds =
            |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
        record.set(0, nanoseconds(usage.ru_utime) + nanoseconds(usage.ru_stime));
    }
    if let Some(bytes) = resident_bytes() {
        record.set(1, bytes);
    }
    record
}

fn resident_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_ascii_whitespace().nth(1)?.parse().ok()?;
    // SAFETY: a constant of the system.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    Some(pages * u64::try_from(page).ok()?)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_process_has_used_some_time_and_memory() {
        let record = super::read();
        assert!(record.value(0).is_some());
        assert!(record.value(1).unwrap() > 100_000);
    }
}
