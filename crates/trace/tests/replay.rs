//! A kernel is traced, its trace written and read, and replayed: it counts what the kernel itself counts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use lockstep_config::GpuConfig;
use lockstep_frontend::sass::Image;
use lockstep_gpu::{
    Contents, EngineOptions, Gpu, KernelRecord, Launch, LaunchId, Mode, Options, TraceSink,
};
use lockstep_isa::Module;
use lockstep_isa::trace::WarpTrace;
use lockstep_trace::scan::PAGE;
use lockstep_trace::{KernelHeader, TraceWriter, TracedProgram, module_of, read_spelling, scan};
use lockstep_units::{Cycles, Time};

const CUBIN: &[u8] = include_bytes!("../../gpu/tests/sass/mix.sm_90.cubin");
const BASE: u64 = 0x2000_0000_0000;
const SIZE: u64 = 1 << 30;
const GRID: [u32; 3] = [80, 1, 1];
const BLOCK: [u32; 3] = [160, 1, 1];

/// Keeps what blocks executed.
#[derive(Debug, Default)]
struct Blocks(Mutex<BTreeMap<u64, Vec<WarpTrace>>>);

impl TraceSink for Blocks {
    fn wants(&self, _: LaunchId) -> bool {
        true
    }

    fn block(&self, _: LaunchId, block: u64, warps: Vec<WarpTrace>) {
        self.0.lock().unwrap().insert(block, warps);
    }
}

fn config() -> GpuConfig {
    let settings = [
        "device.sms=2",
        "l2.slices=4",
        "l2.capacity=\"20 MiB\"",
        "dram.channels=4",
    ];
    lockstep_config::load(Some("h200"), &settings).unwrap()
}

fn gpu(mode: Mode, threads: usize, tracer: Option<Arc<Blocks>>) -> Gpu {
    let contents = Contents::anonymous(BASE, SIZE).unwrap();
    contents.map(BASE..BASE + (64 << 20)).unwrap();
    gpu_with(contents, mode, threads, tracer)
}

fn gpu_with(contents: Contents, mode: Mode, threads: usize, tracer: Option<Arc<Blocks>>) -> Gpu {
    let options = Options {
        mode,
        engine: EngineOptions {
            threads,
            ..EngineOptions::default()
        },
        watchdog: Some(Cycles(5_000_000)),
        tracer: tracer.map(|tracer| tracer as _),
        ..Options::default()
    };
    Gpu::new(&config(), Arc::new(contents), options).unwrap()
}

fn module() -> Arc<Module> {
    Arc::new(Image::read(CUBIN).unwrap().link(&[]).unwrap())
}

fn launch(module: &Arc<Module>) -> Launch {
    let mut launch = Launch::new(module, "mix", GRID, BLOCK).unwrap();
    launch.arguments.extend(BASE.to_le_bytes());
    launch.arguments.extend((BASE + (512 << 10)).to_le_bytes());
    launch.arguments.extend(12_345u32.to_le_bytes());
    launch
}

fn run(gpu: &mut Gpu, launch: Launch) -> KernelRecord {
    let id = gpu.launch(launch).unwrap();
    gpu.run_until_complete(id).unwrap()
}

/// Writes the trace of the kernel into a folder; what the traced run counted, and the file.
fn traced(folder: &Path) -> (KernelRecord, PathBuf, u64) {
    let blocks = Arc::new(Blocks::default());
    let module = module();
    let record = run(
        &mut gpu(Mode::Functional, 1, Some(blocks.clone())),
        launch(&module),
    );
    let writer = TraceWriter::create(folder).unwrap();
    let header = KernelHeader {
        name: "mix".into(),
        id: 1,
        grid: GRID,
        block: BLOCK,
        registers: module.kernels[0].registers,
        binary_version: 90,
        version: 5,
        ..KernelHeader::default()
    };
    let code: Vec<_> = (0..module.code.len() as u32)
        .map(|index| read_spelling(16 * u64::from(index), &module.text(index).unwrap()))
        .collect();
    writer.begin_kernel(&header);
    for (block, warps) in blocks.0.lock().unwrap().iter().rev() {
        writer.block(1, *block, &code, warps);
    }
    writer.end_kernel(1);
    let (_, lines) = writer.finish().unwrap();
    (record, folder.join("kernel-1.traceg"), lines)
}

fn program(path: &Path) -> TracedProgram {
    let scanned = scan(path).unwrap();
    let pages = scanned.pages.iter().map(|page| (*page, *page)).collect();
    assert!(scanned.pages.iter().all(|page| *page >= BASE / PAGE));
    module_of(path, scanned, Arc::new(pages)).unwrap()
}

fn replayed(program: TracedProgram) -> Launch {
    let module = Arc::new(program.module);
    let mut launch = Launch::new(&module, "mix", GRID, BLOCK).unwrap();
    launch.config.dynamic_shared = program.dynamic_shared;
    launch
}

#[test]
fn a_trace_has_what_was_executed_and_its_replay_counts_the_same() {
    let folder = std::env::temp_dir().join(format!("lockstep-replay-{}", std::process::id()));
    let (functional, path, lines) = traced(&folder);
    assert_eq!(lines, functional.counters.inst_executed);
    let direct = run(&mut gpu(Mode::Timing, 1, None), launch(&module()));
    let record = run(&mut gpu(Mode::Timing, 1, None), replayed(program(&path)));
    let counts = |record: &KernelRecord| {
        let counters = &record.counters;
        [
            counters.inst_executed,
            counters.thread_inst_executed_pred_on,
            counters.warps_launched,
            counters.l1_sectors,
        ]
    };
    assert_eq!(counts(&record), counts(&direct));
    // Control has lines for what hardware issues again besides, which the direct run counts in no class.
    let classes = |record: &KernelRecord| {
        let [fp32, fp64, integer, _, load_store, other] = record.counters.mix;
        [fp32, fp64, integer, load_store, other]
    };
    assert_eq!(classes(&record), classes(&direct));
    let ratio = record.cycles() as f64 / direct.cycles() as f64;
    assert!(
        (0.7..1.4).contains(&ratio),
        "{} and {}",
        record.cycles(),
        direct.cycles()
    );
    // Threads do not show.
    let threads = run(&mut gpu(Mode::Timing, 2, None), replayed(program(&path)));
    assert_eq!(threads, record);
    saved_in_the_middle(&path, &record);
    std::fs::remove_dir_all(&folder).unwrap();
}

/// A replay that is saved and loaded ends as one that is not.
fn saved_in_the_middle(path: &Path, expected: &KernelRecord) {
    let mut first = gpu(Mode::Timing, 1, None);
    let id = first.launch(replayed(program(path))).unwrap();
    first.advance_to(Time(expected.end.0 / 2)).unwrap();
    let saved = first.save();
    // Allocations come with the state, and the trace is opened anew.
    let contents = Contents::anonymous(BASE, SIZE).unwrap();
    let mut second = gpu_with(contents, Mode::Timing, 1, None);
    let module = replayed(program(path)).module;
    second.load(&saved, &|_| Some(module.clone())).unwrap();
    assert!(second.save() == saved, "what is loaded is what was saved");
    let record = second.run_until_complete(id).unwrap();
    assert_eq!(&record, expected);
}
