//! The configuration in the form in which the machine asks for it: cycles and policies.

use lockstep_config::{ConfigError, UvmConfig};
use lockstep_units::{Bytes, Duration, Hertz};

use crate::evict::{EVICTORS, Evictor};
use crate::link::{LINK_PROFILES, Link, LinkProfile};
use crate::prefetch::{PREFETCHERS, Prefetcher};
use crate::zero_copy::ZeroCopy;

/// What serving faults costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Nothing in time; a statistic says what it would have been.
    Additive,
    /// One server, a fixed time for each page.
    Serial,
    /// One server, a fixed time for each batch.
    Batch,
    /// One server, a time made of what a batch holds.
    Calibrated,
}

/// What a change of the page table removes from TLBs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shootdown {
    /// One message a page.
    Entry,
    /// One message a run of pages.
    Range,
    /// Everything.
    Whole,
}

/// Everything that does not change while a machine runs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The configuration.
    pub config: UvmConfig,
    /// Core clock.
    pub clock: Hertz,
    /// SMs that ask.
    pub sms: u32,
    /// Pages that the device can hold.
    pub frames: u64,
    /// How the cost of serving faults is modelled.
    pub service: Service,
    /// The prefetcher.
    pub prefetcher: &'static Prefetcher,
    /// The prefetcher from the first eviction on.
    pub oversubscribed: &'static Prefetcher,
    /// The eviction policy.
    pub evictor: &'static Evictor,
    /// The link.
    pub link: Link,
    /// What a change of the page table removes from TLBs.
    pub shootdown: Shootdown,
    /// Whether new mappings cause shootdowns too.
    pub shootdown_on_map: bool,
    /// When pages are used where they are.
    pub zero_copy: ZeroCopy,
}

fn named<T: Copy>(
    kind: &'static str,
    name: &str,
    known: &[(&'static str, T)],
) -> Result<T, ConfigError> {
    let found = known.iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| *value).ok_or_else(|| {
        ConfigError::unknown_policy(kind, name, known.iter().map(|(known, _)| *known))
    })
}

impl Settings {
    /// From a configuration, for a device with so much memory.
    ///
    /// # Errors
    /// If it names a policy that does not exist, or cannot be.
    pub fn new(
        config: &UvmConfig,
        clock: Hertz,
        sms: u32,
        memory: Bytes,
    ) -> Result<Self, ConfigError> {
        config.check()?;
        let prefetchers: Vec<_> = PREFETCHERS.iter().map(|p| (p.name, p)).collect();
        let evictors: Vec<_> = EVICTORS.iter().map(|p| (p.name, p)).collect();
        let links: Vec<_> = LINK_PROFILES.iter().map(|p| (p.name, p)).collect();
        let profile: &LinkProfile = named("link profile", &config.link.profile, &links)?;
        let bandwidth = u64::from(config.link.gigabytes_per_second) * 1_000_000_000;
        let capacity = if config.capacity.0 == 0 {
            memory
        } else {
            config.capacity
        };
        let services = [
            ("additive", Service::Additive),
            ("serial", Service::Serial),
            ("batch", Service::Batch),
            ("calibrated", Service::Calibrated),
        ];
        let shootdowns = [
            ("entry", Shootdown::Entry),
            ("range", Shootdown::Range),
            ("whole", Shootdown::Whole),
        ];
        let shootdown = named("shootdown", &config.tlb.shootdown, &shootdowns)?;
        Ok(Self {
            clock,
            sms,
            frames: capacity.0 / crate::PAGE,
            service: named("fault service", &config.fault.service, &services)?,
            prefetcher: named("prefetcher", &config.prefetch.policy, &prefetchers)?,
            oversubscribed: named("prefetcher", &config.prefetch.oversubscribed, &prefetchers)?,
            evictor: named("evictor", &config.evict.policy, &evictors)?,
            link: Link::new(profile, bandwidth),
            shootdown: if config.tlb.coherent {
                Shootdown::Entry
            } else {
                shootdown
            },
            shootdown_on_map: config.tlb.shootdown_on == "map" && !config.tlb.coherent,
            zero_copy: ZeroCopy::new(&config.zero_copy),
            config: config.clone(),
        })
    }

    /// A length of time in cycles, rounded up.
    #[must_use]
    pub fn cycles(&self, length: Duration) -> u64 {
        let exact = u128::from(length.0) * u128::from(self.clock.get());
        u64::try_from(exact.div_ceil(1_000_000_000_000_000)).unwrap_or(u64::MAX / 4)
    }

    /// What a transfer of so many pages takes, in cycles.
    #[must_use]
    pub fn transfer(&self, pages: u32, to_device: bool) -> u64 {
        if pages == 0 {
            return 0;
        }
        let bytes = Bytes(u64::from(pages) * crate::PAGE);
        self.cycles(self.link.time(bytes, to_device))
    }

    /// Whether faults are collected and served together.
    #[must_use]
    pub fn is_batched(&self) -> bool {
        matches!(self.service, Service::Batch | Service::Calibrated)
    }
}
