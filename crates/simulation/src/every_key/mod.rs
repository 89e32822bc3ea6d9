//! Every key of a configuration is read: changed, it changes what a program sees, or it is refused.
//!
//! The walk takes a tiny GPU on which a few kernels, copies and managed pages meet every part of the
//! model. Keys of a policy that is not selected are tried with that policy.

mod program;

use lockstep_config::{GpuConfig, load, to_toml};
use std::collections::BTreeMap;
use toml::{Table, Value};

/// A GPU that is quick to build and small enough for caches to overflow.
const TINY: &[&str] = &[
    "device.sms=4",
    "device.gpcs=2",
    "device.gpc-tpcs=[1, 1]",
    "device.gpc-of-tpc=[0, 1]",
    "l2.first-partition-gpcs=[1]",
    "dispatch.first-sms=[2]",
    "interconnect.tpc-hop-latency=[\"7 cycles\"]",
    "device.memory=1 GiB",
    "sm.unified-data-cache=40 KiB",
    "sm.shared-carveouts=[\"8 KiB\", \"16 KiB\", \"24 KiB\"]",
    "sm.shared-per-block=8 KiB",
    "sm.shared-per-block-optin=16 KiB",
    "l1.mshrs=24",
    "l1.replacement-candidates=2",
    "sm.front-end.l0=512 B",
    "sm.front-end.stream-buffer-lines=1",
    "sm.front-end.l1=1 KiB",
    "sm.front-end.constant-cache=128 B",
    "l2.slices=4",
    "l2.interleave-slices=2",
    "l2.ways=4",
    "l2.capacity=32 KiB",
    "dram.channels=4",
    "dram.banks=4",
    "dram.refresh-groups=2",
    "uvm.tlb.entries=4",
    "uvm.tlb.mshrs=2",
    "uvm.tlb.l2-entries=8",
    "uvm.tlb.l2-ways=2",
    "uvm.walk.walkers=1",
    "uvm.walk.cache-entries=2",
    "uvm.fault.mshrs=4",
    "uvm.fault.buffer=8",
    "uvm.fault.batch=4",
    "uvm.fault.per-sm=2",
    "uvm.fault.per-sm-asleep=3",
    "uvm.touch-interval=10 cycles",
    "host.launch-cold-after=1 us",
    "launch.watchdog=3000000 cycles",
];

/// What else must be so for keys to matter, by what the keys begin with; the first row that fits counts.
const WITH: &[(&str, &[&str])] = &[
    ("interconnect.network.", &["interconnect.kind=mesh"]),
    (
        "device.gpc-tpcs",
        &[
            "device.sms=8",
            "device.gpc-of-tpc=[]",
            "device.gpc-tpcs=[3, 1]",
        ],
    ),
    // Rates at which a small program's bytes take longer than the calls around them.
    (
        "copy.device-to-device-l2",
        &["copy.device-to-device-l2=0.1 GB/s"],
    ),
    ("copy.fill", &["copy.fill=0.1 GB/s"]),
    ("dram.command-timing.", &["dram.back-end=timing"]),
    ("dram.row-hit-savings", &["dram.row-hit-savings=5 ns"]),
    (
        "host.machine.ddr-capacity",
        &[
            "host.machine.kind=machine",
            "host.machine.ddr-capacity=64 KiB",
        ],
    ),
    ("host.machine.cores", SLOW_HOST),
    ("host.machine.request", SLOW_HOST),
    (
        "l2.write-back-queue",
        &["l2.write-back-queue=0 ns", "dram.clock=20 MHz"],
    ),
    (
        "sm.carveout-headroom",
        &[
            "sm.unified-data-cache=72 KiB",
            "sm.shared-carveouts=[\"8 KiB\", \"16 KiB\", \"32 KiB\", \"64 KiB\"]",
        ],
    ),
    ("uvm.capacity", &["uvm.capacity=8 MiB"]),
    (
        "uvm.evict.reserve",
        &[
            "uvm.capacity=4 MiB",
            "uvm.evict.policy=lru-4k",
            "uvm.evict.reserve=60",
        ],
    ),
    (
        "uvm.link.duplex",
        &[
            "uvm.capacity=4 MiB",
            "uvm.evict.free-buffer=50",
            "uvm.evict.policy=lru-4k",
            "uvm.fault.service=serial",
            "uvm.fault.latency=1 us",
        ],
    ),
    (
        "uvm.thrash.pin",
        &[
            "uvm.thrash.threshold=1",
            "uvm.thrash.pin-threshold=1",
            "uvm.thrash.lapse=1 s",
        ],
    ),
    (
        "uvm.walk.walks-per-cycle",
        &["uvm.walk.walkers=0", "uvm.tlb.mshrs=64"],
    ),
    (
        "sm.front-end.gpc-constant-interval",
        &["sm.front-end.constant-miss-interval=0 cycles"],
    ),
    ("sm.scheduler-group", &["sm.scheduler=two-level"]),
    ("host.machine.", &["host.machine.kind=machine"]),
    ("uvm.walk.latency", &["uvm.walk.mode=fixed"]),
    ("uvm.fault.latency", &["uvm.fault.service=serial"]),
    ("uvm.prefetch.ahead", &["uvm.prefetch.policy=sequential"]),
    ("uvm.prefetch.oversubscribed", OVERSUBSCRIBED),
    ("uvm.evict.", OVERSUBSCRIBED),
    (
        "uvm.seed",
        &["uvm.capacity=4 MiB", "uvm.evict.policy=random-4k"],
    ),
    (
        "uvm.zero-copy.",
        &["uvm.capacity=4 MiB", "uvm.zero-copy.mode=adaptive"],
    ),
    ("uvm.link.remote-latency", &["uvm.zero-copy.mode=always"]),
    ("translation.", SMALL_TLBS),
];

