//! Kernel launches: what CUDA refuses, and what reaches the device.

use super::modules::MAXIMUM_THREADS;
use crate::context::PENDING_LAUNCH_LIMIT;
use crate::device::Device;
use crate::module::Function;
use crate::timeline::{Effect, KernelWork, StreamKey, Work};
use crate::{CallResult, Client, LaunchSummary, Runtime, describe, fail};
use lockstep_config::occupancy::{SmLimits, largest_cluster};
use lockstep_isa::Kernel;
use lockstep_isa::device_runtime::DeviceRuntime;
use lockstep_protocol::{
    ContextHandle, CuResult, FunctionAttributes, FunctionHandle, Launch, LaunchConfig, PointerKind,
    Reply, clamp_priority,
};
use lockstep_units::Time;
use std::sync::Arc;

/// Most blocks along x, y and z.
const MAXIMUM_GRID: [u32; 3] = [i32::MAX as u32, 65_535, 65_535];
/// Most threads along x, y and z.
const MAXIMUM_BLOCK: [u32; 3] = [1024, 1024, 64];
/// Bytes of the work space of a cooperative launch.
const COOPERATIVE_BYTES: u64 = 512;

/// Blocks of a cluster that need no special leave.
const PORTABLE_CLUSTER: u32 = 8;
/// Blocks of the largest cluster with leave.
const LARGEST_CLUSTER: u32 = 16;

impl<D: Device> Runtime<D> {
    pub(super) fn launch(&mut self, client: Client, launch: &Launch) -> CallResult<Reply> {
        let key = self.stream_key(client, launch.context, launch.stream)?;
        self.spend_launch(self.config.host.launch);
        let work = self.prepare(launch, key, self.priority_of(launch.stream))?;
        if self.is_first_launch(launch.function) {
            self.spend(self.config.host.launch_first);
        }
        let cooperative = work.launch.cooperative;
        self.enqueue(launch.context, key, Work::Kernel(Box::new(work)));
        if let Some(address) = cooperative {
            self.enqueue(launch.context, key, Work::Instant(Effect::Free { address }));
        }
        Ok(Reply::Done)
    }

    /// Whether a kernel is launched for the first time; the next time it is not.
    pub(super) fn is_first_launch(&mut self, function: FunctionHandle) -> bool {
        let function = self.functions.get_mut(&function);
        function.is_some_and(|function| !std::mem::replace(&mut function.launched, true))
    }

