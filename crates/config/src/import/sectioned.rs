//! Sections of `key: value` lines, as SST-GPU describes a machine.
//!
//! Every key is either mapped to keys of a GPU file, a row of [`KEYS`], or named as not used, with
//! the reason.
//!
//! Start reading at [`import`].

use super::Imported;
use super::file::{Setting, file};
use crate::{ConfigError, GpuConfig, load};
use lockstep_units::{Bandwidth, Bytes, Hertz};
use std::collections::BTreeMap;

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
    ("cpu", "clock", Use::Is("host.machine.clock")),
    ("cpu", "num_cores", Use::Is("host.machine.cores")),
    (
        "cpu",
        "max_reqs_cycle",
        Use::Is("host.machine.requests-per-cycle"),
    ),
    (
        "cpu",
        "application",
        Use::No("programs run on the real processor"),
    ),
    (
        "ariel",
        "executable",
        Use::No("the program is named on the command line"),
    ),
    (
        "ariel",
        "gpu_mode",
        Use::No("every program meets the simulated GPU"),
    ),
    ("memory", "clock", Use::Is("host.machine.ddr-clock")),
    ("memory", "network_bw", Use::Taken),
    ("memory", "capacity", Use::Is("host.machine.ddr-capacity")),
    ("network", "latency", Use::Is("host.machine.mesh-latency")),
    ("network", "bandwidth", Use::Taken),
    (
        "network",
        "flit_size",
        Use::No("the host's mesh carries whole pages"),
    ),
    ("gpu", "clock", Use::Is("device.clock")),
    ("gpu", "gpu_cores", Use::Is("device.sms")),
    ("gpu", "gpu_l2_parts", Use::Is("l2.slices")),
    ("gpu", "gpu_l2_capacity", Use::Taken),
    ("gpu", "gpu_l2_mshrs", Use::Is("l2.mshrs")),
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
const HOST: &[&str] = &["cpu", "memory", "network"];

/// Makes a GPU file above the GPU `base` from a sectioned configuration.
///
/// # Errors
/// If a line is neither a section nor a key, or a value is none.
pub(super) fn import(path: &str, text: &str, base: &str) -> Result<Imported, ConfigError> {
    let below = load::<&str>(Some(base), &[])?;
    let mut import = Import {
        path,
        values: parse(path, text)?,
        settings: Vec::new(),
    };
    let unused = import.take_plain_keys();
    import.take_l2(&below)?;
    import.take_host_link();
    import.take_host_rates(&below)?;
    import.take_channels()?;
    import.take_network(&below)?;
    let settings = import.settings;
    let lines: Vec<String> = settings.iter().map(Setting::line).collect();
    load(Some(base), &lines)?;
    Ok(Imported {
        text: file(path, base, &settings),
        unused,
    })
}

/// A configuration on its way to a GPU file.
struct Import<'text> {
    path: &'text str,
    values: BTreeMap<(String, String), String>,
    settings: Vec<Setting>,
}

