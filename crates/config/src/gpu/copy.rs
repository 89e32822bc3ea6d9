//! The section `[copy]`: what copies and fills cost.
//!
//! Keys that may be left out stand for ways that a real GPU has and a simpler one lacks: without them a copy or a
//! fill costs what `latency` and the rate of its kind say.

use crate::limits::Limit;
use lockstep_units::{Bandwidth, Bytes, Duration};
use serde::{Deserialize, Serialize};

/// The engines and the bus that move data between host and device.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CopyConfig {
    /// Copies in flight at a time.
    pub engines: u32,
    /// From issue to the first byte, to the device and for all that has no key of its own.
    pub latency: Duration,
    /// From issue to the first byte, to the host.
    #[serde(default)]
    pub latency_to_host: Option<Duration>,
    /// From issue to the first byte, within the device.
    #[serde(default)]
    pub latency_within: Option<Duration>,
    /// From and to pinned memory.
    pub pinned: Bandwidth,
    /// From and to pageable memory.
    pub pageable: Bandwidth,
    /// From issue to the first byte, from pageable memory.
    #[serde(default)]
    pub pageable_latency: Option<Duration>,
    /// From issue to the first byte, to pageable memory: the host moves it once more at the end.
    #[serde(default)]
    pub pageable_latency_to_host: Option<Duration>,
    /// Up to so many bytes of pageable memory go to the device within the command that asks for it.
    #[serde(default)]
    pub pageable_inline_limit: Bytes,
    /// From pageable memory within a command.
    #[serde(default)]
    pub pageable_inline: Option<Bandwidth>,
    /// Within device memory, each byte counted once.
    pub device_to_device: Bandwidth,
    /// The same for as much of source and destination as L2 holds.
    #[serde(default)]
    pub device_to_device_l2: Option<Bandwidth>,
    /// From issue to the first byte of a fill.
    #[serde(default)]
    pub fill_latency: Option<Duration>,
    /// Bytes that are filled; as within device memory if it is not there.
    #[serde(default)]
    pub fill: Option<Bandwidth>,
    /// Fills of up to so many bytes are done by the front end, without a kernel of the driver.
    #[serde(default)]
    pub fill_inline_limit: Bytes,
    /// From issue to the first byte of such a fill.
    #[serde(default)]
    pub fill_inline_latency: Option<Duration>,
}

impl CopyConfig {
    pub(super) fn limits(&self) -> Vec<Limit> {
        vec![Limit::new("copy.engines", self.engines).from(1).to(1024)]
    }

    /// What a fill of so many bytes takes.
    pub fn fill_time(&self, bytes: u64) -> Duration {
        let latency = match bytes <= self.fill_inline_limit.0 {
            true => self.fill_inline_latency,
            false => self.fill_latency,
        };
        let rate = self.fill.unwrap_or(self.device_to_device);
        latency.unwrap_or(self.latency) + rate.time_for(Bytes(bytes))
    }

    /// What a copy of so many bytes within a device takes, whose L2 has this capacity. Half of that holds what
    /// is read, the other half what is written.
    pub fn within_time(&self, bytes: u64, l2: Bytes) -> Duration {
        let held = bytes.min(l2.0 / 2);
        let in_l2 = self.device_to_device_l2.unwrap_or(self.device_to_device);
        let beyond = self.device_to_device.time_for(Bytes(bytes - held));
        self.latency_within.unwrap_or(self.latency) + in_l2.time_for(Bytes(held)) + beyond
    }

    /// What passes before the first byte of a copy between host and device.
    pub fn latency_between(&self, to_host: bool, pageable: bool) -> Duration {
        let own = match (pageable, to_host) {
            (true, true) => self.pageable_latency_to_host,
            (true, false) => self.pageable_latency,
            (false, true) => self.latency_to_host,
            (false, false) => None,
        };
        own.unwrap_or(self.latency)
    }

    /// What the host takes for so many bytes of pageable memory.
    pub fn pageable_time(&self, to_host: bool, bytes: u64) -> Duration {
        let inline = !to_host && bytes <= self.pageable_inline_limit.0;
        let inline = self.pageable_inline.filter(|_| inline);
        inline.unwrap_or(self.pageable).time_for(Bytes(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(settings: &[&str]) -> CopyConfig {
        crate::load(Some("h100"), settings).unwrap().copy
    }

    #[test]
    fn without_keys_of_their_own_copies_and_fills_cost_what_they_did() {
        let copy = copy(&[
            "copy.latency=3 us",
            "copy.pageable=1 GB/s",
            "copy.device-to-device=1 GB/s",
        ]);
        let expected = Duration::microseconds(3 + 1000);
        assert_eq!(copy.fill_time(1_000_000), expected);
        assert_eq!(copy.within_time(1_000_000, Bytes(1000)), expected);
        for (to_host, pageable) in [(false, false), (false, true), (true, false), (true, true)] {
            let latency = copy.latency_between(to_host, pageable);
            assert_eq!(latency, Duration::microseconds(3));
        }
        assert_eq!(copy.pageable_time(false, 1000), Duration::microseconds(1));
    }

    #[test]
    fn small_fills_and_small_copies_of_pageable_memory_go_within_commands() {
        let copy = copy(&[
            "copy.fill=1 GB/s",
            "copy.fill-latency=4 us",
            "copy.fill-inline-limit=1000 B",
            "copy.fill-inline-latency=1 us",
            "copy.pageable=1 GB/s",
            "copy.pageable-inline=500 MB/s",
            "copy.pageable-inline-limit=1000 B",
        ]);
        assert_eq!(copy.fill_time(1000), Duration::microseconds(2));
        assert_eq!(copy.fill_time(2000), Duration::microseconds(6));
        assert_eq!(copy.pageable_time(false, 1000), Duration::microseconds(2));
        assert_eq!(copy.pageable_time(false, 2000), Duration::microseconds(2));
        assert_eq!(copy.pageable_time(true, 1000), Duration::microseconds(1));
    }

    #[test]
    fn what_l2_holds_of_a_copy_goes_at_its_rate() {
        let copy = copy(&[
            "copy.latency-within=0 ns",
            "copy.device-to-device=1 GB/s",
            "copy.device-to-device-l2=2 GB/s",
        ]);
        let l2 = Bytes(4000);
        assert_eq!(copy.within_time(2000, l2), Duration::microseconds(1));
        assert_eq!(copy.within_time(5000, l2), Duration::microseconds(1 + 3));
    }
}