    /// Checks a launch and makes it work for a stream, whose `priority` it has unless it sets its own.
    pub(super) fn prepare(
        &mut self,
        launch: &Launch,
        key: StreamKey,
        priority: i32,
    ) -> CallResult<KernelWork> {
        let function = self.function(launch.function)?;
        if function.context != launch.context {
            return fail(
                CuResult::INVALID_CONTEXT,
                "the kernel was loaded in another context",
            );
        }
        let attributes = function.attributes.clone();
        let preferred = launch.carveout.unwrap_or(attributes.preferred_carveout);
        let carveout = self.carveout(function, preferred);
        let index = function.kernel;
        let module = self.module(function.module)?;
        let (code, constants) = (module.code.clone(), module.constants.clone());
        let kernel = &code.kernels[index];
        self.check_shape(launch, kernel, &attributes)?;
        let cluster = self.cluster(launch, kernel, &attributes, LARGEST_CLUSTER)?;
        let threads = launch.config.threads();
        let dynamic_shared = u64::from(launch.config.dynamic_shared);
        let shape = self.block_shape(launch.function, threads, dynamic_shared)?;
        let resident = SmLimits::new(&self.gpu_of(launch.context).sm)
            .most(shape)
            .blocks();
        if resident == 0 {
            return fail(
                CuResult::LAUNCH_OUT_OF_RESOURCES,
                format!(
                    "`{}` needs {} registers and {} bytes of shared memory for {threads} threads, more than an SM has",
                    kernel.name, shape.registers, shape.shared
                ),
            );
        }
        let cooperative = if launch.cooperative {
            let blocks = launch.config.blocks();
            let most = u64::from(resident) * u64::from(self.gpu_of(launch.context).device.sms);
            if blocks > most {
                return fail(
                    CuResult::COOPERATIVE_LAUNCH_TOO_LARGE,
                    format!(
                        "{blocks} blocks of `{}`, of which {most} can be resident at once",
                        kernel.name
                    ),
                );
            }
            Some(self.cooperative_space(launch)?)
        } else {
            None
        };
        let id = self.launches.len() as u64;
        let summary = LaunchSummary {
            id,
            kernel: kernel.name.clone(),
            gpu: self.context(launch.context)?.device,
            context: launch.context.0,
            stream: key,
            grid: launch.config.grid,
            block: launch.config.block,
            registers: shape.registers,
            shared: shape.shared,
            within: self.annotations.around_the_call(),
            result: None,
        };
        self.device.announce(&summary);
        self.launches.push(summary);
        let stack = self.context(launch.context)?.stack();
        let textures = self.context(launch.context)?.textures.clone();
        let device_runtime = match code.launches_kernels {
            true => Some(self.device_runtime(launch.context)?),
            false => None,
        };
        Ok(KernelWork {
            id,
            launch: lockstep_isa::Launch {
                module: code,
                // Who keeps modules for saved launches numbers them.
                module_id: 0,
                kernel: index,
                config: launch.config,
                stack,
                arguments: launch.parameters.clone(),
                constants: Vec::new(),
                textures,
                device_runtime,
                cluster,
                programmatic: launch.programmatic_stream_serialization,
                of_graph: false,
                cooperative,
                carveout,
                queue: key,
                priority: clamp_priority(launch.priority.unwrap_or(priority)),
                at: Time::ZERO,
            },
            constants,
        })
    }

    /// What kernels that launch kernels are told.
    fn device_runtime(&self, context: ContextHandle) -> CallResult<Arc<DeviceRuntime>> {
        let context = self.context(context)?;
        let pending = context.limits.get(&PENDING_LAUNCH_LIMIT);
        let gpu = self.gpu(context.device);
        let sm = &gpu.sm;
        let mut limits = context.limits.clone();
        // Those of contexts that are shared with graphics are only read.
        limits.extend([(7, sm.shared_per_block_optin.0), (8, 0)]);
        let node = self.device.neighbours(context.device);
        Ok(Arc::new(DeviceRuntime {
            pending_launches: pending.copied().unwrap_or(0),
            attributes: describe(gpu, context.device, node).attributes,
            limits,
            shared_per_block: sm.shared_per_block.0,
        }))
    }

    fn check_shape(
        &self,
        launch: &Launch,
        kernel: &Kernel,
        attributes: &FunctionAttributes,
    ) -> CallResult<()> {
        let name = &kernel.name;
        let LaunchConfig {
            grid,
            block,
            dynamic_shared,
        } = launch.config;
        for axis in 0..3 {
            if grid[axis] == 0 || grid[axis] > MAXIMUM_GRID[axis] {
                return fail(
                    CuResult::INVALID_VALUE,
                    format!("`{name}`: a grid of {grid:?} blocks"),
                );
            }
            if block[axis] == 0 || block[axis] > MAXIMUM_BLOCK[axis] {
                return fail(
                    CuResult::INVALID_VALUE,
                    format!("`{name}`: a block of {block:?} threads"),
                );
            }
        }
        let threads = launch.config.threads();
        if threads > MAXIMUM_THREADS {
            return fail(
                CuResult::INVALID_VALUE,
                format!("`{name}`: a block of {threads} threads"),
            );
        }
        if kernel.max_threads != 0 && threads > kernel.max_threads {
            return fail(
                CuResult::INVALID_VALUE,
                format!(
                    "`{name}` was compiled for {} threads a block, not {threads}",
                    kernel.max_threads
                ),
            );
        }
        if kernel
            .required_threads
            .is_some_and(|required| required != block)
        {
            return fail(
                CuResult::INVALID_VALUE,
                format!("`{name}` was compiled for blocks of another shape"),
            );
        }
        if i64::from(dynamic_shared) > i64::from(attributes.maximum_dynamic_shared) {
            return fail(
                CuResult::INVALID_VALUE,
                format!(
                    "`{name}`: {dynamic_shared} bytes of dynamic shared memory; {} are allowed unless the program asks for more",
                    attributes.maximum_dynamic_shared
                ),
            );
        }
        let expected = kernel.parameter_bytes as usize;
        let most = self.gpu_of(launch.context).launch.parameter_limit.0 as usize;
        if launch.parameters.len() < expected || launch.parameters.len() > most.max(expected) {
            return fail(
                CuResult::INVALID_VALUE,
                format!(
                    "`{name}` takes {expected} bytes of arguments, not {}",
                    launch.parameters.len()
                ),
            );
        }
        Ok(())
    }

