//! Runs one kernel of a PTX or cubin file, without a host program.

use crate::arguments::{Argument, ElementType, contents};
use crate::assemble::Assembling;
use crate::description::Description;
use crate::images;
use crate::in_folder::in_folder;
use crate::machine::{self, SharedSegment};
use crate::program::{RunError, system};
use crate::results::Results;
use lockstep_protocol::{
    ContextHandle, FunctionInfo, Launch, LaunchConfig, ModuleImage, Reply, Request, StreamName,
    window,
};
use lockstep_run_folder::RunFolder;
use lockstep_runtime::{Client, Device, Runtime};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// Largest file that is taken for a kernel.
const MAXIMUM_FILE: u64 = 1 << 30;
/// Elements of a buffer that are written at a time.
const PIECE: u64 = 1 << 16;
pub(crate) const CLIENT: Client = Client {
    connection: 0,
    process: 0,
};

/// One kernel and its arguments.
#[derive(Clone, Debug)]
pub struct KernelDescription {
    /// PTX, cubin or fat binary.
    pub file: PathBuf,
    /// The kernel; may be left out if the file has only one.
    pub entry: Option<String>,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Dynamic shared memory of a block, in bytes.
    pub dynamic_shared: u32,
    /// Arguments in order.
    pub arguments: Vec<Argument>,
    /// Buffers to print afterwards: argument and number of elements.
    pub print: Vec<(usize, u64)>,
    /// How often to launch it.
    pub repeat: u32,
}

/// A buffer after the run.
#[derive(Clone, Debug, PartialEq)]
pub struct Printed {
    /// Which argument.
    pub argument: usize,
    /// Type of its elements.
    pub kind: ElementType,
    /// Values as text.
    pub values: Vec<String>,
}

/// Runs the kernel as described.
///
/// # Errors
/// The file, the kernel or the arguments do not fit, or nothing could be simulated.
pub fn run_kernel(
    description: &Description,
    kernel: &KernelDescription,
) -> Result<(Results, Vec<Printed>), RunError> {
    let image = read_image(kernel)?;
    let name = kernel.file.display().to_string();
    let command: Vec<String> = [Some(name), kernel.entry.clone()]
        .into_iter()
        .flatten()
        .collect();
    in_folder(description, &command, |folder, _| {
        simulate(description, kernel, image, folder)
    })
}

#[allow(
    clippy::disallowed_methods,
    reason = "figures about the host are outside the digest"
)]
fn simulate(
    description: &Description,
    kernel: &KernelDescription,
    image: ModuleImage,
    folder: &Arc<RunFolder>,
) -> Result<(Results, Vec<Printed>), RunError> {
    let memory = window::create()?;
    let mut description = description.clone();
    if description.assembling == Assembling::IfPossible {
        // Who names a file of PTX wants it to run.
        description.assembling = Assembling::Never;
    }
    let description = &description;
    let mut runtime = machine::runtime(description, &memory)?;
    runtime
        .device_mut()
        .write_down(folder, description.series)?;
    if let Some(segment) = SharedSegment::open(description, &kernel.file.to_string_lossy())? {
        runtime.device_mut().publish(&segment, description);
    }
    let began = Instant::now();
    let (context, function) = load_function(&mut runtime, kernel, image)?;
    let (parameters, buffers) = place_arguments(&mut runtime, kernel, context, &function)?;
    allow_shared_memory(&mut runtime, kernel, &function)?;
    let mut problems = Vec::new();
    for _ in 0..kernel.repeat.max(1) {
        let launch = Request::Launch(Box::new(Launch {
            context,
            stream: StreamName::Legacy,
            function: function.handle,
            config: LaunchConfig {
                grid: kernel.grid,
                block: kernel.block,
                dynamic_shared: kernel.dynamic_shared,
            },
            parameters: parameters.clone(),
            cooperative: false,
            cluster: None,
            priority: None,
            carveout: None,
            programmatic_stream_serialization: false,
        }));
        ask(&mut runtime, &launch)?;
    }
    let synchronized = runtime.handle(CLIENT, &Request::ContextSynchronize { context });
    print_output(&synchronized.output)?;
    if let Err(failure) = synchronized.result
        && runtime.faults().is_empty()
    {
        problems.push(format!("{}: {}", failure.code, failure.message));
    }
    let printed = print(&runtime, kernel, &buffers)?;
    let wall = began.elapsed();
    let command = [kernel.file.display().to_string(), function.name.clone()];
    let runtime = &mut runtime;
    let results = Results::without_program(description, &command, runtime, wall, problems);
    Ok((results, printed))
}

