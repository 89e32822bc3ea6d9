//! Modules, kernels and variables.

use crate::device::Device;
use crate::module::{Function, LoadedModule, constant_banks, lay_out};
use crate::{CallResult, Runtime, fail, failure};
use lockstep_config::occupancy::{BlockShape, SmLimits, most_clusters};
use lockstep_isa::module::GlobalKind;
use lockstep_isa::{Kernel, Module};
use lockstep_protocol::{
    ContextHandle, CuResult, FunctionAttributes, FunctionHandle, FunctionInfo, GlobalInfo, Launch,
    ModuleHandle, ModuleImage, ParameterSlot, PointerKind, Reply,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Threads that a block may have on any GPU.
pub(super) const MAXIMUM_THREADS: u32 = 1024;

impl<D: Device> Runtime<D> {
    pub(super) fn module_load(
        &mut self,
        context: ContextHandle,
        images: &[ModuleImage],
    ) -> CallResult<Reply> {
        self.context(context)?;
        self.spend(self.config.host.load);
        let source = (self.loader)(images, &self.load_options(context))?;
        for warning in source.warnings() {
            self.warn(warning);
        }
        for remark in source.remarks() {
            self.remark(remark);
        }
        let globals = source.globals().to_vec();
        let (offsets, device_bytes, managed_bytes) = lay_out(&globals)?;
        let mut allocations = Vec::new();
        let mut place = |runtime: &mut Self, kind, bytes| -> CallResult<u64> {
            if bytes == 0 {
                return Ok(0);
            }
            let Reply::Address(base) = runtime.allocate_kind(kind, context, bytes, 1)? else {
                return fail(CuResult::UNKNOWN, "an allocation without an address");
            };
            allocations.push(base);
            Ok(base)
        };
        let device_base = place(self, PointerKind::Device, device_bytes)?;
        let managed_base = place(self, PointerKind::Managed, managed_bytes)?;
        let base_of = |kind| {
            if kind == GlobalKind::Managed {
                managed_base
            } else {
                device_base
            }
        };
        let mut addresses: Vec<u64> = globals
            .iter()
            .zip(&offsets)
            .map(|(global, offset)| base_of(global.kind) + offset)
            .collect();
        let textures = self.reserve_textures(context, &globals, &mut addresses);
        let linked = textures.and_then(|textures| match source.link(&addresses) {
            Ok(code) => Ok((code, textures)),
            Err(failure) => {
                self.release_textures(context, &textures);
                Err(failure)
            }
        });
        let (code, textures) = match linked {
            Ok(linked) => linked,
            Err(failure) => {
                self.release(&allocations);
                return Err(failure);
            }
        };
        // Variables without a value are zero, which counts as written.
        if device_bytes > 0 {
            self.device.touched(device_base, device_bytes);
        }
        for (address, bytes) in &code.initial {
            self.memory.covering(*address, bytes.len() as u64)?;
            self.device.write(*address, bytes);
        }
        let mut loaded = LoadedModule {
            context,
            code: Arc::new(code),
            globals: BTreeMap::new(),
            textures,
            constants: constant_banks(&globals, &addresses),
            allocations,
        };
        for (global, address) in globals.into_iter().zip(addresses) {
            // A whole constant bank has no name.
            if global.kind == GlobalKind::Texture || global.name.is_empty() {
                continue;
            }
            let managed = global.kind == GlobalKind::Managed;
            loaded.globals.insert(
                global.name,
                GlobalInfo {
                    address,
                    bytes: global.size,
                    managed,
                },
            );
        }
        let handle = ModuleHandle(self.fresh());
        self.modules.insert(handle, loaded);
        Ok(Reply::Module(handle))
    }

    pub(super) fn module_unload(&mut self, handle: ModuleHandle) -> CallResult<Reply> {
        let context = self.module(handle)?.context;
        self.context_synchronize(context)?;
        if let Some(module) = self.modules.remove(&handle) {
            self.release(&module.allocations);
            self.release_textures(context, &module.textures);
        }
        self.functions
            .retain(|_, function| function.module != handle);
        Ok(Reply::Done)
    }

    pub(super) fn module_function(
        &mut self,
        handle: ModuleHandle,
        name: &str,
    ) -> CallResult<Reply> {
        let module = self.module(handle)?;
        let Some(kernel) = module
            .code
            .kernels
            .iter()
            .position(|kernel| kernel.name == name)
        else {
            return fail(CuResult::NOT_FOUND, format!("no kernel is called `{name}`"));
        };
        let (context, code) = (module.context, module.code.clone());
        let found = &code.kernels[kernel];
        let known = self
            .functions
            .iter()
            .find(|(_, known)| known.module == handle && known.kernel == kernel);
        let (function, attributes) = match known {
            Some((function, known)) => (*function, known.attributes.clone()),
            None => {
                let mut attributes = self.attributes_of(context, found, &code);
                attributes.constant = self.user_constants(handle)?;
                let function = FunctionHandle(self.fresh());
                let entry = Function {
                    context,
                    module: handle,
                    kernel,
                    attributes: attributes.clone(),
                    cache_preference: 0,
                    launched: false,
                };
                self.functions.insert(function, entry);
                (function, attributes)
            }
        };
        let slot = |parameter: &lockstep_isa::module::Parameter| ParameterSlot {
            offset: parameter.offset,
            size: parameter.size,
        };
        Ok(Reply::Function(Box::new(FunctionInfo {
            handle: function,
            name: name.to_string(),
            parameters: found.parameters.iter().map(slot).collect(),
            attributes,
        })))
    }

    pub(super) fn module_function_names(&mut self, handle: ModuleHandle) -> CallResult<Reply> {
        let kernels = &self.module(handle)?.code.kernels;
        Ok(Reply::Names(
            kernels.iter().map(|kernel| kernel.name.clone()).collect(),
        ))
    }

    pub(super) fn module_global(&mut self, handle: ModuleHandle, name: &str) -> CallResult<Reply> {
        let found = self.module(handle)?.globals.get(name).copied();
        found.map(Reply::Global).ok_or_else(|| {
            failure(
                CuResult::NOT_FOUND,
                format!("no variable is called `{name}`"),
            )
        })
    }

    pub(super) fn module_texture(&mut self, handle: ModuleHandle, name: &str) -> CallResult<Reply> {
        let mut textures = self.module(handle)?.textures.iter();
        let found = textures.find(|(known, _)| known == name);
        found
            .map(|(_, index)| Reply::Value((*index).into()))
            .ok_or_else(|| {
                failure(
                    CuResult::NOT_FOUND,
                    format!("no texture reference is called `{name}`"),
                )
            })
    }

    pub(super) fn function_set_attribute(
        &mut self,
        handle: FunctionHandle,
        attribute: u32,
        value: i32,
    ) -> CallResult<Reply> {
        let context = self.function(handle)?.context;
        let optin = self.gpu_of(context).sm.shared_per_block_optin.0;
        let optin = i32::try_from(optin).unwrap_or(i32::MAX);
        let function = self
            .functions
            .get_mut(&handle)
            .ok_or_else(|| failure(CuResult::INVALID_HANDLE, format!("there is no {handle}")))?;
        let compiled = function.attributes.cluster_size_must_be_set != 0;
        if attribute == 10 || (11..=13).contains(&attribute) && compiled {
            return fail(
                CuResult::INVALID_VALUE,
                format!("function attribute {attribute} is the compiler's"),
            );
        }
        let range = match attribute {
            8 => 0..=(optin - function.attributes.static_shared).max(0),
            9 => -1..=100,
            11..=13 => 0..=16,
            14 => 0..=1,
            15 => 0..=2,
            _ => {
                return fail(
                    CuResult::INVALID_VALUE,
                    format!("function attribute {attribute} cannot be set"),
                );
            }
        };
        if !range.contains(&value) {
            let message =
                format!("function attribute {attribute} = {value}, but it must be in {range:?}");
            return fail(CuResult::INVALID_VALUE, message);
        }
        if let Some(place) = function.attributes.get_mut(attribute) {
            *place = value;
        }
        Ok(Reply::Done)
    }

    pub(super) fn function_cache_preference(
        &mut self,
        handle: FunctionHandle,
        preference: u32,
    ) -> CallResult<Reply> {
        if preference > 3 {
            return fail(
                CuResult::INVALID_VALUE,
                format!("a cache preference of {preference}"),
            );
        }
        let function = self
            .functions
            .get_mut(&handle)
            .ok_or_else(|| failure(CuResult::INVALID_HANDLE, format!("there is no {handle}")))?;
        function.cache_preference = preference;
        Ok(Reply::Done)
    }

    /// Bytes of the module's own constants, which every kernel of it carries.
    fn user_constants(&self, handle: ModuleHandle) -> CallResult<i32> {
        let constants = &self.module(handle)?.constants;
        let ends = constants
            .iter()
            .map(|(_, offset, _, bytes)| u64::from(*offset) + bytes);
        let starts = constants.iter().map(|(_, offset, ..)| u64::from(*offset));
        let bytes = ends.max().unwrap_or(0) - starts.min().unwrap_or(0);
        Ok(i32::try_from(bytes).unwrap_or(i32::MAX))
    }

    pub(super) fn occupancy_blocks(
        &mut self,
        handle: FunctionHandle,
        threads: u32,
        dynamic_shared: u64,
    ) -> CallResult<Reply> {
        if threads > MAXIMUM_THREADS {
            return Ok(Reply::Value(0));
        }
        let shape = self.block_shape(handle, threads, dynamic_shared)?;
        let function = self.function(handle)?;
        let preferred = self.carveout(function, function.attributes.preferred_carveout);
        Ok(Reply::Value(u64::from(
            SmLimits::new(&self.gpu_of(function.context).sm)
                .within_preferred(shape, preferred)
                .blocks(),
        )))
    }

    pub(super) fn occupancy_clusters(&mut self, launch: &Launch) -> CallResult<Reply> {
        let (threads, shared) = (launch.config.threads(), launch.config.dynamic_shared);
        let shape = self.block_shape(launch.function, threads, u64::from(shared))?;
        let blocks = SmLimits::new(&self.gpu_of(launch.context).sm)
            .most(shape)
            .blocks();
        let function = self.function(launch.function)?;
        let attributes = function.attributes.clone();
        let index = function.kernel;
        let code = self.module(function.module)?.code.clone();
        let kernel = &code.kernels[index];
        // Occupancy may be asked for clusters that cannot be launched.
        let Some(cluster) = self.cluster(launch, kernel, &attributes, u32::MAX)? else {
            return Ok(Reply::Value(0));
        };
        let size = cluster
            .iter()
            .fold(1u32, |all, size| all.saturating_mul(*size));
        Ok(Reply::Value(most_clusters(
            self.gpu_of(launch.context),
            size,
            blocks,
        )))
    }

    /// What a block of this kernel needs.
    pub(super) fn block_shape(
        &self,
        handle: FunctionHandle,
        threads: u32,
        dynamic_shared: u64,
    ) -> CallResult<BlockShape> {
        if threads == 0 || threads > MAXIMUM_THREADS {
            return fail(
                CuResult::INVALID_VALUE,
                format!("a block of {threads} threads; 1 to {MAXIMUM_THREADS} are possible"),
            );
        }
        let function = self.function(handle)?;
        let shared = (function.attributes.static_shared as u64).saturating_add(dynamic_shared);
        Ok(BlockShape {
            threads,
            registers: function.attributes.registers as u32,
            shared,
        })
    }

    pub(super) fn function(&self, handle: FunctionHandle) -> CallResult<&Function> {
        self.functions
            .get(&handle)
            .ok_or_else(|| failure(CuResult::INVALID_HANDLE, format!("there is no {handle}")))
    }

    pub(super) fn module(&self, handle: ModuleHandle) -> CallResult<&LoadedModule> {
        self.modules
            .get(&handle)
            .ok_or_else(|| failure(CuResult::INVALID_HANDLE, format!("there is no {handle}")))
    }

    fn release(&mut self, allocations: &[u64]) {
        for base in allocations {
            if let Ok(allocation) = self.memory.free(*base) {
                self.vacate(&allocation);
            }
        }
    }

    fn attributes_of(
        &self,
        context: ContextHandle,
        kernel: &Kernel,
        module: &Module,
    ) -> FunctionAttributes {
        let gpu = self.gpu_of(context);
        // A driver makes machine code for its GPU out of PTX.
        let architecture = match module.native {
            true => module.architecture,
            false => gpu.device.compute_capability.architecture(),
        };
        let number = |value: u32| i32::try_from(value).unwrap_or(i32::MAX);
        let sm = &gpu.sm;
        let limits = SmLimits::new(sm);
        let fits = |threads: &u32| {
            let shape = BlockShape {
                threads: *threads,
                registers: kernel.registers,
                shared: 0,
            };
            limits.most(shape).blocks() > 0
        };
        let by_registers = (1..=MAXIMUM_THREADS / 32)
            .rev()
            .map(|warps| warps * 32)
            .find(fits)
            .unwrap_or(0);
        let most = if kernel.max_threads == 0 {
            by_registers
        } else {
            by_registers.min(kernel.max_threads)
        };
        let cluster = kernel.cluster.unwrap_or([0; 3]).map(number);
        FunctionAttributes {
            maximum_threads: number(most),
            static_shared: number(kernel.shared_bytes),
            local: number(kernel.local_bytes),
            registers: number(kernel.registers),
            ptx_version: number(kernel.virtual_architecture),
            binary_version: number(architecture),
            maximum_dynamic_shared: number(
                u32::try_from(sm.shared_per_block.0)
                    .unwrap_or(u32::MAX)
                    .saturating_sub(kernel.shared_bytes),
            ),
            preferred_carveout: -1,
            cluster_size_must_be_set: i32::from(kernel.cluster.is_some()),
            required_cluster_width: cluster[0],
            required_cluster_height: cluster[1],
            required_cluster_depth: cluster[2],
            ..FunctionAttributes::default()
        }
    }
}
