//! The files that come with the program: GPUs, the chips and parts they are made of.
//!
//! To add a GPU: a file in `configs/gpus` and a line here.

/// A file that is part of the binary.
#[derive(Clone, Copy, Debug)]
pub struct CatalogueEntry {
    /// What `--gpu`, or the key that names such files, takes.
    pub name: &'static str,
    /// The file, with the source of every number.
    pub text: &'static str,
}

impl CatalogueEntry {
    /// The first line of the file: what it describes.
    pub fn title(&self) -> &'static str {
        self.text
            .lines()
            .next()
            .unwrap_or_default()
            .trim_start_matches(['#', ' '])
    }
}

/// Entries by name, from one folder.
macro_rules! files {
    ($folder:literal: $($name:literal),* $(,)?) => {
        &[$(CatalogueEntry {
            name: $name,
            text: include_str!(concat!("../../../configs/", $folder, "/", $name, ".toml")),
        },)*]
    };
}

/// The GPU that is simulated when none is named.
pub const DEFAULT_GPU: &str = "h200";

/// Every GPU that comes with the program, newest first.
pub const CATALOGUE: &[CatalogueEntry] = files! {
    "gpus":
    "h200",
    "h100",
    "rtx3080ti",
    "a100",
    "rtx2060",
    "v100",
    "gtx1080ti-uvmsmart",
    "v100-sst",
    "sst-listing1",
    "p100",
};

/// Chips that several GPUs share: they can be a `base`, and are no GPUs themselves.
pub const CHIPS: &[CatalogueEntry] = files! { "gpus": "gh100" };

/// Memory devices, for `dram.device`.
pub const DRAMS: &[CatalogueEntry] = files! {
    "drams": "gddr5", "gddr5x", "gddr6", "gddr6x", "hbm2", "hbm2e", "hbm3", "hbm3e",
};

/// Which units of a chip are disabled, for `device.floorsweeping`.
pub const FLOORSWEEPINGS: &[CatalogueEntry] = files! {
    "gpus/floorsweeping": "none", "h200-specimen",
};

/// Files that a key names.
pub struct PartKind {
    /// The key.
    pub key: &'static str,
    /// What such a file describes.
    pub what: &'static str,
    /// The keys that it may have, or the sections of them.
    pub keys: &'static [&'static str],
    /// Those that come with the program.
    pub entries: &'static [CatalogueEntry],
}

impl PartKind {
    /// Whether a file of this kind may have a key.
    pub fn may_have(&self, key: &str) -> bool {
        let section = |known: &str| {
            let rest = key.strip_prefix(known);
            rest.is_some_and(|rest| rest.starts_with('.'))
        };
        key != self.key
            && self
                .keys
                .iter()
                .any(|known| *known == key || section(known))
    }
}

/// Every kind of part.
pub const PARTS: &[PartKind] = &[
    PartKind {
        key: "dram.device",
        what: "DRAM device",
        keys: &["dram"],
        entries: DRAMS,
    },
    PartKind {
        key: "device.floorsweeping",
        what: "floorsweeping",
        keys: &[
            "device.gpc-tpcs",
            "device.gpc-of-tpc",
            "l2.first-partition-gpcs",
            "interconnect.tpc-hop-latency",
            "dispatch.first-sms",
            "dispatch.first-sms-turns",
        ],
        entries: FLOORSWEEPINGS,
    },
];

/// The GPU of that name.
pub fn find(name: &str) -> Option<&'static CatalogueEntry> {
    find_in(CATALOGUE, name)
}

/// The entry of that name.
pub(crate) fn find_in(
    entries: &'static [CatalogueEntry],
    name: &str,
) -> Option<&'static CatalogueEntry> {
    entries
        .iter()
        .find(|entry| entry.name.eq_ignore_ascii_case(name))
}
