//! Memory that a program maps by itself, on a device that knows nothing but time.

use crate::graphs::Bench;
use crate::support::CONTEXT;
use lockstep_protocol::{
    Copy, CuResult, Extent, Fill, MemoryAccess, PhysicalHandle, Place, Reply, Request, Rows,
    StreamName, ValueAction, ValueWork,
};
use lockstep_runtime::Device;

#[test]
fn mapped_memory_keeps_its_bytes_when_it_moves() {
    const MEGA: u64 = 1 << 20;
    let mut bench = Bench::new();
    let context = CONTEXT;
    let reserve = Request::AddressReserve {
        context,
        bytes: 8 * MEGA,
        alignment: 0,
    };
    let Ok(Reply::Address(area)) = bench.ask(&reserve) else {
        panic!("addresses are there");
    };
    let create = Request::PhysicalCreate {
        context,
        device: 0,
        bytes: 2 * MEGA,
        shared: false,
    };
    let Ok(Reply::Physical(physical)) = bench.ask(&create) else {
        panic!("memory is there");
    };
    let map = |address, physical| Request::PhysicalMap {
        context,
        address,
        bytes: 2 * MEGA,
        physical,
    };
    let unmap = |address| Request::PhysicalUnmap {
        address,
        bytes: 2 * MEGA,
    };
    assert_eq!(bench.ask(&map(area, physical)), Ok(Reply::Address(area)));
    assert_eq!(
        bench.ask(&map(area, physical)),
        Err(CuResult::INVALID_VALUE),
        "one at an address"
    );
    bench.runtime.device_mut().write(area + 5, &[1, 2, 3]);
    bench.ask(&unmap(area)).unwrap();
    assert_eq!(bench.ask(&unmap(area)), Err(CuResult::INVALID_VALUE));
    bench.ask(&map(area + 4 * MEGA, physical)).unwrap();
    let mut bytes = [0; 3];
    bench.runtime.device().read(area + 4 * MEGA + 5, &mut bytes);
    assert_eq!(bytes, [1, 2, 3]);
    let free = Request::AddressFree {
        address: area,
        bytes: 8 * MEGA,
    };
    assert_eq!(bench.ask(&free), Err(CuResult::INVALID_VALUE), "in use");
    let release = Request::PhysicalRelease { context, physical };
    bench.ask(&release).unwrap();
    bench.ask(&unmap(area + 4 * MEGA)).unwrap();
    bench.ask(&free).unwrap();
    assert_eq!(
        bench.ask(&map(area, PhysicalHandle(physical.0))),
        Err(CuResult::INVALID_HANDLE)
    );
    let outside = Request::AccessSet {
        device: 0,
        address: area,
        bytes: 2 * MEGA,
        access: MemoryAccess::ReadWrite,
    };
    assert_eq!(bench.ask(&outside), Err(CuResult::INVALID_VALUE));
}

/// Memory with a second address has its bytes at one of its own, where every address finds them.
#[test]
fn memory_has_as_many_addresses_as_the_program_maps() {
    const MEGA: u64 = 1 << 20;
    let mut bench = Bench::new();
    let context = CONTEXT;
    let reserve = Request::AddressReserve {
        context,
        bytes: 8 * MEGA,
        alignment: 0,
    };
    let Ok(Reply::Address(area)) = bench.ask(&reserve) else {
        panic!("addresses are there");
    };
    for shared in [false, true] {
        let create = Request::PhysicalCreate {
            context,
            device: 0,
            bytes: 2 * MEGA,
            shared,
        };
        let Ok(Reply::Physical(physical)) = bench.ask(&create) else {
            panic!("memory is there");
        };
        let map = |bench: &mut Bench, address| {
            let request = Request::PhysicalMap {
                context,
                address,
                bytes: 2 * MEGA,
                physical,
            };
            match bench.ask(&request) {
                Ok(Reply::Address(place)) => place,
                other => panic!("{other:?}"),
            }
        };
        let first = map(&mut bench, area);
        assert_eq!(first != area, shared);
        bench.runtime.device_mut().write(first + 5, &[1, 2, 3]);
        let set = Request::AccessSet {
            device: 0,
            address: area,
            bytes: 2 * MEGA,
            access: MemoryAccess::ReadWrite,
        };
        bench.ask(&set).unwrap();
        let place = map(&mut bench, area + 2 * MEGA);
        assert!(place != area && place != area + 2 * MEGA);
        let mut bytes = [0; 3];
        bench.runtime.device().read(place + 5, &mut bytes);
        assert_eq!(bytes, [1, 2, 3]);
        let granted =
            |bench: &mut Bench| bench.runtime.device_mut().grants.get(&(0, area)).copied();
        assert_eq!(
            granted(&mut bench),
            Some(MemoryAccess::ReadWrite),
            "kernels go on there"
        );
        // Who has an address of it needs no handle, and can have one again.
        let release = Request::PhysicalRelease { context, physical };
        bench.ask(&release).unwrap();
        assert_eq!(bench.ask(&release), Err(CuResult::INVALID_HANDLE));
        let open = Request::PhysicalOpen { context, physical };
        bench.ask(&open).unwrap();
        let unmap = |address| Request::PhysicalUnmap {
            address,
            bytes: 2 * MEGA,
        };
        bench.ask(&unmap(area)).unwrap();
        bench.ask(&unmap(area + 2 * MEGA)).unwrap();
        assert_eq!(map(&mut bench, area + 4 * MEGA), place, "it stays there");
        bench.ask(&unmap(area + 4 * MEGA)).unwrap();
        bench.ask(&release).unwrap();
        assert_eq!(
            bench.ask(&open),
            Err(CuResult::INVALID_HANDLE),
            "it is gone"
        );
    }
}

