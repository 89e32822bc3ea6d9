//! Graphs and values in memory, on a device that knows nothing but time.

use crate::support::{CONTEXT, Fake, runtime};
use lockstep_protocol::{
    ContextHandle, CuResult, FunctionHandle, GraphHandle, GraphNode, GraphWork, ImageKind,
    ImageRole, Launch, LaunchConfig, ModuleImage, Reply, Request, StreamName, ValueAction,
    ValueWork,
};
use lockstep_runtime::{Client, Device, Runtime};

const CLIENT: Client = Client {
    connection: 0,
    process: 0,
};

pub struct Bench {
    pub runtime: Runtime<Fake>,
    spin: FunctionHandle,
}

impl Bench {
    pub fn new() -> Self {
        let mut runtime = runtime();
        runtime.handle(CLIENT, &Request::PrimaryContextRetain { device: 0 });
        let image = ModuleImage {
            kind: ImageKind::Ptx,
            role: ImageRole::Main,
            bytes: Vec::new(),
        };
        let load = Request::ModuleLoad {
            context: CONTEXT,
            images: vec![image],
        };
        let Ok(Reply::Module(module)) = runtime.handle(CLIENT, &load).result else {
            panic!("the fake module loads");
        };
        let name = "spin".into();
        let find = Request::ModuleFunction { module, name };
        let Ok(Reply::Function(info)) = runtime.handle(CLIENT, &find).result else {
            panic!("the fake kernel is there");
        };
        let spin = info.handle;
        Self { runtime, spin }
    }

    pub fn ask(&mut self, request: &Request) -> Result<Reply, CuResult> {
        let answer = self.runtime.handle(CLIENT, request).result;
        answer.map_err(|failure| failure.code)
    }

    /// A node that takes so many nanoseconds.
    fn spin(&self, nanoseconds: u64, after: &[u32]) -> GraphNode {
        GraphNode {
            work: GraphWork::Kernel(Box::new(Launch {
                context: ContextHandle(0),
                stream: StreamName::Legacy,
                function: self.spin,
                config: LaunchConfig::new([1; 3], [32, 1, 1]),
                parameters: nanoseconds.to_le_bytes().to_vec(),
                cooperative: false,
                cluster: None,
                priority: None,
                carveout: None,
                programmatic_stream_serialization: false,
            })),
            after: after.to_vec(),
        }
    }

    fn create(&mut self, nodes: Vec<GraphNode>) -> Result<GraphHandle, CuResult> {
        let context = CONTEXT;
        match self.ask(&Request::GraphCreate { context, nodes })? {
            Reply::Graph(graph) => Ok(graph),
            other => panic!("{other:?}"),
        }
    }

    fn launch(&mut self, graph: GraphHandle) -> Result<Reply, CuResult> {
        self.ask(&Request::GraphLaunch {
            context: CONTEXT,
            stream: StreamName::Legacy,
            graph,
        })
    }

    fn synchronize(&mut self) -> u64 {
        let context = CONTEXT;
        self.ask(&Request::ContextSynchronize { context }).unwrap();
        self.runtime.now().nanoseconds()
    }
}

#[test]
fn branches_overlap_and_what_joins_them_waits_for_both() {
    let mut bench = Bench::new();
    let nodes = vec![
        bench.spin(1_000, &[]),
        bench.spin(10_000, &[0]),
        bench.spin(20_000, &[0]),
        bench.spin(1_000, &[1, 2]),
    ];
    let graph = bench.create(nodes).unwrap();
    assert_eq!(bench.launch(graph), Ok(Reply::Step(None)));
    // One launch of the host, then the longest way through the graph.
    assert_eq!(bench.synchronize(), 1_000 + 1_000 + 20_000 + 1_000);
    // A second launch in the same stream follows the first.
    bench.launch(graph).unwrap();
    bench.launch(graph).unwrap();
    assert_eq!(bench.synchronize(), 23_000 + 1_000 + 2 * 22_000);
    assert_eq!(bench.runtime.launches().len(), 12);
}

