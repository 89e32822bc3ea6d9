//! A program that meets every part of the model, and what it sees of it.

use crate::assemble::Assembling;
use crate::description::Description;
use crate::machine;
use crate::node::Node;
use lockstep_config::GpuConfig;
use lockstep_protocol::{
    ContextHandle, Copy, EventHandle, Extent, Fill, FunctionHandle, GraphNode, GraphWork,
    ImageKind, ImageRole, Launch, MemoryLocation, ModuleImage, Place, Reply, Request, Rows,
    StreamName, window,
};
use lockstep_runtime::{Client, Runtime};
use lockstep_units::LaunchConfig;
use std::fmt::Write;

const CLIENT: Client = Client {
    connection: 0,
    process: 0,
};

/// Everything that the program is told, and the digest of the run; or why there is no such GPU.
pub fn observe(config: &GpuConfig, cold_caches: bool) -> String {
    let mut description = Description::new("tiny", config.clone());
    description.assembling = Assembling::Never;
    description.execution.threads = 1;
    description.cold_caches = cold_caches;
    let memory = window::create().unwrap();
    match machine::runtime(&description, &memory) {
        Ok(runtime) => Program::new(runtime).run(),
        Err(error) => error.to_string(),
    }
}

struct Program {
    runtime: Runtime<Node>,
    context: ContextHandle,
    heard: String,
}

impl Program {
    fn new(mut runtime: Runtime<Node>) -> Self {
        let retain = Request::PrimaryContextRetain { device: 0 };
        let context = match runtime.handle(CLIENT, &retain).result {
            Ok(Reply::Context(context)) => context,
            other => panic!("{other:?}"),
        };
        Self {
            runtime,
            context,
            heard: String::new(),
        }
    }

    fn ask(&mut self, request: &Request) -> Option<Reply> {
        let response = self.runtime.handle(CLIENT, request);
        let _ = writeln!(
            self.heard,
            "{:?} at {:?}",
            response.result,
            self.runtime.now()
        );
        response.result.ok()
    }

    fn address(&mut self, request: &Request) -> u64 {
        match self.ask(request) {
            Some(Reply::Address(address)) => address,
            _ => 0,
        }
    }

    fn run(mut self) -> String {
        let context = self.context;
        let descriptions = self.runtime.descriptions();
        let _ = writeln!(self.heard, "{descriptions:?}");
        let image = ModuleImage {
            kind: ImageKind::Ptx,
            role: ImageRole::Main,
            bytes: PTX.as_bytes().to_vec(),
        };
        let load = Request::ModuleLoad {
            context,
            images: vec![image],
        };
        let Some(Reply::Module(module)) = self.ask(&load) else {
            return self.heard;
        };
        let names = [
            "instructions",
            "matrices",
            "memory",
            "shared",
            "pages",
            "cluster",
            "group",
            "launches",
        ];
        let [
            instructions,
            matrices,
            memory,
            shared,
            pages,
            cluster,
            group,
            launches,
        ] = names.map(|name| {
            let name = name.to_string();
            match self.ask(&Request::ModuleFunction { module, name }) {
                Some(Reply::Function(function)) => function.handle,
                other => panic!("{other:?}"),
            }
        });
        self.ask(&Request::MemoryInfo { context });
        let bytes = 256 << 10;
        let device = self.address(&Request::Allocate { context, bytes });
        if let (Some(event), Some(late)) = (self.event(), self.event()) {
            self.launch(instructions, 6, 96, &[device]);
            self.launch(instructions, 1, 512, &[device]);
            self.launch(matrices, 1, 512, &[device]);
            self.record(event);
            self.launch(memory, 9, 128, &[device]);
            self.launch(memory, 3, 128, &[device]);
            self.ask(&Request::HostPoll {
                address: device,
                polls: u32::MAX,
            });
            self.record(late);
            self.shared_memory(shared, device);
            self.launch(cluster, 12, 64, &[device]);
            self.launch(group, 1, 128, &[device]);
            self.launch(launches, 1, 2, &[device]);
            self.copies(device);
            self.graph(instructions, device);
            self.elapsed(event, late);
        }
        self.managed(pages);
        self.ask(&Request::ContextSynchronize { context });
        self.launch(instructions, 1, 32, &[device]);
        self.ask(&Request::ContextSynchronize { context });
        let faults = self.runtime.faults().to_vec();
        let _ = writeln!(self.heard, "{faults:?} {:?}", self.runtime.launches());
        let _ = writeln!(self.heard, "{}", self.runtime.device().digest());
        self.heard
    }

