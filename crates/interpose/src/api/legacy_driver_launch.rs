//! The driver's launch calls before CUDA 4: a function carries its shape and parameters.

use super::launch::{Arguments, Extras, launch};
use crate::boundary::driver;
use crate::context::current;
use crate::fair_mutex::FairMutex;
use crate::process::lock;
use crate::registry;
use crate::streams::{Defaults, target};
use crate::types::{Address, Dim3, In};
use lockstep_protocol::CuResult;
use std::collections::BTreeMap;

/// No kernel takes more.
const MAXIMUM_PARAMETERS: usize = 4096;

/// What was set on a function so far.
#[derive(Clone)]
struct Setting {
    block: Dim3,
    shared: usize,
    parameters: Vec<u8>,
}

static SETTINGS: FairMutex<BTreeMap<Address, Setting>> = FairMutex::new(BTreeMap::new());

fn change(function: Address, body: impl FnOnce(&mut Setting)) -> Result<(), CuResult> {
    registry::function(function, current()?)?;
    let mut settings = lock(&SETTINGS);
    body(settings.entry(function).or_insert(Setting {
        block: Dim3 { x: 1, y: 1, z: 1 },
        shared: 0,
        parameters: Vec::new(),
    }));
    Ok(())
}

fn set_parameter(function: Address, offset: i32, bytes: &[u8]) -> Result<(), CuResult> {
    let offset = usize::try_from(offset).map_err(|_| CuResult::INVALID_VALUE)?;
    let end = offset + bytes.len();
    if end > MAXIMUM_PARAMETERS {
        return Err(CuResult::INVALID_VALUE);
    }
    change(function, |setting| {
        let parameters = &mut setting.parameters;
        parameters.resize(parameters.len().max(end), 0);
        parameters[offset..end].copy_from_slice(bytes);
    })
}

fn go(function: Address, width: i32, height: i32, stream: Address) -> Result<(), CuResult> {
    let target = target(stream, Defaults::Legacy, current)?;
    let found = registry::function(function, target.context)?;
    let setting = lock(&SETTINGS).get(&function).cloned();
    let mut setting = setting.ok_or(CuResult::INVALID_VALUE)?;
    let dimension = |value: i32| u32::try_from(value).map_err(|_| CuResult::INVALID_VALUE);
    let grid = Dim3 {
        x: dimension(width)?,
        y: dimension(height)?,
        z: 1,
    };
    setting.parameters.resize(MAXIMUM_PARAMETERS, 0);
    let arguments = Arguments::Block(In(setting.parameters.as_ptr()));
    let shape = (grid, setting.block, setting.shared);
    launch(
        target,
        function,
        &found,
        shape,
        arguments,
        Extras::default(),
    )
}

driver! {
    fn cuFuncSetBlockShape(function: Address, x: i32, y: i32, z: i32) {
        if x <= 0 || y <= 0 || z <= 0 {
            return Err(CuResult::INVALID_VALUE);
        }
        let block = Dim3 { x: x as u32, y: y as u32, z: z as u32 };
        change(function, |setting| setting.block = block)
    }

    fn cuFuncSetSharedSize(function: Address, bytes: u32) {
        change(function, |setting| setting.shared = bytes as usize)
    }

    fn cuParamSetSize(function: Address, bytes: u32) {
        if bytes as usize > MAXIMUM_PARAMETERS {
            return Err(CuResult::INVALID_VALUE);
        }
        change(function, |setting| setting.parameters.resize(bytes as usize, 0))
    }

    fn cuParamSeti(function: Address, offset: i32, value: u32) {
        set_parameter(function, offset, &value.to_le_bytes())
    }

    fn cuParamSetf(function: Address, offset: i32, value: f32) {
        set_parameter(function, offset, &value.to_le_bytes())
    }

    fn cuParamSetv(function: Address, offset: i32, value: In<u8>, bytes: u32) {
        if bytes as usize > MAXIMUM_PARAMETERS {
            return Err(CuResult::INVALID_VALUE);
        }
        set_parameter(function, offset, &value.bytes(bytes as usize)?)
    }

    fn cuLaunch(function: Address) {
        go(function, 1, 1, 0)
    }

    fn cuLaunchGrid(function: Address, width: i32, height: i32) {
        go(function, width, height, 0)
    }

    fn cuLaunchGridAsync(function: Address, width: i32, height: i32, stream: Address) {
        go(function, width, height, stream)
    }
}
