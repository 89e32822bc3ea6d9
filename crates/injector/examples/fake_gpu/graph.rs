//! Graphs of one kernel repeated, and the driver's questions about them.

use std::ffi::{CString, c_char, c_void};

pub struct Graph {
    pub name: CString,
    pub grid: u32,
    pub block: u32,
    pub count: u32,
}

/// Makes a graph that lives on; its nodes are all itself.
pub fn make(name: &str, grid: u32, block: u32, count: u32) -> *mut c_void {
    let name = CString::new(name).unwrap_or_default();
    Box::into_raw(Box::new(Graph {
        name,
        grid,
        block,
        count,
    }))
    .cast()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphGetNodes(
    graph: *mut c_void,
    nodes: *mut *mut c_void,
    count: *mut usize,
) -> i32 {
    let known = unsafe { &*graph.cast::<Graph>() };
    if !nodes.is_null() {
        for i in 0..unsafe { *count }.min(known.count as usize) {
            unsafe { *nodes.add(i) = graph };
        }
    }
    unsafe { *count = known.count as usize };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphNodeGetType(_node: *mut c_void, kind: *mut i32) -> i32 {
    unsafe { *kind = 0 };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphKernelNodeGetParams_v2(
    node: *mut c_void,
    parameters: *mut c_void,
) -> i32 {
    let graph = unsafe { &*node.cast::<Graph>() };
    let sizes = [graph.grid, 1, 1, graph.block, 1, 1, 0];
    unsafe {
        parameters.cast::<*mut c_void>().write(node);
        std::ptr::copy_nonoverlapping(
            sizes.as_ptr(),
            parameters.cast::<u8>().add(8).cast(),
            sizes.len(),
        );
    }
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGraphChildGraphNodeGetGraph(
    _node: *mut c_void,
    _graph: *mut *mut c_void,
) -> i32 {
    1
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuFuncGetName(name: *mut *const c_char, function: *mut c_void) -> i32 {
    unsafe { *name = (*function.cast::<Graph>()).name.as_ptr() };
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuKernelGetName(_name: *mut *const c_char, _kernel: *mut c_void) -> i32 {
    1
}
