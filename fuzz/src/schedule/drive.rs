//! A schedule on a simulated GPU.

use super::plan::{Action, PLACES, Plan, STREAMS};
use crate::tiny;
use lockstep_protocol::{
    ContextHandle, Copy, CuResult, EventHandle, Extent, Fill, FunctionHandle, ImageKind, ImageRole,
    Launch, LaunchConfig, ModuleImage, Place, Reply, Request, Rows, StreamName,
};
use lockstep_simulation::{Mode, Session};
use lockstep_units::Cycles;

const KERNELS: &str = include_str!("kernel.ptx");
/// Bytes of a cell.
const CELL: u64 = 8;

/// What a schedule came to.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    pub cells: [u64; STREAMS],
    pub places: [u64; PLACES],
    pub digest: String,
}

/// A GPU with what a schedule needs on it.
struct Driver {
    session: Session,
    context: ContextHandle,
    step: FunctionHandle,
    join: FunctionHandle,
    /// Cells, then places, then numbers to be uploaded.
    device: u64,
    pinned: u64,
    uploads: u64,
    streams: Vec<StreamName>,
    events: Vec<EventHandle>,
}

/// Runs a schedule with so many threads.
pub fn run(plan: &Plan, mode: Mode, threads: u32) -> Outcome {
    let mut config = tiny::config(90);
    // Kernels of low priority wait for long; that is not a hang.
    config.launch.watchdog = Cycles(1_000_000_000);
    let mut description = tiny::description(config, mode);
    description.execution.threads = threads;
    let session = Session::new(&description).expect("the tiny GPU can be built");
    let mut driver = Driver::new(session, plan);
    for action in &plan.actions {
        driver.perform(*action);
    }
    driver.wait_all();
    driver.outcome(plan)
}

impl Driver {
    fn new(mut session: Session, plan: &Plan) -> Self {
        let context = match must(&mut session, &Request::PrimaryContextRetain { device: 0 }) {
            Reply::Context(context) => context,
            other => panic!("{other:?}"),
        };
        let image = ModuleImage {
            kind: ImageKind::Ptx,
            role: ImageRole::Main,
            bytes: KERNELS.as_bytes().to_vec(),
        };
        let images = vec![image];
        let module = match must(&mut session, &Request::ModuleLoad { context, images }) {
            Reply::Module(module) => module,
            other => panic!("{other:?}"),
        };
        let [step, join] = ["step", "join"].map(|name| {
            let name = name.to_owned();
            match must(&mut session, &Request::ModuleFunction { module, name }) {
                Reply::Function(function) => function.handle,
                other => panic!("{other:?}"),
            }
        });
        let bytes = 4096;
        let device = address(&mut session, &Request::Allocate { context, bytes });
        let flags = 0;
        let host = Request::AllocateHost {
            context,
            bytes,
            flags,
        };
        let pinned = address(&mut session, &host);
        let mut driver = Self {
            session,
            context,
            step,
            join,
            device,
            pinned,
            uploads: 0,
            streams: Vec::new(),
            events: Vec::new(),
        };
        driver.fill(StreamName::Legacy, device, bytes, 0);
        driver.wait_all();
        for (priority, ordered) in &plan.streams {
            driver.stream(*priority, *ordered);
        }
        for _ in 0..PLACES {
            driver.event();
        }
        driver
    }

    fn stream(&mut self, priority: i32, ordered: bool) {
        let create = Request::StreamCreate {
            context: self.context,
            flags: u32::from(!ordered),
            priority,
        };
        match must(&mut self.session, &create) {
            Reply::Stream(stream) => self.streams.push(StreamName::Created(stream)),
            other => panic!("{other:?}"),
        }
    }

    fn event(&mut self) {
        let create = Request::EventCreate {
            context: self.context,
            flags: 0,
        };
        match must(&mut self.session, &create) {
            Reply::Event(event) => self.events.push(event),
            other => panic!("{other:?}"),
        }
    }

