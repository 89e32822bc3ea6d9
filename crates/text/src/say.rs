//! Printing for people and for pipes.
//!
//! Whoever reads our output may stop in the middle, as `head` does. That is no fault: what it does
//! not read is dropped, the command goes on to its end, and its exit code says what it would have
//! said. A disk that is full under a redirected output is one, and ends the command.

use std::fmt::Arguments;
use std::io::{ErrorKind, Result, Write};

/// Exit code when what was asked for could not be written (BSD's "input/output error").
const CANNOT_WRITE: i32 = 74;

/// Prints to standard output, as `print!` does.
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => { $crate::say::out(format_args!($($text)*)) };
}

/// Prints to standard error, as `eprint!` does.
#[macro_export]
macro_rules! note {
    ($($text:tt)*) => { $crate::say::error(format_args!($($text)*)) };
}

/// Standard output, for as long as somebody reads it.
pub struct Output;

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        unless_closed(std::io::stdout().lock().write(bytes), bytes.len())
    }

    fn flush(&mut self) -> Result<()> {
        unless_closed(std::io::stdout().lock().flush(), ())
    }
}

/// What came of writing; what nobody reads is as good as written.
fn unless_closed<T>(written: Result<T>, all: T) -> Result<T> {
    match written {
        Err(problem) if problem.kind() == ErrorKind::BrokenPipe => Ok(all),
        written => written,
    }
}

/// Writes to standard output.
pub fn out(text: Arguments<'_>) {
    if let Err(problem) = Output.write_fmt(text) {
        error(format_args!("lockstep: standard output: {problem}\n"));
        std::process::exit(CANNOT_WRITE);
    }
}

/// Writes to standard error; if that fails, nobody is there to be told.
pub fn error(text: Arguments<'_>) {
    let _ = std::io::stderr().lock().write_fmt(text);
}
