//! Managed memory on the GPU: the same values, the right faults, one answer.

use std::sync::Arc;

use crate::common::*;
use lockstep_config::GpuConfig;
use lockstep_gpu::{Advance, Advice, Contents, EngineOptions, Gpu, Mode, Options, Schedule};
use lockstep_isa::Module;
use lockstep_isa::memory::{AtomicOperation, AtomicType, Space};
use lockstep_units::{Cycles, Time};

/// 12 MiB, one page a thread.
const BYTES: u64 = 12 << 20;
const BLOCKS: u32 = 48;
const THREADS: u32 = 64;

/// Every thread reads and writes its own page, counts in a page that all share, and reads a page
/// of another thread.
fn toucher() -> Arc<Module> {
    let mut k = Assembler::new();
    let [thread, own, value, other, sum] = k.regs();
    k.thread(thread);
    k.shl(own, thread, imm(12));
    k.load(value, Space::Global, BASE, own, WEAK);
    k.add(value, value, thread);
    k.store(Space::Global, BASE + 8, own, value, WEAK);
    k.atomic(
        None,
        Space::Global,
        AtomicOperation::Add,
        AtomicType::U32,
        BASE + 64,
        imm(0),
        &[value.into()],
        RELAXED,
    );
    k.mul(other, thread, imm(7));
    k.and(other, other, imm(2047));
    k.shl(other, other, imm(12));
    k.load(sum, Space::Global, BASE + 16, other, WEAK);
    k.add(sum, sum, value);
    k.store(Space::Global, BASE + 32, own, sum, WEAK);
    k.finish()
}

fn config(settings: &[&str]) -> GpuConfig {
    let mut all = vec![
        "device.sms=4".to_owned(),
        "l2.slices=4".to_owned(),
        "l2.capacity=\"20 MiB\"".to_owned(),
        "dram.channels=4".to_owned(),
        "uvm.fault.service=\"serial\"".to_owned(),
        "uvm.walk.mode=\"fixed\"".to_owned(),
        "uvm.walk.walkers=0".to_owned(),
        "uvm.prefetch.policy=\"tree\"".to_owned(),
        "uvm.prefetch.oversubscribed=\"tree\"".to_owned(),
        "uvm.link.profile=\"pcie-3\"".to_owned(),
    ];
    all.extend(settings.iter().map(|text| (*text).to_owned()));
    lockstep_config::load(Some("h200"), &all).unwrap()
}

fn contents() -> Arc<Contents> {
    let contents = Contents::anonymous(BASE, SIZE).unwrap();
    contents.map(BASE..BASE + BYTES).unwrap();
    for page in 0..BYTES / 4096 {
        let word = (page as u32).wrapping_mul(2_654_435_761);
        contents.write(BASE + page * 4096, &word.to_le_bytes());
        contents.write(BASE + page * 4096 + 16, &word.to_le_bytes());
    }
    Arc::new(contents)
}

fn options(managed: bool, engine: EngineOptions) -> Options {
    Options {
        mode: Mode::Timing,
        engine,
        watchdog: Some(Cycles(4_000_000_000)),
        managed: managed.then_some(BASE..BASE + SIZE),
        ..Options::default()
    }
}

fn new_gpu(settings: &[&str], managed: bool, engine: EngineOptions) -> Gpu {
    let options = options(managed, engine);
    let mut gpu = Gpu::new(&config(settings), contents(), options).unwrap();
    if managed {
        gpu.managed_map(BASE, BYTES);
        // The host wrote it.
        gpu.managed_populated(BASE, BYTES);
    }
    gpu
}

fn start(gpu: &mut Gpu) {
    let module = toucher();
    for _ in 0..2 {
        gpu.launch(launch(&module, BLOCKS, THREADS, &[])).unwrap();
    }
}

fn finish(gpu: &mut Gpu) {
    while !gpu.is_idle() {
        if let Advance::Faulted(fault) = gpu.advance(Time::NEVER) {
            panic!("{fault}");
        }
    }
}

fn complete(settings: &[&str], managed: bool) -> Gpu {
    let mut gpu = new_gpu(settings, managed, EngineOptions::default());
    start(&mut gpu);
    finish(&mut gpu);
    gpu
}

