//! What a sleeping thread waits for: another thread of its process, or the world.
//!
//! A thread that waits for another one is woken by what the program does, so when it goes on
//! follows from the program. One that sleeps for a time, or waits for a file or another process,
//! goes on when the host's clock or the world says so.

/// How a thread sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sleep {
    /// Until another thread of the process wakes it.
    ForThread,
    /// Until a time, or until the world outside the process has something for it.
    ForWorld,
    /// The system does not say.
    Unknown,
}

/// Reads the line that the kernel writes of a task's system call: its number and arguments in
/// hexadecimal, `running`, or `-1` for a page that is waited for.
pub fn parse(line: &str) -> Sleep {
    let mut words = line.split_ascii_whitespace();
    let Some(number) = words.next().and_then(|word| word.parse::<i64>().ok()) else {
        return Sleep::Unknown;
    };
    let mut argument = |index: usize| {
        let word = words.nth(index)?;
        u64::from_str_radix(word.trim_start_matches("0x"), 16).ok()
    };
    match number {
        // A page: those of managed and pinned memory are ours to give.
        -1 => Sleep::ForThread,
        // The fourth argument of a futex is its time-out.
        libc::SYS_futex if argument(3) == Some(0) => Sleep::ForThread,
        _ => Sleep::ForWorld,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mutex_waits_for_a_thread_and_a_timed_wait_for_the_clock() {
        let futex = |timeout: &str| format!("202 0x7f 0x189 0x0 {timeout} 0x0 0xffffffff 0x1 0x2");
        assert_eq!(parse(&futex("0x0")), Sleep::ForThread);
        assert_eq!(parse(&futex("0x7ffd0")), Sleep::ForWorld);
        // nanosleep, poll, read.
        for number in [35, 7, 0] {
            let line = format!("{number} 0x1 0x2 0x3 0x0 0x5 0x6 0x7 0x8");
            assert_eq!(parse(&line), Sleep::ForWorld);
        }
        assert_eq!(parse("-1 0x7ffe 0x7f00"), Sleep::ForThread);
        assert_eq!(parse("running"), Sleep::Unknown);
        assert_eq!(parse(""), Sleep::Unknown);
    }
}
