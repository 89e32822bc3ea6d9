//! What a launch carries to the device beside its shape.

use crate::support::{CONTEXT, Fake, runtime};
use lockstep_protocol::{
    FunctionHandle, GraphNode, GraphWork, ImageKind, ImageRole, Launch, LaunchConfig, ModuleImage,
    Reply, Request, StreamName,
};
use lockstep_runtime::{Client, Runtime};

const CLIENT: Client = Client {
    connection: 0,
    process: 0,
};

fn ask(runtime: &mut Runtime<Fake>, request: &Request) -> Reply {
    let answer = runtime.handle(CLIENT, request).result;
    answer.unwrap_or_else(|failure| panic!("{request:?}: {failure:?}"))
}

/// A runtime with a kernel.
fn bench() -> (Runtime<Fake>, FunctionHandle) {
    let mut runtime = runtime();
    ask(&mut runtime, &Request::PrimaryContextRetain { device: 0 });
    let image = ModuleImage {
        kind: ImageKind::Ptx,
        role: ImageRole::Main,
        bytes: Vec::new(),
    };
    let load = Request::ModuleLoad {
        context: CONTEXT,
        images: vec![image],
    };
    let Reply::Module(module) = ask(&mut runtime, &load) else {
        panic!("the fake module loads");
    };
    let name = "spin".into();
    let Reply::Function(info) = ask(&mut runtime, &Request::ModuleFunction { module, name }) else {
        panic!("the fake kernel is there");
    };
    (runtime, info.handle)
}

fn stream(runtime: &mut Runtime<Fake>, priority: i32) -> StreamName {
    let request = Request::StreamCreate {
        context: CONTEXT,
        flags: 0,
        priority,
    };
    match ask(runtime, &request) {
        Reply::Stream(stream) => StreamName::Created(stream),
        other => panic!("{other:?}"),
    }
}

fn launch(function: FunctionHandle, stream: StreamName, priority: Option<i32>) -> Box<Launch> {
    Box::new(Launch {
        context: CONTEXT,
        stream,
        function,
        config: LaunchConfig::new([1; 3], [32, 1, 1]),
        parameters: 1_000u64.to_le_bytes().to_vec(),
        cooperative: false,
        cluster: None,
        priority,
        carveout: None,
        programmatic_stream_serialization: false,
    })
}

fn priorities(runtime: &mut Runtime<Fake>) -> Vec<i32> {
    ask(runtime, &Request::ContextSynchronize { context: CONTEXT });
    let launched = std::mem::take(&mut runtime.device_mut().launched);
    launched.iter().map(|(priority, _)| *priority).collect()
}

#[test]
fn a_launch_has_the_priority_of_its_stream_or_its_own() {
    let (mut runtime, function) = bench();
    let urgent = stream(&mut runtime, -3);
    let beyond = stream(&mut runtime, -100);
    let cases = [
        (StreamName::Legacy, None, 0),
        (StreamName::PerThread, None, 0),
        (urgent, None, -3),
        (urgent, Some(-1), -1),
        (StreamName::Legacy, Some(-4), -4),
        (beyond, None, -5),
        (urgent, Some(-100), -5),
        (urgent, Some(7), 0),
    ];
    for (stream, own, expected) in cases {
        let request = Request::Launch(launch(function, stream, own));
        ask(&mut runtime, &request);
        assert_eq!(priorities(&mut runtime), [expected], "{stream:?} {own:?}");
    }
}

#[test]
fn nodes_have_the_priority_of_the_stream_that_their_graph_is_launched_in_or_their_own() {
    let (mut runtime, function) = bench();
    let urgent = stream(&mut runtime, -3);
    let node = |priority, after: &[u32]| GraphNode {
        work: GraphWork::Kernel(launch(function, StreamName::Legacy, priority)),
        after: after.to_vec(),
    };
    let nodes = vec![node(None, &[]), node(Some(-1), &[0])];
    let create = Request::GraphCreate {
        context: CONTEXT,
        nodes,
    };
    let Reply::Graph(graph) = ask(&mut runtime, &create) else {
        panic!("the graph is made");
    };
    for (stream, expected) in [(urgent, [-3, -1]), (StreamName::Legacy, [0, -1])] {
        let request = Request::GraphLaunch {
            context: CONTEXT,
            stream,
            graph,
        };
        ask(&mut runtime, &request);
        assert_eq!(priorities(&mut runtime), expected);
    }
}

#[test]
fn a_launch_may_prefer_a_carve_out_of_its_own() {
    let (mut runtime, function) = bench();
    let carveouts = |runtime: &mut Runtime<Fake>, own: Option<i32>| {
        let mut launch = launch(function, StreamName::Legacy, None);
        launch.carveout = own;
        ask(runtime, &Request::Launch(launch));
        ask(runtime, &Request::ContextSynchronize { context: CONTEXT });
        let launched = std::mem::take(&mut runtime.device_mut().launched);
        launched[0].1.map(|bytes| bytes >> 10)
    };
    // An H200 has carve-outs of 0, 8, 16, 32, 64, 100, 132, 164, 196 and 228 KiB.
    assert_eq!(carveouts(&mut runtime, None), None);
    assert_eq!(carveouts(&mut runtime, Some(50)), Some(132));
    assert_eq!(carveouts(&mut runtime, Some(0)), Some(0));
    let set = Request::FunctionSetAttribute {
        function,
        attribute: 9,
        value: 100,
    };
    ask(&mut runtime, &set);
    assert_eq!(carveouts(&mut runtime, None), Some(228));
    assert_eq!(carveouts(&mut runtime, Some(50)), Some(132));
    assert_eq!(carveouts(&mut runtime, Some(-1)), None);
    let unset = Request::FunctionSetAttribute {
        function,
        attribute: 9,
        value: -1,
    };
    ask(&mut runtime, &unset);
    for (preference, expected) in [(1, Some(228)), (2, Some(8)), (0, None)] {
        let prefer = Request::FunctionCachePreference {
            function,
            preference,
        };
        ask(&mut runtime, &prefer);
        assert_eq!(carveouts(&mut runtime, None), expected, "{preference}");
    }
}

#[test]
fn a_stream_may_be_given_another_priority() {
    let (mut runtime, function) = bench();
    let name = stream(&mut runtime, -3);
    let StreamName::Created(handle) = name else {
        panic!("a created stream");
    };
    for (priority, expected) in [(-1, -1), (-9, -5), (4, 0)] {
        let request = Request::StreamPriority {
            stream: handle,
            priority,
        };
        ask(&mut runtime, &request);
        ask(&mut runtime, &Request::Launch(launch(function, name, None)));
        assert_eq!(priorities(&mut runtime), [expected]);
    }
}
