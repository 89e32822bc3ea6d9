//! One GPU without a CUDA program: code, memory, launches and time are those of whoever embeds it.
//!
//! Time moves in [`EmbeddedGpu::pass`] alone; between its calls the GPU stands still at a
//! boundary of epochs, can be saved, and its memory can be read and written. What is written lies in L2 as after a
//! copy of the host, but takes no time. There is no state outside of a value, so many can live in one process.
//!
//! Left out: what CUDA's runtime adds to the hardware. Managed memory, kernels that launch kernels, textures,
//! `malloc` in kernels (which answers null) and freeing.
//!
//! Start reading at [`EmbeddedGpu::launch`].

mod state;

pub(crate) use state::machine;

use super::{MachineError, contents, load_options, options};
use crate::assemble::{Assembler, Assembling};
use crate::description::{Description, Mode};
use crate::images;
use crate::shared_images::SharedImages;
use lockstep_counters::LaunchCounters;
use lockstep_gpu::{
    Advance, DmaSource, EndedBlock, Gpu, GpuError, KernelRecord, Launch, LaunchId, OutsideRequest,
};
use lockstep_isa::Module;
use lockstep_isa::module::{GlobalKind, Kernel, Parameter};
use lockstep_protocol::{LaunchConfig, layout, window};
use lockstep_runtime::{ConstantRange, Heap, constant_banks, lay_out};
use lockstep_stats::Table;
use lockstep_units::Time;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use thiserror::Error;

/// Bytes of stack that a thread has if its kernel calls functions, as in a fresh context of CUDA.
const STACK: u32 = 1 << 10;

/// Why something could not be done.
#[derive(Debug, Error)]
pub enum EmbeddedError {
    /// The GPU cannot be made.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// The code cannot be loaded.
    #[error("the module: {0}")]
    Module(String),
    /// What was asked for is not there, or does not fit.
    #[error("{0}")]
    Request(String),
    /// The hardware refused a launch, or a kernel failed.
    #[error(transparent)]
    Gpu(#[from] GpuError),
    /// Saved state cannot be taken on.
    #[error("saved state: {0}")]
    State(String),
}

/// A launch, with its kernel by the number that [`EmbeddedGpu::find_kernel`] gave it.
#[derive(Clone, Debug)]
pub struct EmbeddedLaunch {
    /// The kernel.
    pub kernel: u32,
    /// Grid, block and dynamic shared memory.
    pub config: LaunchConfig,
    /// The arguments, each in as many bytes as its parameter has.
    pub arguments: Vec<Vec<u8>>,
    /// Launches of one queue run one after the other, those of different ones side by side.
    pub queue: u64,
}

/// What happened while time passed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Launches that ended, in their order.
    pub launches: Vec<u32>,
    /// Blocks that ended, if they are listed.
    pub blocks: Vec<EndedBlock>,
    /// Requests that left the GPU, if its memory is outside.
    pub requests: Vec<OutsideRequest>,
    /// Whether time has passed as far as it should; else somebody may want to answer the requests first.
    pub is_over: bool,
}

/// One GPU.
pub struct EmbeddedGpu {
    description: Description,
    gpu: Gpu,
    heap: Heap,
    /// Allocations by their first address.
    allocations: BTreeMap<u64, u64>,
    modules: Vec<LoadedModule>,
    /// Module and kernel in it, by the number that the caller knows.
    kernels: Vec<(u32, u32)>,
    /// What gave memory its addresses, in order: enough to do it again for a GPU that is loaded.
    history: Vec<Event>,
}

/// A module with its variables.
struct LoadedModule {
    code: Arc<Module>,
    /// Its constant banks.
    constants: Vec<ConstantRange>,
}

/// What takes addresses.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
enum Event {
    /// An allocation of so many bytes.
    Allocated(u64),
    /// A module from an image.
    Loaded(Vec<u8>),
}

impl EmbeddedGpu {
    /// An idle GPU at time zero, with empty memory.
    ///
    /// # Errors
    /// The configuration cannot be built.
    pub fn new(description: &Description) -> Result<Self, EmbeddedError> {
        let memory = window::create().map_err(|error| MachineError::Memory(error.to_string()))?;
        let contents = contents(&memory, 0)?;
        let gpu = Gpu::new(
            &description.config,
            Arc::new(contents),
            options(description, &description.config),
        )?;
        let device = &description.config.device;
        let range = layout::Region::Device(0).range();
        let end = range.end - lockstep_runtime::SYSTEM_SPACE;
        let usable = device.memory.0 - device.reserved_memory.0;
        Ok(Self {
            description: description.clone(),
            gpu,
            heap: Heap::new(range.start, end, usable.min(end - range.start)),
            allocations: BTreeMap::new(),
            modules: Vec::new(),
            kernels: Vec::new(),
            history: Vec::new(),
        })
    }

