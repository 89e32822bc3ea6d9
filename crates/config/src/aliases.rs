//! Keys that have another name today, and keys that are refused.
//!
//! A layer may use an old name; the run then says the new one. What a key stood for has not changed
//! unless its row says so.

use crate::ConfigError;
use crate::tree::{lookup, remove, set};
use toml::Table;

/// An old key and its present name.
pub struct Alias {
    /// As files had it.
    pub old: &'static str,
    /// As it is today.
    pub new: &'static str,
}

/// A key that nothing reads, with a sentence for those who still have it.
pub struct Refused {
    /// The key.
    pub key: &'static str,
    /// Why, and what to do.
    pub because: &'static str,
}

macro_rules! aliases {
    ($($old:literal => $new:literal,)*) => {
        &[$(Alias { old: $old, new: $new },)*]
    };
}

/// Every old name, by section.
#[rustfmt::skip]
pub const ALIASES: &[Alias] = aliases! {
    "device.gpc-pairs" => "device.gpc-tpcs",
    "device.gpc-of-pair" => "device.gpc-of-tpc",
    "device.timer-step" => "device.globaltimer-resolution",
    "device.memory-bus-bits" => "device.memory-bus-width",
    "sm.register-unit" => "sm.register-allocation-unit",
    "sm.shared-unit" => "sm.shared-allocation-unit",
    "sm.unified-memory" => "sm.unified-data-cache",
    "sm.shared-double" => "sm.fp64-unit-shared",
    "sm.front-end.prefetch" => "sm.front-end.stream-buffer-lines",
    "sm.front-end.launch-code" => "sm.front-end.cold-fetch-latency",
    "sm.front-end.launch-line" => "sm.front-end.cold-fetch-interval",
    "sm.front-end.constants" => "sm.front-end.constant-cache",
    "sm.front-end.constant-line" => "sm.front-end.constant-cache-line",
    "sm.front-end.constant-miss" => "sm.front-end.constant-miss-latency",
    "sm.front-end.constant-first" => "sm.front-end.constant-cold-miss-latency",
    "sm.load-store.queue" => "sm.lsu.mio-queue",
    "sm.load-store.load-operands" => "sm.lsu.load-war-latency",
    "sm.load-store.store-operands" => "sm.lsu.store-war-latency",
    "sm.load-store.wide-global" => "sm.lsu.l1-word-latency",
    "sm.load-store.wide-shared" => "sm.lsu.shared-vector-latency",
    "sm.load-store.fence" => "sm.lsu.fence-interval",
    "sm.load-store.shared-atomic-conflict" => "sm.lsu.shared-atomic-conflict",
    "sm.latency.indirect" => "sm.latency.indirect-branch",
    "sm.latency.lane-switch" => "sm.latency.divergent-path-switch",
    "sm.latency.shared-swap" => "sm.latency.shared-cas",
    "sm.interval.population" => "sm.interval.popc",
    "l1.drawn" => "l1.replacement-candidates",
    "l1.lines-per-cycle" => "l1.tag-lookups-per-cycle",
    "l1.outstanding" => "l1.mshrs",
    "l2.outstanding" => "l2.mshrs",
    "l1.join" => "l1.write-combining-window",
    "l1.store-lines" => "l1.write-combining-lines",
    "l2.region" => "l2.interleave-region",
    "l2.region-slices" => "l2.interleave-slices",
    "l2.piece" => "l2.interleave-granularity",
    "l2.first-partition" => "l2.first-partition-gpcs",
    "l2.far-latency" => "l2.far-partition-latency",
    "l2.read-sector" => "l2.sector-read-time",
    "l2.write-sector" => "l2.sector-write-time",
    "l2.write-part" => "l2.partial-write-time",
    "l2.atomic-sector" => "l2.atomic-sector-time",
    "l2.atomic-neighbour" => "l2.atomic-sector-pair-time",
    "l2.atomic-lane" => "l2.atomic-lane-time",
    "l2.atomic-other-line" => "l2.atomic-line-switch-time",
    "l2.atomic-float-lane" => "l2.atomic-float-lane-time",
    "l2.partial-lines" => "l2.partial-sector-lines",
    "l2.merge" => "l2.coalescing-window",
    "interconnect.spread" => "interconnect.distance-spread",
    "interconnect.pair-ways" => "interconnect.tpc-hop-latency",
    "interconnect.header" => "interconnect.packet-header",
    "interconnect.atomic" => "interconnect.atomic-bytes-per-sector",
    "interconnect.atomic-lane" => "interconnect.atomic-bytes-per-lane",
    "interconnect.network.queue" => "interconnect.network.buffer-flits",
    "interconnect.network.router" => "interconnect.network.router-latency",
    "interconnect.network.input-ports" => "interconnect.network.injection-ports",
    "interconnect.network.output-ports" => "interconnect.network.ejection-ports",
    "dram.row" => "dram.row-buffer",
    "dram.row-hit-saves" => "dram.row-hit-savings",
    "dram.row-cycle" => "dram.row-cycle-time",
    "dram.row-interval" => "dram.activate-interval",
    "dram.refresh" => "dram.refresh-time",
    "dispatch.interval" => "dispatch.block-interval",
    "dispatch.first" => "dispatch.first-sms",
    "launch.start" => "launch.start-latency",
    "launch.overlap" => "launch.start-overlap",
    "launch.finish" => "launch.finish-latency",
    "launch.finish-sm" => "launch.finish-per-sm",
    "launch.event" => "launch.event-latency",
    "launch.l2-sectors" => "launch.gpc-l2-sectors",
    "launch.other-sectors" => "launch.non-gpc-l2-sectors",
    "launch.other-interval" => "launch.non-gpc-l2-interval",
    "launch.contact-sectors" => "launch.flush-sectors",
    "launch.dram-bytes" => "launch.cold-dram-bytes",
    "launch.code-ahead" => "launch.code-prefetch",
    "launch.parameters" => "launch.parameter-limit",
    "copy.device" => "copy.device-to-device",
    "uvm.tlb.misses" => "uvm.tlb.mshrs",
    "uvm.tlb.shared-entries" => "uvm.tlb.l2-entries",
    "uvm.tlb.shared-ways" => "uvm.tlb.l2-ways",
    "uvm.tlb.shared-latency" => "uvm.tlb.l2-latency",
    "uvm.walk.threads" => "uvm.walk.walkers",
    "uvm.walk.starts" => "uvm.walk.walks-per-cycle",
    "uvm.fault.look" => "uvm.fault.poll-interval",
    "uvm.fault.linger" => "uvm.fault.poll-duration",
    "dram.timing" => "dram.device",
};

