//! What a program is told about a simulated GPU: every device attribute.
//!
//! Attributes that follow from the GPU file are computed from it; the rest are what the
//! architecture offers, or what this system supports. One that is absent answers 0.

use lockstep_config::GpuConfig;
use lockstep_node::{Kind, SWITCH_BUS, Topology, pci_bus};
use lockstep_protocol::{DeviceDescription, NvLink, attribute};
use std::collections::BTreeMap;
use std::ops::Range;

/// What `cuDriverGetVersion` answers: 13.3.
pub const DRIVER_VERSION: i32 = 13_030;

/// Limits and abilities that every GPU since Volta shares, as the CUDA programming guide lists
/// them under "technical specifications per compute capability".
const COMMON: &[(u32, i32)] = &[
    (attribute::MAX_THREADS_PER_BLOCK, 1024),
    (attribute::MAX_BLOCK_DIM_X, 1024),
    (attribute::MAX_BLOCK_DIM_Y, 1024),
    (attribute::MAX_BLOCK_DIM_Z, 64),
    (attribute::MAX_GRID_DIM_X, i32::MAX),
    (attribute::MAX_GRID_DIM_Y, 65_535),
    (attribute::MAX_GRID_DIM_Z, 65_535),
    (attribute::TOTAL_CONSTANT_MEMORY, 65_536),
    (attribute::WARP_SIZE, 32),
    (attribute::MAX_PITCH, i32::MAX),
    (attribute::TEXTURE_ALIGNMENT, 512),
    (attribute::GPU_OVERLAP, 1),
    (attribute::CAN_MAP_HOST_MEMORY, 1),
    (attribute::MAXIMUM_TEXTURE1D_WIDTH, 131_072),
    (attribute::MAXIMUM_TEXTURE2D_WIDTH, 131_072),
    (attribute::MAXIMUM_TEXTURE2D_HEIGHT, 65_536),
    (attribute::MAXIMUM_TEXTURE3D_WIDTH, 16_384),
    (attribute::MAXIMUM_TEXTURE3D_HEIGHT, 16_384),
    (attribute::MAXIMUM_TEXTURE3D_DEPTH, 16_384),
    (attribute::MAXIMUM_TEXTURE2D_LAYERED_WIDTH, 32_768),
    (attribute::MAXIMUM_TEXTURE2D_LAYERED_HEIGHT, 32_768),
    (attribute::MAXIMUM_TEXTURE2D_LAYERED_LAYERS, 2048),
    (attribute::SURFACE_ALIGNMENT, 512),
    (attribute::CONCURRENT_KERNELS, 1),
    (attribute::UNIFIED_ADDRESSING, 1),
    (attribute::MAXIMUM_TEXTURE1D_LAYERED_WIDTH, 32_768),
    (attribute::MAXIMUM_TEXTURE1D_LAYERED_LAYERS, 2048),
    (attribute::MAXIMUM_TEXTURE2D_GATHER_WIDTH, 32_768),
    (attribute::MAXIMUM_TEXTURE2D_GATHER_HEIGHT, 32_768),
    (attribute::MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE, 8192),
    (attribute::MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE, 8192),
    (attribute::MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE, 32_768),
    (attribute::TEXTURE_PITCH_ALIGNMENT, 32),
    (attribute::MAXIMUM_TEXTURECUBEMAP_WIDTH, 32_768),
    (attribute::MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH, 32_768),
    (attribute::MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS, 2046),
    (attribute::MAXIMUM_SURFACE1D_WIDTH, 32_768),
    (attribute::MAXIMUM_SURFACE2D_WIDTH, 131_072),
    (attribute::MAXIMUM_SURFACE2D_HEIGHT, 65_536),
    (attribute::MAXIMUM_SURFACE3D_WIDTH, 16_384),
    (attribute::MAXIMUM_SURFACE3D_HEIGHT, 16_384),
    (attribute::MAXIMUM_SURFACE3D_DEPTH, 16_384),
    (attribute::MAXIMUM_SURFACE1D_LAYERED_WIDTH, 32_768),
    (attribute::MAXIMUM_SURFACE1D_LAYERED_LAYERS, 2048),
    (attribute::MAXIMUM_SURFACE2D_LAYERED_WIDTH, 32_768),
    (attribute::MAXIMUM_SURFACE2D_LAYERED_HEIGHT, 32_768),
    (attribute::MAXIMUM_SURFACE2D_LAYERED_LAYERS, 2048),
    (attribute::MAXIMUM_SURFACECUBEMAP_WIDTH, 32_768),
    (attribute::MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH, 32_768),
    (attribute::MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS, 2046),
    (attribute::MAXIMUM_TEXTURE1D_LINEAR_WIDTH, 268_435_456),
    (attribute::MAXIMUM_TEXTURE2D_LINEAR_WIDTH, 131_072),
    (attribute::MAXIMUM_TEXTURE2D_LINEAR_HEIGHT, 65_000),
    (attribute::MAXIMUM_TEXTURE2D_LINEAR_PITCH, 2_097_120),
    (attribute::MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH, 32_768),
    (attribute::MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT, 32_768),
    (attribute::MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH, 32_768),
    (attribute::STREAM_PRIORITIES_SUPPORTED, 1),
    (attribute::GLOBAL_L1_CACHE_SUPPORTED, 1),
    (attribute::LOCAL_L1_CACHE_SUPPORTED, 1),
    (attribute::MANAGED_MEMORY, 1),
    (attribute::CONCURRENT_MANAGED_ACCESS, 1),
    (attribute::COMPUTE_PREEMPTION_SUPPORTED, 1),
    (attribute::COOPERATIVE_LAUNCH, 1),
    (attribute::VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED, 1),
    (attribute::HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1),
    (attribute::MEMORY_POOLS_SUPPORTED, 1),
    (attribute::CAN_TEX2D_GATHER, 1),
    (attribute::CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1),
    (attribute::HOST_REGISTER_SUPPORTED, 1),
    (attribute::CAN_USE_64_BIT_STREAM_MEM_OPS, 1),
    (attribute::CAN_USE_STREAM_WAIT_VALUE_NOR, 1),
    (attribute::IPC_EVENT_SUPPORTED, 1),
    (attribute::UNIFIED_FUNCTION_POINTERS, 1),
    (attribute::NUMA_ID, -1),
];

