//! Good conversations: what a small program asks, what it is answered, and the record of both.

use crate::corpus::{Corpus, Kind};
use crate::tiny;
use lockstep_protocol::{
    ContextHandle, Copy, Extent, Fill, Hello, ImageKind, ImageRole, Launch, LaunchConfig,
    MemoryAccess, MemoryLocation, ModuleImage, PROTOCOL_VERSION, Place, Reply, Request, Response,
    Rows, StreamName, Welcome, frame,
};
use lockstep_runtime::{Client, Piece, RecordWriter};
use lockstep_simulation::{Mode, Session};
use lockstep_units::Time;
use serde::Serialize;
use std::sync::OnceLock;

/// A kernel that a conversation launches.
pub const KERNEL: &str = include_str!("kernel.ptx");

/// One conversation.
struct Conversation {
    welcome: Welcome,
    turns: Vec<(Request, Response)>,
}

/// Asks and keeps what was said.
struct Program {
    session: Session,
    turns: Vec<(Request, Response)>,
}

impl Program {
    fn ask(&mut self, request: Request) -> Option<Reply> {
        let response = self.session.ask(&request);
        let reply = response.result.clone().ok();
        self.turns.push((request, response));
        reply
    }

    fn address(&mut self, request: Request) -> u64 {
        match self.ask(request) {
            Some(Reply::Address(address)) => address,
            _ => 0,
        }
    }

    fn run(&mut self) {
        let Some(Reply::Context(context)) = self.ask(Request::PrimaryContextRetain { device: 0 })
        else {
            return;
        };
        let device = self.address(Request::Allocate {
            context,
            bytes: 1 << 14,
        });
        let pinned = self.address(Request::AllocateHost {
            context,
            bytes: 1 << 14,
            flags: 0,
        });
        let managed = self.address(Request::AllocateManaged {
            context,
            bytes: 1 << 16,
            flags: 1,
        });
        self.kernels(context, device);
        self.copies(context, device, pinned);
        self.pages(context, managed);
        self.streams(context);
        self.mapping(context);
        for address in [device, pinned, managed] {
            self.ask(Request::PointerInfo { address });
            self.ask(Request::Free { context, address });
        }
        self.ask(Request::MemoryInfo { context });
        self.ask(Request::PrimaryContextRelease { device: 0 });
    }

    fn kernels(&mut self, context: ContextHandle, device: u64) {
        let image = ModuleImage {
            kind: ImageKind::Ptx,
            role: ImageRole::Main,
            bytes: KERNEL.as_bytes().to_vec(),
        };
        let images = vec![image];
        let Some(Reply::Module(module)) = self.ask(Request::ModuleLoad { context, images }) else {
            return;
        };
        self.ask(Request::ModuleFunctionNames { module });
        let name = "kernel".to_owned();
        let Some(Reply::Function(function)) = self.ask(Request::ModuleFunction { module, name })
        else {
            return;
        };
        self.ask(Request::FunctionSetAttribute {
            function: function.handle,
            attribute: 8,
            value: 1024,
        });
        self.ask(Request::OccupancyBlocks {
            function: function.handle,
            block_threads: 64,
            dynamic_shared: 0,
            flags: 0,
        });
        for cooperative in [false, true] {
            let launch = Launch {
                context,
                stream: StreamName::Legacy,
                function: function.handle,
                config: LaunchConfig::new([2, 1, 1], [64, 1, 1]),
                parameters: device.to_le_bytes().to_vec(),
                cooperative,
                cluster: None,
                priority: None,
                carveout: None,
                programmatic_stream_serialization: false,
            };
            let launch = Box::new(launch);
            let mut ask_fit = launch.clone();
            ask_fit.cluster = Some([2, 1, 1]);
            self.ask(Request::Launch(launch));
            self.ask(Request::OccupancyClusters { launch: ask_fit });
        }
        self.ask(Request::ContextSynchronize { context });
    }

    fn copies(&mut self, context: ContextHandle, device: u64, pinned: u64) {
        let bytes = 1 << 12;
        let window = |address| Place::Window(Rows::linear(address, bytes));
        for (destination, source) in [
            (window(device), window(pinned)),
            (window(pinned), window(device)),
            (window(device), Place::Host),
        ] {
            self.ask(Request::Copy(Copy {
                context,
                stream: StreamName::Legacy,
                destination,
                source,
                extent: Extent::linear(bytes),
                blocking: true,
            }));
        }
        self.ask(Request::Fill(Fill {
            context,
            stream: StreamName::Legacy,
            destination: Rows::linear(device, bytes),
            extent: Extent::linear(bytes),
            pattern: 7,
            pattern_bytes: 4,
            blocking: false,
        }));
    }

    fn pages(&mut self, context: ContextHandle, managed: u64) {
        self.ask(Request::HostAccess {
            address: managed,
            write: true,
        });
        self.ask(Request::Prefetch {
            context,
            stream: StreamName::Legacy,
            address: managed,
            bytes: 1 << 16,
            location: MemoryLocation::Device(0),
        });
        self.ask(Request::ContextSynchronize { context });
        self.ask(Request::Advise {
            address: managed,
            bytes: 1 << 12,
            advice: 1,
            location: MemoryLocation::Device(0),
        });
    }

