//! How long a transfer between host and device takes.
//!
//! Times are interpolated linearly between measured sizes and so are exact at those. Below the
//! first size the first slope goes on, above the last size the last one.

use lockstep_units::{Bytes, Duration};

/// Points of a profile: bytes, and picoseconds in one direction.
type Points = &'static [(u64, u64)];

/// A link by name.
#[derive(Clone, Copy, Debug)]
pub struct LinkProfile {
    /// The name in configurations.
    pub name: &'static str,
    /// What it is and where its numbers come from.
    pub summary: &'static str,
    to_device: Shape,
    to_host: Shape,
    /// What the profile's bandwidth is, in units of 16 GB/s: the size term is divided by it when
    /// another bandwidth is configured.
    lanes: u64,
}

#[derive(Clone, Copy, Debug)]
enum Shape {
    Table(Points),
    /// UVMSmart's curve: (2 a / pi) atan(b S) GiB/s.
    Curve,
}

const KIB: u64 = 1 << 10;

/// The seed's table: 3.2219, 6.4437, 8.4771, 10.508, 11.223 GiB/s.
const SEED_TABLE: Points = &[
    (4 * KIB, 1_183_990),
    (16 * KIB, 2_368_017),
    (64 * KIB, 7_200_004),
    (256 * KIB, 23_233_786),
    (1024 * KIB, 87_014_390),
];

/// The same link with twice the bandwidth behind the same start-up time.
const PCIE_4: Points = &[
    (4 * KIB, 986_650),
    (16 * KIB, 1_578_664),
    (64 * KIB, 3_994_657),
    (256 * KIB, 12_011_548),
    (1024 * KIB, 43_901_850),
];

/// Traces of the unified memory driver on a GTX 1080 Ti.
const GTX_1080_TI_TO_DEVICE: Points = &[
    (4 * KIB, 1_760_000),
    (60 * KIB, 5_800_000),
    (64 * KIB, 6_080_000),
    (124 * KIB, 11_200_000),
    (252 * KIB, 21_800_000),
    (508 * KIB, 43_300_000),
    (1020 * KIB, 86_400_000),
];

const GTX_1080_TI_TO_HOST: Points = &[
    (4 * KIB, 1_056_000),
    (60 * KIB, 5_300_000),
    (64 * KIB, 5_680_000),
    (124 * KIB, 10_400_000),
    (1024 * KIB, 79_574_520),
];

/// Pinned copies on an H200 behind PCIe 5: 5.01, 15.39, 34.76, 47.94, 53.33, 54.95 GB/s.
const PCIE_5: Points = &[
    (16 * KIB, 3_270_000),
    (64 * KIB, 4_258_000),
    (256 * KIB, 7_542_000),
    (1024 * KIB, 21_873_000),
    (4096 * KIB, 78_648_000),
    (16384 * KIB, 305_317_000),
];

/// What the unified memory driver moves on an H200 behind PCIe 5, copies following each other:
/// prefetches of 64 MiB run at 48 GB/s, and a copy beside others adds 0.4 us.
const PCIE_5_DRIVER: Points = &[(4 * KIB, 482_000), (2048 * KIB, 42_343_000)];

/// 450 GB/s each way after half a microsecond: the data sheet, with an estimated start.
const NVLINK_C2C: Points = &[(4 * KIB, 509_102), (2048 * KIB, 5_160_338)];

/// All links.
pub const LINK_PROFILES: &[LinkProfile] = &[
    LinkProfile {
        name: "pcie-3",
        summary: "PCIe 3.0 x16: the seed's table, interpolated by time",
        to_device: Shape::Table(SEED_TABLE),
        to_host: Shape::Table(SEED_TABLE),
        lanes: 1,
    },
    LinkProfile {
        name: "pcie-3-uvmsmart",
        summary: "PCIe 3.0 x16: the curve that UVMSmart computes with",
        to_device: Shape::Curve,
        to_host: Shape::Curve,
        lanes: 1,
    },
    LinkProfile {
        name: "pcie-3-gtx1080ti",
        summary: "PCIe 3.0 x16: transfers of the unified memory driver, measured on a GTX 1080 Ti",
        to_device: Shape::Table(GTX_1080_TI_TO_DEVICE),
        to_host: Shape::Table(GTX_1080_TI_TO_HOST),
        lanes: 1,
    },
    LinkProfile {
        name: "pcie-4",
        summary: "PCIe 4.0 x16: the seed's table with the size term halved",
        to_device: Shape::Table(PCIE_4),
        to_host: Shape::Table(PCIE_4),
        lanes: 2,
    },
    LinkProfile {
        name: "pcie-5",
        summary: "PCIe 5.0 x16: pinned copies measured on an H200",
        to_device: Shape::Table(PCIE_5),
        to_host: Shape::Table(PCIE_5),
        lanes: 4,
    },
    LinkProfile {
        name: "pcie-5-driver",
        summary: "PCIe 5.0 x16: migrations of the unified memory driver, measured on an H200",
        to_device: Shape::Table(PCIE_5_DRIVER),
        to_host: Shape::Table(PCIE_5_DRIVER),
        lanes: 4,
    },
    LinkProfile {
        name: "nvlink-c2c",
        summary: "NVLink-C2C: 450 GB/s each way; the start-up time is an estimate",
        to_device: Shape::Table(NVLINK_C2C),
        to_host: Shape::Table(NVLINK_C2C),
        lanes: 28,
    },
];

impl LinkProfile {
    /// The profile of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        LINK_PROFILES.iter().find(|profile| profile.name == name)
    }
}

