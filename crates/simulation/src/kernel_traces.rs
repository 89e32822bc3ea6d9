//! Traces of what the kernels of a run execute, in Accel-Sim's format.
//!
//! A run that is traced is a functional one: values and the order of instructions within a warp are those of every
//! run, and no time passes that a trace could tell of.
//!
//! Start reading at [`trace_program`].

use crate::description::{Description, Mode};
use crate::program::{RunError, run_program};
use crate::record_replay::replay_record;
use crate::results::Results;
use lockstep_gpu::{LaunchId, TraceSink};
use lockstep_isa::memory::{LOCAL_WINDOW, SHARED_WINDOW};
use lockstep_isa::trace::WarpTrace;
use lockstep_isa::{Launch, Module};
use lockstep_protocol::{Extent, Rows};
use lockstep_trace::{InstructionLine, KernelHeader, TraceError, TraceWriter, read_spelling};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of an instruction of machine code.
const INSTRUCTION: u64 = 16;

/// Writes down what warps execute.
#[derive(Debug)]
pub struct Tracing {
    writer: TraceWriter,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Kernels that have begun, numbered from 1.
    kernels: u64,
    /// Those that run.
    running: BTreeMap<u32, Arc<TracedKernel>>,
    /// Text of modules that were seen, by their place in memory; they are kept so that no other takes it.
    modules: Vec<(Arc<Module>, Arc<Vec<InstructionLine>>)>,
}

/// A kernel that is traced.
#[derive(Debug)]
pub(crate) struct TracedKernel {
    header: KernelHeader,
    code: Arc<Vec<InstructionLine>>,
}

/// What a traced run has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traced {
    /// Kernels.
    pub kernels: u64,
    /// Lines of instructions; a copy from global to shared memory has two.
    pub instructions: u64,
}

/// Runs a program and writes what its kernels execute into a folder, which must be new or empty.
///
/// # Errors
/// The run could not take place, or the traces could not be written.
pub fn trace_program(
    description: &Description,
    command: &[String],
    folder: &Path,
) -> Result<(Results, Traced), RunError> {
    traced(description, folder, |description| {
        run_program(description, command)
    })
}

/// The same of a record of a run, without its program.
///
/// # Errors
/// As of [`trace_program`], or the record cannot be replayed.
pub fn trace_record(
    description: &Description,
    record: &Path,
    folder: &Path,
) -> Result<(Results, Traced), RunError> {
    traced(description, folder, |description| {
        replay_record(description, record)
    })
}

fn traced(
    description: &Description,
    folder: &Path,
    run: impl FnOnce(&Description) -> Result<Results, RunError>,
) -> Result<(Results, Traced), RunError> {
    let refused = |error: TraceError| RunError::Request(error.to_string());
    let tracing = Arc::new(Tracing {
        writer: TraceWriter::create(folder).map_err(refused)?,
        state: Mutex::default(),
    });
    let mut description = description.clone();
    description.mode = Mode::Functional;
    description.tracing = Some(tracing.clone());
    let results = run(&description)?;
    let (kernels, instructions) = tracing.writer.finish().map_err(refused)?;
    let traced = Traced {
        kernels,
        instructions,
    };
    Ok((results, traced))
}

impl Tracing {
    /// The kernel of a launch that is to be traced.
    ///
    /// # Errors
    /// A sentence, if it cannot be.
    pub(crate) fn describe(&self, launch: &Launch) -> Result<TracedKernel, String> {
        let kernel = launch.kernel();
        if !launch.module.native {
            return Err(format!(
                "`{}` runs from PTX, and traces are of machine code; compile it for the simulated GPU, or have \
                 ptxas at hand and use --assemble",
                kernel.name
            ));
        }
        let mut state = self.lock();
        state.kernels += 1;
        let header = KernelHeader {
            name: kernel.name.clone(),
            id: state.kernels,
            grid: launch.config.grid,
            block: launch.config.block,
            shared: launch.own_shared(),
            registers: kernel.registers,
            binary_version: launch.module.architecture,
            stream: launch.queue,
            shared_base: SHARED_WINDOW,
            local_base: LOCAL_WINDOW,
            tool: concat!("lockstep ", env!("CARGO_PKG_VERSION")).into(),
            version: 5,
            line_info: false,
        };
        let code = state.code_of(&launch.module);
        Ok(TracedKernel { header, code })
    }

    /// A kernel is handed to the hardware.
    pub(crate) fn begin(&self, launch: LaunchId, kernel: TracedKernel) {
        self.writer.begin_kernel(&kernel.header);
        self.lock().running.insert(launch.0, Arc::new(kernel));
    }

    /// A launch has ended.
    pub(crate) fn end(&self, launch: LaunchId) {
        let ended = self.lock().running.remove(&launch.0);
        if let Some(kernel) = ended {
            self.writer.end_kernel(kernel.header.id);
        }
    }

    /// A copy engine wrote device memory.
    pub(crate) fn written(&self, rows: Rows, extent: Extent) {
        for slice in 0..extent.depth {
            for row in 0..extent.height {
                let at = rows.address + slice * rows.slice_pitch + row * rows.row_pitch;
                self.writer.copy_to_device(at, extent.width);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// What a trace says of the instructions of a module.
    fn code_of(&mut self, module: &Arc<Module>) -> Arc<Vec<InstructionLine>> {
        let known = self
            .modules
            .iter()
            .find(|(one, _)| Arc::ptr_eq(one, module));
        if let Some((_, code)) = known {
            return code.clone();
        }
        let mut code = Vec::with_capacity(module.code.len());
        for index in 0..module.code.len() as u32 {
            let after = module
                .functions
                .partition_point(|(start, _)| *start <= index);
            let function = after.checked_sub(1).map_or(0, |at| module.functions[at].0);
            let offset = u64::from(index - function);
            let text = module.text(index).unwrap_or_default();
            code.push(read_spelling(offset * INSTRUCTION, &text));
        }
        let code = Arc::new(code);
        self.modules.push((module.clone(), code.clone()));
        code
    }
}

impl TraceSink for Tracing {
    fn wants(&self, launch: LaunchId) -> bool {
        self.lock().running.contains_key(&launch.0)
    }

    fn block(&self, launch: LaunchId, block: u64, warps: Vec<WarpTrace>) {
        let kernel = self.lock().running.get(&launch.0).cloned();
        if let Some(kernel) = kernel {
            let id = kernel.header.id;
            self.writer.block(id, block, &kernel.code, &warps);
        }
    }
}
