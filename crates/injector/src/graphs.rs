//! The kernels of CUDA graphs: a graph's launch names none of them.
//!
//! When the program makes an executable graph, its kernel nodes are listed, in the order in which
//! the driver lists them, child graphs in their place. Changes made to the executable afterwards
//! are not followed.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_void};
use std::sync::Mutex;

use crate::dynamic::function_table;
use crate::dynamic::{Library, overridden};
use crate::session::lock;

const NODE_KERNEL: i32 = 0;
const NODE_GRAPH: i32 = 4;
/// Deeper or larger graphs are listed in part.
const DEEPEST: usize = 8;
const MOST_NODES: usize = 65_536;

/// Parameters of a kernel node, second version.
#[repr(C)]
struct KernelNode {
    function: *mut c_void,
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    parameters: *mut c_void,
    extra: *mut c_void,
    kernel: *mut c_void,
    context: *mut c_void,
}

function_table! {
    /// The driver's questions about graphs.
    Functions {
        nodes = c"cuGraphGetNodes": fn(*mut c_void, *mut *mut c_void, *mut usize) -> i32;
        node_type = c"cuGraphNodeGetType": fn(*mut c_void, *mut i32) -> i32;
        kernel_node = c"cuGraphKernelNodeGetParams_v2": fn(*mut c_void, *mut c_void) -> i32;
        child = c"cuGraphChildGraphNodeGetGraph": fn(*mut c_void, *mut *mut c_void) -> i32;
        function_name = c"cuFuncGetName": fn(*mut *const c_char, *mut c_void) -> i32;
        kernel_name = c"cuKernelGetName": fn(*mut *const c_char, *mut c_void) -> i32;
        exchange_mode = c"cuThreadExchangeStreamCaptureMode": fn(*mut u32) -> i32;
        synchronize = c"cuStreamSynchronize": fn(*mut c_void) -> i32;
    }
}

/// Waiting must not disturb captures of other threads.
const CAPTURE_RELAXED: u32 = 2;

/// One kernel of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphKernel {
    /// Name as the driver gives it.
    pub name: String,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads.
    pub block: [u32; 3],
}

/// Kernels of every executable graph of the process.
#[derive(Default)]
pub struct Graphs {
    functions: Option<Functions>,
    known: Mutex<BTreeMap<usize, Vec<GraphKernel>>>,
}

impl Graphs {
    /// Finds the driver's functions; a driver without them has no named graph kernels.
    pub fn open() -> Self {
        let library = match overridden("LOCKSTEP_LIBCUDA") {
            Some(path) => Library::open(&[&path]),
            None => Library::open(&["libcuda.so.1"]),
        };
        Self {
            functions: library
                .ok()
                .and_then(|library| Functions::find(library).ok()),
            known: Mutex::default(),
        }
    }

    /// An executable was made from `graph`.
    pub fn made(&self, executable: *mut c_void, graph: *mut c_void) {
        let mut kernels = Vec::new();
        if let Some(functions) = &self.functions {
            list(functions, graph, &mut kernels, 0);
        }
        lock(&self.known).insert(executable as usize, kernels);
    }

    /// Waits until everything launched into `stream` has run.
    pub fn wait(&self, stream: *mut c_void) {
        if let Some(functions) = &self.functions {
            let mut mode = CAPTURE_RELAXED;
            // SAFETY: the stream of the call that was just made; the thread's mode is put back.
            unsafe {
                (functions.exchange_mode)(&mut mode);
                (functions.synchronize)(stream);
                (functions.exchange_mode)(&mut mode);
            }
        }
    }

    /// An executable goes.
    pub fn gone(&self, executable: *mut c_void) {
        lock(&self.known).remove(&(executable as usize));
    }

    /// The kernels of an executable, in order; none if they are not known.
    pub fn kernels(&self, executable: *mut c_void) -> Vec<GraphKernel> {
        lock(&self.known)
            .get(&(executable as usize))
            .cloned()
            .unwrap_or_default()
    }
}

fn list(functions: &Functions, graph: *mut c_void, kernels: &mut Vec<GraphKernel>, depth: usize) {
    let mut count = 0;
    // SAFETY: a live graph; without a list the driver only counts, then it fills what it counted.
    let counted = unsafe { (functions.nodes)(graph, std::ptr::null_mut(), &mut count) };
    if counted != 0 || depth > DEEPEST {
        return;
    }
    let mut nodes = vec![std::ptr::null_mut(); count.min(MOST_NODES)];
    count = nodes.len();
    // SAFETY: as above, with room for `count`.
    if unsafe { (functions.nodes)(graph, nodes.as_mut_ptr(), &mut count) } != 0 {
        return;
    }
    for node in nodes.into_iter().take(count) {
        let mut kind = -1;
        // SAFETY: nodes of a live graph and valid places, here and below.
        if unsafe { (functions.node_type)(node, &mut kind) } != 0 {
            continue;
        }
        if kind == NODE_KERNEL {
            kernels.extend(kernel(functions, node));
        } else if kind == NODE_GRAPH {
            let mut child = std::ptr::null_mut();
            // SAFETY: as above.
            if unsafe { (functions.child)(node, &mut child) } == 0 {
                list(functions, child, kernels, depth + 1);
            }
        }
    }
}

fn kernel(functions: &Functions, node: *mut c_void) -> Option<GraphKernel> {
    // SAFETY: integers and pointers, for which zero is a value; room beyond what the driver writes.
    let mut parameters: [KernelNode; 2] = unsafe { std::mem::zeroed() };
    // SAFETY: a kernel node of a live graph, and a large enough place.
    if unsafe { (functions.kernel_node)(node, parameters.as_mut_ptr().cast()) } != 0 {
        return None;
    }
    let [parameters, _] = parameters;
    let mut name: *const c_char = std::ptr::null();
    // SAFETY: the node's own function or kernel, and a valid place for the name.
    unsafe {
        if !parameters.function.is_null() {
            (functions.function_name)(&mut name, parameters.function);
        }
        if name.is_null() && !parameters.kernel.is_null() {
            (functions.kernel_name)(&mut name, parameters.kernel);
        }
    }
    let name = if name.is_null() {
        "(graph)".to_owned()
    } else {
        // SAFETY: not null, and terminated by the driver.
        unsafe { CStr::from_ptr(name) }
            .to_string_lossy()
            .into_owned()
    };
    Some(GraphKernel {
        name,
        grid: parameters.grid,
        block: parameters.block,
    })
}