/// Keys that were readable once and are refused.
pub const REFUSED: &[Refused] = &[Refused {
    key: "dram.kind",
    because: "the technology is that of the file that `dram.device` names; leave it out",
}];

/// What a key is called today.
pub fn present_name(key: &str) -> &str {
    let alias = ALIASES.iter().find(|alias| alias.old == key);
    alias.map_or(key, |alias| alias.new)
}

/// Moves what a layer has under old names to the present ones. Returns a sentence for each.
pub(crate) fn apply(path: &str, layer: &mut Table) -> Result<Vec<String>, ConfigError> {
    for refused in REFUSED {
        if lookup(layer, refused.key).is_some() {
            return Err(ConfigError::Refused {
                path: path.into(),
                key: refused.key,
                because: refused.because,
            });
        }
    }
    let mut sentences = Vec::new();
    for Alias { old, new } in ALIASES {
        let Some(value) = remove(layer, old) else {
            continue;
        };
        if lookup(layer, new).is_some() {
            return Err(ConfigError::Malformed {
                path: path.into(),
                message: format!(
                    "`{old}` is the old name of `{new}`, which is set as well; leave one out"
                ),
            });
        }
        set(layer, new, value);
        sentences.push(format!("{path}: `{old}` is now called `{new}`"));
    }
    Ok(sentences)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{resolve, to_toml};

    #[test]
    fn every_alias_names_a_key_that_exists_and_is_none_itself() {
        let config = crate::load::<&str>(Some("h200"), &[]).unwrap();
        let known: Table = to_toml(&config).parse().unwrap();
        for (index, alias) in ALIASES.iter().enumerate() {
            assert!(lookup(&known, alias.new).is_some(), "{}", alias.new);
            assert!(lookup(&known, alias.old).is_none(), "{}", alias.old);
            let again = ALIASES[index + 1..]
                .iter()
                .any(|other| other.old == alias.old);
            assert!(!again, "{} is listed twice", alias.old);
        }
        for refused in REFUSED {
            assert!(lookup(&known, refused.key).is_none(), "{}", refused.key);
        }
    }

    /// Every old name, with the value that its new name has.
    #[test]
    fn an_old_name_sets_the_new_key_and_says_so_once() {
        let config = crate::load::<&str>(Some("h200"), &[]).unwrap();
        let known: Table = to_toml(&config).parse().unwrap();
        for Alias { old, new } in ALIASES {
            let value = lookup(&known, new).unwrap();
            let setting = format!("{old}={value}");
            let resolved = resolve(Some("h200"), &[&setting])
                .unwrap_or_else(|error| panic!("{setting}: {error}"));
            assert_eq!(resolved.config, config, "{setting}");
            let sentence = format!("--set {setting}: `{old}` is now called `{new}`");
            assert_eq!(resolved.warnings, [sentence]);
        }
    }

    #[test]
    fn an_old_name_beside_its_new_one_is_refused() {
        let mut layer: Table = "[l1]\njoin = 1\nwrite-combining-window = 2"
            .parse()
            .unwrap();
        let error = apply("x.toml", &mut layer).unwrap_err().to_string();
        expect_test::expect!["x.toml: `l1.join` is the old name of `l1.write-combining-window`, which is set as well; leave one out"]
            .assert_eq(&error);
    }

    #[test]
    fn a_key_that_nothing_reads_is_refused_with_a_sentence() {
        let error = resolve(Some("h200"), &["dram.kind=hbm3e"])
            .unwrap_err()
            .to_string();
        expect_test::expect!["--set dram.kind=hbm3e: `dram.kind` is refused: the technology is that of the file that `dram.device` names; leave it out"]
            .assert_eq(&error);
    }
}
