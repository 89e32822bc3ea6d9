//! Launches, in all their forms.

use super::event;
pub use super::launch_attribute::Extras;
use super::launch_attribute::{Attribute, extras};
use crate::boundary::{RuntimeError, driver, runtime};
use crate::call::done;
use crate::context::{current, current_for_runtime, find};
use crate::graph::capture;
use crate::graph::model::{KernelNode, NodeWork, PackedArguments};
use crate::process::{lock, process};
use crate::registry::{self, Function};
use crate::streams::{self, Defaults, Target, target};
use crate::thread::{self, Configuration};
use crate::types::{Address, Dim3, In, Out};
use lockstep_protocol::{
    ContextHandle, CuResult, FunctionInfo, Launch, LaunchConfig, Request, attribute,
};
use std::sync::Arc;

/// `cudaLaunchConfig_t`; `CUlaunchConfig` differs only in the width of `shared`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct LaunchConfiguration {
    pub grid: Dim3,
    pub block: Dim3,
    pub shared: usize,
    pub stream: Address,
    pub attributes: In<Attribute>,
    pub attribute_count: u32,
}

/// `CUlaunchConfig`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DriverLaunchConfiguration {
    grid: Dim3,
    block: Dim3,
    shared: u32,
    stream: Address,
    attributes: In<Attribute>,
    attribute_count: u32,
}

impl From<DriverLaunchConfiguration> for LaunchConfiguration {
    fn from(other: DriverLaunchConfiguration) -> Self {
        Self {
            grid: other.grid,
            block: other.block,
            shared: other.shared as usize,
            stream: other.stream,
            attributes: other.attributes,
            attribute_count: other.attribute_count,
        }
    }
}

/// The kernel's arguments as the program passes them.
#[derive(Clone, Copy)]
pub enum Arguments {
    /// A pointer to each.
    Pointers(In<In<u8>>),
    /// The `extra` array: 1, block, 2, address of its size, 0.
    Extra(In<Address>),
    /// A block that is longer than any kernel needs, as the oldest calls fill it.
    Block(In<u8>),
    /// No parameters.
    Nothing,
}

impl Arguments {
    /// Whichever the program passed.
    pub fn new(pointers: In<In<u8>>, extra: In<Address>) -> Self {
        if !pointers.is_null() {
            Self::Pointers(pointers)
        } else if !extra.is_null() {
            Self::Extra(extra)
        } else {
            Self::Nothing
        }
    }

    /// The packed parameter block.
    pub fn pack(self, info: &FunctionInfo) -> Result<Vec<u8>, CuResult> {
        match self {
            Self::Nothing if info.parameters.is_empty() => Ok(Vec::new()),
            Self::Nothing => Err(CuResult::INVALID_VALUE),
            Self::Pointers(pointers) => {
                let mut block = vec![0; info.parameter_bytes()];
                for (index, slot) in info.parameters.iter().enumerate() {
                    let bytes = pointers.at(index)?.bytes(slot.size as usize)?;
                    let start = slot.offset as usize;
                    block[start..start + bytes.len()].copy_from_slice(&bytes);
                }
                Ok(block)
            }
            Self::Extra(extra) => packed(extra, info),
            Self::Block(block) => block.bytes(info.parameter_bytes()),
        }
    }
}

/// Reads the `extra` array.
fn packed(extra: In<Address>, info: &FunctionInfo) -> Result<Vec<u8>, CuResult> {
    const END: Address = 0;
    const BLOCK: Address = 1;
    const SIZE: Address = 2;
    let (mut block, mut size) = (0, None);
    for pair in 0..2 {
        match extra.at(pair * 2)? {
            END => break,
            BLOCK => block = extra.at(pair * 2 + 1)?,
            SIZE => size = Some(In(extra.at(pair * 2 + 1)? as *const usize).get()?),
            _ => return Err(CuResult::INVALID_VALUE),
        }
    }
    let size = size.ok_or(CuResult::INVALID_VALUE)?;
    let wanted = info.parameter_bytes();
    if wanted == 0 {
        return Ok(Vec::new());
    }
    // Padding to whole words after the last parameter may be there or not.
    if size > wanted.next_multiple_of(4) {
        return Err(CuResult::LAUNCH_OUT_OF_RESOURCES);
    }
    // NCCL hands over as much of its one large parameter as it uses.
    let mut bytes = In(block as *const u8).bytes(size.min(wanted))?;
    bytes.resize(wanted, 0);
    Ok(bytes)
}