    /// Loads PTX, a cubin or a fat binary; the number of the module.
    ///
    /// # Errors
    /// The image cannot be read, or needs what a GPU alone does not have.
    pub fn load_module(&mut self, image: &[u8]) -> Result<u32, EmbeddedError> {
        let linked = self.link(image)?;
        for (address, bytes) in &linked.code.initial {
            self.covered(*address, bytes.len() as u64)?;
            self.gpu.contents().write(*address, bytes);
        }
        self.history.push(Event::Loaded(image.to_vec()));
        Ok(self.keep(linked))
    }

    /// Reads an image and gives its variables addresses; nothing is written.
    fn link(&mut self, image: &[u8]) -> Result<LoadedModule, EmbeddedError> {
        let refused = |failure: lockstep_protocol::Failure| EmbeddedError::Module(failure.message);
        // As `lockstep kernel`: PTX runs as PTX, whatever tools the host has.
        let nobody: OnceLock<Assembler> = OnceLock::new();
        let source = images::load(
            &[images::image_of(image.to_vec())],
            &load_options(&self.description),
            &SharedImages::default(),
            Assembling::Never,
            || nobody.get_or_init(Assembler::find),
        )
        .map_err(refused)?;
        let globals = source.globals().to_vec();
        if let Some(managed) = globals.iter().find(|one| one.kind == GlobalKind::Managed) {
            let name = &managed.name;
            return Err(EmbeddedError::Module(format!(
                "variable `{name}` is managed, and an embedded GPU has no host to move pages for"
            )));
        }
        let (offsets, bytes, _) = lay_out(&globals).map_err(refused)?;
        let base = match bytes {
            0 => 0,
            bytes => self.take(bytes)?,
        };
        let addresses: Vec<u64> = offsets.iter().map(|offset| base + offset).collect();
        let code = source.link(&addresses).map_err(refused)?;
        if code.launches_kernels {
            return Err(EmbeddedError::Module(
                "its kernels launch kernels, which needs CUDA's runtime".into(),
            ));
        }
        Ok(LoadedModule {
            constants: constant_banks(&globals, &addresses),
            code: Arc::new(code),
        })
    }

    fn keep(&mut self, module: LoadedModule) -> u32 {
        self.modules.push(module);
        self.modules.len() as u32 - 1
    }

    /// The number of a kernel by its name.
    ///
    /// # Errors
    /// There is no such module or kernel.
    pub fn find_kernel(&mut self, module: u32, name: &str) -> Result<u32, EmbeddedError> {
        let missing = || EmbeddedError::Request(format!("there is no module {module}"));
        let kernels = &self
            .modules
            .get(module as usize)
            .ok_or_else(missing)?
            .code
            .kernels;
        let Some(place) = kernels.iter().position(|kernel| kernel.name == name) else {
            let known: Vec<&str> = kernels.iter().map(|kernel| kernel.name.as_str()).collect();
            let known = known.join(", ");
            return Err(EmbeddedError::Request(format!(
                "the module has no kernel called `{name}`; its kernels: {known}"
            )));
        };
        self.kernels.push((module, place as u32));
        Ok(self.kernels.len() as u32 - 1)
    }

    /// What a kernel's parameters are.
    ///
    /// # Errors
    /// There is no such kernel.
    pub fn parameters(&self, kernel: u32) -> Result<&[Parameter], EmbeddedError> {
        Ok(&self.kernel(kernel)?.1.parameters)
    }

    fn kernel(&self, number: u32) -> Result<(&LoadedModule, &Kernel), EmbeddedError> {
        let missing = || EmbeddedError::Request(format!("there is no kernel {number}"));
        let (module, kernel) = self.kernels.get(number as usize).ok_or_else(missing)?;
        let module = &self.modules[*module as usize];
        Ok((module, &module.code.kernels[*kernel as usize]))
    }

