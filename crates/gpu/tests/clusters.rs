//! Clusters, barriers in shared memory and dependent grids, in PTX and both modes: the values, one digest for
//! any number of threads, and the same after saving in the middle.

use std::sync::Arc;

use crate::common::*;
use lockstep_frontend::sass::Image;
use lockstep_gpu::{Advance, EngineOptions, Gpu, KernelRecord, Launch, Mode, Options};
use lockstep_isa::Module;
use lockstep_units::{Cycles, Time};

const MODES: [Mode; 2] = [Mode::Functional, Mode::Timing];

fn machine(mode: Mode, threads: usize) -> Gpu {
    let options = Options {
        mode,
        engine: EngineOptions {
            threads,
            ..EngineOptions::default()
        },
        watchdog: Some(Cycles(3_000_000)),
        ..Options::default()
    };
    Gpu::new(&two_gpcs(), memory(), options).unwrap()
}

fn module(kernels: &str) -> Arc<Module> {
    let text = format!(".version 8.6\n.target sm_90a\n.address_size 64\n{kernels}");
    let image = lockstep_frontend::ptx::parse(&text).unwrap_or_else(|error| panic!("{error}"));
    Arc::new(image.link(&[]).unwrap_or_else(|error| panic!("{error}")))
}

fn kernel(name: &str, body: &str) -> String {
    format!(
        ".visible .entry {name}(.param .u64 out) {{\n\
         .reg .pred %p<8>;\n.reg .b32 %r<32>;\n.reg .b64 %rd<16>;\n\
         ld.param.u64 %rd1, [out];\n\
         mov.u32 %r1, %tid.x;\n\
         mov.u32 %r2, %ctaid.x;\n\
         setp.eq.u32 %p1, %r1, 0;\n\
         {body}\nret;\n}}\n"
    )
}

fn launch_of(module: &Arc<Module>, name: &str, grid: u32, block: u32, cluster: u32) -> Launch {
    let mut launch = Launch::new(module, name, [grid, 1, 1], [block, 1, 1]).unwrap();
    launch.arguments = BASE.to_le_bytes().to_vec();
    launch.cluster = (cluster > 0).then_some([cluster, 1, 1]);
    launch
}

fn finish(gpu: &mut Gpu) {
    while !gpu.is_idle() {
        if let Advance::Faulted(fault) = gpu.advance(Time::NEVER) {
            panic!("{fault}");
        }
    }
}

/// Runs launches with 1, 2 and 5 threads, and saved in the middle; all give these words and one digest.
fn check(module: &Arc<Module>, launches: &[Launch], expected: &[u32]) {
    for mode in MODES {
        let mut reference = None;
        for threads in [1, 2, 5] {
            let mut gpu = machine(mode, threads);
            for launch in launches {
                gpu.launch(launch.clone()).unwrap();
            }
            finish(&mut gpu);
            assert_eq!(words(&gpu, BASE, expected.len()), expected, "{mode:?}");
            let root = gpu.digest("gpu").root();
            assert_eq!(*reference.get_or_insert(root), root, "{mode:?} {threads}");
            if threads > 1 {
                continue;
            }
            for part in [3, 2] {
                let mut first = machine(mode, 1);
                for launch in launches {
                    first.launch(launch.clone()).unwrap();
                }
                first.advance_to(Time(gpu.now().0 / part)).unwrap();
                let saved = first.save();
                let contents = Arc::new(lockstep_gpu::Contents::anonymous(BASE, SIZE).unwrap());
                let options = Options {
                    mode,
                    watchdog: Some(Cycles(3_000_000)),
                    ..Options::default()
                };
                let mut second = Gpu::new(&two_gpcs(), contents, options).unwrap();
                second.load(&saved, &|_| Some(module.clone())).unwrap();
                finish(&mut second);
                assert_eq!(second.digest("gpu").root(), root, "{mode:?} saved");
            }
        }
    }
}

fn check_one(body: &str, grid: u32, block: u32, cluster: u32, expected: &[u32]) {
    let module = module(&kernel("test", body));
    let launch = launch_of(&module, "test", grid, block, cluster);
    check(&module, &[launch], expected);
}

/// Lets lanes try until the phase with a parity has ended.
fn wait(label: &str, barrier: &str, parity: &str) -> String {
    format!(
        "{label}:\nmbarrier.try_wait.parity.shared.b64 %p7, [{barrier}], {parity};\n@!%p7 bra {label};\n"
    )
}