/// Launches a kernel that is already found.
pub fn launch(
    target: Target,
    handle: Address,
    function: &Arc<Function>,
    shape: (Dim3, Dim3, usize),
    arguments: Arguments,
    extras: Extras,
) -> Result<(), CuResult> {
    let (grid, block, shared) = shape;
    let empty = |dimensions: Dim3| dimensions.x == 0 || dimensions.y == 0 || dimensions.z == 0;
    if empty(grid) || empty(block) {
        return Err(CuResult::INVALID_VALUE);
    }
    let captured = capture::takes(target, || {
        // A node keeps the priority of the stream that it was captured in.
        let priority = extras.priority.or(Some(streams::priority(target)));
        let extras = Extras { priority, ..extras };
        kernel_node(handle, function, shape, arguments, extras).map(NodeWork::Kernel)
    })?;
    if captured {
        return match extras.event {
            Some(event) => event::record(target, event),
            None => Ok(()),
        };
    }
    let (handle, parameters) = {
        let info = lock(&function.info);
        (info.handle, arguments.pack(&info)?)
    };
    done(&Request::Launch(Box::new(Launch {
        context: target.context,
        stream: target.stream,
        function: handle,
        config: LaunchConfig {
            grid: grid.into(),
            block: block.into(),
            dynamic_shared: u32::try_from(shared).map_err(|_| CuResult::INVALID_VALUE)?,
        },
        parameters,
        cooperative: extras.cooperative,
        cluster: extras.cluster,
        priority: extras.priority,
        carveout: extras.carveout,
        programmatic_stream_serialization: extras.programmatic_stream_serialization,
    })))?;
    match extras.event {
        Some(event) => event::record(target, event),
        None => Ok(()),
    }
}

/// A node that launches a kernel.
pub fn kernel_node(
    handle: Address,
    function: &Arc<Function>,
    shape: (Dim3, Dim3, usize),
    arguments: Arguments,
    extras: Extras,
) -> Result<KernelNode, CuResult> {
    let (block, slots) = {
        let info = lock(&function.info);
        (arguments.pack(&info)?, info.parameters.clone())
    };
    let block = block.into_boxed_slice();
    let start = block.as_ptr() as Address;
    let pointers = slots.iter().map(|slot| start + slot.offset as usize);
    Ok(KernelNode {
        handle,
        function: function.clone(),
        grid: shape.0,
        block: shape.1,
        shared: u32::try_from(shape.2).map_err(|_| CuResult::INVALID_VALUE)?,
        arguments: Arc::new(PackedArguments {
            pointers: pointers.collect(),
            block,
        }),
        extras,
    })
}

/// The runtime has a code of its own for shapes that no device accepts.
pub fn check_shape(context: ContextHandle, grid: Dim3, block: Dim3) -> Result<(), RuntimeError> {
    let device = find(context)?.device;
    let description = &process()?.devices[device].description;
    let limit = |number: u32| description.attribute(number).max(1) as u64;
    let within = |value: u32, number: u32| value >= 1 && u64::from(value) <= limit(number);
    let threads = u64::from(block.x) * u64::from(block.y) * u64::from(block.z);
    let fits = within(grid.x, attribute::MAX_GRID_DIM_X)
        && within(grid.y, attribute::MAX_GRID_DIM_Y)
        && within(grid.z, attribute::MAX_GRID_DIM_Z)
        && within(block.x, attribute::MAX_BLOCK_DIM_X)
        && within(block.y, attribute::MAX_BLOCK_DIM_Y)
        && within(block.z, attribute::MAX_BLOCK_DIM_Z)
        && threads <= limit(attribute::MAX_THREADS_PER_BLOCK);
    if fits {
        Ok(())
    } else {
        Err(RuntimeError::INVALID_CONFIGURATION)
    }
}

/// Launches for the runtime, by the address of a host stub or any handle.
pub fn launch_for_runtime(
    function: Address,
    shape: (Dim3, Dim3, usize),
    arguments: Arguments,
    stream: Address,
    defaults: Defaults,
    extras: Extras,
) -> Result<(), RuntimeError> {
    let target = target(stream, defaults, current_for_runtime)?;
    let found = find_for_runtime(function, target.context)?;
    check_shape(target.context, shape.0, shape.1)?;
    Ok(launch(target, function, &found, shape, arguments, extras)?)
}

/// Launches as a `cudaLaunchConfig_t` says.
fn launch_configured(
    configuration: LaunchConfiguration,
    function: Address,
    arguments: In<In<u8>>,
    defaults: Defaults,
) -> Result<(), RuntimeError> {
    let extras = extras(configuration.attributes, configuration.attribute_count)?;
    let shape = (
        configuration.grid,
        configuration.block,
        configuration.shared,
    );
    let arguments = Arguments::new(arguments, In(std::ptr::null()));
    launch_for_runtime(
        function,
        shape,
        arguments,
        configuration.stream,
        defaults,
        extras,
    )
}

