//! A device that knows nothing but time, and requests written as text.

#![allow(dead_code, reason = "each test file uses its own part")]

use lockstep_isa::module::{Global, GlobalKind, Parameter};
use lockstep_isa::{Kernel, Module};
use lockstep_protocol::{
    ContextHandle, Copy, CuResult, EventHandle, Extent, Fill, FunctionHandle, ImageKind, ImageRole,
    Launch, LaunchConfig, MemoryAccess, ModuleHandle, ModuleImage, Place, Reply, Request, Response,
    Rows, StreamHandle, StreamName,
};
use lockstep_runtime::device::{Advance, Advice, Device, Fault, KernelResult, Transfer};
use lockstep_runtime::{CallResult, Client, FrontendChoice, LoadOptions, ModuleSource, Runtime};
use lockstep_units::{Duration, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Boundaries are this far apart.
const EPOCH: u64 = 50_000_000;

/// Kernels take as many nanoseconds as their first argument says; the argument 666 faults.
#[derive(Default)]
pub struct Fake {
    now: Time,
    running: BTreeMap<Time, Vec<(u64, lockstep_isa::Launch, Time)>>,
    memory: BTreeMap<u64, u8>,
    /// What GPUs may do at addresses that name memory elsewhere.
    pub grants: BTreeMap<(u32, u64), MemoryAccess>,
    /// Whether managed pages have places.
    pub pages: bool,
    /// Whether they come back whenever the host has waited.
    pub flushes: bool,
    /// Managed pages on the device.
    pub resident: BTreeSet<u64>,
    changed: bool,
    /// What the model of paging is at: when it is done, the pages, whether to the device.
    moves: BTreeMap<u64, (Time, Vec<u64>, bool)>,
    /// What it was told.
    pub said: Vec<String>,
    /// What it was advised.
    pub advice: Vec<Advice>,
    /// Priority and carve-out of every launch.
    pub launched: Vec<(i32, Option<u64>)>,
    /// How often a copy engine began to work.
    pub transfers: u32,
}

impl Fake {
    /// Begins to move pages: a microsecond each.
    fn begin(&mut self, ticket: u64, pages: Vec<u64>, to_device: bool, at: Time) {
        let takes = Duration::microseconds(pages.len() as u64);
        self.moves
            .insert(ticket, (at.max(self.now) + takes, pages, to_device));
    }
}

fn pages_of(address: u64, bytes: u64) -> Vec<u64> {
    let first = address - address % 4096;
    (first..address + bytes).step_by(4096).collect()
}

impl Device for Fake {
    fn transfer(&mut self, _: &Transfer) {
        self.transfers += 1;
    }

    fn managed_is_paged(&self) -> bool {
        self.pages
    }

    fn managed_map(&mut self, address: u64, bytes: u64) {
        self.said.push(format!("map {address:#x} {bytes}"));
    }

    fn managed_unmap(&mut self, address: u64) {
        self.said.push(format!("unmap {address:#x}"));
    }

    fn managed_prefetch(
        &mut self,
        ticket: u64,
        address: u64,
        bytes: u64,
        to: Option<u32>,
        at: Time,
    ) {
        let to = to.is_some();
        self.said
            .push(format!("prefetch {address:#x} {bytes} {to}"));
        self.begin(ticket, pages_of(address, bytes), to, at);
    }

    fn managed_host_access(
        &mut self,
        ticket: u64,
        address: u64,
        bytes: u64,
        write: bool,
        at: Time,
    ) {
        self.said
            .push(format!("host access {address:#x} {bytes} {write}"));
        self.begin(ticket, pages_of(address, bytes), false, at);
    }

    fn managed_flushes(&self) -> bool {
        self.flushes
    }

    fn managed_flush(&mut self, ticket: u64, at: Time) {
        self.said.push("flush".into());
        let all = self.resident.iter().copied().collect();
        self.begin(ticket, all, false, at);
    }

    fn managed_done(&mut self, ticket: u64) -> Option<Time> {
        let (done, ..) = self.moves.get(&ticket)?;
        if *done > self.now {
            return None;
        }
        let (done, pages, to_device) = self.moves.remove(&ticket)?;
        self.changed = true;
        for page in pages {
            if to_device {
                self.resident.insert(page);
            } else {
                self.resident.remove(&page);
            }
        }
        Some(done)
    }

    fn managed_populated(&mut self, address: u64, bytes: u64) {
        self.said.push(format!("populated {address:#x} {bytes}"));
    }

    fn managed_resident(&self, address: u64) -> bool {
        self.resident.contains(&(address - address % 4096))
    }

    fn managed_resident_pages(&self, address: u64, bytes: u64) -> Vec<(u64, u64)> {
        let pages = self.resident.range(address..address + bytes);
        pages.map(|page| (*page, 4096)).collect()
    }

    fn managed_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    fn managed_advise(&mut self, _: u64, _: u64, advice: Advice) {
        self.advice.push(advice);
    }

    fn now(&self) -> Time {
        self.now
    }

    fn launch(&mut self, _: u32, id: u64, launch: lockstep_isa::Launch) -> Result<(), Fault> {
        let nanoseconds = u64::from_le_bytes(launch.arguments[..8].try_into().unwrap());
        let end = launch.at + Duration::nanoseconds(nanoseconds);
        self.launched.push((launch.priority, launch.carveout));
        let start = launch.at;
        self.running
            .entry(end)
            .or_default()
            .push((id, launch, start));
        Ok(())
    }

    fn advance(&mut self, limit: Time) -> Advance {
        let first = self.running.keys().next().copied().unwrap_or(Time::NEVER);
        let moved = self.moves.values().map(|(done, ..)| *done).min();
        let reached = first.min(limit).min(moved.unwrap_or(Time::NEVER));
        self.now = self.now.max(Time(reached.0.next_multiple_of(EPOCH)));
        let mut results = Vec::new();
        while let Some(entry) = self.running.first_entry() {
            if *entry.key() > self.now {
                break;
            }
            let (end, launches) = entry.remove_entry();
            for (id, launch, start) in launches {
                if launch.arguments[..8] == 666u64.to_le_bytes() {
                    let message = format!("launch {id} reads what is not there");
                    return Advance::Faulted(Fault {
                        code: CuResult::ILLEGAL_ADDRESS,
                        launch: Some(id),
                        message,
                        address: None,
                        of_simulator: false,
                    });
                }
                results.push(KernelResult {
                    id,
                    start,
                    end,
                    ..KernelResult::default()
                });
            }
        }
        Advance::Reached(results)
    }

    fn abort(&mut self, _: u32) {
        self.running.clear();
    }

    fn take_output(&mut self) -> Vec<u8> {
        Vec::new()
    }

    fn map(&mut self, _: u32, _: u64, _: u64) {}

    fn unmap(&mut self, address: u64, bytes: u64) {
        self.memory
            .retain(|at, _| *at < address || *at >= address + bytes);
    }

    fn set_access(&mut self, _: u32, _: u64, _: u64, _: MemoryAccess) {}

    fn grant(&mut self, gpu: u32, address: u64, _: u64, _: u64, access: MemoryAccess) {
        self.grants.insert((gpu, address), access);
    }

    fn relocate(&mut self, destination: u64, source: u64, bytes: u64) {
        self.copy(destination, source, bytes);
        self.unmap(source, bytes);
    }

    fn read(&self, address: u64, bytes: &mut [u8]) {
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = self
                .memory
                .get(&(address + index as u64))
                .copied()
                .unwrap_or(0);
        }
    }

    fn write(&mut self, address: u64, bytes: &[u8]) {
        for (index, byte) in bytes.iter().enumerate() {
            self.memory.insert(address + index as u64, *byte);
        }
    }

    fn copy(&mut self, destination: u64, source: u64, bytes: u64) {
        let mut moved = vec![0; bytes as usize];
        self.read(source, &mut moved);
        self.write(destination, &moved);
    }

    fn set_heap(&mut self, _: u32, _: u64) {}

    fn touched(&mut self, _: u64, _: u64) {}
}

