//! The page that says which calls of NVML are answered, made from the code: the list of names, and
//! the functions that chapters define.

use crate::coverage::files;
use crate::project;
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The page.
pub fn page() -> Result<String> {
    let root = project::root();
    let list = root.join("crates/interpose/api/nvml.txt");
    let text = std::fs::read_to_string(&list).with_context(|| project::shown(&list))?;
    let names: BTreeSet<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let answered = answered()?;
    let mut page = format!(
        "# Calls of NVML\n\n`libnvidia-ml.so.1` has the {} names of the header of CUDA 13.4. The {} of this table are \
         answered from the simulated GPU, in the chapter of `crates/interpose/src/nvml` that is named beside them. \
         All others answer `NVML_ERROR_NOT_SUPPORTED` once the library is initialised: no model knows what they ask \
         for, or they would change a GPU.\n\n| call | chapter |\n|---|---|\n",
        names.len(),
        answered.len()
    );
    for (name, chapter) in &answered {
        anyhow::ensure!(
            names.contains(name.as_str()),
            "{name} is defined and not listed in {}",
            project::shown(&list)
        );
        writeln!(page, "| `{name}` | {chapter} |")?;
    }
    Ok(page)
}

/// Names that a chapter defines, with the chapter.
fn answered() -> Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for path in files(&project::root().join("crates/interpose/src/nvml"))? {
        let chapter = path.file_stem().and_then(|stem| stem.to_str());
        let chapter = chapter.unwrap_or("?").to_owned();
        for line in std::fs::read_to_string(&path)?.lines() {
            for name in defined(line) {
                found.insert(name.to_owned(), chapter.clone());
            }
        }
    }
    Ok(found)
}

/// The names that a line defines: of a function, and of an older one that does the same.
fn defined(line: &str) -> Vec<&str> {
    let exported = line.split_once("export_name = \"lockstep_");
    let line = match (line.trim_start().strip_prefix("fn "), exported) {
        (Some(rest), _) => rest.split(['[', '(']).next().unwrap_or(rest),
        (None, Some((_, rest))) => rest.split('"').next().unwrap_or(rest),
        (None, None) => "",
    };
    let names = line.split('|').map(str::trim);
    names.filter(|name| name.starts_with("nvml")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_found_in_all_their_forms() {
        assert_eq!(defined("    fn nvmlInit() {"), ["nvmlInit"]);
        assert_eq!(
            defined("    fn nvmlA_v2 | nvmlA [library] (count: Out<u32>) {"),
            ["nvmlA_v2", "nvmlA"]
        );
        assert_eq!(
            defined("#[unsafe(export_name = \"lockstep_nvmlErrorString\")]"),
            ["nvmlErrorString"]
        );
        assert!(defined("fn clock(device: Device) -> u32 {").is_empty());
    }

    #[test]
    fn what_monitoring_programs_ask_for_is_answered() {
        let answered = answered().expect("chapters");
        // NCCL, PyTorch, gpustat and nvitop cannot do without these.
        for name in [
            "nvmlInit_v2",
            "nvmlShutdown",
            "nvmlErrorString",
            "nvmlDeviceGetCount_v2",
            "nvmlDeviceGetHandleByIndex_v2",
            "nvmlDeviceGetHandleByPciBusId_v2",
            "nvmlDeviceGetHandleByUUID",
            "nvmlDeviceGetIndex",
            "nvmlDeviceGetName",
            "nvmlDeviceGetUUID",
            "nvmlDeviceGetPciInfo_v3",
            "nvmlDeviceGetMemoryInfo",
            "nvmlDeviceGetMemoryInfo_v2",
            "nvmlDeviceGetComputeRunningProcesses_v3",
            "nvmlDeviceGetCudaComputeCapability",
            "nvmlDeviceGetP2PStatus",
            "nvmlDeviceGetNvLinkState",
            "nvmlDeviceGetNvLinkCapability",
            "nvmlDeviceGetFieldValues",
            "nvmlDeviceGetGpuFabricInfoV",
            "nvmlSystemGetConfComputeState",
        ] {
            assert!(answered.contains_key(name), "{name}");
        }
        for name in ["nvmlDeviceGetPowerUsage", "nvmlDeviceGetTemperature"] {
            assert!(!answered.contains_key(name), "{name}");
        }
        assert!(page().expect("a page").contains("| `nvmlInit` | system |"));
    }
}
