//! Where memory lies: one window of addresses, the same in every process.
//!
//! Device, pinned and managed memory live in one sparse `memfd` that the simulator and
//! every CUDA program map at [`WINDOW_BASE`]. An address in the window is therefore at
//! once the device pointer, the host pointer and (less the base) the offset in the file.
//!
//! ```text
//! WINDOW_BASE + 0      device 0, then one region of DEVICE_REGION_SIZE a device
//!             + 4 TiB  addresses that programs reserve and map memory to by themselves
//!             + 8 TiB  pinned host memory
//!             + 12 TiB managed memory
//!             + 16 TiB doorbells just below ([`crate::doorbell`]): the end of the window of one node
//!             + 16 TiB devices 8 and on, in a run of several nodes with more than eight GPUs
//! ```
//!
//! The simulator assigns all addresses; the program only asks [`region_of`] what a
//! pointer is.

use std::ops::Range;

/// First address of the window. It is far from where Linux puts programs, heaps,
/// libraries and stacks on x86-64 and AArch64, and from the shadow of AddressSanitizer.
pub const WINDOW_BASE: u64 = 0x2000_0000_0000;

/// Where the library in a CUDA program asks for memory of its own: below the window, away from the
/// program's.
pub const CLIENT_HEAP: u64 = WINDOW_BASE - (1 << 40);

/// Length of the window of up to [`NEAR_DEVICES`] devices. The file is sparse: only touched pages exist.
pub const WINDOW_SIZE: u64 = 16 << 40;

/// Length of the longest window, that of [`MAXIMUM_DEVICES`] devices. It ends below the addresses that Linux
/// gives to programs.
pub const LONGEST_WINDOW: u64 =
    WINDOW_SIZE + (MAXIMUM_DEVICES - NEAR_DEVICES) as u64 * DEVICE_REGION_SIZE;

/// Address space of each device: more than any GPU's memory.
pub const DEVICE_REGION_SIZE: u64 = 512 << 30;

/// Devices whose regions lie at the beginning of the window.
pub const NEAR_DEVICES: u32 = 8;

/// How many devices have a region.
pub const MAXIMUM_DEVICES: u32 = 64;

/// Where addresses begin that programs reserve (`cuMemAddressReserve`).
pub const RESERVED_BASE: u64 = WINDOW_BASE + (4 << 40);

/// Address space that can be reserved.
pub const RESERVED_SIZE: u64 = 4 << 40;

/// Where pinned host memory begins.
pub const PINNED_BASE: u64 = WINDOW_BASE + (8 << 40);

/// Address space of pinned host memory.
pub const PINNED_SIZE: u64 = 4 << 40;

/// Where managed memory begins.
pub const MANAGED_BASE: u64 = WINDOW_BASE + (12 << 40);

/// Address space of managed memory.
pub const MANAGED_SIZE: u64 = (4 << 40) - crate::doorbell::DOORBELLS_SIZE;

/// What an address of the window belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Region {
    /// Memory of the device with this ordinal.
    Device(u32),
    /// Addresses that a program reserved, which hold device memory where it mapped some.
    Reserved,
    /// Pinned host memory, visible to every device.
    Pinned,
    /// Managed memory, which migrates.
    Managed,
}

impl Region {
    /// Whether the memory there is a device's, out of the host's reach on a real machine.
    pub fn is_device(self) -> bool {
        matches!(self, Self::Device(_) | Self::Reserved)
    }

    /// The addresses of the region. A device beyond [`MAXIMUM_DEVICES`] has none.
    pub fn range(self) -> Range<u64> {
        match self {
            Self::Device(ordinal) if ordinal < MAXIMUM_DEVICES => {
                let (first, number) = match ordinal.checked_sub(NEAR_DEVICES) {
                    Some(far) => (WINDOW_BASE + WINDOW_SIZE, far),
                    None => (WINDOW_BASE, ordinal),
                };
                let base = first + u64::from(number) * DEVICE_REGION_SIZE;
                base..base + DEVICE_REGION_SIZE
            }
            Self::Device(_) => 0..0,
            Self::Reserved => RESERVED_BASE..RESERVED_BASE + RESERVED_SIZE,
            Self::Pinned => PINNED_BASE..PINNED_BASE + PINNED_SIZE,
            Self::Managed => MANAGED_BASE..MANAGED_BASE + MANAGED_SIZE,
        }
    }
}

/// Length of the window of a run with so many devices.
#[must_use]
pub fn window_size(devices: u32) -> u64 {
    match devices {
        0..=NEAR_DEVICES => WINDOW_SIZE,
        _ => LONGEST_WINDOW,
    }
}

/// The region that an address lies in; `None` outside the window, which is to say for
/// ordinary memory of the program.
pub fn region_of(address: u64) -> Option<Region> {
    let offset = address.checked_sub(WINDOW_BASE)?;
    if offset >= LONGEST_WINDOW {
        None
    } else if let Some(far) = offset.checked_sub(WINDOW_SIZE) {
        Some(Region::Device(
            NEAR_DEVICES + (far / DEVICE_REGION_SIZE) as u32,
        ))
    } else if address >= MANAGED_BASE {
        Some(Region::Managed)
    } else if address >= PINNED_BASE {
        Some(Region::Pinned)
    } else if address >= RESERVED_BASE {
        Some(Region::Reserved)
    } else {
        Some(Region::Device((offset / DEVICE_REGION_SIZE) as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_region_knows_its_first_and_last_address() {
        let devices = (0..MAXIMUM_DEVICES).map(Region::Device);
        for region in devices.chain([Region::Reserved, Region::Pinned, Region::Managed]) {
            let range = region.range();
            assert_eq!(region_of(range.start), Some(region));
            assert_eq!(region_of(range.end - 1), Some(region));
        }
    }

    #[test]
    fn regions_fill_the_window_without_overlap() {
        assert_eq!(Region::Device(NEAR_DEVICES - 1).range().end, RESERVED_BASE);
        assert_eq!(Region::Reserved.range().end, PINNED_BASE);
        assert_eq!(Region::Pinned.range().end, MANAGED_BASE);
        let end = Region::Managed.range().end + crate::doorbell::DOORBELLS_SIZE;
        assert_eq!(end, WINDOW_BASE + WINDOW_SIZE);
        assert_eq!(Region::Device(NEAR_DEVICES).range().start, end);
        assert_eq!(
            Region::Device(MAXIMUM_DEVICES - 1).range().end,
            WINDOW_BASE + LONGEST_WINDOW
        );
        assert_eq!(window_size(NEAR_DEVICES), WINDOW_SIZE);
        assert_eq!(window_size(NEAR_DEVICES + 1), LONGEST_WINDOW);
    }

    #[test]
    fn outside_the_window_is_ordinary_memory() {
        for address in [
            0,
            0x7fff_0000_0000,
            WINDOW_BASE - 1,
            WINDOW_BASE + LONGEST_WINDOW,
        ] {
            assert_eq!(region_of(address), None);
        }
        assert_eq!(Region::Device(MAXIMUM_DEVICES).range(), 0..0);
    }
}
