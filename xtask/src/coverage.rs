//! The page that says which CUDA calls are answered, made from the code: the lists of names, the
//! functions that chapters define, and the programs that call them.

use crate::project;
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Calls that answer for a part of what CUDA promises, and what is lacking.
const PARTIAL: &[(&str, &str)] = &[
    (
        "cudaHostRegister",
        "kernels cannot reach the memory; copies are those of pageable memory",
    ),
    (
        "cuMemHostRegister",
        "kernels cannot reach the memory; copies are those of pageable memory",
    ),
    (
        "cudaGraphAddNode",
        "no conditional nodes and no external semaphores",
    ),
    (
        "cuGraphAddNode",
        "no conditional nodes and no external semaphores",
    ),
    (
        "cudaGraphInstantiate",
        "graphs that kernels launch are refused",
    ),
    (
        "cuGraphInstantiate",
        "graphs that kernels launch are refused",
    ),
    (
        "cudaGraphAddMemAllocNode",
        "memory is there from the node's making on",
    ),
    (
        "cuGraphAddMemAllocNode",
        "memory is there from the node's making on",
    ),
    (
        "cudaLaunchHostFunc",
        "the function runs inside the call, once the stream has come to it",
    ),
    (
        "cuLaunchHostFunc",
        "the function runs inside the call, once the stream has come to it",
    ),
    (
        "cudaStreamAddCallback",
        "the callback runs inside the call, once the stream has come to it",
    ),
    (
        "cuStreamAddCallback",
        "the callback runs inside the call, once the stream has come to it",
    ),
    (
        "cuMemCreate",
        "memory of a device, without handles to share",
    ),
    ("cuMemMap", "memory is mapped at one address at a time"),
    (
        "cuMulticastBindMem",
        "all GPUs of the object must have been added; a driver waits for them",
    ),
    (
        "cuMulticastBindAddr",
        "all GPUs of the object must have been added; a driver waits for them",
    ),
    (
        "cudaMemPoolCreate",
        "memory of a device, without handles to share",
    ),
    (
        "cuMemPoolCreate",
        "memory of a device, without handles to share",
    ),
    (
        "cuLinkAddData",
        "one unit of PTX, or machine code; no libraries of objects",
    ),
    (
        "cuLinkAddFile",
        "one unit of PTX, or machine code; no libraries of objects",
    ),
];

/// Where calls are made by programs that are compiled and run as tests.
const TESTS: &[&str] = &["workloads/conformance", "crates/interpose/tests/programs"];

/// One of CUDA's two interfaces.
pub struct Interface {
    /// As CUDA calls it.
    pub title: &'static str,
    /// All its calls, without suffixes.
    pub names: BTreeSet<String>,
    /// Those that are answered.
    pub answered: BTreeSet<String>,
    /// Those that a test calls, with its name.
    pub tests: BTreeMap<String, String>,
}

impl Interface {
    /// How many calls are answered and called by a test.
    pub fn tested(&self) -> usize {
        let answered = |name: &&String| self.answered.contains(*name);
        self.tests.keys().filter(answered).count()
    }
}

/// Both interfaces, from the code.
pub fn interfaces() -> Result<Vec<Interface>> {
    let root = project::root();
    let implemented = implemented(&root.join("crates/interpose/src/api"))?;
    let tests = tests(&root)?;
    [
        ("Runtime API", "crates/interpose/api/runtime.txt"),
        ("Driver API", "crates/interpose/api/driver.txt"),
    ]
    .into_iter()
    .map(|(title, list)| {
        let names = names(&root.join(list))?;
        let answered: BTreeSet<String> = names.intersection(&implemented).cloned().collect();
        let tests = tests
            .iter()
            .filter(|(name, _)| names.contains(*name))
            .map(|(name, test)| (name.clone(), test.clone()))
            .collect();
        Ok(Interface {
            title,
            names,
            answered,
            tests,
        })
    })
    .collect()
}

/// Whether a call is answered; nothing if CUDA has none of that name.
pub fn is_answered(name: &str) -> Result<Option<bool>> {
    Ok(interfaces()?
        .iter()
        .find(|interface| interface.names.contains(name))
        .map(|interface| interface.answered.contains(name)))
}

