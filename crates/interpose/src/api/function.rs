//! Kernels: their attributes and parameters.

use super::launch::find_for_runtime;
use crate::boundary::{RuntimeError, driver, runtime};
use crate::call::done;
use crate::context::{check_initialized, current, current_for_runtime, retain_primary};
use crate::fair_mutex::FairMutex;
use crate::opaque::{self, Kind};
use crate::options;
use crate::process::{device, lock};
use crate::registry::{self, Function};
use crate::types::{Address, Out};
use lockstep_protocol::options::Group;
use lockstep_protocol::{ContextHandle, CuResult, FunctionAttributes, ParameterSlot, Request};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::sync::Arc;

fn get(function: &Function, number: u32) -> Result<i32, CuResult> {
    let value = lock(&function.info).attributes.get(number);
    value.ok_or(CuResult::INVALID_VALUE)
}

fn set(function: &Function, number: u32, value: i32) -> Result<(), CuResult> {
    const CARVEOUT: u32 = 9;
    // What is as it was needs no word; what reads as 0 is off.
    if value != 0 || number <= CARVEOUT {
        options::accept(Group::FunctionAttribute, number)?;
    }
    let handle = lock(&function.info).handle;
    done(&Request::FunctionSetAttribute {
        function: handle,
        attribute: number,
        value,
    })?;
    if let Some(place) = lock(&function.info).attributes.get_mut(number) {
        *place = value;
    }
    Ok(())
}

/// Says whether a kernel prefers shared memory or L1.
fn prefer(function: &Function, preference: u32) -> Result<(), CuResult> {
    options::accept(Group::FunctionCache, preference)?;
    let handle = lock(&function.info).handle;
    done(&Request::FunctionCachePreference {
        function: handle,
        preference,
    })?;
    *lock(&function.cache_preference) = preference;
    Ok(())
}

fn parameter(function: &Function, index: usize) -> Result<ParameterSlot, CuResult> {
    let slot = lock(&function.info).parameters.get(index).copied();
    slot.ok_or(CuResult::INVALID_VALUE)
}

fn parameter_answer(
    function: &Function,
    index: usize,
    offset: Out<usize>,
    size: Out<usize>,
) -> Result<(), CuResult> {
    let slot = parameter(function, index)?;
    offset.set(slot.offset as usize)?;
    size.set_if_wanted(slot.size as usize);
    Ok(())
}

/// The handle that the driver API has for a kernel in a context.
pub fn handle_of(function: &Function) -> Address {
    opaque::encode(Kind::Function, lock(&function.info).handle.0)
}

/// A name as C wants it. Programs keep the pointer, so each name is made once and stays.
fn name_pointer(name: &str) -> Result<Address, CuResult> {
    static NAMES: FairMutex<BTreeMap<String, CString>> = FairMutex::new(BTreeMap::new());
    let mut names = lock(&NAMES);
    if let Some(text) = names.get(name) {
        return Ok(text.as_ptr() as Address);
    }
    let text = CString::new(name).map_err(|_| CuResult::INVALID_VALUE)?;
    let pointer = text.as_ptr() as Address;
    names.insert(name.to_string(), text);
    Ok(pointer)
}

/// The kernel behind a handle in the primary context of a device.
fn on_device(kernel: Address, number: i32) -> Result<Arc<Function>, CuResult> {
    registry::function(kernel, context_on(number)?)
}

/// The current context if it is on that device, else the device's primary context.
fn context_on(number: i32) -> Result<ContextHandle, CuResult> {
    check_initialized()?;
    device(number)?;
    if let Ok(context) = current()
        && crate::context::find(context)?.device == number as usize
    {
        return Ok(context);
    }
    retain_primary(number as usize)
}