struct Source(Vec<Global>);

impl ModuleSource for Source {
    fn globals(&self) -> &[Global] {
        &self.0
    }

    fn link(self: Box<Self>, addresses: &[u64]) -> CallResult<Module> {
        let kernel = |name: &str, registers, shared_bytes| Kernel {
            name: name.into(),
            registers,
            shared_bytes,
            parameters: vec![Parameter { offset: 0, size: 8 }],
            parameter_bytes: 8,
            ..Kernel::default()
        };
        Ok(Module {
            kernels: vec![
                kernel("spin", 16, 0),
                kernel("fat", 128, 0),
                kernel("tile", 32, 40 << 10),
            ],
            initial: vec![(addresses[0], vec![7, 8])],
            architecture: 90,
            ..Module::default()
        })
    }
}

/// A runtime over a fake device.
pub fn runtime() -> Runtime<Fake> {
    runtime_with(&[])
}

/// The same with other settings.
fn runtime_with(settings: &[&str]) -> Runtime<Fake> {
    let mut all = vec![
        "host.call=0 ns",
        "host.launch=1 us",
        "host.copy=1 us",
        "host.synchronize=0 ns",
        "host.allocate=0 ns",
        "host.load=0 ns",
        "host.launch-first=0 ns",
        "host.graph-launch=1 us",
        "host.callback=0 ns",
        "copy.latency=1 us",
        "copy.latency-to-host=1 us",
        "copy.latency-within=1 us",
        "copy.pageable=1 GB/s",
        "copy.pageable-latency=1 us",
        "copy.pageable-latency-to-host=1 us",
        "copy.pageable-inline-limit=0 B",
        "copy.pinned=10 GB/s",
        "copy.device-to-device=100 GB/s",
        "copy.device-to-device-l2=100 GB/s",
        "copy.fill=100 GB/s",
        "copy.fill-latency=1 us",
        "copy.fill-inline-limit=0 B",
    ];
    all.extend(settings);
    let config = lockstep_config::load(Some("h200"), &all).unwrap();
    let options = LoadOptions {
        frontend: FrontendChoice::Auto,
        architecture: 90,
        strict: false,
    };
    let loader = Box::new(|_: &[ModuleImage], _: &LoadOptions| {
        let global = |name: &str, kind| Global {
            name: name.into(),
            size: 100,
            alignment: 256,
            kind,
        };
        let source: Box<dyn ModuleSource> = Box::new(Source(vec![
            global("table", GlobalKind::Constant { bank: 3, offset: 0 }),
            global("shared_counter", GlobalKind::Managed),
        ]));
        Ok(source)
    });
    Runtime::new(config, options, loader, Fake::default())
}

