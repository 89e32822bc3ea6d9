//! Where devices are on the bus.

use super::boundary::{NvmlError, check_version, nvml};
use super::library::{Device, Handle};
use crate::types::{Out, Text};
use lockstep_protocol::attribute;

/// What the first revisions of `nvmlPciInfo_t` hold.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Short {
    /// `domain:bus:device.function` with a domain of four digits.
    location: [u8; 16],
    domain: u32,
    bus: u32,
    device: u32,
    /// Device and vendor.
    identity: u32,
}

/// What the second revision added.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct WithSubsystem {
    short: Short,
    subsystem: u32,
}

/// `nvmlPciInfo_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Full {
    pub(super) before: WithSubsystem,
    /// As above, with a domain of eight digits.
    location: [u8; 32],
}

/// `nvmlPciInfoExt_v1_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Extended {
    version: u32,
    domain: u32,
    bus: u32,
    device: u32,
    identity: u32,
    subsystem: u32,
    base_class: u32,
    sub_class: u32,
    location: [u8; 32],
}

const _: () = assert!(size_of::<Short>() == 32 && size_of::<Full>() == 68);
const _: () = assert!(size_of::<Extended>() == 64);

nvml! {
    fn nvmlDeviceGetPciInfo_v3 [library] (device: Handle, place: Out<Full>) {
        Ok(place.set(Location::of(library.device(device)?).full())?)
    }

    /// The member with which the third revision ends was reserved before.
    fn nvmlDeviceGetPciInfo_v2 [library] (device: Handle, place: Out<WithSubsystem>) {
        Ok(place.set(Location::of(library.device(device)?).full().before)?)
    }

    fn nvmlDeviceGetPciInfo [library] (device: Handle, place: Out<Short>) {
        Ok(place.set(Location::of(library.device(device)?).full().before.short)?)
    }

    /// A display adapter without a display is a 3D controller.
    fn nvmlDeviceGetPciInfoExt [library] (device: Handle, place: Out<Extended>) {
        const DISPLAY: u32 = 3;
        const THREE_D_CONTROLLER: u32 = 2;
        let location = Location::of(library.device(device)?);
        check_version(place, 1)?;
        let full = location.full();
        let WithSubsystem { short, subsystem } = full.before;
        Ok(place.set(Extended {
            version: super::boundary::version_of::<Extended>(1),
            domain: short.domain,
            bus: short.bus,
            device: short.device,
            identity: short.identity,
            subsystem,
            base_class: DISPLAY,
            sub_class: THREE_D_CONTROLLER,
            location: full.location,
        })?)
    }

    fn nvmlDeviceGetHandleByPciBusId_v2 | nvmlDeviceGetHandleByPciBusId [library] (text: Text, handle: Out<Handle>) {
        handle.check()?;
        let wanted = parse(&text.get()?).ok_or(NvmlError::INVALID_ARGUMENT)?;
        let mut devices = library.devices();
        let found = devices.find(|device| Location::of(*device).place == wanted);
        Ok(handle.set(found.ok_or(NvmlError::NOT_FOUND)?.handle())?)
    }
}

/// Where a device is, and as what it is known there.
pub(super) struct Location {
    /// Domain, bus, device.
    place: [u32; 3],
    /// Device and vendor, 0 where no file says it.
    identity: u32,
    subsystem: u32,
}

impl Location {
    /// Where a device is.
    pub(super) fn of(device: Device<'_>) -> Self {
        let known = |number| device.known(number).unwrap_or(0);
        Self {
            place: [
                known(attribute::PCI_DOMAIN_ID),
                known(attribute::PCI_BUS_ID),
                known(attribute::PCI_DEVICE_ID),
            ],
            identity: device.description.attribute(attribute::GPU_PCI_DEVICE_ID) as u32,
            subsystem: device
                .description
                .attribute(attribute::GPU_PCI_SUBSYSTEM_ID) as u32,
        }
    }

    /// A part of which only the bus is known.
    pub(super) fn at_bus(bus: u32) -> Self {
        Self {
            place: [0, bus, 0],
            identity: 0,
            subsystem: 0,
        }
    }

    /// All that is said of it.
    pub(super) fn full(&self) -> Full {
        let [domain, bus, device] = self.place;
        Full {
            before: WithSubsystem {
                short: Short {
                    location: padded(&format!("{domain:04X}:{bus:02X}:{device:02X}.0")),
                    domain,
                    bus,
                    device,
                    identity: self.identity,
                },
                subsystem: self.subsystem,
            },
            location: padded(&format!("{domain:08X}:{bus:02X}:{device:02X}.0")),
        }
    }
}

/// A text and zeros behind it, of which there is at least one.
fn padded<const BYTES: usize>(text: &str) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    let length = text.len().min(BYTES - 1);
    bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
    bytes
}

/// Takes `domain:bus:device.function` apart; domain and function may be left out.
fn parse(text: &str) -> Option<[u32; 3]> {
    let text = text.strip_suffix(".0").unwrap_or(text);
    let mut numbers = text
        .split(':')
        .map(|word| u32::from_str_radix(word, 16).ok());
    let all: Vec<u32> = numbers.by_ref().collect::<Option<_>>()?;
    match all[..] {
        [domain, bus, device] => Some([domain, bus, device]),
        [bus, device] => Some([0, bus, device]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_on_the_bus_are_read_in_every_usual_form() {
        let place = Some([0, 0x41, 0]);
        assert_eq!(parse("00000000:41:00.0"), place);
        assert_eq!(parse("0000:41:00.0"), place);
        assert_eq!(parse("0000:41:00"), place);
        assert_eq!(parse("41:00"), place);
        assert_eq!(parse("0001:C1:1f.0"), Some([1, 0xc1, 0x1f]));
        assert_eq!(parse("41"), None);
        assert_eq!(parse("0:1:2:3"), None);
        assert_eq!(parse("no:bus"), None);
        assert_eq!(parse(""), None);
    }
}
