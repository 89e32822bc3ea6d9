//! Declaring statistics, once.

use crate::{Digest, Hasher, Histogram};

/// How a statistic behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows; of several components, the sum.
    Counter,
    /// Grows and shrinks; of several components, the sum.
    Gauge,
    /// The largest value seen; of several components, the largest.
    Maximum,
    /// How values are distributed.
    Histogram,
}

impl Kind {
    /// The name in every output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Maximum => "maximum",
            Self::Histogram => "histogram",
        }
    }
}

/// What one statistic is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description {
    /// Its name, unique within its component.
    pub name: &'static str,
    /// How it behaves.
    pub kind: Kind,
    /// What it counts in: "requests".
    pub unit: &'static str,
    /// What it means, in a sentence.
    pub help: &'static str,
}

/// The value of one statistic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// Of a counter, a gauge or a maximum.
    Number(u64),
    /// Of a histogram.
    Histogram(&'a Histogram),
}

/// A statistic, as [`statistics!`](crate::statistics) uses it.
#[doc(hidden)]
pub trait Measure: Default {
    /// How it behaves.
    const KIND: Kind;
    fn value(&self) -> Value<'_>;
    fn merge(&mut self, other: &Self);
    fn since(&self, earlier: &Self) -> Self;
}

/// What a component counts. Implemented by [`statistics!`](crate::statistics).
pub trait Statistics {
    /// What the component counts, in a sentence.
    const HELP: &'static str;
    /// Each statistic, in the order of declaration.
    const DESCRIPTIONS: &'static [Description];

    /// Each value, in the same order.
    fn visit(&self, f: &mut dyn FnMut(&'static Description, Value<'_>));

    /// Adds what another component of the same kind counted.
    fn merge(&mut self, other: &Self);

    /// What was counted since an earlier copy was taken. Gauges and maxima stay what they are.
    #[must_use]
    fn since(&self, earlier: &Self) -> Self;

    /// The digest of names, units and values.
    fn digest(&self) -> Digest {
        let mut hasher = Hasher::new("statistics");
        self.visit(&mut |description, value| {
            hasher.text(description.name);
            hasher.text(description.unit);
            match value {
                Value::Number(number) => hasher.number(number),
                Value::Histogram(histogram) => {
                    hasher.number(histogram.sum());
                    hasher.number(histogram.largest());
                    for (bound, count) in histogram.buckets() {
                        hasher.number(bound);
                        hasher.number(count);
                    }
                }
            }
        });
        hasher.finish()
    }
}

/// Declares what a component counts: a struct of statistics, each with its unit in brackets and
/// its help text as documentation.
///
/// ```
/// use lockstep_stats::{Statistics, statistics};
///
/// statistics! {
///     /// What one L2 slice counts.
///     pub struct SliceStats {
///         /// Requests whose line was present.
///         hits: Counter [requests],
///         /// From acceptance to reply.
///         latency: Histogram [cycles],
///         /// Requests that waited at once.
///         queue: Maximum [requests],
///     }
/// }
///
/// let mut stats = SliceStats::default();
/// stats.hits.increment();
/// stats.latency.add(230);
/// stats.queue.see(7);
/// assert_eq!(SliceStats::DESCRIPTIONS[0].help, "Requests whose line was present.");
/// ```
#[macro_export]
macro_rules! statistics {
    (
        $(#[doc = $about:literal])+
        $visibility:vis struct $name:ident {
            $(
                $(#[doc = $help:literal])+
                $field:ident: $kind:ident [$($unit:tt)+]
            ),+ $(,)?
        }
    ) => {
        $(#[doc = $about])+
        #[derive(
            Clone,
            Debug,
            Default,
            PartialEq,
            Eq,
            $crate::reexported::serde::Serialize,
            $crate::reexported::serde::Deserialize,
        )]
        #[serde(crate = "lockstep_stats::reexported::serde")]
        $visibility struct $name {
            $(
                $(#[doc = $help])+
                pub $field: $crate::$kind,
            )+
        }

        impl $crate::Statistics for $name {
            const HELP: &'static str = concat!($($about),+).trim_ascii();

            const DESCRIPTIONS: &'static [$crate::Description] = &[
                $($crate::Description {
                    name: stringify!($field),
                    kind: <$crate::$kind as $crate::__Measure>::KIND,
                    unit: stringify!($($unit)+),
                    help: concat!($($help),+).trim_ascii(),
                }),+
            ];

            fn visit(&self, f: &mut dyn FnMut(&'static $crate::Description, $crate::Value<'_>)) {
                let mut descriptions = Self::DESCRIPTIONS.iter();
                $(
                    if let Some(description) = descriptions.next() {
                        f(description, $crate::__Measure::value(&self.$field));
                    }
                )+
            }

            fn merge(&mut self, other: &Self) {
                $($crate::__Measure::merge(&mut self.$field, &other.$field);)+
            }

            fn since(&self, earlier: &Self) -> Self {
                Self { $($field: $crate::__Measure::since(&self.$field, &earlier.$field)),+ }
            }
        }
    };
}
