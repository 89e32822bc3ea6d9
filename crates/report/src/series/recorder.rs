//! Writes pieces while a run goes on, on a thread of its own.

use super::{GPU, INTERVAL, KERNEL, LAUNCH, NUMBER, Part, STREAM, TIME};
use arrow_array::builder::{Float64Builder, StringBuilder, UInt32Builder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use lockstep_counters::COUNTERS;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Rows of a piece at most.
const LARGEST: usize = 16_384;
/// A piece is written at the latest after this, so that those who watch see it.
const LATEST: Duration = Duration::from_millis(500);
/// Samples on their way to the thread; whoever takes samples faster waits.
const AHEAD: usize = 64;

/// The launch that a sample belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampledLaunch {
    /// Its number.
    pub launch: u64,
    /// Its stream.
    pub stream: u64,
    /// Its kernel.
    pub kernel: Arc<str>,
}

/// What all parts counted within an interval.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The end of the interval, in nanoseconds of simulated time.
    pub time_ns: f64,
    /// Its length.
    pub interval_ns: f64,
    /// The device.
    pub gpu: u32,
    /// The launch, if only one ran.
    pub launch: Option<SampledLaunch>,
    /// Parts with their numbers, and their counters in the order of the table.
    pub rows: Vec<(Part, u32, [u64; COUNTERS.len()])>,
}

/// Takes samples.
#[derive(Debug)]
pub struct Recorder {
    samples: Option<SyncSender<Sample>>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Recorder {
    /// Begins the pieces of every part in files that `open` makes.
    ///
    /// # Errors
    /// A file cannot be made or written.
    pub fn begin(mut open: impl FnMut(&str) -> io::Result<File>) -> io::Result<Self> {
        let mut parts = Vec::new();
        for part in Part::ALL {
            parts.push(Pieces::begin(part, open(part.pieces())?)?);
        }
        let (samples, taken) = sync_channel(AHEAD);
        let thread = std::thread::Builder::new()
            .name("series".into())
            .spawn(move || write(parts, &taken))?;
        Ok(Self {
            samples: Some(samples),
            thread: Some(thread),
        })
    }

    /// Hands over a sample; false if nothing can be written any more.
    pub fn add(&mut self, sample: Sample) -> bool {
        let sent = self.samples.as_ref().map(|samples| samples.send(sample));
        matches!(sent, Some(Ok(())))
    }

    /// Writes what is left and ends the files.
    ///
    /// # Errors
    /// A file could not be written.
    pub fn finish(mut self) -> io::Result<()> {
        drop(self.samples.take());
        let ended = self.thread.take().map(JoinHandle::join);
        match ended {
            Some(Ok(result)) => result,
            _ => Err(io::Error::other("the thread that writes series is gone")),
        }
    }
}

/// The life of the thread.
#[allow(
    clippy::disallowed_methods,
    reason = "when pieces are written changes no sample"
)]
fn write(mut parts: Vec<Pieces>, samples: &Receiver<Sample>) -> io::Result<()> {
    let mut written = Instant::now();
    loop {
        let taken = match written.elapsed() < LATEST {
            true => samples.recv_timeout(LATEST),
            false => Err(RecvTimeoutError::Timeout),
        };
        match taken {
            Ok(sample) => {
                for (part, number, counters) in &sample.rows {
                    if let Some(pieces) = parts.iter_mut().find(|one| one.part == *part) {
                        pieces.add(&sample, *number, counters);
                    }
                }
                for pieces in &mut parts {
                    if pieces.rows >= LARGEST {
                        pieces.write()?;
                    }
                }
            }
            Err(RecvTimeoutError::Timeout) => {
                for pieces in &mut parts {
                    pieces.write()?;
                }
                written = Instant::now();
            }
            Err(RecvTimeoutError::Disconnected) => {
                for pieces in &mut parts {
                    pieces.write()?;
                    pieces.writer.finish().map_err(broken)?;
                }
                return Ok(());
            }
        }
    }
}

/// The pieces of one kind of part.
struct Pieces {
    part: Part,
    schema: Arc<Schema>,
    writer: StreamWriter<File>,
    rows: usize,
    time: Float64Builder,
    interval: Float64Builder,
    gpu: UInt32Builder,
    stream: UInt64Builder,
    launch: UInt64Builder,
    kernel: StringBuilder,
    number: UInt32Builder,
    /// Places in the table of counters, and values.
    counters: Vec<(usize, UInt64Builder)>,
}

impl Pieces {
    fn begin(part: Part, file: File) -> io::Result<Self> {
        let schema = Arc::new(schema(part));
        let options = IpcWriteOptions::default();
        let writer = options
            .try_with_compression(Some(CompressionType::ZSTD))
            .and_then(|options| StreamWriter::try_new_with_options(file, &schema, options));
        Ok(Self {
            part,
            writer: writer.map_err(broken)?,
            schema,
            rows: 0,
            time: Float64Builder::new(),
            interval: Float64Builder::new(),
            gpu: UInt32Builder::new(),
            stream: UInt64Builder::new(),
            launch: UInt64Builder::new(),
            kernel: StringBuilder::new(),
            number: UInt32Builder::new(),
            counters: part
                .counters()
                .map(|(place, _)| (place, UInt64Builder::new()))
                .collect(),
        })
    }

    fn add(&mut self, sample: &Sample, number: u32, counters: &[u64; COUNTERS.len()]) {
        let launch = sample.launch.as_ref();
        self.rows += 1;
        self.time.append_value(sample.time_ns);
        self.interval.append_value(sample.interval_ns);
        self.gpu.append_value(sample.gpu);
        self.stream.append_option(launch.map(|one| one.stream));
        self.launch.append_option(launch.map(|one| one.launch));
        self.kernel.append_option(launch.map(|one| &*one.kernel));
        self.number.append_value(number);
        for (place, values) in &mut self.counters {
            values.append_value(counters[*place]);
        }
    }

    fn write(&mut self) -> io::Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        self.rows = 0;
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(self.time.finish()),
            Arc::new(self.interval.finish()),
            Arc::new(self.gpu.finish()),
            Arc::new(self.stream.finish()),
            Arc::new(self.launch.finish()),
            Arc::new(self.kernel.finish()),
            Arc::new(self.number.finish()),
        ];
        for (_, values) in &mut self.counters {
            columns.push(Arc::new(values.finish()));
        }
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns).map_err(broken)?;
        self.writer.write(&batch).map_err(broken)?;
        self.writer.flush().map_err(broken)
    }
}

/// The columns of the pieces of a part.
pub(super) fn schema(part: Part) -> Schema {
    let mut fields = vec![
        Field::new(TIME, DataType::Float64, false),
        Field::new(INTERVAL, DataType::Float64, false),
        Field::new(GPU, DataType::UInt32, false),
        Field::new(STREAM, DataType::UInt64, true),
        Field::new(LAUNCH, DataType::UInt64, true),
        Field::new(KERNEL, DataType::Utf8, true),
        Field::new(NUMBER, DataType::UInt32, false),
    ];
    let counters = part.counters();
    fields.extend(counters.map(|(_, one)| Field::new(one.name, DataType::UInt64, false)));
    Schema::new(fields)
}

/// An error of the format as one of the file, which it is.
fn broken(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, error) => error,
        other => io::Error::other(other),
    }
}
