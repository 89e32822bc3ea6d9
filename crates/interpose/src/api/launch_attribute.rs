//! Attributes of launches and kernel nodes.

use super::event;
use crate::options;
use crate::process::process;
use crate::types::{Address, In};
use lockstep_protocol::options::Group;
use lockstep_protocol::{CuResult, attribute, clamp_priority};

/// `cudaLaunchAttribute`, `CUlaunchAttribute`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Attribute {
    number: u32,
    padding: u32,
    value: Value,
}

/// `cudaLaunchAttributeValue`.
pub type Value = [u32; 16];

impl Attribute {
    /// One attribute.
    pub fn new(number: u32, value: Value) -> Self {
        Self {
            number,
            padding: 0,
            value,
        }
    }
}

/// `cudaLaunchAttributeID`.
pub const WINDOW: u32 = 1;
pub const COOPERATIVE: u32 = 2;
pub const CLUSTER: u32 = 4;
const CLUSTER_POLICY: u32 = 5;
const PROGRAMMATIC_SERIALIZATION: u32 = 6;
const PROGRAMMATIC_EVENT: u32 = 7;
pub const PRIORITY: u32 = 8;
pub const DOMAIN_MAP: u32 = 9;
pub const DOMAIN: u32 = 10;
const PREFERRED_CLUSTER: u32 = 11;
const COMPLETION_EVENT: u32 = 12;
pub const CARVEOUT: u32 = 14;

/// Domains of memory synchronisation that a GPU since Hopper has.
const DOMAINS: u8 = 4;

/// What attributes say beside the shape.
#[derive(Clone, Copy, Default)]
pub struct Extras {
    /// All blocks must be resident at once.
    pub cooperative: bool,
    /// Blocks of a cluster.
    pub cluster: Option<[u32; 3]>,
    /// Priority.
    pub priority: Option<i32>,
    /// Preferred share of shared memory.
    pub carveout: Option<i32>,
    /// The kernel may begin before its predecessor in the stream ends.
    pub programmatic_stream_serialization: bool,
    /// An event to record once the kernel is under way or done.
    pub event: Option<Address>,
    /// The access policy window, for who reads it back.
    pub window: Value,
}

impl Extras {
    /// A cooperative launch.
    pub const COOPERATIVE: Self = Self {
        cooperative: true,
        cluster: None,
        priority: None,
        carveout: None,
        programmatic_stream_serialization: false,
        event: None,
        window: [0; 16],
    };

    fn take(&mut self, number: u32, value: Value) -> Result<(), CuResult> {
        let first = value[0];
        let used = match number {
            COOPERATIVE => {
                self.cooperative = first != 0;
                true
            }
            CLUSTER => {
                self.cluster = Some([value[0], value[1], value[2]]);
                true
            }
            PROGRAMMATIC_SERIALIZATION => {
                self.programmatic_stream_serialization = first != 0;
                first != 0
            }
            PROGRAMMATIC_EVENT | COMPLETION_EVENT => {
                self.event = Some(recorded(value)?);
                true
            }
            PRIORITY => {
                self.priority = Some(clamp_priority(first as i32));
                true
            }
            CARVEOUT => {
                let share = first as i32;
                if !(-1..=100).contains(&share) {
                    return Err(CuResult::INVALID_VALUE);
                }
                self.carveout = Some(share);
                true
            }
            WINDOW => {
                self.window = value;
                check_window(&value)?
            }
            CLUSTER_POLICY => check_number(first, 2)?,
            PREFERRED_CLUSTER => value[..3].iter().any(|size| *size > 1),
            DOMAIN => check_number(first, 1)?,
            DOMAIN_MAP => check_domains(&value)?,
            // What has no effect when it is 0 is told only when it is not.
            16..=18 => first != 0,
            _ => true,
        };
        match used {
            true => options::accept(Group::LaunchAttribute, number),
            false => Ok(()),
        }
    }
}

/// Reads launch attributes.
pub fn extras(attributes: In<Attribute>, count: u32) -> Result<Extras, CuResult> {
    let mut extras = Extras::default();
    for index in 0..count as usize {
        let Attribute { number, value, .. } = attributes.at(index)?;
        extras.take(number, value)?;
    }
    Ok(extras)
}

/// The event that an attribute names: without timing, and without flags but that for capturing.
fn recorded(value: Value) -> Result<Address, CuResult> {
    let event = (u64::from(value[0]) | u64::from(value[1]) << 32) as Address;
    if value[2] > 1 {
        return Err(CuResult::INVALID_VALUE);
    }
    if event::has_timing(event) {
        return Err(CuResult::NOT_SUPPORTED);
    }
    Ok(event)
}

/// Refuses numbers above the last; whether one is not 0.
fn check_number(value: u32, last: u32) -> Result<bool, CuResult> {
    match value {
        0 => Ok(false),
        _ if value <= last => Ok(true),
        _ => Err(CuResult::INVALID_VALUE),
    }
}

/// Refuses domains that no GPU has; whether the map is another than that of a new stream.
pub fn check_domains(value: &Value) -> Result<bool, CuResult> {
    let [default, remote, ..] = value[0].to_le_bytes();
    if default >= DOMAINS || remote >= DOMAINS {
        return Err(CuResult::INVALID_VALUE);
    }
    Ok((default, remote) != (0, 1))
}

/// Refuses access policy windows as a GPU does; whether there is one.
///
/// `cudaAccessPolicyWindow` is an address, a size, a ratio, and what becomes of hits and misses.
pub fn check_window(value: &Value) -> Result<bool, CuResult> {
    const PERSISTING: u32 = 2;
    let bytes = u64::from(value[2]) | u64::from(value[3]) << 32;
    let ratio = f32::from_bits(value[4]);
    let most = process()?.devices.first().map_or(0, |device| {
        let number = attribute::MAX_ACCESS_POLICY_WINDOW_SIZE;
        device.description.attribute(number).max(0) as u64
    });
    if bytes > most || !(0.0..=1.0).contains(&ratio) || value[6] == PERSISTING {
        return Err(CuResult::INVALID_VALUE);
    }
    Ok(bytes != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_have_the_sizes_of_the_headers() {
        assert_eq!(size_of::<Attribute>(), 72);
    }

    #[test]
    fn values_out_of_range_are_refused() {
        let refused = Err(CuResult::INVALID_VALUE);
        let mut value = [0; 16];
        let mut take = |number, first: u32| {
            value[0] = first;
            Extras::default().take(number, value)
        };
        assert_eq!(take(CARVEOUT, 101), refused);
        assert_eq!(take(CARVEOUT, 100), Ok(()));
        assert_eq!(take(CARVEOUT, u32::MAX), Ok(()));
        assert_eq!(take(CLUSTER_POLICY, 9), refused);
        assert_eq!(take(DOMAIN, 7), refused);
        assert_eq!(take(DOMAIN_MAP, 200 << 8), refused);
        assert_eq!(take(77, 0), refused);
        assert_eq!(take(0, 0), Ok(()));
    }
}