    fn launch(&mut self, function: FunctionHandle, blocks: u32, threads: u32, words: &[u64]) {
        self.launch_with(function, blocks, threads, 0, words);
    }

    fn launch_with(
        &mut self,
        function: FunctionHandle,
        blocks: u32,
        threads: u32,
        dynamic_shared: u32,
        words: &[u64],
    ) {
        let stream = StreamName::Legacy;
        self.launch_in(stream, function, blocks, threads, dynamic_shared, words);
    }

    fn launch_in(
        &mut self,
        stream: StreamName,
        function: FunctionHandle,
        blocks: u32,
        threads: u32,
        dynamic_shared: u32,
        words: &[u64],
    ) {
        let launch = self.launch_of(stream, function, [blocks, threads, dynamic_shared], words);
        self.ask(&Request::Launch(Box::new(launch)));
    }

    fn launch_of(
        &self,
        stream: StreamName,
        function: FunctionHandle,
        [blocks, threads, dynamic_shared]: [u32; 3],
        words: &[u64],
    ) -> Launch {
        Launch {
            context: self.context,
            stream,
            function,
            config: LaunchConfig {
                grid: [blocks, 1, 1],
                block: [threads, 1, 1],
                dynamic_shared,
            },
            parameters: words.iter().flat_map(|word| word.to_le_bytes()).collect(),
            cooperative: false,
            cluster: None,
            priority: None,
            carveout: None,
            programmatic_stream_serialization: false,
        }
    }

    /// Two kernels of a graph, one behind the other, and a function of the program.
    fn graph(&mut self, function: FunctionHandle, device: u64) {
        let (context, stream) = (self.context, StreamName::Legacy);
        let kernel = self.launch_of(stream, function, [1, 32, 0], &[device]);
        let node = |after: Vec<u32>| GraphNode {
            work: GraphWork::Kernel(Box::new(kernel.clone())),
            after,
        };
        let nodes = vec![node(Vec::new()), node(vec![0])];
        if let Some(Reply::Graph(graph)) = self.ask(&Request::GraphCreate { context, nodes }) {
            self.ask(&Request::GraphLaunch {
                context,
                stream,
                graph,
            });
        }
        self.ask(&Request::HostFunction { context, stream });
    }

    /// Occupancy, and kernels with much shared memory.
    fn shared_memory(&mut self, function: FunctionHandle, device: u64) {
        for (block_threads, dynamic_shared) in [(32, 0), (256, 3000), (1024, 0), (64, 12 << 10)] {
            self.ask(&Request::OccupancyBlocks {
                function,
                block_threads,
                dynamic_shared,
                flags: 0,
            });
        }
        self.launch_with(function, 9, 256, 3000, &[device]);
        self.launch_beside(function, device);
        let attribute = Request::FunctionSetAttribute {
            function,
            attribute: 8,
            value: 12 << 10,
        };
        self.ask(&attribute);
        self.launch_with(function, 6, 64, 12 << 10, &[device]);
        // More parameters than any GPU takes.
        self.launch(function, 1, 32, &[device; 5000]);
    }

    /// Kernels side by side.
    fn launch_beside(&mut self, function: FunctionHandle, device: u64) {
        for _ in 0..2 {
            let create = Request::StreamCreate {
                context: self.context,
                flags: 1,
                priority: 0,
            };
            if let Some(Reply::Stream(stream)) = self.ask(&create) {
                let stream = StreamName::Created(stream);
                self.launch_in(stream, function, 2, 64, 3000, &[device]);
            }
        }
        let context = self.context;
        self.ask(&Request::ContextSynchronize { context });
    }