/// `cudaFuncAttributes` up to 11.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Attributes {
    static_shared: usize,
    constant: usize,
    local: usize,
    maximum_threads: i32,
    registers: i32,
    ptx_version: i32,
    binary_version: i32,
    cache_mode_ca: i32,
    maximum_dynamic_shared: i32,
    preferred_carveout: i32,
}

/// `cudaFuncAttributes` since 12.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Attributes12 {
    first: AttributesPacked,
    cluster_size_must_be_set: i32,
    required_cluster: [i32; 3],
    cluster_scheduling_policy: i32,
    non_portable_cluster_allowed: i32,
    reserved: [i32; 17],
}

/// The members of 11 without the padding at their end.
#[repr(C, packed(4))]
#[derive(Clone, Copy)]
struct AttributesPacked(Attributes52);

#[repr(C, packed(4))]
#[derive(Clone, Copy)]
struct Attributes52 {
    sizes: [usize; 3],
    numbers: [i32; 7],
}

impl From<&FunctionAttributes> for Attributes {
    fn from(source: &FunctionAttributes) -> Self {
        Self {
            static_shared: source.static_shared as usize,
            constant: source.constant as usize,
            local: source.local as usize,
            maximum_threads: source.maximum_threads,
            registers: source.registers,
            ptx_version: source.ptx_version,
            binary_version: source.binary_version,
            cache_mode_ca: source.cache_mode_ca,
            maximum_dynamic_shared: source.maximum_dynamic_shared,
            preferred_carveout: source.preferred_carveout,
        }
    }
}

impl From<&FunctionAttributes> for Attributes12 {
    fn from(source: &FunctionAttributes) -> Self {
        let first = Attributes::from(source);
        Self {
            first: AttributesPacked(Attributes52 {
                sizes: [first.static_shared, first.constant, first.local],
                numbers: [
                    first.maximum_threads,
                    first.registers,
                    first.ptx_version,
                    first.binary_version,
                    first.cache_mode_ca,
                    first.maximum_dynamic_shared,
                    first.preferred_carveout,
                ],
            }),
            cluster_size_must_be_set: source.cluster_size_must_be_set,
            required_cluster: [
                source.required_cluster_width,
                source.required_cluster_height,
                source.required_cluster_depth,
            ],
            cluster_scheduling_policy: source.cluster_scheduling_policy,
            non_portable_cluster_allowed: source.non_portable_cluster_allowed,
            reserved: [0; 17],
        }
    }
}

fn find(function: Address) -> Result<Arc<Function>, RuntimeError> {
    find_for_runtime(function, current_for_runtime()?)
}

runtime! {
    fn cudaFuncGetAttributes(answer: Out<Attributes>, function: Address) {
        answer.check()?;
        let function = find(function)?;
        let attributes = Attributes::from(&lock(&function.info).attributes);
        Ok(answer.set(attributes)?)
    }

    fn cudaFuncGetAttributes_v12(answer: Out<Attributes12>, function: Address) {
        answer.check()?;
        let function = find(function)?;
        let attributes = Attributes12::from(&lock(&function.info).attributes);
        Ok(answer.set(attributes)?)
    }

    fn cudaFuncSetAttribute(function: Address, number: u32, value: i32) {
        Ok(set(&*find(function)?, number, value)?)
    }

    fn cudaKernelSetAttributeForDevice(kernel: Address, number: u32, value: i32, device: i32) {
        Ok(set(&*on_device(kernel, device)?, number, value)?)
    }

    fn cudaFuncSetCacheConfig(function: Address, preference: u32) {
        Ok(prefer(&*find(function)?, preference)?)
    }

    fn cudaFuncSetSharedMemConfig(function: Address, preference: u32) {
        find(function)?;
        Ok(options::accept(Group::SharedBanks, preference)?)
    }

    fn cudaFuncGetName(answer: Out<Address>, function: Address) {
        let name = lock(&find(function)?.info).name.clone();
        Ok(answer.set(name_pointer(&name)?)?)
    }

    fn cudaFuncGetParamInfo(function: Address, index: usize, offset: Out<usize>, size: Out<usize>) {
        Ok(parameter_answer(&*find(function)?, index, offset, size)?)
    }

    fn cudaFuncGetParamCount(function: Address, count: Out<usize>) {
        let number = lock(&find(function)?.info).parameters.len();
        Ok(count.set(number)?)
    }

    fn cudaGetFuncBySymbol(answer: Out<Address>, symbol: Address) {
        Ok(answer.set(handle_of(&*find(symbol)?))?)
    }
}