#[test]
fn a_producer_hands_four_values_to_consumers_and_waits_for_them() {
    let (full, empty) = (wait("a", "full", "%r5"), wait("b", "empty", "%r6"));
    let body = format!(
        ".shared .align 8 .b64 full;\n.shared .align 8 .b64 empty;\n.shared .b32 value;\n\
         @%p1 mbarrier.init.shared.b64 [full], 1;\n\
         @%p1 mbarrier.init.shared.b64 [empty], 64;\n\
         bar.sync 0;\n\
         mov.u32 %r3, 0;\nmov.u32 %r4, 0;\n\
         again:\n\
         and.b32 %r5, %r3, 1;\n\
         setp.lt.u32 %p2, %r1, 32;\n\
         @!%p2 bra consume;\n\
         @!%p1 bra next;\n\
         xor.b32 %r6, %r5, 1;\n\
         {empty}\
         add.u32 %r7, %r3, 10;\n\
         st.shared.u32 [value], %r7;\n\
         mbarrier.arrive.shared.b64 %rd2, [full];\n\
         bra next;\n\
         consume:\n\
         {full}\
         ld.shared.u32 %r8, [value];\n\
         add.u32 %r4, %r4, %r8;\n\
         mbarrier.arrive.shared.b64 %rd3, [empty];\n\
         next:\n\
         add.u32 %r3, %r3, 1;\n\
         setp.lt.u32 %p3, %r3, 4;\n\
         @%p3 bra again;\n\
         @%p2 bra done;\n\
         red.global.add.u32 [%rd1], %r4;\n\
         done:"
    );
    check_one(&body, 2, 96, 0, &[2 * 64 * (10 + 11 + 12 + 13)]);
}

#[test]
fn transactions_drops_and_counts_of_a_barrier_are_seen() {
    let body = ".shared .align 8 .b64 bar;\n\
         @!%p1 bra done;\n\
         mbarrier.init.shared.b64 [bar], 3;\n\
         mbarrier.arrive.expect_tx.shared.b64 %rd2, [bar], 48;\n\
         mbarrier.pending_count.b64 %r3, %rd2;\n\
         mbarrier.arrive_drop.shared.b64 %rd3, [bar];\n\
         mbarrier.pending_count.b64 %r4, %rd3;\n\
         mbarrier.arrive.noComplete.shared.b64 %rd4, [bar], 1;\n\
         mbarrier.test_wait.shared.b64 %p2, [bar], %rd2;\n\
         selp.u32 %r5, 1, 0, %p2;\n\
         mbarrier.complete_tx.relaxed.cta.shared.b64 [bar], 48;\n\
         mbarrier.test_wait.shared.b64 %p2, [bar], %rd2;\n\
         selp.u32 %r6, 1, 0, %p2;\n\
         mbarrier.arrive.shared.b64 %rd5, [bar], 2;\n\
         mbarrier.pending_count.b64 %r7, %rd5;\n\
         mbarrier.test_wait.parity.shared.b64 %p2, [bar], 0;\n\
         selp.u32 %r8, 1, 0, %p2;\n\
         mbarrier.inval.shared.b64 [bar];\n\
         ld.shared.v2.u32 {%r9, %r10}, [bar];\n\
         st.global.v4.u32 [%rd1], {%r3, %r4, %r5, %r6};\n\
         st.global.v4.u32 [%rd1+16], {%r7, %r8, %r9, %r10};\n\
         done:";
    // Two are expected in each phase after one has dropped out.
    let left = lockstep_isa::semantics::mbarrier::initial(2);
    let expected = [3, 2, 0, 1, 2, 0, left as u32, (left >> 32) as u32];
    check_one(body, 1, 32, 0, &expected);
}

