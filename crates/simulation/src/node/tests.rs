//! Two GPUs without a program: their calls, their memory, and one answer for any number of threads.

use crate::assemble::Assembling;
use crate::description::Description;
use crate::machine;
use crate::node::Node;
use lockstep_protocol::layout::{Region, region_of};
use lockstep_protocol::{
    ContextHandle, CuResult, FunctionHandle, ImageKind, ImageRole, Launch, LaunchConfig,
    ModuleImage, Reply, Request, StreamName, window,
};
use lockstep_runtime::{Client, Device, Runtime};

const CLIENT: Client = Client {
    connection: 0,
    process: 0,
};

/// Every thread sleeps for a while, adds its number to a word, and one to a counter that all threads share.
const PTX: &str = r"
.version 7.0
.target sm_75
.address_size 64
.visible .entry add(.param .u64 words, .param .u64 counter) {
    .reg .b32 %r<6>;
    .reg .b64 %d<5>;
    nanosleep.u32 20000;
    ld.param.u64 %d1, [words];
    ld.param.u64 %d2, [counter];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.u32 %r1, %r1, %r2, %r3;
    mul.wide.u32 %d3, %r1, 4;
    add.s64 %d3, %d1, %d3;
    ld.global.u32 %r4, [%d3];
    add.u32 %r4, %r4, %r1;
    st.global.u32 [%d3], %r4;
    atom.global.sys.add.u32 %r5, [%d2], 1;
    ret;
}
";

/// Blocks and threads of a launch.
const SHAPE: [u32; 2] = [4, 64];
const WORDS: u64 = 4 * 64;

/// A program on two GPUs.
struct Program {
    runtime: Runtime<Node>,
    contexts: [ContextHandle; 2],
    functions: [FunctionHandle; 2],
}

impl Program {
    fn new(threads: u32, node: &str) -> Self {
        let config = lockstep_config::load::<&str>(Some("rtx2060"), &[]).unwrap();
        let mut description = Description::new("rtx2060", config);
        description.assembling = Assembling::Never;
        description.execution.threads = threads;
        description.gpus = 2;
        description.node = Some(node.into());
        let memory = window::create().unwrap();
        let mut runtime = machine::runtime(&description, &memory).unwrap();
        let image = ModuleImage {
            kind: ImageKind::Ptx,
            role: ImageRole::Main,
            bytes: PTX.as_bytes().to_vec(),
        };
        let opened = [0, 1].map(|device| {
            let retain = Request::PrimaryContextRetain { device };
            let Reply::Context(context) = ask(&mut runtime, &retain) else {
                panic!("no context")
            };
            let images = vec![image.clone()];
            let Reply::Module(module) = ask(&mut runtime, &Request::ModuleLoad { context, images })
            else {
                panic!("no module")
            };
            let name = "add".into();
            let Reply::Function(function) =
                ask(&mut runtime, &Request::ModuleFunction { module, name })
            else {
                panic!("no function")
            };
            (context, function.handle)
        });
        Self {
            runtime,
            contexts: opened.map(|(context, _)| context),
            functions: opened.map(|(_, function)| function),
        }
    }

    fn allocate(&mut self, gpu: usize) -> u64 {
        let (context, bytes) = (self.contexts[gpu], 4 * WORDS);
        match ask(&mut self.runtime, &Request::Allocate { context, bytes }) {
            Reply::Address(address) => address,
            other => panic!("{other:?}"),
        }
    }

    fn launch(&mut self, gpu: usize, words: u64, counter: u64) {
        let launch = Launch {
            context: self.contexts[gpu],
            stream: StreamName::Legacy,
            function: self.functions[gpu],
            config: LaunchConfig::new([SHAPE[0], 1, 1], [SHAPE[1], 1, 1]),
            parameters: [words.to_le_bytes(), counter.to_le_bytes()].concat(),
            cooperative: false,
            cluster: None,
            priority: None,
            carveout: None,
            programmatic_stream_serialization: false,
        };
        ask(&mut self.runtime, &Request::Launch(Box::new(launch)));
    }

    fn synchronize(&mut self, gpu: usize) -> Result<Reply, CuResult> {
        let context = self.contexts[gpu];
        let request = Request::ContextSynchronize { context };
        let result = self.runtime.handle(CLIENT, &request).result;
        result.map_err(|failure| failure.code)
    }

