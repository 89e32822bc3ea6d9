//! What the simulator is asked for the calls of the SST-GPU report's table 1 is what the table of routes says.

mod support;

use lockstep_protocol::routing::{ROUTES, Route};
use support::programs::{check_status, compile, run, text, vector_add};
use support::{Knowledge, Simulator};

fn route(call: &str) -> &'static Route {
    let found = ROUTES.iter().find(|route| route.call == call);
    found.unwrap_or_else(|| panic!("{call} is not in the table"))
}

#[test]
fn every_call_of_the_report_asks_for_what_the_table_says() {
    let Some(program) = compile("routing.cu", "routing", &["-ldl"]) else {
        return;
    };
    let mut knowledge = Knowledge::default();
    knowledge.kernels.insert("add", vector_add());
    knowledge.globals = vec![("counter", 4, false)];
    let simulator = Simulator::start(knowledge);
    let output = run(&program, &simulator);
    check_status(&output, 0);
    let log = simulator.log();
    let asked: Vec<&str> = log
        .iter()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let mut stages = asked.split(|request| *request == "MemoryInfo");
    // Registering asks for nothing.
    assert_eq!(stages.next(), Some(&["PrimaryContextRetain"][..]));
    let mut seen = 0;
    let said = text(&output);
    for (calls, asked) in said.lines().zip(stages) {
        if calls == "the end" {
            break;
        }
        let routes: Vec<&Route> = calls.split_whitespace().map(route).collect();
        let expected = routes.iter().flat_map(|route| route.requests);
        assert_eq!(asked, expected.copied().collect::<Vec<_>>(), "{calls}");
        seen += routes.len();
    }
    assert_eq!(seen, ROUTES.len(), "{said}");
}
