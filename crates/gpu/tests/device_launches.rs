//! Kernels that launch kernels, in PTX that names the functions of CUDA's device library: values, order,
//! errors, and one answer for any number of threads and a save in the middle.

use std::sync::Arc;

use crate::common::*;
use lockstep_gpu::{Advance, EngineOptions, Gpu, KernelRecord, Launch, Mode, Options};
use lockstep_isa::Module;
use lockstep_isa::device_runtime::DeviceRuntime;
use lockstep_units::{Cycles, Time};

const MODES: [Mode; 2] = [Mode::Functional, Mode::Timing];

/// Where the arguments of launches lie.
const POOL: u64 = BASE + (512 << 10);

/// Declarations, and `launch(kernel, threads, word, stream)` as a function: `kernel(out, word)` with one block.
const HEAD: &str = "
.version 8.0
.target sm_90
.address_size 64
.extern .func (.param .b64 r) __cudaCDP2GetParameterBufferV2
(.param .b64 f, .param .align 4 .b8 g[12], .param .align 4 .b8 b[12], .param .b32 s);
.extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2(.param .b64 p, .param .b64 s);
.extern .func (.param .b32 r) __cudaCDP2GetLastError();
.extern .func (.param .b32 r) cudaStreamCreateWithFlags(.param .b64 p, .param .b32 f);
.extern .func (.param .b32 r) cudaDeviceGetLimit(.param .b64 p, .param .b32 f);
.func (.param .b32 result) launch
(.param .b64 kernel, .param .b32 threads, .param .b64 out, .param .b32 word, .param .b64 stream)
{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<8>;
    .param .b64 f;
    .param .align 4 .b8 g[12];
    .param .align 4 .b8 b[12];
    .param .b32 s;
    .param .b64 p;
    .param .b32 e;
    ld.param.b64 %rd1, [kernel];
    ld.param.b32 %r1, [threads];
    ld.param.b64 %rd2, [out];
    ld.param.b32 %r2, [word];
    ld.param.b64 %rd3, [stream];
    st.param.b64 [f], %rd1;
    st.param.b32 [g], 1;
    st.param.b32 [g+4], 1;
    st.param.b32 [g+8], 1;
    st.param.b32 [b], %r1;
    st.param.b32 [b+4], 1;
    st.param.b32 [b+8], 1;
    st.param.b32 [s], 0;
    call (p), __cudaCDP2GetParameterBufferV2, (f, g, b, s);
    ld.param.b64 %rd4, [p];
    setp.eq.u64 %p1, %rd4, 0;
    @%p1 bra refused;
    st.u64 [%rd4], %rd2;
    st.u32 [%rd4+8], %r2;
    {
    .param .b64 buffer;
    .param .b64 into;
    st.param.b64 [buffer], %rd4;
    st.param.b64 [into], %rd3;
    call (e), __cudaCDP2LaunchDeviceV2, (buffer, into);
    }
    refused:
    {
    .param .b32 last;
    call (last), __cudaCDP2GetLastError, ();
    ld.param.b32 %r3, [last];
    }
    st.param.b32 [result], %r3;
    ret;
}
// Takes the next place of a list and leaves its word there.
.visible .entry leave(.param .u64 out, .param .u32 word)
{
    .reg .b32 %r<8>;
    .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [word];
    atom.global.add.u32 %r2, [%rd1], 1;
    mul.wide.u32 %rd2, %r2, 4;
    add.u64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3+4], %r1;
    ret;
}
";

/// One launch as a statement: the error in `%r9`.
fn call(kernel: &str, threads: &str, word: &str, stream: &str) -> String {
    format!(
        "{{\n.param .b64 k;\n.param .b32 t;\n.param .b64 o;\n.param .b32 w;\n.param .b64 s;\n.param .b32 e;\n\
         mov.u64 %rd8, {kernel};\nst.param.b64 [k], %rd8;\nst.param.b32 [t], {threads};\n\
         st.param.b64 [o], %rd1;\nst.param.b32 [w], {word};\nst.param.b64 [s], {stream};\n\
         call (e), launch, (k, t, o, w, s);\nld.param.b32 %r9, [e];\n}}\n"
    )
}

