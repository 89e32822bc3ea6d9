//! The record of calls as text: what the program asked of the simulator, when, and what it was told.

use crate::program::RunError;
use crate::record_replay::record_of;
use lockstep_protocol::Response;
use lockstep_runtime::{Entry, RecordError, RecordReader};
use std::fmt::{self, Debug, Write as _};
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// Characters of a request or an answer that are worth reading; a module has millions.
const LONGEST: usize = 200;
/// Femtoseconds in a microsecond.
const MICROSECOND: f64 = 1e9;

/// Writes one line a call of the record in a run folder, or of a record itself.
///
/// # Errors
/// The record cannot be read, or its end is missing; what is there was written before.
pub fn list_calls(place: &Path, out: &mut impl Write) -> Result<(), RunError> {
    let path = record_of(place);
    let wrong =
        |error: &dyn fmt::Display| RunError::Request(format!("{}: {error}", path.display()));
    let file = File::open(&path).map_err(|error| wrong(&error))?;
    let reader = RecordReader::new(file).map_err(|error| wrong(&error))?;
    let said = |result: std::io::Result<()>| result.map_err(|error| wrong(&error));
    said(writeln!(
        out,
        "{:>6} {:>14} {:>7} {:>6}  call and answer",
        "number", "at (us)", "process", "thread"
    ))?;
    let mut number = 0u64;
    // A call waits for its answer, which is the next entry of a full record.
    let mut waiting = false;
    for entry in reader {
        let entry = entry.map_err(|error: RecordError| wrong(&error))?;
        let line = match &entry {
            Entry::Call {
                thread,
                process,
                at,
                request,
                ..
            } => {
                number += 1;
                let end = if waiting { "\n" } else { "" };
                waiting = true;
                format!(
                    "{end}{number:>6} {:>14.3} {process:>7} {thread:>6}  {}",
                    *at as f64 / MICROSECOND,
                    brief(request)
                )
            }
            Entry::Answered { response, .. } => {
                waiting = false;
                format!(" = {}\n", answer(response))
            }
            Entry::Wrote { address, bytes } => {
                let bytes = bytes.len();
                aside(
                    &mut waiting,
                    &format!("the host wrote {bytes} bytes at {address:#x}"),
                )
            }
            Entry::Gone { process } => aside(&mut waiting, &format!("process {process} ended")),
            Entry::Killed { process } => {
                aside(&mut waiting, &format!("process {process} was killed"))
            }
            Entry::Reached { at } => {
                let at = *at as f64 / MICROSECOND;
                aside(&mut waiting, &format!("the next call came at {at:.3}"))
            }
        };
        said(out.write_all(line.as_bytes()))?;
    }
    said(if waiting { writeln!(out) } else { Ok(()) })
}

/// A line that is no call, after the end of one that has none.
fn aside(waiting: &mut bool, words: &str) -> String {
    let end = if std::mem::take(waiting) { "\n" } else { "" };
    format!("{end}{:>38}{words}\n", "")
}

fn answer(response: &Response) -> String {
    match &response.result {
        Ok(reply) => brief(reply),
        Err(failure) => {
            let name = failure.code.name().unwrap_or("an unknown code");
            let message = &failure.message;
            if message.is_empty() {
                name.into()
            } else {
                format!("{name}: {message}")
            }
        }
    }
}

/// As much of a value's text as is worth reading; no more of it is made.
pub(crate) fn brief(value: &impl Debug) -> String {
    let mut text = Limited(String::new());
    match write!(text, "{value:?}") {
        Ok(()) => text.0,
        Err(_) => text.0 + "...",
    }
}

/// A text that refuses to grow past [`LONGEST`].
struct Limited(String);

impl fmt::Write for Limited {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        let room = LONGEST.saturating_sub(self.0.len());
        if piece.len() <= room {
            self.0.push_str(piece);
            return Ok(());
        }
        let cut = piece.floor_char_boundary(room);
        self.0.push_str(&piece[..cut]);
        Err(fmt::Error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_protocol::{Reply, Request};
    use lockstep_runtime::{Client, RecordWriter};
    use lockstep_units::Time;

    #[test]
    fn a_line_has_a_call_and_its_answer() {
        let mut writer = RecordWriter::new(Vec::new(), true).unwrap();
        let client = Client {
            connection: 3,
            process: 1,
        };
        let request = Request::Profiler { start: true };
        writer
            .call(client, 0, Time(2_500_000_000), &request)
            .unwrap();
        writer
            .answered(&Response::reply(Reply::Value(7)), &[], [0; 32])
            .unwrap();
        writer.call(client, 0, Time(0), &request).unwrap();
        writer.gone(1).unwrap();
        let name = format!("lockstep-calls-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("calls.record"), writer.finish().unwrap()).unwrap();
        let mut text = Vec::new();
        list_calls(&folder, &mut text).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        let text = String::from_utf8(text).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].contains("2.500"), "{text}");
        assert!(
            lines[1].ends_with("Profiler { start: true } = Value(7)"),
            "{text}"
        );
        assert!(lines[2].ends_with("Profiler { start: true }"), "{text}");
        assert!(lines[3].ends_with("process 1 ended"), "{text}");
        assert_eq!(lines.len(), 4);
    }

    #[test]
    fn long_values_are_cut() {
        let text = brief(&vec![7u8; 1 << 20]);
        assert!(text.len() <= LONGEST + 3 && text.ends_with("..."));
    }
}
