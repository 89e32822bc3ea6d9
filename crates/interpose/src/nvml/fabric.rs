//! The fabric behind the switches that NVLinks lead to.

use super::boundary::{check_version, nvml, version_of};
use super::library::{Device, Handle};
use crate::types::Out;

/// Every GPU behind switches is part of their fabric once the fabric manager has set it up.
const COMPLETED: u8 = 3;

/// `nvmlGpuFabricInfo_t`. State 0 says that there is no fabric; nothing else is known.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Fabric {
    cluster: [u8; 16],
    status: u32,
    clique: u32,
    state: u8,
}

/// `nvmlGpuFabricInfo_v2_t`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct FabricWithHealth {
    version: u32,
    cluster: [u8; 16],
    status: u32,
    clique: u32,
    state: u8,
    health: u32,
}

/// `nvmlGpuFabricInfo_v3_t`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct FabricWithSummary {
    before: FabricWithHealth,
    summary: u8,
}

const _: () = assert!(size_of::<Fabric>() == 28 && size_of::<FabricWithHealth>() == 36);
const _: () = assert!(size_of::<FabricWithSummary>() == 40);

/// Whether a device is part of a fabric. A node alone has no cluster, so its number is zero.
fn state_of(device: Device<'_>) -> u8 {
    let mut links = device.description.nvlinks.iter();
    match links.any(|link| link.peer.is_none()) {
        true => COMPLETED,
        false => 0,
    }
}

nvml! {
    fn nvmlDeviceGetGpuFabricInfo [library] (device: Handle, place: Out<Fabric>) {
        let state = state_of(library.device(device)?);
        Ok(place.set(Fabric { state, ..Default::default() })?)
    }

    /// The second and the third revision are told apart by the version that the caller wrote.
    fn nvmlDeviceGetGpuFabricInfoV [library] (device: Handle, place: Out<FabricWithHealth>) {
        let state = state_of(library.device(device)?);
        if check_version(place, 2).is_ok() {
            return Ok(place.set(FabricWithHealth {
                version: version_of::<FabricWithHealth>(2),
                state,
                ..Default::default()
            })?);
        }
        let place = Out::<FabricWithSummary>::at(place.pointer() as usize);
        check_version(place, 3)?;
        let mut all = FabricWithSummary::default();
        all.before.state = state;
        all.before.version = version_of::<FabricWithSummary>(3);
        Ok(place.set(all)?)
    }
}
