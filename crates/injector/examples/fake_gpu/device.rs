//! What a program asks of the fake device: contexts, launches, waiting.

use std::ffi::{CStr, c_char, c_void};

use lockstep_injector::cupti::layouts::{
    CallbackData, GraphData, GraphLaunchParameters, LaunchConfig, LaunchExParameters,
    LaunchParameters, ResourceData,
};
use lockstep_injector::cupti::numbers;

use crate::profiler::refused;
use crate::state::{Context, Stage, Unreported, Work, demand, device_now, lock_works, state};

/// `cuCtxCreate_v4` and `cuCtxDestroy_v2`.
const CREATE_CONTEXT: u32 = 757;
const DESTROY_CONTEXT: u32 = 322;

/// Calls the subscriber, if it asked for this.
fn tell<T>(domain: u32, number: u32, data: &T) {
    let locked = state();
    let wanted = locked.enabled.contains(&(domain, number));
    let Some((callback, user)) = locked.callback.filter(|_| wanted) else {
        return;
    };
    drop(locked);
    unsafe {
        callback(
            user as *mut c_void,
            domain,
            number,
            std::ptr::from_ref(data).cast(),
        )
    };
}

fn resource(number: u32, context: usize) {
    let data = ResourceData {
        context: context as *mut c_void,
        stream: std::ptr::null_mut(),
        resourceDescriptor: std::ptr::null_mut(),
    };
    tell(numbers::DOMAIN_RESOURCE, number, &data);
}

/// Makes a context on `device`.
#[unsafe(no_mangle)]
pub extern "C" fn fake_context_create(device: u32) -> usize {
    announce_call(numbers::SITE_ENTER, 0, CREATE_CONTEXT);
    let mut locked = state();
    demand(
        locked.launching == 0 || !locked.counts(),
        "a context is made while another thread launches",
    );
    let handle = locked.handle();
    let number = locked.contexts.len() as u32 + 1;
    locked.contexts.insert(handle, Context { number, device });
    drop(locked);
    resource(numbers::RESOURCE_CONTEXT_CREATED, handle);
    announce_call(1, handle, CREATE_CONTEXT);
    handle
}

/// Ends a context.
#[unsafe(no_mangle)]
pub extern "C" fn fake_context_destroy(context: usize) {
    announce_call(numbers::SITE_ENTER, context, DESTROY_CONTEXT);
    let before = state().disabled;
    resource(numbers::RESOURCE_CONTEXT_DESTROY_STARTING, context);
    let mut locked = state();
    // Whatever is launched meanwhile loses counts on the real device.
    demand(
        locked.launching == 0 || !locked.counts(),
        "a context goes while another thread launches",
    );
    locked.contexts.remove(&context);
    let disabled = locked.disabled;
    drop(locked);
    // The real library does not tell the end of a call in which a profiler was given up.
    if disabled == before {
        announce_call(1, context, DESTROY_CONTEXT);
    }
}