/// A link of some bandwidth.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    profile: &'static LinkProfile,
    /// Bytes per second of one direction; 0 for the profile's own.
    bandwidth: u64,
}

impl Link {
    /// A link after a profile; with a bandwidth other than 0, the part of each time that grows
    /// with the size is scaled to it.
    #[must_use]
    pub fn new(profile: &'static LinkProfile, bandwidth: u64) -> Self {
        Self { profile, bandwidth }
    }

    /// How long a transfer takes.
    #[must_use]
    pub fn time(&self, bytes: Bytes, to_device: bool) -> Duration {
        let shape = if to_device {
            self.profile.to_device
        } else {
            self.profile.to_host
        };
        let time = shape.femtoseconds(bytes.0);
        if self.bandwidth == 0 {
            return Duration(time);
        }
        let own = self.profile.lanes * 16_000_000_000;
        let start = shape.femtoseconds(0).min(time);
        let grown = u128::from(time - start) * u128::from(own) / u128::from(self.bandwidth);
        Duration(start + u64::try_from(grown).unwrap_or(u64::MAX / 2))
    }
}

impl Shape {
    fn femtoseconds(self, bytes: u64) -> u64 {
        match self {
            Self::Table(points) => interpolate(points, bytes),
            Self::Curve => curve(bytes),
        }
    }
}

/// Time of a size, in femtoseconds.
fn interpolate(points: Points, bytes: u64) -> u64 {
    let segment = points
        .windows(2)
        .find(|pair| bytes <= pair[1].0)
        .unwrap_or(&points[points.len() - 2..]);
    let [(s0, t0), (s1, t1)] = [segment[0], segment[1]];
    let [t0, t1] = [t0, t1].map(|picoseconds| i128::from(picoseconds) * 1_000);
    let [s0, s1, bytes] = [s0, s1, bytes].map(i128::from);
    let time = t0 + (t1 - t0) * (bytes - s0) / (s1 - s0);
    u64::try_from(time.max(0)).unwrap_or(u64::MAX / 2)
}

/// UVMSmart's time of a size, in femtoseconds: bandwidth is (2 x 12 / pi) atan(0.07292 S) GiB/s
/// for S KiB.
fn curve(bytes: u64) -> u64 {
    if bytes == 0 {
        return 0;
    }
    let kib = bytes as f64 / 1024.0;
    let gib_per_second = 24.0 / std::f64::consts::PI * arc_tangent(0.07292 * kib);
    let seconds = bytes as f64 / (gib_per_second * 1_073_741_824.0);
    (seconds * 1e15) as u64
}

/// The arc tangent from plain arithmetic, so that every host computes the same bits.
fn arc_tangent(x: f64) -> f64 {
    if x > 1.0 {
        return std::f64::consts::FRAC_PI_2 - arc_tangent(1.0 / x);
    }
    if x > 0.41421356237309503 {
        return std::f64::consts::FRAC_PI_4 + arc_tangent((x - 1.0) / (x + 1.0));
    }
    // |x| is at most tan(pi/8): 30 terms leave an error far below a femtosecond.
    let square = x * x;
    let mut sum = 0.0;
    for term in (0..30).rev() {
        let odd = f64::from(2 * term + 1);
        let part = if term % 2 == 0 { 1.0 / odd } else { -1.0 / odd };
        sum = sum * square + part;
    }
    sum * x
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(name: &str, kib: u64, to_device: bool) -> f64 {
        let link = Link::new(LinkProfile::named(name).unwrap(), 0);
        link.time(Bytes(kib << 10), to_device).0 as f64 / 1e9
    }

    #[test]
    fn the_table_is_exact_where_it_was_measured() {
        for (kib, gib_per_second) in [
            (4, 3.2219),
            (16, 6.4437),
            (64, 8.4771),
            (256, 10.508),
            (1024, 11.223),
        ] {
            let got = kib as f64 / 1048576.0 / (micros("pcie-3", kib, true) * 1e-6);
            assert!((got / gib_per_second - 1.0).abs() < 1e-5, "{kib}: {got}");
        }
    }

    #[test]
    fn the_curve_is_uvmsmarts() {
        for (kib, expected) in [
            (4, 1.7594),
            (60, 5.564),
            (64, 5.876),
            (252, 20.745),
            (1020, 81.76),
            (2048, 163.457),
        ] {
            let got = micros("pcie-3-uvmsmart", kib, true);
            assert!((got / expected - 1.0).abs() < 2e-4, "{kib}: {got}");
        }
    }

    #[test]
    fn more_bandwidth_keeps_the_start() {
        let profile = LinkProfile::named("pcie-3").unwrap();
        let (slow, fast) = (
            Link::new(profile, 16_000_000_000),
            Link::new(profile, 64_000_000_000),
        );
        let time = |link: &Link, kib: u64| link.time(Bytes(kib << 10), true).0 as f64 / 1e9;
        assert_eq!(time(&slow, 64), micros("pcie-3", 64, true));
        let start = 0.789_314;
        let expected = start + (7.200_004 - start) / 4.0;
        assert!((time(&fast, 64) - expected).abs() < 1e-5);
    }

    #[test]
    fn every_link_takes_longer_for_more() {
        for profile in LINK_PROFILES {
            let link = Link::new(profile, 0);
            for to_device in [true, false] {
                let times: Vec<Duration> = (0..600)
                    .map(|pages| link.time(Bytes(4096 * pages), to_device))
                    .collect();
                assert!(times.is_sorted(), "{}", profile.name);
            }
        }
    }
}
