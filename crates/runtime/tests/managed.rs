//! Managed memory over a device that pages: what the runtime tells it, and what programs are told.

use lockstep_protocol::{HostAccessMeans, MemoryLocation, Reply, Request, StreamName};
use lockstep_runtime::device::Advice;

use crate::support::{Paging, paged};

const PAGE: u64 = 4096;

fn managed(runtime: &mut Paging, bytes: u64) -> u64 {
    let request = Request::AllocateManaged {
        context: runtime.context,
        bytes,
        flags: 1,
    };
    match runtime.ask(&request).result.unwrap() {
        Reply::Address(address) => address,
        other => panic!("{other:?}"),
    }
}

fn prefetch(runtime: &mut Paging, address: u64, bytes: u64, location: MemoryLocation) {
    let request = Request::Prefetch {
        context: runtime.context,
        stream: StreamName::Legacy,
        address,
        bytes,
        location,
    };
    assert_eq!(runtime.ask(&request).result.unwrap(), Reply::Done);
}

fn synchronize(runtime: &mut Paging) -> Vec<(u64, u64)> {
    let request = Request::ContextSynchronize {
        context: runtime.context,
    };
    let response = runtime.ask(&request);
    assert_eq!(response.result.unwrap(), Reply::Done);
    response.left_host
}

#[test]
fn managed_allocations_begin_at_large_units_and_the_device_hears_of_them() {
    let mut runtime = paged();
    let first = managed(&mut runtime, 5000);
    let second = managed(&mut runtime, 3 << 20);
    assert_eq!((first % (2 << 20), second % (2 << 20)), (0, 0));
    assert_eq!(
        runtime.device().said,
        [
            format!("map {first:#x} 5000"),
            format!("map {second:#x} 3145728")
        ]
    );
    let free = Request::Free {
        context: runtime.context,
        address: first,
    };
    runtime.ask(&free).result.unwrap();
    assert!(runtime.device().said.contains(&format!("unmap {first:#x}")));
}

#[test]
fn a_prefetch_takes_the_time_that_the_device_says_and_closes_the_pages_to_the_host() {
    let mut runtime = paged();
    let memory = managed(&mut runtime, 4 * PAGE);
    prefetch(&mut runtime, memory, 3 * PAGE, MemoryLocation::Device(0));
    let before = runtime.now();
    assert_eq!(synchronize(&mut runtime), [(memory, 3 * PAGE)]);
    // The fake device takes a microsecond a page.
    assert!(
        runtime.now().since(before).0 >= 3_000_000_000,
        "{:?}",
        runtime.now()
    );
    // The program is told once.
    assert_eq!(synchronize(&mut runtime), []);
    prefetch(&mut runtime, memory, PAGE, MemoryLocation::Host);
    assert_eq!(synchronize(&mut runtime), []);
    // What came back by itself is opened at the next access, without moving anything.
    let said = runtime.device().said.len();
    let access = Request::HostAccess {
        address: memory + 5,
        write: false,
    };
    assert_eq!(
        runtime.ask(&access).result.unwrap(),
        Reply::Pages(vec![(memory, PAGE), (memory + 3 * PAGE, PAGE)])
    );
    assert_eq!(runtime.device().said.len(), said);
}

#[test]
fn an_access_of_the_host_brings_its_page_back_and_costs_time() {
    let mut runtime = paged();
    let memory = managed(&mut runtime, 8 * PAGE);
    prefetch(&mut runtime, memory, 8 * PAGE, MemoryLocation::Device(0));
    synchronize(&mut runtime);
    let before = runtime.now();
    let access = Request::HostAccess {
        address: memory + 2 * PAGE + 9,
        write: true,
    };
    let page = memory + 2 * PAGE;
    assert_eq!(
        runtime.ask(&access).result.unwrap(),
        Reply::Pages(vec![(page, PAGE)])
    );
    assert!(runtime.now() > before);
    assert!(
        runtime
            .device()
            .said
            .contains(&format!("host access {page:#x} 4096 true"))
    );
    // It leaves again, and the program hears of it again.
    prefetch(&mut runtime, page, PAGE, MemoryLocation::Device(0));
    assert_eq!(synchronize(&mut runtime), [(page, PAGE)]);
    // Elsewhere nothing is known of managed pages.
    let wild = Request::HostAccess {
        address: 0x2000_0000_0000,
        write: false,
    };
    assert!(runtime.ask(&wild).result.is_err());
}

#[test]
fn without_means_pages_come_back_when_the_host_waits() {
    let mut runtime = paged();
    let memory = managed(&mut runtime, 2 * PAGE);
    let means = Request::HostAccessMeans {
        means: HostAccessMeans::None,
    };
    runtime.ask(&means).result.unwrap();
    // What the host touches first cannot be noticed: it counts as having touched all.
    let populated = |address| format!("populated {address:#x} {}", 2 * PAGE);
    assert!(runtime.device().said.contains(&populated(memory)));
    let later = managed(&mut runtime, 2 * PAGE);
    assert!(runtime.device().said.contains(&populated(later)));
    prefetch(&mut runtime, memory, 2 * PAGE, MemoryLocation::Device(0));
    assert_eq!(synchronize(&mut runtime), []);
    assert!(runtime.device().said.contains(&"flush".to_string()));
    assert!(runtime.device().resident.is_empty());
    assert!(runtime.warnings()[0].contains("doctor"));
}

#[test]
fn pages_come_back_when_the_host_waits_if_the_model_wants_it_so() {
    let mut runtime = paged();
    let memory = managed(&mut runtime, 2 * PAGE);
    prefetch(&mut runtime, memory, 2 * PAGE, MemoryLocation::Device(0));
    synchronize(&mut runtime);
    assert!(!runtime.device().said.contains(&"flush".to_string()));
    runtime.device_mut().flushes = true;
    synchronize(&mut runtime);
    assert!(runtime.device().said.contains(&"flush".to_string()));
    assert!(runtime.device().resident.is_empty());
}

#[test]
fn advice_reaches_the_device_in_its_words() {
    let mut runtime = paged();
    let memory = managed(&mut runtime, PAGE);
    let mut advise = |advice, location| {
        let request = Request::Advise {
            address: memory,
            bytes: PAGE,
            advice,
            location,
        };
        runtime.ask(&request).result.is_ok()
    };
    assert!(advise(1, MemoryLocation::None));
    assert!(advise(2, MemoryLocation::None));
    assert!(advise(3, MemoryLocation::Device(0)));
    assert!(advise(3, MemoryLocation::Host));
    assert!(advise(4, MemoryLocation::None));
    assert!(advise(5, MemoryLocation::Device(0)));
    assert!(advise(6, MemoryLocation::Device(0)));
    assert!(advise(5, MemoryLocation::Host));
    assert!(!advise(7, MemoryLocation::Host));
    assert!(!advise(3, MemoryLocation::Device(9)));
    assert_eq!(
        runtime.device().advice,
        [
            Advice::ReadMostly(true),
            Advice::ReadMostly(false),
            Advice::PreferredDevice(0),
            Advice::PreferredHost,
            Advice::PreferredNone,
            Advice::AccessedBy(0, true),
            Advice::AccessedBy(0, false),
        ]
    );
}