impl Import<'_> {
    fn get(&self, section: &str, key: &str) -> Option<&str> {
        let value = self.values.get(&(section.to_string(), key.to_string()));
        value.map(String::as_str)
    }

    fn set(&mut self, key: &str, value: impl Into<String>) {
        self.settings.push(Setting::new(key, value));
    }

    fn malformed(&self, message: String) -> ConfigError {
        ConfigError::Malformed {
            path: self.path.into(),
            message,
        }
    }

    fn number(&self, key: &str, value: &str) -> Result<u64, ConfigError> {
        value
            .trim()
            .parse()
            .map_err(|_| self.malformed(format!("`{key}`: `{value}` is not a number")))
    }

    /// A value with a unit.
    fn quantity<T>(&self, key: &str, value: &str) -> Result<T, ConfigError>
    where
        T: std::str::FromStr<Err: std::fmt::Display>,
    {
        spaced(value)
            .parse()
            .map_err(|error| self.malformed(format!("`{key}`: {error}")))
    }

    /// Keys with one meaning here; those without any are returned, with the reason.
    fn take_plain_keys(&mut self) -> Vec<(String, String)> {
        let mut unused = Vec::new();
        let mut settings = Vec::new();
        for ((section, key), value) in &self.values {
            let known = KEYS.iter().find(|(s, k, _)| s == section && k == key);
            let because = match known {
                Some((_, _, Use::Is(target))) => {
                    settings.push(Setting::new(target, spaced(value)));
                    continue;
                }
                Some((_, _, Use::Taken)) => continue,
                Some((_, _, Use::No(because))) => *because,
                None => "unknown",
            };
            unused.push((format!("{section}.{key}"), because.into()));
        }
        self.settings.extend(settings);
        unused
    }

    /// The capacity is given for each slice.
    fn take_l2(&mut self, below: &GpuConfig) -> Result<(), ConfigError> {
        let Some(value) = self.get("gpu", "gpu_l2_capacity") else {
            return Ok(());
        };
        let each: Bytes = self.quantity("gpu_l2_capacity", value)?;
        let parts = match self.get("gpu", "gpu_l2_parts") {
            Some(parts) => self.number("gpu_l2_parts", parts)?,
            None => u64::from(below.l2.slices),
        };
        let all = each.0.checked_mul(parts).map(Bytes);
        let all = all.ok_or_else(|| self.malformed("`gpu_l2_capacity` is too large".into()))?;
        self.set("l2.capacity", all.to_string());
        Ok(())
    }

    /// One link for copies and commands alike.
    fn take_host_link(&mut self) {
        if let Some(value) = self.get("gpu", "gpu_cpu_bandwidth").map(spaced) {
            for key in ["copy.pinned", "copy.pageable", "host.machine.link"] {
                self.set(key, value.clone());
            }
        }
        if let Some(value) = self.get("gpu", "gpu_cpu_latency").map(spaced) {
            for key in ["host.machine.data-latency", "host.machine.command-latency"] {
                self.set(key, value.clone());
            }
        }
        let mut sections = self.values.keys().map(|(section, _)| section.as_str());
        if sections.any(|section| HOST.contains(&section)) {
            self.set("host.machine.kind", "machine");
        }
    }

    /// Bytes a cycle follow from a bandwidth and the clock that it is at.
    fn take_host_rates(&mut self, below: &GpuConfig) -> Result<(), ConfigError> {
        let machine = &below.host.machine;
        let rows = [
            (
                ("memory", "network_bw"),
                "clock",
                machine.ddr_clock,
                "host.machine.ddr-bytes-per-cycle",
            ),
            (
                ("network", "bandwidth"),
                "",
                machine.mesh_clock,
                "host.machine.mesh-bytes-per-cycle",
            ),
        ];
        for ((section, key), clock_key, clock, target) in rows {
            let Some(value) = self.get(section, key) else {
                continue;
            };
            let rate: Bandwidth = self.quantity(key, value)?;
            let clock: Hertz = match self.get(section, clock_key) {
                Some(clock) => self.quantity(clock_key, clock)?,
                None => clock,
            };
            let bytes = (rate.get() / clock.get()).max(1);
            self.set(target, format!("{bytes} B/cycle"));
        }
        Ok(())
    }

    fn take_channels(&mut self) -> Result<(), ConfigError> {
        let stacks = self.get("gpumemory", "hbmstacks");
        let (Some(stacks), Some(channels)) = (stacks, self.get("gpumemory", "hbmchan")) else {
            return Ok(());
        };
        let channels = self.number("hbmChan", channels)?;
        let all = self.number("hbmStacks", stacks)?.checked_mul(channels);
        let all = all.ok_or_else(|| self.malformed("`hbmStacks` is too large".into()))?;
        self.set("dram.channels", all.to_string());
        Ok(())
    }

    fn take_network(&mut self, below: &GpuConfig) -> Result<(), ConfigError> {
        if let Some(value) = self.get("gpunetwork", "linkbandwidth") {
            let rate: Bandwidth = self.quantity("linkbandwidth", value)?;
            let clock: Hertz = match self.get("gpu", "clock") {
                Some(clock) => self.quantity("clock", clock)?,
                None => below.device.clock,
            };
            let bytes = (rate.get() / clock.get()).max(1);
            self.set(
                "interconnect.request-bytes-per-cycle",
                format!("{bytes} B/cycle"),
            );
        }
        if let Some(value) = self.get("gpunetwork", "flit_size") {
            let flit: Bytes = self.quantity("flit_size", value)?;
            let header = Bytes(flit.0.saturating_sub(32));
            self.set("interconnect.packet-header", header.to_string());
        }
        Ok(())
    }
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
pub(super) fn spaced(value: &str) -> String {
    let value = value.trim();
    let split = value.find(|c: char| c.is_ascii_alphabetic());
    match split {
        Some(at) if at > 0 => format!("{} {}", value[..at].trim(), &value[at..]),
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    const LISTING: &str = "### [CPU]\n\nclock: 2660MHz\nnum\\_cores: 1\n\napplication: ariel\nmax\\_reqs\\_cycle: 3\n\n### [ariel]\n\nexecutable: ./vectorAdd\n\ngpu\\_mode: 2\n\n#### [Memory]\n\nclock: 200MHz\nnetwork\\_bw: 96GB/s\n\ncapacity: 16384MiB\n\n#### [Network]\n\nlatency: 300ps\nbandwidth: 96GB/s\nflit\\_size: 8B\n\n#### [GPU]\nclock: 1200MHz\ngpu\\_cores: 80\ngpu\\_l2\\_parts: 32\n\ngpu\\_l2\\_capacity: 192KiB\ngpu\\_cpu\\_latency: 23840ps\ngpu\\_cpu\\_bandwidth: 16GB/s\nnum\\_sm\\_blobs: 1\n[GPUMemory]\nclock: 1GHz\n\nnetwork\\_bw: 32GB/s\ncapacity: 16384MiB\nmemControllers: 2\n\nhbmStacks: 4 hbmChan: 4 hbmRows: 16384\n[GPUNetwork]\nlatency: 750ps\nbandwidth: 4800GB/s\n\nlinkbandwidth: 37.5GB/s\nflit\\_size: 40B\n";

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
                "ariel.executable",
                "ariel.gpu_mode",
                "cpu.application",
                "gpu.num_sm_blobs",
                "gpumemory.hbmrows",
                "gpumemory.memcontrollers",
                "gpumemory.network_bw",
                "gpunetwork.bandwidth",
                "gpunetwork.latency",
                "network.flit_size",
            ]
        "#]]
        .assert_debug_eq(&unused);
    }

    #[test]
    fn a_key_that_nobody_knows_is_named() {
        let imported = import("x", "[GPU]\ngpu_coers: 3\n[Elsewhere]\na: 1\n", "v100").unwrap();
        let unused: Vec<String> = imported
            .unused
            .iter()
            .map(|(key, because)| format!("{key}: {because}"))
            .collect();
        assert_eq!(unused, ["elsewhere.a: unknown", "gpu.gpu_coers: unknown"]);
        assert!(!imported.text.contains("machine"), "{}", imported.text);
    }

    #[test]
    fn a_bound_on_misses_of_l2_is_taken() {
        let imported = import("x", "[GPU]\ngpu_l2_mshrs: 256\n", "v100").unwrap();
        assert!(imported.unused.is_empty(), "{:?}", imported.unused);
        assert!(imported.text.contains("mshrs = 256"), "{}", imported.text);
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
