//! The TMA engine: boxes of tensors and bulk copies, in PTX and machine code and both modes: the values, one
//! digest for any number of threads, and the same after saving in the middle.

use std::sync::Arc;

use crate::common::*;
use lockstep_frontend::sass::Image;
use lockstep_gpu::{Advance, Contents, EngineOptions, Gpu, Launch, Mode, Options};
use lockstep_isa::Module;
use lockstep_units::{Cycles, Interleave, Swizzle, TensorElement, TensorMap, TensorPart, Time};

const MODES: [Mode; 2] = [Mode::Functional, Mode::Timing];

/// The workload of the same name, `nvcc -cubin -arch=sm_90`, nvcc 13.3.
const PIPELINE: &[u8] = include_bytes!("sass/tensor_pipeline.sm_90.cubin");

fn machine(mode: Mode, threads: usize, contents: Arc<Contents>) -> Gpu {
    let options = Options {
        mode,
        engine: EngineOptions {
            threads,
            ..EngineOptions::default()
        },
        watchdog: Some(Cycles(3_000_000)),
        ..Options::default()
    };
    Gpu::new(&two_gpcs(), contents, options).unwrap()
}

/// Memory that begins with these words.
fn filled(words: &[u32]) -> Arc<Contents> {
    let contents = memory();
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    contents.write(BASE, &bytes);
    contents
}

fn finish(gpu: &mut Gpu) -> Result<(), String> {
    while !gpu.is_idle() {
        if let Advance::Faulted(fault) = gpu.advance(Time::NEVER) {
            return Err(fault.to_string());
        }
    }
    Ok(())
}

/// Runs a launch with 1, 2 and 5 threads, and saved in the middle; all leave these words at an address, and
/// one digest.
fn check(launch: &Launch, initial: &[u32], address: u64, expected: &[u32]) {
    for mode in MODES {
        let mut reference = None;
        for threads in [1, 2, 5] {
            let mut gpu = machine(mode, threads, filled(initial));
            gpu.launch(launch.clone()).unwrap();
            finish(&mut gpu).unwrap();
            let found = words(&gpu, address, expected.len());
            let first = (0..expected.len()).find(|index| found[*index] != expected[*index]);
            if let Some(at) = first {
                panic!(
                    "{mode:?}: word {at} is {:#x}, not {:#x}",
                    found[at], expected[at]
                );
            }
            let root = gpu.digest("gpu").root();
            assert_eq!(*reference.get_or_insert(root), root, "{mode:?} {threads}");
            if threads > 1 {
                continue;
            }
            for part in [4, 3, 2] {
                let mut first = machine(mode, 1, filled(initial));
                first.launch(launch.clone()).unwrap();
                first.advance_to(Time(gpu.now().0 / part)).unwrap();
                let saved = first.save();
                let contents = Arc::new(Contents::anonymous(BASE, SIZE).unwrap());
                let mut second = machine(mode, 1, contents);
                let module = launch.module.clone();
                second.load(&saved, &|_| Some(module.clone())).unwrap();
                finish(&mut second).unwrap();
                assert_eq!(second.digest("gpu").root(), root, "{mode:?} saved");
            }
        }
    }
}

/// A matrix of words.
fn matrix(address: u64, columns: u64, rows: u64, pitch: u64, size: [u32; 2]) -> TensorMap {
    TensorMap {
        address,
        rank: 2,
        element: TensorElement::U32,
        interleave: Interleave::None,
        swizzle: Swizzle::None,
        promotion: 0,
        nan_fill: false,
        dimensions: [columns, rows, 1, 1, 1],
        strides: [pitch, 0, 0, 0],
        steps: [1; 5],
        part: TensorPart::Tile {
            size: [size[0], size[1], 1, 1, 1],
        },
    }
}