/// Loads the file and finds the kernel in it; says the context, too.
fn load_function<D: Device>(
    runtime: &mut Runtime<D>,
    kernel: &KernelDescription,
    image: ModuleImage,
) -> Result<(ContextHandle, FunctionInfo), RunError> {
    let context = primary_context(runtime)?;
    let module = match ask(
        runtime,
        &Request::ModuleLoad {
            context,
            images: vec![image],
        },
    )? {
        Reply::Module(module) => module,
        other => return Err(unexpected(&other)),
    };
    let names = match ask(runtime, &Request::ModuleFunctionNames { module })? {
        Reply::Names(names) => names,
        other => return Err(unexpected(&other)),
    };
    let entry = choose_entry(kernel, &names)?;
    match ask(
        runtime,
        &Request::ModuleFunction {
            module,
            name: entry,
        },
    )? {
        Reply::Function(function) => Ok((context, *function)),
        other => Err(unexpected(&other)),
    }
}

/// The bytes of all parameters, and the addresses of those that are buffers.
type Placed = (Vec<u8>, Vec<Option<u64>>);

/// Allocates and fills buffers, and puts arguments where the kernel looks for them.
fn place_arguments<D: Device>(
    runtime: &mut Runtime<D>,
    kernel: &KernelDescription,
    context: ContextHandle,
    function: &FunctionInfo,
) -> Result<Placed, RunError> {
    let mut buffers = Vec::new();
    let mut parameters = vec![0; function.parameter_bytes()];
    check_count(function, kernel)?;
    for (index, (argument, slot)) in kernel
        .arguments
        .iter()
        .zip(&function.parameters)
        .enumerate()
    {
        let bytes = match argument {
            Argument::Scalar { bytes, .. } => {
                buffers.push(None);
                bytes.clone()
            }
            Argument::Buffer { kind, count, .. } => {
                let bytes = count * kind.bytes();
                let address = match ask(runtime, &Request::Allocate { context, bytes })? {
                    Reply::Address(address) => address,
                    other => return Err(unexpected(&other)),
                };
                fill(runtime, argument, address);
                buffers.push(Some(address));
                address.to_le_bytes().to_vec()
            }
        };
        if bytes.len() != slot.size as usize {
            return Err(RunError::Request(format!(
                "argument {index} of `{}` has {} bytes, not {}",
                function.name,
                slot.size,
                bytes.len()
            )));
        }
        let at = slot.offset as usize;
        parameters[at..at + bytes.len()].copy_from_slice(&bytes);
    }
    Ok((parameters, buffers))
}

/// Lets the kernel have its dynamic shared memory.
fn allow_shared_memory<D: Device>(
    runtime: &mut Runtime<D>,
    kernel: &KernelDescription,
    function: &FunctionInfo,
) -> Result<(), RunError> {
    if kernel.dynamic_shared > function.attributes.maximum_dynamic_shared as u32 {
        let value = i32::try_from(kernel.dynamic_shared).unwrap_or(i32::MAX);
        ask(
            runtime,
            &Request::FunctionSetAttribute {
                function: function.handle,
                attribute: 8,
                value,
            },
        )?;
    }
    Ok(())
}

/// Asks the runtime; a failure is a sentence.
/// The context of the first GPU.
pub(crate) fn primary_context<D: Device>(
    runtime: &mut Runtime<D>,
) -> Result<ContextHandle, RunError> {
    match ask(runtime, &Request::PrimaryContextRetain { device: 0 })? {
        Reply::Context(context) => Ok(context),
        other => Err(unexpected(&other)),
    }
}