#[test]
fn copies_arrive_at_a_barrier_when_they_are_complete() {
    let body = format!(
        ".shared .align 8 .b64 bar;\n.shared .align 16 .b8 tile[512];\n\
         @%p1 mbarrier.init.shared.b64 [bar], 64;\n\
         bar.sync 0;\n\
         mul.wide.u32 %rd2, %r1, 4;\n\
         add.u64 %rd3, %rd1, %rd2;\n\
         add.u32 %r3, %r1, 7;\n\
         st.global.u32 [%rd3+1024], %r3;\n\
         membar.gl;\n\
         mov.u32 %r4, tile;\n\
         shl.b32 %r5, %r1, 2;\n\
         add.u32 %r4, %r4, %r5;\n\
         cp.async.ca.shared.global [%r4], [%rd3+1024], 4;\n\
         cp.async.mbarrier.arrive.shared.b64 [bar];\n\
         mbarrier.arrive.shared.b64 %rd4, [bar];\n\
         {}\
         xor.b32 %r6, %r5, 4;\n\
         mov.u32 %r7, tile;\nadd.u32 %r7, %r7, %r6;\n\
         ld.shared.u32 %r8, [%r7];\n\
         red.global.add.u32 [%rd1], %r8;",
        wait("a", "bar", "0")
    );
    let sum: u32 = (0..64).map(|thread| thread + 7).sum();
    check_one(&body, 1, 64, 0, &[sum]);
}

#[test]
fn blocks_of_a_cluster_know_who_they_are() {
    let body = "@!%p1 bra done;\n\
         mul.wide.u32 %rd2, %r2, 16;\n\
         add.u64 %rd3, %rd1, %rd2;\n\
         mov.u32 %r3, %cluster_ctarank;\nmov.u32 %r4, %clusterid.x;\n\
         mov.u32 %r5, %nclusterid.x;\nmov.u32 %r6, %cluster_nctarank;\n\
         st.global.v4.u32 [%rd3], {%r3, %r4, %r5, %r6};\n\
         done:";
    let expected = (0..8).flat_map(|block| [block % 4, block / 4, 2, 4]);
    check_one(body, 8, 32, 4, &expected.collect::<Vec<u32>>());
}

/// Every block has the values of the block before it, and the rank of the next one.
fn check_ring(launch: &Launch) {
    for mode in MODES {
        let mut gpu = machine(mode, 2);
        gpu.launch(launch.clone()).unwrap();
        finish(&mut gpu);
        for block in 0..4 {
            let got = words(&gpu, BASE + 1024 + 512 * block, 64);
            let before = (block as u32 + 3) % 4;
            let expected: Vec<u32> = (0..64).map(|thread| before * 100 + thread).collect();
            assert_eq!(got, expected, "{mode:?} block {block}");
            let rank = words(&gpu, BASE + 1280 + 512 * block, 64);
            assert_eq!(rank, vec![(block as u32 + 1) % 4 * 256; 64], "{mode:?}");
        }
    }
}

#[test]
fn shared_memory_of_the_next_block_is_stored_to_loaded_and_added_to() {
    let body = ".shared .align 16 .b32 mine[64];\n.shared .b32 sum;\n\
         @%p1 st.shared.u32 [sum], 0;\n\
         mov.u32 %r3, %cluster_ctarank;\nmov.u32 %r4, %cluster_nctarank;\n\
         add.u32 %r5, %r3, 1;\nrem.u32 %r5, %r5, %r4;\n\
         mov.u32 %r6, mine;\nshl.b32 %r7, %r1, 2;\nadd.u32 %r6, %r6, %r7;\n\
         barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;\n\
         mapa.shared::cluster.u32 %r8, %r6, %r5;\n\
         mul.lo.u32 %r9, %r2, 100;\nadd.u32 %r9, %r9, %r1;\n\
         st.shared::cluster.u32 [%r8], %r9;\n\
         mov.u32 %r10, sum;\nmapa.shared::cluster.u32 %r11, %r10, 0;\n\
         red.shared::cluster.add.u32 [%r11], 1;\n\
         atom.shared::cluster.add.u32 %r12, [%r11], 1;\n\
         barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n\
         // What the block before stored here, and, through a generic address, what was stored in the next one.\n\
         ld.shared.u32 %r13, [%r6];\n\
         cvt.u64.u32 %rd2, %r6;\ncvta.shared.u64 %rd3, %rd2;\n\
         mapa.u64 %rd4, %rd3, %r5;\n\
         ld.u32 %r14, [%rd4];\n\
         getctarank.shared::cluster.u32 %r15, %r8;\n\
         barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n\
         setp.eq.u32 %p2, %r3, 0;\nand.pred %p2, %p2, %p1;\n\
         @%p2 ld.shared.u32 %r16, [sum];\n\
         @%p2 st.global.u32 [%rd1], %r16;\n\
         mul.wide.u32 %rd5, %r2, 64;\nmul.wide.u32 %rd6, %r1, 4;\n\
         shl.b64 %rd5, %rd5, 3;\n\
         add.u64 %rd5, %rd5, %rd6;\nadd.u64 %rd5, %rd5, %rd1;\n\
         st.global.u32 [%rd5+1024], %r13;\n\
         sub.u32 %r14, %r14, %r9;\nshl.b32 %r15, %r15, 8;\nadd.u32 %r14, %r14, %r15;\n\
         st.global.u32 [%rd5+1280], %r14;";
    let module = module(&kernel("test", body));
    let launch = launch_of(&module, "test", 4, 64, 4);
    check(&module, std::slice::from_ref(&launch), &[2 * 4 * 64]);
    check_ring(&launch);
}