fn ptx(body: &str) -> Arc<Module> {
    let text = format!(
        ".version 8.6\n.target sm_90a\n.address_size 64\n\
         .visible .entry test(.param .align 64 .b8 from[128], .param .align 64 .b8 to[128], .param .u64 out) {{\n\
         .reg .pred %p<8>;\n.reg .b16 %h<4>;\n.reg .b32 %r<32>;\n.reg .b64 %rd<16>;\n\
         .shared .align 1024 .b8 tile[4096];\n.shared .align 8 .b64 bar;\n\
         ld.param.u64 %rd1, [out];\n\
         mov.b64 %rd2, from;\ncvta.param.u64 %rd2, %rd2;\n\
         mov.b64 %rd3, to;\ncvta.param.u64 %rd3, %rd3;\n\
         mov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\n\
         mov.u32 %r3, tile;\nmov.u32 %r4, bar;\n\
         setp.ne.u32 %p1, %r1, 0;\n\
         {body}\nret;\n}}\n"
    );
    let image = lockstep_frontend::ptx::parse(&text).unwrap_or_else(|error| panic!("{error}"));
    Arc::new(image.link(&[]).unwrap_or_else(|error| panic!("{error}")))
}

fn launch(module: &Arc<Module>, maps: [&TensorMap; 2], grid: u32, cluster: u32) -> Launch {
    let mut launch = Launch::new(module, "test", [grid, 1, 1], [64, 1, 1]).unwrap();
    launch.arguments = maps.iter().flat_map(|map| map.encode()).collect();
    launch.arguments.extend((BASE + OUT).to_le_bytes());
    launch.cluster = (cluster > 0).then_some([cluster, 1, 1]);
    launch
}

/// Where results go, behind the input.
const OUT: u64 = 64 << 10;

fn input() -> Vec<u32> {
    (0..4096).map(|index| 1000 + index).collect()
}

/// A box that leaves its matrix on two sides, taken, changed and put elsewhere; sums and bytes beside it.
#[test]
fn a_box_is_loaded_changed_and_stored() {
    let module = ptx("@%p1 bra loaded;\n\
         mbarrier.init.shared.b64 [%r4], 1;\n\
         fence.mbarrier_init.release.cluster;\n\
         mbarrier.arrive.expect_tx.shared.b64 %rd4, [%r4], 256;\n\
         mov.u32 %r5, 32;\nmov.u32 %r6, 7;\n\
         cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r3], [%rd2, {%r5, %r6}], [%r4];\n\
         loaded:\n\
         bar.sync 0;\n\
         again:\n\
         mbarrier.try_wait.parity.shared.b64 %p2, [%r4], 0;\n\
         @!%p2 bra again;\n\
         shl.b32 %r7, %r1, 2;\nadd.u32 %r7, %r7, %r3;\n\
         ld.shared.u32 %r8, [%r7];\nadd.u32 %r8, %r8, 5;\nst.shared.u32 [%r7], %r8;\n\
         fence.proxy.async.shared::cta;\n\
         bar.sync 0;\n\
         @%p1 bra done;\n\
         mov.u32 %r9, 4;\nmov.u32 %r10, 1;\n\
         cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd3, {%r9, %r10}], [%r3];\n\
         cp.async.bulk.commit_group;\n\
         cp.async.bulk.wait_group 0;\n\
         cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%rd3, {%r9, %r10}], [%r3];\n\
         cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r3], 64;\n\
         cp.async.bulk.commit_group;\n\
         cp.reduce.async.bulk.global.shared::cta.bulk_group.max.u32 [%rd1+64], [%r3], 64;\n\
         cp.async.bulk.commit_group;\n\
         cp.async.bulk.wait_group.read 1;\n\
         cp.async.bulk.wait_group 0;\n\
         done:");
    // 40 x 9 words of 48; the target has 24 x 4 of 32, behind 128 bytes.
    let from = matrix(BASE, 40, 9, 192, [16, 4]);
    let to = matrix(BASE + OUT + 128, 24, 4, 128, [16, 4]);
    let tile: Vec<u32> = (0..64)
        .map(|index| {
            let (row, column) = (7 + index / 16, 32 + index % 16);
            let inside = row < 9 && column < 40;
            5 + if inside { 1000 + row * 48 + column } else { 0 }
        })
        .collect();
    let mut expected = vec![0; 32 + 4 * 32];
    expected[..16].copy_from_slice(&tile[..16]);
    expected[16..32].copy_from_slice(&tile[..16]);
    for row in 1..4 {
        for column in 4..20 {
            expected[32 + row * 32 + column] = 2 * tile[(row - 1) * 16 + column - 4];
        }
    }
    check(
        &launch(&module, [&from, &to], 1, 0),
        &input(),
        BASE + OUT,
        &expected,
    );
}

