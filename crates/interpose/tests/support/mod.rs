//! A stand-in for the simulator: it keeps memory, records requests, and performs the few
//! kernels that the tests teach it.

#![allow(dead_code)] // Each test program uses its part.

pub mod programs;

use lockstep_protocol::layout::{self, Region, WINDOW_BASE, WINDOW_SIZE};
use lockstep_protocol::window::{self, Window};
use lockstep_protocol::*;
use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// What a kernel does: answers what it prints, or the error it falls into.
pub type Body = dyn Fn(&Memory, &Launch) -> Result<String, CuResult> + Send + Sync;

/// A kernel that the stand-in performs.
#[derive(Clone)]
pub struct Kernel {
    /// Sizes of its parameters, which follow each other at natural alignment.
    pub parameters: Vec<u32>,
    /// What it does.
    pub body: Arc<Body>,
}

/// The window as the stand-in sees it.
pub struct Memory(Window);

impl Memory {
    /// Reads one value.
    pub fn read<T: std::marker::Copy>(&self, address: u64) -> T {
        assert!(layout::region_of(address).is_some(), "{address:#x}");
        // SAFETY: the address lies in the window, and the program waits for us meanwhile.
        unsafe { self.at(address).cast::<T>().read_unaligned() }
    }

    /// Writes one value.
    pub fn write<T: std::marker::Copy>(&self, address: u64, value: T) {
        assert!(layout::region_of(address).is_some(), "{address:#x}");
        // SAFETY: as above.
        unsafe { self.at(address).cast::<T>().write_unaligned(value) }
    }

    fn at(&self, address: u64) -> *mut u8 {
        self.0
            .start()
            .wrapping_add((address - WINDOW_BASE) as usize)
    }
}

struct State {
    log: Vec<String>,
    images: Vec<ModuleImage>,
    next: u64,
    device_end: u64,
    pinned_end: u64,
    managed_end: u64,
    allocations: BTreeMap<u64, (u64, PointerKind)>,
    functions: BTreeMap<u64, (String, Kernel)>,
    globals: BTreeMap<String, GlobalInfo>,
    sticky: Option<CuResult>,
}

/// The stand-in. It serves until it is dropped.
pub struct Simulator {
    state: Arc<Mutex<State>>,
    connections: Arc<Mutex<Vec<UnixStream>>>,
    path: PathBuf,
}

/// What it knows how to do.
#[derive(Clone, Default)]
pub struct Knowledge {
    /// Kernels by part of their mangled names.
    pub kernels: BTreeMap<&'static str, Kernel>,
    /// Variables: name, size, whether managed.
    pub globals: Vec<(&'static str, u64, bool)>,
    /// A request that is never answered.
    pub never_answers: Option<&'static str>,
    /// All managed pages leave the host at every synchronisation; an access brings eight back.
    pub pages_leave: bool,
}

impl Simulator {
    /// Starts serving.
    pub fn start(knowledge: Knowledge) -> Self {
        let listener = Listener::bind_under(&std::env::temp_dir(), |_| Ok(())).unwrap();
        let file = Arc::new(window::create().unwrap());
        let memory = Arc::new(Memory(Window::map_anywhere(&*file).unwrap()));
        let mut state = State {
            log: Vec::new(),
            images: Vec::new(),
            next: 1,
            device_end: Region::Device(0).range().start + (1 << 21),
            pinned_end: Region::Pinned.range().start + (1 << 21),
            managed_end: Region::Managed.range().start + (1 << 21),
            allocations: BTreeMap::new(),
            functions: BTreeMap::new(),
            globals: BTreeMap::new(),
            sticky: None,
        };
        for (name, bytes, managed) in &knowledge.globals {
            let kind = if *managed {
                PointerKind::Managed
            } else {
                PointerKind::Device
            };
            let address = state.allocate(*bytes, kind);
            let global = GlobalInfo {
                address,
                bytes: *bytes,
                managed: *managed,
            };
            state.globals.insert(name.to_string(), global);
        }
        let state = Arc::new(Mutex::new(state));
        let connections: Arc<Mutex<Vec<UnixStream>>> = Arc::default();
        let simulator = Self {
            state: state.clone(),
            connections: connections.clone(),
            path: listener.path().to_path_buf(),
        };
        std::thread::spawn(move || {
            while let Ok(stream) = listener.accept() {
                connections
                    .lock()
                    .unwrap()
                    .push(stream.try_clone().unwrap());
                let (state, memory, file) = (state.clone(), memory.clone(), file.clone());
                let knowledge = knowledge.clone();
                std::thread::spawn(move || serve(stream, &state, &memory, &file, &knowledge));
            }
        });
        simulator
    }

