//! A configuration as people read it: every key in force, with its value, the layer that says it and
//! the source that stands behind it there.

use crate::layers::Layer;
use crate::tree::lookup;
use crate::{Resolved, to_toml};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Every key of a configuration with its value and where that comes from.
pub fn listing(resolved: &Resolved) -> String {
    let layers: Vec<(&Layer, BTreeMap<String, String>)> = resolved
        .layers
        .iter()
        .rev()
        .map(|layer| (layer, sources(&layer.text)))
        .collect();
    let mut text = String::new();
    for (layer, _) in &layers {
        for line in layer.text.lines().take_while(|line| line.starts_with('#')) {
            let _ = writeln!(text, "{line}");
        }
    }
    let mut section = String::new();
    for line in to_toml(&resolved.config).lines() {
        if let Some(name) = section_name(line) {
            section = name.into();
        }
        let Some((key, _)) = line.split_once(" = ") else {
            let _ = writeln!(text, "{line}");
            continue;
        };
        let _ = writeln!(
            text,
            "{line}  # {}",
            source(&layers, &format!("{section}.{key}"))
        );
    }
    text
}

/// What the topmost layer that has a key says about it; `layers` are topmost first.
fn source(layers: &[(&Layer, BTreeMap<String, String>)], key: &str) -> String {
    let said = layers
        .iter()
        .enumerate()
        .find(|(_, (layer, _))| lookup(&layer.table, key).is_some());
    let Some((depth, (layer, sources))) = said else {
        return "default".into();
    };
    let source = sources.get(key).map_or("", |source| source.trim());
    match (depth, source) {
        (0, "") => format!("from {}", layer.name),
        (0, source) => source.to_string(),
        (_, "") => format!("from {}", layer.name),
        (_, source) => format!("from {}: {source}", layer.name),
    }
}

fn section_name(line: &str) -> Option<&str> {
    line.strip_prefix('[')?.strip_suffix(']')
}

/// What stands behind the values of a file, by key.
fn sources(text: &str) -> BTreeMap<String, String> {
    let mut sources = BTreeMap::new();
    let mut section = String::new();
    for line in text.lines() {
        if let Some(name) = section_name(line) {
            section = name.into();
        } else if let Some((key, rest)) = line.split_once(" = ")
            && !line.starts_with('#')
        {
            let source = rest.split_once("  # ").map_or("", |(_, source)| source);
            let key = format!("{section}.{}", key.trim());
            sources.insert(
                crate::aliases::present_name(&key).to_string(),
                source.into(),
            );
        }
    }
    sources
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CATALOGUE, load, resolve};

    #[test]
    fn a_listing_is_a_gpu_file_that_says_the_same() {
        for entry in CATALOGUE {
            let text = listing(&resolve::<&str>(Some(entry.name), &[]).unwrap());
            let path = std::env::temp_dir().join(format!(
                "lockstep-listing-{}-{}.toml",
                entry.name,
                std::process::id()
            ));
            std::fs::write(&path, &text).unwrap();
            let read = load::<&str>(path.to_str(), &[]);
            std::fs::remove_file(&path).unwrap();
            let known = load::<&str>(Some(entry.name), &[]).unwrap();
            assert_eq!(read.unwrap(), known, "{}", entry.name);
        }
    }

    #[test]
    fn sources_say_which_file_they_are_from() {
        let text = listing(&resolve(Some("v100-sst"), &["sm.blocks=8"]).unwrap());
        assert!(
            text.contains("blocks = 8  # from --set sm.blocks=8"),
            "{text}"
        );
        assert!(text.contains("sms = 84  # from v100-sst: ["), "{text}");
        assert!(text.contains("gpcs = 6  # from v100: [spec]"), "{text}");
        assert!(
            text.contains("tRCD = \"14.1 ns\"  # from hbm2: ["),
            "{text}"
        );
        assert!(text.contains("kind = \"crossbar\"  # default"), "{text}");
        assert!(
            text.starts_with("# NVIDIA V100 as the SST-GPU report"),
            "{text}"
        );
    }

    /// Table 2 and table 6 of the SST-GPU report, and its listing 1, number by number.
    #[test]
    fn the_seeds_tables_are_in_the_catalogue() {
        let table = |name: &str| {
            let config = load::<&str>(Some(name), &[]).unwrap();
            let machine = &config.host.machine;
            vec![
                machine.kind.clone(),
                machine.clock.to_string(),
                machine.ddr_clock.to_string(),
                machine.ddr_capacity.to_string(),
                machine.mesh_clock.to_string(),
                format!("{} {}", machine.mesh_input_ports, machine.mesh_output_ports),
                machine.data_latency.to_string(),
                machine.command_latency.to_string(),
                config.device.clock.to_string(),
                config.device.sms.to_string(),
                config.l2.slices.to_string(),
                (config.l2.capacity.0 / u64::from(config.l2.slices) / 1024).to_string(),
                config.device.memory.to_string(),
                config.l2.clock.to_string(),
                format!(
                    "{} {}",
                    config.interconnect.request_bytes_per_cycle,
                    config.interconnect.reply_bytes_per_cycle
                ),
            ]
            .join(", ")
        };
        expect_test::expect!["machine, 2.66 GHz, 2.666 GHz, 16 GiB, 800 MHz, 1 1, 23.84 ns, 23.84 ns, 1.312 GHz, 84, 32, 192, 16 GiB, 1.2 GHz, 64 B/cycle 32 B/cycle"].assert_eq(&table("v100-sst"));
        expect_test::expect!["machine, 1.2 GHz, 2.4 GHz, 16 GiB, 800 MHz, 1 1, 23.84 ns, 23.84 ns, 1.328 GHz, 56, 8, 512, 16 GiB, 1 GHz, 64 B/cycle 32 B/cycle"].assert_eq(&table("p100"));
        let listing = load::<&str>(Some("sst-listing1"), &[]).unwrap();
        let machine = &listing.host.machine;
        assert_eq!((machine.cores, machine.requests_per_cycle), (1, 3));
        assert_eq!((listing.device.sms, listing.l2.slices), (80, 32));
        assert_eq!(listing.dram.channels, 16);
    }
}