#[test]
fn a_step_of_the_program_holds_what_comes_after_it() {
    let mut bench = Bench::new();
    let step = GraphNode {
        work: GraphWork::Program,
        after: vec![0],
    };
    let nodes = vec![bench.spin(5_000, &[]), step, bench.spin(2_000, &[1])];
    let graph = bench.create(nodes).unwrap();
    let Ok(Reply::Step(Some(due))) = bench.launch(graph) else {
        panic!("a step is due");
    };
    assert_eq!(due.node, 1);
    assert_eq!(bench.runtime.now().nanoseconds(), 6_000);
    assert_eq!(
        bench.runtime.launches().len(),
        2,
        "both kernels are known, one has run"
    );
    assert!(bench.runtime.launches()[1].result.is_none());
    let go_on = Request::GraphContinue {
        context: CONTEXT,
        launch: due.launch,
        node: due.node,
    };
    assert_eq!(bench.ask(&go_on), Ok(Reply::Step(None)));
    assert_eq!(bench.ask(&go_on), Err(CuResult::INVALID_VALUE));
    assert_eq!(bench.synchronize(), 8_000);
}

#[test]
fn graphs_that_make_no_sense_are_refused() {
    let mut bench = Bench::new();
    let circle = vec![bench.spin(1, &[0])];
    assert_eq!(bench.create(circle), Err(CuResult::INVALID_VALUE));
    assert_eq!(bench.launch(GraphHandle(99)), Err(CuResult::INVALID_HANDLE));
    let mut broken = bench.spin(1, &[]);
    if let GraphWork::Kernel(launch) = &mut broken.work {
        launch.config.block = [5000, 1, 1];
    }
    let nodes = vec![bench.spin(1_000, &[]), broken];
    let graph = bench.create(nodes).unwrap();
    assert_eq!(bench.launch(graph), Err(CuResult::INVALID_VALUE));
    // Two refused launches cost the host its time, and nothing of them ran.
    assert_eq!(bench.synchronize(), 2_000);
    assert_eq!(bench.runtime.launches().len(), 0);
    bench.ask(&Request::GraphDestroy { graph }).unwrap();
    assert_eq!(bench.launch(graph), Err(CuResult::INVALID_HANDLE));
}

#[test]
fn a_stream_waits_for_a_value_that_another_writes() {
    let mut bench = Bench::new();
    let context = CONTEXT;
    let Ok(Reply::Address(address)) = bench.ask(&Request::Allocate { context, bytes: 64 }) else {
        panic!("memory is there");
    };
    let mut stream = || match bench.ask(&Request::StreamCreate {
        context,
        flags: 1,
        priority: 0,
    }) {
        Ok(Reply::Stream(stream)) => StreamName::Created(stream),
        other => panic!("{other:?}"),
    };
    let (waiting, writing) = (stream(), stream());
    let value = |stream, action, value| Request::Value {
        context,
        stream,
        work: ValueWork {
            address,
            value,
            bytes: 4,
            action,
        },
    };
    bench
        .ask(&value(waiting, ValueAction::WaitEqual, 7))
        .unwrap();
    let query = Request::StreamQuery {
        context,
        stream: waiting,
    };
    assert_eq!(bench.ask(&query), Err(CuResult::NOT_READY));
    bench.ask(&value(writing, ValueAction::Write, 7)).unwrap();
    let wait = Request::StreamSynchronize {
        context,
        stream: waiting,
    };
    assert_eq!(bench.ask(&wait), Ok(Reply::Done));
    let mut bytes = [0; 4];
    bench.runtime.device().read(address, &mut bytes);
    assert_eq!(bytes, [7, 0, 0, 0]);
    // What nobody writes is waited for in vain, and that is said.
    bench
        .ask(&value(waiting, ValueAction::WaitEqual, 8))
        .unwrap();
    assert_eq!(bench.ask(&wait), Err(CuResult::LAUNCH_TIMEOUT));
    let mut odd = value(waiting, ValueAction::Write, 1);
    if let Request::Value { work, .. } = &mut odd {
        work.address += 1;
    }
    assert_eq!(bench.ask(&odd), Err(CuResult::INVALID_VALUE));
}
