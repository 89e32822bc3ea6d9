//! Traces as they are written: a folder that Accel-Sim reads.
//!
//! Blocks may come in any order and from many threads; in its file they stand in the order of their
//! numbers. Those that come before their time wait, in memory as long as they are few, else in a file.
//!
//! Start reading at [`TraceWriter`].

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use lockstep_isa::trace::{TraceCursor, WarpTrace};

use crate::error::{TraceError, system};
use crate::header::KernelHeader;
use crate::line::{InstructionLine, width_of};
use crate::list::Command;

/// Bytes of blocks that wait in memory, at the most.
const WAITING: u64 = 256 << 20;

/// What the lines of a trace are, as the header announces it.
const FORMAT: &str = "#traces format = [line_num] PC mask dest_num [reg_dests] opcode src_num [reg_srcs] mem_width [adrrescompress?] [mem_addresses] immediate";

/// A folder of traces that is being written.
#[derive(Debug)]
pub struct TraceWriter {
    folder: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    list: Vec<Command>,
    kernels: BTreeMap<u64, KernelFile>,
    lines: u64,
    failure: Option<TraceError>,
}

/// The trace of a kernel whose blocks come.
#[derive(Debug)]
struct KernelFile {
    path: PathBuf,
    header: KernelHeader,
    file: BufWriter<File>,
    /// Number of the block that is written next.
    next: u64,
    waiting: BTreeMap<u64, Waiting>,
    /// Bytes of them in memory.
    held: u64,
    spill: Option<File>,
}

/// A block that came before its time.
#[derive(Debug)]
enum Waiting {
    Here(Vec<u8>),
    /// In the spill: where, and how many bytes.
    Spilled(u64, u64),
}

impl TraceWriter {
    /// Traces in a folder, which must be new or empty.
    ///
    /// # Errors
    /// If it is neither, or cannot be made.
    pub fn create(folder: &Path) -> Result<Self, TraceError> {
        let name = folder.display().to_string();
        std::fs::create_dir_all(folder).map_err(system(&name))?;
        let mut files = std::fs::read_dir(folder).map_err(system(&name))?;
        if files.next().is_some() {
            let error = std::io::Error::other("the folder for traces is not empty; name a new one");
            return Err(TraceError::System { file: name, error });
        }
        Ok(Self {
            folder: folder.into(),
            state: Mutex::default(),
        })
    }

    /// The host copied bytes to the device.
    pub fn copy_to_device(&self, address: u64, bytes: u64) {
        let copy = Command::CopyToDevice { address, bytes };
        self.lock().list.push(copy);
    }

    /// A kernel comes next in the list; its number among kernels, from 1, is that of its header.
    pub fn begin_kernel(&self, header: &KernelHeader) {
        let name = format!("kernel-{}.traceg", header.id);
        let path = self.folder.join(&name);
        let mut state = self.lock();
        match KernelFile::create(path, header) {
            Ok(kernel) => {
                state.kernels.insert(header.id, kernel);
                state.list.push(Command::Kernel(name.into()));
            }
            Err(error) => state.fail(error),
        }
    }

    /// What a block of a kernel executed, where `code` has the instructions by their index. Lines are made before
    /// anybody has to wait for it.
    pub fn block(&self, kernel: u64, block: u64, code: &[InstructionLine], warps: &[WarpTrace]) {
        let grid = self
            .lock()
            .kernels
            .get(&kernel)
            .map(|file| file.header.grid);
        let Some(grid) = grid else {
            return;
        };
        let (text, lines) = block_text(block, grid, code, warps);
        let mut state = self.lock();
        state.lines += lines;
        let written = state
            .kernels
            .get_mut(&kernel)
            .map(|file| file.add(block, text));
        if let Some(Err(error)) = written {
            state.fail(error);
        }
    }

    /// A kernel is complete.
    pub fn end_kernel(&self, kernel: u64) {
        let mut state = self.lock();
        if let Some(mut file) = state.kernels.remove(&kernel)
            && let Err(error) = file.finish()
        {
            state.fail(error);
        }
    }