#[test]
fn arrivals_and_asynchronous_stores_reach_barriers_of_other_blocks() {
    let body = format!(
        ".shared .align 8 .b64 bar;\n.shared .align 16 .b32 box[4];\n\
         @%p1 mbarrier.init.shared.b64 [bar], 3;\n\
         fence.mbarrier_init.release.cluster;\n\
         barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n\
         mov.u32 %r3, %cluster_ctarank;\nxor.b32 %r4, %r3, 1;\n\
         mov.u32 %r5, bar;\nmapa.shared::cluster.u32 %r6, %r5, %r4;\n\
         mov.u32 %r7, box;\nmapa.shared::cluster.u32 %r8, %r7, %r4;\n\
         add.u32 %r9, %r2, 1;\nshl.b32 %r10, %r9, 4;\n\
         @!%p1 bra listen;\n\
         mbarrier.arrive.expect_tx.shared.b64 %rd2, [bar], 20;\n\
         mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r6];\n\
         st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%r8], {{%r9, %r10, %r9, %r10}}, [%r6];\n\
         red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r8], %r9, [%r6];\n\
         mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r6];\n\
         listen:\n\
         {}\
         @!%p1 bra done;\n\
         ld.shared.v4.u32 {{%r11, %r12, %r13, %r14}}, [box];\n\
         mul.wide.u32 %rd3, %r2, 16;\nadd.u64 %rd3, %rd3, %rd1;\n\
         st.global.v4.u32 [%rd3], {{%r11, %r12, %r13, %r14}};\n\
         done:\n\
         barrier.cluster.arrive;\nbarrier.cluster.wait;",
        wait("a", "bar", "0")
    );
    let values = |from: u32| [2 * from, 16 * from, from, 16 * from];
    let expected = [2, 1, 4, 3].map(values).concat();
    check_one(&body, 4, 64, 2, &expected);
}

/// The same kernels as `ptxas` compiles them (`sass/clusters.ptx`), where addresses carry ranks.
#[test]
fn machine_code_does_the_same() {
    let image = Image::read(include_bytes!("sass/clusters.sm_90.cubin")).expect("a cubin");
    let module = Arc::new(image.link(&[]).expect("it has no variables"));
    let values = |from: u32| [2 * from, 16 * from, from, 16 * from];
    let asynchronous = [2, 1, 4, 3].map(values).concat();
    let left = lockstep_isa::semantics::mbarrier::initial(2);
    let transactions = [3, 2, 0, 1, 2, 0, left as u32, (left >> 32) as u32];
    let copies: u32 = (0..64).map(|thread| thread + 7).sum();
    let producer = 2 * 64 * (10 + 11 + 12 + 13);
    for (kernel, grid, block, cluster, expected) in [
        ("ring", 4, 64, 4, &[2 * 4 * 64][..]),
        ("asynchronous", 4, 64, 2, &asynchronous),
        ("transactions", 1, 32, 0, &transactions),
        ("copies", 1, 64, 0, &[copies]),
        ("producer", 2, 96, 0, &[producer]),
    ] {
        let launch = launch_of(&module, kernel, grid, block, cluster);
        check(&module, std::slice::from_ref(&launch), expected);
    }
    let launch = launch_of(&module, "ring", 4, 64, 4);
    check_ring(&launch);
}

