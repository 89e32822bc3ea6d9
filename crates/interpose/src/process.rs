//! What belongs to the process: the simulator's welcome and the devices that are visible.

use crate::fair_mutex::{FairGuard, FairMutex};
use crate::managed::polling;
use crate::{fresh, hook, report, thread, watch};
use lockstep_protocol::placement::{self, PlacementError};
use lockstep_protocol::window::Window;
use lockstep_protocol::{
    ClientConnection, ConnectionError, CuResult, DeviceDescription, Hello, Request,
    SOCKET_VARIABLE, Welcome, doorbell, layout, uuid_text,
};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The simulator, as this process knows it.
pub struct Process {
    /// What `cuDriverGetVersion` answers.
    pub driver_version: i32,
    /// The devices of the process's node that `CUDA_VISIBLE_DEVICES` leaves, in its order.
    pub devices: Vec<Device>,
}

/// A device that the program sees.
pub struct Device {
    /// The simulator's ordinal.
    pub ordinal: u32,
    /// What is known of it.
    pub description: DeviceDescription,
}

/// Counts requests that are on their way, for the simulator to wait for.
static DOORBELL: OnceLock<&AtomicU64> = OnceLock::new();
static PROCESS: OnceLock<Process> = OnceLock::new();
static CONNECTING: FairMutex<()> = FairMutex::new(());
static FORKED: AtomicBool = AtomicBool::new(false);
static SAID_NO_SOCKET: AtomicBool = AtomicBool::new(false);
static SAID_UNREACHABLE: AtomicBool = AtomicBool::new(false);

/// Locks a mutex, in the order of those who ask.
pub fn lock<T>(mutex: &FairMutex<T>) -> FairGuard<'_, T> {
    mutex.lock()
}

/// Whether this is the child of a process that used CUDA; threads of ours did not come along.
pub fn is_forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

/// The process, connected if need be.
pub fn process() -> Result<&'static Process, CuResult> {
    if FORKED.load(Ordering::Relaxed) {
        return Err(CuResult::NOT_INITIALIZED);
    }
    let thread = thread::current();
    if thread
        .connection
        .try_borrow()
        .is_ok_and(|one| one.is_none())
    {
        let connection = connect()?;
        *thread.connection.borrow_mut() = Some(connection);
    }
    PROCESS.get().ok_or(CuResult::NOT_INITIALIZED)
}

/// A visible device by its number.
pub fn device(number: i32) -> Result<&'static Device, CuResult> {
    let devices = &process()?.devices;
    usize::try_from(number)
        .ok()
        .and_then(|index| devices.get(index))
        .ok_or(CuResult::INVALID_DEVICE)
}

/// Opens a connection for the calling thread.
pub fn connect() -> Result<ClientConnection, CuResult> {
    if FORKED.load(Ordering::Relaxed) {
        // CUDA does not survive a fork either once it is initialised.
        return Err(CuResult::NOT_INITIALIZED);
    }
    let Some(path) = simulator() else {
        return Err(CuResult::NO_DEVICE);
    };
    let opened = {
        let _guard = lock(&CONNECTING);
        // The first thread of a process has no doorbell yet, and nobody whom it could overtake.
        let rung = ring();
        open(&path).inspect(|_| {
            if !rung {
                ring();
            }
        })
    };
    match opened {
        Ok(mut connection) => {
            polling::caller_came();
            // Threads that come at the same time go on one after the other from here.
            if let Err(error) = connection.call(&Request::ThreadBegins) {
                report::simulator_gone(&error.to_string());
            }
            Ok(connection)
        }
        Err(error) => {
            report::once(&SAID_UNREACHABLE, &error.to_string());
            Err(CuResult::NO_DEVICE)
        }
    }
}

/// Says that a request is on its way, if there is somebody to say it to. Call it before sending each.
pub fn ring() -> bool {
    let doorbell = DOORBELL.get();
    if let Some(doorbell) = doorbell {
        doorbell.fetch_add(1, Ordering::SeqCst);
    }
    doorbell.is_some()
}

/// Where the simulator listens; if nobody said, that is said to the user.
pub fn simulator() -> Option<PathBuf> {
    let path = socket_path();
    if path.is_none() {
        report::once(
            &SAID_NO_SOCKET,
            &format!(
                "this program asks for GPUs, but {SOCKET_VARIABLE} is not set, so there is no \
                 simulated one; start it with `lockstep run -- PROGRAM`"
            ),
        );
    }
    path
}

