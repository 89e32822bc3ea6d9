//! NVTX: how a program says what it is at.
//!
//! NVTX is a set of headers, so its functions are part of the program. The first that is called loads the library
//! that `NVTX_INJECTION64_PATH` names, which is this one where a run asks for ranges, and calls
//! [`InitializeInjectionNvtx2`] with a way to its tables of functions; those that begin and end ranges are set to
//! ours, the others stay empty. A program may have several copies of NVTX; each comes here.
//!
//! | file | what |
//! |---|---|
//! | `abi.rs` | structures and tables of NVTX |
//! | `ranges.rs` | ranges that begin and end, and who is told of them |
//! | `text.rs` | names of ranges, domains and registered strings |

mod abi;
mod ranges;
mod text;

pub use ranges::flush;

use crate::boundary::guarded;
use crate::types::In;
use abi::{Attributes, GetExportTable, Table};
use lockstep_protocol::RangeName;
use ranges::{end, pop, push, start};
use text::{NarrowText, WideText, message};

/// Functions of the default domain, by NVTX's numbers (module 1, "core").
const CORE: [(usize, abi::Function); 8] = [
    (4, abi::function!(range_start(In<Attributes>) -> u64)),
    (5, abi::function!(range_start_narrow(NarrowText) -> u64)),
    (6, abi::function!(range_start_wide(WideText) -> u64)),
    (7, abi::function!(range_end(u64))),
    (8, abi::function!(range_push(In<Attributes>) -> i32)),
    (9, abi::function!(range_push_narrow(NarrowText) -> i32)),
    (10, abi::function!(range_push_wide(WideText) -> i32)),
    (11, abi::function!(range_pop() -> i32)),
];

/// Functions with a domain (module 5, "core 2").
const DOMAINS: [(usize, abi::Function); 8] = [
    (
        2,
        abi::function!(domain_range_start(usize, In<Attributes>) -> u64),
    ),
    (3, abi::function!(domain_range_end(usize, u64))),
    (
        4,
        abi::function!(domain_range_push(usize, In<Attributes>) -> i32),
    ),
    (5, abi::function!(domain_range_pop(usize) -> i32)),
    (
        10,
        abi::function!(register_narrow(usize, NarrowText) -> usize),
    ),
    (11, abi::function!(register_wide(usize, WideText) -> usize)),
    (
        12,
        abi::function!(domain_create_narrow(NarrowText) -> usize),
    ),
    (13, abi::function!(domain_create_wide(WideText) -> usize)),
];

/// What NVTX calls once; not 0 if ranges are wanted.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
extern "C" fn InitializeInjectionNvtx2(export: Option<GetExportTable>) -> i32 {
    let attached = guarded("InitializeInjectionNvtx2", || {
        let export = export?;
        let core = Table::find(export, 1)?;
        core.set(&CORE);
        // NVTX before version 2 has no domains.
        if let Some(domains) = Table::find(export, 5) {
            domains.set(&DOMAINS);
        }
        Some(())
    });
    i32::from(attached.flatten().is_some())
}

/// The default domain.
const NO_DOMAIN: usize = 0;

fn named(domain: usize, name: String) -> RangeName {
    RangeName {
        name,
        domain: text::domain(domain),
    }
}

extern "C" fn range_start(attributes: In<Attributes>) -> u64 {
    domain_range_start(NO_DOMAIN, attributes)
}

extern "C" fn range_start_narrow(name: NarrowText) -> u64 {
    guarded("nvtxRangeStartA", || start(named(NO_DOMAIN, name.get()))).unwrap_or(0)
}

extern "C" fn range_start_wide(name: WideText) -> u64 {
    guarded("nvtxRangeStartW", || start(named(NO_DOMAIN, name.get()))).unwrap_or(0)
}

extern "C" fn range_end(id: u64) {
    guarded("nvtxRangeEnd", || end(id));
}

extern "C" fn range_push(attributes: In<Attributes>) -> i32 {
    domain_range_push(NO_DOMAIN, attributes)
}

extern "C" fn range_push_narrow(name: NarrowText) -> i32 {
    guarded("nvtxRangePushA", || push(named(NO_DOMAIN, name.get()))).unwrap_or(-1)
}

extern "C" fn range_push_wide(name: WideText) -> i32 {
    guarded("nvtxRangePushW", || push(named(NO_DOMAIN, name.get()))).unwrap_or(-1)
}

extern "C" fn range_pop() -> i32 {
    domain_range_pop(NO_DOMAIN)
}

extern "C" fn domain_range_start(domain: usize, attributes: In<Attributes>) -> u64 {
    guarded("nvtxDomainRangeStartEx", || {
        start(named(domain, message(attributes)))
    })
    .unwrap_or(0)
}

extern "C" fn domain_range_end(_: usize, id: u64) {
    range_end(id);
}

extern "C" fn domain_range_push(domain: usize, attributes: In<Attributes>) -> i32 {
    guarded("nvtxDomainRangePushEx", || {
        push(named(domain, message(attributes)))
    })
    .unwrap_or(-1)
}

extern "C" fn domain_range_pop(domain: usize) -> i32 {
    guarded("nvtxDomainRangePop", || pop(text::domain(domain))).unwrap_or(-1)
}

extern "C" fn register_narrow(_: usize, string: NarrowText) -> usize {
    guarded("nvtxDomainRegisterStringA", || text::register(string.get())).unwrap_or(0)
}

extern "C" fn register_wide(_: usize, string: WideText) -> usize {
    guarded("nvtxDomainRegisterStringW", || text::register(string.get())).unwrap_or(0)
}

extern "C" fn domain_create_narrow(name: NarrowText) -> usize {
    guarded("nvtxDomainCreateA", || text::register(name.get())).unwrap_or(0)
}

extern "C" fn domain_create_wide(name: WideText) -> usize {
    guarded("nvtxDomainCreateW", || text::register(name.get())).unwrap_or(0)
}
