//! What the work distributor answers to calls of the device runtime.
//!
//! Start reading at [`WorkDistributor::device_runtime`].

use lockstep_config::occupancy::BlockShape;
use lockstep_engine::{Outbox, PartitionId};
use lockstep_isa::device_runtime::{
    DeviceRuntime, DeviceRuntimeCall as Call, DeviceRuntimeError as Error,
};
use lockstep_isa::{Kernel, Launch, module::CODE_BASE};
use lockstep_units::{Bytes, Duration, LaunchConfig, Time};

use super::device_launches::{DeviceLaunch, Stream};
use super::work_distributor::WorkDistributor;
use crate::fault::FaultKind;
use crate::message::{DeviceRuntimeLane, DeviceRuntimeRequest, Message};

/// Most blocks along x, y and z.
const MAXIMUM_GRID: [u32; 3] = [i32::MAX as u32, 65_535, 65_535];
/// Most threads along x, y and z.
const MAXIMUM_BLOCK: [u32; 3] = [1024, 1024, 64];
/// Most threads of a block.
const MAXIMUM_THREADS: u64 = 1024;

/// `cudaStreamTailLaunch`.
const TAIL: u64 = 3;
/// `cudaStreamFireAndForget`.
const FIRE_AND_FORGET: u64 = 4;

/// The highest number of a device attribute that device code may ask for.
const LAST_ATTRIBUTE: u64 = 148;
/// One below it that it may not: it is about memory of the host.
const HOST_ONLY_ATTRIBUTE: u64 = 131;

/// Most blocks of a cluster that needs no leave, which device code cannot give.
const PORTABLE_CLUSTER: u64 = 8;

/// `cudaStreamNonBlocking`; the other flag is none.
const NON_BLOCKING: u64 = 1;
/// `cudaEventDisableTiming`, which events of device code must be created with.
const DISABLE_TIMING: u64 = 2;

/// Why a call does not do what it is asked to do.
enum Refusal {
    /// It answers this.
    Error(Error),
    /// It looks where nothing is: a handle or an address that was never given.
    Nothing {
        /// What it looks for.
        what: &'static str,
        /// Where.
        address: u64,
    },
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// What a call answers: what it writes or an address.
type Answer = Result<u64, Refusal>;

/// A thread that calls.
#[derive(Clone, Copy)]
struct Caller {
    launch: u32,
    /// Number of its block in the grid, and of the thread there.
    place: (u64, u32),
    /// When it is answered.
    at: Time,
}

impl WorkDistributor {
    /// Answers what the lanes of a warp ask, one after the other.
    pub(super) fn device_runtime(
        &mut self,
        mut request: Box<DeviceRuntimeRequest>,
        sender: PartitionId,
        now: Time,
        outbox: &mut Outbox<'_, Message>,
    ) {
        let call = request.call;
        let mut at = now;
        for (index, lane) in request.lanes.iter_mut().enumerate() {
            at += match index {
                0 => self.duration(call, &lane.arguments),
                _ => self.parameters.device.lane,
            };
            let caller = Caller {
                launch: request.launch,
                place: (request.block, request.first_thread + u32::from(lane.lane)),
                at,
            };
            let answer = match self.answer(caller, call, &lane.arguments) {
                Ok(value) => Ok(value),
                Err(Refusal::Error(error)) => Err(error),
                Err(Refusal::Nothing { what, address }) => {
                    let nearest = self.contents.nearest(address);
                    let kind = FaultKind::IllegalAddress {
                        what: format!("use of {what} that does not exist, by the device runtime,"),
                        address,
                        bytes: 8,
                        nearest,
                    };
                    return self.fail_in(request.launch, kind, sender, now);
                }
            };
            put(lane, answer, call, request.library);
        }
        let size = Bytes(8 * request.lanes.len() as u64);
        let message = Message::DeviceRuntimeDone(request);
        outbox.send(self.parameters.start, sender, at, size, message);
    }

    /// How long a call takes its thread, besides the way here and back.
    fn duration(&self, call: Call, arguments: &[u64; 10]) -> Duration {
        let device = &self.parameters.device;
        let stream = match call {
            Call::LaunchDevice => arguments[9],
            _ => arguments[1],
        };
        match call {
            Call::GetParameterBuffer | Call::GetParameterBufferV2 => device.buffer_call,
            Call::LaunchDevice | Call::LaunchDeviceV2
                if matches!(stream, TAIL | FIRE_AND_FORGET) =>
            {
                device.launch_call
            }
            Call::LaunchDevice | Call::LaunchDeviceV2 => device.stream_call,
            Call::EventRecord | Call::StreamWaitEvent => device.event_call,
            _ => device.other_call,
        }
    }