/// Who asks in these tests.
pub const CLIENT: Client = Client {
    connection: 0,
    process: 0,
};

/// A runtime over a fake device that pages, with a context.
pub struct Paging {
    runtime: Runtime<Fake>,
    /// The context.
    pub context: ContextHandle,
}

/// Such a runtime.
pub fn paged() -> Paging {
    let mut runtime = runtime();
    runtime.device_mut().pages = true;
    runtime.handle(CLIENT, &Request::PrimaryContextRetain { device: 0 });
    Paging {
        runtime,
        context: CONTEXT,
    }
}

impl Paging {
    /// Asks it.
    pub fn ask(&mut self, request: &Request) -> Response {
        self.runtime.handle(CLIENT, request)
    }

    /// Its device.
    pub fn device(&self) -> &Fake {
        self.runtime.device()
    }

    /// Its device, to be changed.
    pub fn device_mut(&mut self) -> &mut Fake {
        self.runtime.device_mut()
    }

    /// Simulated time of the host.
    pub fn now(&self) -> Time {
        self.runtime.now()
    }

    /// What the user should know.
    pub fn warnings(&self) -> &[String] {
        self.runtime.warnings()
    }
}

/// Handles that the fresh runtime gives: the context is 1, its default stream 2, the module 3.
pub const CONTEXT: ContextHandle = ContextHandle(1);

/// Runs a script, a request a line, and prints the answers with the simulated time of the host.
///
/// `launch STREAM NAME NANOSECONDS`, `sync STREAM`, `query STREAM`, `stream`, `stream nonblocking`,
/// `event`, `record STREAM EVENT`, `wait STREAM EVENT`, `elapsed EVENT EVENT`, `join EVENT`,
/// `malloc N`, `pinned N`, `free ADDRESS`, `in STREAM ADDRESS N`, `move STREAM TO FROM N`,
/// `fill STREAM ADDRESS N BYTE`, `all`, `reset`, `info`. A stream is `default`, `thread` or a number.
pub fn play(script: &str) -> String {
    play_with(&[], script)
}

/// The same with other settings.
pub fn play_with(settings: &[&str], script: &str) -> String {
    let mut runtime = runtime_with(settings);
    let client = Client {
        connection: 0,
        process: 0,
    };
    let mut functions = BTreeMap::new();
    runtime.handle(client, &Request::PrimaryContextRetain { device: 0 });
    let image = ModuleImage {
        kind: ImageKind::Ptx,
        role: ImageRole::Main,
        bytes: Vec::new(),
    };
    let Ok(Reply::Module(module)) = runtime
        .handle(
            client,
            &Request::ModuleLoad {
                context: CONTEXT,
                images: vec![image],
            },
        )
        .result
    else {
        panic!("the fake module loads");
    };
    let mut text = String::new();
    for line in script
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        let request = parse(line, &mut |name| {
            *functions.entry(name.to_string()).or_insert_with(|| {
                match runtime
                    .handle(
                        client,
                        &Request::ModuleFunction {
                            module,
                            name: name.into(),
                        },
                    )
                    .result
                {
                    Ok(Reply::Function(info)) => info.handle,
                    other => panic!("{other:?}"),
                }
            })
        });
        let response = runtime.handle(client, &request);
        let _ = writeln!(
            text,
            "{} ns  {line}: {}",
            runtime.now().nanoseconds(),
            show(&response)
        );
    }
    for launch in runtime.launches() {
        if let Some(result) = &launch.result {
            let _ = writeln!(
                text,
                "{} {} to {} ns",
                launch.kernel,
                result.start.nanoseconds(),
                result.end.nanoseconds()
            );
        }
    }
    text
}

