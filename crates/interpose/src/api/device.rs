//! Devices: how many, which is current, what they are.

use super::context::{accept_context_flags, cache_preference, set_cache_preference};
use crate::boundary::{RuntimeError, driver, runtime};
use crate::context;
use crate::options;
use crate::process::{device, process};
use crate::thread;
use crate::types::{Out, Text};
use lockstep_protocol::options::Group;
use lockstep_protocol::{CuResult, DeviceDescription, attribute};

/// An attribute of a device. One that the driver of this version does not have is an invalid value;
/// one that it has and no model knows is 0.
fn attribute_of(number: i32, wanted: u32) -> Result<i32, CuResult> {
    let description = &device(number)?.description;
    if (1..=attribute::LAST).contains(&wanted) {
        Ok(description.attribute(wanted))
    } else {
        Err(CuResult::INVALID_VALUE)
    }
}

runtime! {
    fn cudaGetDeviceCount(count: Out<i32>) {
        count.check()?;
        let devices = process().map_or(0, |process| process.devices.len());
        count.set(devices as i32)?;
        Ok(context::initialize()?)
    }

    fn cudaGetDevice(number: Out<i32>) {
        context::initialize()?;
        Ok(number.set(current_device()? as i32)?)
    }

    fn cudaSetDevice(number: i32) {
        choose(number)
    }

    fn cudaInitDevice(number: i32, device_flags: u32, flags: u32) {
        const FLAGS_ARE_VALID: u32 = 1;
        if flags & FLAGS_ARE_VALID != 0 {
            accept_context_flags(device_flags)?;
        }
        choose(number)?;
        context::current_for_runtime()?;
        Ok(())
    }

    fn cudaSetValidDevices(devices: crate::types::In<i32>, count: i32) {
        if count > 0 {
            choose(devices.get()?)?;
        }
        Ok(())
    }

    fn cudaDeviceGetAttribute(value: Out<i32>, attribute: u32, number: i32) {
        context::initialize()?;
        Ok(value.set(attribute_of(number, attribute)?)?)
    }

    fn cudaDeviceGetPCIBusId(text: Out<u8>, length: i32, number: i32) {
        let location = pci_location(&device(number)?.description);
        Ok(text.set_text(&location, room_for(&location, length)?)?)
    }

    fn cudaDeviceGetByPCIBusId(number: Out<i32>, text: Text) {
        Ok(number.set(by_pci_location(&text.get()?)?)?)
    }

    fn cudaDeviceSynchronize() {
        Ok(context::synchronize(context::current_for_runtime()?)?)
    }

    fn cudaThreadSynchronize() {
        Ok(context::synchronize(context::current_for_runtime()?)?)
    }

    fn cudaDeviceReset() {
        reset()
    }

    fn cudaThreadExit() {
        reset()
    }

    fn cudaSetDeviceFlags(flags: u32) {
        let device = current_device()?;
        accept_context_flags(flags)?;
        context::set_primary_flags(device, flags);
        Ok(())
    }

    fn cudaGetDeviceFlags(flags: Out<u32>) {
        const MAP_HOST: u32 = 8;
        let device = current_device()?;
        Ok(flags.set(context::primary_state(device).0 | MAP_HOST)?)
    }

    fn cudaDeviceSetCacheConfig(preference: u32) {
        Ok(set_cache_preference(preference)?)
    }

    fn cudaThreadSetCacheConfig(preference: u32) {
        Ok(set_cache_preference(preference)?)
    }

    fn cudaDeviceGetCacheConfig(preference: Out<u32>) {
        Ok(preference.set(cache_preference())?)
    }

    fn cudaThreadGetCacheConfig(preference: Out<u32>) {
        Ok(preference.set(cache_preference())?)
    }

    /// Banks have been four bytes wide since compute capability 5.0, whatever is asked.
    fn cudaDeviceSetSharedMemConfig(preference: u32) {
        Ok(options::accept(Group::SharedBanks, preference)?)
    }

    fn cudaDeviceGetSharedMemConfig(preference: Out<i32>) {
        Ok(preference.set(1)?)
    }
}

/// The length of a buffer that holds all of a text.
fn room_for(text: &str, length: i32) -> Result<usize, CuResult> {
    let length = usize::try_from(length).unwrap_or(0);
    if length <= text.len() {
        return Err(CuResult::INVALID_VALUE);
    }
    Ok(length)
}

