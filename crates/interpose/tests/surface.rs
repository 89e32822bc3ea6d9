//! The surface: every function that is written is one of CUDA's, and the shims offer all of
//! CUDA's names under the right sonames and symbol versions.

mod support;

use object::{Object, ObjectSymbol};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use support::programs::{core_library, shims};

/// Names that a library exports and begin with `prefix`, without it.
fn exported(path: &Path, prefix: &str) -> BTreeSet<String> {
    let bytes = std::fs::read(path).unwrap();
    let file = object::read::elf::ElfFile64::<object::Endianness>::parse(&*bytes).unwrap();
    file.dynamic_symbols()
        .filter(|symbol| symbol.is_definition())
        .filter_map(|symbol| symbol.name().ok()?.strip_prefix(prefix).map(String::from))
        .collect()
}

fn table(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("api").join(name);
    std::fs::read_to_string(path).unwrap()
}

const SHIMS: &[(&str, usize)] = &[
    ("libcuda.so.1", 600),
    ("libcudart.so.11.0", 390),
    ("libcudart.so.12", 430),
    ("libcudart.so.13", 450),
    ("libnvidia-ml.so.1", 420),
];

#[test]
fn every_function_that_is_written_can_be_reached() {
    let mut reachable = BTreeSet::new();
    for (shim, _) in SHIMS {
        reachable.extend(exported(&shims().join(shim), ""));
    }
    let runtime = table("runtime.txt");
    let targets = runtime
        .split_whitespace()
        .filter_map(|word| word.split_once('='));
    reachable.extend(targets.map(|(_, target)| target.to_string()));
    let mut written = exported(&core_library(), "lockstep_");
    written.retain(|name| !name.starts_with("entries_") && !name.starts_with("unsupported_"));
    let lost: Vec<&String> = written.difference(&reachable).collect();
    assert!(lost.is_empty(), "no entry point leads to {lost:?}");
    let chapters = |prefix: &str| {
        written
            .iter()
            .filter(|name| name.starts_with(prefix))
            .count()
    };
    println!(
        "{} of the runtime, {} in all",
        chapters("cuda") + chapters("__cuda"),
        written.len()
    );
}

#[test]
fn the_shims_offer_all_names_under_their_sonames() {
    for (shim, fewest) in SHIMS {
        let path = shims().join(shim);
        let names = exported(&path, "");
        assert!(names.len() >= *fewest, "{shim}: {}", names.len());
        let text = Command::new("readelf")
            .args(["-d", "-V", "-W"])
            .arg(&path)
            .output();
        let Ok(text) = text else {
            println!("skipped in part: no readelf");
            return;
        };
        let text = String::from_utf8_lossy(&text.stdout).into_owned();
        assert!(text.contains(&format!("soname: [{shim}]")), "{text}");
        let versioned = text.contains(&format!("Name: {shim}"));
        assert_eq!(versioned, shim.starts_with("libcudart"), "{shim}");
    }
}

#[test]
fn old_and_new_entry_points_are_where_their_versions_have_them() {
    let has = |shim: &str, name: &str| exported(&shims().join(shim), "").contains(name);
    assert!(has("libcuda.so.1", "cuMemcpyHtoDAsync_v2_ptsz"));
    assert!(has("libcuda.so.1", "cuCtxCreate_v4"));
    assert!(has("libcudart.so.11.0", "cudaBindTexture"));
    assert!(!has("libcudart.so.13", "cudaBindTexture"));
    assert!(has("libcudart.so.12", "cudaGetDeviceProperties_v2"));
    assert!(!has("libcudart.so.13", "cudaGetDeviceProperties_v2"));
}