    fn answer(&mut self, caller: Caller, call: Call, arguments: &[u64; 10]) -> Answer {
        let [first, second, third, fourth, ..] = *arguments;
        check(first != 0 || call.stored_bytes(second) == 0)?;
        let context = self.waiting_context(caller.launch);
        let by = &context.launch;
        match call {
            Call::GetParameterBuffer
            | Call::GetParameterBufferV2
            | Call::LaunchDevice
            | Call::LaunchDeviceV2 => self.answer_launch(by, caller, call, arguments),
            Call::FuncGetAttribute => {
                let kernel = known_kernel(by, third)?;
                let kernel = &by.module.kernels[kernel];
                function_attribute(kernel, second, by.module.architecture)
            }
            Call::MaxActiveBlocks | Call::MaxActiveBlocksWithFlags => {
                let kernel = known_kernel(by, second)?;
                self.most_blocks(by, kernel, third, fourth)
            }
            Call::GetDevice
            | Call::GetDeviceCount
            | Call::DeviceGetAttribute
            | Call::GetLimit
            | Call::GetCacheConfig
            | Call::GetSharedMemConfig => question(call, by.device_runtime.as_deref(), second),
            _ => self.answer_stream(caller, call, [first, second]),
        }
    }

    /// Buffers and launches.
    fn answer_launch(
        &mut self,
        by: &Launch,
        caller: Caller,
        call: Call,
        arguments: &[u64; 10],
    ) -> Answer {
        let [first, second, ..] = *arguments;
        let devices = &mut self.state.device_launches;
        match call {
            Call::GetParameterBuffer => Ok(devices.buffer(caller.launch, second, None)?),
            Call::GetParameterBufferV2 => {
                let dimensions = [1, 2, 3, 4, 5, 6].map(|at| arguments[at] as u32);
                let config = shape(dimensions, arguments[7] as u32);
                let kernel = known_kernel(by, first)?;
                let bytes = u64::from(by.module.kernels[kernel].parameter_bytes);
                Ok(devices.buffer(caller.launch, bytes, Some((kernel, config)))?)
            }
            Call::LaunchDevice => {
                let dimensions = [2, 3, 4, 5, 6, 7].map(|at| arguments[at] as u32);
                let config = shape(dimensions, arguments[8] as u32);
                let what = Some((known_kernel(by, first)?, config));
                self.launch_by_device(by, caller, second, arguments[9], what)
            }
            _ => self.launch_by_device(by, caller, first, second, None),
        }
    }

    /// Streams and events.
    fn answer_stream(&mut self, caller: Caller, call: Call, [first, second]: [u64; 2]) -> Answer {
        let launch = caller.launch;
        let devices = &mut self.state.device_launches;
        match call {
            Call::StreamCreate => {
                check(second <= NON_BLOCKING)?;
                Ok(devices.create_stream(launch))
            }
            Call::EventCreate => {
                check(second == DISABLE_TIMING)?;
                Ok(devices.create_event(launch)?)
            }
            Call::StreamDestroy => {
                check(first > FIRE_AND_FORGET)?;
                found(devices.has_stream(first), "a stream", first)
            }
            Call::EventDestroy => {
                check(first != 0)?;
                found(devices.has_event(first), "an event", first)
            }
            Call::EventRecord => {
                check(first != 0)?;
                let stream = self.ordered_stream(caller, second)?;
                let devices = &mut self.state.device_launches;
                found(devices.record(launch, first, stream)?, "an event", first)
            }
            Call::StreamWaitEvent => {
                check(second != 0)?;
                let stream = self.ordered_stream(caller, first)?;
                let devices = &mut self.state.device_launches;
                found(devices.wait(launch, stream, second), "an event", second)
            }
            _ => Ok(0),
        }
    }

    /// A stream in which there is an order.
    fn ordered_stream(&mut self, caller: Caller, handle: u64) -> Result<Stream, Refusal> {
        let devices = &mut self.state.device_launches;
        let stream = devices.stream(caller.launch, caller.place, handle);
        let stream = stream.ok_or(Refusal::Nothing {
            what: "a stream",
            address: handle,
        })?;
        check(!matches!(stream, Stream::Tail | Stream::FireAndForget))?;
        Ok(stream)
    }

