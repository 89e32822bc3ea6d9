//! Contexts, and the streams and events that live in them.

use crate::timeline::StreamKey;
use lockstep_protocol::{ContextHandle, CuResult};
use lockstep_units::TextureTable;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A context of one process on one device.
#[derive(Debug)]
pub struct Context {
    /// The device.
    pub device: u32,
    /// The process that it belongs to.
    pub process: u32,
    /// Times that it was retained, for a primary context; none for a created one.
    pub retained: Option<u32>,
    /// The error that it fell into.
    pub sticky: Option<CuResult>,
    /// The legacy default stream.
    pub legacy: StreamKey,
    /// Default streams of host threads, by connection.
    pub per_thread: BTreeMap<u64, StreamKey>,
    /// Limits by `CUlimit`.
    pub limits: BTreeMap<u32, u64>,
    /// Contexts whose memory is visible.
    pub peers: Vec<ContextHandle>,
    /// Textures and surfaces; a launch takes those that are there when it is made.
    pub textures: Arc<TextureTable>,
}

impl Context {
    /// Bytes of stack of a thread.
    pub fn stack(&self) -> u32 {
        let bytes = self.limits.get(&STACK_LIMIT).copied().unwrap_or(0);
        u32::try_from(bytes).unwrap_or(u32::MAX)
    }
}

/// `CU_LIMIT_STACK_SIZE`.
const STACK_LIMIT: u32 = 0;

/// Bytes that device code can `malloc` unless the program asks for more.
pub const DEFAULT_HEAP: u64 = 8 << 20;

/// `CUlimit`s that can be set: the value that a new context has, the least and the most that is kept, whether more is
/// refused or cut, and what the value is a multiple of.
pub const LIMITS: &[Limit] = &[
    Limit::refused(STACK_LIMIT, 1 << 10, 512 << 10, 16), // stack size of a thread
    Limit::cut(PRINTF_LIMIT, 0, 1 << 30), // printf buffer; `default_limits` knows the SMs
    Limit::cut(2, DEFAULT_HEAP, 32 << 30), // malloc heap
    // Launches by kernels that may be under way; the least and the most are what an H200 keeps.
    Limit {
        least: 32,
        ..Limit::cut(PENDING_LAUNCH_LIMIT, 2048, 599_186)
    },
    Limit::refused(5, 64, 128, 1), // granularity of fetches from L2
    Limit::refused(PERSISTING_LIMIT, 0, u64::MAX, 1), // L2 set aside for persisting accesses
];

/// `CU_LIMIT_PRINTF_FIFO_SIZE`.
const PRINTF_LIMIT: u32 = 1;

/// Bytes of the printf buffer for each SM: an H200 with 132 SMs says 8,650,752. That others have as
/// much for each is assumed.
const PRINTF_BYTES: u64 = 64 << 10;

/// `CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT`.
pub const PENDING_LAUNCH_LIMIT: u32 = 4;

/// `CU_LIMIT_PERSISTING_L2_CACHE_SIZE`; the size of L2 decides on the most and the unit.
pub const PERSISTING_LIMIT: u32 = 6;

/// A limit of contexts.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// `CUlimit`.
    pub number: u32,
    /// The value that a new context has.
    pub default: u64,
    /// The least that is kept.
    pub least: u64,
    /// The most that is kept.
    pub most: u64,
    /// Whether more is refused; else it is cut.
    pub strict: bool,
    /// What the value is a multiple of.
    pub unit: u64,
}

impl Limit {
    const fn refused(number: u32, default: u64, most: u64, unit: u64) -> Self {
        Self {
            number,
            default,
            least: 0,
            most,
            strict: true,
            unit,
        }
    }

    const fn cut(number: u32, default: u64, most: u64) -> Self {
        Self {
            number,
            default,
            least: 0,
            most,
            strict: false,
            unit: 1,
        }
    }
}

/// Limits of a new context on a GPU with so many SMs.
pub fn default_limits(sms: u32) -> BTreeMap<u32, u64> {
    let defaults = LIMITS.iter().map(|limit| (limit.number, limit.default));
    let mut limits: BTreeMap<u32, u64> = defaults.collect();
    limits.insert(PRINTF_LIMIT, PRINTF_BYTES * u64::from(sms));
    limits
}

/// A stream that the program can name.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    /// Its place in the timeline.
    pub key: StreamKey,
    /// The context that it lives in.
    pub context: ContextHandle,
    /// Whether it waits for, and is waited for by, the legacy default stream.
    pub blocking: bool,
    /// Priority of its kernels; lower is more urgent.
    pub priority: i32,
}

/// An event.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// The context that it lives in.
    pub context: ContextHandle,
    /// Whether it notes the time.
    pub timing: bool,
    /// Whether other processes may use it.
    pub shared: bool,
    /// Where it was recorded last: recording, stream, position.
    pub recorded: Option<(u64, StreamKey, u64)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_context_has_the_limits_of_an_h200() {
        let limits = default_limits(132);
        assert_eq!(limits[&STACK_LIMIT], 1024);
        assert_eq!(limits[&PRINTF_LIMIT], 8_650_752);
    }
}