/// Launches `count` kernels: by `cuLaunchKernel` (`how` 0), by `cuLaunchKernelEx` (1), or as one
/// graph (2), whose kernels are launched into a captured stream first (3). Each runs for `time` nanoseconds after the one before it in its stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_launch(
    context: usize,
    stream: u64,
    name: *const c_char,
    how: u32,
    grid: u32,
    block: u32,
    instructions_per_warp: u64,
    time: u64,
    count: u32,
) -> i32 {
    if let Some(code) = refused("cuLaunchKernel") {
        return code;
    }
    let text = unsafe { CStr::from_ptr(name) }
        .to_string_lossy()
        .into_owned();
    let how = if how == 3 {
        unsafe { fake_capture(context, stream, 1) };
        for _ in 0..count {
            let mut locked = state();
            locked.launches += 1;
            let correlation = locked.launches;
            drop(locked);
            let null = std::ptr::null_mut();
            for site in [numbers::SITE_ENTER, 1] {
                announce(
                    site,
                    context,
                    stream,
                    name,
                    0,
                    grid,
                    block,
                    correlation,
                    null,
                );
            }
        }
        unsafe { fake_capture(context, stream, 0) };
        2
    } else {
        how
    };
    let mut prepared = true;
    let graph = if how == 2 {
        announce_call(numbers::SITE_ENTER, context, 643);
        // Its kernels can be counted one by one if it is made while its context is profiled.
        prepared = is_profiled(context);
        let graph = crate::graph::make(&text, grid, block, count);
        describe_graph(context, graph);
        announce_call(1, context, 643);
        graph
    } else {
        std::ptr::null_mut()
    };
    let calls = if how == 2 { 1 } else { count };
    for _ in 0..calls {
        let mut locked = state();
        locked.launches += 1;
        let correlation = locked.launches;
        drop(locked);
        announce(
            numbers::SITE_ENTER,
            context,
            stream,
            name,
            how,
            grid,
            block,
            correlation,
            graph,
        );
        state().launching += 1;
        for kernel in 0..if how == 2 { count } else { 1 } {
            run(
                context,
                stream,
                &text,
                grid,
                block,
                instructions_per_warp,
                time,
                correlation,
                prepared || kernel == 0,
            );
        }
        state().launching -= 1;
        announce(
            1,
            context,
            stream,
            name,
            how,
            grid,
            block,
            correlation,
            graph,
        );
    }
    0
}

fn run(
    context: usize,
    stream: u64,
    name: &str,
    grid: u32,
    block: u32,
    instructions: u64,
    time: u64,
    correlation: u32,
    counted: bool,
) {
    let mut locked = state();
    let (number, device) = locked
        .contexts
        .get(&context)
        .map_or((0, 0), |one| (one.number, one.device));
    let warps = u64::from(grid) * u64::from(block).div_ceil(32);
    let held = lock_works();
    let begin = locked
        .stream_end
        .get(&(context, stream))
        .copied()
        .unwrap_or(0)
        .max(device_now());
    let work = Work {
        device: u64::from(device),
        begin,
        end: begin + time,
        instructions: warps * instructions,
        warps,
        cycles: time * 132,
    };
    locked.stream_end.insert((context, stream), work.end);
    locked.add_work(work);
    drop(held);
    let name = locked.intern(name);
    if locked.recording {
        let stream = stream as u32;
        locked.unreported.push(Unreported {
            work,
            context: number,
            stream,
            correlation,
            grid,
            block,
            name,
        });
    }
    let mut profiled = false;
    for object in locked.ranges.values_mut() {
        if counted && object.context == context && object.stage == Stage::Started {
            object.ranges.push(work);
            profiled = true;
        }
    }
    drop(locked);
    if profiled {
        // The range profiler waits for each kernel.
        wait_until(work.end);
    }
}

/// Whether kernels of a context are counted one by one now.
fn is_profiled(context: usize) -> bool {
    let locked = state();
    let mut objects = locked.ranges.values();
    objects.any(|one| one.context == context && one.stage == Stage::Started)
}

/// Begins (1) or ends (0) a capture.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_capture(context: usize, stream: u64, on: u32) {
    let number = if on == 1 { 539 } else { 497 };
    announce_call(numbers::SITE_ENTER, context, number);
    crate::marks::capture(stream, on == 1);
    let mut locked = state();
    let count = locked.captures.entry(context).or_default();
    *count = if on == 1 { *count + 1 } else { *count - 1 };
    drop(locked);
    announce_call(1, context, number);
}

