//! Replays Accel-Sim traces: kernels go through the same hardware as those that are executed, but a trace says
//! what their warps do.
//!
//! Start reading at [`replay_traces`].

use crate::description::Description;
use crate::in_folder::in_folder;
use crate::kernel::{CLIENT, ask, primary_context, unexpected};
use crate::machine;
use crate::node::Node;
use crate::program::RunError;
use crate::results::Results;
use lockstep_isa::Module;
use lockstep_isa::module::Global;
use lockstep_protocol::{
    ContextHandle, CuResult, Extent, Failure, FunctionInfo, ImageKind, ImageRole, Launch,
    LaunchConfig, ModuleHandle, ModuleImage, Reply, Request, Rows, StreamName, layout, window,
};
use lockstep_run_folder::RunFolder;
use lockstep_runtime::{CallResult, Device, ModuleSource, Runtime};
use lockstep_trace::scan::PAGE;
use lockstep_trace::{
    Command, KernelHeader, PageMap, Scan, TraceError, module_of, read_list, scan,
};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Launches that are handed over before the first of them must have ended.
const UNDER_WAY: usize = 32;
/// Function attribute of dynamic shared memory.
const MAXIMUM_DYNAMIC_SHARED: u32 = 8;

/// Replays the traces of a folder, or of the list itself.
///
/// # Errors
/// The traces cannot be read, or nothing could be simulated.
pub fn replay_traces(description: &Description, traces: &Path) -> Result<Results, RunError> {
    let commands = read_list(traces).map_err(refused)?;
    let command = [traces.display().to_string()];
    let simulated = in_folder(description, &command, |folder, _| {
        Ok((simulate(description, &commands, &command, folder)?, ()))
    });
    simulated.map(|(results, ())| results)
}

fn refused(error: TraceError) -> RunError {
    RunError::Request(error.to_string())
}

/// Hands a module that is made already to the runtime.
#[derive(Clone, Default)]
struct Handover(Arc<Mutex<Option<Module>>>);

impl Handover {
    fn put(&self, module: Module) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(module);
    }

    fn take(&self) -> Option<Module> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A kernel of a trace as the runtime loads it: it has no variables.
struct TracedSource(Module);

impl ModuleSource for TracedSource {
    fn globals(&self) -> &[Global] {
        &[]
    }

    fn remarks(&self) -> Vec<String> {
        vec!["kernels are replayed from traces: registers decide when instructions wait".into()]
    }

    fn link(self: Box<Self>, _: &[u64]) -> CallResult<Module> {
        Ok(self.0)
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "figures about the host are outside the digest"
)]
fn simulate(
    description: &Description,
    commands: &[Command],
    command: &[String],
    folder: &Arc<RunFolder>,
) -> Result<Results, RunError> {
    let memory = window::create()?;
    let mut description = description.clone();
    description.replays = true;
    let handover = Handover::default();
    let taken = handover.clone();
    let loader = Box::new(move |_: &[ModuleImage], _: &_| match taken.take() {
        Some(module) => Ok(Box::new(TracedSource(module)) as Box<dyn ModuleSource>),
        None => Err(Failure {
            code: CuResult::INVALID_IMAGE,
            message: "no kernel of a trace is at hand".into(),
        }),
    });
    let mut runtime = machine::runtime_with(&description, &memory, loader)?;
    runtime
        .device_mut()
        .write_down(folder, description.series)?;
    let began = Instant::now();
    let mut replay = Replay {
        handover,
        context: primary_context(&mut runtime)?,
        runtime,
        streams: BTreeMap::new(),
        pages: PageMap::new(),
        taken: BTreeSet::new(),
        under_way: Vec::new(),
        notices: Vec::new(),
    };
    let mut problems = Vec::new();
    for one in commands {
        match one {
            Command::Kernel(path) => replay.kernel(path)?,
            Command::CopyToDevice { address, bytes } => replay.copy(*address, *bytes)?,
        }
        if description.progress.is_stopped() || !replay.runtime.faults().is_empty() {
            break;
        }
    }
    if let Err(problem) = replay.synchronize() {
        problems.push(problem);
    }
    let wall = began.elapsed();
    let runtime = &mut replay.runtime;
    let mut results = Results::without_program(&description, command, runtime, wall, problems);
    results.notices.append(&mut replay.notices);
    Ok(results)
}

/// A trace on its way through the hardware.
struct Replay {
    runtime: Runtime<Node>,
    handover: Handover,
    context: ContextHandle,
    streams: BTreeMap<u64, StreamName>,
    /// Where the pages of the trace lie.
    pages: PageMap,
    /// Pages of the simulated memory that are in use.
    taken: BTreeSet<u64>,
    /// Modules of the launches since everything before had ended.
    under_way: Vec<ModuleHandle>,
    notices: Vec<String>,
}

