//! What calls answer and when, on a device that knows nothing but time.

use crate::support;
use expect_test::{Expect, expect};

fn check(script: &str, expected: Expect) {
    expected.assert_eq(&support::play(script));
}

#[test]
fn launches_queue_and_waiting_lets_time_pass() {
    check(
        "launch default spin 5000
         launch default spin 5000
         sync default",
        expect![[r#"
            1000 ns  launch default spin 5000: done
            2000 ns  launch default spin 5000: done
            11000 ns  sync default: done
            spin 1000 to 6000 ns
            spin 6000 to 11000 ns
        "#]],
    );
}

#[test]
fn a_launch_after_a_pause_takes_longer() {
    let settings = ["host.launch-cold=3 us", "host.launch-cold-after=20 us"];
    let script = "launch default spin 30000
         sync default
         launch default spin 1000
         launch default spin 1000
         sync default";
    let played = support::play_with(&settings, script);
    expect![[r#"
        1000 ns  launch default spin 30000: done
        31000 ns  sync default: done
        35000 ns  launch default spin 1000: done
        36000 ns  launch default spin 1000: done
        37000 ns  sync default: done
        spin 1000 to 31000 ns
        spin 35000 to 36000 ns
        spin 36000 to 37000 ns
    "#]]
    .assert_eq(&played);
}

#[test]
fn the_first_launch_of_a_kernel_takes_longer() {
    let script = "launch default spin 1000
         launch default spin 1000
         sync default";
    let played = support::play_with(&["host.launch-first=5 us"], script);
    expect![[r#"
        6000 ns  launch default spin 1000: done
        7000 ns  launch default spin 1000: done
        8000 ns  sync default: done
        spin 6000 to 7000 ns
        spin 7000 to 8000 ns
    "#]]
    .assert_eq(&played);
}

#[test]
fn streams_overlap_and_the_default_stream_orders_them() {
    check(
        "stream
         stream
         launch 4 spin 10000
         launch 6 spin 10000
         launch default spin 1000
         launch 4 spin 1000
         all",
        expect![[r#"
            0 ns  stream: Stream(StreamHandle(4))
            0 ns  stream: Stream(StreamHandle(6))
            1000 ns  launch 4 spin 10000: done
            2000 ns  launch 6 spin 10000: done
            3000 ns  launch default spin 1000: done
            4000 ns  launch 4 spin 1000: done
            14000 ns  all: done
            spin 1000 to 11000 ns
            spin 2000 to 12000 ns
            spin 12000 to 13000 ns
            spin 13000 to 14000 ns
        "#]],
    );
    check(
        "stream nonblocking
         launch 4 spin 10000
         launch default spin 1000
         sync default
         sync 4",
        expect![[r#"
            0 ns  stream nonblocking: Stream(StreamHandle(4))
            1000 ns  launch 4 spin 10000: done
            2000 ns  launch default spin 1000: done
            3000 ns  sync default: done
            11000 ns  sync 4: done
            spin 1000 to 11000 ns
            spin 2000 to 3000 ns
        "#]],
    );
}

#[test]
fn events_note_simulated_time_and_hold_streams_back() {
    check(
        "stream
         stream
         event
         event
         record 4 8
         launch 4 spin 7000
         record 4 9
         wait 6 9
         launch 6 spin 1000
         elapsed 8 9
         join 9
         elapsed 8 9
         elapsed 9 8
         sync 6",
        expect![[r#"
            0 ns  stream: Stream(StreamHandle(4))
            0 ns  stream: Stream(StreamHandle(6))
            0 ns  event: Event(EventHandle(8))
            0 ns  event: Event(EventHandle(9))
            0 ns  record 4 8: done
            1000 ns  launch 4 spin 7000: done
            1000 ns  record 4 9: done
            1000 ns  wait 6 9: done
            2000 ns  launch 6 spin 1000: done
            2000 ns  elapsed 8 9: 600
            9600 ns  join 9: done
            9600 ns  elapsed 8 9: 8300000 ps
            9600 ns  elapsed 9 8: -8300000 ps
            10600 ns  sync 6: done
            spin 1300 to 8300 ns
            spin 9600 to 10600 ns
        "#]],
    );
}

#[test]
fn a_query_lets_the_device_advance_a_little() {
    check(
        "launch default spin 2500
         query default
         query default
         query default
         query default",
        expect![[r#"
            1000 ns  launch default spin 2500: done
            2000 ns  query default: 600
            3000 ns  query default: 600
            4000 ns  query default: done
            4000 ns  query default: done
            spin 1000 to 3500 ns
        "#]],
    );
}

/// 100,000 bytes are 10 us of the link, and a copy takes 1 us before its first byte.
#[test]
fn copies_of_several_streams_go_no_faster_than_the_link() {
    let together = |second: &str| {
        support::play(&format!(
            "stream nonblocking
             stream nonblocking
             malloc 1000000
             malloc 1000000
             pinned 1000000
             move 4 0x200000000200 0x280000000000 100000
             move 6 {second} 100000
             sync 4
             sync 6"
        ))
    };
    let same_way = together("0x2000000f4600 0x280000000000");
    assert!(same_way.contains("12000 ns  sync 4: done"), "{same_way}");
    assert!(same_way.contains("22000 ns  sync 6: done"), "{same_way}");
    let other_way = together("0x280000000000 0x2000000f4600");
    assert!(other_way.contains("12000 ns  sync 4: done"), "{other_way}");
    assert!(other_way.contains("13000 ns  sync 6: done"), "{other_way}");
}

#[test]
fn copies_cost_latency_and_bandwidth() {
    check(
        "malloc 1000000
         malloc 1000000
         pinned 1000000
         in default 0x2000000f4600 100000
         move default 0x200000000200 0x2000000f4600 100000
         sync default
         move default 0x2000000f4600 0x280000000000 100000
         sync default
         fill default 0x2000000f4600 100000 255
         sync default",
        expect![[r#"
            0 ns  malloc 1000000: 0x200000000200
            0 ns  malloc 1000000: 0x2000000f4600
            0 ns  pinned 1000000: 0x280000000000
            102000 ns  in default 0x2000000f4600 100000: done
            103000 ns  move default 0x200000000200 0x2000000f4600 100000: done
            105000 ns  sync default: done
            106000 ns  move default 0x2000000f4600 0x280000000000 100000: done
            117000 ns  sync default: done
            118000 ns  fill default 0x2000000f4600 100000 255: done
            120000 ns  sync default: done
        "#]],
    );
}

#[test]
fn wrong_arguments_answer_cudas_codes() {
    check(
        "malloc 0
         malloc 1000
         free 0x200000000202
         in default 0x200000000200 1001
         move default 0x200000000200 0x7fff0000 8
         fill default 0x200000000200 2000 0
         launch default spin 1 1025
         launch default spin 1 0
         launch default fat 1 1024
         launch default spin 1 256 49153
         launch default tile 1 256 8192
         launch default tile 1 256 8193
         sync 99
         join 99
         malloc 999999999999999
         info",
        expect![[r#"
            0 ns  malloc 0: 1 an allocation of 0 bytes
            0 ns  malloc 1000: 0x200000000200
            0 ns  free 0x200000000202: 1 0x200000000202 is not the start of an allocation
            1000 ns  in default 0x200000000200 1001: 1 1001 bytes at 0x200000000200 pass the end of the allocation of 1000 bytes at 0x200000000200
            2000 ns  move default 0x200000000200 0x7fff0000 8: 1 no allocation holds 0x7fff0000, which is ordinary memory of the program
            3000 ns  fill default 0x200000000200 2000 0: 1 2000 bytes at 0x200000000200 pass the end of the allocation of 1000 bytes at 0x200000000200
            4000 ns  launch default spin 1 1025: 1 `spin`: a block of [1025, 1, 1] threads
            5000 ns  launch default spin 1 0: 1 `spin`: a block of [0, 1, 1] threads
            6000 ns  launch default fat 1 1024: 701 `fat` needs 128 registers and 0 bytes of shared memory for 1024 threads, more than an SM has
            7000 ns  launch default spin 1 256 49153: 1 `spin`: 49153 bytes of dynamic shared memory; 49152 are allowed unless the program asks for more
            8000 ns  launch default tile 1 256 8192: done
            9000 ns  launch default tile 1 256 8193: 1 `tile`: 8193 bytes of dynamic shared memory; 8192 are allowed unless the program asks for more
            9000 ns  sync 99: 400 there is no StreamHandle 99
            9000 ns  join 99: 400 there is no EventHandle 99
            9000 ns  malloc 999999999999999: 2 999999999999999 bytes asked for, 149570977792 bytes left
            9000 ns  info: Memory { free: 149570977792, total: 150109945856 }
        "#]],
    );
}

#[test]
fn a_fault_sticks_until_the_device_is_reset() {
    check(
        "malloc 1000
         launch default spin 666
         sync default
         malloc 8
         launch default spin 1
         reset
         malloc 8",
        expect![[r#"
            0 ns  malloc 1000: 0x200000000200
            1000 ns  launch default spin 666: done
            1700 ns  sync default: 700 launch 0 reads what is not there [sticky 700]
            1700 ns  malloc 8: 700  [sticky 700]
            1700 ns  launch default spin 1: 700  [sticky 700]
            1700 ns  reset: done
            1700 ns  malloc 8: 201 there is no ContextHandle 1
        "#]],
    );
}

#[test]
fn variables_are_placed_and_occupancy_is_computed() {
    check(
        "global 3 table
         global 3 shared_counter
         global 3 nothing
         occupancy spin 256 0
         occupancy fat 256 0
         occupancy tile 256 0
         occupancy spin 0 0",
        expect![[r#"
                   0 ns  global 3 table: Global(GlobalInfo { address: 35184372088832, bytes: 100, managed: false })
                   0 ns  global 3 shared_counter: Global(GlobalInfo { address: 48378511622144, bytes: 100, managed: true })
                   0 ns  global 3 nothing: 500 no variable is called `nothing`
                   0 ns  occupancy spin 256 0: Value(8)
                   0 ns  occupancy fat 256 0: Value(2)
                   0 ns  occupancy tile 256 0: Value(5)
                   0 ns  occupancy spin 0 0: 1 a block of 0 threads; 1 to 1024 are possible
        "#]],
    );
}

/// A host of round numbers: a command takes 1 ns of a core, 1 of the mesh and 98 of its link; a page
/// 64 ns of the cores, 256 of memory, 128 + 1 of the mesh and 512 + 100 of the link: from 1,100 to
/// 2,161 ns here, which the fake device sees at 2,200, and the host 100 later.
#[test]
fn commands_and_data_go_through_a_host_that_is_a_machine() {
    let settings = [
        "host.machine.kind=machine",
        "host.machine.clock=1 GHz",
        "host.machine.requests-per-cycle=1",
        "host.machine.ddr-clock=2 GHz",
        "host.machine.mesh-clock=1 GHz",
        "host.machine.mesh-bytes-per-cycle=32 B/cycle",
        "host.machine.mesh-latency=1 ns",
        "host.machine.data-latency=100 ns",
        "host.machine.command-latency=98 ns",
        "host.machine.link=8 GB/s",
        "host.machine.ddr-capacity=64 MiB",
    ];
    let script = "malloc 8192
         in default 0x200000000200 4096
         launch default spin 5000
         sync default
         pinned 134217728";
    let expected = expect![[r#"
        0 ns  malloc 8192: 0x200000000200
        2300 ns  in default 0x200000000200 4096: done
        3300 ns  launch default spin 5000: done
        8500 ns  sync default: done
        8500 ns  pinned 134217728: 2 134217728 bytes asked for, 67108864 bytes left
        spin 3400 to 8400 ns
    "#]];
    expected.assert_eq(&support::play_with(&settings, script));
}
