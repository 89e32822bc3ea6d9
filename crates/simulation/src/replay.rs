//! Replays a full record of calls without the program that made them.
//!
//! A record comes from outside: whatever it holds, the answer is a result or a sentence that names
//! the entry.

use crate::description::Description;
use crate::interrupts::Interrupts;
use crate::machine;
use crate::node::Node;
use crate::program::{RunError, system};
use crate::results::Results;
use crate::server::Figures;
use crate::{host_writes, memory_limits};
use lockstep_protocol::{Response, window};
use lockstep_run_folder::{Ending, RunFolder};
use lockstep_runtime::{Client, Device, Entry, Piece, RecordError, RecordReader, Runtime};
use lockstep_units::Time;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Entries after which memory is looked at: each writes at most 1 MiB.
const LOOK_AFTER: usize = 16;
/// Differences that are named before the rest is only counted.
const NAMED: usize = 4;

/// Answers every call of a record again, as described, and says what came of it. What was answered
/// otherwise than the program was is among the problems.
///
/// # Errors
/// The record cannot be read, or nothing could be simulated.
pub fn replay(description: &Description, record: &Path) -> Result<Results, RunError> {
    let name = record.display().to_string();
    let file = std::fs::File::open(record).map_err(system(&name))?;
    replay_from(description, &name, file)
}

/// The same of a record that is no file.
///
/// # Errors
/// As of [`replay`].
pub fn replay_from(
    description: &Description,
    name: &str,
    record: impl Read,
) -> Result<Results, RunError> {
    let interrupts = Interrupts::listen(description.progress.stop_flag())
        .map_err(system("listening for signals"))?;
    Replayed::new(description, name)?.run(description, record, &interrupts)
}

/// The same with tables that grow in a folder. Where times need not be those of the record, an answer may differ and
/// what the program read may not.
///
/// # Errors
/// As of [`replay`].
pub(crate) fn replay_into(
    description: &Description,
    record: &Path,
    folder: &Arc<RunFolder>,
    interrupts: &Interrupts,
    same_times: bool,
) -> Result<Results, RunError> {
    let name = record.display().to_string();
    let file = std::fs::File::open(record).map_err(system(&name))?;
    let mut replayed = Replayed::new(description, &name)?;
    replayed.time_differs |= !same_times;
    let node = replayed.runtime.device_mut();
    node.write_down(folder, description.series)?;
    replayed.run(description, file, interrupts)
}

/// The entries of a record that can be replayed.
///
/// # Errors
/// It is none, or lacks what the host wrote.
pub fn full_record<R: Read>(record: R) -> Result<RecordReader<R>, String> {
    let record = RecordReader::new(record).map_err(|error| error.to_string())?;
    match record.is_full() {
        true => Ok(record),
        false => Err(
            "it holds calls and no data, so it cannot be replayed: run the program with \
             --record full"
                .into(),
        ),
    }
}

/// A run that is made again.
pub(crate) struct Replayed {
    pub(crate) runtime: Runtime<Node>,
    name: String,
    /// Entries so far.
    entries: usize,
    began: Instant,
    /// What the last call was answered here.
    answer: Option<Response>,
    differences: Vec<String>,
    more: u64,
    /// Whether time passes otherwise than where the record was made, which calls that ask for it are told.
    time_differs: bool,
    /// Answers that differ because of that.
    other_answers: u64,
}

