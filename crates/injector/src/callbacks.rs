//! What CUPTI calls: contexts, graphs and launches.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_void};

use lockstep_schema::Mode;

use crate::cupti::layouts::{
    CallbackData, GraphData, GraphLaunchParameters, LaunchExParameters, LaunchParameters,
    ResourceData,
};
use crate::cupti::{CuptiError, numbers};
use crate::exact_gate::{Changing, Outcome, Place, Purpose};
use crate::graphs::GraphKernel;
use crate::guard::guarded;
use crate::progress::Progress;
use crate::session::{self, Launch, Session};
use crate::{activity, clock};

thread_local! {
    /// Launches begun and not ended on this thread: the driver may launch inside a launch.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// When the outermost launch began.
    static BEGUN: Cell<u64> = const { Cell::new(0) };
    /// The outermost launch only adds a node to a graph that is being captured: nothing runs, and the
    /// graph's own launch will count.
    static CAPTURED: Cell<bool> = const { Cell::new(false) };
    /// The call under way that changes contexts, memory, modules or streams, with its turn.
    static CHANGING: RefCell<Option<(u32, Changing)>> = const { RefCell::new(None) };
}

/// Subscribes to what the mode needs.
pub fn subscribe(session: &'static Session) -> Result<(), CuptiError> {
    let tracing = session.cupti.tracing;
    let mut subscriber = std::ptr::null_mut();
    // SAFETY: a valid place for the handle and a function of the signature that CUPTI calls.
    let result = unsafe { (tracing.subscribe)(&mut subscriber, called, std::ptr::null_mut()) };
    session.cupti.check("subscribing to contexts", result)?;
    let enable = |domain, number| {
        // SAFETY: the handle from above and numbers that CUPTI knows.
        let result = unsafe { (tracing.enable_callback)(1, subscriber, domain, number) };
        session.cupti.check("subscribing to contexts", result)
    };
    enable(numbers::DOMAIN_RESOURCE, numbers::RESOURCE_CONTEXT_CREATED)?;
    enable(
        numbers::DOMAIN_RESOURCE,
        numbers::RESOURCE_CONTEXT_DESTROY_STARTING,
    )?;
    if session.follows_launches() {
        enable(
            numbers::DOMAIN_RESOURCE,
            numbers::RESOURCE_GRAPH_EXECUTABLE_CREATED,
        )?;
        enable(
            numbers::DOMAIN_RESOURCE,
            numbers::RESOURCE_GRAPH_EXECUTABLE_DESTROY_STARTING,
        )?;
        let launches = numbers::DRIVER_LAUNCH
            .iter()
            .chain(&numbers::DRIVER_LAUNCH_EX)
            .chain(&numbers::DRIVER_GRAPH_LAUNCH);
        for number in launches {
            enable(numbers::DOMAIN_DRIVER, *number)?;
        }
        if session.settings.metadata.mode == Mode::Exact {
            let graphs = numbers::DRIVER_GRAPH_MAKE
                .iter()
                .chain(&numbers::DRIVER_CAPTURE_BEGIN)
                .chain(&numbers::DRIVER_CAPTURE_END);
            for number in graphs {
                enable(numbers::DOMAIN_DRIVER, *number)?;
            }
            for (_, number) in numbers::DRIVER_CHANGES {
                // An older library does not have the newest of them, and nobody calls those then.
                let _ = enable(numbers::DOMAIN_DRIVER, *number);
            }
        }
    }
    Ok(())
}

unsafe extern "C" fn called(_user: *mut c_void, domain: u32, number: u32, data: *const c_void) {
    guarded("hearing of a call", || {
        let Some(session) = session::current() else {
            return;
        };
        if data.is_null() {
            return;
        }
        match (domain, number) {
            (numbers::DOMAIN_RESOURCE, numbers::RESOURCE_CONTEXT_CREATED) => {
                // SAFETY: CUPTI passes this struct in this domain, here and below.
                session.context_created(unsafe { &*data.cast::<ResourceData>() }.context);
            }
            (numbers::DOMAIN_RESOURCE, numbers::RESOURCE_CONTEXT_DESTROY_STARTING) => {
                if session.traces_kernels() {
                    activity::flush(session, false);
                }
                // SAFETY: as above.
                session.context_destroyed(unsafe { &*data.cast::<ResourceData>() }.context);
            }
            (numbers::DOMAIN_RESOURCE, number) => {
                // SAFETY: as above; about graphs, CUPTI describes them in this struct.
                let graph = unsafe {
                    (*data.cast::<ResourceData>())
                        .resourceDescriptor
                        .cast::<GraphData>()
                        .as_ref()
                };
                match (graph, number) {
                    (Some(data), numbers::RESOURCE_GRAPH_EXECUTABLE_CREATED) => {
                        session.graphs.made(data.graphExec, data.graph);
                    }
                    (Some(data), numbers::RESOURCE_GRAPH_EXECUTABLE_DESTROY_STARTING) => {
                        session.graphs.gone(data.graphExec);
                    }
                    _ => {}
                }
            }
            (numbers::DOMAIN_DRIVER, number) => {
                // SAFETY: CUPTI passes this struct in this domain.
                launch(session, number, unsafe { &*data.cast::<CallbackData>() });
            }
            _ => {}
        }
    });
}