/// Where the simulator listens.
pub fn socket_path() -> Option<PathBuf> {
    let path = std::env::var_os(SOCKET_VARIABLE)?;
    (!path.is_empty()).then(|| path.into())
}

/// Who this thread is; thread 0 stands for the connection that only watches.
pub fn hello(watching: bool) -> Hello {
    // SAFETY: `gettid` has no preconditions.
    let thread = unsafe { libc::gettid() } as u32;
    let name = std::env::args_os().next().unwrap_or_default();
    Hello {
        process: std::process::id(),
        thread: if watching { 0 } else { thread },
        name: name.to_string_lossy().into_owned(),
        node: node().map_err(|error| error.to_string()),
    }
}

/// The node that this process is on.
pub fn node() -> Result<u32, PlacementError> {
    placement::node_of(|name| std::env::var(name).ok())
}

fn open(path: &std::path::Path) -> Result<ClientConnection, ConnectionError> {
    let (connection, welcome, memory) = ClientConnection::connect(path, &hello(false))?;
    if PROCESS.get().is_none() {
        let known = [layout::WINDOW_SIZE, layout::LONGEST_WINDOW];
        if welcome.window_base != layout::WINDOW_BASE || !known.contains(&welcome.window_size) {
            return Err(ConnectionError::Refused(format!(
                "its memory lies at {:#x} ({} bytes), ours at {:#x} ({} or {} bytes)",
                welcome.window_base,
                welcome.window_size,
                layout::WINDOW_BASE,
                known[0],
                known[1]
            )));
        }
        Window::map_fixed(&memory)?.leak();
        // SAFETY: the window was just mapped, for good.
        let doorbell = unsafe { doorbell::of_mapped_window(std::process::id()) };
        // Another thread may have been first, with the same counter.
        let _ = DOORBELL.set(doorbell);
        fresh::keep(memory);
        watch::start(path);
        if let Some(warning) = hook::warning() {
            report::sentence(&warning);
        }
        // SAFETY: the handler only stores a flag.
        unsafe { libc::pthread_atfork(None, None, Some(after_fork)) };
        thread::current().first.set(true);
        // Another thread may have been first, with the same welcome.
        let _ = PROCESS.set(adopt(welcome));
    }
    Ok(connection)
}

extern "C" fn after_fork() {
    FORKED.store(true, Ordering::Relaxed);
}

fn adopt(welcome: Welcome) -> Process {
    let wanted = std::env::var("CUDA_VISIBLE_DEVICES").ok();
    let devices = visible(&welcome.devices, wanted.as_deref());
    let device = |ordinal: usize| Device {
        ordinal: welcome.first_device + ordinal as u32,
        description: welcome.devices[ordinal].clone(),
    };
    Process {
        driver_version: welcome.driver_version,
        devices: devices.into_iter().map(device).collect(),
    }
}

/// Applies `CUDA_VISIBLE_DEVICES`: ordinals or beginnings of `GPU-<uuid>`; what follows the
/// first entry that names no device (or one named before) is ignored, as a driver does.
fn visible(devices: &[DeviceDescription], wanted: Option<&str>) -> Vec<usize> {
    let Some(wanted) = wanted else {
        return (0..devices.len()).collect();
    };
    let mut chosen = Vec::new();
    for word in wanted.split(',') {
        let word = word.trim();
        let found = match word.strip_prefix("GPU-") {
            Some(prefix) => devices
                .iter()
                .position(|device| uuid_text(&device.uuid).starts_with(&prefix.to_lowercase())),
            None => word.parse().ok().filter(|ordinal| *ordinal < devices.len()),
        };
        match found {
            Some(ordinal) if !chosen.contains(&ordinal) => chosen.push(ordinal),
            _ => break,
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visible_devices_are_chosen_as_a_driver_chooses_them() {
        let devices: Vec<DeviceDescription> = (0..3)
            .map(|number| DeviceDescription {
                uuid: [number * 16; 16],
                ..Default::default()
            })
            .collect();
        let check = |wanted: Option<&str>, expected: &[usize]| {
            assert_eq!(visible(&devices, wanted), expected, "{wanted:?}");
        };
        check(None, &[0, 1, 2]);
        check(Some(""), &[]);
        check(Some("2,0"), &[2, 0]);
        check(Some("1,-1,0"), &[1]);
        check(Some("0,7,1"), &[0]);
        check(Some("1,1"), &[1]);
        check(Some("GPU-20202020-2020, 0"), &[2, 0]);
    }
}
