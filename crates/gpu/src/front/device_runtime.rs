//! What the work distributor answers to calls of the device runtime.
//!
//! Start reading at [`WorkDistributor::device_runtime`].

use lockstep_config::occupancy::BlockShape;
use lockstep_engine::{Outbox, PartitionId};
use lockstep_isa::device_runtime::{
    DeviceRuntime, DeviceRuntimeCall as Call, DeviceRuntimeError as Error,
};
use lockstep_isa::{Kernel, Launch, module::CODE_BASE};
use lockstep_units::{Bytes, LaunchConfig, Time};

use super::device_launches::{DeviceLaunch, Stream};
use super::work_distributor::WorkDistributor;
use crate::message::{DeviceRuntimeLane, DeviceRuntimeRequest, Message};

/// Most blocks along x, y and z.
const MAXIMUM_GRID: [u32; 3] = [i32::MAX as u32, 65_535, 65_535];
/// Most threads along x, y and z.
const MAXIMUM_BLOCK: [u32; 3] = [1024, 1024, 64];
/// Most threads of a block.
const MAXIMUM_THREADS: u64 = 1024;

/// Most blocks of a cluster that needs no leave, which device code cannot give.
const PORTABLE_CLUSTER: u64 = 8;

/// `cudaStreamNonBlocking`, which streams of device code must be created with.
const NON_BLOCKING: u64 = 1;
/// `cudaEventDisableTiming`, which events of device code must be created with.
const DISABLE_TIMING: u64 = 2;

/// What a call answers: an error, and what it writes or an address.
type Answer = Result<u64, Error>;

impl WorkDistributor {
    /// Answers what the lanes of a warp ask, one after the other.
    pub(super) fn device_runtime(
        &mut self,
        mut request: Box<DeviceRuntimeRequest>,
        sender: PartitionId,
        now: Time,
        outbox: &mut Outbox<'_, Message>,
    ) {
        let asks = (request.launch, request.block, request.call);
        for lane in &mut request.lanes {
            let answer = self.answer(asks, &lane.arguments, now);
            put(lane, answer, request.call, request.library);
        }
        let duration = match request.call {
            Call::GetParameterBuffer | Call::GetParameterBufferV2 => {
                self.parameters.device.buffer_call
            }
            Call::LaunchDevice | Call::LaunchDeviceV2 => self.parameters.device.launch_call,
            _ => self.parameters.device.other_call,
        };
        // The lanes of a warp are served one after the other.
        let at = now + duration * request.lanes.len() as u64;
        let size = Bytes(8 * request.lanes.len() as u64);
        let message = Message::DeviceRuntimeDone(request);
        outbox.send(self.parameters.start, sender, at, size, message);
    }