impl Replay {
    /// Launches a kernel of the trace.
    fn kernel(&mut self, path: &Path) -> Result<(), RunError> {
        let scanned = scan(path).map_err(refused)?;
        self.note(&scanned);
        self.map(scanned.pages.iter().copied())?;
        let touched = scanned
            .pages
            .iter()
            .filter_map(|page| Some((*page, *self.pages.get(page)?)));
        let pages: PageMap = touched.collect();
        let header = scanned.header.clone();
        let program = module_of(path, scanned, Arc::new(pages)).map_err(refused)?;
        self.handover.put(program.module);
        let function = self.load(&header)?;
        if program.dynamic_shared > function.attributes.maximum_dynamic_shared as u32 {
            let value = i32::try_from(program.dynamic_shared).unwrap_or(i32::MAX);
            let attribute = Request::FunctionSetAttribute {
                function: function.handle,
                attribute: MAXIMUM_DYNAMIC_SHARED,
                value,
            };
            ask(&mut self.runtime, &attribute)?;
        }
        let stream = self.stream(header.stream)?;
        let launch = Request::Launch(Box::new(Launch {
            context: self.context,
            stream,
            function: function.handle,
            config: LaunchConfig {
                grid: header.grid,
                block: header.block,
                dynamic_shared: program.dynamic_shared,
            },
            parameters: Vec::new(),
            cooperative: false,
            cluster: None,
            priority: None,
            carveout: None,
            programmatic_stream_serialization: false,
        }));
        ask(&mut self.runtime, &launch)?;
        if self.under_way.len() >= UNDER_WAY {
            self.synchronize().map_err(RunError::Request)?;
        }
        Ok(())
    }

    /// Loads the module that was put ready, and finds its kernel.
    fn load(&mut self, header: &KernelHeader) -> Result<FunctionInfo, RunError> {
        let image = ModuleImage {
            kind: ImageKind::Cubin,
            role: ImageRole::Main,
            bytes: Vec::new(),
        };
        let load = Request::ModuleLoad {
            context: self.context,
            images: vec![image],
        };
        let module = match ask(&mut self.runtime, &load)? {
            Reply::Module(module) => module,
            other => return Err(unexpected(&other)),
        };
        self.under_way.push(module);
        let name = header.name.clone();
        match ask(&mut self.runtime, &Request::ModuleFunction { module, name })? {
            Reply::Function(function) => Ok(*function),
            other => Err(unexpected(&other)),
        }
    }

    /// The stream with a number of the trace.
    fn stream(&mut self, number: u64) -> Result<StreamName, RunError> {
        if number == 0 {
            return Ok(StreamName::Legacy);
        }
        if let Some(known) = self.streams.get(&number) {
            return Ok(*known);
        }
        let create = Request::StreamCreate {
            context: self.context,
            flags: 0,
            priority: 0,
        };
        let stream = match ask(&mut self.runtime, &create)? {
            Reply::Stream(stream) => StreamName::Created(stream),
            other => return Err(unexpected(&other)),
        };
        self.streams.insert(number, stream);
        Ok(stream)
    }

    /// The host copies to the device, when everything before has ended: caches learn of it, and no time passes.
    fn copy(&mut self, address: u64, bytes: u64) -> Result<(), RunError> {
        if bytes == 0 {
            return Ok(());
        }
        self.synchronize().map_err(RunError::Request)?;
        let last = address + (bytes - 1);
        self.map(address / PAGE..=last / PAGE)?;
        let mut at = address;
        while at <= last {
            let part = (PAGE - at % PAGE).min(last - at + 1);
            let page = self.pages.get(&(at / PAGE)).copied().unwrap_or(0);
            let place = page * PAGE + at % PAGE;
            let extent = Extent {
                width: part,
                height: 1,
                depth: 1,
            };
            let device = self.runtime.device_mut();
            device.dma_written(Rows::linear(place, part), extent, true);
            at = match at.checked_add(part) {
                Some(next) => next,
                None => break,
            };
        }
        Ok(())
    }

    /// Gives pages of the trace a place. Those of a trace of ours keep theirs.
    fn map(&mut self, pages: impl IntoIterator<Item = u64>) -> Result<(), RunError> {
        let device = layout::Region::Device(0).range();
        let end = (device.end - lockstep_runtime::SYSTEM_SPACE) / PAGE;
        let own = device.start / PAGE..end;
        let mut free = own.start;
        for page in pages {
            if self.pages.contains_key(&page) {
                continue;
            }
            let place = if own.contains(&page) && !self.taken.contains(&page) {
                page
            } else {
                while self.taken.contains(&free) {
                    free += 1;
                }
                free
            };
            if place >= end {
                let what = "the trace touches more memory than a GPU has";
                return Err(RunError::Request(what.into()));
            }
            self.taken.insert(place);
            self.pages.insert(page, place);
            self.runtime.device_mut().map(0, place * PAGE, PAGE);
        }
        Ok(())
    }

    /// Waits until everything has ended.
    fn synchronize(&mut self) -> Result<(), String> {
        if self.under_way.is_empty() {
            return Ok(());
        }
        let modules = std::mem::take(&mut self.under_way);
        let context = self.context;
        let ended = self
            .runtime
            .handle(CLIENT, &Request::ContextSynchronize { context });
        if let Err(failure) = ended.result {
            return match self.runtime.faults().is_empty() {
                true => Err(format!("{}: {}", failure.code, failure.message)),
                false => Ok(()),
            };
        }
        for module in modules {
            // Its trace is closed with it.
            ask(&mut self.runtime, &Request::ModuleUnload { module })
                .map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// Says once for each kernel what a replay of it cannot get right.
    fn note(&mut self, scan: &Scan) {
        let name = &scan.header.name;
        if let Some(polling) = scan.polling {
            let notice = format!(
                "{name}: warps wait for others at {:#x}, up to {} times in a row; a replay asks as often as the traced \
                 run did, however long others take here",
                polling.pc, polling.most
            );
            self.notice(notice);
        }
        if !scan.inexact.is_empty() {
            let opcodes: Vec<&str> = scan.inexact.iter().map(String::as_str).collect();
            let notice = format!(
                "{name}: a trace does not say what {} touches; a replay counts its issue alone",
                opcodes.join(", ")
            );
            self.notice(notice);
        }
    }

    fn notice(&mut self, notice: String) {
        if !self.notices.contains(&notice) {
            self.notices.push(notice);
        }
    }
}
