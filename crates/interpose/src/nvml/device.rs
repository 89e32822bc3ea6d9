//! Devices: how many, their handles, and what they are called.

use super::boundary::{NvmlError, check_version, nvml, set_text};
use super::library::{Device, Handle, Library};
use crate::types::{In, Out, Text};
use lockstep_protocol::{attribute, uuid_text};

/// `nvmlUUID_v1_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Uuid {
    version: u32,
    /// 1 text, 2 bytes.
    kind: u32,
    value: [u8; 41],
}

/// Architectures by the compute capability with which each begins, latest first.
const ARCHITECTURES: &[((i32, i32), u32)] = &[
    ((10, 0), 10),
    ((9, 0), 9),
    ((8, 9), 8),
    ((8, 0), 7),
    ((7, 5), 6),
    ((7, 0), 5),
    ((6, 0), 4),
    ((5, 0), 3),
    ((3, 0), 2),
];

nvml! {
    fn nvmlDeviceGetCount_v2 | nvmlDeviceGetCount [library] (count: Out<u32>) {
        Ok(count.set(library.devices().count() as u32)?)
    }

    fn nvmlDeviceGetHandleByIndex_v2 | nvmlDeviceGetHandleByIndex [library] (index: u32, handle: Out<Handle>) {
        let found = library.devices().find(|device| device.number == index);
        Ok(handle.set(found.ok_or(NvmlError::INVALID_ARGUMENT)?.handle())?)
    }

    fn nvmlDeviceGetHandleByUUID [library] (text: Text, handle: Out<Handle>) {
        handle.check()?;
        Ok(handle.set(by_uuid(&library, &text.get()?)?)?)
    }

    fn nvmlDeviceGetHandleByUUIDV [library] (uuid: In<Uuid>, handle: Out<Handle>) {
        handle.check()?;
        check_version(Out::<Uuid>::at(uuid.address()), 1)?;
        let Uuid { kind, value, .. } = uuid.get()?;
        let text = match kind {
            1 => {
                let end = value.iter().position(|byte| *byte == 0).unwrap_or(value.len());
                String::from_utf8_lossy(&value[..end]).into_owned()
            }
            2 => {
                let mut bytes = [0; 16];
                bytes.copy_from_slice(&value[..16]);
                format!("GPU-{}", uuid_text(&bytes))
            }
            _ => return Err(NvmlError::INVALID_ARGUMENT),
        };
        Ok(handle.set(by_uuid(&library, &text)?)?)
    }

    fn nvmlDeviceGetIndex [library] (device: Handle, index: Out<u32>) {
        Ok(index.set(library.device(device)?.number)?)
    }

    fn nvmlDeviceGetName [library] (device: Handle, name: Out<u8>, length: u32) {
        set_text(name, &library.device(device)?.description.name, length)
    }

    fn nvmlDeviceGetUUID [library] (device: Handle, uuid: Out<u8>, length: u32) {
        set_text(uuid, &uuid_of(library.device(device)?), length)
    }

    fn nvmlDeviceGetCudaComputeCapability [library] (device: Handle, major: Out<i32>, minor: Out<i32>) {
        let capability = library.device(device)?.description.compute_capability();
        minor.check()?;
        major.set(capability.0)?;
        Ok(minor.set(capability.1)?)
    }

    fn nvmlDeviceGetArchitecture [library] (device: Handle, architecture: Out<u32>) {
        const UNKNOWN: u32 = u32::MAX;
        let capability = library.device(device)?.description.compute_capability();
        let mut known = ARCHITECTURES.iter();
        let found = known.find(|(first, _)| capability >= *first);
        Ok(architecture.set(found.map_or(UNKNOWN, |(_, number)| *number))?)
    }

    fn nvmlDeviceGetMultiGpuBoard [library] (device: Handle, several: Out<u32>) {
        let several_of_board = library.device(device)?.known(attribute::MULTI_GPU_BOARD);
        Ok(several.set(several_of_board.unwrap_or(0))?)
    }

    fn nvmlDeviceOnSameBoard [library] (first: Handle, second: Handle, same: Out<i32>) {
        let group = |handle| -> Result<i32, NvmlError> {
            let device = library.device(handle)?;
            Ok(device.description.attribute(attribute::MULTI_GPU_BOARD_GROUP_ID))
        };
        Ok(same.set(i32::from(group(first)? == group(second)?))?)
    }
}

/// The identity of a device as text.
fn uuid_of(device: Device<'_>) -> String {
    format!("GPU-{}", uuid_text(&device.description.uuid))
}

fn by_uuid(library: &Library, wanted: &str) -> Result<Handle, NvmlError> {
    let mut devices = library.devices();
    let found = devices.find(|device| uuid_of(*device).eq_ignore_ascii_case(wanted));
    found.map(Device::handle).ok_or(NvmlError::NOT_FOUND)
}