/// A launch begins or ends.
fn launch(session: &'static Session, number: u32, data: &CallbackData) {
    let entering = data.callbackSite == numbers::SITE_ENTER;
    let depth = DEPTH.get();
    if session.settings.metadata.mode == Mode::Exact && numbers::is_change(number) {
        if depth == 0 {
            change(session, entering, data.correlationId);
        }
        return;
    }
    DEPTH.set(if entering {
        depth + 1
    } else {
        depth.saturating_sub(1)
    });
    let outermost = if entering { depth == 0 } else { depth == 1 };
    if !outermost {
        return;
    }
    if entering {
        drop(CHANGING.take());
    }
    if numbers::DRIVER_GRAPH_MAKE.contains(&number) {
        return make_graph(session, entering, data);
    }
    if numbers::DRIVER_CAPTURE_BEGIN.contains(&number) {
        return begin_capture(session, entering, data);
    }
    if numbers::DRIVER_CAPTURE_END.contains(&number) {
        if !entering {
            let device = device_of(session, data.context);
            session.gates.capture_ended(data.context, device);
        }
        return;
    }
    let stream = stream_of(number, data);
    if entering {
        BEGUN.set(clock::now());
        CAPTURED.set(session.progress.captures(stream));
    }
    if session.settings.metadata.mode != Mode::Exact {
        if !entering && !CAPTURED.get() {
            let launches = describe(session, number, data);
            session.publish_launches(&launches);
            if let Some(last) = launches.last() {
                session.mark(data.context, stream, last);
            }
        }
        return;
    }
    let graph = numbers::DRIVER_GRAPH_LAUNCH.contains(&number);
    let purpose = if graph {
        Purpose::Graph
    } else {
        Purpose::Kernel
    };
    let device = device_of(session, data.context);
    let outcome = if CAPTURED.get() {
        // Nothing runs and nothing is counted, but the profiler takes one launch at a time.
        if entering {
            session.gates.pass(device);
            Outcome::default()
        } else {
            leave_empty(session, data.context, device)
        }
    } else if entering {
        take_turn(session, data.context, device, purpose)
    } else {
        if graph {
            // What runs on after its profiler is stopped has no counts.
            session.graphs.wait(stream);
        }
        let launches = describe(session, number, data);
        session.gates.leave(data.context, device, launches, purpose)
    };
    session.arrange_end();
    session.publish_outcome(&outcome);
}

/// A call that changes contexts, memory, modules or streams begins or ends, in exact mode.
///
/// The end of a call in which a profiler was given up is not told. Its turn is over when the thread
/// makes another call, or ends, or has had it for long enough.
fn change(session: &Session, entering: bool, correlation: u32) {
    let own = |one: &mut (u32, Changing)| entering || one.0 == correlation;
    drop(CHANGING.with_borrow_mut(|changing| changing.take_if(own)));
    if entering {
        CHANGING.set(Some((correlation, session.gates.changing())));
    }
}

/// Waits until nobody else is counted on the device, and has the profiler of the context running.
fn take_turn(
    session: &'static Session,
    context: *mut c_void,
    device: u32,
    purpose: Purpose,
) -> Outcome {
    let (uuid, chip) = session.gpu(device);
    let place = Place {
        cupti: &session.cupti,
        context,
        device,
        chip,
        uuid,
        locks: &session.settings.locks,
        counters: &session.counters,
    };
    session.gates.enter(&place, purpose)
}

/// Ends a turn in which nothing was launched.
fn leave_empty(session: &Session, context: *mut c_void, device: u32) -> Outcome {
    let gates = &session.gates;
    gates.leave(context, device, Vec::new(), Purpose::Kernel)
}

