//! Versions.

use crate::boundary::{driver, runtime};
use crate::process::process;
use crate::types::Out;

/// What we answer where no simulator says otherwise.
const DRIVER_VERSION: i32 = 13030;

runtime! {
    fn cudaDriverGetVersion(version: Out<i32>) {
        Ok(version.set(driver_version())?)
    }

    fn cudaRuntimeGetVersion(version: Out<i32>) {
        Ok(version.set(11080)?)
    }

    fn cudaRuntimeGetVersion_v12(version: Out<i32>) {
        Ok(version.set(12090)?)
    }

    fn cudaRuntimeGetVersion_v13(version: Out<i32>) {
        Ok(version.set(13030)?)
    }
}

driver! {
    fn cuDriverGetVersion(version: Out<i32>) {
        version.set(driver_version())
    }
}

fn driver_version() -> i32 {
    process().map_or(DRIVER_VERSION, |process| process.driver_version)
}