#[test]
fn values_do_not_depend_on_where_pages_are() {
    let expected = complete(&[], false).memory_digest();
    for settings in [
        &[][..],
        &[
            "uvm.prefetch.policy=\"none\"",
            "uvm.fault.service=\"additive\"",
        ],
        &[
            "uvm.prefetch.policy=\"random\"",
            "uvm.fault.service=\"additive\"",
        ],
        &[
            "uvm.fault.service=\"batch\"",
            "uvm.prefetch.policy=\"tree-driver\"",
        ],
        &[
            "uvm.fault.service=\"calibrated\"",
            "uvm.walk.mode=\"levels\"",
            "uvm.walk.walkers=4",
        ],
        &["uvm.fault.mode=\"stall-sm\""],
        &["uvm.tlb.entries=8", "uvm.tlb.ways=2", "uvm.tlb.mshrs=4"],
        &["uvm.tlb.l2-entries=64", "uvm.promotion=true"],
        &["uvm.zero-copy.mode=\"always\""],
        &["uvm.oversubscription=150", "uvm.fault.service=\"additive\""],
        &[
            "uvm.oversubscription=150",
            "uvm.evict.policy=\"lru-4k\"",
            "uvm.evict.clean=\"drop\"",
        ],
        &[
            "uvm.oversubscription=125",
            "uvm.evict.policy=\"tree\"",
            "uvm.tlb.shootdown=\"entry\"",
        ],
    ] {
        let gpu = complete(settings, true);
        assert_eq!(gpu.memory_digest(), expected, "{settings:?}");
        let stats = gpu.managed_stats().unwrap();
        let used = stats.far_faults.get() + stats.remote_reads.get();
        assert!(used > 0, "{settings:?}");
    }
}

/// Sums a statistic of all slices.
fn slices(gpu: &Gpu, name: &str) -> u64 {
    let mut table = lockstep_stats::Table::default();
    gpu.statistics("gpu", &mut table);
    let rows = table.rows().into_iter();
    let own = rows.filter(|row| row.component.contains("/slice/") && row.name == name);
    own.map(|row| row.value.to_string().parse::<u64>().unwrap())
        .sum()
}

#[test]
fn migrations_pass_through_device_memory() {
    let plain = complete(&[], false);
    let managed = complete(&[], true);
    let more = slices(&managed, "written_sectors") - slices(&plain, "written_sectors");
    assert_eq!(more, BYTES / 32, "every page is written as it comes");
    // All of it fits L2, but for a set that is full now and then: what came need not be read from
    // DRAM.
    let [before, now] = [&plain, &managed].map(|gpu| slices(gpu, "dram_read"));
    assert!(before > 100_000 && now < before / 100, "{before} {now}");
    let short = complete(&["uvm.oversubscription=150"], true);
    let stats = short.managed_stats().unwrap();
    let back = stats.written_back.get() + stats.clean_back.get();
    let read = slices(&short, "read_sectors") - slices(&managed, "read_sectors");
    assert!(
        back > 0 && read >= back / 32,
        "{back} bytes, {read} sectors"
    );
}

#[test]
fn every_evictor_leaves_the_right_values() {
    let expected = complete(&[], false).memory_digest();
    for evictor in lockstep_uvm::EVICTORS {
        for percent in [110, 125, 150] {
            let policy = format!("uvm.evict.policy=\"{}\"", evictor.name);
            let short = format!("uvm.oversubscription={percent}");
            let settings = [policy.as_str(), &short, "uvm.fault.service=\"additive\""];
            let gpu = complete(&settings, true);
            assert_eq!(gpu.memory_digest(), expected, "{settings:?}");
            let stats = gpu.managed_stats().unwrap();
            assert!(stats.evicted.get() > 0, "{settings:?}");
        }
    }
}

#[test]
fn faults_of_a_whole_gpu_are_those_of_the_arithmetic() {
    for (policy, least, most) in [
        ("none", 3072, 3072),
        ("random", 2050, 2210),
        ("sequential-local", 192, 211),
        // Six a tree in order; seventeen where every other block comes first.
        ("tree", 36, 102),
    ] {
        let setting = format!("uvm.prefetch.policy=\"{policy}\"");
        let gpu = complete(&[&setting, "uvm.fault.service=\"additive\""], true);
        let stats = gpu.managed_stats().unwrap();
        let faults = stats.far_faults.get();
        assert!((least..=most).contains(&faults), "{policy}: {faults}");
        assert_eq!(stats.demand.get() + stats.prefetch.get(), BYTES, "{policy}");
    }
}

#[test]
fn threads_jumping_and_saving_do_not_show() {
    for settings in [
        &["uvm.fault.service=\"serial\"", "uvm.oversubscription=125"][..],
        &["uvm.fault.service=\"batch\"", "uvm.fault.latency=\"9 us\""],
    ] {
        let expected = complete(settings, true).digest("gpu");
        for (threads, jumping) in [(2, true), (5, true), (1, false), (3, false)] {
            let engine = EngineOptions {
                threads,
                jumping,
                schedule: Schedule::Dynamic,
                ..EngineOptions::default()
            };
            let mut gpu = new_gpu(settings, true, engine);
            start(&mut gpu);
            finish(&mut gpu);
            let got = gpu.digest("gpu");
            assert_eq!(
                got.root(),
                expected.root(),
                "{settings:?} {threads} {jumping}: {:?}",
                expected.differences(&got)
            );
        }
        let end = complete(settings, true).now();
        let module = toucher();
        let mut random = Random(5);
        for _ in 0..6 {
            let at = Time(random.below(end.0));
            let mut first = new_gpu(settings, true, EngineOptions::default());
            start(&mut first);
            while first.now() < at {
                first.advance(at);
            }
            let saved = first.save();
            let engine = EngineOptions {
                threads: 2,
                ..EngineOptions::default()
            };
            let empty = Arc::new(Contents::anonymous(BASE, SIZE).unwrap());
            let mut second = Gpu::new(&config(settings), empty, options(true, engine)).unwrap();
            second.load(&saved, &|_| Some(module.clone())).unwrap();
            assert_eq!(second.save(), saved, "what is loaded is what was saved");
            finish(&mut second);
            assert_eq!(
                second.digest("gpu").root(),
                expected.root(),
                "{settings:?} at {at}"
            );
        }
    }
}