    fn enable_peers(&mut self) {
        let [first, second] = self.contexts;
        for (context, peer) in [(first, second), (second, first)] {
            ask(
                &mut self.runtime,
                &Request::PeerAccessEnable { context, peer },
            );
        }
    }

    fn word(&self, address: u64) -> u32 {
        let mut bytes = [0; 4];
        self.runtime.device().read(address, &mut bytes);
        u32::from_le_bytes(bytes)
    }
}

fn ask(runtime: &mut Runtime<Node>, request: &Request) -> Reply {
    let result = runtime.handle(CLIENT, request).result;
    result.unwrap_or_else(|failure| panic!("{}: {}", failure.code, failure.message))
}

/// Digests of what a program does with 1, 2 and 4 threads are one.
fn one_digest(node: &str, run: impl Fn(&mut Program)) {
    let digests = [1, 2, 4].map(|threads| {
        let mut program = Program::new(threads, node);
        run(&mut program);
        program.runtime.device().digest()
    });
    assert!(digests.iter().all(|one| *one == digests[0]), "{digests:?}");
}

#[test]
fn each_gpu_has_its_own_memory_and_both_run_at_once() {
    one_digest("pcie", |program| {
        let places = [0, 1].map(|gpu| (program.allocate(gpu), program.allocate(gpu)));
        for (gpu, (words, counter)) in (0..).zip(places) {
            assert_eq!(region_of(words), Some(Region::Device(gpu)));
            program.launch(gpu as usize, words, counter);
        }
        for gpu in 0..2 {
            program.synchronize(gpu).unwrap();
        }
        for (words, counter) in places {
            assert_eq!(program.word(words + 4 * 100), 100);
            assert_eq!(u64::from(program.word(counter)), WORDS);
        }
        let launches = program.runtime.launches();
        let [first, second] = [0, 1].map(|at| launches[at].result.clone().unwrap());
        assert_eq!((launches[0].gpu, launches[1].gpu), (0, 1));
        let together = first.start < second.end && second.start < first.end;
        assert!(together, "{:?} {:?}", first.start, second.start);
    });
}

#[test]
fn peers_count_together_and_need_leave() {
    one_digest("hgx", |program| {
        program.enable_peers();
        let (words, counter) = (program.allocate(0), program.allocate(1));
        program.launch(0, words, counter);
        let own = program.allocate(1);
        program.launch(1, own, counter);
        for gpu in 0..2 {
            program.synchronize(gpu).unwrap();
        }
        assert_eq!(u64::from(program.word(counter)), 2 * WORDS);
        // Afterwards as before.
        let [context, peer] = program.contexts;
        let disable = Request::PeerAccessDisable { context, peer };
        ask(&mut program.runtime, &disable);
        program.launch(0, words, counter);
        assert_eq!(program.synchronize(0), Err(CuResult::ILLEGAL_ADDRESS));
        program.launch(1, own, counter);
        assert!(program.synchronize(1).is_ok(), "the other GPU goes on");
        assert_eq!(u64::from(program.word(counter)), 3 * WORDS);
    });
}

#[test]
fn an_access_to_a_peer_takes_the_link() {
    let duration = |far: bool| {
        let mut program = Program::new(1, "hgx");
        program.enable_peers();
        let words = program.allocate(usize::from(far));
        let counter = program.allocate(0);
        program.launch(0, words, counter);
        program.synchronize(0).unwrap();
        let result = program.runtime.launches()[0].result.clone().unwrap();
        result.end.since(result.start)
    };
    // There and back, at 500 ns each.
    let longer = duration(true).0.saturating_sub(duration(false).0);
    assert!(longer > 900_000_000, "{longer} fs");
}

#[test]
fn what_several_gpus_cannot_do_is_refused() {
    let config = lockstep_config::load::<&str>(Some("rtx2060"), &[]).unwrap();
    let mut description = Description::new("rtx2060", config);
    description.gpus = 2;
    description.execution.reload_seed = Some(1);
    let memory = window::create().unwrap();
    let refused = |description: &Description| match Node::new(description, &memory) {
        Ok(_) => panic!("it was accepted"),
        Err(error) => error.to_string(),
    };
    assert!(refused(&description).contains("saved and loaded only with one"));
    description.gpus = 9;
    assert_eq!(refused(&description), "9 GPUs: a node has 1 to 8");
}