    /// Whether a kernel can be launched so.
    fn check_launch(
        &self,
        launch: &Launch,
        index: usize,
        config: LaunchConfig,
    ) -> Result<(), Error> {
        let kernel = &launch.module.kernels[index];
        let shared = launch.device_runtime.as_ref();
        let shared = shared.map_or(0, |runtime| runtime.shared_per_block);
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
            || u64::from(kernel.shared_bytes) + u64::from(config.dynamic_shared) > shared
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
        Ok(())
    }

    /// Launches what a buffer has the arguments of.
    fn launch_by_device(
        &mut self,
        by: &Launch,
        caller: Caller,
        buffer: u64,
        stream: u64,
        what: Option<(usize, LaunchConfig)>,
    ) -> Answer {
        let nothing = |what, address| Refusal::Nothing { what, address };
        let devices = &mut self.state.device_launches;
        let known = devices.known_buffer(buffer);
        let known = known.ok_or(nothing("a parameter buffer", buffer))?;
        let (kernel, config) = what.or(known.shape).ok_or(Error::InvalidValue)?;
        let into = devices.stream(caller.launch, caller.place, stream);
        let into = into.ok_or(nothing("a stream", stream))?;
        let most = by.device_runtime.as_ref();
        let most = most.map_or(0, |runtime| runtime.pending_launches);
        let fits = self.check_launch(by, kernel, config);
        let devices = &mut self.state.device_launches;
        if let Err(error) = fits.and_then(|()| devices.check_pool(most)) {
            devices.give_back(buffer);
            return Err(error.into());
        }
        let mut arguments = vec![0; by.module.kernels[kernel].parameter_bytes as usize];
        self.contents.read(buffer, &mut arguments);
        let what = DeviceLaunch {
            kernel,
            config,
            arguments,
        };
        let latencies = &self.parameters.device.latencies;
        let devices = &mut self.state.device_launches;
        devices.launch(caller.launch, buffer, into, what, caller.at, latencies);
        Ok(0)
    }

    /// Blocks of a kernel that an SM holds.
    fn most_blocks(&self, by: &Launch, kernel: usize, threads: u64, shared: u64) -> Answer {
        let kernel = &by.module.kernels[kernel];
        check(threads > 0)?;
        if threads > MAXIMUM_THREADS {
            return Ok(0);
        }
        let shape = block_shape(kernel, threads as u32, shared);
        Ok(u64::from(self.parameters.limits.most(shape).blocks()))
    }
}

/// Writes an answer to where its lane finds it.
fn put(lane: &mut DeviceRuntimeLane, answer: Result<u64, Error>, call: Call, library: bool) {
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

/// What follows from the GPU alone. Which device is asked about is of no concern: there is one.
fn question(call: Call, runtime: Option<&DeviceRuntime>, number: u64) -> Answer {
    match call {
        Call::GetDeviceCount => Ok(1),
        Call::DeviceGetAttribute => {
            check(number <= LAST_ATTRIBUTE && number != HOST_ONLY_ATTRIBUTE)?;
            let attributes = runtime.map(|runtime| &runtime.attributes);
            let value = attributes.and_then(|all| all.get(&(number as u32)).copied());
            Ok(u64::from(value.unwrap_or(0).cast_unsigned()))
        }
        Call::GetLimit => {
            let limits = runtime.map(|runtime| &runtime.limits);
            let value = limits.and_then(|all| all.get(&(number as u32)).copied());
            let error = match number {
                3 | 9 => Error::UnsupportedLimit,
                _ => Error::InvalidValue,
            };
            Ok(value.ok_or(error)?)
        }
        // Banks of shared memory have four bytes.
        Call::GetSharedMemConfig => Ok(1),
        // The device is the first, and caches have no preference.
        _ => Ok(0),
    }
}

/// Nothing to answer, if what was named exists.
fn found(exists: bool, what: &'static str, address: u64) -> Answer {
    match exists {
        true => Ok(0),
        false => Err(Refusal::Nothing { what, address }),
    }
}

/// The kernel at a code address.
fn known_kernel(launch: &Launch, address: u64) -> Result<usize, Refusal> {
    let what = "a kernel";
    kernel_at(launch, address).ok_or(Refusal::Nothing { what, address })
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
        _ => return Err(Error::InvalidValue.into()),
    };
    Ok(u64::from(value))
}