/// The first kernel lets the second begin, then takes long and stores; the second waits for it.
fn dependents(waits: bool) -> Arc<Module> {
    let first = kernel(
        "first",
        "griddepcontrol.launch_dependents;\n\
         mov.u32 %r3, 0;\n\
         again:\nadd.u32 %r3, %r3, 1;\nsetp.lt.u32 %p2, %r3, 3000;\n@%p2 bra again;\n\
         @%p1 red.global.add.u32 [%rd1], 1;",
    );
    let wait = if waits { "griddepcontrol.wait;\n" } else { "" };
    let second = kernel(
        "second",
        &format!(
            "{wait}ld.global.u32 %r3, [%rd1];\n\
             @%p1 red.global.add.u32 [%rd1+4], %r3;"
        ),
    );
    module(&(first + &second))
}

#[test]
fn a_dependent_grid_begins_early_and_waits_for_what_was_stored() {
    let module = dependents(true);
    let first = launch_of(&module, "first", 4, 64, 0);
    let mut second = launch_of(&module, "second", 6, 64, 0);
    second.programmatic = true;
    check(&module, &[first.clone(), second.clone()], &[4, 24]);
    for (programmatic, overlaps) in [(true, true), (false, false)] {
        second.programmatic = programmatic;
        let mut gpu = machine(Mode::Timing, 1);
        let ids = [&first, &second].map(|launch| gpu.launch(launch.clone()).unwrap());
        let records: Vec<KernelRecord> = ids
            .iter()
            .map(|id| gpu.run_until_complete(*id).unwrap())
            .collect();
        assert_eq!(records[1].start < records[0].end, overlaps, "{records:?}");
        assert!(records[1].end >= records[0].end);
        assert_eq!(words(&gpu, BASE, 2), [4, 24]);
    }
}

#[test]
fn kernels_of_a_graph_follow_each_other_sooner() {
    let module = module(&kernel("test", "@%p1 red.global.add.u32 [%rd1], 1;"));
    let launch = |of_graph| Launch {
        of_graph,
        ..launch_of(&module, "test", 4, 64, 0)
    };
    let launches = |of_graph| vec![launch(of_graph); 3];
    check(&module, &launches(true), &[12]);
    let [in_graph, in_stream] = [true, false].map(|of_graph| {
        let mut gpu = machine(Mode::Timing, 1);
        for launch in launches(of_graph) {
            gpu.launch(launch).unwrap();
        }
        finish(&mut gpu);
        gpu.now()
    });
    // More of the start of two kernels, and some of the end of three.
    let launch = two_gpcs().launch;
    let sooner = 2 * (launch.graph_start_overlap.unwrap().0 - launch.start_overlap.0)
        + 3 * (launch.finish_latency.0 - launch.graph_finish_latency.unwrap().0);
    let expected = two_gpcs().device.clock.duration(Cycles(sooner));
    let found = in_stream - in_graph;
    // Blocks end at other cycles of their epochs.
    let near = expected.0 * 9 / 10..expected.0 * 11 / 10;
    assert!(near.contains(&found.0), "{found} instead of {expected}");
}

#[test]
fn a_block_that_has_ended_cannot_be_reached() {
    let body = ".shared .align 8 .b32 word[2];\n\
         mov.u32 %r3, %cluster_ctarank;\nsetp.eq.u32 %p2, %r3, 1;\n\
         @%p2 exit;\n\
         mov.u32 %r4, 0;\n\
         again:\nadd.u32 %r4, %r4, 1;\nsetp.lt.u32 %p3, %r4, 2000;\n@%p3 bra again;\n\
         mov.u32 %r5, word;\nmapa.shared::cluster.u32 %r6, %r5, 1;\n\
         ld.shared::cluster.u32 %r7, [%r6];\n\
         st.global.u32 [%rd1], %r7;";
    let module = module(&kernel("test", body));
    for mode in MODES {
        let mut gpu = machine(mode, 1);
        let id = gpu.launch(launch_of(&module, "test", 2, 32, 2)).unwrap();
        let error = gpu.run_until_complete(id).unwrap_err().to_string();
        assert!(error.contains("which has ended"), "{mode:?}: {error}");
    }
}

#[test]
fn clusters_that_no_gpc_can_hold_are_refused() {
    let module = module(&kernel("test", ""));
    let mut gpu = machine(Mode::Timing, 1);
    let error = gpu
        .launch(launch_of(&module, "test", 8, 32, 8))
        .unwrap_err();
    assert!(error.to_string().contains("4 are the most"), "{error}");
    let error = gpu
        .launch(launch_of(&module, "test", 6, 32, 4))
        .unwrap_err();
    assert!(
        error.to_string().contains("not made of clusters"),
        "{error}"
    );
}
