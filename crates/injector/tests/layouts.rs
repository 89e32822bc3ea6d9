//! Our layouts against CUPTI's own headers, judged by a C compiler.
//!
//! Headers are looked for in `LOCKSTEP_CUPTI_INCLUDE`, in the CUDA installation and in the Python
//! packages of this checkout. Nothing of them is kept here, so a machine without them skips this.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use lockstep_injector::cupti::layouts::{BLOCKS, RECORDS};
use lockstep_injector::cupti::numbers;

fn headers() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut places: Vec<PathBuf> = std::env::var_os("LOCKSTEP_CUPTI_INCLUDE")
        .map(PathBuf::from)
        .into_iter()
        .collect();
    places.push("/usr/local/cuda/include".into());
    places.push("/usr/local/cuda/extras/CUPTI/include".into());
    for entry in std::fs::read_dir(root.join(".lockstep/venv/lib"))
        .into_iter()
        .flatten()
        .flatten()
    {
        places.push(entry.path().join("site-packages/nvidia/cu13/include"));
    }
    places
        .into_iter()
        .find(|place| place.join("cupti_pmsampling.h").exists() && place.join("cuda.h").exists())
}

#[test]
fn layouts_agree_with_the_headers() {
    let Some(include) = headers() else {
        eprintln!("skipped: no CUPTI headers on this machine");
        return;
    };
    let mut source = String::from(
        "#include <stddef.h>\n#include <cuda.h>\n#include <cupti.h>\n#include <cupti_pmsampling.h>\n\
         #include <cupti_range_profiler.h>\n#include <cupti_profiler_host.h>\n#include <cupti_target.h>\n",
    );
    let mut checks = 0;
    let mut check = |source: &mut String, condition: String| {
        writeln!(source, "_Static_assert({condition}, \"{condition}\");").unwrap();
        checks += 1;
    };
    for block in BLOCKS {
        check(
            &mut source,
            format!("{}_STRUCT_SIZE == {}", block.name, block.size),
        );
    }
    for layout in BLOCKS.iter().chain(RECORDS) {
        for (field, offset) in layout
            .fields
            .iter()
            .filter(|(field, _)| *field != "reserved")
        {
            check(
                &mut source,
                format!("offsetof({}, {field}) == {offset}", layout.name),
            );
        }
    }
    for record in RECORDS.iter().filter(|record| record.size > 0) {
        check(
            &mut source,
            format!("sizeof({}) == {}", record.name, record.size),
        );
    }
    for (name, value) in [
        ("CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel", 307),
        ("CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz", 442),
        ("CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel", 477),
        (
            "CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz",
            478,
        ),
        ("CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx", 652),
        ("CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz", 653),
        ("CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch", 514),
        ("CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz", 515),
        ("CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiate", 513),
        ("CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiate_v2", 578),
        ("CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithFlags", 643),
        ("CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithParams", 656),
        (
            "CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithParams_ptsz",
            657,
        ),
        ("CUPTI_DRIVER_TRACE_CBID_cuGraphExecUpdate", 561),
        ("CUPTI_DRIVER_TRACE_CBID_cuGraphExecUpdate_v2", 696),
        (
            "CUPTI_DRIVER_TRACE_CBID_cuGraphExecKernelNodeSetParams",
            538,
        ),
        (
            "CUPTI_DRIVER_TRACE_CBID_cuGraphExecKernelNodeSetParams_v2",
            692,
        ),
        ("CUPTI_DRIVER_TRACE_CBID_cuGraphExecNodeSetParams", 714),
        ("CUPTI_DRIVER_TRACE_CBID_cuGraphUpload", 580),
        ("CUPTI_DRIVER_TRACE_CBID_cuGraphUpload_ptsz", 581),
        ("CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture", 495),
        ("CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_ptsz", 496),
        ("CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2", 539),
        ("CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2_ptsz", 540),
        ("CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCaptureToGraph", 720),
        (
            "CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCaptureToGraph_ptsz",
            721,
        ),
        ("CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture", 497),
        ("CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture_ptsz", 498),
        ("CUPTI_CBID_RESOURCE_CONTEXT_CREATED", 1),
        ("CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING", 2),
        ("CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL", 10),
        ("CUPTI_PROFILER_TYPE_PM_SAMPLING", 1),
        ("CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL", 1),
        ("CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL", 1),
        ("CUPTI_AutoRange", 1),
        ("CUPTI_KernelReplay", 2),
        ("CUPTI_ERROR_OUT_OF_MEMORY", 8),
        ("CUPTI_ERROR_INSUFFICIENT_PRIVILEGES", 35),
        ("CUPTI_ERROR_HARDWARE_BUSY", 26),
        ("CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED", 39),
        ("CUPTI_ERROR_INVALID_METRIC_NAME", 17),
    ] {
        check(&mut source, format!("{name} == {value}"));
    }
    for (name, number) in numbers::DRIVER_CHANGES {
        let name = format!("CUPTI_DRIVER_TRACE_CBID_{name}");
        check(&mut source, format!("{name} == {number}"));
    }
    let file = std::env::temp_dir().join(format!("lockstep-layouts-{}.c", std::process::id()));
    std::fs::write(&file, source).unwrap();
    let output = Command::new("cc")
        .args(["-std=c11", "-fsyntax-only", "-w", "-I"])
        .arg(&include)
        .arg(&file)
        .output();
    std::fs::remove_file(&file).unwrap();
    match output {
        Ok(output) => assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        ),
        Err(error) => eprintln!("skipped: no C compiler ({error})"),
    }
    assert!(checks > 150, "{checks} facts were compared");
}