/// The description that a program receives when it attaches, of one of the devices of a node.
pub fn describe(config: &GpuConfig, ordinal: u32, node: Range<u32>) -> DeviceDescription {
    // Where it lies on the bus, as its own node counts.
    let place = ordinal - node.start;
    let mut attributes: BTreeMap<u32, i32> = COMMON.iter().copied().collect();
    for (number, value) in from_file(config) {
        attributes.insert(number, clamp(value));
    }
    attributes.insert(attribute::PCI_BUS_ID, clamp(pci_bus(place).into()));
    attributes.insert(attribute::MULTI_GPU_BOARD_GROUP_ID, clamp(u64::from(place)));
    attributes.retain(|_, value| *value != 0);
    DeviceDescription {
        name: config.device.name.clone(),
        uuid: identity(ordinal),
        total_memory: config.device.memory.0,
        attributes,
        peers: node.filter(|peer| *peer != ordinal).collect(),
        nvlinks: Vec::new(),
        behind_pci_switch: false,
    }
}

/// Adds what the links of a node are to a device.
pub fn describe_links(
    description: &mut DeviceDescription,
    config: &GpuConfig,
    topology: &Topology,
    ordinal: u32,
) {
    let first = topology.neighbours(ordinal).start;
    let ports = topology.nvlinks(ordinal).into_iter();
    description.nvlinks = ports
        .map(|port| NvLink {
            peer: port.peer,
            bus: port.peer.map_or(SWITCH_BUS, |peer| pci_bus(peer - first)),
            megabytes_per_second: (port.bandwidth.get() / 1_000_000) as u32,
        })
        .collect();
    if supports_multicast(config, topology, ordinal) {
        let supported = attribute::MULTICAST_SUPPORTED;
        description.attributes.insert(supported, 1);
    }
    description.behind_pci_switch = topology.kind() == Kind::Pcie && topology.has_switch();
}

/// Whether a GPU can be one of a multicast object: the switch that joins it to others sends and reduces for it.
pub fn supports_multicast(config: &GpuConfig, topology: &Topology, ordinal: u32) -> bool {
    let several = topology.neighbours(ordinal).len() > 1;
    let switched = topology.kind() == Kind::Nvlink && topology.has_switch();
    several && switched && config.device.compute_capability.major >= 9
}

