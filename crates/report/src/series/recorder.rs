//! Writes pieces while a run goes on, on a thread of its own.

use super::held::{Held, Rows, Shared};
use super::{GPU, INTERVAL, KERNEL, LAUNCH, NUMBER, Part, STREAM, TIME};
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

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

/// An interval, whose rows say what parts counted within it.
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
}

/// Takes samples.
#[derive(Debug)]
pub struct Recorder {
    shared: Arc<Shared>,
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
        let shared = Arc::new(Shared::new());
        let taken = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("series".into())
            .spawn(move || {
                let _gone = taken.gone_at_the_end();
                write(parts, &taken)
            })?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// Takes a sample, whose rows `fill` adds; false if nothing can be written any more.
    pub fn add(&mut self, sample: &Sample, fill: impl FnOnce(&mut Rows<'_>)) -> bool {
        self.shared.add(sample, fill)
    }

    /// Writes what is left and ends the files.
    ///
    /// # Errors
    /// A file could not be written.
    pub fn finish(mut self) -> io::Result<()> {
        self.shared.end();
        let ended = self.thread.take().map(JoinHandle::join);
        match ended {
            Some(Ok(result)) => result,
            _ => Err(io::Error::other("the thread that writes series is gone")),
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.shared.end();
    }
}

/// The life of the thread.
fn write(mut parts: Vec<Pieces>, shared: &Shared) -> io::Result<()> {
    let mut taken = Vec::new();
    loop {
        let ended = shared.take(&mut taken);
        for (pieces, held) in parts.iter_mut().zip(&taken) {
            pieces.write(held)?;
        }
        if ended {
            for pieces in &mut parts {
                pieces.writer.finish().map_err(broken)?;
            }
            return Ok(());
        }
    }
}

/// The pieces of one kind of part.
struct Pieces {
    schema: Arc<Schema>,
    writer: StreamWriter<File>,
}

impl Pieces {
    fn begin(part: Part, file: File) -> io::Result<Self> {
        let schema = Arc::new(schema(part));
        let options = IpcWriteOptions::default();
        let writer = options
            .try_with_compression(Some(CompressionType::ZSTD))
            .and_then(|options| StreamWriter::try_new_with_options(file, &schema, options));
        Ok(Self {
            writer: writer.map_err(broken)?,
            schema,
        })
    }

    fn write(&mut self, held: &Held) -> io::Result<()> {
        if held.rows() == 0 {
            return Ok(());
        }
        let launch = |sample: &Sample| sample.launch.as_ref().map(|one| one.launch);
        let stream = |sample: &Sample| sample.launch.as_ref().map(|one| one.stream);
        let kernels = held.repeated(|sample| sample.launch.as_ref().map(|one| &*one.kernel));
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(Float64Array::from(held.repeated(|one| one.time_ns))),
            Arc::new(Float64Array::from(held.repeated(|one| one.interval_ns))),
            Arc::new(UInt32Array::from(held.repeated(|one| one.gpu))),
            Arc::new(UInt64Array::from(held.repeated(stream))),
            Arc::new(UInt64Array::from(held.repeated(launch))),
            Arc::new(StringArray::from(kernels)),
            Arc::new(UInt32Array::from(held.numbers.clone())),
        ];
        for values in held.counters() {
            columns.push(Arc::new(UInt64Array::from(values)));
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
