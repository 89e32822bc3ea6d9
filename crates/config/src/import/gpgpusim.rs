//! Options of GPGPU-Sim, Accel-Sim and UVMSmart.
//!
//! [`keys`](super::keys) has those of one number and those without a counterpart; what needs more is
//! computed by the files beside this one, one idea each.

use super::keys::{COMPUTED, LEFT, TAKEN, left};
use super::steps::Steps;
use super::{Imported, caches, chip, dram, managed, nearest_gpu, options, pipes};
use crate::{ConfigError, load};

/// The GPU below a file of UVMSmart.
const MANAGED_BASE: &str = "gtx1080ti-uvmsmart";

/// Makes a GPU file from files of options.
pub(super) fn import(
    files: &[(String, String)],
    base: Option<&str>,
) -> Result<Imported, ConfigError> {
    let options = options::read(files)?;
    let base = match base {
        Some(base) => base.to_string(),
        None => {
            let below = load::<&str>(None, &[])?;
            base_of(&Steps::new(&options, &below))?
        }
    };
    let below = load::<&str>(Some(&base), &[])?;
    let mut steps = Steps::new(&options, &below);
    take_plain(&mut steps)?;
    chip::take(&mut steps)?;
    caches::take(&mut steps)?;
    dram::take(&mut steps)?;
    pipes::take(&mut steps)?;
    managed::take(&mut steps)?;
    leave_rest(&mut steps);
    let names: Vec<&str> = files.iter().map(|(path, _)| path.as_str()).collect();
    steps.finish(&names.join(" and "), &base)
}

/// The GPU of the catalogue that is nearest to what the options describe.
fn base_of(steps: &Steps<'_>) -> Result<String, ConfigError> {
    if managed::is_given(steps) {
        return Ok(MANAGED_BASE.into());
    }
    let architecture = chip::architecture(steps)?.unwrap_or(70);
    Ok(nearest_gpu(u32::try_from(architecture).unwrap_or(u32::MAX)).into())
}

fn take_plain(steps: &mut Steps<'_>) -> Result<(), ConfigError> {
    for row in TAKEN {
        if let Some(number) = steps.number(&[row.option])? {
            let value = format!("{number}{}", row.unit);
            steps.take(&[row.option], "", &[(row.key, value)]);
        }
    }
    Ok(())
}

/// Says what becomes of every option that nobody took.
fn leave_rest(steps: &mut Steps<'_>) {
    let rest: Vec<String> = steps
        .options
        .keys()
        .filter(|name| !steps.is_settled(name))
        .cloned()
        .collect();
    for option in rest {
        let because = left(&option).map_or_else(|| unknown(&option), str::to_string);
        steps.leave(&option, because);
    }
}

fn unknown(option: &str) -> String {
    let taken = TAKEN.iter().map(|row| row.option);
    let taken = taken.chain(COMPUTED.iter().copied());
    let left = LEFT
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| !name.ends_with('*'));
    match crate::nearest(option, taken.chain(left)) {
        Some(name) => format!("unknown; did you mean -{name}?"),
        None => "unknown".into(),
    }
}
