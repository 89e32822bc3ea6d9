//! NVLink and the fabric behind it. A GPU alone has no link that leads anywhere.

use super::boundary::{NvmlError, check_version, nvml, version_of};
use super::library::Handle;
use crate::types::Out;

/// Links that a GPU can have.
const MOST_LINKS: u32 = 18;
/// Abilities of a link that can be asked for.
const CAPABILITIES: u32 = 6;

/// `nvmlGpuFabricInfo_t`. State 0 says that there is no fabric; all else is zero then.
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

fn check_link(link: u32) -> Result<(), NvmlError> {
    if link < MOST_LINKS {
        Ok(())
    } else {
        Err(NvmlError::INVALID_ARGUMENT)
    }
}

nvml! {
    fn nvmlDeviceGetNvLinkState [library] (device: Handle, link: u32, active: Out<u32>) {
        library.device(device)?;
        check_link(link)?;
        Ok(active.set(0)?)
    }

    fn nvmlDeviceGetNvLinkCapability [library] (device: Handle, link: u32, capability: u32, answer: Out<u32>) {
        library.device(device)?;
        check_link(link)?;
        if capability >= CAPABILITIES {
            return Err(NvmlError::INVALID_ARGUMENT);
        }
        Ok(answer.set(0)?)
    }

    fn nvmlDeviceGetGpuFabricInfo [library] (device: Handle, place: Out<Fabric>) {
        library.device(device)?;
        Ok(place.set(Fabric::default())?)
    }

    /// The second and the third revision are told apart by the version that the caller wrote.
    fn nvmlDeviceGetGpuFabricInfoV [library] (device: Handle, place: Out<FabricWithHealth>) {
        library.device(device)?;
        if check_version(place, 2).is_ok() {
            return Ok(place.set(FabricWithHealth {
                version: version_of::<FabricWithHealth>(2),
                ..Default::default()
            })?);
        }
        let place = Out::<FabricWithSummary>::at(place.pointer() as usize);
        check_version(place, 3)?;
        let mut all = FabricWithSummary::default();
        all.before.version = version_of::<FabricWithSummary>(3);
        Ok(place.set(all)?)
    }
}
