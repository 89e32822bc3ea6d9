//! What the fake libraries remember, and the judgement of calls.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CString, c_void};
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use lockstep_injector::clock;
use rustix::fs::{FlockOperation, flock};

use lockstep_injector::cupti::{BufferCompleted, BufferRequested, Callback};

/// One kernel on the device, as every process sees it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Work {
    pub device: u64,
    pub begin: u64,
    pub end: u64,
    pub instructions: u64,
    pub warps: u64,
    pub cycles: u64,
}

impl Work {
    const BYTES: usize = 48;

    fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let fields = [
            self.device,
            self.begin,
            self.end,
            self.instructions,
            self.warps,
            self.cycles,
        ];
        for (i, field) in fields.iter().enumerate() {
            bytes[8 * i..8 * i + 8].copy_from_slice(&field.to_le_bytes());
        }
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        let field = |i: usize| u64::from_le_bytes(bytes[8 * i..8 * i + 8].try_into().unwrap());
        Self {
            device: field(0),
            begin: field(1),
            end: field(2),
            instructions: field(3),
            warps: field(4),
            cycles: field(5),
        }
    }

    /// The whole count of `metric`; nothing if the chip has no such metric.
    pub fn total(&self, metric: &str) -> Option<u64> {
        Some(match metric {
            "sm__inst_executed.sum"
            | "sm__inst_executed_realtime.sum"
            | "smsp__inst_executed.sum" => self.instructions,
            "sm__inst_issued.sum" | "smsp__inst_issued.sum" => {
                self.instructions + self.instructions / 100
            }
            "sm__cycles_active.sum" => self.cycles,
            "smsp__thread_inst_executed.sum" => self.instructions * 32,
            "sm__thread_inst_executed_pred_on_realtime.sum"
            | "smsp__thread_inst_executed_pred_on.sum" => self.instructions * 31,
            "tpc__warps_launched_shader_cs.sum"
            | "smsp__warps_launched.sum"
            | "sm__warps_launched.sum" => self.warps,
            "dram__bytes_read.sum" | "dram__bytes_write.sum" => self.warps * 128,
            _ => return None,
        })
    }

    /// How much of `metric` falls between two device times; parts of a kernel add up to the whole.
    pub fn between(&self, metric: &str, begin: u64, end: u64) -> u64 {
        let total = u128::from(self.total(metric).unwrap_or(0));
        let length = u128::from(self.end - self.begin).max(1);
        let until = |time: u64| {
            (total * u128::from(time.clamp(self.begin, self.end) - self.begin) / length) as u64
        };
        until(end) - until(begin)
    }
}

/// A launch whose activity record was not handed over yet.
pub struct Unreported {
    pub work: Work,
    pub context: u32,
    pub stream: u32,
    pub correlation: u32,
    pub grid: u32,
    pub block: u32,
    pub name: &'static CString,
}

pub struct Context {
    pub number: u32,
    pub device: u32,
}

#[derive(Default)]
pub struct HostObject {
    pub kind: u32,
    pub metrics: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    Enabled,
    Configured,
    Started,
    Stopped,
}

pub struct SamplingObject {
    pub device: u32,
    pub stage: Stage,
    pub interval: u64,
    pub next: u64,
    pub stopped: u64,
    pub most_samples: usize,
}

pub struct RangeObject {
    pub context: usize,
    pub device: u32,
    pub stage: Stage,
    pub ranges: Vec<Work>,
    pub image: usize,
    /// The counting hardware, from the first start until the object goes.
    pub hardware: Option<Hardware>,
}

