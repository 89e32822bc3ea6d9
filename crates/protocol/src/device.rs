//! What a CUDA program is told about the simulated GPUs when it attaches.

use crate::attribute;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One simulated GPU. It answers every device query without a further round trip.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceDescription {
    /// The product name, as `cudaDeviceProp::name` gives it.
    pub name: String,
    /// Identity, as `cuDeviceGetUuid` gives it.
    pub uuid: [u8; 16],
    /// Device memory in bytes.
    pub total_memory: u64,
    /// Attributes by the numbers of [`attribute`]; absent means 0. PCI location, clocks,
    /// sizes and capabilities are all here; `cudaDeviceProp` is made from them.
    pub attributes: BTreeMap<u32, i32>,
    /// Ordinals of the devices whose memory this one can address.
    pub peers: Vec<u32>,
    /// Its NVLinks by their numbers; none if it has no link that leads anywhere.
    pub nvlinks: Vec<NvLink>,
    /// Whether the devices stand behind one PCIe switch, each at a port of the host otherwise.
    pub behind_pci_switch: bool,
}

/// One NVLink of a device, as NVML tells of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NvLink {
    /// The ordinal of the device at its other end; none for a switch.
    pub peer: Option<u32>,
    /// The PCI bus of what is at its other end.
    pub bus: u32,
    /// What one direction carries, in megabytes (1,000,000 bytes) a second.
    pub megabytes_per_second: u32,
}

impl DeviceDescription {
    /// Whether NVLinks lead to another device, directly or through a switch.
    pub fn has_nvlink_to(&self, other: u32) -> bool {
        let leads = |link: &NvLink| link.peer.is_none_or(|peer| peer == other);
        self.peers.contains(&other) && self.nvlinks.iter().any(leads)
    }

    /// The value of an attribute; 0 when it is not known.
    pub fn attribute(&self, number: u32) -> i32 {
        self.attributes.get(&number).copied().unwrap_or(0)
    }

    /// Major and minor compute capability.
    pub fn compute_capability(&self) -> (i32, i32) {
        (
            self.attribute(attribute::COMPUTE_CAPABILITY_MAJOR),
            self.attribute(attribute::COMPUTE_CAPABILITY_MINOR),
        )
    }
}

/// The five groups of a UUID.
pub fn uuid_text(uuid: &[u8; 16]) -> String {
    let mut text = String::new();
    for (index, byte) in uuid.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

/// How a device is used at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceState {
    /// Device memory in bytes.
    pub total: u64,
    /// Bytes of it that nobody has.
    pub free: u64,
    /// Bytes of it that no program can have.
    pub reserved: u64,
    /// Processes that have a context on the device, by their ids.
    pub processes: Vec<ProcessOnDevice>,
}

/// A process that has a context on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessOnDevice {
    /// Process id.
    pub process: u32,
    /// Bytes of device memory that it has allocated.
    pub bytes: u64,
}
