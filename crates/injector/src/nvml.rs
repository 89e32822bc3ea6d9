//! Power, temperature, clocks and memory of a GPU, from the management library.

use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_void};

use lockstep_schema::DEVICE_GAUGES;
use lockstep_segment::{Record, RecordKind};

use crate::dynamic::function_table;
use crate::dynamic::{Library, overridden};

/// Total, free and used bytes.
#[repr(C)]
#[derive(Default)]
pub struct MemoryInfo {
    /// All memory of the board.
    pub total: u64,
    /// Not in use.
    pub free: u64,
    /// In use by anybody.
    pub used: u64,
}

const CLOCK_SM: u32 = 1;
const CLOCK_MEMORY: u32 = 2;
const SENSOR_GPU: u32 = 0;

function_table! {
    /// Functions of `libnvidia-ml`.
    Functions {
        initialize = c"nvmlInit_v2": fn() -> i32;
        shutdown = c"nvmlShutdown": fn() -> i32;
        by_uuid = c"nvmlDeviceGetHandleByUUID": fn(*const c_char, *mut *mut c_void) -> i32;
        power = c"nvmlDeviceGetPowerUsage": fn(*mut c_void, *mut u32) -> i32;
        temperature = c"nvmlDeviceGetTemperature": fn(*mut c_void, u32, *mut u32) -> i32;
        clock = c"nvmlDeviceGetClockInfo": fn(*mut c_void, u32, *mut u32) -> i32;
        memory = c"nvmlDeviceGetMemoryInfo": fn(*mut c_void, *mut MemoryInfo) -> i32;
    }
}

/// The management library, started.
pub struct Nvml {
    functions: Functions,
    wanted: Vec<usize>,
    handles: BTreeMap<String, usize>,
}

impl Nvml {
    /// Opens and starts the library to read the gauges called `names`.
    pub fn open(names: &[String]) -> Result<Self, String> {
        let library = match overridden("LOCKSTEP_NVML") {
            Some(path) => Library::open(&[&path]),
            None => Library::open(&["libnvidia-ml.so.1", "libnvidia-ml.so"]),
        }
        .map_err(|error| format!("no power, temperature, clocks and memory: the management library cannot be opened ({error})"))?;
        let functions = Functions::find(library)
            .map_err(|name| format!("the management library has no {name}"))?;
        // SAFETY: no arguments.
        let result = unsafe { (functions.initialize)() };
        if result != 0 {
            return Err(format!(
                "no power, temperature, clocks and memory: the management library does not start (error {result})"
            ));
        }
        let wanted = (0..DEVICE_GAUGES.len())
            .filter(|i| names.iter().any(|name| name == DEVICE_GAUGES[*i].name))
            .collect();
        Ok(Self {
            functions,
            wanted,
            handles: BTreeMap::new(),
        })
    }

    /// Reads the gauges of the GPU called `uuid`; nothing if the library does not know it.
    pub fn read(&mut self, uuid: &str) -> Option<Record> {
        let handle = self.handle(uuid)?;
        let mut record = Record::new(RecordKind::Gauges);
        for index in &self.wanted {
            if let Some(value) = self.gauge(handle, DEVICE_GAUGES[*index].name) {
                record.set(*index, value);
            }
        }
        Some(record)
    }

    fn handle(&mut self, uuid: &str) -> Option<*mut c_void> {
        if let Some(known) = self.handles.get(uuid) {
            return Some(*known as *mut c_void);
        }
        let text = CString::new(uuid).ok()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: a terminated string and a valid place for the handle.
        if unsafe { (self.functions.by_uuid)(text.as_ptr(), &mut handle) } != 0 {
            return None;
        }
        self.handles.insert(uuid.to_owned(), handle as usize);
        Some(handle)
    }

    fn gauge(&self, handle: *mut c_void, name: &str) -> Option<u64> {
        let mut number = 0u32;
        let functions = &self.functions;
        // SAFETY: a handle of this library and a valid place for each answer.
        let result = unsafe {
            match name {
                "power" => (functions.power)(handle, &mut number),
                "temperature" => (functions.temperature)(handle, SENSOR_GPU, &mut number),
                "sm_clock" => (functions.clock)(handle, CLOCK_SM, &mut number),
                "memory_clock" => (functions.clock)(handle, CLOCK_MEMORY, &mut number),
                "memory_used" => {
                    let mut memory = MemoryInfo::default();
                    let result = (functions.memory)(handle, &mut memory);
                    return (result == 0).then_some(memory.used);
                }
                _ => return None,
            }
        };
        (result == 0).then_some(u64::from(number))
    }
}

impl Drop for Nvml {
    fn drop(&mut self) {
        // SAFETY: started in `open`, and no handle is used afterwards.
        unsafe { (self.functions.shutdown)() };
    }
}