    fn event(&mut self) -> Option<EventHandle> {
        let create = Request::EventCreate {
            context: self.context,
            flags: 0,
        };
        match self.ask(&create) {
            Some(Reply::Event(event)) => Some(event),
            _ => None,
        }
    }

    fn record(&mut self, event: EventHandle) {
        self.ask(&Request::EventRecord {
            context: self.context,
            stream: StreamName::Legacy,
            event,
        });
        self.ask(&Request::EventQuery { event });
    }

    fn elapsed(&mut self, start: EventHandle, end: EventHandle) {
        self.ask(&Request::EventSynchronize { event: end });
        self.ask(&Request::EventElapsed { start, end });
    }

    fn copies(&mut self, device: u64) {
        let (context, bytes) = (self.context, 64 << 10);
        let pinned = self.address(&Request::AllocateHost {
            context,
            bytes,
            flags: 0,
        });
        let window = |address| Place::Window(Rows::linear(address, bytes));
        for (destination, source) in [
            (window(device), Place::Host),
            (Place::Host, window(device)),
            (window(device), window(pinned)),
            (window(pinned), window(device)),
            (window(device), window(device + bytes)),
        ] {
            self.ask(&Request::Copy(Copy {
                context,
                stream: StreamName::Legacy,
                destination,
                source,
                extent: Extent::linear(bytes),
                blocking: true,
            }));
        }
        for bytes in [bytes, 4096] {
            self.ask(&Request::Fill(Fill {
                context,
                stream: StreamName::Legacy,
                destination: Rows::linear(device, bytes),
                extent: Extent::linear(bytes),
                pattern: 7,
                pattern_bytes: 4,
                // Copies of other streams would hide how long it takes.
                blocking: true,
            }));
        }
        for _ in 0..4 {
            let create = Request::StreamCreate {
                context,
                flags: 1,
                priority: 0,
            };
            let Some(Reply::Stream(stream)) = self.ask(&create) else {
                continue;
            };
            self.ask(&Request::Copy(Copy {
                context,
                stream: StreamName::Created(stream),
                destination: window(device),
                source: window(pinned),
                extent: Extent::linear(bytes),
                blocking: false,
            }));
        }
        self.ask(&Request::ContextSynchronize { context });
    }

    /// Managed pages that are touched first, used from both sides, brought along and pushed out.
    fn managed(&mut self, pages: FunctionHandle) {
        let context = self.context;
        let bytes = 6 << 20;
        let flags = 1;
        let managed = Request::AllocateManaged {
            context,
            bytes,
            flags,
        };
        let first = self.address(&managed);
        let small = self.address(&Request::AllocateManaged {
            context,
            bytes: 4096,
            flags,
        });
        self.host(first, true);
        self.host(first + (1 << 20), true);
        self.host(small, true);
        for _ in 0..3 {
            self.launch(pages, 4, 64, &[first, 0x1_5000]);
            self.ask(&Request::ContextSynchronize { context });
            self.host(first, true);
            self.host(first + 0x2_0000, false);
        }
        self.launch(pages, 2, 64, &[small, 16]);
        self.ask(&Request::ContextSynchronize { context });
        for location in [MemoryLocation::Device(0), MemoryLocation::Host] {
            self.ask(&Request::Prefetch {
                context,
                stream: StreamName::Legacy,
                address: first,
                bytes: 3 << 20,
                location,
            });
        }
        self.launch(pages, 4, 64, &[first, 0x1_0400]);
        self.ask(&Request::ContextSynchronize { context });
        self.host(first, true);
    }

    fn host(&mut self, address: u64, write: bool) {
        self.ask(&Request::HostAccess { address, write });
    }
}

const PTX: &str = include_str!("program.ptx");
