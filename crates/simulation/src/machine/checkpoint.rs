//! A machine in the middle of an advance, as checkpoints hold it.
//!
//! The hardware saves itself. What is around it is here: which launch of the runtime a launch of the hardware
//! is, those that wait, and memory, page by page. Launches are known by their numbers alone, because a program
//! that is started again launches them again.

use super::sampling::{Sampling, UntimedPages};
use super::{Machine, MachineError, contents, context_page, hardware_mode};
use crate::checkpoint::{
    CheckpointError, Checkpoints, SavedPage, SharedCheckpoints, State, looked_at,
};
use crate::description::Mode;
use crate::freed;
use crate::server::lock;
use lockstep_gpu::memory::PAGE;
use lockstep_gpu::{Gpu, Launch, LaunchId};
use lockstep_protocol::layout;
use lockstep_runtime::device::{Advance, KernelResult};
use lockstep_stats::Digest;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use thiserror::Error;

/// What is around the hardware.
#[derive(Debug, Serialize, Deserialize)]
pub struct SavedMachine {
    /// Whether the hardware takes its time.
    timed: bool,
    /// Launches of the hardware: number there, number of the runtime, whether it takes its time.
    launches: Vec<(LaunchId, u64, bool)>,
    /// Launches that wait, by number of the runtime.
    held: Vec<u64>,
    /// The first launch of each module.
    introduced: Vec<u64>,
    output: Vec<u8>,
    has_launch_pool: bool,
    managed: Vec<(u64, u64)>,
    warned_of_spin: bool,
    reloads: u64,
    sampling: Option<Box<Sampling>>,
    untimed_pages: UntimedPages,
}

impl SavedMachine {
    /// Launches that a machine needs to be as it was.
    pub fn launches_needed(&self) -> BTreeSet<u64> {
        self.held.iter().chain(&self.introduced).copied().collect()
    }

    /// Whether kernels are on the hardware.
    pub(super) fn is_busy(&self) -> bool {
        !self.launches.is_empty()
    }

    /// Whether there ever was managed memory.
    pub(super) fn has_managed(&self) -> bool {
        !self.managed.is_empty()
    }

    /// Launches that wait, in their order.
    pub(super) fn waiting(&self) -> impl Iterator<Item = u64> {
        self.held.iter().copied()
    }

    /// What kernels printed and nobody has read.
    pub(super) fn printed(&self) -> &[u8] {
        &self.output
    }

    /// Pages that launches wrote which took no time.
    pub(super) fn written_untimed(&self) -> UntimedPages {
        self.untimed_pages.clone()
    }
}