    fn perform(&mut self, action: Action) {
        let context = self.context;
        match action {
            Action::Step {
                stream,
                more,
                blocks,
                threads,
                rounds,
            } => {
                let words = [self.cell(stream), more, u64::from(rounds)];
                self.launch(stream, self.step, blocks, threads, words);
            }
            Action::Publish { stream, place } => {
                self.copy(stream, self.place(place), self.cell(stream));
                let (stream, event) = (self.streams[stream], self.events[place]);
                self.must(&Request::EventRecord {
                    context,
                    stream,
                    event,
                });
            }
            Action::Join {
                stream,
                place,
                blocks,
            } => {
                let (name, event) = (self.streams[stream], self.events[place]);
                self.must(&Request::StreamWaitEvent {
                    context,
                    stream: name,
                    event,
                });
                let words = [self.cell(stream), self.place(place), 1];
                self.launch(stream, self.join, blocks, 32, words);
            }
            Action::Fill { stream, byte } => {
                let name = self.streams[stream];
                self.fill(name, self.cell(stream), CELL, byte);
            }
            Action::Upload { stream, value } => {
                // Every number has a place of its own: the copy reads it later.
                let source = self.pinned + CELL * self.uploads;
                self.uploads += 1;
                self.session.write(source, &value.to_le_bytes());
                self.copy(stream, self.cell(stream), source);
            }
            Action::WaitStream { stream } => {
                let stream = self.streams[stream];
                self.must(&Request::StreamSynchronize { context, stream });
            }
            Action::WaitPlace { place } => {
                let event = self.events[place];
                self.must(&Request::EventSynchronize { event });
            }
            Action::Query { stream } => {
                let stream = self.streams[stream];
                let asked = self.session.ask(&Request::StreamQuery { context, stream });
                match asked.result {
                    Ok(_) => {}
                    Err(failure) => assert_eq!(failure.code, CuResult::NOT_READY, "{failure:?}"),
                }
            }
            Action::WaitAll => self.wait_all(),
        }
    }

    fn cell(&self, stream: usize) -> u64 {
        self.device + CELL * stream as u64
    }

    fn place(&self, place: usize) -> u64 {
        self.device + CELL * (STREAMS + place) as u64
    }

    fn launch(
        &mut self,
        stream: usize,
        function: FunctionHandle,
        blocks: u32,
        threads: u32,
        words: [u64; 3],
    ) {
        let launch = Launch {
            context: self.context,
            stream: self.streams[stream],
            function,
            config: LaunchConfig::new([blocks, 1, 1], [threads, 1, 1]),
            parameters: words.iter().flat_map(|word| word.to_le_bytes()).collect(),
            cooperative: false,
            cluster: None,
            priority: None,
            carveout: None,
            programmatic_stream_serialization: false,
        };
        self.must(&Request::Launch(Box::new(launch)));
    }

    fn copy(&mut self, stream: usize, to: u64, from: u64) {
        let window = |address| Place::Window(Rows::linear(address, CELL));
        self.must(&Request::Copy(Copy {
            context: self.context,
            stream: self.streams[stream],
            destination: window(to),
            source: window(from),
            extent: Extent::linear(CELL),
            blocking: false,
        }));
    }

    fn fill(&mut self, stream: StreamName, address: u64, bytes: u64, byte: u8) {
        self.must(&Request::Fill(Fill {
            context: self.context,
            stream,
            destination: Rows::linear(address, bytes),
            extent: Extent::linear(bytes),
            pattern: u32::from(byte),
            pattern_bytes: 1,
            blocking: false,
        }));
    }

    fn wait_all(&mut self) {
        let context = self.context;
        self.must(&Request::ContextSynchronize { context });
    }

    fn must(&mut self, request: &Request) -> Reply {
        must(&mut self.session, request)
    }

    /// Reads everything back, and checks that events of one stream are in the order of their calls.
    fn outcome(mut self, plan: &Plan) -> Outcome {
        let mut last: [Option<EventHandle>; STREAMS] = [None; STREAMS];
        for action in &plan.actions {
            if let Action::Publish { stream, place } = *action {
                let end = self.events[place];
                if let Some(start) = last[stream].replace(end) {
                    match self.must(&Request::EventElapsed { start, end }) {
                        Reply::Elapsed { picoseconds } => assert!(picoseconds >= 0, "{plan:?}"),
                        other => panic!("{other:?}"),
                    }
                }
            }
        }
        let cells = std::array::from_fn(|stream| self.word(self.cell(stream)));
        let places = std::array::from_fn(|place| self.word(self.place(place)));
        Outcome {
            cells,
            places,
            digest: self.session.digest(),
        }
    }

    fn word(&self, address: u64) -> u64 {
        let mut bytes = [0; CELL as usize];
        self.session.read(address, &mut bytes);
        u64::from_le_bytes(bytes)
    }
}

fn must(session: &mut Session, request: &Request) -> Reply {
    match session.ask(request).result {
        Ok(reply) => reply,
        Err(failure) => panic!("{request:?}: {failure:?}"),
    }
}

fn address(session: &mut Session, request: &Request) -> u64 {
    match must(session, request) {
        Reply::Address(address) => address,
        other => panic!("{other:?}"),
    }
}
