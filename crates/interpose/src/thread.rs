//! What belongs to one host thread.
//!
//! The thread-local value is a bare pointer, so that it can be used until the very end of
//! the thread, and of the program. A key of the C library's closes the connection when a
//! thread ends; if a later destructor of the program makes another CUDA call, a new state
//! is made and closed in its turn.

use crate::managed::polling;
use crate::types::Dim3;
use lockstep_protocol::{ClientConnection, ContextHandle, RangeStep};
use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::ptr;
use std::sync::OnceLock;

/// State of one host thread.
#[derive(Default)]
pub struct Thread {
    /// Its connection, once it has made a call that needs one.
    pub connection: RefCell<Option<ClientConnection>>,
    /// Whether it is the first of the process, which stays open when the thread ends: what
    /// the process has at the simulator must outlive the thread that made it.
    pub first: Cell<bool>,
    /// What `cudaGetLastError` answers.
    pub last_error: Cell<i32>,
    /// What `cudaSetDevice` chose, among the visible devices.
    pub device: Cell<usize>,
    /// The driver API's stack of contexts; the last is current.
    pub contexts: RefCell<Vec<ContextHandle>>,
    /// Launches between `<<<…>>>` and the stub that it calls.
    pub configurations: RefCell<Vec<Configuration>>,
    /// Argument bytes of the launch calls before CUDA 7.
    pub arguments: RefCell<Vec<u8>>,
    /// Ranges of NVTX before the first call.
    pub ranges: RefCell<Vec<RangeStep>>,
    /// What `cudaThreadExchangeStreamCaptureMode` exchanges.
    pub capture_mode: Cell<i32>,
}

/// What stands between `<<<` and `>>>`.
#[derive(Clone, Copy)]
pub struct Configuration {
    /// Blocks.
    pub grid: Dim3,
    /// Threads of a block.
    pub block: Dim3,
    /// Dynamic shared memory in bytes.
    pub shared: usize,
    /// The stream's handle.
    pub stream: usize,
}

thread_local! {
    static CURRENT: Cell<*const Thread> = const { Cell::new(ptr::null()) };
}

static KEY: OnceLock<libc::pthread_key_t> = OnceLock::new();

/// The calling thread's state.
pub fn current() -> &'static Thread {
    let pointer = CURRENT.get();
    let pointer = if pointer.is_null() { create() } else { pointer };
    // SAFETY: the pointer is what `create` leaked; only `end` frees it, when the thread is
    // past every use of it.
    unsafe { &*pointer }
}

fn create() -> *const Thread {
    let pointer: *const Thread = Box::into_raw(Box::<Thread>::default());
    CURRENT.set(pointer);
    let key = KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: both arguments are valid; `end` suits the signature.
        unsafe { libc::pthread_key_create(&mut key, Some(end)) };
        key
    });
    // SAFETY: the key was made above. If that failed, the state is leaked, no more.
    unsafe { libc::pthread_setspecific(*key, pointer.cast()) };
    pointer
}

unsafe extern "C" fn end(pointer: *mut c_void) {
    CURRENT.set(ptr::null());
    // SAFETY: the key holds what `create` leaked for this thread, and gives it here once.
    let thread = unsafe { Box::from_raw(pointer.cast::<Thread>()) };
    if thread.connection.borrow().is_some() {
        polling::caller_left();
    }
    if thread.first.get() {
        std::mem::forget(thread.connection.take());
    }
}
