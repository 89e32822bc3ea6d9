//! A recorded run of a real GPU, and an exporter that serves its end.

use std::path::{Path, PathBuf};

use lockstep_exporter::{Access, Options, Origin};

/// A vector addition on an H200, sampled every millisecond.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../validation/hardware/h200/counters/raw/series-vector_add-1ms-1")
}

/// Serves it on a free port.
pub fn options() -> Options {
    Options {
        origin: Origin::Recording {
            folder: folder(),
            speed: None,
        },
        top_kernels: 0,
        prometheus: Some("127.0.0.1:0".parse().unwrap()),
        access: Access::default(),
        otlp: None,
    }
}