#[test]
fn copies_and_fills_keep_to_what_mapped_memory_allows() {
    const MEGA: u64 = 1 << 20;
    let mut bench = Bench::new();
    let context = CONTEXT;
    let address = |reply| match reply {
        Ok(Reply::Address(address)) => address,
        other => panic!("{other:?}"),
    };
    let plain = address(bench.ask(&Request::Allocate {
        context,
        bytes: MEGA,
    }));
    let area = address(bench.ask(&Request::AddressReserve {
        context,
        bytes: 2 * MEGA,
        alignment: 0,
    }));
    let create = Request::PhysicalCreate {
        context,
        device: 0,
        bytes: 2 * MEGA,
        shared: false,
    };
    let Ok(Reply::Physical(physical)) = bench.ask(&create) else {
        panic!("memory is there");
    };
    let map = Request::PhysicalMap {
        context,
        address: area,
        bytes: 2 * MEGA,
        physical,
    };
    bench.ask(&map).unwrap();
    let place = |address| Place::Window(Rows::linear(address, 64));
    let copy = |destination, source| {
        Request::Copy(Copy {
            context,
            stream: StreamName::Legacy,
            destination,
            source,
            extent: Extent::linear(64),
            blocking: true,
        })
    };
    let fill = Request::Fill(Fill {
        context,
        stream: StreamName::Legacy,
        destination: Rows::linear(area, 64),
        extent: Extent::linear(64),
        pattern: 1,
        pattern_bytes: 1,
        blocking: true,
    });
    let requests = [
        copy(place(plain), place(area)),
        copy(Place::Host, place(area)),
        copy(place(area), place(plain)),
        copy(place(area), Place::Host),
        fill,
    ];
    let (yes, no) = (Ok(Reply::Done), Err(CuResult::INVALID_VALUE));
    for (access, reads, writes) in [
        (MemoryAccess::None, &no, &no),
        (MemoryAccess::Read, &yes, &no),
        (MemoryAccess::ReadWrite, &yes, &yes),
        (MemoryAccess::Read, &yes, &no),
    ] {
        let set = Request::AccessSet {
            device: 0,
            address: area,
            bytes: 2 * MEGA,
            access,
        };
        bench.ask(&set).unwrap();
        for (index, request) in requests.iter().enumerate() {
            let expected = if index < 2 { reads } else { writes };
            assert_eq!(&bench.ask(request), expected, "{access:?} {request:?}");
        }
    }
    // A value that a stream writes is found by the hardware: the call succeeds, the context is lost.
    let value = Request::Value {
        context,
        stream: StreamName::Legacy,
        work: ValueWork {
            address: area,
            value: 1,
            bytes: 4,
            action: ValueAction::Write,
        },
    };
    assert_eq!(bench.ask(&value), Ok(Reply::Done));
    assert_eq!(
        bench.ask(&Request::ContextSynchronize { context }),
        Err(CuResult::LAUNCH_FAILED)
    );
}
