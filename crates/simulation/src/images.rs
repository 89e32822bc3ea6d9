//! From the images that a program hands over to code: which one, by which front end.

use lockstep_protocol::{CuResult, Failure, ModuleImage};
use lockstep_runtime::{CallResult, LoadOptions, ModuleSource};

/// Chooses among images and reads the chosen one.
pub fn load(_images: &[ModuleImage], _options: &LoadOptions) -> CallResult<Box<dyn ModuleSource>> {
    Err(Failure {
        code: CuResult::INVALID_IMAGE,
        message: "no front end".into(),
    })
}
