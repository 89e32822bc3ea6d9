//! The files of the page.

/// A file of the page.
pub struct Asset {
    /// Its name in addresses.
    pub name: &'static str,
    /// Its kind.
    pub kind: &'static str,
    /// Its bytes.
    pub bytes: &'static [u8],
}

const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

macro_rules! page {
    ($name:literal, $kind:expr) => {
        Asset {
            name: $name,
            kind: $kind,
            bytes: include_bytes!(concat!("../page/", $name)),
        }
    };
}

macro_rules! library {
    ($name:literal, $file:literal, $kind:expr) => {
        Asset {
            name: $name,
            kind: $kind,
            bytes: include_bytes!(concat!(env!("OUT_DIR"), "/", $file)),
        }
    };
}

/// All files.
pub const ASSETS: &[Asset] = &[
    page!("index.html", "text/html; charset=utf-8"),
    page!("style.css", STYLE),
    page!("app.js", SCRIPT),
    page!("charts.js", SCRIPT),
    page!("format.js", SCRIPT),
    page!("kernels.js", SCRIPT),
    library!("uplot.js", "uPlot.iife.min.js", SCRIPT),
    library!("uplot.css", "uPlot.min.css", STYLE),
    library!("uplot-licence.txt", "LICENSE", "text/plain; charset=utf-8"),
];

/// Whether the charting library was there when this was built.
pub fn has_charts() -> bool {
    let script = ASSETS.iter().find(|asset| asset.name == "uplot.js");
    script.is_some_and(|asset| !asset.bytes.is_empty())
}
