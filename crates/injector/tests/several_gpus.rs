//! One process on several GPUs: what each of them did is told apart, in every mode and by the sampler
//! of a node.

mod support;

use std::collections::BTreeMap;

use support::Bench;
use support::daemon::{Daemon, page, program_of_user};

const GPUS: u64 = 4;

const SAMPLED: &str = "interval = \"1 ms\"\ncounters = [\"inst_executed\", \"warps_launched\"]\ngauges.interval = \"20 ms\"\n";

/// The UUID of a fake GPU.
fn uuid(gpu: u64) -> String {
    format!("GPU-face0000-0000-0000-0000-{gpu:012x}")
}

/// A bench with several GPUs, and a program that gives each of them more to do than the one before.
fn bench() -> (Bench, Vec<String>) {
    let mut bench = Bench::new();
    bench.set("FAKE_GPU_COUNT", &GPUS.to_string());
    let mut steps: Vec<String> = (0..GPUS).map(|gpu| format!("context {gpu}")).collect();
    // Every second GPU runs a kernel that the others run, too.
    steps.extend((0..GPUS).map(|gpu| {
        let blocks = 100 * (gpu + 1);
        format!(
            "launch {gpu} 7 kernel_{} {blocks} 128 10 2000000 5",
            gpu % 2
        )
    }));
    steps.push("sync".to_owned());
    (bench, steps)
}

/// Warps that GPUs were given, by UUID.
fn warps() -> BTreeMap<String, u64> {
    let given = (0..GPUS).map(|gpu| (uuid(gpu), 100 * (gpu + 1) * 4 * 5));
    given.collect()
}

#[test]
fn a_process_is_tagged_by_gpu_in_every_mode() {
    for mode in ["sampled", "exact"] {
        let (mut bench, steps) = bench();
        let metadata = bench.metadata(&format!("mode = \"{mode}\"\n{SAMPLED}"));
        let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
        bench.run_well(&steps);
        let collected = bench.collect(&metadata);
        let by_gpu = |key: &lockstep_attribution::Key| key.gpu.to_string();
        assert_eq!(
            collected.totals("warps_launched", by_gpu),
            warps(),
            "{mode}"
        );
        let instructions = collected.totals("inst_executed", by_gpu);
        for (gpu, count) in warps() {
            assert_eq!(instructions[&gpu], 10 * count, "{mode}: {gpu}");
        }
        let launches = collected.launches(by_gpu);
        assert!(launches.values().all(|count| *count == 5), "{launches:?}");
        assert_eq!(launches.len() as u64, GPUS);
        let kernel = |key: &lockstep_attribution::Key| format!("{} {}", key.gpu, key.kernel);
        let kernels = collected.totals("warps_launched", kernel);
        assert_eq!(
            kernels[&format!("{} kernel_1", uuid(3))],
            8000,
            "{kernels:?}"
        );
        let indices = collected.collector.gpu_indices();
        for gpu in 0..GPUS {
            assert_eq!(indices[uuid(gpu).as_str()], gpu as u32);
            let read = &collected.rows.gauges;
            assert!(
                read.iter().any(|row| *row.gpu == *uuid(gpu)),
                "gauges of each"
            );
        }
        assert_eq!(bench.segment_count(), 0);
    }
}

#[test]
fn the_sampler_of_a_node_serves_every_gpu() {
    let (mut bench, steps) = bench();
    let shared = bench.folder.join("device");
    bench.set("FAKE_GPU_SHARED", shared.to_str().unwrap());
    let daemon = Daemon::start(&bench, &["--prometheus", "127.0.0.1:0", "--ignore-dcgm"]);
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    let mut child = program_of_user(&bench, &steps);
    assert!(child.env("SLURM_JOB_ID", "5").status().unwrap().success());
    let counted = |page: &str| {
        let all = page::values(page).into_iter();
        let warps = all.filter(|(key, _)| key.starts_with("lockstep_gpu_warps_launched_total{"));
        let mut by_gpu: BTreeMap<String, u64> = BTreeMap::new();
        for (key, value) in warps {
            let uuid = key
                .split("UUID=\"")
                .nth(1)
                .unwrap()
                .split('"')
                .next()
                .unwrap();
            *by_gpu.entry(uuid.to_owned()).or_default() += value as u64;
        }
        by_gpu
    };
    let page = daemon.wait_for("every GPU", |page| counted(page) == warps());
    for gpu in 0..GPUS {
        let labels = format!("{{gpu=\"{gpu}\",UUID=\"{}\"", uuid(gpu));
        assert!(
            page.contains(&format!("DCGM_FI_DEV_POWER_USAGE{labels}")),
            "{page}"
        );
    }
    daemon.kill();
    bench.no_complaints();
}