    /// Where it listens.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What was asked so far, one line a request.
    pub fn log(&self) -> Vec<String> {
        self.state.lock().unwrap().log.clone()
    }

    /// The images that were loaded.
    pub fn images(&self) -> Vec<ModuleImage> {
        self.state.lock().unwrap().images.clone()
    }

    /// Hangs up on everybody, as a simulator that was killed does.
    pub fn hang_up(&self) {
        for stream in self.connections.lock().unwrap().drain(..) {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }
}

impl Drop for Simulator {
    /// The thread that accepts is never told to end, so its socket is removed here.
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
        let _ = std::fs::remove_dir(self.path.parent().unwrap());
    }
}

fn serve(
    stream: UnixStream,
    state: &Mutex<State>,
    memory: &Memory,
    file: &OwnedFd,
    knowledge: &Knowledge,
) {
    let welcome = Welcome {
        window_base: WINDOW_BASE,
        window_size: WINDOW_SIZE,
        driver_version: 13030,
        first_device: 0,
        devices: vec![device()],
    };
    let Ok((mut connection, hello)) =
        ServerConnection::accept(stream, |_| Ok(&welcome), file.as_fd())
    else {
        return;
    };
    assert_ne!(hello.process, 0);
    while let Ok(Some(request)) = connection.receive() {
        if Some(describe(&request).as_str()) == knowledge.never_answers {
            continue;
        }
        let response = state.lock().unwrap().answer(request, memory, knowledge);
        if connection.send(&response).is_err() {
            break;
        }
    }
}

/// One of the two NVLinks of the device: to a switch, and, as no real one does, to itself.
fn link(peer: Option<u32>, bus: u32) -> NvLink {
    NvLink {
        peer,
        bus,
        megabytes_per_second: 25_000,
    }
}

/// The device that is offered.
pub fn device() -> DeviceDescription {
    let attributes = [
        (attribute::MAX_THREADS_PER_BLOCK, 1024),
        (attribute::MAX_BLOCK_DIM_X, 1024),
        (attribute::MAX_BLOCK_DIM_Y, 1024),
        (attribute::MAX_BLOCK_DIM_Z, 64),
        (attribute::MAX_GRID_DIM_X, i32::MAX),
        (attribute::MAX_GRID_DIM_Y, 65535),
        (attribute::MAX_GRID_DIM_Z, 65535),
        (attribute::WARP_SIZE, 32),
        (attribute::MULTIPROCESSOR_COUNT, 132),
        (attribute::MAX_THREADS_PER_MULTIPROCESSOR, 2048),
        (attribute::COMPUTE_CAPABILITY_MAJOR, 9),
        (attribute::PCI_BUS_ID, 0x41),
        (attribute::CLOCK_RATE, 1_980_000),
        (attribute::MEMORY_CLOCK_RATE, 3_201_000),
        (attribute::GLOBAL_MEMORY_BUS_WIDTH, 6016),
        (attribute::ECC_ENABLED, 1),
    ];
    DeviceDescription {
        name: "Stand-in GPU".into(),
        uuid: *b"stand-in-gpu-000",
        total_memory: 80 << 30,
        attributes: attributes.into_iter().collect(),
        peers: Vec::new(),
        nvlinks: vec![link(None, 0xc0), link(Some(0), 0x41)],
        behind_pci_switch: false,
    }
}

impl State {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn allocate(&mut self, bytes: u64, kind: PointerKind) -> u64 {
        let end = match kind {
            PointerKind::Device => &mut self.device_end,
            PointerKind::Host => &mut self.pinned_end,
            PointerKind::Managed => &mut self.managed_end,
        };
        let address = *end;
        *end += bytes.next_multiple_of(512);
        self.allocations.insert(address, (bytes, kind));
        address
    }