fn show(response: &Response) -> String {
    let sticky = response
        .sticky
        .map(|code| format!(" [sticky {}]", code.0))
        .unwrap_or_default();
    let result = match &response.result {
        Ok(Reply::Done) => "done".into(),
        Ok(Reply::Address(address)) => format!("{address:#x}"),
        Ok(Reply::Elapsed { picoseconds }) => format!("{picoseconds} ps"),
        Ok(other) => format!("{other:?}"),
        Err(failure) => format!("{} {}", failure.code.0, failure.message),
    };
    format!("{result}{sticky}").trim_end().to_string()
}

/// A request from its line.
pub fn parse(line: &str, function: &mut impl FnMut(&str) -> FunctionHandle) -> Request {
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = |index: usize| {
        let word: &str = words[index];
        match word.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).unwrap(),
            None => word.parse().unwrap(),
        }
    };
    let stream = |index: usize| match words[index] {
        "default" => StreamName::Legacy,
        "thread" => StreamName::PerThread,
        word => StreamName::Created(StreamHandle(word.parse().unwrap())),
    };
    let event = |index: usize| EventHandle(number(index));
    let context = CONTEXT;
    let copy = |stream, destination, source, bytes| {
        let extent = Extent::linear(bytes);
        Request::Copy(Copy {
            context,
            stream,
            destination,
            source,
            extent,
            blocking: false,
        })
    };
    match words[0] {
        "launch" => Request::Launch(Box::new(Launch {
            context,
            stream: stream(1),
            function: function(words[2]),
            config: LaunchConfig {
                grid: [4, 1, 1],
                block: [
                    words.get(4).map_or(256, |threads| threads.parse().unwrap()),
                    1,
                    1,
                ],
                dynamic_shared: words.get(5).map_or(0, |bytes| bytes.parse().unwrap()),
            },
            parameters: number(3).to_le_bytes().to_vec(),
            cooperative: false,
            cluster: None,
            priority: None,
            carveout: None,
            programmatic_stream_serialization: false,
        })),
        "sync" => Request::StreamSynchronize {
            context,
            stream: stream(1),
        },
        "query" => Request::StreamQuery {
            context,
            stream: stream(1),
        },
        "all" => Request::ContextSynchronize { context },
        "stream" => Request::StreamCreate {
            context,
            flags: u32::from(words.len() > 1),
            priority: 0,
        },
        "event" => Request::EventCreate { context, flags: 0 },
        "record" => Request::EventRecord {
            context,
            stream: stream(1),
            event: event(2),
        },
        "wait" => Request::StreamWaitEvent {
            context,
            stream: stream(1),
            event: event(2),
        },
        "elapsed" => Request::EventElapsed {
            start: event(1),
            end: event(2),
        },
        "join" => Request::EventSynchronize { event: event(1) },
        "malloc" => Request::Allocate {
            context,
            bytes: number(1),
        },
        "pinned" => Request::AllocateHost {
            context,
            bytes: number(1),
            flags: 0,
        },
        "free" => Request::Free {
            context,
            address: number(1),
        },
        "in" => copy(
            stream(1),
            Place::Window(Rows::linear(number(2), number(3))),
            Place::Host,
            number(3),
        ),
        "move" => copy(
            stream(1),
            Place::Window(Rows::linear(number(2), number(4))),
            Place::Window(Rows::linear(number(3), number(4))),
            number(4),
        ),
        "fill" => Request::Fill(Fill {
            context,
            stream: stream(1),
            destination: Rows::linear(number(2), number(3)),
            extent: Extent::linear(number(3)),
            pattern: number(4) as u32,
            pattern_bytes: 1,
            blocking: false,
        }),
        "reset" => Request::PrimaryContextReset { device: 0 },
        "info" => Request::MemoryInfo { context },
        "global" => Request::ModuleGlobal {
            module: ModuleHandle(number(1)),
            name: words[2].into(),
        },
        "occupancy" => Request::OccupancyBlocks {
            function: function(words[1]),
            block_threads: number(2) as u32,
            dynamic_shared: number(3),
            flags: 0,
        },
        other => panic!("no request is written `{other}`"),
    }
}