    /// Writes the list, when nothing comes any more. Says how many kernels and lines of instructions there are.
    ///
    /// # Errors
    /// If anything could not be written.
    pub fn finish(&self) -> Result<(u64, u64), TraceError> {
        let mut state = self.lock();
        // Kernels that did not end have no complete trace.
        let unfinished: Vec<u64> = state.kernels.keys().copied().collect();
        for kernel in unfinished {
            if let Some(mut file) = state.kernels.remove(&kernel) {
                file.finish()?;
            }
        }
        if let Some(failure) = state.failure.take() {
            return Err(failure);
        }
        let path = self.folder.join("kernelslist.g");
        let name = path.display().to_string();
        let mut text = String::new();
        for command in &state.list {
            text += &command.line();
            text.push('\n');
        }
        std::fs::write(&path, text).map_err(system(&name))?;
        let kernels = state.list.iter();
        let kernels = kernels.filter(|command| matches!(command, Command::Kernel(_)));
        Ok((kernels.count() as u64, state.lines))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Keeps the first thing that went wrong.
    fn fail(&mut self, error: TraceError) {
        self.failure.get_or_insert(error);
    }
}

impl KernelFile {
    fn create(path: PathBuf, header: &KernelHeader) -> Result<Self, TraceError> {
        let name = path.display().to_string();
        let file = File::create(&path).map_err(system(&name))?;
        let mut file = BufWriter::with_capacity(1 << 20, file);
        write!(file, "{header}\n{FORMAT}\n").map_err(system(&name))?;
        Ok(Self {
            path,
            header: header.clone(),
            file,
            next: 0,
            waiting: BTreeMap::new(),
            held: 0,
            spill: None,
        })
    }

    fn add(&mut self, block: u64, text: Vec<u8>) -> Result<(), TraceError> {
        let name = self.path.display().to_string();
        if block != self.next {
            let waiting = if self.held + text.len() as u64 > WAITING {
                self.spill(&text).map_err(system(&name))?
            } else {
                self.held += text.len() as u64;
                Waiting::Here(text)
            };
            self.waiting.insert(block, waiting);
            return Ok(());
        }
        self.file.write_all(&text).map_err(system(&name))?;
        self.next += 1;
        while let Some(waiting) = self.waiting.remove(&self.next) {
            self.write_waiting(waiting).map_err(system(&name))?;
            self.next += 1;
        }
        Ok(())
    }

    fn spill(&mut self, text: &[u8]) -> std::io::Result<Waiting> {
        if self.spill.is_none() {
            let path = self.path.with_extension("waiting");
            let mut options = File::options();
            let file = options
                .read(true)
                .write(true)
                .create_new(true)
                .open(&path)?;
            // Without a name it goes when it is closed, however that comes about.
            std::fs::remove_file(&path)?;
            self.spill = Some(file);
        }
        let Some(file) = &mut self.spill else {
            return Err(std::io::Error::other("no room for blocks that wait"));
        };
        let at = file.seek(SeekFrom::End(0))?;
        file.write_all(text)?;
        Ok(Waiting::Spilled(at, text.len() as u64))
    }

    fn write_waiting(&mut self, waiting: Waiting) -> std::io::Result<()> {
        match (waiting, &mut self.spill) {
            (Waiting::Here(text), _) => {
                self.held -= text.len() as u64;
                self.file.write_all(&text)
            }
            (Waiting::Spilled(at, bytes), Some(spill)) => {
                spill.seek(SeekFrom::Start(at))?;
                std::io::copy(&mut spill.take(bytes), &mut self.file).map(drop)
            }
            (Waiting::Spilled(..), None) => Ok(()),
        }
    }