    fn answer(&mut self, asks: (u32, u64, Call), arguments: &[u64; 10], now: Time) -> Answer {
        let (launch, _, call) = asks;
        let [first, second, third, fourth, ..] = *arguments;
        let context = self.waiting_context(launch);
        let runtime = context.launch.device_runtime.clone().unwrap_or_default();
        match call {
            Call::GetParameterBuffer => {
                let most = self.parameters.parameter_limit;
                if second > most {
                    return Err(Error::InvalidValue);
                }
                let devices = &mut self.state.device_launches;
                devices.buffer(launch, second, None, runtime.pending_launches)
            }
            Call::GetParameterBufferV2 => {
                let dimensions = [1, 2, 3, 4, 5, 6].map(|at| arguments[at] as u32);
                let config = shape(dimensions, arguments[7] as u32);
                let kernel = self.check_launch(&context.launch, &runtime, first, config)?;
                let bytes = u64::from(context.launch.module.kernels[kernel].parameter_bytes);
                let what = Some((kernel, config));
                let devices = &mut self.state.device_launches;
                devices.buffer(launch, bytes, what, runtime.pending_launches)
            }
            Call::LaunchDevice => {
                let dimensions = [2, 3, 4, 5, 6, 7].map(|at| arguments[at] as u32);
                let config = shape(dimensions, arguments[8] as u32);
                let kernel = self.check_launch(&context.launch, &runtime, first, config)?;
                let what = (kernel, config);
                self.launch_by_device(&context.launch, asks, second, arguments[9], Some(what), now)
            }
            Call::LaunchDeviceV2 => {
                self.launch_by_device(&context.launch, asks, first, second, None, now)
            }
            Call::GetLastError | Call::SetLastError | Call::TakeLastError => Ok(0),
            Call::StreamCreate => {
                check(first != 0 && second == NON_BLOCKING)?;
                Ok(self.state.device_launches.create_stream(launch))
            }
            Call::EventCreate => {
                check(first != 0 && second == DISABLE_TIMING)?;
                Ok(self.state.device_launches.create_event(launch))
            }
            Call::StreamDestroy => {
                check(self.state.device_launches.destroy_stream(first))?;
                Ok(0)
            }
            Call::EventDestroy => {
                check(self.state.device_launches.destroy_event(first))?;
                Ok(0)
            }
            Call::EventRecord => {
                let stream = self.ordered_stream(asks, second)?;
                check(self.state.device_launches.record(first, stream))?;
                Ok(0)
            }
            Call::StreamWaitEvent => {
                check(third == 0)?;
                let stream = self.ordered_stream(asks, first)?;
                let devices = &mut self.state.device_launches;
                check(devices.wait(launch, stream, second))?;
                Ok(0)
            }
            Call::FuncGetAttribute => {
                check(first != 0)?;
                let kernel = kernel_at(&context.launch, third).ok_or(Error::InvalidValue)?;
                let kernel = &context.launch.module.kernels[kernel];
                function_attribute(kernel, second, context.launch.module.architecture)
            }
            Call::MaxActiveBlocks | Call::MaxActiveBlocksWithFlags => {
                check(first != 0)?;
                let kernel = kernel_at(&context.launch, second).ok_or(Error::InvalidValue)?;
                self.most_blocks(&context.launch, kernel, third, fourth)
            }
            _ => question(call, &runtime, first, second, third),
        }
    }

    /// A stream in which there is an order.
    fn ordered_stream(
        &mut self,
        (launch, block, _): (u32, u64, Call),
        handle: u64,
    ) -> Result<Stream, Error> {
        let stream = self.state.device_launches.stream(launch, block, handle);
        let ordered = |stream: &Stream| !matches!(stream, Stream::Tail | Stream::FireAndForget);
        stream.filter(ordered).ok_or(Error::InvalidValue)
    }

    /// Whether a kernel can be launched so, and which it is.
    fn check_launch(
        &self,
        launch: &Launch,
        runtime: &DeviceRuntime,
        function: u64,
        config: LaunchConfig,
    ) -> Result<usize, Error> {
        let index = kernel_at(launch, function).ok_or(Error::InvalidValue)?;
        let kernel = &launch.module.kernels[index];
        let bad = |axis: usize| {
            let (grid, block) = (config.grid[axis], config.block[axis]);
            !(1..=MAXIMUM_GRID[axis]).contains(&grid) || !(1..=MAXIMUM_BLOCK[axis]).contains(&block)
        };
        let threads: u64 = config.block.iter().map(|size| u64::from(*size)).product();
        let most = match kernel.max_threads {
            0 => MAXIMUM_THREADS,
            most => u64::from(most),
        };
        let required = kernel.required_threads;
        if (0..3).any(bad)
            || threads > most.min(MAXIMUM_THREADS)
            || required.is_some_and(|required| required != config.block)
            || u64::from(kernel.shared_bytes) + u64::from(config.dynamic_shared)
                > runtime.shared_per_block
        {
            return Err(Error::InvalidConfiguration);
        }
        let cluster = kernel.cluster.unwrap_or([1; 3]);
        let blocks: u64 = cluster.iter().map(|size| u64::from(*size)).product();
        let whole = |axis: usize| config.grid[axis].is_multiple_of(cluster[axis].max(1));
        if blocks > PORTABLE_CLUSTER || !(0..3).all(whole) {
            return Err(Error::InvalidClusterSize);
        }
        let shape = block_shape(kernel, threads as u32, u64::from(config.dynamic_shared));
        if self.parameters.limits.most(shape).blocks() == 0 {
            return Err(Error::OutOfResources);
        }
        Ok(index)
    }