/// Since 13 the runtime has no codes of its own for launches that are refused.
pub fn since_13<T>(outcome: Result<T, RuntimeError>) -> Result<T, RuntimeError> {
    outcome.map_err(|error| match error {
        RuntimeError::INVALID_CONFIGURATION => RuntimeError::INVALID_VALUE,
        RuntimeError::INVALID_DEVICE_FUNCTION => CuResult::INVALID_HANDLE.into(),
        other => other,
    })
}

/// The kernel behind a handle; the runtime has a code of its own for one it does not know.
pub fn find_for_runtime(
    function: Address,
    context: ContextHandle,
) -> Result<Arc<Function>, RuntimeError> {
    registry::function(function, context).map_err(|error| match error {
        CuResult::INVALID_HANDLE | CuResult::NOT_FOUND => RuntimeError::INVALID_DEVICE_FUNCTION,
        other => other.into(),
    })
}

runtime! {
    fn cudaLaunchKernel | cudaLaunchKernel_ptsz [defaults] (function: Address, grid: Dim3, block: Dim3, arguments: In<In<u8>>, shared: usize, stream: Address) {
        let arguments = Arguments::new(arguments, In(std::ptr::null()));
        launch_for_runtime(function, (grid, block, shared), arguments, stream, defaults, Extras::default())
    }

    /// What `<<<…>>>` comes to since 13.
    fn __cudaLaunchKernel | __cudaLaunchKernel_ptsz [defaults] (kernel: Address, grid: Dim3, block: Dim3, arguments: In<In<u8>>, shared: usize, stream: Address) {
        let arguments = Arguments::new(arguments, In(std::ptr::null()));
        since_13(launch_for_runtime(kernel, (grid, block, shared), arguments, stream, defaults, Extras::default()))
    }

    fn cudaLaunchKernel_v13 | cudaLaunchKernel_v13_ptsz [defaults] (function: Address, grid: Dim3, block: Dim3, arguments: In<In<u8>>, shared: usize, stream: Address) {
        let arguments = Arguments::new(arguments, In(std::ptr::null()));
        since_13(launch_for_runtime(function, (grid, block, shared), arguments, stream, defaults, Extras::default()))
    }

    fn cudaLaunchCooperativeKernel | cudaLaunchCooperativeKernel_ptsz [defaults] (function: Address, grid: Dim3, block: Dim3, arguments: In<In<u8>>, shared: usize, stream: Address) {
        let arguments = Arguments::new(arguments, In(std::ptr::null()));
        launch_for_runtime(function, (grid, block, shared), arguments, stream, defaults, Extras::COOPERATIVE)
    }

    fn cudaLaunchKernelExC | cudaLaunchKernelExC_ptsz [defaults] (configuration: In<LaunchConfiguration>, function: Address, arguments: In<In<u8>>) {
        launch_configured(configuration.get()?, function, arguments, defaults)
    }

    fn cudaLaunchKernelExC_v13 | cudaLaunchKernelExC_v13_ptsz [defaults] (configuration: In<LaunchConfiguration>, function: Address, arguments: In<In<u8>>) {
        since_13(launch_configured(configuration.get()?, function, arguments, defaults))
    }

    fn __cudaPopCallConfiguration(grid: Out<Dim3>, block: Out<Dim3>, shared: Out<usize>, stream: Out<Address>) {
        let popped = thread::current().configurations.borrow_mut().pop();
        let configuration = popped.ok_or(RuntimeError::MISSING_CONFIGURATION)?;
        grid.set(configuration.grid)?;
        block.set(configuration.block)?;
        shared.set(configuration.shared)?;
        Ok(stream.set(configuration.stream)?)
    }

    fn __cudaPushCallConfiguration(grid: Dim3, block: Dim3, shared: usize, stream: Address) {
        thread::current().configurations.borrow_mut().push(Configuration { grid, block, shared, stream });
        Ok(())
    }
}