/// An executable graph is made or changed, in exact mode.
///
/// Kernels of a graph are counted as they were prepared at this time: made while the profiler of its
/// context is stopped (or being stopped, because a launch in another context begins), some never get
/// counts. So making one waits for its turn, like a launch, and has the profiler running.
fn make_graph(session: &'static Session, entering: bool, data: &CallbackData) {
    if data.context.is_null() {
        return;
    }
    let device = device_of(session, data.context);
    let outcome = if entering {
        take_turn(session, data.context, device, Purpose::Kernel)
    } else {
        leave_empty(session, data.context, device)
    };
    session.publish_outcome(&outcome);
}

/// A stream is about to be captured, or is from now on, in exact mode.
fn begin_capture(session: &'static Session, entering: bool, data: &CallbackData) {
    if !entering && !data.context.is_null() && succeeded(data) {
        let device = device_of(session, data.context);
        session.gates.capture_began(data.context, device);
    }
    // Its own context is the one that is counted, as when a graph is made.
    make_graph(session, entering, data);
}

/// Whether the call that ends here did what it was asked for.
fn succeeded(data: &CallbackData) -> bool {
    // SAFETY: at the end of a call, CUPTI points at its result.
    let result = unsafe { data.functionReturnValue.cast::<i32>().as_ref() };
    result.copied().unwrap_or(0) == 0
}

/// The stream of a launch.
fn stream_of(number: u32, data: &CallbackData) -> *mut c_void {
    let parameters = data.functionParams;
    if parameters.is_null() {
        return std::ptr::null_mut();
    }
    // SAFETY: CUPTI passes the parameters of the function that `number` names.
    let stream = unsafe {
        if numbers::DRIVER_LAUNCH.contains(&number) {
            (*parameters.cast::<LaunchParameters>()).hStream
        } else if numbers::DRIVER_LAUNCH_EX.contains(&number) {
            let config = (*parameters.cast::<LaunchExParameters>()).config.as_ref();
            config.map_or(std::ptr::null_mut(), |config| config.hStream)
        } else {
            (*parameters.cast::<GraphLaunchParameters>()).hStream
        }
    };
    Progress::meant(stream, numbers::DRIVER_PER_THREAD.contains(&number))
}

fn device_of(session: &Session, context: *mut c_void) -> u32 {
    let mut device = 0;
    // SAFETY: the context of the call, and a valid place.
    unsafe { (session.cupti.tracing.device_number)(context, &mut device) };
    device
}

/// What was launched; nothing if the driver refused it. A graph launches each of its kernels.
fn describe(session: &Session, number: u32, data: &CallbackData) -> Vec<Launch> {
    if !succeeded(data) || data.functionParams.is_null() {
        return Vec::new();
    }
    let mut kernels = Vec::new();
    // SAFETY: CUPTI passes the parameters of the function that `number` names; all structs begin so.
    let stream = unsafe {
        if numbers::DRIVER_LAUNCH.contains(&number) {
            let parameters = &*data.functionParams.cast::<LaunchParameters>();
            kernels.push(named(data, parameters.gridDim, parameters.blockDim));
            parameters.hStream
        } else if numbers::DRIVER_LAUNCH_EX.contains(&number) {
            let Some(config) = (*data.functionParams.cast::<LaunchExParameters>())
                .config
                .as_ref()
            else {
                return Vec::new();
            };
            kernels.push(named(data, config.gridDim, config.blockDim));
            config.hStream
        } else {
            let parameters = &*data.functionParams.cast::<GraphLaunchParameters>();
            kernels = session.graphs.kernels(parameters.hGraph);
            parameters.hStream
        }
    };
    let mut stream_number = 0;
    // SAFETY: the context and stream of the call, and a valid place.
    unsafe { (session.cupti.tracing.stream_number)(data.context, stream, 0, &mut stream_number) };
    let launch = Launch {
        device: device_of(session, data.context),
        context: data.contextUid,
        stream: stream_number,
        number: u64::from(data.correlationId),
        begin: BEGUN.get(),
        end: clock::now(),
        ..Launch::default()
    };
    let described = |kernel: GraphKernel| Launch {
        name: kernel.name,
        grid: kernel.grid,
        block: kernel.block,
        ..launch.clone()
    };
    kernels.into_iter().map(described).collect()
}

fn named(data: &CallbackData, grid: [u32; 3], block: [u32; 3]) -> GraphKernel {
    let name = if data.symbolName.is_null() {
        "(unnamed)".to_owned()
    } else {
        // SAFETY: not null, and terminated by CUPTI.
        unsafe { CStr::from_ptr(data.symbolName) }
            .to_string_lossy()
            .into_owned()
    };
    GraphKernel { name, grid, block }
}