/// Each of two blocks takes half of a tile and gives it to both.
#[test]
fn a_multicast_reaches_all_blocks_of_a_cluster() {
    let module = ptx("mov.u32 %r5, %cluster_ctarank;\n\
         @%p1 bra ready;\n\
         mbarrier.init.shared.b64 [%r4], 1;\n\
         fence.mbarrier_init.release.cluster;\n\
         mbarrier.arrive.expect_tx.shared.b64 %rd4, [%r4], 256;\n\
         ready:\n\
         barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n\
         @%p1 bra wait;\n\
         shl.b32 %r6, %r5, 1;\nshl.b32 %r7, %r5, 7;\nadd.u32 %r7, %r7, %r3;\n\
         mov.u32 %r8, 0;\nmov.u16 %h1, 3;\n\
         cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%r7], [%rd2, {%r8, %r6}], [%r4], %h1;\n\
         wait:\n\
         mbarrier.try_wait.parity.shared.b64 %p2, [%r4], 0;\n\
         @!%p2 bra wait;\n\
         shl.b32 %r9, %r1, 2;\nadd.u32 %r10, %r9, %r3;\n\
         ld.shared.u32 %r11, [%r10];\n\
         shl.b32 %r12, %r5, 8;\nadd.u32 %r12, %r12, %r9;\n\
         cvt.u64.u32 %rd5, %r12;\nadd.u64 %rd5, %rd5, %rd1;\n\
         st.global.u32 [%rd5], %r11;\n\
         barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;");
    let from = matrix(BASE, 16, 4, 64, [16, 2]);
    let half: Vec<u32> = (0..64).map(|index| 1000 + index).collect();
    let expected = [half.clone(), half].concat();
    check(
        &launch(&module, [&from, &from], 2, 2),
        &input(),
        BASE + OUT,
        &expected,
    );
}

/// A map that the kernel itself makes from another, in global memory.
#[test]
fn a_tensor_map_is_changed_by_a_kernel() {
    let module = ptx("shl.b32 %r5, %r1, 2;\nadd.u32 %r6, %r5, %r3;\n\
         cvt.u64.u32 %rd5, %r5;\nadd.u64 %rd6, %rd2, %rd5;\n\
         setp.ge.u32 %p3, %r1, 32;\n\
         @!%p3 ld.u32 %r7, [%rd6];\n\
         @!%p3 st.shared.u32 [%r6], %r7;\n\
         bar.sync 0;\n\
         @%p3 bra made;\n\
         @%p1 bra copied;\n\
         tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r3], 0, 12;\n\
         tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r3], 1, 2;\n\
         tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%r3], 0, 256;\n\
         tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%r3], 2;\n\
         mbarrier.init.shared.b64 [%r4], 1;\n\
         copied:\n\
         bar.warp.sync -1;\n\
         add.u64 %rd7, %rd1, 1024;\n\
         tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd7], [%r3], 128;\n\
         made:\n\
         bar.sync 0;\n\
         @%p1 bra wait;\n\
         add.u64 %rd7, %rd1, 1024;\n\
         fence.proxy.tensormap::generic.acquire.gpu [%rd7], 128;\n\
         mbarrier.arrive.expect_tx.shared.b64 %rd4, [%r4], 128;\n\
         mov.u32 %r8, 0;\n\
         cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r3+1024], [%rd7, {%r8, %r8}], [%r4];\n\
         wait:\n\
         mbarrier.try_wait.parity.shared.b64 %p2, [%r4], 0;\n\
         @!%p2 bra wait;\n\
         @%p3 bra done;\n\
         ld.shared.u32 %r11, [%r6+1024];\n\
         add.u64 %rd8, %rd1, %rd5;\n\
         st.global.u32 [%rd8], %r11;\n\
         done:");
    let from = matrix(BASE, 16, 8, 64, [16, 4]);
    let expected: Vec<u32> = (0..32u32)
        .map(|index| {
            let (row, column) = (index / 16, index % 16);
            if column < 12 {
                1000 + 64 * row + column
            } else {
                0
            }
        })
        .collect();
    check(
        &launch(&module, [&from, &from], 1, 0),
        &input(),
        BASE + OUT,
        &expected,
    );
}