driver! {
    fn cuLaunchKernel | cuLaunchKernel_ptsz [defaults] (
        function: Address, grid_x: u32, grid_y: u32, grid_z: u32, block_x: u32, block_y: u32, block_z: u32,
        shared: u32, stream: Address, arguments: In<In<u8>>, extra: In<Address>
    ) {
        let target = target(stream, defaults, current)?;
        let found = registry::function(function, target.context)?;
        let grid = Dim3 { x: grid_x, y: grid_y, z: grid_z };
        let block = Dim3 { x: block_x, y: block_y, z: block_z };
        let arguments = Arguments::new(arguments, extra);
        launch(target, function, &found, (grid, block, shared as usize), arguments, Extras::default())
    }

    fn cuLaunchCooperativeKernel | cuLaunchCooperativeKernel_ptsz [defaults] (
        function: Address, grid_x: u32, grid_y: u32, grid_z: u32, block_x: u32, block_y: u32, block_z: u32,
        shared: u32, stream: Address, arguments: In<In<u8>>
    ) {
        let target = target(stream, defaults, current)?;
        let found = registry::function(function, target.context)?;
        let grid = Dim3 { x: grid_x, y: grid_y, z: grid_z };
        let block = Dim3 { x: block_x, y: block_y, z: block_z };
        let arguments = Arguments::new(arguments, In(std::ptr::null()));
        launch(target, function, &found, (grid, block, shared as usize), arguments, Extras::COOPERATIVE)
    }

    fn cuLaunchKernelEx | cuLaunchKernelEx_ptsz [defaults] (configuration: In<DriverLaunchConfiguration>, function: Address, arguments: In<In<u8>>, extra: In<Address>) {
        let configuration = LaunchConfiguration::from(configuration.get()?);
        let extras = extras(configuration.attributes, configuration.attribute_count)?;
        let target = target(configuration.stream, defaults, current)?;
        let found = registry::function(function, target.context)?;
        let shape = (configuration.grid, configuration.block, configuration.shared);
        launch(target, function, &found, shape, Arguments::new(arguments, extra), extras)
    }
}

/// The launch that an occupancy query describes.
pub fn describe(
    context: ContextHandle,
    function: &Function,
    configuration: LaunchConfiguration,
) -> Result<Box<Launch>, CuResult> {
    let extras = extras(configuration.attributes, configuration.attribute_count)?;
    Ok(Box::new(Launch {
        context,
        stream: lockstep_protocol::StreamName::Legacy,
        function: lock(&function.info).handle,
        config: LaunchConfig {
            grid: configuration.grid.into(),
            block: configuration.block.into(),
            dynamic_shared: configuration.shared as u32,
        },
        parameters: Vec::new(),
        cooperative: extras.cooperative,
        cluster: extras.cluster,
        priority: extras.priority,
        carveout: extras.carveout,
        programmatic_stream_serialization: false,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_protocol::{FunctionAttributes, FunctionHandle, ParameterSlot};

    fn function() -> FunctionInfo {
        FunctionInfo {
            handle: FunctionHandle(1),
            name: "k".into(),
            parameters: vec![
                ParameterSlot { offset: 0, size: 2 },
                ParameterSlot { offset: 8, size: 4 },
            ],
            attributes: FunctionAttributes::default(),
        }
    }

    #[test]
    fn arguments_are_packed_where_the_image_says() {
        let (first, second) = (0x1122u16, 0x33445566u32);
        let pointers = [
            In((&raw const first).cast()),
            In((&raw const second).cast()),
        ];
        let arguments = Arguments::new(In(pointers.as_ptr()), In(std::ptr::null()));
        let block = arguments.pack(&function()).unwrap();
        assert_eq!(
            block,
            [0x22, 0x11, 0, 0, 0, 0, 0, 0, 0x66, 0x55, 0x44, 0x33]
        );
    }

    #[test]
    fn the_extra_array_carries_a_packed_block() {
        let block = [7u8; 12];
        let size = block.len();
        let extra = [
            1,
            block.as_ptr() as Address,
            2,
            &raw const size as Address,
            0,
        ];
        let arguments = Arguments::new(In(std::ptr::null()), In(extra.as_ptr()));
        assert_eq!(arguments.pack(&function()).unwrap(), [7; 12]);
        let of_size = |size: &usize| {
            let size = std::ptr::from_ref(size) as Address;
            let extra = [1, block.as_ptr() as Address, 2, size, 0];
            Arguments::new(In(std::ptr::null()), In(extra.as_ptr())).pack(&function())
        };
        let mut short = [0; 12];
        short[..4].fill(7);
        assert_eq!(of_size(&4).unwrap(), short, "what is not there is zero");
        assert_eq!(of_size(&16), Err(CuResult::LAUNCH_OUT_OF_RESOURCES));
    }

    #[test]
    fn missing_arguments_are_an_invalid_value() {
        let none = Arguments::new(In(std::ptr::null()), In(std::ptr::null()));
        assert_eq!(none.pack(&function()), Err(CuResult::INVALID_VALUE));
    }

    #[test]
    fn structures_have_the_sizes_of_the_headers() {
        assert_eq!(size_of::<LaunchConfiguration>(), 56);
        assert_eq!(size_of::<DriverLaunchConfiguration>(), 56);
    }
}