driver! {
    fn cuInit(flags: u32) {
        if flags != 0 {
            return Err(CuResult::INVALID_VALUE);
        }
        context::initialize()
    }

    fn cuDeviceGet(handle: Out<i32>, number: i32) {
        context::check_initialized()?;
        device(number)?;
        handle.set(number)
    }

    fn cuDeviceGetCount(count: Out<i32>) {
        context::check_initialized()?;
        count.set(process()?.devices.len() as i32)
    }

    fn cuDeviceGetName(text: Out<u8>, length: i32, number: i32) {
        context::check_initialized()?;
        let name = &device(number)?.description.name;
        text.set_text(name, usize::try_from(length).unwrap_or(0))
    }

    fn cuDeviceGetUuid(uuid: Out<[u8; 16]>, number: i32) {
        context::check_initialized()?;
        uuid.set(device(number)?.description.uuid)
    }

    fn cuDeviceGetUuid_v2(uuid: Out<[u8; 16]>, number: i32) {
        context::check_initialized()?;
        uuid.set(device(number)?.description.uuid)
    }

    fn cuDeviceTotalMem_v2(bytes: Out<usize>, number: i32) {
        context::check_initialized()?;
        bytes.set(device(number)?.description.total_memory as usize)
    }

    fn cuDeviceGetAttribute(value: Out<i32>, attribute: u32, number: i32) {
        context::check_initialized()?;
        value.set(attribute_of(number, attribute)?)
    }

    fn cuDeviceComputeCapability(major: Out<i32>, minor: Out<i32>, number: i32) {
        let capability = device(number)?.description.compute_capability();
        major.set(capability.0)?;
        minor.set(capability.1)
    }

    fn cuDeviceGetPCIBusId(text: Out<u8>, length: i32, number: i32) {
        context::check_initialized()?;
        let location = pci_location(&device(number)?.description);
        text.set_text(&location, room_for(&location, length)?)
    }

    fn cuDeviceGetByPCIBusId(number: Out<i32>, text: Text) {
        context::check_initialized()?;
        number.set(by_pci_location(&text.get()?)?)
    }

    fn cuDeviceGetProperties(properties: Out<[i32; 14]>, number: i32) {
        let description = &device(number)?.description;
        // `CUdevprop`: eight limits, then six sizes, in the order of the structure.
        properties.set([
            attribute::MAX_THREADS_PER_BLOCK,
            attribute::MAX_BLOCK_DIM_X,
            attribute::MAX_BLOCK_DIM_Y,
            attribute::MAX_BLOCK_DIM_Z,
            attribute::MAX_GRID_DIM_X,
            attribute::MAX_GRID_DIM_Y,
            attribute::MAX_GRID_DIM_Z,
            attribute::MAX_SHARED_MEMORY_PER_BLOCK,
            attribute::TOTAL_CONSTANT_MEMORY,
            attribute::WARP_SIZE,
            attribute::MAX_PITCH,
            attribute::MAX_REGISTERS_PER_BLOCK,
            attribute::CLOCK_RATE,
            attribute::TEXTURE_ALIGNMENT,
        ].map(|number| description.attribute(number)))
    }
}

/// The device of the current context, else the one chosen for this thread.
pub fn current_device() -> Result<usize, CuResult> {
    let thread = thread::current();
    let top = thread.contexts.borrow().last().copied();
    match top.and_then(|context| context::find(context).ok()) {
        Some(context) => Ok(context.device),
        None => Ok(thread.device.get()),
    }
}

fn choose(number: i32) -> Result<(), RuntimeError> {
    context::initialize()?;
    device(number)?;
    let thread = thread::current();
    thread.device.set(number as usize);
    thread.contexts.borrow_mut().pop();
    // Since 12, choosing a device makes its primary context current at once.
    context::current_for_runtime()?;
    Ok(())
}

fn reset() -> Result<(), RuntimeError> {
    context::initialize()?;
    let thread = thread::current();
    let device = current_device()?;
    thread.contexts.borrow_mut().pop();
    thread.device.set(device);
    thread.last_error.set(0);
    Ok(context::reset_primary(device)?)
}

/// `domain:bus:device.function`.
fn pci_location(description: &DeviceDescription) -> String {
    format!(
        "{:04x}:{:02x}:{:02x}.0",
        description.attribute(attribute::PCI_DOMAIN_ID),
        description.attribute(attribute::PCI_BUS_ID),
        description.attribute(attribute::PCI_DEVICE_ID)
    )
}

fn by_pci_location(text: &str) -> Result<i32, CuResult> {
    let text = text.to_lowercase();
    if !text.contains(':') {
        return Err(CuResult::INVALID_VALUE);
    }
    let devices = &process()?.devices;
    let found = devices.iter().position(|device| {
        let location = pci_location(&device.description);
        // The domain and the function may be left out.
        location == text
            || location.strip_suffix(".0") == Some(&text)
            || location.get(5..) == Some(&text)
            || location.get(5..10) == Some(&text)
    });
    found
        .map(|index| index as i32)
        .ok_or(CuResult::INVALID_DEVICE)
}