/// The faults of an H200, in words.
#[test]
fn commands_that_hardware_refuses_are_refused() {
    let from = matrix(BASE, 40, 9, 192, [16, 4]);
    for (coordinates, place, sentence) in [
        ("{1, 0}", "%r3", "multiple of 16 bytes"),
        ("{0, 0, 0}", "%r3", "3 coordinates"),
        ("{0, 0}", "%r3+16", "misaligned"),
        ("{0, 0}", "%r3+1048576", "outside the"),
    ] {
        let rank = coordinates.matches(',').count() + 1;
        let module = ptx(&format!(
            "@%p1 bra done;\n\
             mbarrier.init.shared.b64 [%r4], 1;\n\
             cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [{place}], [%rd2, {coordinates}], [%r4];\n\
             done:"
        ));
        for mode in MODES {
            let mut gpu = machine(mode, 1, filled(&input()));
            gpu.launch(launch(&module, [&from, &from], 1, 0)).unwrap();
            let fault = finish(&mut gpu).unwrap_err();
            assert!(fault.contains(sentence), "{fault}");
        }
    }
}

/// The workload in machine code: a ring of tiles, swizzled, with reductions beside it.
#[test]
fn a_pipeline_in_machine_code_reverses_the_rows_of_a_matrix() {
    let image = Image::read(PIPELINE).expect("a cubin");
    let module = Arc::new(image.link(&[]).unwrap_or_else(|error| panic!("{error}")));
    let (columns, rows) = (64u32, 40u32);
    let initial: Vec<u32> = (0..columns * rows).map(|index| index * 7 + 3).collect();
    let mut map = matrix(
        BASE,
        columns.into(),
        rows.into(),
        u64::from(4 * columns),
        [32, 32],
    );
    map.swizzle = Swizzle::Span128;
    map.element = TensorElement::S32;
    let sums = u64::from(4 * columns * rows);
    let mut to = map;
    to.address = BASE + OUT;
    let name = module.kernels[0].name.clone();
    let mut launch = Launch::new(&module, &name, [2, 1, 1], [160, 1, 1]).unwrap();
    let arguments = [
        map.encode().to_vec(),
        to.encode().to_vec(),
        (BASE + OUT + sums).to_le_bytes().to_vec(),
        2u32.to_le_bytes().to_vec(),
        4u32.to_le_bytes().to_vec(),
    ];
    for (argument, place) in arguments.iter().zip(&module.kernels[0].parameters) {
        launch.arguments.resize(place.offset as usize, 0);
        launch.arguments.extend(argument);
    }
    launch.config.dynamic_shared = 5 * 4096 + 128 + 64;
    let mut expected = vec![0; (columns * rows + columns) as usize];
    for row in 0..rows {
        for column in 0..columns {
            let value = initial[(row * columns + column) as usize];
            expected[(row * columns + columns - 1 - column) as usize] = 3 * value + row % 32;
            expected[(columns * rows + column) as usize] += value;
        }
    }
    check(&launch, &initial, BASE + OUT, &expected);
}