impl Replayed {
    /// A run that begins, of a record called `name`.
    ///
    /// # Errors
    /// The GPU cannot be built.
    #[allow(
        clippy::disallowed_methods,
        reason = "figures about the host are outside the digest"
    )]
    pub(crate) fn new(description: &Description, name: &str) -> Result<Self, RunError> {
        let memory = window::create_for(description.all_gpus())?;
        Ok(Self {
            runtime: machine::runtime(description, &memory)?,
            name: name.to_owned(),
            entries: 0,
            began: Instant::now(),
            answer: None,
            differences: Vec::new(),
            more: 0,
            time_differs: description
                .outside
                .as_ref()
                .is_some_and(|clock| clock.has_memory()),
            other_answers: 0,
        })
    }

    /// Does what all entries of a record say, unless a signal comes.
    fn run(
        mut self,
        description: &Description,
        record: impl Read,
        interrupts: &Interrupts,
    ) -> Result<Results, RunError> {
        let name = self.name.clone();
        let wrong = |reason: String| RunError::Request(format!("{name}: {reason}"));
        let mut notices = Vec::new();
        for entry in full_record(record).map_err(wrong)? {
            if let Some(signal) = interrupts.signal() {
                return Err(RunError::Interrupted(signal));
            }
            match entry {
                Ok(entry) => self.enter(entry)?,
                // A run that was killed can be replayed as far as it came.
                Err(error @ RecordError::Truncated { entries: 1.. }) => {
                    notices.push(format!("{name}: {error}"));
                }
                Err(error) => return Err(wrong(error.to_string())),
            }
        }
        if let Some(signal) = interrupts.signal() {
            return Err(RunError::Interrupted(signal));
        }
        let mut results = self.results(description);
        results.notices.extend(notices);
        Ok(results)
    }

    /// Does what an entry says.
    ///
    /// # Errors
    /// It cannot be one of this run, or memory is used up.
    pub(crate) fn enter(&mut self, entry: Entry) -> Result<(), RunError> {
        let (name, number) = (self.name.clone(), self.entries);
        if number % LOOK_AFTER == 0
            && let Some(left) = memory_limits::left()
            && let Some(sentence) = left.too_little_to_go_on()
        {
            return Err(RunError::Memory(format!(
                "{name}: entry {number}: {sentence}"
            )));
        }
        self.entries += 1;
        self.perform(number, entry).map_err(|reason| {
            RunError::Request(format!(
                "{name}: entry {number} {reason}; the record is damaged, or not one of ours"
            ))
        })
    }

    fn perform(&mut self, number: usize, entry: Entry) -> Result<(), String> {
        match entry {
            Entry::Call {
                thread,
                process,
                request,
                ..
            } => {
                let client = Client {
                    connection: thread,
                    process,
                };
                // A call that failed in the program fails here as well.
                self.answer = Some(self.runtime.handle(client, &request));
            }
            Entry::Wrote { address, bytes } => {
                self.check(&Piece::linear(address, bytes.len() as u64), "writes")?;
                self.runtime.device_mut().write(address, &bytes);
            }
            Entry::Answered {
                response,
                read,
                digest,
            } => {
                let answer = self.answer.take();
                let answer = answer.ok_or("answers a call that was not made")?;
                if answer != response && self.time_differs {
                    self.other_answers += 1;
                } else if answer != response {
                    self.differs(format!(
                        "entry {number}: the program was answered {:?}, and the replay {:?}",
                        response.result, answer.result
                    ));
                }
                for piece in &read {
                    self.check(piece, "reads")?;
                }
                if host_writes::digest(&self.runtime, &read) != digest {
                    let first = read.first().map_or(0, |piece| piece.rows.address);
                    self.differs(format!(
                        "entry {number}: the program read other bytes than the replay has, in {} \
                         pieces from {first:#x}",
                        read.len()
                    ));
                }
            }
            Entry::Gone { process } => self.runtime.detach(process),
            Entry::Killed { process } => {
                let words = format!("process {process} of the record was killed");
                self.runtime.killed(process, &words);
            }
            Entry::Reached { at } => self.runtime.host_reaches(Time(at)),
        }
        Ok(())
    }

    /// Memory of a record must be memory of the run.
    fn check(&self, piece: &Piece, verb: &str) -> Result<(), String> {
        self.runtime.holds(piece).map_err(|failure| {
            let bytes = piece.extent.bytes().unwrap_or(u64::MAX);
            let address = piece.rows.address;
            format!("{verb} {bytes} bytes at {address:#x}: {}", failure.message)
        })
    }

    fn differs(&mut self, difference: String) {
        if self.differences.len() < NAMED {
            self.differences.push(difference);
        } else {
            self.more += 1;
        }
    }

    /// What came of it.
    pub(crate) fn results(&mut self, description: &Description) -> Results {
        let wall = self.began.elapsed();
        let figures = Figures {
            simulating: wall,
            ..Figures::default()
        };
        let ending = Ending {
            problems: self.problems(),
            ..Ending::default()
        };
        let command = [self.name.clone()];
        let runtime = &mut self.runtime;
        let mut results = Results::collect(description, &command, runtime, figures, wall, ending);
        if self.other_answers > 0 {
            let (name, count) = (&self.name, self.other_answers);
            results.notices.push(format!(
                "{name}: {count} calls were answered otherwise than in the record, as times are others here"
            ));
        }
        results
    }

    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems = self.differences.clone();
        if self.more > 0 {
            problems.push(format!("and {} more answers differ", self.more));
        }
        problems
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::description::Mode;
    use crate::host_writes::HostWrites;
    use lockstep_protocol::{
        ContextHandle, Copy, CuResult, Extent, Place, Reply, Request, Rows, StreamName, layout,
    };
    use lockstep_runtime::RecordWriter;

    const BYTES: u64 = 8192;
    const CLIENT: Client = Client {
        connection: 0,
        process: 0,
    };

    fn description() -> Description {
        let config = lockstep_config::resolve::<String>(Some("h200"), &[])
            .unwrap()
            .config;
        let mut description = Description::new("h200", config);
        description.mode = Mode::Functional;
        description
    }

    /// What a program does: each call with what it writes once it has the answer.
    pub(crate) type Ask<'run> = dyn FnMut(Request, Option<(u64, &[u8])>) -> Reply + 'run;

    /// The calls of a program, recorded as a server does it.
    pub(crate) fn recorded(
        description: &Description,
        program: impl FnOnce(&mut Ask<'_>),
    ) -> Vec<u8> {
        let memory = window::create().unwrap();
        let mut runtime = machine::runtime(description, &memory).unwrap();
        let mut writes = HostWrites::default();
        let mut record = RecordWriter::new(Vec::new(), true).unwrap();
        program(&mut |request, write| {
            writes.before(0, &runtime, |address, bytes| {
                record.wrote(address, bytes).unwrap();
            });
            record.call(CLIENT, 0, Time(0), &request).unwrap();
            let response = runtime.handle(CLIENT, &request);
            let read = writes.after(0, &runtime);
            let digest = host_writes::digest(&runtime, &read);
            record.answered(&response, &read, digest).unwrap();
            if let Some((address, bytes)) = write {
                // Past the record, as the program does.
                runtime.device_mut().write(address, bytes);
            }
            response.result.unwrap()
        });
        record.finish().unwrap()
    }

    /// A copy between the program's own memory and the device's.
    pub(crate) fn copy(
        context: ContextHandle,
        (destination, source): (Place, Place),
        bytes: u64,
    ) -> Request {
        Request::Copy(Copy {
            context,
            stream: StreamName::Legacy,
            destination,
            source,
            extent: Extent::linear(bytes),
            blocking: true,
        })
    }

    /// A program that copies something to the device and back.
    fn entries() -> Vec<Entry> {
        let file = recorded(&description(), |ask| {
            let Reply::Context(context) = ask(Request::PrimaryContextRetain { device: 0 }, None)
            else {
                panic!()
            };
            let bytes = BYTES;
            let Reply::Address(address) = ask(Request::Allocate { context, bytes }, None) else {
                panic!()
            };
            let place = Place::Window(Rows::linear(address, BYTES));
            let sevens = vec![7; BYTES as usize];
            ask(
                copy(context, (place, Place::Host), BYTES),
                Some((address, &sevens)),
            );
            ask(copy(context, (Place::Host, place), BYTES), None);
            ask(Request::ContextSynchronize { context }, None);
        });
        let entries = RecordReader::new(&file[..]).unwrap();
        entries.map(Result::unwrap).collect()
    }

    /// Replays entries that somebody may have changed.
    fn replayed(entries: &[Entry]) -> Result<Results, RunError> {
        let mut record = RecordWriter::new(Vec::new(), true).unwrap();
        for entry in entries {
            match entry {
                Entry::Call {
                    thread,
                    process,
                    quiet,
                    at,
                    request,
                } => {
                    let client = Client {
                        connection: *thread,
                        process: *process,
                    };
                    record.call(client, *quiet, Time(*at), request)
                }
                Entry::Wrote { address, bytes } => record.wrote(*address, bytes),
                Entry::Answered {
                    response,
                    read,
                    digest,
                } => record.answered(response, read, *digest),
                Entry::Gone { process } => record.gone(*process),
                Entry::Killed { process } => record.killed(*process),
                Entry::Reached { at } => record.reached(Time(*at)),
            }
            .unwrap();
        }
        let file = record.finish().unwrap();
        replay_from(&description(), "record", &file[..])
    }

    #[test]
    fn a_replay_answers_as_the_program_was_answered() {
        let results = replayed(&entries()).unwrap();
        assert_eq!(results.summary.ending.problems, Vec::<String>::new());
        assert_eq!(results.summary.totals.calls, 5);
        // A run that was killed is replayed as far as it came.
        let results = replayed(&entries()[..6]).unwrap();
        assert_eq!(results.summary.ending.problems, Vec::<String>::new());
    }

    #[test]
    fn other_bytes_and_other_answers_are_found() {
        let mut changed = entries();
        for entry in &mut changed {
            if let Entry::Wrote { bytes, .. } = entry {
                bytes[5] ^= 1;
            }
        }
        let results = replayed(&changed).unwrap();
        let problems = &results.summary.ending.problems;
        assert!(
            problems.len() == 1 && problems[0].contains("the program read other bytes"),
            "{problems:?}"
        );
        assert_eq!(results.summary.ending.exit_code, 1);
        let mut changed = entries();
        if let Entry::Answered { response, .. } = &mut changed[1] {
            *response = Response::failure(CuResult::OUT_OF_MEMORY, "");
        }
        let results = replayed(&changed).unwrap();
        let problems = &results.summary.ending.problems;
        assert!(
            problems[0].starts_with("entry 1: the program was answered"),
            "{problems:?}"
        );
    }

    #[test]
    fn a_write_outside_memory_is_an_error_that_names_the_entry() {
        let end = layout::WINDOW_BASE + layout::WINDOW_SIZE;
        let good = entries();
        let address = good.iter().find_map(|entry| match entry {
            Entry::Wrote { address, .. } => Some(*address),
            _ => None,
        });
        let inside = address.unwrap();
        // Nowhere, before and past the window, where nothing is allocated, across the end.
        for address in [
            0,
            layout::WINDOW_BASE - 1,
            end - 1,
            end,
            u64::MAX,
            layout::PINNED_BASE,
            inside + BYTES - 1,
        ] {
            let bytes = vec![1, 2];
            let mut entries = good.clone();
            entries.push(Entry::Wrote { address, bytes });
            let error = replayed(&entries).unwrap_err().to_string();
            let named = format!("entry {} writes 2 bytes at {address:#x}", good.len());
            assert!(error.contains(&named), "{address:#x}: {error}");
        }
    }

    #[test]
    fn what_was_read_outside_memory_is_an_error_as_well() {
        let mut pieces = vec![Piece::linear(u64::MAX - 1, 8), Piece::linear(0, u64::MAX)];
        // Rows that overlap, and rows past the end of everything.
        for (row_pitch, height) in [(0, 2), (u64::MAX, 3)] {
            let mut piece = Piece::linear(layout::WINDOW_BASE, 8);
            piece.rows.row_pitch = row_pitch;
            piece.extent.height = height;
            pieces.push(piece);
        }
        for piece in pieces {
            let mut changed = entries();
            let Some(Entry::Answered { read, .. }) = changed.get_mut(1) else {
                panic!()
            };
            read.push(piece);
            let error = replayed(&changed).unwrap_err().to_string();
            assert!(error.contains("entry 1 reads"), "{piece:?}: {error}");
        }
        let answer = entries().remove(1);
        let error = replayed(&[answer]).unwrap_err().to_string();
        assert!(error.contains("a call that was not made"), "{error}");
    }
}