    /// Writes what is left: of a kernel that was stopped, blocks are missing in between.
    fn finish(&mut self) -> Result<(), TraceError> {
        let name = self.path.display().to_string();
        while let Some((_, waiting)) = self.waiting.pop_first() {
            self.write_waiting(waiting).map_err(system(&name))?;
        }
        self.file.flush().map_err(system(&name))
    }
}

/// The text of a block, and how many lines of it are instructions.
fn block_text(
    block: u64,
    grid: [u32; 3],
    code: &[InstructionLine],
    warps: &[WarpTrace],
) -> (Vec<u8>, u64) {
    let [x, y, _] = grid.map(u64::from);
    let (bx, by, bz) = (block % x, block / x % y, block / (x * y));
    let mut text = String::new();
    let _ = write!(text, "\n#BEGIN_TB\n\nthread block = {bx},{by},{bz}\n");
    let mut all = 0;
    let mut line = InstructionLine::default();
    for (number, warp) in warps.iter().enumerate() {
        let one = |places: u8| u64::from(places.max(1));
        let lines: u64 = warp.instructions.iter().map(|next| one(next.places)).sum();
        all += lines;
        let _ = write!(text, "\nwarp = {number}\ninsts = {lines}\n");
        let mut cursor = TraceCursor::default();
        while let Some(next) = cursor.next(warp) {
            if let Some(known) = code.get(next.index as usize) {
                line.clone_from(known);
            }
            line.lanes = next.lanes;
            // An instruction with two places is two lines, as tracers write it.
            for place in 0..next.places.max(1) {
                line.memory = (next.places > 0)
                    .then(|| (width_of(&line.opcode), cursor.addresses(warp, place)));
                line.write(&mut text);
                text.push('\n');
            }
            cursor.advance(warp);
        }
    }
    text.push_str("\n#END_TB\n");
    (text.into_bytes(), all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::{Event, KernelTrace};
    use crate::spelling::read_spelling;

    fn warp(lane: u64) -> WarpTrace {
        let mut warp = WarpTrace::default();
        warp.push(0, 0xffff_ffff, 0x0000_00ff);
        warp.push_places(&std::array::from_fn(|at| {
            0x1000 + 64 * lane + 4 * at as u64
        }));
        warp.push(1, 0xffff_ffff, 0xffff_ffff);
        warp
    }

    #[test]
    fn blocks_stand_in_their_order_and_are_read_again() {
        let folder = std::env::temp_dir().join(format!("lockstep-traces-{}", std::process::id()));
        let writer = TraceWriter::create(&folder).unwrap();
        let header = KernelHeader {
            name: "k".into(),
            id: 1,
            grid: [2, 2, 1],
            block: [32, 1, 1],
            version: 5,
            ..KernelHeader::default()
        };
        let code = [
            read_spelling(0, "@P0 LDG.E R4, desc[UR4][R2.64]"),
            read_spelling(16, "EXIT"),
        ];
        writer.copy_to_device(0x1000, 64);
        writer.begin_kernel(&header);
        for block in [3, 1, 0, 2] {
            writer.block(1, block, &code, &[warp(block)]);
        }
        writer.end_kernel(1);
        assert_eq!(writer.finish().unwrap(), (1, 8));
        let refused = TraceWriter::create(&folder).unwrap_err().to_string();
        assert!(refused.contains("not empty"), "{refused}");
        let list = crate::list::read_list(&folder).unwrap();
        let Command::Kernel(path) = &list[1] else {
            panic!("{list:?}");
        };
        let mut trace = KernelTrace::open(path).unwrap();
        assert_eq!(trace.header(), &header);
        let mut found = Vec::new();
        while let Some(event) = trace.next_event().unwrap() {
            match event {
                Event::Block(block) => found.push(format!("{block:?}")),
                Event::Instruction => {
                    let line = trace.instruction();
                    let last = line.memory.map_or(0, |(_, addresses)| addresses[7]);
                    found.push(format!("{} {:x} {last:x}", line.opcode, line.lanes));
                }
                _ => {}
            }
        }
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(
            found.join("; "),
            "[0, 0, 0]; LDG.E ff 101c; EXIT ffffffff 0; [1, 0, 0]; LDG.E ff 105c; EXIT ffffffff 0; \
             [0, 1, 0]; LDG.E ff 109c; EXIT ffffffff 0; [1, 1, 0]; LDG.E ff 10dc; EXIT ffffffff 0"
        );
    }
}