pub(crate) fn ask<D: Device>(
    runtime: &mut Runtime<D>,
    request: &Request,
) -> Result<Reply, RunError> {
    let response = runtime.handle(CLIENT, request);
    print_output(&response.output)?;
    response
        .result
        .map_err(|failure| RunError::Request(format!("{}: {}", failure.code, failure.message)))
}

pub(crate) fn unexpected(reply: &Reply) -> RunError {
    RunError::Request(format!("the runtime answered {reply:?}"))
}

/// What kernels printed goes where a program's own output would go.
fn print_output(output: &[u8]) -> Result<(), RunError> {
    use std::io::Write;
    std::io::stdout()
        .write_all(output)
        .map_err(system("what the kernel printed, to standard output"))
}

fn read_image(kernel: &KernelDescription) -> Result<ModuleImage, RunError> {
    let name = kernel.file.display().to_string();
    let size = std::fs::metadata(&kernel.file)
        .map_err(system(&name))?
        .len();
    if size > MAXIMUM_FILE {
        return Err(RunError::Request(format!(
            "{name}: {size} bytes are too many for a kernel"
        )));
    }
    let bytes = std::fs::read(&kernel.file).map_err(system(&name))?;
    Ok(images::image_of(bytes))
}

fn choose_entry(kernel: &KernelDescription, names: &[String]) -> Result<String, RunError> {
    let file = kernel.file.display();
    let known = if names.is_empty() {
        "none".into()
    } else {
        names.join(", ")
    };
    match (&kernel.entry, names) {
        (Some(entry), _) if names.contains(entry) => Ok(entry.clone()),
        (Some(entry), _) => Err(RunError::Request(format!(
            "{file} has no kernel called `{entry}`; its kernels: {known}"
        ))),
        (None, [only]) => Ok(only.clone()),
        (None, _) => Err(RunError::Request(format!(
            "name one of the kernels of {file} with --entry: {known}"
        ))),
    }
}

fn check_count(function: &FunctionInfo, kernel: &KernelDescription) -> Result<(), RunError> {
    let (expected, found) = (function.parameters.len(), kernel.arguments.len());
    if expected == found {
        return Ok(());
    }
    let sizes: Vec<String> = function
        .parameters
        .iter()
        .map(|slot| slot.size.to_string())
        .collect();
    Err(RunError::Request(format!(
        "`{}` takes {expected} arguments (of {} bytes), and {found} are given with --arg",
        function.name,
        sizes.join(", ")
    )))
}

fn fill<D: Device>(runtime: &mut Runtime<D>, argument: &Argument, address: u64) {
    let Argument::Buffer {
        kind,
        count,
        pattern,
    } = argument
    else {
        return;
    };
    let mut first = 0;
    while first < *count {
        let part = PIECE.min(count - first);
        runtime.device_mut().write(
            address + first * kind.bytes(),
            &contents(*kind, pattern, first, part),
        );
        first += part;
    }
}

fn print<D: Device>(
    runtime: &Runtime<D>,
    kernel: &KernelDescription,
    buffers: &[Option<u64>],
) -> Result<Vec<Printed>, RunError> {
    let mut printed = Vec::new();
    for (index, wanted) in &kernel.print {
        let (Some(Argument::Buffer { kind, count, .. }), Some(Some(address))) =
            (kernel.arguments.get(*index), buffers.get(*index))
        else {
            return Err(RunError::Request(format!(
                "argument {index} is not a buffer that could be printed"
            )));
        };
        let count = (*wanted).min(*count);
        let mut bytes = vec![0; (count * kind.bytes()) as usize];
        runtime.device().read(*address, &mut bytes);
        let values = bytes
            .chunks(kind.bytes() as usize)
            .map(|bytes| kind.show(bytes))
            .collect();
        printed.push(Printed {
            argument: *index,
            kind: *kind,
            values,
        });
    }
    Ok(printed)
}
