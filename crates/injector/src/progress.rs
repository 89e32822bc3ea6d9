//! How far each stream has come, told by the device itself.
//!
//! Launches are known by host time only, and the device may run them much later. While one stream
//! has the device to itself their order says which runs; several streams, contexts or processes at
//! once take turns that nobody reports. So while a GPU is shared, and only then, some launches are
//! followed by a write of their number into a page of ours: the device does that when the kernel is
//! over. The worker looks at the pages; nothing of the driver is called to read them, and no kernel
//! is changed.
//!
//! A write takes the device a microsecond or two, so a stream gets one about every half millisecond
//! of its own time ([`Lane::pace`]).

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crate::dynamic::function_table;
use crate::dynamic::{Library, overridden};
use crate::session::lock;

function_table! {
    /// Writes in stream order.
    Functions {
        write = c"cuStreamWriteValue64_v2": fn(*mut c_void, u64, u64, u32) -> i32;
        register = c"cuMemHostRegister_v2": fn(*mut c_void, usize, u32) -> i32;
        device_pointer = c"cuMemHostGetDevicePointer_v2": fn(*mut u64, *mut c_void, u32) -> i32;
        exchange_mode = c"cuThreadExchangeStreamCaptureMode": fn(*mut u32) -> i32;
    }
}
function_table! {
    /// Questions about a stream.
    Streams {
        capturing = c"cuStreamIsCapturing": fn(*mut c_void, *mut u32) -> i32;
    }
}

/// Calls of this thread may not disturb captures of other threads, and the other way round.
const CAPTURE_RELAXED: u32 = 2;
/// The default stream of a thread, where a function's own default is meant.
const STREAM_PER_THREAD: usize = 2;
/// Bytes of a context's page, and streams that find room in it.
const PAGE: usize = 4096;
const MOST_STREAMS: usize = PAGE / 8;
/// Time of a stream's own work between two marks.
const BETWEEN_MARKS: u64 = 500_000;
const MOST_BETWEEN_MARKS: u64 = 64;
/// Streams that took turns within this time share the GPU.
const TOGETHER: u64 = 200_000_000;

/// How far a stream had come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reached {
    /// Index of the GPU in the process.
    pub device: u32,
    /// CUPTI's number of the context.
    pub context: u32,
    /// CUPTI's number of the stream.
    pub stream: u32,
    /// This launch and all before it in the stream are over.
    pub launch: u64,
    /// It was not over yet at this time.
    pub after: u64,
    /// It was over at this time.
    pub before: u64,
}

/// A launch that was just made.
#[derive(Clone, Copy, Debug)]
pub struct Made {
    /// The driver's handle of the context.
    pub context: *mut c_void,
    /// The driver's handle of the stream.
    pub stream: *mut c_void,
    /// Index of the GPU in the process.
    pub device: u32,
    /// CUPTI's number of the context.
    pub context_number: u32,
    /// CUPTI's number of the stream.
    pub stream_number: u32,
    /// CUPTI's number of the launch.
    pub launch: u64,
    /// Nanoseconds since 1970.
    pub time: u64,
}

struct Lane {
    word: &'static AtomicU64,
    address: u64,
    device: u32,
    context: u32,
    stream: u32,
    /// Launches since the last mark.
    unmarked: u64,
    every: u64,
    /// Launches between a mark and the one before it, oldest first.
    marks: Vec<(u64, u64)>,
    seen: u64,
    looked: u64,
    reached_at: u64,
    shortest: u64,
}

impl Lane {
    /// Marks come often enough to tell turns apart, and seldom enough to cost nothing.
    fn pace(&mut self, launches: u64, time: u64) {
        let each = (time / launches.max(1)).max(1);
        // Waiting for others makes a launch look longer than it is; the shortest is nearest.
        self.shortest = each.min(self.shortest.saturating_add(self.shortest / 8));
        self.every = (BETWEEN_MARKS / self.shortest.max(1)).clamp(1, MOST_BETWEEN_MARKS);
    }
}

/// Words that a context can write.
struct Page {
    words: &'static [AtomicU64],
    /// Of the first word, for the device.
    address: u64,
    used: usize,
}

#[derive(Default)]
struct Lanes {
    /// The page of each context; nothing where the driver refused.
    pages: BTreeMap<usize, Option<Page>>,
    by_stream: BTreeMap<(usize, usize), Lane>,
}

/// The streams of this process.
pub struct Progress {
    functions: Option<Functions>,
    streams: Option<Streams>,
    /// Other processes use the same GPU.
    neighbours: AtomicBool,
    last: AtomicUsize,
    mixed_at: AtomicU64,
    waiting: AtomicBool,
    lanes: Mutex<Lanes>,
}

impl Progress {
    /// Finds the driver's functions; without them nothing is marked.
    pub fn open() -> Self {
        let library = match overridden("LOCKSTEP_LIBCUDA") {
            Some(path) => Library::open(&[&path]),
            None => Library::open(&["libcuda.so.1"]),
        };
        Self {
            functions: library
                .as_ref()
                .ok()
                .and_then(|one| Functions::find(*one).ok()),
            streams: library.ok().and_then(|one| Streams::find(one).ok()),
            neighbours: AtomicBool::new(false),
            last: AtomicUsize::new(0),
            mixed_at: AtomicU64::new(0),
            waiting: AtomicBool::new(false),
            lanes: Mutex::default(),
        }
    }

    /// Whether a launch into `stream` only adds to a graph that is being captured.
    pub fn captures(&self, stream: *mut c_void) -> bool {
        // The legacy default stream cannot be captured.
        let Some(streams) = self.streams.filter(|_| !stream.is_null()) else {
            return false;
        };
        let mut status = 0;
        // SAFETY: the stream of the call that is being made, and a valid place.
        unsafe { (streams.capturing)(stream, &mut status) == 0 && status != 0 }
    }

