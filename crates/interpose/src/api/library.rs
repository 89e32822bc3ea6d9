//! Libraries: code without a context, loaded where it is used.

use super::module::{Logs, images, images_of_file};
use crate::boundary::{driver, runtime};
use crate::call::ask;
use crate::context::{check_initialized, current, current_for_runtime};
use crate::opaque::{self, Kind};
use crate::registry;
use crate::types::{Address, In, Out, Text};
use lockstep_protocol::{ContextHandle, CuResult, GlobalInfo, ModuleImage, Request};

fn decode(library: Address) -> Result<u64, CuResult> {
    opaque::decode(Kind::Library, library).ok_or(CuResult::INVALID_HANDLE)
}

fn add(library: Out<Address>, images: Vec<ModuleImage>) -> Result<(), CuResult> {
    library.check()?;
    library.set(opaque::encode(Kind::Library, registry::add_library(images)))
}

fn global(library: Address, name: Text, context: ContextHandle) -> Result<GlobalInfo, CuResult> {
    let module = registry::module_of_library(decode(library)?, context)?;
    let name = name.get()?;
    Ok(ask!(Global, &Request::ModuleGlobal { module, name }))
}

fn global_answer(address: Out<Address>, bytes: Out<usize>, global: GlobalInfo) {
    address.set_if_wanted(global.address as Address);
    bytes.set_if_wanted(global.bytes as usize);
}

fn managed(global: GlobalInfo) -> Result<GlobalInfo, CuResult> {
    if global.managed {
        Ok(global)
    } else {
        Err(CuResult::NOT_FOUND)
    }
}

fn names(library: Address, context: ContextHandle) -> Result<Vec<String>, CuResult> {
    let module = registry::module_of_library(decode(library)?, context)?;
    Ok(ask!(Names, &Request::ModuleFunctionNames { module }))
}

fn enumerate(
    kernels: Out<Address>,
    count: u32,
    library: Address,
    context: ContextHandle,
) -> Result<(), CuResult> {
    for (index, name) in names(library, context)?
        .into_iter()
        .take(count as usize)
        .enumerate()
    {
        let kernel = registry::kernel_of_library(decode(library)?, name, context)?;
        kernels.element(index).set(kernel)?;
    }
    Ok(())
}

runtime! {
    fn cudaLibraryLoadData(
        library: Out<Address>, code: In<u8>, jit_options: In<u32>, jit_values: In<Address>, jit_count: u32,
        options: Address, values: Address, count: u32
    ) {
        let _ = (options, values, count);
        Logs::of_options(jit_count, jit_options, jit_values)?;
        current_for_runtime()?;
        Ok(add(library, images(code)?)?)
    }

    fn cudaLibraryLoadFromFile(
        library: Out<Address>, path: Text, jit_options: In<u32>, jit_values: In<Address>, jit_count: u32,
        options: Address, values: Address, count: u32
    ) {
        let _ = (options, values, count);
        Logs::of_options(jit_count, jit_options, jit_values)?;
        current_for_runtime()?;
        Ok(add(library, images_of_file(&path.get()?)?)?)
    }

    fn cudaLibraryUnload(library: Address) {
        Ok(registry::remove_library(decode(library)?)?)
    }

    fn cudaLibraryGetKernel(kernel: Out<Address>, library: Address, name: Text) {
        let context = current_for_runtime()?;
        Ok(kernel.set(registry::kernel_of_library(decode(library)?, name.get()?, context)?)?)
    }

    fn cudaLibraryGetGlobal(address: Out<Address>, bytes: Out<usize>, library: Address, name: Text) {
        global_answer(address, bytes, global(library, name, current_for_runtime()?)?);
        Ok(())
    }

    fn cudaLibraryGetManaged(address: Out<Address>, bytes: Out<usize>, library: Address, name: Text) {
        global_answer(address, bytes, managed(global(library, name, current_for_runtime()?)?)?);
        Ok(())
    }

    fn cudaLibraryGetKernelCount(count: Out<u32>, library: Address) {
        Ok(count.set(names(library, current_for_runtime()?)?.len() as u32)?)
    }

    fn cudaLibraryEnumerateKernels(kernels: Out<Address>, count: u32, library: Address) {
        Ok(enumerate(kernels, count, library, current_for_runtime()?)?)
    }
}

driver! {
    fn cuLibraryLoadData(
        library: Out<Address>, code: In<u8>, jit_options: In<u32>, jit_values: In<Address>, jit_count: u32,
        options: Address, values: Address, count: u32
    ) {
        let _ = (options, values, count);
        Logs::of_options(jit_count, jit_options, jit_values)?;
        check_initialized()?;
        add(library, images(code)?)
    }

    fn cuLibraryLoadFromFile(
        library: Out<Address>, path: Text, jit_options: In<u32>, jit_values: In<Address>, jit_count: u32,
        options: Address, values: Address, count: u32
    ) {
        let _ = (options, values, count);
        Logs::of_options(jit_count, jit_options, jit_values)?;
        check_initialized()?;
        add(library, images_of_file(&path.get()?)?)
    }

    fn cuLibraryUnload(library: Address) {
        registry::remove_library(decode(library)?)
    }

    fn cuLibraryGetKernel(kernel: Out<Address>, library: Address, name: Text) {
        let context = current()?;
        kernel.set(registry::kernel_of_library(decode(library)?, name.get()?, context)?)
    }

    fn cuLibraryGetModule(module: Out<Address>, library: Address) {
        let found = registry::module_of_library(decode(library)?, current()?)?;
        module.set(opaque::encode(Kind::Module, found.0))
    }

    fn cuLibraryGetGlobal(address: Out<Address>, bytes: Out<usize>, library: Address, name: Text) {
        global_answer(address, bytes, global(library, name, current()?)?);
        Ok(())
    }

    fn cuLibraryGetManaged(address: Out<Address>, bytes: Out<usize>, library: Address, name: Text) {
        global_answer(address, bytes, managed(global(library, name, current()?)?)?);
        Ok(())
    }

    fn cuLibraryGetKernelCount(count: Out<u32>, library: Address) {
        count.set(names(library, current()?)?.len() as u32)
    }

    fn cuLibraryEnumerateKernels(kernels: Out<Address>, count: u32, library: Address) {
        enumerate(kernels, count, library, current()?)
    }
}
