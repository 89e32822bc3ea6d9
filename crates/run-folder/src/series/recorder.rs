//! Writes blocks while a run goes on, on a thread of its own.

use super::Part;
use super::columns::{GPU, INTERVAL, KERNEL, LAUNCH, NUMBER, STREAM, TIME};
use super::encoding::{BlockBuilder, write_head};
use super::held::{Held, Rows, Shared};
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
    /// Begins a series in a file.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn begin(mut file: File) -> io::Result<Self> {
        write_head(&mut file, false)?;
        let shared = Arc::new(Shared::new());
        let taken = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("series".into())
            .spawn(move || {
                let _gone = taken.gone_at_the_end();
                write(file, &taken)
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
fn write(mut file: File, shared: &Shared) -> io::Result<()> {
    let mut taken = Vec::new();
    loop {
        let ended = shared.take(&mut taken);
        for (part, held) in Part::ALL.into_iter().zip(&taken) {
            write_block(&mut file, part, held)?;
        }
        if ended {
            return Ok(());
        }
    }
}

fn write_block(file: &mut File, part: Part, held: &Held) -> io::Result<()> {
    if held.rows() == 0 {
        return Ok(());
    }
    let mut block = BlockBuilder::new(part as u8, held.rows());
    let launch = |sample: &Sample| sample.launch.as_ref().map(|one| one.launch);
    let stream = |sample: &Sample| sample.launch.as_ref().map(|one| one.stream);
    let kernels = held.repeated(|sample| sample.launch.as_ref().map(|one| &*one.kernel));
    block.times(TIME, held.repeated(|one| one.time_ns).into_iter());
    block.times(INTERVAL, held.repeated(|one| one.interval_ns).into_iter());
    block.numbers(GPU, held.repeated(|one| one.gpu.into()).into_iter());
    block.options(STREAM, held.repeated(stream).into_iter());
    block.options(LAUNCH, held.repeated(launch).into_iter());
    block.names(KERNEL, kernels.into_iter());
    block.numbers(NUMBER, held.numbers.iter().map(|number| (*number).into()));
    for ((_, metric), values) in part.counters().zip(held.counters()) {
        block.numbers(metric.name, values.into_iter());
    }
    block.write(file)
}