    /// Memory that reads zero; its address, at a multiple of 512.
    ///
    /// # Errors
    /// There is not as much, or nothing was asked for.
    pub fn allocate(&mut self, bytes: u64) -> Result<u64, EmbeddedError> {
        let address = self.take(bytes)?;
        self.history.push(Event::Allocated(bytes));
        Ok(address)
    }

    /// Gives bytes an address and makes it legal for kernels.
    fn take(&mut self, bytes: u64) -> Result<u64, EmbeddedError> {
        let place = self.place(bytes)?;
        let contents = self.gpu.contents();
        contents.note_fresh(place..place + bytes);
        contents
            .map(place..place + bytes)
            .map_err(|error| EmbeddedError::Request(error.to_string()))?;
        Ok(place)
    }

    fn place(&mut self, bytes: u64) -> Result<u64, EmbeddedError> {
        let left = self.heap.available();
        let address = self.heap.allocate(bytes).ok_or_else(|| {
            EmbeddedError::Request(format!("{bytes} bytes asked for, {left} bytes left"))
        })?;
        self.allocations.insert(address, bytes);
        Ok(address)
    }

    /// Writes memory, as a copy of the host does.
    ///
    /// # Errors
    /// Not all of it was allocated.
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), EmbeddedError> {
        self.covered(address, bytes.len() as u64)?;
        self.gpu.contents().write(address, bytes);
        let range = address..address + bytes.len() as u64;
        self.gpu
            .dma_written(DmaSource::Host, std::iter::once(range));
        Ok(())
    }

    /// Reads memory.
    ///
    /// # Errors
    /// Not all of it was allocated.
    pub fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), EmbeddedError> {
        self.covered(address, bytes.len() as u64)?;
        self.gpu.contents().read(address, bytes);
        Ok(())
    }

    /// That bytes lie inside one allocation.
    ///
    /// # Errors
    /// They do not.
    pub fn covered(&self, address: u64, bytes: u64) -> Result<(), EmbeddedError> {
        let before = self.allocations.range(..=address).next_back();
        let inside = before.is_some_and(|(base, size)| {
            let offset = address - base;
            offset <= *size && bytes <= size - offset
        });
        if inside {
            return Ok(());
        }
        Err(EmbeddedError::Request(format!(
            "{bytes} bytes at {address:#x} are not inside one allocation"
        )))
    }

    /// Hands a kernel to the hardware; it begins when time moves. The number of the launch.
    ///
    /// # Errors
    /// Arguments or shape do not fit the kernel, or no SM can hold a block.
    pub fn launch(&mut self, launch: &EmbeddedLaunch) -> Result<u32, EmbeddedError> {
        let (module, kernel) = self.kernel(launch.kernel)?;
        let arguments = packed(kernel, &launch.arguments)?;
        let threads = launch.config.threads();
        if kernel.max_threads != 0 && threads > kernel.max_threads {
            let (name, most) = (&kernel.name, kernel.max_threads);
            return Err(EmbeddedError::Request(format!(
                "`{name}` was compiled for at most {most} threads of a block, not {threads}"
            )));
        }
        let mut constants = Vec::new();
        for (bank, offset, address, bytes) in &module.constants {
            let mut held = vec![0; *bytes as usize];
            self.gpu.contents().read(*address, &mut held);
            constants.push((*bank, *offset, held));
        }
        let (number, place) = self.kernels[launch.kernel as usize];
        let prepared = Launch {
            module: module.code.clone(),
            module_id: u64::from(number),
            kernel: place as usize,
            config: launch.config,
            carveout: None,
            stack: STACK,
            arguments,
            queue: launch.queue,
            priority: 0,
            cluster: None,
            programmatic: false,
            of_graph: false,
            cooperative: None,
            constants,
            textures: Arc::default(),
            device_runtime: None,
            at: self.gpu.now(),
        };
        Ok(self.gpu.launch(prepared)?.0)
    }

    /// The boundary at which the GPU stands.
    #[must_use]
    pub fn now(&self) -> Time {
        self.gpu.now()
    }

    /// Whether no kernel waits or runs.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.gpu.is_idle()
    }

    /// Has somebody outside say when what is behind the L1 caches answers: requests come with [`Passed`], and
    /// [`complete`](Self::complete) answers them. Values stay here.
    ///
    /// # Errors
    /// Kernels run, or the GPU has no time.
    pub fn set_outside_memory(&mut self, outside: bool) -> Result<(), EmbeddedError> {
        let set = self.gpu.set_outside_memory(outside);
        set.map_err(|error| EmbeddedError::Request(error.to_string()))
    }

    /// Whether somebody outside does.
    #[must_use]
    pub fn has_outside_memory(&self) -> bool {
        self.gpu.has_outside_memory()
    }

    /// A request is complete at a time, or now if that has passed.
    ///
    /// # Errors
    /// There is no such request, or it is complete.
    pub fn complete(&mut self, request: u64, at: Time) -> Result<(), EmbeddedError> {
        let complete = self.gpu.complete_outside(request, at);
        complete.map_err(|error| EmbeddedError::Request(error.to_string()))
    }

    /// Has blocks that end be listed in [`Passed`], or not.
    pub fn list_ended_blocks(&mut self, list: bool) {
        self.gpu.list_ended_blocks(list);
    }

    /// Lets time pass until a boundary not before `until`, or without one until every launch has ended; and not
    /// beyond a boundary at which requests left for memory outside.
    ///
    /// # Errors
    /// A kernel failed or can never end, or waits for requests and no other time was given.
    pub fn pass(&mut self, until: Option<Time>) -> Result<Passed, EmbeddedError> {
        self.gpu.outside_acts();
        let mut passed = Passed::default();
        loop {
            passed.is_over = match until {
                Some(until) => self.gpu.now() >= until,
                None => self.gpu.is_idle(),
            };
            if passed.is_over || !passed.requests.is_empty() {
                break;
            }
            let before = self.gpu.now();
            match self.gpu.advance(until.unwrap_or(Time::NEVER)) {
                Advance::Reached(records) => {
                    let ended = records.iter().map(|one| one.launch.0);
                    passed.launches.extend(ended);
                }
                Advance::Stuck(_) if until.is_some() => {}
                Advance::Faulted(fault) => return Err(GpuError::from(fault).into()),
                Advance::Stuck(fault) => {
                    self.gpu.fail(fault.clone());
                    return Err(GpuError::from(fault).into());
                }
            }
            passed.requests = self.gpu.take_outside_requests();
            let waits = self.gpu.waits_for_outside();
            if until.is_none()
                && waits > 0
                && passed.requests.is_empty()
                && passed.launches.is_empty()
                && self.gpu.now() == before
            {
                return Err(EmbeddedError::Request(format!(
                    "{waits} requests wait for memory outside the GPU, and nothing else can happen before they are complete"
                )));
            }
        }
        passed.blocks = self.gpu.take_ended_blocks();
        Ok(passed)
    }

    /// What a launch counted, once it has ended.
    #[must_use]
    pub fn counters(&self, launch: u32) -> Option<LaunchCounters> {
        self.gpu
            .record(LaunchId(launch))
            .map(|record: &KernelRecord| LaunchCounters {
                values: record.counters,
                timed: self.description.mode == Mode::Timing,
            })
    }

    /// Every statistic of every part.
    #[must_use]
    pub fn statistics(&self) -> Table {
        let mut table = Table::default();
        self.gpu.statistics("gpu 0", &mut table);
        table
    }

    /// What kernels printed since the last call.
    pub fn take_output(&mut self) -> String {
        let printed = self.gpu.take_output();
        printed.into_iter().map(|one| one.text).collect()
    }

    /// One number for everything that was simulated.
    #[must_use]
    pub fn digest(&self) -> String {
        self.gpu.digest("gpu 0").root().to_string()
    }
}

/// The arguments as they lie from the parameter base.
fn packed(kernel: &Kernel, arguments: &[Vec<u8>]) -> Result<Vec<u8>, EmbeddedError> {
    let (name, parameters) = (&kernel.name, &kernel.parameters);
    if arguments.len() != parameters.len() {
        let (expected, found) = (parameters.len(), arguments.len());
        return Err(EmbeddedError::Request(format!(
            "`{name}` has {expected} parameters, and {found} arguments were given"
        )));
    }
    let end = |slot: &Parameter| slot.offset as usize + slot.size as usize;
    let mut bytes = vec![0; parameters.iter().map(end).max().unwrap_or(0)];
    for (place, (argument, slot)) in arguments.iter().zip(parameters).enumerate() {
        if argument.len() != slot.size as usize {
            let (found, expected) = (argument.len(), slot.size);
            return Err(EmbeddedError::Request(format!(
                "argument {place} of `{name}` has {expected} bytes, not {found}"
            )));
        }
        bytes[slot.offset as usize..end(slot)].copy_from_slice(argument);
    }
    Ok(bytes)
}
