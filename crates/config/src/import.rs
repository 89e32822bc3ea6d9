//! GPU files from the sectioned configurations of others.
//!
//! SST-GPU describes a machine in sections of `key: value` lines. Every key is either mapped to
//! keys of a GPU file, a row of [`KEYS`], or named as not used, with the reason.
//!
//! Start reading at [`import`].

use crate::{ConfigError, load};
use lockstep_units::{Bandwidth, Bytes, Hertz};
use std::collections::BTreeMap;
use std::fmt::Write;

/// What an import made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// A GPU file.
    pub text: String,
    /// Keys that were not used, and why.
    pub unused: Vec<(String, String)>,
}

/// What becomes of a key.
enum Use {
    /// It is the value of this key.
    Is(&'static str),
    /// Other keys are computed from it.
    Taken,
    /// Nothing, for this reason.
    No(&'static str),
}

/// Sections and keys in lower case, without escapes.
const KEYS: &[(&str, &str, Use)] = &[
    ("gpu", "clock", Use::Is("device.clock")),
    ("gpu", "gpu_cores", Use::Is("device.sms")),
    ("gpu", "gpu_l2_parts", Use::Is("l2.slices")),
    ("gpu", "gpu_l2_capacity", Use::Taken),
    ("gpu", "gpu_cpu_latency", Use::Is("copy.latency")),
    ("gpu", "gpu_cpu_bandwidth", Use::Taken),
    (
        "gpu",
        "num_sm_blobs",
        Use::No("how SMs are grouped never changes a result"),
    ),
    ("gpumemory", "clock", Use::Is("dram.clock")),
    ("gpumemory", "capacity", Use::Is("device.memory")),
    ("gpumemory", "hbmstacks", Use::Taken),
    ("gpumemory", "hbmchan", Use::Taken),
    (
        "gpumemory",
        "hbmrows",
        Use::No("rows follow from the capacity"),
    ),
    (
        "gpumemory",
        "memcontrollers",
        Use::No("every channel has its own"),
    ),
    (
        "gpumemory",
        "network_bw",
        Use::No("slices and their channel are one part"),
    ),
    ("gpunetwork", "linkbandwidth", Use::Taken),
    ("gpunetwork", "flit_size", Use::Taken),
    (
        "gpunetwork",
        "latency",
        Use::No("latencies of links include the stages at both ends; see interconnect"),
    ),
    (
        "gpunetwork",
        "bandwidth",
        Use::No("it follows from the ports"),
    ),
];

/// Sections of the machine around the GPU.
const OUTSIDE: &[&str] = &["cpu", "ariel", "memory", "network"];

/// Makes a GPU file above the GPU `base` from a sectioned configuration.
///
/// # Errors
/// If a line is neither a section nor a key, or a value is none.
pub fn import(path: &str, text: &str, base: &str) -> Result<Imported, ConfigError> {
    let below = load::<&str>(Some(base), &[])?;
    let values = parse(path, text)?;
    let malformed = |message: String| ConfigError::Malformed {
        path: path.into(),
        message,
    };
    let number = |key: &str, value: &str| {
        let digits = value.trim();
        digits
            .parse::<u64>()
            .map_err(|_| malformed(format!("`{key}`: `{value}` is not a number")))
    };
    let get = |section: &str, key: &str| values.get(&(section.to_string(), key.to_string()));
    let mut settings: Vec<(String, String)> = Vec::new();
    let mut unused = Vec::new();
    for ((section, key), value) in &values {
        let known = KEYS.iter().find(|(s, k, _)| s == section && k == key);
        match known {
            Some((_, _, Use::Is(target))) => settings.push(((*target).into(), spaced(value))),
            Some((_, _, Use::Taken)) => {}
            Some((_, _, Use::No(because))) => {
                unused.push((format!("{section}.{key}"), (*because).into()));
            }
            None if OUTSIDE.contains(&section.as_str()) => {
                let because = "it describes the machine around the GPU".into();
                unused.push((format!("{section}.{key}"), because));
            }
            None => unused.push((format!("{section}.{key}"), "unknown".into())),
        }
    }
    if let Some(value) = get("gpu", "gpu_l2_capacity") {
        let each: Bytes = spaced(value)
            .parse()
            .map_err(|error| malformed(format!("`gpu_l2_capacity`: {error}")))?;
        let parts = match get("gpu", "gpu_l2_parts") {
            Some(parts) => number("gpu_l2_parts", parts)?,
            None => u64::from(below.l2.slices),
        };
        let all = each.0.checked_mul(parts).map(Bytes);
        let all = all.ok_or_else(|| malformed("`gpu_l2_capacity` is too large".into()))?;
        settings.push(("l2.capacity".into(), all.to_string()));
    }
    if let Some(value) = get("gpu", "gpu_cpu_bandwidth") {
        settings.push(("copy.pinned".into(), spaced(value)));
        settings.push(("copy.pageable".into(), spaced(value)));
    }
    if let (Some(stacks), Some(channels)) =
        (get("gpumemory", "hbmstacks"), get("gpumemory", "hbmchan"))
    {
        let all = number("hbmStacks", stacks)?.checked_mul(number("hbmChan", channels)?);
        let all = all.ok_or_else(|| malformed("`hbmStacks` is too large".into()))?;
        settings.push(("dram.channels".into(), all.to_string()));
    }
    if let Some(value) = get("gpunetwork", "linkbandwidth") {
        let rate: Bandwidth = spaced(value)
            .parse()
            .map_err(|error| malformed(format!("`linkbandwidth`: {error}")))?;
        let clock: Hertz = match get("gpu", "clock") {
            Some(clock) => spaced(clock)
                .parse()
                .map_err(|error| malformed(format!("`clock`: {error}")))?,
            None => below.device.clock,
        };
        let bytes = (rate.get() / clock.get()).max(1);
        let bytes = format!("{bytes} B/cycle");
        settings.push(("interconnect.request-bytes-per-cycle".into(), bytes));
    }
    if let Some(value) = get("gpunetwork", "flit_size") {
        let flit: Bytes = spaced(value)
            .parse()
            .map_err(|error| malformed(format!("`flit_size`: {error}")))?;
        let header = Bytes(flit.0.saturating_sub(32));
        settings.push(("interconnect.header".into(), header.to_string()));
    }
    let lines: Vec<String> = settings.iter().map(|(k, v)| format!("{k}={v}")).collect();
    load(Some(base), &lines)?;
    Ok(Imported {
        text: file(path, base, &settings),
        unused,
    })
}

/// Values by section and key.
fn parse(path: &str, text: &str) -> Result<BTreeMap<(String, String), String>, ConfigError> {
    let mut values = BTreeMap::new();
    let mut section = String::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.replace('\\', "");
        let line = line.trim().trim_start_matches('#').trim();
        if line.is_empty() {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            section = name.to_ascii_lowercase();
            continue;
        }
        // Several keys may share a line.
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut key: Option<String> = None;
        for word in words {
            match (word.strip_suffix(':'), key.take()) {
                (Some(name), _) => key = Some(name.to_ascii_lowercase()),
                (None, Some(key)) => {
                    values.insert((section.clone(), key), word.to_string());
                }
                (None, None) => {
                    return Err(ConfigError::Malformed {
                        path: format!("{path}:{}", index + 1),
                        message: format!("`{line}` is neither `[section]` nor `key: value`"),
                    });
                }
            }
        }
    }
    Ok(values)
}

/// A value with a blank between number and unit, as units are written here.
fn spaced(value: &str) -> String {
    let value = value.trim();
    let split = value.find(|c: char| c.is_ascii_alphabetic());
    match split {
        Some(at) if at > 0 => format!("{} {}", value[..at].trim(), &value[at..]),
        _ => value.to_string(),
    }
}

fn file(path: &str, base: &str, settings: &[(String, String)]) -> String {
    let mut text = format!("# Imported from {path}\nbase = \"{base}\"\n");
    let mut sections: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    for (key, value) in settings {
        if let Some((section, key)) = key.split_once('.') {
            sections.entry(section).or_default().push((key, value));
        }
    }
    for (section, keys) in sections {
        let _ = write!(text, "\n[{section}]\n");
        for (key, value) in keys {
            let _ = match value.parse::<u64>() {
                Ok(number) => writeln!(text, "{key} = {number}"),
                Err(_) => writeln!(text, "{key} = \"{value}\""),
            };
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    const LISTING: &str = "[CPU]\nclock: 2660MHz\nnum\\_cores: 1\n\n#### [GPU]\nclock: 1200MHz\ngpu\\_cores: 80\ngpu\\_l2\\_parts: 32\n\ngpu\\_l2\\_capacity: 192KiB\ngpu\\_cpu\\_latency: 23840ps\ngpu\\_cpu\\_bandwidth: 16GB/s\nnum\\_sm\\_blobs: 1\n[GPUMemory]\nclock: 1GHz\ncapacity: 16384MiB\nhbmStacks: 4 hbmChan: 4 hbmRows: 16384\n[GPUNetwork]\nlatency: 750ps\nlinkbandwidth: 37.5GB/s\nflit\\_size: 40B\n";

    #[test]
    fn the_listing_becomes_the_gpu_of_the_catalogue() {
        let imported = import("listing", LISTING, "v100").unwrap();
        let path =
            std::env::temp_dir().join(format!("lockstep-import-{}.toml", std::process::id()));
        std::fs::write(&path, &imported.text).unwrap();
        let mut config = load::<&str>(path.to_str(), &[]).unwrap();
        std::fs::remove_file(&path).unwrap();
        let known = load::<&str>(Some("sst-listing1"), &[]).unwrap();
        config.device.name.clone_from(&known.device.name);
        config.l2.clock = known.l2.clock;
        assert_eq!(config, known);
        let unused: Vec<&str> = imported
            .unused
            .iter()
            .map(|(key, _)| key.as_str())
            .collect();
        expect![[r#"
            [
                "cpu.clock",
                "cpu.num_cores",
                "gpu.num_sm_blobs",
                "gpumemory.hbmrows",
                "gpunetwork.latency",
            ]
        "#]]
        .assert_debug_eq(&unused);
    }

    #[test]
    fn what_is_no_configuration_is_refused() {
        let error = import("x", "[GPU]\nhello\n", "v100")
            .unwrap_err()
            .to_string();
        expect!["x:2: `hello` is neither `[section]` nor `key: value`"].assert_eq(&error);
        assert!(import("x", "[GPU]\ngpu_cores: many\n", "v100").is_err());
        assert!(import("x", "[GPU]\ngpu_l2_capacity: 99999999999999 GiB\n", "v100").is_err());
    }
}