fn from_file(config: &GpuConfig) -> Vec<(u32, u64)> {
    let (device, sm) = (&config.device, &config.sm);
    let carveout = sm.shared_carveouts.last().map_or(0, |size| size.0);
    let capability = device.compute_capability;
    let hopper = u64::from(capability.major >= 9);
    vec![
        (
            attribute::MAX_SHARED_MEMORY_PER_BLOCK,
            sm.shared_per_block.0,
        ),
        (attribute::MAX_REGISTERS_PER_BLOCK, u64::from(sm.registers)),
        (attribute::CLOCK_RATE, device.clock.get() / 1000),
        (attribute::MULTIPROCESSOR_COUNT, u64::from(device.sms)),
        (attribute::ECC_ENABLED, u64::from(device.ecc)),
        (
            attribute::MEMORY_CLOCK_RATE,
            device.memory_clock.get() / 1000,
        ),
        (
            attribute::GLOBAL_MEMORY_BUS_WIDTH,
            u64::from(device.memory_bus_width),
        ),
        (attribute::L2_CACHE_SIZE, config.l2.capacity.0),
        (
            attribute::MAX_THREADS_PER_MULTIPROCESSOR,
            u64::from(sm.warps) * 32,
        ),
        (
            attribute::ASYNC_ENGINE_COUNT,
            u64::from(config.copy.engines),
        ),
        (
            attribute::COMPUTE_CAPABILITY_MAJOR,
            u64::from(capability.major),
        ),
        (
            attribute::COMPUTE_CAPABILITY_MINOR,
            u64::from(capability.minor),
        ),
        (attribute::MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, carveout),
        (
            attribute::MAX_REGISTERS_PER_MULTIPROCESSOR,
            u64::from(sm.registers),
        ),
        (
            attribute::SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO,
            u64::from(device.single_to_double_ratio),
        ),
        (
            attribute::MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
            sm.shared_per_block_optin.0,
        ),
        (
            attribute::MAX_BLOCKS_PER_MULTIPROCESSOR,
            u64::from(sm.blocks),
        ),
        (
            attribute::RESERVED_SHARED_MEMORY_PER_BLOCK,
            sm.shared_reserved.0,
        ),
        (
            attribute::MAX_PERSISTING_L2_CACHE_SIZE,
            persisting(capability.major, config.l2.capacity.0),
        ),
        (
            attribute::MAX_ACCESS_POLICY_WINDOW_SIZE,
            if capability.major >= 8 { 128 << 20 } else { 0 },
        ),
        // One, and three more that came with clusters.
        (attribute::MEM_SYNC_DOMAIN_COUNT, 1 + 3 * hopper),
        (attribute::CLUSTER_LAUNCH, hopper),
        (attribute::TENSOR_MAP_ACCESS_SUPPORTED, hopper),
    ]
}

/// How much of L2 can be set aside, which came with compute capability 8.
fn persisting(major: u32, capacity: u64) -> u64 {
    match major {
        ..8 => 0,
        8 => capacity / 4 * 3,
        _ => capacity / 8 * 5,
    }
}

fn clamp(value: u64) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}

/// The same on every host and in every run: programs print it and key caches by it.
fn identity(ordinal: u32) -> [u8; 16] {
    let mut bytes = *b"lockstep-gpu\0\0\0\0";
    bytes[12..].copy_from_slice(&ordinal.to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attributes that differ from those of the H200 that was asked, by number.
    const DIFFERENT: &[(std::ops::RangeInclusive<u32>, &str)] = &[
        (33..=34, "where it lies on the bus of that machine"),
        (96..=96, "launches of several devices, which are gone"),
        (107..=107, "compression of memory"),
        (110..=110, "other devices that reach its memory"),
        (112..=112, "sparse arrays"),
        (113..=113, "registered memory that kernels may only read"),
        (114..=114, "semaphores of other interfaces"),
        (116..=118, "other devices that reach its memory"),
        (119..=119, "export of pools"),
        (121..=121, "arrays that are mapped later"),
        (124..=124, "buffers of other devices"),
        (128..=128, "export of memory over a fabric"),
        (139..=140, "numbers of the vendor"),
        (141..=145, "pools of host memory"),
        (148..=u32::MAX, "unknown to the driver that was asked"),
    ];

    #[test]
    fn an_h200_says_what_a_real_one_said() {
        let config = lockstep_config::load::<&str>(Some("h200"), &[]).unwrap();
        let device = describe(&config, 0, 0..1);
        let table = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../validation/hardware/h200/attributes.csv"
        );
        let table = std::fs::read_to_string(table).unwrap();
        let mut asked = 0;
        for line in table.lines() {
            let Some((number, value)) = line
                .strip_prefix("attribute,")
                .and_then(|row| row.split_once(','))
            else {
                continue;
            };
            let number = number.parse().unwrap();
            asked += 1;
            let differs = DIFFERENT.iter().any(|(range, _)| range.contains(&number));
            if !differs {
                let said = device.attribute(number).to_string();
                assert_eq!(said, value, "attribute {number}");
            }
        }
        assert!(asked > 140, "{asked} attributes in the table");
        assert_eq!(device.compute_capability(), (9, 0));
        assert_eq!(device.attribute(9999), 0);
    }

    /// Programs ask before they reserve and map addresses by themselves (`cuMemAddressReserve`, `cuMemMap`).
    #[test]
    fn every_gpu_says_that_programs_may_map_memory() {
        for gpu in ["h200", "a100", "rtx2060", "v100"] {
            let config = lockstep_config::load::<&str>(Some(gpu), &[]).unwrap();
            let number = attribute::VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED;
            assert_eq!(describe(&config, 0, 0..1).attribute(number), 1, "{gpu}");
        }
    }
}