fn entry(name: &str, body: &str) -> String {
    format!(
        ".visible .entry {name}(.param .u64 out, .param .u32 word) {{\n\
         .reg .pred %p<8>;\n.reg .b32 %r<16>;\n.reg .b64 %rd<16>;\n.local .align 8 .b8 space[16];\n\
         ld.param.u64 %rd1, [out];\nld.param.u32 %r1, [word];\nmov.u32 %r2, %tid.x;\n{body}\nret;\n}}\n"
    )
}

fn module(text: &str) -> Arc<Module> {
    let image = lockstep_frontend::ptx::parse(&format!("{HEAD}{text}"));
    let image = image.unwrap_or_else(|error| panic!("{error}"));
    Arc::new(image.link(&[]).unwrap_or_else(|error| panic!("{error}")))
}

fn options(mode: Mode, threads: usize) -> Options {
    Options {
        mode,
        watchdog: Some(Cycles(3_000_000)),
        engine: EngineOptions {
            threads,
            ..EngineOptions::default()
        },
        ..Options::default()
    }
}

fn machine(mode: Mode, threads: usize) -> Gpu {
    let mut gpu = Gpu::new(&small(3), memory(), options(mode, threads)).unwrap();
    gpu.set_launch_pool(POOL..POOL + (512 << 10));
    gpu
}

fn launch(module: &Arc<Module>, grid: u32, threads: u32, pending: u64) -> Launch {
    let mut launch = Launch::new(module, "test", [grid, 1, 1], [threads, 1, 1]).unwrap();
    launch.arguments = BASE.to_le_bytes().to_vec();
    launch.arguments.extend(1u32.to_le_bytes());
    launch.device_runtime = Some(Arc::new(DeviceRuntime {
        pending_launches: pending,
        limits: [(4, pending)].into(),
        shared_per_block: 48 << 10,
        ..DeviceRuntime::default()
    }));
    launch
}

fn finish(gpu: &mut Gpu) -> Vec<KernelRecord> {
    let mut all = Vec::new();
    while !gpu.is_idle() {
        match gpu.advance(Time::NEVER) {
            Advance::Reached(records) => all.extend(records),
            Advance::Faulted(fault) | Advance::Stuck(fault) => panic!("{fault}"),
        }
    }
    all
}

/// Runs a launch with 1, 2 and 5 threads, and saved in the middle: all give these words and one digest. Gives the
/// records of the last run.
fn check(module: &Arc<Module>, launch: &Launch, expected: &[u32]) -> Vec<KernelRecord> {
    let mut records = Vec::new();
    for mode in MODES {
        let mut reference = None;
        for threads in [1, 2, 5] {
            let mut gpu = machine(mode, threads);
            gpu.launch(launch.clone()).unwrap();
            records = finish(&mut gpu);
            assert_eq!(words(&gpu, BASE, expected.len()), expected, "{mode:?}");
            let root = gpu.digest("gpu").root();
            assert_eq!(*reference.get_or_insert(root), root, "{mode:?} {threads}");
            if threads > 1 {
                continue;
            }
            for part in 1..6 {
                let mut first = machine(mode, 1);
                first.launch(launch.clone()).unwrap();
                first.advance_to(Time(gpu.now().0 / 6 * part)).unwrap();
                let saved = first.save();
                let contents = Arc::new(lockstep_gpu::Contents::anonymous(BASE, SIZE).unwrap());
                let mut second = Gpu::new(&small(3), contents, options(mode, 1)).unwrap();
                second.load(&saved, &|_| Some(module.clone())).unwrap();
                finish(&mut second);
                assert_eq!(second.digest("gpu").root(), root, "{mode:?} saved");
            }
        }
    }
    records
}

#[test]
fn launches_of_a_thread_follow_each_other_and_tails_come_last() {
    let body = call("leave", "1", "70", "3")
        + &call("leave", "1", "10", "0")
        + &call("leave", "1", "20", "0")
        + &call("leave", "1", "80", "3")
        + &call("leave", "1", "30", "0");
    let module = module(&entry("test", &body));
    let launch = launch(&module, 1, 1, 100);
    let records = check(&module, &launch, &[5, 10, 20, 30, 70, 80]);
    assert_eq!(records.len(), 6);
    // A kernel is complete when what it launched is.
    let parent = records.last().unwrap();
    assert_eq!((parent.launch.0, parent.launched_by), (0, None));
    assert!(parent.end < parent.complete);
    for child in &records[..5] {
        assert_eq!(child.kernel, "leave");
        assert!(
            child
                .launched_by
                .is_some_and(|by| by.parent.0 == 0 && by.root.0 == 0)
        );
        assert!(child.start > parent.start && child.end <= parent.complete);
    }
}

