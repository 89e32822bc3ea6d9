//! What requests of the SST-GPU report's table 1 reach is what the table of routes says.

use crate::support::{CLIENT, CONTEXT, Fake, parse, runtime};
use lockstep_protocol::routing::{Part, ROUTES, part_of};
use lockstep_protocol::{ImageKind, ImageRole, ModuleImage, Reply, Request};
use lockstep_runtime::Runtime;
use std::collections::BTreeSet;

/// A runtime, and the names of what it was asked.
struct Bench {
    runtime: Runtime<Fake>,
    asked: BTreeSet<String>,
}

impl Bench {
    fn ask(&mut self, request: &Request) -> Reply {
        let answer = self.runtime.handle(CLIENT, request).result;
        answer.unwrap_or_else(|failure| panic!("{request:?}: {failure:?}"))
    }

    /// Asks, waits until all is done, and compares what was reached with the table.
    fn check(&mut self, request: &Request) -> Reply {
        let reached = |device: &Fake| (device.launched.len(), device.transfers);
        let before = reached(self.runtime.device());
        let reply = self.ask(request);
        self.ask(&Request::ContextSynchronize { context: CONTEXT });
        let after = reached(self.runtime.device());
        let name = request.name();
        let part = match (after.0 > before.0, after.1 > before.1) {
            (true, false) => Part::CtaScheduler,
            (false, true) => Part::CopyEngine,
            (false, false) => Part::Runtime,
            (true, true) => panic!("{name} reaches both"),
        };
        assert_eq!(part, part_of(&name), "{name}");
        self.asked.insert(name);
        reply
    }
}

#[test]
fn every_request_of_the_table_reaches_the_part_that_it_says() {
    let mut bench = Bench {
        runtime: runtime(),
        asked: BTreeSet::new(),
    };
    bench.ask(&Request::PrimaryContextRetain { device: 0 });
    let image = ModuleImage {
        kind: ImageKind::Ptx,
        role: ImageRole::Main,
        bytes: Vec::new(),
    };
    let Reply::Module(module) = bench.check(&Request::ModuleLoad {
        context: CONTEXT,
        images: vec![image],
    }) else {
        panic!("the fake module loads");
    };
    let name = "spin".into();
    let Reply::Function(kernel) = bench.check(&Request::ModuleFunction { module, name }) else {
        panic!("the fake kernel is there");
    };
    let function = kernel.handle;
    bench.check(&Request::FunctionCachePreference {
        function,
        preference: 2,
    });
    let mut read = |line: &str| bench.check(&parse(line, &mut |_| function));
    let Reply::Address(address) = read("malloc 256") else {
        panic!("there is memory");
    };
    for line in [
        format!("global {} table", module.0),
        format!("in default {address} 256"),
        format!("fill default {address} 256 0"),
        "launch default spin 1000".into(),
        "occupancy spin 32 0".into(),
        format!("free {address}"),
    ] {
        read(&line);
    }
    let named = ROUTES.iter().flat_map(|route| route.requests);
    let missing: Vec<_> = named.filter(|name| !bench.asked.contains(**name)).collect();
    assert!(missing.is_empty(), "not tried: {missing:?}");
}
