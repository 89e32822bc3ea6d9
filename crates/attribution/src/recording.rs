//! What a reader learned, in order, as text: so that dividing counts can be repeated without a GPU.
//!
//! ```text
//! L process context stream kernel launch gx gy gz bx by bz begin end      a launch
//! M process context stream launch begin end                               a mark
//! B begin end growth...;begin end growth...;...                           samples divided together
//! ```
//!
//! Times are nanoseconds since 1970 on the host; a counter that was not sampled has no growth.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::{DeviceSample, LaunchRow, Mark};

/// A file that grows as a run is read.
pub struct Recording(BufWriter<File>);

impl Recording {
    /// Begins a new file.
    pub fn create(path: &Path) -> io::Result<Self> {
        Ok(Self(BufWriter::new(File::create(path)?)))
    }

    /// A launch became known.
    pub fn launched(&mut self, row: &LaunchRow) -> io::Result<()> {
        let ([gx, gy, gz], [bx, by, bz]) = (row.grid, row.block);
        let key = &row.key;
        // A name is one word: what it is called by does not matter to dividing.
        let kernel = key.kernel.replace(char::is_whitespace, "_");
        writeln!(
            self.0,
            "L {} {} {} {kernel} {} {gx} {gy} {gz} {bx} {by} {bz} {} {}",
            key.process, key.context, key.stream, row.launch, row.begin, row.end
        )
    }

    /// A stream had come so far.
    pub fn progressed(
        &mut self,
        process: u32,
        context: u32,
        stream: u32,
        mark: &Mark,
    ) -> io::Result<()> {
        let Mark { launch, begin, end } = mark;
        writeln!(
            self.0,
            "M {process} {context} {stream} {launch} {begin} {end}"
        )
    }

    /// Samples are divided.
    pub fn divided(&mut self, samples: &[DeviceSample]) -> io::Result<()> {
        let text: Vec<String> = samples
            .iter()
            .map(|one| {
                let growth = one.growth.iter().flatten().map(u64::to_string);
                let growth: Vec<String> = growth.collect();
                format!("{} {} {}", one.begin, one.end, growth.join(" "))
            })
            .collect();
        writeln!(self.0, "B {}", text.join(";"))
    }

    /// Everything so far is in the file.
    pub fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