    fn streams(&mut self, context: ContextHandle) {
        let create = Request::StreamCreate {
            context,
            flags: 1,
            priority: 0,
        };
        let Some(Reply::Stream(stream)) = self.ask(create) else {
            return;
        };
        let name = StreamName::Created(stream);
        let Some(Reply::Event(event)) = self.ask(Request::EventCreate { context, flags: 0 }) else {
            return;
        };
        self.ask(Request::EventRecord {
            context,
            stream: name,
            event,
        });
        self.ask(Request::StreamWaitEvent {
            context,
            stream: StreamName::Legacy,
            event,
        });
        self.ask(Request::EventSynchronize { event });
        self.ask(Request::EventElapsed {
            start: event,
            end: event,
        });
        self.ask(Request::StreamQuery {
            context,
            stream: name,
        });
        let nodes = Vec::new();
        if let Some(Reply::Graph(graph)) = self.ask(Request::GraphCreate { context, nodes }) {
            self.ask(Request::GraphLaunch {
                context,
                stream: name,
                graph,
            });
            self.ask(Request::GraphDestroy { graph });
        }
        self.ask(Request::StreamSynchronize {
            context,
            stream: name,
        });
        self.ask(Request::EventDestroy { event });
        self.ask(Request::StreamDestroy { stream });
    }

    fn mapping(&mut self, context: ContextHandle) {
        let bytes = 2 << 20;
        let address = self.address(Request::AddressReserve {
            context,
            bytes,
            alignment: 0,
        });
        if let Some(Reply::Physical(physical)) = self.ask(Request::PhysicalCreate {
            context,
            device: 0,
            bytes,
            shared: true,
        }) {
            self.ask(Request::PhysicalMap {
                context,
                address,
                bytes,
                physical,
            });
            self.ask(Request::AccessSet {
                device: 0,
                address,
                bytes,
                access: MemoryAccess::ReadWrite,
            });
            self.ask(Request::PhysicalUnmap { address, bytes });
            self.ask(Request::PhysicalRelease { context, physical });
        }
        self.ask(Request::AddressFree { address, bytes });
        self.ask(Request::LimitSet {
            context,
            limit: 0,
            value: 4096,
        });
    }
}

fn conversation() -> &'static Conversation {
    static HELD: OnceLock<Conversation> = OnceLock::new();
    HELD.get_or_init(|| {
        let description = tiny::description(tiny::config(90), Mode::Functional);
        let session = Session::new(&description).expect("the tiny GPU can be built");
        let welcome = session.welcome();
        let mut program = Program {
            session,
            turns: Vec::new(),
        };
        program.run();
        Conversation {
            welcome,
            turns: program.turns,
        }
    })
}

fn preamble() -> Vec<u8> {
    let mut bytes = b"LKST".to_vec();
    bytes.extend_from_slice(&PROTOCOL_VERSION.to_le_bytes());
    bytes
}

fn add_frame<T: Serialize>(bytes: &mut Vec<u8>, message: &T) {
    let mut one = Vec::new();
    if frame::encode(message, &mut one).is_ok() {
        bytes.extend(one);
    }
}

/// All that the program sends. Now and then it loads other code than its own.
pub fn sent(_: &Corpus) -> Vec<u8> {
    static HELD: OnceLock<Vec<u8>> = OnceLock::new();
    HELD.get_or_init(|| {
        let mut bytes = preamble();
        let hello = Hello {
            process: 1,
            thread: 1,
            name: "fuzz".into(),
            node: Ok(0),
        };
        add_frame(&mut bytes, &hello);
        for (request, _) in &conversation().turns {
            add_frame(&mut bytes, request);
        }
        bytes
    })
    .clone()
}

/// All that it is answered.
pub fn answered() -> Vec<u8> {
    static HELD: OnceLock<Vec<u8>> = OnceLock::new();
    HELD.get_or_init(|| {
        let mut bytes = preamble();
        let welcome: Result<&Welcome, String> = Ok(&conversation().welcome);
        add_frame(&mut bytes, &welcome);
        for (_, response) in &conversation().turns {
            add_frame(&mut bytes, response);
        }
        bytes
    })
    .clone()
}

/// The record of it.
pub fn record(corpus: &Corpus) -> Vec<u8> {
    static HELD: OnceLock<Vec<u8>> = OnceLock::new();
    HELD.get_or_init(|| {
        let written = write_record();
        let known = corpus.of(Kind::Record).first().map(|bytes| bytes.to_vec());
        written.or(known).unwrap_or_default()
    })
    .clone()
}

fn write_record() -> Option<Vec<u8>> {
    let mut writer = RecordWriter::new(Vec::new(), true).ok()?;
    let client = Client {
        connection: 0,
        process: 0,
    };
    for (number, (request, response)) in conversation().turns.iter().enumerate() {
        let at = Time(number as u64 * 1_000_000);
        writer.call(client, number as u64 / 4, at, request).ok()?;
        let mut read = Vec::new();
        if let (Request::AllocateHost { .. }, Ok(Reply::Address(address))) =
            (request, &response.result)
        {
            read.push(Piece::linear(*address, 256));
        }
        writer.answered(response, &read, [0; 32]).ok()?;
        // The host writes where memory was just allocated for it.
        if let (Request::AllocateHost { .. }, Ok(Reply::Address(address))) =
            (request, &response.result)
        {
            writer.wrote(*address, &[7; 256]).ok()?;
        }
    }
    writer.gone(0).ok()?;
    writer.finish().ok()
}

/// The checkpoint of a GPU that a small program has used.
pub fn checkpoint() -> &'static [u8] {
    static HELD: OnceLock<Vec<u8>> = OnceLock::new();
    HELD.get_or_init(|| {
        let description = tiny::description(tiny::config(90), Mode::Timing);
        let session = Session::new(&description).expect("the tiny GPU can be built");
        let turns = Vec::new();
        let mut program = Program { session, turns };
        program.run();
        let bytes = program.session.checkpoint(&description);
        bytes.expect("this executable can be read")
    })
}