driver! {
    fn cuFuncGetAttribute(value: Out<i32>, number: u32, function: Address) {
        value.set(get(&*registry::function(function, current()?)?, number)?)
    }

    fn cuFuncSetAttribute(function: Address, number: u32, value: i32) {
        set(&*registry::function(function, current()?)?, number, value)
    }

    fn cuFuncSetCacheConfig(function: Address, preference: u32) {
        prefer(&*registry::function(function, current()?)?, preference)
    }

    fn cuFuncSetSharedMemConfig(function: Address, preference: u32) {
        registry::function(function, current()?)?;
        options::accept(Group::SharedBanks, preference)
    }

    fn cuFuncGetModule(module: Out<Address>, function: Address) {
        let function = registry::function(function, current()?)?;
        module.set(opaque::encode(Kind::Module, function.module.0))
    }

    fn cuFuncGetName(answer: Out<Address>, function: Address) {
        let name = lock(&registry::function(function, current()?)?.info).name.clone();
        answer.set(name_pointer(&name)?)
    }

    fn cuFuncGetParamInfo(function: Address, index: usize, offset: Out<usize>, size: Out<usize>) {
        parameter_answer(&*registry::function(function, current()?)?, index, offset, size)
    }

    fn cuFuncGetParamCount(function: Address, count: Out<usize>) {
        let function = registry::function(function, current()?)?;
        let number = lock(&function.info).parameters.len();
        count.set(number)
    }

    fn cuFuncIsLoaded(state: Out<i32>, function: Address) {
        const LOADED: i32 = 1;
        registry::function(function, current()?)?;
        state.set(LOADED)
    }

    fn cuFuncLoad(function: Address) {
        registry::function(function, current()?).map(|_| ())
    }

    fn cuKernelGetFunction(function: Out<Address>, kernel: Address) {
        function.set(handle_of(&*registry::function(kernel, current()?)?))
    }

    fn cuKernelGetAttribute(value: Out<i32>, number: u32, kernel: Address, device: i32) {
        value.set(get(&*on_device(kernel, device)?, number)?)
    }

    fn cuKernelSetAttribute(number: u32, value: i32, kernel: Address, device: i32) {
        set(&*on_device(kernel, device)?, number, value)
    }

    fn cuKernelSetCacheConfig(kernel: Address, preference: u32, device: i32) {
        prefer(&*on_device(kernel, device)?, preference)
    }

    fn cuKernelGetName(answer: Out<Address>, kernel: Address) {
        answer.set(name_pointer(&registry::kernel_symbol(kernel)?.1)?)
    }

    fn cuKernelGetLibrary(library: Out<Address>, kernel: Address) {
        let number = registry::kernel_symbol(kernel)?.0;
        library.set(opaque::encode(Kind::Library, number))
    }

    fn cuKernelGetParamInfo(kernel: Address, index: usize, offset: Out<usize>, size: Out<usize>) {
        parameter_answer(&*registry::function(kernel, current()?)?, index, offset, size)
    }

    fn cuKernelGetParamCount(kernel: Address, count: Out<usize>) {
        let function = registry::function(kernel, current()?)?;
        let number = lock(&function.info).parameters.len();
        count.set(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_have_the_sizes_of_the_headers() {
        assert_eq!(size_of::<Attributes>(), 56);
        assert_eq!(size_of::<Attributes12>(), 144);
    }
}