#[test]
fn a_prefetch_and_the_hosts_accesses_take_their_time() {
    let mut gpu = new_gpu(&[], true, EngineOptions::default());
    gpu.managed_prefetch(1, BASE, BYTES, true, Time::ZERO)
        .unwrap();
    assert!(!gpu.is_idle());
    finish(&mut gpu);
    let done = gpu.managed_done(1).unwrap();
    // Six transfers of 2 MiB at 172 us each, after 85 us until the host has begun.
    assert!(
        (1085..1185).contains(&(done.nanoseconds() / 1000)),
        "{done}"
    );
    assert!(gpu.managed_changed() && !gpu.managed_changed());
    assert_eq!(
        gpu.managed_resident_pages(BASE + 4096, BYTES),
        [(BASE + 4096, BYTES - 4096)]
    );
    start(&mut gpu);
    while !gpu.is_idle() {
        gpu.advance(Time::NEVER);
    }
    assert_eq!(gpu.managed_stats().unwrap().far_faults.get(), 0);
    gpu.managed_host_access(2, BASE + 8192, 8, true, gpu.now())
        .unwrap();
    finish(&mut gpu);
    assert!(gpu.managed_done(2).is_some() && !gpu.managed_resident(BASE + 8192));
    assert!(gpu.managed_resident(BASE + (1 << 20)));
    gpu.managed_flush(3, gpu.now()).unwrap();
    finish(&mut gpu);
    assert!(gpu.managed_done(3).is_some() && !gpu.managed_resident(BASE + (1 << 20)));
}

#[test]
fn advice_keeps_pages_on_the_host() {
    let mut gpu = new_gpu(&[], true, EngineOptions::default());
    gpu.managed_advise(BASE, BYTES, Advice::PreferredHost);
    start(&mut gpu);
    finish(&mut gpu);
    let stats = gpu.managed_stats().unwrap();
    assert_eq!((stats.far_faults.get(), stats.transfers.get()), (0, 0));
    assert!(stats.remote_reads.get() > 0 && stats.remote_writes.get() > 0);
    assert_eq!(gpu.memory_digest(), complete(&[], false).memory_digest());
}

#[test]
fn plain_memory_is_not_slowed_down() {
    let plain = complete(&[], false);
    let mut gpu = Gpu::new(
        &config(&[]),
        contents(),
        options(true, EngineOptions::default()),
    )
    .unwrap();
    start(&mut gpu);
    finish(&mut gpu);
    // Addresses outside every managed allocation are always there, after a walk; a GPU whose
    // managed addresses lie elsewhere does not even look.
    let mut options = options(true, EngineOptions::default());
    options.managed = Some(0x2c00_0000_0000..0x3000_0000_0000);
    let mut elsewhere = Gpu::new(&config(&[]), contents(), options).unwrap();
    start(&mut elsewhere);
    finish(&mut elsewhere);
    // Only the links to and from the GMMU exist there and not in the other.
    let differences = elsewhere.digest("gpu").differences(&plain.digest("gpu"));
    let paths: Vec<_> = differences.iter().map(|one| one.path.as_str()).collect();
    let links = ["gpu/link/answer", "gpu/link/forget", "gpu/link/translate"];
    assert_eq!(paths, links);
    assert!(differences.iter().all(|one| one.second.is_none()));
}

#[test]
fn a_fault_leaves_pages_where_they_are() {
    let mut gpu = new_gpu(&[], true, EngineOptions::default());
    start(&mut gpu);
    gpu.advance(Time(500_000_000_000));
    gpu.abort().unwrap();
    assert!(gpu.is_idle());
    start(&mut gpu);
    finish(&mut gpu);
    assert!(gpu.managed_resident(BASE));
}

/// A run that mostly waits for faults costs a tenth with jumps, and nobody can tell.
#[test]
fn jumping_over_faults_saves_nine_tenths_of_the_work() {
    let run = |jumping: bool| {
        let engine = EngineOptions {
            jumping,
            ..EngineOptions::default()
        };
        let mut gpu = new_gpu(&["uvm.prefetch.policy=\"none\""], true, engine);
        let module = toucher();
        gpu.launch(launch(&module, 4, THREADS, &[])).unwrap();
        finish(&mut gpu);
        (gpu.digest("gpu").root(), gpu.engine_counters().runs)
    };
    let ((with, few), (without, many)) = (run(true), run(false));
    assert_eq!(with, without);
    assert!(many >= 10 * few, "{many} runs of partitions against {few}");
}
