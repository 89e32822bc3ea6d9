//! `cudaDeviceProp`, whose shape depends on the version of the runtime.

use super::property_table::ROWS;
use crate::boundary::{RuntimeError, runtime};
use crate::context;
use crate::process::{device, process};
use crate::types::{In, Out};
use lockstep_protocol::DeviceDescription;

/// A shape of the structure.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Eleven,
    Twelve,
    Thirteen,
}

impl Shape {
    fn bytes(self) -> usize {
        match self {
            Self::Eleven => 728,
            Self::Twelve => 1032,
            Self::Thirteen => 1008,
        }
    }
}

const NAME: usize = 0;
const NAME_BYTES: usize = 256;
const UUID: usize = 256;
const LUID_NODE_MASK: usize = 280;
const TOTAL_MEMORY: usize = 288;

runtime! {
    fn cudaGetDeviceProperties(properties: Out<u8>, number: i32) {
        answer(properties, number, Shape::Eleven)
    }

    fn cudaGetDeviceProperties_v2(properties: Out<u8>, number: i32) {
        answer(properties, number, Shape::Twelve)
    }

    fn cudaGetDeviceProperties_v13(properties: Out<u8>, number: i32) {
        answer(properties, number, Shape::Thirteen)
    }

    /// The first device that has at least the wanted compute capability, else the first.
    fn cudaChooseDevice(number: Out<i32>, wanted: In<[i32; 92]>) {
        context::initialize()?;
        // Major and minor lie at bytes 360 and 364 in every shape.
        let wanted = wanted.get()?;
        let capable = |device: &crate::process::Device| {
            device.description.compute_capability() >= (wanted[90], wanted[91])
        };
        let found = process()?.devices.iter().position(capable).unwrap_or(0);
        Ok(number.set(found as i32)?)
    }
}

fn answer(properties: Out<u8>, number: i32, shape: Shape) -> Result<(), RuntimeError> {
    context::initialize()?;
    Ok(properties.set_bytes(&fill(&device(number)?.description, shape))?)
}

fn fill(description: &DeviceDescription, shape: Shape) -> Vec<u8> {
    let mut bytes = vec![0; shape.bytes()];
    let name = description.name.as_bytes();
    let length = name.len().min(NAME_BYTES - 1);
    bytes[NAME..NAME + length].copy_from_slice(&name[..length]);
    bytes[UUID..UUID + 16].copy_from_slice(&description.uuid);
    bytes[LUID_NODE_MASK..LUID_NODE_MASK + 4].copy_from_slice(&0u32.to_le_bytes());
    bytes[TOTAL_MEMORY..TOTAL_MEMORY + 8].copy_from_slice(&description.total_memory.to_le_bytes());
    for row in ROWS {
        let offset = match shape {
            Shape::Thirteen => row.in_13,
            Shape::Eleven | Shape::Twelve => row.before_13,
        };
        let value = i64::from(description.attribute(row.attribute)).to_le_bytes();
        let Some(offset) = offset.map(usize::from) else {
            continue;
        };
        let end = offset + usize::from(row.bytes);
        if end <= bytes.len() {
            bytes[offset..end].copy_from_slice(&value[..usize::from(row.bytes)]);
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_protocol::attribute;

    #[test]
    fn each_shape_has_the_count_of_multiprocessors_in_its_place() {
        let mut description = DeviceDescription {
            name: "Simulated".into(),
            total_memory: 0x1_2345_6789,
            ..Default::default()
        };
        description
            .attributes
            .insert(attribute::MULTIPROCESSOR_COUNT, 132);
        description
            .attributes
            .insert(attribute::RESERVED_SHARED_MEMORY_PER_BLOCK, 1024);
        for (shape, processors, reserved) in [
            (Shape::Eleven, 388, 720),
            (Shape::Twelve, 388, 720),
            (Shape::Thirteen, 384, 696),
        ] {
            let bytes = fill(&description, shape);
            assert_eq!(bytes.len(), shape.bytes());
            assert_eq!(&bytes[..10], b"Simulated\0");
            assert_eq!(bytes[processors..processors + 4], 132i32.to_le_bytes());
            assert_eq!(bytes[reserved..reserved + 8], 1024u64.to_le_bytes());
            assert_eq!(bytes[288..296], 0x1_2345_6789u64.to_le_bytes());
        }
    }
}
