//! The page that says where the calls of the SST-GPU report's table 1 go, made from the table that two tests hold to the
//! code.

use anyhow::Result;
use lockstep_protocol::routing::{Part, ROUTES, Route, part_of};
use std::fmt::Write;

const HEAD: &str = "# Calls of the SST-GPU report\n\n\
Table 1 of the report (SST-GPU, 2019) sends CUDA calls from the CPU to two kinds of components: all to the CTA \
scheduler, some also to the groups of SMs. Inside [SST](../book/sst.md) they come to `lockstep.gpu` over one link, \
as the requests that the program made of the simulator, and each request reaches one part of it. SMs are never \
called: their code and arguments come with the blocks that the CTA scheduler sends them.\n\n\
| call | report: scheduler | report: SM groups | requests over the link | reach |\n|---|---|---|---|---|\n";

/// The page, without its notice.
pub fn page() -> Result<String> {
    let mut page = HEAD.to_owned();
    for route in ROUTES {
        writeln!(
            page,
            "| `{}` | yes | {} | {} | {} |",
            route.call,
            if route.report_sms { "yes" } else { "no" },
            requests(route),
            reach(route)
        )?;
    }
    Ok(page)
}

fn requests(route: &Route) -> String {
    let names = route.requests.iter().map(|one| format!("`{one}`"));
    let names: Vec<String> = names.collect();
    match (names.is_empty(), route.is_late) {
        (true, _) => "none".into(),
        (false, false) => names.join(", "),
        (false, true) => format!("{}, at the first use", names.join(", ")),
    }
}

fn reach(route: &Route) -> &'static str {
    match route.requests.first().map(|request| part_of(request)) {
        None => "answered in the program's own process",
        Some(Part::Runtime) => "runtime",
        Some(Part::CopyEngine) => "copy engine",
        Some(Part::CtaScheduler) => "CTA scheduler, which sends blocks to SMs",
    }
}