    /// Blocks of a cluster, if the launch, the kernel or one of its attributes says so. Refuses what an H200
    /// refuses (`validation/hardware/h200/clusters.txt`).
    pub(super) fn cluster(
        &self,
        launch: &Launch,
        kernel: &Kernel,
        attributes: &FunctionAttributes,
        most: u32,
    ) -> CallResult<Option<[u32; 3]>> {
        let refuse = |because: String| {
            let message = format!("`{}`: {because}", kernel.name);
            fail(CuResult::INVALID_CLUSTER_SIZE, message)
        };
        let required = [
            attributes.required_cluster_width,
            attributes.required_cluster_height,
            attributes.required_cluster_depth,
        ]
        .map(|size| u32::try_from(size).unwrap_or(0));
        let required = (required != [0; 3]).then_some(required);
        let given = launch.cluster.filter(|cluster| *cluster != [0; 3]);
        if let (Some(required), Some(given)) = (required, given)
            && required != given
        {
            return refuse(format!(
                "clusters of {given:?}, and it requires {required:?}"
            ));
        }
        let Some(cluster) = given.or(required) else {
            return Ok(None);
        };
        let grid = launch.config.grid;
        if cluster.contains(&0) || (0..3).any(|axis| !grid[axis].is_multiple_of(cluster[axis])) {
            return refuse(format!(
                "a grid of {grid:?} is not made of clusters of {cluster:?}"
            ));
        }
        let blocks = cluster
            .iter()
            .fold(1u32, |all, size| all.saturating_mul(*size));
        let largest = largest_cluster(self.gpu_of(launch.context));
        if blocks > 1 && largest == 1 {
            let message = format!("`{}`: the GPU has no clusters", kernel.name);
            return fail(CuResult::NOT_SUPPORTED, message);
        }
        let allowed = match attributes.non_portable_cluster_allowed {
            0 => PORTABLE_CLUSTER,
            _ => most.min(largest),
        };
        if blocks > allowed {
            return refuse(format!(
                "a cluster of {blocks} blocks, and {allowed} are allowed"
            ));
        }
        Ok(Some(cluster))
    }

    /// Zeroed memory for the barriers of a cooperative grid.
    fn cooperative_space(&mut self, launch: &Launch) -> CallResult<u64> {
        match self.allocate_kind(PointerKind::Device, launch.context, COOPERATIVE_BYTES, 0)? {
            Reply::Address(address) => {
                self.device.touched(address, COOPERATIVE_BYTES);
                Ok(address)
            }
            _ => fail(CuResult::UNKNOWN, "an allocation without an address"),
        }
    }

    /// The shared memory that the SM sets aside for a kernel: the smallest carve-out with the preferred
    /// share of the largest, in percent.
    pub(super) fn carveout(&self, function: &Function, preferred: i32) -> Option<u64> {
        let sizes = &self.gpu_of(function.context).sm.shared_carveouts;
        let Ok(percent) = u64::try_from(preferred) else {
            // Without a share of its own, a kernel may still prefer one side.
            return match function.cache_preference {
                1 => sizes.last().map(|size| size.0),
                2 => sizes.iter().map(|size| size.0).find(|size| *size > 0),
                _ => None,
            };
        };
        let wanted = sizes.last()?.0 * percent / 100;
        sizes.iter().map(|size| size.0).find(|size| *size >= wanted)
    }
}
