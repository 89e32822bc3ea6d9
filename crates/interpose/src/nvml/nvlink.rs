//! NVLinks of a device: the node file says how many there are, how fast they are, and where they lead.
//!
//! A link is always up. Not known are errors, what passed, and what the parts at the other end are
//! called; of a GPU without NVLink nothing is supported, as an H200 without any answers.

use super::boundary::{NvmlError, nvml};
use super::library::{Device, Handle, Library};
use super::pci::{Full, Location, WithSubsystem};
use crate::types::Out;
use lockstep_protocol::NvLink;

/// `nvmlEnableState_t` of what is on.
pub(super) const ENABLED: u32 = 1;

/// Versions (`nvmlNvlinkVersion_t`) by the compute capability with which each begins, latest first.
const VERSIONS: &[((i32, i32), u32)] = &[
    ((10, 0), 7), // 5.0
    ((9, 0), 6),  // 4.0
    ((8, 6), 5),  // 3.1
    ((8, 0), 4),  // 3.0
    ((7, 5), 3),  // 2.2
    ((7, 0), 2),  // 2.0
    ((6, 0), 1),  // 1.0
];

/// What links can do, by `nvmlNvLinkCapability_t`: peers and atomics on them, but nothing of the host's
/// memory and no bridge for two; the last says that the others are valid.
const CAPABILITIES: [u32; 6] = [1, 0, 1, 0, 0, 1];

/// What is at the other end (`nvmlIntNvLinkDeviceType_t`).
const GPU: u32 = 0;
const SWITCH: u32 = 2;

/// A link by its number.
pub(super) fn link(device: Device<'_>, number: u32) -> Result<NvLink, NvmlError> {
    let links = &device.description.nvlinks;
    match links.get(number as usize) {
        Some(link) => Ok(*link),
        None if links.is_empty() => Err(NvmlError::NOT_SUPPORTED),
        None => Err(NvmlError::INVALID_ARGUMENT),
    }
}

/// What one direction of a link carries.
pub(super) fn megabytes_per_second(device: Device<'_>, number: u32) -> Option<u64> {
    let link = link(device, number).ok()?;
    Some(link.megabytes_per_second.into())
}

/// The version of a device's links; none if none is known.
pub(super) fn version(device: Device<'_>) -> Option<u32> {
    let capability = device.description.compute_capability();
    let mut known = VERSIONS.iter();
    let found = known.find(|(first, _)| capability >= *first);
    found.map(|(_, version)| *version)
}

nvml! {
    fn nvmlDeviceGetNvLinkState [library] (device: Handle, number: u32, active: Out<u32>) {
        link(library.device(device)?, number)?;
        Ok(active.set(ENABLED)?)
    }

    fn nvmlDeviceGetNvLinkVersion [library] (device: Handle, number: u32, answer: Out<u32>) {
        let device = library.device(device)?;
        link(device, number)?;
        Ok(answer.set(version(device).ok_or(NvmlError::NOT_SUPPORTED)?)?)
    }

    fn nvmlDeviceGetNvLinkCapability [library] (device: Handle, number: u32, capability: u32, answer: Out<u32>) {
        link(library.device(device)?, number)?;
        let able = CAPABILITIES.get(capability as usize);
        Ok(answer.set(*able.ok_or(NvmlError::INVALID_ARGUMENT)?)?)
    }

    fn nvmlDeviceGetNvLinkRemoteDeviceType [library] (device: Handle, number: u32, kind: Out<u32>) {
        let link = link(library.device(device)?, number)?;
        Ok(kind.set(if link.peer.is_some() { GPU } else { SWITCH })?)
    }

    fn nvmlDeviceGetNvLinkRemotePciInfo_v2 [library] (device: Handle, number: u32, place: Out<Full>) {
        let link = link(library.device(device)?, number)?;
        Ok(place.set(remote(&library, link))?)
    }

    /// NCCL calls this one, with the structure of its time: what was added behind it does not fit.
    fn nvmlDeviceGetNvLinkRemotePciInfo [library] (device: Handle, number: u32, place: Out<WithSubsystem>) {
        let link = link(library.device(device)?, number)?;
        Ok(place.set(remote(&library, link).before)?)
    }
}

/// What is at the other end, on the bus.
fn remote(library: &Library, link: NvLink) -> Full {
    let mut devices = library.devices();
    let peer = devices.find(|device| Some(device.number) == link.peer);
    match peer {
        Some(peer) => Location::of(peer).full(),
        None => Location::at_bus(link.bus).full(),
    }
}