/// TLBs that a small program misses.
const SMALL_TLBS: &[&str] = &[
    "translation.micro-tlb-entries=1",
    "translation.micro-tlb-reach=2 MiB",
    "translation.gpc-tlb-entries=1",
    "translation.gpc-tlb-reach=2 MiB",
];

/// A host whose cores are what copies wait for.
const SLOW_HOST: &[&str] = &[
    "host.machine.kind=machine",
    "host.machine.clock=1 MHz",
    "host.machine.requests-per-cycle=1",
];

const OVERSUBSCRIBED: &[&str] = &["uvm.capacity=4 MiB"];

/// Other names that a key with a name can have.
const NAMES: &[(&str, &[&str])] = &[
    ("device.name", &["another"]),
    ("device.compute-capability", &["9.1"]),
    ("device.floorsweeping", &["h200-specimen"]),
    ("sm.scheduler", &["loose-round-robin", "two-level"]),
    ("interconnect.kind", &["simple", "mesh"]),
    ("dram.device", &["hbm2", "gddr6"]),
    ("dram.back-end", &["fixed", "timing"]),
    ("dispatch.policy", &["most-free", "round-robin"]),
    ("host.machine.kind", &["none"]),
    ("uvm.host-access", &["sync-flush"]),
    ("uvm.first-touch", &["migrate"]),
    ("uvm.tlb.shootdown", &["whole", "entry"]),
    ("uvm.tlb.shootdown-on", &["unmap"]),
    ("uvm.walk.mode", &["fixed"]),
    ("uvm.fault.mode", &["stall-sm"]),
    ("uvm.fault.service", &["serial", "additive"]),
    ("uvm.prefetch.policy", &["none"]),
    ("uvm.prefetch.oversubscribed", &["none", "sequential"]),
    ("uvm.evict.policy", &["lru-4k", "random-4k"]),
    ("uvm.evict.clean", &["drop"]),
    ("uvm.link.profile", &["pcie-3"]),
    ("uvm.zero-copy.mode", &["always"]),
    ("uvm.thrash.policy", &["off"]),
];

/// Keys that these programs cannot show, with the reason; each must reach the parameters of its part.
const OUT_OF_REACH: &[(&str, &str)] = &[
    ("sm.latency.uniform", "PTX has no uniform datapath"),
    ("sm.interval.uniform", "PTX has no uniform datapath"),
    ("sm.interval.texture", "no program here reads textures"),
    ("sm.latency.texture", "no program here reads textures"),
    (
        "sm.front-end.constant-replay",
        "no lanes here read different constants",
    ),
    (
        "l1.cross-warp-combining-window",
        "no two warps here store to one line",
    ),
    (
        "translation.page",
        "allocations here lie far from each other",
    ),
    (
        "translation.micro-tlb-reach",
        "allocations here lie far from each other",
    ),
    (
        "translation.gpc-tlb-reach",
        "allocations here lie far from each other",
    ),
    ("sm.latency.wide-multiply-stall", "PTX has no stall counts"),
    ("sm.latency.unscheduled", "PTX has no control bits"),
    ("sm.latency.unscheduled-result", "PTX has no control bits"),
    (
        "sm.latency.divergent-path-switch",
        "PTX has no convergence barriers",
    ),
    ("sm.latency.indirect-branch", "PTX calls functions by name"),
    (
        "sm.lsu.load-war-latency",
        "PTX has no write-after-read barriers",
    ),
    (
        "sm.lsu.store-war-latency",
        "PTX has no write-after-read barriers",
    ),
    ("sm.register-file.banks", "PTX has no registers of hardware"),
    (
        "sm.register-file.read-window",
        "PTX has no registers of hardware",
    ),
];