    /// Launches what a buffer has the arguments of.
    fn launch_by_device(
        &mut self,
        by: &Launch,
        (launch, block, _): (u32, u64, Call),
        buffer: u64,
        stream: u64,
        what: Option<(usize, LaunchConfig)>,
        now: Time,
    ) -> Answer {
        let devices = &mut self.state.device_launches;
        let known = devices.known_buffer(buffer).ok_or(Error::InvalidValue)?;
        let (kernel, config) = what.or(known.shape).ok_or(Error::InvalidValue)?;
        let stream = devices.stream(launch, block, stream);
        let stream = stream.ok_or(Error::InvalidValue)?;
        let mut arguments = vec![0; by.module.kernels[kernel].parameter_bytes as usize];
        self.contents.read(buffer, &mut arguments);
        let what = DeviceLaunch {
            kernel,
            config,
            arguments,
        };
        let latencies = &self.parameters.device.latencies;
        let devices = &mut self.state.device_launches;
        devices.launch(launch, buffer, stream, what, now, latencies);
        Ok(0)
    }

    /// Blocks of a kernel that an SM holds.
    fn most_blocks(&self, by: &Launch, kernel: usize, threads: u64, shared: u64) -> Answer {
        let kernel = &by.module.kernels[kernel];
        check((1..=MAXIMUM_THREADS).contains(&threads))?;
        let shape = block_shape(kernel, threads as u32, shared);
        Ok(u64::from(self.parameters.limits.most(shape).blocks()))
    }
}

/// Writes an answer to where its lane finds it.
fn put(lane: &mut DeviceRuntimeLane, answer: Answer, call: Call, library: bool) {
    let error = answer.err().unwrap_or(Error::Success);
    let is_buffer = matches!(call, Call::GetParameterBuffer | Call::GetParameterBufferV2);
    lane.answer = match (is_buffer, library) {
        (true, _) => answer.unwrap_or(0),
        (false, true) => u64::from(error.cuda()),
        (false, false) => error as u64,
    };
    lane.stored = answer.ok();
    // These two never become the last error.
    let silent = matches!(call, Call::GetLimit | Call::GetDeviceCount);
    if is_buffer || (library && !silent) {
        lane.last_error = error.cuda();
    }
}

/// What follows from the GPU alone.
fn question(call: Call, runtime: &DeviceRuntime, first: u64, second: u64, third: u64) -> Answer {
    check(first != 0)?;
    match call {
        Call::GetDeviceCount => Ok(1),
        Call::DeviceGetAttribute if third != 0 => Err(Error::InvalidDevice),
        Call::DeviceGetAttribute => {
            let value = runtime.attributes.get(&(second as u32)).copied();
            Ok(u64::from(value.unwrap_or(0).cast_unsigned()))
        }
        Call::GetLimit => {
            let value = runtime.limits.get(&(second as u32)).copied();
            value.ok_or(Error::UnsupportedLimit)
        }
        // The device is the first, caches have no preference, and banks have their usual width.
        _ => Ok(0),
    }
}

/// What a block of a kernel takes of an SM.
fn block_shape(kernel: &Kernel, threads: u32, dynamic_shared: u64) -> BlockShape {
    BlockShape {
        threads,
        registers: kernel.registers,
        shared: u64::from(kernel.shared_bytes).saturating_add(dynamic_shared),
    }
}

fn check(holds: bool) -> Result<(), Error> {
    if holds {
        Ok(())
    } else {
        Err(Error::InvalidValue)
    }
}

fn shape([x, y, z, bx, by, bz]: [u32; 6], dynamic_shared: u32) -> LaunchConfig {
    LaunchConfig {
        dynamic_shared,
        ..LaunchConfig::new([x, y, z], [bx, by, bz])
    }
}

/// The kernel at a code address.
fn kernel_at(launch: &Launch, address: u64) -> Option<usize> {
    let index = address.checked_sub(CODE_BASE)?;
    let entry = index.is_multiple_of(16).then_some(index / 16)?;
    let kernels = launch.module.kernels.iter();
    kernels
        .zip(0..)
        .find_map(|(kernel, number)| (u64::from(kernel.entry) == entry).then_some(number))
}

/// An attribute of a kernel, by the library's numbers.
fn function_attribute(kernel: &Kernel, number: u64, architecture: u32) -> Answer {
    let value = match number {
        0 if kernel.max_threads == 0 => MAXIMUM_THREADS as u32,
        0 => kernel.max_threads,
        1 => kernel.shared_bytes,
        2 => kernel.constant_bytes,
        3 => kernel.local_bytes,
        4 => kernel.registers,
        5 => kernel.virtual_architecture,
        6 => architecture,
        _ => return Err(Error::InvalidValue),
    };
    Ok(u64::from(value))
}