#[test]
fn a_child_sees_what_its_thread_wrote_before_the_launch() {
    // Weakly, strongly, and with an atomic that nobody waits for.
    let reads = "ld.global.u32 %r3, [%rd1+64];\nld.global.u32 %r4, [%rd1+68];\nld.global.u32 %r5, [%rd1+72];\n\
                 add.u32 %r3, %r3, %r4;\nadd.u32 %r3, %r3, %r5;\nst.global.u32 [%rd1], %r3;";
    let writes = "st.global.u32 [%rd1+64], 1;\nst.relaxed.gpu.global.u32 [%rd1+68], 20;\n\
                  red.global.add.u32 [%rd1+72], 300;\n";
    let body = writes.to_owned() + &call("reads", "1", "0", "4");
    let module = module(&(entry("reads", reads) + &entry("test", &body)));
    check(&module, &launch(&module, 1, 1, 100), &[321]);
}

#[test]
fn grids_launch_grids_until_the_pool_is_full() {
    // Each leaves its depth and launches the next; the last one leaves its error.
    let body = "add.u32 %r3, %r1, 1;\nst.global.u32 [%rd1], %r1;\n".to_owned()
        + &call("test", "1", "%r3", "4")
        + "setp.eq.u32 %p1, %r9, 0;\n@%p1 bra done;\nst.global.u32 [%rd1+4], %r9;\ndone:";
    let module = module(&entry("test", &body));
    let records = check(&module, &launch(&module, 1, 1, 40), &[41, 69]);
    assert_eq!(records.len(), 41);
}

#[test]
fn what_the_pool_does_not_hold_is_refused() {
    // Tail launches all wait; each thread counts those that were refused, by error.
    let body = call("leave", "1", "%r2", "3")
        + "setp.ne.u32 %p1, %r9, 69;\n@%p1 bra done;\nred.global.add.u32 [%rd1+1024], 1;\ndone:";
    let module = module(&entry("test", &body));
    let launch = launch(&module, 2, 64, 100);
    for mode in MODES {
        let mut gpu = machine(mode, 2);
        gpu.launch(launch.clone()).unwrap();
        assert_eq!(finish(&mut gpu).len(), 101);
        let counted = (word(&gpu, BASE), word(&gpu, BASE + 1024));
        assert_eq!(counted, (100, 28), "{mode:?}");
    }
}

#[test]
fn a_bad_shape_is_the_last_error_of_its_thread_alone() {
    let body = "setp.eq.u32 %p2, %r2, 5;\nselp.u32 %r3, 2000, 32, %p2;\n".to_owned()
        + &call("nothing", "%r3", "0", "4")
        + "mul.wide.u32 %rd2, %r2, 4;\nadd.u64 %rd3, %rd1, %rd2;\nst.global.u32 [%rd3], %r9;";
    let module = module(&(entry("nothing", "") + &entry("test", &body)));
    let expected: Vec<u32> = (0..8).map(|lane| if lane == 5 { 9 } else { 0 }).collect();
    let records = check(&module, &launch(&module, 1, 8, 100), &expected);
    assert_eq!(records.len(), 8);
}

#[test]
fn answers_are_written_where_a_pointer_says() {
    let body = "mov.u64 %rd2, space;\ncvta.local.u64 %rd3, %rd2;\n\
        {\n.param .b64 p;\n.param .b32 f;\n.param .b32 e;\nst.param.b64 [p], %rd3;\nst.param.b32 [f], 4;\n\
        call (e), cudaDeviceGetLimit, (p, f);\nld.param.b32 %r3, [e];\n}\n\
        ld.local.u64 %rd4, [%rd2];\nst.global.u32 [%rd1], %r3;\nst.global.u32 [%rd1+4], %rd4;\n\
        {\n.param .b64 p;\n.param .b32 f;\n.param .b32 e;\nadd.u64 %rd5, %rd1, 64;\nst.param.b64 [p], %rd5;\n\
        st.param.b32 [f], 0;\ncall (e), cudaStreamCreateWithFlags, (p, f);\nld.param.b32 %r3, [e];\n}\n\
        st.global.u32 [%rd1+8], %r3;";
    let module = module(&entry("test", body));
    check(&module, &launch(&module, 1, 1, 77), &[0, 77, 0]);
}