/// Tells the subscriber that the program calls a function of which nothing is asked.
fn announce_call(site: u32, context: usize, number: u32) {
    let mut result = 0i32;
    let mut correlation_data = 0u64;
    // The parameters of this function are none of a launch: nobody may look at them.
    let data = CallbackData {
        callbackSite: site,
        functionName: c"cuCall".as_ptr(),
        functionParams: std::ptr::null(),
        functionReturnValue: std::ptr::from_mut(&mut result).cast(),
        symbolName: std::ptr::null(),
        context: context as *mut c_void,
        contextUid: 0,
        correlationData: &mut correlation_data,
        correlationId: 0,
    };
    tell(numbers::DOMAIN_DRIVER, number, &data);
}

/// Tells the subscriber that an executable was made of `graph`.
fn describe_graph(context: usize, graph: *mut c_void) {
    let number = numbers::RESOURCE_GRAPH_EXECUTABLE_CREATED;
    let null = std::ptr::null_mut();
    let mut described = GraphData {
        graph,
        originalGraph: null,
        node: null,
        originalNode: null,
        nodeType: 0,
        dependency: null,
        graphExec: graph,
    };
    let data = ResourceData {
        context: context as *mut c_void,
        stream: null,
        resourceDescriptor: std::ptr::from_mut(&mut described).cast(),
    };
    tell(numbers::DOMAIN_RESOURCE, number, &data);
}

#[allow(clippy::too_many_arguments, reason = "what a launch has")]
fn announce(
    site: u32,
    context: usize,
    stream: u64,
    name: *const c_char,
    how: u32,
    grid: u32,
    block: u32,
    correlation: u32,
    graph: *mut c_void,
) {
    let number = match how {
        0 => numbers::DRIVER_LAUNCH[0],
        1 => numbers::DRIVER_LAUNCH_EX[0],
        _ => numbers::DRIVER_GRAPH_LAUNCH[0],
    };
    let uid = state().contexts.get(&context).map_or(0, |one| one.number);
    let stream = stream as usize as *mut c_void;
    let null = std::ptr::null_mut();
    let config = LaunchConfig {
        gridDim: [grid, 1, 1],
        blockDim: [block, 1, 1],
        sharedMemBytes: 0,
        hStream: stream,
    };
    let plain = LaunchParameters {
        f: null,
        gridDim: [grid, 1, 1],
        blockDim: [block, 1, 1],
        sharedMemBytes: 0,
        hStream: stream,
    };
    let extended = LaunchExParameters {
        config: &config,
        f: null,
    };
    let graph = GraphLaunchParameters {
        hGraph: graph,
        hStream: stream,
    };
    let parameters: *const c_void = match how {
        0 => std::ptr::from_ref(&plain).cast(),
        1 => std::ptr::from_ref(&extended).cast(),
        _ => std::ptr::from_ref(&graph).cast(),
    };
    let mut result = 0i32;
    let mut correlation_data = 0u64;
    let data = CallbackData {
        callbackSite: site,
        functionName: c"cuLaunch".as_ptr(),
        functionParams: parameters,
        functionReturnValue: std::ptr::from_mut(&mut result).cast(),
        symbolName: if how == 2 { std::ptr::null() } else { name },
        context: context as *mut c_void,
        contextUid: uid,
        correlationData: &mut correlation_data,
        correlationId: correlation,
    };
    tell(numbers::DOMAIN_DRIVER, number, &data);
}

fn wait_until(end: u64) {
    let now = device_now();
    if end > now {
        std::thread::sleep(std::time::Duration::from_nanos(end - now));
    }
}

/// Waits for one stream, of whichever context: streams of the tests have names of their own.
#[unsafe(no_mangle)]
pub extern "C" fn cuStreamSynchronize(stream: *mut c_void) -> i32 {
    let locked = state();
    let mut ends = locked.stream_end.iter();
    let end = ends.find(|((_, one), _)| *one == stream as u64);
    let end = end.map_or(0, |(_, end)| *end);
    drop(locked);
    wait_until(end);
    0
}

/// Waits until everything launched has run.
#[unsafe(no_mangle)]
pub extern "C" fn fake_synchronize() {
    let end = state().stream_end.values().copied().max().unwrap_or(0);
    wait_until(end);
}