    fn answer(&mut self, request: Request, memory: &Memory, knowledge: &Knowledge) -> Response {
        // What the library asks by itself is not the program's.
        if !matches!(request, Request::ThreadBegins | Request::HostVisible) {
            self.log.push(describe(&request));
        }
        let mut output = String::new();
        let leave = knowledge.pages_leave && matches!(request, Request::ContextSynchronize { .. });
        let result = self.perform(request, memory, knowledge, &mut output);
        let managed = self
            .allocations
            .iter()
            .filter(|(_, (_, kind))| leave && *kind == PointerKind::Managed)
            .map(|(address, (bytes, _))| {
                let start = address - address % pages::PAGE;
                (
                    start,
                    (address + bytes - start).next_multiple_of(pages::PAGE),
                )
            });
        Response {
            output: output.into_bytes(),
            sticky: self.sticky,
            left_host: managed.collect(),
            result: result.map_err(|code| Failure {
                code,
                message: "stand-in".into(),
            }),
        }
    }

    fn perform(
        &mut self,
        request: Request,
        memory: &Memory,
        knowledge: &Knowledge,
        output: &mut String,
    ) -> Result<Reply, CuResult> {
        if let Some(code) = self.sticky
            && !matches!(request, Request::PrimaryContextReset { .. })
        {
            return Err(code);
        }
        Ok(match request {
            Request::PrimaryContextRetain { .. } | Request::ContextCreate { .. } => {
                Reply::Context(ContextHandle(self.number()))
            }
            Request::ModuleLoad { images, .. } => {
                self.images.extend(images);
                Reply::Module(ModuleHandle(self.number()))
            }
            Request::ModuleFunction { name, .. } => {
                let found = knowledge
                    .kernels
                    .iter()
                    .find(|(part, _)| name.contains(*part));
                let kernel = found.ok_or(CuResult::NOT_FOUND)?.1.clone();
                let known = self.functions.iter().find(|(_, row)| row.0 == name);
                let number = known.map(|(number, _)| *number);
                let number = number.unwrap_or_else(|| self.number());
                let mut offset: u32 = 0;
                let parameters = kernel.parameters.iter().map(|size| {
                    offset = offset.next_multiple_of((*size).min(8));
                    offset += size;
                    ParameterSlot {
                        offset: offset - size,
                        size: *size,
                    }
                });
                let info = FunctionInfo {
                    handle: FunctionHandle(number),
                    name: name.clone(),
                    parameters: parameters.collect(),
                    attributes: FunctionAttributes {
                        maximum_threads: 1024,
                        registers: 16,
                        ..Default::default()
                    },
                };
                self.functions.insert(number, (name, kernel));
                Reply::Function(Box::new(info))
            }
            Request::ModuleFunctionNames { .. } => Reply::Names(
                knowledge
                    .kernels
                    .keys()
                    .map(|name| name.to_string())
                    .collect(),
            ),
            Request::ModuleGlobal { name, .. } => {
                Reply::Global(*self.globals.get(&name).ok_or(CuResult::NOT_FOUND)?)
            }
            Request::Allocate { bytes, .. } | Request::AllocateAsync { bytes, .. } => {
                if bytes > 80 << 30 {
                    return Err(CuResult::OUT_OF_MEMORY);
                }
                Reply::Address(self.allocate(bytes, PointerKind::Device))
            }
            Request::AllocateHost { bytes, .. } => {
                Reply::Address(self.allocate(bytes, PointerKind::Host))
            }
            Request::RegisterHost { place, bytes, .. } => {
                let found = self.allocations.range(..=place).next_back();
                let holds = found.is_some_and(|(base, row)| place + bytes <= base + row.0);
                if !holds {
                    return Err(CuResult::INVALID_VALUE);
                }
                Reply::Done
            }
            Request::AllocateManaged { bytes, .. } => {
                Reply::Address(self.allocate(bytes, PointerKind::Managed))
            }
            Request::Free { address, .. } | Request::FreeAsync { address, .. } => {
                self.allocations
                    .remove(&address)
                    .ok_or(CuResult::INVALID_VALUE)?;
                Reply::Done
            }
            Request::MemoryInfo { .. } => Reply::Memory {
                free: 79 << 30,
                total: 80 << 30,
            },
            Request::DeviceState { device: 0, .. } => {
                let kinds = self.allocations.values();
                let taken = kinds.filter(|(_, kind)| *kind == PointerKind::Device);
                let bytes = taken.map(|(bytes, _)| *bytes).sum::<u64>();
                Reply::DeviceState(DeviceState {
                    total: 80 << 30,
                    free: (79 << 30) - bytes,
                    reserved: 1 << 30,
                    processes: vec![
                        ProcessOnDevice {
                            process: 4711,
                            bytes,
                        },
                        ProcessOnDevice {
                            process: 4712,
                            bytes: 5,
                        },
                    ],
                })
            }
            Request::PointerInfo { address } => {
                let found = self.allocations.range(..=address).next_back();
                let found = found.filter(|(base, row)| address < *base + row.0);
                Reply::Pointer(found.map(|(base, (bytes, kind))| PointerInfo {
                    kind: *kind,
                    device: 0,
                    context: ContextHandle(2),
                    base: *base,
                    bytes: *bytes,
                    identity: 1,
                    flags: 0,
                }))
            }
            Request::Copy(copy) => {
                if let (Place::Window(to), Place::Window(from)) = (copy.destination, copy.source) {
                    for row in 0..copy.extent.height {
                        for byte in 0..copy.extent.width {
                            let value: u8 = memory.read(from.address + row * from.row_pitch + byte);
                            memory.write(to.address + row * to.row_pitch + byte, value);
                        }
                    }
                }
                Reply::Done
            }
            Request::Fill(fill) => {
                let pattern = fill.pattern.to_le_bytes();
                for row in 0..fill.extent.height {
                    for byte in 0..fill.extent.width {
                        let value = pattern[byte as usize % usize::from(fill.pattern_bytes)];
                        let start = fill.destination.address + row * fill.destination.row_pitch;
                        memory.write(start + byte, value);
                    }
                }
                Reply::Done
            }
            Request::Launch(launch) => {
                let kernel = self.functions.get(&launch.function.0);
                let kernel = kernel.ok_or(CuResult::INVALID_HANDLE)?.1.clone();
                match (kernel.body)(memory, &launch) {
                    Ok(text) => output.push_str(&text),
                    Err(code) => self.sticky = Some(code),
                }
                Reply::Done
            }
            Request::StreamCreate { .. } => Reply::Stream(StreamHandle(self.number())),
            Request::EventCreate { .. } => Reply::Event(EventHandle(self.number())),
            Request::EventElapsed { .. } => Reply::Elapsed {
                picoseconds: 2_500_000_000,
            },
            Request::LimitGet { .. } => Reply::Value(1024),
            Request::OccupancyBlocks { block_threads, .. } => {
                Reply::Value(u64::from(2048 / block_threads))
            }
            Request::OccupancyClusters { .. } => Reply::Value(8),
            Request::PrimaryContextReset { .. } => {
                self.sticky = None;
                Reply::Done
            }
            Request::HostAccess { address, .. } => {
                let unit = 8 * pages::PAGE;
                Reply::Pages(vec![(address - address % unit, unit)])
            }
            _ => Reply::Done,
        })
    }
}

/// A request in a few words.
fn describe(request: &Request) -> String {
    let place = |place: &Place| match place {
        Place::Host => "host",
        Place::Window(_) => "window",
    };
    match request {
        Request::ModuleLoad { images, .. } => format!("ModuleLoad of {}", images.len()),
        Request::ModuleFunction { name, .. } => format!("ModuleFunction {name}"),
        Request::ModuleGlobal { name, .. } => format!("ModuleGlobal {name}"),
        Request::Allocate { bytes, .. } => format!("Allocate {bytes}"),
        Request::Copy(copy) => format!(
            "Copy {} bytes {} to {} {:?}{}",
            copy.extent.bytes().unwrap(),
            place(&copy.source),
            place(&copy.destination),
            copy.stream,
            if copy.blocking { ", blocking" } else { "" }
        ),
        Request::Fill(fill) => format!("Fill {} bytes", fill.extent.bytes().unwrap()),
        Request::Launch(launch) => format!(
            "Launch {:?} {:?} shared {} {:?}{}",
            launch.config.grid,
            launch.config.block,
            launch.config.dynamic_shared,
            launch.stream,
            if launch.cooperative {
                " cooperative"
            } else {
                ""
            }
        ),
        Request::HostAccess { address, write } => {
            let manner = if *write { "writing" } else { "reading" };
            format!("HostAccess {address:#x} {manner}")
        }
        Request::HostAccessMeans { means } => format!("HostAccessMeans {means:?}"),
        Request::Unsupported { name, manner } => format!("Unsupported {name} {manner:?}"),
        other => other.name(),
    }
}