#[test]
fn every_key_is_read_or_refused() {
    let keys = keys(&config(&[]).unwrap());
    assert!(keys.len() > 250, "{}", keys.len());
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let mut unread: Vec<String> = std::thread::scope(|scope| {
        let shares: Vec<_> = (0..workers)
            .map(|worker| {
                let share: Vec<&String> = keys.iter().skip(worker).step_by(workers).collect();
                scope.spawn(move || unread_among(&share))
            })
            .collect();
        let unread = shares.into_iter().flat_map(|share| share.join().unwrap());
        unread.collect()
    });
    unread.sort();
    assert!(
        unread.is_empty(),
        "{} keys change nothing: {unread:#?}",
        unread.len()
    );
}

/// Those of some keys that nothing reads.
fn unread_among(keys: &[&String]) -> Vec<String> {
    let mut seen: BTreeMap<(Vec<&str>, bool), String> = BTreeMap::new();
    let mut unread = Vec::new();
    for key in keys {
        let row = WITH.iter().find(|(prefix, _)| key.starts_with(prefix));
        let with = row.map_or(&[] as &[&str], |(_, with)| with).to_vec();
        let below = config(&with).unwrap_or_else(|error| panic!("{key}: {error}"));
        let usual = seen
            .entry((with.clone(), cold(key)))
            .or_insert_with(|| program::observe(&below, cold(key)));
        let attempt = std::panic::AssertUnwindSafe(|| is_read(key, &with, &below, usual));
        match std::panic::catch_unwind(attempt) {
            Ok(true) => {}
            Ok(false) => unread.push((*key).clone()),
            Err(_) => unread.push(format!("{key} (a panic)")),
        }
    }
    unread
}

/// Whether some other value of a key is refused, or seen.
fn is_read(key: &str, with: &[&str], below: &GpuConfig, usual: &str) -> bool {
    let table: Table = to_toml(below).parse().unwrap();
    let value = key
        .split('.')
        .fold(None, |at: Option<&Value>, part| match at {
            None => table.get(part),
            Some(value) => value.get(part),
        });
    let out_of_reach = OUT_OF_REACH.iter().any(|(known, _)| *known == key);
    let (mut tried, mut refused) = (0, 0);
    for other in others(key, value.unwrap()) {
        let setting = format!("{key}={other}");
        let mut all = with.to_vec();
        all.push(&setting);
        match config(&all) {
            Err(_) => refused += 1,
            Ok(changed) if out_of_reach => return parameters(&changed) != parameters(below),
            Ok(changed) if program::observe(&changed, cold(key)) != usual => return true,
            Ok(_) => tried += 1,
        }
    }
    tried == 0 && refused > 0
}

/// Whether a key matters only to kernels that find empty caches.
fn cold(key: &str) -> bool {
    key == "launch.cold-dram-bytes" || key == "sm.front-end.uncached-latency"
}

/// What an SM is made with.
fn parameters(config: &GpuConfig) -> String {
    format!("{:?}", lockstep_gpu::SmParameters::new(config, true))
}

fn config(settings: &[&str]) -> Result<GpuConfig, lockstep_config::ConfigError> {
    let all: Vec<&str> = TINY.iter().chain(settings).copied().collect();
    load(Some("h200"), &all)
}

fn keys(config: &GpuConfig) -> Vec<String> {
    fn walk(prefix: &str, table: &Table, keys: &mut Vec<String>) {
        for (name, value) in table {
            match value {
                Value::Table(inner) => walk(&format!("{prefix}{name}."), inner, keys),
                _ => keys.push(format!("{prefix}{name}")),
            }
        }
    }
    let mut keys = Vec::new();
    walk("", &to_toml(config).parse().unwrap(), &mut keys);
    keys
}

/// Other values of the kind that a key has.
fn others(key: &str, value: &Value) -> Vec<String> {
    if let Some((_, names)) = NAMES.iter().find(|(known, _)| *known == key) {
        return names.iter().map(|name| format!("\"{name}\"")).collect();
    }
    match value {
        Value::Boolean(value) => vec![(!value).to_string()],
        Value::Integer(value) => [value * 2, value + 1, value - 1, value / 2, value * 8, 1, 0]
            .iter()
            .filter(|other| *other != value)
            .map(ToString::to_string)
            .collect(),
        Value::Array(values) => {
            let mut fewer = values.clone();
            fewer.pop();
            let mut turned = values.clone();
            turned.reverse();
            let more = [values.clone(), values.clone()].concat();
            let all = [
                turned,
                fewer,
                more,
                vec![Value::Integer(0)],
                vec![Value::Integer(3)],
            ];
            all.into_iter()
                .filter(|other| other != values)
                .map(|other| Value::Array(other).to_string())
                .collect()
        }
        Value::String(text) => {
            let (number, unit) = text.split_once(' ').unwrap_or((text, ""));
            let Ok(number) = number.parse::<f64>() else {
                return Vec::new();
            };
            let other = |other: f64| format!("\"{other} {unit}\"");
            [
                number * 2.0,
                number / 2.0,
                number * 16.0,
                number * 3.0 + 1.0,
                0.0,
                100.0,
            ]
            .into_iter()
            .map(other)
            .collect()
        }
        _ => Vec::new(),
    }
}
