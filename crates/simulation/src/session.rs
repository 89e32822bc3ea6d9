//! A runtime without a program: requests in, responses out, in this process.
//!
//! Tests and fuzzing drive the simulator through it. [`Session::exercise`] does with an image what
//! a program of unknown origin would do: load it, and launch every kernel.

use crate::checkpoint::{self, CheckpointError};
use crate::description::Description;
use crate::machine;
use crate::node::Node;
use crate::program::RunError;
use crate::server::welcome;
use lockstep_protocol::{
    ContextHandle, FunctionInfo, Launch, LaunchConfig, ModuleHandle, ModuleImage, Reply, Request,
    Response, StreamName, Welcome, window,
};
use lockstep_runtime::{Client, Device, Runtime};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

const CLIENT: Client = Client {
    connection: 0,
    process: 0,
};

/// Bytes of the buffer that kernels are given where they take a pointer.
const BUFFER: u64 = 64 << 10;
/// Kernels of an image that are launched.
const MOST_KERNELS: usize = 8;

/// A simulated GPU and what calls mean on it.
pub struct Session {
    runtime: Runtime<Node>,
    memory: OwnedFd,
}

/// What came of one kernel of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exercised {
    /// The kernel; the whole image if it could not be loaded.
    pub kernel: String,
    /// CUDA's error and its sentence.
    pub outcome: Result<(), String>,
}

impl Session {
    /// A fresh GPU.
    ///
    /// # Errors
    /// The GPU cannot be built.
    pub fn new(description: &Description) -> Result<Self, RunError> {
        let memory = window::create_for(description.all_gpus())?;
        let runtime = machine::runtime(description, &memory)?;
        Ok(Self { runtime, memory })
    }

    /// Handles one request.
    pub fn ask(&mut self, request: &Request) -> Response {
        self.runtime.handle(CLIENT, request)
    }

    /// The bytes of a `checkpoint.state` of the GPU, which belongs to no run.
    ///
    /// # Errors
    /// This executable cannot be read.
    pub fn checkpoint(&mut self, description: &Description) -> Result<Vec<u8>, CheckpointError> {
        checkpoint::detached(description, &self.runtime.device_mut().state())
    }

    /// One number for everything that was simulated.
    #[must_use]
    pub fn digest(&self) -> String {
        self.runtime.device().digest()
    }

    /// Reads memory that host and device share, or the device's.
    pub fn read(&self, address: u64, bytes: &mut [u8]) {
        self.runtime.device().read(address, bytes);
    }

    /// Writes memory, as a host does without a call.
    pub fn write(&mut self, address: u64, bytes: &[u8]) {
        self.runtime.device_mut().write(address, bytes);
    }

    /// What a client of this GPU is told.
    #[must_use]
    pub fn welcome(&self) -> Welcome {
        welcome(
            &self.runtime.descriptions(),
            0..self.runtime.device().gpus(),
        )
    }

    /// The file with the contents of its memory.
    #[must_use]
    pub fn memory(&self) -> BorrowedFd<'_> {
        self.memory.as_fd()
    }

    /// Loads an image on a fresh GPU and launches its kernels one after the other, each on `grid`
    /// blocks of `block` threads; pointers point into a buffer. After an error the next kernel has a
    /// GPU of its own, as the next program would.
    ///
    /// # Errors
    /// The GPU cannot be built. What is wrong with the image is in what is given back.
    pub fn exercise(
        description: &Description,
        image: &ModuleImage,
        grid: u32,
        block: u32,
    ) -> Result<Vec<Exercised>, RunError> {
        let mut all = Vec::new();
        let mut loaded = match Loaded::new(description, image)? {
            Ok(loaded) => loaded,
            Err(failure) => {
                let kernel = String::new();
                let outcome = Err(failure);
                return Ok(vec![Exercised { kernel, outcome }]);
            }
        };
        let names = loaded.names.clone();
        for name in names.into_iter().take(MOST_KERNELS) {
            if description.progress.is_stopped() {
                break;
            }
            let outcome = loaded.launch(&name, grid, block);
            if outcome.is_err() {
                match Loaded::new(description, image)? {
                    Ok(again) => loaded = again,
                    Err(_) => break,
                }
            }
            let kernel = name;
            all.push(Exercised { kernel, outcome });
        }
        Ok(all)
    }
}

/// An image on a GPU.
struct Loaded {
    session: Session,
    context: ContextHandle,
    module: ModuleHandle,
    buffer: u64,
    names: Vec<String>,
}

impl Loaded {
    fn new(
        description: &Description,
        image: &ModuleImage,
    ) -> Result<Result<Self, String>, RunError> {
        let session = Session::new(description)?;
        Ok(Self::load(session, image))
    }

    fn load(mut session: Session, image: &ModuleImage) -> Result<Self, String> {
        let context = match reply(&mut session, &Request::PrimaryContextRetain { device: 0 })? {
            Reply::Context(context) => context,
            other => return Err(unexpected(&other)),
        };
        let load = Request::ModuleLoad {
            context,
            images: vec![image.clone()],
        };
        let module = match reply(&mut session, &load)? {
            Reply::Module(module) => module,
            other => return Err(unexpected(&other)),
        };
        let names = match reply(&mut session, &Request::ModuleFunctionNames { module })? {
            Reply::Names(names) => names,
            other => return Err(unexpected(&other)),
        };
        let allocate = Request::Allocate {
            context,
            bytes: BUFFER,
        };
        let buffer = match reply(&mut session, &allocate)? {
            Reply::Address(address) => address,
            other => return Err(unexpected(&other)),
        };
        Ok(Self {
            session,
            context,
            module,
            buffer,
            names,
        })
    }

    fn launch(&mut self, name: &str, grid: u32, block: u32) -> Result<(), String> {
        let (context, module) = (self.context, self.module);
        let name = name.to_owned();
        let find = Request::ModuleFunction { module, name };
        let function = match reply(&mut self.session, &find)? {
            Reply::Function(function) => function,
            other => return Err(unexpected(&other)),
        };
        let most = u32::try_from(function.attributes.maximum_threads).unwrap_or(0);
        let launch = Launch {
            context,
            stream: StreamName::Legacy,
            function: function.handle,
            config: LaunchConfig::new([grid, 1, 1], [block.min(most).max(1), 1, 1]),
            parameters: self.parameters(&function),
            cooperative: false,
            cluster: None,
            priority: None,
            carveout: None,
            programmatic_stream_serialization: false,
        };
        reply(&mut self.session, &Request::Launch(Box::new(launch)))?;
        reply(&mut self.session, &Request::ContextSynchronize { context })?;
        Ok(())
    }

    /// Words of eight bytes point into the buffer, others are small numbers.
    fn parameters(&self, function: &FunctionInfo) -> Vec<u8> {
        let mut bytes = vec![0; function.parameter_bytes()];
        for (number, slot) in function.parameters.iter().enumerate() {
            let value = if slot.size >= 8 {
                self.buffer + (number as u64 % 4) * (BUFFER / 4)
            } else {
                64
            };
            let at = slot.offset as usize;
            let count = (slot.size as usize).min(8);
            if let Some(place) = bytes.get_mut(at..at + count) {
                place.copy_from_slice(&value.to_le_bytes()[..count]);
            }
        }
        bytes
    }
}

fn reply(session: &mut Session, request: &Request) -> Result<Reply, String> {
    let response = session.ask(request);
    response
        .result
        .map_err(|failure| format!("{}: {}", failure.code, failure.message))
}

fn unexpected(reply: &Reply) -> String {
    format!("the runtime answered {reply:?}")
}
