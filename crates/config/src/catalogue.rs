//! The GPUs that come with the program.
//!
//! To add one: a file in `configs/gpus` and a line here.

/// A GPU file that is part of the binary.
#[derive(Clone, Copy, Debug)]
pub struct CatalogueEntry {
    /// What `--gpu` takes.
    pub name: &'static str,
    /// The file, with the source of every number.
    pub text: &'static str,
}

impl CatalogueEntry {
    /// The first line of the file: what this GPU is.
    pub fn title(&self) -> &'static str {
        self.text
            .lines()
            .next()
            .unwrap_or_default()
            .trim_start_matches(['#', ' '])
    }
}

/// The GPU that is simulated when none is named.
pub const DEFAULT_GPU: &str = "h200";

/// Every GPU that comes with the program, newest first.
pub const CATALOGUE: &[CatalogueEntry] = &[
    CatalogueEntry {
        name: "h200",
        text: include_str!("../../../configs/gpus/h200.toml"),
    },
    CatalogueEntry {
        name: "h100",
        text: include_str!("../../../configs/gpus/h100.toml"),
    },
    CatalogueEntry {
        name: "rtx3080ti",
        text: include_str!("../../../configs/gpus/rtx3080ti.toml"),
    },
    CatalogueEntry {
        name: "a100",
        text: include_str!("../../../configs/gpus/a100.toml"),
    },
    CatalogueEntry {
        name: "rtx2060",
        text: include_str!("../../../configs/gpus/rtx2060.toml"),
    },
    CatalogueEntry {
        name: "v100",
        text: include_str!("../../../configs/gpus/v100.toml"),
    },
    CatalogueEntry {
        name: "gtx1080ti-uvmsmart",
        text: include_str!("../../../configs/gpus/gtx1080ti-uvmsmart.toml"),
    },
    CatalogueEntry {
        name: "v100-sst",
        text: include_str!("../../../configs/gpus/v100-sst.toml"),
    },
    CatalogueEntry {
        name: "sst-listing1",
        text: include_str!("../../../configs/gpus/sst-listing1.toml"),
    },
    CatalogueEntry {
        name: "p100",
        text: include_str!("../../../configs/gpus/p100.toml"),
    },
];

/// The catalogue entry of that name.
pub fn find(name: &str) -> Option<&'static CatalogueEntry> {
    CATALOGUE
        .iter()
        .find(|entry| entry.name.eq_ignore_ascii_case(name))
}