/// Why a machine could not be made as it was.
#[derive(Debug, Error)]
pub enum RestoreError {
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    #[error(transparent)]
    Machine(#[from] MachineError),
    #[error("memory cannot be written: {0}")]
    Memory(#[from] std::io::Error),
    #[error("launch {0} did not come again")]
    Launch(u64),
    #[error("only the machine that was saved can go on: {0}")]
    Elsewhere(&'static str),
}

impl Machine {
    /// Saves itself from now on when that is due.
    pub fn keep_checkpoints(&mut self, checkpoints: &SharedCheckpoints) {
        self.checkpoints = Some(checkpoints.clone());
    }

    /// Writes a checkpoint, if it is time for one.
    pub(super) fn checkpoint_if_due(&mut self) {
        let Some(shared) = self.checkpoints.clone() else {
            return;
        };
        let mut checkpoints = lock(&shared);
        if self.failure.is_none() && checkpoints.is_due() {
            self.write_checkpoint(&mut checkpoints);
        }
    }

    /// Writes a checkpoint.
    pub(super) fn write_checkpoint(&mut self, checkpoints: &mut Checkpoints) {
        // What the host wrote counts as written from now on, and is nothing that it has to be shown.
        self.tell_written(checkpoints);
        self.note_host_memory();
        self.gather_untimed_pages();
        self.gpu.contents().take_recent_pages(looked_at());
        let state = self.state();
        checkpoints.write(self.gpu.now(), self.gpu.contents(), state);
    }

    /// Says which pages kernels and copies wrote that the program can look at.
    pub fn tell_written(&self, checkpoints: &mut Checkpoints) {
        if checkpoints.shows_memory() {
            let pages = self.gpu.contents().take_recent_pages(looked_at());
            checkpoints.wrote_pages(pages);
        }
    }

    /// Everything that a checkpoint has of it.
    pub fn state(&mut self) -> State {
        State {
            machine: self.saved(),
            hardware: self.gpu.save_without_pages(),
            pages: self.saved_pages(),
            written: Vec::new(),
        }
    }

    fn saved(&self) -> SavedMachine {
        let launches = self.launches.iter();
        SavedMachine {
            timed: self.options.mode == lockstep_gpu::Mode::Timing,
            launches: launches
                .map(|(id, (number, mode))| (*id, *number, *mode == Mode::Timing))
                .collect(),
            held: self.held.iter().map(|(number, _)| *number).collect(),
            introduced: self.introduced.clone(),
            output: self.output.clone(),
            has_launch_pool: self.has_launch_pool,
            managed: self.managed.clone(),
            warned_of_spin: self.warned_of_spin,
            reloads: self.reloads,
            sampling: self.sampling.clone(),
            untimed_pages: self.untimed_pages.clone(),
        }
    }

    /// Every page of the window that holds something, whoever wrote it.
    fn saved_pages(&self) -> Vec<SavedPage> {
        let parts: Vec<_> = self
            .pages_of_file()
            .into_iter()
            .map(|page| page..page + PAGE)
            .collect();
        let contents = self.gpu.contents();
        let digests = freed::digests(contents, &parts, self.options.engine.threads);
        let mut marked = contents.written_pages().peekable();
        let mut pages = Vec::new();
        for (part, digest) in parts.iter().zip(digests) {
            while marked.next_if(|page| *page < part.start).is_some() {}
            let Some(digest) = digest else {
                continue;
            };
            pages.push(SavedPage {
                address: part.start,
                index: 0,
                digest,
                marked: marked.peek() == Some(&part.start),
            });
        }
        pages
    }

    /// Pages of the window that the file has, ascending.
    fn pages_of_file(&self) -> Vec<u64> {
        let end = layout::Region::Managed.range().end;
        let mut pages = Vec::new();
        let mut at = layout::WINDOW_BASE;
        while let Some(data) = self.next_data(at, end) {
            at = self.next_hole(data).unwrap_or(end).min(end);
            pages.extend((data - data % PAGE..at).step_by(PAGE as usize));
        }
        pages
    }

    /// Becomes what it was at a checkpoint, which the program has come to again with these launches.
    ///
    /// # Errors
    /// The checkpoint is damaged, or the program did not launch what it did before.
    pub fn restore(
        &mut self,
        checkpoints: &Checkpoints,
        state: &State,
        mut launches: BTreeMap<u64, Launch>,
    ) -> Result<(), RestoreError> {
        let saved = &state.machine;
        self.restore_memory(checkpoints, &state.pages)?;
        let introduced = saved.introduced.iter().map(|number| {
            let launch = launches.get(number);
            Ok(launch.ok_or(RestoreError::Launch(*number))?.module.clone())
        });
        self.modules = introduced.collect::<Result<_, RestoreError>>()?;
        self.introduced.clone_from(&saved.introduced);
        self.options.mode = hardware_mode(mode_of(saved.timed));
        let mapped = Arc::new(contents(&self.memory, self.ordinal)?);
        for page in state.pages.iter().filter(|page| page.marked) {
            mapped.note_host_write(page.address..page.address + PAGE);
        }
        mapped.take_recent_pages(looked_at());
        let mut gpu =
            Gpu::new(&self.config, mapped, self.options.clone()).map_err(MachineError::from)?;
        let modules = &self.modules;
        gpu.load(&state.hardware, &|number| {
            modules.get(number as usize).cloned()
        })
        .map_err(MachineError::from)?;
        self.gpu = gpu;
        for start in [context_page(self.ordinal), self.heap_start()] {
            if self.gpu.contents().find(start).is_some() {
                self.gpu.contents().set_system(start);
            }
        }
        let known = saved.launches.iter();
        self.launches = known
            .map(|(id, number, timed)| (*id, (*number, mode_of(*timed))))
            .collect();
        self.held.clear();
        for number in &saved.held {
            let launch = launches.remove(number);
            self.held
                .push_back((*number, launch.ok_or(RestoreError::Launch(*number))?));
        }
        self.output.clone_from(&saved.output);
        self.has_launch_pool = saved.has_launch_pool;
        self.managed.clone_from(&saved.managed);
        self.warned_of_spin = saved.warned_of_spin;
        self.reloads = saved.reloads;
        self.sampling.clone_from(&saved.sampling);
        self.untimed_pages.clone_from(&saved.untimed_pages);
        self.skip_recent_pages();
        self.failure = None;
        Ok(())
    }

    /// Makes memory what it was. Pages that are so already are not touched: the program may be looking.
    pub(super) fn restore_memory(
        &self,
        checkpoints: &Checkpoints,
        pages: &[SavedPage],
    ) -> Result<(), RestoreError> {
        let wanted: BTreeSet<u64> = pages.iter().map(|page| page.address).collect();
        let zeros = vec![0; PAGE as usize];
        let mut now = vec![0; PAGE as usize];
        let write = |address: u64, bytes: &[u8]| {
            let place = address - layout::WINDOW_BASE;
            rustix::io::pwrite(&self.memory, bytes, place).map_err(std::io::Error::from)
        };
        for address in self.pages_of_file() {
            self.gpu.contents().read(address, &mut now);
            if !wanted.contains(&address) && now != zeros {
                write(address, &zeros)?;
            }
        }
        let mut bytes = vec![0; PAGE as usize];
        for page in pages {
            checkpoints.page(page, &mut bytes)?;
            self.gpu.contents().read(page.address, &mut now);
            if now != bytes {
                write(page.address, &bytes)?;
            }
        }
        Ok(())
    }

    /// Notes kernels that ended before the checkpoint, for the tables of the run.
    pub fn note_played(&mut self, advance: &Advance) {
        if let Advance::Reached(results) = advance {
            let by_host = |result: &&KernelResult| result.by_kernel.is_none();
            self.progress.ended(results.iter().filter(by_host).count());
            self.note_ended(results);
        }
    }

    /// Notes a launch before the checkpoint.
    pub fn note_launched(&self, launch: &Launch) {
        self.progress.began(&launch.kernel().name);
    }

    /// Keeps what the device no longer knows of freed memory: what it held before the checkpoint.
    pub fn unmap_as_before(&mut self, address: u64, bytes: u64, held: &[(u64, Digest)]) {
        use lockstep_runtime::Device as _;
        let before = self.freed.clone();
        self.unmap(address, bytes);
        self.freed = before;
        self.add_freed(held);
    }

    /// What the last freed memory held, once.
    pub fn take_freed(&mut self) -> Vec<(u64, Digest)> {
        std::mem::take(&mut self.freed_last)
    }

    /// Adds what freed memory held, page by page, to what the digest covers.
    pub(super) fn add_freed(&mut self, held: &[(u64, Digest)]) {
        for (address, digest) in held {
            self.freed.number(*address);
            self.freed.digest(*digest);
        }
    }
}

/// The mode of a launch.
fn mode_of(timed: bool) -> Mode {
    match timed {
        true => Mode::Timing,
        false => Mode::Functional,
    }
}
