//! The library while it is initialised: the devices, and a connection over which it looks.

use super::boundary::NvmlError;
use crate::fair_mutex::FairMutex;
use crate::process::{self, lock};
use crate::report;
use lockstep_protocol::{
    ClientConnection, DeviceDescription, DeviceState, Reply, Request, Welcome,
};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A handle of a device (`nvmlDevice_t`), which programs only hand back.
pub type Handle = usize;

/// The handle of the first device; others follow. No pointer of a program is near it.
const FIRST_HANDLE: Handle = 0x4e56_4d4c_0000;

/// NVML, initialised.
pub struct Library {
    /// What `cuDriverGetVersion` answers.
    pub cuda_version: i32,
    /// The simulator's ordinal of the first device.
    first: u32,
    devices: Vec<DeviceDescription>,
    connection: FairMutex<Connection>,
}

struct Connection {
    open: ClientConnection,
    /// Who opened it: a child has to open its own.
    process: u32,
}

/// A device by which a function was called.
#[derive(Clone, Copy)]
pub struct Device<'a> {
    /// Its number.
    pub number: u32,
    /// The simulator's ordinal.
    pub ordinal: u32,
    /// What is known of it.
    pub description: &'a DeviceDescription,
}

struct Initialised {
    library: Arc<Library>,
    times: u32,
}

static LIBRARY: FairMutex<Option<Initialised>> = FairMutex::new(None);
static SAID_UNREACHABLE: AtomicBool = AtomicBool::new(false);

/// `nvmlInit`: every call but the first only counts.
pub fn initialize() -> Result<(), NvmlError> {
    let mut place = lock(&LIBRARY);
    match &mut *place {
        Some(initialised) => initialised.times += 1,
        empty => {
            *empty = Some(Initialised {
                library: Arc::new(Library::open()?),
                times: 1,
            });
        }
    }
    Ok(())
}

/// `nvmlShutdown`: the last of as many calls as initialised it ends the library.
pub fn shut_down() -> Result<(), NvmlError> {
    let mut place = lock(&LIBRARY);
    let initialised = place.as_mut().ok_or(NvmlError::UNINITIALIZED)?;
    initialised.times -= 1;
    if initialised.times == 0 {
        *place = None;
    }
    Ok(())
}

/// The library, if it is initialised.
pub fn current() -> Result<Arc<Library>, NvmlError> {
    let place = lock(&LIBRARY);
    let initialised = place.as_ref().ok_or(NvmlError::UNINITIALIZED)?;
    Ok(initialised.library.clone())
}

fn connect() -> Result<(Connection, Welcome), NvmlError> {
    let path = process::simulator().ok_or(NvmlError::DRIVER_NOT_LOADED)?;
    match ClientConnection::connect(&path, &process::hello(true)) {
        Ok((open, welcome, _)) => {
            let process = std::process::id();
            Ok((Connection { open, process }, welcome))
        }
        Err(error) => {
            report::once(&SAID_UNREACHABLE, &error.to_string());
            Err(NvmlError::DRIVER_NOT_LOADED)
        }
    }
}

impl Library {
    fn open() -> Result<Self, NvmlError> {
        let (connection, welcome) = connect()?;
        Ok(Self {
            cuda_version: welcome.driver_version,
            first: welcome.first_device,
            devices: welcome.devices,
            connection: FairMutex::new(connection),
        })
    }

    /// All devices, in the order of their numbers.
    pub fn devices(&self) -> impl Iterator<Item = Device<'_>> {
        self.devices
            .iter()
            .zip(0..)
            .map(|(description, number)| Device {
                number,
                ordinal: self.first + number,
                description,
            })
    }

    /// The device that a handle stands for.
    pub fn device(&self, handle: Handle) -> Result<Device<'_>, NvmlError> {
        let mut devices = self.devices();
        let found = devices.find(|device| device.handle() == handle);
        found.ok_or(NvmlError::INVALID_ARGUMENT)
    }

    /// How a device is used at this moment.
    pub fn look(&self, device: Device<'_>) -> Result<DeviceState, NvmlError> {
        let mut connection = lock(&self.connection);
        if connection.process != std::process::id() {
            *connection = connect()?.0;
        }
        let request = Request::DeviceState {
            device: device.ordinal,
            rung: !process::is_forked() && process::ring(),
        };
        let response = connection.open.call(&request);
        match response.map(|response| response.result) {
            Ok(Ok(Reply::DeviceState(state))) => Ok(state),
            Ok(Ok(other)) => Err(crate::call::unexpected("DeviceState", &other).into()),
            Ok(Err(_)) => Err(NvmlError::UNKNOWN),
            Err(_) => Err(NvmlError::GPU_IS_LOST),
        }
    }
}

impl Device<'_> {
    /// The handle that stands for it.
    pub fn handle(self) -> Handle {
        FIRST_HANDLE + self.number as Handle
    }

    /// An attribute as a number that cannot be negative; nothing if it is not known.
    pub fn known(self, attribute: u32) -> Option<u32> {
        let value = self.description.attribute(attribute);
        u32::try_from(value).ok().filter(|value| *value != 0)
    }

    /// Whether its memory has error correction.
    pub fn corrects_errors(self) -> bool {
        self.known(lockstep_protocol::attribute::ECC_ENABLED)
            .is_some()
    }
}