/// The page.
pub fn page() -> Result<String> {
    let mut page = String::from(
        "# CUDA calls\n\nNames stand without the suffixes of revisions and of the per-thread default stream. \
         A call is *yes* when it is answered as CUDA documents it, *partly* when something is lacking, and *no* \
         when it answers \"operation not supported\" (801) and is listed at the end of the run. The last column \
         names a program that calls it and checks the answer; those of `conformance` are compared with a real H200.\n",
    );
    for interface in interfaces()? {
        write!(
            page,
            "\n## {}\n\n{} names, {} of them answered, {} of these called by a test.\n\n\
             | call | answered | test |\n|---|---|---|\n",
            interface.title,
            interface.names.len(),
            interface.answered.len(),
            interface.tested()
        )?;
        for name in &interface.names {
            let partial = PARTIAL.iter().find(|(partial, _)| partial == name);
            let state = match (interface.answered.contains(name), partial) {
                (false, _) => "no".to_string(),
                (true, None) => "yes".to_string(),
                (true, Some((_, lacking))) => format!("partly: {lacking}"),
            };
            let test = interface.tests.get(name).map_or("", String::as_str);
            writeln!(page, "| `{name}` | {state} | {test} |")?;
        }
    }
    Ok(page)
}

/// A name without the suffixes of its variants.
fn base(name: &str) -> &str {
    let name = name
        .strip_suffix("_ptsz")
        .or(name.strip_suffix("_ptds"))
        .unwrap_or(name);
    match name.rsplit_once("_v") {
        Some((before, digits)) if digits.chars().all(|c| c.is_ascii_digit()) => before,
        _ => name,
    }
}

fn names(list: &Path) -> Result<BTreeSet<String>> {
    let text = std::fs::read_to_string(list).with_context(|| project::shown(list))?;
    Ok(text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_whitespace().next())
        .map(|name| base(name).to_string())
        .collect())
}

/// Calls that a chapter defines.
fn implemented(folder: &Path) -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for path in files(folder)? {
        let text = std::fs::read_to_string(&path)?;
        for line in text.lines() {
            let exported = line
                .split_once("export_name = \"lockstep_")
                .and_then(|(_, rest)| rest.split('"').next());
            let defined = line.trim_start().strip_prefix("fn ");
            for name in exported.into_iter().chain(defined) {
                let end = name
                    .find(|c: char| !c.is_alphanumeric() && c != '_')
                    .unwrap_or(name.len());
                if name.starts_with("cu") || name.starts_with("__cuda") {
                    found.insert(base(&name[..end]).to_string());
                }
            }
        }
    }
    Ok(found)
}

/// For each call the first program that makes it.
fn tests(root: &Path) -> Result<BTreeMap<String, String>> {
    let mut calls = BTreeMap::new();
    for folder in TESTS {
        for path in files(&root.join(folder))? {
            let text = std::fs::read_to_string(&path)?;
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            let stem = stem.unwrap_or("?");
            let label = match *folder {
                "workloads/conformance" => format!("conformance/{stem}"),
                _ => stem.to_string(),
            };
            let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
            for word in words.filter(|word| word.starts_with("cu") || word.starts_with("__cuda")) {
                calls.entry(base(word).to_string()).or_insert(label.clone());
            }
        }
    }
    Ok(calls)
}

/// Files of a folder, by name.
pub fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| project::shown(folder))? {
        let path = entry?.path();
        if path.is_file() {
            all.push(path);
        }
    }
    all.sort();
    Ok(all)
}

#[cfg(test)]
mod tests_of_coverage {
    use super::*;

    #[test]
    fn suffixes_are_of_revisions_and_streams() {
        assert_eq!(base("cuMemcpyHtoD_v2_ptds"), "cuMemcpyHtoD");
        assert_eq!(base("cudaMemcpyAsync_ptsz"), "cudaMemcpyAsync");
        assert_eq!(base("cuCtxCreate_v4"), "cuCtxCreate");
        assert_eq!(base("cuda_value"), "cuda_value");
    }

    #[test]
    fn the_surface_is_wide_enough_for_real_programs() {
        let [runtime, driver] = &interfaces().expect("interfaces")[..] else {
            panic!("two interfaces");
        };
        assert!(runtime.tested() >= 200);
        assert!(driver.tested() >= 180);
        for (name, _) in PARTIAL {
            assert_eq!(is_answered(name).expect("interfaces"), Some(true), "{name}");
        }
        assert_eq!(is_answered("cudaNoSuchCall").expect("interfaces"), None);
        // Table 1 of the work that this one grew from, with the old launch calls.
        for name in [
            "__cudaRegisterFatBinary",
            "__cudaRegisterFunction",
            "cudaMalloc",
            "cudaMemcpy",
            "cudaMemset",
            "cudaConfigureCall",
            "cudaSetupArgument",
            "cudaFree",
            "cudaLaunch",
            "cudaGetLastError",
            "cudaFuncSetCacheConfig",
            "cudaSetDevice",
            "cudaGetDeviceCount",
            "cudaGetDeviceProperties",
            "__cudaRegisterVar",
            "cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
        ] {
            assert!(
                runtime.answered.contains(name) && runtime.tests.contains_key(name),
                "{name}"
            );
        }
    }
}
