//! What is known about one metric.

use lockstep_stats::{Description, Kind};

/// Whose a metric is: the smallest part that counts it for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// A sub-core (SM sub-partition) of an SM.
    SubCore,
    /// A streaming multiprocessor.
    Sm,
    /// A slice of L2.
    Slice,
    /// A channel of DRAM.
    Channel,
    /// A link between two parts.
    Link,
    /// A whole GPU.
    Gpu,
    /// A launch of a kernel.
    Kernel,
    /// The process on the host.
    Host,
}

impl Scope {
    /// The name in every output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SubCore => "sub-core",
            Self::Sm => "SM",
            Self::Slice => "slice",
            Self::Channel => "channel",
            Self::Link => "link",
            Self::Gpu => "GPU",
            Self::Kernel => "kernel",
            Self::Host => "host",
        }
    }
}

/// How one architecture provides a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Definition {
    /// Chip name as CUPTI spells it; `*` is every chip without a line of its own.
    pub architecture: &'static str,
    /// Metric that the range profiler counts exactly, per kernel.
    pub exact: &'static str,
    /// Metric of the same meaning that periodic sampling gives in one pass, if there is one.
    pub sampled: Option<&'static str>,
}

/// How `lockstep correlate` measures the error of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Relative to hardware, summed over the launches of a kernel.
    Relative,
    /// As traffic: relative to at least 5 % of the footprint. Holds the bytes of one unit.
    Traffic(u32),
    /// A share: not summed but averaged, weighted by cycles, and compared as a difference. Hardware's
    /// value is in percent, the simulator's goes from 0 to 1.
    Share,
}

/// One metric. A counter is cumulative, a whole number, never decreasing; a gauge goes up and down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Name in metadata files and outputs.
    pub name: &'static str,
    /// Counter or gauge.
    pub kind: Kind,
    /// Whose it is.
    pub scope: Scope,
    /// What is counted.
    pub unit: &'static str,
    /// The help text.
    pub summary: &'static str,
    /// Names in Nsight Compute that mean the same.
    pub ncu: &'static [&'static str],
    /// How real GPUs provide it; the first line whose architecture fits. Empty if none does.
    pub definitions: &'static [Definition],
    /// Name in DCGM.
    pub dcgm: Option<&'static str>,
    /// Name in LDMS, as its DCGM sampler has it.
    pub ldms: Option<&'static str>,
    /// Name by OpenTelemetry's conventions.
    pub otlp: Option<&'static str>,
    /// How it is compared with hardware, if it is.
    pub comparison: Option<Comparison>,
    /// Whether functional mode knows it, too.
    pub untimed: bool,
    /// The counter to which this one is added before that is compared with hardware. Such a metric is
    /// an estimate of what a profiler sees beside the kernel, not something that the model counts.
    pub added_to: Option<&'static str>,
}

const fn metric(kind: Kind, scope: Scope, unit: &'static str) -> Metric {
    Metric {
        name: "",
        kind,
        scope,
        unit,
        summary: "",
        ncu: &[],
        definitions: &[],
        dcgm: None,
        ldms: None,
        otlp: None,
        comparison: None,
        untimed: false,
        added_to: None,
    }
}

/// A counter.
pub(crate) const fn counter(scope: Scope, unit: &'static str) -> Metric {
    metric(Kind::Counter, scope, unit)
}

/// A gauge.
pub(crate) const fn gauge(scope: Scope, unit: &'static str) -> Metric {
    metric(Kind::Gauge, scope, unit)
}

/// On every chip the same: an exact metric, and one for sampling.
macro_rules! everywhere {
    ($exact:literal, $sampled:expr) => {
        &[$crate::Definition {
            architecture: "*",
            exact: $exact,
            sampled: $sampled,
        }]
    };
}
pub(crate) use everywhere;

impl Metric {
    pub(crate) const fn named(self, name: &'static str, summary: &'static str) -> Self {
        Self {
            name,
            summary,
            ..self
        }
    }

    pub(crate) const fn ncu(self, names: &'static [&'static str]) -> Self {
        Self { ncu: names, ..self }
    }

    pub(crate) const fn on_gpus(self, definitions: &'static [Definition]) -> Self {
        Self {
            definitions,
            ..self
        }
    }

    pub(crate) const fn dcgm(self, name: &'static str, ldms: &'static str) -> Self {
        Self {
            dcgm: Some(name),
            ldms: Some(ldms),
            ..self
        }
    }

    pub(crate) const fn otlp(self, name: &'static str) -> Self {
        Self {
            otlp: Some(name),
            ..self
        }
    }

    pub(crate) const fn compared(self, comparison: Comparison) -> Self {
        Self {
            comparison: Some(comparison),
            ..self
        }
    }

    /// Functional mode knows it, too.
    pub(crate) const fn untimed(self) -> Self {
        Self {
            untimed: true,
            ..self
        }
    }

    pub(crate) const fn added_to(self, counter: &'static str) -> Self {
        Self {
            added_to: Some(counter),
            ..self
        }
    }

    /// As a statistic of a component.
    pub(crate) const fn description(&self) -> Description {
        Description {
            name: self.name,
            kind: self.kind,
            unit: self.unit,
            help: self.summary,
        }
    }

    /// How `architecture` provides this counter.
    pub fn definition(&self, architecture: &str) -> Option<&'static Definition> {
        self.definitions
            .iter()
            .find(|one| one.architecture.eq_ignore_ascii_case(architecture))
            .or_else(|| self.definitions.iter().find(|one| one.architecture == "*"))
    }

    /// Whether some architecture gives it by sampling.
    pub fn can_be_sampled(&self) -> bool {
        self.definitions.iter().any(|one| one.sampled.is_some())
    }

    /// What hardware's value is divided by to give the simulator's unit.
    pub fn hardware_scale(&self) -> f64 {
        match self.comparison {
            Some(Comparison::Share) => 100.0,
            _ => 1.0,
        }
    }
}