/// The counting hardware of a device that several processes share; nothing to lock otherwise.
pub struct Hardware(#[allow(dead_code, reason = "holding it open is the point")] Option<File>);

impl Hardware {
    /// Whether the driver still takes down what a process left: for so many milliseconds after the
    /// first question.
    pub fn is_left() -> bool {
        static ASKED: OnceLock<u64> = OnceLock::new();
        let text = std::env::var("FAKE_GPU_LEFT_FOR").unwrap_or_default();
        let time = text.parse::<u64>().unwrap_or(0) * 1_000_000;
        clock::now() < ASKED.get_or_init(clock::now) + time
    }

    /// Takes it unless another process has it.
    pub fn take(device: u32) -> Option<Self> {
        let Some(shared) = std::env::var_os("FAKE_GPU_SHARED") else {
            return Some(Self(None));
        };
        let path = Path::new(&shared).with_extension(format!("hardware-{device}"));
        let file = File::create(path).expect("the shared device can be written");
        flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
        Some(Self(Some(file)))
    }
}

/// Held from when the time of a launch is known until it is written down, and while what was launched until now is
/// read: so nobody reads past a launch that is not there yet. Nothing to hold where no processes share a device.
#[must_use]
pub fn lock_works() -> Option<File> {
    let shared = std::env::var_os("FAKE_GPU_SHARED")?;
    let file = File::create(Path::new(&shared).with_extension("works"));
    let file = file.expect("the shared device can be written");
    flock(&file, FlockOperation::LockExclusive).expect("whoever holds it lets go");
    Some(file)
}

/// Every metric of the fake chip.
pub const METRICS: &[&str] = &[
    "sm__inst_executed.sum",
    "sm__inst_executed_realtime.sum",
    "smsp__inst_executed.sum",
    "sm__inst_issued.sum",
    "smsp__inst_issued.sum",
    "sm__cycles_active.sum",
    "smsp__thread_inst_executed.sum",
    "sm__thread_inst_executed_pred_on_realtime.sum",
    "smsp__thread_inst_executed_pred_on.sum",
    "tpc__warps_launched_shader_cs.sum",
    "smsp__warps_launched.sum",
    "sm__warps_launched.sum",
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
];

/// Begin, end and every metric of one interval.
#[derive(Clone)]
pub struct Sample {
    pub begin: u64,
    pub end: u64,
    pub values: Vec<u64>,
}

/// What an image holds, by its address.
#[derive(Default, Clone)]
pub struct Image {
    pub size: usize,
    pub samples: Vec<Sample>,
    pub ranges: Vec<Work>,
    /// The last sample waits for the rest of its counts.
    pub partial: bool,
}

#[derive(Default)]
pub struct State {
    pub initialised: bool,
    pub callback: Option<(Callback, usize)>,
    pub enabled: BTreeSet<(u32, u32)>,
    pub buffers: Option<(BufferRequested, BufferCompleted)>,
    pub recording: bool,
    pub contexts: BTreeMap<usize, Context>,
    pub unreported: Vec<Unreported>,
    pub hosts: BTreeMap<usize, HostObject>,
    pub sampling: BTreeMap<usize, SamplingObject>,
    pub ranges: BTreeMap<usize, RangeObject>,
    pub images: BTreeMap<usize, Image>,
    pub configurations: BTreeMap<Vec<u8>, Vec<String>>,
    pub names: BTreeSet<&'static CString>,
    pub works: Vec<Work>,
    pub read_bytes: u64,
    pub stream_end: BTreeMap<(usize, u64), u64>,
    pub next_handle: usize,
    pub launches: u32,
    /// Captures under way, by context.
    pub captures: BTreeMap<usize, u32>,
    /// Calls under way between the subscriber's two calls that launch something.
    pub launching: u32,
    /// Profilers that were given up so far.
    pub disabled: u32,
    pub board: bool,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);

/// The state, behind its lock.
pub struct Guard(MutexGuard<'static, Option<State>>);

impl std::ops::Deref for Guard {
    type Target = State;
    fn deref(&self) -> &State {
        self.0.as_ref().expect("made by `state`")
    }
}

impl std::ops::DerefMut for Guard {
    fn deref_mut(&mut self) -> &mut State {
        self.0.as_mut().expect("made by `state`")
    }
}

pub fn state() -> Guard {
    let mut guard = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    guard.get_or_insert_with(State::default);
    Guard(guard)
}

impl State {
    /// Whether kernels are counted one by one now.
    pub fn counts(&self) -> bool {
        self.ranges.values().any(|one| one.stage == Stage::Started)
    }

    pub fn handle(&mut self) -> usize {
        self.next_handle += 1;
        0x1000 + 16 * self.next_handle
    }

    /// The same pointer for the same name, as the real library gives.
    pub fn intern(&mut self, name: &str) -> &'static CString {
        let name = CString::new(name).unwrap_or_default();
        if let Some(known) = self.names.get(&name) {
            return known;
        }
        let name: &'static CString = Box::leak(Box::new(name));
        self.names.insert(name);
        name
    }

    /// Work of this process, for everybody who samples the device.
    pub fn add_work(&mut self, work: Work) {
        match std::env::var_os("FAKE_GPU_SHARED") {
            Some(path) => {
                let file = OpenOptions::new().append(true).create(true).open(path);
                file.and_then(|mut file| file.write_all(&work.to_bytes()))
                    .expect("the shared device can be written");
            }
            None => self.works.push(work),
        }
    }

    /// Learns what other processes launched.
    pub fn refresh_works(&mut self) {
        let Some(path) = std::env::var_os("FAKE_GPU_SHARED") else {
            return;
        };
        let Ok(mut file) = File::open(path) else {
            return;
        };
        let mut bytes = Vec::new();
        if file.seek(SeekFrom::Start(self.read_bytes)).is_ok()
            && file.read_to_end(&mut bytes).is_ok()
        {
            for record in bytes.as_chunks::<{ Work::BYTES }>().0 {
                self.works.push(Work::from_bytes(record));
                self.read_bytes += Work::BYTES as u64;
            }
        }
    }
}

/// Device time minus host time.
pub fn clock_offset() -> u64 {
    let text = std::env::var("FAKE_GPU_CLOCK_OFFSET").unwrap_or_default();
    text.parse::<i64>().unwrap_or(0) as u64
}

/// Device time now.
pub fn device_now() -> u64 {
    clock::now().wrapping_add(clock_offset())
}

/// Writes down a call that the real library would not have forgiven.
pub fn complain(what: &str) {
    if let Some(path) = std::env::var_os("FAKE_GPU_LOG") {
        let file = OpenOptions::new().append(true).create(true).open(path);
        let _ = file.and_then(|mut file| writeln!(file, "{}: {what}", std::process::id()));
    }
}

/// Complains unless `holds`.
pub fn demand(holds: bool, what: &str) {
    if !holds {
        complain(what);
    }
}

/// The code with which `FAKE_GPU_FAIL` makes `function` fail.
pub fn failure(function: &str) -> Option<i32> {
    let text = std::env::var("FAKE_GPU_FAIL").ok()?;
    text.split(',').find_map(|part| {
        let (name, code) = part.split_once('=')?;
        (name == function).then(|| code.parse().ok())?
    })
}

/// Checks the size that a parameter block states, and that its private part is empty.
pub fn check_block<B: lockstep_injector::cupti::layouts::Block>(function: &str, block: *mut B) {
    let words = block.cast::<usize>();
    let (size, private) = unsafe { (*words, *words.add(1) as *mut c_void) };
    let shorter = function == "cuptiProfilerHostInitialize"
        && size == lockstep_injector::cupti::layouts::HostInitialize::SHORTER;
    demand(
        size == B::SIZE || shorter,
        &format!("{function}: a block of {size} bytes, not {}", B::SIZE),
    );
    demand(
        private.is_null(),
        &format!("{function}: the private part is not null"),
    );
}

/// Fails on request, else checks the block.
#[macro_export]
macro_rules! begin {
    ($function:literal, $block:expr) => {
        if let Some(code) = $crate::state::failure($function) {
            return code;
        }
        $crate::state::check_block($function, $block);
    };
}