    /// The stream that a function means: the per-thread forms have a default of their own.
    pub fn meant(stream: *mut c_void, per_thread: bool) -> *mut c_void {
        if stream.is_null() && per_thread {
            STREAM_PER_THREAD as *mut c_void
        } else {
            stream
        }
    }

    /// Whether other processes use the same GPU.
    pub fn set_neighbours(&self, are_there: bool) {
        self.neighbours.store(are_there, Ordering::Relaxed);
    }

    /// Whether marks wait to be reached.
    pub fn waits(&self) -> bool {
        self.waiting.load(Ordering::Relaxed)
    }

    /// A launch was made: mark it if the GPU is shared and it is time. True if marks begin to wait.
    pub fn launched(&self, made: &Made) -> bool {
        let Some(functions) = self.functions else {
            return false;
        };
        let lane = (made.context as usize) ^ (made.stream as usize).rotate_left(17) | 1;
        let before = self.last.swap(lane, Ordering::Relaxed);
        if before != lane && before != 0 {
            self.mixed_at.store(made.time, Ordering::Relaxed);
        }
        let mixed = made
            .time
            .saturating_sub(self.mixed_at.load(Ordering::Relaxed))
            < TOGETHER;
        if !mixed && !self.neighbours.load(Ordering::Relaxed) {
            return false;
        }
        let address = {
            let mut lanes = lock(&self.lanes);
            let Some(lane) = lanes.lane(&functions, made) else {
                return false;
            };
            lane.unmarked += 1;
            if lane.unmarked < lane.every {
                return false;
            }
            if lane.marks.is_empty() {
                lane.reached_at = lane.reached_at.max(made.time);
            }
            let launches = std::mem::take(&mut lane.unmarked);
            lane.marks.push((made.launch, launches));
            lane.address
        };
        // Not under the lock: a full queue makes the driver wait for the device.
        // SAFETY: a live stream, and a word of a page that its context can write.
        if unsafe { (functions.write)(made.stream, address, made.launch, 0) } != 0 {
            let key = (made.context as usize, made.stream as usize);
            if let Some(lane) = lock(&self.lanes).by_stream.get_mut(&key) {
                lane.marks.retain(|(launch, _)| *launch != made.launch);
            }
            return false;
        }
        !self.waiting.swap(true, Ordering::Relaxed)
    }

    /// Looks how far every stream has come.
    pub fn look(&self, now: u64) -> Vec<Reached> {
        let mut lanes = lock(&self.lanes);
        let mut reached = Vec::new();
        let mut waits = false;
        for lane in lanes.by_stream.values_mut() {
            let launch = lane.word.load(Ordering::Acquire);
            let after = std::mem::replace(&mut lane.looked, now);
            if launch > lane.seen {
                let over = lane.marks.partition_point(|(mark, _)| *mark <= launch);
                let launches = lane.marks.drain(..over).map(|(_, count)| count).sum();
                lane.pace(launches, now.saturating_sub(lane.reached_at));
                lane.seen = launch;
                lane.reached_at = now;
                reached.push(Reached {
                    device: lane.device,
                    context: lane.context,
                    stream: lane.stream,
                    launch,
                    after,
                    before: now,
                });
            }
            waits |= !lane.marks.is_empty();
        }
        self.waiting.store(waits, Ordering::Relaxed);
        reached
    }

    /// The context goes, and its streams with it.
    pub fn forget(&self, context: *mut c_void) {
        let mut lanes = lock(&self.lanes);
        // The page stays: a handle may be used again, and the device may still write.
        lanes.pages.remove(&(context as usize));
        lanes
            .by_stream
            .retain(|(owner, _), _| *owner != context as usize);
    }
}

impl Lanes {
    /// The lane of a launch, with a place in its context's page if it is new.
    fn lane(&mut self, functions: &Functions, made: &Made) -> Option<&mut Lane> {
        let key = (made.context as usize, made.stream as usize);
        if !self.by_stream.contains_key(&key) {
            let page = self.pages.entry(key.0);
            let page = page.or_insert_with(|| new_page(functions)).as_mut()?;
            let word = page.words.get(page.used)?;
            let lane = Lane {
                word,
                address: page.address + 8 * page.used as u64,
                device: made.device,
                context: made.context_number,
                stream: made.stream_number,
                unmarked: 0,
                every: 1,
                marks: Vec::new(),
                seen: 0,
                looked: made.time,
                reached_at: made.time,
                shortest: BETWEEN_MARKS,
            };
            page.used += 1;
            self.by_stream.insert(key, lane);
        }
        self.by_stream.get_mut(&key)
    }
}

/// A page that the current context can write. It is never given back.
fn new_page(functions: &Functions) -> Option<Page> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a fresh mapping of its own.
    let page = unsafe { libc::mmap(std::ptr::null_mut(), PAGE, protection, flags, -1, 0) };
    if page == libc::MAP_FAILED {
        return None;
    }
    let mut mode = CAPTURE_RELAXED;
    let mut address = 0;
    // SAFETY: the page from above, valid places, and the thread's mode put back afterwards.
    let registered = unsafe {
        (functions.exchange_mode)(&mut mode);
        let registered = (functions.register)(page, PAGE, 0) == 0
            && (functions.device_pointer)(&mut address, page, 0) == 0;
        (functions.exchange_mode)(&mut mode);
        registered
    };
    // SAFETY: zeroed memory of this size and alignment that lives as long as the process.
    let words = unsafe { std::slice::from_raw_parts(page.cast::<AtomicU64>(), MOST_STREAMS) };
    registered.then_some(Page {
        words,
        address,
        used: 0,
    })
}
